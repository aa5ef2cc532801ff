//! Kernels: programs of the machine, from PTX, CUDA or assembly text.

use qwengpu_isa::{KernelSignature, MachineSpec, Program, assemble, verify};
use qwengpu_ptx::{LoweredKernel, Options, StaticData, Stats, lower, parse};

use crate::cuda::CudaCompiler;
use crate::error::KernelError;

/// A kernel that is ready to launch.
#[derive(Debug, Clone)]
pub struct Kernel {
    program: Program,
    translation: Option<Translation>,
}

/// What is known of a kernel that comes from PTX.
#[derive(Debug, Clone)]
struct Translation {
    static_data: StaticData,
    source_map: Vec<u32>,
    stats: Stats,
}

impl Kernel {
    /// Translates a kernel of a PTX module; without a name, its only kernel.
    ///
    /// # Errors
    /// If the PTX is invalid, uses what the machine does not have, or does not fit it.
    pub fn from_ptx(spec: &MachineSpec, text: &str, name: Option<&str>) -> Result<Self, KernelError> {
        Self::from_ptx_with(text, name, &Options::new(*spec))
    }

    /// The same with options, such as an observer of the passes.
    ///
    /// # Errors
    /// As [`Kernel::from_ptx`].
    pub fn from_ptx_with(text: &str, name: Option<&str>, options: &Options<'_>) -> Result<Self, KernelError> {
        let lowered = parse(text).and_then(|module| lower(&module, name, options));
        let LoweredKernel { program, static_data, source_map, stats, .. } =
            lowered.map_err(|source| KernelError::Ptx { source, text: text.to_owned() })?;
        Ok(Self { program, translation: Some(Translation { static_data, source_map, stats }) })
    }

    /// Compiles CUDA source to PTX with clang and translates a kernel of it; `file` names it in messages.
    ///
    /// # Errors
    /// If there is no clang, the source does not compile, or as [`Kernel::from_ptx`].
    pub fn from_cuda(spec: &MachineSpec, source: &str, file: &str, name: Option<&str>) -> Result<Self, KernelError> {
        let ptx = CudaCompiler::find()?.compile(source, file.as_ref())?;
        Self::from_ptx(spec, &ptx, name)
    }

    /// Assembles a program of the machine's own instructions.
    ///
    /// # Errors
    /// If the text has errors or the machine cannot run the program.
    pub fn from_assembly(spec: &MachineSpec, text: &str) -> Result<Self, KernelError> {
        let program = assemble(text).map_err(|errors| KernelError::Assembly { errors, text: text.to_owned() })?;
        verify(spec, &program)?;
        Ok(Self { program, translation: None })
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Name, parameters and memory needs.
    #[must_use]
    pub const fn signature(&self) -> &KernelSignature {
        &self.program.signature
    }

    /// The name; `kernel` if the source gives none.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = &self.program.signature.name;
        if name.is_empty() { "kernel" } else { name }
    }

    /// Global variables and constants that the kernel brings along.
    #[must_use]
    pub fn static_data(&self) -> Option<&StaticData> {
        self.translation.as_ref().map(|translation| &translation.static_data)
    }

    /// Figures of the translation.
    #[must_use]
    pub fn stats(&self) -> Option<&Stats> {
        self.translation.as_ref().map(|translation| &translation.stats)
    }

    /// The PTX line of an instruction, if there is one.
    #[must_use]
    pub fn source_line(&self, instruction: usize) -> Option<u32> {
        let line = *self.translation.as_ref()?.source_map.get(instruction)?;
        (line != 0).then_some(line)
    }
}
