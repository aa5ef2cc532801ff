//! Qwen3.5 on the CPU: every checkpoint of the family, text or multimodal, computed as transformers computes it.
//!
//! The crate knows the architecture and nothing of what a checkpoint's weights mean. It reads an unmodified checkpoint
//! directory (`config.json`, safetensors in one file or in shards, f32 or bf16 for each tensor) or weights in memory,
//! and runs them on one of two engines behind one trait, [`Engine`]:
//!
//! - [`DenseEngine`] multiplies every weight, in f32 or with the rounding points of bf16. A few tokens take one pass over
//!   the weights at the speed of memory, many take candle's products of matrices and go through the delta rule in chunks
//!   of 64, as in transformers. Weights of the compute dtype stay in the checkpoint's map. [`DenseBatch`] decodes
//!   independent streams together: every read of the weights serves all of them.
//! - [`SparseEngine`] never multiplies a zero. It gives the same function for any weights, and is fast for those that are
//!   mostly zero and keep activations mostly zero. In a [`SparseBatch`], what one stream has met is known to all.
//!
//! An engine may load a [`Part`] of a checkpoint: some layers, a range of ids, the first channels.
//! What an engine remembers is a [`Cache`] that either engine can go on from, so a run may be forked or moved.
//! Independent streams on one model are a [`Batch`] of either engine.
//! A [`Probe`] sees the residual stream behind each block.
//!
//! ```
//! use qwengpu_model::{Config, Engine, LayerType, Precision, SparseEngine, SparseMatrix, SparseWeights};
//!
//! // One layer of zeros: the embedding goes straight to the logits.
//! let config = Config {
//!     vocab_size: 3,
//!     hidden_size: 4,
//!     intermediate_size: 1,
//!     layer_types: vec![LayerType::LinearAttention],
//!     num_attention_heads: 1,
//!     num_key_value_heads: 1,
//!     head_dim: 8,
//!     linear_num_key_heads: 1,
//!     linear_num_value_heads: 1,
//!     linear_key_head_dim: 2,
//!     linear_value_head_dim: 2,
//!     linear_conv_kernel_dim: 4,
//!     rms_norm_eps: 1e-6,
//!     rope_theta: 1e7,
//!     partial_rotary_factor: 0.25,
//!     tie_word_embeddings: false,
//!     eos_token_ids: vec![],
//! };
//! let mut weights = SparseWeights::zeros(config)?;
//! let entries = |places: [(u32, u32); 3]| places.map(|(row, col)| (row, col, 1.0));
//! weights.embed_tokens = SparseMatrix::from_triplets(3, 4, entries([(0, 0), (1, 1), (2, 2)]))?;
//! weights.lm_head = Some(SparseMatrix::from_triplets(3, 4, entries([(1, 0), (2, 1), (0, 2)]))?);
//!
//! let mut engine = SparseEngine::from_weights(&weights, Precision::F32)?;
//! assert_eq!(engine.argmax_all(&[0, 1, 2])?, [1, 2, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! `config` and `names` say which tensors a model has, `load` finds them in a checkpoint, `weights` holds them sparse.
//! `activation`, `delta_rule` and `rope` are the arithmetic that both engines share, the delta rule a token at a time; `dense` and `sparse` are the
//! engines. Shapes are written with tokens first, matrices as `[out, in]`, recurrent states as
//! `[head, key dimension, value dimension]`.
//!
//! # Invariants
//!
//! - A checkpoint is checked as a whole before it is used: a tensor that is missing, unexpected, of another shape or
//!   dtype is an error that names it. Nothing is reshaped, guessed or filled in.
//! - Sizes come from the configuration alone.
//! - The same tokens give the same bits on every run: sums have a fixed order in the sparse engine, and in the dense one
//!   for a given number of tokens in a forward.

mod activation;
mod batch;
mod cache;
mod config;
mod delta_rule;
mod dense;
mod engine;
mod error;
mod extents;
mod load;
mod matrix;
mod names;
mod part;
mod peak;
mod probe;
mod rope;
mod rows;
mod sparse;
mod weights;

pub use batch::Batch;
pub use cache::{Cache, LayerCache};
pub use config::{Config, LayerType};
pub use dense::{DenseBatch, DenseEngine};
pub use engine::{Engine, GenerateOptions, Generation, Precision, StopReason, argmax, generate};
pub use error::{ConfigError, Error, LoadError, MatrixError};
pub use matrix::SparseMatrix;
pub use part::{Part, Widths};
pub use peak::product_seconds;
pub use probe::{Probe, Recorder, Site};
pub use rows::SparseRows;
pub use sparse::{SparseBatch, SparseEngine};
pub use weights::{FullAttentionWeights, LayerWeights, LinearAttentionWeights, MixerWeights, SparseWeights};
