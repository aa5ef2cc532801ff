//! Instructions and their operands.

use crate::span::Span;

/// An identifier and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The identifier, with its `%` if it has one.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// The predicate in front of an instruction: `@%p1` or `@!%p1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Whether `!` stands before the name.
    pub negated: bool,
    /// The predicate register.
    pub name: Name,
}

/// One dotted word of an opcode, without its dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modifier {
    /// The word, `u32` or `L1::evict_last`.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// An instruction name and its modifiers: `ld` `.param` `.u64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opcode {
    /// The word before the first dot.
    pub name: Name,
    /// The dotted words, in order.
    pub modifiers: Vec<Modifier>,
}

impl Opcode {
    /// Whether a modifier of that text is present.
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        self.modifiers.iter().any(|m| m.text == text)
    }
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name.text)?;
        self.modifiers.iter().try_for_each(|m| write!(f, ".{}", m.text))
    }
}

/// What an address operand starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressBase {
    /// A register, a variable or a parameter.
    Name(Name),
    /// Nothing: the offset is the address.
    Absolute,
}

/// An operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A register, variable, label, or function; `_` is the sink.
    Name(Name),
    /// `!name`: the complement of a predicate.
    Not(Name),
    /// `-name`: the negative of an operand of `vmad`.
    Negative(Box<Operand>),
    /// `name.x`: an element of a vector register or of a special register, or a part for video instructions.
    Component(Name, Modifier),
    /// `name + offset` outside brackets: the address of a variable, moved.
    Offset(Name, i64),
    /// An integer constant, two's complement in 64 bits.
    Int {
        /// The bits.
        value: u64,
        /// Where it stands.
        span: Span,
    },
    /// A float constant, as its bits.
    Float {
        /// The bits, in the low `width` ones.
        bits: u64,
        /// 32 or 64.
        width: u32,
        /// Where it stands.
        span: Span,
    },
    /// `[base + offset]`.
    Address {
        /// The base.
        base: AddressBase,
        /// The byte offset.
        offset: i64,
        /// Where it stands.
        span: Span,
    },
    /// `[a, {b, c}]`: the operand of textures, surfaces and bulk copies.
    Brackets(Vec<Operand>, Span),
    /// `{a, b}`.
    Vector(Vec<Operand>, Span),
    /// `(a, b)`: the lists of a call.
    List(Vec<Operand>, Span),
    /// `p|q`: two destinations.
    Pair(Box<Operand>, Box<Operand>),
}

impl Operand {
    /// Where the operand stands.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Operand::Negative(operand) => operand.span(),
            Operand::Name(name) | Operand::Not(name) | Operand::Offset(name, _) => name.span,
            Operand::Component(name, component) => name.span.to(component.span),
            Operand::Int { span, .. }
            | Operand::Float { span, .. }
            | Operand::Address { span, .. }
            | Operand::Brackets(_, span)
            | Operand::Vector(_, span)
            | Operand::List(_, span) => *span,
            Operand::Pair(first, second) => first.span().to(second.span()),
        }
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The guard, if any.
    pub guard: Option<Guard>,
    /// Name and modifiers.
    pub opcode: Opcode,
    /// The operands, destination first.
    pub operands: Vec<Operand>,
    /// The whole instruction.
    pub span: Span,
}
