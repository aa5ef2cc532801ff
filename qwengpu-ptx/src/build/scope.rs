//! Names: scopes, registers, labels.

use std::collections::BTreeMap;

use crate::ast::{Name, ScalarType, Statement, TypeClass, Variable};
use crate::error::{PtxError, Result};
use crate::ir::{BlockId, SymbolId, VPred, VReg, Value};

use super::Builder;

/// What holds a PTX register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// A predicate.
    Pred(VPred),
    /// A register of up to 32 bits. Narrower ones hold their value zero-extended.
    Word(VReg),
    /// A register of 64 bits: low and high word.
    Pair(VReg, VReg),
}

/// A PTX register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Register {
    /// 1 for a predicate.
    pub(super) bits: u32,
    pub(super) storage: Storage,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Entity<'m> {
    Register(Register),
    /// The elements of a vector register.
    Vector(Vec<Register>),
    /// A variable in memory, and an offset in it.
    Variable(SymbolId, u32),
    Label(BlockId),
    /// The labels of a `.branchtargets`.
    Targets(&'m [Name]),
    /// The number of a function whose address is taken.
    Function(u32),
}

/// `%r<8>`: eight registers made when first used.
#[derive(Debug)]
struct Range<'m> {
    prefix: &'m str,
    count: u32,
    ty: ScalarType,
}

/// The names of a scope.
#[derive(Debug, Default)]
pub(super) struct Scope<'m> {
    names: BTreeMap<String, Entity<'m>>,
    ranges: Vec<Range<'m>>,
    /// Whether the names of enclosing scopes are out of reach.
    is_function: bool,
}

impl<'m> Scope<'m> {
    pub(super) fn block() -> Self {
        Scope::default()
    }

    pub(super) fn function() -> Self {
        Scope { is_function: true, ..Scope::default() }
    }

    pub(super) fn define(&mut self, name: &Name, entity: Entity<'m>) -> Result<()> {
        if name.text == "_" || name.text.is_empty() {
            return Ok(());
        }
        match self.names.insert(name.text.clone(), entity) {
            None => Ok(()),
            Some(_) => Err(PtxError::invalid(name.span, &name.text, "the name is declared twice in its scope")),
        }
    }
}

impl<'m> Builder<'m> {
    pub(super) fn scope(&mut self) -> Result<&mut Scope<'m>> {
        let at = self.here();
        self.scopes.last_mut().ok_or_else(|| PtxError::invalid(at, "a declaration", "it stands outside every scope"))
    }

    /// Makes a block of every label of a scope, so that branches may go forwards.
    pub(super) fn declare_labels(&mut self, body: &'m [Statement]) -> Result<()> {
        for statement in body {
            match statement {
                Statement::Label(name) => {
                    let block = self.func.new_block();
                    self.scope()?.define(name, Entity::Label(block))?;
                }
                Statement::BranchTargets(table) => {
                    self.scope()?.define(&table.name, Entity::Targets(&table.targets))?;
                }
                Statement::Variable(_)
                | Statement::CallPrototype(_)
                | Statement::Instruction(_)
                | Statement::Block(..) => {}
            }
        }
        Ok(())
    }

    pub(super) fn declare_registers(&mut self, variable: &'m Variable) -> Result<()> {
        if !variable.extents.is_empty() {
            return Err(PtxError::invalid(variable.name.span, &variable.name.text, "registers form no arrays"));
        }
        if variable.ty.bits() > 64 {
            return Err(PtxError::unsupported(
                variable.name.span,
                format!(".reg {}", variable.ty),
                crate::subset::WIDE.reason(),
            ));
        }
        if let Some(count) = variable.range {
            let range = Range { prefix: &variable.name.text, count, ty: variable.ty };
            self.scope()?.ranges.push(range);
            return Ok(());
        }
        let entity = match variable.vector {
            None => Entity::Register(self.new_register(variable.ty)),
            Some(count) => Entity::Vector((0..count).map(|_| self.new_register(variable.ty)).collect()),
        };
        self.scope()?.define(&variable.name, entity)
    }

    fn new_register(&mut self, ty: ScalarType) -> Register {
        let storage = match ty.class() {
            TypeClass::Predicate => Storage::Pred(self.func.vpred()),
            _ if ty.bits() == 64 => Storage::Pair(self.func.vreg(), self.func.vreg()),
            _ => Storage::Word(self.func.vreg()),
        };
        Register { bits: ty.bits(), storage }
    }

    /// A register of a declaration's type.
    pub(super) fn new_register_like(&mut self, variable: &Variable) -> Register {
        self.new_register(variable.ty)
    }

    /// The words of a register.
    pub(super) fn register_value(&self, register: Register) -> (Value, Value) {
        match register.storage {
            Storage::Word(word) => (word.into(), Value::ZERO),
            Storage::Pair(low, high) => (low.into(), high.into()),
            Storage::Pred(_) => (Value::ZERO, Value::ZERO),
        }
    }

    /// Sets the words of a register.
    pub(super) fn set_register(&mut self, register: Register, low: Value, high: Value) {
        match register.storage {
            Storage::Word(word) => self.assign(word, low),
            Storage::Pair(to_low, to_high) => {
                self.assign(to_low, low);
                self.assign(to_high, high);
            }
            Storage::Pred(_) => {}
        }
    }

    /// What a name stands for, innermost scope first.
    pub(super) fn lookup(&mut self, name: &Name) -> Result<Entity<'m>> {
        let mut made = None;
        for (idx, scope) in self.scopes.iter().enumerate().rev() {
            if let Some(entity) = scope.names.get(&name.text) {
                return Ok(entity.clone());
            }
            let range = scope.ranges.iter().rev().find(|range| {
                name.text.strip_prefix(range.prefix).is_some_and(|digits| is_member(digits, range.count))
            });
            if let Some(range) = range {
                made = Some((idx, range.ty));
                break;
            }
            if scope.is_function {
                break;
            }
        }
        if let Some((idx, ty)) = made {
            let entity = Entity::Register(self.new_register(ty));
            self.scopes[idx].names.insert(name.text.clone(), entity.clone());
            return Ok(entity);
        }
        if let Some(symbol) = self.module_variable(&name.text)? {
            return Ok(Entity::Variable(symbol, 0));
        }
        if let Some(number) = self.graph.pointer(&name.text) {
            return Ok(Entity::Function(number));
        }
        Err(PtxError::invalid(name.span, &name.text, "nothing of this name is declared here"))
    }

    pub(super) fn label_block(&mut self, name: &Name) -> Result<BlockId> {
        match self.lookup(name)? {
            Entity::Label(block) => Ok(block),
            Entity::Register(_)
            | Entity::Vector(_)
            | Entity::Variable(..)
            | Entity::Targets(_)
            | Entity::Function(_) => Err(PtxError::invalid(name.span, &name.text, "it is no label")),
        }
    }
}

/// Whether `digits` is a number below `count`, written without leading zeros.
fn is_member(digits: &str, count: u32) -> bool {
    let plain = digits == "0" || !digits.starts_with('0');
    plain && digits.bytes().all(|c| c.is_ascii_digit()) && digits.parse::<u32>().is_ok_and(|n| n < count)
}
