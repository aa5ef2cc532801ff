//! Proof that an allocation keeps every value until its last use.
//!
//! Independent of how the allocation was found. The state says for every architectural register whose values
//! it holds: the virtual registers whose current value stands in it. A virtual register that no path so far
//! has written is *undefined*, and every register holds what is undefined. Where paths meet, only what holds
//! on all of them counts. Rules:
//!
//! - C01 an architectural register that is read holds the virtual register that is meant
//! - C02 every register that occurs has an architectural one, and never `r0` or `pt`
//!
//! A write makes its register hold the destination alone. A copy makes it hold all that its source holds, and
//! every holder of the source hold the destination. A guarded write goes on holding its destination only
//! where it held it before, for the sake of the threads outside the guard.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Liveness};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, VPred, VReg, Value, WordOp};

use super::Allocation;

/// The holders of one class of registers.
///
/// Where a block begins only live registers are followed. What is not followed is held nowhere, so that a register
/// that should have been is an error and no value goes unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Holders {
    /// By architectural register: the virtual registers whose value it holds.
    holds: Vec<BTreeSet<usize>>,
    undefined: BTreeSet<usize>,
}

/// What an instruction does to one class of registers, by index.
struct Write {
    place: usize,
    dst: usize,
    /// The source of a copy and its place.
    copied: Option<(usize, usize)>,
    everywhere: bool,
}

impl Holders {
    /// At the start of the kernel: no path has written what is live.
    fn new(places: usize, live: impl Iterator<Item = usize>) -> Holders {
        Holders { holds: vec![BTreeSet::new(); places], undefined: live.collect() }
    }

    fn has(&self, place: usize, reg: usize) -> bool {
        self.undefined.contains(&reg) || self.holds[place].contains(&reg)
    }

    fn undefine(&mut self, reg: usize) {
        self.undefined.insert(reg);
    }

    fn write(&mut self, write: &Write) {
        let Write { place, dst, copied, everywhere } = *write;
        let kept = everywhere || self.has(place, dst);
        // The new value, apart from the destination itself: all that the source's place holds.
        let alias: Option<BTreeSet<usize>> = copied.map(|(_, from)| self.holds[from].clone());
        let moves = copied.is_none_or(|(_, from)| from != place);
        for row in &mut self.holds {
            row.remove(&dst);
        }
        self.undefined.remove(&dst);
        if moves {
            match alias {
                Some(row) if everywhere => self.holds[place] = row,
                _ => self.holds[place].clear(),
            }
        }
        self.holds[place].remove(&dst);
        if kept {
            self.holds[place].insert(dst);
        }
        if let (Some((src, _)), true) = (copied, everywhere)
            && !self.undefined.contains(&src)
        {
            for row in self.holds.iter_mut().filter(|row| row.contains(&src)) {
                row.insert(dst);
            }
        }
    }

    /// Drops what is not live.
    fn keep(&mut self, is_live: impl Fn(usize) -> bool) {
        for row in self.holds.iter_mut().chain([&mut self.undefined]) {
            row.retain(|reg| is_live(*reg));
        }
    }

    fn meet(&self, other: &Holders) -> Holders {
        let both = |place: usize| {
            let either = self.holds[place].union(&other.holds[place]);
            either.copied().filter(|reg| self.has(place, *reg) && other.has(place, *reg)).collect()
        };
        Holders {
            holds: (0..self.holds.len()).map(both).collect(),
            undefined: self.undefined.intersection(&other.undefined).copied().collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    words: Holders,
    preds: Holders,
}

/// A broken rule: its number and where.
pub(crate) type Violation = (&'static str, String);

/// Checks an allocation; returns the first violation.
pub(crate) fn check(func: &Function, allocation: &Allocation) -> Result<(), Violation> {
    let cfg = Cfg::new(func);
    for block in &cfg.order {
        let insts = &func.block(*block).insts;
        insts.iter().try_for_each(|inst| check_assigned(inst, allocation, *block))?;
    }
    let liveness = Liveness::new(func, &cfg);
    let mut at_start: Vec<Option<State>> = vec![None; func.blocks.len()];
    at_start[func.entry().idx()] = Some(State::at_entry(&liveness, func.entry()));
    // In the order of control, so that a block is visited when most of what leads to it has been.
    let mut work: BTreeSet<usize> = BTreeSet::from([0]);
    while let Some(rank) = work.pop_first() {
        let block = cfg.order[rank];
        let Some(mut state) = at_start[block.idx()].clone() else { continue };
        for inst in &func.block(block).insts {
            state.step(inst, allocation);
        }
        for next in func.block(block).terminator.successors() {
            let mut merged = state.clone();
            merged.words.keep(|reg| liveness.has(next, VReg::new(reg)));
            merged.preds.keep(|pred| liveness.has_pred(next, VPred::new(pred)));
            let slot = &mut at_start[next.idx()];
            if let Some(old) = slot {
                merged = State { words: old.words.meet(&merged.words), preds: old.preds.meet(&merged.preds) };
            }
            if slot.as_ref() != Some(&merged) {
                *slot = Some(merged);
                work.extend(cfg.rank(next));
            }
        }
    }
    for block in &cfg.order {
        let Some(mut state) = at_start[block.idx()].clone() else { continue };
        let body = func.block(*block);
        for inst in &body.insts {
            let words = inst.regs_read().into_iter().find(|reg| !state.has_word(*reg, allocation));
            let preds = inst.preds_read().into_iter().find(|pred| !state.has_pred(*pred, allocation));
            if let Some(reg) = words {
                return Err(("C01", format!("{block}: {reg} in {inst}")));
            }
            if let Some(pred) = preds {
                return Err(("C01", format!("{block}: {pred} in {inst}")));
            }
            state.step(inst, allocation);
        }
        if let Some(pred) = body.terminator.cond().and_then(Cond::pred)
            && !state.has_pred(pred, allocation)
        {
            return Err(("C01", format!("{block}: {pred} in {}", body.terminator)));
        }
    }
    Ok(())
}

fn check_assigned(inst: &Inst, allocation: &Allocation, block: BlockId) -> Result<(), Violation> {
    let mut words = inst.regs_read().into_iter().chain(inst.reg_written());
    let mut preds = inst.preds_read().into_iter().chain(inst.pred_written());
    let bad_word = |reg: VReg| allocation.reg(reg).is_none_or(qwengpu_isa::Reg::is_zero);
    let bad_pred = |pred: VPred| allocation.pred(pred).is_none_or(qwengpu_isa::PredReg::is_true);
    if words.any(bad_word) || preds.any(bad_pred) {
        return Err(("C02", format!("{block}: {inst}")));
    }
    Ok(())
}

fn word_place(reg: VReg, allocation: &Allocation) -> usize {
    allocation.reg(reg).map_or(0, |reg| usize::from(reg.index()))
}

fn pred_place(pred: VPred, allocation: &Allocation) -> usize {
    allocation.pred(pred).map_or(7, |pred| usize::from(pred.index()))
}

impl State {
    fn at_entry(liveness: &Liveness, entry: BlockId) -> State {
        State {
            words: Holders::new(16, liveness.words_in(entry).iter().map(|reg| reg.idx())),
            preds: Holders::new(8, liveness.preds_in(entry).iter().map(|pred| pred.idx())),
        }
    }

    fn has_word(&self, reg: VReg, allocation: &Allocation) -> bool {
        self.words.has(word_place(reg, allocation), reg.idx())
    }

    fn has_pred(&self, pred: VPred, allocation: &Allocation) -> bool {
        allocation.pred(pred).is_some() && self.preds.has(pred_place(pred, allocation), pred.idx())
    }

    fn step(&mut self, inst: &Inst, allocation: &Allocation) {
        let everywhere = inst.guard == Cond::TRUE;
        match &inst.kind {
            // No instruction is made for an undefined value.
            InstKind::Word(dst, WordOp::Undefined) => self.words.undefine(dst.idx()),
            InstKind::Word(dst, op) => {
                let copied = match op {
                    WordOp::Move(Value::Reg(src)) => Some((src.idx(), word_place(*src, allocation))),
                    _ => None,
                };
                let place = word_place(*dst, allocation);
                self.words.write(&Write { place, dst: dst.idx(), copied, everywhere });
            }
            InstKind::Pred(dst, PredOp::Undefined) => self.preds.undefine(dst.idx()),
            InstKind::Pred(dst, op) => {
                let copied = match op.as_copy() {
                    Some(Cond::Pred { pred, negated: false }) => Some((pred.idx(), pred_place(pred, allocation))),
                    _ => None,
                };
                let place = pred_place(*dst, allocation);
                self.preds.write(&Write { place, dst: dst.idx(), copied, everywhere });
            }
            InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use qwengpu_isa::{PredReg, Reg, TernaryOp};

    use super::*;
    use crate::ir::{Inst, Terminator};

    /// Two additions whose results are added: `v0`, `v1` and the sum `v2`.
    fn function(middle: Vec<Inst>) -> Function {
        let mut func = Function::new("k");
        let block = func.new_block();
        func.layout.push(block);
        let [a, b, sum] = [0; 3].map(|_| func.vreg());
        func.vpred();
        let mut insts = vec![Inst::word(a, WordOp::Move(Value::ONE), 1)];
        insts.extend(middle);
        insts.push(Inst::word(sum, WordOp::Ternary(TernaryOp::Iadd, a.into(), b.into(), Value::ZERO), 1));
        func.block_mut(block).insts = insts;
        func.block_mut(block).terminator = Terminator::Exit;
        func
    }

    fn allocation(words: [Option<Reg>; 3]) -> Allocation {
        Allocation { words: words.to_vec(), preds: vec![Some(PredReg::P0)], ..Allocation::default() }
    }

    fn broken(func: &Function, words: [Option<Reg>; 3]) -> &'static str {
        check(func, &allocation(words)).expect_err("the allocation is wrong").0
    }

    fn write(reg: usize, op: WordOp) -> Inst {
        Inst::word(VReg::new(reg), op, 1)
    }

    #[test]
    fn a_value_must_not_be_overwritten() {
        let func = function(vec![write(1, WordOp::Move(Value::Imm(2)))]);
        let (r1, r2) = (Some(Reg::R1), Some(Reg::R2));
        assert_eq!(check(&func, &allocation([r1, r2, r1])), Ok(()));
        assert_eq!(broken(&func, [r1, r1, r2]), "C01");
    }

    #[test]
    fn a_copy_may_share_its_register() {
        let r1 = Some(Reg::R1);
        let copied = function(vec![write(1, WordOp::Move(Value::Reg(VReg::new(0))))]);
        assert_eq!(check(&copied, &allocation([r1, r1, r1])), Ok(()));
        // Not once the source changes.
        let changed =
            function(vec![write(1, WordOp::Move(Value::Reg(VReg::new(0)))), write(0, WordOp::Move(Value::Imm(9)))]);
        assert_eq!(broken(&changed, [r1, r1, r1]), "C01");
    }

    #[test]
    fn a_guarded_write_keeps_only_its_own_register() {
        let guard = Cond::from(VPred::new(0));
        let (r1, r2) = (Some(Reg::R1), Some(Reg::R2));
        let func = function(vec![Inst { guard, ..write(1, WordOp::Move(Value::Imm(2))) }]);
        assert_eq!(check(&func, &allocation([r1, r2, r1])), Ok(()));
        assert_eq!(broken(&func, [r1, r1, r2]), "C01");
    }

    #[test]
    fn every_register_has_a_place() {
        let func = function(vec![write(1, WordOp::Move(Value::Imm(2)))]);
        let (r1, r2) = (Some(Reg::R1), Some(Reg::R2));
        assert_eq!(broken(&func, [r1, None, r2]), "C02");
        assert_eq!(broken(&func, [r1, Some(Reg::ZERO), r2]), "C02");
    }
}
