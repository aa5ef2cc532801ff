//! Address arithmetic moves into the address fields of loads and stores.
//!
//! An address is a sum of registers with factors, at most one word of the constant bank, at most one symbol,
//! and a number. Operations behind its registers are taken in one by one, and the last sum that the fields
//! can express is kept: one register as it is, one times four, one constant word.

use qwengpu_isa::{BinaryOp, ConstIdx, TernaryOp};

use crate::analysis::{Cfg, Defs};
use crate::ir::{Address, Function, InstRef, SymbolId, VReg, Value, WordOp};

/// Most operations taken into one address.
const MAX_STEPS: usize = 24;

/// A linear combination.
#[derive(Debug, Clone, Default)]
struct Sum {
    /// Registers with their factors; no register twice, no factor 0.
    terms: Vec<(VReg, u32)>,
    constants: Vec<(ConstIdx, u32)>,
    symbols: Vec<(SymbolId, u32)>,
    offset: u32,
}

impl Sum {
    fn of(address: Address) -> Sum {
        let mut sum = Sum { offset: address.offset, ..Sum::default() };
        if let Some(base) = address.base {
            sum.add(base.into(), 1);
        }
        if let Some(index) = address.index {
            sum.add(index.into(), 4);
        }
        sum.constants.extend(address.constant.map(|constant| (constant, 1)));
        sum.symbols.extend(address.symbol.map(|symbol| (symbol, 1)));
        sum
    }

    fn add(&mut self, value: Value, factor: u32) {
        fn add_to<T: PartialEq>(list: &mut Vec<(T, u32)>, item: T, factor: u32) {
            match list.iter_mut().find(|(other, _)| *other == item) {
                Some((_, sum)) => *sum = sum.wrapping_add(factor),
                None => list.push((item, factor)),
            }
            list.retain(|(_, factor)| *factor != 0);
        }
        match value {
            Value::Reg(reg) => add_to(&mut self.terms, reg, factor),
            Value::Imm(imm) => self.offset = self.offset.wrapping_add(imm.wrapping_mul(factor)),
            Value::Const(idx) => add_to(&mut self.constants, idx, factor),
            Value::Symbol(symbol, offset) => {
                add_to(&mut self.symbols, symbol, factor);
                self.offset = self.offset.wrapping_add(offset.wrapping_mul(factor));
            }
        }
    }

    /// The address fields of the sum, if there are enough of them.
    fn address(&self) -> Option<Address> {
        let mut address = Address { offset: self.offset, ..Address::default() };
        match self.constants[..] {
            [] => {}
            [(idx, 1)] => address.constant = Some(idx),
            _ => return None,
        }
        match self.symbols[..] {
            [] => {}
            [(symbol, 1)] => address.symbol = Some(symbol),
            _ => return None,
        }
        match self.terms[..] {
            [] => {}
            [(a, 1)] => address.base = Some(a),
            [(a, 4)] => address.index = Some(a),
            [(a, 5)] => (address.base, address.index) = (Some(a), Some(a)),
            [(a, 1), (b, 4)] | [(b, 4), (a, 1)] => (address.base, address.index) = (Some(a), Some(b)),
            _ => return None,
        }
        Some(address)
    }

    /// The sum with the operation behind a register in its place.
    fn expand(&self, reg: VReg, factor: u32, op: &WordOp) -> Option<Sum> {
        let mut sum = self.clone();
        sum.terms.retain(|(other, _)| *other != reg);
        match op {
            WordOp::Move(a) => sum.add(*a, factor),
            WordOp::Ternary(kind, a, b, c) => {
                match kind {
                    TernaryOp::Iadd => {
                        sum.add(*a, factor);
                        sum.add(*b, factor);
                    }
                    TernaryOp::Isub => {
                        sum.add(*a, factor);
                        sum.add(*b, factor.wrapping_neg());
                    }
                    TernaryOp::Imad => sum.add(*a, factor.wrapping_mul(b.imm()?)),
                    TernaryOp::Iscadd(scale) => {
                        sum.add(*a, factor.checked_shl(u32::from(scale.amount()))?);
                        sum.add(*b, factor);
                    }
                }
                sum.add(*c, factor);
            }
            WordOp::Binary(BinaryOp::Shl, a, Value::Imm(amount @ 0..32)) => sum.add(*a, factor << amount),
            _ => return None,
        }
        Some(sum)
    }
}

pub(crate) fn fold_addresses(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            let at = InstRef { block, pos };
            let Some(address) = func.block(block).insts[pos].address() else { continue };
            let folded = fold(func, &defs, at, address);
            if let Some(address) = func.block_mut(block).insts[pos].address_mut() {
                *address = folded;
            }
        }
    }
}

fn fold(func: &Function, defs: &Defs, at: InstRef, address: Address) -> Address {
    let mut best = address;
    let mut sum = Sum::of(address);
    let mut stuck: Vec<VReg> = Vec::new();
    for _ in 0..MAX_STEPS {
        // Factors other than 1 and 4 must be expanded away; those first.
        let candidate = sum
            .terms
            .iter()
            .filter(|(reg, _)| !stuck.contains(reg))
            .min_by_key(|(_, factor)| matches!(factor, 1 | 4))
            .copied();
        let Some((reg, factor)) = candidate else { break };
        let expanded = defs.source(func, reg, at).and_then(|op| sum.expand(reg, factor, op));
        match expanded {
            Some(next) => {
                sum = next;
                if let Some(fits) = sum.address() {
                    best = fits;
                }
            }
            None => stuck.push(reg),
        }
    }
    best
}
