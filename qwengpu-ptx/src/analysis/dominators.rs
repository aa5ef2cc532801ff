//! Which nodes of a graph every path from its first node passes.
//!
//! The algorithm of Lengauer and Tarjan with path compression: near-linear whatever the graph, also if many edges
//! lead far ahead to one node, as branches to a common exit do.

/// The dominator tree of a graph whose nodes can all be reached from node 0.
#[derive(Debug, Default)]
pub(crate) struct Dominators {
    /// The immediate dominator of each node; node 0's is itself.
    idom: Vec<usize>,
    /// The nodes below a node in the tree are those whose `enter` lies in `enter..leave` of the node.
    enter: Vec<usize>,
    leave: Vec<usize>,
}

impl Dominators {
    /// The dominators of the graph with these successors by node.
    pub(crate) fn new(successors: &[Vec<usize>]) -> Dominators {
        if successors.is_empty() {
            return Dominators::default();
        }
        let idom = Search::new(successors).dominators(successors);
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); idom.len()];
        for (node, above) in idom.iter().enumerate().skip(1) {
            children[*above].push(node);
        }
        let (mut enter, mut leave) = (vec![0; idom.len()], vec![0; idom.len()]);
        let mut clock = 1;
        // An explicit stack: input decides the depth.
        let mut stack = vec![(0, 0)];
        while let Some((node, next)) = stack.last_mut() {
            match children[*node].get(*next) {
                Some(child) => {
                    *next += 1;
                    enter[*child] = clock;
                    clock += 1;
                    stack.push((*child, 0));
                }
                None => {
                    leave[*node] = clock;
                    stack.pop();
                }
            }
        }
        Dominators { idom, enter, leave }
    }

    /// The immediate dominator; none for node 0.
    pub(crate) fn idom(&self, node: usize) -> Option<usize> {
        (node != 0).then(|| self.idom[node])
    }

    /// Whether every path from node 0 to `below` passes `above`.
    pub(crate) fn dominates(&self, above: usize, below: usize) -> bool {
        (self.enter[above]..self.leave[above]).contains(&self.enter[below])
    }
}

/// A depth-first search. Nodes are named by their number in it.
struct Search {
    /// The node of each number.
    node: Vec<usize>,
    number: Vec<usize>,
    /// The number of the parent in the tree of the search.
    parent: Vec<usize>,
    /// The number of the semidominator, as far as it is known.
    semi: Vec<usize>,
    /// The forest of what is linked: the node above, and the node with the least semidominator on the way there.
    above: Vec<Option<usize>>,
    least: Vec<usize>,
}

impl Search {
    fn new(successors: &[Vec<usize>]) -> Search {
        let count = successors.len();
        let unseen = usize::MAX;
        let mut search = Search {
            node: vec![0],
            number: vec![unseen; count],
            parent: vec![0],
            semi: (0..count).collect(),
            above: vec![None; count],
            least: (0..count).collect(),
        };
        search.number[0] = 0;
        let mut stack = vec![(0, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let from = search.number[*node];
            match successors[*node].get(*next) {
                Some(to) => {
                    *next += 1;
                    if search.number[*to] == unseen {
                        search.number[*to] = search.node.len();
                        search.node.push(*to);
                        search.parent.push(from);
                        stack.push((*to, 0));
                    }
                }
                None => {
                    stack.pop();
                }
            }
        }
        search
    }

    /// The immediate dominator of each node.
    fn dominators(mut self, successors: &[Vec<usize>]) -> Vec<usize> {
        let count = self.node.len();
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (number, node) in self.node.iter().enumerate() {
            for next in &successors[*node] {
                predecessors[self.number[*next]].push(number);
            }
        }
        let mut idom = vec![0; count];
        let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); count];
        for number in (1..count).rev() {
            for pred in &predecessors[number] {
                let least = self.eval(*pred);
                self.semi[number] = self.semi[number].min(self.semi[least]);
            }
            buckets[self.semi[number]].push(number);
            let parent = self.parent[number];
            self.above[number] = Some(parent);
            for waiting in std::mem::take(&mut buckets[parent]) {
                let least = self.eval(waiting);
                idom[waiting] = if self.semi[least] < self.semi[waiting] { least } else { parent };
            }
        }
        for number in 1..count {
            if idom[number] != self.semi[number] {
                idom[number] = idom[idom[number]];
            }
        }
        let mut by_node = vec![0; count];
        for (number, above) in idom.into_iter().enumerate() {
            by_node[self.node[number]] = self.node[above];
        }
        by_node
    }

    /// The node with the least semidominator between a node and the root of its tree, the root left out.
    fn eval(&mut self, number: usize) -> usize {
        let mut path = Vec::new();
        let mut at = number;
        while let Some(above) = self.above[at].filter(|above| self.above[*above].is_some()) {
            path.push(at);
            at = above;
        }
        // From the top, so that every node takes over what the one above it knows.
        for at in path.into_iter().rev() {
            let Some(above) = self.above[at] else { continue };
            if self.semi[self.least[above]] < self.semi[self.least[at]] {
                self.least[at] = self.least[above];
            }
            self.above[at] = self.above[above];
        }
        self.least[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a path leads from node 0 to `to` without `closed`.
    fn reaches(successors: &[Vec<usize>], to: usize, closed: Option<usize>) -> bool {
        let mut seen = vec![false; successors.len()];
        let mut work = vec![0];
        while let Some(node) = work.pop() {
            if Some(node) != closed && !std::mem::replace(&mut seen[node], true) {
                work.extend(&successors[node]);
            }
        }
        seen[to]
    }

    #[test]
    fn dominators_are_those_of_the_definition() {
        let mut state = 7_u32;
        let mut below = |count: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % count
        };
        for size in 1..14 {
            for _ in 0..40 {
                let mut successors: Vec<Vec<usize>> = (0..size).map(|_| vec![below(size), below(size)]).collect();
                // All nodes are to be reached.
                for node in 1..size {
                    let from = below(node);
                    successors[from].push(node);
                }
                let found = Dominators::new(&successors);
                for node in 0..size {
                    let strict: Vec<usize> =
                        (0..size).filter(|d| *d != node && !reaches(&successors, node, Some(*d))).collect();
                    for above in 0..size {
                        let expected = above == node || strict.contains(&above);
                        assert_eq!(found.dominates(above, node), expected, "{above} over {node} in {successors:?}");
                    }
                    // The immediate dominator is below all others.
                    if let Some(idom) = found.idom(node) {
                        assert!(strict.contains(&idom) && strict.iter().all(|d| found.dominates(*d, idom)));
                    }
                }
            }
        }
    }
}
