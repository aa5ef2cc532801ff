//! The fields of an instruction word, and instructions to words.
//!
//! | bits     | field                                                       |
//! |----------|-------------------------------------------------------------|
//! | 0 .. 6   | opcode                                                      |
//! | 6 .. 9   | guard predicate (7 = `pt`)                                  |
//! | 9        | guard negated                                               |
//! | 10 .. 14 | `rd`, or `pd`                                               |
//! | 14 .. 18 | `ra`                                                        |
//! | 18 .. 22 | `rb`                                                        |
//! | 22 .. 26 | `rc`                                                        |
//! | 26 .. 32 | modifier: `b_kind` in the low two bits, `sub` in the others |
//! | 32 .. 64 | `imm`                                                       |

use crate::inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
use crate::modifier::{Extremum, Signedness};
use crate::operand::{Address, Operand};
use crate::reg::{PredReg, PredSource, Reg};

/// The fields of an instruction word, before they mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fields {
    /// 6 bits.
    pub opcode: u8,
    /// 4 bits: the guard as a predicate source.
    pub guard: u8,
    /// 4 bits.
    pub rd: u8,
    /// 4 bits.
    pub ra: u8,
    /// 4 bits.
    pub rb: u8,
    /// 4 bits.
    pub rc: u8,
    /// 2 bits: the kind of operand B; bit 0 says whether an address has a constant.
    pub b_kind: u8,
    /// 4 bits: specific to the opcode.
    pub sub: u8,
    /// 32 bits.
    pub imm: u32,
}

/// `b_kind` of a register.
pub const B_REGISTER: u8 = 0;
/// `b_kind` of an immediate.
pub const B_IMMEDIATE: u8 = 1;
/// `b_kind` of a constant word.
pub const B_CONSTANT: u8 = 2;

/// Bits of `imm` below the target of a `brc`: those of its operand B.
pub const TARGET_SHIFT: u32 = 16;

impl Fields {
    /// The fields of a word. Every word has fields.
    #[must_use]
    pub fn unpack(word: u64) -> Self {
        // Every mask is at most six bits wide, so nothing is lost in the byte.
        let field = |low: u32, width: u32| (word >> low & ((1 << width) - 1)).to_le_bytes()[0];
        let [.., i0, i1, i2, i3] = word.to_le_bytes();
        Self {
            opcode: field(0, 6),
            guard: field(6, 4),
            rd: field(10, 4),
            ra: field(14, 4),
            rb: field(18, 4),
            rc: field(22, 4),
            b_kind: field(26, 2),
            sub: field(28, 4),
            imm: u32::from_le_bytes([i0, i1, i2, i3]),
        }
    }

    /// The word of the fields.
    #[must_use]
    pub fn pack(self) -> u64 {
        u64::from(self.opcode)
            | u64::from(self.guard) << 6
            | u64::from(self.rd) << 10
            | u64::from(self.ra) << 14
            | u64::from(self.rb) << 18
            | u64::from(self.rc) << 22
            | u64::from(self.b_kind) << 26
            | u64::from(self.sub) << 28
            | u64::from(self.imm) << 32
    }

    fn rd(self, reg: Reg) -> Self {
        Self { rd: reg.index(), ..self }
    }

    fn pd(self, pred: PredReg) -> Self {
        Self { rd: pred.index(), ..self }
    }

    fn a(self, reg: Reg) -> Self {
        Self { ra: reg.index(), ..self }
    }

    fn b(self, operand: Operand) -> Self {
        match operand {
            Operand::Register(reg) => Self { rb: reg.index(), ..self },
            Operand::Immediate(imm) => Self { b_kind: B_IMMEDIATE, imm, ..self },
            Operand::Constant(index) => Self { b_kind: B_CONSTANT, imm: u32::from(index.get()), ..self },
        }
    }

    fn c(self, reg: Reg) -> Self {
        Self { rc: reg.index(), ..self }
    }

    fn c_pred(self, source: PredSource) -> Self {
        Self { rc: source.field(), ..self }
    }

    fn sub(self, sub: u8) -> Self {
        Self { sub, ..self }
    }

    fn address(self, address: Address) -> Self {
        let [o0, o1, o2, _] = address.offset.get().to_le_bytes();
        let k = address.constant.map_or(0, |index| index.get());
        Self {
            ra: address.base.index(),
            rb: address.index.index(),
            b_kind: u8::from(address.constant.is_some()),
            imm: u32::from_le_bytes([o0, o1, o2, k]),
            ..self
        }
    }
}

impl Instruction {
    /// The fields of the word.
    #[must_use]
    pub fn fields(&self) -> Fields {
        let f = Fields { opcode: self.opcode().number(), guard: self.guard.field(), ..Fields::default() };
        match self.operation {
            Operation::Trap { reason } => f.sub(reason.field()),
            Operation::Exit | Operation::Bar => f,
            Operation::Bra { target } => Fields { imm: u32::from(target.get()), ..f },
            Operation::Brx { a } => f.a(a),
            Operation::Brc { comparison, a, b, and, target } => {
                let f = f.a(a).b(b.widen()).c_pred(and).sub(comparison.field());
                Fields { imm: f.imm | u32::from(target.get()) << TARGET_SHIFT, ..f }
            }
            Operation::Ternary { op, rd, a, b, c } => f.rd(rd).a(a).b(b).c(c).sub(match op {
                TernaryOp::Iadd | TernaryOp::Isub | TernaryOp::Imad => 0,
                TernaryOp::Iscadd(shift) => shift.amount(),
            }),
            Operation::Binary { op, rd, a, b } => f.rd(rd).a(a).b(b).sub(match op {
                BinaryOp::Lop(table) => table.bits(),
                BinaryOp::Shl => 0,
                BinaryOp::Shr(signedness) => u8::from(signedness == Signedness::Signed),
                BinaryOp::Imnmx(extremum, signedness) => {
                    u8::from(extremum == Extremum::Max) | u8::from(signedness == Signedness::Signed) << 1
                }
            }),
            Operation::Unary { op: UnaryOp::Clz | UnaryOp::Popc | UnaryOp::Brev, rd, b } => f.rd(rd).b(b),
            Operation::Lop3 { table, rd, a, b, c } => {
                Fields { imm: u32::from(table.bits()), ..f.rd(rd).a(a).b(Operand::Register(b)).c(c) }
            }
            Operation::Sel { rd, a, b, condition } => f.rd(rd).a(a).b(b).c_pred(condition),
            Operation::Setp { comparison, pd, a, b, and } => f.pd(pd).a(a).b(b).c_pred(and).sub(comparison.field()),
            Operation::Plop { table, pd, p, q } => {
                Fields { ra: p.field(), rb: q.field(), ..f.pd(pd).sub(table.bits()) }
            }
            Operation::Shfl { mode, rd, a, b } => f.rd(rd).a(a).b(b).sub(mode.field()),
            Operation::Vote { rd, source } => f.rd(rd).c_pred(source),
            Operation::S2r { rd, special } => f.rd(rd).sub(special.field()),
            Operation::Sdiv { part, rd, dividend, b } => {
                let f = f.rd(rd).b(b);
                match dividend {
                    Dividend::Register(a) => f.a(a).sub(part.field()),
                    Dividend::LinearTid => f.sub(part.field() | 2),
                }
            }
            Operation::Lead { pd, a } => f.pd(pd).a(a),
            Operation::Ld { width, rd, address } => f.rd(rd).address(address).sub(width.field()),
            Operation::St { width, address, c } => f.address(address).c(c).sub(width.field()),
        }
    }

    /// The word.
    #[must_use]
    pub fn encode(&self) -> u64 {
        self.fields().pack()
    }
}
