//! Division of 64-bit values: in place, or in a routine that several divisions share.
//!
//! `x / 0` is all ones with remainder `x`; the least integer by -1 is itself with remainder 0.

use qwengpu_isa::{BinaryOp, Comparison, DivisionPart, Extremum, Signedness, Table2, TernaryOp, UnaryOp};

use crate::ast::ScalarType;
use crate::fold::{high_word, low_word};
use crate::ir::{Cond, InstKind, PredOp, RoutineId, Terminator, VReg, Value, WordOp};

use super::Builder;
use super::routine::{RoutineBody, transfer};
use super::wide::Wide;

/// Two registers that change together.
type Pair = [VReg; 2];

fn values(pair: Pair) -> Wide {
    (pair[0].into(), pair[1].into())
}

impl Builder<'_> {
    /// Quotient or remainder.
    pub(super) fn divide_wide(&mut self, sign: Signedness, part: DivisionPart, a: Wide, b: Wide) -> Wide {
        if let (Signedness::Unsigned, Value::Imm(low), Value::Imm(high)) = (sign, b.0, b.1)
            && let divisor = u64::from(low) | u64::from(high) << 32
            && divisor.is_power_of_two()
        {
            let below = divisor - 1;
            return match part {
                DivisionPart::Quotient => self.shift_right_wide(sign, a, Value::Imm(divisor.trailing_zeros())),
                DivisionPart::Remainder => {
                    let mask = (Value::Imm(low_word(below)), Value::Imm(high_word(below)));
                    self.logic_wide(Table2::AND, a, mask)
                }
            };
        }
        self.wide_divisions += 1;
        let (quotient, remainder) =
            if self.shares_divisions { self.call_division(sign, a, b) } else { self.divide_in_place(sign, a, b) };
        match part {
            DivisionPart::Quotient => quotient,
            DivisionPart::Remainder => remainder,
        }
    }

    fn call_division(&mut self, sign: Signedness, a: Wide, b: Wide) -> (Wide, Wide) {
        let id = self.division_routine(sign);
        let [params, results] = [&self.routines[id.idx()].params, &self.routines[id.idx()].results]
            .map(|words| words.iter().flatten().copied().collect::<Vec<_>>());
        let mut made = Vec::new();
        self.unguarded(|s| {
            for (word, value) in params.iter().zip([a.0, a.1, b.0, b.1]) {
                s.store_word(ScalarType::B32, transfer(*word), value);
            }
            s.settle_clock();
            s.push(Cond::TRUE, InstKind::Call(id));
            made = results.iter().map(|word| s.load_word(ScalarType::B32, transfer(*word))).collect();
        });
        match made[..] {
            [low, high, rest_low, rest_high] => ((low, high), (rest_low, rest_high)),
            _ => ((Value::ZERO, Value::ZERO), (Value::ZERO, Value::ZERO)),
        }
    }

    fn division_routine(&mut self, sign: Signedness) -> RoutineId {
        let known =
            self.routines.iter().position(|routine| matches!(routine.body, RoutineBody::Division(s) if s == sign));
        match known {
            Some(position) => RoutineId::new(position),
            None => {
                let name = "a word of a division";
                let [params, results] = [(); 2].map(|()| vec![(0..4).map(|_| self.transfer_word(name)).collect()]);
                self.new_routine(RoutineBody::Division(sign), params, results)
            }
        }
    }

    /// The code of the routine.
    pub(super) fn division_body(&mut self, idx: usize, sign: Signedness) {
        let [params, results] = [&self.routines[idx].params, &self.routines[idx].results]
            .map(|words| words.iter().flatten().copied().collect::<Vec<_>>());
        let words: Vec<Value> = params.iter().map(|word| self.load_word(ScalarType::B32, transfer(*word))).collect();
        if let [a_low, a_high, b_low, b_high] = words[..] {
            let (quotient, rest) = self.divide_in_place(sign, (a_low, a_high), (b_low, b_high));
            for (word, value) in results.iter().zip([quotient.0, quotient.1, rest.0, rest.1]) {
                self.store_word(ScalarType::B32, transfer(*word), value);
            }
        }
        let last = self.current;
        self.func.block_mut(last).terminator = Terminator::Return;
    }

    /// Quotient and remainder; what nobody reads disappears later.
    fn divide_in_place(&mut self, sign: Signedness, a: Wide, b: Wide) -> (Wide, Wide) {
        let mut results = (a, a);
        self.unguarded(|s| results = s.divide_signed(sign, a, b));
        results
    }

    fn divide_signed(&mut self, sign: Signedness, a: Wide, b: Wide) -> (Wide, Wide) {
        let any = self.or(b.0, b.1);
        let by_zero = self.compare(Comparison::Eq, any, Value::ZERO);
        if sign == Signedness::Unsigned {
            let (quotient, rest) = self.divide_loop(a, b, by_zero);
            return (values(quotient), values(rest));
        }
        let negative = |s: &mut Self, x: Value| s.compare(Comparison::LtS, x, Value::ZERO);
        let a_negative = negative(self, a.1);
        let b_negative = negative(self, b.1);
        let signs = self.xor(a.1, b.1);
        let differ = negative(self, signs);
        let differ = self.cond(PredOp::Logic(Table2::AND, differ, by_zero.not()));
        let dividend = self.absolute_wide(a, a_negative);
        let divisor = self.absolute_wide(b, b_negative);
        let (quotient, rest) = self.divide_loop(dividend, divisor, by_zero);
        self.negate_wide_if(differ, quotient);
        self.negate_wide_if(a_negative, rest);
        (values(quotient), values(rest))
    }

    fn absolute_wide(&mut self, a: Wide, negative: Cond) -> Wide {
        let pair = [self.copy(a.0), self.copy(a.1)];
        self.negate_wide_if(negative, pair);
        values(pair)
    }

    fn negate_wide_if(&mut self, cond: Cond, [low, high]: Pair) {
        let borrow = self.cond(PredOp::Compare(Comparison::Ne, low.into(), Value::ZERO, cond));
        self.change(cond, low, TernaryOp::Isub, Value::ZERO, low.into());
        self.change(cond, high, TernaryOp::Isub, Value::ZERO, high.into());
        self.change(borrow, high, TernaryOp::Iadd, high.into(), Value::Imm(u32::MAX));
    }

    /// `dst = a op b` in the threads where the condition holds.
    fn change(&mut self, cond: Cond, dst: VReg, op: TernaryOp, a: Value, b: Value) {
        self.push(cond, InstKind::Word(dst, WordOp::Ternary(op, a, b, Value::ZERO)));
    }

    fn leading_zeros_wide(&mut self, a: Wide) -> Value {
        let high = self.unary(UnaryOp::Clz, a.1);
        let low = self.unary(UnaryOp::Clz, a.0);
        let zeros = self.copy(high);
        let short = self.compare(Comparison::Eq, a.1, Value::ZERO);
        self.change(short, zeros, TernaryOp::Iadd, zeros.into(), low);
        zeros.into()
    }

    /// Shift and subtract, from the difference in length of dividend and divisor downwards: a round for each bit
    /// that the quotient may have. The quotient by zero starts with all ones, and keeps them.
    fn divide_loop(&mut self, a: Wide, b: Wide, by_zero: Cond) -> (Pair, Pair) {
        let [a_zeros, b_zeros] = [a, b].map(|x| self.leading_zeros_wide(x));
        let difference = self.sub(b_zeros, a_zeros);
        let places = self.binary(BinaryOp::Imnmx(Extremum::Max, Signedness::Signed), difference, Value::ZERO);
        let lifted = self.shift_left_wide(b, places);
        let start = self.select(by_zero, Value::Imm(u32::MAX), Value::ZERO);
        let quotient = [self.copy(start), self.copy(start)];
        let rest = [self.copy(a.0), self.copy(a.1)];
        let divisor = [self.copy(lifted.0), self.copy(lifted.1)];
        let left = self.copy(places);
        let (body, after) = (self.func.new_block(), self.func.new_block());
        self.end_block(Terminator::Jump(body), body);

        let (low, high) = (rest[0].into(), rest[1].into());
        let (by_low, by_high): Wide = values(divisor);
        let equal = self.compare(Comparison::Eq, high, by_high);
        let enough = self.cond(PredOp::Compare(Comparison::GeU, low, by_low, equal));
        let more = self.compare(Comparison::GtU, high, by_high);
        let take = self.either(enough, more);
        let borrow = self.cond(PredOp::Compare(Comparison::LtU, low, by_low, take));
        self.change(take, rest[0], TernaryOp::Isub, low, by_low);
        self.change(take, rest[1], TernaryOp::Isub, high, by_high);
        self.change(borrow, rest[1], TernaryOp::Iadd, high, Value::Imm(u32::MAX));

        let carry = self.shr_u(quotient[0].into(), Value::Imm(31));
        self.push(Cond::TRUE, InstKind::Word(quotient[1], doubled(quotient[1], carry)));
        self.push(Cond::TRUE, InstKind::Word(quotient[0], doubled(quotient[0], Value::ZERO)));
        self.change(take, quotient[0], TernaryOp::Iadd, quotient[0].into(), Value::ONE);

        let across = self.shl(by_high, Value::Imm(31));
        let halved = self.shr_u(by_low, Value::ONE);
        self.change(Cond::TRUE, divisor[0], TernaryOp::Iadd, halved, across);
        let halve = WordOp::Binary(BinaryOp::Shr(Signedness::Unsigned), by_high, Value::ONE);
        self.push(Cond::TRUE, InstKind::Word(divisor[1], halve));

        self.change(Cond::TRUE, left, TernaryOp::Iadd, left.into(), Value::Imm(u32::MAX));
        let again = self.compare(Comparison::GeS, left.into(), Value::ZERO);
        self.end_block(Terminator::Branch(again, body, after), after);
        (quotient, rest)
    }
}

/// `2 * reg + carry`.
fn doubled(reg: VReg, carry: Value) -> WordOp {
    WordOp::Ternary(TernaryOp::Iadd, reg.into(), reg.into(), carry)
}
