//! Which bits of a register can be set, and which are of interest.
//!
//! Both are facts of a register over all its writes and uses, found by iteration from the optimistic end.
//! Known bits take an undefined register to be anything that suits.

use qwengpu_isa::{
    BinaryOp, ConstIdx, DivisionPart, Extremum, LoadWidth, Signedness, SpecialReg, StoreWidth, Table2, TernaryOp,
    UnaryOp,
};

use crate::ir::{Address, Function, Inst, InstKind, VReg, Value, WordOp};

/// A mask of bits.
pub(crate) type Bits = u32;

/// All bits up to the highest of a mask.
fn fill_down(mask: Bits) -> Bits {
    u32::MAX.checked_shr(mask.leading_zeros()).unwrap_or(0)
}

/// For every register, the bits that may be 1.
pub(crate) struct KnownBits {
    possible: Vec<Bits>,
}

impl KnownBits {
    pub(crate) fn new(func: &Function) -> KnownBits {
        let mut known = KnownBits { possible: vec![0; func.num_vregs] };
        // Masks only grow, and each of 32 bits once; sums fill downwards, which keeps the rounds few.
        let mut changed = true;
        while changed {
            changed = false;
            for inst in func.insts() {
                if let InstKind::Word(dst, op) = &inst.kind {
                    let bits = known.of_op(op);
                    let slot = &mut known.possible[dst.idx()];
                    changed |= bits & !*slot != 0;
                    *slot |= bits;
                }
            }
        }
        known
    }

    /// The bits of a value that may be 1.
    pub(crate) fn of(&self, value: Value) -> Bits {
        match value {
            // A register made after the facts were computed may hold anything.
            Value::Reg(reg) => self.possible.get(reg.idx()).copied().unwrap_or(u32::MAX),
            Value::Imm(imm) => imm,
            Value::Const(idx) if (ConstIdx::NTID_X..=ConstIdx::NTID_Z).contains(&idx) => 0x3f,
            Value::Const(idx) if (ConstIdx::CTAID_X..=ConstIdx::NCTAID_Z).contains(&idx) => 0xff,
            Value::Const(_) | Value::Symbol(..) => u32::MAX,
        }
    }

    /// The largest a value can be, unsigned.
    pub(crate) fn max(&self, value: Value) -> u32 {
        self.of(value)
    }

    /// Whether the value, taken as signed, is never negative.
    pub(crate) fn is_non_negative(&self, value: Value) -> bool {
        self.of(value) >> 31 == 0
    }

    fn of_op(&self, op: &WordOp) -> Bits {
        match op {
            WordOp::Move(a) => self.of(*a),
            // A mask less something within it borrows nothing.
            WordOp::Ternary(TernaryOp::Isub, Value::Imm(mask), b, Value::Imm(0))
                if mask.wrapping_add(1).is_power_of_two() && self.of(*b) & !mask == 0 =>
            {
                *mask
            }
            WordOp::Ternary(kind, a, b, c) => {
                let (a, b, c) = (self.of(*a), self.of(*b), self.of(*c));
                let bound = match kind {
                    TernaryOp::Iadd => u64::from(a) + u64::from(b) + u64::from(c),
                    TernaryOp::Imad => (u64::from(a) * u64::from(b)).saturating_add(u64::from(c)),
                    TernaryOp::Iscadd(shift) => (u64::from(a) << shift.amount()) + u64::from(b) + u64::from(c),
                    TernaryOp::Isub if b == 0 => u64::from(a) + u64::from(c),
                    TernaryOp::Isub => u64::MAX,
                };
                u32::try_from(bound).map_or(u32::MAX, fill_down)
            }
            WordOp::Binary(kind, a, b) => self.of_binary(*kind, *a, *b),
            WordOp::Unary(UnaryOp::Clz | UnaryOp::Popc, _) => 0x3f,
            WordOp::Unary(UnaryOp::Brev, a) => self.of(*a).reverse_bits(),
            WordOp::Select(_, a, b) => self.of(*a) | self.of(*b),
            WordOp::Shuffle(_, a, _) => self.of(*a),
            WordOp::Vote(_) => 0xf,
            WordOp::Special(SpecialReg::LaneId) => 0x3,
            WordOp::Special(SpecialReg::WarpId) => 0x7,
            WordOp::Special(SpecialReg::LinearTid) | WordOp::SmallDivide(DivisionPart::Quotient, ..) => 0x1f,
            // The remainder by 0 is the dividend, below 32 as well.
            WordOp::SmallDivide(DivisionPart::Remainder, ..) => 0x1f,
            WordOp::Divide(Signedness::Unsigned, DivisionPart::Remainder, a, b) => {
                let divisor = self.of(*b);
                match b {
                    Value::Imm(_) => fill_down(divisor.min(self.of(*a))),
                    _ => fill_down(self.of(*a)),
                }
            }
            WordOp::Divide(Signedness::Unsigned, DivisionPart::Quotient, a, Value::Imm(b)) if *b > 0 => {
                fill_down(self.of(*a) / b)
            }
            WordOp::Load(LoadWidth::U8, _) => 0xff,
            WordOp::Load(LoadWidth::U16, _) => 0xffff,
            WordOp::Logic3(..) | WordOp::Divide(..) | WordOp::MulHigh(..) | WordOp::Load(..) => u32::MAX,
            WordOp::Undefined => 0,
        }
    }

    fn of_binary(&self, kind: BinaryOp, a: Value, b: Value) -> Bits {
        let (x, y) = (self.of(a), self.of(b));
        match kind {
            BinaryOp::Lop(Table2::AND) => x & y,
            BinaryOp::Lop(Table2::ANDN) => x,
            BinaryOp::Lop(Table2::OR | Table2::XOR) => x | y,
            BinaryOp::Lop(_) => u32::MAX,
            BinaryOp::Shl => match b {
                Value::Imm(b) => crate::fold::shift_left(x, b),
                _ if x == 0 => 0,
                _ => u32::MAX,
            },
            BinaryOp::Shr(Signedness::Unsigned) => match b {
                Value::Imm(b) => crate::fold::shift_right(Signedness::Unsigned, x, b),
                _ => fill_down(x),
            },
            BinaryOp::Shr(Signedness::Signed) => match b {
                Value::Imm(b) => crate::fold::shift_right(Signedness::Signed, x, b),
                _ => fill_down(x),
            },
            BinaryOp::Imnmx(Extremum::Min, Signedness::Unsigned) => fill_down(x.min(y)),
            BinaryOp::Imnmx(..) => fill_down(x | y),
        }
    }
}

/// For every register, the bits that can make a difference.
pub(crate) struct Demanded {
    wanted: Vec<Bits>,
}

impl Demanded {
    pub(crate) fn new(func: &Function) -> Demanded {
        let mut demanded = Demanded { wanted: vec![0; func.num_vregs] };
        let mut changed = true;
        while changed {
            changed = false;
            // Against the flow of values: what reads a value is seen before what makes it.
            for inst in func.layout.iter().rev().flat_map(|block| func.block(*block).insts.iter().rev()) {
                changed |= demanded.visit(inst);
            }
        }
        demanded
    }

    pub(crate) fn of(&self, reg: VReg) -> Bits {
        self.wanted[reg.idx()]
    }

    fn want(&mut self, value: Value, bits: Bits) -> bool {
        let Some(reg) = value.reg() else { return false };
        let slot = &mut self.wanted[reg.idx()];
        let grew = bits & !*slot != 0;
        *slot |= bits;
        grew
    }

    fn want_address(&mut self, address: Address) -> bool {
        let base = address.base.is_some_and(|reg| self.want(reg.into(), u32::MAX));
        let index = address.index.is_some_and(|reg| self.want(reg.into(), u32::MAX));
        base | index
    }

    fn visit(&mut self, inst: &Inst) -> bool {
        let all = u32::MAX;
        match &inst.kind {
            InstKind::Store(width, address, value) => {
                let bits = match width {
                    StoreWidth::U8 => 0xff,
                    StoreWidth::U16 => 0xffff,
                    StoreWidth::B32 => all,
                };
                let value = self.want(*value, bits);
                value | self.want_address(*address)
            }
            InstKind::Word(dst, op) => self.visit_op(self.wanted[dst.idx()], op),
            InstKind::Pred(..) => {
                inst.regs_read().into_iter().fold(false, |grew, reg| grew | self.want(reg.into(), all))
            }
            InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => false,
        }
    }

    fn visit_op(&mut self, wanted: Bits, op: &WordOp) -> bool {
        let all = u32::MAX;
        if wanted == 0 {
            return false;
        }
        let mut grew = false;
        match op {
            WordOp::Move(a) | WordOp::Shuffle(_, a, Value::Imm(_)) => grew |= self.want(*a, wanted),
            WordOp::Select(_, a, b) => {
                grew |= self.want(*a, wanted);
                grew |= self.want(*b, wanted);
            }
            // Bits of a sum or product depend on bits no higher.
            WordOp::Ternary(_, a, b, c) => {
                for value in [a, b, c] {
                    grew |= self.want(*value, fill_down(wanted));
                }
            }
            WordOp::Binary(BinaryOp::Lop(Table2::AND), a, Value::Imm(mask)) => grew |= self.want(*a, wanted & mask),
            WordOp::Binary(BinaryOp::Lop(_), a, b) => {
                grew |= self.want(*a, wanted);
                grew |= self.want(*b, wanted);
            }
            WordOp::Binary(BinaryOp::Shl, a, Value::Imm(b)) => {
                grew |= self.want(*a, wanted.checked_shr(*b).unwrap_or(0))
            }
            WordOp::Binary(BinaryOp::Shr(sign), a, Value::Imm(b)) => {
                let low = wanted.checked_shl(*b).unwrap_or(0);
                let reaches_fill = crate::fold::shift_right(Signedness::Unsigned, all, *b);
                let fill = if *sign == Signedness::Signed && wanted & !(reaches_fill >> 1) != 0 { 1 << 31 } else { 0 };
                grew |= self.want(*a, low | fill);
            }
            WordOp::Logic3(_, a, b, c) => {
                for value in [a, b, c] {
                    grew |= self.want(*value, wanted);
                }
            }
            WordOp::Load(_, address) => grew |= self.want_address(*address),
            WordOp::Binary(..)
            | WordOp::Unary(..)
            | WordOp::Shuffle(..)
            | WordOp::Vote(_)
            | WordOp::Special(_)
            | WordOp::SmallDivide(..)
            | WordOp::Divide(..)
            | WordOp::MulHigh(..)
            | WordOp::Undefined => {
                for reg in op.regs() {
                    grew |= self.want(reg.into(), all);
                }
            }
        }
        grew
    }
}
