//! How many tokens a warp speaks for a function, estimated from its code.
//!
//! The one place that knows what an instruction costs before it runs. Assumed is a full warp of four lanes that
//! agree on every branch and guard, and that a result is the same word in all lanes, with two bytes that are not
//! zero. Numbers of lanes and threads, which rise by one, and results of one byte count as one. A round of a loop
//! counts eight times; a function that is called counts once. A comparison counts even where its branch compares, which
//! is only known with registers.

use qwengpu_isa::{LaneMask, LoadWidth, Place, Record};

use crate::ir::{BlockId, Function, Inst, InstKind, Terminator, Value, WordOp};

use super::cfg::{Cfg, natural_loops};

/// Weight of one more level of loops.
const LOOP_WEIGHT: u64 = 8;
/// Deepest level that counts.
const MAX_DEPTH: u32 = 8;
/// Lanes of a warp.
const LANES: u64 = 4;
const WARP: LaneMask = LaneMask::new(0xf);

/// Products, shifts and sums instead of a high product or a division by a number.
const IN_PLACE: u64 = 30;
/// A division by a word: ten instructions around five rounds of six.
const DIVISION: u64 = 80;
/// Arguments, the number of the site, and the way back.
const CALL: u64 = 10;

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
        let mut spoken = Spoken::default();
        block.insts.iter().for_each(|inst| spoken.inst(inst));
        spoken.terminator(block.terminator, func.layout.get(idx + 1).copied());
        frequencies[id.idx()] * spoken.tokens
    };
    func.layout.iter().enumerate().map(block_tokens).fold(0, u64::saturating_add)
}

/// What a block speaks.
#[derive(Default)]
struct Spoken {
    tokens: u64,
    /// Where the next instruction is, if it is started by the record before.
    place: Option<Place>,
}

impl Spoken {
    /// An instruction with so many records behind its start, the last of which is like this one.
    fn effect(&mut self, records: u64, last: Record) {
        self.start();
        self.tokens += records;
        self.place = self.place.unwrap_or(Place::EXEC).next(last).map(|(_, place)| place);
    }

    /// What ends in an `EXEC`, or takes so many tokens as a whole.
    fn whole(&mut self, tokens: u64) {
        self.tokens += tokens;
        self.place = None;
    }

    fn start(&mut self) {
        self.tokens += u64::from(self.place.is_none());
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.kind {
            _ if inst.is_undefined() => {}
            InstKind::Word(_, WordOp::MulHigh(..) | WordOp::Divide(_, _, _, Value::Imm(_))) => self.whole(IN_PLACE),
            InstKind::Word(_, WordOp::Divide(..)) => self.whole(DIVISION),
            InstKind::Word(_, op) => self.effect(of_result(op), Record::Val { mask: WARP, position: 0, byte: 0 }),
            InstKind::Pred(..) => self.effect(1, Record::Pred { bits: WARP }),
            InstKind::Store(..) => self.effect(LANES, Record::Mem { lane: 0 }),
            // The release, and the name of the warp that goes on; or the fault, and the end.
            InstKind::Barrier | InstKind::Trap(_) => {
                self.start();
                self.whole(2);
            }
            InstKind::Call(_) => self.whole(CALL),
        }
    }

    /// A branch to the block that follows is none.
    fn terminator(&mut self, terminator: Terminator, next: Option<BlockId>) {
        match terminator {
            Terminator::Jump(target) if Some(target) == next => {}
            Terminator::Jump(_) | Terminator::Branch(..) | Terminator::Exit | Terminator::Return => self.start(),
        }
    }
}

/// The records of a word: its lowest byte, and others that are not zero, or all at once.
fn of_result(op: &WordOp) -> u64 {
    match op {
        WordOp::Move(Value::Imm(word)) if word & Record::FILLED == Record::FILLED => 2,
        WordOp::Move(Value::Imm(word)) => {
            1 + word.to_le_bytes()[1..].iter().map(|byte| u64::from(*byte != 0)).sum::<u64>()
        }
        WordOp::Special(_)
        | WordOp::SmallDivide(..)
        | WordOp::Unary(qwengpu_isa::UnaryOp::Clz | qwengpu_isa::UnaryOp::Popc, _)
        | WordOp::Vote(_)
        | WordOp::Load(LoadWidth::U8, _) => 1,
        _ => 2,
    }
}
