//! The mixer of a `linear_attention` layer: projections, short convolution, gated delta rule, gated norm.

use std::ops::Range;

use rayon::prelude::*;

use super::conv::ShortConv;
use super::delta_chunks::{Tokens, chunked};
use super::delta_step::step;
use super::linear::{Input, Linear};
use super::norm::GatedRmsNorm;
use super::ops;
use super::source::Source;
use crate::activation::{sigmoid, softplus};
use crate::config::Config;
use crate::delta_rule::{Token, l2_normalize};
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
        let Dims { value_heads, dk, dv, .. } = self.dims;
        LinearMemory { history: vec![0.0; self.conv.history_len()], state: vec![0.0; value_heads * dk * dv] }
    }

    /// `[tokens, hidden]` to the same, where every stream has as many tokens, one stream after the other.
    pub(crate) fn forward(&self, x: &Input, streams: &mut [&mut LinearMemory], path: Path) -> Result<Vec<f32>, Error> {
        let Dims { value_heads, dv, .. } = self.dims;
        let inputs = self.in_proj_qkv.forward(x)?;
        let z = self.in_proj_z.forward(x)?;
        let mut betas = self.in_proj_b.forward(x)?; // [tokens, value heads]
        ops::map(&mut betas, |b| self.precision.round(sigmoid(b)));
        let mut log_decays = self.in_proj_a.forward(x)?;
        for of_token in log_decays.chunks_exact_mut(value_heads) {
            for ((g, &speed), &bias) in of_token.iter_mut().zip(&self.speeds).zip(&self.dt_bias) {
                *g = speed * softplus(*g + bias);
            }
        }
        let mut o = vec![0.0; z.len()];
        let each = |all: usize| all / streams.len();
        let (of_qkv, of_scalars, of_o) = (each(inputs.len()), each(betas.len()), each(o.len()));
        let work = streams.par_iter_mut().zip(inputs.par_chunks(of_qkv)).zip(o.par_chunks_mut(of_o));
        work.zip(log_decays.par_chunks(of_scalars)).zip(betas.par_chunks(of_scalars)).for_each(
            |((((memory, inputs), o), log_decays), betas)| {
                let mut qkv = vec![0.0; inputs.len()];
                self.conv.forward(inputs, &mut memory.history, &mut qkv);
                let heads = Heads { qkv: &qkv, log_decays, betas };
                match path {
                    Path::Recurrent => self.by_token(&heads, &mut memory.state, o),
                    Path::Chunked => self.by_chunks(&heads, &mut memory.state, o),
                }
            },
        );
        self.norm.apply(&mut o, &z);
        self.out_proj.forward(&Input::new(o, value_heads * dv))
    }

    /// One token: its row of queries, keys and values is short enough to be cut up in place. `o` is `[value heads, dv]`.
    fn by_token(&self, heads: &Heads<'_>, state: &mut [f32], o: &mut [f32]) {
        let Dims { value_heads, dk, dv, .. } = self.dims;
        let of_head = |head: usize, state: &mut [f32], o: &mut [f32]| {
            let [query, key, value] = self.places(head);
            let (mut query, mut key) = (heads.qkv[query].to_vec(), heads.qkv[key].to_vec());
            l2_normalize(&mut query);
            l2_normalize(&mut key);
            let root = self.root();
            query.iter_mut().for_each(|q| *q /= root);
            let (decay, beta) = (heads.log_decays[head].exp(), heads.betas[head]);
            let token = Token { query: &query, key: &key, value: &heads.qkv[value], decay, beta };
            step(state, token, o);
        };
        debug_assert_eq!(heads.betas.len(), value_heads, "one token");
        let work = state.par_chunks_mut(dk * dv).zip(o.par_chunks_mut(dv)).enumerate();
        work.for_each(|(head, (state, o))| of_head(head, state, o));
    }

    /// Any number of tokens; `o` is `[tokens, value heads, dv]`.
    fn by_chunks(&self, heads: &Heads<'_>, state: &mut [f32], o: &mut [f32]) {
        let Dims { value_heads, dk, dv, .. } = self.dims;
        let of_head = |head: usize, state: &mut [f32]| {
            let [query, key, value] = self.places(head);
            let gather = |place: Range<usize>| -> Vec<f32> {
                heads.qkv.chunks_exact(self.conv_dim()).flat_map(|row| &row[place.clone()]).copied().collect()
            };
            let scalars = |all: &[f32]| -> Vec<f32> { all.iter().skip(head).step_by(value_heads).copied().collect() };
            let (mut queries, mut keys, values) = (gather(query), gather(key), gather(value));
            queries.chunks_exact_mut(dk).chain(keys.chunks_exact_mut(dk)).for_each(l2_normalize);
            // The two ways round the queries differently.
            let root = self.root();
            queries.iter_mut().for_each(|q| *q *= 1.0 / root);
            let (queries, keys, values) = (&queries[..], &keys[..], &values[..]);
            let (log_decays, betas) = (&scalars(heads.log_decays)[..], &scalars(heads.betas)[..]);
            let mut out = vec![0.0; values.len()];
            chunked(state, Tokens { queries, keys, values, log_decays, betas, dk, dv }, &mut out);
            out
        };
        let work = state.par_chunks_mut(dk * dv).enumerate();
        let by_head: Vec<Vec<f32>> = work.map(|(head, state)| of_head(head, state)).collect();
        ops::for_rows(o, value_heads * dv, |token, o| {
            for (o, of_head) in o.chunks_exact_mut(dv).zip(&by_head) {
                o.copy_from_slice(&of_head[token * dv..][..dv]);
            }
        });
    }

    /// Where a token has the query, key and value of a value head.
    fn places(&self, head: usize) -> [Range<usize>; 3] {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        let key_head = head / (value_heads / key_heads);
        let place = |start: usize, width: usize| start..start + width;
        let key_dim = key_heads * dk;
        [place(key_head * dk, dk), place(key_dim + key_head * dk, dk), place(2 * key_dim + head * dv, dv)]
    }

    fn conv_dim(&self) -> usize {
        let Dims { key_heads, value_heads, dk, dv } = self.dims;
        2 * key_heads * dk + value_heads * dv
    }

    #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
    fn root(&self) -> f32 {
        (self.dims.dk as f32).sqrt()
    }
}

/// What the heads of one stream hear.
struct Heads<'a> {
    /// `[tokens, conv_dim]`.
    qkv: &'a [f32],
    /// `[tokens, value heads]`.
    log_decays: &'a [f32],
    /// `[tokens, value heads]`: write strengths.
    betas: &'a [f32],
}
