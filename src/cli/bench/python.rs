//! A Python with torch and transformers, and the script that times them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use qwengpu::Precision;
use serde::Deserialize;
use tempfile::TempDir;
use thiserror::Error;

use super::clock::Reading;

/// A part of the program, so that it needs no source tree.
const SCRIPT: &str = include_str!("../../../tests/transformers/decode_speed.py");

/// What a run may take: a prefill of a hundred tokens in bf16 takes half a minute where that multiplies slowly.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Milliseconds between two looks at a run.
const LOOK: Duration = Duration::from_millis(50);

/// Lines of standard error that a message shows.
const LINES: usize = 6;

/// Why transformers was not timed.
#[derive(Debug, Error)]
pub(crate) enum PythonError {
    #[error("{} could not be started: {source}; name a Python with --transformers", python.display())]
    Start { python: PathBuf, source: io::Error },
    #[error(
        "{} lacks a module: {message}; get both with {} -m pip install torch transformers",
        python.display(),
        python.display()
    )]
    Module { python: PathBuf, message: String },
    #[error("{} failed with {status}; the checkpoint needs a transformers that has Qwen3.5:\n{messages}", python.display())]
    Failed { python: PathBuf, status: ExitStatus, messages: String },
    #[error("{} was stopped after {} s; try more threads, or --quick", python.display(), patience.as_secs())]
    Slow { python: PathBuf, patience: Duration },
    #[error("the script of decode_speed.py gave no figures but {answer:?}: {source}")]
    Answer { answer: String, source: serde_json::Error },
    #[error("the script gave {got} steps for {expected}")]
    Steps { expected: usize, got: usize },
    #[error("the folder for the script: {0}; choose another one for temporary files with TMPDIR")]
    Folder(#[from] io::Error),
}

/// What one turn took and said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Turn {
    /// All of the prompt at once.
    #[serde(rename = "prefill_seconds")]
    pub(crate) prefill: Reading,
    /// Each token behind it, without a first one.
    #[serde(rename = "step_seconds")]
    pub(crate) steps: Vec<Reading>,
    /// The token that follows on the prompt, and on each step, the first one included.
    pub(crate) spoken: Vec<u32>,
}

impl Turn {
    /// The least of two turns, each step by itself.
    pub(crate) fn take_less(&mut self, other: &Self) {
        self.prefill = self.prefill.least(other.prefill);
        self.steps.iter_mut().zip(&other.steps).for_each(|(step, &other)| *step = step.least(other));
    }
}

/// An answer of the script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Answer {
    torch: String,
    transformers: String,
    #[serde(flatten)]
    pub(crate) turn: Turn,
}

impl Answer {
    fn parse(text: &str, steps: usize) -> Result<Self, PythonError> {
        // Libraries may print before it.
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let answer: Self = serde_json::from_str(line)
            .map_err(|source| PythonError::Answer { answer: line.chars().take(200).collect(), source })?;
        let got = answer.turn.steps.len();
        if got == steps { Ok(answer) } else { Err(PythonError::Steps { expected: steps, got }) }
    }

    /// What was timed.
    pub(crate) fn versions(&self) -> String {
        format!("transformers {} on torch {}", self.transformers, self.torch)
    }
}

/// A Python that has what it takes.
#[derive(Debug)]
pub(crate) struct Python {
    program: PathBuf,
    folder: TempDir,
}

impl Python {
    /// Starts it, torch and transformers once.
    pub(crate) fn find(program: &Path) -> Result<Self, PythonError> {
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("decode_speed.py"), SCRIPT)?;
        let python = Self { program: program.to_owned(), folder };
        python.run(&["--help".to_owned()], 1, PATIENCE)?;
        Ok(python)
    }

    /// One turn on a checkpoint: a prefill, then one step that is not timed and `steps` that are.
    pub(crate) fn time(
        &self,
        checkpoint: &Path,
        precision: Precision,
        threads: usize,
        prompt: &[u32],
        steps: usize,
    ) -> Result<Answer, PythonError> {
        let ids = self.folder.path().join("ids.json");
        std::fs::write(&ids, format!("{prompt:?}"))?;
        let dtype = if precision == Precision::F32 { "float32" } else { "bfloat16" };
        let mut arguments = vec![checkpoint.display().to_string(), "--json".to_owned()];
        arguments.extend(["--dtype", dtype, "--prompt-ids", "ids.json"].map(str::to_owned));
        arguments.extend([format!("--threads={threads}"), format!("--tokens={steps}")]);
        Answer::parse(&self.run(&arguments, threads, PATIENCE)?, steps)
    }

    /// Runs the script in its folder and gives its standard output.
    fn run(&self, arguments: &[String], threads: usize, patience: Duration) -> Result<String, PythonError> {
        let python = || self.program.clone();
        // Files: a pipe that nobody reads would stop the script.
        let (out, messages) = (self.folder.path().join("out"), self.folder.path().join("messages"));
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path()).arg("decode_speed.py").args(arguments);
        // A pool is as large when it is made as it will ever be.
        command.env("OMP_NUM_THREADS", threads.to_string()).env("HF_HUB_OFFLINE", "1");
        command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&messages)?);
        let mut child = command.spawn().map_err(|source| PythonError::Start { python: python(), source })?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begun.elapsed() > patience {
                child.kill()?;
                child.wait()?;
                return Err(PythonError::Slow { python: python(), patience });
            }
            std::thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(String::from_utf8_lossy(&std::fs::read(&out)?).into_owned());
        }
        let messages = String::from_utf8_lossy(&std::fs::read(&messages)?).into_owned();
        let lines: Vec<&str> = messages.lines().filter(|line| !line.trim().is_empty()).collect();
        if let Some(line) = lines.iter().find(|line| line.starts_with("ModuleNotFoundError: ")) {
            return Err(PythonError::Module { python: python(), message: (*line).to_owned() });
        }
        let messages = lines[lines.len().saturating_sub(LINES)..].join("\n");
        Err(PythonError::Failed { python: python(), status, messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"torch": "2", "transformers": "5", "dtype": "float32", "threads": 1,
        "prefill_seconds": [2.0, 4.0], "step_seconds": [[0.5, 0.5], [0.25, 0.25]], "spoken": [7, 8, 9, 10]}"#;

    fn answer() -> String {
        format!("a library's line\n{}\n", ANSWER.replace('\n', " "))
    }

    #[test]
    fn an_answer_is_the_last_line() {
        let answer = Answer::parse(&answer(), 2).expect("an answer");
        assert_eq!(answer.versions(), "transformers 5 on torch 2");
        let reading = |wall, cpu| Reading { wall, cpu: Some(cpu) };
        let turn = Turn {
            prefill: reading(2.0, 4.0),
            steps: vec![reading(0.5, 0.5), reading(0.25, 0.25)],
            spoken: vec![7, 8, 9, 10],
        };
        assert_eq!(answer.turn, turn);
    }

    #[test]
    fn other_answers_are_errors() {
        let empty = Answer::parse("", 2).expect_err("nothing");
        assert!(matches!(empty, PythonError::Answer { .. }), "{empty}");
        let other = Answer::parse("{\"torch\": \"2\"}", 2).expect_err("a part");
        assert!(other.to_string().contains("missing field"), "{other}");
        let short = Answer::parse(&answer(), 3).expect_err("too few");
        assert_eq!(short.to_string(), "the script gave 2 steps for 3");
    }

    #[test]
    fn the_least_of_each_step_counts() {
        let mut turn = Answer::parse(&answer(), 2).expect("an answer").turn;
        let mut other = turn.clone();
        (turn.steps[0].wall, other.steps[1].wall, other.prefill.wall) = (0.75, 0.125, 3.0);
        turn.take_less(&other);
        let walls: Vec<f64> = turn.steps.iter().map(|step| step.wall).collect();
        assert_eq!((walls, turn.prefill.wall), (vec![0.5, 0.125], 2.0));
    }

    /// A program in place of Python, which gets the script as its first argument.
    #[cfg(unix)]
    fn program(folder: &TempDir, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join("python");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    #[test]
    #[cfg(unix)]
    fn what_fails_says_how_to_go_on() {
        let folder = TempDir::new().expect("a folder");
        let missing = Python::find(&folder.path().join("none")).expect_err("no such program");
        assert!(matches!(missing, PythonError::Start { .. }), "{missing}");
        let path = program(&folder, "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1");
        let bare = Python::find(&path).expect_err("no torch").to_string();
        assert!(bare.contains("'torch'") && bare.contains("-m pip install torch transformers"), "{bare}");
        let path = program(&folder, "echo why >&2; exit 3");
        let failed = Python::find(&path).expect_err("it fails").to_string();
        assert!(failed.contains("exit status: 3") && failed.ends_with("\nwhy"), "{failed}");
    }

    #[test]
    #[cfg(unix)]
    fn a_run_that_does_not_end_is_stopped() {
        let folder = TempDir::new().expect("a folder");
        // exec: what is stopped is the sleep itself.
        let path = program(&folder, "[ \"$2\" = --help ] || exec sleep 60");
        let python = Python::find(&path).expect("it answers --help");
        let begun = Instant::now();
        let slow = python.run(&["x".to_owned()], 1, Duration::from_millis(100)).expect_err("too slow");
        assert!(matches!(slow, PythonError::Slow { .. }), "{slow}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    #[cfg(unix)]
    fn the_script_gets_the_tokens() {
        let folder = TempDir::new().expect("a folder");
        let text = format!("[ \"$2\" = --help ] && exit; cat ids.json; echo; echo '{}'", ANSWER.replace('\n', " "));
        let python = Python::find(&program(&folder, &text)).expect("it answers --help");
        python.time(Path::new("x"), Precision::F32, 1, &[1, 2], 2).expect("an answer");
        let ids = std::fs::read_to_string(python.folder.path().join("out")).expect("what was printed");
        assert!(ids.starts_with("[1, 2]\n"), "{ids}");
    }
}
