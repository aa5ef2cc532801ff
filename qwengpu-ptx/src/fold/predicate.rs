//! Algebra on predicates.

use qwengpu_isa::{Comparison, Table2};

use super::swapped;
use crate::ir::{Cond, PredOp, Value};

/// An operation with the same truth value as `op`, simpler where possible.
pub(crate) fn fold_pred(op: PredOp) -> PredOp {
    match op {
        PredOp::Compare(_, _, _, Cond::Fixed(false)) => PredOp::copy(Cond::FALSE),
        PredOp::Compare(comparison, Value::Imm(a), Value::Imm(b), and) => {
            PredOp::copy(if comparison.holds(a, b) { and } else { Cond::FALSE })
        }
        PredOp::Compare(comparison, a, b, and) if a == b => {
            PredOp::copy(if comparison.holds(0, 0) { and } else { Cond::FALSE })
        }
        PredOp::Compare(comparison, a, b, and) if a.reg().is_none() && b.reg().is_some() => {
            fold_pred(PredOp::Compare(swapped(comparison), b, a, and))
        }
        PredOp::Compare(Comparison::GeU, _, Value::Imm(0), and) => PredOp::copy(and),
        PredOp::Compare(Comparison::LtU, _, Value::Imm(0), _) => PredOp::copy(Cond::FALSE),
        PredOp::Compare(Comparison::LtU, a, Value::Imm(1), and)
        | PredOp::Compare(Comparison::LeU, a, Value::Imm(0), and) => {
            PredOp::Compare(Comparison::Eq, a, Value::ZERO, and)
        }
        PredOp::Compare(Comparison::GeU, a, Value::Imm(1), and)
        | PredOp::Compare(Comparison::GtU, a, Value::Imm(0), and) => {
            PredOp::Compare(Comparison::Ne, a, Value::ZERO, and)
        }
        PredOp::Logic(table, p, q) => pred_logic(table, p, q),
        other => other,
    }
}

/// The truth table with its first or second input complemented.
fn complement_input(table: Table2, first: bool) -> Table2 {
    let bits = table.bits();
    let exchanged = if first { (bits & 0b0011) << 2 | bits >> 2 } else { (bits & 0b0101) << 1 | (bits & 0b1010) >> 1 };
    Table2::new(exchanged).unwrap_or(table)
}

fn pred_logic(table: Table2, p: Cond, q: Cond) -> PredOp {
    let of_one = |at: &dyn Fn(bool) -> bool, other: Cond| {
        PredOp::copy(match (at(false), at(true)) {
            (false, false) => Cond::FALSE,
            (true, true) => Cond::TRUE,
            (false, true) => other,
            (true, false) => other.not(),
        })
    };
    match (p, q) {
        (Cond::Fixed(p), q) => of_one(&|x| table.apply(p, x), q),
        (p, Cond::Fixed(q)) => of_one(&|x| table.apply(x, q), p),
        (Cond::Pred { pred: a, negated: m }, Cond::Pred { pred: b, negated: n }) if a == b => {
            of_one(&|x| table.apply(x ^ m, x ^ n), Cond::from(a))
        }
        (Cond::Pred { pred: a, negated: m }, Cond::Pred { pred: b, negated: n }) => {
            let table = if m { complement_input(table, true) } else { table };
            let table = if n { complement_input(table, false) } else { table };
            let at = [(false, false), (false, true), (true, false), (true, true)].map(|(x, y)| table.apply(x, y));
            match at {
                [false, false, false, false] => PredOp::copy(Cond::FALSE),
                [true, true, true, true] => PredOp::copy(Cond::TRUE),
                [false, true, false, true] => PredOp::copy(b.into()),
                [true, false, true, false] => PredOp::copy(Cond::from(b).not()),
                [false, false, true, true] => PredOp::copy(a.into()),
                [true, true, false, false] => PredOp::copy(Cond::from(a).not()),
                _ => PredOp::Logic(table, a.into(), b.into()),
            }
        }
    }
}
