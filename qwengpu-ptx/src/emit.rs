//! Allocated IR to machine instructions.

use qwengpu_isa::{self as isa, Instruction, Pc, PredReg, PredSource, Reg, ShortOperand};

use crate::analysis::{Cfg, Defs};
use crate::fold::complement;
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
    let defs = Defs::new(func, &Cfg::new(func));
    let mut emitter = Emitter { func, allocation, defs, code: Code::default(), fixups: Vec::new() };
    let entry = func.entry();
    // A block that only exits is never branched to: the branch is an exit itself.
    let blocks: Vec<BlockId> =
        func.layout.iter().copied().filter(|block| *block == entry || !emitter.only_exits(*block)).collect();
    let mut starts = vec![0usize; func.blocks.len()];
    for (idx, block) in blocks.iter().enumerate() {
        starts[block.idx()] = emitter.code.instructions.len();
        let branches = emitter.branches(*block, blocks.get(idx + 1).copied());
        let compared = branches.first().and_then(|first| emitter.compared(*block, first));
        for (number, inst) in func.block(*block).insts.iter().enumerate() {
            if compared.is_none_or(|(compare, _)| number != compare) {
                emitter.inst(inst)?;
            }
        }
        emitter.terminator(*block, &branches, compared.map(|(_, branch)| branch));
    }
    let Emitter { mut code, fixups, .. } = emitter;
    let mut targets: Vec<BlockId> = Vec::new();
    for (at, target) in fixups {
        let pc = Pc::try_from(starts[target.idx()]).unwrap_or_default();
        code.instructions[at] = code.instructions[at].with_target(pc);
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
    defs: Defs,
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

    /// Whether a branch to a block is an exit itself.
    fn is_exit(&self, target: BlockId) -> bool {
        self.only_exits(target) && target != self.func.entry()
    }

    /// The branches at the end of a block, in their order; those to the next block are left out.
    fn branches(&self, block: BlockId, next: Option<BlockId>) -> Vec<(Cond, BlockId)> {
        match self.func.block(block).terminator {
            Terminator::Exit | Terminator::Return => Vec::new(),
            Terminator::Jump(target) if Some(target) == next => Vec::new(),
            Terminator::Jump(target) => vec![(Cond::TRUE, target)],
            Terminator::Branch(cond, yes, no) if Some(yes) == next => vec![(cond.not(), no)],
            Terminator::Branch(cond, yes, no) if Some(no) == next => vec![(cond, yes)],
            // A loop goes back with one branch and leaves by falling through.
            Terminator::Branch(cond, yes, no) if self.only_exits(yes) => vec![(cond.not(), no), (Cond::TRUE, yes)],
            Terminator::Branch(cond, yes, no) => vec![(cond, yes), (Cond::TRUE, no)],
        }
    }

    /// The comparison that a branch decides by, as an index, and the branch that compares, if nothing else reads the
    /// predicate and the operands are still there at the end of the block. The target is set later.
    fn compared(&self, block: BlockId, &(cond, target): &(Cond, BlockId)) -> Option<(usize, Instruction)> {
        let Cond::Pred { pred, negated } = cond else { return None };
        if self.is_exit(target) || self.defs.num_pred_uses(pred) != 1 {
            return None;
        }
        let insts = &self.func.block(block).insts;
        let number = insts.iter().rposition(|inst| inst.pred_written() == Some(pred))?;
        let InstKind::Pred(_, PredOp::Compare(comparison, a, b, and)) = insts[number].kind else { return None };
        if insts[number].guard != Cond::TRUE || negated && and != Cond::TRUE {
            return None;
        }
        let a = self.field(a).ok()?;
        let b = ShortOperand::new(self.operand(b).ok()?)?;
        let and = self.pred_source(and);
        for later in &insts[number + 1..] {
            let overwritten = later.reg_written().map(|reg| self.reg(reg));
            if overwritten.is_some_and(|reg| reg == a || Some(reg) == b.widen().register())
                || later.pred_written().is_some_and(|pred| self.pred(pred) == and.index)
            {
                return None;
            }
        }
        let comparison = if negated { complement(comparison) } else { comparison };
        Some((number, Instruction::brc(comparison, a, b, and, Pc::ENTRY)))
    }

    /// Ends a block with its branches, the first of which may compare.
    fn terminator(&mut self, block: BlockId, branches: &[(Cond, BlockId)], mut compared: Option<Instruction>) {
        let body = self.func.block(block);
        let line = body.line;
        // I08: no return is left.
        if matches!(body.terminator, Terminator::Exit | Terminator::Return) {
            self.push(Instruction::exit(), line);
        }
        for &(cond, target) in branches {
            let guard = self.pred_source(cond);
            if self.is_exit(target) {
                self.push(Instruction::exit().guarded(guard), line);
                continue;
            }
            self.fixups.push((self.code.instructions.len(), target));
            let plain = Instruction::bra(Pc::ENTRY).guarded(guard);
            self.push(compared.take().unwrap_or(plain), line);
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
