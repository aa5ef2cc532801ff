//! `config.json` and `generation_config.json` of a merged model: the base's with the fields that change.

use serde_json::{Map, Value, json};

use super::base::Base;
use super::base_config::Mixer;
use super::layout::{INTERVAL, Layout, MergedLayer};
use super::plan::MergePlan;
use crate::dtype::Dtype;

/// The mixer of a layer.
pub(crate) fn mixer_of(base: &Base, layer: MergedLayer) -> Mixer {
    match layer {
        MergedLayer::Compiled(_) => Mixer::Linear,
        MergedLayer::Neutral(mixer) => mixer,
        MergedLayer::Base(number) => base.config.mixers[number],
    }
}

/// `config.json`.
pub(crate) fn model_config(
    base: &Base,
    plan: &MergePlan,
    layers: &[MergedLayer],
    (layout, dtype, vocab_size): (Layout, Dtype, usize),
) -> Map<String, Value> {
    let mut fields = base.config.fields.clone();
    let layer_types: Vec<&str> = layers.iter().map(|&layer| mixer_of(base, layer).name()).collect();
    let changed = [
        ("architectures", json!(["Qwen3_5ForCausalLM"])),
        ("model_type", json!("qwen3_5_text")),
        ("dtype", json!(dtype.torch_name())),
        ("vocab_size", json!(vocab_size)),
        ("hidden_size", json!(plan.hidden())),
        ("intermediate_size", json!(plan.intermediate)),
        ("num_hidden_layers", json!(layers.len())),
        ("linear_num_key_heads", json!(plan.key_heads)),
        ("linear_num_value_heads", json!(plan.value_heads)),
        ("layer_types", json!(layer_types)),
        ("tie_word_embeddings", json!(false)),
    ];
    fields.extend(changed.map(|(name, value)| (name.to_owned(), value)));
    for stale in ["torch_dtype", "full_attention_interval"] {
        fields.remove(stale);
    }
    if layout == Layout::Portable {
        fields.insert("full_attention_interval".to_owned(), json!(INTERVAL));
    }
    // The layers that predict several tokens are left out.
    if let Some(count) = fields.get_mut("mtp_num_hidden_layers") {
        *count = json!(0);
    }
    fields
}

/// `generation_config.json`: the base's, and the machine's halt token ends a generation, too.
pub(crate) fn generation_config(base: &Base, own: Option<Map<String, Value>>, halt_id: u32) -> Map<String, Value> {
    let mut fields = own.unwrap_or_default();
    let eos = fields.get("eos_token_id").filter(|ids| !ids.is_null());
    let mut ids = match eos.or_else(|| base.config.fields.get("eos_token_id")) {
        Some(Value::Array(ids)) => ids.clone(),
        None | Some(Value::Null) => Vec::new(),
        Some(id) => vec![id.clone()],
    };
    ids.push(json!(halt_id));
    fields.insert("eos_token_id".to_owned(), Value::Array(ids));
    fields
}
