//! Emitted checkpoints in unmodified transformers; needs a Python with torch and transformers in `QWENGPU_PYTHON`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const ALL: &[&str] = &["decode", "prefill", "cut", "generate"];
const QUICK: &[&str] = &["prefill", "cut"];

/// Kernels of the suite, a launch of each, and the checks that it goes through.
const STREAMS: [(&str, usize, &[&str]); 5] = [
    ("vector_add", 0, ALL),
    ("reverse", 2, ALL),
    ("collatz", 0, QUICK),
    ("warp_vote", 0, QUICK),
    ("reduce_shared", 1, QUICK),
];

/// The arguments that give a launch of the suite.
fn launch_arguments(kernel: &str, number: usize) -> Vec<String> {
    let path = format!("{}/kernels/{kernel}.json", env!("CARGO_MANIFEST_DIR"));
    let case: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the case")).expect("JSON");
    let launch = &case["launches"][number];
    let list = |name: &str| launch[name].as_array().expect("a list").clone();
    let sizes = |name: &str| list(name).iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut arguments = vec![format!("--grid={}", sizes("grid")), format!("--block={}", sizes("block"))];
    arguments.extend(list("args").iter().map(|text| format!("--arg={}", text.as_str().expect("a text"))));
    arguments
}

/// The Python to use; without one the test says so, and fails if everything is required.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("QWENGPU_PYTHON").filter(|value| !value.is_empty()).map(PathBuf::from);
    if python.is_none() {
        let required = std::env::var_os("QWENGPU_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "QWENGPU_REQUIRE_ALL=1, and QWENGPU_PYTHON names no Python with transformers");
    }
    python
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("the program starts");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

fn qwengpu() -> Command {
    Command::new(env!("CARGO_BIN_EXE_qwengpu"))
}

fn check_stream(python: &Path, checkpoint: &Path, stream: &Path, dtype: &str, checks: &[&str]) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transformers/check_stream.py");
    let mut command = Command::new(python);
    command.arg(script).arg(checkpoint).arg(stream).args(["--dtype", dtype, "--checks"]).args(checks);
    run(&mut command)
}

#[test]
fn checkpoints_speak_the_records_in_transformers() {
    let Some(python) = python() else {
        // Seen without --nocapture, too: this goes past the test harness.
        let line = "SKIPPED: set QWENGPU_PYTHON to a Python with torch and transformers to test emitted checkpoints";
        std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes()).expect("standard error");
        return;
    };
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut failed = Vec::new();
    for (name, dtype) in [("bf16", "bfloat16"), ("f32", "float32")] {
        let checkpoint = folder.path().join(name);
        let (emitted, text) = run(qwengpu().args(["emit", "--dtype", name, "--out"]).arg(&checkpoint));
        assert!(emitted, "{text}");
        for (kernel, launch, checks) in STREAMS {
            let stream = folder.path().join(format!("{kernel}.json"));
            let file = format!("{}/kernels/{kernel}.ptx", env!("CARGO_MANIFEST_DIR"));
            let mut command = qwengpu();
            command.args(["tokens", &file, "--out"]).arg(&stream).args(launch_arguments(kernel, launch));
            let (written, text) = run(&mut command);
            assert!(written, "{text}");
            let (right, text) = check_stream(&python, &checkpoint, &stream, dtype, checks);
            eprintln!("{kernel} in {name}:\n{text}");
            if !right {
                failed.push(format!("{kernel} in {name}: {text}"));
            }
        }
    }
    assert_eq!(failed, Vec::<String>::new());

    // The check itself can fail: a stream with one wrong record.
    let stream = folder.path().join("vector_add.json");
    let text = std::fs::read_to_string(&stream).expect("the stream");
    let mut wrong: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    wrong["records"][7] = wrong["records"][6].clone();
    std::fs::write(&stream, wrong.to_string()).expect("written");
    let (right, text) = check_stream(&python, &folder.path().join("bf16"), &stream, "bfloat16", &["prefill"]);
    assert!(!right && text.contains("record 7 should be token"), "{text}");
}
