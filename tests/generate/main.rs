//! Text with a GPU inside, from the stand-in of `examples/standin` with the machine in front of it.

mod conversation;
mod language;
mod questions;
mod transcript;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use qwengpu::generate::{Session, SessionOptions};

/// The merged stand-in; made once, and left for the next run's overwriting.
fn merged() -> &'static Path {
    static MERGED: OnceLock<PathBuf> = OnceLock::new();
    MERGED.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standin-merged");
        let base = standin("checkpoint");
        let said = qwengpu(&["merge", "--base", &base, "--out", &text(&out), "--overwrite"]);
        assert!(said.status.success(), "{said:?}");
        out
    })
}

fn session() -> Session {
    Session::open(merged(), SessionOptions::default()).expect("a merged model")
}

/// A file of the stand-in.
fn standin(name: &str) -> String {
    format!("{}/examples/standin/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

fn qwengpu(arguments: &[&str]) -> Output {
    qwengpu_with(arguments, "")
}

/// The program with an input.
fn qwengpu_with(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qwengpu"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that ends without reading closes the pipe.
    let _ = child.stdin.take().expect("an input").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}
