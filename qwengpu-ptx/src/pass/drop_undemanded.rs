//! Masks and sign extensions whose bits nobody looks at become copies, and values of which nobody looks at any
//! bit become zero. The latter must go, for their operands may change: an address would no longer be one.
//!
//! The value changes in bits that make no difference; so this pass uses no fact about values, only about
//! demands, which such a change leaves alone.

use qwengpu_isa::{BinaryOp, Signedness, Table2};

use crate::analysis::{Cfg, Defs, Demanded};
use crate::ir::{Function, InstKind, InstRef, Value, WordOp};

pub(crate) fn drop_undemanded(func: &mut Function) {
    let cfg = Cfg::new(func);
    let demanded = Demanded::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            let at = InstRef { block, pos };
            let InstKind::Word(dst, op) = &func.block(block).insts[pos].kind else { continue };
            let kept = match op {
                WordOp::Move(_) => None,
                _ if demanded.of(*dst) == 0 => Some(Value::ZERO),
                WordOp::Binary(BinaryOp::Lop(Table2::AND), a, Value::Imm(mask)) if demanded.of(*dst) & !mask == 0 => {
                    Some(*a)
                }
                WordOp::Binary(BinaryOp::Shr(Signedness::Signed), Value::Reg(up), Value::Imm(k)) => {
                    let inner = u32::MAX.checked_shr(*k).unwrap_or(0);
                    match defs.source(func, *up, at) {
                        Some(WordOp::Binary(BinaryOp::Shl, a, Value::Imm(j)))
                            if j == k && demanded.of(*dst) & !inner == 0 =>
                        {
                            Some(*a)
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            if let Some(kept) = kept {
                let dst = *dst;
                func.block_mut(block).insts[pos].kind = InstKind::Word(dst, WordOp::Move(kept));
            }
        }
    }
}
