//! PTX text to tokens with spans.
//!
//! Comments and white space are dropped. `%` starts an identifier when a letter or `_` follows and is an
//! operator otherwise. A dot and the word behind it are one token, so `ld.param.u64` is a word and two
//! dotted words; `::` belongs to a dotted word (`.L1::evict_last`).

use crate::error::{PtxError, Result};
use crate::span::Span;

/// Longest source text accepted, in bytes.
pub(crate) const MAX_SOURCE_BYTES: usize = 16 << 20;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `add`, `%r1`, `$L__BB0_1`, `_`.
    Word,
    /// `.u32`, without its dot in [`Token::text`].
    Dotted,
    /// An integer literal and whether it has the `U` suffix.
    Int(u64, bool),
    /// `0f3F800000`: the bits of a 32-bit float.
    Float32(u32),
    /// `0d3FF0000000000000`: the bits of a 64-bit float.
    Float64(u64),
    /// A decimal fraction, as in `.version 6.4`.
    Decimal,
    /// A string in double quotes, without them in [`Token::text`].
    Text,
    /// One punctuation character, or one of `<<`, `>>`, `<=`, `>=`, `==`, `!=`, `&&`, `||`.
    Punct,
    /// The end of the text.
    End,
}

/// One token.
#[derive(Debug, Clone)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

/// Splits `source` into tokens; the last one is [`Kind::End`].
pub(crate) fn lex(source: &str) -> Result<Vec<Token<'_>>> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(PtxError::ImplLimit {
            at: Span::default(),
            what: "bytes of PTX text",
            need: source.len() as u64,
            limit: MAX_SOURCE_BYTES as u64,
            hint: "compile one kernel at a time",
        });
    }
    let mut lexer = Lexer { source, pos: 0, line: 1, line_start: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token()?;
        let last = token.kind == Kind::End;
        tokens.push(token);
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    pos: usize,
    line: u32,
    line_start: usize,
}

fn is_word_start(c: u8) -> bool {
    c.is_ascii_alphabetic() || c == b'_' || c == b'$'
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl<'a> Lexer<'a> {
    fn byte(&self, ahead: usize) -> u8 {
        *self.source.as_bytes().get(self.pos + ahead).unwrap_or(&0)
    }

    fn span_from(&self, start: usize) -> Span {
        let small = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span {
            start: small(start),
            end: small(self.pos),
            line: self.line,
            column: small(self.source.get(self.line_start..start).map_or(0, |s| s.chars().count()) + 1),
        }
    }

    fn new_line(&mut self) {
        self.line += 1;
        self.line_start = self.pos;
    }

    fn error(&self, start: usize, found: String, expected: &str) -> PtxError {
        PtxError::Syntax { at: self.span_from(start), found, expected: expected.to_owned() }
    }

    fn skip_blank(&mut self) -> Result<()> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b'\n', _) => {
                    self.pos += 1;
                    self.new_line();
                }
                (b' ' | b'\t' | b'\r' | 0x0b | 0x0c, _) => self.pos += 1,
                (b'/', b'/') => {
                    while self.pos < self.source.len() && self.byte(0) != b'\n' {
                        self.pos += 1;
                    }
                }
                (b'/', b'*') => {
                    let start = self.pos;
                    let open = self.span_from(start);
                    self.pos += 2;
                    while (self.byte(0), self.byte(1)) != (b'*', b'/') {
                        if self.pos >= self.source.len() {
                            return Err(PtxError::Syntax {
                                at: open,
                                found: "a comment that never ends".to_owned(),
                                expected: "`*/`".to_owned(),
                            });
                        }
                        self.pos += 1;
                        if self.source.as_bytes()[self.pos - 1] == b'\n' {
                            self.new_line();
                        }
                    }
                    self.pos += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn take_words(&mut self) {
        while is_word(self.byte(0)) {
            self.pos += 1;
        }
    }

    fn next_token(&mut self) -> Result<Token<'a>> {
        self.skip_blank()?;
        let start = self.pos;
        if start >= self.source.len() {
            return Ok(Token { kind: Kind::End, text: "", span: self.span_from(start) });
        }
        let c = self.byte(0);
        let mut text_range = None;
        let kind = if is_word_start(c) || (c == b'%' && is_word_start(self.byte(1))) {
            self.pos += 1;
            self.take_words();
            Kind::Word
        } else if c == b'.' && is_word(self.byte(1)) {
            self.pos += 1;
            self.take_words();
            while self.byte(0) == b':' && self.byte(1) == b':' && is_word(self.byte(2)) {
                self.pos += 2;
                self.take_words();
            }
            text_range = Some(start + 1..self.pos);
            Kind::Dotted
        } else if c.is_ascii_digit() {
            self.number(start)?
        } else if c == b'"' {
            self.pos += 1;
            while self.byte(0) != b'"' {
                if self.pos >= self.source.len() || self.byte(0) == b'\n' {
                    return Err(self.error(start, "a string that never ends".to_owned(), "a closing `\"`"));
                }
                self.pos += if self.byte(0) == b'\\' && self.byte(1).is_ascii_graphic() { 2 } else { 1 };
            }
            text_range = Some(start + 1..self.pos);
            self.pos += 1;
            Kind::Text
        } else if c.is_ascii_punctuation() && !matches!(c, b'\\' | b'`' | b'\'' | b'#') {
            self.pos += 1;
            if matches!(
                (c, self.byte(0)),
                (b'<', b'<' | b'=') | (b'>', b'>' | b'=') | (b'=' | b'!', b'=') | (b'&', b'&') | (b'|', b'|')
            ) {
                self.pos += 1;
            }
            Kind::Punct
        } else {
            let found = self.source.get(start..).and_then(|s| s.chars().next());
            let found = found.map_or_else(|| "a broken character".to_owned(), |c| format!("{c:?}"));
            return Err(self.error(start, found, "PTX"));
        };
        let range = text_range.unwrap_or(start..self.pos);
        let text = self.source.get(range).unwrap_or("");
        Ok(Token { kind, text, span: self.span_from(start) })
    }

    fn number(&mut self, start: usize) -> Result<Kind> {
        self.take_words();
        let word = self.source.get(start..self.pos).unwrap_or("");
        let lower = word.to_ascii_lowercase();
        let bad = |lexer: &Self, expected: &str| lexer.error(start, format!("`{word}`"), expected);
        if let Some(hex) = lower.strip_prefix("0f")
            && hex.len() == 8
        {
            return u32::from_str_radix(hex, 16)
                .map(Kind::Float32)
                .map_err(|_| bad(self, "eight hexadecimal digits after `0f`"));
        }
        if let Some(hex) = lower.strip_prefix("0d")
            && hex.len() == 16
        {
            return u64::from_str_radix(hex, 16)
                .map(Kind::Float64)
                .map_err(|_| bad(self, "sixteen hexadecimal digits after `0d`"));
        }
        let fraction = self.byte(0) == b'.' && self.byte(1).is_ascii_digit();
        if fraction && word.bytes().all(|c| c.is_ascii_digit()) {
            self.pos += 1;
            self.take_words();
            return Ok(Kind::Decimal);
        }
        let (digits, unsigned) = match lower.strip_suffix('u') {
            Some(rest) => (rest, true),
            None => (lower.as_str(), false),
        };
        let value = if let Some(hex) = digits.strip_prefix("0x") {
            u64::from_str_radix(hex, 16)
        } else if let Some(bits) = digits.strip_prefix("0b") {
            u64::from_str_radix(bits, 2)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(digits, 8)
        } else {
            digits.parse()
        };
        match value {
            Ok(value) => Ok(Kind::Int(value, unsigned)),
            Err(_) => Err(bad(self, "an integer of at most 64 bits")),
        }
    }
}
