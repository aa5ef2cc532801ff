//! What the proof found.

use std::fmt;

use super::error::{Dtype, MarginError};
use super::facts::Facts;
use super::noise::{Noise, real};
use crate::compile::Compiled;
use crate::geometry::ConstantPlan;

/// Margins in one dtype. Distances are in units of the integers: a step's gates are 1 away from its knee without noise.
#[derive(Clone, Debug, PartialEq)]
pub struct DtypeMargins {
    /// The dtype.
    pub dtype: Dtype,
    /// The largest bound on a signal's distance from its integer.
    pub noise: f64,
    /// The signals with the largest bounds.
    pub noisiest: Vec<(String, f64)>,
    /// The smallest distance of a step's gate from its knee.
    pub step_distance: f64,
    /// The operation of that step.
    pub step: String,
    /// The smallest distance of a row's form from where its key, doubled, would not be all or nothing.
    pub row_distance: f64,
    /// The smallest difference between two logits that differ.
    pub logit_gap: f64,
}

/// A proof's result.
#[derive(Clone, Debug, PartialEq)]
pub struct MarginReport {
    /// By dtype.
    pub dtypes: Vec<DtypeMargins>,
    /// The largest sum of squares of channels before a norm, the constant channels aside.
    pub squares: i64,
    /// Proven exclusive groups.
    pub groups: usize,
    /// Signals whose range was proven.
    pub signals: usize,
    /// What was taken for granted about the stream of tokens.
    pub assumptions: Vec<String>,
}

/// How many of the noisiest signals are named.
const NAMED: usize = 5;
/// Largest noise of a logit in units of the code: a quarter of the unit is left between two logits.
const LOGIT: f64 = 0.375;
/// Largest logit, in units of the code, that bf16 holds with all integers below.
const LARGEST_LOGIT: i64 = 256;

pub(super) fn report(
    facts: &Facts<'_>,
    compiled: &Compiled,
    noise: &Noise,
    dtypes: &[Dtype],
    assumptions: Vec<String>,
) -> Result<MarginReport, MarginError> {
    let netlist = facts.netlist;
    let mut logit_noise: f64 = 0.0;
    for token in netlist.tokens() {
        let mut sum = (0, 0);
        let mut off = 0.0;
        for &(signal, weight) in &token.code {
            let (low, high) = facts.signal_range(signal);
            let (a, b) = (weight * low, weight * high);
            sum = (sum.0 + a.min(b).min(0), sum.1 + a.max(b).max(0));
            off += real(weight.abs()) * noise.signals[signal.index()];
        }
        let bound = sum.1.max(-sum.0);
        if bound > LARGEST_LOGIT {
            return Err(MarginError::Exactness {
                operation: token.text.clone(),
                what: "the logit, in units of the code,",
                bound,
                limit: LARGEST_LOGIT,
            });
        }
        if off > LOGIT {
            return Err(MarginError::Noise {
                operation: token.text.clone(),
                what: "the logit",
                dtype: Dtype::F32,
                noise: off,
                limit: LOGIT,
            });
        }
        logit_noise = logit_noise.max(off);
    }
    let mut ranked: Vec<(usize, f64)> =
        noise.signals.iter().copied().enumerate().filter(|(_, noise)| *noise > 0.0).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let named = |&(number, noise): &(usize, f64)| (netlist.signals()[number].name.clone(), noise);
    let unit = f64::from(compiled.tensors.logit_unit);
    let dtypes = dtypes
        .iter()
        .map(|&dtype| {
            let noisy = dtype == Dtype::F32;
            let some = |value: f64| if noisy { value } else { 0.0 };
            DtypeMargins {
                dtype,
                noise: some(ranked.first().map_or(0.0, |&(_, noise)| noise)),
                noisiest: if noisy { ranked.iter().take(NAMED).map(named).collect() } else { Vec::new() },
                step_distance: 1.0 - 4.0 * some(noise.dead_zone.0),
                step: netlist.operation_name(noise.dead_zone.1),
                row_distance: 1.0 - 2.0 * some(noise.row.0),
                logit_gap: unit * (1.0 - 2.0 * some(logit_noise)),
            }
        })
        .collect();
    Ok(MarginReport {
        dtypes,
        squares: facts.largest_squares,
        groups: facts.groups.members.len(),
        signals: netlist.signals().len(),
        assumptions,
    })
}

impl fmt::Display for MarginReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} ranges and {} groups proven; squares of channels up to {} of {}",
            self.signals,
            self.groups,
            self.squares,
            ConstantPlan::SQUARES
        )?;
        writeln!(formatter, "dtype  noise     step distance  row distance  logit gap")?;
        for margins in &self.dtypes {
            let DtypeMargins { dtype, noise, step_distance, row_distance, logit_gap, .. } = margins;
            writeln!(
                formatter,
                "{dtype:<5}  {noise:<8.2e}  {step_distance:>13.6}  {row_distance:>12.6}  {logit_gap:>9.4}"
            )?;
        }
        for (name, noise) in self.dtypes.iter().flat_map(|margins| &margins.noisiest) {
            writeln!(formatter, "  {noise:.2e} {name}")?;
        }
        for assumption in &self.assumptions {
            writeln!(formatter, "assumed: {assumption}")?;
        }
        Ok(())
    }
}
