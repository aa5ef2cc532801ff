//! The kernels of `kernels/`: their launches, run on the interpreter, and compared with what they must give.
#![allow(dead_code, unreachable_pub, reason = "each user of this file uses a part of it")]

use std::ops::Range;
use std::path::{Path, PathBuf};

use qwengpu_interp::{Machine, Outcome};
use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec};
use qwengpu_ptx::{LoweredKernel, Options, lower, parse};
use serde_json::Value;

const STEP_LIMIT: u64 = 200_000;

/// What the launches of a kernel took together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Records spoken.
    pub tokens: u64,
}

/// The folder of the kernels.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kernels")
}

/// The names of the kernels, in order.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the folder of kernels is readable");
    let mut names: Vec<String> = files
        .map(|file| file.expect("the folder of kernels is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// Lowers a file of PTX that one of the kernels was compiled to, and runs its launches.
pub fn check(name: &str, ptx: &Path) -> Result<(LoweredKernel, Cost), String> {
    let text = std::fs::read_to_string(ptx).map_err(|e| e.to_string())?;
    let case = std::fs::read_to_string(folder().join(format!("{name}.json"))).map_err(|e| e.to_string())?;
    let case: Value = serde_json::from_str(&case).map_err(|e| e.to_string())?;
    let module = parse(&text).map_err(|e| e.to_string())?;
    let kernel = lower(&module, case["kernel"].as_str(), &Options::default()).map_err(|e| e.to_string())?;
    let mut cost = Cost::default();
    for (number, launch) in list(&case["launches"]).iter().enumerate() {
        let run = run_launch(&kernel, launch).map_err(|e| format!("launch {number}: {e}"))?;
        cost.warp_instructions += run.warp_instructions;
        cost.tokens += run.tokens;
    }
    Ok((kernel, cost))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The width of an element type such as `u16`, in bytes.
fn width(ty: &str) -> usize {
    ty[1..].parse::<usize>().expect("an element type") / 8
}

fn number(text: &str) -> [u8; 8] {
    text.parse::<i128>().map_or([0; 8], |n| n.to_le_bytes()[..8].try_into().expect("8 of 16 bytes"))
}

fn bytes<'a>(ty: &str, values: impl Iterator<Item = &'a str>) -> Vec<u8> {
    values.flat_map(|value| number(value)[..width(ty)].to_vec()).collect()
}

fn dim(value: &Value) -> Dim3 {
    let at = |idx: usize| u16::try_from(value[idx].as_u64().expect("a size")).expect("a small size");
    Dim3::new(at(0), at(1), at(2))
}

fn run_launch(kernel: &LoweredKernel, launch: &Value) -> Result<Cost, String> {
    let mut memory: Vec<u8> = Vec::new();
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut packed: Vec<Vec<u8>> = Vec::new();
    let params = &kernel.program.signature.params;
    for (argument, param) in list(&launch["args"]).iter().zip(params) {
        let parts: Vec<&str> = argument.as_str().expect("an argument is text").split(':').collect();
        let contents = match parts[..] {
            ["buf", ty, values] => bytes(ty, values.split(',')),
            ["zeros", ty, count] => vec![0; width(ty) * count.parse::<usize>().expect("a count")],
            [_, value] => {
                packed.push(number(value)[..param.size as usize].to_vec());
                continue;
            }
            _ => return Err(format!("unknown argument {argument}")),
        };
        memory.resize(memory.len().next_multiple_of(4), 0);
        packed.push((memory.len() as u64).to_le_bytes()[..param.size as usize].to_vec());
        places.push(memory.len()..memory.len() + contents.len());
        memory.extend(contents);
    }
    let mut global: Vec<u32> =
        memory.chunks(4).map(|c| c.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect();
    let statics = &kernel.static_data;
    if global.len() > statics.first_word as usize {
        return Err("buffers and static data overlap".to_owned());
    }
    if !statics.words.is_empty() {
        global.resize(statics.first_word as usize, 0);
        global.extend(&statics.words);
    }
    let packed: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
    let constants = kernel.program.signature.pack_arguments(&packed).map_err(|e| e.to_string())?;
    let config =
        LaunchConfig::new(dim(&launch["grid"]), dim(&launch["block"])).with_constants(constants).with_global(global);
    let mut machine = Machine::new(MachineSpec::seed(), &kernel.program).map_err(|e| e.to_string())?;
    let run = machine.launch(&config, STEP_LIMIT).map_err(|e| e.to_string())?;
    if run.outcome != Outcome::Finished {
        return Err(run.outcome.to_string());
    }
    let after: Vec<u8> = machine.global().iter().flat_map(|word| word.to_le_bytes()).collect();
    for expect in list(&launch["expect"]) {
        let buffer = usize::try_from(expect["buffer"].as_u64().expect("a number")).expect("a small number");
        let ty = expect["type"].as_str().expect("a type");
        let values: Vec<String> = list(&expect["values"]).iter().map(Value::to_string).collect();
        let wanted = bytes(ty, values.iter().map(String::as_str));
        if after[places[buffer].clone()] != wanted {
            return Err(format!("buffer {buffer}: {:?} instead of {wanted:?}", &after[places[buffer].clone()]));
        }
    }
    Ok(Cost { warp_instructions: run.counts.warp_instructions, tokens: run.counts.tokens })
}
