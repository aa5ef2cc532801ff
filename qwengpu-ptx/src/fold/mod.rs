//! Algebra on single operations: constants folded, identities applied, constants moved to the right.
//!
//! Both the translation from PTX and the pass `fold_constants` use it, so that neither emits what the other
//! would remove. Every rewrite holds for all values, modulo 2^32.

mod logic3;
mod predicate;

pub(crate) use predicate::fold_pred;

use logic3::reduce_logic3;

use qwengpu_isa::{BinaryOp, Comparison, DivisionPart, Extremum, ScaleShift, Signedness, Table2, TernaryOp, UnaryOp};

use crate::ir::{Cond, Value, WordOp};

/// `a << b` as PTX and the machine have it: 0 from 32 on.
pub(crate) fn shift_left(a: u32, b: u32) -> u32 {
    a.checked_shl(b).unwrap_or(0)
}

/// `a >> b` as PTX and the machine have it: only the fill from 32 on.
pub(crate) fn shift_right(signedness: Signedness, a: u32, b: u32) -> u32 {
    match signedness {
        Signedness::Unsigned => a.checked_shr(b).unwrap_or(0),
        Signedness::Signed => (a.cast_signed() >> b.min(31)).cast_unsigned(),
    }
}

/// Quotient or remainder; `x / 0` is all ones with remainder `x`, and `i32::MIN / -1` is `i32::MIN` with remainder 0.
pub(crate) fn divide(signedness: Signedness, part: DivisionPart, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a.cast_signed(), b.cast_signed());
    match (part, signedness) {
        (DivisionPart::Quotient, _) if b == 0 => u32::MAX,
        (DivisionPart::Remainder, _) if b == 0 => a,
        (DivisionPart::Quotient, Signedness::Unsigned) => a / b,
        (DivisionPart::Remainder, Signedness::Unsigned) => a % b,
        (DivisionPart::Quotient, Signedness::Signed) => sa.wrapping_div(sb).cast_unsigned(),
        (DivisionPart::Remainder, Signedness::Signed) => sa.wrapping_rem(sb).cast_unsigned(),
    }
}

/// The high word of a product.
pub(crate) fn mul_high(signedness: Signedness, a: u32, b: u32) -> u32 {
    let product = match signedness {
        Signedness::Unsigned => u64::from(a) * u64::from(b),
        Signedness::Signed => (i64::from(a.cast_signed()) * i64::from(b.cast_signed())).cast_unsigned(),
    };
    high_word(product)
}

/// The low 32 bits.
pub(crate) fn low_word(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The high 32 bits.
pub(crate) fn high_word(bits: u64) -> u32 {
    low_word(bits >> 32)
}

/// The comparison that holds with its operands exchanged.
pub(crate) fn swapped(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Eq => Comparison::Eq,
        Comparison::Ne => Comparison::Ne,
        Comparison::LtU => Comparison::GtU,
        Comparison::LeU => Comparison::GeU,
        Comparison::GtU => Comparison::LtU,
        Comparison::GeU => Comparison::LeU,
        Comparison::LtS => Comparison::GtS,
        Comparison::LeS => Comparison::GeS,
        Comparison::GtS => Comparison::LtS,
        Comparison::GeS => Comparison::LeS,
    }
}

/// The comparison that holds when this one does not.
pub(crate) fn complement(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
        Comparison::LtU => Comparison::GeU,
        Comparison::LeU => Comparison::GtU,
        Comparison::GtU => Comparison::LeU,
        Comparison::GeU => Comparison::LtU,
        Comparison::LtS => Comparison::GeS,
        Comparison::LeS => Comparison::GtS,
        Comparison::GtS => Comparison::LeS,
        Comparison::GeS => Comparison::LtS,
    }
}

/// A bitwise function with its operands exchanged.
pub(crate) fn swapped_table(table: Table2) -> Table2 {
    let bits = table.bits();
    let exchanged = bits & 0b1001 | (bits & 0b0100) >> 1 | (bits & 0b0010) << 1;
    Table2::new(exchanged).unwrap_or(table)
}

/// A bitwise function of two words.
pub(crate) fn apply_table(table: Table2, a: u32, b: u32) -> u32 {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .filter(|(x, y)| table.apply(*x, *y))
        .fold(0, |sum, (x, y)| sum | (if x { a } else { !a } & if y { b } else { !b }))
}

/// An operation with the same value as `op`, simpler where possible.
pub(crate) fn fold_word(op: WordOp) -> WordOp {
    let mut op = op;
    // Each rewrite makes the operation smaller, so a few rounds reach the end.
    for _ in 0..4 {
        let next = match op {
            WordOp::Ternary(kind, a, b, c) => ternary(kind, a, b, c),
            WordOp::Binary(kind, a, b) => binary(kind, a, b),
            WordOp::Unary(kind, Value::Imm(a)) => WordOp::Move(Value::Imm(match kind {
                UnaryOp::Clz => a.leading_zeros(),
                UnaryOp::Popc => a.count_ones(),
                UnaryOp::Brev => a.reverse_bits(),
            })),
            WordOp::Select(Cond::Fixed(true), a, _) => WordOp::Move(a),
            WordOp::Select(Cond::Fixed(false), _, b) => WordOp::Move(b),
            WordOp::Select(_, a, b) if a == b => WordOp::Move(a),
            WordOp::Select(cond, a, b) if a.reg().is_none() && b.reg().is_some() => WordOp::Select(cond.not(), b, a),
            // Operand A reads zero for free.
            WordOp::Select(cond, a, Value::Imm(0)) if a != Value::ZERO && a.reg().is_none() => {
                WordOp::Select(cond.not(), Value::ZERO, a)
            }
            WordOp::Logic3(table, a, b, c) => match reduce_logic3(table, a, b, c) {
                Some(simpler) => simpler,
                None => return op,
            },
            WordOp::Divide(sign, part, a, b) => divide_op(sign, part, a, b),
            WordOp::MulHigh(sign, Value::Imm(a), Value::Imm(b)) => WordOp::Move(Value::Imm(mul_high(sign, a, b))),
            WordOp::MulHigh(sign, a @ Value::Imm(_), b) => WordOp::MulHigh(sign, b, a),
            WordOp::MulHigh(_, _, Value::Imm(0)) => WordOp::Move(Value::ZERO),
            WordOp::MulHigh(Signedness::Unsigned, a, Value::Imm(m)) if m.is_power_of_two() => {
                let shift = 32 - m.trailing_zeros();
                WordOp::Binary(BinaryOp::Shr(Signedness::Unsigned), a, Value::Imm(shift))
            }
            other => return other,
        };
        if next == op {
            return next;
        }
        op = next;
    }
    op
}

fn ternary(kind: TernaryOp, a: Value, b: Value, c: Value) -> WordOp {
    let zero = Value::ZERO;
    match (kind, a, b, c) {
        (TernaryOp::Iadd, ..) => add(a, b, c),
        (TernaryOp::Isub, a, Value::Imm(b), c) => add(a, c, Value::Imm(b.wrapping_neg())),
        (TernaryOp::Isub, a, b, c) if a == b => WordOp::Move(c),
        (TernaryOp::Isub, a, b, c) if c == b => WordOp::Move(a),
        (TernaryOp::Isub, Value::Imm(a), b, Value::Imm(c)) if c != 0 => {
            WordOp::Ternary(kind, Value::Imm(a.wrapping_add(c)), b, zero)
        }
        (TernaryOp::Isub, Value::Imm(0), b, c) if c != zero => WordOp::Ternary(kind, c, b, zero),
        (TernaryOp::Isub, Value::Imm(u32::MAX), b, Value::Imm(0)) => {
            WordOp::Binary(BinaryOp::Lop(Table2::NOT), zero, b)
        }
        (TernaryOp::Imad, Value::Imm(a), Value::Imm(b), c) => add(c, Value::Imm(a.wrapping_mul(b)), zero),
        (TernaryOp::Imad, a @ Value::Imm(_), b, c) => WordOp::Ternary(kind, b, a, c),
        (TernaryOp::Imad, _, Value::Imm(0), c) => WordOp::Move(c),
        (TernaryOp::Imad, a, Value::Imm(1), c) => add(a, c, zero),
        (TernaryOp::Imad, a, Value::Imm(u32::MAX), c) => WordOp::Ternary(TernaryOp::Isub, c, a, zero),
        (TernaryOp::Imad, a, Value::Imm(m), c) if m.is_power_of_two() => {
            let shift = m.trailing_zeros();
            match u8::try_from(shift).ok().and_then(ScaleShift::new) {
                _ if c == zero => WordOp::Binary(BinaryOp::Shl, a, Value::Imm(shift)),
                Some(scale) => WordOp::Ternary(TernaryOp::Iscadd(scale), a, c, zero),
                None => WordOp::Ternary(kind, a, b, c),
            }
        }
        (TernaryOp::Imad, a, b, c) if a.reg().is_none() && b.reg().is_some() => WordOp::Ternary(kind, b, a, c),
        (TernaryOp::Iscadd(shift), Value::Imm(a), b, c) => {
            add(b, c, Value::Imm(shift_left(a, u32::from(shift.amount()))))
        }
        (TernaryOp::Iscadd(shift), a, Value::Imm(0), Value::Imm(0)) => {
            WordOp::Binary(BinaryOp::Shl, a, Value::Imm(u32::from(shift.amount())))
        }
        (TernaryOp::Iscadd(_), a, b, c) if b.reg().is_some() && c.reg().is_none() && c != zero => {
            WordOp::Ternary(kind, a, c, b)
        }
        (TernaryOp::Iscadd(_), a, Value::Imm(b), Value::Imm(c)) if c != 0 => {
            WordOp::Ternary(kind, a, Value::Imm(b.wrapping_add(c)), zero)
        }
        _ => WordOp::Ternary(kind, a, b, c),
    }
}

/// A sum: registers first, the one constant operand B can take second.
fn add(a: Value, b: Value, c: Value) -> WordOp {
    let mut imm = 0u32;
    let mut regs = Vec::new();
    let mut fixed = Vec::new();
    for value in [a, b, c] {
        match value {
            Value::Imm(value) => imm = imm.wrapping_add(value),
            Value::Reg(_) => regs.push(value),
            Value::Const(_) | Value::Symbol(..) => fixed.push(value),
        }
    }
    if imm != 0 {
        match fixed.iter_mut().find(|value| matches!(value, Value::Symbol(..))) {
            Some(Value::Symbol(_, offset)) => *offset = offset.wrapping_add(imm),
            _ => fixed.push(Value::Imm(imm)),
        }
    }
    regs.sort_unstable();
    let mut rest = regs.into_iter().chain(fixed);
    let first = rest.next();
    let second = rest.next();
    match (first, second, rest.next()) {
        (None, ..) => WordOp::Move(Value::ZERO),
        (Some(a), None, _) => WordOp::Move(a),
        (Some(a), Some(b), None) => WordOp::Ternary(TernaryOp::Iadd, a, b, Value::ZERO),
        // Operand B is the middle one; the outer ones must be registers in the end.
        (Some(a), Some(b), Some(c)) if c.reg().is_some() => WordOp::Ternary(TernaryOp::Iadd, a, b, c),
        (Some(a), Some(b), Some(c)) => WordOp::Ternary(TernaryOp::Iadd, a, c, b),
    }
}

fn binary(kind: BinaryOp, a: Value, b: Value) -> WordOp {
    let same = WordOp::Binary(kind, a, b);
    if let (Value::Imm(x), Value::Imm(y)) = (a, b) {
        let value = match kind {
            BinaryOp::Lop(table) => apply_table(table, x, y),
            BinaryOp::Shl => shift_left(x, y),
            BinaryOp::Shr(sign) => shift_right(sign, x, y),
            BinaryOp::Imnmx(Extremum::Min, Signedness::Unsigned) => x.min(y),
            BinaryOp::Imnmx(Extremum::Max, Signedness::Unsigned) => x.max(y),
            BinaryOp::Imnmx(Extremum::Min, Signedness::Signed) => x.cast_signed().min(y.cast_signed()).cast_unsigned(),
            BinaryOp::Imnmx(Extremum::Max, Signedness::Signed) => x.cast_signed().max(y.cast_signed()).cast_unsigned(),
        };
        return WordOp::Move(Value::Imm(value));
    }
    match (kind, a, b) {
        (BinaryOp::Shl | BinaryOp::Shr(_), a, Value::Imm(0)) => WordOp::Move(a),
        (BinaryOp::Shl | BinaryOp::Shr(_), Value::Imm(0), _) => WordOp::Move(Value::ZERO),
        (BinaryOp::Shl | BinaryOp::Shr(Signedness::Unsigned), _, Value::Imm(32..)) => WordOp::Move(Value::ZERO),
        (BinaryOp::Shr(Signedness::Signed), a, Value::Imm(32..)) => WordOp::Binary(kind, a, Value::Imm(31)),
        (BinaryOp::Imnmx(..), a, b) if a == b => WordOp::Move(a),
        (BinaryOp::Imnmx(..), a, b) if a.reg().is_none() && b.reg().is_some() => WordOp::Binary(kind, b, a),
        (BinaryOp::Lop(table), a, b) => logic(table, a, b),
        _ => same,
    }
}

fn logic(table: Table2, a: Value, b: Value) -> WordOp {
    // The function of the other operand when one is all zeros or all ones.
    let with_fixed = |fixed: bool, swap: bool, other: Value| {
        let at = |x: bool| if swap { table.apply(x, fixed) } else { table.apply(fixed, x) };
        match (at(false), at(true)) {
            (false, false) => Some(WordOp::Move(Value::ZERO)),
            (true, true) => Some(WordOp::Move(Value::Imm(u32::MAX))),
            (false, true) => Some(WordOp::Move(other)),
            (true, false) if table == Table2::NOT && !swap && a == Value::ZERO => None,
            (true, false) => Some(WordOp::Binary(BinaryOp::Lop(Table2::NOT), Value::ZERO, other)),
        }
    };
    let simpler = match (a, b) {
        (_, Value::Imm(0)) => with_fixed(false, true, a),
        (_, Value::Imm(u32::MAX)) => with_fixed(true, true, a),
        (Value::Imm(0), _) => with_fixed(false, false, b),
        (Value::Imm(u32::MAX), _) => with_fixed(true, false, b),
        _ if a == b => match (table.apply(false, false), table.apply(true, true)) {
            (false, false) => Some(WordOp::Move(Value::ZERO)),
            (true, true) => Some(WordOp::Move(Value::Imm(u32::MAX))),
            (false, true) => Some(WordOp::Move(a)),
            (true, false) => Some(WordOp::Binary(BinaryOp::Lop(Table2::NOT), Value::ZERO, a)),
        },
        _ => None,
    };
    if let Some(simpler) = simpler {
        return simpler;
    }
    let ordered = match (a, b) {
        (Value::Reg(x), Value::Reg(y)) => x <= y,
        (_, Value::Reg(_)) => a == Value::ZERO,
        _ => true,
    };
    if ordered {
        WordOp::Binary(BinaryOp::Lop(table), a, b)
    } else {
        WordOp::Binary(BinaryOp::Lop(swapped_table(table)), b, a)
    }
}

fn divide_op(sign: Signedness, part: DivisionPart, a: Value, b: Value) -> WordOp {
    let shr = BinaryOp::Shr(Signedness::Unsigned);
    match (sign, part, a, b) {
        (_, _, Value::Imm(a), Value::Imm(b)) => WordOp::Move(Value::Imm(divide(sign, part, a, b))),
        (_, DivisionPart::Quotient, a, Value::Imm(1)) => WordOp::Move(a),
        (_, DivisionPart::Remainder, _, Value::Imm(1)) => WordOp::Move(Value::ZERO),
        (_, DivisionPart::Quotient, _, Value::Imm(0)) => WordOp::Move(Value::Imm(u32::MAX)),
        (_, DivisionPart::Remainder, a, Value::Imm(0)) => WordOp::Move(a),
        (Signedness::Signed, DivisionPart::Quotient, a, Value::Imm(u32::MAX)) => {
            WordOp::Ternary(TernaryOp::Isub, Value::ZERO, a, Value::ZERO)
        }
        (Signedness::Unsigned, DivisionPart::Quotient, a, Value::Imm(d)) if d.is_power_of_two() => {
            WordOp::Binary(shr, a, Value::Imm(d.trailing_zeros()))
        }
        (Signedness::Unsigned, DivisionPart::Remainder, a, Value::Imm(d)) if d.is_power_of_two() => {
            WordOp::Binary(BinaryOp::Lop(Table2::AND), a, Value::Imm(d - 1))
        }
        _ => WordOp::Divide(sign, part, a, b),
    }
}
