//! Running the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A kernel of the suite.
pub(crate) fn kernel(file: &str) -> String {
    format!("{}/kernels/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

impl Finished {
    /// The run succeeded and had nothing to complain about.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""), "standard output: {}", self.stdout);
        self.stdout
    }

    /// The run ended with a status, without a panic, and its message has these parts.
    #[track_caller]
    pub(crate) fn failure(self, status: i32, parts: &[&str]) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        // Without the drawing around excerpts.
        let flat = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ").replace("| ", "");
        for part in parts {
            assert!(flat.contains(part), "{part:?} is missing in: {}", self.stderr);
        }
        self
    }
}

/// The program, to be given more settings.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qwengpu"));
    command.args(arguments).env_remove("QWENGPU_CLANG");
    command
}

/// Runs the program with arguments.
pub(crate) fn qwengpu<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Finished {
    command(arguments).output().expect("the program starts").into()
}

/// Runs `run` on the interpreter with the arguments in one text.
pub(crate) fn run_interp(file: &str, rest: &str) -> Finished {
    let mut arguments = vec!["run", file, "--engine", "interp"];
    arguments.extend(rest.split_whitespace());
    qwengpu(arguments)
}

/// A file with contents in a folder of its own.
pub(crate) fn file(name: &str, contents: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, contents).expect("the file is written");
    (folder, path)
}

/// An emitted checkpoint in bf16, made once.
pub(crate) fn checkpoint() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let out = folder.path().join("checkpoint");
        let arguments = ["emit".as_ref(), "--out".as_ref(), out.as_os_str()];
        assert_eq!(qwengpu(arguments).status, Some(0), "the checkpoint is emitted");
        folder
    });
    Box::leak(folder.path().join("checkpoint").into_boxed_path())
}

/// A copy of the emitted checkpoint that a test may damage.
pub(crate) fn copy_of_checkpoint() -> TempDir {
    let copy = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for entry in std::fs::read_dir(checkpoint()).expect("the checkpoint") {
        let path = entry.expect("an entry").path();
        let target = copy.path().join(path.file_name().expect("a name"));
        // Weights are mostly holes, which a plain copy would fill.
        let copied = std::process::Command::new("cp").arg("--sparse=always").arg(&path).arg(&target).status();
        assert!(copied.expect("cp runs").success());
    }
    copy
}
