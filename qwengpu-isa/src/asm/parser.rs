//! Tokens to programs: lines, labels, directives, and the operands that instructions share.

use std::collections::BTreeMap;

use super::error::{AsmError, AsmErrorKind, AsmErrors};
use super::lexer::{Spanned, Token, tokenize};
use crate::inst::Instruction;
use crate::op::Opcode;
use crate::operand::{Address, Offset, Operand, ShortOperand};
use crate::program::{Param, ParamKind, Program};
use crate::reg::{ConstIdx, Guard, Pc, PredReg, PredSource, Reg};
use crate::span::Span;

/// A branch to a label that may not be defined yet.
struct Fixup {
    instruction: usize,
    name: String,
    span: Span,
}

pub(super) struct Parser {
    tokens: Vec<Spanned>,
    position: usize,
    program: Program,
    labels: BTreeMap<String, Pc>,
    fixups: Vec<Fixup>,
}

pub(super) fn parse(source: &str) -> Result<Program, AsmErrors> {
    let mut parser = Parser {
        tokens: tokenize(source),
        position: 0,
        program: Program::default(),
        labels: BTreeMap::new(),
        fixups: Vec::new(),
    };
    let mut errors = Vec::new();
    while parser.peek().token != Token::End {
        if let Err(error) = parser.line() {
            errors.push(error);
            while !matches!(parser.peek().token, Token::Newline | Token::End) {
                parser.advance();
            }
        }
    }
    for fixup in &parser.fixups {
        match parser.labels.get(&fixup.name) {
            Some(&target) => {
                let branch = &mut parser.program.instructions[fixup.instruction];
                *branch = branch.with_target(target);
            }
            None => errors
                .push(AsmError { span: fixup.span, kind: AsmErrorKind::UndefinedLabel { name: fixup.name.clone() } }),
        }
    }
    for (name, pc) in std::mem::take(&mut parser.labels) {
        parser.program.add_label(pc, name);
    }
    errors.sort_by_key(|error| error.span);
    if errors.is_empty() { Ok(parser.program) } else { Err(AsmErrors { errors }) }
}

pub(super) type Parsed<T> = Result<T, AsmError>;

impl Parser {
    fn peek(&self) -> &Spanned {
        // The last token is `End` and is never passed.
        &self.tokens[self.position]
    }

    fn peek_second(&self) -> &Token {
        &self.tokens[(self.position + 1).min(self.tokens.len() - 1)].token
    }

    fn advance(&mut self) -> Spanned {
        let token = self.peek().clone();
        if token.token != Token::End {
            self.position += 1;
        }
        token
    }

    pub(super) fn take(&mut self, symbol: char) -> bool {
        let found = self.peek().token == Token::Symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: char, expected: &'static str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.peek().unexpected(expected)) }
    }

    pub(super) fn comma(&mut self) -> Parsed<()> {
        self.expect(',', "`,`")
    }

    fn identifier(&mut self, expected: &'static str) -> Parsed<(String, Span)> {
        let token = self.peek();
        match &token.token {
            Token::Identifier(name) => {
                let result = (name.clone(), token.span);
                self.advance();
                Ok(result)
            }
            Token::Integer(_) | Token::Symbol(_) | Token::Newline | Token::End | Token::Invalid(_) => {
                Err(token.unexpected(expected))
            }
        }
    }

    fn unsigned(&mut self, expected: &'static str) -> Parsed<(u32, Span)> {
        let token = self.peek();
        match token.token {
            Token::Integer(value) => {
                let result = (value, token.span);
                self.advance();
                Ok(result)
            }
            Token::Identifier(_) | Token::Symbol(_) | Token::Newline | Token::End | Token::Invalid(_) => {
                Err(token.unexpected(expected))
            }
        }
    }

    fn line(&mut self) -> Parsed<()> {
        while matches!(self.peek().token, Token::Identifier(_)) && *self.peek_second() == Token::Symbol(':') {
            let (name, span) = self.identifier("a label")?;
            self.advance();
            let pc = self.next_pc(span)?;
            if self.labels.insert(name.clone(), pc).is_some() {
                return Err(AsmError { span, kind: AsmErrorKind::DuplicateLabel { name } });
            }
        }
        match &self.peek().token {
            Token::Newline | Token::End => {}
            Token::Symbol('.') => self.directive()?,
            Token::Identifier(_) | Token::Integer(_) | Token::Symbol(_) | Token::Invalid(_) => self.instruction()?,
        }
        let token = self.advance();
        match token.token {
            Token::Newline | Token::End => Ok(()),
            Token::Identifier(_) | Token::Integer(_) | Token::Symbol(_) | Token::Invalid(_) => {
                // The newline must be found again by the recovery.
                self.position -= 1;
                Err(token.unexpected("end of line"))
            }
        }
    }

    fn next_pc(&self, span: Span) -> Parsed<Pc> {
        Pc::try_from(self.program.instructions.len())
            .map_err(|_| AsmError { span, kind: AsmErrorKind::TooLong { max: u16::MAX } })
    }

    fn directive(&mut self) -> Parsed<()> {
        self.advance();
        let (name, span) = self.identifier("a directive")?;
        match name.as_str() {
            "kernel" => self.program.signature.name = self.identifier("the name of the kernel")?.0,
            "shared" => self.program.signature.shared_bytes = self.unsigned("a number of bytes")?.0,
            "local" => self.program.signature.local_bytes = self.unsigned("a number of bytes")?.0,
            "param" => {
                let param = self.param()?;
                self.program.signature.params.push(param);
            }
            _ => return Err(AsmError { span, kind: AsmErrorKind::UnknownDirective { name } }),
        }
        Ok(())
    }

    fn param(&mut self) -> Parsed<Param> {
        const EXPECTED_KIND: &str = "`pointer`, `unsigned`, `signed` or `bytes`";
        let kind_token = self.peek().clone();
        let (text, _) = self.identifier(EXPECTED_KIND)?;
        let kind = ParamKind::ALL
            .into_iter()
            .find(|kind| kind.text() == text)
            .ok_or_else(|| kind_token.unexpected(EXPECTED_KIND))?;
        let mut field = |keyword: &str, expected| {
            let token = self.peek().clone();
            if self.identifier(expected)?.0 != keyword {
                return Err(token.unexpected(expected));
            }
            self.unsigned("a number of bytes").map(|(value, _)| value)
        };
        let offset = field("offset", "`offset`")?;
        let size = field("size", "`size`")?;
        let align = field("align", "`align`")?;
        let name = match self.peek().token {
            Token::Newline | Token::End => String::new(),
            Token::Identifier(_) | Token::Integer(_) | Token::Symbol(_) | Token::Invalid(_) => {
                self.identifier("the name of the parameter")?.0
            }
        };
        Ok(Param { name, offset, size, align, kind })
    }

    fn instruction(&mut self) -> Parsed<()> {
        let start = self.peek().span;
        let guard = if self.take('@') { self.predicate_source()? } else { Guard::TRUE };
        let (name, span) = self.identifier("an instruction, a label or a directive")?;
        let opcode =
            Opcode::from_mnemonic(&name).ok_or(AsmError { span, kind: AsmErrorKind::UnknownInstruction { name } })?;
        let mut modifiers = Vec::new();
        while self.take('.') {
            let token = self.advance();
            let text = match token.token {
                Token::Identifier(name) => name,
                Token::Integer(value) => value.to_string(),
                Token::Symbol(_) | Token::Newline | Token::End | Token::Invalid(_) => {
                    self.position -= usize::from(token.token != Token::End);
                    return Err(token.unexpected("a modifier"));
                }
            };
            modifiers.push((text, token.span));
        }
        let operation = self.operation(opcode, span, modifiers)?;
        self.next_pc(start)?;
        self.program.instructions.push(Instruction { guard, operation });
        Ok(())
    }

    /// The target of the branch that is next in the program; a label is looked up when all are known.
    pub(super) fn target(&mut self) -> Parsed<Pc> {
        if matches!(self.peek().token, Token::Identifier(_)) {
            let (name, span) = self.identifier("a label")?;
            self.fixups.push(Fixup { instruction: self.program.instructions.len(), name, span });
            return Ok(Pc::ENTRY);
        }
        let (value, span) = self.unsigned("a label or an instruction index")?;
        let target = u16::try_from(value).map_err(|_| AsmError {
            span,
            kind: AsmErrorKind::Range { what: "branch target", value: value.into(), min: 0, max: u16::MAX.into() },
        })?;
        Ok(Pc::new(target))
    }

    pub(super) fn register(&mut self) -> Parsed<Reg> {
        const EXPECTED: &str = "a register `r0` to `r15`";
        let token = self.peek().clone();
        let (name, _) = self.identifier(EXPECTED)?;
        register_of(&name).ok_or_else(|| token.unexpected(EXPECTED))
    }

    pub(super) fn predicate(&mut self) -> Parsed<PredReg> {
        const EXPECTED: &str = "a predicate `p0` to `p6` or `pt`";
        let token = self.peek().clone();
        let (name, _) = self.identifier(EXPECTED)?;
        predicate_of(&name).ok_or_else(|| token.unexpected(EXPECTED))
    }

    pub(super) fn predicate_source(&mut self) -> Parsed<PredSource> {
        let negated = self.take('!');
        Ok(PredSource { index: self.predicate()?, negated })
    }

    pub(super) fn keyword<T>(&mut self, expected: &'static str, meaning: fn(&str) -> Option<T>) -> Parsed<T> {
        let token = self.peek().clone();
        let (name, _) = self.identifier(expected)?;
        meaning(&name).ok_or_else(|| token.unexpected(expected))
    }

    /// Operand B.
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        const EXPECTED: &str = "a register, a number or a constant word";
        let token = self.peek().clone();
        match &token.token {
            Token::Integer(_) => self.unsigned(EXPECTED).map(|(value, _)| Operand::Immediate(value)),
            Token::Symbol('-') => {
                self.advance();
                let (value, end) = self.unsigned("a number")?;
                let negative = -i64::from(value);
                let value = i32::try_from(negative).map_err(|_| AsmError {
                    span: token.span.to(end),
                    kind: AsmErrorKind::Range {
                        what: "immediate",
                        value: negative,
                        min: i32::MIN.into(),
                        max: u32::MAX.into(),
                    },
                })?;
                Ok(Operand::signed(value))
            }
            Token::Identifier(name) if name == "c" => self.constant().map(Operand::Constant),
            Token::Identifier(name) => {
                let reg = register_of(name).ok_or_else(|| token.unexpected(EXPECTED))?;
                self.advance();
                Ok(Operand::Register(reg))
            }
            Token::Symbol(_) | Token::Newline | Token::End | Token::Invalid(_) => Err(token.unexpected(EXPECTED)),
        }
    }

    /// Operand B beside a branch target.
    pub(super) fn short_operand(&mut self) -> Parsed<ShortOperand> {
        let start = self.peek().span;
        let operand = self.operand()?;
        ShortOperand::new(operand).ok_or_else(|| {
            let value = match operand {
                Operand::Immediate(value) => value.into(),
                Operand::Register(_) | Operand::Constant(_) => 0,
            };
            let kind = AsmErrorKind::Range { what: "immediate", value, min: 0, max: u16::MAX.into() };
            AsmError { span: start, kind }
        })
    }

    /// Whether a predicate source is next.
    pub(super) fn has_predicate_source(&self) -> bool {
        match &self.peek().token {
            Token::Symbol('!') => true,
            Token::Identifier(name) => predicate_of(name).is_some(),
            Token::Symbol(_) | Token::Integer(_) | Token::Newline | Token::End | Token::Invalid(_) => false,
        }
    }

    /// `c[7]` or `c[ntid.x]`
    fn constant(&mut self) -> Parsed<ConstIdx> {
        self.advance();
        self.expect('[', "`[`")?;
        let token = self.peek().clone();
        let index = if matches!(token.token, Token::Identifier(_)) {
            let (mut name, start) = self.identifier("a name")?;
            self.expect('.', "`.`")?;
            let (axis, end) = self.identifier("`x`, `y` or `z`")?;
            name.push('.');
            name.push_str(&axis);
            let named = ConstIdx::NAMED.iter().find(|(_, text)| *text == name);
            named.map(|&(index, _)| index).ok_or(AsmError {
                span: start.to(end),
                kind: AsmErrorKind::Expected {
                    expected: "`ctaid`, `ntid` or `nctaid` and an axis",
                    found: format!("`{name}`"),
                },
            })?
        } else {
            let (value, span) = self.unsigned("a constant index")?;
            u8::try_from(value).ok().and_then(ConstIdx::new).ok_or(AsmError {
                span,
                kind: AsmErrorKind::Range { what: "constant index", value: value.into(), min: 0, max: 127 },
            })?
        };
        self.expect(']', "`]`")?;
        Ok(index)
    }

    /// `[r1 + r2*4 + c[3] - 8]`: the parts in any order.
    ///
    /// The first plain register is the base. A register times four is the index.
    pub(super) fn address(&mut self) -> Parsed<Address> {
        let start = self.peek().span;
        self.expect('[', "`[`")?;
        let (mut base, mut index, mut constant, mut offset) = (None, None, None, None);
        let mut negative = self.take('-');
        loop {
            let token = self.peek().clone();
            let twice = |part| AsmError { span: token.span, kind: AsmErrorKind::AddressPart { part } };
            if matches!(token.token, Token::Integer(_)) {
                let value = i64::from(self.unsigned("a number")?.0);
                let value = if negative { -value } else { value };
                if offset.replace(value).is_some() {
                    return Err(twice("offset"));
                }
            } else if negative {
                return Err(token.unexpected("a number"));
            } else if matches!(&token.token, Token::Identifier(name) if name == "c") {
                let word = self.constant()?;
                if constant.replace(word).is_some() {
                    return Err(twice("constant word"));
                }
            } else {
                let reg = self.register()?;
                if self.take('*') {
                    let (scale, span) = self.unsigned("`4`")?;
                    if scale != 4 {
                        let kind = AsmErrorKind::Range { what: "scale", value: scale.into(), min: 4, max: 4 };
                        return Err(AsmError { span, kind });
                    }
                    if index.replace(reg).is_some() {
                        return Err(twice("index register"));
                    }
                } else if base.replace(reg).is_some() {
                    return Err(twice("base register"));
                }
            }
            if self.take('+') {
                negative = false;
            } else if self.take('-') {
                negative = true;
            } else {
                break;
            }
        }
        let span = start.to(self.peek().span);
        self.expect(']', "`+`, `-` or `]`")?;
        let value = offset.unwrap_or(0);
        let offset = i32::try_from(value).ok().and_then(Offset::new).ok_or(AsmError {
            span,
            kind: AsmErrorKind::Range { what: "offset", value, min: Offset::MIN.into(), max: Offset::MAX.into() },
        })?;
        Ok(Address { base: base.unwrap_or(Reg::ZERO), index: index.unwrap_or(Reg::ZERO), constant, offset })
    }
}

fn number_after(name: &str, prefix: char) -> Option<u8> {
    let digits = name.strip_prefix(prefix)?;
    let number: u8 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn register_of(name: &str) -> Option<Reg> {
    number_after(name, 'r').and_then(Reg::new)
}

fn predicate_of(name: &str) -> Option<PredReg> {
    if name == "pt" {
        return Some(PredReg::PT);
    }
    number_after(name, 'p').and_then(PredReg::new).filter(|pred| !pred.is_true())
}
