//! The dense engine: every weight is multiplied, with the reference's rounding points.
//!
//! Activations are f32 tensors whose values are rounded explicitly (`round` in [`ops`]), so that each rounding point
//! can be read off the code. Weights are kept in the compute dtype. Shapes have tokens first: `[tokens, width]`.

mod attention;
mod conv;
mod layer;
mod linear;
mod linear_attention;
mod mlp;
mod model;
mod norm;
mod ops;
mod source;

pub use model::DenseEngine;
