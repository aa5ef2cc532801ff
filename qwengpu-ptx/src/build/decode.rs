//! Opcodes taken apart: each handler takes the modifiers it knows, and the rest is an error.

use crate::ast::{Modifier, Opcode, ScalarType, TypeClass};
use crate::error::{PtxError, Result};
use crate::subset::{self, Refusal};

/// The modifiers of an opcode that no one has taken yet.
pub(super) struct Mods<'a> {
    opcode: &'a Opcode,
    rest: Vec<&'a Modifier>,
}

impl<'a> Mods<'a> {
    pub(super) fn new(opcode: &'a Opcode) -> Self {
        Mods { opcode, rest: opcode.modifiers.iter().collect() }
    }

    pub(super) fn opcode(&self) -> &'a Opcode {
        self.opcode
    }

    /// Takes the modifier of that text, wherever it stands.
    pub(super) fn flag(&mut self, text: &str) -> bool {
        let found = self.rest.iter().position(|m| m.text == text);
        if let Some(idx) = found {
            self.rest.remove(idx);
        }
        found.is_some()
    }

    /// Takes the first modifier whose text is in the table, and gives its meaning.
    pub(super) fn choice<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        for idx in 0..self.rest.len() {
            if let Some((_, value)) = table.iter().find(|(text, _)| *text == self.rest[idx].text) {
                self.rest.remove(idx);
                return Some(*value);
            }
        }
        None
    }

    /// As [`Mods::choice`]; missing is an error.
    pub(super) fn required<T: Copy>(&mut self, what: &str, table: &[(&str, T)]) -> Result<T> {
        self.choice(table).ok_or_else(|| {
            let names: Vec<String> = table.iter().map(|(text, _)| format!("`.{text}`")).collect();
            self.invalid(format!("{what} is missing, one of {}", names.join(", ")))
        })
    }

    /// Takes the next type; float types are allowed.
    pub(super) fn any_type(&mut self) -> Result<ScalarType> {
        let found = self.rest.iter().position(|m| ScalarType::from_name(&m.text).is_some());
        match found {
            Some(idx) => {
                let modifier = self.rest.remove(idx);
                Ok(ScalarType::from_name(&modifier.text).unwrap_or(ScalarType::B32))
            }
            None => Err(self.invalid("a type is missing")),
        }
    }

    /// Takes the next type, which must be an integer one.
    pub(super) fn int_type(&mut self) -> Result<ScalarType> {
        let ty = self.any_type()?;
        match ty.class() {
            TypeClass::Float => Err(self.float()),
            TypeClass::Predicate => Err(self.invalid("it does not work on predicates")),
            TypeClass::Unsigned | TypeClass::Signed | TypeClass::Bits if ty.bits() > 64 => {
                Err(self.refused(subset::WIDE))
            }
            TypeClass::Unsigned | TypeClass::Signed | TypeClass::Bits => Ok(ty),
        }
    }

    /// Takes every modifier left.
    pub(super) fn ignore_rest(&mut self) {
        self.rest.clear();
    }

    /// Takes every modifier left that is about caches or order only.
    pub(super) fn drop_hints(&mut self) {
        self.rest.retain(|m| !subset::is_dropped(&m.text));
    }

    pub(super) fn invalid(&self, reason: impl Into<String>) -> PtxError {
        PtxError::invalid(self.opcode.name.span, self.opcode.to_string(), reason)
    }

    pub(super) fn unsupported(&self, reason: impl Into<String>) -> PtxError {
        PtxError::unsupported(self.opcode.name.span, self.opcode.to_string(), reason)
    }

    pub(super) fn float(&self) -> PtxError {
        self.refused(subset::FLOAT)
    }

    pub(super) fn refused(&self, refusal: Refusal) -> PtxError {
        self.unsupported(refusal.reason())
    }

    /// Checks that every modifier was taken.
    pub(super) fn finish(&self) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(modifier) => Err(PtxError::invalid(
                modifier.span,
                self.opcode.to_string(),
                format!("`.{}` does not belong here", modifier.text),
            )),
        }
    }
}
