//! Reads of a copied register become reads of what was copied.

use crate::analysis::{Cfg, Defs};
use crate::ir::{Address, Cond, Function, InstKind, InstRef, PredOp, VReg, Value};

/// Longest chain of copies followed for one operand.
const MAX_CHAIN: usize = 16;

pub(crate) fn propagate_copies(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            let at = InstRef { block, pos };
            let mut inst = func.block(block).insts[pos].clone();
            inst.each_value(&mut |value| {
                if let Value::Reg(reg) = value {
                    *value = copied(func, &defs, *reg, at);
                }
            });
            inst.each_cond(&mut |cond| *cond = copied_cond(func, &defs, *cond, at));
            if let Some(address) = inst.address_mut() {
                *address = copied_address(func, &defs, *address, at);
            }
            func.block_mut(block).insts[pos] = inst;
        }
        let at = InstRef { block, pos: func.block(block).insts.len() };
        if let crate::ir::Terminator::Branch(cond, yes, no) = func.block(block).terminator {
            let cond = copied_cond(func, &defs, cond, at);
            func.block_mut(block).terminator = crate::ir::Terminator::Branch(cond, yes, no);
        }
    }
}

fn copied(func: &Function, defs: &Defs, reg: VReg, at: InstRef) -> Value {
    let mut reg = reg;
    for _ in 0..MAX_CHAIN {
        let Some(from) = defs.reaching(func, reg, at) else { break };
        let Some((_, source)) = func.block(from.block).insts[from.pos].as_copy() else { break };
        match source {
            Value::Reg(source) if source != reg && defs.unchanged(source, from, at) => reg = source,
            Value::Reg(_) => break,
            fixed => return fixed,
        }
    }
    reg.into()
}

fn copied_cond(func: &Function, defs: &Defs, cond: Cond, at: InstRef) -> Cond {
    let mut cond = cond;
    for _ in 0..MAX_CHAIN {
        let Cond::Pred { pred, negated } = cond else { break };
        let Some(from) = defs.reaching_pred(func, pred, at) else { break };
        let InstKind::Pred(_, op) = &func.block(from.block).insts[from.pos].kind else { break };
        let source = match op {
            // A complement is a copy as well: conditions carry their sign.
            PredOp::Logic(qwengpu_isa::Table2::NOT, _, source) => Some(source.not()),
            op => op.as_copy(),
        };
        match source {
            Some(source) if source.pred() != Some(pred) && defs.unchanged_cond(source, from, at) => {
                cond = source.negated_if(negated);
            }
            _ => break,
        }
    }
    cond
}

fn copied_address(func: &Function, defs: &Defs, address: Address, at: InstRef) -> Address {
    let mut address = address;
    if let Some(base) = address.base {
        address = address.with_base(copied(func, defs, base, at)).unwrap_or(address);
    }
    if let Some(index) = address.index {
        address = address.with_index(copied(func, defs, index, at)).unwrap_or(address);
    }
    address
}
