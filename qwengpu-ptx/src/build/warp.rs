//! Operations across the lanes of a warp.
//!
//! A warp has 4 lanes. Member masks are masks of 32 lanes: those beyond the warp are ignored, and lanes that
//! are not active take no part.

use qwengpu_isa::{BinaryOp, Comparison, Extremum, ShuffleMode, Signedness, SpecialReg, Table2, UnaryOp};

use crate::ast::{Instruction, Operand, ScalarType};
use crate::error::Result;
use crate::ir::{Cond, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};
use super::special::WARP_LANES;

const LAST_LANE: u32 = WARP_LANES - 1;
const ALL_LANES: u32 = (1 << WARP_LANES) - 1;

impl<'m> Builder<'m> {
    fn lane(&mut self) -> Value {
        self.word(WordOp::Special(SpecialReg::LaneId))
    }

    /// The exec lanes in which `cond` holds, as bits, restricted to a member mask.
    fn ballot(&mut self, cond: Cond, members: Value) -> Value {
        let bits = self.word(WordOp::Vote(cond));
        match members.imm() {
            Some(members) if members & ALL_LANES == ALL_LANES => bits,
            _ => self.and(bits, members),
        }
    }

    /// The member mask operand; missing in the forms without `.sync`.
    fn members(&mut self, operand: Option<&Operand>) -> Result<Value> {
        match operand {
            Some(operand) => self.read_word(operand, ScalarType::B32),
            None => Ok(Value::Imm(u32::MAX)),
        }
    }

    pub(super) fn vote(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let sync = mods.flag("sync");
        #[derive(Clone, Copy)]
        enum Mode {
            All,
            Any,
            Uni,
            Ballot,
        }
        let modes = [("all", Mode::All), ("any", Mode::Any), ("uni", Mode::Uni), ("ballot", Mode::Ballot)];
        let mode = mods.required("a mode", &modes)?;
        mods.any_type()?;
        let ops = operands(inst, &[if sync { 3 } else { 2 }])?;
        let cond = self.read_pred(&ops[1])?;
        let members = self.members(ops.get(2))?;
        let none = |s: &mut Self, cond: Cond| {
            let bits = s.ballot(cond, members);
            s.compare(Comparison::Eq, bits, Value::ZERO)
        };
        let result = match mode {
            Mode::Ballot => {
                let bits = self.ballot(cond, members);
                return self.write(&ops[0], ScalarType::B32, bits, Value::ZERO);
            }
            Mode::All => none(self, cond.not()),
            Mode::Any => none(self, cond).not(),
            Mode::Uni => {
                let all = none(self, cond.not());
                let never = none(self, cond);
                self.either(all, never)
            }
        };
        let dst = self.pred_destination(&ops[0])?;
        self.assign_preds(&[(dst, result)]);
        Ok(())
    }

    pub(super) fn activemask(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.int_type()?;
        let ops = operands(inst, &[1])?;
        let bits = self.word(WordOp::Vote(Cond::TRUE));
        self.write(&ops[0], ScalarType::B32, bits, Value::ZERO)
    }

    pub(super) fn shfl(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let sync = mods.flag("sync");
        let modes = [
            ("idx", ShuffleMode::Idx),
            ("up", ShuffleMode::Up),
            ("down", ShuffleMode::Down),
            ("bfly", ShuffleMode::Bfly),
        ];
        let mode = mods.required("a mode", &modes)?;
        let ty = mods.any_type()?;
        if ty.bits() != 32 {
            return Err(mods.invalid("it shuffles 32-bit values"));
        }
        let ops = operands(inst, &[if sync { 5 } else { 4 }])?;
        let value = self.read_word(&ops[1], ty)?;
        let distance = self.read_word(&ops[2], ScalarType::B32)?;
        let control = self.read_word(&ops[3], ScalarType::B32)?;
        if let Some(members) = ops.get(4) {
            self.read_word(members, ScalarType::B32)?;
        }
        // A segment of the whole warp with the clamp at its end is what the machine does.
        let whole = match (control, mode) {
            (Value::Imm(c), ShuffleMode::Up) => c >> 8 & LAST_LANE == 0 && c & LAST_LANE == 0,
            (Value::Imm(c), _) => c >> 8 & LAST_LANE == 0 && c & LAST_LANE == LAST_LANE,
            _ => false,
        };
        let (dst, in_range_dst) = match &ops[0] {
            Operand::Pair(dst, pred) => (&**dst, self.pred_destination(pred)?),
            dst => (dst, None),
        };
        let (result, in_range) = if whole {
            let result = self.word(WordOp::Shuffle(mode, value, distance));
            let in_range = in_range_dst.map(|_| self.shuffle_in_range(mode, distance));
            (result, in_range.unwrap_or(Cond::TRUE))
        } else {
            let (source, in_range) = self.shuffle_source(mode, distance, control);
            (self.word(WordOp::Shuffle(ShuffleMode::Idx, value, source)), in_range)
        };
        self.write(dst, ty, result, Value::ZERO)?;
        self.assign_preds(&[(in_range_dst, in_range)]);
        Ok(())
    }

    fn shuffle_in_range(&mut self, mode: ShuffleMode, distance: Value) -> Cond {
        let distance = self.and(distance, Value::Imm(31));
        let lane = self.lane();
        match mode {
            ShuffleMode::Idx => Cond::TRUE,
            ShuffleMode::Up => self.compare(Comparison::LeU, distance, lane),
            ShuffleMode::Down => {
                let source = self.add(lane, distance);
                self.compare(Comparison::LeU, source, Value::Imm(LAST_LANE))
            }
            ShuffleMode::Bfly => self.compare(Comparison::LeU, distance, Value::Imm(LAST_LANE)),
        }
    }

    /// The source lane by PTX's rule for segments, and whether it was in range.
    fn shuffle_source(&mut self, mode: ShuffleMode, distance: Value, control: Value) -> (Value, Cond) {
        let distance = self.and(distance, Value::Imm(31));
        let lane = self.lane();
        let segment = self.shr_u(control, Value::Imm(8));
        let segment = self.and(segment, Value::Imm(LAST_LANE));
        let clamp = self.and(control, Value::Imm(LAST_LANE));
        let first = self.and(lane, segment);
        let inside = self.logic(Table2::ANDN, clamp, segment);
        let limit = self.or(first, inside);
        let (source, in_range) = match mode {
            ShuffleMode::Idx => {
                let offset = self.and(distance, Value::Imm(LAST_LANE));
                let offset = self.logic(Table2::ANDN, offset, segment);
                let source = self.or(first, offset);
                (source, self.compare(Comparison::LeU, source, limit))
            }
            ShuffleMode::Up => {
                let source = self.sub(lane, distance);
                (source, self.compare(Comparison::GeS, source, limit))
            }
            ShuffleMode::Down => {
                let source = self.add(lane, distance);
                (source, self.compare(Comparison::LeU, source, limit))
            }
            ShuffleMode::Bfly => {
                let source = self.xor(lane, distance);
                (source, self.compare(Comparison::LeU, source, limit))
            }
        };
        (self.select(in_range, source, lane), in_range)
    }

    pub(super) fn match_sync(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("sync");
        let all = mods.required("a mode", &[("any", false), ("all", true)])?;
        let ty = mods.int_type()?;
        if ty.bits() < 32 {
            return Err(mods.invalid("it matches 32- or 64-bit values"));
        }
        let ops = operands(inst, &[3])?;
        let value = self.read(&ops[1], ty, Fit::Exact)?;
        let members = self.members(ops.get(2))?;
        let active = self.ballot(Cond::TRUE, members);
        let mut equal = Value::ZERO;
        for lane in 0..WARP_LANES {
            let other = self.word(WordOp::Shuffle(ShuffleMode::Idx, value.0, Value::Imm(lane)));
            let mut same = self.compare(Comparison::Eq, other, value.0);
            if ty.bits() == 64 {
                let other = self.word(WordOp::Shuffle(ShuffleMode::Idx, value.1, Value::Imm(lane)));
                let high = self.compare(Comparison::Eq, other, value.1);
                same = self.both(same, high);
            }
            let bit = self.select(same, Value::Imm(1 << lane), Value::ZERO);
            equal = self.or(equal, bit);
        }
        let equal = self.and(equal, active);
        if !all {
            return self.write(&ops[0], ScalarType::B32, equal, Value::ZERO);
        }
        let holds = self.compare(Comparison::Eq, equal, active);
        let result = self.select(holds, active, Value::ZERO);
        let (dst, pred) = match &ops[0] {
            Operand::Pair(dst, pred) => (&**dst, self.pred_destination(pred)?),
            dst => (dst, None),
        };
        self.write(dst, ScalarType::B32, result, Value::ZERO)?;
        self.assign_preds(&[(pred, holds)]);
        Ok(())
    }

    pub(super) fn redux(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("sync");
        #[derive(Clone, Copy)]
        enum Reduction {
            Sum,
            Extremum(Extremum),
            Logic(Table2),
        }
        let names = [
            ("add", Reduction::Sum),
            ("min", Reduction::Extremum(Extremum::Min)),
            ("max", Reduction::Extremum(Extremum::Max)),
            ("and", Reduction::Logic(Table2::AND)),
            ("or", Reduction::Logic(Table2::OR)),
            ("xor", Reduction::Logic(Table2::XOR)),
        ];
        let reduction = mods.required("an operation", &names)?;
        let ty = mods.int_type()?;
        let sign = if ty.is_signed() { Signedness::Signed } else { Signedness::Unsigned };
        let ops = operands(inst, &[3])?;
        let value = self.read_word(&ops[1], ty)?;
        let members = self.members(ops.get(2))?;
        let active = self.ballot(Cond::TRUE, members);
        // The thread's own value first; every other member's is added unless it is the thread itself.
        let lane = self.lane();
        let mut total = value;
        for other in 0..WARP_LANES {
            let theirs = self.word(WordOp::Shuffle(ShuffleMode::Idx, value, Value::Imm(other)));
            let member = self.and(active, Value::Imm(1 << other));
            let member = self.compare(Comparison::Ne, member, Value::ZERO);
            let foreign = self.compare(Comparison::Ne, lane, Value::Imm(other));
            let counts = self.both(member, foreign);
            let combined = match reduction {
                Reduction::Sum => self.add(total, theirs),
                Reduction::Extremum(which) => self.binary(BinaryOp::Imnmx(which, sign), total, theirs),
                Reduction::Logic(table) => self.logic(table, total, theirs),
            };
            total = self.select(counts, combined, total);
        }
        self.write(&ops[0], ty, total, Value::ZERO)
    }

    pub(super) fn elect(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("sync");
        let ops = operands(inst, &[2])?;
        let members = self.members(ops.get(1))?;
        let active = self.ballot(Cond::TRUE, members);
        let reversed = self.unary(UnaryOp::Brev, active);
        let leader = self.unary(UnaryOp::Clz, reversed);
        let lane = self.lane();
        let elected = self.compare(Comparison::Eq, lane, leader);
        let Operand::Pair(dst, pred) = &ops[0] else {
            return Err(mods.invalid("it has two destinations, `d|p`"));
        };
        let pred = self.pred_destination(pred)?;
        self.write(dst, ScalarType::B32, leader, Value::ZERO)?;
        self.assign_preds(&[(pred, elected)]);
        Ok(())
    }
}
