//! The model's dimensions and settings, as `config.json` gives them.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::error::{ConfigError, Error, LoadError};

/// What mixes tokens in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerType {
    /// Gated `DeltaNet`: a recurrent state of fixed size.
    LinearAttention,
    /// Softmax attention over all tokens so far.
    FullAttention,
}

impl fmt::Display for LayerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LinearAttention => "linear_attention",
            Self::FullAttention => "full_attention",
        })
    }
}

/// A Qwen3.5 text model's dimensions and settings; fields are named as in `config.json`.
///
/// Call [`validate`](Self::validate) after filling one by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Rows of both embeddings.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Neurons of each MLP.
    pub intermediate_size: usize,
    /// One entry for each layer.
    pub layer_types: Vec<LayerType>,
    /// Query heads of a full-attention layer.
    pub num_attention_heads: usize,
    /// Key and value heads of a full-attention layer; divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// Dimension of a full-attention head.
    pub head_dim: usize,
    /// Query and key heads of a linear layer.
    pub linear_num_key_heads: usize,
    /// Value heads of a linear layer; a multiple of `linear_num_key_heads`.
    pub linear_num_value_heads: usize,
    /// Dimension of a linear layer's query or key head: rows of a recurrent state.
    pub linear_key_head_dim: usize,
    /// Dimension of a linear layer's value head: columns of a recurrent state.
    pub linear_value_head_dim: usize,
    /// Taps of the short convolution, this token's included.
    pub linear_conv_kernel_dim: usize,
    /// Added to the mean of squares in every norm.
    pub rms_norm_eps: f64,
    /// Base of the rotary angles.
    pub rope_theta: f64,
    /// Share of `head_dim` that is rotated.
    pub partial_rotary_factor: f64,
    /// Whether `lm_head` is the embedding.
    pub tie_word_embeddings: bool,
    /// Ids that end a generation; from `generation_config.json` where there is one.
    pub eos_token_ids: Vec<u32>,
}

impl Config {
    /// Reads the text of a `config.json`: a text model's, or a multimodal one's with a `text_config`.
    ///
    /// Unknown fields are ignored; missing ones take the defaults of the model family where it has any.
    ///
    /// # Errors
    /// If the text isn't JSON, is another architecture's, or asks for something that isn't implemented.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let outer: OuterConfig = serde_json::from_str(text)?;
        let tied_outside = outer.tie_word_embeddings;
        let eos_outside = outer.eos_token_id;
        let text: TextConfig = match (outer.model_type.as_str(), outer.text_config) {
            ("qwen3_5", Some(inner)) => serde_json::from_value(inner)?,
            ("qwen3_5_text", None) => serde_json::from_str(text)?,
            _ => return Err(ConfigError::Architecture { got: outer.model_type }),
        };
        text.into_config(tied_outside, eos_outside)
    }

    /// Reads `config.json` in `dir`, and the end-of-text ids of `generation_config.json` if it is there.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), or if a file can't be read.
    pub fn from_dir(dir: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path).map_err(|source| LoadError::Io { path, source })
        };
        let mut config = Self::from_json(&read("config.json")?)?;
        if dir.join("generation_config.json").exists() {
            let text = read("generation_config.json")?;
            let generation: GenerationConfig = serde_json::from_str(&text).map_err(ConfigError::from)?;
            if let Some(ids) = generation.eos_token_id {
                config.eos_token_ids = ids.into_vec();
            }
        }
        Ok(config)
    }

    /// Checks that dimensions are positive and fit each other.
    ///
    /// # Errors
    /// Names the first field that doesn't.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.layer_types.len()),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("linear_num_key_heads", self.linear_num_key_heads),
            ("linear_num_value_heads", self.linear_num_value_heads),
            ("linear_key_head_dim", self.linear_key_head_dim),
            ("linear_value_head_dim", self.linear_value_head_dim),
            ("linear_conv_kernel_dim", self.linear_conv_kernel_dim),
        ];
        const LARGEST: usize = 1 << 24; // so that no product of two dimensions overflows
        for (field, got) in positive {
            if got == 0 || got > LARGEST {
                let expected = format!("1 to {LARGEST}");
                return Err(ConfigError::Invalid { field, got: got.to_string(), expected });
            }
        }
        let multiple = |field, value: usize, of_field: &str, of: usize| match value % of {
            0 => Ok(()),
            _ => {
                let expected = format!("a multiple of {of_field} = {of}");
                Err(ConfigError::Invalid { field, got: value.to_string(), expected })
            }
        };
        multiple("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.num_key_value_heads)?;
        let (key_heads, value_heads) = (self.linear_num_key_heads, self.linear_num_value_heads);
        multiple("linear_num_value_heads", value_heads, "linear_num_key_heads", key_heads)?;
        let real = [
            ("rms_norm_eps", self.rms_norm_eps, self.rms_norm_eps > 0.0 && self.rms_norm_eps < 1.0),
            ("rope_theta", self.rope_theta, self.rope_theta > 0.0 && self.rope_theta.is_finite()),
            (
                "partial_rotary_factor",
                self.partial_rotary_factor,
                (0.0..=1.0).contains(&self.partial_rotary_factor) && self.rotary_dim().is_multiple_of(2),
            ),
        ];
        for (field, got, fits) in real {
            if !fits {
                let expected = match field {
                    "partial_rotary_factor" => "0 to 1, with an even number of rotated dimensions".to_owned(),
                    "rms_norm_eps" => "between 0 and 1".to_owned(),
                    _ => "a positive number".to_owned(),
                };
                return Err(ConfigError::Invalid { field, got: got.to_string(), expected });
            }
        }
        Ok(())
    }

    /// Number of layers.
    #[must_use]
    pub fn num_hidden_layers(&self) -> usize {
        self.layer_types.len()
    }

    /// Width of all query heads of a linear layer, and of all key heads.
    #[must_use]
    pub fn key_dim(&self) -> usize {
        self.linear_num_key_heads * self.linear_key_head_dim
    }

    /// Width of all value heads of a linear layer.
    #[must_use]
    pub fn value_dim(&self) -> usize {
        self.linear_num_value_heads * self.linear_value_head_dim
    }

    /// Channels of the short convolution: queries, keys, values.
    #[must_use]
    pub fn conv_dim(&self) -> usize {
        2 * self.key_dim() + self.value_dim()
    }

    /// Values of one head's recurrent state.
    #[must_use]
    pub fn state_len(&self) -> usize {
        self.linear_key_head_dim * self.linear_value_head_dim
    }

    /// Bytes that the linear layers remember of a stream, recurrent states and convolutions; full attention comes on top
    /// with every token.
    #[must_use]
    pub fn recurrent_bytes(&self) -> usize {
        let linear = self.layer_types.iter().filter(|&&kind| kind == LayerType::LinearAttention).count();
        let values = self.linear_num_value_heads * self.state_len() + self.conv_dim() * self.linear_conv_kernel_dim;
        linear * values * size_of::<f32>()
    }

    /// Dimensions of a full-attention head that are rotated.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounds towards zero as the model family does, between 0 and head_dim"
    )]
    pub fn rotary_dim(&self) -> usize {
        (self.head_dim as f64 * self.partial_rotary_factor) as usize
    }
}

/// What both levels of a configuration are asked for first.
#[derive(Deserialize)]
struct OuterConfig {
    #[serde(default)]
    model_type: String,
    text_config: Option<serde_json::Value>,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<TokenIds>,
}

#[derive(Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<TokenIds>,
}

/// One id or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum TokenIds {
    One(u32),
    Many(Vec<u32>),
}

impl TokenIds {
    fn into_vec(self) -> Vec<u32> {
        match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        }
    }
}

/// The file's fields, before defaults and checks.
#[derive(Deserialize)]
struct TextConfig {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    head_dim: Option<usize>,
    linear_num_key_heads: usize,
    linear_num_value_heads: usize,
    linear_key_head_dim: Option<usize>,
    linear_value_head_dim: Option<usize>,
    linear_conv_kernel_dim: Option<usize>,
    layer_types: Option<Vec<String>>,
    full_attention_interval: Option<usize>,
    rms_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    attention_bias: Option<bool>,
    attn_output_gate: Option<bool>,
    mamba_ssm_dtype: Option<String>,
    rope_parameters: Option<RopeParameters>,
    rope_theta: Option<f64>,
    partial_rotary_factor: Option<f64>,
    tie_word_embeddings: Option<bool>,
    eos_token_id: Option<TokenIds>,
}

#[derive(Deserialize, Default)]
struct RopeParameters {
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    partial_rotary_factor: Option<f64>,
}

impl TextConfig {
    fn into_config(self, tied_outside: Option<bool>, eos_outside: Option<TokenIds>) -> Result<Config, ConfigError> {
        let layer_types = self.layer_types()?;
        let rope = self.rope_parameters.unwrap_or_default();
        let supported = [
            ("hidden_act", self.hidden_act, "silu"),
            ("attention_bias", self.attention_bias.map(|v| v.to_string()), "false"),
            ("attn_output_gate", self.attn_output_gate.map(|v| v.to_string()), "true"),
            ("mamba_ssm_dtype", self.mamba_ssm_dtype, "float32"),
            ("rope_parameters.rope_type", rope.rope_type, "default"),
        ];
        for (field, got, expected) in supported {
            if let Some(got) = got.filter(|got| got != expected) {
                return Err(ConfigError::Unsupported { field, got, expected });
            }
        }
        let config = Config {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            intermediate_size: self.intermediate_size,
            layer_types,
            num_attention_heads: self.num_attention_heads,
            num_key_value_heads: self.num_key_value_heads,
            head_dim: self.head_dim.unwrap_or(256),
            linear_num_key_heads: self.linear_num_key_heads,
            linear_num_value_heads: self.linear_num_value_heads,
            linear_key_head_dim: self.linear_key_head_dim.unwrap_or(128),
            linear_value_head_dim: self.linear_value_head_dim.unwrap_or(128),
            linear_conv_kernel_dim: self.linear_conv_kernel_dim.unwrap_or(4),
            rms_norm_eps: self.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: rope.rope_theta.or(self.rope_theta).unwrap_or(1e7),
            partial_rotary_factor: rope.partial_rotary_factor.or(self.partial_rotary_factor).unwrap_or(0.25),
            tie_word_embeddings: self.tie_word_embeddings.or(tied_outside).unwrap_or(false),
            eos_token_ids: self.eos_token_id.or(eos_outside).map(TokenIds::into_vec).unwrap_or_default(),
        };
        config.validate()?;
        Ok(config)
    }

    fn layer_types(&self) -> Result<Vec<LayerType>, ConfigError> {
        let Some(names) = &self.layer_types else {
            let interval = self.full_attention_interval.unwrap_or(4);
            if interval == 0 {
                let expected = "at least 1".to_owned();
                return Err(ConfigError::Invalid { field: "full_attention_interval", got: "0".to_owned(), expected });
            }
            if self.num_hidden_layers > 1 << 16 {
                let (field, got) = ("num_hidden_layers", self.num_hidden_layers.to_string());
                return Err(ConfigError::Invalid { field, got, expected: "at most 65536".to_owned() });
            }
            return Ok((1..=self.num_hidden_layers)
                .map(|n| if n % interval == 0 { LayerType::FullAttention } else { LayerType::LinearAttention })
                .collect());
        };
        if names.len() != self.num_hidden_layers {
            let expected = format!("as many entries as num_hidden_layers = {}", self.num_hidden_layers);
            return Err(ConfigError::Invalid {
                field: "layer_types",
                got: format!("{} entries", names.len()),
                expected,
            });
        }
        names
            .iter()
            .map(|name| match name.as_str() {
                "linear_attention" => Ok(LayerType::LinearAttention),
                "full_attention" => Ok(LayerType::FullAttention),
                _ => Err(ConfigError::Unsupported {
                    field: "layer_types",
                    got: name.clone(),
                    expected: "linear_attention or full_attention",
                }),
            })
            .collect()
    }
}
