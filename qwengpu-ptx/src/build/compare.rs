//! Comparisons and selections.

use qwengpu_isa::{Comparison, Relation, Signedness, Table2};

use crate::ast::{Instruction, Operand, ScalarType, TypeClass};
use crate::error::Result;
use crate::ir::{Cond, PredOp, VPred, Value};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};

/// The relation of a comparison; `None` for its signedness means the type's.
const RELATIONS: &[(&str, (Relation, Option<Signedness>))] = &[
    ("eq", (Relation::Eq, None)),
    ("ne", (Relation::Ne, None)),
    ("lt", (Relation::Lt, None)),
    ("le", (Relation::Le, None)),
    ("gt", (Relation::Gt, None)),
    ("ge", (Relation::Ge, None)),
    ("lo", (Relation::Lt, Some(Signedness::Unsigned))),
    ("ls", (Relation::Le, Some(Signedness::Unsigned))),
    ("hi", (Relation::Gt, Some(Signedness::Unsigned))),
    ("hs", (Relation::Ge, Some(Signedness::Unsigned))),
];

/// Relations of floats that are not integers' too.
const FLOAT_RELATIONS: &[(&str, ())] =
    &[("equ", ()), ("neu", ()), ("ltu", ()), ("leu", ()), ("gtu", ()), ("geu", ()), ("num", ()), ("nan", ())];

const COMBINATIONS: &[(&str, Table2)] = &[("and", Table2::AND), ("or", Table2::OR), ("xor", Table2::XOR)];

impl<'m> Builder<'m> {
    /// The comparison of `set` and `setp`, before any combination.
    fn comparison(
        &mut self,
        relation: (Relation, Option<Signedness>),
        ty: ScalarType,
        a: &Operand,
        b: &Operand,
    ) -> Result<Cond> {
        let (relation, fixed) = relation;
        let sign = fixed.unwrap_or(if ty.is_signed() { Signedness::Signed } else { Signedness::Unsigned });
        if ty.bits() == 64 {
            let a = self.read(a, ty, Fit::Exact)?;
            let b = self.read(b, ty, Fit::Exact)?;
            return Ok(self.compare_wide(relation, sign, a, b));
        }
        let equality = matches!(relation, Relation::Eq | Relation::Ne);
        let signed = sign == Signedness::Signed && !equality;
        let mut read = |operand: &Operand| -> Result<Value> {
            let value = self.read_word(operand, ty)?;
            Ok(if signed { self.sign_extend(value, ty.bits()) } else { value })
        };
        let (a, b) = (read(a)?, read(b)?);
        Ok(self.relate(relation, sign, a, b))
    }

    pub(super) fn setp(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        if mods.choice(FLOAT_RELATIONS).is_some() {
            return Err(mods.float());
        }
        let relation = mods.required("a comparison", RELATIONS)?;
        let combination = mods.choice(COMBINATIONS);
        let ty = mods.int_type()?;
        let ops = operands(inst, &[if combination.is_some() { 4 } else { 3 }])?;
        let holds = self.comparison(relation, ty, &ops[1], &ops[2])?;
        let (first, second) = match combination {
            None => (holds, holds.not()),
            Some(table) => {
                let with = self.read_pred(&ops[3])?;
                let first = self.combine(table, holds, with);
                let second = match &ops[0] {
                    Operand::Pair(..) => self.combine(table, holds.not(), with),
                    _ => Cond::FALSE,
                };
                (first, second)
            }
        };
        match &ops[0] {
            Operand::Pair(p, q) => {
                let p = self.pred_destination(p)?;
                let q = self.pred_destination(q)?;
                self.assign_preds(&[(p, first), (q, second)]);
            }
            operand => {
                let p = self.pred_destination(operand)?;
                self.assign_preds(&[(p, first)]);
            }
        }
        Ok(())
    }

    fn combine(&mut self, table: Table2, holds: Cond, with: Cond) -> Cond {
        self.cond(PredOp::Logic(table, holds, with))
    }

    /// Assigns predicates at once: neither the guard nor a source sees a new value.
    pub(super) fn assign_preds(&mut self, assignments: &[(Option<VPred>, Cond)]) {
        let several = assignments.len() > 1;
        let detach = |s: &mut Self, cond: Cond| match cond {
            Cond::Pred { pred, negated } if several => {
                let copy = s.func.vpred();
                s.push(Cond::TRUE, crate::ir::InstKind::Pred(copy, PredOp::copy(pred.into())));
                Cond::from(copy).negated_if(negated)
            }
            Cond::Pred { .. } | Cond::Fixed(_) => cond,
        };
        let guard = self.guard;
        self.guard = detach(self, guard);
        let values: Vec<Cond> = assignments.iter().map(|(_, cond)| detach(self, *cond)).collect();
        for ((dst, _), cond) in assignments.iter().zip(values) {
            if let Some(dst) = dst {
                self.assign_pred(*dst, cond);
            }
        }
        self.guard = guard;
    }

    /// `set`: all ones or 0.
    pub(super) fn set(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        if mods.choice(FLOAT_RELATIONS).is_some() {
            return Err(mods.float());
        }
        let relation = mods.required("a comparison", RELATIONS)?;
        let combination = mods.choice(COMBINATIONS);
        let to = mods.int_type()?;
        let ty = mods.int_type()?;
        let ops = operands(inst, &[if combination.is_some() { 4 } else { 3 }])?;
        let mut holds = self.comparison(relation, ty, &ops[1], &ops[2])?;
        if let Some(table) = combination {
            let with = self.read_pred(&ops[3])?;
            holds = self.combine(table, holds, with);
        }
        let value = self.select(holds, Value::Imm(u32::MAX), Value::ZERO);
        self.write(&ops[0], to, value, value)
    }

    pub(super) fn selp(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let ty = mods.any_type()?;
        if ty.class() == TypeClass::Predicate || ty.bits() > 64 {
            return Err(mods.invalid("it selects values of 16, 32 or 64 bits"));
        }
        let ops = operands(inst, &[4])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let b = self.read(&ops[2], ty, Fit::Exact)?;
        let cond = self.read_pred(&ops[3])?;
        let low = self.select(cond, a.0, b.0);
        let high = self.select(cond, a.1, b.1);
        self.write(&ops[0], ty, low, high)
    }

    /// `c >= 0 ? a : b`
    pub(super) fn slct(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let ty = mods.any_type()?;
        let by = mods.int_type()?;
        if by != ScalarType::S32 || ty.bits() > 64 {
            return Err(mods.invalid("it selects by an `.s32`"));
        }
        let ops = operands(inst, &[4])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let b = self.read(&ops[2], ty, Fit::Exact)?;
        let c = self.read_word(&ops[3], by)?;
        let cond = self.compare(Comparison::GeS, c, Value::ZERO);
        let low = self.select(cond, a.0, b.0);
        let high = self.select(cond, a.1, b.1);
        self.write(&ops[0], ty, low, high)
    }
}
