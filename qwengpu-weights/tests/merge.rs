//! What a merge writes, and the bases that it refuses without leaving anything behind.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;
#[path = "common/random_base.rs"]
#[allow(unreachable_pub, reason = "shared with tests of another crate")]
mod random_base;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::Tiny;
use qwengpu_weights::{
    Base, BaseError, Dtype, EmitError, Layout, MachineNeeds, Manifest, ManifestError, MergeError, MergeOptions,
    MergePlan, TensorAction, merge,
};
use random_base::{RandomBase, Storage};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokenizers::Tokenizer;

const HIDDEN: usize = 256;

/// A base in a folder, and the place of what is made of it.
fn made(base: &RandomBase) -> (TempDir, PathBuf, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let (from, to) = (folder.path().join("base"), folder.path().join("merged"));
    base.write(&from).expect("a base");
    (folder, from, to)
}

fn options(dtype: Dtype) -> MergeOptions {
    MergeOptions { dtype, ..MergeOptions::default() }
}

/// Shape, dtype and values of every tensor, from all files.
fn tensors(dir: &Path) -> BTreeMap<String, (Vec<usize>, safetensors::Dtype, Vec<f32>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let bytes = fs::read(path).expect("a file");
        for (name, view) in SafeTensors::deserialize(&bytes).expect("a file of tensors").iter() {
            let data = view.data();
            let values = match view.dtype() {
                safetensors::Dtype::F32 => data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
                safetensors::Dtype::BF16 => {
                    data.as_chunks().0.iter().map(|&b| half::bf16::from_le_bytes(b).to_f32()).collect()
                }
                safetensors::Dtype::F16 => {
                    data.as_chunks().0.iter().map(|&b| half::f16::from_le_bytes(b).to_f32()).collect()
                }
                other => panic!("{name} in {other:?}"),
            };
            found.insert(name.to_owned(), (view.shape().to_vec(), view.dtype(), values));
        }
    }
    found
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn every_tensor_is_what_the_manifest_says() {
    let base = RandomBase { storage: Storage::Half, shards: 2, multimodal: true, tied: true, ..RandomBase::tiny() };
    let (_folder, from, to) = made(&base);
    let (_, manifest) = Tiny::merge(&from, 1024, &to, &options(Dtype::Bf16)).expect("a merge");
    assert_eq!(Manifest::read(&to).expect("a manifest"), manifest);
    let facts = manifest.merge.as_ref().expect("a base");
    assert_eq!((facts.scale_exponent, facts.norm_exponent, facts.exact), (2, 2, true));
    assert_eq!((facts.channels.language, facts.channels.machine), ([0, 64], [65, 1024]));
    let (old, new) = (tensors(&from), tensors(&to));
    let names: std::collections::BTreeSet<&str> = facts.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert!(names.iter().copied().eq(old.keys().map(String::as_str)), "{names:?}");
    for record in &facts.tensors {
        let (shape, dtype, values) = &old[&record.name];
        assert_eq!(shape, &record.shape);
        let Some(target) = &record.target else {
            assert!(record.name.starts_with("model.visual.") || record.name.starts_with("mtp."), "{record:?}");
            assert_eq!(record.actions, [TensorAction::Dropped]);
            continue;
        };
        let (new_shape, new_dtype, new_values) = &new[target];
        let has = |action| record.actions.contains(&action);
        assert_eq!(has(TensorAction::Widened), new_shape != shape, "{record:?}");
        if has(TensorAction::Unchanged) {
            assert_eq!((new_shape, new_dtype, new_values), (shape, dtype, values), "{record:?}");
        }
        let exponent = record.actions.iter().find_map(|action| match action {
            TensorAction::Scaled(exponent) => Some(*exponent),
            _ => None,
        });
        let factor = 2_f32.powi(exponent.unwrap_or(0));
        let cols = |shape: &[usize]| shape.iter().skip(1).product::<usize>();
        let (narrow, wide) = (cols(shape), cols(new_shape));
        for (row, values) in values.chunks_exact(narrow).enumerate() {
            let widened = &new_values[row * wide..row * wide + narrow];
            // Heads are not added here, so rows keep their places.
            assert!(
                values.iter().zip(widened).all(|(old, new)| (old * factor).to_bits() == new.to_bits()),
                "{record:?}"
            );
        }
        assert_eq!(
            has(TensorAction::GuardAdded),
            ["in_proj_a", "in_proj_b", "q_proj"].iter().any(|p| target.contains(p))
        );
    }
}

#[test]
fn heads_and_neurons_are_added_behind_the_bases() {
    let base = RandomBase { key_heads: 1, value_heads: 2, layers: 1, ..RandomBase::tiny() };
    let (_folder, from, to) = made(&base);
    let opened = Base::open(&from).expect("a base");
    let needs = MachineNeeds { heads: 2, intermediate: 128, layers: 8 };
    let plan = MergePlan::new(&opened, HIDDEN, needs).expect("a plan");
    let tiny = Tiny::with_geometry(&plan.geometry());
    let manifest = merge(&opened, &plan, &tiny.source(), &to, &options(Dtype::F32), &mut |_| ControlFlow::Continue(()));
    let manifest = manifest.expect("a merge");
    let (old, new) = (tensors(&from), tensors(&to));
    let facts = manifest.merge.expect("a base");
    // A machine's head is every second one; those between stay empty, and need not be scaled.
    let (_, _, decays) = &new[&format!("model.layers.{}.linear_attn.A_log", facts.compiled_layers[0])];
    assert_eq!(decays.len(), 4);
    assert!(decays.iter().skip(1).step_by(2).all(|&log| log.exp() * 2_f32.ln() <= f32::EPSILON / 4.0), "{decays:?}");
    let place = facts.base_layers[0];
    let part = |name: &str| {
        let (old, new) = (&old[&format!("model.layers.0.{name}")], &new[&format!("model.layers.{place}.{name}")]);
        (old.clone(), new.clone())
    };
    let (qkv, wide) = part("linear_attn.conv1d.weight");
    assert_eq!((qkv.0, wide.0), (vec![4 * 128, 1, 4], vec![8 * 128, 1, 4]));
    let rows = |values: &[f32], first: usize, count: usize| values[first * 128 * 4..(first + count) * 128 * 4].to_vec();
    for (from, to, count) in [(0, 0, 1), (1, 2, 1), (2, 4, 2)] {
        assert_eq!(rows(&qkv.2, from, count), rows(&wide.2, to, count));
    }
    for (zero, count) in [(1, 1), (3, 1), (6, 2)] {
        assert!(rows(&wide.2, zero, count).iter().all(|&tap| tap.to_bits() == 0));
    }
    let (gate, wide) = part("mlp.gate_proj.weight");
    assert_eq!((gate.0, wide.0), (vec![96, 64], vec![128, HIDDEN]));
    let config = json_of(&to.join("config.json"));
    for (field, value) in [("linear_num_key_heads", 2), ("linear_num_value_heads", 4), ("intermediate_size", 128)] {
        assert_eq!(config[field], value, "{field}");
    }
}

#[test]
fn configuration_and_tokenizer_are_the_bases_with_more() {
    let (_folder, from, to) = made(&RandomBase { multimodal: true, ..RandomBase::tiny() });
    fs::write(from.join("chat_template.jinja"), "{{ messages }}").expect("a file");
    let (tiny, manifest) = Tiny::merge(&from, HIDDEN, &to, &options(Dtype::F32)).expect("a merge");
    let config = json_of(&to.join("config.json"));
    assert_eq!(config["a_field_of_tomorrow"], json!({"kept": true}));
    assert_eq!((&config["model_type"], &config["dtype"]), (&json!("qwen3_5_text"), &json!("float32")));
    assert_eq!((&config["tie_word_embeddings"], &config["full_attention_interval"]), (&json!(false), &Value::Null));
    let generation = json_of(&to.join("generation_config.json"));
    assert_eq!(generation["eos_token_id"], json!([279, 0, manifest.halt_token_id]));
    assert_eq!(fs::read_to_string(to.join("chat_template.jinja")).expect("a file"), "{{ messages }}");

    assert_eq!(manifest.first_machine_token, 300);
    assert_eq!(manifest.merge.as_ref().expect("a base").unused_tokens, 20);
    let tokenizer = Tokenizer::from_file(to.join("tokenizer.json")).expect("a tokenizer");
    let ids = |text: &str| tokenizer.encode(text, true).expect("ids").get_ids().to_vec();
    assert_eq!(ids("a<|endoftext|><|qg:unused:000|>"), [97, 279, 280]);
    for (number, token) in tiny.netlist.tokens().iter().enumerate() {
        assert_eq!(ids(&token.text), [manifest.token_id(number).expect("an id")]);
    }
    let settings = json_of(&to.join("tokenizer_config.json"));
    let added = settings["added_tokens_decoder"].as_object().expect("a table");
    assert_eq!(added.len(), 1 + 20 + tiny.netlist.tokens().len());
    assert_eq!(added[&manifest.halt_token_id.to_string()]["content"], "<|halt|>");
}

#[test]
fn two_runs_give_the_same_bytes_in_any_shards() {
    let (folder, from, to) = made(&RandomBase::tiny());
    let again = folder.path().join("again");
    Tiny::merge(&from, HIDDEN, &to, &options(Dtype::Bf16)).expect("a merge");
    Tiny::merge(&from, HIDDEN, &again, &options(Dtype::Bf16)).expect("a merge");
    for entry in fs::read_dir(&to).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        assert!(fs::read(to.join(&name)).expect("a file") == fs::read(again.join(&name)).expect("a file"), "{name:?}");
    }
    let sharded = folder.path().join("sharded");
    let small = MergeOptions { max_shard_bytes: 1 << 18, ..options(Dtype::Bf16) };
    Tiny::merge(&from, HIDDEN, &sharded, &small).expect("a merge");
    assert!(sharded.join("model.safetensors.index.json").exists());
    assert!(tensors(&to) == tensors(&sharded));
}

/// Damages a base, expects an error, and expects nothing to be left.
fn refused(damage: impl FnOnce(&Path)) -> MergeError {
    refused_base(&RandomBase::tiny(), damage)
}

fn refused_base(base: &RandomBase, damage: impl FnOnce(&Path)) -> MergeError {
    let (folder, from, to) = made(base);
    damage(&from);
    let error = Tiny::merge(&from, HIDDEN, &to, &options(Dtype::Bf16)).expect_err("a base that can't be used");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{error}");
    error
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = json_of(path);
    change(&mut value);
    fs::write(path, value.to_string()).expect("a file");
}

/// Changes the header and the values of the only file of weights.
fn edit_weights(dir: &Path, change: impl FnOnce(&mut Value, &mut Vec<u8>)) {
    let path = dir.join("model.safetensors");
    let bytes = fs::read(&path).expect("weights");
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))).expect("a length");
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let mut values = bytes[8 + length..].to_vec();
    change(&mut header, &mut values);
    let header = header.to_string().into_bytes();
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &values].concat();
    fs::write(path, file).expect("weights");
}

macro_rules! assert_refused {
    ($error:expr, $($pattern:tt)+) => {{
        let error = $error;
        assert!(matches!(&error, MergeError::Base($($pattern)+)), "{error:?}");
        error.to_string()
    }};
}

#[test]
fn other_architectures_and_settings() {
    let config = |change: fn(&mut Value)| refused(|dir| edit(&dir.join("config.json"), change));
    let text = assert_refused!(config(|c| c["model_type"] = json!("qwen3")), BaseError::Architecture { .. });
    assert!(text.contains("only Qwen3.5 bases"), "{text}");
    for (change, field) in [
        ((|c| c["rms_norm_eps"] = json!(1e-5)) as fn(&mut Value), "rms_norm_eps"),
        (|c| c["linear_key_head_dim"] = json!(64), "linear_key_head_dim"),
        (|c| c["linear_conv_kernel_dim"] = json!(3), "linear_conv_kernel_dim"),
        (|c| c["attention_bias"] = json!(true), "attention_bias"),
        (|c| c["hidden_size"] = json!(0), "hidden_size"),
        (|c| c["linear_num_value_heads"] = json!(3), "linear_num_value_heads"),
        (|c| c["layer_types"] = json!(["linear_attention"]), "layer_types"),
        (|c| c["quantization_config"] = json!({"bits": 8}), "quantization_config"),
    ] {
        let text = assert_refused!(config(change), BaseError::Setting { .. });
        assert!(text.contains(field), "{text}");
    }
    assert_refused!(config(|c| c["hidden_size"] = json!("wide")), BaseError::Json { .. });
    assert_refused!(refused(|dir| fs::write(dir.join("config.json"), "{").expect("a file")), BaseError::Json { .. });
    assert_refused!(refused(|dir| fs::remove_file(dir.join("config.json")).expect("gone")), BaseError::Missing { .. });
}

#[test]
fn tensors_that_do_not_fit() {
    let weights = |change: fn(&mut Value, &mut Vec<u8>)| refused(|dir| edit_weights(dir, change));
    let rename = |header: &mut Value, from: &str, to: &str| {
        let tensor = header.as_object_mut().expect("a table").remove(from).expect("a tensor");
        header[to] = tensor;
    };
    let text = assert_refused!(
        refused(|dir| edit_weights(dir, |header, _| rename(header, "model.norm.weight", "model.norm2.weight"))),
        BaseError::MissingTensor { .. }
    );
    assert!(text.contains("model.norm.weight of shape [64]"), "{text}");
    let text = assert_refused!(
        weights(|header, values| {
            let end = values.len();
            values.extend([0; 4]);
            header["model.extra"] = json!({"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]});
        }),
        BaseError::UnexpectedTensor { .. }
    );
    assert!(text.contains("model.extra"), "{text}");
    assert_refused!(
        weights(|header, _| header["model.layers.0.mlp.up_proj.weight"]["shape"] = json!([64, 96])),
        BaseError::Shape { .. }
    );
    let text = assert_refused!(
        weights(|header, _| {
            header["model.norm.weight"]["dtype"] = json!("I32");
        }),
        BaseError::TensorDtype { .. }
    );
    assert!(text.contains("I32"), "{text}");
    assert_refused!(weights(|_, values| values.truncate(100)), BaseError::Length { .. });
    assert_refused!(weights(|header, _| *header = json!({"x": 3})), BaseError::Header { .. });
    let path = |dir: &Path| dir.join("model.safetensors");
    assert_refused!(refused(|dir| fs::write(path(dir), [1, 2]).expect("a file")), BaseError::Length { .. });
    assert_refused!(refused(|dir| fs::write(path(dir), [255; 16]).expect("a file")), BaseError::Header { .. });
    assert_refused!(refused(|dir| fs::remove_file(path(dir)).expect("gone")), BaseError::Missing { .. });
}

#[test]
fn weights_that_are_no_numbers() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let text = assert_refused!(
            refused(|dir| edit_weights(dir, |header, values| {
                let tensor = &header["model.layers.2.linear_attn.out_proj.weight"]["data_offsets"][0];
                let start = usize::try_from(tensor.as_u64().expect("an offset")).expect("fits") + 4 * (256 * 5 + 7);
                values[start..start + 4].copy_from_slice(&value.to_le_bytes());
            })),
            BaseError::NotFinite { .. }
        );
        assert!(text.contains("out_proj.weight holds") && text.contains("[5, 7]"), "{text}");
    }
    // Too large to be doubled.
    let error = refused(|dir| {
        edit_weights(dir, |header, values| {
            let tensor = &header["model.embed_tokens.weight"]["data_offsets"][0];
            let start = usize::try_from(tensor.as_u64().expect("an offset")).expect("fits") + 4 * 64 * 3;
            values[start..start + 4].copy_from_slice(&3e38_f32.to_le_bytes());
        });
    });
    assert!(matches!(&error, MergeError::Overflow { row: 3, .. }), "{error}");
}

#[test]
fn shards_that_do_not_agree() {
    let base = RandomBase { shards: 2, ..RandomBase::tiny() };
    let index =
        |change: fn(&mut Value)| refused_base(&base, |dir| edit(&dir.join("model.safetensors.index.json"), change));
    assert_refused!(
        index(|i| i["weight_map"]["model.x"] = json!("model-00001-of-00002.safetensors")),
        BaseError::Index { .. }
    );
    assert_refused!(index(|i| i["weight_map"]["model.x"] = json!("../x.safetensors")), BaseError::Index { .. });
    assert_refused!(index(|i| i["weight_map"]["model.x"] = json!("x.safetensors")), BaseError::Missing { .. });
    assert_refused!(index(|i| i["weight_map"] = json!(3)), BaseError::Json { .. });
}

#[test]
fn heads_that_are_not_the_embedding() {
    // Untied weights under a configuration that says tied.
    let error = refused(|dir| edit(&dir.join("config.json"), |config| config["tie_word_embeddings"] = json!(true)));
    assert_refused!(error, BaseError::TiedHead { .. });
}

#[test]
fn tokenizers_with_holes_or_machines() {
    let tokenizer = |change: fn(&mut Value)| refused(|dir| edit(&dir.join("tokenizer.json"), change));
    let text = assert_refused!(
        tokenizer(|t| {
            t["model"]["vocab"].as_object_mut().expect("a table").remove("word270");
        }),
        BaseError::TokenHole { id: 270, .. }
    );
    assert!(text.contains("no token of the vocabulary has id 270"), "{text}");
    let text = assert_refused!(tokenizer(|t| t["added_tokens"][0]["id"] = json!(281)), BaseError::AddedId { .. });
    assert!(text.contains("has id 281, but 279 is the next one"), "{text}");
    // A text of the vocabulary keeps its id there.
    assert_refused!(tokenizer(|t| t["model"]["vocab"]["<|endoftext|>"] = json!(7)), BaseError::Tokenizer { .. });
    for text in ["<|halt|>", "<|qg:0|>"] {
        let error = refused(|dir| {
            edit(&dir.join("tokenizer.json"), |t| {
                let mut token = t["added_tokens"][0].clone();
                (token["id"], token["content"]) = (json!(280), json!(text));
                t["added_tokens"].as_array_mut().expect("a list").push(token);
            });
        });
        assert_refused!(error, BaseError::HasMachine { .. });
    }
    assert_refused!(tokenizer(|t| t["model"]["vocab"] = json!([])), BaseError::Tokenizer { .. });
    assert_refused!(tokenizer(|t| t["model"]["vocab"]["x"] = json!(-1)), BaseError::Tokenizer { .. });
    assert_refused!(
        refused_base(&RandomBase { vocab: 270, ..RandomBase::tiny() }, |_| ()),
        BaseError::TokenCount { got: 280, vocab_size: 270, .. }
    );
    assert_refused!(refused(|dir| fs::write(dir.join("tokenizer.json"), "").expect("a file")), BaseError::Json { .. });
    let missing = refused(|dir| fs::remove_file(dir.join("tokenizer.json")).expect("gone"));
    assert_refused!(missing, BaseError::Missing { .. });
    assert_refused!(
        refused(|dir| fs::write(dir.join("qwengpu.json"), "").expect("a file")),
        BaseError::HasMachine { .. }
    );
}

#[test]
fn plans_that_do_not_work() {
    let (folder, from, to) = made(&RandomBase::tiny());
    for hidden in [0, 64, 65] {
        let error = Tiny::merge(&from, hidden, &to, &options(Dtype::Bf16)).expect_err("no room");
        assert!(matches!(error, MergeError::Hidden { base: 64, .. }), "{error}");
    }
    let base = Base::open(&from).expect("a base");
    let plan = MergePlan::new(&base, HIDDEN, MachineNeeds { heads: 1, intermediate: 48, layers: 8 }).expect("a plan");
    let mut go_on = |_| ControlFlow::Continue(());
    let error = merge(&base, &plan, &Tiny::new(1024).source(), &to, &options(Dtype::Bf16), &mut go_on);
    assert!(matches!(error, Err(MergeError::Geometry { what: "hidden size", got: 1024, expected: 256 })));
    let tiny = Tiny::with_geometry(&plan.geometry());
    let mut stop = |_| ControlFlow::Break(());
    let error = merge(&base, &plan, &tiny.source(), &to, &options(Dtype::Bf16), &mut stop).expect_err("stopped");
    assert!(matches!(error, MergeError::Emit(EmitError::Cancelled { .. })), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    fs::create_dir(&to).expect("a directory");
    let error = merge(&base, &plan, &tiny.source(), &to, &options(Dtype::Bf16), &mut go_on).expect_err("it exists");
    assert!(matches!(error, MergeError::Emit(EmitError::Exists { .. })), "{error}");

    let interval = RandomBase { layers: 3, ..RandomBase::tiny() };
    let (_folder, from, to) = made(&interval);
    edit(&from.join("config.json"), |config| {
        config["layer_types"] = json!(["linear_attention", "linear_attention", "linear_attention"]);
    });
    Tiny::merge(&from, HIDDEN, &to, &MergeOptions { layout: Layout::Portable, ..options(Dtype::Bf16) })
        .expect("a merge");
    assert_eq!(json_of(&to.join("config.json"))["full_attention_interval"], 4);
}

#[test]
fn manifests_of_other_models_are_refused() {
    let (_folder, from, to) = made(&RandomBase::tiny());
    Tiny::merge(&from, HIDDEN, &to, &options(Dtype::Bf16)).expect("a merge");
    edit(&to.join("config.json"), |config| config["num_hidden_layers"] = json!(3));
    assert!(matches!(Manifest::read(&to), Err(ManifestError::Mismatch { what: "num_hidden_layers", .. })));
}
