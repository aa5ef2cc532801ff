//! Calls: the callee's body is translated in place of the call.

use crate::ast::{Function, Instruction, Item, Operand, StateSpace, Variable};
use crate::error::{PtxError, Result};
use crate::fold::low_word;
use crate::ir::{Address, Cond, Symbol, SymbolSpace, Terminator, Value};

use super::Builder;
use super::decode::Mods;
use super::operand::Fit;
use super::scope::{Entity, Scope};
use super::variable_bytes;

/// Deepest nesting of inlined calls.
const MAX_CALLS: usize = 32;

impl<'m> Builder<'m> {
    pub(super) fn call(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("uni");
        let (returns, rest): (&[Operand], &[Operand]) = match inst.operands.split_first() {
            Some((Operand::List(returns, _), rest)) => (returns, rest),
            _ => (&[], &inst.operands),
        };
        let (name, arguments): (_, &[Operand]) = match rest {
            [Operand::Name(name)] => (name, &[]),
            [Operand::Name(name), Operand::List(arguments, _), ..] => (name, arguments),
            _ => return Err(mods.invalid("it reads `call (result), function, (arguments)`")),
        };
        let callee = self.callee(name)?;
        let body = match &callee.body {
            Some(body) => body,
            None => {
                return Err(PtxError::unsupported(
                    name.span,
                    format!("call {}", name.text),
                    "a call of a function this module does not define; link its definition in, or avoid it",
                ));
            }
        };
        if self.calls.contains(&callee.name.text.as_str()) {
            return Err(PtxError::unsupported(
                name.span,
                format!("call {}", name.text),
                "recursive; this machine has no call stack, use a loop",
            ));
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
        for (formals, actuals) in [(&callee.params, arguments), (&callee.returns, returns)] {
            if formals.len() != actuals.len() {
                return Err(mods.invalid(format!(
                    "`{}` has {} parameters and {} results",
                    name.text,
                    callee.params.len(),
                    callee.returns.len()
                )));
            }
        }
        if self.guard != Cond::TRUE {
            // Threads whose guard fails go around the call.
            let inside = self.func.new_block();
            let after = self.func.new_block();
            self.end_block(Terminator::Branch(self.guard, inside, after), inside);
            self.guard = Cond::TRUE;
            self.inline(callee, body, arguments, returns)?;
            self.end_block(Terminator::Jump(after), after);
            return Ok(());
        }
        self.inline(callee, body, arguments, returns)
    }

    fn callee(&self, name: &crate::ast::Name) -> Result<&'m Function> {
        let mut found: Option<&'m Function> = None;
        for item in &self.module.items {
            if let Item::Function(function) = item
                && function.kind.is_func()
                && function.name.text == name.text
                && found.is_none_or(|earlier| earlier.body.is_none())
            {
                found = Some(function);
            }
        }
        found.ok_or_else(|| {
            PtxError::unsupported(
                name.span,
                &name.text,
                "not the name of a function of this module; calls through pointers are not supported, call directly",
            )
        })
    }

    fn inline(
        &mut self,
        callee: &'m Function,
        body: &'m [crate::ast::Statement],
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
        if let Operand::Name(name) = actual
            && !super::operand::is_special(name)
            && name.text != "_"
            && let entity @ Entity::Variable(..) = self.lookup(name)?
        {
            return Ok(entity);
        }
        let bytes = variable_bytes(formal)?.unwrap_or(0);
        let symbol = self.func.symbol(Symbol {
            name: formal.name.text.clone(),
            space: SymbolSpace::Local,
            bytes,
            align: super::variable_align(formal)?,
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
}
