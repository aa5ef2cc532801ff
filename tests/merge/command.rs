//! `qwengpu merge` from outside: what it prints, and what it refuses.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::random_base::RandomBase;
use crate::{folder, text};

/// Runs the program; an error is what it printed there.
pub(crate) fn qwengpu(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_qwengpu")).args(arguments).output().expect("the program starts");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    assert!(!err.contains("panicked"), "{err}");
    match output.status.code() {
        Some(0) => Ok(out),
        code => {
            assert_eq!(code, Some(2), "{err}");
            Err(err)
        }
    }
}

#[test]
fn sizes_that_do_not_work_are_refused_with_those_that_do() {
    let folder = folder();
    let (base, out) = (text(&folder.path().join("base")), text(&folder.path().join("merged")));
    RandomBase::tiny().write(base.as_ref()).expect("a base");
    for (hidden, reason) in [("64", "no channel for a machine"), ("3001", "power of four"), ("1024", "channels")] {
        let error = qwengpu(&["merge", "--base", &base, "--out", &out, "--hidden", hidden]).expect_err("a size");
        assert!(error.contains(&format!("hidden size {hidden} does not work")) && error.contains(reason), "{error}");
        assert!(error.contains("these sizes work: ") && error.contains("4096"), "{error}");
    }
    fs::create_dir(&out).expect("a directory");
    let error = qwengpu(&["merge", "--base", &base, "--out", &out]).expect_err("it exists");
    assert!(error.contains("exists already; --overwrite replaces a checkpoint"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    let said = qwengpu(&[
        "merge",
        "--base",
        &base,
        "--out",
        &out,
        "--hidden",
        "4096",
        "--overwrite",
        "--json",
        "--dtype",
        "f32",
    ]);
    let facts: Value = serde_json::from_str(&said.expect("a merge")).expect("JSON");
    assert_eq!((&facts["hidden_size"], &facts["exact"]), (&4096.into(), &true.into()));
    let error = qwengpu(&["merge", "--base", &out, "--out", &text(&folder.path().join("twice"))]).expect_err("a GPU");
    assert!(error.contains("the base already has a GPU"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

/// A disk without room, by a limit on the size of files.
#[test]
#[cfg(unix)]
fn a_file_that_cannot_grow_leaves_nothing_behind() {
    let folder = folder();
    let (base, out) = (text(&folder.path().join("base")), text(&folder.path().join("merged")));
    RandomBase::tiny().write(base.as_ref()).expect("a base");
    // Blocks of 512 bytes. The signal that comes with the limit would end the program without a word.
    let limited = "trap '' XFSZ; ulimit -f 40000; exec \"$0\" merge --base \"$1\" --out \"$2\"";
    let said = std::process::Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_qwengpu"), &base, &out])
        .output()
        .expect("a shell");
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("too large"), "{said:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "only the base is there");
}
