//! Qwen3.5 on the CPU.
mod activation;
mod cache;
mod config;
mod delta_rule;
mod dense;
mod engine;
mod error;
mod load;
mod matrix;
mod names;
mod probe;
mod rope;
mod weights;

pub use cache::{Cache, LayerCache};
pub use config::{Config, LayerType};
pub use dense::DenseEngine;
pub use engine::{Engine, GenerateOptions, Generation, Precision, StopReason, argmax, generate};
pub use error::{ConfigError, Error, LoadError, MatrixError};
pub use matrix::SparseMatrix;
pub use probe::{Probe, Recorder, Site};
pub use weights::{FullAttentionWeights, LayerWeights, LinearAttentionWeights, MixerWeights, SparseWeights};
