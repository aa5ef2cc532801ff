//! All weights of a model, sparse: the way in without a checkpoint on disk.

use std::path::Path;

use crate::config::{Config, LayerType};
use crate::error::{Error, MatrixError};
use crate::load::{Checkpoint, TensorValues};
use crate::matrix::SparseMatrix;
use crate::names::{EMBED_TOKENS, FINAL_NORM, LM_HEAD, TEXT_PREFIX, in_layer, tensor_specs};
use crate::part::{Part, View};

/// The weights of a model. Shapes follow from the configuration; each is given as a checkpoint has it.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseWeights {
    /// Dimensions and settings.
    pub config: Config,
    /// `[vocab, hidden]`: the residual stream a token starts with.
    pub embed_tokens: SparseMatrix,
    /// `[vocab, hidden]`, or `None` when it is the embedding.
    pub lm_head: Option<SparseMatrix>,
    /// `[hidden]`: the final norm multiplies by one plus this.
    pub norm: Vec<f32>,
    /// One for each layer.
    pub layers: Vec<LayerWeights>,
}

/// The weights of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerWeights {
    /// `[hidden]`: the norm in front of the mixer multiplies by one plus this.
    pub input_layernorm: Vec<f32>,
    /// What mixes tokens.
    pub mixer: MixerWeights,
    /// `[hidden]`: the norm in front of the MLP multiplies by one plus this.
    pub post_attention_layernorm: Vec<f32>,
    /// `[intermediate, hidden]`: into the `SiLU`.
    pub gate_proj: SparseMatrix,
    /// `[intermediate, hidden]`: what the `SiLU` is multiplied by.
    pub up_proj: SparseMatrix,
    /// `[hidden, intermediate]`: back to the residual stream.
    pub down_proj: SparseMatrix,
}

/// The weights of a layer's mixer.
#[derive(Debug, Clone, PartialEq)]
pub enum MixerWeights {
    /// Of a `linear_attention` layer.
    Linear(LinearAttentionWeights),
    /// Of a `full_attention` layer.
    Full(FullAttentionWeights),
}

/// The weights of a gated `DeltaNet`.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearAttentionWeights {
    /// `[conv_dim, hidden]`: queries, keys, values, each head after head.
    pub in_proj_qkv: SparseMatrix,
    /// `[value_dim, hidden]`: the output gate.
    pub in_proj_z: SparseMatrix,
    /// `[value heads, hidden]`: the write strength, before a sigmoid.
    pub in_proj_b: SparseMatrix,
    /// `[value heads, hidden]`: the decay, before a softplus.
    pub in_proj_a: SparseMatrix,
    /// `[conv_dim, kernel]`: the short convolution's taps, this token's last.
    pub conv1d: SparseMatrix,
    /// `[value heads]`: log of the decay's speed.
    pub a_log: Vec<f32>,
    /// `[value heads]`: added in front of the softplus.
    pub dt_bias: Vec<f32>,
    /// `[value head dim]`: the gated norm multiplies by this.
    pub norm: Vec<f32>,
    /// `[hidden, value_dim]`: back to the residual stream.
    pub out_proj: SparseMatrix,
}

/// The weights of a softmax attention.
#[derive(Debug, Clone, PartialEq)]
pub struct FullAttentionWeights {
    /// `[2 * heads * head dim, hidden]`: for each head its query, then its output gate.
    pub q_proj: SparseMatrix,
    /// `[kv heads * head dim, hidden]`.
    pub k_proj: SparseMatrix,
    /// `[kv heads * head dim, hidden]`.
    pub v_proj: SparseMatrix,
    /// `[hidden, heads * head dim]`: back to the residual stream.
    pub o_proj: SparseMatrix,
    /// `[head dim]`: the queries' norm multiplies by one plus this.
    pub q_norm: Vec<f32>,
    /// `[head dim]`: the keys' norm multiplies by one plus this.
    pub k_norm: Vec<f32>,
}

/// A tensor of either kind, by reference.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TensorRef<'a> {
    Matrix(&'a SparseMatrix),
    Vector(&'a [f32]),
}

impl SparseWeights {
    /// A model whose tensors are all zero, of the right shapes.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn zeros(config: Config) -> Result<Self, Error> {
        config.validate()?;
        Self::build(config, |_, rows, cols| Ok(SparseMatrix::zeros(rows, cols)), |_, len| vec![0.0; len])
    }

    /// Reads a checkpoint directory tensor by tensor and keeps what isn't zero.
    ///
    /// # Errors
    /// If a file can't be read, or a tensor is missing, unexpected, of another shape or dtype, or not finite.
    pub fn from_dir(dir: &Path) -> Result<Self, Error> {
        let config = Config::from_dir(dir)?;
        let checkpoint = Checkpoint::open(dir, &config)?;
        Self::read(&View::whole(&checkpoint, &config))
    }

    /// Reads a part of a checkpoint directory, in its full widths.
    ///
    /// # Errors
    /// As [`from_dir`](Self::from_dir), or if the checkpoint has no such part.
    pub fn from_part(dir: &Path, part: &Part) -> Result<Self, Error> {
        let whole = Config::from_dir(dir)?;
        let checkpoint = Checkpoint::open(dir, &whole)?;
        let part = Part { widths: None, ..part.clone() };
        let config = part.config(&whole)?;
        Self::read(&View::part(&checkpoint, &whole, &part, &config))
    }

    fn read(view: &View<'_>) -> Result<Self, Error> {
        Self::build(
            view.config().clone(),
            |name, rows, cols| {
                let Some(slice) = view.get(name) else { return Ok(SparseMatrix::zeros(rows, cols)) };
                SparseMatrix::from_nonzeros(rows, cols, |visit| slice.for_each_nonzero(visit))
            },
            |name, _| view.get(name).map(|slice| slice.collect(TensorValues::to_f32)).unwrap_or_default(),
        )
    }

    /// Checks every shape, the mixers' kinds and that all values are finite.
    ///
    /// # Errors
    /// Names the first tensor that doesn't fit.
    pub fn validate(&self) -> Result<(), Error> {
        self.config.validate()?;
        let mismatch = |name: String, expected: &[usize], got: Vec<usize>| {
            Err(Error::WeightShape { name, expected: expected.to_vec(), got })
        };
        if self.layers.len() != self.config.num_hidden_layers() {
            let expected = [self.config.num_hidden_layers()];
            return mismatch(format!("{TEXT_PREFIX}layers"), &expected, vec![self.layers.len()]);
        }
        if self.lm_head.is_some() == self.config.tie_word_embeddings {
            let expected = usize::from(!self.config.tie_word_embeddings) * self.config.vocab_size;
            let got = self.lm_head.as_ref().map_or(0, SparseMatrix::rows);
            return mismatch(
                LM_HEAD.to_owned(),
                &[expected, self.config.hidden_size],
                vec![got, self.config.hidden_size],
            );
        }
        for (layer, (weights, &expected)) in self.layers.iter().zip(&self.config.layer_types).enumerate() {
            if weights.mixer.layer_type() != expected {
                return Err(Error::MixerKind { layer, expected });
            }
        }
        let mut found = self.tensors();
        for spec in tensor_specs(&self.config) {
            // The convolution's weight has a dimension of 1 in a checkpoint.
            let expected: Vec<usize> =
                if spec.shape.len() == 3 { vec![spec.shape[0], spec.shape[2]] } else { spec.shape };
            let got = found.remove(&spec.name).map(TensorRef::shape).unwrap_or_default();
            if expected != got {
                return mismatch(format!("{TEXT_PREFIX}{}", spec.name), &expected, got);
            }
        }
        if let Some(head) = &self.lm_head {
            let expected = [self.config.vocab_size, self.config.hidden_size];
            if [head.rows(), head.cols()] != expected {
                return mismatch(LM_HEAD.to_owned(), &expected, vec![head.rows(), head.cols()]);
            }
        }
        for (name, tensor) in self.tensors() {
            if let TensorRef::Vector(values) = tensor {
                for (row, &value) in (0..).zip(values) {
                    if !value.is_finite() {
                        let source = MatrixError::NotFinite { row, col: 0, value };
                        return Err(Error::Matrix { name: format!("{TEXT_PREFIX}{name}"), source });
                    }
                }
            }
        }
        Ok(())
    }

    /// All tensors but `lm_head`, by name behind the prefix.
    pub(crate) fn tensors(&self) -> std::collections::BTreeMap<String, TensorRef<'_>> {
        use TensorRef::{Matrix, Vector};
        let mut all =
            vec![(EMBED_TOKENS.to_owned(), Matrix(&self.embed_tokens)), (FINAL_NORM.to_owned(), Vector(&self.norm))];
        for (layer, weights) in self.layers.iter().enumerate() {
            let mixer = match &weights.mixer {
                MixerWeights::Linear(w) => vec![
                    ("linear_attn.in_proj_qkv.weight", Matrix(&w.in_proj_qkv)),
                    ("linear_attn.in_proj_z.weight", Matrix(&w.in_proj_z)),
                    ("linear_attn.in_proj_b.weight", Matrix(&w.in_proj_b)),
                    ("linear_attn.in_proj_a.weight", Matrix(&w.in_proj_a)),
                    ("linear_attn.conv1d.weight", Matrix(&w.conv1d)),
                    ("linear_attn.A_log", Vector(&w.a_log)),
                    ("linear_attn.dt_bias", Vector(&w.dt_bias)),
                    ("linear_attn.norm.weight", Vector(&w.norm)),
                    ("linear_attn.out_proj.weight", Matrix(&w.out_proj)),
                ],
                MixerWeights::Full(w) => vec![
                    ("self_attn.q_proj.weight", Matrix(&w.q_proj)),
                    ("self_attn.k_proj.weight", Matrix(&w.k_proj)),
                    ("self_attn.v_proj.weight", Matrix(&w.v_proj)),
                    ("self_attn.o_proj.weight", Matrix(&w.o_proj)),
                    ("self_attn.q_norm.weight", Vector(&w.q_norm)),
                    ("self_attn.k_norm.weight", Vector(&w.k_norm)),
                ],
            };
            let rest = [
                ("input_layernorm.weight", Vector(&weights.input_layernorm)),
                ("post_attention_layernorm.weight", Vector(&weights.post_attention_layernorm)),
                ("mlp.gate_proj.weight", Matrix(&weights.gate_proj)),
                ("mlp.up_proj.weight", Matrix(&weights.up_proj)),
                ("mlp.down_proj.weight", Matrix(&weights.down_proj)),
            ];
            all.extend(mixer.into_iter().chain(rest).map(|(name, tensor)| (in_layer(layer, name), tensor)));
        }
        all.into_iter().collect()
    }

    /// A tensor by its name behind the prefix, or `lm_head.weight`.
    pub(crate) fn get(&self, name: &str) -> Option<TensorRef<'_>> {
        match name {
            LM_HEAD => self.lm_head.as_ref().map(TensorRef::Matrix),
            _ => self.tensors().remove(name),
        }
    }

    /// Asks for every tensor of the configuration by its name behind the prefix.
    fn build(
        config: Config,
        matrix: impl Fn(&str, usize, usize) -> Result<SparseMatrix, MatrixError>,
        vector: impl Fn(&str, usize) -> Vec<f32>,
    ) -> Result<Self, Error> {
        let matrix = |name: &str, rows, cols| {
            matrix(name, rows, cols).map_err(|source| Error::Matrix { name: name.to_owned(), source })
        };
        let (v, d, f) = (config.vocab_size, config.hidden_size, config.intermediate_size);
        let layers = config.layer_types.iter().enumerate().map(|(layer, &layer_type)| {
            let matrix = |name: &str, rows, cols| matrix(&in_layer(layer, name), rows, cols);
            let vector = |name: &str, len| vector(&in_layer(layer, name), len);
            let mixer = match layer_type {
                LayerType::LinearAttention => {
                    let (conv, value, heads) = (config.conv_dim(), config.value_dim(), config.linear_num_value_heads);
                    MixerWeights::Linear(LinearAttentionWeights {
                        in_proj_qkv: matrix("linear_attn.in_proj_qkv.weight", conv, d)?,
                        in_proj_z: matrix("linear_attn.in_proj_z.weight", value, d)?,
                        in_proj_b: matrix("linear_attn.in_proj_b.weight", heads, d)?,
                        in_proj_a: matrix("linear_attn.in_proj_a.weight", heads, d)?,
                        conv1d: matrix("linear_attn.conv1d.weight", conv, config.linear_conv_kernel_dim)?,
                        a_log: vector("linear_attn.A_log", heads),
                        dt_bias: vector("linear_attn.dt_bias", heads),
                        norm: vector("linear_attn.norm.weight", config.linear_value_head_dim),
                        out_proj: matrix("linear_attn.out_proj.weight", d, value)?,
                    })
                }
                LayerType::FullAttention => {
                    let hd = config.head_dim;
                    let (query, kv) = (config.num_attention_heads * hd, config.num_key_value_heads * hd);
                    MixerWeights::Full(FullAttentionWeights {
                        q_proj: matrix("self_attn.q_proj.weight", 2 * query, d)?,
                        k_proj: matrix("self_attn.k_proj.weight", kv, d)?,
                        v_proj: matrix("self_attn.v_proj.weight", kv, d)?,
                        o_proj: matrix("self_attn.o_proj.weight", d, query)?,
                        q_norm: vector("self_attn.q_norm.weight", hd),
                        k_norm: vector("self_attn.k_norm.weight", hd),
                    })
                }
            };
            Ok(LayerWeights {
                input_layernorm: vector("input_layernorm.weight", d),
                mixer,
                post_attention_layernorm: vector("post_attention_layernorm.weight", d),
                gate_proj: matrix("mlp.gate_proj.weight", f, d)?,
                up_proj: matrix("mlp.up_proj.weight", f, d)?,
                down_proj: matrix("mlp.down_proj.weight", d, f)?,
            })
        });
        Ok(Self {
            layers: layers.collect::<Result<_, Error>>()?,
            embed_tokens: matrix(EMBED_TOKENS, v, d)?,
            lm_head: if config.tie_word_embeddings { None } else { Some(matrix(LM_HEAD, v, d)?) },
            norm: vector(FINAL_NORM, d),
            config,
        })
    }
}

impl MixerWeights {
    /// The kind of layer these weights are for.
    #[must_use]
    pub fn layer_type(&self) -> LayerType {
        match self {
            Self::Linear(_) => LayerType::LinearAttention,
            Self::Full(_) => LayerType::FullAttention,
        }
    }
}

impl TensorRef<'_> {
    fn shape(self) -> Vec<usize> {
        match self {
            Self::Matrix(m) => vec![m.rows(), m.cols()],
            Self::Vector(v) => vec![v.len()],
        }
    }
}
