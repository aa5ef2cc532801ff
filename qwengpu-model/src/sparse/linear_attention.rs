//! The mixer of a `linear_attention` layer, for the heads and state rows that keys and queries reach.

use super::conv::{History, ShortConv};
use super::norm::{inverse_rms, single};
use super::packed::{Packed, with_lists};
use super::projection::{Accumulator, Projection};
use super::vector::{Inputs, Sums};
use crate::activation::{L2_EPS, sigmoid, silu, softplus};
use crate::config::Config;
use crate::delta_rule::{add_scaled, dot};
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::weights::LinearAttentionWeights;

/// What a linear layer remembers.
#[derive(Debug, Clone)]
pub(crate) struct LinearMemory {
    pub(crate) history: History,
    /// `[value heads, dk, dv]`.
    pub(crate) state: Vec<f32>,
    /// `[value heads, dk]`: false for a row that is zero for certain.
    pub(crate) is_live: Vec<bool>,
}

#[derive(Debug, Clone)]
pub(crate) struct LinearAttention {
    in_proj_qkv: Projection,
    conv: ShortConv,
    in_proj_b: SparseMatrix,
    in_proj_a: SparseMatrix,
    /// `-exp(A_log)` of each value head.
    speeds: Vec<f32>,
    dt_bias: Vec<f32>,
    norm: Vec<f32>,
    eps: f32,
    /// For each value dimension of each head its row of `in_proj_z`, then its column of `out_proj`.
    outputs: Packed,
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

/// Room for one token's queries, keys and values, for each head the (dimension, value) that aren't zero.
#[derive(Debug, Clone)]
pub(crate) struct HeadLists {
    queries: Vec<Vec<(usize, f32)>>,
    keys: Vec<Vec<(usize, f32)>>,
    values: Vec<Vec<(usize, f32)>>,
    /// What a head's state holds for the key, then the correction, `[dv]`.
    delta: Vec<f32>,
    /// What a head reads, `[dv]`.
    read: Vec<f32>,
}

impl HeadLists {
    pub(crate) fn new(config: &Config) -> Self {
        let (dk, dv) = (config.linear_key_head_dim, config.linear_value_head_dim);
        let lists = |heads, len| (0..heads).map(|_| Vec::with_capacity(len)).collect();
        Self {
            queries: lists(config.linear_num_key_heads, dk),
            keys: lists(config.linear_num_key_heads, dk),
            values: lists(config.linear_num_value_heads, dv),
            delta: vec![0.0; dv],
            read: vec![0.0; dv],
        }
    }

    fn clear(&mut self) {
        for lists in [&mut self.queries, &mut self.keys, &mut self.values] {
            lists.iter_mut().for_each(Vec::clear);
        }
    }
}

impl LinearAttention {
    pub(crate) fn new(weights: &LinearAttentionWeights, config: &Config, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let vector = |values: &[f32]| values.iter().map(|&value| precision.round(value)).collect::<Vec<f32>>();
        Self {
            in_proj_qkv: Projection::new(&rounded(&weights.in_proj_qkv), precision),
            conv: ShortConv::new(&weights.conv1d, precision),
            in_proj_b: rounded(&weights.in_proj_b),
            in_proj_a: rounded(&weights.in_proj_a),
            speeds: weights.a_log.iter().map(|&a_log| -precision.round(a_log).exp()).collect(),
            dt_bias: vector(&weights.dt_bias),
            norm: vector(&weights.norm),
            eps: single(config.rms_norm_eps),
            outputs: Packed::rows(&[&rounded(&weights.in_proj_z), &rounded(&weights.out_proj).transpose()]),
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
        LinearMemory {
            history: History::new(self.conv.kernel()),
            state: vec![0.0; value_heads * dk * dv],
            is_live: vec![false; value_heads * dk],
        }
    }

    /// Adds the mixer's result to `out`.
    pub(crate) fn forward(
        &mut self,
        x: &Inputs,
        memory: &mut LinearMemory,
        lists: &mut HeadLists,
        sums: &mut Accumulator,
        conv_sums: &mut Sums,
        out: &mut Sums,
    ) {
        let mut newest = memory.history.begin();
        self.in_proj_qkv.run(x, sums, |row, value| newest.push((row, value)));
        memory.history.end(newest);
        self.split_heads(&memory.history, lists, conv_sums);
        for key_head in 0..self.dims.key_heads {
            normalize(&mut lists.keys[key_head], |k| k);
            let divisor = self.query_divisor();
            normalize(&mut lists.queries[key_head], |q| q / divisor);
        }
        self.fetch_rows(lists, &memory.state);
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        for head in 0..value_heads {
            let state = &mut memory.state[head * dk * dv..(head + 1) * dk * dv];
            let is_live = &mut memory.is_live[head * dk..(head + 1) * dk];
            self.decay(head, x, state, is_live);
            let key_head = head / (value_heads / key_heads);
            let (keys, queries) = (&lists.keys[key_head], &lists.queries[key_head]);
            if !keys.is_empty() {
                self.write(head, x, keys, &lists.values[head], state, is_live, &mut lists.delta);
            }
            if read(queries, state, is_live, &mut lists.read) {
                self.gate_and_project(head, x, &mut lists.read, out);
            }
        }
    }

    /// Brings the state rows that keys and queries reach close to the processor, all heads' at once.
    ///
    /// States are large and each head's rows few: one head after the other would wait for each row.
    fn fetch_rows(&self, lists: &HeadLists, state: &[f32]) {
        const LINE: usize = 16;
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        let mut seen = 0;
        for head in 0..value_heads {
            let key_head = head / (value_heads / key_heads);
            for &(i, _) in lists.keys[key_head].iter().chain(&lists.queries[key_head]) {
                let start = (head * dk + i) * dv;
                for value in state[start..start + dv].iter().step_by(LINE) {
                    seen ^= value.to_bits();
                }
            }
        }
        std::hint::black_box(seen);
    }

    /// Convolves and sorts the non-zero results into heads.
    fn split_heads(&self, history: &History, lists: &mut HeadLists, conv_sums: &mut Sums) {
        let Dims { key_heads, dk, dv, .. } = self.dims;
        let key_dim = key_heads * dk;
        lists.clear();
        self.conv.run(history, conv_sums, |channel, value| {
            if channel < key_dim {
                lists.queries[channel / dk].push((channel % dk, value));
            } else if channel < 2 * key_dim {
                let channel = channel - key_dim;
                lists.keys[channel / dk].push((channel % dk, value));
            } else {
                let channel = channel - 2 * key_dim;
                lists.values[channel / dv].push((channel % dv, value));
            }
        });
    }

    #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
    fn query_divisor(&self) -> f32 {
        (self.dims.dk as f32).sqrt()
    }

    /// Multiplies the state's live rows by `exp(g)`.
    #[expect(clippy::float_cmp, reason = "multiplying by exactly 1 changes nothing")]
    fn decay(&self, head: usize, x: &Inputs, state: &mut [f32], is_live: &[bool]) {
        let speed = self.speeds[head];
        if speed == 0.0 {
            return;
        }
        let a = self.precision.round(x.dot_row(&self.in_proj_a, head));
        let decay = (speed * softplus(a + self.dt_bias[head])).exp();
        if decay == 1.0 {
            return;
        }
        for (row, _) in state.chunks_exact_mut(self.dims.dv).zip(is_live).filter(|&(_, &is_live)| is_live) {
            row.iter_mut().for_each(|s| *s *= decay);
        }
    }

    /// `S += k (beta (v - S^T k))^T`.
    #[expect(clippy::too_many_arguments, reason = "the delta rule has these operands")]
    #[expect(clippy::float_cmp, reason = "multiplying by exactly 1 changes nothing")]
    fn write(
        &self,
        head: usize,
        x: &Inputs,
        keys: &[(usize, f32)],
        values: &[(usize, f32)],
        state: &mut [f32],
        is_live: &mut [bool],
        delta: &mut [f32],
    ) {
        let b = self.precision.round(x.dot_row(&self.in_proj_b, head));
        let beta = self.precision.round(sigmoid(b));
        if beta == 0.0 {
            return;
        }
        let dv = self.dims.dv;
        delta.fill(0.0);
        for &(j, v) in values {
            delta[j] = v;
        }
        for &(i, k) in keys.iter().filter(|&&(i, _)| is_live[i]) {
            add_scaled(delta, -k, &state[i * dv..(i + 1) * dv]);
        }
        if beta != 1.0 {
            delta.iter_mut().for_each(|delta| *delta *= beta);
        }
        for &(i, k) in keys {
            add_scaled(&mut state[i * dv..(i + 1) * dv], k, delta);
            is_live[i] = true;
        }
    }

    /// Norm, output gate and projection of what a head has read.
    fn gate_and_project(&self, head: usize, x: &Inputs, read: &mut [f32], out: &mut Sums) {
        let round = |value| self.precision.round(value);
        read.iter_mut().for_each(|o| *o = round(*o));
        let inverse = inverse_rms(dot(read, read), read.len(), self.eps);
        let first = head * self.dims.dv;
        with_lists!(&self.outputs, lists => for_each_nonzero(read, |j, o| {
            let normed = round(self.norm[j] * round(o * inverse));
            if normed == 0.0 {
                return;
            }
            let list = 2 * (first + j);
            let z = round(lists.dot(list, x.values()));
            let gated = round(normed * silu(z));
            if gated != 0.0 {
                out.add_list(lists.get(list + 1), gated);
            }
        }));
    }
}

/// Calls `visit` with each index and value that isn't zero.
#[inline(always)]
fn for_each_nonzero(values: &[f32], mut visit: impl FnMut(usize, f32)) {
    const BLOCK: usize = 8;
    for (block, start) in values.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        // Nothing but the sign may be set in zeros.
        if block.iter().fold(0, |bits, value| bits | value.to_bits() << 1) == 0 {
            continue;
        }
        for (i, &value) in block.iter().enumerate().filter(|&(_, &value)| value != 0.0) {
            visit(start + i, value);
        }
    }
}

/// Divides by the l2 norm, then applies `scale`.
fn normalize(list: &mut [(usize, f32)], scale: impl Fn(f32) -> f32) {
    let squares: f32 = list.iter().map(|&(_, value)| value * value).sum();
    let inverse = 1.0 / (squares + L2_EPS).sqrt();
    for (_, value) in list {
        *value = scale(*value * inverse);
    }
}

/// `o = S^T q`; false if nothing is read, and `out` is not written then.
fn read(queries: &[(usize, f32)], state: &[f32], is_live: &[bool], out: &mut [f32]) -> bool {
    let dv = out.len();
    let mut any = false;
    for &(i, q) in queries.iter().filter(|&&(i, _)| is_live[i]) {
        if !any {
            out.fill(0.0);
            any = true;
        }
        add_scaled(out, q, &state[i * dv..(i + 1) * dv]);
    }
    any
}
