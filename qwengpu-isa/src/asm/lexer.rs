//! Assembly text to tokens.

use std::fmt;

use super::error::{AsmError, AsmErrorKind};
use crate::span::Span;

/// A token and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) span: Span,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name: mnemonic, register, label, keyword.
    Identifier(String),
    /// A number.
    Integer(u32),
    /// One of `, [ ] + - * : @ ! .`
    Symbol(char),
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
    /// Text that is no token.
    Invalid(AsmErrorKind),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(name) => write!(f, "`{name}`"),
            Self::Integer(value) => write!(f, "`{value}`"),
            Self::Symbol(symbol) => write!(f, "`{symbol}`"),
            Self::Newline => f.write_str("end of line"),
            Self::End => f.write_str("end of text"),
            Self::Invalid(kind) => kind.fmt(f),
        }
    }
}

impl Spanned {
    /// The error of a token that is not what was expected.
    pub(super) fn unexpected(&self, expected: &'static str) -> AsmError {
        let kind = match &self.token {
            Token::Invalid(kind) => kind.clone(),
            Token::Identifier(_) | Token::Integer(_) | Token::Symbol(_) | Token::Newline | Token::End => {
                AsmErrorKind::Expected { expected, found: self.token.to_string() }
            }
        };
        AsmError { span: self.span, kind }
    }
}

/// Whether a name can start with a character.
pub(super) fn starts_identifier(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%')
}

/// Whether a name can go on with a character.
pub(super) fn continues_identifier(c: char) -> bool {
    starts_identifier(c) || c.is_ascii_digit()
}

/// The tokens of a text; the last is [`Token::End`].
pub(super) fn tokenize(source: &str) -> Vec<Spanned> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = source[start..].chars().next() {
        let rest = &source[start..];
        let (token, length) = match first {
            '\n' => (Some(Token::Newline), 1),
            c if c.is_whitespace() => (None, c.len_utf8()),
            '/' if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            c if starts_identifier(c) => {
                let length = rest.find(|c| !continues_identifier(c)).unwrap_or(rest.len());
                (Some(Token::Identifier(rest[..length].to_owned())), length)
            }
            c if c.is_ascii_digit() => {
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                (Some(integer(&rest[..length])), length)
            }
            ',' | '[' | ']' | '+' | '-' | '*' | ':' | '@' | '!' | '.' => (Some(Token::Symbol(first)), 1),
            other => (Some(Token::Invalid(AsmErrorKind::Character(other))), other.len_utf8()),
        };
        if let Some(token) = token {
            tokens.push(Spanned { token, span: Span::new(start, start + length) });
        }
        start += length;
    }
    tokens.push(Spanned { token: Token::End, span: Span::new(start, start) });
    tokens
}

fn integer(text: &str) -> Token {
    let digits = text.replace('_', "");
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        u32::from_str_radix(hex, 16)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u32::from_str_radix(binary, 2)
    } else {
        digits.parse()
    };
    value.map_or_else(|_| Token::Invalid(AsmErrorKind::Number { text: text.to_owned() }), Token::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_spans() {
        let tokens = tokenize("ld.u8 r1, [0x1f] // x\n4é");
        let text: Vec<String> =
            tokens.iter().map(|t| format!("{}..{} {}", t.span.start, t.span.end, t.token)).collect();
        assert_eq!(
            text,
            [
                "0..2 `ld`",
                "2..3 `.`",
                "3..5 `u8`",
                "6..8 `r1`",
                "8..9 `,`",
                "10..11 `[`",
                "11..15 `31`",
                "15..16 `]`",
                "21..22 end of line",
                "22..23 `4`",
                "23..25 unexpected character 'é'",
                "25..25 end of text",
            ]
        );
    }
}
