//! Functions, blocks, variables.

use super::entities::{BlockId, SymbolId, VPred, VReg};
use super::inst::{Inst, InstKind, PredOp, WordOp};
use super::value::{Cond, Value};

/// Where control goes at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminator {
    /// On to a block.
    Jump(BlockId),
    /// To the first block if the condition holds, else to the second.
    Branch(Cond, BlockId, BlockId),
    /// The thread ends.
    Exit,
    /// A routine's caller goes on; gone once routines are linked.
    Return,
}

impl Terminator {
    pub(crate) fn successors(self) -> impl Iterator<Item = BlockId> {
        let (first, second) = match self {
            Terminator::Jump(target) => (Some(target), None),
            Terminator::Branch(_, yes, no) => (Some(yes), Some(no)),
            Terminator::Exit | Terminator::Return => (None, None),
        };
        first.into_iter().chain(second)
    }

    pub(crate) fn map_targets(self, map: impl Fn(BlockId) -> BlockId) -> Terminator {
        match self {
            Terminator::Jump(target) => Terminator::Jump(map(target)),
            Terminator::Branch(cond, yes, no) => Terminator::Branch(cond, map(yes), map(no)),
            Terminator::Exit => Terminator::Exit,
            Terminator::Return => Terminator::Return,
        }
    }

    pub(crate) fn cond(self) -> Option<Cond> {
        match self {
            Terminator::Branch(cond, ..) => Some(cond),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Return => None,
        }
    }
}

/// A basic block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) insts: Vec<Inst>,
    pub(crate) terminator: Terminator,
    /// The PTX line of the terminator; 0 for none.
    pub(crate) line: u32,
}

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolSpace {
    /// Global memory, with initial bytes; also PTX's `.const`.
    Static,
    /// Global memory defined in some other module.
    Extern,
    /// Shared memory.
    Shared,
    /// Shared memory of a size known only at launch.
    SharedExtern,
    /// A thread's local memory.
    Local,
    /// Shared memory with a copy of the variable for each thread.
    PerThread,
    /// The kernel's parameters, in the constant bank.
    Param,
    /// A word of an argument or a result on its way between routines; a register once they are linked.
    Transfer,
    /// Where the frames of routines begin in a thread's local memory.
    Stack,
}

/// A variable in memory.
#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) space: SymbolSpace,
    pub(crate) bytes: u64,
    pub(crate) align: u32,
    /// The PTX line of the declaration.
    pub(crate) line: u32,
}

/// A kernel on its way to machine code.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Every block ever made; those not in `layout` are no part of the function.
    pub(crate) blocks: Vec<Block>,
    /// The blocks of the function, entry first.
    pub(crate) layout: Vec<BlockId>,
    pub(crate) symbols: Vec<Symbol>,
    /// Whether the lanes of a warp wait somewhere for what the others do to memory.
    pub(crate) orders_warps: bool,
    pub(crate) num_vregs: usize,
    pub(crate) num_vpreds: usize,
    /// Whether routines are part of the code; the layout is kept from then on.
    pub(crate) is_linked: bool,
}

impl Function {
    pub(crate) fn new(name: &str) -> Function {
        Function {
            name: name.to_owned(),
            blocks: Vec::new(),
            layout: Vec::new(),
            symbols: Vec::new(),
            orders_warps: false,
            num_vregs: 0,
            num_vpreds: 0,
            is_linked: false,
        }
    }

    pub(crate) fn vreg(&mut self) -> VReg {
        self.num_vregs += 1;
        VReg::new(self.num_vregs - 1)
    }

    pub(crate) fn vpred(&mut self) -> VPred {
        self.num_vpreds += 1;
        VPred::new(self.num_vpreds - 1)
    }

    /// A new empty block that exits; it is not yet in the layout.
    pub(crate) fn new_block(&mut self) -> BlockId {
        self.blocks.push(Block { insts: Vec::new(), terminator: Terminator::Exit, line: 0 });
        BlockId::new(self.blocks.len() - 1)
    }

    pub(crate) fn symbol(&mut self, symbol: Symbol) -> SymbolId {
        self.symbols.push(symbol);
        SymbolId::new(self.symbols.len() - 1)
    }

    pub(crate) fn entry(&self) -> BlockId {
        self.layout.first().copied().unwrap_or(BlockId::new(0))
    }

    pub(crate) fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.idx()]
    }

    pub(crate) fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.idx()]
    }

    /// Instructions of the function, terminators counted as one each.
    pub(crate) fn num_insts(&self) -> usize {
        let count = |id: &BlockId| self.block(*id).insts.len() + 1;
        self.layout.iter().map(count).sum()
    }

    /// Whether the blocks are those of another function; PTX lines may differ.
    pub(crate) fn has_code_of(&self, other: &Function) -> bool {
        let same_inst = |(a, b): (&Inst, &Inst)| a.guard == b.guard && a.kind == b.kind;
        let same_block = |id: &BlockId| {
            let (mine, theirs) = (self.block(*id), other.block(*id));
            mine.terminator == theirs.terminator
                && mine.insts.len() == theirs.insts.len()
                && mine.insts.iter().zip(&theirs.insts).all(same_inst)
        };
        self.layout == other.layout && self.layout.iter().all(same_block)
    }

    /// Calls `visit` on every instruction, in layout order.
    pub(crate) fn each_inst(&mut self, visit: &mut dyn FnMut(&mut Inst)) {
        for idx in 0..self.layout.len() {
            let id = self.layout[idx];
            self.block_mut(id).insts.iter_mut().for_each(&mut *visit);
        }
    }

    /// The instructions, in layout order.
    pub(crate) fn insts(&self) -> impl Iterator<Item = &Inst> {
        self.layout.iter().flat_map(|id| self.block(*id).insts.iter())
    }
}

impl Inst {
    pub(crate) fn word(dst: VReg, op: WordOp, line: u32) -> Inst {
        Inst { guard: Cond::TRUE, kind: InstKind::Word(dst, op), line }
    }

    pub(crate) fn pred(dst: VPred, op: PredOp, line: u32) -> Inst {
        Inst { guard: Cond::TRUE, kind: InstKind::Pred(dst, op), line }
    }

    /// The source, if the instruction copies a value in all threads.
    pub(crate) fn as_copy(&self) -> Option<(VReg, Value)> {
        match self.kind {
            InstKind::Word(dst, WordOp::Move(src)) if self.guard == Cond::TRUE => Some((dst, src)),
            _ => None,
        }
    }
}
