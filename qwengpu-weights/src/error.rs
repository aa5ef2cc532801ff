//! What can go wrong, at each stage.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::dtype::Dtype;
use crate::names::MANIFEST_FILE;

/// A checkpoint that could not be written; nothing of it is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The circuit's tensors contradict each other, or the dtype does not hold them.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The machine's tokens can't be a vocabulary.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A figure for the manifest that JSON can't hold.
    #[error("margin {name} is {value}, expected a finite number")]
    Margin {
        /// Its name.
        name: String,
        /// The figure.
        value: f64,
    },
    /// The path names no directory that could be made.
    #[error("{}: expected the path of a new directory", path.display())]
    Target {
        /// The path.
        path: PathBuf,
    },
    /// There is something already, and it was not asked to be replaced.
    #[error("{} exists already", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// There is something already that is not a checkpoint of this kind, so it is not replaced.
    #[error("{} is neither empty nor a checkpoint with a {MANIFEST_FILE}, and is not replaced", path.display())]
    NotReplaceable {
        /// The path.
        path: PathBuf,
    },
    /// The file system is full, or a quota is used up.
    #[error("no space left to {action} {}", path.display())]
    StorageFull {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system forbids it.
    #[error("no permission to {action} {}", path.display())]
    PermissionDenied {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another failure of the system.
    #[error("failed to {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The progress callback asked to stop.
    #[error("cancelled after {written} of {total} bytes")]
    Cancelled {
        /// Bytes of tensors written by then.
        written: u64,
        /// Bytes of all tensors.
        total: u64,
    },
}

impl EmitError {
    /// Wraps an error of the system.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::StorageFull { action, path, source },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::PermissionDenied { action, path, source }
            }
            _ => Self::Io { action, path, source },
        }
    }
}

/// Tensors that can't be stored.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A tensor has another shape than the geometry says.
    #[error("{tensor}: shape {got:?}, expected {expected:?}")]
    Shape {
        /// The tensor's name in the checkpoint.
        tensor: String,
        /// Its shape.
        got: Vec<usize>,
        /// The shape by the geometry.
        expected: Vec<usize>,
    },
    /// An entry lies outside its matrix, or does not follow the one before.
    #[error("{tensor}: entry [{row}, {col}] lies outside the matrix or is out of order")]
    Entry {
        /// The tensor's name in the checkpoint.
        tensor: String,
        /// The entry's row.
        row: usize,
        /// The entry's column.
        col: usize,
    },
    /// The dtype would round the value.
    #[error("{tensor}: {value} at {position:?} is not exactly representable in {dtype}")]
    Inexact {
        /// The tensor's name in the checkpoint.
        tensor: String,
        /// Where in the tensor.
        position: Vec<usize>,
        /// The value.
        value: f32,
        /// The dtype.
        dtype: Dtype,
    },
    /// The number of layers is not what the circuit says, or none.
    #[error("{got} layers, expected {expected} and at least one")]
    Layers {
        /// Layers there are.
        got: usize,
        /// Layers by the circuit.
        expected: usize,
    },
}

/// Tokens that can't be a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A text that is empty, or the text of another token.
    #[error("token {number}: its text {text:?} is empty or stands for another token already")]
    Text {
        /// The token's number in the netlist.
        number: usize,
        /// Its text.
        text: String,
    },
    /// The circuit's embedding has another number of tokens than the netlist.
    #[error("the netlist has {netlist} tokens, the tensors have {tensors}")]
    Count {
        /// Tokens of the netlist.
        netlist: usize,
        /// Rows of the embedding.
        tensors: usize,
    },
    /// The halt token does not exist.
    #[error("halt token {number} does not exist: the netlist has {count} tokens")]
    Halt {
        /// Its number.
        number: usize,
        /// Tokens of the netlist.
        count: usize,
    },
}

/// A manifest that could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// There is no checkpoint.
    #[error("{} holds no checkpoint: there is no {MANIFEST_FILE}", dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// There is a checkpoint of some model, but no machine in it.
    #[error("{} holds a model, but no machine: there is no {MANIFEST_FILE}", dir.display())]
    NoMachine {
        /// The directory.
        dir: PathBuf,
    },
    /// A file could not be read.
    #[error("failed to read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file ends in the middle.
    #[error("{} is truncated", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where and what was expected.
        #[source]
        source: serde_json::Error,
    },
    /// A file is not what it should be.
    #[error("{} is malformed", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A file of that name that is something else.
    #[error("{} is no manifest of qwengpu", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A manifest of another version.
    #[error("{} has version {got}, expected {expected}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        got: u64,
        /// The version that is read.
        expected: u64,
    },
    /// The manifest is not that of the model beside it.
    #[error("{}: {what} is {model} in the model and {manifest} in the manifest", dir.display())]
    Mismatch {
        /// The directory.
        dir: PathBuf,
        /// The size that differs.
        what: &'static str,
        /// By the model's configuration.
        model: u64,
        /// By the manifest.
        manifest: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_told_apart() {
        let wrap = |kind: io::ErrorKind| EmitError::io("write", Path::new("a/b"), kind.into());
        assert!(matches!(wrap(io::ErrorKind::StorageFull), EmitError::StorageFull { .. }));
        assert!(matches!(wrap(io::ErrorKind::QuotaExceeded), EmitError::StorageFull { .. }));
        assert!(matches!(wrap(io::ErrorKind::PermissionDenied), EmitError::PermissionDenied { .. }));
        assert!(matches!(wrap(io::ErrorKind::ReadOnlyFilesystem), EmitError::PermissionDenied { .. }));
        assert!(matches!(wrap(io::ErrorKind::NotFound), EmitError::Io { .. }));
        assert_eq!(wrap(io::ErrorKind::StorageFull).to_string(), "no space left to write a/b");
    }
}
