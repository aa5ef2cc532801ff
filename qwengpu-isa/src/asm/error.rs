//! Errors of assembly text.

use std::fmt;

use thiserror::Error;

use crate::op::Opcode;
use crate::span::Span;

/// An error and its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct AsmError {
    /// Where.
    pub span: Span,
    /// What.
    #[source]
    pub kind: AsmErrorKind,
}

/// What is wrong with an assembly text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AsmErrorKind {
    /// A character no token starts with.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// A number that is malformed or too large.
    #[error("{text:?} is no number of at most 32 bits")]
    Number {
        /// The text.
        text: String,
    },
    /// Another token was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// The token there.
        found: String,
    },
    /// No opcode has this name.
    #[error("unknown instruction {name:?}")]
    UnknownInstruction {
        /// The name.
        name: String,
    },
    /// No directive has this name.
    #[error("unknown directive .{name}")]
    UnknownDirective {
        /// The name.
        name: String,
    },
    /// A modifier that the opcode does not have, or too many.
    #[error("{opcode} has no modifier {modifier:?} here, its form is `{}`", opcode.syntax())]
    Modifier {
        /// The opcode.
        opcode: Opcode,
        /// The modifier.
        modifier: String,
    },
    /// A modifier is missing.
    #[error("{opcode} lacks a modifier, its form is `{}`", opcode.syntax())]
    MissingModifier {
        /// The opcode.
        opcode: Opcode,
    },
    /// A value is outside its range.
    #[error("{what} is {value}, expected {min}..={max}")]
    Range {
        /// What has the value.
        what: &'static str,
        /// The value.
        value: i64,
        /// Least value allowed.
        min: i64,
        /// Greatest value allowed.
        max: i64,
    },
    /// An address has two parts of one kind.
    #[error("address has more than one {part}")]
    AddressPart {
        /// The kind of part.
        part: &'static str,
    },
    /// A label is defined twice.
    #[error("label {name:?} is defined more than once")]
    DuplicateLabel {
        /// The name.
        name: String,
    },
    /// A label is not defined.
    #[error("label {name:?} is not defined")]
    UndefinedLabel {
        /// The name.
        name: String,
    },
    /// A program has more instructions than an index can number.
    #[error("program has more than {max} instructions")]
    TooLong {
        /// Most instructions allowed.
        max: u16,
    },
}

impl AsmError {
    /// The error with line, column and the line of the source.
    #[must_use]
    pub fn render(&self, source: &str) -> String {
        let location = self.span.location(source);
        let line = self.span.line(source);
        let width =
            source.get(self.span.range()).map_or(1, |text| text.lines().next().unwrap_or("").chars().count().max(1));
        // Tabs stay tabs in front of the marks, so that they line up.
        let pad: String = line.chars().take(location.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{location}: {}\n{line}\n{pad}{}", self.kind, "^".repeat(width))
    }
}

/// The errors of an assembly text, in the order of the text; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsmErrors {
    /// The errors.
    pub errors: Vec<AsmError>,
}

impl AsmErrors {
    /// All errors with line, column and the lines of the source.
    #[must_use]
    pub fn render(&self, source: &str) -> String {
        self.errors.iter().map(|error| error.render(source)).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for AsmErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error} (byte {})", error.span.start)?;
        }
        Ok(())
    }
}

impl std::error::Error for AsmErrors {}
