//! What a language model asks the GPU for: expressions, and calls of kernels by name.
//!
//! [`compute`] takes either as text, makes a launch of it, and gives the result as text.

mod compute;
mod expression;
mod preset;

pub use compute::{Answer, ComputeError, ComputeOptions, compute};
pub use expression::{Expression, ExpressionError, MAX_OPERATIONS, Status};
pub use preset::{Call, CallError, MAX_NUMBERS, PRESETS, Preset};
