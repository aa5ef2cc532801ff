//! Functions that stay functions: those that call themselves, and 64-bit divisions that several places share.
//! Each is translated once.
//!
//! Arguments and results travel in words that `link_routines` makes registers of. The callee copies its
//! arguments to variables of its own first thing, so that a call inside it may overwrite the words.

use std::collections::VecDeque;

use qwengpu_isa::Signedness;

use crate::ast::{self, Operand, StateSpace, Statement, Variable};
use crate::error::Result;
use crate::ir::{Address, Function, InstKind, RoutineId, Symbol, SymbolId, SymbolSpace, Terminator, Value};

use super::Builder;
use super::operand::Fit;
use super::scope::{Entity, Scope};
use super::variable::{variable_align, variable_bytes};

/// A piece of a parameter: how it is loaded and stored, and where it lies.
#[derive(Debug, Clone, Copy)]
struct Piece {
    ty: ast::ScalarType,
    offset: u32,
}

/// What a routine is made from.
#[derive(Debug, Clone, Copy)]
pub(super) enum RoutineBody<'m> {
    /// A function of the module that calls itself, directly or through others.
    Function(&'m ast::Function),
    /// A division of 64-bit values.
    Division(Signedness),
}

impl RoutineBody<'_> {
    /// The function's name in the module; none for a routine that the compiler makes.
    pub(super) fn function_name(&self) -> Option<&str> {
        match self {
            RoutineBody::Function(function) => Some(&function.name.text),
            RoutineBody::Division(_) => None,
        }
    }

    fn title(&self) -> &str {
        match self {
            RoutineBody::Function(function) => &function.name.text,
            RoutineBody::Division(Signedness::Unsigned) => "unsigned 64-bit division",
            RoutineBody::Division(Signedness::Signed) => "signed 64-bit division",
        }
    }
}

/// A routine as the builder knows it.
#[derive(Debug)]
pub(super) struct RoutineParts<'m> {
    pub(super) body: RoutineBody<'m>,
    /// The words of each parameter, and of each result.
    pub(super) params: Vec<Vec<SymbolId>>,
    pub(super) results: Vec<Vec<SymbolId>>,
    /// The PTX line of the first call.
    line: u32,
    /// The code; missing until it is translated.
    pub(super) func: Option<Function>,
}

/// A parameter in pieces that its alignment allows.
fn pieces(variable: &Variable) -> Result<Vec<Piece>> {
    use ast::ScalarType::{B8, B16, B32};
    let bytes = u32::try_from(variable_bytes(variable)?.unwrap_or(0)).unwrap_or(u32::MAX);
    let widest = variable_align(variable)?.min(4);
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < bytes && pieces.len() < super::MAX_INSTS {
        let fitting = |width: &u32| *width <= widest && offset + width <= bytes && offset.is_multiple_of(*width);
        let width = [4, 2, 1].into_iter().find(fitting).unwrap_or(1);
        let ty = match width {
            4 => B32,
            2 => B16,
            _ => B8,
        };
        pieces.push(Piece { ty, offset });
        offset += width;
    }
    Ok(pieces)
}

impl<'m> Builder<'m> {
    /// A call of a function that is not inlined.
    pub(super) fn call_routine(
        &mut self,
        callee: &'m ast::Function,
        arguments: &[Operand],
        returns: &[Operand],
    ) -> Result<()> {
        let id = self.routine(callee)?;
        let params = self.routines[id.idx()].params.clone();
        let results = self.routines[id.idx()].results.clone();
        for ((formal, actual), words) in callee.params.iter().zip(arguments).zip(params) {
            match self.parameter_variable(actual)? {
                Some(Entity::Variable(symbol, offset)) if formal.space != StateSpace::Reg => {
                    self.variable_to_words(formal, symbol, offset, &words)?;
                }
                _ => {
                    let (low, high) = self.read(actual, formal.ty, Fit::Wider)?;
                    for (word, value) in words.iter().zip([low, high]) {
                        self.store_word(ast::ScalarType::B32, transfer(*word), value);
                    }
                }
            }
        }
        // The function goes on counting.
        self.settle_clock();
        self.push(crate::ir::Cond::TRUE, InstKind::Call(id));
        for ((formal, actual), words) in callee.returns.iter().zip(returns).zip(results) {
            match self.parameter_variable(actual)? {
                Some(Entity::Variable(symbol, offset)) if formal.space != StateSpace::Reg => {
                    self.words_to_variable(formal, symbol, offset, &words)?;
                }
                _ => {
                    let mut values = [Value::ZERO; 2];
                    for (word, value) in words.iter().zip(&mut values) {
                        *value = self.load_word(ast::ScalarType::B32, transfer(*word));
                    }
                    self.write_fitting(actual, formal.ty, Fit::Wider, values[0], values[1])?;
                }
            }
        }
        Ok(())
    }

    fn variable_to_words(&mut self, formal: &Variable, from: SymbolId, at: u32, words: &[SymbolId]) -> Result<()> {
        for (piece, word) in pieces(formal)?.into_iter().zip(words) {
            let address = Address::of(Value::Symbol(from, at)).plus(piece.offset);
            let value = self.load_word(piece.ty, address);
            self.store_word(ast::ScalarType::B32, transfer(*word), value);
        }
        Ok(())
    }

    fn words_to_variable(&mut self, formal: &Variable, to: SymbolId, at: u32, words: &[SymbolId]) -> Result<()> {
        for (piece, word) in pieces(formal)?.into_iter().zip(words) {
            let address = Address::of(Value::Symbol(to, at)).plus(piece.offset);
            let value = self.load_word(ast::ScalarType::B32, transfer(*word));
            self.store_word(piece.ty, address, value);
        }
        Ok(())
    }

    /// The id of a function's routine, made at its first call.
    fn routine(&mut self, function: &'m ast::Function) -> Result<RoutineId> {
        let known = self.routines.iter().position(|routine| routine.body.function_name() == Some(&function.name.text));
        if let Some(position) = known {
            return Ok(RoutineId::new(position));
        }
        let mut words = |variables: &'m [Variable]| -> Result<Vec<Vec<SymbolId>>> {
            variables.iter().map(|variable| self.transfer_words(variable)).collect()
        };
        let params = words(&function.params)?;
        let results = words(&function.returns)?;
        Ok(self.new_routine(RoutineBody::Function(function), params, results))
    }

    /// A routine whose code is still to be made.
    pub(super) fn new_routine(
        &mut self,
        body: RoutineBody<'m>,
        params: Vec<Vec<SymbolId>>,
        results: Vec<Vec<SymbolId>>,
    ) -> RoutineId {
        self.routines.push(RoutineParts { body, params, results, line: self.line, func: None });
        RoutineId::new(self.routines.len() - 1)
    }

    fn transfer_words(&mut self, variable: &Variable) -> Result<Vec<SymbolId>> {
        let count = match variable.space {
            StateSpace::Reg => variable.ty.bytes().div_ceil(4) as usize,
            _ => pieces(variable)?.len(),
        };
        Ok((0..count).map(|_| self.transfer_word(&variable.name.text)).collect())
    }

    /// A word on its way between functions.
    pub(super) fn transfer_word(&mut self, name: &str) -> SymbolId {
        let space = SymbolSpace::Transfer;
        self.func.symbol(Symbol { name: name.to_owned(), space, bytes: 4, align: 4, line: self.line })
    }

    /// Translates the routines that were called, and those that they call.
    pub(super) fn build_routines(&mut self) -> Result<()> {
        let mut next = 0;
        while next < self.routines.len() {
            let (body, line) = (self.routines[next].body, self.routines[next].line);
            let mut func = Function::new(body.title());
            let entry = func.new_block();
            func.layout.push(entry);
            func.symbols = std::mem::take(&mut self.func.symbols);
            let outer = std::mem::replace(&mut self.func, func);
            self.current = entry;
            self.carry = None;
            self.restart_clock();
            self.guard = crate::ir::Cond::TRUE;
            match body {
                RoutineBody::Function(function) => self.routine_body(next, function)?,
                RoutineBody::Division(sign) => {
                    self.line = line;
                    self.division_body(next, sign);
                }
            }
            let func = std::mem::replace(&mut self.func, outer);
            self.func.symbols.clone_from(&func.symbols);
            self.routines[next].func = Some(func);
            next += 1;
        }
        Ok(())
    }

    fn routine_body(&mut self, idx: usize, function: &'m ast::Function) -> Result<()> {
        let mut scope = Scope::function();
        let (params, results) = (self.routines[idx].params.clone(), self.routines[idx].results.clone());
        for (formal, words) in function.params.iter().zip(&params) {
            let entity = self.own_variable(formal)?;
            match &entity {
                Entity::Register(register) => {
                    let mut values: VecDeque<Value> =
                        words.iter().map(|word| self.load_word(ast::ScalarType::B32, transfer(*word))).collect();
                    let low = values.pop_front().unwrap_or(Value::ZERO);
                    self.set_register(*register, low, values.pop_front().unwrap_or(Value::ZERO));
                }
                Entity::Variable(symbol, offset) => self.words_to_variable(formal, *symbol, *offset, words)?,
                _ => {}
            }
            scope.define(&formal.name, entity)?;
        }
        let mut sources = Vec::new();
        for (formal, words) in function.returns.iter().zip(&results) {
            let entity = self.own_variable(formal)?;
            sources.push((formal, entity.clone(), words));
            scope.define(&formal.name, entity)?;
        }
        let end = self.func.new_block();
        self.calls = vec![&function.name.text];
        self.returns = vec![end];
        self.scopes = vec![scope];
        let body: &'m [Statement] = function.body.as_deref().unwrap_or_default();
        self.body(body)?;
        self.end_block(Terminator::Jump(end), end);
        for (formal, entity, words) in sources {
            match entity {
                Entity::Register(register) => {
                    let (low, high) = self.register_value(register);
                    for (word, value) in words.iter().zip([low, high]) {
                        self.store_word(ast::ScalarType::B32, transfer(*word), value);
                    }
                }
                Entity::Variable(symbol, offset) => self.variable_to_words(formal, symbol, offset, words)?,
                _ => {}
            }
        }
        let last = self.current;
        self.func.block_mut(last).terminator = Terminator::Return;
        Ok(())
    }

    /// A parameter's storage in the routine itself.
    fn own_variable(&mut self, formal: &'m Variable) -> Result<Entity<'m>> {
        if formal.space == StateSpace::Reg {
            return Ok(Entity::Register(self.new_register_like(formal)));
        }
        let symbol = self.memory_symbol(formal, SymbolSpace::Local)?;
        Ok(Entity::Variable(symbol, 0))
    }
}

/// Where a word on its way between functions lies.
pub(super) fn transfer(word: SymbolId) -> Address {
    Address::of(Value::Symbol(word, 0))
}
