//! Which kernel parameters are pointers.
//!
//! Compilers give pointers and 64-bit integers the same type; only some mark pointers with `.ptr`. What a parameter is
//! shows where its value goes: to `cvta`, or into brackets.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{AddressBase, Function, Instruction, Operand, Statement};

/// The parameters whose value is used as an address in the kernel itself; a parameter that only travels through
/// local memory or calls is not among them.
pub(super) fn dereferenced(kernel: &Function) -> BTreeSet<&str> {
    let mut uses = Uses::default();
    uses.statements(kernel.body.as_deref().unwrap_or_default());
    uses.pointers()
}

/// What flows where, whatever the scope: compilers don't reuse the names of registers that hold parameters.
#[derive(Default)]
struct Uses<'a> {
    /// Parameters loaded into a register.
    loaded: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Registers whose value a register may have, an offset apart.
    copied: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Registers used as addresses.
    addresses: Vec<&'a str>,
}

impl<'a> Uses<'a> {
    fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Block(inner, _) => self.statements(inner),
                _ => {}
            }
        }
    }

    fn instruction(&mut self, instruction: &'a Instruction) {
        let operands = &instruction.operands;
        match (instruction.opcode.name.text.as_str(), operands.as_slice()) {
            ("ld", [Operand::Name(to), Operand::Address { base: AddressBase::Name(from), .. }])
                if instruction.opcode.has("param") =>
            {
                self.loaded.entry(&to.text).or_default().insert(&from.text);
                return;
            }
            ("cvta", [_, Operand::Name(from)]) => self.addresses.push(&from.text),
            ("mov", [Operand::Name(to), Operand::Name(from)])
            | ("add", [Operand::Name(to), Operand::Name(from), Operand::Int { .. }]) => {
                self.copied.entry(&to.text).or_default().insert(&from.text);
            }
            _ => {}
        }
        for operand in operands {
            if let Operand::Address { base: AddressBase::Name(name), .. } = operand {
                self.addresses.push(&name.text);
            }
        }
    }

    fn pointers(mut self) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut pointers = BTreeSet::new();
        while let Some(register) = self.addresses.pop() {
            if seen.insert(register) {
                pointers.extend(self.loaded.get(register).into_iter().flatten());
                self.addresses.extend(self.copied.get(register).into_iter().flatten());
            }
        }
        pointers
    }
}
