//! The gated MLP, for the neurons whose `silu` isn't zero.

use super::packed::{Entry, Lists, Packed, with_lists};
use super::projection::{Accumulator, Projection};
use super::screen::Screen;
use super::vector::{Inputs, Sums};
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::weights::LayerWeights;

/// `down(silu(gate x) * up x)`.
#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    screen: Screen,
    /// For inputs that leave too many neurons to a search.
    gate_proj: Projection,
    /// For each neuron its row of `gate_proj`, its row of `up_proj`, its column of `down_proj`.
    neurons: Packed,
    precision: Precision,
}

impl Mlp {
    pub(crate) fn new(weights: &LayerWeights, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let gate_proj = rounded(&weights.gate_proj);
        let (up_proj, down_proj) = (rounded(&weights.up_proj), rounded(&weights.down_proj).transpose());
        Self {
            screen: Screen::new(&gate_proj),
            neurons: Packed::rows(&[&gate_proj, &up_proj, &down_proj]),
            gate_proj: Projection::new(&gate_proj, precision),
            precision,
        }
    }

    /// Adds the result to `out`.
    pub(crate) fn forward(&mut self, x: &Inputs, candidates: &mut Vec<u32>, sums: &mut Accumulator, out: &mut Sums) {
        let precision = self.precision;
        let screened = self.screen.run(x, candidates);
        with_lists!(&self.neurons, neurons => {
            if screened {
                neurons.fetch(candidates.iter().map(|&neuron| 3 * neuron as usize), 3);
                for &neuron in &*candidates {
                    let gate = precision.round(neurons.dot(3 * neuron as usize, x.values()));
                    fire(neurons, neuron as usize, gate, x, precision, out);
                }
            } else {
                self.gate_proj.run(x, sums, |neuron, gate| fire(neurons, neuron as usize, gate, x, precision, out));
            }
        });
    }
}

/// What a neuron adds, given the input of its `silu`.
#[inline]
fn fire<E: Entry>(neurons: &Lists<E>, neuron: usize, gate: f32, x: &Inputs, precision: Precision, out: &mut Sums) {
    let activated = precision.round(silu(gate));
    if activated == 0.0 {
        return;
    }
    let up = precision.round(neurons.dot(3 * neuron + 1, x.values()));
    let value = precision.round(activated * up);
    if value != 0.0 {
        out.add_list(neurons.get(3 * neuron + 2), value);
    }
}
