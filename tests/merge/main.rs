//! Merged checkpoints: the base's function is unchanged, and the machine in front of it is exact.

#[path = "../../qwengpu-weights/tests/common/random_base.rs"]
#[allow(unreachable_pub, reason = "shared with tests of another crate")]
mod random_base;
#[path = "../../qwengpu-weights/tests/common/mod.rs"]
mod tiny;

mod command;
mod launch;
mod logits;
mod states;

use std::path::{Path, PathBuf};

use qwengpu_weights::{Layout, Manifest, MergeOptions};
use random_base::{Dice, RandomBase};
use tempfile::TempDir;
use tiny::Tiny;

/// A random base, and the same with the tiny machine in front of it.
struct Merged {
    folder: TempDir,
    tiny: Tiny,
    manifest: Manifest,
}

impl Merged {
    fn new(base: &RandomBase, hidden: usize, options: &MergeOptions) -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let (from, to) = (folder.path().join("base"), folder.path().join("merged"));
        base.write(&from).expect("a base");
        let (tiny, manifest) = Tiny::merge(&from, hidden, &to, options).expect("a merge");
        Self { folder, tiny, manifest }
    }

    fn base(&self) -> PathBuf {
        self.folder.path().join("base")
    }

    fn merged(&self) -> PathBuf {
        self.folder.path().join("merged")
    }

    fn id(&self, number: usize) -> u32 {
        self.manifest.token_id(number).expect("a token of the machine")
    }
}

fn options(dtype: qwengpu_weights::Dtype, layout: Layout) -> MergeOptions {
    MergeOptions { dtype, layout, ..MergeOptions::default() }
}

/// Tokens of a base.
fn words(base: &RandomBase, count: usize) -> Vec<u32> {
    let mut dice = Dice(7);
    let vocab = u32::try_from(base.vocab).expect("a small vocabulary");
    (0..count).map(|_| dice.below(vocab)).collect()
}

/// A folder for what programs write.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
