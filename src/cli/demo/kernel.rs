//! The path of one small kernel, from its source to its result.

use std::path::Path;
use std::time::Instant;

use qwengpu::{Argument, Check, Dim3, EngineKind, Gpu, GpuOptions, Kernel, Launch, MachineSpec, Narrator, Outcome};

use crate::cli::failure::Failure;
use crate::cli::info::summary;
use crate::cli::output::outln;
use crate::cli::progress::{Paint, Spinner};
use crate::cli::run::figures;

/// The kernel, as clang made it; no compiler is needed.
const PTX: &str = include_str!("../../../kernels/vector_add.ptx");
/// Its source.
const SOURCE: &str = include_str!("../../../kernels/vector_add.cu");

pub(super) fn run(spec: MachineSpec) -> Result<(), Failure> {
    let paint = Paint::stdout();
    let library = |error| Failure::from_library(error, Path::new("vector_add.ptx"));

    outln!("{}", paint.bold("1. The machine, compiled into Qwen3.5 layers"));
    let begun = Instant::now();
    let spinner = Spinner::new("compiling the machine");
    let gpu = Gpu::with_options(&GpuOptions { spec, ..GpuOptions::new(EngineKind::Sparse) });
    drop(spinner);
    let mut gpu = gpu.map_err(library)?;
    if let Some(report) = gpu.report() {
        outln!("{}", summary(report));
    }
    outln!("{}\n", paint.dim(&format!("{:.1} s", begun.elapsed().as_secs_f64())));

    outln!("{}", paint.bold("2. The kernel"));
    outln!("{}", SOURCE.lines().skip(1).collect::<Vec<_>>().join("\n"));
    let kernel = Kernel::from_ptx(&spec, PTX, None).map_err(|error| library(error.into()))?;
    outln!("\n{}", kernel.program());

    let (a, b) = ([1, -2, 3, 400, 5, 60_000], [10, 20, 30, 1, 50, 7]);
    let launch = Launch::new(Dim3::linear(2), Dim3::linear(4))
        .argument(Argument::buffer::<i32>(&a))
        .argument(Argument::buffer::<i32>(&b))
        .argument(Argument::zeros::<i32>(a.len()))
        .argument(6_i32)
        .checked();
    outln!("{}", paint.bold("3. What the model speaks: instruction, lanes, disassembly, values"));
    let mut narrator = Narrator::new(&spec, &kernel);
    let result = gpu.launch_with(&kernel, &launch, &mut |record| {
        for line in narrator.hear(record) {
            outln!("{line}");
        }
    });
    let result = result.map_err(library)?;
    outln!("{}\n", paint.dim(&figures(&result)));

    outln!("{}", paint.bold("4. The result, read from the recurrent state"));
    let sums = result.buffers.get(2).and_then(|buffer| buffer.to_vec::<i32>()).unwrap_or_default();
    outln!("  {a:?}\n+ {b:?}\n= {sums:?}");
    match (&result.outcome, &result.check) {
        (Outcome::Finished, Some(Check::Equal)) => {
            outln!("{}", paint.good("every record, and memory, is what the interpreter gives"));
            Ok(())
        }
        (_, Some(check)) if *check != Check::Equal => {
            outln!("{}", paint.bad("this is not what the interpreter gives"));
            Err(Failure::wrong(check))
        }
        (outcome, _) => Err(Failure::wrong(format!("the demo did not finish: {outcome:?}"))),
    }
}
