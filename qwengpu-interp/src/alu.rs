//! The arithmetic of one lane, as pure functions.

use qwengpu_isa::{
    BinaryOp, DivisionPart, Extremum, LoadWidth, ShuffleMode, Signedness, Table2, Table3, TernaryOp, UnaryOp,
};

/// An operation on `a`, `b` and `c`.
#[must_use]
pub fn ternary(op: TernaryOp, a: u32, b: u32, c: u32) -> u32 {
    match op {
        TernaryOp::Iadd => a.wrapping_add(b).wrapping_add(c),
        TernaryOp::Isub => a.wrapping_sub(b).wrapping_add(c),
        TernaryOp::Imad => a.wrapping_mul(b).wrapping_add(c),
        TernaryOp::Iscadd(shift) => (a << shift.amount()).wrapping_add(b).wrapping_add(c),
    }
}

/// An operation on `a` and `b`.
#[must_use]
pub fn binary(op: BinaryOp, a: u32, b: u32) -> u32 {
    match op {
        BinaryOp::Lop(table) => lop(table, a, b),
        BinaryOp::Shl => a.checked_shl(b).unwrap_or(0),
        BinaryOp::Shr(Signedness::Unsigned) => a.checked_shr(b).unwrap_or(0),
        // A shift by 31 already fills every bit with the sign.
        BinaryOp::Shr(Signedness::Signed) => (a.cast_signed() >> b.min(31)).cast_unsigned(),
        BinaryOp::Imnmx(Extremum::Min, Signedness::Unsigned) => a.min(b),
        BinaryOp::Imnmx(Extremum::Max, Signedness::Unsigned) => a.max(b),
        BinaryOp::Imnmx(Extremum::Min, Signedness::Signed) => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        BinaryOp::Imnmx(Extremum::Max, Signedness::Signed) => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
    }
}

/// An operation on `b`.
#[must_use]
pub fn unary(op: UnaryOp, b: u32) -> u32 {
    match op {
        UnaryOp::Clz => b.leading_zeros(),
        UnaryOp::Popc => b.count_ones(),
        UnaryOp::Brev => b.reverse_bits(),
    }
}

/// A function of two bits, in every bit.
fn lop(table: Table2, a: u32, b: u32) -> u32 {
    (0..4).filter(|row| table.bits() >> row & 1 == 1).fold(0, |result, row| {
        let a = if row & 2 == 0 { !a } else { a };
        let b = if row & 1 == 0 { !b } else { b };
        result | a & b
    })
}

/// A function of three bits, in every bit.
#[must_use]
pub fn lop3(table: Table3, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|row| table.bits() >> row & 1 == 1).fold(0, |result, row| {
        let a = if row & 4 == 0 { !a } else { a };
        let b = if row & 2 == 0 { !b } else { b };
        let c = if row & 1 == 0 { !c } else { c };
        result | a & b & c
    })
}

/// The small division: `x` counts modulo 32, `y` modulo 64.
#[must_use]
pub fn small_division(part: DivisionPart, x: u32, y: u32) -> u32 {
    let (x, y) = (x & 31, y & 63);
    let quotient = x.checked_div(y).unwrap_or(31);
    match part {
        DivisionPart::Quotient => quotient,
        DivisionPart::Remainder => x - quotient * y,
    }
}

/// The lane a shuffle reads, in a warp whose number of lanes is a power of two.
#[must_use]
pub fn shuffle_source(mode: ShuffleMode, lane: u8, b: u32, lanes: u8) -> u8 {
    let [distance, ..] = (b & 31).to_le_bytes();
    let last = lanes - 1;
    match mode {
        ShuffleMode::Idx => distance & last,
        ShuffleMode::Up => lane.checked_sub(distance).unwrap_or(lane),
        ShuffleMode::Down => Some(lane + distance).filter(|&source| source <= last).unwrap_or(lane),
        ShuffleMode::Bfly => Some(lane ^ distance).filter(|&source| source <= last).unwrap_or(lane),
    }
}

/// The register value of the bytes read by a load, which stand in the low bits of `bytes`.
#[must_use]
pub fn extend(width: LoadWidth, bytes: u32) -> u32 {
    let [low, high, ..] = bytes.to_le_bytes();
    let half = [low, high];
    match width {
        LoadWidth::U8 => low.into(),
        LoadWidth::S8 => i32::from(low.cast_signed()).cast_unsigned(),
        LoadWidth::U16 => u16::from_le_bytes(half).into(),
        LoadWidth::S16 => i32::from(i16::from_le_bytes(half)).cast_unsigned(),
        LoadWidth::B32 => bytes,
    }
}
