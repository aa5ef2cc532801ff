//! Curves as SVG, in colours that can be read on light and on dark pages.

use plotters::prelude::*;

use super::{Curve, Series};

/// Pixels of a picture.
const SIZE: (u32, u32) = (760, 460);
/// Axes, grid and text: grey in the middle, since the page may be white or black.
const INK: RGBColor = RGBColor(125, 133, 144);
/// Of the series, in order; all are told apart by readers who do not see all colours.
const COLOURS: [RGBColor; 4] =
    [RGBColor(47, 129, 247), RGBColor(219, 109, 40), RGBColor(46, 160, 67), RGBColor(191, 96, 190)];

/// The picture; the background stays what the page has.
pub(super) fn svg(curve: &Curve) -> Result<String, String> {
    let points = || curve.series.iter().flat_map(|series| &series.points);
    let (x, y) = (range(points().map(|point| point.0))?, range(points().map(|point| point.1))?);
    let mut text = String::new();
    draw(curve, x, y, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// From below the least to above the greatest value.
fn range(values: impl Iterator<Item = f64>) -> Result<std::ops::Range<f64>, String> {
    let (least, greatest) =
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if least > 0.0 && greatest.is_finite() && least <= greatest {
        Ok(least / 1.6..greatest * 1.6)
    } else {
        Err("a logarithmic axis needs positive values".to_owned())
    }
}

fn draw(
    curve: &Curve,
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let label = ("sans-serif", 14).into_font().color(&INK);
    let mut chart = ChartBuilder::on(&area)
        .caption(curve.title, ("sans-serif", 20).into_font().color(&INK))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(x.log_scale().base(curve.base), y.log_scale())?;
    chart
        .configure_mesh()
        .x_desc(curve.x)
        .y_desc(curve.y)
        .axis_style(INK)
        .bold_line_style(INK.mix(0.35))
        .light_line_style(INK.mix(0.12))
        .label_style(label.clone())
        .axis_desc_style(label.clone())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for (series, colour) in curve.series.iter().zip(COLOURS.into_iter().cycle()) {
        let Series { name, points } = series;
        let line = chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3))?;
        line.label(name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    // Where lines neither rise from nor lie flat.
    let legend = if curve.series.len() > 2 { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::MiddleLeft };
    chart.configure_series_labels().position(legend).border_style(INK.mix(0.4)).label_font(label).draw()?;
    area.present()?;
    drop(chart);
    Ok(())
}

/// Without a tail of digits.
fn number(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{:.4}", value).trim_end_matches('0').to_owned() }
}
