//! Recursive descent over tokens.
//!
//! The parser knows PTX's grammar and nothing of its meaning: an instruction is a name, dotted words and
//! operands. Nesting of scopes, lists and constant expressions is limited to [`MAX_DEPTH`].

mod constant;
mod directive;
mod function;
mod inst;

use crate::ast::{Module, Name};
use crate::error::{PtxError, Result};
use crate::lexer::{Kind, Token, lex};
use crate::span::Span;

/// Deepest nesting of scopes, lists or constant expressions.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Parses a PTX module.
///
/// # Errors
///
/// [`PtxError::Syntax`] at the first token that does not fit the grammar, and
/// [`PtxError::ImplLimit`] when the text is too long or nests too deeply.
pub fn parse(source: &str) -> std::result::Result<Module, PtxError> {
    let tokens = lex(source)?;
    Parser { tokens: &tokens, pos: 0, depth: 0 }.module()
}

pub(crate) struct Parser<'t, 'a> {
    /// Ends with [`Kind::End`].
    tokens: &'t [Token<'a>],
    pos: usize,
    depth: u32,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn peek(&self) -> &'t Token<'a> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &'t Token<'a> {
        &self.tokens[(self.pos + ahead).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> &'t Token<'a> {
        let token = self.peek();
        self.pos = (self.pos + 1).min(self.tokens.len() - 1);
        token
    }

    /// The span of the token before the current one.
    fn last_span(&self) -> Span {
        self.tokens[self.pos.saturating_sub(1)].span
    }

    fn is(&self, punct: &str) -> bool {
        self.peek().kind == Kind::Punct && self.peek().text == punct
    }

    fn is_dotted(&self, text: &str) -> bool {
        self.peek().kind == Kind::Dotted && self.peek().text == text
    }

    fn eat(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        if found {
            self.next();
        }
        found
    }

    fn eat_dotted(&mut self, text: &str) -> bool {
        let found = self.is_dotted(text);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, punct: &str) -> Result<Span> {
        if self.is(punct) { Ok(self.next().span) } else { Err(self.unexpected(&format!("`{punct}`"))) }
    }

    fn unexpected(&self, expected: &str) -> PtxError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Dotted => format!("`.{}`", token.text),
            Kind::Text => format!("\"{}\"", token.text),
            Kind::Word | Kind::Int(..) | Kind::Float32(_) | Kind::Float64(_) | Kind::Decimal | Kind::Punct => {
                format!("`{}`", token.text)
            }
        };
        PtxError::Syntax { at: token.span, found, expected: expected.to_owned() }
    }

    fn name(&mut self, what: &str) -> Result<Name> {
        if self.peek().kind != Kind::Word {
            return Err(self.unexpected(what));
        }
        let token = self.next();
        Ok(Name { text: token.text.to_owned(), span: token.span })
    }

    /// Runs `body` one level deeper.
    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(PtxError::ImplLimit {
                at: self.peek().span,
                what: "levels of nesting",
                need: u64::from(self.depth) + 1,
                limit: u64::from(MAX_DEPTH),
                hint: "flatten the scopes or the expression",
            });
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    /// `item (, item)*` up to `close`, which is consumed; empty lists are allowed.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }
}
