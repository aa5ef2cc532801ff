//! Special registers.

use qwengpu_isa::{Axis, ConstIdx, DivisionPart, SpecialReg};

use crate::ast::{Modifier, Name};
use crate::error::{PtxError, Result};
use crate::ir::{Value, WordOp};

use super::Builder;

/// Lanes of a warp: `WARP_SZ`.
pub(super) const WARP_LANES: u32 = 4;

impl Builder<'_> {
    /// The value of a special register.
    pub(super) fn special(&mut self, name: &Name, component: Option<&Modifier>) -> Result<Value> {
        let axis = match component.map(|c| c.text.as_str()) {
            None => None,
            Some("x") => Some(Axis::X),
            Some("y") => Some(Axis::Y),
            Some("z") => Some(Axis::Z),
            Some(other) => {
                return Err(PtxError::invalid(
                    name.span,
                    format!("{}.{other}", name.text),
                    "special registers have the elements x, y, z",
                ));
            }
        };
        Ok(match (name.text.as_str(), axis) {
            ("%tid", Some(axis)) => self.thread_id(axis),
            ("%ntid", Some(axis)) => Value::Const(ConstIdx::ntid(axis)),
            ("%ctaid", Some(axis)) => Value::Const(ConstIdx::ctaid(axis)),
            ("%nctaid", Some(axis)) => Value::Const(ConstIdx::nctaid(axis)),
            ("%laneid", None) => self.word(WordOp::Special(SpecialReg::LaneId)),
            ("%warpid", None) => self.word(WordOp::Special(SpecialReg::WarpId)),
            ("%nwarpid", None) => {
                let yz = self.mul_const(Axis::Y, Value::Const(ConstIdx::NTID_Z));
                let threads = self.mul_const(Axis::X, yz);
                let rounded = self.add(threads, Value::Imm(WARP_LANES - 1));
                self.shr_u(rounded, Value::Imm(WARP_LANES.trailing_zeros()))
            }
            ("%smid" | "%gridid", None) => Value::ZERO,
            ("%nsmid", None) => Value::ONE,
            ("%lanemask_eq", None) => self.lane_bit(),
            ("%lanemask_lt", None) => {
                let bit = self.lane_bit();
                self.add(bit, Value::Imm(u32::MAX))
            }
            ("%lanemask_le", None) => {
                let lane = self.word(WordOp::Special(SpecialReg::LaneId));
                let next = self.shl(Value::Imm(2), lane);
                self.add(next, Value::Imm(u32::MAX))
            }
            ("%lanemask_ge", None) => {
                let lane = self.word(WordOp::Special(SpecialReg::LaneId));
                self.shl(Value::Imm(u32::MAX), lane)
            }
            ("%lanemask_gt", None) => {
                let lane = self.word(WordOp::Special(SpecialReg::LaneId));
                self.shl(Value::Imm(u32::MAX - 1), lane)
            }
            ("%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo", None) => self.read_clock(),
            // No launch counts that far.
            ("%clock_hi" | "%globaltimer_hi", None) => Value::ZERO,
            ("%tid" | "%ntid" | "%ctaid" | "%nctaid", None) => {
                return Err(PtxError::unsupported(
                    name.span,
                    &name.text,
                    "a whole vector; name one element, as in `%tid.x`",
                ));
            }
            (_, Some(_)) if !name.text.contains("cluster") => {
                return Err(PtxError::invalid(name.span, &name.text, "this special register has no elements"));
            }
            _ => {
                return Err(PtxError::unsupported(
                    name.span,
                    &name.text,
                    "a special register this machine does not have; compile for sm_75 without clusters",
                ));
            }
        })
    }

    fn mul_const(&mut self, axis: Axis, by: Value) -> Value {
        self.mul(by, Value::Const(ConstIdx::ntid(axis)))
    }

    fn lane_bit(&mut self) -> Value {
        let lane = self.word(WordOp::Special(SpecialReg::LaneId));
        self.shl(Value::ONE, lane)
    }

    fn thread_id(&mut self, axis: Axis) -> Value {
        let quotient = DivisionPart::Quotient;
        let remainder = DivisionPart::Remainder;
        let extent = |axis| Value::Const(ConstIdx::ntid(axis));
        if axis == Axis::X {
            return self.word(WordOp::SmallDivide(remainder, None, extent(Axis::X)));
        }
        let row = self.word(WordOp::SmallDivide(quotient, None, extent(Axis::X)));
        let part = if axis == Axis::Y { remainder } else { quotient };
        self.word(WordOp::SmallDivide(part, Some(row), extent(Axis::Y)))
    }
}
