//! Places in a source text.

use std::fmt;
use std::ops::Range;

/// A range of bytes of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The range from the start of this span to the end of another.
    #[must_use]
    pub const fn to(self, end: Self) -> Self {
        Self { start: self.start, end: end.end }
    }

    /// The range, for slicing.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Line and column of the first byte.
    #[must_use]
    pub fn location(self, source: &str) -> LineColumn {
        let before = source.get(..self.start).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        LineColumn { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// The line that holds the first byte, without its end.
    #[must_use]
    pub fn line(self, source: &str) -> &str {
        source.lines().nth(self.location(source).line - 1).unwrap_or("")
    }
}

/// A line and a column, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_count_characters() {
        let source = "ab\nçd e\n";
        let span = Span::new(source.find('d').expect("is there"), source.len());
        assert_eq!(span.location(source), LineColumn { line: 2, column: 2 });
        assert_eq!(span.line(source), "çd e");
        let end = Span::new(source.len(), source.len());
        assert_eq!(end.location(source).to_string(), "3:1");
        assert_eq!(end.line(source), "");
    }
}
