//! Random instructions.

use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use crate::inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
use crate::modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, ScaleShift, ShuffleMode, Signedness, SpecialReg, StoreWidth, Table2,
    Table3, TrapReason,
};
use crate::operand::{Address, Offset, Operand, ShortOperand};
use crate::reg::{ConstIdx, Guard, Pc, PredReg, PredSource, Reg};

/// Any register.
pub fn register() -> impl Strategy<Value = Reg> + Clone {
    select(Reg::ALL.as_slice())
}

/// Any predicate, `pt` included.
fn predicate() -> impl Strategy<Value = PredReg> + Clone {
    (0..8u8).prop_filter_map("index is below 8", PredReg::new)
}

/// Any predicate source; true in about half of the cases.
pub fn predicate_source() -> impl Strategy<Value = PredSource> + Clone {
    prop_oneof![Just(PredSource::TRUE), (0..16u8).prop_filter_map("field is below 16", PredSource::from_field),]
}

/// Any 32-bit value; small numbers, single bits and the edges of the number ranges are frequent.
pub fn immediate() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        4 => 0..64u32,
        2 => any::<u32>(),
        1 => (0..64u32).prop_map(u32::wrapping_neg),
        1 => (0..32u32).prop_map(|bit| 1 << bit),
        1 => select([0x7fff_ffff, 0x8000_0000, 0xffff, 0x1_0000, 0x0010_0000, 0x0020_0000].as_slice()),
    ]
}

fn constant() -> impl Strategy<Value = ConstIdx> + Clone {
    prop_oneof![0..4u8, 117..126u8, 0..128u8].prop_filter_map("index is below 128", ConstIdx::new)
}

/// Any operand B.
pub fn operand() -> impl Strategy<Value = Operand> + Clone {
    prop_oneof![
        2 => register().prop_map(Operand::Register),
        2 => immediate().prop_map(Operand::Immediate),
        1 => constant().prop_map(Operand::Constant),
    ]
}

/// Any operand B beside a branch target.
pub(super) fn short_operand() -> impl Strategy<Value = ShortOperand> + Clone {
    prop_oneof![
        2 => register().prop_map(ShortOperand::Register),
        1 => (0..64u16).prop_map(ShortOperand::Immediate),
        1 => any::<u16>().prop_map(ShortOperand::Immediate),
        1 => constant().prop_map(ShortOperand::Constant),
    ]
}

/// Any comparison.
pub(super) fn comparison() -> impl Strategy<Value = Comparison> + Clone {
    select(Comparison::ALL.as_slice())
}

fn signedness() -> impl Strategy<Value = Signedness> + Clone {
    prop_oneof![Just(Signedness::Unsigned), Just(Signedness::Signed)]
}

fn table2() -> impl Strategy<Value = Table2> + Clone {
    (0..16u8).prop_filter_map("table is below 16", Table2::new)
}

fn address() -> impl Strategy<Value = Address> + Clone {
    let offset = prop_oneof![Just(0), 0..512i32, Offset::MIN..=Offset::MAX];
    let offset = offset.prop_filter_map("offset has 24 bits", Offset::new);
    (register(), register(), option::of(constant()), offset).prop_map(|(base, index, constant, offset)| Address {
        base,
        index,
        constant,
        offset,
    })
}

fn ternary_op() -> impl Strategy<Value = TernaryOp> + Clone {
    prop_oneof![
        Just(TernaryOp::Iadd),
        Just(TernaryOp::Isub),
        Just(TernaryOp::Imad),
        (1..=4u8).prop_filter_map("amount is in 1..=4", ScaleShift::new).prop_map(TernaryOp::Iscadd),
    ]
}

fn binary_op() -> impl Strategy<Value = BinaryOp> + Clone {
    let extremum = prop_oneof![Just(Extremum::Min), Just(Extremum::Max)];
    prop_oneof![
        table2().prop_map(BinaryOp::Lop),
        Just(BinaryOp::Shl),
        signedness().prop_map(BinaryOp::Shr),
        (extremum, signedness()).prop_map(|(extremum, signedness)| BinaryOp::Imnmx(extremum, signedness)),
    ]
}

/// Any operation that goes on at the next instruction and does not touch memory.
fn arithmetic() -> impl Strategy<Value = Operation> + Clone {
    let unary = prop_oneof![Just(UnaryOp::Clz), Just(UnaryOp::Popc), Just(UnaryOp::Brev)];
    let dividend = prop_oneof![register().prop_map(Dividend::Register), Just(Dividend::LinearTid)];
    let (r, p) = (register, predicate_source);
    prop_oneof![
        4 => (ternary_op(), r(), r(), operand(), r())
            .prop_map(|(op, rd, a, b, c)| Operation::Ternary { op, rd, a, b, c }),
        4 => (binary_op(), r(), r(), operand()).prop_map(|(op, rd, a, b)| Operation::Binary { op, rd, a, b }),
        3 => (unary, r(), operand()).prop_map(|(op, rd, b)| Operation::Unary { op, rd, b }),
        1 => (any::<u8>(), r(), r(), r(), r())
            .prop_map(|(table, rd, a, b, c)| Operation::Lop3 { table: Table3::new(table), rd, a, b, c }),
        1 => (r(), r(), operand(), p()).prop_map(|(rd, a, b, condition)| Operation::Sel { rd, a, b, condition }),
        3 => (comparison(), predicate(), r(), operand(), p())
            .prop_map(|(comparison, pd, a, b, and)| Operation::Setp { comparison, pd, a, b, and }),
        1 => (table2(), predicate(), p(), p()).prop_map(|(table, pd, p, q)| Operation::Plop { table, pd, p, q }),
        2 => (select(ShuffleMode::ALL), r(), r(), operand())
            .prop_map(|(mode, rd, a, b)| Operation::Shfl { mode, rd, a, b }),
        1 => (r(), p()).prop_map(|(rd, source)| Operation::Vote { rd, source }),
        1 => (r(), select(SpecialReg::ALL)).prop_map(|(rd, special)| Operation::S2r { rd, special }),
        2 => (select(DivisionPart::ALL), r(), dividend, operand())
            .prop_map(|(part, rd, dividend, b)| Operation::Sdiv { part, rd, dividend, b }),
        1 => (predicate(), r()).prop_map(|(pd, a)| Operation::Lead { pd, a }),
    ]
}

/// Any instruction that goes on at the next one and does not touch memory.
pub fn straight_instruction() -> impl Strategy<Value = Instruction> + Clone {
    (predicate_source(), arithmetic()).prop_map(|(guard, operation)| Instruction { guard, operation })
}

/// Any instruction that has an encoding, with branch targets below `targets`, which must not be 0.
pub fn instruction(targets: u16) -> impl Strategy<Value = Instruction> + Clone {
    let memory = prop_oneof![
        (select(LoadWidth::ALL), register(), address()).prop_map(|(width, rd, address)| Operation::Ld {
            width,
            rd,
            address
        }),
        (select(StoreWidth::ALL), address(), register()).prop_map(|(width, address, c)| Operation::St {
            width,
            address,
            c
        }),
    ];
    let control = prop_oneof![
        1 => select(&TrapReason::ALL[..]).prop_map(|reason| Operation::Trap { reason }),
        2 => Just(Operation::Exit),
        4 => (0..targets).prop_map(|target| Operation::Bra { target: Pc::new(target) }),
        1 => register().prop_map(|a| Operation::Brx { a }),
        3 => (comparison(), register(), short_operand(), predicate_source(), 0..targets).prop_map(
            |(comparison, a, b, and, target)| Operation::Brc { comparison, a, b, and, target: Pc::new(target) }
        ),
        1 => Just(Operation::Bar),
    ];
    let operation = prop_oneof![12 => arithmetic(), 2 => memory, 3 => control];
    (predicate_source(), operation).prop_map(|(guard, operation)| {
        let instruction = Instruction { guard, operation };
        if instruction.opcode().allows_guard() { instruction } else { instruction.guarded(Guard::TRUE) }
    })
}
