//! Bitwise functions of three values that need only two.

use qwengpu_isa::{BinaryOp, Table2, Table3};

use crate::ir::{Value, WordOp};

/// A bitwise function of three values that depends on two of them, or has equal or fixed ones.
pub(super) fn reduce_logic3(table: Table3, a: Value, b: Value, c: Value) -> Option<WordOp> {
    let bits = table.bits();
    let at = |x: bool, y: bool, z: bool| bits >> (4 * u8::from(x) + 2 * u8::from(y) + u8::from(z)) & 1 != 0;
    let two = |f: &dyn Fn(bool, bool) -> bool, x: Value, y: Value| {
        let table = (0..4u8).filter(|row| f(row & 2 != 0, row & 1 != 0)).fold(0, |t, row| t | 1 << row);
        Table2::new(table).map(|t| WordOp::Binary(BinaryOp::Lop(t), x, y))
    };
    let fixed = |value: Value| match value {
        Value::Imm(0) => Some(false),
        Value::Imm(u32::MAX) => Some(true),
        _ => None,
    };
    let ignores = |pairs: &dyn Fn(bool, bool) -> (bool, bool)| {
        [(false, false), (false, true), (true, false), (true, true)].into_iter().all(|(x, y)| {
            let (first, second) = pairs(x, y);
            first == second
        })
    };
    if let Some(value) = fixed(a) {
        return two(&|y, z| at(value, y, z), b, c);
    }
    if let Some(value) = fixed(b) {
        return two(&|x, z| at(x, value, z), a, c);
    }
    if let Some(value) = fixed(c) {
        return two(&|x, y| at(x, y, value), a, b);
    }
    if ignores(&|y, z| (at(false, y, z), at(true, y, z))) {
        return two(&|y, z| at(false, y, z), b, c);
    }
    if ignores(&|x, z| (at(x, false, z), at(x, true, z))) {
        return two(&|x, z| at(x, false, z), a, c);
    }
    if ignores(&|x, y| (at(x, y, false), at(x, y, true))) {
        return two(&|x, y| at(x, y, false), a, b);
    }
    if a == b {
        return two(&|x, z| at(x, x, z), a, c);
    }
    if b == c {
        return two(&|x, y| at(x, y, y), a, b);
    }
    (a == c).then(|| two(&|x, y| at(x, y, x), a, b)).flatten()
}
