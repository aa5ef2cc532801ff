//! An interference graph in which the ends of copies are one node.

use std::collections::BTreeSet;

use super::interference::Graph;

/// The graph after merging copies. A node is one of its registers.
pub(super) struct Merged {
    /// One step towards the node that a register is in.
    towards: Vec<usize>,
    /// Neighbours of each node.
    pub(super) neighbours: Vec<BTreeSet<usize>>,
    pub(super) members: Vec<Vec<usize>>,
    /// The least member of each node, by which nodes are ordered.
    pub(super) label: Vec<usize>,
}

impl Merged {
    /// The graph as it is.
    pub(super) fn new(graph: &Graph) -> Merged {
        let count = graph.occurs.len();
        Merged {
            towards: (0..count).collect(),
            neighbours: graph.neighbours.iter().map(|list| list.iter().copied().collect()).collect(),
            members: (0..count).map(|idx| vec![idx]).collect(),
            label: (0..count).collect(),
        }
    }

    /// The graph with the ends of copies merged, as long as the new node has fewer than `colours` neighbours that
    /// have as many themselves (Briggs).
    pub(super) fn coalesced(graph: &Graph, colours: usize) -> Merged {
        let merged = Merged::new(graph);
        let is_crowded = |idx: &&usize| merged.neighbours[**idx].len() >= colours;
        let crowded = merged.neighbours.iter().map(|list| list.iter().filter(is_crowded).count()).collect();
        let mut coalescing = Coalescing { merged, crowded, colours };
        let mut changed = true;
        while changed {
            changed = false;
            for (_, dst, src) in &graph.copies {
                let (a, b) = (coalescing.merged.find(*dst), coalescing.merged.find(*src));
                if a == b || coalescing.merged.neighbours[a].contains(&b) {
                    continue;
                }
                let crowded = coalescing.crowded_together(a, b);
                if crowded < colours {
                    coalescing.merge(a, b, crowded);
                    changed = true;
                }
            }
        }
        coalescing.merged
    }

    /// The node that a register is in.
    pub(super) fn find(&self, reg: usize) -> usize {
        let mut at = reg;
        while self.towards[at] != at {
            at = self.towards[at];
        }
        at
    }
}

struct Coalescing {
    merged: Merged,
    /// How many neighbours of each node are crowded: have at least `colours` neighbours.
    crowded: Vec<usize>,
    colours: usize,
}

impl Coalescing {
    /// The neighbours of the two nodes that would be crowded if the two were one.
    fn crowded_together(&self, a: usize, b: usize) -> usize {
        let [fewer, more] = self.by_size(a, b).map(|node| &self.merged.neighbours[node]);
        let mut count = self.crowded[a] + self.crowded[b];
        for common in fewer.iter().filter(|other| more.contains(other)) {
            // It is counted twice, and loses a neighbour by the merge.
            match self.merged.neighbours[*common].len() {
                len if len > self.colours => count -= 1,
                len if len == self.colours => count -= 2,
                _ => {}
            }
        }
        count
    }

    fn by_size(&self, a: usize, b: usize) -> [usize; 2] {
        let size = |node: usize| self.merged.neighbours[node].len();
        if size(a) < size(b) { [a, b] } else { [b, a] }
    }

    /// Makes one node of two; the one with more neighbours stays, so that few sets change.
    fn merge(&mut self, a: usize, b: usize, crowded: usize) {
        let [gone, kept] = self.by_size(a, b);
        let colours = self.colours;
        let neighbours = &mut self.merged.neighbours;
        let lost = std::mem::take(&mut neighbours[gone]);
        let (was_crowded, kept_was_crowded) = (lost.len() >= colours, neighbours[kept].len() >= colours);
        let mut gained = Vec::new();
        for other in lost {
            self.crowded[other] -= usize::from(was_crowded);
            neighbours[other].remove(&gone);
            if neighbours[other].insert(kept) {
                neighbours[kept].insert(other);
                gained.push(other);
            } else if neighbours[other].len() + 1 == colours {
                for next in &neighbours[other] {
                    self.crowded[*next] -= 1;
                }
            }
        }
        if neighbours[kept].len() >= colours {
            if kept_was_crowded {
                gained.iter().for_each(|other| self.crowded[*other] += 1);
            } else {
                neighbours[kept].iter().for_each(|other| self.crowded[*other] += 1);
            }
        }
        self.crowded[kept] = crowded;
        self.crowded[gone] = 0;
        let moved = std::mem::take(&mut self.merged.members[gone]);
        // Each register points at its node, so that finding it is one step.
        for member in &moved {
            self.merged.towards[*member] = kept;
        }
        self.merged.members[kept].extend(moved);
        self.merged.label[kept] = self.merged.label[kept].min(self.merged.label[gone]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of `count` registers with the edges and copies of equal weight.
    fn graph(count: usize, edges: &[(usize, usize)], copies: &[(usize, usize)]) -> Graph {
        let mut graph = Graph {
            occurs: vec![true; count],
            neighbours: vec![Vec::new(); count],
            cost: vec![1; count],
            made_again: vec![false; count],
            copies: copies.iter().map(|(dst, src)| (1, *dst, *src)).collect(),
        };
        for (a, b) in edges {
            graph.neighbours[*a].push(*b);
            graph.neighbours[*b].push(*a);
        }
        graph
    }

    #[test]
    fn merging_counts_crowded_neighbours_as_the_definition_does() {
        let mut state = 3_u32;
        let mut below = |count: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % count
        };
        for round in 0..200 {
            let (count, colours) = (12, 2 + round % 4);
            let mut edges: Vec<(usize, usize)> = (0..18).map(|_| (below(count), below(count))).collect();
            edges.iter_mut().for_each(|(a, b)| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
            edges.retain(|(a, b)| a != b);
            edges.sort_unstable();
            edges.dedup();
            let copies: Vec<(usize, usize)> = (0..10).map(|_| (below(count), below(count))).collect();
            let graph = graph(count, &edges, &copies);
            let merged = Merged::new(&graph);
            let crowded = merged
                .neighbours
                .iter()
                .map(|list| list.iter().filter(|idx| merged.neighbours[**idx].len() >= colours).count());
            let crowded: Vec<usize> = crowded.collect();
            let mut coalescing = Coalescing { merged, crowded, colours };
            for (_, dst, src) in &graph.copies {
                let (a, b) = (coalescing.merged.find(*dst), coalescing.merged.find(*src));
                if a == b || coalescing.merged.neighbours[a].contains(&b) {
                    continue;
                }
                let sets = &coalescing.merged.neighbours;
                let expected = sets[a].union(&sets[b]).filter(|idx| {
                    let common = sets[a].contains(idx) && sets[b].contains(idx);
                    sets[**idx].len() - usize::from(common) >= colours
                });
                let expected = expected.count();
                assert_eq!(coalescing.crowded_together(a, b), expected);
                coalescing.merge(a, b, expected);
            }
        }
    }
}
