//! Local variables that do not fit into local memory move to shared memory, a copy for each thread.
//!
//! The largest variables go first. A thread's copy lies at a multiple of its number; how many there are is known
//! at launch only, so a CTA with more threads than shared memory has room for faults when they use it.

use std::collections::BTreeMap;

use qwengpu_isa::{MachineSpec, SpecialReg, TernaryOp};

use crate::ir::{BlockId, Function, Inst, SymbolId, SymbolSpace, VReg, Value, WordOp};

pub(crate) fn move_locals(func: &mut Function, spec: &MachineSpec) {
    let mut used: Vec<SymbolId> = func.insts().flat_map(Inst::symbols).collect();
    used.sort_unstable();
    used.dedup();
    if used.iter().any(|id| func.symbols[id.idx()].space == SymbolSpace::SharedExtern) {
        // Its size is unknown, so nothing can stand behind it.
        return;
    }
    used.retain(|id| func.symbols[id.idx()].space == SymbolSpace::Local);
    used.sort_by_key(|id| std::cmp::Reverse(func.symbols[id.idx()].bytes));
    let bytes = |ids: &[SymbolId]| ids.iter().map(|id| func.symbols[id.idx()].bytes.next_multiple_of(4)).sum::<u64>();
    let room = 4 * u64::from(spec.local_words);
    let moved: Vec<SymbolId> = (0..used.len()).take_while(|n| bytes(&used[*n..]) > room).map(|n| used[n]).collect();
    for id in moved {
        let symbol = &mut func.symbols[id.idx()];
        let stride = symbol.bytes.next_multiple_of(u64::from(symbol.align.max(4)));
        if stride > 4 * u64::from(spec.shared_words) {
            // Not even one thread fits; the local memory's limit says so.
            continue;
        }
        symbol.space = SymbolSpace::PerThread;
        symbol.bytes = stride;
        let stride = Value::Imm(u32::try_from(stride).unwrap_or(u32::MAX));
        let (thread, start) = (func.vreg(), func.vreg());
        let layout = func.layout.clone();
        rebase_symbols(func, &layout, start, &BTreeMap::from([(id, 0)]));
        let op = WordOp::Ternary(TernaryOp::Imad, thread.into(), stride, Value::ZERO);
        let offset = func.vreg();
        let place = WordOp::Ternary(TernaryOp::Iadd, offset.into(), Value::Symbol(id, 0), Value::ZERO);
        let code = [
            Inst::word(thread, WordOp::Special(SpecialReg::LinearTid), 0),
            Inst::word(offset, op, 0),
            Inst::word(start, place, 0),
        ];
        let entry = func.entry();
        func.block_mut(entry).insts.splice(0..0, code);
    }
}

/// Addresses of the symbols become offsets from a register.
pub(super) fn rebase_symbols(func: &mut Function, layout: &[BlockId], start: VReg, offsets: &BTreeMap<SymbolId, u32>) {
    for block in layout {
        let insts = std::mem::take(&mut func.block_mut(*block).insts);
        let mut made = Vec::with_capacity(insts.len());
        for mut inst in insts {
            let line = inst.line;
            let mut at = |func: &mut Function, base: Value, offset: u32| {
                let place = func.vreg();
                let op = WordOp::Ternary(TernaryOp::Iadd, start.into(), Value::Imm(offset), base);
                made.push(Inst::word(place, op, line));
                place
            };
            inst.each_value(&mut |value| {
                if let Value::Symbol(symbol, offset) = *value
                    && let Some(from) = offsets.get(&symbol)
                {
                    *value = at(func, Value::ZERO, from.wrapping_add(offset)).into();
                }
            });
            if let Some(address) = inst.address_mut()
                && let Some(from) = address.symbol.and_then(|symbol| offsets.get(&symbol))
            {
                address.symbol = None;
                *address = address.plus(*from);
                address.base = match address.base {
                    None => Some(start),
                    Some(base) => Some(at(func, base.into(), 0)),
                };
            }
            made.push(inst);
        }
        func.block_mut(*block).insts = made;
    }
}
