//! Instructions as typed values.
//!
//! An [`Instruction`] is a [`Guard`] and an [`Operation`]. Operations that share a shape of operands share a variant, so
//! an analysis matches on shapes and the arithmetic on the small enums inside. Every value of these types has an
//! encoding; what depends on a machine or a program (sizes, branch targets) is left to [`crate::verify`].

use crate::modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, ScaleShift, ShuffleMode, Signedness, SpecialReg, StoreWidth, Table2,
    Table3, TrapReason,
};
use crate::op::Opcode;
use crate::operand::{Address, Operand, ShortOperand};
use crate::reg::{Guard, Pc, PredReg, PredSource, Reg};

/// An operation on `ra`, operand B and `rc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TernaryOp {
    /// `a + b + c`
    Iadd,
    /// `a - b + c`
    Isub,
    /// `a * b + c`
    Imad,
    /// `(a << s) + b + c`
    Iscadd(ScaleShift),
}

/// An operation on `ra` and operand B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Bitwise function.
    Lop(Table2),
    /// `a << b`; 0 from 32 on.
    Shl,
    /// `a >> b`; from 32 on all bits are the fill.
    Shr(Signedness),
    /// The smaller or the larger.
    Imnmx(Extremum, Signedness),
}

/// An operation on operand B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Number of leading zeros.
    Clz,
    /// Number of ones.
    Popc,
    /// Bits in reverse order.
    Brev,
}

/// What the small division divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dividend {
    /// `a & 31`
    Register(Reg),
    /// The linear thread id.
    LinearTid,
}

/// What an instruction does, with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Faults; the guard must be `pt`.
    Trap {
        /// Why.
        reason: TrapReason,
    },
    /// Ends the lanes.
    Exit,
    /// Branches.
    Bra {
        /// The next instruction.
        target: Pc,
    },
    /// Branches to the instruction whose index is in a register.
    Brx {
        /// Holds the index.
        a: Reg,
    },
    /// Branches in the lanes in which a comparison holds.
    Brc {
        /// The comparison.
        comparison: Comparison,
        /// First operand.
        a: Reg,
        /// Second operand.
        b: ShortOperand,
        /// Anded to the result.
        and: PredSource,
        /// The next instruction.
        target: Pc,
    },
    /// Waits for the CTA; the guard must be `pt`.
    Bar,
    /// An operation on three values.
    Ternary {
        /// Which one.
        op: TernaryOp,
        /// Destination.
        rd: Reg,
        /// First operand.
        a: Reg,
        /// Second operand.
        b: Operand,
        /// Third operand.
        c: Reg,
    },
    /// An operation on two values.
    Binary {
        /// Which one.
        op: BinaryOp,
        /// Destination.
        rd: Reg,
        /// First operand.
        a: Reg,
        /// Second operand.
        b: Operand,
    },
    /// An operation on one value.
    Unary {
        /// Which one.
        op: UnaryOp,
        /// Destination.
        rd: Reg,
        /// Operand.
        b: Operand,
    },
    /// A bitwise function of three registers.
    Lop3 {
        /// The function.
        table: Table3,
        /// Destination.
        rd: Reg,
        /// First operand.
        a: Reg,
        /// Second operand.
        b: Reg,
        /// Third operand.
        c: Reg,
    },
    /// The choice between two values.
    Sel {
        /// Destination.
        rd: Reg,
        /// The value if the condition is true.
        a: Reg,
        /// The value if it is false.
        b: Operand,
        /// The condition.
        condition: PredSource,
    },
    /// A comparison.
    Setp {
        /// The comparison.
        comparison: Comparison,
        /// Destination.
        pd: PredReg,
        /// First operand.
        a: Reg,
        /// Second operand.
        b: Operand,
        /// Anded to the result.
        and: PredSource,
    },
    /// A function of two predicates.
    Plop {
        /// The function.
        table: Table2,
        /// Destination.
        pd: PredReg,
        /// First input.
        p: PredSource,
        /// Second input.
        q: PredSource,
    },
    /// A value of another lane.
    Shfl {
        /// How the source lane is found.
        mode: ShuffleMode,
        /// Destination.
        rd: Reg,
        /// The register read in the source lane.
        a: Reg,
        /// Distance, index or mask.
        b: Operand,
    },
    /// The exec lanes in which a predicate is true.
    Vote {
        /// Destination.
        rd: Reg,
        /// The predicate.
        source: PredSource,
    },
    /// A special register.
    S2r {
        /// Destination.
        rd: Reg,
        /// Which one.
        special: SpecialReg,
    },
    /// The small division.
    Sdiv {
        /// Quotient or remainder.
        part: DivisionPart,
        /// Destination.
        rd: Reg,
        /// What is divided.
        dividend: Dividend,
        /// By what; its low 6 bits count.
        b: Operand,
    },
    /// Whether the lane is the lowest with its value.
    Lead {
        /// Destination.
        pd: PredReg,
        /// The value.
        a: Reg,
    },
    /// A load.
    Ld {
        /// What is read.
        width: LoadWidth,
        /// Destination.
        rd: Reg,
        /// Where from.
        address: Address,
    },
    /// A store.
    St {
        /// What is written.
        width: StoreWidth,
        /// Where to.
        address: Address,
        /// The value.
        c: Reg,
    },
}

/// An operation and the guard it is executed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Lanes whose guard is false skip the operation.
    pub guard: Guard,
    /// The operation.
    pub operation: Operation,
}

impl From<Operation> for Instruction {
    fn from(operation: Operation) -> Self {
        Self { guard: Guard::TRUE, operation }
    }
}

impl Operation {
    /// The opcode.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        match self {
            Self::Trap { .. } => Opcode::Trap,
            Self::Exit => Opcode::Exit,
            Self::Bra { .. } => Opcode::Bra,
            Self::Brx { .. } => Opcode::Brx,
            Self::Brc { .. } => Opcode::Brc,
            Self::Bar => Opcode::Bar,
            Self::Ternary { op, .. } => match op {
                TernaryOp::Iadd => Opcode::Iadd,
                TernaryOp::Isub => Opcode::Isub,
                TernaryOp::Imad => Opcode::Imad,
                TernaryOp::Iscadd(_) => Opcode::Iscadd,
            },
            Self::Binary { op, .. } => match op {
                BinaryOp::Lop(_) => Opcode::Lop,
                BinaryOp::Shl => Opcode::Shl,
                BinaryOp::Shr(_) => Opcode::Shr,
                BinaryOp::Imnmx(..) => Opcode::Imnmx,
            },
            Self::Unary { op, .. } => match op {
                UnaryOp::Clz => Opcode::Clz,
                UnaryOp::Popc => Opcode::Popc,
                UnaryOp::Brev => Opcode::Brev,
            },
            Self::Lop3 { .. } => Opcode::Lop3,
            Self::Sel { .. } => Opcode::Sel,
            Self::Setp { .. } => Opcode::Setp,
            Self::Plop { .. } => Opcode::Plop,
            Self::Shfl { .. } => Opcode::Shfl,
            Self::Vote { .. } => Opcode::Vote,
            Self::S2r { .. } => Opcode::S2r,
            Self::Sdiv { .. } => Opcode::Sdiv,
            Self::Lead { .. } => Opcode::Lead,
            Self::Ld { .. } => Opcode::Ld,
            Self::St { .. } => Opcode::St,
        }
    }

    /// The register written, `r0` included.
    #[must_use]
    pub const fn rd(&self) -> Option<Reg> {
        match *self {
            Self::Ternary { rd, .. }
            | Self::Binary { rd, .. }
            | Self::Unary { rd, .. }
            | Self::Lop3 { rd, .. }
            | Self::Sel { rd, .. }
            | Self::Shfl { rd, .. }
            | Self::Vote { rd, .. }
            | Self::S2r { rd, .. }
            | Self::Sdiv { rd, .. }
            | Self::Ld { rd, .. } => Some(rd),
            Self::Trap { .. }
            | Self::Exit
            | Self::Bra { .. }
            | Self::Brx { .. }
            | Self::Brc { .. }
            | Self::Bar
            | Self::Setp { .. }
            | Self::Plop { .. }
            | Self::Lead { .. }
            | Self::St { .. } => None,
        }
    }

    /// The predicate written, `pt` included.
    #[must_use]
    pub const fn pd(&self) -> Option<PredReg> {
        match *self {
            Self::Setp { pd, .. } | Self::Plop { pd, .. } | Self::Lead { pd, .. } => Some(pd),
            Self::Trap { .. }
            | Self::Exit
            | Self::Bra { .. }
            | Self::Brx { .. }
            | Self::Brc { .. }
            | Self::Bar
            | Self::Ternary { .. }
            | Self::Binary { .. }
            | Self::Unary { .. }
            | Self::Lop3 { .. }
            | Self::Sel { .. }
            | Self::Shfl { .. }
            | Self::Vote { .. }
            | Self::S2r { .. }
            | Self::Sdiv { .. }
            | Self::Ld { .. }
            | Self::St { .. } => None,
        }
    }

    /// The registers in the fields `ra`, `rb`, `rc`, where they are registers.
    #[must_use]
    pub const fn registers_read(&self) -> [Option<Reg>; 3] {
        match *self {
            Self::Trap { .. } | Self::Exit | Self::Bra { .. } | Self::Bar | Self::Plop { .. } | Self::Vote { .. } => {
                [None; 3]
            }
            Self::S2r { .. } => [None; 3],
            Self::Brx { a } | Self::Lead { a, .. } => [Some(a), None, None],
            Self::Ternary { a, b, c, .. } => [Some(a), b.register(), Some(c)],
            Self::Binary { a, b, .. } | Self::Sel { a, b, .. } | Self::Setp { a, b, .. } | Self::Shfl { a, b, .. } => {
                [Some(a), b.register(), None]
            }
            Self::Brc { a, b, .. } => [Some(a), b.widen().register(), None],
            Self::Unary { b, .. } => [None, b.register(), None],
            Self::Lop3 { a, b, c, .. } => [Some(a), Some(b), Some(c)],
            Self::Sdiv { dividend, b, .. } => match dividend {
                Dividend::Register(a) => [Some(a), b.register(), None],
                Dividend::LinearTid => [None, b.register(), None],
            },
            Self::Ld { address, .. } => [Some(address.base), Some(address.index), None],
            Self::St { address, c, .. } => [Some(address.base), Some(address.index), Some(c)],
        }
    }

    /// The predicates read as sources, not counting the guard.
    #[must_use]
    pub const fn predicates_read(&self) -> [Option<PredSource>; 2] {
        match *self {
            Self::Sel { condition, .. } => [Some(condition), None],
            Self::Setp { and, .. } | Self::Brc { and, .. } => [Some(and), None],
            Self::Plop { p, q, .. } => [Some(p), Some(q)],
            Self::Vote { source, .. } => [Some(source), None],
            Self::Trap { .. }
            | Self::Exit
            | Self::Bra { .. }
            | Self::Brx { .. }
            | Self::Bar
            | Self::Ternary { .. }
            | Self::Binary { .. }
            | Self::Unary { .. }
            | Self::Lop3 { .. }
            | Self::Shfl { .. }
            | Self::S2r { .. }
            | Self::Sdiv { .. }
            | Self::Lead { .. }
            | Self::Ld { .. }
            | Self::St { .. } => [None; 2],
        }
    }

    /// The operand B, if it has one.
    #[must_use]
    pub const fn operand_b(&self) -> Option<Operand> {
        match *self {
            Self::Ternary { b, .. }
            | Self::Binary { b, .. }
            | Self::Unary { b, .. }
            | Self::Sel { b, .. }
            | Self::Setp { b, .. }
            | Self::Shfl { b, .. }
            | Self::Sdiv { b, .. } => Some(b),
            Self::Lop3 { b, .. } => Some(Operand::Register(b)),
            Self::Brc { b, .. } => Some(b.widen()),
            Self::Trap { .. }
            | Self::Exit
            | Self::Bra { .. }
            | Self::Brx { .. }
            | Self::Bar
            | Self::Plop { .. }
            | Self::Vote { .. }
            | Self::S2r { .. }
            | Self::Lead { .. }
            | Self::Ld { .. }
            | Self::St { .. } => None,
        }
    }

    /// The same access at another address; operations without an address stay as they are.
    #[must_use]
    pub const fn with_address(self, address: Address) -> Self {
        match self {
            Self::Ld { width, rd, .. } => Self::Ld { width, rd, address },
            Self::St { width, c, .. } => Self::St { width, address, c },
            other => other,
        }
    }

    /// The address, if it is a load or store.
    #[must_use]
    pub const fn address(&self) -> Option<Address> {
        match *self {
            Self::Ld { address, .. } | Self::St { address, .. } => Some(address),
            Self::Trap { .. }
            | Self::Exit
            | Self::Bra { .. }
            | Self::Brx { .. }
            | Self::Brc { .. }
            | Self::Bar
            | Self::Ternary { .. }
            | Self::Binary { .. }
            | Self::Unary { .. }
            | Self::Lop3 { .. }
            | Self::Sel { .. }
            | Self::Setp { .. }
            | Self::Plop { .. }
            | Self::Shfl { .. }
            | Self::Vote { .. }
            | Self::S2r { .. }
            | Self::Sdiv { .. }
            | Self::Lead { .. } => None,
        }
    }
}

impl Instruction {
    /// The opcode.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        self.operation.opcode()
    }

    /// Where it may branch to, if that is in its word.
    #[must_use]
    pub const fn target(&self) -> Option<Pc> {
        match self.operation {
            Operation::Bra { target } | Operation::Brc { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The same branch to another place; other instructions stay as they are.
    #[must_use]
    pub const fn with_target(mut self, to: Pc) -> Self {
        if let Operation::Bra { target } | Operation::Brc { target, .. } = &mut self.operation {
            *target = to;
        }
        self
    }

    /// Whether control can go on at the next instruction: it is no `exit`, `bra`, `brx` or `trap` under `pt`.
    #[must_use]
    pub fn can_fall_through(&self) -> bool {
        let leaves = matches!(self.opcode(), Opcode::Trap | Opcode::Exit | Opcode::Bra | Opcode::Brx);
        !(leaves && self.guard == Guard::TRUE)
    }
}
