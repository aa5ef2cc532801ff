//! Colouring an interference graph.

use std::collections::BTreeSet;

use super::interference::Graph;

/// What colouring came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A colour for every register that occurs.
    Coloured(Vec<Option<usize>>),
    /// Too few colours: this register is best kept elsewhere.
    Spill(usize),
}

/// The graph after merging copies.
struct Merged {
    /// The register that stands for each one.
    leader: Vec<usize>,
    /// Neighbours of each leader.
    neighbours: Vec<BTreeSet<usize>>,
    members: Vec<Vec<usize>>,
}

impl Merged {
    fn new(graph: &Graph) -> Merged {
        let count = graph.occurs.len();
        Merged {
            leader: (0..count).collect(),
            neighbours: (0..count).map(|idx| graph.neighbours(idx).into_iter().collect()).collect(),
            members: (0..count).map(|idx| vec![idx]).collect(),
        }
    }

    fn merge(&mut self, keep: usize, gone: usize) {
        let lost = std::mem::take(&mut self.neighbours[gone]);
        for other in lost {
            self.neighbours[other].remove(&gone);
            self.neighbours[other].insert(keep);
            self.neighbours[keep].insert(other);
        }
        let moved = std::mem::take(&mut self.members[gone]);
        for member in &moved {
            self.leader[*member] = keep;
        }
        self.members[keep].extend(moved);
    }

    /// Merges the ends of copies while the merged register has fewer than `colours` crowded neighbours.
    fn coalesce(&mut self, graph: &Graph, colours: usize) {
        let mut changed = true;
        while changed {
            changed = false;
            for (_, dst, src) in &graph.copies {
                let (a, b) = (self.leader[*dst], self.leader[*src]);
                if a == b || self.neighbours[a].contains(&b) {
                    continue;
                }
                let union: BTreeSet<usize> = self.neighbours[a].union(&self.neighbours[b]).copied().collect();
                let crowded = |idx: &&usize| {
                    // A common neighbour loses one edge by the merge.
                    let common = self.neighbours[a].contains(idx) && self.neighbours[b].contains(idx);
                    self.neighbours[**idx].len() - usize::from(common) >= colours
                };
                if union.iter().filter(crowded).count() < colours {
                    self.merge(a.min(b), a.max(b));
                    changed = true;
                }
            }
        }
    }
}

/// Colours the graph with `colours` colours. Registers in `temps` are spill code and are never spilled again.
pub(super) fn colour(graph: &Graph, colours: usize, temps: &BTreeSet<usize>) -> Outcome {
    let mut merged = Merged::new(graph);
    merged.coalesce(graph, colours);
    match try_colour(graph, &merged, colours, temps) {
        Ok(result) => Outcome::Coloured(result),
        Err(_) => {
            // Merged registers have long live ranges: spill single ones instead.
            let plain = Merged::new(graph);
            match try_colour(graph, &plain, colours, temps) {
                Ok(result) => Outcome::Coloured(result),
                Err(spilled) => Outcome::Spill(spilled),
            }
        }
    }
}

fn try_colour(
    graph: &Graph,
    merged: &Merged,
    colours: usize,
    temps: &BTreeSet<usize>,
) -> Result<Vec<Option<usize>>, usize> {
    let count = graph.occurs.len();
    let mut degree: Vec<usize> = merged.neighbours.iter().map(BTreeSet::len).collect();
    let mut left: BTreeSet<usize> =
        (0..count).filter(|idx| graph.occurs[*idx] && merged.leader[*idx] == *idx).collect();
    let cost = |idx: usize| -> u64 {
        let members = &merged.members[idx];
        if members.iter().any(|m| temps.contains(m)) {
            return u64::MAX;
        }
        members.iter().map(|m| graph.cost[*m]).fold(0, u64::saturating_add)
    };
    let mut stack = Vec::new();
    while !left.is_empty() {
        let easy = left.iter().copied().find(|idx| degree[*idx] < colours);
        // The cheapest for the room it makes; it may still find a colour.
        let chosen = easy.or_else(|| {
            left.iter().copied().min_by(|a, b| {
                let (x, y) = (cost(*a), cost(*b));
                let left_side = u128::from(x) * (degree[*b] as u128);
                let right_side = u128::from(y) * (degree[*a] as u128);
                left_side.cmp(&right_side).then(a.cmp(b))
            })
        });
        let Some(chosen) = chosen else { break };
        left.remove(&chosen);
        stack.push(chosen);
        for other in &merged.neighbours[chosen] {
            degree[*other] = degree[*other].saturating_sub(1);
        }
    }
    let mut result: Vec<Option<usize>> = vec![None; count];
    let mut failed: Option<usize> = None;
    for idx in stack.into_iter().rev() {
        let taken: BTreeSet<usize> = merged.neighbours[idx].iter().filter_map(|other| result[*other]).collect();
        let free = |c: &usize| *c < colours && !taken.contains(c);
        // A copy that was not merged disappears if both ends happen to get one colour.
        let wished = graph.copies.iter().find_map(|(_, dst, src)| {
            let (a, b) = (merged.leader[*dst], merged.leader[*src]);
            let other = if a == idx {
                b
            } else if b == idx {
                a
            } else {
                return None;
            };
            result[other].filter(free)
        });
        match wished.or_else(|| (0..colours).find(free)) {
            Some(chosen) => {
                for member in &merged.members[idx] {
                    result[*member] = Some(chosen);
                }
            }
            None if failed.is_none_or(|f| cost(idx) < cost(f)) => failed = Some(idx),
            None => {}
        }
    }
    match failed {
        None => Ok(result),
        // A register of spill code cannot go elsewhere: free one that lives beside it.
        Some(idx) if cost(idx) == u64::MAX => {
            let candidates = merged.neighbours[idx].iter().copied();
            Err(candidates.min_by_key(|other| (cost(*other), *other)).unwrap_or(idx))
        }
        Some(idx) => Err(idx),
    }
}
