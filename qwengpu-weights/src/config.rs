//! `config.json` and `generation_config.json`.

use qwengpu_circuit::CircuitTensors;
use serde::Serialize;

use crate::dtype::Dtype;
use crate::tokenizer::Vocabulary;

/// Heads of the last layer, for queries as for keys and values.
pub(crate) const ATTENTION_HEADS: usize = 1;
/// Dims of such a head.
pub(crate) const ATTENTION_HEAD_DIM: usize = 256;
/// Tokens that a context may have; nothing in the compiled layers depends on it.
pub(crate) const MAX_POSITIONS: usize = 262_144;

/// `config.json`.
#[derive(Debug, Serialize)]
pub(crate) struct ModelConfig {
    architectures: [&'static str; 1],
    model_type: &'static str,
    dtype: &'static str,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    hidden_act: &'static str,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    head_dim: usize,
    attention_bias: bool,
    attention_dropout: f64,
    attn_output_gate: bool,
    linear_conv_kernel_dim: usize,
    linear_key_head_dim: usize,
    linear_value_head_dim: usize,
    linear_num_key_heads: usize,
    linear_num_value_heads: usize,
    mamba_ssm_dtype: &'static str,
    layer_types: Vec<&'static str>,
    rms_norm_eps: f64,
    rope_parameters: RopeParameters,
    max_position_embeddings: usize,
    initializer_range: f64,
    tie_word_embeddings: bool,
    use_cache: bool,
    bos_token_id: Option<u32>,
    eos_token_id: u32,
    pad_token_id: u32,
}

#[derive(Debug, Serialize)]
struct RopeParameters {
    rope_type: &'static str,
    rope_theta: u32,
    partial_rotary_factor: f64,
    mrope_interleaved: bool,
    mrope_section: [u32; 3],
}

impl ModelConfig {
    pub(crate) fn new(tensors: &CircuitTensors, vocabulary: &Vocabulary<'_>, dtype: Dtype) -> Self {
        let geometry = &tensors.geometry;
        let mut layer_types = vec!["linear_attention"; tensors.num_layers];
        layer_types.push("full_attention");
        Self {
            architectures: ["Qwen3_5ForCausalLM"],
            model_type: "qwen3_5_text",
            dtype: dtype.torch_name(),
            vocab_size: vocabulary.padded_len(),
            hidden_size: geometry.hidden,
            intermediate_size: geometry.intermediate,
            num_hidden_layers: layer_types.len(),
            hidden_act: "silu",
            num_attention_heads: ATTENTION_HEADS,
            num_key_value_heads: ATTENTION_HEADS,
            head_dim: ATTENTION_HEAD_DIM,
            attention_bias: false,
            attention_dropout: 0.0,
            attn_output_gate: true,
            linear_conv_kernel_dim: geometry.conv_kernel,
            linear_key_head_dim: geometry.key_dim,
            linear_value_head_dim: geometry.value_dim,
            linear_num_key_heads: geometry.key_heads,
            linear_num_value_heads: geometry.value_heads,
            mamba_ssm_dtype: "float32",
            layer_types,
            rms_norm_eps: 1e-6,
            rope_parameters: RopeParameters {
                rope_type: "default",
                rope_theta: 10_000_000,
                partial_rotary_factor: 0.25,
                mrope_interleaved: true,
                mrope_section: [11, 11, 10],
            },
            max_position_embeddings: MAX_POSITIONS,
            initializer_range: 0.02,
            tie_word_embeddings: false,
            use_cache: true,
            bos_token_id: None,
            eos_token_id: vocabulary.halt_id(),
            pad_token_id: Vocabulary::PAD_ID,
        }
    }
}

/// `generation_config.json`: greedy, until the halt token or the end of the context.
#[derive(Debug, Serialize)]
pub(crate) struct GenerationConfig {
    do_sample: bool,
    eos_token_id: u32,
    pad_token_id: u32,
    max_length: usize,
}

impl GenerationConfig {
    pub(crate) fn new(vocabulary: &Vocabulary<'_>) -> Self {
        Self {
            do_sample: false,
            eos_token_id: vocabulary.halt_id(),
            pad_token_id: Vocabulary::PAD_ID,
            max_length: MAX_POSITIONS,
        }
    }
}
