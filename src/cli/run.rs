//! `qwengpu run`: one launch of one kernel.

use clap::Args;
use qwengpu::{Buffer, Check, Fault, LaunchResult, Outcome};
use serde::Serialize;
use serde_json::Number;

use super::arguments::{DraftArgs, EngineArgs, EngineName, LaunchArgs};
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
    #[command(flatten)]
    draft: DraftArgs,
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
    launch.draft = args.draft.draft(args.engine.engine.unwrap_or(EngineName::Sparse).kind())?;
    qwengpu::launch_prompt(&args.engine.machine.spec(), &kernel, &launch)
        .map_err(|error| Failure::from_library(error, &args.launch.file))?;
    let mut gpu = args.engine.gpu(EngineName::Sparse)?;
    let spinner = Spinner::counting();
    let result = gpu.launch_with(&kernel, &launch, &mut |_| spinner.count());
    drop(spinner);
    let result = result.map_err(|error| Failure::from_library(error, &args.launch.file))?;
    if args.json {
        let object = RunJson::new(kernel.name(), gpu.engine().name(), &result);
        outln!("{}", serde_json::to_string(&object).map_err(Failure::wrong)?);
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

/// What `--json` prints, in this order.
#[derive(Serialize)]
struct RunJson<'a> {
    kernel: &'a str,
    engine: &'a str,
    buffers: Vec<BufferJson>,
    tokens: usize,
    /// Tokens that a draft said beforehand.
    drafted: usize,
    warp_instructions: usize,
    seconds: f64,
    tokens_per_second: f64,
    /// Whether everything is the interpreter's; null if nobody asked.
    check: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<FaultJson<'a>>,
}

#[derive(Serialize)]
struct BufferJson {
    #[serde(rename = "type")]
    element: &'static str,
    values: Vec<Number>,
}

#[derive(Serialize)]
struct FaultJson<'a> {
    kind: String,
    cta: [u16; 3],
    warp: u8,
    lane: u8,
    address: Option<u32>,
    pc: u16,
    instruction: Option<&'a str>,
    line: Option<u32>,
    message: String,
}

impl<'a> RunJson<'a> {
    fn new(kernel: &'a str, engine: &'a str, result: &'a LaunchResult) -> Self {
        let fault = match &result.outcome {
            Outcome::Fault(fault) => Some(FaultJson::new(fault)),
            Outcome::Finished | Outcome::TokenLimit(_) | Outcome::Mismatch => None,
        };
        Self {
            kernel,
            engine,
            buffers: result.buffers.iter().map(BufferJson::new).collect(),
            tokens: result.tokens,
            drafted: result.drafted,
            warp_instructions: result.warp_instructions,
            seconds: result.seconds,
            tokens_per_second: result.tokens_per_second(),
            check: result.check.as_ref().map(|check| *check == Check::Equal),
            fault,
        }
    }
}

impl BufferJson {
    fn new(buffer: &Buffer) -> Self {
        // Every element type fits 128 bits, and JSON numbers are written digit by digit.
        let values = buffer.values().iter().filter_map(|&value| Number::from_i128(value)).collect();
        Self { element: buffer.element().name(), values }
    }
}

impl<'a> FaultJson<'a> {
    fn new(fault: &'a Fault) -> Self {
        Self {
            kind: fault.kind.to_string(),
            cta: [fault.cta.x, fault.cta.y, fault.cta.z],
            warp: fault.warp,
            lane: fault.lane,
            address: fault.address,
            pc: fault.pc.get(),
            instruction: fault.instruction.as_deref(),
            line: fault.line,
            message: fault.to_string(),
        }
    }
}
