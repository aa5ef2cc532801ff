//! A base's `config.json`: what the merge must know of it, and the fields that are carried over.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::BaseError;
use crate::names::CONFIG_FILE;

/// The only `rms_norm_eps` that the widening is proven for.
pub(crate) const NORM_EPS: f64 = 1e-6;
/// The largest dimension, so that no product of two overflows.
const LARGEST: usize = 1 << 24;
/// The most layers that are read from a file that names no layer.
const MOST_LAYERS: usize = 1 << 12;

/// What mixes tokens in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mixer {
    /// Gated `DeltaNet`.
    Linear,
    /// Softmax attention.
    Full,
}

impl Mixer {
    /// The name in `layer_types`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear_attention",
            Self::Full => "full_attention",
        }
    }
}

/// Sizes and settings of a base.
#[derive(Clone, Debug)]
pub(crate) struct BaseConfig {
    /// All fields of the text model.
    pub(crate) fields: Map<String, Value>,
    pub(crate) vocab_size: usize,
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    /// One for each layer.
    pub(crate) mixers: Vec<Mixer>,
    pub(crate) attention_heads: usize,
    pub(crate) attention_kv_heads: usize,
    pub(crate) attention_head_dim: usize,
    pub(crate) key_heads: usize,
    pub(crate) value_heads: usize,
    pub(crate) key_dim: usize,
    pub(crate) value_dim: usize,
    pub(crate) conv_kernel: usize,
    pub(crate) tied: bool,
}

/// The fields that are looked at; others are carried over as they are.
#[derive(Deserialize)]
struct TextFields {
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
    tie_word_embeddings: Option<bool>,
}

impl BaseConfig {
    /// Reads the file in `dir`: a text model's, or a multimodal one's with a `text_config`.
    pub(crate) fn read(dir: &Path) -> Result<Self, BaseError> {
        let path = dir.join(CONFIG_FILE);
        let outer: Map<String, Value> = super::base::read_json(&path, "it names the sizes of the model")?;
        let model_type = outer.get("model_type").and_then(Value::as_str).unwrap_or_default();
        let fields = match (model_type, outer.get("text_config")) {
            ("qwen3_5", Some(Value::Object(inner))) => {
                // What the text model doesn't say for itself holds for it, too.
                let mut fields = inner.clone();
                for name in ["tie_word_embeddings", "eos_token_id", "bos_token_id", "pad_token_id", "dtype"] {
                    if let (Some(value), None) = (outer.get(name), fields.get(name).filter(|value| !value.is_null())) {
                        fields.insert(name.to_owned(), value.clone());
                    }
                }
                fields
            }
            ("qwen3_5_text", None) => outer,
            _ => return Err(BaseError::Architecture { path, got: model_type.to_owned() }),
        };
        Self::from_fields(&path, fields)
    }

    fn from_fields(path: &Path, fields: Map<String, Value>) -> Result<Self, BaseError> {
        let json = |source| BaseError::Json { path: path.to_owned(), source };
        let text: TextFields = serde_json::from_value(Value::Object(fields.clone())).map_err(json)?;
        let setting = |field, got: String, expected: &str| {
            Err(BaseError::Setting { path: path.to_owned(), field, got, expected: expected.to_owned() })
        };
        let key_dim = text.linear_key_head_dim.unwrap_or(128);
        let value_dim = text.linear_value_head_dim.unwrap_or(128);
        let conv_kernel = text.linear_conv_kernel_dim.unwrap_or(4);
        let head_dim = text.head_dim.unwrap_or(256);
        for (field, got) in [
            ("vocab_size", text.vocab_size),
            ("hidden_size", text.hidden_size),
            ("intermediate_size", text.intermediate_size),
            ("num_hidden_layers", text.num_hidden_layers),
            ("num_attention_heads", text.num_attention_heads),
            ("num_key_value_heads", text.num_key_value_heads),
            ("head_dim", head_dim),
            ("linear_num_key_heads", text.linear_num_key_heads),
            ("linear_num_value_heads", text.linear_num_value_heads),
        ] {
            if got == 0 || got > LARGEST {
                return setting(field, got.to_string(), "1 to 2^24");
            }
        }
        for (field, got, expected) in [
            ("linear_key_head_dim", key_dim, 128),
            ("linear_value_head_dim", value_dim, 128),
            ("linear_conv_kernel_dim", conv_kernel, 4),
        ] {
            if got != expected {
                return setting(field, got.to_string(), &expected.to_string());
            }
        }
        let eps = text.rms_norm_eps.unwrap_or(NORM_EPS);
        if eps.to_bits() != NORM_EPS.to_bits() {
            return setting("rms_norm_eps", eps.to_string(), "1e-6");
        }
        for (field, got, expected) in [
            ("hidden_act", text.hidden_act.clone(), "silu"),
            ("attention_bias", text.attention_bias.map(|value| value.to_string()), "false"),
            ("attn_output_gate", text.attn_output_gate.map(|value| value.to_string()), "true"),
        ] {
            if let Some(got) = got.filter(|got| got != expected) {
                return setting(field, got, expected);
            }
        }
        if fields.get("quantization_config").is_some_and(|value| !value.is_null()) {
            return setting("quantization_config", "set".to_owned(), "a base that is not quantised");
        }
        if !text.linear_num_value_heads.is_multiple_of(text.linear_num_key_heads) {
            let expected = format!("a multiple of linear_num_key_heads = {}", text.linear_num_key_heads);
            return setting("linear_num_value_heads", text.linear_num_value_heads.to_string(), &expected);
        }
        Ok(Self {
            mixers: mixers(path, &text)?,
            vocab_size: text.vocab_size,
            hidden: text.hidden_size,
            intermediate: text.intermediate_size,
            attention_heads: text.num_attention_heads,
            attention_kv_heads: text.num_key_value_heads,
            attention_head_dim: head_dim,
            key_heads: text.linear_num_key_heads,
            value_heads: text.linear_num_value_heads,
            key_dim,
            value_dim,
            conv_kernel,
            tied: text.tie_word_embeddings.unwrap_or(false),
            fields,
        })
    }

    /// Rows of `in_proj_qkv`.
    pub(crate) fn qkv_rows(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }

    /// Width of all value heads.
    pub(crate) fn value_rows(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Value heads of a key head.
    pub(crate) fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }
}

fn mixers(path: &Path, text: &TextFields) -> Result<Vec<Mixer>, BaseError> {
    let setting =
        |field, got: String, expected: String| BaseError::Setting { path: path.to_owned(), field, got, expected };
    let count = text.num_hidden_layers;
    if count > MOST_LAYERS {
        return Err(setting("num_hidden_layers", count.to_string(), format!("at most {MOST_LAYERS}")));
    }
    let Some(names) = &text.layer_types else {
        let interval = text.full_attention_interval.unwrap_or(4);
        if interval == 0 {
            return Err(setting("full_attention_interval", "0".to_owned(), "at least 1".to_owned()));
        }
        let mixer = |number: usize| if number.is_multiple_of(interval) { Mixer::Full } else { Mixer::Linear };
        return Ok((1..=count).map(mixer).collect());
    };
    if names.len() != count {
        let expected = format!("as many entries as num_hidden_layers = {count}");
        return Err(setting("layer_types", format!("a list of {}", names.len()), expected));
    }
    names
        .iter()
        .map(|name| match name.as_str() {
            "linear_attention" => Ok(Mixer::Linear),
            "full_attention" => Ok(Mixer::Full),
            _ => Err(setting("layer_types", name.clone(), "linear_attention or full_attention".to_owned())),
        })
        .collect()
}
