//! What the tests share: reference activations, checkpoints from transformers, and the comparison.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use qwengpu_model::{Engine, LayerCache, Recorder};
use safetensors::{Dtype, SafeTensors};
use tempfile::TempDir;

/// The committed checkpoint: 4 layers, hidden 16, small heads, no tied head.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny")
}

/// What transformers computed, by name as `make_tiny.py` describes them.
pub(crate) struct Reference {
    pub(crate) tokens: Vec<u32>,
    tensors: BTreeMap<String, Vec<f32>>,
}

impl Reference {
    pub(crate) fn read(dir: &Path) -> Self {
        let bytes = std::fs::read(dir.join("reference.safetensors")).expect("reference.safetensors");
        let file = SafeTensors::deserialize(&bytes).expect("a valid reference");
        let mut tensors = BTreeMap::new();
        let mut tokens = Vec::new();
        for (name, view) in file.iter() {
            match view.dtype() {
                Dtype::I64 => {
                    let (ids, _) = view.data().as_chunks::<8>();
                    tokens = ids.iter().map(|&b| u32::try_from(i64::from_le_bytes(b)).expect("an id")).collect();
                }
                _ => {
                    let (values, _) = view.data().as_chunks::<4>();
                    tensors.insert(name.to_owned(), values.iter().map(|&b| f32::from_le_bytes(b)).collect());
                }
            }
        }
        Self { tokens, tensors }
    }

    pub(crate) fn get(&self, name: &str) -> &[f32] {
        self.tensors.get(name).expect(name)
    }
}

/// A checkpoint from `make_tiny.py`, or `None` (with a visible line) where no Python is given.
pub(crate) fn make_checkpoint(options: &[&str]) -> Option<TempDir> {
    let Some(python) = std::env::var_os("QWENGPU_PYTHON") else {
        assert!(
            std::env::var_os("QWENGPU_REQUIRE_ALL").is_none_or(|v| v != "1"),
            "QWENGPU_REQUIRE_ALL is set, but QWENGPU_PYTHON isn't"
        );
        // Past the test harness, which would keep the line to itself.
        let line = format!("SKIPPED: parity with transformers ({}): QWENGPU_PYTHON is not set", options.join(" "));
        writeln!(std::io::stderr(), "{line}").expect("stderr");
        return None;
    };
    let dir = TempDir::new().expect("a temporary directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/make_tiny.py");
    let output = Command::new(python).arg(script).arg(dir.path()).args(options).output().expect("python runs");
    assert!(output.status.success(), "make_tiny.py: {}", String::from_utf8_lossy(&output.stderr));
    Some(dir)
}

/// How a run is cut into forwards.
pub(crate) const RUNS: [&str; 3] = ["prefill", "decode", "resume"];

/// Largest difference of each tensor from the reference.
pub(crate) type Gaps = BTreeMap<String, f32>;

/// Runs the reference's tokens through an engine, cut as `run` says, and compares everything.
pub(crate) fn compare(engine: &mut dyn Engine, reference: &Reference, run: &str) -> Gaps {
    engine.reset();
    let num_tokens = reference.tokens.len();
    let piece = match run {
        "prefill" => num_tokens,
        "decode" => 1,
        _ => num_tokens.div_ceil(2),
    };
    let mut recorder = Recorder::default();
    for tokens in reference.tokens.chunks(piece) {
        engine.forward_probed(tokens, &mut recorder).expect("a forward");
    }
    let mut gaps = Gaps::new();
    let mut gap = |name: String, got: &[f32]| {
        let expected = reference.get(&format!("{run}.{name}"));
        gaps.insert(name, largest_gap(got, expected));
    };
    for (site, values) in &recorder.sites {
        let name = site.to_string();
        if !name.starts_with("mixed") {
            gap(name, values);
        }
    }
    for (i, layer) in engine.save().layers.iter().enumerate() {
        match layer {
            LayerCache::Linear { conv, recurrent } => {
                gap(format!("conv.{i}"), &conv.to_dense());
                gap(format!("recurrent.{i}"), &recurrent.to_dense());
                let heads = engine.config().linear_num_value_heads;
                let by_head = (0..heads).flat_map(|head| engine.recurrent_state(i, head).expect("a state").to_vec());
                assert_eq!(by_head.collect::<Vec<_>>(), recurrent.to_dense());
            }
            LayerCache::Full { keys, values } => {
                gap(format!("key.{i}"), keys);
                gap(format!("value.{i}"), values);
            }
        }
    }
    gaps
}

/// Runs every way and asserts that nothing is further off than `tolerance`.
pub(crate) fn check(engine: &mut dyn Engine, reference: &Reference, tolerance: f32) {
    let mut largest = 0.0_f32;
    for run in RUNS {
        let gaps = compare(engine, reference, run);
        assert!(gaps.len() >= 4 + 2 * engine.config().num_hidden_layers(), "{run}: too few tensors: {gaps:?}");
        for (name, &gap) in &gaps {
            assert!(gap <= tolerance, "{run}.{name} is off by {gap}, at most {tolerance} allowed; all: {gaps:?}");
            largest = largest.max(gap);
        }
    }
    eprintln!("largest difference {largest:e}, tolerance {tolerance:e}");
}

/// Infinite for slices of different lengths or with a NaN.
pub(crate) fn largest_gap(got: &[f32], expected: &[f32]) -> f32 {
    if got.len() != expected.len() {
        return f32::INFINITY;
    }
    let gaps = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    gaps.fold(0.0, |largest: f32, gap| if gap.is_nan() { f32::INFINITY } else { largest.max(gap) })
}
