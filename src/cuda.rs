//! CUDA source to PTX, with a clang that is found on the machine; no CUDA SDK is needed.

mod untrusted;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use thiserror::Error;

/// The CUDA vocabulary of device code.
const PRELUDE: &str = include_str!("../kernels/prelude.h");
/// What host code of a `.cu` file refers to; it is parsed and then ignored.
const HOST: &str = include_str!("cuda/host.h");

/// Headers of the CUDA SDK and the C library that stand for [`PRELUDE`] and [`HOST`].
const STUBS: [&str; 18] = [
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "stdio.h",
    "stdlib.h",
    "stdint.h",
    "stddef.h",
    "string.h",
    "assert.h",
    "limits.h",
    "cstdio",
    "cstdlib",
    "cstdint",
    "cstddef",
    "cstring",
    "cassert",
    "climits",
];

/// The names clang goes by, in the order in which they are tried.
const NAMES: [&str; 7] = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];

/// The name of a source in its folder.
const COPY: &str = "source.cu";

/// The environment variable that names a clang.
const VARIABLE: &str = "QWENGPU_CLANG";

/// A clang that compiles CUDA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaCompiler {
    program: PathBuf,
}

/// CUDA source that gives no PTX.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no clang.
    #[error(
        "no clang was found: install it (apt install clang) or set QWENGPU_CLANG to its path; \
         a .ptx file runs without clang"
    )]
    NoCompiler,
    /// clang could not be started.
    #[error("{} could not be started: {source}; set QWENGPU_CLANG to the path of a clang", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder that clang works in could not be made.
    #[error("the folder for clang could not be written: {0}")]
    Folder(#[from] io::Error),
    /// The source does not compile.
    #[error("clang refused the source:\n{}", messages.trim_end())]
    Source {
        /// What clang says.
        messages: String,
    },
    /// Source that nobody vouches for has something that it must not have.
    #[error("line {line}: {what} is not allowed in generated source")]
    Forbidden {
        /// Line of the source, from 1.
        line: usize,
        /// What stands there.
        what: String,
    },
    /// clang takes too long, or too much.
    #[error("clang was stopped: the source takes more than {0}")]
    Limit(&'static str),
}

impl CudaCompiler {
    /// Finds clang: `QWENGPU_CLANG`, else `clang` or `clang-19` to `clang-14` on the `PATH`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find() -> Result<Self, CudaError> {
        let chosen = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(chosen.as_deref(), &path).ok_or(CudaError::NoCompiler)
    }

    fn find_in(chosen: Option<&OsStr>, path: &OsStr) -> Option<Self> {
        if let Some(program) = chosen {
            return Some(Self { program: program.into() });
        }
        let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
        let program =
            NAMES.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|p| p.is_file()))?;
        Some(Self { program })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Compiles the device code of a source to PTX; `file` names it in messages and is where its own headers are found.
    ///
    /// # Errors
    /// If clang cannot be run or refuses the source.
    pub fn compile(&self, source: &str, file: &Path) -> Result<String, CudaError> {
        let folder = Self::folder(source, &file.to_string_lossy())?;
        let mut command = self.command(&folder);
        if let Ok(own) = std::path::absolute(file)
            && let Some(own) = own.parent()
        {
            command.arg("-I").arg(own);
        }
        let run = command.args([COPY, "-o", "-"]).output();
        let output = run.map_err(|source| CudaError::Start { program: self.program.clone(), source })?;
        if !output.status.success() {
            return Err(CudaError::Source { messages: String::from_utf8_lossy(&output.stderr).into_owned() });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Compiles source that nobody vouches for: without directives but `#define` and `#undef`, so that no file is
    /// read, in a folder of its own, within 20 seconds and, on Linux, within bounds of memory.
    ///
    /// # Errors
    /// If the source has what it must not have, takes too much, or as [`compile`](Self::compile).
    pub fn compile_untrusted(&self, source: &str) -> Result<String, CudaError> {
        untrusted::check(source)?;
        let folder = Self::folder(source, "kernel.cu")?;
        let mut command = self.command(&folder);
        command.args(untrusted::FLAGS).arg(COPY);
        untrusted::run(command, &folder, &self.program)
    }

    /// A folder with a source and the headers that it may include.
    fn folder(source: &str, name: &str) -> Result<TempDir, CudaError> {
        let folder = TempDir::new()?;
        let include = |name: &str| format!("#include \"{name}\"\n");
        let stub = format!("#pragma once\n{}{}", include("prelude.h"), include("qwengpu_host.h"));
        std::fs::write(folder.path().join("prelude.h"), PRELUDE)?;
        std::fs::write(folder.path().join("qwengpu_host.h"), HOST)?;
        for name in STUBS {
            std::fs::write(folder.path().join(name), &stub)?;
        }
        // A copy beside our prelude.h, so that a quoted include finds ours first; messages name the original.
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        std::fs::write(folder.path().join(COPY), format!("#line 1 \"{name}\"\n{source}"))?;
        Ok(folder)
    }

    /// clang in a folder, with all flags but the files.
    fn command(&self, folder: &TempDir) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(folder.path()).args(Self::flags());
        command
    }

    fn flags() -> Vec<OsString> {
        let flags = "-x cuda --cuda-device-only -S -nocudainc -nocudalib -nostdinc -Wno-unknown-cuda-version \
                     --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx64 -O2 -I . \
                     -include prelude.h -include qwengpu_host.h";
        flags.split_whitespace().map(OsString::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_and_the_path_is_searched() {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("clang-15"), "").expect("written");
        let path = folder.path().as_os_str();
        let found = CudaCompiler::find_in(None, path).expect("found");
        assert_eq!(found.program(), folder.path().join("clang-15"));
        let chosen = CudaCompiler::find_in(Some("other".as_ref()), path).expect("chosen");
        assert_eq!(chosen.program(), Path::new("other"));
        assert_eq!(CudaCompiler::find_in(None, OsStr::new("")), None);
    }
}
