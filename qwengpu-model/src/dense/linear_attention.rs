//! The mixer of a `linear_attention` layer: projections, short convolution, gated delta rule, gated norm.

use candle_core::Tensor;
use rayon::prelude::*;

use super::conv::ShortConv;
use super::linear::Linear;
use super::norm::GatedRmsNorm;
use super::ops;
use super::source::Source;
use crate::activation::{sigmoid, softplus};
use crate::config::Config;
use crate::delta_rule::{Token, Tokens, chunked, l2_normalize, recurrent_step};
use crate::engine::Precision;
use crate::error::Error;
use crate::names::in_layer;

/// What a linear layer remembers.
#[derive(Debug, Clone)]
pub(crate) struct LinearMemory {
    /// `[kernel, conv_dim]`: the convolution's last inputs.
    pub(crate) history: Vec<f32>,
    /// `[value heads, dk, dv]`.
    pub(crate) state: Vec<f32>,
}

/// Which of the two ways through the delta rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// A token at a time.
    Recurrent,
    /// Chunks of 64.
    Chunked,
}

#[derive(Debug, Clone)]
pub(crate) struct LinearAttention {
    in_proj_qkv: Linear,
    in_proj_z: Linear,
    in_proj_b: Linear,
    in_proj_a: Linear,
    conv: ShortConv,
    /// `-exp(A_log)` of each value head.
    speeds: Vec<f32>,
    dt_bias: Vec<f32>,
    norm: GatedRmsNorm,
    out_proj: Linear,
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

impl LinearAttention {
    pub(crate) fn load(source: &Source<'_>, layer: usize) -> Result<Self, Error> {
        let config: &Config = source.config;
        let (d, conv, value) = (config.hidden_size, config.conv_dim(), config.value_dim());
        let heads = config.linear_num_value_heads;
        let name = |rest: &str| in_layer(layer, rest);
        let linear = |rest: &str, rows, cols| Linear::load(source, &name(rest), rows, cols);
        let a_log = source.vector(&name("linear_attn.A_log"), heads)?;
        let kernel = config.linear_conv_kernel_dim;
        Ok(Self {
            in_proj_qkv: linear("linear_attn.in_proj_qkv.weight", conv, d)?,
            in_proj_z: linear("linear_attn.in_proj_z.weight", value, d)?,
            in_proj_b: linear("linear_attn.in_proj_b.weight", heads, d)?,
            in_proj_a: linear("linear_attn.in_proj_a.weight", heads, d)?,
            conv: ShortConv::load(source, &name("linear_attn.conv1d.weight"), conv, kernel)?,
            speeds: a_log.into_iter().map(|a_log| -a_log.exp()).collect(),
            dt_bias: source.vector(&name("linear_attn.dt_bias"), heads)?,
            norm: GatedRmsNorm::load(source, &name("linear_attn.norm.weight"), config.linear_value_head_dim)?,
            out_proj: linear("linear_attn.out_proj.weight", d, value)?,
            dims: Dims {
                key_heads: config.linear_num_key_heads,
                value_heads: heads,
                dk: config.linear_key_head_dim,
                dv: config.linear_value_head_dim,
            },
            precision: source.precision,
        })
    }

    pub(crate) fn empty_memory(&self) -> LinearMemory {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        let conv_dim = 2 * key_heads * dk + value_heads * dv;
        LinearMemory { history: vec![0.0; self.conv.kernel() * conv_dim], state: vec![0.0; value_heads * dk * dv] }
    }

    /// `[tokens, hidden]` to the same.
    pub(crate) fn forward(&self, x: &Tensor, memory: &mut LinearMemory, path: Path) -> Result<Tensor, Error> {
        let tokens = x.dim(0)?;
        let Dims { value_heads, dv, .. } = self.dims;
        let qkv = self.conv.forward(&self.in_proj_qkv.forward(x)?, &mut memory.history)?;
        let z = self.in_proj_z.forward(x)?.reshape((tokens * value_heads, dv))?;
        let betas = ops::map(&self.in_proj_b.forward(x)?, |b| self.precision.round(sigmoid(b)))?;
        let betas = ops::to_vec(&betas)?; // [tokens, value heads]
        let mut log_decays = ops::to_vec(&self.in_proj_a.forward(x)?)?;
        for of_token in log_decays.chunks_exact_mut(value_heads) {
            for ((g, &speed), &bias) in of_token.iter_mut().zip(&self.speeds).zip(&self.dt_bias) {
                *g = speed * softplus(*g + bias);
            }
        }
        let o = self.delta_rule(&ops::to_vec(&qkv)?, &log_decays, &betas, &mut memory.state, path);
        let o = ops::tensor(o, tokens * value_heads, dv)?;
        let gated = self.norm.forward(o, &z)?.reshape((tokens, value_heads * dv))?;
        self.out_proj.forward(&gated)
    }

    /// `qkv` is `[tokens, conv_dim]`, decays and strengths `[tokens, value heads]`; returns `[tokens, value heads, dv]`.
    fn delta_rule(&self, qkv: &[f32], log_decays: &[f32], betas: &[f32], state: &mut [f32], path: Path) -> Vec<f32> {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        let tokens = betas.len() / value_heads;
        let (key_dim, conv_dim) = (key_heads * dk, 2 * key_heads * dk + value_heads * dv);
        #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
        let root = (dk as f32).sqrt();
        let of_head = |head: usize, state: &mut [f32]| {
            let key_head = head / (value_heads / key_heads);
            let gather = |start: usize, width: usize| -> Vec<f32> {
                qkv.chunks_exact(conv_dim).flat_map(|row| &row[start..start + width]).copied().collect()
            };
            let scalars = |all: &[f32]| -> Vec<f32> { all.iter().skip(head).step_by(value_heads).copied().collect() };
            let mut queries = gather(key_head * dk, dk);
            let mut keys = gather(key_dim + key_head * dk, dk);
            let values = gather(2 * key_dim + head * dv, dv);
            queries.chunks_exact_mut(dk).chain(keys.chunks_exact_mut(dk)).for_each(l2_normalize);
            // The two ways round the queries differently.
            match path {
                Path::Chunked => queries.iter_mut().for_each(|q| *q *= 1.0 / root),
                Path::Recurrent => queries.iter_mut().for_each(|q| *q /= root),
            }
            let (log_decays, betas) = (scalars(log_decays), scalars(betas));
            let mut out = vec![0.0; tokens * dv];
            match path {
                Path::Chunked => {
                    let (queries, keys, values) = (&queries[..], &keys[..], &values[..]);
                    let (log_decays, betas) = (&log_decays[..], &betas[..]);
                    chunked(state, Tokens { queries, keys, values, log_decays, betas, dk, dv }, &mut out);
                }
                Path::Recurrent => {
                    let vectors = queries.chunks_exact(dk).zip(keys.chunks_exact(dk)).zip(values.chunks_exact(dv));
                    let scalars = log_decays.iter().zip(&betas);
                    for ((((query, key), value), (g, &beta)), out) in vectors.zip(scalars).zip(out.chunks_mut(dv)) {
                        recurrent_step(state, Token { query, key, value, decay: g.exp(), beta }, out);
                    }
                }
            }
            out
        };
        let by_head: Vec<Vec<f32>> =
            state.par_chunks_mut(dk * dv).enumerate().map(|(head, state)| of_head(head, state)).collect();
        let mut all = Vec::with_capacity(tokens * value_heads * dv);
        for t in 0..tokens {
            for out in &by_head {
                all.extend_from_slice(&out[t * dv..(t + 1) * dv]);
            }
        }
        all
    }
}
