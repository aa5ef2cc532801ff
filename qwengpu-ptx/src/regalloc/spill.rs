//! Values kept elsewhere between their uses.

use std::collections::BTreeSet;

use qwengpu_isa::{Comparison, LOCAL_BASE, LoadWidth, StoreWidth};

use crate::ir::{Address, Cond, Function, Inst, InstKind, PredOp, Terminator, VPred, VReg, Value, WordOp};

/// Inserts spill code and counts slots.
pub(super) struct Spiller {
    /// Registers that spill code made; they live for an instruction or two.
    word_temps: BTreeSet<usize>,
    pred_temps: BTreeSet<usize>,
    /// Bytes of local variables.
    frame: u32,
    slots: u32,
}

impl Spiller {
    pub(super) fn new(_: &Function, local_bytes: u32) -> Spiller {
        Spiller {
            word_temps: BTreeSet::new(),
            pred_temps: BTreeSet::new(),
            frame: local_bytes.next_multiple_of(4),
            slots: 0,
        }
    }

    pub(super) fn word_temps(&self) -> &BTreeSet<usize> {
        &self.word_temps
    }

    pub(super) fn pred_temps(&self) -> &BTreeSet<usize> {
        &self.pred_temps
    }

    pub(super) fn slots(&self) -> usize {
        self.slots as usize
    }

    pub(super) fn local_bytes(&self) -> u32 {
        if self.slots == 0 { self.frame } else { self.frame.saturating_add(4 * self.slots) }
    }

    fn word_temp(&mut self, func: &mut Function) -> VReg {
        let temp = func.vreg();
        self.word_temps.insert(temp.idx());
        temp
    }

    fn pred_temp(&mut self, func: &mut Function) -> VPred {
        let temp = func.vpred();
        self.pred_temps.insert(temp.idx());
        temp
    }

    /// Keeps a word in a slot of local memory, or makes it anew if it is fixed.
    pub(super) fn spill_word(&mut self, func: &mut Function, spilled: VReg) {
        let fixed = fixed_source(func, spilled);
        let address = match fixed {
            Some(_) => Address::default(),
            None => {
                let offset = LOCAL_BASE + self.frame + 4 * self.slots;
                self.slots += 1;
                Address { offset, ..Address::default() }
            }
        };
        for block in func.layout.clone() {
            let insts = std::mem::take(&mut func.block_mut(block).insts);
            let mut made = Vec::with_capacity(insts.len());
            for mut inst in insts {
                if inst.regs_read().contains(&spilled) {
                    let temp = self.word_temp(func);
                    let op = fixed.clone().unwrap_or(WordOp::Load(LoadWidth::B32, address));
                    made.push(Inst::word(temp, op, inst.line));
                    replace_reads(&mut inst, spilled, temp);
                }
                if inst.reg_written() != Some(spilled) {
                    made.push(inst);
                    continue;
                }
                if fixed.is_some() || inst.is_undefined() {
                    continue;
                }
                let temp = self.word_temp(func);
                let (guard, line) = (inst.guard, inst.line);
                if let InstKind::Word(dst, _) = &mut inst.kind {
                    *dst = temp;
                }
                if guard != Cond::TRUE {
                    made.push(Inst::word(temp, WordOp::Undefined, line));
                }
                made.push(inst);
                made.push(Inst { guard, kind: InstKind::Store(StoreWidth::B32, address, temp.into()), line });
            }
            func.block_mut(block).insts = made;
        }
    }

    /// Keeps a predicate as 0 or 1 in a word.
    pub(super) fn spill_pred(&mut self, func: &mut Function, spilled: VPred) {
        let home = func.vreg();
        let reload = |temp: VPred, line: u32| {
            Inst::pred(temp, PredOp::Compare(Comparison::Ne, home.into(), Value::ZERO, Cond::TRUE), line)
        };
        for block in func.layout.clone() {
            let insts = std::mem::take(&mut func.block_mut(block).insts);
            let mut made = Vec::with_capacity(insts.len());
            for mut inst in insts {
                if inst.preds_read().contains(&spilled) {
                    let temp = self.pred_temp(func);
                    made.push(reload(temp, inst.line));
                    inst.each_cond(&mut |cond| replace_cond(cond, spilled, temp));
                }
                if inst.pred_written() != Some(spilled) {
                    made.push(inst);
                    continue;
                }
                let temp = self.pred_temp(func);
                let (guard, line) = (inst.guard, inst.line);
                if inst.is_undefined() {
                    made.push(Inst::word(home, WordOp::Undefined, line));
                    continue;
                }
                if let InstKind::Pred(dst, _) = &mut inst.kind {
                    *dst = temp;
                }
                if guard != Cond::TRUE {
                    made.push(Inst::pred(temp, PredOp::Undefined, line));
                }
                made.push(inst);
                let op = WordOp::Select(Cond::from(temp).not(), Value::ZERO, Value::ONE);
                made.push(Inst { guard, kind: InstKind::Word(home, op), line });
            }
            let body = func.block(block);
            let (mut terminator, line) = (body.terminator, body.line);
            if let Terminator::Branch(cond, _, _) = &mut terminator
                && cond.pred() == Some(spilled)
            {
                let temp = self.pred_temp(func);
                made.push(reload(temp, line));
                replace_cond(cond, spilled, temp);
            }
            let body = func.block_mut(block);
            body.terminator = terminator;
            body.insts = made;
        }
    }
}

/// Whether the operation gives the same value anywhere.
pub(super) fn is_fixed(op: &WordOp) -> bool {
    op.is_pure() && op.cond().is_none() && op.regs().is_empty()
}

/// The operation that makes the value again anywhere, if every write is the same one and reads no register.
fn fixed_source(func: &Function, reg: VReg) -> Option<WordOp> {
    let mut found: Option<&WordOp> = None;
    for inst in func.insts().filter(|inst| inst.reg_written() == Some(reg)) {
        let op = inst.unguarded_op()?;
        if !is_fixed(op) || found.is_some_and(|other| other != op) {
            return None;
        }
        found = Some(op);
    }
    found.cloned()
}

fn replace_reads(inst: &mut Inst, from: VReg, to: VReg) {
    inst.each_value(&mut |value| {
        if *value == Value::Reg(from) {
            *value = to.into();
        }
    });
    if let Some(address) = inst.address_mut() {
        for field in [&mut address.base, &mut address.index] {
            if *field == Some(from) {
                *field = Some(to);
            }
        }
    }
}

fn replace_cond(cond: &mut Cond, from: VPred, to: VPred) {
    if let Cond::Pred { pred, .. } = cond
        && *pred == from
    {
        *pred = to;
    }
}
