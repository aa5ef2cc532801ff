//! Routines become part of the kernel's code.
//!
//! Until here a routine is a function of its own and a call of it one instruction, so that every pass has seen
//! the code as it is meant. Now a call becomes a jump to the routine's first block, and its return a jump to
//! one of its *sites*, the places behind its calls: the number of the site stands in a register.
//!
//! Inside a group of functions that call each other, a call overwrites the caller's registers. Those live
//! behind it are saved in the caller's *frame*, together with the number of its own site. Frames grow upwards
//! from where `place_stack` puts the first; one beyond the end is a fault. A routine's variables in memory live in
//! its frame, too. Values that are the same in every call, such as numbers and launch dimensions, are not saved.
//!
//! What lives across calls of another group stays in registers: see `hold_values`.
//!
//! A routine stands in front of all code behind its calls, since the machine runs the threads with the smallest
//! program counter: those that return early wait there for the others. So each function is ordered by itself,
//! before, and here they are put together: the kernel up to its first call, the routines, each behind those it
//! calls, and the rest of the kernel.

use std::collections::BTreeMap;

use qwengpu_isa::{Comparison, LoadWidth, MachineSpec, StoreWidth, TernaryOp};

use crate::analysis::{Cfg, Liveness, RegSet};
use crate::ir::{
    Address, BlockId, Cond, Function, Inst, InstKind, PredOp, RoutineId, Symbol, SymbolId, SymbolSpace, Terminator,
    VReg, Value, WordOp,
};

use super::append_function::append;
use super::hold_values::{CallPlace, Kept, Slots};
use super::move_locals::rebase_symbols;
use super::place_stack::{Stack, place_stack};

/// A function that is called.
#[derive(Debug, Clone)]
pub(crate) struct Routine {
    pub(crate) func: Function,
    /// Functions that call each other have the same group.
    pub(crate) group: usize,
}

/// Where a linked routine begins, and how it returns.
struct Linked {
    entry: BlockId,
    /// The block that goes to the site.
    back: BlockId,
    site: VReg,
    sites: Vec<BlockId>,
}

/// What the code of one function needs while its calls are expanded.
struct Caller {
    /// The register with the number of the function's own site; none for the kernel.
    site: Option<VReg>,
    /// Bytes of variables in the frame.
    variables: u32,
    /// What is live behind each call inside the group.
    kept: BTreeMap<CallPlace, Kept>,
    /// The calls inside the group that make sure of their frame.
    checked: Vec<CallPlace>,
    /// What is live behind the other calls.
    across: BTreeMap<CallPlace, Kept>,
    slots: Slots,
}

/// The kernel with its routines in it.
pub(crate) fn link_routines(kernel: &mut Function, routines: Vec<Routine>, spec: &MachineSpec) {
    let align = frame_align(&routines);
    let groups: Vec<usize> = routines.iter().map(|routine| routine.group).collect();
    let has_frames = routines.iter().any(|routine| {
        let mut callees = routine.func.insts().filter_map(called);
        callees.any(|callee| groups[callee.idx()] == routine.group)
    });
    let entry_block = kernel.entry();
    let across = live_behind(kernel, &|_| true);
    let slots = Slots::new(kernel, &across);
    let (kept, checked) = (BTreeMap::new(), Vec::new());
    let mut callers = vec![Caller { site: None, variables: 0, kept, checked, across, slots }];
    let places = callees_first(&routines);
    let mut stack = has_frames.then(|| place_stack(kernel, &routines, align, spec));
    let mut layouts = vec![std::mem::take(&mut kernel.layout)];
    let mut linked = Vec::new();
    for Routine { mut func, group } in routines {
        let across = live_behind(&func, &|callee| groups[callee.idx()] != group);
        let slots = Slots::new(&mut func, &across);
        let mut kept = live_behind(&func, &|callee| groups[callee.idx()] == group);
        let fixed = same_in_every_call(&func);
        kept.values_mut().for_each(|kept| kept.words.retain(|reg| !fixed[reg.idx()]));
        let frame = frame_of(&func);
        let variables = frame.bytes.next_multiple_of(align);
        let checked = calls_to_check(&func, &kept);
        let blocks = append(kernel, func);
        let site = kernel.vreg();
        let back = kernel.new_block();
        for block in &blocks.layout {
            let body = kernel.block_mut(*block);
            if body.terminator == Terminator::Return {
                body.terminator = Terminator::Jump(back);
            }
        }
        let mut entry = blocks.block(blocks.entry);
        let mut layout = blocks.layout.clone();
        if let Some(stack) = &mut stack {
            rebase_symbols(kernel, &blocks.layout, stack.pointer, &frame.offsets);
            if variables > 0 {
                // A function that calls no more uses this part of its frame, too.
                let front = kernel.new_block();
                let line = kernel.block(entry).insts.first().map_or(0, |inst| inst.line);
                stack.check(kernel, front, entry, variables, line);
                layout.insert(0, front);
                entry = front;
            }
        }
        let renumbered = |kept: BTreeMap<CallPlace, Kept>| {
            let each = kept.into_iter().map(|((block, nth), kept)| ((blocks.block(block), nth), blocks.kept(kept)));
            each.collect::<BTreeMap<_, _>>()
        };
        callers.push(Caller {
            site: Some(site),
            variables,
            kept: renumbered(kept),
            checked: checked.into_iter().map(|(block, nth)| (blocks.block(block), nth)).collect(),
            across: renumbered(across),
            slots: blocks.slots(&slots),
        });
        linked.push(Linked { entry, back, site, sites: Vec::new() });
        layouts.push(layout);
    }
    let mut linker = Linker { kernel, callers: &callers, linked, stack, align };
    for (caller, layout) in layouts.iter_mut().enumerate() {
        for block in layout.clone() {
            linker.expand_calls(caller, block, layout);
        }
    }
    let Linker { linked, stack, .. } = linker;
    for (routine, layout) in linked.iter().zip(&mut layouts[1..]) {
        return_to_sites(kernel, routine, layout);
    }
    let mut front = std::mem::take(&mut layouts[0]);
    let is_site = |block: &BlockId| linked.iter().any(|routine| routine.sites.contains(block));
    let first_site = front.iter().position(is_site).unwrap_or(front.len());
    let rest = front.split_off(first_site);
    kernel.layout = front;
    for place in places {
        kernel.layout.append(&mut layouts[1 + place]);
    }
    kernel.layout.extend(rest);
    kernel.is_linked = true;
    if let Some(stack) = stack {
        kernel.block_mut(entry_block).insts.splice(0..0, stack.start);
        kernel.layout.extend(stack.overflows);
    }
    registers_for_transfers(kernel);
}

fn called(inst: &Inst) -> Option<RoutineId> {
    match inst.kind {
        InstKind::Call(callee) => Some(callee),
        _ => None,
    }
}

fn is_call(inst: &Inst) -> bool {
    called(inst).is_some()
}

/// The routines in an order in which callees come before their callers, but for those that call each other.
fn callees_first(routines: &[Routine]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; routines.len()];
    for start in 0..routines.len() {
        // An explicit stack: input decides the depth.
        let mut stack = vec![(start, Vec::new())];
        while let Some((routine, rest)) = stack.last_mut() {
            let routine = *routine;
            if !std::mem::replace(&mut seen[routine], true) {
                *rest = routines[routine].func.insts().filter_map(called).map(RoutineId::idx).collect();
            }
            match rest.pop() {
                Some(callee) if seen[callee] => {}
                Some(callee) => stack.push((callee, Vec::new())),
                None => {
                    stack.pop();
                    if !order.contains(&routine) {
                        order.push(routine);
                    }
                }
            }
        }
    }
    order
}

/// Frames keep the alignment of the variables in them.
fn frame_align(routines: &[Routine]) -> u32 {
    let locals = routines.iter().flat_map(|routine| local_symbols(&routine.func));
    locals.map(|(_, symbol)| symbol.align).max().unwrap_or(4).max(4)
}

/// The local variables that a function uses.
pub(super) fn local_symbols(func: &Function) -> impl Iterator<Item = (SymbolId, &Symbol)> {
    let mut used: Vec<SymbolId> = func.insts().flat_map(Inst::symbols).collect();
    used.sort_unstable();
    used.dedup();
    let symbols = used.into_iter().map(|id| (id, &func.symbols[id.idx()]));
    symbols.filter(|(_, symbol)| symbol.space == SymbolSpace::Local)
}

/// Offsets of a routine's variables in its frame.
struct Frame {
    offsets: BTreeMap<SymbolId, u32>,
    bytes: u32,
}

fn frame_of(func: &Function) -> Frame {
    let mut frame = Frame { offsets: BTreeMap::new(), bytes: 0 };
    for (id, symbol) in local_symbols(func) {
        let start = frame.bytes.next_multiple_of(symbol.align);
        frame.offsets.insert(id, start);
        // A variable beyond all local memory makes every frame fault.
        frame.bytes = start.saturating_add(u32::try_from(symbol.bytes).unwrap_or(1 << 20)).min(1 << 20);
    }
    frame
}

/// What is live behind each call of the wanted routines.
fn live_behind(func: &Function, wanted: &dyn Fn(RoutineId) -> bool) -> BTreeMap<CallPlace, Kept> {
    let cfg = Cfg::new(func);
    let liveness = Liveness::new(func, &cfg);
    let mut behind = BTreeMap::new();
    for block in &cfg.order {
        let insts = &func.block(*block).insts;
        let mut nth = insts.iter().filter(|inst| is_call(inst)).count();
        let mut live: RegSet = liveness.before_terminator(func, *block);
        for inst in insts.iter().rev() {
            if let Some(callee) = called(inst) {
                nth -= 1;
                if wanted(callee) {
                    let kept = Kept { words: live.regs().collect(), preds: live.preds().collect() };
                    behind.insert((*block, nth), kept);
                }
            }
            live.step_back(inst);
        }
    }
    behind
}

/// Words that a frame has for what is kept, and for the number of the site.
fn frame_words(kept: &Kept) -> u32 {
    u32::try_from(kept.words.len() + kept.preds.len() + 1).unwrap_or(u32::MAX >> 8)
}

/// The calls in front of which no other has made sure of as large a frame.
fn calls_to_check(func: &Function, kept: &BTreeMap<CallPlace, Kept>) -> Vec<CallPlace> {
    let cfg = Cfg::new(func);
    let covers = |(earlier, earlier_kept): (&CallPlace, &Kept), (place, here): (&CallPlace, &Kept)| {
        let comes_first = if earlier.0 == place.0 { earlier.1 < place.1 } else { cfg.dominates(earlier.0, place.0) };
        comes_first && frame_words(earlier_kept) >= frame_words(here)
    };
    let needed = kept.iter().filter(|call| !kept.iter().any(|earlier| covers(earlier, *call)));
    needed.map(|(place, _)| *place).collect()
}

/// The registers written once, with a value that no call changes.
fn same_in_every_call(func: &Function) -> Vec<bool> {
    let mut writes = vec![0usize; func.num_vregs];
    func.insts().filter_map(Inst::reg_written).for_each(|reg| writes[reg.idx()] += 1);
    let mut fixed = vec![false; func.num_vregs];
    let mut changed = true;
    while changed {
        changed = false;
        for inst in func.insts() {
            let (Some(reg), Some(op)) = (inst.reg_written(), inst.unguarded_op()) else { continue };
            let same = writes[reg.idx()] == 1
                && op.is_pure()
                && op.cond().is_none()
                && op.regs().iter().all(|operand| fixed[operand.idx()]);
            changed |= same && !std::mem::replace(&mut fixed[reg.idx()], true);
        }
    }
    fixed
}

/// Replaces calls by jumps.
struct Linker<'k> {
    kernel: &'k mut Function,
    /// The kernel and the routines.
    callers: &'k [Caller],
    linked: Vec<Linked>,
    stack: Option<Stack>,
    align: u32,
}

impl Linker<'_> {
    /// Splits a block at its calls; the new blocks stand behind it in the layout.
    fn expand_calls(&mut self, caller: usize, block: BlockId, layout: &mut Vec<BlockId>) {
        let callers = self.callers;
        let mut current = block;
        let (terminator, line) = (self.kernel.block(block).terminator, self.kernel.block(block).line);
        let insts = std::mem::take(&mut self.kernel.block_mut(block).insts);
        let mut nth = 0;
        for inst in insts {
            let Some(callee) = called(&inst) else {
                self.kernel.block_mut(current).insts.push(inst);
                continue;
            };
            let place = (block, nth);
            nth += 1;
            let site = self.kernel.new_block();
            let at = layout.iter().position(|id| *id == current).map_or(0, |at| at + 1);
            layout.insert(at, site);
            let (before, behind) = match callers[caller].kept.get(&place) {
                Some(kept) => self.save_and_restore(&callers[caller], kept, inst.line),
                None => self.hold(caller, place, inst.line),
            };
            if let (Some(stack), true) = (&mut self.stack, callers[caller].checked.contains(&place)) {
                // The pointer has gone up: the frame ends there.
                let (grow, save) = before.split_at(1.min(before.len()));
                self.kernel.block_mut(current).insts.extend_from_slice(grow);
                let next = self.kernel.new_block();
                layout.insert(at, next);
                stack.check(self.kernel, current, next, 0, inst.line);
                current = next;
                self.kernel.block_mut(current).insts.extend_from_slice(save);
            } else {
                self.kernel.block_mut(current).insts.extend(before);
            }
            let routine = &mut self.linked[callee.idx()];
            let number = u32::try_from(routine.sites.len()).unwrap_or(u32::MAX);
            routine.sites.push(site);
            let head = self.kernel.block_mut(current);
            head.insts.push(Inst::word(routine.site, WordOp::Move(Value::Imm(number)), inst.line));
            head.terminator = Terminator::Jump(routine.entry);
            head.line = inst.line;
            self.kernel.block_mut(site).insts.extend(behind);
            current = site;
        }
        let body = self.kernel.block_mut(current);
        body.terminator = terminator;
        body.line = line;
    }

    /// The code around a call of another group.
    fn hold(&self, caller: usize, place: CallPlace, line: u32) -> (Vec<Inst>, Vec<Inst>) {
        let none = Kept::default();
        let own = &self.callers[caller];
        let (mut before, behind) = own.slots.around(own.across.get(&place).unwrap_or(&none), line);
        if own.site.is_none() {
            // No routine runs while the kernel itself does.
            for other in &self.callers[1..] {
                before.extend(other.slots.emptied(line));
                if !other.across.is_empty() {
                    before.extend(other.site.map(|site| Inst::word(site, WordOp::Undefined, line)));
                }
            }
        }
        (before, behind)
    }

    /// The code around a call inside the group: the pointer goes up first.
    fn save_and_restore(&mut self, caller: &Caller, kept: &Kept, line: u32) -> (Vec<Inst>, Vec<Inst>) {
        let Some(pointer) = self.stack.as_ref().map(|stack| stack.pointer) else { return (Vec::new(), Vec::new()) };
        let bytes = (caller.variables + 4 * frame_words(kept)).next_multiple_of(self.align);
        let move_by = |bytes: u32| {
            let op = WordOp::Ternary(TernaryOp::Iadd, pointer.into(), Value::Imm(bytes), Value::ZERO);
            Inst::word(pointer, op, line)
        };
        let (mut saves, mut restores) = (vec![move_by(bytes)], vec![move_by(bytes.wrapping_neg())]);
        let mut offset = caller.variables;
        let mut slot = |saves: &mut Vec<Inst>, restores: &mut Vec<Inst>, from: VReg, to: VReg| {
            let address = Address { base: Some(pointer), offset, ..Address::default() };
            let above = address.plus(bytes.wrapping_neg());
            saves.push(Inst { guard: Cond::TRUE, kind: InstKind::Store(StoreWidth::B32, above, from.into()), line });
            restores.push(Inst::word(to, WordOp::Load(LoadWidth::B32, address), line));
            offset += 4;
        };
        for word in caller.site.into_iter().chain(kept.words.iter().copied()) {
            slot(&mut saves, &mut restores, word, word);
        }
        for pred in &kept.preds {
            let (from, to) = (self.kernel.vreg(), self.kernel.vreg());
            let op = WordOp::Select((*pred).into(), Value::ONE, Value::ZERO);
            saves.push(Inst::word(from, op, line));
            slot(&mut saves, &mut restores, from, to);
            let test = PredOp::Compare(Comparison::Ne, to.into(), Value::ZERO, Cond::TRUE);
            restores.push(Inst::pred(*pred, test, line));
        }
        (saves, restores)
    }
}

/// A chain of comparisons with the numbers of the sites, at the end of the routine.
fn return_to_sites(kernel: &mut Function, routine: &Linked, layout: &mut Vec<BlockId>) {
    let mut current = routine.back;
    layout.push(current);
    let Some((last, rest)) = routine.sites.split_last() else { return };
    for (number, site) in (0..).zip(rest) {
        let here = kernel.vpred();
        let test = PredOp::Compare(Comparison::Eq, routine.site.into(), Value::Imm(number), Cond::TRUE);
        let next = kernel.new_block();
        layout.push(next);
        let block = kernel.block_mut(current);
        block.insts.push(Inst::pred(here, test, 0));
        block.terminator = Terminator::Branch(here.into(), *site, next);
        current = next;
    }
    kernel.block_mut(current).terminator = Terminator::Jump(*last);
}

/// Words on their way between functions become registers.
fn registers_for_transfers(kernel: &mut Function) {
    let symbols = kernel.symbols.clone();
    let mut registers: BTreeMap<SymbolId, VReg> = BTreeMap::new();
    for (idx, symbol) in symbols.iter().enumerate() {
        if symbol.space == SymbolSpace::Transfer {
            registers.insert(SymbolId::new(idx), kernel.vreg());
        }
    }
    let register = |inst: &Inst| {
        let (symbol, _) = inst.address()?.fixed_symbol()?;
        registers.get(&symbol).copied()
    };
    kernel.each_inst(&mut |inst| {
        let Some(reg) = register(inst) else { return };
        match &mut inst.kind {
            InstKind::Store(_, _, value) => inst.kind = InstKind::Word(reg, WordOp::Move(*value)),
            InstKind::Word(_, op) => *op = WordOp::Move(reg.into()),
            InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {}
        }
    });
}
