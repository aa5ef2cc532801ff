//! The distribution over the base's tokens is the base's.

use std::path::Path;

use qwengpu_model::{DenseEngine, Engine, Precision, Recorder, Site};
use qwengpu_weights::{Dtype, Layout};

use crate::random_base::{RandomBase, Storage};
use crate::tiny::undo_a_norm;
use crate::{Merged, options, words};

/// More than a chunk of the delta rule.
const TOKENS: usize = 83;
/// What machine tokens may have at most in a language position.
const REPELLED: f32 = -200.0;

/// Logits `[tokens, vocabulary]`, most of the tokens in one forward, the last ones one by one.
fn logits(dir: &Path, tokens: &[u32]) -> Vec<f32> {
    let mut engine = DenseEngine::from_dir(dir, Precision::F32).expect("a model");
    let mut recorder = Recorder::default();
    let (first, rest) = tokens.split_at(TOKENS - 9);
    engine.forward_probed(first, &mut recorder).expect("a forward");
    rest.iter().for_each(|&token| engine.forward_probed(&[token], &mut recorder).expect("a forward"));
    recorder.sites.remove(&Site::Logits).expect("logits")
}

/// The largest difference of logits as a part of the largest logit; machine rows are checked on the way.
fn gap(merged: &Merged, base: &RandomBase) -> f32 {
    let tokens = words(base, TOKENS);
    let (expected, got) = (logits(&merged.base(), &tokens), logits(&merged.merged(), &tokens));
    let rows = merged.manifest.vocab_size;
    assert_eq!((expected.len(), got.len()), (TOKENS * base.vocab, TOKENS * rows));
    let mut largest = 0.0_f32;
    let mut difference = 0.0_f32;
    for (expected, got) in expected.chunks_exact(base.vocab).zip(got.chunks_exact(rows)) {
        let (language, machine) = got.split_at(base.vocab);
        assert!(machine.iter().all(|&logit| logit < REPELLED), "a machine token may be spoken: {machine:?}");
        for (a, b) in expected.iter().zip(language) {
            assert!(a.is_finite() && b.is_finite());
            largest = largest.max(a.abs());
            difference = difference.max((a - b).abs());
        }
    }
    assert!(largest > 1.0, "the logits are too flat to tell anything: {largest}");
    difference / largest
}

fn check(name: &str, base: &RandomBase, hidden: usize, layout: Layout, tolerance: f32) {
    let merged = Merged::new(base, hidden, &options(Dtype::F32, layout));
    let gap = gap(&merged, base);
    eprintln!("{name}: {gap:e}");
    assert!(gap <= tolerance, "{name}: logits differ by {gap:e} of the largest");
}

#[test]
fn nothing_is_lost_where_the_size_grows_by_a_power_of_four() {
    let tiny = RandomBase::tiny();
    check("untied", &tiny, 256, Layout::Prefix, 3e-6);
    check("sixteenfold", &tiny, 1024, Layout::Portable, 3e-6);
    let tied = RandomBase { tied: true, storage: Storage::Bf16, seed: 2, ..tiny };
    check("tied", &tied, 256, Layout::Prefix, 3e-6);
}

#[test]
fn other_sizes_differ_by_rounding_alone() {
    let tiny = RandomBase::tiny();
    let odd = RandomBase { hidden: 48, intermediate: 40, key_heads: 1, value_heads: 1, seed: 3, ..tiny.clone() };
    check("48 to 256", &odd, 256, Layout::Prefix, 1e-5);
    let grouped =
        RandomBase { hidden: 80, key_heads: 2, value_heads: 4, layers: 8, shards: 3, seed: 4, ..tiny.clone() };
    check("two value heads a key head", &grouped, 256, Layout::Portable, 1e-5);
    let multimodal = RandomBase { multimodal: true, tied: true, storage: Storage::Mixed, seed: 5, ..tiny.clone() };
    check("multimodal", &multimodal, 192, Layout::Prefix, 1e-5);
    // No full-attention layer: one of zeros is added.
    let linear = RandomBase { layers: 3, seed: 6, ..tiny };
    check("linear layers alone", &linear, 160, Layout::Prefix, 1e-5);
}

#[test]
fn a_norm_that_is_not_rescaled_is_seen() {
    let base = RandomBase { hidden: 48, seed: 3, ..RandomBase::tiny() };
    let merged = Merged::new(&base, 256, &options(Dtype::F32, Layout::Prefix));
    undo_a_norm(&merged.merged(), &merged.manifest);
    assert!(gap(&merged, &base) > 1e-3);
}
