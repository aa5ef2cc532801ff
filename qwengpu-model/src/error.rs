//! What can go wrong, by stage: reading a configuration, loading weights, building matrices, running.

use std::path::PathBuf;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration can't be used.
    #[error("configuration")]
    Config(#[from] ConfigError),
    /// A checkpoint directory can't be loaded.
    #[error("checkpoint")]
    Load(#[from] LoadError),
    /// A sparse matrix can't be built.
    #[error("matrix {name}")]
    Matrix {
        /// The tensor's name in a checkpoint.
        name: String,
        /// What is wrong with it.
        #[source]
        source: MatrixError,
    },
    /// In-memory weights don't fit their configuration.
    #[error("tensor {name} has shape {got:?}, expected {expected:?}")]
    WeightShape {
        /// The tensor's name in a checkpoint.
        name: String,
        /// The shape that follows from the configuration.
        expected: Vec<usize>,
        /// The shape found.
        got: Vec<usize>,
    },
    /// A layer's mixer isn't the one its layer type asks for.
    #[error("layer {layer} has the weights of another layer type than the configuration's {expected}")]
    MixerKind {
        /// The layer.
        layer: usize,
        /// The configuration's layer type.
        expected: crate::LayerType,
    },
    /// A forward needs at least one token.
    #[error("no tokens: a forward needs at least one")]
    NoTokens,
    /// A token id has no embedding.
    #[error("token {token} at index {index} is outside the vocabulary of {vocab_size}")]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// Its index in the slice of tokens.
        index: usize,
        /// Number of embeddings.
        vocab_size: usize,
    },
    /// The layer or head asked for holds no recurrent state.
    #[error("no recurrent state at layer {layer}, head {head}")]
    NoRecurrentState {
        /// The layer asked for.
        layer: usize,
        /// The value head asked for.
        head: usize,
    },
    /// A cache doesn't fit the model it should be restored into.
    #[error("cache does not fit: {part} of layer {layer} has {got} values, expected {expected}")]
    CacheShape {
        /// The layer.
        layer: usize,
        /// Which of the layer's buffers.
        part: &'static str,
        /// Number of values wanted.
        expected: usize,
        /// Number of values found.
        got: usize,
    },
    /// A cache is of a model whose states or convolutions have other widths.
    #[error("cache does not fit: rows of {part} of layer {layer} have {got} values, expected {expected}")]
    CacheWidth {
        /// The layer.
        layer: usize,
        /// Which of the layer's buffers.
        part: &'static str,
        /// Values of a row wanted.
        expected: usize,
        /// Values of a row found.
        got: usize,
    },
    /// A cache has the wrong number of layers.
    #[error("cache does not fit: {got} layers, expected {expected}")]
    CacheLayers {
        /// Layers of the model.
        expected: usize,
        /// Layers of the cache.
        got: usize,
    },
    /// A batch has no stream of that number.
    #[error("no stream {stream}: the batch has {streams}, counted from 0")]
    NoStream {
        /// The stream asked for.
        stream: usize,
        /// Number of streams.
        streams: usize,
    },
    /// A step of a batch must say for every stream what it hears.
    #[error("{got} tokens for {expected} streams: give None to a stream that hears nothing")]
    BatchTokens {
        /// Number of streams.
        expected: usize,
        /// Number of entries.
        got: usize,
    },
    /// The threads of an engine could not be started.
    #[error("cannot start {threads} threads: choose fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// Why.
        #[source]
        source: rayon::ThreadPoolBuildError,
    },
    /// The device of the feature `cuda` or `metal` can't be had.
    #[error("no device to multiply on: {reason}; QWENGPU_DEVICE=cpu computes on the CPU alone")]
    Device {
        /// What candle says.
        reason: String,
    },
    /// The tensor library failed.
    #[error("tensor operation")]
    Tensor(#[from] candle_core::Error),
}

/// A configuration that can't be read or isn't supported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not JSON, or a field of the wrong type, or a required field missing.
    #[error("not a valid configuration")]
    Json(#[from] serde_json::Error),
    /// Another model family.
    #[error("model_type is {got:?}, expected \"qwen3_5_text\", or \"qwen3_5\" with a text_config")]
    Architecture {
        /// The `model_type` found.
        got: String,
    },
    /// A setting this crate doesn't implement.
    #[error("{field} = {got} is not supported, expected {expected}")]
    Unsupported {
        /// The field's name in `config.json`.
        field: &'static str,
        /// Its value.
        got: String,
        /// The values that are supported.
        expected: &'static str,
    },
    /// A value that contradicts another one or makes no sense.
    #[error("{field} = {got} is invalid, expected {expected}")]
    Invalid {
        /// The field's name in `config.json`.
        field: &'static str,
        /// Its value.
        got: String,
        /// What it should be.
        expected: String,
    },
}

/// A checkpoint that can't be read. Every variant names the file or the tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file system said no.
    #[error("can't read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The directory holds neither of the two files weights may be in.
    #[error("neither model.safetensors nor model.safetensors.index.json in {}", dir.display())]
    NoWeights {
        /// The directory.
        dir: PathBuf,
    },
    /// The index of a sharded checkpoint isn't what it should be.
    #[error("{} is not a valid index of shards", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// The index names a shard outside its directory.
    #[error("{} names the shard {shard:?}, expected a plain file name", path.display())]
    ShardName {
        /// The index file.
        path: PathBuf,
        /// The name.
        shard: String,
    },
    /// The index places a tensor in a shard that doesn't have it.
    #[error("tensor {name} is not in the shard {}, where the index places it", path.display())]
    NotInShard {
        /// The tensor.
        name: String,
        /// The shard.
        path: PathBuf,
    },
    /// Two shards hold the same tensor.
    #[error("tensor {name} is in two shards, again in {}", path.display())]
    Duplicate {
        /// The tensor.
        name: String,
        /// The second shard.
        path: PathBuf,
    },
    /// The header of a safetensors file is broken.
    #[error("{} has no valid safetensors header", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// The file ends before its tensors do, or goes on behind them.
    #[error("{} has {got} bytes, not the number its header says: truncated or damaged", path.display())]
    FileSize {
        /// The file.
        path: PathBuf,
        /// Bytes of the file.
        got: usize,
    },
    /// A tensor the model needs isn't there.
    #[error("tensor {name} is missing, expected with shape {expected:?}")]
    Missing {
        /// The tensor.
        name: String,
        /// Its shape by the configuration.
        expected: Vec<usize>,
    },
    /// A tensor has another shape than the configuration says.
    #[error("tensor {name} has shape {got:?}, expected {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape by the configuration.
        expected: Vec<usize>,
        /// Its shape in the file.
        got: Vec<usize>,
    },
    /// A tensor is of a dtype that isn't read.
    #[error("tensor {name} has dtype {got}, expected F32 or BF16")]
    Dtype {
        /// The tensor.
        name: String,
        /// Its dtype in the file.
        got: String,
    },
    /// A tensor that no part of the model reads.
    #[error("tensor {name} is unexpected: this configuration has no place for it")]
    Unexpected {
        /// The tensor.
        name: String,
    },
    /// Embeddings are tied, and yet there is another `lm_head.weight`.
    #[error("tensor {name} differs from the embedding, expected equal bytes or none: tie_word_embeddings is true")]
    TiedHeadDiffers {
        /// The tensor.
        name: String,
    },
}

/// Entries that don't make a sparse matrix.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// An entry lies outside the matrix.
    #[error("entry ({row}, {col}) is outside {rows} x {cols}")]
    OutOfRange {
        /// The entry's row.
        row: u32,
        /// The entry's column.
        col: u32,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// Two entries at one place.
    #[error("two entries at ({row}, {col})")]
    Duplicate {
        /// The entries' row.
        row: u32,
        /// The entries' column.
        col: u32,
    },
    /// An entry is infinite or not a number.
    #[error("entry ({row}, {col}) is {value}, expected a finite number")]
    NotFinite {
        /// The entry's row.
        row: u32,
        /// The entry's column.
        col: u32,
        /// The entry.
        value: f32,
    },
    /// A dimension or the number of entries doesn't fit 32 bits.
    #[error("{what} is {got}, at most {max} is supported")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// A dense matrix with another number of values than rows times columns.
    #[error("{got} values for a matrix of {rows} x {cols}")]
    Length {
        /// Number of values.
        got: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
}
