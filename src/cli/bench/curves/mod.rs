//! Growth curves: what more work, longer contexts and larger models cost, as CSV and as SVG.

mod draw;
mod growth;
mod work;

use std::path::Path;

use super::{Failure, Group, Setting};

/// Points of one thing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A figure with some series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// The name of the files.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What the axes show, with units.
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// Ticks of the x axis are powers of it; those of the y axis are powers of ten.
    pub(super) base: f64,
    pub(super) series: Vec<Series>,
}

impl Curve {
    /// `series,x,y`, the axes' names in the header.
    fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = format!("{},{},{}\n", quoted("series"), quoted(self.x), quoted(self.y));
        for series in &self.series {
            for (x, y) in &series.points {
                text += &format!("{},{x},{y}\n", quoted(&series.name));
            }
        }
        text
    }
}

/// Measures curves and writes `NAME.csv` and `NAME.svg` of each to a folder.
pub(super) fn write(setting: &Setting<'_>, curves: &[Group], folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("making", folder, &error))?;
    for &group in curves {
        let curve = match group {
            Group::Work => work::measure(setting)?,
            Group::Context => growth::context(setting)?,
            Group::Width => growth::width(setting)?,
            Group::Depth => growth::depth(setting)?,
            _ => continue,
        };
        let svg =
            draw::svg(&curve).map_err(|reason| Failure::wrong(format!("{} cannot be drawn: {reason}", curve.name)))?;
        for (extension, text) in [("csv", curve.csv()), ("svg", svg)] {
            let path = folder.join(curve.name).with_extension(extension);
            std::fs::write(&path, text).map_err(|error| Failure::file("writing", &path, &error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        let series = |name: &str, factor: f64| Series {
            name: name.to_owned(),
            points: (1..5).map(|x| (f64::from(x), factor * f64::from(x))).collect(),
        };
        Curve {
            name: "test",
            title: "A title",
            x: "size (elements)",
            y: "time (s)",
            base: 2.0,
            series: vec![series("one, \"1\"", 1.0), series("ten", 10.0)],
        }
    }

    #[test]
    fn data_has_every_point() {
        let csv = curve().csv();
        assert!(csv.starts_with("\"series\",\"size (elements)\",\"time (s)\"\n\"one, \"\"1\"\"\",1,1\n"), "{csv}");
        assert_eq!(csv.lines().count(), 9);
    }

    #[test]
    fn pictures_have_titles_axes_and_series_and_no_background() {
        let svg = draw::svg(&curve()).expect("it is drawn");
        for text in ["A title", "size (elements)", "time (s)", "ten"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert!(svg.contains("<polyline") && !svg.contains("#FFFFFF"), "{svg}");
        assert_eq!(svg, draw::svg(&curve()).expect("it is drawn again"));
    }

    #[test]
    fn nothing_to_draw_is_refused() {
        assert!(draw::svg(&Curve { series: Vec::new(), ..curve() }).is_err());
    }
}
