//! The SIMT GPU as a netlist: what one record does, from its embedding to the choice of the next.
//!
//! A forward pass runs from the bottom up: [`intake`](self) remembers what is open, the decoder fetches the
//! instruction, operands are read, the units compute, memory is accessed, the control unit finds the next pc, and the
//! answer is spoken. Nothing here knows of layers: the circuit compiler schedules the netlist.
#![forbid(unsafe_code)]

mod adder;
mod answer;
mod arithmetic;
mod bitwise;
mod compare;
mod control;
mod decode;
mod inputs;
mod intake;
mod lanes;
mod memory;
mod operands;

use qwengpu_circuit::{Builder, Linear, Netlist};
use qwengpu_isa::{MachineSpec, Memory, RecordTable, SpecError};
use thiserror::Error;

pub use memory::memory_state;

/// A machine whose sizes the netlist cannot be built for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The specification itself is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A size that the circuits do not cover.
    #[error("{what} of {got} cannot be built: {need}")]
    Size {
        /// The field.
        what: &'static str,
        /// Its value.
        got: usize,
        /// What is possible.
        need: &'static str,
    },
}

/// A machine: its netlist, whose tokens are the records of `table` in order.
#[derive(Debug)]
pub struct Machine {
    /// What one record does.
    pub netlist: Netlist,
    /// The records; a record's index is its token's number.
    pub table: RecordTable,
}

/// Builds the netlist of a machine.
///
/// # Errors
/// When the specification is invalid or has a size that the circuits don't cover.
pub fn build(spec: &MachineSpec) -> Result<Machine, MachineError> {
    let table = RecordTable::new(spec)?;
    check_sizes(spec)?;
    let mut b = Builder::new();
    let inputs = inputs::Inputs::declare(&mut b, spec);
    let intake = intake::Intake::build(&mut b, spec, &inputs);
    let decoded = decode::Decoded::build(&mut b, spec, &inputs, &intake);
    let operands = operands::Operands::build(&mut b, spec, &inputs, &intake, &decoded);

    let mut results: Vec<Vec<Linear>> = vec![vec![Linear::zero(); inputs::WORD]; operands.lanes.len()];
    let same_below = compare::same_below(&mut b, &decoded, &operands.lanes);
    let (mut predicates, mut branches) = (Vec::new(), Vec::new());
    for (number, (lane, result)) in operands.lanes.iter().zip(&mut results).enumerate() {
        b.scope(format!("execute/lane{number}"), |b| {
            let compared = compare::compare(b, &decoded, lane, &same_below[number]);
            predicates.push(compared.predicate);
            branches.push(compared.branches);
            let units = [
                arithmetic::additions(b, &decoded, lane),
                arithmetic::multiply_add(b, &decoded, lane),
                bitwise::logic(b, &decoded, lane),
                bitwise::shifts(b, &decoded, lane),
                compared.result,
            ];
            for unit in units {
                for (sum, bit) in result.iter_mut().zip(unit) {
                    *sum += bit;
                }
            }
            bitwise::counts(b, &decoded, lane, result);
        });
    }
    lanes::shuffle(&mut b, &decoded, &operands.lanes, &mut results);
    lanes::identify(&mut b, &decoded, &intake, &operands.lanes, &mut results);
    lanes::small_division(&mut b, &decoded, &intake, &operands.lanes, &mut results);
    let faults = memory::build(&mut b, spec, &inputs, &intake, &decoded, &operands, &mut results);
    let control = control::Control::build(&mut b, spec, &inputs, &intake, &decoded, &operands, &branches);
    let outputs =
        answer::build(&mut b, spec, &inputs, &intake, &decoded, &operands, &control, &faults, &results, &predicates);
    inputs::declare_tokens(&mut b, &table, &inputs, &outputs);
    Ok(Machine { netlist: b.finish(), table })
}

fn check_sizes(spec: &MachineSpec) -> Result<(), MachineError> {
    let size = |what, got: u16, ok: bool, need| {
        if ok { Ok(()) } else { Err(MachineError::Size { what, got: usize::from(got), need }) }
    };
    size("lanes", spec.lanes, spec.lanes == 4, "4 lanes")?;
    size("warps", spec.warps, spec.warps == 8, "8 warps")?;
    size("rom_words", spec.rom_words, spec.rom_words.is_power_of_two(), "a power of two")?;
    for memory in Memory::ALL {
        let words = spec.window(memory).words;
        let missing = words.next_power_of_two() - words;
        let fits = missing == 0 || (missing.is_power_of_two() && memory == Memory::Global);
        size("words of a memory", words, fits, "a power of two, or for global memory that less a power of two")?;
    }
    Ok(())
}
