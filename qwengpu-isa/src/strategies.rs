//! Generators of random instructions, programs and launches for property tests.
//!
//! - [`instruction`]: any instruction that has an encoding; branch targets are below a bound.
//! - [`terminating_program`]: programs that end by construction, see there.
//! - [`raw_program`]: random instructions in a row, which may run for ever: use a step limit.
//! - [`launch`]: a small launch with random memory.

mod instruction;
mod terminating;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};

pub use instruction::{immediate, instruction, operand, predicate_source, register, straight_instruction};
pub use terminating::{ProgramOptions, terminating_program};

use crate::inst::Instruction;
use crate::launch::{Dim3, LaunchConfig};
use crate::program::{KernelSignature, Program};
use crate::spec::MachineSpec;

/// Random instructions in a row, closed by an `exit`: valid, but not sure to end.
pub fn raw_program(max_length: u16) -> impl Strategy<Value = Program> {
    (1..=max_length).prop_flat_map(|length| {
        vec(instruction(length + 1), usize::from(length)).prop_map(|mut instructions| {
            instructions.push(Instruction::exit());
            Program::new(KernelSignature::new("raw"), instructions)
        })
    })
}

/// A launch of few CTAs with random parameters and memory; blocks of any shape, up to every thread of the machine.
pub fn launch(spec: &MachineSpec) -> impl Strategy<Value = LaunchConfig> + use<> {
    let max_threads = spec.max_threads();
    let grid = (1..=2u16, 1..=2u16, 1..=2u16).prop_map(|(x, y, z)| Dim3::new(x, y, z));
    let block = (1..=max_threads)
        .prop_flat_map(move |x| (Just(x), 1..=max_threads / x))
        .prop_flat_map(move |(x, y)| (Just(x), Just(y), 1..=max_threads / (x * y)))
        .prop_map(|(x, y, z)| Dim3::new(x, y, z));
    let global = vec(immediate(), 0..=usize::from(spec.global_words));
    (grid, block, vec(any::<u32>(), 0..4), global).prop_map(|(grid, block, parameters, global)| {
        LaunchConfig::new(grid, block).with_parameters(&parameters).with_global(global)
    })
}
