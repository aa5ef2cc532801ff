//! Constructors of instructions, one for each opcode, all under the guard `pt`.

use crate::inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
use crate::modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, ScaleShift, ShuffleMode, Signedness, SpecialReg, StoreWidth, Table2,
    Table3, TrapReason,
};
use crate::operand::{Address, Operand, ShortOperand};
use crate::reg::{Guard, Pc, PredReg, PredSource, Reg};

impl Instruction {
    /// This instruction under another guard.
    #[must_use]
    pub fn guarded(mut self, guard: impl Into<Guard>) -> Self {
        self.guard = guard.into();
        self
    }

    /// `trap.reason`
    #[must_use]
    pub fn trap(reason: TrapReason) -> Self {
        Operation::Trap { reason }.into()
    }

    /// `exit`
    #[must_use]
    pub fn exit() -> Self {
        Operation::Exit.into()
    }

    /// `bra target`
    #[must_use]
    pub fn bra(target: Pc) -> Self {
        Operation::Bra { target }.into()
    }

    /// `brx a`
    #[must_use]
    pub fn brx(a: Reg) -> Self {
        Operation::Brx { a }.into()
    }

    /// `pc = target` in the lanes where `comparison(a, b) && and`
    #[must_use]
    pub fn brc(comparison: Comparison, a: Reg, b: ShortOperand, and: impl Into<PredSource>, target: Pc) -> Self {
        Operation::Brc { comparison, a, b, and: and.into(), target }.into()
    }

    /// `bar`
    #[must_use]
    pub fn bar() -> Self {
        Operation::Bar.into()
    }

    /// `rd = b`, as `b + r0 + r0`.
    #[must_use]
    pub fn mov(rd: Reg, b: impl Into<Operand>) -> Self {
        Self::iadd(rd, Reg::ZERO, b, Reg::ZERO)
    }

    /// `rd = a + b + c`
    #[must_use]
    pub fn iadd(rd: Reg, a: Reg, b: impl Into<Operand>, c: Reg) -> Self {
        Self::ternary(TernaryOp::Iadd, rd, a, b, c)
    }

    /// `rd = a - b + c`
    #[must_use]
    pub fn isub(rd: Reg, a: Reg, b: impl Into<Operand>, c: Reg) -> Self {
        Self::ternary(TernaryOp::Isub, rd, a, b, c)
    }

    /// `rd = a * b + c`
    #[must_use]
    pub fn imad(rd: Reg, a: Reg, b: impl Into<Operand>, c: Reg) -> Self {
        Self::ternary(TernaryOp::Imad, rd, a, b, c)
    }

    /// `rd = (a << shift) + b + c`
    #[must_use]
    pub fn iscadd(shift: ScaleShift, rd: Reg, a: Reg, b: impl Into<Operand>, c: Reg) -> Self {
        Self::ternary(TernaryOp::Iscadd(shift), rd, a, b, c)
    }

    /// An operation on `a`, `b` and `c`.
    #[must_use]
    pub fn ternary(op: TernaryOp, rd: Reg, a: Reg, b: impl Into<Operand>, c: Reg) -> Self {
        Operation::Ternary { op, rd, a, b: b.into(), c }.into()
    }

    /// An operation on `a` and `b`.
    #[must_use]
    pub fn binary(op: BinaryOp, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Operation::Binary { op, rd, a, b: b.into() }.into()
    }

    /// An operation on `b`.
    #[must_use]
    pub fn unary(op: UnaryOp, rd: Reg, b: impl Into<Operand>) -> Self {
        Operation::Unary { op, rd, b: b.into() }.into()
    }

    /// `rd = table(a, b)`, bit by bit.
    #[must_use]
    pub fn lop(table: Table2, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Self::binary(BinaryOp::Lop(table), rd, a, b)
    }

    /// `rd = a << b`
    #[must_use]
    pub fn shl(rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Self::binary(BinaryOp::Shl, rd, a, b)
    }

    /// `rd = a >> b`
    #[must_use]
    pub fn shr(signedness: Signedness, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Self::binary(BinaryOp::Shr(signedness), rd, a, b)
    }

    /// `rd` = the smaller or the larger of `a` and `b`.
    #[must_use]
    pub fn imnmx(extremum: Extremum, signedness: Signedness, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Self::binary(BinaryOp::Imnmx(extremum, signedness), rd, a, b)
    }

    /// `rd = condition ? a : b`
    #[must_use]
    pub fn sel(rd: Reg, a: Reg, b: impl Into<Operand>, condition: impl Into<PredSource>) -> Self {
        Operation::Sel { rd, a, b: b.into(), condition: condition.into() }.into()
    }

    /// `pd = comparison(a, b)`
    #[must_use]
    pub fn setp(comparison: Comparison, pd: PredReg, a: Reg, b: impl Into<Operand>) -> Self {
        Self::setp_and(comparison, pd, a, b, PredSource::TRUE)
    }

    /// `pd = comparison(a, b) && and`
    #[must_use]
    pub fn setp_and(
        comparison: Comparison,
        pd: PredReg,
        a: Reg,
        b: impl Into<Operand>,
        and: impl Into<PredSource>,
    ) -> Self {
        Operation::Setp { comparison, pd, a, b: b.into(), and: and.into() }.into()
    }

    /// `pd = table(p, q)`
    #[must_use]
    pub fn plop(table: Table2, pd: PredReg, p: impl Into<PredSource>, q: impl Into<PredSource>) -> Self {
        Operation::Plop { table, pd, p: p.into(), q: q.into() }.into()
    }

    /// `rd = a` of the source lane.
    #[must_use]
    pub fn shfl(mode: ShuffleMode, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Operation::Shfl { mode, rd, a, b: b.into() }.into()
    }

    /// `rd` = the exec lanes in which the source is true.
    #[must_use]
    pub fn vote(rd: Reg, source: impl Into<PredSource>) -> Self {
        Operation::Vote { rd, source: source.into() }.into()
    }

    /// `rd` = special register.
    #[must_use]
    pub fn s2r(rd: Reg, special: SpecialReg) -> Self {
        Operation::S2r { rd, special }.into()
    }

    /// `rd` = quotient or remainder of `a & 31` by `b & 63`.
    #[must_use]
    pub fn sdiv(part: DivisionPart, rd: Reg, a: Reg, b: impl Into<Operand>) -> Self {
        Operation::Sdiv { part, rd, dividend: Dividend::Register(a), b: b.into() }.into()
    }

    /// `rd` = quotient or remainder of the linear thread id by `b & 63`.
    #[must_use]
    pub fn sdiv_tid(part: DivisionPart, rd: Reg, b: impl Into<Operand>) -> Self {
        Operation::Sdiv { part, rd, dividend: Dividend::LinearTid, b: b.into() }.into()
    }

    /// `rd` = leading zeros of `b`.
    #[must_use]
    pub fn clz(rd: Reg, b: impl Into<Operand>) -> Self {
        Self::unary(UnaryOp::Clz, rd, b)
    }

    /// `rd` = number of ones in `b`.
    #[must_use]
    pub fn popc(rd: Reg, b: impl Into<Operand>) -> Self {
        Self::unary(UnaryOp::Popc, rd, b)
    }

    /// `rd` = bits of `b` in reverse order.
    #[must_use]
    pub fn brev(rd: Reg, b: impl Into<Operand>) -> Self {
        Self::unary(UnaryOp::Brev, rd, b)
    }

    /// `pd` = this lane is the lowest with its value of `a`.
    #[must_use]
    pub fn lead(pd: PredReg, a: Reg) -> Self {
        Operation::Lead { pd, a }.into()
    }

    /// `rd = memory[address]`
    #[must_use]
    pub fn ld(width: LoadWidth, rd: Reg, address: Address) -> Self {
        Operation::Ld { width, rd, address }.into()
    }

    /// `memory[address] = c`
    #[must_use]
    pub fn st(width: StoreWidth, address: Address, c: Reg) -> Self {
        Operation::St { width, address, c }.into()
    }

    /// `rd = table(a, b, c)`, bit by bit.
    #[must_use]
    pub fn lop3(table: Table3, rd: Reg, a: Reg, b: Reg, c: Reg) -> Self {
        Operation::Lop3 { table, rd, a, b, c }.into()
    }
}
