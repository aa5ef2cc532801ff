//! Operands that fit no operand field move into registers.
//!
//! Only operand B takes an immediate or a constant word, an address offset has 24 bits, and register fields
//! read zero for free. Commutative operations first try to turn themselves round.

use std::collections::BTreeMap;

use qwengpu_isa::{BinaryOp, Offset, TernaryOp};

use crate::fold::{swapped, swapped_table};
use crate::ir::{Address, Function, Inst, InstKind, PredOp, VReg, Value, WordOp};

pub(crate) fn legalize_operands(func: &mut Function) {
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.block_mut(block).insts);
        let mut legalizer = Legalizer {
            func,
            made: Vec::with_capacity(insts.len()),
            loaded: BTreeMap::new(),
            holding: BTreeMap::new(),
        };
        for mut inst in insts {
            legalizer.legalize(&mut inst);
            legalizer.note(&inst);
            legalizer.made.push(inst);
        }
        let made = legalizer.made;
        func.block_mut(block).insts = made;
    }
}

/// Most instructions between two uses of one register with a fixed value: where a block is longer, the value is made
/// again, which takes an instruction and not a register all the way.
const MAX_DISTANCE: usize = 64;

struct Legalizer<'f> {
    func: &'f mut Function,
    made: Vec<Inst>,
    /// Registers of this block that hold a fixed value, and where each was last of use.
    loaded: BTreeMap<Value, (VReg, usize)>,
    /// The same by register.
    holding: BTreeMap<VReg, Value>,
}

fn is_register(value: Value) -> bool {
    matches!(value, Value::Reg(_) | Value::Imm(0))
}

impl Legalizer<'_> {
    fn load(&mut self, value: &mut Value, line: u32) {
        if is_register(*value) {
            return;
        }
        let here = self.made.len();
        let reg = match self.loaded.get(value) {
            Some((reg, last)) if here - last <= MAX_DISTANCE => *reg,
            Some(_) | None => {
                let reg = self.func.vreg();
                self.made.push(Inst::word(reg, WordOp::Move(*value), line));
                if let Some((old, _)) = self.loaded.get(value) {
                    self.holding.remove(old);
                }
                self.holding.insert(reg, *value);
                reg
            }
        };
        self.loaded.insert(*value, (reg, here));
        *value = reg.into();
    }

    /// Follows which registers hold fixed values.
    fn note(&mut self, inst: &Inst) {
        let Some(dst) = inst.reg_written() else { return };
        if let Some(value) = self.holding.remove(&dst) {
            self.loaded.remove(&value);
        }
        if let Some((dst, value @ (Value::Imm(_) | Value::Const(_)))) = inst.as_copy()
            && !self.loaded.contains_key(&value)
        {
            self.loaded.insert(value, (dst, self.made.len()));
            self.holding.insert(dst, value);
        }
    }

    fn legalize(&mut self, inst: &mut Inst) {
        let line = inst.line;
        match &mut inst.kind {
            InstKind::Word(_, op) => self.word(op, line),
            InstKind::Pred(_, PredOp::Compare(comparison, a, b, _)) => {
                if !is_register(*a) && is_register(*b) {
                    std::mem::swap(a, b);
                    *comparison = swapped(*comparison);
                }
                self.load(a, line);
            }
            InstKind::Pred(_, PredOp::Lead(a)) => self.load(a, line),
            InstKind::Store(_, _, value) => self.load(value, line),
            InstKind::Pred(_, PredOp::Logic(..) | PredOp::Undefined)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => {}
        }
        if let Some(address) = inst.address_mut() {
            self.address(address, line);
        }
    }

    fn word(&mut self, op: &mut WordOp, line: u32) {
        match op {
            WordOp::Ternary(kind, a, b, c) => {
                match kind {
                    TernaryOp::Iadd => {
                        if !is_register(*a) && is_register(*b) {
                            std::mem::swap(a, b);
                        }
                        if !is_register(*c) && is_register(*b) {
                            std::mem::swap(c, b);
                        }
                    }
                    TernaryOp::Imad if !is_register(*a) && is_register(*b) => std::mem::swap(a, b),
                    TernaryOp::Iscadd(_) if !is_register(*c) && is_register(*b) => std::mem::swap(c, b),
                    TernaryOp::Imad | TernaryOp::Iscadd(_) | TernaryOp::Isub => {}
                }
                self.load(a, line);
                self.load(c, line);
            }
            WordOp::Binary(kind, a, b) => {
                if !is_register(*a) && is_register(*b) {
                    match kind {
                        BinaryOp::Lop(table) => {
                            *table = swapped_table(*table);
                            std::mem::swap(a, b);
                        }
                        BinaryOp::Imnmx(..) => std::mem::swap(a, b),
                        BinaryOp::Shl | BinaryOp::Shr(_) => {}
                    }
                }
                self.load(a, line);
            }
            WordOp::Select(cond, a, b) => {
                if !is_register(*a) && is_register(*b) {
                    std::mem::swap(a, b);
                    *cond = cond.not();
                }
                self.load(a, line);
            }
            WordOp::Logic3(_, a, b, c) => {
                for value in [a, b, c] {
                    self.load(value, line);
                }
            }
            WordOp::Shuffle(_, a, _) | WordOp::SmallDivide(_, Some(a), _) => self.load(a, line),
            WordOp::Move(_)
            | WordOp::Unary(..)
            | WordOp::Vote(_)
            | WordOp::Special(_)
            | WordOp::SmallDivide(_, None, _)
            | WordOp::Divide(..)
            | WordOp::MulHigh(..)
            | WordOp::Load(..)
            | WordOp::Undefined => {}
        }
    }

    fn address(&mut self, address: &mut Address, line: u32) {
        if Offset::new(address.offset.cast_signed()).is_some() {
            return;
        }
        let mut offset = Value::Imm(address.offset);
        match address.base {
            None => {
                self.load(&mut offset, line);
                address.base = offset.reg();
            }
            Some(base) => {
                let sum = self.func.vreg();
                let op = WordOp::Ternary(TernaryOp::Iadd, base.into(), offset, Value::ZERO);
                self.made.push(Inst::word(sum, op, line));
                address.base = Some(sum);
            }
        }
        address.offset = 0;
    }
}
