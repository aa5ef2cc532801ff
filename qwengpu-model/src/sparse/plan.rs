//! What a linear layer is to do with its states: everything of it that doesn't depend on the states.
//!
//! A plan is a list of pairs, so that a memo can keep it: the heads that decay, then for each key head that has work
//! its queries and keys, and what its value heads write.

use super::bits::Bits;
use super::channels::{Channels, ConvScratch};
use super::conv::History;
use super::memo::Pair;
use super::norm::{Normed, RmsNorm};
use super::packed::{Packed, with_lists};
use crate::activation::{L2_EPS, sigmoid, softplus};
use crate::config::Config;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};
use crate::rows::SparseRows;
use crate::weights::LinearAttentionWeights;

/// Makes plans.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    channels: Channels,
    in_proj_b: Packed,
    in_proj_a: Packed,
    /// Heads that decay, and `-exp(A_log)` of each value head.
    decaying: Vec<usize>,
    speeds: Vec<f32>,
    dt_bias: Vec<f32>,
    /// What a plan depends on, where no token remembers another.
    columns: Option<Bits>,
    key_heads: usize,
    /// Value heads of a key head.
    group: usize,
    /// The root of a key's width.
    query_divisor: f32,
    precision: Precision,
}

/// The (dimension, value) of a head that aren't zero.
type HeadList = Vec<(u32, f32)>;

/// Room for one token's queries, keys and values.
#[derive(Debug, Clone)]
pub(crate) struct HeadLists {
    /// By channel its list and its dimension there.
    places: Vec<(u32, u32)>,
    /// Queries of each key head, keys of each, values of each value head.
    lists: Vec<HeadList>,
    /// Key heads with queries or keys.
    active: Bits,
}

impl HeadLists {
    pub(crate) fn new(config: &Config) -> Self {
        let (dk, dv) = (config.linear_key_head_dim, config.linear_value_head_dim);
        let keys = 2 * config.linear_num_key_heads;
        let lens = (0..keys + config.linear_num_value_heads).map(|list| if list < keys { dk } else { dv });
        let places = (0..).zip(lens.clone()).flat_map(|(list, len)| (0..low_32(len)).map(move |i| (list, i)));
        Self {
            places: places.collect(),
            lists: lens.map(Vec::with_capacity).collect(),
            active: Bits::new(config.linear_num_key_heads),
        }
    }
}

impl Planner {
    /// `shared` is a column that reaches most rows.
    pub(crate) fn new(weights: &LinearAttentionWeights, config: &Config, shared: u32, precision: Precision) -> Self {
        let rounded = |matrix: &SparseMatrix| matrix.map(|_, _, value| precision.round(value));
        let speeds: Vec<f32> = weights.a_log.iter().map(|&a_log| -precision.round(a_log).exp()).collect();
        let channels = Channels::new(&rounded(&weights.in_proj_qkv), &rounded(&weights.conv1d), shared, precision);
        let columns = channels.columns().map(|channels| {
            let mut columns = channels.clone();
            columns.set(shared);
            let entries = weights.in_proj_a.entries().chain(weights.in_proj_b.entries());
            entries.for_each(|(_, col, _)| columns.set(col));
            columns
        });
        #[expect(clippy::cast_precision_loss, reason = "a head's width, below 2^24")]
        let query_divisor = (config.linear_key_head_dim as f32).sqrt();
        Self {
            channels,
            in_proj_b: Packed::rows(&[&rounded(&weights.in_proj_b)]),
            in_proj_a: Packed::rows(&[&rounded(&weights.in_proj_a)]),
            decaying: (0..speeds.len()).filter(|&head| speeds[head] != 0.0).collect(),
            speeds,
            dt_bias: weights.dt_bias.iter().map(|&value| precision.round(value)).collect(),
            columns,
            key_heads: config.linear_num_key_heads,
            group: config.linear_num_value_heads / config.linear_num_key_heads,
            query_divisor,
            precision,
        }
    }

    /// The columns that a plan depends on, unless it depends on tokens before.
    pub(crate) fn columns(&self) -> Option<&Bits> {
        self.columns.as_ref()
    }

    /// What the convolution remembers, `[channels, kernel]`.
    pub(crate) fn conv_state(&self, history: &History, norm: &RmsNorm, num_channels: usize) -> SparseRows {
        self.channels.conv_state(history, norm, num_channels)
    }

    /// Appends the plan for a token. `inputs` are the active columns, where the plan depends on nothing else.
    pub(crate) fn plan(
        &mut self,
        x: &Normed<'_>,
        inputs: &[Pair],
        history: &mut History,
        lists: &mut HeadLists,
        scratch: &mut ConvScratch,
        plan: &mut Vec<Pair>,
    ) {
        plan.push((0, 0));
        for &head in &self.decaying {
            let decay = self.decay(head, x);
            if decay.to_bits() != 1.0_f32.to_bits() {
                plan.push((low_32(head), decay.to_bits()));
                plan[0].0 += 1;
            }
        }
        let HeadLists { places, lists, active } = lists;
        let key_heads = self.key_heads;
        self.channels.run(x, inputs, history, scratch, |channel, value| {
            let (list, dim) = places[channel as usize];
            lists[list as usize].push((dim, value));
            if (list as usize) < 2 * key_heads {
                active.set(list % low_32(key_heads));
            }
        });
        active.drain(|key_head| {
            let (queries, rest) = lists.split_at_mut(key_heads);
            let (keys, values) = rest.split_at_mut(key_heads);
            let (queries, keys) = (&mut queries[key_head as usize], &mut keys[key_head as usize]);
            normalize(keys, |k| k);
            normalize(queries, |q| q / self.query_divisor);
            plan.push((key_head, 0));
            plan.push((low_32(queries.len()), low_32(keys.len())));
            let pair = |(dim, value): (u32, f32)| (dim, value.to_bits());
            plan.extend(queries.drain(..).map(pair));
            if !keys.is_empty() {
                plan.extend(keys.drain(..).map(pair));
                let first = key_head as usize * self.group;
                for (head, values) in (first..).zip(&values[first..first + self.group]) {
                    plan.push((low_32(values.len()), self.beta(head, x).to_bits()));
                    plan.extend(values.iter().copied().map(pair));
                }
            }
        });
        lists[2 * key_heads..].iter_mut().for_each(Vec::clear);
    }

    /// What a head's state is multiplied by, `exp(g)`.
    fn decay(&self, head: usize, x: &Normed<'_>) -> f32 {
        let a = self.precision.round(with_lists!(&self.in_proj_a, rows => rows.dot(head, x)));
        (self.speeds[head] * softplus(a + self.dt_bias[head])).exp()
    }

    /// How strongly a head writes.
    fn beta(&self, head: usize, x: &Normed<'_>) -> f32 {
        let b = self.precision.round(with_lists!(&self.in_proj_b, rows => rows.dot(head, x)));
        self.precision.round(sigmoid(b))
    }
}

/// Divides by the l2 norm, then applies `scale`.
fn normalize(list: &mut [(u32, f32)], scale: impl Fn(f32) -> f32) {
    let squares: f32 = list.iter().map(|&(_, value)| value * value).sum();
    let inverse = 1.0 / (squares + L2_EPS).sqrt();
    for (_, value) in list {
        *value = scale(*value * inverse);
    }
}

/// The heads that decay, with their factors, and the rest of a plan.
pub(crate) fn decays(plan: &[Pair]) -> (&[Pair], Heads<'_>) {
    let (decays, rest) = plan.split_first().map_or((plan, plan), |(&(len, _), rest)| rest.split_at(len as usize));
    (decays, Heads { rest })
}

/// The key heads of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads<'a> {
    rest: &'a [Pair],
}

/// What a key head has to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadPlan<'a> {
    pub(crate) key_head: usize,
    pub(crate) queries: &'a [Pair],
    /// Values follow for each value head, unless there are no keys.
    pub(crate) keys: &'a [Pair],
}

impl<'a> Heads<'a> {
    /// The next key head.
    #[inline(always)]
    pub(crate) fn next_head(&mut self) -> Option<HeadPlan<'a>> {
        let [(key_head, _), (num_queries, num_keys), rest @ ..] = self.rest else { return None };
        let (queries, rest) = rest.split_at(*num_queries as usize);
        let (keys, rest) = rest.split_at(*num_keys as usize);
        self.rest = rest;
        Some(HeadPlan { key_head: *key_head as usize, queries, keys })
    }

    /// What the next value head of a key head with keys writes, and how strongly.
    #[inline(always)]
    pub(crate) fn next_values(&mut self) -> (&'a [Pair], f32) {
        let Some((&(len, beta), rest)) = self.rest.split_first() else { return (&[], 0.0) };
        let (values, rest) = rest.split_at(len as usize);
        self.rest = rest;
        (values, f32::from_bits(beta))
    }
}
