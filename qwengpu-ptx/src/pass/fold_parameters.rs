//! Loads of kernel parameters become words of the constant bank.

use qwengpu_isa::{BinaryOp, ConstIdx, LoadWidth, Signedness, Table2};

use crate::error::PtxError;
use crate::ir::{Function, Inst, InstKind, SymbolSpace, VReg, Value, WordOp};
use crate::span::Span;

pub(crate) fn fold_parameters(func: &mut Function) {
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.block_mut(block).insts);
        let mut folded = Vec::with_capacity(insts.len());
        for inst in insts {
            let Some(ops) = parameter_load(func, &inst) else {
                folded.push(inst);
                continue;
            };
            for (dst, op, is_last) in ops {
                let mut made = Inst::word(dst, op, inst.line);
                if is_last {
                    made.guard = inst.guard;
                }
                folded.push(made);
            }
        }
        func.block_mut(block).insts = folded;
    }
}

/// The operations that replace a parameter load; the last one writes its destination.
fn parameter_load(func: &mut Function, inst: &Inst) -> Option<Vec<(VReg, WordOp, bool)>> {
    let InstKind::Word(dst, WordOp::Load(width, address)) = inst.kind else { return None };
    let (symbol, offset) = address.fixed_symbol()?;
    let area = &func.symbols[symbol.idx()];
    if area.space != SymbolSpace::Param || u64::from(offset) + u64::from(width.bytes()) > area.bytes {
        return None;
    }
    let word = Value::Const(ConstIdx::new(u8::try_from(offset / 4).ok()?)?);
    let at = offset % 4;
    if offset % width.bytes() != 0 {
        return None;
    }
    let (bits, sign) = match width {
        LoadWidth::B32 => return Some(vec![(dst, WordOp::Move(word), true)]),
        LoadWidth::U8 => (8, Signedness::Unsigned),
        LoadWidth::S8 => (8, Signedness::Signed),
        LoadWidth::U16 => (16, Signedness::Unsigned),
        LoadWidth::S16 => (16, Signedness::Signed),
    };
    let first = func.vreg();
    if sign == Signedness::Unsigned {
        let mask = Value::Imm((1 << bits) - 1);
        return Some(vec![
            (first, WordOp::Binary(BinaryOp::Shr(sign), word, Value::Imm(8 * at)), false),
            (dst, WordOp::Binary(BinaryOp::Lop(Table2::AND), first.into(), mask), true),
        ]);
    }
    Some(vec![
        (first, WordOp::Binary(BinaryOp::Shl, word, Value::Imm(32 - bits - 8 * at)), false),
        (dst, WordOp::Binary(BinaryOp::Shr(sign), first.into(), Value::Imm(32 - bits)), true),
    ])
}

/// Fails if anything but a load at a fixed offset still uses the parameter area.
pub(crate) fn refuse_parameter_addresses(func: &Function) -> Result<(), PtxError> {
    for inst in func.insts() {
        let uses = inst.symbols().into_iter().any(|symbol| func.symbols[symbol.idx()].space == SymbolSpace::Param);
        if uses {
            return Err(PtxError::Unsupported {
                at: Span { line: inst.line, column: 1, ..Span::default() },
                construct: "the address of a kernel parameter".to_owned(),
                reason: "a parameter that is written, indexed by a variable or used as memory; parameters live in \
                         the constant bank, copy the value to a local or shared variable first"
                    .to_owned(),
            });
        }
    }
    Ok(())
}
