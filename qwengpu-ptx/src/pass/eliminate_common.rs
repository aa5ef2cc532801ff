//! An operation already computed becomes a copy of its result.
//!
//! Across blocks only operations on plain registers count, along the dominator tree; inside a block any whose
//! operands have not been written since.

use std::collections::BTreeMap;

use crate::analysis::{Cfg, Defs};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, VPred, VReg, WordOp};

/// Results available on the way down the dominator tree, by the text of their operation.
///
/// The text form names every operand, so equal texts are equal operations.
#[derive(Default, Clone)]
struct Available {
    words: BTreeMap<String, VReg>,
    preds: BTreeMap<String, VPred>,
}

pub(crate) fn eliminate_common(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    let mut at_end: BTreeMap<BlockId, Available> = BTreeMap::new();
    // Reverse post-order visits a dominator before what it dominates.
    for block in cfg.order.clone() {
        let mut global = cfg.idom(block).and_then(|idom| at_end.get(&idom)).cloned().unwrap_or_default();
        let mut local = Available::default();
        for pos in 0..func.block(block).insts.len() {
            let inst = &mut func.block_mut(block).insts[pos];
            visit(inst, &defs, &mut global, &mut local);
        }
        at_end.insert(block, global);
    }
}

fn is_trivial(op: &WordOp) -> bool {
    matches!(op, WordOp::Move(_))
}

fn visit(inst: &mut Inst, defs: &Defs, global: &mut Available, local: &mut Available) {
    let operands_plain = inst.regs_read().into_iter().all(|reg| defs.is_plain(reg))
        && inst.preds_read().into_iter().all(|pred| defs.is_plain_pred(pred));
    let mut made_word = None;
    let mut made_pred = None;
    match &inst.kind {
        InstKind::Word(dst, op) if op.is_pure() && !is_trivial(op) => {
            let key = op.to_string();
            let known = global.words.get(&key).or_else(|| local.words.get(&key));
            match known {
                Some(known) => inst.kind = InstKind::Word(*dst, WordOp::Move((*known).into())),
                None if inst.guard == Cond::TRUE => made_word = Some((key, *dst)),
                None => {}
            }
        }
        InstKind::Pred(dst, op @ (PredOp::Compare(..) | PredOp::Logic(..))) if op.as_copy().is_none() => {
            let key = op.to_string();
            let known = global.preds.get(&key).or_else(|| local.preds.get(&key));
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
        forget(local, &dst.to_string());
    }
    if let Some(dst) = inst.pred_written()
        && !defs.is_plain_pred(dst)
    {
        forget(local, &dst.to_string());
    }
    if let Some((key, dst)) = made_word {
        let reads_itself = inst.regs_read().contains(&dst);
        let available = if operands_plain && defs.is_plain(dst) { global } else { local };
        if !reads_itself {
            available.words.insert(key, dst);
        }
    } else if let Some((key, dst)) = made_pred {
        let reads_itself = inst.preds_read().contains(&dst);
        let available = if operands_plain && defs.is_plain_pred(dst) { global } else { local };
        if !reads_itself {
            available.preds.insert(key, dst);
        }
    }
}

/// Drops every entry whose operation or result names the register.
fn forget(available: &mut Available, name: &str) {
    let mentions = |key: &str| key.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
    available.words.retain(|key, dst| dst.to_string() != name && !mentions(key));
    available.preds.retain(|key, dst| dst.to_string() != name && !mentions(key));
}
