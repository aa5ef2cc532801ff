//! Colouring an interference graph.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};

use super::interference::Graph;
use super::merged::Merged;

/// What colouring came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A colour for every register that occurs.
    Coloured(Vec<Option<usize>>),
    /// Too few colours: the first of these registers is best kept elsewhere, and those behind it are next. Only
    /// those whose value can be made again are live while others of them are.
    Spill(Vec<usize>),
}

/// Colours the graph with `colours` colours. Registers in `temps` are spill code and are never spilled again.
pub(super) fn colour(graph: &Graph, colours: usize, temps: &BTreeSet<usize>) -> Outcome {
    match try_colour(graph, &Merged::coalesced(graph, colours), colours, temps) {
        Ok(result) => Outcome::Coloured(result),
        // Merged registers have long live ranges: spill single ones instead.
        Err(_) => match try_colour(graph, &Merged::new(graph), colours, temps) {
            Ok(result) => Outcome::Coloured(result),
            Err(spilled) => Outcome::Spill(spilled),
        },
    }
}

/// A node that may have to do without a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    cost: u64,
    degree: usize,
    label: usize,
}

impl Ord for Candidate {
    /// By the cost for the room it makes.
    fn cmp(&self, other: &Self) -> Ordering {
        let mine = u128::from(self.cost) * (other.degree as u128);
        let theirs = u128::from(other.cost) * (self.degree as u128);
        mine.cmp(&theirs).then(self.label.cmp(&other.label))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The nodes in the order in which they are taken out of the graph: those with fewer neighbours than colours while
/// there are any, and otherwise the cheapest, which may still find a colour.
fn order(nodes: &[usize], merged: &Merged, colours: usize, cost: &[u64]) -> Vec<usize> {
    let mut degree: Vec<usize> = merged.neighbours.iter().map(BTreeSet::len).collect();
    let mut left = vec![false; degree.len()];
    nodes.iter().for_each(|node| left[*node] = true);
    let label = |node: usize| merged.label[node];
    let mut easy: BTreeSet<(usize, usize)> =
        nodes.iter().filter(|node| degree[**node] < colours).map(|node| (label(*node), *node)).collect();
    // A candidate's degree may have become smaller since, which makes it a worse one.
    let candidate = |node: usize, degree: &[usize]| {
        Reverse((Candidate { cost: cost[node], degree: degree[node], label: label(node) }, node))
    };
    let mut hard: BinaryHeap<Reverse<(Candidate, usize)>> =
        nodes.iter().filter(|node| degree[**node] >= colours).map(|node| candidate(*node, &degree)).collect();
    let mut stack = Vec::with_capacity(nodes.len());
    loop {
        let chosen = match easy.pop_first() {
            Some((_, node)) => node,
            None => match hard.pop() {
                None => return stack,
                Some(Reverse((_, node))) if !left[node] => continue,
                Some(Reverse((known, node))) if known.degree != degree[node] => {
                    hard.push(candidate(node, &degree));
                    continue;
                }
                Some(Reverse((_, node))) => node,
            },
        };
        left[chosen] = false;
        stack.push(chosen);
        for other in &merged.neighbours[chosen] {
            degree[*other] = degree[*other].saturating_sub(1);
            if left[*other] && degree[*other] + 1 == colours {
                easy.insert((label(*other), *other));
            }
        }
    }
}

fn try_colour(
    graph: &Graph,
    merged: &Merged,
    colours: usize,
    temps: &BTreeSet<usize>,
) -> Result<Vec<Option<usize>>, Vec<usize>> {
    let count = graph.occurs.len();
    let nodes: Vec<usize> = (0..count).filter(|idx| graph.occurs[*idx] && merged.find(*idx) == *idx).collect();
    let cost_of = |members: &Vec<usize>| -> u64 {
        if members.iter().any(|m| temps.contains(m)) {
            return u64::MAX;
        }
        members.iter().map(|m| graph.cost[*m]).fold(0, u64::saturating_add)
    };
    let cost: Vec<u64> = merged.members.iter().map(cost_of).collect();
    let stack = order(&nodes, merged, colours, &cost);
    // For each node, the other ends of its copies, the most frequent first.
    let mut copied: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (_, dst, src) in &graph.copies {
        let (a, b) = (merged.find(*dst), merged.find(*src));
        copied[a].push(b);
        copied[b].push(a);
    }
    let mut by_node: Vec<Option<usize>> = vec![None; count];
    let mut failed: Vec<usize> = Vec::new();
    for node in stack.into_iter().rev() {
        let mut taken = vec![false; colours];
        for colour in merged.neighbours[node].iter().filter_map(|other| by_node[*other]) {
            taken[colour] = true;
        }
        let free = |colour: &usize| !taken[*colour];
        // A copy that was not merged disappears if both ends happen to get one colour.
        let wished = copied[node].iter().find_map(|other| by_node[*other].filter(free));
        match wished.or_else(|| (0..colours).find(free)) {
            Some(chosen) => by_node[node] = Some(chosen),
            None => failed.push(node),
        }
    }
    // Stable: of two that cost the same, the one that failed first.
    failed.sort_by_key(|node| cost[*node]);
    match failed.first() {
        None => Ok((0..count).map(|idx| by_node[merged.find(idx)]).collect()),
        // A register of spill code cannot go elsewhere: free one that lives beside it.
        Some(node) if cost[*node] == u64::MAX => {
            let candidates = merged.neighbours[*node].iter().map(|other| (cost[*other], merged.label[*other]));
            Err(vec![candidates.min().map_or(merged.label[*node], |(_, label)| label)])
        }
        Some(_) => {
            let mut chosen: Vec<usize> = Vec::new();
            let mut closed: BTreeSet<usize> = BTreeSet::new();
            for node in failed.into_iter().filter(|node| cost[*node] < u64::MAX) {
                let label = merged.label[node];
                if graph.made_again[label] || !closed.contains(&node) {
                    closed.extend(&merged.neighbours[node]);
                    chosen.push(label);
                }
            }
            Err(chosen)
        }
    }
}
