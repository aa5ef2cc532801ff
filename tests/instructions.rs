//! The cases of `qwengpu-ptx/tests/instructions` on the netlist and on the compiled weights.
//!
//! Many instructions share a kernel. Results are read from the engine that ran, and every record is compared with
//! the interpreter's. With `QWENGPU_EVERY_CASE=1` both engines run all cases on all operands.

#![allow(clippy::panic, reason = "a failing test panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use qwengpu::{Argument, Check, Dim3, EngineKind, Gpu, Kernel, KernelError, Launch, Outcome};

#[path = "../qwengpu-ptx/tests/common/table.rs"]
mod table;

use table::{Block, Case};

const WARP: usize = 4;

/// Most words of all buffers of a kernel.
const BUFFER_WORDS: usize = 120;

/// Which cases run, and on how many operands.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Most warps of a launch.
    warps: usize,
    /// Tokens of a kernel behind which it is not launched again.
    enough: usize,
    /// One case of those that differ in operands only, on one row in all lanes, which speaks least.
    brief: bool,
    /// Of so many video instructions, which are long and made of what the others are, one.
    video: usize,
}

const EVERYTHING: Plan = Plan { warps: 2, enough: usize::MAX, brief: false, video: 1 };

fn wants_everything() -> bool {
    std::env::var_os("QWENGPU_EVERY_CASE").is_some_and(|value| value == "1")
}

fn blocks() -> BTreeMap<String, Vec<Block>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("qwengpu-ptx/tests/instructions");
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), table::read(&path))).collect()
}

/// The opcodes of a case.
fn opcodes(case: &Case) -> String {
    let instructions = case.text.split([';', ':']).filter(|text| !text.trim().starts_with('@'));
    instructions.filter_map(|text| text.split_whitespace().next()).collect::<Vec<_>>().join(" ")
}

/// Loops of a thousand tokens and more.
fn is_long(case: &Case) -> bool {
    ["clmad", "div.u64", "div.s64", "rem.u64", "rem.s64"].iter().any(|name| case.text.starts_with(name))
}

/// What a run of cases came to.
#[derive(Debug, Default)]
struct Tally {
    launches: usize,
    results: usize,
    tokens: usize,
    prompt_tokens: usize,
    mistakes: Vec<String>,
}

/// Words of memory of a thread besides results.
fn fixed_words(block: &Block) -> usize {
    block.operand_words() + block.scratch_buffer_words().max(1)
}

/// Threads of a launch: whole warps, as many as the plan has and a few results leave room for.
fn threads(block: &Block, plan: Plan) -> usize {
    let least = block.cases.iter().map(Case::words).max().unwrap_or(1).max(4);
    let fitting = BUFFER_WORDS / (fixed_words(block) + least) / WARP;
    WARP * fitting.min(plan.warps).min(block.rows.len() / WARP).max(1)
}

/// Kernels of as many cases as fit.
fn kernels<'b>(gpu: &Gpu, block: &'b Block, cases: Vec<&'b Case>, threads: usize) -> Vec<(Kernel, Vec<&'b Case>)> {
    let room = BUFFER_WORDS / threads - fixed_words(block);
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    let mut used = usize::MAX;
    for case in cases {
        if used.saturating_add(case.words()) > room {
            groups.push(Vec::new());
            used = 0;
        }
        used += case.words();
        groups.last_mut().expect("just begun").push(case);
    }
    groups.into_iter().flat_map(|group| translate(gpu, block, group, threads)).collect()
}

/// A kernel of the cases, or several if one would be too long.
fn translate<'b>(
    gpu: &Gpu,
    block: &'b Block,
    mut cases: Vec<&'b Case>,
    threads: usize,
) -> Vec<(Kernel, Vec<&'b Case>)> {
    let text = block.kernel(&cases, threads);
    match Kernel::from_ptx(gpu.spec(), &text, None) {
        Ok(kernel) => vec![(kernel, cases)],
        Err(KernelError::Ptx { source: qwengpu_ptx::PtxError::ImplLimit { .. }, .. }) if cases.len() > 1 => {
            let rest = cases.split_off(cases.len() / 2);
            [translate(gpu, block, cases, threads), translate(gpu, block, rest, threads)].concat()
        }
        Err(error) => panic!("{error:?}\n{text}"),
    }
}

/// Runs a kernel with a thread for each of the rows.
fn launch(gpu: &mut Gpu, block: &Block, kernel: &Kernel, cases: &[&Case], rows: &[usize], tally: &mut Tally) {
    let words: usize = cases.iter().map(|case| case.words()).sum();
    let threads = Dim3::linear(u16::try_from(rows.len()).expect("few threads"));
    let launch = Launch::new(Dim3::linear(1), threads)
        .argument(Argument::buffer(&block.input(rows)))
        .argument(Argument::zeros::<u32>(rows.len() * words))
        .argument(Argument::zeros::<u32>(rows.len() * block.scratch_buffer_words().max(1)))
        .checked();
    let result = gpu.launch(kernel, &launch).expect("the engine runs");
    tally.launches += 1;
    tally.tokens += result.tokens;
    tally.prompt_tokens += result.prompt.len();
    if result.outcome != Outcome::Finished || result.check != Some(Check::Equal) {
        tally.mistakes.push(format!("{:?} {:?}: {}", result.outcome, result.check, cases[0].text));
        return;
    }
    tally.results += rows.len() * cases.iter().map(|case| case.results.len()).sum::<usize>();
    let output: Vec<u32> = result.buffers[1].to_vec().expect("a buffer of words");
    tally.mistakes.extend(block.mistakes(cases, rows, &output));
}

fn run_all(engine: EngineKind, plan: Plan) -> Tally {
    let plan = if wants_everything() { EVERYTHING } else { plan };
    let mut gpu = Gpu::new(engine).expect("the engine is made");
    let mut tally = Tally::default();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut turn = 0;
    for (name, blocks) in blocks() {
        let before = (tally.prompt_tokens, tally.tokens);
        for block in &blocks {
            let mut number = 0;
            let cases = block.cases.iter().filter(|case| {
                number += 1;
                let chosen = !name.starts_with("video") || number % plan.video == 0;
                chosen && !(plan.brief && (is_long(case) || !seen.insert(opcodes(case))))
            });
            let cases: Vec<&Case> = cases.collect();
            let threads = threads(block, plan);
            for (kernel, cases) in kernels(&gpu, block, cases, threads) {
                // Not always the same operands, if not all.
                turn += 1;
                let mut starts: Vec<usize> = (0..block.rows.len()).step_by(threads).collect();
                let launches = starts.len();
                starts.rotate_left(turn % launches);
                let spoken = tally.tokens;
                for start in starts {
                    let mut rows: Vec<usize> = (start..block.rows.len().min(start + threads)).collect();
                    if plan.brief && !block.warp {
                        let row = rows[turn % rows.len()];
                        rows.fill(row);
                    }
                    launch(&mut gpu, block, &kernel, &cases, &rows, &mut tally);
                    if tally.tokens - spoken > plan.enough {
                        break;
                    }
                }
            }
        }
        println!("{name}: {} + {} tokens", tally.prompt_tokens - before.0, tally.tokens - before.1);
    }
    println!(
        "{} launches, {} results, {} + {} tokens",
        tally.launches, tally.results, tally.prompt_tokens, tally.tokens
    );
    assert!(tally.mistakes.is_empty(), "{} mistakes:\n{}", tally.mistakes.len(), tally.mistakes.join("\n"));
    tally
}

#[test]
fn netlist() {
    let tally = run_all(EngineKind::Netlist, Plan { warps: 1, enough: 0, brief: true, video: 10 });
    assert!(tally.results > 4_000);
}

#[test]
fn sparse_weights() {
    let tally = run_all(EngineKind::Sparse, Plan { warps: 2, enough: 2_000, brief: false, video: 3 });
    assert!(tally.results > 25_000);
}
