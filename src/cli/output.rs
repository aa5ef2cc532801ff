//! Standard output.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Prints a line to standard output, or ends the program when it cannot be written.
macro_rules! outln {
    ($($text:tt)*) => { $crate::cli::output::write(format_args!("{}\n", format_args!($($text)*))) };
}
pub(crate) use outln;

/// Writes to standard output. A reader that has gone away ends the program without a word, as it does in other tools.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    if let Err(error) = io::stdout().lock().write_fmt(text) {
        if error.kind() == ErrorKind::BrokenPipe {
            process::exit(0);
        }
        eprintln!("standard output cannot be written: {error}");
        process::exit(2);
    }
}
