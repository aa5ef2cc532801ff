//! Registers for values that live across calls of a routine.
//!
//! The code of a routine goes back to all its sites, so whatever is live behind one call looks live at all of
//! them, and every such value takes a register everywhere. Here values of different calls share *slots*: a value
//! goes to its slot in front of the call and comes back behind it, and a slot that a call does not use holds
//! nothing there. Copies to and from slots disappear when the value can live in the slot's register.
//!
//! Values that live across all calls of their function keep their own registers.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{BlockId, Cond, Function, Inst, PredOp, VPred, VReg, Value, WordOp};

/// A place in a function: a block, and the number of a call in it.
pub(super) type CallPlace = (BlockId, usize);

/// Registers and predicates that a call must keep.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) words: Vec<VReg>,
    pub(super) preds: Vec<VPred>,
}

/// The slots of one function.
#[derive(Debug, Default)]
pub(super) struct Slots {
    words: BTreeMap<VReg, VReg>,
    preds: BTreeMap<VPred, VPred>,
}

/// For every value that lives across some of the calls, but not all, the number of a slot that no other value of
/// its calls has.
fn numbered<T: Ord + Copy>(calls: &[&[T]]) -> BTreeMap<T, usize> {
    let all: BTreeSet<T> = calls.iter().flat_map(|values| values.iter().copied()).collect();
    let mut slots: BTreeMap<T, usize> = BTreeMap::new();
    for value in all {
        let across: Vec<&&[T]> = calls.iter().filter(|values| values.contains(&value)).collect();
        if across.len() == calls.len() {
            continue;
        }
        let taken: BTreeSet<usize> =
            across.iter().flat_map(|values| values.iter()).filter_map(|other| slots.get(other).copied()).collect();
        let free = (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
        slots.insert(value, free);
    }
    slots
}

impl Slots {
    pub(super) fn new(func: &mut Function, calls: &BTreeMap<CallPlace, Kept>) -> Slots {
        let words: Vec<&[VReg]> = calls.values().map(|kept| &kept.words[..]).collect();
        let preds: Vec<&[VPred]> = calls.values().map(|kept| &kept.preds[..]).collect();
        let (words, preds) = (numbered(&words), numbered(&preds));
        let count = |numbers: &mut dyn Iterator<Item = &usize>| numbers.max().map_or(0, |last| last + 1);
        let registers: Vec<VReg> = (0..count(&mut words.values())).map(|_| func.vreg()).collect();
        let predicates: Vec<VPred> = (0..count(&mut preds.values())).map(|_| func.vpred()).collect();
        Slots {
            words: words.into_iter().map(|(reg, slot)| (reg, registers[slot])).collect(),
            preds: preds.into_iter().map(|(pred, slot)| (pred, predicates[slot])).collect(),
        }
    }

    /// The code in front of a call, and behind it.
    pub(super) fn around(&self, kept: &Kept, line: u32) -> (Vec<Inst>, Vec<Inst>) {
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let mut unused: BTreeSet<VReg> = self.words.values().copied().collect();
        for (reg, slot) in kept.words.iter().filter_map(|reg| Some((*reg, *self.words.get(reg)?))) {
            before.push(Inst::word(slot, WordOp::Move(reg.into()), line));
            behind.push(Inst::word(reg, WordOp::Move(Value::Reg(slot)), line));
            unused.remove(&slot);
        }
        before.extend(unused.into_iter().map(|slot| Inst::word(slot, WordOp::Undefined, line)));
        let mut unused: BTreeSet<VPred> = self.preds.values().copied().collect();
        for (pred, slot) in kept.preds.iter().filter_map(|pred| Some((*pred, *self.preds.get(pred)?))) {
            before.push(Inst::pred(slot, PredOp::copy(Cond::from(pred)), line));
            behind.push(Inst::pred(pred, PredOp::copy(slot.into()), line));
            unused.remove(&slot);
        }
        before.extend(unused.into_iter().map(|slot| Inst::pred(slot, PredOp::Undefined, line)));
        (before, behind)
    }

    /// The slots under other numbers.
    pub(super) fn renamed(&self, reg: &dyn Fn(VReg) -> VReg, pred: &dyn Fn(VPred) -> VPred) -> Slots {
        Slots {
            words: self.words.iter().map(|(from, slot)| (reg(*from), reg(*slot))).collect(),
            preds: self.preds.iter().map(|(from, slot)| (pred(*from), pred(*slot))).collect(),
        }
    }

    /// Code after which no slot holds anything.
    pub(super) fn emptied(&self, line: u32) -> Vec<Inst> {
        self.around(&Kept::default(), line).0
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn values_of_one_call_have_different_slots() {
        let slots = numbered(&[&[1, 2, 9][..], &[3, 9], &[2, 4, 9], &[9]]);
        assert_eq!(slots.get(&9), None);
        assert_eq!(slots.len(), 4);
        assert_ne!(slots[&1], slots[&2]);
        assert_ne!(slots[&2], slots[&4]);
        assert!(slots.values().all(|slot| *slot < 2));
    }

    #[test]
    fn one_call_needs_no_slots() {
        assert!(numbered(&[&[1, 2][..]]).is_empty());
    }
}
