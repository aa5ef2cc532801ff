//! PTX text of a module. Parsing it again gives the same syntax, whatever the spans.

use std::fmt::{self, Display, Formatter};

use super::directive::{Function, FunctionKind, InitialValue, Item, Module, Statement, Variable};
use super::inst::{AddressBase, Instruction, Operand};
use super::types::StateSpace;

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}", self.version)?;
        writeln!(f, ".target {}", self.target.join(", "))?;
        writeln!(f, ".address_size {}", self.address_size)?;
        for item in &self.items {
            match item {
                Item::Variable(variable) => writeln!(f, "{variable};")?,
                Item::Function(function) => write!(f, "{function}")?,
            }
        }
        Ok(())
    }
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: &[T], separator: &str) -> fmt::Result {
    for (idx, item) in items.iter().enumerate() {
        if idx > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.linkage.prefix())?;
        match self.kind {
            FunctionKind::Entry => f.write_str(".entry ")?,
            FunctionKind::Func => f.write_str(".func ")?,
        }
        if !self.returns.is_empty() {
            f.write_str("(")?;
            separated(f, &self.returns, ", ")?;
            f.write_str(") ")?;
        }
        write!(f, "{}(", self.name.text)?;
        separated(f, &self.params, ", ")?;
        f.write_str(")")?;
        for tuning in &self.tuning {
            write!(f, "\n.{}", tuning.name)?;
            if !tuning.values.is_empty() {
                f.write_str(" ")?;
                separated(f, &tuning.values, ", ")?;
            }
        }
        match &self.body {
            None => f.write_str(";\n"),
            Some(body) => {
                f.write_str("\n{\n")?;
                statements(f, body, 1)?;
                f.write_str("}\n")
            }
        }
    }
}

fn statements(f: &mut Formatter<'_>, body: &[Statement], depth: usize) -> fmt::Result {
    let indent = "\t".repeat(depth);
    for statement in body {
        match statement {
            Statement::Variable(variable) => writeln!(f, "{indent}{variable};")?,
            Statement::Label(name) => writeln!(f, "{}:", name.text)?,
            Statement::BranchTargets(table) => {
                write!(f, "{}: .branchtargets ", table.name.text)?;
                let names: Vec<&str> = table.targets.iter().map(|t| t.text.as_str()).collect();
                writeln!(f, "{};", names.join(", "))?;
            }
            Statement::CallPrototype(name) => writeln!(f, "{}: .callprototype _ ();", name.text)?,
            Statement::Instruction(inst) => writeln!(f, "{indent}{inst}")?,
            Statement::Block(inner, _) => {
                writeln!(f, "{indent}{{")?;
                statements(f, inner, depth + 1)?;
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.linkage.prefix())?;
        write!(f, "{} ", self.space)?;
        // In a parameter the alignment follows the type when a pointer attribute carries its own.
        if let Some(align) = self.align {
            write!(f, ".align {align} ")?;
        }
        if let Some(vector) = self.vector {
            write!(f, ".v{vector} ")?;
        }
        write!(f, "{} ", self.ty)?;
        if let Some(pointer) = self.pointer {
            f.write_str(".ptr ")?;
            if let Some(space) = pointer.space {
                write!(f, "{space} ")?;
            }
            if let Some(align) = pointer.align {
                write!(f, ".align {align} ")?;
            }
        }
        f.write_str(&self.name.text)?;
        if let Some(range) = self.range {
            write!(f, "<{range}>")?;
        }
        for extent in &self.extents {
            match extent {
                Some(extent) => write!(f, "[{extent}]")?,
                None => f.write_str("[]")?,
            }
        }
        if !self.init.is_empty() {
            f.write_str(" = ")?;
            if self.extents.is_empty() && self.init.len() == 1 {
                write!(f, "{}", self.init[0])?;
            } else {
                f.write_str("{")?;
                separated(f, &self.init, ", ")?;
                f.write_str("}")?;
            }
        }
        debug_assert!(self.range.is_none() || self.space == StateSpace::Reg);
        Ok(())
    }
}

impl Display for InitialValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            InitialValue::Bits(bits) => write!(f, "{bits}"),
            InitialValue::Address(name, 0) => f.write_str(&name.text),
            InitialValue::Address(name, offset) => write!(f, "{}{offset:+}", name.text),
        }
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            let not = if guard.negated { "!" } else { "" };
            write!(f, "@{not}{} ", guard.name.text)?;
        }
        write!(f, "{}", self.opcode)?;
        for (idx, operand) in self.operands.iter().enumerate() {
            f.write_str(if idx == 0 { " " } else { ", " })?;
            write!(f, "{operand}")?;
        }
        f.write_str(";")
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Name(name) => f.write_str(&name.text),
            Operand::Not(name) => write!(f, "!{}", name.text),
            Operand::Negative(operand) => write!(f, "-{operand}"),
            Operand::Component(name, component) => write!(f, "{}.{}", name.text, component.text),
            Operand::Offset(name, offset) => write!(f, "{}{offset:+}", name.text),
            Operand::Int { value, .. } => write!(f, "{}", value.cast_signed()),
            Operand::Float { bits, width, .. } => {
                if *width == 32 {
                    write!(f, "0f{bits:08X}")
                } else {
                    write!(f, "0d{bits:016X}")
                }
            }
            Operand::Address { base, offset, .. } => match (base, offset) {
                (AddressBase::Name(name), 0) => write!(f, "[{}]", name.text),
                (AddressBase::Name(name), offset) => write!(f, "[{}{offset:+}]", name.text),
                (AddressBase::Absolute, offset) => write!(f, "[{offset}]"),
            },
            Operand::Brackets(items, _) => {
                f.write_str("[")?;
                separated(f, items, ", ")?;
                f.write_str("]")
            }
            Operand::Vector(items, _) => {
                f.write_str("{")?;
                separated(f, items, ", ")?;
                f.write_str("}")
            }
            Operand::List(items, _) => {
                f.write_str("(")?;
                separated(f, items, ", ")?;
                f.write_str(")")
            }
            Operand::Pair(first, second) => write!(f, "{first}|{second}"),
        }
    }
}
