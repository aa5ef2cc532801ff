//! The mixer of a `full_attention` layer. Projections are sparse, what the heads do with them is not.

use super::norm::RmsNorm;
use super::packed::{Packed, with_lists};
use super::vector::{Inputs, Sums};
use crate::activation::{sigmoid, softmax};
use crate::config::Config;
use crate::delta_rule::{add_scaled, dot};
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::rope::{Angles, Rope};
use crate::weights::FullAttentionWeights;

/// What a full-attention layer remembers.
#[derive(Debug, Clone, Default)]
pub(crate) struct FullMemory {
    /// For each kv head `[position, head dim]`, unless all are zero and `is_zero` says so.
    pub(crate) keys: Vec<Vec<f32>>,
    /// As the keys.
    pub(crate) values: Vec<Vec<f32>>,
    /// Nothing but zeros so far, and nothing is stored.
    pub(crate) is_zero: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct FullAttention {
    /// By column, like the two below.
    q_proj: SparseMatrix,
    k_proj: SparseMatrix,
    v_proj: SparseMatrix,
    /// By column: one for each dimension of each head.
    o_proj: Packed,
    is_silent: bool,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    rope: Rope,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    precision: Precision,
}

/// Room for one token.
#[derive(Debug, Clone)]
pub(crate) struct AttentionScratch {
    query_gate: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mixed: Vec<f32>,
    weights: Vec<f32>,
    angles: Angles,
}

impl AttentionScratch {
    pub(crate) fn new(config: &Config) -> Self {
        let (hd, kv_heads) = (config.head_dim, config.num_key_value_heads);
        Self {
            query_gate: vec![0.0; 2 * config.num_attention_heads * hd],
            keys: vec![0.0; kv_heads * hd],
            values: vec![0.0; kv_heads * hd],
            mixed: vec![0.0; hd],
            weights: Vec::new(),
            angles: Angles::default(),
        }
    }
}

impl FullAttention {
    pub(crate) fn new(weights: &FullAttentionWeights, config: &Config, precision: Precision) -> Self {
        let columns = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value)).transpose();
        Self {
            q_proj: columns(&weights.q_proj),
            k_proj: columns(&weights.k_proj),
            v_proj: columns(&weights.v_proj),
            o_proj: Packed::rows(&[&columns(&weights.o_proj)]),
            is_silent: weights.o_proj.num_nonzeros() == 0,
            q_norm: RmsNorm::new(&weights.q_norm, config.rms_norm_eps, precision),
            k_norm: RmsNorm::new(&weights.k_norm, config.rms_norm_eps, precision),
            rope: Rope::new(config, precision),
            heads: config.num_attention_heads,
            kv_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            precision,
        }
    }

    /// Whether keys and values are zero whatever the input.
    fn keeps_zeros(&self) -> bool {
        self.k_proj.num_nonzeros() == 0 && self.v_proj.num_nonzeros() == 0
    }

    pub(crate) fn empty_memory(&self) -> FullMemory {
        let empty = vec![Vec::new(); self.kv_heads];
        FullMemory { keys: empty.clone(), values: empty, is_zero: self.keeps_zeros() }
    }

    /// From `[kv heads, position, head dim]`.
    pub(crate) fn memory_of(&self, keys: &[f32], values: &[f32]) -> FullMemory {
        let mut memory = self.empty_memory();
        memory.is_zero &= keys.iter().chain(values).all(|&value| value == 0.0);
        if !memory.is_zero {
            for (all, by_head) in [(keys, &mut memory.keys), (values, &mut memory.values)] {
                let len = all.len() / self.kv_heads;
                for (head, kept) in by_head.iter_mut().enumerate() {
                    kept.extend_from_slice(&all[head * len..(head + 1) * len]);
                }
            }
        }
        memory
    }

    /// Adds the mixer's result to `out`; not for a memory of zeros.
    pub(crate) fn forward(
        &self,
        x: &Inputs,
        memory: &mut FullMemory,
        position: usize,
        scratch: &mut AttentionScratch,
        out: &mut Sums,
    ) {
        let hd = self.head_dim;
        self.project(&self.k_proj, x, &mut scratch.keys);
        self.project(&self.v_proj, x, &mut scratch.values);
        self.rope.angles(position, &mut scratch.angles);
        for (head, key) in scratch.keys.chunks_exact_mut(hd).enumerate() {
            self.k_norm.dense(key);
            self.rope.rotate(&scratch.angles, key);
            memory.keys[head].extend_from_slice(key);
        }
        for (head, value) in scratch.values.chunks_exact(hd).enumerate() {
            memory.values[head].extend_from_slice(value);
        }
        if self.is_silent {
            return;
        }
        self.project(&self.q_proj, x, &mut scratch.query_gate);
        for (head, query_gate) in scratch.query_gate.chunks_exact_mut(2 * hd).enumerate() {
            let (query, output_gate) = query_gate.split_at_mut(hd);
            self.q_norm.dense(query);
            self.rope.rotate(&scratch.angles, query);
            let kv_head = head / (self.heads / self.kv_heads);
            let (keys, values) = (&memory.keys[kv_head], &memory.values[kv_head]);
            attend(query, keys, values, &mut scratch.weights, &mut scratch.mixed);
            for (j, (&mixed, &gate)) in scratch.mixed.iter().zip(&*output_gate).enumerate() {
                let round = |value| self.precision.round(value);
                let gated = round(round(mixed) * round(sigmoid(gate)));
                if gated != 0.0 {
                    with_lists!(&self.o_proj, lists => out.add_list(lists.get(head * hd + j), gated));
                }
            }
        }
    }

    /// Overwrites `out`.
    fn project(&self, columns: &SparseMatrix, x: &Inputs, out: &mut [f32]) {
        out.fill(0.0);
        for (col, value) in x.iter() {
            let (rows, weights) = columns.row(col as usize);
            for (&row, &weight) in rows.iter().zip(weights) {
                out[row as usize] += weight * value;
            }
        }
        out.iter_mut().for_each(|sum| *sum = self.precision.round(*sum));
    }
}

/// One query over all keys and values `[position, head dim]`.
fn attend(query: &[f32], keys: &[f32], values: &[f32], weights: &mut Vec<f32>, out: &mut [f32]) {
    let hd = query.len();
    #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
    let scale = 1.0 / (hd as f32).sqrt();
    weights.clear();
    weights.extend(keys.chunks_exact(hd).map(|key| dot(query, key) * scale));
    softmax(weights);
    out.fill(0.0);
    for (value, &weight) in values.chunks_exact(hd).zip(weights.iter()) {
        add_scaled(out, weight, value);
    }
}
