//! Instructions of fixed short runs, counted by valgrind's callgrind: they do not depend on how busy the machine is.
//!
//! `tests/instruction_counts.json` has what each run took when it was last renewed; one that takes 5 % more fails.
//! `QWENGPU_RENEW_COUNTS=1` writes the file anew. Counts are those of the debug build, which is what `cargo test`
//! builds: the crates whose speed matters are optimised there, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How far above its count a run may be, in percent.
const SLACK: u64 = 5;

/// A run of the program, and the function within which instructions count, what it calls included.
struct Subject {
    name: &'static str,
    /// A pattern of callgrind's; it must not match anything that the function calls.
    function: &'static str,
    /// `KERNELS` stands for the folder with the kernels.
    arguments: &'static str,
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "sparse engine: vector_add, prompt and 40 tokens",
        function: "*SparseEngine as*Engine>::argmax",
        arguments: "run KERNELS/vector_add.ptx --grid 1 --block 4 --arg buf:i32:1,2,3,4 --arg buf:i32:10,20,30,40 \
                    --arg zeros:i32:4 --arg i32:4",
    },
    Subject {
        name: "lowering: bitonic_sort",
        function: "qwengpu_ptx::pipeline::lower",
        arguments: "ptx KERNELS/bitonic_sort.ptx",
    },
    Subject {
        name: "interpreter: collatz of four numbers",
        function: "*InterpEngine as*Engine>::run",
        arguments: "run KERNELS/collatz.ptx --engine interp --grid 1 --block 4 --arg buf:u32:27,97,871,6171 \
                    --arg zeros:i32:4",
    },
];

type Counts = BTreeMap<String, u64>;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instruction_counts.json")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Instructions of the subject's function.
fn count(subject: &Subject) -> u64 {
    let kernels = format!("{}/kernels", env!("CARGO_MANIFEST_DIR"));
    let profile = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--toggle-collect={}", subject.function)])
        .arg(format!("--callgrind-out-file={}", profile.path().display()))
        .arg(env!("CARGO_BIN_EXE_qwengpu"))
        .args(subject.arguments.split_whitespace().map(|argument| argument.replace("KERNELS", &kernels)))
        .output()
        .expect("valgrind starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", subject.name);
    let collected = messages.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    let collected = collected.unwrap_or_default();
    assert!(collected > 100_000, "{}: is {} another function now? {messages}", subject.name, subject.function);
    collected
}

/// What is wrong with the counts.
fn complaints(counts: &Counts, limits: &Counts) -> Vec<String> {
    let complaint = |(name, &count): (&String, &u64)| match limits.get(name) {
        None => Some(format!("{name}: {count} instructions, and no limit")),
        Some(&limit) if count > limit + limit * SLACK / 100 => {
            Some(format!("{name}: {count} instructions, more than {SLACK} % above {limit}"))
        }
        Some(_) => None,
    };
    counts.iter().filter_map(complaint).collect()
}

#[test]
fn no_run_takes_more_instructions_than_it_did() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(!is_set("QWENGPU_REQUIRE_ALL"), "QWENGPU_REQUIRE_ALL=1, and there is no valgrind");
        println!("SKIPPED: there is no valgrind");
        return;
    }
    if !cfg!(debug_assertions) {
        println!("SKIPPED: the limits are those of the debug build");
        return;
    }
    // All at once: what is counted does not depend on how busy the machine is.
    let counts: Counts = std::thread::scope(|scope| {
        let runs = SUBJECTS.iter().map(|subject| (subject.name, scope.spawn(|| count(subject)))).collect::<Vec<_>>();
        runs.into_iter().map(|(name, run)| (name.to_owned(), run.join().expect("it is counted"))).collect()
    });
    if is_set("QWENGPU_RENEW_COUNTS") {
        let text = serde_json::to_string_pretty(&counts).expect("it serialises");
        std::fs::write(file(), text + "\n").expect("the file is written");
        return;
    }
    let text = std::fs::read_to_string(file()).expect("the file is readable");
    let limits: Counts = serde_json::from_str(&text).expect("numbers by name");
    for (name, count) in &counts {
        println!("{name}: {count} instructions");
    }
    let complaints = complaints(&counts, &limits);
    assert!(
        complaints.is_empty(),
        "{}\nIf that is what it has to cost, say why in the commit, and renew the counts:\n  \
         QWENGPU_RENEW_COUNTS=1 cargo test --workspace --test instruction_counts",
        complaints.join("\n")
    );
}

#[test]
fn a_lower_limit_is_exceeded() {
    let counts = |count| Counts::from([("run".to_owned(), count)]);
    assert!(complaints(&counts(1050), &counts(1000)).is_empty());
    assert!(complaints(&counts(10), &counts(1000)).is_empty());
    assert!(complaints(&counts(1051), &counts(1000))[0].contains("more than 5 % above 1000"));
    assert!(complaints(&counts(1), &Counts::new())[0].contains("no limit"));
}
