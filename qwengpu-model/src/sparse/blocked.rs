//! Evaluates maps block by block, and each block once for each input it has had lately.
//!
//! Few of a block's columns are active at a time and their values are few, so most blocks meet an input again and
//! again. What they came to then is kept. Blocks none of whose columns is active come to the same every time.

use super::blocks::{Blocks, NONE};
use super::memo::{Memo, Pair, mix, seed};
use super::norm::Normed;
use crate::matrix::low_32;

/// Blocks with what they came to.
///
/// Results are only known for the values that all blocks share: the norm's factor and the shared column.
#[derive(Debug, Clone)]
pub(crate) struct Blocked {
    blocks: Blocks,
    /// By block.
    pending: Vec<Pending>,
    /// The active columns of this token's input by block, each block's where its columns begin.
    inputs: Vec<Pair>,
    /// Blocks with active columns.
    touched: Vec<u32>,
    results: Vec<Pair>,
    /// What all blocks shared last time.
    context: Option<Context>,
    memo: Memo,
    /// What the memo's entries were computed with.
    memo_context: Option<Context>,
    idle: Idle,
}

type Context = (u32, u32);

#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    num_inputs: u32,
    hash: u64,
}

/// Results of blocks without active columns.
#[derive(Debug, Clone, Default)]
struct Idle {
    /// Blocks whose results aren't known yet.
    unknown: Vec<u32>,
    /// Blocks that have results, and where these end in `pairs`.
    known: Vec<(u32, u32)>,
    pairs: Vec<Pair>,
}

impl Blocked {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self {
            pending: vec![Pending::default(); blocks.len()],
            inputs: vec![(0, 0); blocks.starts.last().map_or(0, |&len| len as usize)],
            touched: Vec::with_capacity(blocks.len()),
            results: Vec::new(),
            context: None,
            memo: Memo::default(),
            memo_context: None,
            idle: Idle::default(),
            blocks,
        }
    }

    /// Visits the results of every block, given the columns that are active before the norm, ascending.
    ///
    /// `compute` appends the results of a block, given the active ones of its own columns. It must depend on nothing
    /// but these and the shared column, and give nothing where all of them are zero.
    pub(crate) fn run(
        &mut self,
        x: &Normed<'_>,
        active: &[Pair],
        mut compute: impl FnMut(u32, &[Pair], &mut Vec<Pair>),
        mut visit: impl FnMut(u32, f32),
    ) {
        let shared = x.raw(self.blocks.shared);
        let context = (x.inverse().to_bits(), shared.to_bits());
        let is_steady = self.context == Some(context);
        self.context = Some(context);
        self.gather(active);
        if self.memo_context == Some(context) {
            let Self { touched, pending, memo, .. } = &*self;
            let seen = touched.iter().fold(0, |seen, &block| seen ^ memo.prefetch(pending[block as usize].hash));
            std::hint::black_box(seen);
        }
        let mut visit_all = |pairs: &[Pair]| pairs.iter().for_each(|&(place, bits)| visit(place, f32::from_bits(bits)));
        for &block in &self.touched {
            let Pending { num_inputs, hash } = self.pending[block as usize];
            let start = self.blocks.starts[block as usize];
            let inputs = &self.inputs[start as usize..(start + num_inputs) as usize];
            if self.memo_context == Some(context)
                && let Some(found) = self.memo.find(hash, inputs)
            {
                visit_all(self.memo.results(found));
                continue;
            }
            self.results.clear();
            compute(block, inputs, &mut self.results);
            visit_all(&self.results);
            // What changes with every token would only push out what is needed again.
            if is_steady {
                if self.memo_context != Some(context) {
                    self.memo.clear();
                    self.memo_context = Some(context);
                }
                self.memo.insert(hash, inputs, &self.results);
            }
        }
        if shared != 0.0 {
            if !is_steady {
                self.idle.forget(self.blocks.len());
            }
            self.idle.learn(&self.pending, compute);
            let mut start = 0;
            for &(block, end) in &self.idle.known {
                if self.pending[block as usize].num_inputs == 0 {
                    visit_all(&self.idle.pairs[start..end as usize]);
                }
                start = end as usize;
            }
        } else {
            self.context = None; // so that the next one with a shared column is a change
        }
        for &block in &self.touched {
            self.pending[block as usize].num_inputs = 0;
        }
    }

    /// Sorts active columns into their blocks.
    fn gather(&mut self, active: &[Pair]) {
        let Self { blocks, pending, inputs, touched, .. } = self;
        touched.clear();
        for &input in active {
            let block = blocks.of_col[input.0 as usize];
            if block == NONE {
                continue;
            }
            let pending = &mut pending[block as usize];
            if pending.num_inputs == 0 {
                touched.push(block);
                pending.hash = seed(block);
            }
            inputs[(blocks.starts[block as usize] + pending.num_inputs) as usize] = input;
            pending.num_inputs += 1;
            pending.hash = mix(pending.hash, input);
        }
    }
}

impl Idle {
    fn forget(&mut self, num_blocks: usize) {
        self.unknown.clear();
        self.unknown.extend(0..low_32(num_blocks));
        self.known.clear();
        self.pairs.clear();
    }

    /// Computes blocks that are idle for the first time.
    fn learn(&mut self, pending: &[Pending], mut compute: impl FnMut(u32, &[Pair], &mut Vec<Pair>)) {
        let Self { unknown, known, pairs } = self;
        unknown.retain(|&block| {
            if pending[block as usize].num_inputs > 0 {
                return true;
            }
            let start = pairs.len();
            compute(block, &[], pairs);
            if pairs.len() > start {
                known.push((block, low_32(pairs.len())));
            }
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::tests::sparse;
    use super::super::norm::RmsNorm;
    use super::super::vector::Stream;
    use super::*;
    use crate::activation::silu;
    use crate::engine::Precision;
    use crate::matrix::SparseMatrix;

    fn active(x: &Normed<'_>) -> Vec<Pair> {
        let mut active = Vec::new();
        x.for_each_raw_in(0, u64::MAX, |col, value| active.push((col, value.to_bits())));
        active
    }

    /// What a row comes to, if that isn't zero.
    fn row_result(weight: &SparseMatrix, row: u32, x: &Normed<'_>) -> Option<Pair> {
        let (cols, weights) = weight.row(row as usize);
        let sum: f32 = cols.iter().zip(weights).map(|(&col, w)| w * x.get(col)).sum();
        let result = silu(sum);
        (result != 0.0).then_some((row, result.to_bits()))
    }

    proptest! {
        /// Every row's result, to the bit and once, whether it is known or not. Few different tokens, so that they
        /// come back, and with and without the shared column.
        #[test]
        fn the_same_as_row_by_row(
            weight in sparse(30, 16, 60),
            tokens in prop::collection::vec(sparse(1, 16, 6), 1..5),
            order in prop::collection::vec((0..5_usize, 0..4_u8), 1..40),
        ) {
            let blocks = Blocks::new(&[&weight], 0);
            let of_row = blocks.of_row.clone();
            let mut blocked = Blocked::new(blocks);
            let norm = RmsNorm::new(&[0.0; 16], 1e-6, Precision::F32);
            let mut stream = Stream::new(16);
            let mut computed = 0;
            for (which, shared) in order {
                // Next to a large constant all norms are the same.
                let constant = if shared > 0 { 16_777_216.0 } else { 0.0 };
                let mut token = tokens[which % tokens.len()].to_dense();
                token[0] = constant;
                stream.load(&SparseMatrix::from_dense(1, 16, &token).expect("a row"), 0);
                let x = norm.stream(&mut stream);
                let mut visited = Vec::new();
                let compute = |block: u32, _: &[Pair], results: &mut Vec<Pair>| {
                    computed += 1;
                    let rows = (0..30).filter(|&row| of_row[row as usize] == block);
                    results.extend(rows.filter_map(|row| row_result(&weight, row, &x)));
                };
                blocked.run(&x, &active(&x), compute, |row, value| visited.push((row, value.to_bits())));
                visited.sort_unstable();
                let expected: Vec<Pair> = (0..30).filter_map(|row| row_result(&weight, row, &x)).collect();
                prop_assert_eq!(visited, expected);
            }
        }
    }

    #[test]
    fn what_comes_back_is_not_computed_again() {
        let entries = [(0, 0, 1.0), (0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)];
        let weight = SparseMatrix::from_triplets(3, 4, entries).expect("entries");
        let mut blocked = Blocked::new(Blocks::new(&[&weight], 0));
        let norm = RmsNorm::new(&[0.0; 4], 1e-6, Precision::F32);
        let mut stream = Stream::new(4);
        let mut runs = Vec::new();
        for value in [1.0, 1.0, 1.0, 2.0, 1.0, 2.0] {
            let token = SparseMatrix::from_triplets(1, 4, [(0, 0, 16_777_216.0), (0, 1, value)]).expect("a token");
            stream.load(&token, 0);
            let mut blocks = Vec::new();
            let x = norm.stream(&mut stream);
            blocked.run(&x, &active(&x), |block, _, _| blocks.push(block), |_, _| {});
            runs.push(blocks);
        }
        // Both idle blocks once; the first token is not kept, as the context might change with each.
        assert_eq!(runs, [vec![0, 1, 2], vec![0], vec![], vec![0], vec![], vec![]]);
    }
}
