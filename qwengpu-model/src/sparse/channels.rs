//! From the norm to queries, keys and values: projection, short convolution and `silu`.

use super::activations::Activations;
use super::bits::Bits;
use super::blocked::Blocked;
use super::blocks::Blocks;
use super::conv::{History, ShortConv};
use super::memo::Pair;
use super::norm::{Normed, RmsNorm};
use super::packed::{Entry, Packed, with_lists};
use super::projection::{Accumulator, Projection};
use super::vector::{Inputs, Sums};
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::rows::SparseRows;

/// The channels of a linear layer.
#[derive(Debug, Clone)]
pub(crate) enum Channels {
    /// Only the newest tap of any channel counts: no channel needs a memory.
    Pointwise(Box<Pointwise>),
    Convolved(Box<Convolved>),
}

#[derive(Debug, Clone)]
pub(crate) struct Pointwise {
    blocked: Blocked,
    activations: Activations,
    /// The columns of `in_proj_qkv`, and what is in them.
    columns: Bits,
    by_column: Packed,
    precision: Precision,
}

#[derive(Debug, Clone)]
pub(crate) struct Convolved {
    in_proj_qkv: Projection,
    conv: ShortConv,
}

/// Room for channels that are convolved.
#[derive(Debug, Clone)]
pub(crate) struct ConvScratch {
    inputs: Inputs,
    sums: Accumulator,
    conv_sums: Sums,
}

impl ConvScratch {
    pub(crate) fn new(hidden: usize, channels: usize) -> Self {
        Self { inputs: Inputs::new(hidden), sums: Accumulator::new(channels), conv_sums: Sums::new(channels) }
    }
}

impl Channels {
    /// `in_proj_qkv` is `[channels, hidden]`, `conv1d` `[channels, kernel]`, both rounded.
    pub(crate) fn new(in_proj_qkv: &SparseMatrix, conv1d: &SparseMatrix, shared: u32, precision: Precision) -> Self {
        let newest = conv1d.cols() - 1;
        if conv1d.entries().any(|(_, tap, _)| tap as usize != newest) {
            let in_proj_qkv = Projection::new(in_proj_qkv, precision);
            return Self::Convolved(Box::new(Convolved { in_proj_qkv, conv: ShortConv::new(conv1d, precision) }));
        }
        let tap = |channel: usize| conv1d.row(channel).1.last().copied().unwrap_or(0.0);
        let taps: Vec<f32> = (0..in_proj_qkv.rows()).map(tap).collect();
        let used = in_proj_qkv.map(|channel, _, weight| if taps[channel as usize] == 0.0 { 0.0 } else { weight });
        let blocks = Blocks::new(&[&used], shared);
        let mut columns = Bits::new(in_proj_qkv.cols());
        in_proj_qkv.entries().for_each(|(_, col, _)| columns.set(col));
        let activations = Activations::new(in_proj_qkv, taps, &blocks, precision);
        let by_column = Packed::rows(&[&in_proj_qkv.transpose()]);
        let blocked = Blocked::new(blocks);
        Self::Pointwise(Box::new(Pointwise { blocked, activations, columns, by_column, precision }))
    }

    /// The columns that channels read, if nothing but this token counts.
    pub(crate) fn columns(&self) -> Option<&Bits> {
        match self {
            Self::Pointwise(channels) => Some(&channels.columns),
            Self::Convolved(_) => None,
        }
    }

    /// Visits each channel whose result isn't zero. `inputs` are the active ones of
    /// [`columns`](Self::columns), and maybe others. What is convolved goes into the history.
    pub(crate) fn run(
        &mut self,
        x: &Normed<'_>,
        inputs: &[Pair],
        history: &mut History,
        scratch: &mut ConvScratch,
        visit: impl FnMut(u32, f32),
    ) {
        match self {
            Self::Pointwise(channels) => {
                let Pointwise { blocked, activations, .. } = &mut **channels;
                let compute = |block, inputs: &[Pair], results: &mut Vec<Pair>| {
                    activations.run(block, inputs, x, |channel, result| results.push((channel, result.to_bits())));
                };
                blocked.run(x, inputs, compute, visit);
            }
            Self::Convolved(channels) => {
                let Convolved { in_proj_qkv, conv } = &mut **channels;
                let ConvScratch { inputs, sums, conv_sums } = scratch;
                let mut newest = history.begin();
                x.write(inputs);
                in_proj_qkv.run(inputs, sums, |row, value| newest.push((row, value)));
                history.end(newest);
                conv.run(history, conv_sums, visit);
            }
        }
    }

    /// What the convolution remembers, `[channels, kernel]`.
    pub(crate) fn conv_state(&self, history: &History, norm: &RmsNorm, num_channels: usize) -> SparseRows {
        let project = |inputs: &[(u32, f32)], inverse| match self {
            Self::Pointwise(channels) => {
                let normed = inputs.iter().map(|&(col, raw)| (col, norm.value(col, raw, inverse)));
                channels.product(normed, num_channels)
            }
            Self::Convolved(_) => Vec::new(), // its history holds projected values
        };
        history.rows(num_channels, project)
    }
}

impl Pointwise {
    /// The channels before their `silu` that aren't zero, for inputs of which none comes twice.
    fn product(&self, inputs: impl Iterator<Item = (u32, f32)>, num_channels: usize) -> Vec<(u32, f32)> {
        let mut sums = vec![0.0; num_channels];
        with_lists!(&self.by_column, columns => {
            for (col, value) in inputs {
                columns.get(col as usize).iter().for_each(|entry| sums[entry.place()] += entry.value() * value);
            }
        });
        let rounded = (0..).zip(sums).map(|(channel, sum)| (channel, self.precision.round(sum)));
        rounded.filter(|&(_, value)| value != 0.0).collect()
    }
}
