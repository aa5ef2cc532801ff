//! The only home of checkpoint tensor names: every tensor of a configuration, with its shape.

use crate::config::{Config, LayerType};

/// A tensor of the model: its name, without the text model's prefix, and its shape by the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorSpec {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
}

/// Prefix of a text checkpoint's names.
pub(crate) const TEXT_PREFIX: &str = "model.";
/// Prefix of the text model's names in a multimodal checkpoint.
pub(crate) const MULTIMODAL_PREFIX: &str = "model.language_model.";
/// Prefixes of tensors that a text model leaves alone.
pub(crate) const SKIPPED_PREFIXES: [&str; 2] = ["model.visual.", "mtp."];
/// The one name without prefix.
pub(crate) const LM_HEAD: &str = "lm_head.weight";
/// The embedding's name behind the prefix.
pub(crate) const EMBED_TOKENS: &str = "embed_tokens.weight";
/// The final norm's name behind the prefix.
pub(crate) const FINAL_NORM: &str = "norm.weight";

/// Name, behind the prefix, of a layer's tensor.
pub(crate) fn in_layer(layer: usize, rest: &str) -> String {
    format!("layers.{layer}.{rest}")
}

/// All tensors behind the prefix; `lm_head.weight` is not among them.
pub(crate) fn tensor_specs(config: &Config) -> Vec<TensorSpec> {
    let d = config.hidden_size;
    let mut specs = vec![spec(EMBED_TOKENS, &[config.vocab_size, d]), spec(FINAL_NORM, &[d])];
    for (layer, &layer_type) in config.layer_types.iter().enumerate() {
        let mixer = match layer_type {
            LayerType::LinearAttention => linear_specs(config),
            LayerType::FullAttention => full_specs(config),
        };
        let f = config.intermediate_size;
        let rest = [
            spec("input_layernorm.weight", &[d]),
            spec("post_attention_layernorm.weight", &[d]),
            spec("mlp.gate_proj.weight", &[f, d]),
            spec("mlp.up_proj.weight", &[f, d]),
            spec("mlp.down_proj.weight", &[d, f]),
        ];
        specs.extend(mixer.into_iter().chain(rest).map(|s| spec(&in_layer(layer, &s.name), &s.shape)));
    }
    specs
}

fn linear_specs(config: &Config) -> Vec<TensorSpec> {
    let (d, heads) = (config.hidden_size, config.linear_num_value_heads);
    let (conv, value) = (config.conv_dim(), config.value_dim());
    vec![
        spec("linear_attn.in_proj_qkv.weight", &[conv, d]),
        spec("linear_attn.in_proj_z.weight", &[value, d]),
        spec("linear_attn.in_proj_b.weight", &[heads, d]),
        spec("linear_attn.in_proj_a.weight", &[heads, d]),
        spec("linear_attn.conv1d.weight", &[conv, 1, config.linear_conv_kernel_dim]),
        spec("linear_attn.A_log", &[heads]),
        spec("linear_attn.dt_bias", &[heads]),
        spec("linear_attn.norm.weight", &[config.linear_value_head_dim]),
        spec("linear_attn.out_proj.weight", &[d, value]),
    ]
}

fn full_specs(config: &Config) -> Vec<TensorSpec> {
    let (d, hd) = (config.hidden_size, config.head_dim);
    let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    vec![
        spec("self_attn.q_proj.weight", &[2 * heads * hd, d]),
        spec("self_attn.k_proj.weight", &[kv_heads * hd, d]),
        spec("self_attn.v_proj.weight", &[kv_heads * hd, d]),
        spec("self_attn.o_proj.weight", &[d, heads * hd]),
        spec("self_attn.q_norm.weight", &[hd]),
        spec("self_attn.k_norm.weight", &[hd]),
    ]
}

fn spec(name: &str, shape: &[usize]) -> TensorSpec {
    TensorSpec { name: name.to_owned(), shape: shape.to_vec() }
}
