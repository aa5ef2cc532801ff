//! Division: reciprocals for numbers, a loop for the rest.
//!
//! `x / 0` is all ones with remainder `x`; the least integer divided by -1 is itself with remainder 0.

use qwengpu_isa::{BinaryOp, Comparison, DivisionPart, Extremum, Signedness, Table2, TernaryOp, UnaryOp};

use crate::analysis::KnownBits;
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, Terminator, VReg, Value, WordOp};

use super::expand_macros::Sequence;

/// A multiplier and a shift: `x / d == x * multiplier >> shift` for every `x` up to the bound.
struct Reciprocal {
    multiplier: u64,
    shift: u32,
}

/// The reciprocal of `d` for dividends up to `max`, with the smallest shift there is.
///
/// With `m = ceil(2^s / d)` and `e = m * d - 2^s`, `x * m >> s` is `x / d` whenever `x * e < 2^s`.
fn reciprocal(d: u32, max: u32) -> Reciprocal {
    for shift in 0..64 {
        let power = 1u128 << shift;
        let multiplier = power.div_ceil(u128::from(d));
        let error = multiplier * u128::from(d) - power;
        if u128::from(max) * error < power
            && let Ok(multiplier) = u64::try_from(multiplier)
        {
            return Reciprocal { multiplier, shift };
        }
    }
    // Not reached: at shift 64 the error, below d, times max is below 2^64.
    Reciprocal { multiplier: u64::MAX / u64::from(d) + 1, shift: 64 }
}

/// The unsigned quotient by a number that is no power of two.
fn quotient_by(s: &mut Sequence<'_>, a: Value, d: u32, max: u32) -> Value {
    let Reciprocal { multiplier, shift } = reciprocal(d, max);
    if let Ok(small) = u32::try_from(multiplier) {
        if u64::from(max) * multiplier <= u64::from(u32::MAX) && shift < 32 {
            let product = s.mad(a, Value::Imm(small), Value::ZERO);
            return s.shr_u(product, shift);
        }
        // Scale up until the quotient stands in the high word.
        let up = 32u32.saturating_sub(shift);
        if let Some(scaled) = multiplier.checked_shl(up).and_then(|m| u32::try_from(m).ok()) {
            let high = s.mul_high_u(a, Value::Imm(scaled));
            return s.shr_u(high, shift.saturating_sub(32));
        }
    }
    // A 33-bit multiplier: its top bit adds the dividend once more, halved so that nothing overflows.
    let low = Value::Imm(crate::fold::low_word(multiplier << 32u32.saturating_sub(shift)));
    let high = s.mul_high_u(a, low);
    let rest = s.sub(a, high);
    let half = s.shr_u(rest, 1);
    let sum = s.add(half, high, Value::ZERO);
    s.shr_u(sum, shift.max(33) - 33)
}

/// Quotient or remainder by a number; the divisor is neither 0 nor 1.
pub(super) fn divide_by_number(
    s: &mut Sequence<'_>,
    known: &KnownBits,
    sign: Signedness,
    part: DivisionPart,
    a: Value,
    b: Value,
) -> Option<Value> {
    let d = b.imm()?;
    if d == 0 {
        return None;
    }
    let quotient = match sign {
        Signedness::Unsigned if d.is_power_of_two() => s.shr_u(a, d.trailing_zeros()),
        Signedness::Unsigned => quotient_by(s, a, d, known.max(a)),
        Signedness::Signed => {
            let size = d.cast_signed().unsigned_abs();
            let negative = s.shr(sign, a, 31);
            let up = if size.is_power_of_two() {
                let amount = size.trailing_zeros();
                // Round towards zero: negative dividends first go up by the divisor less one.
                let bias = s.shr_u(negative, 32 - amount);
                let biased = s.add(a, bias, Value::ZERO);
                s.shr(sign, biased, amount)
            } else {
                let flipped = s.lop(Table2::XOR, a, negative);
                let absolute = s.sub(flipped, negative);
                let up = quotient_by(s, absolute, size, 1 << 31);
                let flipped = s.lop(Table2::XOR, up, negative);
                s.sub(flipped, negative)
            };
            if d.cast_signed() < 0 { s.sub(Value::ZERO, up) } else { up }
        }
    };
    Some(match part {
        DivisionPart::Quotient => quotient,
        DivisionPart::Remainder => s.mad(quotient, Value::Imm(d.wrapping_neg()), a),
    })
}

/// Shift and subtract, from the difference in length of dividend and divisor downwards.
///
/// The divisor is shifted up until it is as long as the dividend, and comes down a place each round, until it is shorter
/// than it was at first: comparing behind the shift lets the branch compare. With divisor 0 there is one round, which subtracts
/// nothing. The block is the last of the layout; the loop follows.
pub(super) fn expand_division_loop(
    func: &mut Function,
    block: BlockId,
    after: BlockId,
    (sign, part): (Signedness, DivisionPart),
    (dst, a, b): (VReg, Value, Value),
    line: u32,
) {
    let signed = sign == Signedness::Signed;
    let wants_quotient = part == DivisionPart::Quotient;
    let mut s = Sequence { func, insts: Vec::new(), line };
    let absolute = |s: &mut Sequence<'_>, x: Value| {
        let negative = s.sub(Value::ZERO, x);
        s.op(WordOp::Binary(BinaryOp::Imnmx(Extremum::Max, Signedness::Signed), x, negative))
    };
    let (dividend, divisor) = if signed { (absolute(&mut s, a), absolute(&mut s, b)) } else { (a, b) };
    let a_zeros = s.op(WordOp::Unary(UnaryOp::Clz, dividend));
    let b_zeros = s.op(WordOp::Unary(UnaryOp::Clz, divisor));
    let difference = s.sub(b_zeros, a_zeros);
    let places = s.op(WordOp::Binary(BinaryOp::Imnmx(Extremum::Max, Signedness::Signed), difference, Value::ZERO));
    let lifted = s.op(WordOp::Binary(BinaryOp::Shl, divisor, places));
    let mut insts = s.insts;
    let rest = func.vreg();
    let shifted = func.vreg();
    let quotient = func.vreg();
    let divides = func.vpred();
    insts.push(Inst::pred(divides, PredOp::Compare(Comparison::Ne, divisor, Value::ZERO, Cond::TRUE), line));
    insts.push(Inst::word(rest, WordOp::Move(dividend), line));
    insts.push(Inst::word(shifted, WordOp::Move(lifted), line));
    if wants_quotient {
        insts.push(Inst::word(quotient, WordOp::Move(Value::ZERO), line));
    }
    func.block_mut(block).insts.extend(insts);

    let body = func.new_block();
    let done = func.new_block();
    func.layout.extend([body, done]);
    func.block_mut(block).terminator = Terminator::Jump(body);
    let fits = func.vpred();
    let again = func.vpred();
    let word = |dst: VReg, op: WordOp| Inst::word(dst, op, line);
    let under = |guard: Cond, inst: Inst| Inst { guard, ..inst };
    let ternary = |op, x: Value, y: Value| WordOp::Ternary(op, x, y, Value::ZERO);
    let mut round = vec![
        Inst::pred(fits, PredOp::Compare(Comparison::GeU, rest.into(), shifted.into(), Cond::TRUE), line),
        under(fits.into(), word(rest, ternary(TernaryOp::Isub, rest.into(), shifted.into()))),
    ];
    if wants_quotient {
        round.push(word(quotient, ternary(TernaryOp::Iadd, quotient.into(), quotient.into())));
        round.push(under(fits.into(), word(quotient, ternary(TernaryOp::Iadd, quotient.into(), Value::ONE))));
    }
    let down = WordOp::Binary(BinaryOp::Shr(Signedness::Unsigned), shifted.into(), Value::ONE);
    round.push(word(shifted, down));
    round.push(Inst::pred(again, PredOp::Compare(Comparison::GeU, shifted.into(), divisor, divides.into()), line));
    func.block_mut(body).insts = round;
    func.block_mut(body).terminator = Terminator::Branch(again.into(), body, done);
    func.block_mut(body).line = line;

    let mut end = Vec::new();
    let result = if wants_quotient { quotient } else { rest };
    if signed {
        let negative = func.vpred();
        let sign_of = if wants_quotient {
            let signs = func.vreg();
            end.push(word(signs, WordOp::Binary(BinaryOp::Lop(Table2::XOR), a, b)));
            signs.into()
        } else {
            a
        };
        end.push(Inst::pred(negative, PredOp::Compare(Comparison::LtS, sign_of, Value::ZERO, Cond::TRUE), line));
        end.push(under(negative.into(), word(result, ternary(TernaryOp::Isub, Value::ZERO, result.into()))));
    }
    if wants_quotient {
        let by_zero = Cond::Pred { pred: divides, negated: true };
        end.push(under(by_zero, word(result, WordOp::Move(Value::Imm(u32::MAX)))));
    }
    end.push(Inst { guard: Cond::TRUE, kind: InstKind::Word(dst, WordOp::Move(result.into())), line });
    func.block_mut(done).insts = end;
    func.block_mut(done).terminator = Terminator::Jump(after);
}
