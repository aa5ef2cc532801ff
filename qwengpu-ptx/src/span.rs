//! Where something stands in the source text.

use std::fmt;

/// A stretch of source text: a byte range and the place of its first byte.
///
/// Lines and columns count from 1; a column counts characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
    /// Line of the first byte, from 1 (0 only in [`Span::default`], which stands for "no place").
    pub line: u32,
    /// Column of the first byte, from 1.
    pub column: u32,
}

impl Span {
    /// The smallest span that holds both, starting where `self` starts.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span { end: self.end.max(last.end), ..self }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
