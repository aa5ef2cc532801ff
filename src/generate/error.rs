//! What can go wrong in a generation.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::error::{Error, MachineError, RunError};

/// A generation that cannot begin or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A checkpoint without a language model.
    #[error("{} has a GPU but no language model: merge it with one (qwengpu merge --base DIR --out DIR)", .path.display())]
    NoLanguage {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint without a machine, or a damaged one.
    #[error(transparent)]
    Manifest(#[from] qwengpu_weights::ManifestError),
    /// A tokenizer that cannot be used.
    #[error("{}: {reason}", .path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A configuration of the checkpoint that cannot be used.
    #[error("{}: {reason}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A checkpoint without a chat template.
    #[error("{} has no chat template: give a prompt as it stands (--raw)", .path.display())]
    NoTemplate {
        /// The directory.
        path: PathBuf,
    },
    /// A chat template that refuses the conversation.
    #[error("the chat template refuses the messages: {0:#}")]
    Template(#[from] minijinja::Error),
    /// Text that the tokenizer cannot handle.
    #[error("the tokenizer failed: {0}")]
    Text(String),
    /// A prompt without tokens.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// Options that mean nothing.
    #[error("{0}")]
    Options(String),
    /// The language model failed.
    #[error(transparent)]
    Model(#[from] qwengpu_model::Error),
    /// The GPU failed.
    #[error(transparent)]
    Gpu(#[from] Error),
    /// A file of a session or a transcript.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that holds no session or transcript of this model.
    #[error("{}: {reason}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl From<RunError> for GenerateError {
    fn from(error: RunError) -> Self {
        Self::Gpu(error.into())
    }
}

impl From<MachineError> for GenerateError {
    fn from(error: MachineError) -> Self {
        Self::Gpu(error.into())
    }
}
