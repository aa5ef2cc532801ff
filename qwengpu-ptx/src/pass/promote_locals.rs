//! Local variables that are only loaded and stored at fixed offsets become registers.
//!
//! A variable qualifies when its address is used in no other way. Its bytes fall into groups of accesses that
//! overlap; a group in which all accesses are of the same place and width becomes a register.

use std::collections::{BTreeMap, BTreeSet};

use qwengpu_isa::{BinaryOp, LoadWidth, Signedness, StoreWidth, Table2};

use crate::ir::{Function, Inst, InstKind, SymbolId, SymbolSpace, VReg, Value, WordOp};

/// Bytes of a variable: offset and width.
type Place = (u32, u32);

pub(crate) fn promote_locals(func: &mut Function) {
    let mut places: BTreeMap<SymbolId, BTreeSet<Place>> = BTreeMap::new();
    let mut escaped: BTreeSet<SymbolId> = BTreeSet::new();
    for inst in func.insts() {
        let accessed = access(inst);
        if let Some((symbol, place)) = accessed {
            places.entry(symbol).or_default().insert(place);
        }
        // A symbol may stand in the address and in the stored value.
        let mut uses = inst.symbols();
        if let Some((symbol, _)) = accessed
            && let Some(idx) = uses.iter().position(|used| *used == symbol)
        {
            uses.remove(idx);
        }
        escaped.extend(uses);
    }
    let mut registers: BTreeMap<(SymbolId, Place), VReg> = BTreeMap::new();
    for (symbol, places) in places {
        let local = func.symbols[symbol.idx()].space == SymbolSpace::Local;
        if !local || escaped.contains(&symbol) {
            continue;
        }
        for place in &places {
            let alone = places.iter().all(|other| other == place || !overlap(*place, *other));
            if alone {
                let reg = func.vreg();
                registers.insert((symbol, *place), reg);
            }
        }
    }
    if registers.is_empty() {
        return;
    }
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.block_mut(block).insts);
        let mut made = Vec::with_capacity(insts.len());
        for inst in insts {
            let reg = access(&inst).and_then(|key| registers.get(&key)).copied();
            match reg {
                Some(reg) => replace(func, inst, reg, &mut made),
                None => made.push(inst),
            }
        }
        func.block_mut(block).insts = made;
    }
}

fn overlap(a: Place, b: Place) -> bool {
    u64::from(a.0) < u64::from(b.0) + u64::from(b.1) && u64::from(b.0) < u64::from(a.0) + u64::from(a.1)
}

/// The variable and place an instruction loads or stores, if its address is fixed.
fn access(inst: &Inst) -> Option<(SymbolId, Place)> {
    let (symbol, offset) = inst.address()?.fixed_symbol()?;
    let bytes = match inst.kind {
        InstKind::Word(_, WordOp::Load(width, _)) => width.bytes(),
        InstKind::Store(width, _, _) => width.bytes(),
        InstKind::Word(..) | InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap | InstKind::Call(_) => {
            return None;
        }
    };
    Some((symbol, (offset, bytes)))
}

/// The register holds the place's bytes zero-extended.
fn replace(func: &mut Function, inst: Inst, reg: VReg, made: &mut Vec<Inst>) {
    let word = |dst: VReg, op: WordOp| Inst { guard: inst.guard, kind: InstKind::Word(dst, op), line: inst.line };
    let mask = |value: Value, bits: u32| WordOp::Binary(BinaryOp::Lop(Table2::AND), value, Value::Imm(bits));
    match inst.kind {
        InstKind::Store(width, _, value) => {
            let op = match width {
                StoreWidth::U8 => mask(value, 0xff),
                StoreWidth::U16 => mask(value, 0xffff),
                StoreWidth::B32 => WordOp::Move(value),
            };
            made.push(word(reg, op));
        }
        InstKind::Word(dst, WordOp::Load(width, _)) => {
            let amount = match width {
                LoadWidth::U8 | LoadWidth::U16 | LoadWidth::B32 => {
                    made.push(word(dst, WordOp::Move(reg.into())));
                    return;
                }
                LoadWidth::S8 => Value::Imm(24),
                LoadWidth::S16 => Value::Imm(16),
            };
            let up = func.vreg();
            made.push(Inst::word(up, WordOp::Binary(BinaryOp::Shl, reg.into(), amount), inst.line));
            let down = WordOp::Binary(BinaryOp::Shr(Signedness::Signed), up.into(), amount);
            made.push(word(dst, down));
        }
        kind => made.push(Inst { kind, ..inst }),
    }
}
