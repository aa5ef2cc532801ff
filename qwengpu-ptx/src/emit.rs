//! Allocated IR to machine instructions.

use qwengpu_isa::{self as isa, Instruction, Operation, Pc, PredReg, PredSource, Reg};

use crate::ir::{Address, BlockId, Cond, Function, Inst, InstKind, PredOp, Terminator, VPred, VReg, Value, WordOp};
use crate::regalloc::Allocation;

/// Instructions, the PTX line of each, and the names of branch targets.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) lines: Vec<u32>,
    pub(crate) labels: Vec<(Pc, String)>,
}

/// Emits the blocks in layout order; fails with the instruction that has no machine form (I06).
pub(crate) fn emit(func: &Function, allocation: &Allocation) -> Result<Code, String> {
    let mut emitter = Emitter { func, allocation, code: Code::default(), fixups: Vec::new() };
    let entry = func.entry();
    // A block that only exits is never branched to: the branch is an exit itself.
    let blocks: Vec<BlockId> =
        func.layout.iter().copied().filter(|block| *block == entry || !emitter.only_exits(*block)).collect();
    let mut starts = vec![0usize; func.blocks.len()];
    for (idx, block) in blocks.iter().enumerate() {
        starts[block.idx()] = emitter.code.instructions.len();
        for inst in &func.block(*block).insts {
            emitter.inst(inst)?;
        }
        emitter.terminator(*block, blocks.get(idx + 1).copied());
    }
    let Emitter { mut code, fixups, .. } = emitter;
    let mut targets: Vec<BlockId> = Vec::new();
    for (at, target) in fixups {
        if let Operation::Bra { target: pc } = &mut code.instructions[at].operation {
            *pc = Pc::try_from(starts[target.idx()]).unwrap_or_default();
        }
        targets.push(target);
    }
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        let pc = Pc::try_from(starts[target.idx()]).unwrap_or_default();
        code.labels.push((pc, target.to_string()));
    }
    Ok(code)
}

struct Emitter<'f> {
    func: &'f Function,
    allocation: &'f Allocation,
    code: Code,
    /// Branches and the blocks they go to.
    fixups: Vec<(usize, BlockId)>,
}

impl Emitter<'_> {
    fn only_exits(&self, block: BlockId) -> bool {
        let body = self.func.block(block);
        body.insts.is_empty() && body.terminator == Terminator::Exit
    }

    fn push(&mut self, instruction: Instruction, line: u32) {
        self.code.instructions.push(instruction);
        self.code.lines.push(line);
    }

    fn go(&mut self, cond: Cond, target: BlockId, line: u32) {
        if self.only_exits(target) && target != self.func.entry() {
            self.push(Instruction::exit().guarded(self.pred_source(cond)), line);
            return;
        }
        self.fixups.push((self.code.instructions.len(), target));
        self.push(Instruction::bra(Pc::ENTRY).guarded(self.pred_source(cond)), line);
    }

    fn terminator(&mut self, block: BlockId, next: Option<BlockId>) {
        let body = self.func.block(block);
        let line = body.line;
        match body.terminator {
            // I08: no return is left.
            Terminator::Exit | Terminator::Return => self.push(Instruction::exit(), line),
            Terminator::Jump(target) if Some(target) == next => {}
            Terminator::Jump(target) => self.go(Cond::TRUE, target, line),
            Terminator::Branch(cond, yes, no) if Some(yes) == next => self.go(cond.not(), no, line),
            // A loop goes back with one branch and leaves by falling through.
            Terminator::Branch(cond, yes, no) if Some(no) != next && self.only_exits(yes) => {
                self.go(cond.not(), no, line);
                self.go(Cond::TRUE, yes, line);
            }
            Terminator::Branch(cond, yes, no) => {
                self.go(cond, yes, line);
                if Some(no) != next {
                    self.go(Cond::TRUE, no, line);
                }
            }
        }
    }

    fn reg(&self, reg: VReg) -> Reg {
        self.allocation.reg(reg).unwrap_or(Reg::ZERO)
    }

    fn pred(&self, pred: VPred) -> PredReg {
        self.allocation.pred(pred).unwrap_or(PredReg::PT)
    }

    fn pred_source(&self, cond: Cond) -> PredSource {
        match cond {
            Cond::Fixed(true) => PredSource::TRUE,
            Cond::Fixed(false) => PredSource::FALSE,
            Cond::Pred { pred, negated } => PredSource { index: self.pred(pred), negated },
        }
    }

    /// A register field.
    fn field(&self, value: Value) -> Result<Reg, String> {
        match value {
            Value::Reg(reg) => Ok(self.reg(reg)),
            Value::Imm(0) => Ok(Reg::ZERO),
            Value::Imm(_) | Value::Const(_) | Value::Symbol(..) => Err(format!("{value} in a register field")),
        }
    }

    /// Operand B.
    fn operand(&self, value: Value) -> Result<isa::Operand, String> {
        match value {
            Value::Reg(reg) => Ok(isa::Operand::Register(self.reg(reg))),
            Value::Imm(0) => Ok(isa::Operand::Register(Reg::ZERO)),
            Value::Imm(imm) => Ok(isa::Operand::Immediate(imm)),
            Value::Const(idx) => Ok(isa::Operand::Constant(idx)),
            Value::Symbol(..) => Err(format!("{value} without an address")),
        }
    }

    fn address(&self, address: Address) -> Result<isa::Address, String> {
        Ok(isa::Address {
            base: address.base.map_or(Reg::ZERO, |reg| self.reg(reg)),
            index: address.index.map_or(Reg::ZERO, |reg| self.reg(reg)),
            constant: address.constant,
            offset: isa::Offset::new(address.offset.cast_signed())
                .ok_or_else(|| format!("the offset of {address} in 24 bits"))?,
        })
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), String> {
        let guard = self.pred_source(inst.guard);
        let instruction = match &inst.kind {
            _ if inst.is_undefined() => return Ok(()),
            InstKind::Word(dst, WordOp::Move(Value::Reg(src))) if self.reg(*dst) == self.reg(*src) => return Ok(()),
            InstKind::Word(dst, op) => self.word(self.reg(*dst), op)?,
            InstKind::Pred(dst, op) => match op.as_copy() {
                Some(Cond::Pred { pred, negated: false }) if self.pred(pred) == self.pred(*dst) => return Ok(()),
                _ => self.predicate(self.pred(*dst), op)?,
            },
            InstKind::Store(width, address, value) => {
                Instruction::st(*width, self.address(*address)?, self.field(*value)?)
            }
            InstKind::Barrier => Instruction::bar(),
            InstKind::Trap(reason) => Instruction::trap(*reason),
            InstKind::Call(_) => return Err(format!("`{inst}` as a machine instruction")),
        };
        self.push(instruction.guarded(guard), inst.line);
        Ok(())
    }

    fn word(&self, rd: Reg, op: &WordOp) -> Result<Instruction, String> {
        Ok(match op {
            WordOp::Move(a) => Instruction::mov(rd, self.operand(*a)?),
            WordOp::Ternary(op, a, b, c) => {
                Instruction::ternary(*op, rd, self.field(*a)?, self.operand(*b)?, self.field(*c)?)
            }
            WordOp::Binary(op, a, b) => Instruction::binary(*op, rd, self.field(*a)?, self.operand(*b)?),
            WordOp::Unary(op, b) => Instruction::unary(*op, rd, self.operand(*b)?),
            WordOp::Logic3(table, a, b, c) => {
                Instruction::lop3(*table, rd, self.field(*a)?, self.field(*b)?, self.field(*c)?)
            }
            WordOp::Select(cond, a, b) => {
                Instruction::sel(rd, self.field(*a)?, self.operand(*b)?, self.pred_source(*cond))
            }
            WordOp::Shuffle(mode, a, b) => Instruction::shfl(*mode, rd, self.field(*a)?, self.operand(*b)?),
            WordOp::Vote(cond) => Instruction::vote(rd, self.pred_source(*cond)),
            WordOp::Special(special) => Instruction::s2r(rd, *special),
            WordOp::SmallDivide(part, None, b) => Instruction::sdiv_tid(*part, rd, self.operand(*b)?),
            WordOp::SmallDivide(part, Some(a), b) => Instruction::sdiv(*part, rd, self.field(*a)?, self.operand(*b)?),
            WordOp::Load(width, address) => Instruction::ld(*width, rd, self.address(*address)?),
            WordOp::Divide(..) | WordOp::MulHigh(..) | WordOp::Undefined => {
                return Err(format!("`{op}` as a machine instruction"));
            }
        })
    }

    fn predicate(&self, pd: PredReg, op: &PredOp) -> Result<Instruction, String> {
        Ok(match op {
            PredOp::Compare(comparison, a, b, and) => {
                Instruction::setp_and(*comparison, pd, self.field(*a)?, self.operand(*b)?, self.pred_source(*and))
            }
            PredOp::Logic(table, p, q) => Instruction::plop(*table, pd, self.pred_source(*p), self.pred_source(*q)),
            PredOp::Lead(a) => Instruction::lead(pd, self.field(*a)?),
            PredOp::Undefined => return Err(format!("`{op}` as a machine instruction")),
        })
    }
}
