//! The mixer of a `linear_attention` layer, for the heads and state rows that keys and queries reach.

use super::bits::Bits;
use super::channels::{Channels, ConvScratch};
use super::conv::History;
use super::norm::{Normed, inverse_rms, single};
use super::packed::{Packed, with_lists};
use super::state::{Line, State};
use super::vector::Sums;
use crate::activation::{L2_EPS, sigmoid, silu, softplus};
use crate::config::Config;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};
use crate::weights::LinearAttentionWeights;

/// What a linear layer remembers.
#[derive(Debug, Clone)]
pub(crate) struct LinearMemory {
    pub(crate) history: History,
    pub(crate) state: State,
}

#[derive(Debug, Clone)]
pub(crate) struct LinearAttention {
    channels: Channels,
    in_proj_b: Packed,
    in_proj_a: Packed,
    /// Heads that decay, and `-exp(A_log)` of each value head.
    decaying: Vec<usize>,
    speeds: Vec<f32>,
    dt_bias: Vec<f32>,
    norm: Vec<f32>,
    eps: f32,
    /// For each value dimension of each head its row of `in_proj_z`, then its column of `out_proj`.
    outputs: Packed,
    /// Nothing ever enters: no channel has an input.
    is_silent: bool,
    kernel: usize,
    dims: Dims,
    precision: Precision,
}

#[derive(Debug, Clone, Copy)]
struct Dims {
    key_heads: usize,
    value_heads: usize,
    dk: usize,
    dv: usize,
}

/// The (dimension, value) of a head that aren't zero.
type HeadList = Vec<(u32, f32)>;

/// Room for one token's queries, keys and values.
#[derive(Debug, Clone)]
pub(crate) struct HeadLists {
    /// By channel its list and its dimension there.
    places: Vec<(u32, u32)>,
    /// Queries of each key head, keys of each, values of each value head.
    lists: Vec<HeadList>,
    /// Key heads with queries or keys.
    active: Bits,
    /// What a head writes, then what it reads.
    line: Line,
}

impl HeadLists {
    pub(crate) fn new(config: &Config) -> Self {
        let (dk, dv) = (config.linear_key_head_dim, config.linear_value_head_dim);
        let keys = 2 * config.linear_num_key_heads;
        let lens = (0..keys + config.linear_num_value_heads).map(|list| if list < keys { dk } else { dv });
        let places = (0..).zip(lens.clone()).flat_map(|(list, len)| (0..low_32(len)).map(move |i| (list, i)));
        Self {
            places: places.collect(),
            lists: lens.map(Vec::with_capacity).collect(),
            active: Bits::new(config.linear_num_key_heads),
            line: Line::new(dv),
        }
    }
}

impl LinearAttention {
    /// `shared` is a column that reaches most rows.
    pub(crate) fn new(weights: &LinearAttentionWeights, config: &Config, shared: u32, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let vector = |values: &[f32]| values.iter().map(|&value| precision.round(value)).collect::<Vec<f32>>();
        let speeds: Vec<f32> = weights.a_log.iter().map(|&a_log| -precision.round(a_log).exp()).collect();
        let in_proj_qkv = rounded(&weights.in_proj_qkv);
        Self {
            channels: Channels::new(&in_proj_qkv, &rounded(&weights.conv1d), shared, precision),
            in_proj_b: Packed::rows(&[&rounded(&weights.in_proj_b)]),
            in_proj_a: Packed::rows(&[&rounded(&weights.in_proj_a)]),
            decaying: (0..speeds.len()).filter(|&head| speeds[head] != 0.0).collect(),
            speeds,
            dt_bias: vector(&weights.dt_bias),
            norm: vector(&weights.norm),
            eps: single(config.rms_norm_eps),
            outputs: Packed::rows(&[&rounded(&weights.in_proj_z), &rounded(&weights.out_proj).transpose()]),
            is_silent: in_proj_qkv.num_nonzeros() == 0,
            kernel: weights.conv1d.cols(),
            dims: Dims {
                key_heads: config.linear_num_key_heads,
                value_heads: config.linear_num_value_heads,
                dk: config.linear_key_head_dim,
                dv: config.linear_value_head_dim,
            },
            precision,
        }
    }

    pub(crate) fn empty_memory(&self) -> LinearMemory {
        let Dims { value_heads, dk, dv, .. } = self.dims;
        LinearMemory { history: History::new(self.kernel), state: State::new(value_heads, dk, dv) }
    }

    /// What the convolution remembers, `[channels, kernel]`.
    pub(crate) fn conv_state(&self, memory: &LinearMemory) -> Vec<f32> {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        self.channels.conv_state(&memory.history, 2 * key_heads * dk + value_heads * dv)
    }

    /// Adds the mixer's result to `out`.
    pub(crate) fn forward(
        &mut self,
        x: &Normed<'_>,
        memory: &mut LinearMemory,
        heads: &mut HeadLists,
        scratch: &mut ConvScratch,
        out: &mut Sums,
    ) {
        let LinearMemory { history, state } = memory;
        for &head in &self.decaying {
            self.decay(head, x, state);
        }
        if self.is_silent && history.is_clear() {
            return;
        }
        let HeadLists { places, lists, active, line } = heads;
        let Dims { key_heads, value_heads, .. } = self.dims;
        self.channels.run(x, history, scratch, |channel, value| {
            let (list, dim) = places[channel as usize];
            lists[list as usize].push((dim, value));
            if (list as usize) < 2 * key_heads {
                active.set(list % low_32(key_heads));
            }
        });
        active.drain(|key_head| {
            let key_head = key_head as usize;
            let (queries, rest) = lists.split_at_mut(key_heads);
            let (keys, values) = rest.split_at_mut(key_heads);
            let (queries, keys) = (&mut queries[key_head], &mut keys[key_head]);
            normalize(keys, |k| k);
            let divisor = self.query_divisor();
            normalize(queries, |q| q / divisor);
            let group = value_heads / key_heads;
            let first = key_head * group;
            for (head, values) in (first..).zip(&values[first..first + group]) {
                if !keys.is_empty() {
                    self.write(head, x, keys, values, state, line);
                }
                state.read(head, queries, 1.0, line);
                if !line.is_clear() {
                    self.gate_and_project(head, x, line, out);
                    line.clear();
                }
            }
            queries.clear();
            keys.clear();
        });
        lists[2 * key_heads..].iter_mut().for_each(Vec::clear);
    }

    #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
    fn query_divisor(&self) -> f32 {
        (self.dims.dk as f32).sqrt()
    }

    /// Multiplies the state by `exp(g)`.
    #[expect(clippy::float_cmp, reason = "multiplying by exactly 1 changes nothing")]
    fn decay(&self, head: usize, x: &Normed<'_>, state: &mut State) {
        let a = self.precision.round(with_lists!(&self.in_proj_a, rows => rows.dot(head, x)));
        let decay = (self.speeds[head] * softplus(a + self.dt_bias[head])).exp();
        if decay != 1.0 {
            state.scale(head, decay);
        }
    }

    /// `S += k (beta (v - S^T k))^T`. The line is clear before and behind.
    #[expect(clippy::float_cmp, reason = "multiplying by exactly 1 changes nothing")]
    fn write(
        &self,
        head: usize,
        x: &Normed<'_>,
        keys: &[(u32, f32)],
        values: &[(u32, f32)],
        state: &mut State,
        line: &mut Line,
    ) {
        let b = self.precision.round(with_lists!(&self.in_proj_b, rows => rows.dot(head, x)));
        let beta = self.precision.round(sigmoid(b));
        if beta == 0.0 {
            return;
        }
        for &(col, v) in values {
            line.set(col as usize, v);
        }
        state.read(head, keys, -1.0, line);
        if beta != 1.0 {
            line.map(|delta| delta * beta);
        }
        state.write(head, keys, line);
        line.clear();
    }

    /// Norm, output gate and projection of what a head has read.
    fn gate_and_project(&self, head: usize, x: &Normed<'_>, read: &mut Line, out: &mut Sums) {
        let round = |value| self.precision.round(value);
        read.map(round);
        let inverse = inverse_rms(read.squares(), self.dims.dv, self.eps);
        let first = head * self.dims.dv;
        with_lists!(&self.outputs, lists => read.for_each(|j, o| {
            let list = 2 * (first + j);
            let targets = lists.get(list + 1);
            let normed = round(self.norm[j] * round(o * inverse));
            if targets.is_empty() || normed == 0.0 {
                return;
            }
            let z = round(lists.dot(list, x));
            let gated = round(normed * silu(z));
            if gated != 0.0 {
                out.add_list(targets, gated);
            }
        }));
    }
}

/// Divides by the l2 norm, then applies `scale`.
fn normalize(list: &mut [(u32, f32)], scale: impl Fn(f32) -> f32) {
    let squares: f32 = list.iter().map(|&(_, value)| value * value).sum();
    let inverse = 1.0 / (squares + L2_EPS).sqrt();
    for (_, value) in list {
        *value = scale(*value * inverse);
    }
}
