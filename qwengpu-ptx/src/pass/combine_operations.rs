//! Two operations become one, or one becomes simpler, by what is known of its operands.
//!
//! Rewrites are in place: the instruction keeps its destination and reads further back. What it no longer
//! reads is removed by `eliminate_dead`. Every rewrite gives the very same value, so that facts about one
//! instruction outlive the rewriting of another. An operand's operation is taken in when the new instruction costs no
//! more than the old one; a product or sum read elsewhere too stays where it is.

use qwengpu_isa::{
    BinaryOp, Comparison, ConstIdx, DivisionPart, ScaleShift, Signedness, StoreWidth, Table2, Table3, TernaryOp,
};

use crate::analysis::{Cfg, Defs, KnownBits};
use crate::fold::{complement, fold_pred, fold_word, shift_left};
use crate::ir::{Cond, Function, InstKind, InstRef, PredOp, Value, WordOp};

/// What a rewrite may look at.
struct Context<'f> {
    func: &'f Function,
    defs: &'f Defs,
    known: &'f KnownBits,
    at: InstRef,
}

pub(crate) fn combine_operations(func: &mut Function) {
    let cfg = Cfg::new(func);
    let known = KnownBits::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            let at = InstRef { block, pos };
            let context = Context { func, defs: &defs, known: &known, at };
            let inst = &func.block(block).insts[pos];
            let kind = match &inst.kind {
                InstKind::Word(dst, op) => context.word(op).map(|op| InstKind::Word(*dst, fold_word(op))),
                InstKind::Pred(dst, op) => context.pred(op).map(|op| InstKind::Pred(*dst, fold_pred(op))),
                InstKind::Store(width, address, value) => {
                    context.stored(*width, *value).map(|value| InstKind::Store(*width, *address, value))
                }
                InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => None,
            };
            if let Some(kind) = kind {
                func.block_mut(block).insts[pos].kind = kind;
            }
        }
    }
}

fn sum(a: Value, b: Value, c: Value) -> WordOp {
    WordOp::Ternary(TernaryOp::Iadd, a, b, c)
}

impl Context<'_> {
    /// The operation behind a value, if it can be read at this place.
    fn source(&self, value: Value) -> Option<&WordOp> {
        self.defs.source(self.func, value.reg()?, self.at)
    }

    /// As [`Context::source`], only if nothing else reads the value.
    fn only_source(&self, value: Value) -> Option<&WordOp> {
        if self.defs.num_uses(value.reg()?) == 1 { self.source(value) } else { None }
    }

    fn pred_source(&self, cond: Cond) -> Option<&PredOp> {
        self.defs.pred_source(self.func, cond.pred()?, self.at)
    }

    fn word(&self, op: &WordOp) -> Option<WordOp> {
        match op {
            WordOp::Ternary(kind, a, b, c) => self.ternary(*kind, *a, *b, *c),
            WordOp::Binary(kind, a, b) => self.binary(*kind, *a, *b),
            WordOp::Divide(sign, part, a, b) => self.divide(*sign, *part, *a, *b),
            WordOp::MulHigh(sign, a, b) => {
                let bits = |value| 32 - self.known.of(value).leading_zeros();
                if bits(*a) + bits(*b) <= 32 && self.known.is_non_negative(*a) && self.known.is_non_negative(*b) {
                    return Some(WordOp::Move(Value::ZERO));
                }
                let unsigned =
                    *sign == Signedness::Signed && self.known.is_non_negative(*a) && self.known.is_non_negative(*b);
                unsigned.then_some(WordOp::MulHigh(Signedness::Unsigned, *a, *b))
            }
            WordOp::Select(cond, a, b) => match (self.source(*a), self.source(*b)) {
                // A choice made by the same condition is already made.
                (Some(WordOp::Select(inner, x, _)), _) if inner == cond => Some(WordOp::Select(*cond, *x, *b)),
                (_, Some(WordOp::Select(inner, _, y))) if inner == cond => Some(WordOp::Select(*cond, *a, *y)),
                _ => None,
            },
            WordOp::Move(_)
            | WordOp::Unary(..)
            | WordOp::Logic3(..)
            | WordOp::Shuffle(..)
            | WordOp::Vote(_)
            | WordOp::Special(_)
            | WordOp::SmallDivide(..)
            | WordOp::Load(..)
            | WordOp::Undefined => None,
        }
    }

    fn ternary(&self, kind: TernaryOp, a: Value, b: Value, c: Value) -> Option<WordOp> {
        match kind {
            TernaryOp::Iadd => self.add(a, b, c),
            TernaryOp::Isub => self.subtract(a, b, c),
            TernaryOp::Imad => match (self.only_source(a), b) {
                (Some(WordOp::Binary(BinaryOp::Shl, x, Value::Imm(s))), Value::Imm(m)) => {
                    Some(WordOp::Ternary(kind, *x, Value::Imm(shift_left(m, *s)), c))
                }
                (Some(WordOp::Ternary(TernaryOp::Imad, x, Value::Imm(n), Value::Imm(0))), Value::Imm(m)) => {
                    Some(WordOp::Ternary(kind, *x, Value::Imm(n.wrapping_mul(m)), c))
                }
                _ => None,
            },
            TernaryOp::Iscadd(scale) => match self.only_source(a) {
                Some(WordOp::Binary(BinaryOp::Shl, x, Value::Imm(s))) => {
                    let total = u8::try_from(*s).ok()?.checked_add(scale.amount())?;
                    Some(WordOp::Ternary(TernaryOp::Iscadd(ScaleShift::new(total)?), *x, b, c))
                }
                _ => None,
            },
        }
    }

    fn add(&self, a: Value, b: Value, c: Value) -> Option<WordOp> {
        let terms: Vec<Value> = [a, b, c].into_iter().filter(|v| *v != Value::ZERO).collect();
        if let [x, y, z] = terms[..] {
            // With a constant among three terms, an inner sum may swallow it.
            for (value, p, q) in [(x, y, z), (y, x, z), (z, x, y)] {
                let (reg, fixed) = if p.reg().is_some() { (p, q) } else { (q, p) };
                if let Some(WordOp::Ternary(TernaryOp::Iadd, m, n @ Value::Imm(_), Value::Imm(0))) = self.source(value)
                    && let (Value::Imm(k), Value::Imm(l)) = (fixed, *n)
                {
                    return Some(sum(*m, Value::Imm(k.wrapping_add(l)), reg));
                }
            }
            return None;
        }
        let [x, y] = terms[..] else { return None };
        for (value, other) in [(x, y), (y, x)] {
            match self.source(value) {
                Some(WordOp::Binary(BinaryOp::Shl, p, Value::Imm(s))) => {
                    if let Some(scale) = u8::try_from(*s).ok().and_then(ScaleShift::new) {
                        return Some(WordOp::Ternary(TernaryOp::Iscadd(scale), *p, other, Value::ZERO));
                    }
                }
                Some(WordOp::Ternary(TernaryOp::Isub, Value::Imm(0), q, Value::Imm(0))) => {
                    return Some(WordOp::Ternary(TernaryOp::Isub, other, *q, Value::ZERO));
                }
                // A sum with a constant takes in another constant for nothing.
                Some(WordOp::Ternary(TernaryOp::Iadd, p, q, Value::Imm(0)))
                    if other.reg().is_none()
                        && q.reg().is_none()
                        && matches!((q, other), (Value::Imm(_), _) | (_, Value::Imm(_))) =>
                {
                    return Some(sum(*p, *q, other));
                }
                _ => {}
            }
            match self.only_source(value) {
                Some(WordOp::Ternary(TernaryOp::Imad, p, q, Value::Imm(0))) => {
                    return Some(WordOp::Ternary(TernaryOp::Imad, *p, *q, other));
                }
                Some(WordOp::Ternary(inner @ (TernaryOp::Iadd | TernaryOp::Isub), p, q, Value::Imm(0)))
                    if [*p, *q, other].iter().filter(|v| v.reg().is_none()).count() <= 1 =>
                {
                    return Some(WordOp::Ternary(*inner, *p, *q, other));
                }
                Some(WordOp::Ternary(inner @ TernaryOp::Iscadd(_), p, q, Value::Imm(0)))
                    if q.reg().is_some() || other.reg().is_some() =>
                {
                    return Some(WordOp::Ternary(*inner, *p, *q, other));
                }
                _ => {}
            }
        }
        None
    }

    fn subtract(&self, a: Value, b: Value, c: Value) -> Option<WordOp> {
        if let (Value::Imm(limit), Value::Imm(0)) = (a, c)
            && limit.wrapping_add(1).is_power_of_two()
            && self.known.of(b) & !limit == 0
        {
            // Below a mask, subtraction from it borrows nothing.
            return Some(WordOp::Binary(BinaryOp::Lop(Table2::XOR), b, a));
        }
        if c != Value::ZERO {
            return None;
        }
        match self.source(b) {
            Some(WordOp::Ternary(TernaryOp::Isub, Value::Imm(0), q, Value::Imm(0))) => return Some(sum(a, *q, c)),
            Some(WordOp::Ternary(TernaryOp::Imad, p, Value::Imm(m), Value::Imm(0)))
                if self.defs.num_uses(b.reg()?) == 1 =>
            {
                return Some(WordOp::Ternary(TernaryOp::Imad, *p, Value::Imm(m.wrapping_neg()), a));
            }
            Some(WordOp::Ternary(TernaryOp::Iadd, p, Value::Imm(m), Value::Imm(0)))
                if self.defs.num_uses(b.reg()?) == 1 && a.reg().is_none() =>
            {
                let rest = sum(a, Value::Imm(m.wrapping_neg()), Value::ZERO);
                if let WordOp::Move(rest @ Value::Imm(_)) = fold_word(rest) {
                    return Some(WordOp::Ternary(TernaryOp::Isub, rest, *p, Value::ZERO));
                }
            }
            _ => {}
        }
        match self.only_source(a) {
            Some(WordOp::Ternary(TernaryOp::Iadd, p, q, Value::Imm(0)))
                if [*p, *q, b].iter().filter(|v| v.reg().is_none()).count() <= 1 && p.reg().is_some() =>
            {
                let (outer, inner) = if q.reg().is_some() { (*q, *p) } else { (*p, *q) };
                (inner.reg().is_some() || inner == Value::ZERO).then_some(WordOp::Ternary(
                    TernaryOp::Isub,
                    outer,
                    b,
                    inner,
                ))
            }
            _ => None,
        }
    }

    fn binary(&self, kind: BinaryOp, a: Value, b: Value) -> Option<WordOp> {
        let shr = BinaryOp::Shr(Signedness::Unsigned);
        let and = BinaryOp::Lop(Table2::AND);
        if let (BinaryOp::Lop(Table2::AND), Value::Imm(mask)) = (kind, b)
            && self.known.of(a) & !mask == 0
        {
            return Some(WordOp::Move(a));
        }
        match (kind, self.source(a), b) {
            (BinaryOp::Shl, Some(WordOp::Binary(BinaryOp::Shl, x, Value::Imm(j))), Value::Imm(k)) => {
                Some(WordOp::Binary(kind, *x, Value::Imm(j.saturating_add(k))))
            }
            (BinaryOp::Shl, Some(WordOp::Ternary(TernaryOp::Imad, x, Value::Imm(m), Value::Imm(0))), Value::Imm(k)) => {
                Some(WordOp::Ternary(TernaryOp::Imad, *x, Value::Imm(shift_left(*m, k)), Value::ZERO))
            }
            (BinaryOp::Shl, Some(WordOp::Binary(BinaryOp::Lop(Table2::AND), x, Value::Imm(mask))), Value::Imm(k))
                if shift_left(!mask, k) == 0 =>
            {
                Some(WordOp::Binary(kind, *x, b))
            }
            (BinaryOp::Shl, Some(WordOp::Ternary(TernaryOp::Iadd, x, Value::Imm(m), Value::Imm(0))), Value::Imm(k))
                if self.defs.num_uses(a.reg()?) == 1 =>
            {
                let scale = u8::try_from(k).ok().and_then(ScaleShift::new)?;
                Some(WordOp::Ternary(TernaryOp::Iscadd(scale), *x, Value::Imm(shift_left(*m, k)), Value::ZERO))
            }
            (BinaryOp::Shr(sign), Some(WordOp::Binary(BinaryOp::Shr(inner), x, Value::Imm(j))), Value::Imm(k))
                if sign == *inner =>
            {
                Some(WordOp::Binary(kind, *x, Value::Imm(j.saturating_add(k))))
            }
            (BinaryOp::Shr(sign), Some(WordOp::Binary(BinaryOp::Shl, x, Value::Imm(j))), Value::Imm(k)) if *j == k => {
                let kept = u32::MAX.checked_shr(k).unwrap_or(0);
                match sign {
                    Signedness::Unsigned => Some(WordOp::Binary(and, *x, Value::Imm(kept))),
                    // Already of the narrow type, and not negative.
                    Signedness::Signed if self.known.of(*x) & !(kept >> 1) == 0 => Some(WordOp::Move(*x)),
                    Signedness::Signed => None,
                }
            }
            (BinaryOp::Shr(Signedness::Signed), _, _) if self.known.is_non_negative(a) => {
                Some(WordOp::Binary(shr, a, b))
            }
            (BinaryOp::Shr(Signedness::Unsigned), _, Value::Imm(k)) if self.known.max(a).checked_shr(k) == Some(0) => {
                Some(WordOp::Move(Value::ZERO))
            }
            (
                BinaryOp::Lop(Table2::AND),
                Some(WordOp::Binary(BinaryOp::Lop(Table2::AND), x, Value::Imm(m))),
                Value::Imm(mask),
            ) => Some(WordOp::Binary(kind, *x, Value::Imm(m & mask))),
            (BinaryOp::Lop(table), ..) => self.logic(table, a, b),
            _ => None,
        }
    }

    /// A bitwise function of another one: three registers make a `lop3`.
    fn logic(&self, table: Table2, a: Value, b: Value) -> Option<WordOp> {
        for (inner, other, swap) in [(a, b, false), (b, a, true)] {
            let Some(WordOp::Binary(BinaryOp::Lop(first), x, y)) = self.only_source(inner) else { continue };
            let outer = |i: bool, o: bool| if swap { table.apply(o, i) } else { table.apply(i, o) };
            if *first == Table2::NOT && *x == Value::ZERO {
                let combined = (0..4u8).filter(|row| outer(row & 2 == 0, row & 1 != 0)).fold(0, |t, row| t | 1 << row);
                return Table2::new(combined).map(|t| WordOp::Binary(BinaryOp::Lop(t), *y, other));
            }
            if x.reg().is_some() && y.reg().is_some() && other.reg().is_some() {
                let row_value = |row: &u8| outer(first.apply(row & 4 != 0, row & 2 != 0), row & 1 != 0);
                let combined = (0..8u8).filter(row_value).fold(0, |t, row| t | 1 << row);
                return Some(WordOp::Logic3(Table3::new(combined), *x, *y, other));
            }
        }
        None
    }

    fn divide(&self, sign: Signedness, part: DivisionPart, a: Value, b: Value) -> Option<WordOp> {
        if sign == Signedness::Signed && self.known.is_non_negative(a) && self.known.is_non_negative(b) {
            return Some(WordOp::Divide(Signedness::Unsigned, part, a, b));
        }
        if sign == Signedness::Signed {
            return None;
        }
        let below = match b {
            Value::Imm(b) => self.known.max(a) < b,
            Value::Reg(_) | Value::Const(_) | Value::Symbol(..) => false,
        };
        if below {
            return Some(WordOp::Move(if part == DivisionPart::Quotient { Value::ZERO } else { a }));
        }
        let small_divisor = match b {
            Value::Imm(b) => (1..64).contains(&b),
            // A CTA has at least one and at most 32 threads along an axis.
            Value::Const(idx) => (ConstIdx::NTID_X..=ConstIdx::NTID_Z).contains(&idx),
            Value::Reg(_) | Value::Symbol(..) => false,
        };
        if self.known.max(a) < 32 && small_divisor {
            return Some(WordOp::SmallDivide(part, Some(a), b));
        }
        None
    }

    fn stored(&self, width: StoreWidth, value: Value) -> Option<Value> {
        let bits = match width {
            StoreWidth::U8 => 0xff,
            StoreWidth::U16 => 0xffff,
            StoreWidth::B32 => u32::MAX,
        };
        match self.source(value)? {
            WordOp::Binary(BinaryOp::Lop(Table2::AND), x, Value::Imm(mask)) if mask & bits == bits => Some(*x),
            _ => None,
        }
    }

    fn pred(&self, op: &PredOp) -> Option<PredOp> {
        match op {
            PredOp::Compare(comparison, a, b, and) => self.compare(*comparison, *a, *b, *and),
            PredOp::Logic(Table2::AND, p, q) => self.conjunction(*p, *q),
            PredOp::Lead(a) => self.leader_key(*a).map(PredOp::Lead),
            PredOp::Logic(..) | PredOp::Undefined => None,
        }
    }

    /// What tells addresses apart as well as an address does: only equality matters to `lead`.
    fn leader_key(&self, address: Value) -> Option<Value> {
        match self.source(address) {
            None if matches!(address, Value::Const(_) | Value::Symbol(..)) => Some(Value::ZERO),
            None => None,
            Some(WordOp::Ternary(TernaryOp::Iadd, x, y, Value::Imm(0))) if y.reg().is_none() => Some(*x),
            Some(WordOp::Ternary(TernaryOp::Iscadd(scale), x, y, Value::Imm(0)))
                if y.reg().is_none() && self.known.of(*x).leading_zeros() >= u32::from(scale.amount()) =>
            {
                Some(*x)
            }
            Some(WordOp::Binary(BinaryOp::Shl, x, Value::Imm(k))) if self.known.of(*x).leading_zeros() >= *k => {
                Some(*x)
            }
            Some(_) => None,
        }
    }

    fn compare(&self, comparison: Comparison, a: Value, b: Value, and: Cond) -> Option<PredOp> {
        let equality = matches!(comparison, Comparison::Eq | Comparison::Ne);
        if let Value::Imm(limit) = b {
            let largest = self.known.max(a);
            let decided = match comparison {
                Comparison::LtU if largest < limit => Some(true),
                Comparison::LeU if largest <= limit => Some(true),
                Comparison::GeU if largest < limit => Some(false),
                Comparison::GtU if largest <= limit => Some(false),
                Comparison::Eq if limit & !largest != 0 => Some(false),
                Comparison::Ne if limit & !largest != 0 => Some(true),
                _ => None,
            };
            if let Some(decided) = decided {
                return Some(PredOp::copy(if decided { and } else { Cond::FALSE }));
            }
        }
        match (self.source(a), b) {
            (Some(WordOp::Select(cond, Value::Imm(yes), Value::Imm(no))), Value::Imm(b)) => {
                let yes = comparison.holds(*yes, b);
                let no = comparison.holds(*no, b);
                let table = (0..4u8)
                    .filter(|row| row & 1 != 0 && if row & 2 != 0 { yes } else { no })
                    .fold(0, |table, row| table | 1 << row);
                Table2::new(table).map(|table| PredOp::Logic(table, *cond, and))
            }
            (Some(WordOp::Ternary(TernaryOp::Isub, x, y, Value::Imm(0))), Value::Imm(0)) if equality => {
                Some(PredOp::Compare(comparison, *x, *y, and))
            }
            (Some(WordOp::Ternary(TernaryOp::Iadd, x, Value::Imm(k), Value::Imm(0))), Value::Imm(b)) if equality => {
                Some(PredOp::Compare(comparison, *x, Value::Imm(b.wrapping_sub(*k)), and))
            }
            (Some(WordOp::Binary(BinaryOp::Lop(Table2::XOR), x, y)), Value::Imm(0)) if equality => {
                Some(PredOp::Compare(comparison, *x, *y, and))
            }
            _ => None,
        }
    }

    /// `p and q` with a comparison behind one of them: the comparison takes the other in.
    fn conjunction(&self, p: Cond, q: Cond) -> Option<PredOp> {
        for (compared, other) in [(p, q), (q, p)] {
            let Cond::Pred { pred, negated } = compared else { continue };
            if self.defs.num_pred_uses(pred) != 1 {
                continue;
            }
            if let Some(PredOp::Compare(comparison, a, b, Cond::Fixed(true))) = self.pred_source(compared) {
                let comparison = if negated { complement(*comparison) } else { *comparison };
                return Some(PredOp::Compare(comparison, *a, *b, other));
            }
        }
        None
    }
}
