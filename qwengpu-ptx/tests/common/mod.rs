//! Lowering and running a kernel, for the tests.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this module")]

pub mod table;

use std::path::PathBuf;

use qwengpu_interp::{Counts, Machine, Outcome};
use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec};
use qwengpu_ptx::{LoweredKernel, Options, lower, parse};

/// A kernel argument.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A buffer in global memory, as bytes.
    Buffer(Vec<u8>),
    /// A word.
    Word(u32),
}

/// What a launch left.
#[derive(Debug)]
pub struct Finished {
    /// The buffers, in the order of the arguments.
    pub buffers: Vec<Vec<u32>>,
    /// Instructions and records.
    pub counts: Counts,
}

/// The crate's corpus folder.
pub fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Parses and lowers the only kernel of a text.
pub fn compile(ptx: &str) -> LoweredKernel {
    let module = parse(ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    lower(&module, None, &Options::default()).unwrap_or_else(|e| panic!("{e}\n{ptx}"))
}

/// Runs a kernel; buffers stand one behind the other from address 0 on.
pub fn run(kernel: &LoweredKernel, grid: Dim3, block: Dim3, arguments: &[Argument]) -> Finished {
    run_on(MachineSpec::seed(), kernel, grid, block, arguments)
}

/// As [`run`], on another machine.
pub fn run_on(spec: MachineSpec, kernel: &LoweredKernel, grid: Dim3, block: Dim3, arguments: &[Argument]) -> Finished {
    let (outcome, finished) = attempt(spec, kernel, grid, block, arguments);
    assert_eq!(outcome, Outcome::Finished);
    finished
}

/// Runs a kernel that may fault or not end.
pub fn attempt(
    spec: MachineSpec,
    kernel: &LoweredKernel,
    grid: Dim3,
    block: Dim3,
    arguments: &[Argument],
) -> (Outcome, Finished) {
    let mut global: Vec<u32> = Vec::new();
    let mut packed: Vec<Vec<u8>> = Vec::new();
    let mut places = Vec::new();
    for (argument, param) in arguments.iter().zip(&kernel.program.signature.params) {
        let value = match argument {
            Argument::Word(word) => u64::from(*word),
            Argument::Buffer(bytes) => {
                let start = global.len();
                global.extend(bytes.chunks(4).map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b))));
                places.push(start..global.len());
                4 * start as u64
            }
        };
        packed.push(value.to_le_bytes()[..param.size as usize].to_vec());
    }
    let statics = &kernel.static_data;
    assert!(global.len() <= statics.first_word as usize, "buffers and static data overlap");
    if !statics.words.is_empty() {
        global.resize(statics.first_word as usize, 0);
        global.extend(&statics.words);
    }
    let packed: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
    let constants = kernel.program.signature.pack_arguments(&packed).expect("the arguments fit the signature");
    let launch = LaunchConfig::new(grid, block).with_constants(constants).with_global(global);
    let mut machine = Machine::new(spec, &kernel.program).unwrap_or_else(|e| panic!("{e}"));
    let run = machine.launch(&launch, 100_000).expect("the launch is valid");
    let buffers = places.into_iter().map(|place| machine.global()[place].to_vec()).collect();
    (run.outcome, Finished { buffers, counts: run.counts })
}
