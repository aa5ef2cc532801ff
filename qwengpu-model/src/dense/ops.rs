//! What is done to every value of `[tokens, width]`, with all vector instructions that there are.

use pulp::Arch;
use rayon::prelude::*;

use crate::engine::Precision;

/// Values from which on several threads pay.
const PARALLEL: usize = 1 << 12;
/// Values of a task.
const TASK: usize = 1 << 11;

/// Applies `f` to every value.
pub(crate) fn map(x: &mut [f32], f: impl Fn(f32) -> f32 + Sync) {
    let task = |x: &mut [f32]| {
        Arch::new().dispatch(
            #[inline(always)]
            || x.iter_mut().for_each(|value| *value = f(*value)),
        );
    };
    if x.len() < PARALLEL { task(x) } else { x.par_chunks_mut(TASK).for_each(task) }
}

/// Applies `f` to every value and its partner in `y`.
pub(crate) fn zip(x: &mut [f32], y: &[f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    let task = |(x, y): (&mut [f32], &[f32])| {
        Arch::new().dispatch(
            #[inline(always)]
            || x.iter_mut().zip(y).for_each(|(x, &y)| *x = f(*x, y)),
        );
    };
    if x.len() < PARALLEL {
        task((x, y));
    } else {
        x.par_chunks_mut(TASK).zip(y.par_chunks(TASK)).for_each(task);
    }
}

/// Applies `f` to every row with its number.
pub(crate) fn for_rows(x: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let task = |(row, x): (usize, &mut [f32])| {
        Arch::new().dispatch(
            #[inline(always)]
            || f(row, x),
        );
    };
    if x.len() < PARALLEL {
        x.chunks_exact_mut(width).enumerate().for_each(task);
    } else {
        x.par_chunks_exact_mut(width).with_min_len(1.max(TASK / width)).enumerate().for_each(task);
    }
}

/// One rounding to the compute dtype.
pub(crate) fn round_all(x: &mut [f32], precision: Precision) {
    if precision == Precision::Bf16 {
        map(x, |value| precision.round(value));
    }
}

/// The residual stream and what is added to it, rounded.
pub(crate) fn add(h: &mut [f32], y: &[f32], precision: Precision) {
    zip(h, y, |h, y| precision.round(h + y));
}
