//! Invariants of the IR, checked after every pass.
//!
//! - I01 every block of the layout exists and stands there once; the layout is not empty
//! - I02 every branch target is in the layout
//! - I03 every register and predicate id is below the function's count
//! - I04 every symbol id names a symbol
//! - I05 the guard of a barrier, a trap and a call is always true
//! - I06 (legal operands) only operand B is an immediate other than 0 or a constant word, a symbol is nowhere,
//!   and no operation needs expansion
//! - I07 (legal operands) an address offset fits 24 bits, signed
//! - I08 (legal operands) there are no calls and returns any more

use qwengpu_isa::Offset;

use super::entities::BlockId;
use super::function::{Function, Terminator};
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
            if matches!(inst.kind, InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_))
                && inst.guard != Cond::TRUE
            {
                return Err(("I05", format!("{id}: {inst}")));
            }
            if strictness == Strictness::Legal {
                check_operands(*id, inst)?;
            }
        }
        if strictness == Strictness::Legal && block.terminator == Terminator::Return {
            return Err(("I08", format!("{id}: {}", block.terminator)));
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
        InstKind::Pred(_, PredOp::Logic(..) | PredOp::Undefined) | InstKind::Barrier | InstKind::Trap(_) => true,
        InstKind::Call(_) => return Err(("I08", format!("{id}: {inst}"))),
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

#[cfg(test)]
mod tests {
    use qwengpu_isa::{BinaryOp, Comparison, StoreWidth, Table2, TernaryOp, TrapReason};

    use super::super::entities::{SymbolId, VPred, VReg};
    use super::super::function::Terminator;
    use super::super::value::Address;
    use super::*;

    /// A function of one block with the instructions, two registers and one predicate.
    fn function(insts: Vec<Inst>) -> Function {
        let mut func = Function::new("k");
        let block = func.new_block();
        func.layout.push(block);
        func.num_vregs = 2;
        func.num_vpreds = 1;
        func.block_mut(block).insts = insts;
        func
    }

    fn broken(func: &Function, strictness: Strictness) -> &'static str {
        verify(func, strictness).expect_err("the function is broken").0
    }

    fn word(op: WordOp) -> Inst {
        Inst::word(VReg::new(0), op, 1)
    }

    #[test]
    fn legal_code_passes() {
        let reg = Value::Reg(VReg::new(1));
        let func = function(vec![
            word(WordOp::Move(Value::Imm(7))),
            word(WordOp::Ternary(TernaryOp::Iadd, reg, Value::Imm(3), Value::ZERO)),
            Inst { guard: Cond::TRUE, kind: InstKind::Barrier, line: 1 },
        ]);
        assert_eq!(verify(&func, Strictness::Legal), Ok(()));
    }

    #[test]
    fn layouts_and_targets() {
        let mut func = function(Vec::new());
        func.layout.push(func.entry());
        assert_eq!(broken(&func, Strictness::Any), "I01");
        func.layout.clear();
        assert_eq!(broken(&func, Strictness::Any), "I01");
        let mut func = function(Vec::new());
        let outside = func.new_block();
        let entry = func.entry();
        func.block_mut(entry).terminator = Terminator::Jump(outside);
        assert_eq!(broken(&func, Strictness::Any), "I02");
    }

    #[test]
    fn ids() {
        let reg = function(vec![word(WordOp::Move(VReg::new(2).into()))]);
        assert_eq!(broken(&reg, Strictness::Any), "I03");
        let pred = function(vec![Inst { guard: VPred::new(1).into(), ..word(WordOp::Move(Value::ZERO)) }]);
        assert_eq!(broken(&pred, Strictness::Any), "I03");
        let symbol = function(vec![word(WordOp::Move(Value::Symbol(SymbolId::new(0), 0)))]);
        assert_eq!(broken(&symbol, Strictness::Any), "I04");
    }

    #[test]
    fn guards() {
        for kind in [InstKind::Barrier, InstKind::Trap(TrapReason::Program)] {
            let func = function(vec![Inst { guard: VPred::new(0).into(), kind, line: 1 }]);
            assert_eq!(broken(&func, Strictness::Any), "I05");
        }
    }

    #[test]
    fn operands() {
        let (reg, imm) = (Value::Reg(VReg::new(1)), Value::Imm(5));
        let compare = PredOp::Compare(Comparison::Eq, imm, reg, Cond::TRUE);
        for inst in [
            word(WordOp::Ternary(TernaryOp::Imad, imm, reg, reg)),
            word(WordOp::Ternary(TernaryOp::Iadd, reg, reg, imm)),
            word(WordOp::Binary(BinaryOp::Lop(Table2::AND), imm, reg)),
            word(WordOp::MulHigh(qwengpu_isa::Signedness::Signed, reg, reg)),
            Inst::pred(VPred::new(0), compare, 1),
            Inst { guard: Cond::TRUE, kind: InstKind::Store(StoreWidth::B32, Address::default(), imm), line: 1 },
        ] {
            let func = function(vec![inst]);
            assert_eq!(verify(&func, Strictness::Any), Ok(()));
            assert_eq!(broken(&func, Strictness::Legal), "I06");
        }
        let far = Address { offset: 1 << 23, ..Address::default() };
        let func = function(vec![word(WordOp::Load(qwengpu_isa::LoadWidth::B32, far))]);
        assert_eq!(broken(&func, Strictness::Legal), "I07");
    }
}
