//! Modules, functions, variables, statements.

use super::inst::{Instruction, Name};
use super::types::{ScalarType, StateSpace};
use crate::span::Span;

/// A PTX module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// `.version`, as written.
    pub version: String,
    /// The names behind `.target`.
    pub target: Vec<String>,
    /// `.address_size`; 32 when the directive is missing.
    pub address_size: u32,
    /// Functions and module variables, in order.
    pub items: Vec<Item>,
}

impl Module {
    /// The kernels that have a body, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(f) if f.kind == FunctionKind::Entry && f.body.is_some() => Some(f),
            Item::Function(_) | Item::Variable(_) => None,
        })
    }
}

/// One declaration at module level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A module variable.
    Variable(Variable),
    /// A kernel or a function.
    Function(Function),
}

/// Who else may see a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Linkage {
    /// No linking directive.
    Internal,
    /// `.visible`.
    Visible,
    /// `.extern`: defined elsewhere.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

impl Linkage {
    /// The directive, with its dot and a space behind it; empty for [`Linkage::Internal`].
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Linkage::Internal => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        }
    }
}

/// One extent of an array: `[4]`, or `[]` when the size is open.
pub type Extent = Option<u64>;

/// One element of an initialiser, nested braces already flattened in row order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitialValue {
    /// An integer, or the bits of a float.
    Bits(u64),
    /// The address of a variable plus an offset.
    Address(Name, i64),
}

/// `.ptr .space .align N` of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerAttribute {
    /// The space pointed to, generic when missing.
    pub space: Option<StateSpace>,
    /// The alignment promised.
    pub align: Option<u64>,
}

/// A variable, register or parameter declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Linking directive.
    pub linkage: Linkage,
    /// Where it lives.
    pub space: StateSpace,
    /// `.align`.
    pub align: Option<u64>,
    /// `.v2`, `.v4`: elements in a vector.
    pub vector: Option<u32>,
    /// The element type.
    pub ty: ScalarType,
    /// `.ptr` of a parameter.
    pub pointer: Option<PointerAttribute>,
    /// The name; empty for an unnamed parameter (`_`).
    pub name: Name,
    /// `<N>`: declares `name0` up to `name(N-1)`.
    pub range: Option<u32>,
    /// Array extents.
    pub extents: Vec<Extent>,
    /// Initial values; missing ones are zero.
    pub init: Vec<InitialValue>,
}

/// A kernel or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a function.
    Func,
}

/// A performance directive such as `.maxntid 128, 1, 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// The directive without its dot.
    pub name: String,
    /// Its numbers.
    pub values: Vec<u64>,
}

/// A kernel or function, declared or defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Linking directive.
    pub linkage: Linkage,
    /// Kernel or function.
    pub kind: FunctionKind,
    /// Return parameters of a function.
    pub returns: Vec<Variable>,
    /// The name.
    pub name: Name,
    /// Parameters.
    pub params: Vec<Variable>,
    /// Performance directives.
    pub tuning: Vec<Tuning>,
    /// The statements; missing in a declaration.
    pub body: Option<Body>,
}

/// The statements between braces.
pub type Body = Vec<Statement>;

/// `label: .branchtargets a, b;` — the table of a `brx.idx`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchTargets {
    /// The name of the table.
    pub name: Name,
    /// The labels, in order.
    pub targets: Vec<Name>,
}

/// One statement of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// A variable or register declaration.
    Variable(Variable),
    /// `name:`.
    Label(Name),
    /// `name: .branchtargets …;`.
    BranchTargets(BranchTargets),
    /// `name: .callprototype …;` — kept only as a name.
    CallPrototype(Name),
    /// An instruction.
    Instruction(Instruction),
    /// A nested scope.
    Block(Body, Span),
}
