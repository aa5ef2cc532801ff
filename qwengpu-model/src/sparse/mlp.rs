//! The gated MLP, for the neurons whose `silu` isn't zero.

use super::blocked::Blocked;
use super::blocks::Blocks;
use super::memo::Pair;
use super::norm::Normed;
use super::packed::{Entry, Lists, Packed, with_lists};
use super::screen::Screen;
use super::vector::Sums;
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::weights::LayerWeights;

/// `down(silu(gate x) * up x)`.
#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    blocked: Blocked,
    neurons: Neurons,
}

/// What a neuron computes.
#[derive(Debug, Clone)]
struct Neurons {
    screen: Screen,
    candidates: Vec<u32>,
    /// For each neuron its row of `gate_proj`, its row of `up_proj`, its column of `down_proj`.
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
            screen: Screen::new(&gate_proj, &blocks),
            candidates: Vec::new(),
            sums: Sums::new(down_proj.cols()),
            lists: Packed::rows(&[&gate_proj, &up_proj, &down_proj]),
            precision,
        };
        Self { blocked: Blocked::new(blocks), neurons }
    }

    /// Adds the result to `out`.
    pub(crate) fn forward(&mut self, x: &Normed<'_>, out: &mut Sums) {
        let Self { blocked, neurons } = self;
        blocked.run(
            x,
            |block, inputs, results| neurons.add(block, inputs, x, results),
            |place, sum| out.add(place, sum),
        );
    }
}

impl Neurons {
    /// Appends what a block's neurons add.
    fn add(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, results: &mut Vec<Pair>) {
        let Self { screen, candidates, lists, sums, precision } = self;
        screen.run(block, inputs, x, candidates);
        with_lists!(&*lists, lists => {
            lists.fetch(candidates.iter().map(|&neuron| 3 * neuron as usize), 3);
            for &neuron in &*candidates {
                fire(lists, neuron as usize, x, *precision, sums);
            }
        });
        sums.drain(|place, sum| results.push((place, sum.to_bits())));
    }
}

/// What a neuron adds.
#[inline]
fn fire<E: Entry>(neurons: &Lists<E>, neuron: usize, x: &Normed<'_>, precision: Precision, out: &mut Sums) {
    let gate = precision.round(neurons.dot(3 * neuron, x));
    let activated = precision.round(silu(gate));
    if activated == 0.0 {
        return;
    }
    let up = precision.round(neurons.dot(3 * neuron + 1, x));
    let value = precision.round(activated * up);
    if value != 0.0 {
        out.add_list(neurons.get(3 * neuron + 2), value);
    }
}
