//! Instructions and operands.

use super::Parser;
use crate::ast::{AddressBase, Guard, Instruction, Modifier, Name, Opcode, Operand};
use crate::error::Result;
use crate::lexer::Kind;
use crate::span::Span;

/// How deep operands may nest: a list of vectors of names.
const OPERAND_START: &str = "an operand";

impl Parser<'_, '_> {
    /// An instruction with its guard, up to and including `;`.
    pub(super) fn instruction(&mut self) -> Result<Instruction> {
        let start = self.peek().span;
        let guard = if self.eat("@") {
            let negated = self.eat("!");
            let name = self.name("a predicate register")?;
            Some(Guard { negated, name })
        } else {
            None
        };
        let name = self.name("an instruction")?;
        let mut modifiers = Vec::new();
        while self.peek().kind == Kind::Dotted {
            modifiers.push(self.modifier());
        }
        let mut operands = Vec::new();
        if !self.is(";") {
            loop {
                operands.push(self.operand()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        if !self.is(";") {
            return Err(self.unexpected("`,` or `;`"));
        }
        let end = self.next().span;
        Ok(Instruction { guard, opcode: Opcode { name, modifiers }, operands, span: start.to(end) })
    }

    fn modifier(&mut self) -> Modifier {
        let token = self.next();
        Modifier { text: token.text.to_owned(), span: token.span }
    }

    fn operand(&mut self) -> Result<Operand> {
        let first = self.simple_operand()?;
        if self.eat("|") {
            let second = self.simple_operand()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn simple_operand(&mut self) -> Result<Operand> {
        let token = self.peek();
        let start = token.span;
        match token.kind {
            Kind::Word if token.text != "WARP_SZ" => self.named_operand(),
            Kind::Float32(bits) => {
                self.next();
                Ok(float(u64::from(bits), 32, start))
            }
            Kind::Float64(bits) => {
                self.next();
                Ok(float(bits, 64, start))
            }
            Kind::Decimal => {
                let Ok(value) = token.text.parse::<f64>() else { return Err(self.unexpected(OPERAND_START)) };
                self.next();
                Ok(float(value.to_bits(), 64, start))
            }
            Kind::Punct if token.text == "[" => self.address(),
            Kind::Punct if token.text == "{" => {
                self.next();
                let items = self.nested(|p| p.list("}", Parser::operand))?;
                Ok(Operand::Vector(items, start.to(self.last_span())))
            }
            Kind::Punct if token.text == "!" && self.peek_at(1).kind == Kind::Word => {
                self.next();
                Ok(Operand::Not(self.name("a predicate register")?))
            }
            Kind::Punct
                if token.text == "-" && self.peek_at(1).kind == Kind::Word && self.peek_at(1).text != "WARP_SZ" =>
            {
                self.next();
                Ok(Operand::Negative(Box::new(self.named_operand()?)))
            }
            Kind::Punct if token.text == "(" && self.opens_list() => {
                self.next();
                let items = self.nested(|p| p.list(")", Parser::operand))?;
                Ok(Operand::List(items, start.to(self.last_span())))
            }
            Kind::Int(..) | Kind::Word | Kind::Punct => {
                let value = self.constant()?;
                Ok(Operand::Int { value, span: start.to(self.last_span()) })
            }
            Kind::Dotted | Kind::Text | Kind::End => Err(self.unexpected(OPERAND_START)),
        }
    }

    /// Whether the `(` ahead opens a call list rather than a constant expression.
    fn opens_list(&self) -> bool {
        let next = self.peek_at(1);
        match next.kind {
            Kind::Word => next.text != "WARP_SZ",
            Kind::Punct => next.text == ")" || next.text == "{",
            Kind::Int(..) | Kind::Float32(_) | Kind::Float64(_) => {
                // `(1, 2)` and `(1)` are lists: an instruction's operand is never a lone parenthesis
                // around one number except in a call.
                let after = self.peek_at(2);
                after.kind == Kind::Punct && matches!(after.text, "," | ")")
            }
            Kind::Dotted | Kind::Decimal | Kind::Text | Kind::End => false,
        }
    }

    fn named_operand(&mut self) -> Result<Operand> {
        let name = self.name(OPERAND_START)?;
        // A component touches its register: `%tid.x`.
        if self.peek().kind == Kind::Dotted {
            let component = self.modifier();
            return Ok(Operand::Component(name, component));
        }
        if self.is("+") || self.is("-") {
            let offset = self.offset()?;
            return Ok(if offset == 0 { Operand::Name(name) } else { Operand::Offset(name, offset) });
        }
        Ok(Operand::Name(name))
    }

    /// `+ constant` or `- constant`.
    fn offset(&mut self) -> Result<i64> {
        let negative = self.is("-");
        if negative || self.is("+") {
            self.next();
        }
        let offset = self.signed_offset()?;
        Ok(if negative { offset.wrapping_neg() } else { offset })
    }

    fn address(&mut self) -> Result<Operand> {
        let start = self.expect("[")?;
        if self.peek().kind == Kind::Word && self.peek_at(1).text == "," {
            let items = self.nested(|p| p.list("]", Parser::operand))?;
            return Ok(Operand::Brackets(items, start.to(self.last_span())));
        }
        let (base, offset) = if self.peek().kind == Kind::Word && self.peek().text != "WARP_SZ" {
            let name: Name = self.name("a register or a variable")?;
            let offset = if self.is("+") || self.is("-") { self.offset()? } else { 0 };
            (AddressBase::Name(name), offset)
        } else {
            (AddressBase::Absolute, self.constant()?.cast_signed())
        };
        let end = self.expect("]")?;
        Ok(Operand::Address { base, offset, span: start.to(end) })
    }
}

fn float(bits: u64, width: u32, span: Span) -> Operand {
    Operand::Float { bits, width, span }
}
