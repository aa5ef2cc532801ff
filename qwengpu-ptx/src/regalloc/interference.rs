//! Which virtual registers cannot share an architectural one.

use crate::analysis::{Cfg, Liveness, RegSet, frequencies};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, VReg, Value, WordOp};

use super::spill::fixed_source;

/// Words or predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Word,
    Pred,
}

/// The interference graph of one class.
pub(super) struct Graph {
    /// Whether the register occurs at all.
    pub(super) occurs: Vec<bool>,
    /// Symmetric, row by row.
    edges: Vec<Vec<bool>>,
    /// Uses and writes, weighted by loop depth.
    pub(super) cost: Vec<u64>,
    /// Copies that could disappear: weight, destination, source.
    pub(super) copies: Vec<(u64, usize, usize)>,
}

impl Class {
    fn count(self, func: &Function) -> usize {
        match self {
            Class::Word => func.num_vregs,
            Class::Pred => func.num_vpreds,
        }
    }

    fn written(self, inst: &Inst) -> Option<usize> {
        match self {
            Class::Word => inst.reg_written().map(|reg| reg.idx()),
            Class::Pred => inst.pred_written().map(|pred| pred.idx()),
        }
    }

    fn read(self, inst: &Inst) -> Vec<usize> {
        match self {
            Class::Word => inst.regs_read().into_iter().map(|reg| reg.idx()).collect(),
            Class::Pred => inst.preds_read().into_iter().map(|pred| pred.idx()).collect(),
        }
    }

    fn live(self, set: &RegSet) -> Vec<usize> {
        match self {
            Class::Word => set.regs().map(|reg| reg.idx()).collect(),
            Class::Pred => set.preds().map(|pred| pred.idx()).collect(),
        }
    }

    /// The source of an unguarded copy.
    fn copied(self, inst: &Inst) -> Option<usize> {
        match (self, &inst.kind) {
            (Class::Word, InstKind::Word(_, WordOp::Move(Value::Reg(src)))) if inst.guard == Cond::TRUE => {
                Some(src.idx())
            }
            (Class::Pred, InstKind::Pred(_, op)) if inst.guard == Cond::TRUE => match PredOp::as_copy(op) {
                Some(Cond::Pred { pred, negated: false }) => Some(pred.idx()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// For every copy of a block, the registers that hold the copied value already, the source among them.
///
/// They can share a register with the destination, whatever else is live.
fn equal_registers(func: &Function, block: BlockId, class: Class) -> Vec<Vec<usize>> {
    let insts = &func.block(block).insts;
    let mut classes: Vec<Vec<usize>> = Vec::new();
    let mut result = Vec::with_capacity(insts.len());
    for inst in insts {
        let mut equal = Vec::new();
        if let Some(dst) = class.written(inst) {
            for members in &mut classes {
                members.retain(|member| *member != dst);
            }
            if let Some(src) = class.copied(inst) {
                match classes.iter_mut().find(|members| members.contains(&src)) {
                    Some(members) => {
                        equal.clone_from(members);
                        members.push(dst);
                    }
                    None => {
                        equal.push(src);
                        classes.push(vec![src, dst]);
                    }
                }
            }
        }
        result.push(equal);
    }
    result
}

impl Graph {
    pub(super) fn new(func: &Function, class: Class) -> Graph {
        let count = class.count(func);
        let mut graph = Graph {
            occurs: vec![false; count],
            edges: vec![Vec::new(); count],
            cost: vec![0; count],
            copies: Vec::new(),
        };
        let cfg = Cfg::new(func);
        let liveness = Liveness::new(func, &cfg);
        let frequencies = frequencies(func, &cfg);
        for block in &cfg.order {
            let weight = frequencies[block.idx()];
            let mut live = liveness.before_terminator(func, *block);
            if let (Class::Pred, Some(pred)) = (class, func.block(*block).terminator.cond().and_then(Cond::pred)) {
                graph.touch(pred.idx(), weight);
            }
            let equals = equal_registers(func, *block, class);
            for (pos, inst) in func.block(*block).insts.iter().enumerate().rev() {
                if let Some(dst) = class.written(inst) {
                    graph.touch(dst, weight);
                    if let Some(src) = class.copied(inst) {
                        graph.copies.push((weight, dst, src));
                    }
                    for other in class.live(&live) {
                        if other != dst && !equals[pos].contains(&other) {
                            graph.connect(dst, other);
                        }
                    }
                }
                for src in class.read(inst) {
                    graph.touch(src, weight);
                }
                live.step_back(inst);
            }
        }
        // Registers live into the kernel are read before they are written; they exist at once.
        let entry = class.live(liveness.live_in(func.entry()));
        for a in &entry {
            for b in &entry {
                if a < b {
                    graph.connect(*a, *b);
                }
            }
        }
        if class == Class::Word {
            // Made again, they take no store, and no memory.
            for reg in (0..count).filter(|reg| graph.occurs[*reg]) {
                if fixed_source(func, VReg::new(reg)).is_some() {
                    graph.cost[reg] = graph.cost[reg].div_ceil(2);
                }
            }
        }
        graph.copies.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        graph
    }

    fn touch(&mut self, idx: usize, weight: u64) {
        self.occurs[idx] = true;
        self.cost[idx] = self.cost[idx].saturating_add(weight);
    }

    fn connect(&mut self, a: usize, b: usize) {
        let count = self.edges.len();
        for (from, to) in [(a, b), (b, a)] {
            let row = &mut self.edges[from];
            if row.is_empty() {
                row.resize(count, false);
            }
            row[to] = true;
        }
    }

    /// The registers that interfere with one.
    pub(super) fn neighbours(&self, idx: usize) -> Vec<usize> {
        let row = self.edges[idx].iter().enumerate();
        row.filter(|(_, edge)| **edge).map(|(other, _)| other).collect()
    }
}
