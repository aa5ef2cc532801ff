//! Local variables that are only loaded and stored at fixed offsets become registers, a word each.
//!
//! A variable qualifies when its address is used in no other way. A word of it qualifies when every access
//! that touches it lies inside it. If all of them are of the same place and width, the register holds just
//! that place; otherwise it holds the word, and narrower accesses take their part out or put it in.

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
    let mut registers: BTreeMap<(SymbolId, Place), (VReg, Part)> = BTreeMap::new();
    for (symbol, places) in places {
        let local = func.symbols[symbol.idx()].space == SymbolSpace::Local;
        if !local || escaped.contains(&symbol) {
            continue;
        }
        let mut words: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
        for place in &places {
            words.entry(place.0 / 4).or_default().push(*place);
            if crosses_words(*place) {
                words.entry(place.0 / 4 + 1).or_default().push(*place);
            }
        }
        for (number, places) in words {
            if places.iter().any(|place| crosses_words(*place)) {
                continue;
            }
            let reg = func.vreg();
            for place in &places {
                let part = if places.len() == 1 { Part::Whole } else { Part::Bits(8 * (place.0 - 4 * number)) };
                registers.insert((symbol, *place), (reg, part));
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
                Some((reg, part)) => replace(func, inst, reg, part, &mut made),
                None => made.push(inst),
            }
        }
        func.block_mut(block).insts = made;
    }
}

/// What a register holds of an access's place.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The place and nothing else, zero-extended.
    Whole,
    /// The word around it; the place begins at this bit.
    Bits(u32),
}

fn crosses_words(place: Place) -> bool {
    place.0 % 4 + place.1 > 4
}

/// The variable and place an instruction loads or stores, if its address is fixed.
fn access(inst: &Inst) -> Option<(SymbolId, Place)> {
    let (symbol, offset) = inst.address()?.fixed_symbol()?;
    let bytes = match inst.kind {
        InstKind::Word(_, WordOp::Load(width, _)) => width.bytes(),
        InstKind::Store(width, _, _) => width.bytes(),
        InstKind::Word(..) | InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {
            return None;
        }
    };
    Some((symbol, (offset, bytes)))
}

/// An access becomes operations on the register.
fn replace(func: &mut Function, inst: Inst, reg: VReg, part: Part, made: &mut Vec<Inst>) {
    let Inst { guard, kind, line } = inst;
    let temp = |func: &mut Function, made: &mut Vec<Inst>, op: WordOp| -> Value {
        let dst = func.vreg();
        made.push(Inst::word(dst, op, line));
        dst.into()
    };
    let last = |dst: VReg, op: WordOp| Inst { guard, kind: InstKind::Word(dst, op), line };
    let binary = |op: BinaryOp, a: Value, b: u32| WordOp::Binary(op, a, Value::Imm(b));
    let and = BinaryOp::Lop(Table2::AND);
    match kind {
        InstKind::Store(width, _, value) => {
            let ones = u32::MAX >> (32 - 8 * width.bytes());
            let op = match part {
                _ if width == StoreWidth::B32 => WordOp::Move(value),
                Part::Whole => binary(and, value, ones),
                Part::Bits(at) => {
                    let cut = temp(func, made, binary(and, value, ones));
                    let placed = temp(func, made, binary(BinaryOp::Shl, cut, at));
                    let kept = temp(func, made, binary(and, reg.into(), !(ones << at)));
                    WordOp::Binary(BinaryOp::Lop(Table2::OR), kept, placed)
                }
            };
            made.push(last(reg, op));
        }
        InstKind::Word(dst, WordOp::Load(width, _)) => {
            let mut value: Value = reg.into();
            let bits = 8 * width.bytes();
            if let Part::Bits(at) = part {
                value = temp(func, made, binary(BinaryOp::Shr(Signedness::Unsigned), value, at));
                value = temp(func, made, binary(and, value, u32::MAX >> (32 - bits)));
            }
            let op = match width {
                LoadWidth::U8 | LoadWidth::U16 | LoadWidth::B32 => WordOp::Move(value),
                LoadWidth::S8 | LoadWidth::S16 => {
                    let up = temp(func, made, binary(BinaryOp::Shl, value, 32 - bits));
                    binary(BinaryOp::Shr(Signedness::Signed), up, 32 - bits)
                }
            };
            made.push(last(dst, op));
        }
        kind => made.push(Inst { guard, kind, line }),
    }
}
