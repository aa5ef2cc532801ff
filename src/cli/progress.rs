//! What moves and what has colours: only on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Milliseconds between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// A spinner on standard error; nothing if that is no terminal. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    pub(crate) fn new(message: &str) -> Self {
        let bar = if io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_message(message.to_owned());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// A spinner that counts records.
    pub(crate) fn counting() -> Self {
        let spinner = Self::new("");
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} records, {per_sec} {msg}") {
            spinner.0.set_style(style);
        }
        spinner
    }

    pub(crate) fn count(&self) {
        self.0.inc(1);
    }

    pub(crate) fn message(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar of bytes on standard error; nothing if that is no terminal. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn bytes() -> Self {
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Whether the user wants no colour.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Sets how errors look: in colour, with line drawing and wrapped lines only on a terminal.
pub(crate) fn install_error_style() -> Result<(), miette::InstallError> {
    let terminal = io::stderr().is_terminal();
    miette::set_hook(Box::new(move |_| {
        let options = miette::MietteHandlerOpts::new().color(terminal && !no_color()).unicode(terminal);
        Box::new(options.terminal_links(false).break_words(false).wrap_lines(terminal).build())
    }))
}

/// Text styles of standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn stdout() -> Self {
        Self { on: io::stdout().is_terminal() && !no_color() }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }
}
