//! How many tokens a warp speaks for a function, estimated from its code.
//!
//! The one place that knows what an instruction costs before it runs. Assumed is a full warp of four lanes that
//! agree on every branch and guard, and that a result is the same word in all lanes, with two bytes that are not
//! zero. Numbers of lanes and threads, which differ, and results of one byte count as such. A round of a loop
//! counts eight times; a function that is called counts once.

use qwengpu_isa::{LoadWidth, SpecialReg};

use crate::ir::{BlockId, Function, Inst, InstKind, Terminator, Value, WordOp};

use super::cfg::{Cfg, natural_loops};

/// Weight of one more level of loops.
const LOOP_WEIGHT: u64 = 8;
/// Deepest level that counts.
const MAX_DEPTH: u32 = 8;
/// Lanes of a warp.
const LANES: u64 = 4;

/// Products, shifts and sums instead of a high product or a division by a number.
const IN_PLACE: u64 = 40;
/// A division by a word: ten instructions around five rounds of seven.
const DIVISION: u64 = 110;
/// Arguments, the number of the site, and the way back.
const CALL: u64 = 12;

/// How often a block runs, if every loop has eight rounds.
pub(crate) fn frequencies(func: &Function, cfg: &Cfg) -> Vec<u64> {
    let mut depths = vec![0; func.blocks.len()];
    for block in natural_loops(func, cfg).values().flatten() {
        depths[block.idx()] = MAX_DEPTH.min(depths[block.idx()] + 1);
    }
    let mut frequencies = vec![0; func.blocks.len()];
    for block in &cfg.order {
        frequencies[block.idx()] = LOOP_WEIGHT.saturating_pow(depths[block.idx()]);
    }
    frequencies
}

/// The tokens of a function.
pub(crate) fn estimate_tokens(func: &Function) -> u64 {
    let cfg = Cfg::new(func);
    let frequencies = frequencies(func, &cfg);
    let block_tokens = |(idx, id): (usize, &BlockId)| {
        let block = func.block(*id);
        let insts: u64 = block.insts.iter().map(of_inst).sum();
        let next = func.layout.get(idx + 1).copied();
        frequencies[id.idx()] * (insts + of_terminator(block.terminator, next))
    };
    func.layout.iter().enumerate().map(block_tokens).fold(0, u64::saturating_add)
}

/// The records of an instruction.
fn of_inst(inst: &Inst) -> u64 {
    match &inst.kind {
        _ if inst.is_undefined() => 0,
        InstKind::Word(_, WordOp::MulHigh(..) | WordOp::Divide(_, _, _, Value::Imm(_))) => IN_PLACE,
        InstKind::Word(_, WordOp::Divide(..)) => DIVISION,
        InstKind::Word(_, op) => 1 + of_result(op),
        InstKind::Pred(..) => 2,
        InstKind::Store(..) => 1 + LANES,
        // The release, and the name of the warp that goes on.
        InstKind::Barrier => 3,
        // The fault, and the end.
        InstKind::Trap(_) => 3,
        InstKind::Call(_) => CALL,
    }
}

/// The bytes spoken of a word: the lowest, and others that are not zero.
fn of_result(op: &WordOp) -> u64 {
    match op {
        WordOp::Move(Value::Imm(word)) => {
            1 + word.to_le_bytes()[1..].iter().map(|byte| u64::from(*byte != 0)).sum::<u64>()
        }
        WordOp::Special(SpecialReg::LaneId | SpecialReg::LinearTid) | WordOp::SmallDivide(_, None, _) => LANES,
        WordOp::Special(SpecialReg::WarpId)
        | WordOp::SmallDivide(..)
        | WordOp::Unary(qwengpu_isa::UnaryOp::Clz | qwengpu_isa::UnaryOp::Popc, _)
        | WordOp::Vote(_)
        | WordOp::Load(LoadWidth::U8, _) => 1,
        _ => 2,
    }
}

/// A branch to the block that follows is none.
fn of_terminator(terminator: Terminator, next: Option<BlockId>) -> u64 {
    match terminator {
        Terminator::Jump(target) => u64::from(Some(target) != next),
        Terminator::Branch(..) | Terminator::Exit | Terminator::Return => 1,
    }
}
