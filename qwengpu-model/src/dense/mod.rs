//! The dense engine: every weight is multiplied, with the reference's rounding points.
//!
//! Activations are f32 slices whose values are rounded explicitly ([`Precision::round`](crate::Precision::round)), so
//! that each rounding point can be read off the code. Weights are kept in the compute dtype, in the checkpoint's map if
//! that has it. Shapes have tokens first: `[tokens, width]`; several streams come one after the other, each with as many
//! tokens.

mod accumulate;
mod attention;
mod batch;
mod conv;
mod delta_chunks;
mod delta_step;
mod device;
mod engine;
mod kernel;
mod layer;
mod linear;
mod linear_attention;
mod mlp;
mod model;
mod nonzeros;
mod norm;
mod ops;
mod source;
mod sparse_product;
mod stream;
mod threads;
mod weight;

pub use batch::DenseBatch;
pub use engine::DenseEngine;
