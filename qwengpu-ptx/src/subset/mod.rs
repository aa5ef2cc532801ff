//! What of PTX is translated, and why the rest is not: the one table of it.
//!
//! The builder looks an instruction up here to learn which family translates it, or with what reason it is
//! refused; `docs/ptx-subset.md` is generated from the same rows. Section numbers are those of the manual of
//! [`MANUAL`].

mod arithmetic;
mod control;
mod data;
mod feature;
mod float;
mod matrix;
mod register;
mod synchronisation;

pub use feature::{DIRECTIVES, Feature, MODIFIERS, PERFORMANCE_DIRECTIVES, SPACES, TYPES};
pub use register::SPECIAL_REGISTERS;

pub(crate) use feature::{is_dropped, is_performance_directive, refused_declaration};
pub(crate) use register::special_register;

use crate::ast::{Opcode, ScalarType, TypeClass};

/// The edition of the manual that the sections are of.
pub const MANUAL: &str = "PTX ISA 9.4";

/// Why something is refused, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What it is: stands behind "is" in a message.
    pub is: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

impl Refusal {
    /// The reason as error messages give it.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{}; {}", self.is, self.instead)
    }
}

/// Whether a part of PTX is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It is: with these types and modifiers, to this effect.
    Translated(&'static str),
    /// It is not.
    Refused(Refusal),
}

/// What tells a row's instruction from others of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing: it is the plain one.
    Plain,
    /// A type of floating point.
    Float,
    /// Dotted words.
    With(&'static [&'static str]),
}

/// An instruction of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The name in front of the first dot.
    pub name: &'static str,
    /// What tells it from others of that name.
    pub form: Form,
    /// The section of the manual.
    pub section: &'static str,
    /// Whether it is translated.
    pub support: Support,
    /// An instruction of this form.
    pub example: &'static str,
    /// Who translates it; `None` in rows that are refused.
    pub(crate) family: Option<Family>,
}

/// The part of the builder that translates an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Activemask,
    AddSub,
    AddressSpace,
    Atomic,
    Barrier,
    Bfind,
    BitField,
    Bitwise,
    Branch,
    BranchIndexed,
    BulkStore,
    CachePolicy,
    Call,
    CarrylessMultiply,
    Convert,
    CountBits,
    Divide,
    Dp2a,
    Dp4a,
    Elect,
    Exit,
    FindNthSet,
    FunnelShift,
    IsSpace,
    Load,
    Lop3,
    MaskExtend,
    Match,
    MinMax,
    Move,
    Multiply,
    Multiply24,
    Nothing,
    Permute,
    Reduce,
    Return,
    Sad,
    SelectBySign,
    SelectByPredicate,
    Set,
    SetPredicate,
    Shift,
    Shuffle,
    SignAbsolute,
    Store,
    Trap,
    VideoScalar,
    VideoMultiply,
    VideoParts,
    Vote,
}

/// Every instruction of PTX, in the order of the manual.
pub const INSTRUCTIONS: &[&[Instruction]] = &[
    arithmetic::INTEGER,
    arithmetic::EXTENDED,
    float::FLOAT,
    arithmetic::COMPARISON,
    arithmetic::LOGIC,
    data::DATA,
    data::ASYNCHRONOUS,
    control::TEXTURE,
    control::CONTROL,
    synchronisation::SYNCHRONISATION,
    matrix::MATRIX,
    control::STACK,
    control::VIDEO,
    control::MISCELLANEOUS,
];

impl Instruction {
    /// The name with what tells it from others.
    #[must_use]
    pub fn title(&self) -> String {
        match self.form {
            Form::Plain => self.name.to_owned(),
            Form::Float => format!("{} (floating point)", self.name),
            Form::With(words) => format!("{}.{}", self.name, words.join(".")),
        }
    }

    /// How closely the row describes an opcode of its name; `None` if it does not.
    fn closeness(&self, opcode: &Opcode) -> Option<usize> {
        match self.form {
            Form::Plain => Some(0),
            Form::Float => {
                let is_float =
                    |word: &str| ScalarType::from_name(word).is_some_and(|ty| ty.class() == TypeClass::Float);
                opcode.modifiers.iter().any(|m| is_float(&m.text)).then_some(1)
            }
            Form::With(words) => words.iter().all(|word| opcode.has(word)).then_some(1 + words.len()),
        }
    }
}

/// The row of an opcode; `None` if no instruction has its name.
#[must_use]
pub fn instruction(opcode: &Opcode) -> Option<&'static Instruction> {
    let mut found: Option<(&'static Instruction, usize)> = None;
    for row in INSTRUCTIONS.iter().copied().flatten().filter(|row| row.name == opcode.name.text) {
        match (row.closeness(opcode), found) {
            (Some(closeness), Some((_, best))) if closeness <= best => {}
            (Some(closeness), _) => found = Some((row, closeness)),
            // The name is known, so the words are wrong: any row of it serves.
            (None, None) => found = Some((row, 0)),
            (None, Some(_)) => {}
        }
    }
    found.map(|(row, _)| row)
}

const fn yes(
    name: &'static str,
    section: &'static str,
    family: Family,
    what: &'static str,
    example: &'static str,
) -> Instruction {
    yes_with(name, &[], section, family, what, example)
}

const fn yes_with(
    name: &'static str,
    words: &'static [&'static str],
    section: &'static str,
    family: Family,
    what: &'static str,
    example: &'static str,
) -> Instruction {
    let form = if words.is_empty() { Form::Plain } else { Form::With(words) };
    Instruction { name, form, section, support: Support::Translated(what), example, family: Some(family) }
}

const fn no(name: &'static str, section: &'static str, refusal: Refusal, example: &'static str) -> Instruction {
    no_with(name, &[], section, refusal, example)
}

const fn no_with(
    name: &'static str,
    words: &'static [&'static str],
    section: &'static str,
    refusal: Refusal,
    example: &'static str,
) -> Instruction {
    let form = if words.is_empty() { Form::Plain } else { Form::With(words) };
    Instruction { name, form, section, support: Support::Refused(refusal), example, family: None }
}

/// The floating-point form of a name that has others.
const fn float(name: &'static str, section: &'static str, example: &'static str) -> Instruction {
    Instruction { name, form: Form::Float, section, support: Support::Refused(FLOAT), example, family: None }
}

pub(crate) const FLOAT: Refusal =
    Refusal { is: "floating point, and this machine computes integers only", instead: "use fixed point" };
pub(crate) const WIDE: Refusal = Refusal { is: "128 bits wide", instead: "use two 64-bit halves" };
const ASYNC: Refusal =
    Refusal { is: "an asynchronous copy or barrier", instead: "use plain loads, stores and `bar.sync 0`" };
const CLUSTER: Refusal =
    Refusal { is: "for clusters of CTAs, and this machine has none", instead: "use one CTA and `bar.sync 0`" };
const MULTIPLE: Refusal = Refusal {
    is: "for memory of several GPUs, and this machine is one",
    instead: "use plain loads, stores and atomics",
};
const MATRIX: Refusal =
    Refusal { is: "a matrix unit operation, and this machine has none", instead: "write the loop with `mad`" };
const TEXTURE: Refusal = Refusal { is: "a texture or surface access", instead: "pass the data in a buffer" };
const STACK: Refusal = Refusal { is: "stack manipulation", instead: "declare a `.local` array of fixed size" };
