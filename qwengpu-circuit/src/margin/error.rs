//! Why a machine could not be proven exact.

use thiserror::Error;

/// Arithmetic of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    /// Nothing is rounded but by f32 arithmetic itself.
    F32,
    /// Weights, activations and residual stream are rounded to bf16.
    Bf16,
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

/// A declaration or a condition of exactness that could not be proven. It may hold nevertheless: the rules do not see
/// everything.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MarginError {
    /// A signal may leave its declared range.
    #[error(
        "{signal}: values in {low}..={high} are possible as far as proven, declared is {declared_low}..={declared_high}{hint}"
    )]
    Range {
        /// The signal.
        signal: String,
        /// Proven lower bound.
        low: i64,
        /// Proven upper bound.
        high: i64,
        /// Declared minimum.
        declared_low: i64,
        /// Declared maximum.
        declared_high: i64,
        /// What stands in the way, or nothing.
        hint: String,
    },
    /// Two members of a group may be 1 in the same token.
    #[error("group {group}: {first} and {second} may both be 1 as far as proven")]
    Group {
        /// The group.
        group: String,
        /// One member.
        first: String,
        /// The other.
        second: String,
    },
    /// A key, query, value or level form of a state.
    #[error("state {state}: {what}")]
    State {
        /// The state.
        state: String,
        /// What is not proven.
        what: String,
    },
    /// A number that an activation cannot hold exactly.
    #[error("{operation}: {what} may be {bound}, and must be at most {limit} to be exact")]
    Exactness {
        /// The operation.
        operation: String,
        /// Which number.
        what: &'static str,
        /// How large it may be.
        bound: i64,
        /// The largest that is exact.
        limit: i64,
    },
    /// Noise that would not vanish.
    #[error("{operation}: the noise of {what} may be {noise:.2e} in {dtype}, at most {limit:.2e} is harmless")]
    Noise {
        /// The operation.
        operation: String,
        /// Which form.
        what: &'static str,
        /// The dtype.
        dtype: Dtype,
        /// The bound on its noise.
        noise: f64,
        /// What is allowed.
        limit: f64,
    },
    /// Too large a residual stream for an exact norm.
    #[error("layer {layer}: squares of channels may add up to {squares}, the norm is exact up to {limit}")]
    Squares {
        /// The layer.
        layer: usize,
        /// The bound on the sum.
        squares: i64,
        /// The largest sum.
        limit: i64,
    },
    /// An enumeration that cannot be done.
    #[error("enumeration of {output}: {what}")]
    Enumeration {
        /// The first output.
        output: String,
        /// Why.
        what: String,
    },
    /// The compiled machine is of another netlist.
    #[error("the compiled machine does not belong to this netlist: {what}")]
    Mismatch {
        /// What differs.
        what: String,
    },
}
