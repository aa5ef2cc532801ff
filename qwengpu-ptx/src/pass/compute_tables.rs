//! Tables of numbers too large for global memory are computed, where a rule gives their entries.
//!
//! Compilers turn loops into tables: a CRC of a byte at a time reads one of 1024 bytes. A table qualifies when the
//! kernel only loads from it, an element at a time, and every entry follows one of two rules:
//!
//! - `t[i] = t[0] + i * step`, which is a product,
//! - `t[i] = t[0] ^ t'[lowest bit of i] ^ ...`, linear in the bits of the index, which is three instructions a bit.
//!
//! An index beyond the table gives some number; no memory is read.

use std::collections::{BTreeMap, BTreeSet};

use qwengpu_isa::{BinaryOp, Comparison, LoadWidth, MachineSpec, Signedness, Table2, TernaryOp};

use crate::ast::{InitialValue, Variable};
use crate::ir::{Address, Cond, Function, Inst, InstKind, PredOp, SymbolId, SymbolSpace, VReg, Value, WordOp};

use super::resolve_symbols::Statics;

/// How the entries of a table follow from their number.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Progression { first: u32, step: u32 },
    Linear { first: u32, by_bit: Vec<u32> },
}

impl Rule {
    fn of(entries: &[u32], width: LoadWidth) -> Option<Rule> {
        let first = *entries.first()?;
        let cut = |word: u32| extended(word, width);
        let step = entries.get(1).copied().unwrap_or(first).wrapping_sub(first);
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        let value = |i: usize| cut(first.wrapping_add(step.wrapping_mul(number(i))));
        if entries.iter().enumerate().all(|(i, entry)| value(i) == *entry) {
            return Some(Rule::Progression { first, step });
        }
        let bits = usize::BITS - (entries.len() - 1).leading_zeros();
        let by_bit: Vec<u32> = (0..bits).map(|bit| entries[1 << bit] ^ first).collect();
        let value = |i: usize| {
            let set = (0..).zip(&by_bit).filter(|(bit, _)| i >> bit & 1 == 1);
            set.fold(first, |word, (_, part)| word ^ part)
        };
        entries.iter().enumerate().all(|(i, entry)| value(i) == *entry).then_some(Rule::Linear { first, by_bit })
    }
}

/// What a load of the width makes of the lowest bits.
fn extended(word: u32, width: LoadWidth) -> u32 {
    let unused = 32 - 8 * width.bytes();
    match width {
        LoadWidth::U8 | LoadWidth::U16 | LoadWidth::B32 => word << unused >> unused,
        LoadWidth::S8 | LoadWidth::S16 => ((word << unused).cast_signed() >> unused).cast_unsigned(),
    }
}

/// The entries of a variable as loads of a width see them; none if an entry is an address.
fn entries(variable: &Variable, bytes: u64, width: LoadWidth) -> Option<Vec<u32>> {
    let size = usize::try_from(variable.ty.bytes()).ok()?;
    let mut image = Vec::new();
    for value in &variable.init {
        let InitialValue::Bits(bits) = value else { return None };
        image.extend_from_slice(bits.to_le_bytes().get(..size)?);
    }
    image.resize(usize::try_from(bytes).ok()?, 0);
    let chunks = image.chunks_exact(usize::try_from(width.bytes()).ok()?);
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
    Some(chunks.map(|chunk| extended(word(chunk), width)).collect())
}

/// The load of a symbol, and the address without it.
fn load_of(inst: &Inst, symbol: SymbolId) -> Option<(VReg, LoadWidth, Address)> {
    let InstKind::Word(dst, WordOp::Load(width, address)) = inst.kind else { return None };
    (address.symbol == Some(symbol)).then_some((dst, width, Address { symbol: None, ..address }))
}

/// The rules of a table for all loads of it; none if the kernel uses it in another way.
fn rules(func: &Function, statics: &Statics<'_>, symbol: SymbolId) -> Option<Vec<(LoadWidth, Rule)>> {
    let variable = statics.variables.get(&symbol)?;
    let is_named =
        |value: &InitialValue| matches!(value, InitialValue::Address(name, _) if *name.text == variable.name.text);
    if statics.variables.values().any(|other| other.init.iter().any(is_named)) {
        return None;
    }
    let mut rules: Vec<(LoadWidth, Rule)> = Vec::new();
    for inst in func.insts().filter(|inst| inst.symbols().contains(&symbol)) {
        let (_, width, address) = load_of(inst, symbol)?;
        let whole = address.offset.is_multiple_of(width.bytes()) && address.constant.is_none();
        let one_register = address.index.is_none() || address.base.is_none() && width == LoadWidth::B32;
        if !whole || !one_register {
            return None;
        }
        if !rules.iter().any(|(known, _)| *known == width) {
            let entries = entries(variable, func.symbols[symbol.idx()].bytes, width)?;
            rules.push((width, Rule::of(&entries, width)?));
        }
    }
    Some(rules)
}

/// A sum with a symbol that only loads use as their base becomes one without, and the symbol a part of their
/// addresses.
fn move_symbols_to_loads(func: &mut Function) {
    let mut defs = vec![0usize; func.num_vregs];
    let mut other_uses = vec![false; func.num_vregs];
    for inst in func.insts() {
        inst.reg_written().into_iter().for_each(|reg| defs[reg.idx()] += 1);
        let mut reads = inst.regs_read();
        if let InstKind::Word(_, WordOp::Load(_, Address { base: Some(base), symbol: None, .. })) = inst.kind {
            let position = reads.iter().position(|reg| *reg == base);
            position.map(|position| reads.swap_remove(position));
        }
        reads.into_iter().for_each(|reg| other_uses[reg.idx()] = true);
    }
    let mut moved: BTreeMap<VReg, (SymbolId, u32)> = BTreeMap::new();
    func.each_inst(&mut |inst| {
        let InstKind::Word(dst, WordOp::Ternary(op, a, b, c)) = &mut inst.kind else { return };
        let dst = *dst;
        if inst.guard != Cond::TRUE || defs[dst.idx()] != 1 || other_uses[dst.idx()] {
            return;
        }
        let addends = match op {
            TernaryOp::Iadd => vec![a, b, c],
            TernaryOp::Iscadd(_) => vec![b, c],
            TernaryOp::Imad | TernaryOp::Isub => vec![c],
        };
        for addend in addends {
            if let Value::Symbol(symbol, offset) = *addend
                && !moved.contains_key(&dst)
            {
                moved.insert(dst, (symbol, offset));
                *addend = Value::ZERO;
            }
        }
    });
    func.each_inst(&mut |inst| {
        if let InstKind::Word(_, WordOp::Load(_, address)) = &mut inst.kind
            && let Some((symbol, offset)) = address.base.and_then(|base| moved.get(&base))
        {
            *address = Address { symbol: Some(*symbol), ..*address }.plus(*offset);
        }
    });
}

pub(crate) fn compute_tables(func: &mut Function, statics: &Statics<'_>, spec: &MachineSpec) {
    let used: BTreeSet<SymbolId> = func.insts().flat_map(Inst::symbols).collect();
    let bytes = |symbol: &SymbolId| func.symbols[symbol.idx()].bytes;
    let mut tables: Vec<SymbolId> =
        used.into_iter().filter(|id| func.symbols[id.idx()].space == SymbolSpace::Static).collect();
    tables.sort_by_key(|symbol| std::cmp::Reverse(bytes(symbol)));
    let mut total: u64 = tables.iter().map(bytes).sum();
    if total <= 4 * u64::from(spec.global_words) {
        return;
    }
    move_symbols_to_loads(func);
    let bytes = |symbol: &SymbolId| func.symbols[symbol.idx()].bytes;
    let mut computed = Vec::new();
    for symbol in tables {
        if total <= 4 * u64::from(spec.global_words) {
            break;
        }
        if let Some(rules) = rules(func, statics, symbol) {
            total -= bytes(&symbol);
            computed.push((symbol, rules));
        }
    }
    for (symbol, rules) in computed {
        replace_loads(func, symbol, &rules);
    }
}

fn replace_loads(func: &mut Function, symbol: SymbolId, rules: &[(LoadWidth, Rule)]) {
    for block in func.layout.clone() {
        let mut made = Vec::new();
        for inst in std::mem::take(&mut func.block_mut(block).insts) {
            let found = load_of(&inst, symbol).and_then(|(dst, width, address)| {
                let (_, rule) = rules.iter().find(|(known, _)| *known == width)?;
                Some((dst, width, address, rule))
            });
            match found {
                Some((dst, width, address, rule)) => {
                    let mut code = Code { func: &mut *func, made: &mut made, line: inst.line };
                    let value = code.entry(rule, width, address);
                    made.push(Inst {
                        guard: inst.guard,
                        kind: InstKind::Word(dst, WordOp::Move(value)),
                        line: inst.line,
                    });
                }
                None => made.push(inst),
            }
        }
        func.block_mut(block).insts = made;
    }
}

/// Appends instructions.
struct Code<'f> {
    func: &'f mut Function,
    made: &'f mut Vec<Inst>,
    line: u32,
}

impl Code<'_> {
    fn word(&mut self, op: WordOp) -> Value {
        let dst = self.func.vreg();
        self.made.push(Inst::word(dst, op, self.line));
        dst.into()
    }

    /// The number of the entry at an address.
    fn number(&mut self, width: LoadWidth, address: Address) -> Value {
        let places = width.bytes().trailing_zeros();
        let scaled = match (address.index, address.base) {
            (Some(index), _) => index.into(),
            (None, Some(base)) if places == 0 => base.into(),
            (None, Some(base)) => {
                self.word(WordOp::Binary(BinaryOp::Shr(Signedness::Unsigned), base.into(), Value::Imm(places)))
            }
            (None, None) => return Value::Imm(address.offset >> places),
        };
        let first = address.offset.cast_signed() >> places;
        self.word(WordOp::Ternary(TernaryOp::Iadd, scaled, Value::Imm(first.cast_unsigned()), Value::ZERO))
    }

    fn entry(&mut self, rule: &Rule, width: LoadWidth, address: Address) -> Value {
        let number = self.number(width, address);
        match rule {
            Rule::Progression { first, step } => {
                let grown = WordOp::Ternary(TernaryOp::Imad, number, Value::Imm(*step), Value::Imm(*first));
                let value = self.word(grown);
                self.extend(value, width)
            }
            Rule::Linear { first, by_bit } => {
                let sum = self.func.vreg();
                self.made.push(Inst::word(sum, WordOp::Move(Value::Imm(*first)), self.line));
                for (bit, part) in by_bit.iter().enumerate().filter(|(_, part)| **part != 0) {
                    let test = self.word(WordOp::Binary(BinaryOp::Lop(Table2::AND), number, Value::Imm(1 << bit)));
                    let set = self.func.vpred();
                    let compare = PredOp::Compare(Comparison::Ne, test, Value::ZERO, Cond::TRUE);
                    self.made.push(Inst::pred(set, compare, self.line));
                    let add = WordOp::Binary(BinaryOp::Lop(Table2::XOR), sum.into(), Value::Imm(*part));
                    self.made.push(Inst { guard: set.into(), kind: InstKind::Word(sum, add), line: self.line });
                }
                sum.into()
            }
        }
    }

    fn extend(&mut self, value: Value, width: LoadWidth) -> Value {
        let unused = Value::Imm(32 - 8 * width.bytes());
        let sign = match width {
            LoadWidth::B32 => return value,
            LoadWidth::U8 | LoadWidth::U16 => Signedness::Unsigned,
            LoadWidth::S8 | LoadWidth::S16 => Signedness::Signed,
        };
        let up = self.word(WordOp::Binary(BinaryOp::Shl, value, unused));
        self.word(WordOp::Binary(BinaryOp::Shr(sign), up, unused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_need_every_entry() {
        let squares: Vec<u32> = (0..200).map(|i| i * i).collect();
        assert_eq!(Rule::of(&squares, LoadWidth::B32), None);
        let mut steps: Vec<u32> = (0..200).map(|i| 7 + 3 * i).collect();
        assert_eq!(Rule::of(&steps, LoadWidth::B32), Some(Rule::Progression { first: 7, step: 3 }));
        steps[199] += 1;
        assert_eq!(Rule::of(&steps, LoadWidth::B32), None);
        let mut gray: Vec<u32> = (0..200).map(|i: u32| 5 ^ i ^ i >> 1).collect();
        assert!(matches!(Rule::of(&gray, LoadWidth::B32), Some(Rule::Linear { first: 5, .. })));
        gray[150] ^= 1;
        assert_eq!(Rule::of(&gray, LoadWidth::B32), None);
    }

    #[test]
    fn narrow_entries_wrap() {
        let bytes: Vec<u32> = (0..600).map(|i| (3 * i) & 0xff).collect();
        assert_eq!(Rule::of(&bytes, LoadWidth::U8), Some(Rule::Progression { first: 0, step: 3 }));
        let signed: Vec<u32> = (0..600).map(|i| extended(3 * i, LoadWidth::S8)).collect();
        assert_eq!(Rule::of(&signed, LoadWidth::S8), Some(Rule::Progression { first: 0, step: 3 }));
    }
}
