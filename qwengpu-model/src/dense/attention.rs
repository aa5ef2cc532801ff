//! The mixer of a `full_attention` layer: softmax over all tokens so far, with an output gate.

use pulp::Arch;
use rayon::prelude::*;

use super::linear::{Input, Linear};
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

    /// `[tokens, hidden]` to the same, where every stream has as many tokens, one stream after the other. A position is
    /// that of a stream's first token.
    pub(crate) fn forward(&self, x: &Input, streams: &mut [(&mut FullMemory, usize)]) -> Result<Vec<f32>, Error> {
        let (hd, width) = (self.head_dim, self.heads * self.head_dim);
        let query_gate = self.q_proj.forward(x)?;
        let of_heads = |second: usize| -> Vec<f32> {
            query_gate.chunks_exact(2 * hd).flat_map(|pair| &pair[second * hd..][..hd]).copied().collect()
        };
        let (mut queries, output_gate) = (of_heads(0), of_heads(1)); // [tokens, heads, hd]
        let mut keys = self.k_proj.forward(x)?;
        let values = self.v_proj.forward(x)?;
        self.q_norm.apply(&mut queries);
        self.k_norm.apply(&mut keys);

        let tokens = queries.len() / width / streams.len();
        let kv_width = self.kv_heads * hd;
        let mut angles = Angles::default();
        for (s, (memory, position)) in streams.iter_mut().enumerate() {
            for t in 0..tokens {
                self.rope.angles(*position + t, &mut angles);
                let rotate = |head: &mut [f32]| self.rope.rotate(&angles, head);
                let row = s * tokens + t;
                queries[row * width..][..width].chunks_exact_mut(hd).for_each(rotate);
                keys[row * kv_width..][..kv_width].chunks_exact_mut(hd).for_each(rotate);
                for (new, kept) in [(&keys, &mut memory.keys), (&values, &mut memory.values)] {
                    let heads = new[row * kv_width..][..kv_width].chunks_exact(hd);
                    heads.zip(kept).for_each(|(head, kept)| kept.extend_from_slice(head));
                }
            }
        }

        let streams = &*streams;
        let mut mixed = vec![0.0; queries.len()];
        mixed.par_chunks_mut(hd).zip(queries.par_chunks(hd)).enumerate().for_each(|(i, (out, query))| {
            let (row, head) = (i / self.heads, i % self.heads);
            let (memory, position) = &streams[row / tokens];
            let kv_head = head / (self.heads / self.kv_heads);
            let seen = (position + row % tokens + 1) * hd;
            let (keys, values) = (&memory.keys[kv_head][..seen], &memory.values[kv_head][..seen]);
            Arch::new().dispatch(
                #[inline(always)]
                || self.attend(query, keys, values, out),
            );
        });
        let round = |x| self.precision.round(x);
        ops::zip(&mut mixed, &output_gate, |x, gate| round(round(x) * round(sigmoid(gate))));
        self.o_proj.forward(&Input::new(mixed, width))
    }

    /// One query over the keys and values `[position, head dim]` that it may see.
    #[inline(always)]
    fn attend(&self, query: &[f32], keys: &[f32], values: &[f32], out: &mut [f32]) {
        #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        let mut weights = vec![0.0; keys.len() / self.head_dim];
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(self.head_dim)) {
            *weight = dot(query, key) * scale;
        }
        softmax(&mut weights);
        for (value, &weight) in values.chunks_exact(self.head_dim).zip(&weights) {
            add_scaled(out, weight, value);
        }
    }
}
