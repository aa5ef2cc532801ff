//! Which virtual registers cannot share an architectural one.

use std::collections::BTreeMap;

use crate::analysis::{Cfg, Liveness, RegSet, frequencies};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, Operands, PredOp, VPred, VReg, Value, WordOp};

use super::spill::is_fixed;

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
    /// The registers that interfere with each one, ascending.
    pub(super) neighbours: Vec<Vec<usize>>,
    /// Uses and writes, weighted by loop depth.
    pub(super) cost: Vec<u64>,
    /// Whether spilling the register is making its value again.
    pub(super) made_again: Vec<bool>,
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

    fn read(self, inst: &Inst) -> Operands<usize> {
        match self {
            Class::Word => inst.regs_read().into_iter().map(VReg::idx).collect(),
            Class::Pred => inst.preds_read().into_iter().map(VPred::idx).collect(),
        }
    }

    fn live(self, set: &RegSet) -> Vec<usize> {
        match self {
            Class::Word => set.regs().map(VReg::idx).collect(),
            Class::Pred => set.preds().map(VPred::idx).collect(),
        }
    }

    fn live_in(self, liveness: &Liveness, block: BlockId) -> Vec<usize> {
        match self {
            Class::Word => liveness.words_in(block).iter().map(|reg| reg.idx()).collect(),
            Class::Pred => liveness.preds_in(block).iter().map(|pred| pred.idx()).collect(),
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
fn equal_registers(func: &Function, block: BlockId, class: Class) -> BTreeMap<usize, Vec<usize>> {
    // The class that each register is in, and its members.
    let mut class_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut classes: Vec<Vec<usize>> = Vec::new();
    let mut result = BTreeMap::new();
    for (pos, inst) in func.block(block).insts.iter().enumerate() {
        let Some(dst) = class.written(inst) else { continue };
        if let Some(members) = class_of.remove(&dst).and_then(|class| classes.get_mut(class)) {
            members.retain(|member| *member != dst);
        }
        let Some(src) = class.copied(inst) else { continue };
        let number = *class_of.entry(src).or_insert_with(|| {
            classes.push(vec![src]);
            classes.len() - 1
        });
        result.insert(pos, classes[number].clone());
        if dst != src {
            classes[number].push(dst);
            class_of.insert(dst, number);
        }
    }
    result
}

/// For every word, whether every write is the same one and can be made again anywhere.
fn made_again(func: &Function) -> Vec<bool> {
    let mut first: Vec<Option<&WordOp>> = vec![None; func.num_vregs];
    let mut differs = vec![false; func.num_vregs];
    for inst in func.insts() {
        let Some(reg) = inst.reg_written() else { continue };
        match inst.unguarded_op().filter(|op| is_fixed(op)) {
            Some(op) if first[reg.idx()].is_none_or(|other| other == op) => first[reg.idx()] = Some(op),
            Some(_) | None => differs[reg.idx()] = true,
        }
    }
    first.iter().zip(differs).map(|(first, differs)| first.is_some() && !differs).collect()
}

impl Graph {
    pub(super) fn new(func: &Function, class: Class) -> Graph {
        let count = class.count(func);
        let mut graph = Graph {
            occurs: vec![false; count],
            neighbours: vec![Vec::new(); count],
            cost: vec![0; count],
            made_again: if class == Class::Word { made_again(func) } else { vec![false; count] },
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
                    let equal = equals.get(&pos);
                    for other in class.live(&live) {
                        if other != dst && !equal.is_some_and(|equal| equal.contains(&other)) {
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
        let entry = class.live_in(&liveness, func.entry());
        for a in &entry {
            for b in &entry {
                if a < b {
                    graph.connect(*a, *b);
                }
            }
        }
        // Made again, they take no store, and no memory.
        for (cost, _) in graph.cost.iter_mut().zip(&graph.made_again).filter(|(_, again)| **again) {
            *cost = cost.div_ceil(2);
        }
        for neighbours in &mut graph.neighbours {
            neighbours.sort_unstable();
            neighbours.dedup();
        }
        graph.copies.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        graph
    }

    fn touch(&mut self, idx: usize, weight: u64) {
        self.occurs[idx] = true;
        self.cost[idx] = self.cost[idx].saturating_add(weight);
    }

    fn connect(&mut self, a: usize, b: usize) {
        self.neighbours[a].push(b);
        self.neighbours[b].push(a);
    }
}
