//! Why a netlist could not be compiled.

use thiserror::Error;

use crate::geometry::GeometryError;
use crate::verify::Violation;

/// A netlist that does not fit the target.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CompileError {
    /// The target itself.
    #[error("the geometry cannot hold a machine")]
    Geometry(#[from] GeometryError),
    /// The netlist breaks an invariant.
    #[error("the netlist is not well formed: {} violations, the first: {}", .0.len(), first(.0))]
    Netlist(Vec<Violation>),
    /// Not all operations found a place in the layers that there are.
    #[error(
        "{unplaced} of {total} operations found no place in {layers} layers (the longest chain of operations needs {needed}); the first is {first}"
    )]
    Layers {
        /// Operations left over.
        unplaced: usize,
        /// Operations and read ports in all.
        total: usize,
        /// Layers of the geometry.
        layers: usize,
        /// Layers that the longest chain needs by itself.
        needed: usize,
        /// The first operation left over.
        first: String,
    },
    /// The inputs and constants alone need more channels than there are.
    #[error("inputs and constants need {needed} channels, the hidden size is {hidden}")]
    Inputs {
        /// Channels needed.
        needed: usize,
        /// Channels there are.
        hidden: usize,
    },
    /// A weight that bf16 cannot hold.
    #[error("{what}: {value} has more than 8 significant bits, so bf16 cannot hold its weight")]
    Weight {
        /// Which weight.
        what: String,
        /// The integer behind it.
        value: i64,
    },
}

fn first(violations: &[Violation]) -> String {
    violations.first().map_or_else(String::new, ToString::to_string)
}
