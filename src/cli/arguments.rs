//! Arguments that several commands share.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use qwengpu::{
    Argument, Dim3, Draft, EngineKind, Gpu, GpuOptions, Kernel, Launch, MachinePreset, MachineSpec, Precision,
};

use qwengpu_weights::Dtype;

use super::failure::Failure;
use super::progress::Spinner;

/// The engines by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// The compiled weights, zeros skipped
    Sparse,
    /// The compiled weights in full matrices, as transformers computes them
    Dense,
    /// The reference interpreter: no weights
    Interp,
    /// The machine's netlist on plain integers: no weights
    Netlist,
}

impl EngineName {
    pub(crate) const fn kind(self) -> EngineKind {
        match self {
            Self::Sparse => EngineKind::Sparse,
            Self::Dense => EngineKind::Dense,
            Self::Interp => EngineKind::Interp,
            Self::Netlist => EngineKind::Netlist,
        }
    }
}

/// A machine by name: one of [`MachinePreset::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MachineName(&'static MachinePreset);

impl MachineName {
    /// The machine that runs if none is named.
    pub(crate) const SEED: Self = Self::ALL[0];

    const ALL: &[Self] = &{
        const PRESETS: &[MachinePreset] = &MachinePreset::ALL;
        let mut names = [Self(&PRESETS[0]); PRESETS.len()];
        let mut number = 0;
        while number < PRESETS.len() {
            names[number] = Self(&PRESETS[number]);
            number += 1;
        }
        names
    };

    pub(crate) const fn spec(self) -> MachineSpec {
        self.0.spec
    }
}

impl ValueEnum for MachineName {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let MachinePreset { name, purpose, spec } = self.0;
        let MachineSpec { rom_words, global_words, shared_words, .. } = spec;
        let help = format!(
            "{purpose}; {rom_words} instructions, {global_words} words of global memory, {shared_words} of shared memory"
        );
        Some(PossibleValue::new(*name).help(help))
    }
}

/// The number formats by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeName {
    /// 32-bit floating point
    F32,
    /// bfloat16 where a bf16 model rounds
    Bf16,
}

impl DtypeName {
    pub(crate) const fn precision(self) -> Precision {
        match self {
            Self::F32 => Precision::F32,
            Self::Bf16 => Precision::Bf16,
        }
    }

    pub(crate) const fn stored(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::Bf16,
        }
    }
}

/// What runs a kernel.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// What runs the kernel; sparse unless the command says otherwise
    #[arg(long, value_enum)]
    pub(crate) engine: Option<EngineName>,
    /// Run an emitted checkpoint instead of compiling the machine in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) model: Option<PathBuf>,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    pub(crate) machine: MachineName,
    /// Where the model rounds
    #[arg(long, value_enum, default_value = "f32")]
    pub(crate) dtype: DtypeName,
    /// Threads of the dense engine; without it, as many as there are processors
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

/// What writes drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftName {
    /// The reference interpreter
    Interp,
}

/// A draft of the records.
#[derive(Debug, Args)]
pub(crate) struct DraftArgs {
    /// Let the model confirm a draft of its records many at a time; where it says something else, that stands
    #[arg(long, value_enum, value_name = "WRITER")]
    draft: Option<DraftName>,
}

impl DraftArgs {
    /// What a launch has; refused for an engine that would not look at it.
    pub(crate) fn draft(&self, engine: EngineKind) -> Result<Draft, Failure> {
        match self.draft {
            None => Ok(Draft::Nothing),
            Some(DraftName::Interp) if engine.is_model() => Ok(Draft::Interp),
            Some(DraftName::Interp) => Err(Failure::input(format!(
                "--draft is for a model to confirm, and the {engine} engine is none: choose --engine dense, or leave it out"
            ))),
        }
    }
}

impl EngineArgs {
    /// Makes the GPU, with an engine if none is named; compiling shows a spinner.
    pub(crate) fn gpu(&self, default: EngineName) -> Result<Gpu, Failure> {
        let engine = self.engine.unwrap_or(default).kind();
        if self.model.is_some() && !engine.is_model() {
            return Err(Failure::input(format!(
                "--model is a checkpoint's weights, which the {engine} engine does not use: \
                 choose --engine sparse or dense, or leave --model out"
            )));
        }
        let options = GpuOptions {
            spec: self.machine.spec(),
            engine,
            precision: self.dtype.precision(),
            checkpoint: self.model.clone(),
            threads: self.threads,
        };
        let _spinner = engine.is_model().then(|| {
            Spinner::new(if self.model.is_some() { "loading the checkpoint" } else { "compiling the machine" })
        });
        Gpu::with_options(&options).map_err(|error| Failure::from_library(error, Path::new("")))
    }
}

/// A kernel and its launch.
#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// The kernel: CUDA (.cu), PTX (.ptx) or assembly (.asm)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The kernel's name, if the file has several
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Blocks in the grid: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dim)]
    pub(crate) grid: Dim3,
    /// Threads in a block: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dim)]
    pub(crate) block: Dim3,
    /// An argument: i32:7, buf:i32:1,2,3 or zeros:i32:8 (types i8 u8 i16 u16 i32 u32 i64 u64); once for each parameter
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) arguments: Vec<Argument>,
    /// Bytes of dynamic shared memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) shared: u32,
    /// Stop after this many records
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) max_tokens: usize,
}

impl LaunchArgs {
    pub(crate) fn launch(&self) -> Launch {
        Launch {
            arguments: self.arguments.clone(),
            shared_bytes: self.shared,
            max_tokens: self.max_tokens,
            ..Launch::new(self.grid, self.block)
        }
    }

    pub(crate) fn load_kernel(&self, spec: &MachineSpec) -> Result<Kernel, Failure> {
        load_kernel(spec, &self.file, self.kernel.as_deref())
    }
}

/// The text of a file.
pub(crate) fn read_text(file: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(file).map_err(|error| Failure::file("reading", file, &error))?;
    String::from_utf8(bytes).map_err(|_| Failure::input(format!("{}: the file is no text", file.display())))
}

/// PTX text from a `.ptx` file, or from a `.cu` file through clang.
pub(crate) fn load_ptx(file: &Path) -> Result<String, Failure> {
    let text = read_text(file)?;
    if file.extension().is_some_and(|extension| extension == "cu") {
        let ptx = qwengpu::CudaCompiler::find().and_then(|compiler| compiler.compile(&text, file));
        ptx.map_err(|error| Failure::from_kernel(error.into(), file))
    } else {
        Ok(text)
    }
}

/// The kernel of a file, by the file's extension.
pub(crate) fn load_kernel(spec: &MachineSpec, file: &Path, name: Option<&str>) -> Result<Kernel, Failure> {
    let extension = file.extension().map(|extension| extension.to_string_lossy().into_owned());
    let kernel = match extension.as_deref() {
        Some("asm") => {
            let kernel = Kernel::from_assembly(spec, &read_text(file)?);
            if let (Ok(kernel), Some(name)) = (&kernel, name)
                && kernel.name() != name
            {
                return Err(Failure::input(format!("{}: the kernel is {}, not {name}", file.display(), kernel.name())));
            }
            kernel
        }
        Some("ptx" | "cu") => Kernel::from_ptx(spec, &load_ptx(file)?, name),
        _ => {
            return Err(Failure::input(format!(
                "{}: expected a file that ends in .cu (CUDA), .ptx (PTX) or .asm (assembly)",
                file.display()
            )));
        }
    };
    kernel.map_err(|error| Failure::from_kernel(error, file))
}

/// Reads one to three sizes, the missing ones 1.
fn parse_dim(text: &str) -> Result<Dim3, String> {
    let size = |part: &str| {
        part.trim().parse::<u16>().map_err(|_| format!("{part:?} is no size: write X, X,Y or X,Y,Z such as 2,4"))
    };
    let sizes = text.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
    match sizes[..] {
        [x] => Ok(Dim3::new(x, 1, 1)),
        [x, y] => Ok(Dim3::new(x, y, 1)),
        [x, y, z] => Ok(Dim3::new(x, y, z)),
        _ => Err("expected at most three sizes: X, X,Y or X,Y,Z".to_owned()),
    }
}
