//! Checkpoints for a measurement, in the folder for temporary files; gone when it ends.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use qwengpu::Precision;
use qwengpu_weights::{Dtype, EmitOptions, Source, emit};
use tempfile::TempDir;

use super::Failure;

/// The machine alone, as `qwengpu emit` writes it.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    folder: TempDir,
    first_machine_token: u32,
}

impl Checkpoint {
    /// Stores weights as the engine computes.
    pub(crate) fn write(source: &Source<'_>, precision: Precision) -> Result<Self, Failure> {
        let folder = temporary()?;
        let dtype = if precision == Precision::F32 { Dtype::F32 } else { Dtype::Bf16 };
        let options = EmitOptions { dtype, ..EmitOptions::default() };
        let manifest = emit(source, &inside(&folder), &options, &mut |_| ControlFlow::Continue(()))
            .map_err(|error| Failure::input(format!("emission failed: {error}")))?;
        Ok(Self { folder, first_machine_token: manifest.first_machine_token })
    }

    pub(crate) fn directory(&self) -> PathBuf {
        inside(&self.folder)
    }

    /// Ids of records as the checkpoint's.
    pub(crate) fn tokens(&self, ids: &[u32]) -> Vec<u32> {
        ids.iter().map(|id| id + self.first_machine_token).collect()
    }
}

/// A folder for what is measured.
pub(crate) fn temporary() -> Result<TempDir, Failure> {
    tempfile::tempdir().map_err(|error| Failure::file("making", Path::new("a folder"), &error))
}

/// A place in it that does not exist yet.
pub(crate) fn inside(folder: &TempDir) -> PathBuf {
    folder.path().join("checkpoint")
}
