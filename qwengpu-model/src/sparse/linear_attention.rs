//! The mixer of a `linear_attention` layer, for the heads and state rows that keys and queries reach.

use super::channels::ConvScratch;
use super::conv::History;
use super::memo::Pair;
use super::norm::{Normed, RmsNorm, inverse_rms, single};
use super::packed::{Packed, with_lists};
use super::plan::{HeadLists, HeadPlan, Planner, decays};
use super::state::{Line, State};
use super::vector::Sums;
use super::whole::Whole;
use crate::activation::silu;
use crate::config::Config;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::rows::SparseRows;
use crate::weights::LinearAttentionWeights;

/// What a linear layer remembers.
#[derive(Debug, Clone)]
pub(crate) struct LinearMemory {
    pub(crate) history: History,
    pub(crate) state: State,
}

#[derive(Debug, Clone)]
pub(crate) struct LinearAttention {
    planner: Planner,
    /// Plans by what they depend on, unless they depend on tokens before.
    plans: Option<Whole>,
    outputs: Outputs,
    kernel: usize,
    dims: Dims,
}

/// The way from a state to the residual stream.
#[derive(Debug, Clone)]
struct Outputs {
    norm: Vec<f32>,
    eps: f32,
    /// For each value dimension of each head its row of `in_proj_z`, then its column of `out_proj`.
    lists: Packed,
    dv: usize,
    precision: Precision,
}

#[derive(Debug, Clone, Copy)]
struct Dims {
    key_heads: usize,
    value_heads: usize,
    dk: usize,
    dv: usize,
}

/// Room for one token.
#[derive(Debug, Clone)]
pub(crate) struct LinearScratch {
    lists: HeadLists,
    conv: ConvScratch,
    plan: Vec<Pair>,
    /// What a head writes, then what it reads.
    line: Line,
}

impl LinearScratch {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            lists: HeadLists::new(config),
            conv: ConvScratch::new(config.hidden_size, config.conv_dim()),
            plan: Vec::new(),
            line: Line::new(config.linear_value_head_dim),
        }
    }
}

impl LinearAttention {
    /// `shared` is a column that reaches most rows.
    pub(crate) fn new(weights: &LinearAttentionWeights, config: &Config, shared: u32, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let planner = Planner::new(weights, config, shared, precision);
        let dims = Dims {
            key_heads: config.linear_num_key_heads,
            value_heads: config.linear_num_value_heads,
            dk: config.linear_key_head_dim,
            dv: config.linear_value_head_dim,
        };
        Self {
            plans: planner.columns().map(Whole::new),
            planner,
            outputs: Outputs {
                norm: weights.norm.iter().map(|&value| precision.round(value)).collect(),
                eps: single(config.rms_norm_eps),
                lists: Packed::rows(&[&rounded(&weights.in_proj_z), &rounded(&weights.out_proj).transpose()]),
                dv: dims.dv,
                precision,
            },
            kernel: weights.conv1d.cols(),
            dims,
        }
    }

    pub(crate) fn empty_memory(&self) -> LinearMemory {
        let Dims { value_heads, dk, dv, .. } = self.dims;
        LinearMemory { history: History::new(self.kernel), state: State::new(value_heads, dk, dv) }
    }

    /// What the convolution remembers, `[channels, kernel]`; `norm` stands in front of the layer.
    pub(crate) fn conv_state(&self, memory: &LinearMemory, norm: &RmsNorm) -> SparseRows {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        self.planner.conv_state(&memory.history, norm, 2 * key_heads * dk + value_heads * dv)
    }

    /// Adds the mixer's result to `out`.
    pub(crate) fn forward(
        &mut self,
        x: &Normed<'_>,
        memory: &mut LinearMemory,
        scratch: &mut LinearScratch,
        out: &mut Sums,
    ) {
        let LinearMemory { history, state } = memory;
        let LinearScratch { lists, conv, plan, line } = scratch;
        let Self { planner, plans, outputs, dims, .. } = self;
        let group = dims.value_heads / dims.key_heads;
        if let Some(plans) = plans {
            let plan = plans.get(x, |inputs, plan| planner.plan(x, inputs, history, lists, conv, plan));
            outputs.run(plan, group, x, state, line, out);
            history.push_inputs(plans.inputs(), x.inverse());
        } else {
            plan.clear();
            planner.plan(x, &[], history, lists, conv, plan);
            outputs.run(plan, group, x, state, line, out);
        }
    }
}

impl Outputs {
    /// Does what a plan says; `group` is the number of value heads of a key head.
    fn run(&self, plan: &[Pair], group: usize, x: &Normed<'_>, state: &mut State, line: &mut Line, out: &mut Sums) {
        let (decays, mut heads) = decays(plan);
        for &(head, factor) in decays {
            state.scale(head as usize, f32::from_bits(factor));
        }
        while let Some(HeadPlan { key_head, queries, keys }) = heads.next_head() {
            for head in key_head * group..(key_head + 1) * group {
                if !keys.is_empty() {
                    let (values, beta) = heads.next_values();
                    write(head, keys, values, beta, state, line);
                }
                state.read(head, queries, 1.0, line);
                if !line.is_clear() {
                    self.gate_and_project(head, x, line, out);
                }
            }
        }
    }

    /// Norm, output gate and projection of what a head has read; leaves the line clear.
    fn gate_and_project(&self, head: usize, x: &Normed<'_>, read: &mut Line, out: &mut Sums) {
        let round = |value| self.precision.round(value);
        if self.precision == Precision::Bf16 {
            read.map(round);
        }
        let inverse = inverse_rms(read.squares(), self.dv, self.eps);
        let first = head * self.dv;
        with_lists!(&self.lists, lists => read.drain(|j, o| {
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

/// `S += k (beta (v - S^T k))^T`. The line is clear before and behind.
#[expect(clippy::float_cmp, reason = "multiplying by exactly 1 changes nothing")]
fn write(head: usize, keys: &[Pair], values: &[Pair], beta: f32, state: &mut State, line: &mut Line) {
    if beta == 0.0 {
        return;
    }
    for &(col, v) in values {
        line.set(col as usize, f32::from_bits(v));
    }
    state.read(head, keys, -1.0, line);
    if beta != 1.0 {
        line.map(|delta| delta * beta);
    }
    state.write(head, keys, line);
    line.clear();
}
