//! Suites of kernels: files that name a kernel, its launches, and what the buffers must hold afterwards.

use std::path::{Path, PathBuf};

use qwengpu_isa::Dim3;
use serde::Deserialize;
use thiserror::Error;

use crate::argument::{Argument, Buffer, ElementType};
use crate::error::Error;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::launch::{Check, Launch, LaunchResult, Outcome};

/// A kernel with its launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The name of the file without its extension.
    pub name: String,
    /// The PTX file beside it.
    pub ptx: PathBuf,
    /// The kernel.
    pub kernel: String,
    /// The launches.
    pub launches: Vec<CaseLaunch>,
}

/// A launch and what it must give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLaunch {
    /// The launch.
    pub launch: Launch,
    /// Position of a buffer among the buffers, and its contents afterwards.
    pub expected: Vec<(usize, Buffer)>,
}

/// A suite that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A file or folder that cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is no case.
    #[error("{}: {reason}", path.display())]
    Case {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
struct CaseFile {
    file: String,
    kernel: String,
    launches: Vec<LaunchFile>,
}

#[derive(Deserialize)]
struct LaunchFile {
    grid: [u16; 3],
    block: [u16; 3],
    args: Vec<String>,
    expect: Vec<ExpectFile>,
}

#[derive(Deserialize)]
struct ExpectFile {
    buffer: usize,
    #[serde(rename = "type")]
    element: String,
    values: Vec<serde_json::Number>,
}

impl Case {
    /// Reads `NAME.json`.
    ///
    /// # Errors
    /// If the file cannot be read or is no case.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| SuiteError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text).map_err(|reason| SuiteError::Case { path: path.to_owned(), reason })
    }

    fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let file: CaseFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let launches = file.launches.iter().map(CaseLaunch::new).collect::<Result<_, _>>()?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, ptx: path.with_file_name(file.file).with_extension("ptx"), kernel: file.kernel, launches })
    }

    /// All cases of a folder whose name contains `filter`, by name.
    ///
    /// # Errors
    /// If the folder or one of the files cannot be read.
    pub fn read_folder(folder: &Path, filter: &str) -> Result<Vec<Self>, SuiteError> {
        let error = |source| SuiteError::Read { path: folder.to_owned(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if path.extension().is_some_and(|extension| extension == "json") && name.contains(filter) {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// Reads and translates the kernel.
    ///
    /// # Errors
    /// If the PTX file cannot be read or translated.
    pub fn translate(&self, gpu: &Gpu) -> Result<Kernel, CaseError> {
        let text = std::fs::read_to_string(&self.ptx);
        let text = text.map_err(|source| SuiteError::Read { path: self.ptx.clone(), source })?;
        let kernel = Kernel::from_ptx(gpu.spec(), &text, Some(&self.kernel)).map_err(Error::from)?;
        Ok(kernel)
    }
}

impl CaseLaunch {
    fn new(file: &LaunchFile) -> Result<Self, String> {
        let dim = |[x, y, z]: [u16; 3]| Dim3::new(x, y, z);
        let mut launch = Launch::new(dim(file.grid), dim(file.block));
        for argument in &file.args {
            launch = launch.argument(argument.parse::<Argument>().map_err(|error| error.to_string())?);
        }
        let expected = file.expect.iter().map(ExpectFile::buffer).collect::<Result<_, _>>()?;
        Ok(Self { launch, expected })
    }

    /// Runs the launch.
    ///
    /// # Errors
    /// If the launch does not end, faults, differs from the interpreter, or gives other buffers.
    pub fn run(&self, gpu: &mut Gpu, kernel: &Kernel, check: bool) -> Result<LaunchResult, CaseError> {
        let launch = Launch { check, ..self.launch.clone() };
        self.judge(gpu.launch(kernel, &launch))
    }

    /// What was launched somewhere else, if it is as it should be.
    ///
    /// # Errors
    /// As [`CaseLaunch::run`].
    pub fn judge(&self, result: Result<LaunchResult, Error>) -> Result<LaunchResult, CaseError> {
        let result = result?;
        if let Some(check) = result.check.as_ref().filter(|check| **check != Check::Equal) {
            return Err(CaseError::Check(check.clone()));
        }
        if result.outcome != Outcome::Finished {
            return Err(CaseError::Outcome(result.outcome));
        }
        for (index, expected) in &self.expected {
            let got = result.buffers.get(*index);
            if got != Some(expected) {
                let got = got.map(|buffer| buffer.values().to_vec()).unwrap_or_default();
                return Err(CaseError::Buffer { index: *index, expected: expected.values().to_vec(), got });
            }
        }
        Ok(result)
    }
}

impl ExpectFile {
    fn buffer(&self) -> Result<(usize, Buffer), String> {
        let element: ElementType = self.element.parse().map_err(|error: crate::ArgumentError| error.to_string())?;
        let value = |number: &serde_json::Number| {
            let value = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
            value.ok_or_else(|| format!("{number} is no integer of 64 bits"))
        };
        let values = self.values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        Ok((self.buffer, Buffer::new(element, values).map_err(|error| error.to_string())?))
    }
}

/// Why a launch of a case fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// A file cannot be read.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The kernel cannot be translated or launched, or the engine broke down.
    #[error(transparent)]
    Gpu(#[from] Error),
    /// The launch did not end as it should.
    #[error("{}", outcome_text(.0))]
    Outcome(Outcome),
    /// The launch differs from the interpreter.
    #[error("{0}")]
    Check(Check),
    /// A buffer has other contents.
    #[error("buffer {index} is {got:?}, expected {expected:?}")]
    Buffer {
        /// Position among the buffers.
        index: usize,
        /// What it should hold.
        expected: Vec<i128>,
        /// What it holds.
        got: Vec<i128>,
    },
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Finished => "finished".to_owned(),
        Outcome::Fault(fault) => fault.to_string(),
        Outcome::TokenLimit(limit) => format!("no end after {limit} records"),
        Outcome::Mismatch => "differs from the interpreter".to_owned(),
    }
}
