//! A selection between results becomes the computation of each under a guard.
//!
//! `d = select p, x, y` with `x` computed for it alone becomes `d = y` and `@p d = …`; when `y` is computed for
//! it alone too, both are guarded. The selection is saved, and so are the results of threads that would have
//! thrown them away.

use crate::analysis::{Cfg, Defs};
use crate::ir::{Cond, Function, Inst, InstKind, InstRef, VReg, Value, WordOp};

pub(crate) fn guard_selections(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        let insts = func.block(block).insts.iter().enumerate();
        let made: Vec<Option<Vec<Inst>>> =
            insts.map(|(pos, _)| replacement(func, &defs, InstRef { block, pos })).collect();
        if made.iter().all(Option::is_none) {
            continue;
        }
        let insts = std::mem::take(&mut func.block_mut(block).insts);
        let replaced = insts.into_iter().zip(made).flat_map(|(inst, made)| made.unwrap_or_else(|| vec![inst]));
        func.block_mut(block).insts = replaced.collect();
    }
    super::eliminate_dead(func);
}

fn replacement(func: &Function, defs: &Defs, at: InstRef) -> Option<Vec<Inst>> {
    let inst = &func.block(at.block).insts[at.pos];
    let InstKind::Word(dst, WordOp::Select(cond, a, b)) = inst.kind else { return None };
    if inst.guard != Cond::TRUE || matches!(cond, Cond::Fixed(_)) {
        return None;
    }
    let guarded = |guard: Cond, op: WordOp| Inst { guard, kind: InstKind::Word(dst, op), line: inst.line };
    let first = own_operation(func, defs, a, at);
    let second = own_operation(func, defs, b, at);
    match (first, second) {
        (Some(first), Some(second)) => {
            let mut made = Vec::new();
            // Between them the two write every thread.
            if !first.regs().contains(&dst) && !second.regs().contains(&dst) {
                made.push(guarded(Cond::TRUE, WordOp::Undefined));
            }
            made.extend([guarded(cond, first), guarded(cond.not(), second)]);
            Some(made)
        }
        (Some(op), None) => one_sided(dst, b, op, cond).map(|made| with_guards(made, &guarded)),
        (None, Some(op)) => one_sided(dst, a, op, cond.not()).map(|made| with_guards(made, &guarded)),
        (None, None) => None,
    }
}

fn with_guards(made: Vec<(Cond, WordOp)>, guarded: &dyn Fn(Cond, WordOp) -> Inst) -> Vec<Inst> {
    made.into_iter().map(|(guard, op)| guarded(guard, op)).collect()
}

/// `dst = other`, then the operation where the condition holds.
fn one_sided(dst: VReg, other: Value, op: WordOp, cond: Cond) -> Option<Vec<(Cond, WordOp)>> {
    let keeps = other == Value::Reg(dst);
    if !keeps && op.regs().contains(&dst) {
        return None;
    }
    let mut made = Vec::new();
    if !keeps {
        made.push((Cond::TRUE, WordOp::Move(other)));
    }
    made.push((cond, op));
    Some(made)
}

/// The operation behind a value that nothing else reads, if it can run here as well.
fn own_operation(func: &Function, defs: &Defs, value: Value, at: InstRef) -> Option<WordOp> {
    let reg = value.reg()?;
    let from = defs.reaching(func, reg, at)?;
    if from.block != at.block || defs.num_uses(reg) != 1 || defs.num_defs(reg) != 1 {
        return None;
    }
    let op = defs.source(func, reg, at)?;
    (op.is_pure() && !matches!(op, WordOp::Move(_) | WordOp::Select(..))).then(|| op.clone())
}
