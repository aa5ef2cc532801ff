//! `qwengpu compute`: an expression, or a kernel by name, on the GPU.

use clap::Args;
use qwengpu::language::{ComputeError, ComputeOptions, PRESETS, compute};
use serde_json::json;

use super::arguments::{EngineArgs, EngineName};
use super::failure::Failure;
use super::output::outln;
use super::progress::{Paint, Spinner};
use super::run::figures;
use super::tokens::stream;

/// The arguments of `compute`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu compute '12 * (3 + 4)'
  qwengpu compute 'gcd(48, 36)' --check
  qwengpu compute 'dot([1, 2], [3, 4])' --engine dense --json
  qwengpu compute '2 ** 10' --model merged --tokens
  qwengpu compute --list

Numbers have 64 bits; / and % are those of C, ** is a power.
Exit status: 0 success, 1 no result (overflow, division by zero) or a difference, 2 bad input.")]
pub(crate) struct ComputeArgs {
    /// An expression, or a call such as `gcd(48, 36)`
    #[arg(required_unless_present = "list")]
    text: Option<String>,
    /// Print what can be called
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// Records after which the launch is cut off
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_tokens: usize,
    /// Compare every record with the interpreter's
    #[arg(long)]
    check: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Print the launch as token ids, of the checkpoint if one is named: {"prompt": [ids], "records": [ids]}
    #[arg(long, conflicts_with = "json")]
    tokens: bool,
}

pub(crate) fn run(args: &ComputeArgs) -> Result<(), Failure> {
    let Some(text) = args.text.as_ref().filter(|_| !args.list) else {
        print_list(args.json);
        return Ok(());
    };
    let mut gpu = args.engine.gpu(if args.tokens && args.engine.model.is_none() {
        EngineName::Interp
    } else {
        EngineName::Sparse
    })?;
    let spinner = Spinner::counting();
    let answer =
        compute(&mut gpu, text, ComputeOptions { max_tokens: args.max_tokens, check: args.check }, &mut |_| {
            spinner.count()
        });
    drop(spinner);
    let answer = answer.map_err(|error| match error {
        ComputeError::Expression(_) | ComputeError::Call(_) => Failure::input(format!(
            "{text:?} cannot be computed: {error}; `qwengpu compute --list` shows what can be called"
        )),
        _ => Failure::wrong(error),
    })?;
    if args.tokens {
        outln!("{}", stream(gpu.spec(), &args.engine, &answer.launch)?);
    } else if args.json {
        let launch = &answer.launch;
        outln!(
            "{}",
            json!({
                "text": text, "result": answer.text, "engine": gpu.engine().name(), "tokens": launch.tokens,
                "warp_instructions": launch.warp_instructions, "seconds": launch.seconds,
                "check": args.check.then_some(true),
            })
        );
    } else {
        let paint = Paint::stdout();
        outln!("{}", paint.bold(&answer.text));
        outln!("{}", paint.dim(&figures(&answer.launch)));
        if args.check {
            outln!("{}", paint.good("every record is the interpreter's"));
        }
    }
    Ok(())
}

fn print_list(json: bool) {
    if json {
        let rows = PRESETS.map(|p| json!({ "name": p.name, "example": p.example, "meaning": p.meaning }));
        outln!("{}", json!(rows));
        return;
    }
    for preset in PRESETS {
        outln!("{:<40} {}", preset.example, preset.meaning);
    }
}
