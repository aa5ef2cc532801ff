//! `qwengpu ptx`: how a kernel is translated, stage by stage.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;
use qwengpu::Kernel;
use qwengpu_ptx::{Options, PassStats, Stage, Stats, TokenEstimates};
use serde_json::{Value, json};

use super::arguments::{MachineName, load_ptx};
use super::failure::Failure;
use super::output::outln;
use super::progress::Paint;

/// The arguments of `ptx`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu ptx kernels/saxpy.ptx                      every stage, then the program
  qwengpu ptx kernels/saxpy.ptx --stage if_convert   one stage
  qwengpu ptx kernels/saxpy.ptx --stats              what each pass saves")]
pub(crate) struct PtxArgs {
    /// PTX, or CUDA source
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The kernel's name, if the file has several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Show instructions and estimated tokens before and after each pass, and what it saved
    #[arg(long)]
    stats: bool,
    /// Print the figures as JSON
    #[arg(long, requires = "stats")]
    json: bool,
    /// Show one stage only
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// The machine to translate for
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

/// What a pass left behind.
struct Snapshot {
    pass: &'static str,
    round: u32,
    instructions: usize,
    text: String,
}

pub(crate) fn run(args: &PtxArgs) -> Result<(), Failure> {
    let text = load_ptx(&args.file)?;
    let snapshots = RefCell::new(Vec::new());
    let observer = |stage: &Stage<'_>| {
        let &Stage { pass, round, instructions, ir, .. } = stage;
        let text = if args.stats { String::new() } else { ir.to_string() };
        snapshots.borrow_mut().push(Snapshot { pass, round, instructions, text });
    };
    let options = Options { observer: Some(&observer), estimates: args.stats, ..Options::new(args.machine.spec()) };
    let kernel = Kernel::from_ptx_with(&text, args.kernel.as_deref(), &options);
    let snapshots = snapshots.into_inner();
    let paint = Paint::stdout();
    if args.stats {
        let kernel = kernel.map_err(|error| Failure::from_kernel(error, &args.file))?;
        if let Some(stats) = kernel.stats() {
            if args.json {
                outln!("{}", stats_json(stats));
            } else {
                print_stats(stats, paint);
            }
        }
        return Ok(());
    }
    let wanted = |snapshot: &&Snapshot| args.stage.as_deref().is_none_or(|stage| stage == snapshot.pass);
    let shown: Vec<&Snapshot> = snapshots.iter().filter(wanted).collect();
    for Snapshot { pass, round, instructions, text } in &shown {
        outln!("{}\n{text}", paint.bold(&format!("== {pass}, round {round}: {instructions} instructions")));
    }
    let kernel = kernel.map_err(|error| Failure::from_kernel(error, &args.file))?;
    match &args.stage {
        Some(stage) if shown.is_empty() => {
            let mut names: Vec<&str> = snapshots.iter().map(|snapshot| snapshot.pass).collect();
            names.sort_unstable();
            names.dedup();
            Err(Failure::input(format!("no stage {stage:?}: the stages are {}", names.join(" "))))
        }
        Some(_) => Ok(()),
        None => {
            let length = kernel.program().instructions.len();
            outln!("{}\n{}", paint.bold(&format!("== program: {length} instructions")), kernel.program());
            Ok(())
        }
    }
}

/// The estimates of a pass, which `--stats` asks for.
fn tokens(pass: &PassStats) -> TokenEstimates {
    pass.tokens.unwrap_or(TokenEstimates { before: 0, after: 0 })
}

/// What a pass took away; negative if it added.
fn saved(pass: &PassStats) -> (i64, i64) {
    let difference = |before: u64, after: u64| before.cast_signed() - after.cast_signed();
    (difference(pass.before as u64, pass.after as u64), difference(tokens(pass).before, tokens(pass).after))
}

fn print_stats(stats: &Stats, paint: Paint) {
    outln!("{}", paint.bold("                                      instructions                  tokens, estimated"));
    outln!("{}", paint.bold("pass                      round   before    after    saved   before    after    saved"));
    for pass in &stats.passes {
        let TokenEstimates { before, after } = tokens(pass);
        let (instructions, tokens) = saved(pass);
        outln!(
            "{:<25} {:>5} {:>8} {:>8} {instructions:>8} {:>8} {:>8} {tokens:>8}",
            pass.pass,
            pass.round,
            pass.before,
            pass.after,
            before,
            after
        );
    }
    outln!(
        "{} instructions, {} tokens a warp (estimated), {} registers, {} predicates, {} spill slots, {} bytes local, {} bytes shared, {} words of variables",
        stats.instructions,
        stats.estimated_tokens,
        stats.registers,
        stats.predicates,
        stats.spill_slots,
        stats.local_bytes,
        stats.shared_bytes,
        stats.static_words
    );
}

fn stats_json(stats: &Stats) -> Value {
    let pass = |pass: &PassStats| {
        let TokenEstimates { before, after } = tokens(pass);
        let (instructions, tokens) = saved(pass);
        json!({
            "pass": pass.pass,
            "round": pass.round,
            "instructions": { "before": pass.before, "after": pass.after, "saved": instructions },
            "tokens": { "before": before, "after": after, "saved": tokens },
        })
    };
    json!({
        "passes": stats.passes.iter().map(pass).collect::<Vec<_>>(),
        "instructions": stats.instructions,
        "tokens": stats.estimated_tokens,
        "registers": stats.registers,
        "predicates": stats.predicates,
        "spill_slots": stats.spill_slots,
        "local_bytes": stats.local_bytes,
        "shared_bytes": stats.shared_bytes,
        "static_words": stats.static_words,
    })
}
