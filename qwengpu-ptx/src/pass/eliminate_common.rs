//! An operation already computed becomes a copy of its result.
//!
//! Across blocks only operations on plain registers count, along the dominator tree; inside a block any whose
//! operands have not been written since.

use std::collections::BTreeMap;

use crate::analysis::{Cfg, Defs};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, VPred, VReg, WordOp};

/// Results by the text of their operation.
///
/// The text form names every operand, so equal texts are equal operations.
#[derive(Default)]
struct Available {
    words: BTreeMap<String, VReg>,
    preds: BTreeMap<String, VPred>,
}

/// A register or a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Word(VReg),
    Pred(VPred),
}

/// What is available in one block until something it names is written.
#[derive(Default)]
struct Local {
    available: Available,
    /// The operations that read a register, and those that once left their result in it.
    reading: BTreeMap<Name, Vec<String>>,
    making: BTreeMap<Name, Vec<String>>,
}

impl Local {
    fn note(&mut self, key: &str, operands: impl Iterator<Item = Name>, result: Name) {
        for name in operands {
            self.reading.entry(name).or_default().push(key.to_owned());
        }
        self.making.entry(result).or_default().push(key.to_owned());
    }

    /// Drops every entry whose operation or result names the register.
    fn forget(&mut self, name: Name) {
        let Available { words, preds } = &mut self.available;
        for key in self.reading.remove(&name).unwrap_or_default() {
            words.remove(&key);
            preds.remove(&key);
        }
        for key in self.making.remove(&name).unwrap_or_default() {
            if words.get(&key).is_some_and(|dst| Name::Word(*dst) == name) {
                words.remove(&key);
            }
            if preds.get(&key).is_some_and(|dst| Name::Pred(*dst) == name) {
                preds.remove(&key);
            }
        }
    }
}

/// What is available on the way down the dominator tree, and the blocks still to visit.
#[derive(Default)]
struct Walk {
    available: Available,
    stack: Vec<Step>,
}

enum Step {
    Enter(BlockId),
    /// What a block made available ends with the blocks it dominates.
    Leave(Vec<String>),
}

pub(crate) fn eliminate_common(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    let mut dominated: Vec<Vec<BlockId>> = vec![Vec::new(); func.blocks.len()];
    for block in &cfg.order {
        if let Some(above) = cfg.idom(*block) {
            dominated[above.idx()].push(*block);
        }
    }
    let mut walk = Walk { available: Available::default(), stack: vec![Step::Enter(func.entry())] };
    while let Some(step) = walk.stack.pop() {
        match step {
            Step::Enter(block) => {
                let mut local = Local::default();
                let mut made = Vec::new();
                for inst in &mut func.block_mut(block).insts {
                    visit(inst, &defs, &mut walk.available, &mut local, &mut made);
                }
                walk.stack.push(Step::Leave(made));
                walk.stack.extend(dominated[block.idx()].iter().map(|below| Step::Enter(*below)));
            }
            Step::Leave(made) => {
                for key in made {
                    walk.available.words.remove(&key);
                    walk.available.preds.remove(&key);
                }
            }
        }
    }
}

fn is_trivial(op: &WordOp) -> bool {
    matches!(op, WordOp::Move(_))
}

/// Replaces an operation that is available, and notes one that is not; `made` gets what `global` gains.
fn visit(inst: &mut Inst, defs: &Defs, global: &mut Available, local: &mut Local, made: &mut Vec<String>) {
    let operands_plain = inst.regs_read().into_iter().all(|reg| defs.is_plain(reg))
        && inst.preds_read().into_iter().all(|pred| defs.is_plain_pred(pred));
    let mut made_word = None;
    let mut made_pred = None;
    match &inst.kind {
        InstKind::Word(dst, op) if op.is_pure() && !is_trivial(op) => {
            let key = op.to_string();
            let known = global.words.get(&key).or_else(|| local.available.words.get(&key));
            match known {
                Some(known) => inst.kind = InstKind::Word(*dst, WordOp::Move((*known).into())),
                None if inst.guard == Cond::TRUE => made_word = Some((key, *dst)),
                None => {}
            }
        }
        InstKind::Pred(dst, op @ (PredOp::Compare(..) | PredOp::Logic(..))) if op.as_copy().is_none() => {
            let key = op.to_string();
            let known = global.preds.get(&key).or_else(|| local.available.preds.get(&key));
            match known {
                Some(known) => inst.kind = InstKind::Pred(*dst, PredOp::copy((*known).into())),
                None if inst.guard == Cond::TRUE => made_pred = Some((key, *dst)),
                None => {}
            }
        }
        InstKind::Word(..)
        | InstKind::Pred(..)
        | InstKind::Store(..)
        | InstKind::Barrier
        | InstKind::Trap(_)
        | InstKind::Call(_) => {}
    }
    // What the instruction overwrites is known no longer, neither as a result nor as an operand.
    if let Some(dst) = inst.reg_written()
        && !defs.is_plain(dst)
    {
        local.forget(Name::Word(dst));
    }
    if let Some(dst) = inst.pred_written()
        && !defs.is_plain_pred(dst)
    {
        local.forget(Name::Pred(dst));
    }
    let (words, preds) = (inst.regs_read(), inst.preds_read());
    let operands = words.iter().copied().map(Name::Word).chain(preds.iter().copied().map(Name::Pred));
    if let Some((key, dst)) = made_word
        && !words.contains(&dst)
    {
        if operands_plain && defs.is_plain(dst) {
            global.words.insert(key.clone(), dst);
            made.push(key);
        } else {
            local.note(&key, operands, Name::Word(dst));
            local.available.words.insert(key, dst);
        }
    } else if let Some((key, dst)) = made_pred
        && !preds.contains(&dst)
    {
        if operands_plain && defs.is_plain_pred(dst) {
            global.preds.insert(key.clone(), dst);
            made.push(key);
        } else {
            local.note(&key, operands, Name::Pred(dst));
            local.available.preds.insert(key, dst);
        }
    }
}
