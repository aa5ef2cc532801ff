//! Source that a language model wrote: what it must not have, and clang within bounds.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::CudaError;

/// Bytes of a source.
const MAX_SOURCE: usize = 32 << 10;
/// Bytes that clang may write.
const MAX_OUTPUT: u64 = 8 << 20;
/// Bytes of memory that clang may ask for.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 4 << 30;
/// Time that clang may take.
const MAX_TIME: Duration = Duration::from_secs(20);
/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(5);
/// Bytes of clang's messages that are kept.
const MAX_MESSAGES: usize = 2000;

/// Bounds of the compiler's own, and short messages.
pub(super) const FLAGS: [&str; 8] = [
    "-ftemplate-depth=64",
    "-fconstexpr-depth=64",
    "-fconstexpr-steps=100000",
    "-fbracket-depth=128",
    "-ferror-limit=3",
    "-fno-caret-diagnostics",
    "-o",
    OUTPUT,
];

/// Words that reach beyond the compiler, besides those that begin with `__has_`.
const WORDS: [&str; 5] = ["_Pragma", "__pragma", "asm", "__asm", "__asm__"];

const OUTPUT: &str = "out.ptx";
const MESSAGES: &str = "messages";

/// Refuses what could read files or reach beyond the compiler.
pub(super) fn check(source: &str) -> Result<(), CudaError> {
    if source.len() > MAX_SOURCE {
        return Err(CudaError::Limit("32 KB"));
    }
    // Whatever the compiler joins or replaces before it looks for directives is refused, so that a line is a line.
    for (line, text) in (1..).zip(source.lines()) {
        let forbidden = |what: &str| Err(CudaError::Forbidden { line, what: what.to_owned() });
        if text.trim_end().ends_with('\\') || text.contains("??") {
            return forbidden("a line that goes on in the next, or a trigraph");
        }
        if let Some(word) = words(text).find(|word| WORDS.contains(word) || word.starts_with("__has_")) {
            return forbidden(word);
        }
        // A number sign that begins a directive may stand behind comments, and has a second spelling.
        for (place, mark) in text.match_indices('#').chain(text.match_indices("%:")) {
            let rest = text.get(place + mark.len()..).unwrap_or_default().trim_start();
            let directive: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            if !matches!(directive.as_str(), "define" | "undef") {
                return forbidden(&format!("the directive #{directive}"));
            }
        }
    }
    Ok(())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// Runs clang to its end or to its limits; gives the PTX.
pub(super) fn run(mut command: Command, folder: &TempDir, program: &Path) -> Result<String, CudaError> {
    let messages = folder.path().join(MESSAGES);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&messages)?);
    command.env_clear().env("TMPDIR", folder.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let start = |source| CudaError::Start { program: program.to_owned(), source };
    let mut child = command.spawn().map_err(start)?;
    bound(&child);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > MAX_TIME {
            child.kill()?;
            child.wait()?;
            return Err(CudaError::Limit("20 seconds"));
        }
        std::thread::sleep(TICK);
    };
    let said = std::fs::read(&messages)?;
    if status.success() {
        return Ok(std::fs::read_to_string(folder.path().join(OUTPUT))?);
    }
    if status.code().is_none() {
        return Err(CudaError::Limit("its memory, its processor time or its room for output"));
    }
    let said = String::from_utf8_lossy(&said);
    let end = said.char_indices().map(|(place, _)| place).find(|&place| place > MAX_MESSAGES);
    Err(CudaError::Source { messages: said.get(..end.unwrap_or(said.len())).unwrap_or_default().to_owned() })
}

/// Bounds the memory, the processor time and the files of a process.
#[cfg(target_os = "linux")]
fn bound(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let limits = [(Resource::As, MAX_MEMORY), (Resource::Cpu, MAX_TIME.as_secs()), (Resource::Fsize, MAX_OUTPUT)];
    for (resource, limit) in limits {
        // Fails only if the process has ended already.
        let _ = prlimit(Some(pid), resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
}

#[cfg(not(target_os = "linux"))]
fn bound(_: &Child) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_refused_in_every_spelling() {
        for source in [
            "#include \"/etc/passwd\"",
            "  # include <stdio.h>",
            "/* a */ #include \"x\"",
            "int a;\n%:include \"/etc/passwd\"",
            "??=include \"/etc/passwd\"",
            "#\\\ninclude \"x\"",
            "#embed \"/etc/passwd\"",
            "#import \"x\"",
            "#pragma once",
            "#if 1",
            "#",
            "_Pragma(\"once\")",
            "asm(\".incbin \\\"x\\\"\");",
            "int a = __has_include(\"/etc/passwd\");",
            "#define A #include",
        ] {
            assert!(check(source).is_err(), "{source}");
        }
        for source in ["#define N 4\n#undef N\n__global__ void f(int *a) { a[0] = 5 % 3; }", "int basm, pragma;"] {
            assert!(check(source).is_ok(), "{source}");
        }
        assert!(matches!(check(&" ".repeat(40_000)), Err(CudaError::Limit(_))));
    }
}
