//! The cases of `qwengpu-ptx/tests/instructions` on the netlist and on the compiled weights.
//!
//! Many instructions share a kernel of four threads. Results are read from the engine that ran, and every record
//! is compared with the interpreter's.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use qwengpu::{Argument, Check, Dim3, EngineKind, Gpu, Kernel, KernelError, Launch, Outcome};

#[path = "../qwengpu-ptx/tests/common/table.rs"]
mod table;

use table::{Block, Case};

/// Threads of a kernel: a warp.
const THREADS: usize = 4;

/// Most words of all buffers of a kernel.
const BUFFER_WORDS: usize = 120;

/// Tokens of a kernel from which on one warp of operands has to do.
const COSTLY: usize = 3_000;

fn blocks() -> BTreeMap<String, Vec<Block>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("qwengpu-ptx/tests/instructions");
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), table::read(&path))).collect()
}

/// What a run of all cases came to.
#[derive(Debug, Default)]
struct Tally {
    launches: usize,
    results: usize,
    tokens: usize,
    prompt_tokens: usize,
    mistakes: Vec<String>,
}

/// Kernels of as many cases as fit.
fn kernels<'b>(gpu: &Gpu, block: &'b Block) -> Vec<(Kernel, Vec<&'b Case>)> {
    let words = block.operand_words() + block.scratch_buffer_words();
    let room = BUFFER_WORDS / THREADS - words.max(1);
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    let mut used = usize::MAX;
    for case in &block.cases {
        if used.saturating_add(case.words()) > room {
            groups.push(Vec::new());
            used = 0;
        }
        used += case.words();
        groups.last_mut().expect("just begun").push(case);
    }
    groups.into_iter().flat_map(|group| translate(gpu, block, group)).collect()
}

/// A kernel of the cases, or several if one would be too long.
fn translate<'b>(gpu: &Gpu, block: &'b Block, mut cases: Vec<&'b Case>) -> Vec<(Kernel, Vec<&'b Case>)> {
    let text = block.kernel(&cases, THREADS);
    match Kernel::from_ptx(gpu.spec(), &text, None) {
        Ok(kernel) => vec![(kernel, cases)],
        Err(KernelError::Ptx { source: qwengpu_ptx::PtxError::ImplLimit { .. }, .. }) if cases.len() > 1 => {
            let rest = cases.split_off(cases.len() / 2);
            [translate(gpu, block, cases), translate(gpu, block, rest)].concat()
        }
        Err(error) => panic!("{error:?}\n{text}"),
    }
}

/// Runs a kernel for four rows of operands.
fn launch(gpu: &mut Gpu, block: &Block, kernel: &Kernel, cases: &[&Case], rows: Range<usize>, tally: &mut Tally) {
    let words: usize = cases.iter().map(|case| case.words()).sum();
    let threads = Dim3::linear(u16::try_from(THREADS).expect("few threads"));
    let launch = Launch::new(Dim3::linear(1), threads)
        .argument(Argument::buffer(&block.input(rows.clone())))
        .argument(Argument::zeros::<u32>(THREADS * words))
        .argument(Argument::zeros::<u32>(THREADS * block.scratch_buffer_words().max(1)))
        .checked();
    let result = gpu.launch(kernel, &launch).expect("the engine runs");
    tally.launches += 1;
    tally.tokens += result.tokens;
    tally.prompt_tokens += result.prompt_tokens;
    if result.outcome != Outcome::Finished || result.check != Some(Check::Equal) {
        tally.mistakes.push(format!("{:?} {:?}: {}", result.outcome, result.check, cases[0].text));
        return;
    }
    tally.results += THREADS * cases.iter().map(|case| case.results.len()).sum::<usize>();
    let output: Vec<u32> = result.buffers[1].to_vec().expect("a buffer of words");
    tally.mistakes.extend(block.mistakes(cases, rows, &output));
}

/// Every case; of costly kernels, and with `few` of all, one warp of operands, not always the same.
fn run_all(engine: EngineKind, few: bool) -> Tally {
    let mut gpu = Gpu::new(engine).expect("the engine is made");
    let mut tally = Tally::default();
    let mut turn = 0;
    for (name, blocks) in blocks() {
        let before = tally.tokens;
        for block in &blocks {
            let warps = block.rows.len() / THREADS;
            for (kernel, cases) in kernels(&gpu, block) {
                turn += 1;
                let first = turn % warps;
                let tokens = tally.tokens;
                for warp in 0..warps {
                    let start = (first + warp) % warps * THREADS;
                    launch(&mut gpu, block, &kernel, &cases, start..start + THREADS, &mut tally);
                    if few || tally.tokens - tokens > COSTLY {
                        break;
                    }
                }
            }
        }
        println!("{name}: {} tokens", tally.tokens - before);
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
    let tally = run_all(EngineKind::Netlist, true);
    assert!(tally.results > 4 * 2_000);
}

#[test]
fn sparse_weights() {
    let tally = run_all(EngineKind::Sparse, false);
    assert!(tally.results > 30_000);
}
