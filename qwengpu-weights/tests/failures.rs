//! An emission that fails says why, and leaves nothing behind.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::Tiny;
use qwengpu_weights::{Dtype, EmitError, EmitOptions, TensorError, TokenError, emit};
use tempfile::TempDir;

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries
}

/// Emits a machine into an empty parent, expects an error, and expects the parent to be empty still.
fn fail(tiny: &Tiny, options: &EmitOptions) -> EmitError {
    let parent = TempDir::new().expect("a directory");
    let error = tiny.emit(&parent.path().join("x"), options).expect_err("an error");
    assert_eq!(entries(parent.path()), [] as [PathBuf; 0]);
    error
}

#[test]
fn values_that_would_be_rounded_are_refused() {
    let mut tiny = Tiny::new(1024);
    tiny.compiled.tensors.layers[1].dt_bias[0] = 0.1;
    let error = fail(&tiny, &EmitOptions::default());
    let EmitError::Tensor(error @ TensorError::Inexact { .. }) = error else { panic!("{error}") };
    assert_eq!(
        error.to_string(),
        "model.layers.1.linear_attn.dt_bias: 0.1 at [0] is not exactly representable in bf16"
    );
    let parent = TempDir::new().expect("a directory");
    let options = EmitOptions { dtype: Dtype::F32, ..EmitOptions::default() };
    tiny.emit(&parent.path().join("x"), &options).expect("f32 holds it");

    tiny.compiled.tensors.layers[0].conv1d[5][3] = f32::NAN;
    let EmitError::Tensor(TensorError::Inexact { tensor, position, dtype, .. }) = fail(&tiny, &options) else {
        panic!("a number that is none")
    };
    assert_eq!(
        (tensor.as_str(), position, dtype),
        ("model.layers.0.linear_attn.conv1d.weight", vec![5, 0, 3], Dtype::F32)
    );

    let mut tiny = Tiny::new(1024);
    tiny.compiled.tensors.lm_head.entries[0].2 = 257.0;
    let EmitError::Tensor(TensorError::Inexact { tensor, .. }) = fail(&tiny, &EmitOptions::default()) else {
        panic!("nine bits")
    };
    assert_eq!(tensor, "lm_head.weight");
}

#[test]
fn tensors_and_tokens_that_do_not_fit_are_refused() {
    let mut tiny = Tiny::new(1024);
    tiny.compiled.tensors.layers[0].out_proj.cols += 1;
    assert!(matches!(fail(&tiny, &EmitOptions::default()), EmitError::Tensor(TensorError::Shape { .. })));

    let mut tiny = Tiny::new(1024);
    tiny.compiled.tensors.layers.pop();
    assert!(matches!(fail(&tiny, &EmitOptions::default()), EmitError::Tensor(TensorError::Layers { .. })));

    let mut tiny = Tiny::new(1024);
    tiny.compiled.tensors.embedding.rows -= 1;
    assert!(matches!(fail(&tiny, &EmitOptions::default()), EmitError::Token(TokenError::Count { .. })));

    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let run = |change: &dyn Fn(&mut qwengpu_weights::Source<'_>)| {
        let mut source = tiny.source();
        change(&mut source);
        let dir = parent.path().join("x");
        emit(&source, &dir, &EmitOptions::default(), &mut |_| ControlFlow::Continue(())).expect_err("an error")
    };
    let error = run(&|source| source.halt_token = source.netlist.tokens().len());
    assert!(matches!(error, EmitError::Token(TokenError::Halt { .. })), "{error}");
    let error = run(&|source| source.margins = [("thin".to_owned(), f64::NAN)].into());
    assert!(matches!(error, EmitError::Margin { .. }), "{error}");
    assert_eq!(entries(parent.path()), [] as [PathBuf; 0]);
}

#[test]
fn a_cancelled_emission_leaves_nothing() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    for max_shard_bytes in [1 << 20, 4 << 30] {
        for limit in [0, 1 << 20, u64::MAX] {
            let dir = parent.path().join("x");
            let options = EmitOptions { max_shard_bytes, ..EmitOptions::default() };
            let error = emit(&tiny.source(), &dir, &options, &mut |progress| {
                assert!(!dir.exists(), "the directory appears when it is complete");
                let stop = progress.written >= limit.min(progress.total);
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let Err(EmitError::Cancelled { written, total }) = error else { panic!("{error:?}") };
            assert!(written >= limit.min(total) && written <= total);
            assert_eq!(entries(parent.path()), [] as [PathBuf; 0]);
        }
    }
}

#[test]
fn existing_directories_are_kept() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let dir = parent.path().join("x");
    let overwrite = EmitOptions { overwrite: true, ..EmitOptions::default() };
    let keeps = |options: &EmitOptions| {
        let before = entries(&dir);
        let error = tiny.emit(&dir, options).expect_err("an error");
        assert_eq!((entries(parent.path()), entries(&dir)), (vec![dir.clone()], before));
        error
    };

    fs::create_dir(&dir).expect("a directory");
    assert!(matches!(keeps(&EmitOptions::default()), EmitError::Exists { .. }));
    fs::write(dir.join("thesis.txt"), "years of work").expect("a file");
    assert!(matches!(keeps(&EmitOptions::default()), EmitError::Exists { .. }));
    assert!(matches!(keeps(&overwrite), EmitError::NotReplaceable { .. }));

    let file = parent.path().join("file");
    fs::write(&file, "a file").expect("a file");
    assert!(matches!(tiny.emit(&file, &overwrite), Err(EmitError::NotReplaceable { .. })));
}

#[test]
fn checkpoints_are_replaced_when_asked() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let dir = parent.path().join("x");
    let overwrite = |dtype| EmitOptions { overwrite: true, dtype, ..EmitOptions::default() };
    fs::create_dir(&dir).expect("an empty directory is replaced");
    tiny.emit(&dir, &overwrite(Dtype::Bf16)).expect("a checkpoint");
    fs::write(dir.join("extra"), "goes too").expect("a file");
    tiny.emit(&dir, &overwrite(Dtype::F32)).expect("a checkpoint");
    assert_eq!(qwengpu_weights::Manifest::read(&dir).expect("a manifest").dtype, Dtype::F32);
    assert!(!dir.join("extra").exists());
    assert_eq!(entries(parent.path()), [dir]);
}

#[test]
fn places_where_nothing_can_be_made() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let emit = |path: &Path| tiny.emit(path, &EmitOptions::default()).expect_err("an error");
    let error = emit(&parent.path().join("missing/x"));
    assert!(matches!(&error, EmitError::Io { path, .. } if path.ends_with("missing/x")), "{error}");
    fs::write(parent.path().join("file"), "").expect("a file");
    let error = emit(&parent.path().join("file/x"));
    assert!(matches!(error, EmitError::Io { .. }), "{error}");
    assert!(matches!(emit(&parent.path().join("missing/..")), EmitError::Target { .. }));
    assert!(matches!(emit(Path::new("/")), EmitError::Exists { .. }));
    assert_eq!(entries(parent.path()).len(), 1);
}

/// Permissions do not bind every user; where they do, the error says so.
#[cfg(unix)]
#[test]
fn parents_that_may_not_be_written() {
    use std::os::unix::fs::PermissionsExt;

    let parent = TempDir::new().expect("a directory");
    let set = |mode| fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).expect("own directory");
    set(0o555);
    if fs::create_dir(parent.path().join("probe")).is_ok() {
        eprintln!("SKIPPED: this user may write to directories that forbid it");
    } else {
        assert!(matches!(fail_in(parent.path()), EmitError::PermissionDenied { .. }));
    }
    set(0o755);
}

#[cfg(unix)]
fn fail_in(parent: &Path) -> EmitError {
    Tiny::new(1024).emit(&parent.join("x"), &EmitOptions::default()).expect_err("a forbidden directory")
}
