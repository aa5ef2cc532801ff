//! Both engines against what transformers computes.

mod common;

use common::{Reference, check, fixture, make_checkpoint};
use qwengpu_model::{DenseEngine, Precision};

/// Accumulated f32 rounding over up to 8 layers with heads of 128 stays below this; measured 2e-5.
const F32_TOLERANCE: f32 = 1e-4;

fn check_f32(dir: &std::path::Path, tolerance: f32) {
    let reference = Reference::read(dir);
    let mut dense = DenseEngine::from_dir(dir, Precision::F32).expect("a dense engine");
    check(&mut dense, &reference, tolerance);
}

fn check_generated(options: &[&str]) {
    if let Some(dir) = make_checkpoint(options) {
        check_f32(dir.path(), F32_TOLERANCE);
    }
}

#[test]
fn committed_fixture() {
    check_f32(&fixture(), F32_TOLERANCE);
}

#[test]
fn four_layers_tied() {
    check_generated(&[]);
}

#[test]
fn four_layers_untied_equal_heads() {
    check_generated(&["--untied", "--linear-heads", "4", "4", "--seed", "1"]);
}

#[test]
fn eight_layers() {
    check_generated(&["--layers", "8", "--untied", "--seed", "2"]);
}

#[test]
fn multimodal_names() {
    check_generated(&["--vlm", "--seed", "3"]);
}

#[test]
fn multimodal_names_untied() {
    check_generated(&["--vlm", "--untied", "--seed", "4"]);
}

#[test]
fn sharded() {
    check_generated(&["--shard-size", "500KB", "--seed", "5"]);
}
