//! Invariants of the IR, checked after every pass.
//!
//! - I01 every block of the layout exists and stands there once; the layout is not empty
//! - I02 every branch target is in the layout
//! - I03 every register and predicate id is below the function's count
//! - I04 every symbol id names a symbol
//! - I05 the guard of a barrier and of a trap is always true
//! - I06 (legal operands) only operand B is an immediate other than 0 or a constant word, a symbol is nowhere,
//!   and no operation needs expansion
//! - I07 (legal operands) an address offset fits 24 bits, signed

use qwengpu_isa::Offset;

use super::entities::BlockId;
use super::function::Function;
use super::inst::{Inst, InstKind, PredOp, WordOp};
use super::value::{Cond, Value};

/// Which invariants apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// I01 to I05.
    Any,
    /// All: operands fit machine instructions.
    Legal,
}

/// A broken invariant: its number and what breaks it.
pub(crate) type Violation = (&'static str, String);

/// Checks the invariants; returns the first one broken.
pub(crate) fn verify(function: &Function, strictness: Strictness) -> Result<(), Violation> {
    let mut seen = vec![false; function.blocks.len()];
    if function.layout.is_empty() {
        return Err(("I01", "the layout is empty".to_owned()));
    }
    for id in &function.layout {
        match seen.get_mut(id.idx()) {
            Some(seen @ false) => *seen = true,
            Some(true) => return Err(("I01", format!("{id} stands twice in the layout"))),
            None => return Err(("I01", format!("{id} does not exist"))),
        }
    }
    for id in &function.layout {
        let block = function.block(*id);
        for inst in &block.insts {
            check_ids(function, *id, inst)?;
            if matches!(inst.kind, InstKind::Barrier | InstKind::Trap) && inst.guard != Cond::TRUE {
                return Err(("I05", format!("{id}: {inst}")));
            }
            if strictness == Strictness::Legal {
                check_operands(*id, inst)?;
            }
        }
        for target in block.terminator.successors() {
            if !seen.get(target.idx()).is_some_and(|seen| *seen) {
                return Err(("I02", format!("{id}: {}", block.terminator)));
            }
        }
        if let Some(pred) = block.terminator.cond().and_then(Cond::pred)
            && pred.idx() >= function.num_vpreds
        {
            return Err(("I03", format!("{id}: {}", block.terminator)));
        }
    }
    Ok(())
}

fn check_ids(function: &Function, id: BlockId, inst: &Inst) -> Result<(), Violation> {
    let mut regs = inst.regs_read().into_iter().chain(inst.reg_written());
    let mut preds = inst.preds_read().into_iter().chain(inst.pred_written());
    if regs.any(|reg| reg.idx() >= function.num_vregs) || preds.any(|p| p.idx() >= function.num_vpreds) {
        return Err(("I03", format!("{id}: {inst}")));
    }
    if inst.symbols().iter().any(|symbol| symbol.idx() >= function.symbols.len()) {
        return Err(("I04", format!("{id}: {inst}")));
    }
    Ok(())
}

fn is_register(value: Value) -> bool {
    matches!(value, Value::Reg(_) | Value::Imm(0))
}

fn is_operand_b(value: Value) -> bool {
    !matches!(value, Value::Symbol(..))
}

fn check_operands(id: BlockId, inst: &Inst) -> Result<(), Violation> {
    let legal = match &inst.kind {
        InstKind::Word(_, op) => match op {
            WordOp::Move(b) | WordOp::Unary(_, b) => is_operand_b(*b),
            WordOp::Ternary(_, a, b, c) => is_register(*a) && is_operand_b(*b) && is_register(*c),
            WordOp::Binary(_, a, b) | WordOp::Select(_, a, b) | WordOp::Shuffle(_, a, b) => {
                is_register(*a) && is_operand_b(*b)
            }
            WordOp::Logic3(_, a, b, c) => [a, b, c].into_iter().all(|v| is_register(*v)),
            WordOp::SmallDivide(_, a, b) => a.is_none_or(is_register) && is_operand_b(*b),
            WordOp::Divide(..) | WordOp::MulHigh(..) => false,
            WordOp::Vote(_) | WordOp::Special(_) | WordOp::Load(..) | WordOp::Undefined => true,
        },
        InstKind::Pred(_, PredOp::Compare(_, a, b, _)) => is_register(*a) && is_operand_b(*b),
        InstKind::Pred(_, PredOp::Lead(a)) => is_register(*a),
        InstKind::Store(_, _, value) => is_register(*value),
        InstKind::Pred(_, PredOp::Logic(..)) | InstKind::Barrier | InstKind::Trap => true,
    };
    if !legal || inst.address().is_some_and(|address| address.symbol.is_some()) {
        return Err(("I06", format!("{id}: {inst}")));
    }
    if let Some(address) = inst.address()
        && Offset::new(address.offset.cast_signed()).is_none()
    {
        return Err(("I07", format!("{id}: {inst}")));
    }
    Ok(())
}
