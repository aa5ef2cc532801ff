//! `qwengpu run`: one launch of one kernel.

use clap::Args;
use qwengpu::{Buffer, Check, Fault, LaunchResult, Outcome};
use serde_json::{Value, json};

use super::arguments::{EngineArgs, EngineName, LaunchArgs};
use super::failure::Failure;
use super::output::outln;
use super::progress::{Paint, Spinner};

/// The arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu run kernels/vector_add.ptx --grid 2 --block 4 \\
      --arg buf:i32:1,2,3,4,5 --arg buf:i32:10,20,30,40,50 --arg zeros:i32:5 --arg i32:5
  qwengpu run saxpy.cu --kernel saxpy --grid 1 --block 8 --arg i32:-3 --arg buf:i32:1,2 --arg zeros:i32:2 --arg i32:2
  qwengpu run k.ptx --grid 1 --block 4 --arg zeros:u8:16 --engine dense --model ./checkpoint --dtype bf16 --check --json

Exit status: 0 success, 1 a fault of the kernel or a result that differs, 2 bad input.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    launch: LaunchArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Compare every record, and memory at the end, with the interpreter's
    #[arg(long)]
    check: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    // The kernel is read before the machine is made, so that a bad file fails at once.
    let kernel = args.launch.load_kernel(&args.engine.machine.spec())?;
    let mut launch = args.launch.launch();
    launch.check = args.check;
    qwengpu::launch_prompt(&args.engine.machine.spec(), &kernel, &launch)
        .map_err(|error| Failure::from_library(error, &args.launch.file))?;
    let mut gpu = args.engine.gpu(EngineName::Sparse)?;
    let spinner = Spinner::counting();
    let result = gpu.launch_with(&kernel, &launch, &mut |_| spinner.count());
    drop(spinner);
    let result = result.map_err(|error| Failure::from_library(error, &args.launch.file))?;
    if args.json {
        outln!("{}", to_json(kernel.name(), gpu.engine().name(), &result));
    } else {
        print_text(kernel.name(), gpu.engine().name(), &result);
    }
    verdict(&result)
}

/// Success, or what is wrong with a result.
fn verdict(result: &LaunchResult) -> Result<(), Failure> {
    match (&result.outcome, &result.check) {
        (_, Some(check)) if *check != Check::Equal => Err(Failure::wrong(check)),
        (Outcome::Finished, _) => Ok(()),
        (Outcome::Fault(fault), _) => Err(Failure::wrong(explain(fault))),
        (Outcome::TokenLimit(limit), _) => Err(Failure::wrong(format!(
            "the kernel has not ended after {limit} records: raise --max-tokens, or look for an endless loop"
        ))),
        (Outcome::Mismatch, _) => Err(Failure::wrong("the result differs from the interpreter's")),
    }
}

fn explain(fault: &Fault) -> String {
    format!("the kernel faulted: {fault}\n{}", fault.explanation())
}

fn print_text(kernel: &str, engine: &str, result: &LaunchResult) {
    let paint = Paint::stdout();
    outln!("{} on the {engine} engine", paint.bold(kernel));
    for (number, buffer) in result.buffers.iter().enumerate() {
        let values: Vec<String> = buffer.values().iter().map(ToString::to_string).collect();
        outln!("  buffer {number} ({}): {}", buffer.element(), values.join(" "));
    }
    outln!("{}", paint.dim(&figures(result)));
    if result.check == Some(Check::Equal) {
        outln!("{}", paint.good("every record is the interpreter's"));
    }
}

/// The figures of a launch in one line.
pub(crate) fn figures(result: &LaunchResult) -> String {
    format!(
        "{} warp instructions, {} tokens ({:.2} a warp instruction), {:.3} s, {:.0} tokens/s",
        result.warp_instructions,
        result.tokens,
        ratio(result.tokens, result.warp_instructions),
        result.seconds,
        result.tokens_per_second()
    )
}

/// Tokens a warp instruction; 0 without instructions.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn ratio(tokens: usize, warp_instructions: usize) -> f64 {
    if warp_instructions == 0 { 0.0 } else { tokens as f64 / warp_instructions as f64 }
}

fn to_json(kernel: &str, engine: &str, result: &LaunchResult) -> Value {
    let mut object = json!({
        "kernel": kernel,
        "engine": engine,
        "buffers": result.buffers.iter().map(buffer_json).collect::<Vec<_>>(),
        "tokens": result.tokens,
        "warp_instructions": result.warp_instructions,
        "seconds": result.seconds,
        "tokens_per_second": result.tokens_per_second(),
        "check": result.check.as_ref().map(|check| *check == Check::Equal),
    });
    if let Outcome::Fault(fault) = &result.outcome {
        object["fault"] = json!({
            "kind": fault.kind.to_string(),
            "cta": [fault.cta.x, fault.cta.y, fault.cta.z],
            "warp": fault.warp,
            "lane": fault.lane,
            "pc": fault.pc.get(),
            "instruction": fault.instruction,
            "line": fault.line,
            "message": fault.to_string(),
        });
    }
    object
}

fn buffer_json(buffer: &Buffer) -> Value {
    let number = |&value: &i128| i64::try_from(value).map_or_else(|_| json!(u64::try_from(value).ok()), |value| json!(value));
    json!({ "type": buffer.element().name(), "values": buffer.values().iter().map(number).collect::<Vec<_>>() })
}
