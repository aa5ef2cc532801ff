//! The mixer of a `full_attention` layer: softmax over all tokens so far, with an output gate.

use candle_core::Tensor;
use rayon::prelude::*;

use super::linear::Linear;
use super::norm::RmsNorm;
use super::ops;
use super::source::Source;
use crate::activation::{sigmoid, softmax};
use crate::delta_rule::{add_scaled, dot};
use crate::engine::Precision;
use crate::error::Error;
use crate::names::in_layer;
use crate::rope::{Angles, Rope};

/// What a full-attention layer remembers, for each kv head `[position, head dim]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct FullMemory {
    pub(crate) keys: Vec<Vec<f32>>,
    pub(crate) values: Vec<Vec<f32>>,
}

#[derive(Debug, Clone)]
pub(crate) struct FullAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    rope: Rope,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    precision: Precision,
}

impl FullAttention {
    pub(crate) fn load(source: &Source<'_>, layer: usize) -> Result<Self, Error> {
        let config = source.config;
        let (d, head_dim) = (config.hidden_size, config.head_dim);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let name = |rest: &str| in_layer(layer, rest);
        let linear = |rest: &str, rows, cols| Linear::load(source, &name(rest), rows, cols);
        Ok(Self {
            q_proj: linear("self_attn.q_proj.weight", 2 * heads * head_dim, d)?,
            k_proj: linear("self_attn.k_proj.weight", kv_heads * head_dim, d)?,
            v_proj: linear("self_attn.v_proj.weight", kv_heads * head_dim, d)?,
            o_proj: linear("self_attn.o_proj.weight", d, heads * head_dim)?,
            q_norm: RmsNorm::load(source, &name("self_attn.q_norm.weight"), head_dim)?,
            k_norm: RmsNorm::load(source, &name("self_attn.k_norm.weight"), head_dim)?,
            rope: Rope::new(config, source.precision),
            heads,
            kv_heads,
            head_dim,
            precision: source.precision,
        })
    }

    pub(crate) fn empty_memory(&self) -> FullMemory {
        FullMemory { keys: vec![Vec::new(); self.kv_heads], values: vec![Vec::new(); self.kv_heads] }
    }

    /// `[tokens, hidden]` to the same; `position` is the first token's.
    pub(crate) fn forward(&self, x: &Tensor, memory: &mut FullMemory, position: usize) -> Result<Tensor, Error> {
        let (tokens, hd) = (x.dim(0)?, self.head_dim);
        let query_gate = self.q_proj.forward(x)?.reshape((tokens, self.heads, 2 * hd))?;
        let output_gate = query_gate.narrow(2, hd, hd)?.reshape((tokens, self.heads * hd))?;
        let queries = self.q_norm.forward(&query_gate.narrow(2, 0, hd)?.contiguous()?)?; // [tokens, heads, hd]
        let keys = self.k_proj.forward(x)?.reshape((tokens, self.kv_heads, hd))?;
        let mut keys = ops::to_vec(&self.k_norm.forward(&keys)?)?;
        let mut queries = ops::to_vec(&queries)?;
        let values = ops::to_vec(&self.v_proj.forward(x)?)?;

        let mut angles = Angles::default();
        for t in 0..tokens {
            self.rope.angles(position + t, &mut angles);
            let rotate = |head: &mut [f32]| self.rope.rotate(&angles, head);
            queries[t * self.heads * hd..(t + 1) * self.heads * hd].chunks_exact_mut(hd).for_each(rotate);
            keys[t * self.kv_heads * hd..(t + 1) * self.kv_heads * hd].chunks_exact_mut(hd).for_each(rotate);
        }
        for (new, kept) in [(&keys, &mut memory.keys), (&values, &mut memory.values)] {
            for of_token in new.chunks_exact(self.kv_heads * hd) {
                of_token.chunks_exact(hd).zip(kept.iter_mut()).for_each(|(head, kept)| kept.extend_from_slice(head));
            }
        }

        let mut mixed = vec![0.0; tokens * self.heads * hd];
        mixed.par_chunks_mut(hd).zip(queries.par_chunks(hd)).enumerate().for_each(|(i, (out, query))| {
            let (t, head) = (i / self.heads, i % self.heads);
            let kv_head = head / (self.heads / self.kv_heads);
            let seen = (position + t + 1) * hd;
            self.attend(query, &memory.keys[kv_head][..seen], &memory.values[kv_head][..seen], out);
        });
        let mixed = ops::round(ops::tensor(mixed, tokens, self.heads * hd)?, self.precision)?;
        let output_gate = ops::map(&output_gate, |gate| self.precision.round(sigmoid(gate)))?;
        self.o_proj.forward(&ops::round((mixed * output_gate)?, self.precision)?)
    }

    /// One query over the keys and values `[position, head dim]` that it may see.
    fn attend(&self, query: &[f32], keys: &[f32], values: &[f32], out: &mut [f32]) {
        #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        let mut weights: Vec<f32> = keys.chunks_exact(self.head_dim).map(|key| dot(query, key) * scale).collect();
        softmax(&mut weights);
        for (value, &weight) in values.chunks_exact(self.head_dim).zip(&weights) {
            add_scaled(out, weight, value);
        }
    }
}
