//! Where the frames of recursive functions lie, and what happens behind the last.
//!
//! Shared memory has more room than a thread's local memory if few threads divide it. How many there are is known
//! at launch: the kernel starts with dividing what its variables leave of shared memory by the number of threads,
//! and takes local memory if that is larger.

use qwengpu_isa::{
    Axis, Comparison, ConstIdx, DivisionPart, LOCAL_BASE, MachineSpec, SpecialReg, TernaryOp, TrapReason,
};

use crate::ir::{
    BlockId, Cond, Function, Inst, InstKind, PredOp, Symbol, SymbolSpace, Terminator, VReg, Value, WordOp,
};

use super::link_routines::{Routine, local_symbols};

/// The largest dividend of the machine's small division.
const MAX_UNITS: u32 = 31;

/// The place of the frames.
#[derive(Debug)]
pub(super) struct Stack {
    /// The register with the address of the running function's frame.
    pub(super) pointer: VReg,
    /// Behind the last byte.
    end: Value,
    /// What the kernel starts with.
    pub(super) start: Vec<Inst>,
    /// Blocks that fault, one for each check, so that the fault names the line.
    pub(super) overflows: Vec<BlockId>,
}

impl Stack {
    /// Ends `block` with a fault if the pointer plus `bytes` lies behind the end, and goes on to `next` if not.
    pub(super) fn check(&mut self, func: &mut Function, block: BlockId, next: BlockId, bytes: u32, line: u32) {
        let over = func.vpred();
        let mut at = self.pointer;
        if bytes > 0 {
            at = func.vreg();
            let op = WordOp::Ternary(TernaryOp::Iadd, self.pointer.into(), Value::Imm(bytes), Value::ZERO);
            func.block_mut(block).insts.push(Inst::word(at, op, line));
        }
        let test = PredOp::Compare(Comparison::GtU, at.into(), self.end, Cond::TRUE);
        let overflow = func.new_block();
        let trap = Inst { guard: Cond::TRUE, kind: InstKind::Trap(TrapReason::StackOverflow), line };
        func.block_mut(overflow).insts.push(trap);
        func.block_mut(overflow).line = line;
        let body = func.block_mut(block);
        body.insts.push(Inst::pred(over, test, line));
        body.terminator = Terminator::Branch(over.into(), overflow, next);
        body.line = line;
        self.overflows.push(overflow);
    }
}

fn word(func: &mut Function, start: &mut Vec<Inst>, op: WordOp) -> Value {
    let dst = func.vreg();
    start.push(Inst::word(dst, op, 0));
    dst.into()
}

/// Bytes of shared memory that the variables leave; none if they move there or have no known size.
fn free_shared(kernel: &Function, routines: &[Routine], spec: &MachineSpec) -> u32 {
    let functions = || std::iter::once(kernel).chain(routines.iter().map(|routine| &routine.func));
    let mut used: Vec<_> = functions().flat_map(Function::insts).flat_map(Inst::symbols).collect();
    used.sort_unstable();
    used.dedup();
    let symbols = || used.iter().map(|id| &kernel.symbols[id.idx()]);
    let moves = local_symbols(kernel).map(|(_, symbol)| symbol.bytes).sum::<u64>() > 4 * u64::from(spec.local_words);
    if moves || symbols().any(|symbol| symbol.space == SymbolSpace::SharedExtern) {
        return 0;
    }
    let shared = symbols().filter(|symbol| symbol.space == SymbolSpace::Shared);
    let taken: u64 = shared.map(|symbol| symbol.bytes.next_multiple_of(4) + u64::from(symbol.align)).sum();
    let all = 4 * u32::from(spec.shared_words);
    all.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)) / 4 * 4
}

/// Makes the stack; its code is for the caller to place.
pub(super) fn place_stack(kernel: &mut Function, routines: &[Routine], align: u32, spec: &MachineSpec) -> Stack {
    let free = free_shared(kernel, routines, spec);
    let mut symbol = |space: SymbolSpace, bytes: u32| {
        kernel.symbol(Symbol { name: "stack".to_owned(), space, bytes: u64::from(bytes), align, line: 0 })
    };
    let local = Value::Symbol(symbol(SymbolSpace::Stack, 0), 0);
    let local_bytes = 4 * u32::from(spec.local_words);
    let local_end = Value::Imm(LOCAL_BASE + local_bytes);
    // Each thread gets a whole number of units.
    let unit = free.div_ceil(MAX_UNITS).next_multiple_of(align);
    let mut start = Vec::new();
    if free / 2 < local_bytes {
        let pointer = kernel.vreg();
        start.push(Inst::word(pointer, WordOp::Move(local), 0));
        return Stack { pointer, end: local_end, start, overflows: Vec::new() };
    }
    let units = (free - (align - 4)) / unit;
    let region = symbol(SymbolSpace::PerThread, units * unit);
    let extent = |axis| Value::Const(ConstIdx::ntid(axis));
    let product = |a, b| WordOp::Ternary(TernaryOp::Imad, a, b, Value::ZERO);
    let sum = |a, b| WordOp::Ternary(TernaryOp::Iadd, a, b, Value::ZERO);
    let rows = word(kernel, &mut start, product(extent(Axis::Y), extent(Axis::Z)));
    let threads = word(kernel, &mut start, product(rows, extent(Axis::X)));
    let share = WordOp::SmallDivide(DivisionPart::Quotient, Some(Value::Imm(units)), threads);
    let share = word(kernel, &mut start, share);
    let bytes = word(kernel, &mut start, product(share, Value::Imm(unit)));
    let thread = word(kernel, &mut start, WordOp::Special(SpecialReg::LinearTid));
    let offset = word(kernel, &mut start, product(thread, bytes));
    let first = word(kernel, &mut start, sum(offset, Value::Symbol(region, 0)));
    let last = word(kernel, &mut start, sum(first, bytes));
    let roomy = kernel.vpred();
    let test = PredOp::Compare(Comparison::GtU, bytes, Value::Imm(local_bytes), Cond::TRUE);
    start.push(Inst::pred(roomy, test, 0));
    let (pointer, end) = (kernel.vreg(), kernel.vreg());
    start.push(Inst::word(pointer, WordOp::Select(roomy.into(), first, local), 0));
    start.push(Inst::word(end, WordOp::Select(roomy.into(), last, local_end), 0));
    Stack { pointer, end: end.into(), start, overflows: Vec::new() }
}
