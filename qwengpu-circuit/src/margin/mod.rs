//! Proves that a compiled machine computes what its netlist says, exactly, in f32 and in bf16.
//!
//! The proof has three parts, each with its rules on its own page:
//!
//! 1. *declarations*: every declared range and exclusive group holds, and states are used as they must be
//!    (`ranges`, `states`, `cone`; the solver behind them is `world`). For tokens one after another and operations in
//!    order, everything is proven from what was proven before;
//! 2. *exactness*: every integer fits what holds it (`exact`);
//! 3. *noise*: in f32, how far a signal may be from its integer, and that every step, key and choice of a token is
//!    further from its knee (`noise`).
//!
//! A refusal is not a counterexample: it names what could not be proven. What is provable:
//!
//! - forms: intervals, where members of a proven group count once, and inputs are bounded together over the tokens;
//! - products: terms of which at most one is active count once; up forms are bounded while the gate is active;
//! - exclusion of two gates or bits: a short search for a contradiction, see `world`;
//! - anything that depends on few small signals: [`Builder::enumerate`](crate::Builder::enumerate);
//! - states: single rows with the level in every row, or all rows of a class at once with one that has the level.

mod cone;
mod error;
mod exact;
mod facts;
mod form;
mod noise;
mod ranges;
mod report;
mod states;
mod tokens;
mod world;

pub use error::{Dtype, MarginError};
pub use report::{DtypeMargins, MarginReport};

use crate::compile::Compiled;
use crate::ir::Netlist;
use facts::Facts;

/// Proves a compiled machine exact in some dtypes.
///
/// # Errors
/// [`MarginError`] names the first thing that could not be proven.
pub fn prove(netlist: &Netlist, compiled: &Compiled, dtypes: &[Dtype]) -> Result<MarginReport, MarginError> {
    prove_all(netlist, compiled, dtypes).map_err(|mut faults| faults.swap_remove(0))
}

/// [`prove`], but goes on after something that could not be proven as if it had been.
///
/// # Errors
/// Everything that could not be proven, at least one.
pub fn prove_all(netlist: &Netlist, compiled: &Compiled, dtypes: &[Dtype]) -> Result<MarginReport, Vec<MarginError>> {
    let signals = compiled.placement.channels.len();
    if signals != netlist.signals().len() || compiled.tensors.embedding.rows != netlist.tokens().len() {
        let what = format!("{signals} signals and {} tokens", compiled.tensors.embedding.rows);
        return Err(vec![MarginError::Mismatch { what }]);
    }
    let mut facts = Facts::new(netlist);
    let assumptions = facts.prove_declarations();
    facts.prove_exact(compiled);
    let noise = facts.noise(compiled);
    let report = report::report(&facts, compiled, &noise, dtypes, assumptions);
    match report {
        Ok(report) if facts.faults.is_empty() => Ok(report),
        Ok(_) => Err(facts.faults),
        Err(fault) => {
            facts.faults.push(fault);
            Err(facts.faults)
        }
    }
}

/// For each signal, the bound on its distance from its integer in f32, whether or not everything can be proven: for
/// finding out where noise comes from.
///
/// # Panics
/// If the compiled machine is of another netlist.
#[must_use]
pub fn noise_bounds(netlist: &Netlist, compiled: &Compiled) -> Vec<f64> {
    let mut facts = Facts::new(netlist);
    facts.prove_declarations();
    facts.noise(compiled).signals
}
