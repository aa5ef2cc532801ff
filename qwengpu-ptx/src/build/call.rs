//! Calls: the callee's body is translated in place of the call.
//!
//! Only functions that call themselves, directly or through others, stay functions: see `routine`. A call
//! through a pointer compares it with every function it may mean. The machine has no addresses of code that a
//! program could hold, so the address of a function is a number outside every window of memory.

use qwengpu_isa::{Comparison, TrapReason};

use crate::ast::{Function, Instruction, Operand, StateSpace, Statement, Variable};
use crate::error::{PtxError, Result};
use crate::fold::low_word;
use crate::ir::{Address, Cond, InstKind, Symbol, SymbolSpace, Terminator, Value};

use super::Builder;
use super::call_graph::{CallShape, call_shape};
use super::decode::Mods;
use super::operand::Fit;
use super::scope::{Entity, Scope};
use super::variable::variable_bytes;

/// Deepest nesting of inlined calls.
const MAX_CALLS: usize = 32;

/// The number that stands for the first function whose address is taken.
const FIRST_FUNCTION: u32 = 0x7e00_0000;

/// What stands for the address of a function.
pub(super) fn function_address(number: u32) -> u32 {
    FIRST_FUNCTION + number
}

impl<'m> Builder<'m> {
    pub(super) fn call(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("uni");
        let Some(shape) = call_shape(inst) else {
            return Err(mods.invalid("it reads `call (result), function, (arguments)`"));
        };
        if self.guard == Cond::TRUE {
            return self.call_target(mods, &shape);
        }
        // Threads whose guard fails go around the call.
        let inside = self.func.new_block();
        let after = self.func.new_block();
        self.end_block(Terminator::Branch(self.guard, inside, after), inside);
        self.guard = Cond::TRUE;
        self.call_target(mods, &shape)?;
        self.end_block(Terminator::Jump(after), after);
        Ok(())
    }

    fn call_target(&mut self, mods: &Mods<'m>, shape: &CallShape<'m>) -> Result<()> {
        let name = shape.target;
        let Some(callee) = self.graph.function(&name.text) else {
            return self.call_pointer(mods, shape);
        };
        match name.text.as_str() {
            "__assertfail" | "__assert_fail" if callee.body.is_none() => {
                self.push(Cond::TRUE, InstKind::Trap(TrapReason::Assertion));
                return Ok(());
            }
            "vprintf" if callee.body.is_none() => {
                return Err(PtxError::unsupported(
                    name.span,
                    "call vprintf",
                    "printing from a kernel; this machine has no output but memory, store the values in a buffer",
                ));
            }
            _ => {}
        }
        for (formals, actuals) in [(&callee.params, shape.arguments), (&callee.returns, shape.returns)] {
            if formals.len() != actuals.len() {
                return Err(mods.invalid(format!(
                    "`{}` has {} parameters and {} results",
                    name.text,
                    callee.params.len(),
                    callee.returns.len()
                )));
            }
        }
        self.call_function(shape, callee)
    }

    fn call_function(&mut self, shape: &CallShape<'m>, callee: &'m Function) -> Result<()> {
        let name = shape.target;
        let Some(body) = &callee.body else {
            return Err(PtxError::unsupported(
                name.span,
                format!("call {}", callee.name.text),
                "a call of a function this module does not define; link its definition in, or avoid it",
            ));
        };
        if self.graph.is_recursive(&callee.name.text) {
            return self.call_routine(callee, shape.arguments, shape.returns);
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(PtxError::ImplLimit {
                at: name.span,
                what: "nested calls",
                need: self.calls.len() as u64 + 1,
                limit: MAX_CALLS as u64,
                hint: "flatten the call chain",
            });
        }
        self.inline(callee, body, shape.arguments, shape.returns)
    }

    /// Compares the pointer with all functions it may mean; any other value is a trap.
    fn call_pointer(&mut self, mods: &Mods<'m>, shape: &CallShape<'m>) -> Result<()> {
        let name = shape.target;
        let pointer = match self.lookup(name) {
            Ok(Entity::Register(register)) => self.register_value(register).0,
            Ok(_) => return Err(PtxError::invalid(name.span, &name.text, "a function or a register is expected")),
            Err(_) if !name.text.starts_with('%') => {
                return Err(PtxError::unsupported(
                    name.span,
                    format!("call {}", name.text),
                    "a call of a function this module does not declare; link its definition in, or avoid it",
                ));
            }
            Err(error) => return Err(error),
        };
        let mut candidates = Vec::new();
        for (number, function) in self.graph.candidates(shape).collect::<Vec<_>>() {
            let parameters = function.params.iter().zip(shape.arguments);
            let results = function.returns.iter().zip(shape.returns);
            let mut fits = true;
            for (formal, actual) in parameters.chain(results) {
                fits &= self.is_as_large(formal, actual)?;
            }
            if fits {
                candidates.push((number, function));
            }
        }
        if candidates.is_empty() {
            return Err(mods.unsupported(
                "a call through a pointer, but the module takes the address of no function with such parameters",
            ));
        }
        let after = self.func.new_block();
        for (number, function) in candidates {
            let here = self.compare(Comparison::Eq, pointer, Value::Imm(function_address(number)));
            let inside = self.func.new_block();
            let next = self.func.new_block();
            self.end_block(Terminator::Branch(here, inside, next), inside);
            self.call_function(shape, function)?;
            self.end_block(Terminator::Jump(after), next);
        }
        self.push(Cond::TRUE, InstKind::Trap(TrapReason::Program));
        self.end_block(Terminator::Jump(after), after);
        Ok(())
    }

    /// Whether an argument or result has the size that a function expects.
    fn is_as_large(&mut self, formal: &Variable, actual: &Operand) -> Result<bool> {
        let Operand::Name(name) = actual else { return Ok(true) };
        if super::operand::is_special(name) || name.text == "_" {
            return Ok(true);
        }
        Ok(match self.lookup(name)? {
            Entity::Variable(symbol, _) => {
                variable_bytes(formal)?.unwrap_or(0) == self.func.symbols[symbol.idx()].bytes
            }
            Entity::Register(register) => register.bits == formal.ty.bits(),
            Entity::Vector(_) | Entity::Label(_) | Entity::Targets(_) | Entity::Function(_) => true,
        })
    }

    fn inline(
        &mut self,
        callee: &'m Function,
        body: &'m [Statement],
        arguments: &[Operand],
        returns: &[Operand],
    ) -> Result<()> {
        let mut scope = Scope::function();
        let mut moves = Vec::new();
        for (formal, actual) in callee.params.iter().zip(arguments) {
            let entity = self.formal_parameter(formal, actual)?;
            if let Entity::Register(register) = &entity {
                let value = self.read(actual, formal.ty, Fit::Exact)?;
                moves.push((*register, value));
            }
            scope.define(&formal.name, entity)?;
        }
        let mut results = Vec::new();
        for (formal, actual) in callee.returns.iter().zip(returns) {
            let entity = self.formal_parameter(formal, actual)?;
            if let Entity::Register(register) = &entity {
                results.push((formal, *register, actual));
            }
            scope.define(&formal.name, entity)?;
        }
        for (register, (low, high)) in moves {
            self.set_register(register, low, high);
        }
        let after = self.func.new_block();
        let line = self.line;
        self.calls.push(&callee.name.text);
        self.returns.push(after);
        self.scopes.push(scope);
        self.body(body)?;
        self.returns.pop();
        self.calls.pop();
        self.line = line;
        self.end_block(Terminator::Jump(after), after);
        for (formal, register, actual) in results {
            let (low, high) = self.register_value(register);
            self.write(actual, formal.ty, low, high)?;
        }
        Ok(())
    }

    /// What a formal parameter stands for: the caller's `.param` variable itself, or storage of its own.
    fn formal_parameter(&mut self, formal: &'m Variable, actual: &Operand) -> Result<Entity<'m>> {
        if formal.space == StateSpace::Reg {
            return Ok(Entity::Register(self.new_register_like(formal)));
        }
        if let Some(entity) = self.parameter_variable(actual)? {
            return Ok(entity);
        }
        let bytes = variable_bytes(formal)?.unwrap_or(0);
        let symbol = self.func.symbol(Symbol {
            name: formal.name.text.clone(),
            space: SymbolSpace::Local,
            bytes,
            align: super::variable::variable_align(formal)?,
            line: self.line,
        });
        let (low, high) = self.read(actual, formal.ty, Fit::Wider)?;
        let address = Address::of(Value::Symbol(symbol, low_word(0)));
        self.store_word(formal.ty, address, low);
        if formal.ty.bits() == 64 {
            self.store_word(formal.ty, address.plus(4), high);
        }
        Ok(Entity::Variable(symbol, 0))
    }

    /// The variable that an argument or a result names.
    pub(super) fn parameter_variable(&mut self, actual: &Operand) -> Result<Option<Entity<'m>>> {
        match actual {
            Operand::Name(name) if !super::operand::is_special(name) && name.text != "_" => {
                let entity = self.lookup(name)?;
                Ok(matches!(entity, Entity::Variable(..)).then_some(entity))
            }
            _ => Ok(None),
        }
    }
}
