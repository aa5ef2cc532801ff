//! `qwengpu bench`: figures and ratios, measured side by side.

mod building;
mod checkpoint;
mod clock;
mod curves;
mod dense;
mod engines;
mod figure;
mod machines;
mod memory;
mod merged;
mod python;
mod streams;
mod transformers;
mod update;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use qwengpu::suite::Case;
use qwengpu::{EngineKind, Gpu, GpuOptions, Kernel, Launch, MachineSpec, Precision};
use qwengpu_isa::{Record, RecordTable};

use super::arguments::MachineName;
use super::failure::Failure;
use super::output::outln;
use super::progress::{Paint, Spinner};
use figure::{Figure, Report};
use python::Python;

/// The arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu bench                              every figure, in some minutes
  qwengpu bench --quick --only engines       less of it, less exactly
  qwengpu bench --json > bench.json
  qwengpu bench --curves docs/figures        growth curves as CSV and SVG
  qwengpu bench --update docs/performance.md --curves docs/figures     all that the documents show, anew
  RAYON_NUM_THREADS=1 qwengpu bench --only dense                       one core
  qwengpu bench --only transformers --transformers venv/bin/python     the dense engine beside transformers

What is compared runs in turns, and the least time of several rounds counts. The column of threads is processor time
by time on the wall. docs/performance.md says what each figure is, and what the fields of --json are.
Build with --release. Exit status: 0 measured, 1 an engine gave a wrong result, 2 bad input.")]
pub(crate) struct BenchArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Measure little: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Only these groups, or with --curves these curves
    #[arg(long, value_enum, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    only: Vec<Group>,
    /// Write growth curves to a folder, as CSV and SVG, instead of the table
    #[arg(long, value_name = "DIR")]
    curves: Option<PathBuf>,
    /// Put the table into a Markdown file, between the lines of comment that say where
    #[arg(long, value_name = "FILE")]
    update: Option<PathBuf>,
    /// A Python with torch and transformers, to be timed beside the dense engine; without one they are left out
    #[arg(long, value_name = "PYTHON")]
    transformers: Option<PathBuf>,
    /// The folder with the kernels
    #[arg(long, value_name = "DIR", default_value = "kernels")]
    kernels: PathBuf,
    /// The language model of the group merged
    #[arg(long, value_name = "DIR", default_value = "examples/standin/checkpoint")]
    base: PathBuf,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Tokens and warp instructions a second of every engine
    Engines,
    /// Translation of PTX
    Lowering,
    /// Netlist, weights, proof
    Compile,
    /// A checkpoint on disk
    Emit,
    /// Prefill and decoding against what memory and multipliers can do
    Dense,
    /// The dense engine beside transformers on one checkpoint; needs --transformers
    Transformers,
    /// Verifying a launch against speaking it
    Verify,
    /// Many launches at once
    Streams,
    /// A merged model: what language pays for the machine, and records for the base
    Merged,
    /// The machines with names, whichever --machine says
    Machines,
    /// Curve: tokens against work
    Work,
    /// Curve: seconds a token against the length of the context
    Context,
    /// Curve: seconds a token against the hidden size
    Width,
    /// Curve: seconds a token against the number of layers
    Depth,
}

impl Group {
    const FIGURES: [Self; 10] = [
        Self::Engines,
        Self::Lowering,
        Self::Compile,
        Self::Emit,
        Self::Dense,
        Self::Transformers,
        Self::Verify,
        Self::Streams,
        Self::Merged,
        Self::Machines,
    ];
    const CURVES: [Self; 4] = [Self::Work, Self::Context, Self::Width, Self::Depth];
}

/// What every measurement needs.
pub(crate) struct Setting<'a> {
    spec: MachineSpec,
    cases: &'a [Case],
    kernels: &'a Path,
    base: &'a Path,
    quick: bool,
    /// None if there is nothing to compare with.
    python: Option<Python>,
    spinner: Spinner,
}

impl Setting<'_> {
    fn say(&self, doing: &str) {
        self.spinner.message(doing);
    }

    /// Rounds of what takes seconds.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    fn gpu(&self, engine: EngineKind, precision: Precision) -> Result<Gpu, Failure> {
        let options = GpuOptions { spec: self.spec, precision, ..GpuOptions::new(engine) };
        Gpu::with_options(&options).map_err(|error| Failure::from_library(error, self.kernels))
    }

    /// A kernel of the folder.
    fn kernel(&self, name: &str) -> Result<(Kernel, &Case), Failure> {
        let case = self.cases.iter().find(|case| case.name == name);
        let missing = || Failure::input(format!("{} has no {name}: name it with --kernels", self.kernels.display()));
        let case = case.ok_or_else(missing)?;
        let gpu = self.gpu(EngineKind::Interp, Precision::F32)?;
        Ok((case.translate(&gpu).map_err(Failure::input)?, case))
    }

    /// A launch of some hundred tokens, prompt included.
    fn short_launch(&self) -> Result<(Kernel, Launch), Failure> {
        let (kernel, case) = self.kernel("vector_add")?;
        let launch = case.launches.first().map(|launch| launch.launch.clone());
        Ok((kernel, launch.ok_or_else(|| Failure::input("vector_add has no launch"))?))
    }

    /// At least so many token ids of a launch as the model's machine hears and speaks them: collatz of a number that
    /// goes on for long, again and again.
    fn stream(&self, length: usize) -> Result<Vec<u32>, Failure> {
        let (kernel, _) = self.kernel("collatz")?;
        let launch = Launch::new(qwengpu::Dim3::linear(1), qwengpu::Dim3::linear(4))
            .argument(qwengpu::Argument::buffer(&[27_u32, 97, 871, 6171]))
            .argument(qwengpu::Argument::zeros::<i32>(4));
        let mut gpu = self.gpu(EngineKind::Interp, Precision::F32)?;
        let result = gpu.launch(&kernel, &launch).map_err(|error| Failure::from_library(error, self.kernels))?;
        let tokens = self.tokens(&[result.prompt, result.records].concat())?;
        Ok(tokens.into_iter().cycle().take(length).collect())
    }

    /// The ids of records in the machine's own checkpoint without text.
    fn tokens(&self, records: &[Record]) -> Result<Vec<u32>, Failure> {
        let table = RecordTable::new(&self.spec).map_err(Failure::input)?;
        let tokens: Option<Vec<u32>> = records.iter().map(|&record| table.get(record)).collect();
        tokens.ok_or_else(|| Failure::wrong("a record has no token"))
    }
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let cases = Case::read_folder(&args.kernels, "")
        .map_err(|error| Failure::input(format!("{error}: name a folder of cases with --kernels")))?;
    if cases.is_empty() {
        return Err(Failure::input(format!("{} has no kernels", args.kernels.display())));
    }
    let wanted = |group: &Group| args.only.is_empty() || args.only.contains(group);
    let figures: Vec<Group> = Group::FIGURES.into_iter().filter(wanted).collect();
    let curves: Vec<Group> = Group::CURVES.into_iter().filter(wanted).collect();
    let table = args.curves.is_none() || args.update.is_some() || args.json;
    if (!table || figures.is_empty()) && (args.curves.is_none() || curves.is_empty()) {
        return Err(Failure::input("nothing to measure: --only names curves, which --curves DIR writes"));
    }
    // Before anything is measured for minutes.
    let document = args.update.as_deref().map(update::Document::read).transpose()?;
    let python = match table && figures.contains(&Group::Transformers) {
        true => python(args)?,
        false => None,
    };
    if table && figures.contains(&Group::Merged) {
        merged::base(&args.base)?;
    }
    let spinner = Spinner::new("");
    let (spec, kernels) = (args.machine.spec(), args.kernels.as_path());
    let setting = Setting { spec, cases: &cases, kernels, base: &args.base, quick: args.quick, python, spinner };
    if let Some(folder) = &args.curves {
        curves::write(&setting, &curves, folder)?;
    }
    if !table {
        return Ok(());
    }
    let mut report = Report::new(args.quick);
    for group in figures {
        report.figures.extend(measure(group, &setting)?);
    }
    drop(setting);
    if let Some(document) = document {
        document.write(&report.markdown())?;
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&report).map_err(Failure::wrong)?);
    } else {
        report.table(Paint::stdout()).iter().for_each(|line| outln!("{line}"));
    }
    Ok(())
}

/// The Python of --transformers; none if nothing asks for it.
fn python(args: &BenchArgs) -> Result<Option<Python>, Failure> {
    const HOW: &str = "name a Python with --transformers: python3 -m venv venv, \
                       venv/bin/pip install torch transformers, --transformers venv/bin/python";
    match &args.transformers {
        Some(program) => Python::find(program).map(Some).map_err(Failure::input),
        None if args.only.contains(&Group::Transformers) => Err(Failure::input(format!("no transformers: {HOW}"))),
        None => {
            eprintln!("transformers is left out; {HOW}");
            Ok(None)
        }
    }
}

fn measure(group: Group, setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    match group {
        Group::Engines => engines::measure(setting),
        Group::Lowering => building::lowering(setting),
        Group::Compile => building::compilation(setting),
        Group::Emit => building::emission(setting),
        Group::Dense => dense::measure(setting),
        Group::Transformers => match &setting.python {
            Some(python) => transformers::measure(setting, python),
            None => Ok(Vec::new()),
        },
        Group::Verify => dense::verification(setting),
        Group::Streams => streams::measure(setting),
        Group::Merged => merged::measure(setting),
        Group::Machines => machines::measure(setting),
        Group::Work | Group::Context | Group::Width | Group::Depth => Ok(Vec::new()),
    }
}
