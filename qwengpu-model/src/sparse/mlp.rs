//! The gated MLP, for the neurons whose `silu` isn't zero.

use super::activations::Activations;
use super::blocked::Blocked;
use super::blocks::Blocks;
use super::memo::Pair;
use super::norm::Normed;
use super::packed::{Packed, with_lists};
use super::vector::Sums;
use super::whole::Whole;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::weights::LayerWeights;

/// `down(silu(gate x) * up x)`.
#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    whole: Whole,
    blocked: Blocked,
    neurons: Neurons,
    /// What all blocks add.
    sums: Sums,
    precision: Precision,
}

/// What neurons compute.
#[derive(Debug, Clone)]
struct Neurons {
    gates: Activations,
    /// The lists of neurons whose gate isn't zero, with their gates.
    open: Vec<(usize, f32)>,
    /// For each neuron its row of `up_proj` and its column of `down_proj`.
    lists: Packed,
    /// What a block adds.
    sums: Sums,
    precision: Precision,
}

impl Mlp {
    /// `shared` is a column that reaches most rows.
    pub(crate) fn new(weights: &LayerWeights, shared: u32, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let gate_proj = rounded(&weights.gate_proj);
        let (up_proj, down_proj) = (rounded(&weights.up_proj), rounded(&weights.down_proj).transpose());
        let blocks = Blocks::new(&[&gate_proj, &up_proj], shared);
        let neurons = Neurons {
            gates: Activations::new(&gate_proj, vec![1.0; gate_proj.rows()], &blocks, precision),
            open: Vec::new(),
            sums: Sums::new(down_proj.cols()),
            lists: Packed::rows(&[&up_proj, &down_proj]),
            precision,
        };
        let mut columns = blocks.columns.clone();
        columns.set(shared);
        let sums = Sums::new(neurons.sums.len());
        Self { whole: Whole::new(&columns), blocked: Blocked::new(blocks), neurons, sums, precision }
    }

    /// What it adds to the residual stream, rounded.
    pub(crate) fn forward(&mut self, x: &Normed<'_>) -> &[Pair] {
        let Self { whole, blocked, neurons, sums, precision } = self;
        whole.get(x, |inputs, results| {
            blocked.run(
                x,
                inputs,
                |block, inputs, results| neurons.add(block, inputs, x, results),
                |place, sum| sums.add(place, sum),
            );
            sums.drain(|place, sum| results.push((place, precision.round(sum).to_bits())));
        })
    }
}

impl Neurons {
    /// Appends what a block's neurons add.
    fn add(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, results: &mut Vec<Pair>) {
        let Self { gates, open, lists, sums, precision } = self;
        open.clear();
        gates.run(block, inputs, x, |neuron, gate| open.push((2 * neuron as usize, gate)));
        with_lists!(&*lists, lists => {
            lists.fetch(open.iter().map(|&(list, _)| list), 2);
            for &(list, gate) in &*open {
                let up = precision.round(lists.dot(list, x));
                let value = precision.round(gate * up);
                if value != 0.0 {
                    sums.add_list(lists.get(list + 1), value);
                }
            }
        });
        sums.drain(|place, sum| results.push((place, sum.to_bits())));
    }
}
