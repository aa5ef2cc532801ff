//! The gated MLP, for the neurons whose `silu` isn't zero.

use super::projection::{Accumulator, Function, Projection};
use super::vector::{Inputs, Sums};
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::weights::LayerWeights;

/// `down(silu(gate x) * up x)`.
#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    gate_proj: Projection,
    up_proj: SparseMatrix,
    /// By column: one for each neuron.
    down_proj: SparseMatrix,
    precision: Precision,
}

impl Mlp {
    pub(crate) fn new(weights: &LayerWeights, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        Self {
            gate_proj: Projection::new(&rounded(&weights.gate_proj), precision, Function::Silu),
            up_proj: rounded(&weights.up_proj),
            down_proj: rounded(&weights.down_proj).transpose(),
            precision,
        }
    }

    pub(crate) fn forward(&mut self, x: &Inputs, sums: &mut Accumulator, out: &mut Sums) {
        let round = |value| self.precision.round(value);
        let (up_proj, down_proj) = (&self.up_proj, &self.down_proj);
        self.gate_proj.run(x, sums, |neuron, activated| {
            let up = round(x.dot_row(up_proj, neuron as usize));
            let value = round(activated * up);
            if value != 0.0 {
                out.add_column(down_proj, neuron as usize, value);
            }
        });
    }
}
