//! Local variables that do not fit into local memory move to shared memory, a copy for each thread.
//!
//! The largest variables go first. A thread's copies lie together, at a multiple of its number. How many threads there
//! are is known at launch only: a thread that shared memory has no room for faults at the start of the kernel.

use std::collections::BTreeMap;

use qwengpu_isa::{Comparison, MachineSpec, SHARED_BASE, SpecialReg, TernaryOp, TrapReason};

use crate::ir::{
    BlockId, Cond, Function, Inst, InstKind, PredOp, Symbol, SymbolId, SymbolSpace, Terminator, VReg, Value, WordOp,
};

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
    let mut offsets = BTreeMap::new();
    let (mut end, mut align) = (0u64, 4u32);
    for id in moved {
        let symbol = &func.symbols[id.idx()];
        let start = end.next_multiple_of(u64::from(symbol.align));
        offsets.insert(id, u32::try_from(start).unwrap_or(u32::MAX));
        end = start + symbol.bytes;
        align = align.max(symbol.align);
    }
    let stride = end.next_multiple_of(u64::from(align));
    let room = 4 * u64::from(spec.shared_words);
    // If not even one thread fits, the local memory's limit says so.
    if let (false, Ok(stride), Ok(room)) = (offsets.is_empty(), u32::try_from(stride), u32::try_from(room))
        && stride <= room
    {
        divide_shared(func, &offsets, (stride, align), SHARED_BASE + room);
    }
}

/// The variables become one for each thread, in shared memory; a thread whose own does not fit faults.
fn divide_shared(func: &mut Function, offsets: &BTreeMap<SymbolId, u32>, (stride, align): (u32, u32), end: u32) {
    let line = offsets.keys().map(|id| func.symbols[id.idx()].line).min().unwrap_or(0);
    let space = SymbolSpace::PerThread;
    let all = func.symbol(Symbol { name: "local variables".to_owned(), space, bytes: u64::from(stride), align, line });
    let (thread, offset, start, over) = (func.vreg(), func.vreg(), func.vreg(), func.vpred());
    let layout = func.layout.clone();
    rebase_symbols(func, &layout, start, offsets);
    let scaled = WordOp::Ternary(TernaryOp::Imad, thread.into(), Value::Imm(stride), Value::ZERO);
    let place = WordOp::Ternary(TernaryOp::Iadd, offset.into(), Value::Symbol(all, 0), Value::ZERO);
    let test = PredOp::Compare(Comparison::GtU, start.into(), Value::Imm(end - stride), Cond::TRUE);
    let entry = func.entry();
    let (front, overflow) = (func.new_block(), func.new_block());
    let trap = InstKind::Trap(TrapReason::StackOverflow);
    func.block_mut(overflow).insts.push(Inst { guard: Cond::TRUE, kind: trap, line });
    func.block_mut(overflow).line = line;
    let block = func.block_mut(front);
    block.insts = vec![
        Inst::word(thread, WordOp::Special(SpecialReg::LinearTid), line),
        Inst::word(offset, scaled, line),
        Inst::word(start, place, line),
        Inst::pred(over, test, line),
    ];
    block.terminator = Terminator::Branch(over.into(), overflow, entry);
    block.line = line;
    func.layout.insert(0, front);
    func.layout.push(overflow);
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
