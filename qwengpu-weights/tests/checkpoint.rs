//! What is written is what was compiled, byte for byte the same each time.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::Tiny;
use qwengpu_circuit::{LayerTensors, SparseMatrix};
use qwengpu_weights::{Dtype, EmitOptions, FIRST_MACHINE_TOKEN};
use safetensors::SafeTensors;
use tempfile::TempDir;

/// Shape and values.
type Tensor = (Vec<usize>, Vec<f32>);

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("a directory");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, fs::read(path).expect("a file"))
        })
        .collect()
}

/// Shape and values of every tensor, from all shards.
fn tensors(files: &BTreeMap<String, Vec<u8>>, dtype: Dtype) -> BTreeMap<String, Tensor> {
    let mut found = BTreeMap::new();
    for (_, bytes) in files.iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        let shard = SafeTensors::deserialize(bytes).expect("a shard");
        for (name, view) in shard.iter() {
            let values = match dtype {
                Dtype::F32 => {
                    assert_eq!(view.dtype(), safetensors::Dtype::F32);
                    view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
                }
                Dtype::Bf16 => {
                    assert_eq!(view.dtype(), safetensors::Dtype::BF16);
                    view.data().chunks_exact(2).map(|b| f32::from_le_bytes([0, 0, b[0], b[1]])).collect()
                }
            };
            let before = found.insert(name.to_owned(), (view.shape().to_vec(), values));
            assert!(before.is_none(), "{name} is in two shards");
        }
    }
    found
}

fn dense(matrix: &SparseMatrix, total_rows: usize, first_row: usize) -> Tensor {
    let mut values = vec![0.0; total_rows * matrix.cols];
    for &(row, col, value) in &matrix.entries {
        values[(first_row + row as usize) * matrix.cols + col as usize] = value;
    }
    (vec![total_rows, matrix.cols], values)
}

fn expected(tiny: &Tiny, vocab_size: usize) -> BTreeMap<String, Tensor> {
    let circuit = &tiny.compiled.tensors;
    let geometry = &circuit.geometry;
    let (hidden, intermediate) = (geometry.hidden, geometry.intermediate);
    let zeros = |shape: &[usize]| (shape.to_vec(), vec![0.0; shape.iter().product()]);
    let vector = |values: &[f32]| (vec![values.len()], values.to_vec());
    let first = FIRST_MACHINE_TOKEN as usize;
    let mut all = BTreeMap::from([
        ("model.embed_tokens.weight".to_owned(), dense(&circuit.embedding, vocab_size, first)),
        ("lm_head.weight".to_owned(), dense(&circuit.lm_head, vocab_size, first)),
        ("model.norm.weight".to_owned(), vector(&circuit.final_norm)),
    ]);
    let norms = || ["input_layernorm", "post_attention_layernorm"].map(|name| (name, zeros(&[hidden])));
    let mut add = |layer: usize, parts: Vec<(&str, Tensor)>| {
        for (name, tensor) in parts.into_iter().chain(norms()) {
            let name = if name.contains("A_log") || name.contains("bias") {
                name.to_owned()
            } else {
                format!("{name}.weight")
            };
            all.insert(format!("model.layers.{layer}.{name}"), tensor);
        }
    };
    for (number, layer) in circuit.layers.iter().enumerate() {
        let LayerTensors { conv1d, a_log, dt_bias, norm, .. } = layer;
        let taps = (vec![geometry.qkv_rows(), 1, 4], conv1d.concat());
        let mut parts = vec![
            ("linear_attn.conv1d", taps),
            ("linear_attn.A_log", vector(a_log)),
            ("linear_attn.dt_bias", vector(dt_bias)),
            ("linear_attn.norm", vector(norm)),
        ];
        parts.extend(layer.matrices().map(|(name, matrix)| (name, dense(matrix, matrix.rows, 0))));
        add(number, parts);
    }
    let attention = vec![
        ("self_attn.q_proj", zeros(&[512, hidden])),
        ("self_attn.k_proj", zeros(&[256, hidden])),
        ("self_attn.v_proj", zeros(&[256, hidden])),
        ("self_attn.o_proj", zeros(&[hidden, 256])),
        ("self_attn.q_norm", zeros(&[256])),
        ("self_attn.k_norm", zeros(&[256])),
        ("mlp.gate_proj", zeros(&[intermediate, hidden])),
        ("mlp.up_proj", zeros(&[intermediate, hidden])),
        ("mlp.down_proj", zeros(&[hidden, intermediate])),
    ];
    add(circuit.num_layers, attention);
    all
}

#[test]
fn the_files_hold_what_was_compiled() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    for dtype in [Dtype::Bf16, Dtype::F32] {
        let dir = parent.path().join(dtype.to_string());
        let manifest = tiny.emit(&dir, &EmitOptions { dtype, ..EmitOptions::default() }).expect("a checkpoint");
        let files = files(&dir);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        let all = ["config.json", "generation_config.json", "model.safetensors", "qwengpu.json", "tokenizer.json"];
        assert_eq!(names, [&all[..], &["tokenizer_config.json"]].concat());
        assert_eq!(manifest.vocab_size % 64, 0);
        let (got, expected) = (tensors(&files, dtype), expected(&tiny, manifest.vocab_size));
        assert!(got.keys().eq(expected.keys()), "{:?}", got.keys());
        for (name, tensor) in &expected {
            assert!(got.get(name) == Some(tensor), "{name} in {dtype}");
        }
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let parent = TempDir::new().expect("a directory");
    let run = |name: &str| {
        let dir = parent.path().join(name);
        Tiny::new(1024).emit(&dir, &EmitOptions::default()).expect("a checkpoint");
        files(&dir)
    };
    assert!(run("a") == run("b"));
}

#[test]
fn small_shards_hold_the_same_tensors() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let run = |name: &str, max_shard_bytes: u64| {
        let dir = parent.path().join(name);
        tiny.emit(&dir, &EmitOptions { max_shard_bytes, ..EmitOptions::default() }).expect("a checkpoint");
        files(&dir)
    };
    let (whole, sharded) = (run("whole", 4 << 30), run("sharded", 1 << 20));
    assert!(tensors(&whole, Dtype::Bf16) == tensors(&sharded, Dtype::Bf16));

    let shards: Vec<&String> = sharded.keys().filter(|name| name.ends_with(".safetensors")).collect();
    assert!(shards.len() > 2, "{shards:?}");
    assert_eq!(shards[0], &format!("model-00001-of-{:05}.safetensors", shards.len()));
    assert!(!sharded.contains_key("model.safetensors"));
    let index: serde_json::Value = serde_json::from_slice(&sharded["model.safetensors.index.json"]).expect("an index");
    let map = index["weight_map"].as_object().expect("a map");
    assert_eq!(map.len(), tensors(&whole, Dtype::Bf16).len());
    for (name, file) in map {
        let file = file.as_str().expect("a name");
        let shard = SafeTensors::deserialize(&sharded[file]).expect("a shard");
        assert!(shard.tensor(name).is_ok(), "{name} in {file}");
    }
    let bytes: usize = tensors(&whole, Dtype::Bf16).values().map(|(_, values)| 2 * values.len()).sum();
    assert_eq!(index["metadata"]["total_size"], bytes);
}

#[test]
fn progress_ends_at_the_total() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let mut steps = Vec::new();
    qwengpu_weights::emit(&tiny.source(), &parent.path().join("x"), &EmitOptions::default(), &mut |progress| {
        steps.push((progress.written, progress.total));
        std::ops::ControlFlow::Continue(())
    })
    .expect("a checkpoint");
    assert!(steps.is_sorted());
    assert_eq!(steps.first().map(|step| step.0), Some(0));
    assert!(steps.last().is_some_and(|&(written, total)| written == total && total > 0), "{steps:?}");
}
