//! Variables and parameters: their sizes, and the symbols that stand for them.

use qwengpu_isa::{Param, ParamKind};

use crate::ast::{self, Item, Linkage, ScalarType, StateSpace, Variable};
use crate::error::{PtxError, Result};
use crate::ir::{Symbol, SymbolId, SymbolSpace};
use crate::span::Span;

use super::scope::{Entity, Scope};
use super::{Builder, pointers};

/// The size of a variable in bytes; `None` for an open array.
pub(super) fn variable_bytes(variable: &Variable) -> Result<Option<u64>> {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector.unwrap_or(1));
    let mut bytes = element;
    let mut open = false;
    for extent in &variable.extents {
        match extent {
            Some(extent) => {
                bytes = bytes.checked_mul(*extent).filter(|b| *b <= u64::from(u32::MAX)).ok_or_else(|| {
                    PtxError::invalid(variable.name.span, &variable.name.text, "the variable is larger than 4 GiB")
                })?;
            }
            None => open = true,
        }
    }
    if open && !variable.init.is_empty() {
        return Ok(Some(element * variable.init.len() as u64));
    }
    Ok((!open).then_some(bytes))
}

/// The alignment of a variable in bytes.
pub(super) fn variable_align(variable: &Variable) -> Result<u32> {
    let natural = variable.ty.bytes() * variable.vector.unwrap_or(1);
    let align = variable.align.unwrap_or(u64::from(natural));
    match u32::try_from(align) {
        Ok(align) if align.is_power_of_two() && align <= 1 << 16 => Ok(align),
        _ => Err(PtxError::invalid(
            variable.name.span,
            format!(".align {align}"),
            "an alignment is a power of two, at most 65536",
        )),
    }
}

impl<'m> Builder<'m> {
    /// The parameters of the kernel, which lie in the constant bank.
    pub(super) fn kernel_params(&mut self, kernel: &'m ast::Function, scope: &mut Scope<'m>) -> Result<Vec<Param>> {
        let dereferenced = pointers::dereferenced(kernel);
        let mut params = Vec::new();
        let mut end = 0u64;
        let mut offsets = Vec::new();
        for variable in &kernel.params {
            let align = variable_align(variable)?;
            let bytes = variable_bytes(variable)?.unwrap_or(0);
            let offset = end.next_multiple_of(u64::from(align));
            end = offset + bytes;
            let limit = 4 * u64::from(qwengpu_isa::ConstIdx::PARAMETER_WORDS);
            let (Ok(offset), Ok(size)) = (u32::try_from(offset), u32::try_from(bytes)) else {
                return Err(parameter_limit(kernel.name.span, end, limit));
            };
            if end > limit {
                return Err(parameter_limit(kernel.name.span, end, limit));
            }
            let name = variable.name.text.clone();
            let kind = param_kind(variable, dereferenced.contains(name.as_str()));
            params.push(Param { name, offset, size, align, kind });
            offsets.push((variable, offset));
        }
        let area = self.func.symbol(Symbol {
            name: format!("{} parameters", kernel.name.text),
            space: SymbolSpace::Param,
            bytes: end,
            align: 8,
            line: kernel.name.span.line,
        });
        for (variable, offset) in offsets {
            scope.define(&variable.name, Entity::Variable(area, offset))?;
        }
        Ok(params)
    }

    /// A variable or register declared in a body.
    pub(super) fn declare(&mut self, variable: &'m Variable) -> Result<()> {
        if variable.space == StateSpace::Reg {
            return self.declare_registers(variable);
        }
        let space = match variable.space {
            StateSpace::Local | StateSpace::Param => SymbolSpace::Local,
            StateSpace::Shared if variable.linkage == Linkage::Extern => SymbolSpace::SharedExtern,
            StateSpace::Shared => SymbolSpace::Shared,
            StateSpace::Reg | StateSpace::Global | StateSpace::Const => {
                return Err(PtxError::invalid(
                    variable.name.span,
                    format!("{} {}", variable.space, variable.name.text),
                    "such a variable belongs at module level",
                ));
            }
        };
        let symbol = self.memory_symbol(variable, space)?;
        self.scope()?.define(&variable.name, Entity::Variable(symbol, 0))
    }

    /// The symbol of a variable in memory.
    pub(super) fn memory_symbol(&mut self, variable: &Variable, space: SymbolSpace) -> Result<SymbolId> {
        let bytes = variable_bytes(variable)?;
        let open_allowed = matches!(space, SymbolSpace::SharedExtern | SymbolSpace::Extern);
        if bytes.is_none() && !open_allowed {
            return Err(PtxError::invalid(
                variable.name.span,
                format!("{}[]", variable.name.text),
                "only `.extern` arrays may leave their size open",
            ));
        }
        Ok(self.func.symbol(Symbol {
            name: variable.name.text.clone(),
            space,
            bytes: bytes.unwrap_or(0),
            align: variable_align(variable)?,
            line: variable.name.span.line,
        }))
    }

    /// The symbol of a module variable, made at its first use.
    pub(super) fn module_variable(&mut self, name: &str) -> Result<Option<SymbolId>> {
        if let Some(symbol) = self.static_names.get(name) {
            return Ok(Some(*symbol));
        }
        let mut found: Option<&'m Variable> = None;
        for item in &self.module.items {
            if let Item::Variable(variable) = item
                && variable.name.text == name
                && found.is_none_or(|earlier| earlier.linkage == Linkage::Extern)
            {
                found = Some(variable);
            }
        }
        let Some(variable) = found else { return Ok(None) };
        let space = match (variable.space, variable.linkage) {
            (StateSpace::Shared, Linkage::Extern) => SymbolSpace::SharedExtern,
            (StateSpace::Shared, _) => SymbolSpace::Shared,
            (StateSpace::Global | StateSpace::Const, Linkage::Extern) => SymbolSpace::Extern,
            (StateSpace::Global | StateSpace::Const, _) => SymbolSpace::Static,
            (StateSpace::Reg | StateSpace::Local | StateSpace::Param, _) => {
                return Err(PtxError::unsupported(
                    variable.name.span,
                    format!("{} {}", variable.space, variable.name.text),
                    "not supported at module level; declare the variable in the kernel",
                ));
            }
        };
        let symbol = self.memory_symbol(variable, space)?;
        self.static_names.insert(name.to_owned(), symbol);
        if space == SymbolSpace::Static {
            self.statics.insert(symbol, variable);
            for value in &variable.init {
                if let ast::InitialValue::Address(other, _) = value
                    && self.graph.pointer(&other.text).is_none()
                    && self.module_variable(&other.text)?.is_none()
                {
                    return Err(PtxError::invalid(
                        other.span,
                        &other.text,
                        "no module variable or function has this name",
                    ));
                }
            }
        }
        Ok(Some(symbol))
    }
}

fn parameter_limit(at: Span, need: u64, limit: u64) -> PtxError {
    PtxError::ImplLimit {
        at,
        what: "bytes of kernel parameters",
        need,
        limit,
        hint: "pass large arguments through a buffer",
    }
}

fn param_kind(variable: &Variable, is_dereferenced: bool) -> ParamKind {
    let is_wide = matches!(variable.ty, ScalarType::U64 | ScalarType::S64 | ScalarType::B64);
    if variable.pointer.is_some() || is_wide && is_dereferenced {
        return ParamKind::Pointer;
    }
    if !variable.extents.is_empty() || variable.vector.is_some() {
        return ParamKind::Bytes;
    }
    match variable.ty {
        ty if ty.is_signed() => ParamKind::Signed,
        ty if is_wide || ty.class() == ast::TypeClass::Unsigned => ParamKind::Unsigned,
        _ => ParamKind::Bytes,
    }
}
