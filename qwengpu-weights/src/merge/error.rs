//! Why a base can't be read, and why a merge can't be made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::dtype::Dtype;
use crate::error::{EmitError, TensorError, TokenError};

/// A base checkpoint that can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BaseError {
    /// A file that every checkpoint has is not there.
    #[error("{}: the file is missing, {purpose}; download the whole checkpoint", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it is needed for.
        purpose: &'static str,
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
    /// A file is no JSON, or not of the form that it should have.
    #[error("{} is malformed; download it again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A model of another family.
    #[error("{}: model_type is {got:?}; only Qwen3.5 bases (qwen3_5, qwen3_5_text) can be merged", path.display())]
    Architecture {
        /// The configuration.
        path: PathBuf,
        /// Its `model_type`.
        got: String,
    },
    /// A setting that the widening is not proven for.
    #[error("{}: {field} is {got}, expected {expected}; a base with another value can't be merged", path.display())]
    Setting {
        /// The configuration.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// Its value.
        got: String,
        /// What is possible.
        expected: String,
    },
    /// The checkpoint holds a machine already.
    #[error("{}: the base already has a GPU ({found}); merge with the model it was made from", path.display())]
    HasMachine {
        /// The file that shows it.
        path: PathBuf,
        /// What is in it.
        found: String,
    },
    /// A header that can't be read.
    #[error("{}: {reason}; download the file again", path.display())]
    Header {
        /// The file of tensors.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file of tensors of another length than its header says.
    #[error("{} has {got} bytes, its header says {expected}: it is truncated or damaged; download it again", path.display())]
    Length {
        /// The file of tensors.
        path: PathBuf,
        /// Its length.
        got: u64,
        /// Its length by the header.
        expected: u64,
    },
    /// An index that doesn't agree with the files it names.
    #[error("{}: {reason}; download the checkpoint again", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A tensor that the configuration asks for is not there.
    #[error("{}: tensor {name} of shape {shape:?} is missing; config.json and the weights don't belong together", dir.display())]
    MissingTensor {
        /// The directory.
        dir: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape by the configuration.
        shape: Vec<usize>,
    },
    /// A tensor that the configuration knows nothing of.
    #[error("{}: tensor {name} is no part of a Qwen3.5 model with this config.json; remove it or take another base", path.display())]
    UnexpectedTensor {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor of another shape than the configuration says.
    #[error("{}: tensor {name} has shape {got:?}, config.json asks for {expected:?}", path.display())]
    Shape {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        got: Vec<usize>,
        /// Its shape by the configuration.
        expected: Vec<usize>,
    },
    /// A tensor of numbers that can't be widened.
    #[error("{}: tensor {name} is stored as {got}, expected BF16, F16 or F32; take a base that is not quantised", path.display())]
    TensorDtype {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// How it is stored.
        got: String,
    },
    /// A weight that is no number.
    #[error("{}: tensor {name} holds {value} at {position:?}; weights must be finite", path.display())]
    NotFinite {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Where in the tensor.
        position: Vec<usize>,
        /// The value.
        value: f32,
    },
    /// A head that is said to be the embedding, and isn't.
    #[error("{}: {name} differs from the embedding, but tie_word_embeddings is true; set it to false in config.json", path.display())]
    TiedHead {
        /// The file that holds the head.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A vocabulary whose ids have a hole, so that added tokens would get other ids.
    #[error("{}: no token of the vocabulary has id {id}, but later ones exist: the ids must have no holes", path.display())]
    TokenHole {
        /// The tokenizer.
        path: PathBuf,
        /// The first id without token.
        id: u32,
    },
    /// An added token that the library would give another id, because it numbers them on without holes.
    #[error("{}: added token {text:?} has id {got}, but {expected} is the next one: the ids must have no holes", path.display())]
    AddedId {
        /// The tokenizer.
        path: PathBuf,
        /// The token.
        text: String,
        /// Its id.
        got: u32,
        /// The id that it would be given.
        expected: u32,
    },
    /// More tokens than rows of the embedding.
    #[error("{}: {got} tokens, but vocab_size in config.json is {vocab_size}", path.display())]
    TokenCount {
        /// The tokenizer.
        path: PathBuf,
        /// Tokens of the tokenizer.
        got: usize,
        /// Rows of the embedding.
        vocab_size: usize,
    },
    /// A tokenizer of another form.
    #[error("{}: {reason}; a tokenizer.json of the Hugging Face library is expected", path.display())]
    Tokenizer {
        /// The tokenizer.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl BaseError {
    /// Wraps an error of the system.
    pub(crate) fn io(path: &std::path::Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// A merge that can't be made; nothing of it is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The base can't be used.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The checkpoint can't be written.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// A hidden size that leaves no room.
    #[error("hidden size {hidden} leaves no channel for a machine beside a base of {base}; take a larger one")]
    Hidden {
        /// The size asked for.
        hidden: usize,
        /// The base's.
        base: usize,
    },
    /// The portable layout needs a base with a full-attention layer at every fourth place.
    #[error(
        "the portable layout needs a base whose every fourth layer is full_attention; layer {layer} is not so: \
         use the prefix layout"
    )]
    Interval {
        /// The first layer of the base that breaks the pattern.
        layer: usize,
    },
    /// The machine was compiled for other sizes than the plan's.
    #[error(
        "the machine was compiled for {what} {got}, the merge needs {expected}: compile it with the plan's geometry"
    )]
    Geometry {
        /// The size.
        what: &'static str,
        /// The machine's.
        got: usize,
        /// The plan's.
        expected: usize,
    },
    /// A weight that is too large to be scaled.
    #[error("tensor {tensor}: a weight in row {row} is too large for {dtype} once it is scaled; use --dtype f32")]
    Overflow {
        /// The base's tensor.
        tensor: String,
        /// The row of the merged tensor.
        row: usize,
        /// The dtype it should be stored in.
        dtype: Dtype,
    },
    /// The disk is too small for the merged checkpoint.
    #[error(
        "{}: the merged checkpoint needs about {needed} bytes, {available} are free; make room or choose another place",
        path.display()
    )]
    Space {
        /// The directory on that disk.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
}

impl From<TensorError> for MergeError {
    fn from(error: TensorError) -> Self {
        Self::Emit(error.into())
    }
}

impl From<TokenError> for MergeError {
    fn from(error: TokenError) -> Self {
        Self::Emit(error.into())
    }
}
