//! What was measured, as a table, as Markdown, and as JSON.

use serde::Serialize;

use super::clock::Reading;
use crate::cli::progress::Paint;

/// Version of the JSON form; raised when a field changes its meaning or goes.
const VERSION: u32 = 1;

/// One measured number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// Group and name, with dots between: `engines.sparse.tokens`. Does not change between versions.
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// Threads that were busy, on average; none where it isn't known or means nothing.
    pub(crate) threads: Option<f64>,
    /// What it was measured over.
    pub(crate) over: String,
}

impl Figure {
    /// An amount in a second.
    pub(crate) fn rate(name: &str, amount: f64, unit: &'static str, taken: Reading, over: &str) -> Self {
        Self { name: name.to_owned(), value: taken.rate(amount), unit, threads: taken.threads(), over: over.to_owned() }
    }

    /// Seconds.
    pub(crate) fn seconds(name: &str, taken: Reading, over: &str) -> Self {
        Self { name: name.to_owned(), value: taken.wall, unit: "s", threads: taken.threads(), over: over.to_owned() }
    }

    /// A quotient of two figures that were measured in turns.
    pub(crate) fn ratio(name: &str, value: f64, over: &str) -> Self {
        Self { name: name.to_owned(), value, unit: "ratio", threads: None, over: over.to_owned() }
    }

    fn value_text(&self) -> String {
        match (self.unit, self.value.abs()) {
            (unit, value) if value >= 1e12 => format!("{:.2} T{unit}", self.value / 1e12),
            (unit, value) if value >= 1e9 => format!("{:.2} G{unit}", self.value / 1e9),
            (unit, value) if value >= 1e6 => format!("{:.2} M{unit}", self.value / 1e6),
            ("ratio", value) if value >= 10.0 => format!("{:.0}", self.value),
            ("ratio", value) if value < 0.01 => format!("1 / {:.0}", 1.0 / value.max(f64::MIN_POSITIVE)),
            ("ratio", _) => format!("{:.2}", self.value),
            (unit, value) if value >= 100.0 => format!("{:.0} {unit}", self.value),
            (unit, value) if value >= 1.0 => format!("{:.2} {unit}", self.value),
            (unit, _) => format!("{:.4} {unit}", self.value),
        }
    }

    fn threads_text(&self) -> String {
        self.threads.map_or_else(String::new, |threads| format!("{threads:.1}"))
    }
}

/// All figures of a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    version: u32,
    /// The version of this program.
    program: &'static str,
    /// Whether it was built with optimisation; figures of other builds mean nothing.
    optimised: bool,
    /// Whether little was measured, and so less exactly.
    quick: bool,
    processor: String,
    /// Threads that the system offers.
    threads_available: usize,
    pub(crate) figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new(quick: bool) -> Self {
        Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            optimised: !cfg!(debug_assertions),
            quick,
            processor: processor(),
            threads_available: std::thread::available_parallelism().map_or(1, usize::from),
            figures: Vec::new(),
        }
    }

    /// Where it was measured, in a line.
    pub(crate) fn place(&self) -> String {
        let build = if self.optimised { "" } else { "; built without optimisation, so this says little" };
        let quick = if self.quick { ", --quick" } else { "" };
        format!("{}, {} threads offered{quick}{build}", self.processor, self.threads_available)
    }

    /// Lines of a table: name, value, threads, what it was measured over.
    pub(crate) fn table(&self, paint: Paint) -> Vec<String> {
        let width = self.figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
        let mut lines = vec![paint.bold(&format!("{:<width$}  {:>18}  threads  over", "figure", "value"))];
        lines.extend(self.figures.iter().map(|figure| {
            let value = paint.bold(&format!("{:>18}", figure.value_text()));
            format!("{:<width$}  {value}  {:>7}  {}", figure.name, figure.threads_text(), paint.dim(&figure.over))
        }));
        lines.push(paint.dim(&self.place()));
        lines
    }

    /// The same as a table in Markdown, with nothing around it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = "| figure | value | threads | over |\n|---|---|---|---|\n".to_owned();
        for figure in &self.figures {
            let (value, threads) = (figure.value_text(), figure.threads_text());
            text += &format!("| `{}` | {value} | {threads} | {} |\n", figure.name, figure.over);
        }
        text + "\n" + &self.place() + ".\n"
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_readable() {
        let text = |value: f64, unit| Figure { unit, ..Figure::ratio("x", value, "") }.value_text();
        assert_eq!(text(7162.4, "tokens/s"), "7162 tokens/s");
        assert_eq!(text(8.3e6, "tokens/s"), "8.30 Mtokens/s");
        assert_eq!(text(2.5e11, "flop/s"), "250.00 Gflop/s");
        assert_eq!(text(0.53, "s"), "0.5300 s");
        assert_eq!(text(0.001, "ratio"), "1 / 1000");
        assert_eq!(text(0.87, "ratio"), "0.87");
        assert_eq!(text(1234.5, "ratio"), "1234");
    }

    #[test]
    fn the_forms_have_every_figure() {
        let mut report = Report::new(true);
        let taken = Reading { wall: 2.0, cpu: Some(4.0) };
        report.figures.push(Figure::rate("a.b", 10.0, "tokens/s", taken, "two launches"));
        assert!(report.markdown().contains("| `a.b` | 5.00 tokens/s | 2.0 | two launches |"), "{}", report.markdown());
        let json = serde_json::to_value(&report).expect("it serialises");
        assert_eq!((&json["version"], &json["figures"][0]["value"]), (&1.into(), &5.0.into()));
        assert_eq!(json["figures"][0]["threads"], 2.0);
    }
}
