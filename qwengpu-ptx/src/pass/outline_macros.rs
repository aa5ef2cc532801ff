//! Long expansions that several places share become routines.
//!
//! A division by a word takes 15 to 22 instructions in place, a high product 13 to 20; a call of a routine takes
//! about seven, and runs them all. So this is for kernels that do not fit otherwise.

use std::collections::BTreeMap;

use qwengpu_isa::{DivisionPart, LoadWidth, Signedness, StoreWidth};

use crate::ir::{
    Address, Cond, Function, Inst, InstKind, RoutineId, Symbol, SymbolId, SymbolSpace, Terminator, VReg, Value, WordOp,
};

use super::Routine;

/// Fewest uses of an operation that make it a routine.
const MIN_USES: usize = 3;

/// An operation without its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    MulHigh { signed: bool },
    Divide { signed: bool, remainder: bool },
}

/// A routine for a shape: its number, and the words of its operands and its result.
#[derive(Debug, Clone, Copy)]
struct Outlined {
    id: RoutineId,
    words: [SymbolId; 3],
}

impl Shape {
    /// The shape and the operands of an instruction that a call can replace.
    fn of(inst: &Inst) -> Option<(Shape, VReg, Value, Value)> {
        if inst.guard != Cond::TRUE {
            return None;
        }
        let InstKind::Word(dst, op) = &inst.kind else { return None };
        match *op {
            WordOp::MulHigh(sign, a, b) => Some((Shape::MulHigh { signed: sign == Signedness::Signed }, *dst, a, b)),
            // A number has a reciprocal.
            WordOp::Divide(sign, part, a, b) if b.imm().is_none() => {
                let (signed, remainder) = (sign == Signedness::Signed, part == DivisionPart::Remainder);
                Some((Shape::Divide { signed, remainder }, *dst, a, b))
            }
            _ => None,
        }
    }

    fn operation(self, a: Value, b: Value) -> WordOp {
        let sign = |signed| if signed { Signedness::Signed } else { Signedness::Unsigned };
        match self {
            Shape::MulHigh { signed } => WordOp::MulHigh(sign(signed), a, b),
            Shape::Divide { signed, remainder } => {
                let part = if remainder { DivisionPart::Remainder } else { DivisionPart::Quotient };
                WordOp::Divide(sign(signed), part, a, b)
            }
        }
    }

    fn title(self) -> &'static str {
        match self {
            Shape::MulHigh { .. } => "high product",
            Shape::Divide { .. } => "division",
        }
    }
}

fn load(dst: VReg, word: SymbolId, line: u32) -> Inst {
    Inst::word(dst, WordOp::Load(LoadWidth::B32, Address::of(Value::Symbol(word, 0))), line)
}

fn store(word: SymbolId, value: Value, line: u32) -> Inst {
    let kind = InstKind::Store(StoreWidth::B32, Address::of(Value::Symbol(word, 0)), value);
    Inst { guard: Cond::TRUE, kind, line }
}

/// Replaces the operations in the kernel and its routines, to which it adds.
pub(crate) fn outline_macros(kernel: &mut Function, routines: &mut Vec<Routine>) {
    let mut uses: BTreeMap<Shape, usize> = BTreeMap::new();
    let functions = std::iter::once(&*kernel).chain(routines.iter().map(|routine| &routine.func));
    for inst in functions.flat_map(Function::insts) {
        if let Some((shape, ..)) = Shape::of(inst) {
            *uses.entry(shape).or_default() += 1;
        }
    }
    uses.retain(|_, count| *count >= MIN_USES);
    let mut outlined: BTreeMap<Shape, Outlined> = BTreeMap::new();
    for (shape, number) in uses.into_keys().zip(routines.len()..) {
        let name = shape.title();
        let symbol = Symbol { name: name.to_owned(), space: SymbolSpace::Transfer, bytes: 4, align: 4, line: 0 };
        let words = [(); 3].map(|()| {
            routines.iter_mut().for_each(|routine| routine.func.symbols.push(symbol.clone()));
            kernel.symbol(symbol.clone())
        });
        outlined.insert(shape, Outlined { id: RoutineId::new(number), words });
    }
    replace(kernel, &outlined);
    for routine in &mut *routines {
        replace(&mut routine.func, &outlined);
    }
    for (shape, Outlined { id, words: [a, b, result] }) in outlined {
        let mut func = Function::new(shape.title());
        func.symbols.clone_from(&kernel.symbols);
        let block = func.new_block();
        func.layout.push(block);
        let [left, right, value] = [(); 3].map(|()| func.vreg());
        let body = func.block_mut(block);
        body.insts = vec![
            load(left, a, 0),
            load(right, b, 0),
            Inst::word(value, shape.operation(left.into(), right.into()), 0),
            store(result, value.into(), 0),
        ];
        body.terminator = Terminator::Return;
        routines.push(Routine { func, group: id.idx() });
    }
}

fn replace(func: &mut Function, outlined: &BTreeMap<Shape, Outlined>) {
    for block in func.layout.clone() {
        let mut made = Vec::new();
        for inst in std::mem::take(&mut func.block_mut(block).insts) {
            let call = Shape::of(&inst).and_then(|(shape, dst, a, b)| Some((outlined.get(&shape)?, dst, a, b)));
            let Some((Outlined { id, words: [to_a, to_b, result] }, dst, a, b)) = call else {
                made.push(inst);
                continue;
            };
            let line = inst.line;
            let call = Inst { guard: Cond::TRUE, kind: InstKind::Call(*id), line };
            made.extend([store(*to_a, a, line), store(*to_b, b, line), call, load(dst, *result, line)]);
        }
        func.block_mut(block).insts = made;
    }
}
