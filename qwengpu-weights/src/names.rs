//! The only home of the names in a checkpoint: its files and its tensors.

/// The model's configuration.
pub const CONFIG_FILE: &str = "config.json";
/// What the checkpoint's channels, states and ids mean.
pub const MANIFEST_FILE: &str = "qwengpu.json";

pub(crate) const GENERATION_CONFIG_FILE: &str = "generation_config.json";
pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(crate) const TOKENIZER_CONFIG_FILE: &str = "tokenizer_config.json";
pub(crate) const INDEX_FILE: &str = "model.safetensors.index.json";

/// The file of a shard; `number` counts from 0.
pub(crate) fn shard_file(number: usize, count: usize) -> String {
    if count == 1 {
        "model.safetensors".to_owned()
    } else {
        format!("model-{:05}-of-{count:05}.safetensors", number + 1)
    }
}

pub(crate) const EMBED_TOKENS: &str = "model.embed_tokens.weight";
pub(crate) const FINAL_NORM: &str = "model.norm.weight";
pub(crate) const LM_HEAD: &str = "lm_head.weight";

/// A tensor of a layer.
pub(crate) fn in_layer(layer: usize, part: &str) -> String {
    format!("model.layers.{layer}.{part}")
}

pub(crate) const INPUT_LAYERNORM: &str = "input_layernorm.weight";
pub(crate) const POST_ATTENTION_LAYERNORM: &str = "post_attention_layernorm.weight";

pub(crate) const GATE_PROJ: &str = "mlp.gate_proj.weight";
pub(crate) const UP_PROJ: &str = "mlp.up_proj.weight";
pub(crate) const DOWN_PROJ: &str = "mlp.down_proj.weight";

pub(crate) const IN_PROJ_QKV: &str = "linear_attn.in_proj_qkv.weight";
pub(crate) const IN_PROJ_Z: &str = "linear_attn.in_proj_z.weight";
pub(crate) const IN_PROJ_B: &str = "linear_attn.in_proj_b.weight";
pub(crate) const IN_PROJ_A: &str = "linear_attn.in_proj_a.weight";
pub(crate) const CONV1D: &str = "linear_attn.conv1d.weight";
pub(crate) const A_LOG: &str = "linear_attn.A_log";
pub(crate) const DT_BIAS: &str = "linear_attn.dt_bias";
pub(crate) const LINEAR_NORM: &str = "linear_attn.norm.weight";
pub(crate) const OUT_PROJ: &str = "linear_attn.out_proj.weight";

pub(crate) const Q_PROJ: &str = "self_attn.q_proj.weight";
pub(crate) const K_PROJ: &str = "self_attn.k_proj.weight";
pub(crate) const V_PROJ: &str = "self_attn.v_proj.weight";
pub(crate) const O_PROJ: &str = "self_attn.o_proj.weight";
pub(crate) const Q_NORM: &str = "self_attn.q_norm.weight";
pub(crate) const K_NORM: &str = "self_attn.k_norm.weight";
