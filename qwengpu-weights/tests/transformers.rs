//! The checkpoint in transformers: it loads, ids agree, and greedy decoding speaks what the netlist says.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{ROWS, Tiny, halt, read, value, write};
use qwengpu_circuit::Evaluator;
use qwengpu_weights::{Dtype, EmitOptions};
use serde::Serialize;
use tempfile::TempDir;

/// What `check_checkpoint.py` compares.
#[derive(Serialize)]
struct Expectation<'a> {
    texts: Vec<&'a str>,
    first_machine_token: u32,
    halt_token_id: u32,
    dtype: String,
    streams: Vec<Stream>,
}

/// Token numbers.
#[derive(Serialize)]
struct Stream {
    prompt: Vec<usize>,
    answer: Vec<usize>,
}

/// Python with transformers, or `None` (with a visible line) where none is given.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("QWENGPU_PYTHON").map(PathBuf::from);
    if python.is_none() {
        let required = std::env::var_os("QWENGPU_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "QWENGPU_REQUIRE_ALL is set, but QWENGPU_PYTHON isn't");
        eprintln!("SKIPPED: checkpoints in transformers: QWENGPU_PYTHON is not set");
    }
    python
}

/// What the netlist says after a prompt.
fn evaluate(tiny: &Tiny, prompt: Vec<usize>) -> Stream {
    let mut evaluator = Evaluator::new(&tiny.netlist);
    let mut answer = Vec::new();
    for &token in &prompt {
        evaluator.run(token).expect("a netlist that keeps its word");
    }
    let mut token = prompt[prompt.len() - 1];
    while token != halt() {
        token = evaluator.next(token).expect("no tie");
        evaluator.run(token).expect("a netlist that keeps its word");
        answer.push(token);
    }
    Stream { prompt, answer }
}

/// Writes to rows in some order, some twice and one never, then asks for all rows from `first` on.
fn prompt(seed: usize, first: usize) -> Vec<usize> {
    let writes = (0..70).map(|i| (seed + i * i * 7 + i * 3) % 97).map(|n| write(n % ROWS, n / ROWS % 8));
    let never = write((seed + 1) % ROWS, 0)..write((seed + 1) % ROWS + 1, 0);
    writes.filter(|token| !never.contains(token)).chain([read(first)]).collect()
}

/// Emits the machine and compares it with its netlist in transformers; an error is what the script found.
fn check(python: &Path, tiny: &Tiny, dtype: Dtype, max_shard_bytes: u64) -> Result<(), String> {
    let parent = TempDir::new().expect("a directory");
    let dir = parent.path().join("checkpoint");
    let manifest =
        tiny.emit(&dir, &EmitOptions { dtype, max_shard_bytes, ..EmitOptions::default() }).expect("a checkpoint");
    let streams = (0..6).map(|seed| evaluate(tiny, prompt(seed, [0, 0, 1, 2, 3, 0][seed])));
    let expectation = Expectation {
        texts: tiny.netlist.tokens().iter().map(|token| token.text.as_str()).collect(),
        first_machine_token: manifest.first_machine_token,
        halt_token_id: manifest.halt_token_id,
        dtype: dtype.to_string(),
        streams: streams.collect(),
    };
    let path = parent.path().join("expectation.json");
    std::fs::write(&path, serde_json::to_vec(&expectation).expect("JSON")).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check_checkpoint.py");
    let output = Command::new(python).arg(script).arg(&dir).arg(&path).output().expect("python runs");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn the_netlist_reads_what_was_written() {
    let tiny = Tiny::new(1024);
    let Stream { answer, .. } = evaluate(&tiny, vec![write(1, 5), write(0, 3), write(1, 6), read(0)]);
    let expected = [value(3), read(1), value(6), read(2), value(0), read(3), value(0), halt()];
    assert_eq!(answer, expected);
}

#[test]
fn bf16() {
    let Some(python) = python() else { return };
    assert_eq!(check(&python, &Tiny::new(1024), Dtype::Bf16, 4 << 30), Ok(()));
}

#[test]
fn a_wrong_weight_is_noticed() {
    let Some(python) = python() else { return };
    let mut tiny = Tiny::new(1024);
    for entry in &mut tiny.compiled.tensors.layers[0].out_proj.entries {
        entry.2 /= 4.0;
    }
    let error = check(&python, &tiny, Dtype::Bf16, 4 << 30).expect_err("bits that read as 0");
    assert!(error.contains("FAILED: generate"), "{error}");
}

#[test]
fn f32_in_shards_and_two_constant_channels() {
    let Some(python) = python() else { return };
    assert_eq!(check(&python, &Tiny::new(2048), Dtype::F32, 1 << 20), Ok(()));
}
