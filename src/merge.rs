//! A machine for a base model: the hidden size in which both have room, and the machine compiled for it.

use qwengpu_circuit::{CompileError, CompileOptions, Compiled, Geometry, GeometryError, compile};
use qwengpu_machine::Machine;
use qwengpu_weights::{Base, MachineNeeds, MergePlan};

use crate::error::MachineError;

/// Powers of four that are tried.
const EXACT_TRIES: usize = 4;
/// The largest size that is tried for its exactness.
const LARGEST_EXACT: usize = 16384;
/// Other hidden sizes that are tried are multiples of this.
const STEP: usize = 1024;
/// How many of them are tried before giving up.
const TRIES: usize = 8;
/// How many sizes an error names.
const SUGGESTIONS: usize = 3;
/// The most layers that a machine may take in front of a base; more channels are a better way to have room.
const LAYERS: usize = 24;

/// A machine that was compiled for a base.
#[derive(Debug)]
pub struct FittedMachine {
    /// The sizes of the merged model.
    pub plan: MergePlan,
    /// The machine in weights of these sizes.
    pub compiled: Compiled,
}

/// Compiles a machine for a base, into `hidden` channels or into as few as have room without rounding a weight of the
/// base: its hidden size times a power of four.
///
/// # Errors
/// [`MachineError::Hidden`] if `hidden` has no room or no constant that makes norms exact; it names sizes that do.
/// Otherwise as [`compile`](crate::weights::compile).
pub fn fit(machine: &Machine, base: &Base, hidden: Option<usize>) -> Result<FittedMachine, MachineError> {
    let Some(hidden) = hidden else {
        let mut refused = None;
        for hidden in candidates(base) {
            match try_size(machine, base, hidden)? {
                Ok(fitted) => return Ok(fitted),
                Err(reason) => refused = Some((hidden, reason)),
            }
        }
        let (hidden, reason) = refused.unwrap_or((base.hidden(), "no larger size was tried".to_owned()));
        return Err(MachineError::Hidden { hidden, reason, working: Vec::new() });
    };
    match try_size(machine, base, hidden)? {
        Ok(fitted) => Ok(fitted),
        Err(reason) => {
            let mut working = Vec::new();
            for other in candidates(base).filter(|&other| other != hidden) {
                if working.len() < SUGGESTIONS && try_size(machine, base, other)?.is_ok() {
                    working.push(other);
                }
            }
            Err(MachineError::Hidden { hidden, reason, working })
        }
    }
}

/// Sizes that are worth a try: the base's times a power of four, for which no weight is rounded, then multiples of 1024.
fn candidates(base: &Base) -> impl Iterator<Item = usize> {
    let exact = (1..=EXACT_TRIES).map(|power| base.hidden() << (2 * power)).filter(|hidden| *hidden <= LARGEST_EXACT);
    let first = (base.hidden() + 1).next_multiple_of(STEP);
    exact.chain((0..TRIES).map(move |number| first + number * STEP))
}

/// The inner error says why the size has no room.
fn try_size(machine: &Machine, base: &Base, hidden: usize) -> Result<Result<FittedMachine, String>, MachineError> {
    let Geometry { intermediate, key_heads, .. } = Geometry::default();
    let needs = MachineNeeds { heads: key_heads, intermediate, layers: LAYERS };
    let plan = match MergePlan::new(base, hidden, needs) {
        Ok(plan) => plan,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match compile(&machine.netlist, &plan.geometry(), &CompileOptions::default()) {
        Ok(compiled) => Ok(Ok(FittedMachine { plan, compiled })),
        Err(CompileError::Geometry(error @ GeometryError::Constant { .. })) => Ok(Err(error.to_string())),
        Err(error @ (CompileError::Inputs { .. } | CompileError::Layers { .. })) => {
            let left = hidden - plan.geometry().reserved;
            Ok(Err(format!("the {left} channels beside the base's are too few for the machine: {error}")))
        }
        Err(error) => Err(error.into()),
    }
}
