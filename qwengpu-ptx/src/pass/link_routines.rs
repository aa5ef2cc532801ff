//! Recursive functions become part of the kernel's code.
//!
//! Until here a routine is a function of its own and a call of it one instruction, so that every pass has seen
//! the code as it is meant. Now a call becomes a jump to the routine's first block, and its return a jump to
//! one of its *sites*, the places behind its calls: the number of the site stands in a register.
//!
//! Inside a group of functions that call each other, a call overwrites the caller's registers. Those live
//! behind it are saved in the caller's *frame* in local memory, together with the number of its own site. Frames
//! grow upwards, behind the kernel's variables and spill slots, to the end of local memory: a frame beyond it
//! is out of bounds, which is a fault. A routine's variables in memory live in its frame, too.
//!
//! Values that are the same in every call, such as numbers and launch dimensions, are not saved.
//!
//! A routine stands in front of all code behind its calls, since the machine runs the threads with the smallest
//! program counter: those that return early wait there for the others. So each function is ordered by itself,
//! before, and here they are put together: the kernel up to its first call, the routines, each behind those it
//! calls, and the rest of the kernel.

use std::collections::BTreeMap;

use qwengpu_isa::{Comparison, LoadWidth, StoreWidth, TernaryOp};

use crate::analysis::{Cfg, Liveness, RegSet};
use crate::ir::{
    Address, BlockId, Cond, Function, Inst, InstKind, PredOp, Symbol, SymbolId, SymbolSpace, Terminator, VPred, VReg,
    Value, WordOp,
};

use super::move_locals::rebase_symbols;

/// A function that is called.
#[derive(Debug, Clone)]
pub(crate) struct Routine {
    pub(crate) func: Function,
    /// Functions that call each other have the same group.
    pub(crate) group: usize,
}

/// What a call must keep for its caller.
#[derive(Debug, Clone, Default)]
struct Kept {
    words: Vec<VReg>,
    preds: Vec<VPred>,
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
    /// The group; `None` for the kernel, which has no frame.
    group: Option<usize>,
    /// The register with the number of the function's own site.
    site: Option<VReg>,
    /// Bytes of variables in the frame.
    variables: u32,
    kept: BTreeMap<(BlockId, usize), Kept>,
}

/// The kernel with its routines in it.
pub(crate) fn link_routines(kernel: &mut Function, routines: Vec<Routine>) {
    let align = frame_align(&routines);
    let stack = kernel.symbol(Symbol { name: "stack".to_owned(), space: SymbolSpace::Stack, bytes: 0, align, line: 0 });
    let pointer = kernel.vreg();
    let groups: Vec<usize> = routines.iter().map(|routine| routine.group).collect();
    let mut callers = vec![Caller { group: None, site: None, variables: 0, kept: BTreeMap::new() }];
    let places = callees_first(&routines);
    let mut layouts = vec![std::mem::take(&mut kernel.layout)];
    let mut linked = Vec::new();
    for routine in routines {
        let (kept, frame) = (kept_by_calls(&routine, &groups), frame_of(&routine.func));
        let blocks = append(kernel, routine.func);
        let site = kernel.vreg();
        let back = kernel.new_block();
        for block in &blocks.layout {
            let body = kernel.block_mut(*block);
            if body.terminator == Terminator::Return {
                body.terminator = Terminator::Jump(back);
            }
        }
        rebase_symbols(kernel, &blocks.layout, pointer, &frame.offsets);
        let kept = kept.into_iter().map(|((block, nth), kept)| ((blocks.block(block), nth), blocks.kept(kept)));
        callers.push(Caller {
            group: Some(routine.group),
            site: Some(site),
            variables: frame.bytes.next_multiple_of(align),
            kept: kept.collect(),
        });
        linked.push(Linked { entry: blocks.block(blocks.entry), back, site, sites: Vec::new() });
        layouts.push(blocks.layout);
    }
    let first_call = layouts[0].iter().position(|block| kernel.block(*block).insts.iter().any(is_call));
    for (caller, layout) in callers.iter().zip(&mut layouts) {
        for block in layout.clone() {
            expand_calls(kernel, caller, block, layout, pointer, align, &groups, &mut linked);
        }
    }
    for (routine, layout) in linked.iter().zip(&mut layouts[1..]) {
        return_to_sites(kernel, routine, layout);
    }
    let before = first_call.map_or(layouts[0].len(), |at| at + 1);
    let rest = layouts[0].split_off(before);
    kernel.layout.append(&mut layouts[0]);
    for place in places {
        kernel.layout.append(&mut layouts[1 + place]);
    }
    kernel.layout.extend(rest);
    kernel.is_linked = true;
    let entry = kernel.entry();
    let start = Inst::word(pointer, WordOp::Move(Value::Symbol(stack, 0)), 0);
    kernel.block_mut(entry).insts.insert(0, start);
    registers_for_transfers(kernel);
}

fn is_call(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Call(_))
}

/// The routines in an order in which callees come before their callers, but for those that call each other.
fn callees_first(routines: &[Routine]) -> Vec<usize> {
    let callees = |routine: &Routine| -> Vec<usize> {
        let callee = |inst: &Inst| if let InstKind::Call(callee) = inst.kind { Some(callee.idx()) } else { None };
        routine.func.insts().filter_map(callee).collect()
    };
    let mut order = Vec::new();
    let mut seen = vec![false; routines.len()];
    for start in 0..routines.len() {
        // An explicit stack: input decides the depth.
        let mut stack = vec![(start, Vec::new())];
        while let Some((routine, rest)) = stack.last_mut() {
            let routine = *routine;
            if !std::mem::replace(&mut seen[routine], true) {
                *rest = callees(&routines[routine]);
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

fn local_symbols(func: &Function) -> impl Iterator<Item = (SymbolId, &Symbol)> {
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

/// By block and the number of the call in it: what is live behind each call inside the group.
fn kept_by_calls(routine: &Routine, groups: &[usize]) -> BTreeMap<(BlockId, usize), Kept> {
    let func = &routine.func;
    let cfg = Cfg::new(func);
    let liveness = Liveness::new(func, &cfg);
    let fixed = same_in_every_call(func);
    let mut kept = BTreeMap::new();
    for block in &cfg.order {
        let insts = &func.block(*block).insts;
        let mut nth = insts.iter().filter(|inst| is_call(inst)).count();
        let mut live: RegSet = liveness.before_terminator(func, *block);
        for inst in insts.iter().rev() {
            if let InstKind::Call(callee) = inst.kind {
                nth -= 1;
                if groups[callee.idx()] == routine.group {
                    let words = live.regs().filter(|reg| !fixed[reg.idx()]).collect();
                    kept.insert((*block, nth), Kept { words, preds: live.preds().collect() });
                }
            }
            live.step_back(inst);
        }
    }
    kept
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

/// A function's blocks and registers under their new numbers.
struct Appended {
    entry: BlockId,
    layout: Vec<BlockId>,
    first_block: usize,
    first_reg: usize,
    first_pred: usize,
}

impl Appended {
    fn block(&self, block: BlockId) -> BlockId {
        BlockId::new(self.first_block + block.idx())
    }

    fn reg(&self, reg: VReg) -> VReg {
        VReg::new(self.first_reg + reg.idx())
    }

    fn pred(&self, pred: VPred) -> VPred {
        VPred::new(self.first_pred + pred.idx())
    }

    fn cond(&self, cond: Cond) -> Cond {
        match cond {
            Cond::Pred { pred, negated } => Cond::Pred { pred: self.pred(pred), negated },
            Cond::Fixed(_) => cond,
        }
    }

    fn kept(&self, kept: Kept) -> Kept {
        Kept {
            words: kept.words.into_iter().map(|reg| self.reg(reg)).collect(),
            preds: kept.preds.into_iter().map(|pred| self.pred(pred)).collect(),
        }
    }

    fn inst(&self, inst: &mut Inst) {
        inst.each_value(&mut |value| {
            if let Value::Reg(reg) = value {
                *reg = self.reg(*reg);
            }
        });
        inst.each_cond(&mut |cond| *cond = self.cond(*cond));
        if let Some(address) = inst.address_mut() {
            address.base = address.base.map(|reg| self.reg(reg));
            address.index = address.index.map(|reg| self.reg(reg));
        }
        match &mut inst.kind {
            InstKind::Word(dst, _) => *dst = self.reg(*dst),
            InstKind::Pred(dst, _) => *dst = self.pred(*dst),
            InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {}
        }
    }
}

/// Moves a function's blocks to the kernel; the layout is left to the caller.
fn append(kernel: &mut Function, func: Function) -> Appended {
    let entry = func.entry();
    let mut appended = Appended {
        entry,
        layout: Vec::new(),
        first_block: kernel.blocks.len(),
        first_reg: kernel.num_vregs,
        first_pred: kernel.num_vpreds,
    };
    appended.layout = func.layout.iter().map(|block| appended.block(*block)).collect();
    kernel.num_vregs += func.num_vregs;
    kernel.num_vpreds += func.num_vpreds;
    for mut block in func.blocks {
        block.insts.iter_mut().for_each(|inst| appended.inst(inst));
        block.terminator = match block.terminator {
            Terminator::Branch(cond, yes, no) => Terminator::Branch(appended.cond(cond), yes, no),
            other => other,
        }
        .map_targets(|target| appended.block(target));
        kernel.blocks.push(block);
    }
    appended
}

/// Splits a block at its calls; the new blocks stand behind it in the layout.
#[expect(clippy::too_many_arguments, reason = "the state of one walk over all functions")]
fn expand_calls(
    kernel: &mut Function,
    caller: &Caller,
    block: BlockId,
    layout: &mut Vec<BlockId>,
    pointer: VReg,
    align: u32,
    groups: &[usize],
    linked: &mut [Linked],
) {
    let mut current = block;
    let (terminator, line) = (kernel.block(block).terminator, kernel.block(block).line);
    let insts = std::mem::take(&mut kernel.block_mut(block).insts);
    let mut nth = 0;
    for inst in insts {
        let InstKind::Call(callee) = inst.kind else {
            kernel.block_mut(current).insts.push(inst);
            continue;
        };
        let none = Kept::default();
        let kept = caller.kept.get(&(block, nth)).unwrap_or(&none);
        nth += 1;
        let inside = caller.group == Some(groups[callee.idx()]);
        let own_site = caller.site.filter(|_| inside);
        let site = kernel.new_block();
        let (saves, restores, bytes) = save_and_restore(kernel, caller, kept, own_site, pointer, inst.line);
        let bytes = bytes.next_multiple_of(align);
        let routine = &mut linked[callee.idx()];
        let number = u32::try_from(routine.sites.len()).unwrap_or(u32::MAX);
        routine.sites.push(site);
        let move_by = |bytes: u32| {
            let op = WordOp::Ternary(TernaryOp::Iadd, pointer.into(), Value::Imm(bytes), Value::ZERO);
            Inst::word(pointer, op, inst.line)
        };
        let head = kernel.block_mut(current);
        head.insts.extend(saves);
        if bytes > 0 {
            head.insts.push(move_by(bytes));
        }
        head.insts.push(Inst::word(routine.site, WordOp::Move(Value::Imm(number)), inst.line));
        head.terminator = Terminator::Jump(routine.entry);
        head.line = inst.line;
        let tail = kernel.block_mut(site);
        if bytes > 0 {
            tail.insts.push(move_by(bytes.wrapping_neg()));
        }
        tail.insts.extend(restores);
        let at = layout.iter().position(|id| *id == current).map_or(layout.len(), |at| at + 1);
        layout.insert(at, site);
        current = site;
    }
    let body = kernel.block_mut(current);
    body.terminator = terminator;
    body.line = line;
}

/// The code around a call, and the bytes of the caller's frame.
fn save_and_restore(
    kernel: &mut Function,
    caller: &Caller,
    kept: &Kept,
    own_site: Option<VReg>,
    pointer: VReg,
    line: u32,
) -> (Vec<Inst>, Vec<Inst>, u32) {
    let (mut saves, mut restores) = (Vec::new(), Vec::new());
    let mut offset = caller.variables;
    let mut slot = |saves: &mut Vec<Inst>, restores: &mut Vec<Inst>, from: VReg, to: VReg| {
        let address = Address { base: Some(pointer), offset, ..Address::default() };
        saves.push(Inst { guard: Cond::TRUE, kind: InstKind::Store(StoreWidth::B32, address, from.into()), line });
        restores.push(Inst::word(to, WordOp::Load(LoadWidth::B32, address), line));
        offset += 4;
    };
    for word in own_site.into_iter().chain(kept.words.iter().copied()) {
        slot(&mut saves, &mut restores, word, word);
    }
    for pred in &kept.preds {
        let (from, to) = (kernel.vreg(), kernel.vreg());
        let op = WordOp::Select((*pred).into(), Value::ONE, Value::ZERO);
        saves.push(Inst::word(from, op, line));
        slot(&mut saves, &mut restores, from, to);
        let test = PredOp::Compare(Comparison::Ne, to.into(), Value::ZERO, Cond::TRUE);
        restores.push(Inst::pred(*pred, test, line));
    }
    (saves, restores, offset)
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
