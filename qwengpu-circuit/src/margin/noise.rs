//! How far a signal may be from its integer, in f32.
//!
//! In bf16 there is no noise: every activation is an integer that bf16 holds, f32 sums of them are exact, and what a
//! read returns is rounded to the integer (see the module's page on reads). In f32 a value read from a state is off by
//! up to [`READ`], and everything computed from it by what follows. `u = 2^-24` is half an ulp of 1.
//!
//! **Form.** `F = c_0 + sum c_i x_i` with `x_i` off by `n_i`: off by `sum |c_i| n_i`, and, if any `n_i` is not 0, by
//! roundings: of the sums, at most one less than there are terms, each of a partial sum that lies between the sum of all
//! negative and that of all positive terms, whatever the order; and of products whose coefficient is not a power of two.
//! Without noise all partial sums are integers and nothing is rounded.
//!
//! **Silu.** At `128 g`, `g >= 1/2`, it is the identity in f32; for `g <= -1/2` it is less than `2^-80` in magnitude,
//! and exactly 0 from `g <= -0.82` on; between, `|silu(128 g)| <= 128 |g|`. So a relu of an integer form that is off by
//! `n` is off by at most `n`.
//!
//! **Dead-zone step.** `(relu(4F + 3) - relu(4F + 1)) / 2`: for integer `F` off by at most 1/8, both gates are at least
//! 1/2 away from 0 on the same side, so the noise of `F` cancels and roundings remain: for `F < 0` nothing. A column
//! adds up steps below the argument: each has the roundings of its two gates and of their products, and the projection
//! those of its sum.
//!
//! **Plain step.** Noise passes at one knee: a column between `x - 1` and `x + 1` is piecewise linear, so off by at most
//! the largest of its changes times the noise.
//!
//! **Product.** `relu(G) U`: off by `n_G |U| + (G + n_G) n_U` and one rounding. Of terms that exclude each other one
//! is active; the others, at a gate of 0, pass `n_G |U| (1/2 + 32 n_G)`, because that is what silu does close to 0.
//!
//! **Read.** [`READ`]; the noise of the form that was written, from each row that is read together (a bit that is 0 may
//! have been written as little more than 0); the noise of the level form, in proportion; and, if anything written was
//! off, [`WRITTEN`] for the roundings of the chunk that wrote it.
//!
//! # Reads
//!
//! A row's key is exactly 1 and other keys exactly 0, so by the delta rule a stored element is `v - s + s`: integers
//! below `2^23`, exact whether token by token or in a chunk, whose triangular system has entries 0 and 1. A read
//! multiplies by `c = 128^-1/2` in f32, which is no power of two. Token by token that is one product. In a chunk of 64
//! the read is a sum of `c u_i` over the changes `u_i` of the row within the chunk, which alternate in sign: added in
//! order of position, each partial sum is `c` times 0 or one bit, and exact. What is left are the roundings of `q`
//! (normalised, then scaled: 4), of the product (1), of the norm after the read (its sum of squares is dominated by two
//! equal terms, to which the others add less than one `u`; with mean, root and product 6): a bit that is 1 is off by at
//! most 16 `u`, which is [`READ`], and a bit that is 0 is 0. In bf16 such a 1 is rounded to 1.
//!
//! The order of position is what a matrix product over 64 terms does with one accumulator for each output. An engine
//! that adds in 8 or more interleaved parts stays below `322 u < 2^-15` instead: a part has at most 8 terms, all
//! roundings together at most `8 * 21 + 4 * 15 + 2 * 31 + 32`.
//!
//! If what is written is off, so are the changes: the sum that makes a change, the one that makes the new state and the
//! one that reads it have at most 65 terms with partial sums of about one bit, so each rounds by at most `65 u`, and
//! [`WRITTEN`] is more than all three.

use std::collections::BTreeMap;

use super::error::{Dtype, MarginError};
use super::facts::Facts;
use super::form::{ALONE, Form};
use crate::compile::Compiled;
use crate::ir::{Level, Operation, Product, RowChoice, Signal, State, StepKind};
use crate::linear::Linear;
use crate::neurons::column_slope;
use crate::units::Unit;

/// The noise that a form's signals have, without roundings.
fn passed(noise: &Noise, form: &Linear) -> f64 {
    form.terms().map(|(signal, coefficient)| real(coefficient.abs()) * noise.signals[signal.index()]).sum()
}

/// The largest sum of the positive partial sums of terms in any order: after `j` terms a partial sum is at most the sum
/// of the `j` largest positive ones, and, when there are no more of these, less the smallest negative ones. The first
/// is a term by itself, which nothing rounds.
fn partial_sums(positive: &[i64], negative: &[i64]) -> i64 {
    let (mut up, mut down) = (positive.to_vec(), negative.to_vec());
    up.sort_unstable_by(|a, b| b.cmp(a));
    down.sort_unstable();
    let mut partial = 0;
    let mut total = 0;
    for (place, step) in up.into_iter().chain(down.into_iter().map(|value| -value)).enumerate() {
        partial = (partial + step).max(0);
        if place > 0 {
            total += partial;
        }
    }
    total
}

/// Half an ulp of 1 in f32.
const U: f64 = 1.0 / 16_777_216.0;
/// What a read adds, see the module.
const READ: f64 = 16.0 * U;
/// What a read adds if the forms that were written have noise, see the module.
const WRITTEN: f64 = 256.0 * U;
/// Largest noise of the argument of a dead-zone step or of a condition.
const DEAD_ZONE: f64 = 1.0 / 8.0;
/// Largest noise of a row form: a key or query of a row that takes no part is at most `-128 + 32`, and silu is exactly 0
/// from -88.8 on.
const ROW: f64 = 1.0 / 8.0;
/// Largest noise of a clear form: a decay that is asked for is at least `128 - 16`, and `exp(-112)` is 0 in f32.
const CLEAR: f64 = 1.0 / 16.0;
/// Largest noise of any signal, and of the argument of plain steps.
const SIGNAL: f64 = 1.0 / 4.0;

/// What an operation adds to a channel.
#[derive(Clone, Copy, Debug)]
struct Made {
    signal: Signal,
    noise: f64,
    /// How many neurons add to it, at most, and the sum of the magnitudes.
    terms: usize,
    sum: f64,
}

/// Noise in f32, and how close it comes to what is allowed.
#[derive(Debug, Default)]
pub(super) struct Noise {
    pub(super) signals: Vec<f64>,
    /// Noise that erased channels keep.
    residue: Vec<f64>,
    /// For each signal, how much its channel may hold.
    sizes: Vec<i64>,
    /// Largest noise of a dead-zone argument, with its operation.
    pub(super) dead_zone: (f64, usize),
    /// Largest noise of a key, query or clear form.
    pub(super) row: (f64, usize),
}

impl Facts<'_> {
    /// Bounds the noise of every placed signal.
    pub(super) fn noise(&mut self, compiled: &Compiled) -> Noise {
        let mut noise = Noise {
            signals: vec![0.0; self.netlist.signals().len()],
            residue: vec![0.0; compiled.placement.occupants.len()],
            sizes: vec![1; self.netlist.signals().len()],
            ..Noise::default()
        };
        for occupant in compiled.placement.occupants.iter().flatten() {
            let size = occupant
                .signals
                .iter()
                .map(|&signal| self.signal_range(signal))
                .map(|(low, high)| high.abs().max(low.abs()));
            let size = size.sum();
            occupant.signals.iter().for_each(|signal| noise.sizes[signal.index()] = size);
        }
        // Noise that a channel had before, for the signals that take it over.
        let mut inherited: BTreeMap<Signal, usize> = BTreeMap::new();
        for (channel, occupants) in compiled.placement.occupants.iter().enumerate() {
            for occupant in occupants.iter().skip(1) {
                inherited.extend(occupant.signals.first().map(|&signal| (signal, channel)));
            }
        }
        for plan in &compiled.schedule.layers {
            for unit in &plan.ports {
                if let Unit::Port(number, port) = *unit
                    && let Operation::State(state) = &self.netlist.operations()[number]
                {
                    let outcome = self.read_noise(&mut noise, number, state, port, &inherited);
                    self.note(outcome, ());
                }
            }
            // Erased before reused: roundings stay in the channel.
            for &class in &plan.erased {
                if let Some(channel) = compiled.placement.channels[class.index()] {
                    let occupants = &compiled.placement.occupants[channel];
                    let members = occupants.iter().find(|occupant| occupant.signals.contains(&class));
                    let (mut old, mut size) = (0.0, 1);
                    for &signal in members.into_iter().flat_map(|occupant| &occupant.signals) {
                        let (low, high) = self.signal_range(signal);
                        old += noise.signals[signal.index()];
                        size += high.abs().max(low.abs());
                    }
                    // Both erasers together take away all of it (silu(y) - silu(-y) = y), but for roundings: of what is
                    // off from 0 within silu, otherwise of gate, product, sum and channel.
                    noise.residue[channel] = if old > 0.0 { 8.0 * U * (old + real(size)) } else { 0.0 };
                }
            }
            let mut shared: BTreeMap<Signal, Vec<Made>> = BTreeMap::new();
            for unit in &plan.logic {
                let Unit::Logic(number) = *unit else { continue };
                let outcome = self.logic_noise(&mut noise, number);
                for made in self.note(outcome, Vec::new()) {
                    let class = compiled.placement.class[made.signal.index()];
                    shared.entry(class).or_default().push(made);
                    let outcome = self.settle(&mut noise, made.signal, made.noise, &inherited);
                    self.note(outcome, ());
                }
            }
            self.share(&mut noise, &shared);
        }
        noise
    }

    /// Adds roundings of the projection of one layer to a channel that gets several signals from it.
    fn share(&self, noise: &mut Noise, shared: &BTreeMap<Signal, Vec<Made>>) {
        for made in shared.values().filter(|made| made.len() > 1) {
            let terms: usize = made.iter().map(|made| made.terms).sum();
            let sum: f64 = made.iter().map(|made| made.sum).sum();
            if made.iter().any(|made| made.noise > 0.0)
                && let Some(first) = made.first()
            {
                noise.signals[first.signal.index()] += U * real_size(terms) * sum;
            }
        }
    }

    /// The noise of the outputs of a logic operation.
    fn logic_noise(&mut self, noise: &mut Noise, number: usize) -> Result<Vec<Made>, MarginError> {
        let outputs = match &self.netlist.operations()[number] {
            Operation::Table { argument, first, columns, steps, outputs } => {
                self.table_noise(noise, number, argument, *first, columns, *steps, outputs)?
            }
            Operation::Products { terms, output } => vec![self.product_noise(noise, terms, *output)],
            Operation::Select { condition, then, otherwise, output } => {
                let step = self.dead_zone(noise, number, condition)?;
                let difference = then.clone() - otherwise;
                let (low, high) = self.linear_range(&difference);
                let size = real(high.abs().max(low.abs()));
                // What is off in `otherwise` cancels when the step adds the difference: both neurons read the same channels.
                let chosen = passed(noise, then).max(passed(noise, otherwise));
                let (_, most) = self.linear_range(condition);
                let gate = real(4 * most.max(0) + 3);
                let total = if chosen + step > 0.0 {
                    let rounded = gate * self.rounding(&difference, false) + self.rounding(otherwise, false);
                    chosen + step * size + rounded + 6.0 * U * gate * (size + 1.0)
                } else {
                    0.0
                };
                vec![Made { signal: *output, noise: total, terms: 3, sum: (2.0 * gate + 1.0) * (size + 1.0) }]
            }
            Operation::State(_) => Vec::new(),
        };
        Ok(outputs)
    }

    /// Records a signal's noise: with the rounding of its channel, and what the channel had before.
    fn settle(
        &self,
        noise: &mut Noise,
        signal: Signal,
        value: f64,
        inherited: &BTreeMap<Signal, usize>,
    ) -> Result<(), MarginError> {
        let before = inherited.get(&signal).map_or(0.0, |&channel| noise.residue[channel]);
        let mut total = value + before;
        if total > 0.0 {
            total += 2.0 * U * real(noise.sizes[signal.index()].max(1));
        }
        if total > SIGNAL {
            return Err(MarginError::Noise {
                operation: self.netlist.name(signal).to_owned(),
                what: "the signal",
                dtype: Dtype::F32,
                noise: total,
                limit: SIGNAL,
            });
        }
        noise.signals[signal.index()] = total;
        Ok(())
    }

    /// The noise of a form: of its signals, and of roundings.
    fn form_noise(&mut self, noise: &Noise, form: &Linear) -> f64 {
        let passed = passed(noise, form);
        if passed > 0.0 { passed + self.rounding(form, false) } else { 0.0 }
    }

    /// The noise of a form wherever it is not negative.
    fn gate_noise(&mut self, noise: &Noise, form: &Linear) -> f64 {
        let passed = passed(noise, form);
        if passed > 0.0 { passed + self.rounding(form, true) } else { 0.0 }
    }

    /// What roundings add to a form of noisy signals; `gate`: where it is not negative, so that its negative terms add
    /// up to no more than the positive ones.
    fn rounding(&mut self, linear: &Linear, gate: bool) -> f64 {
        let form = self.form(linear);
        let mut products = 0;
        for (signal, coefficient) in linear.terms() {
            let (low, high) = self.signal_range(signal);
            if !coefficient.unsigned_abs().is_power_of_two() {
                products += coefficient.abs() * high.abs().max(low.abs());
            }
        }
        let (above, below) = (self.one_sided(&form, 1), self.one_sided(&form, -1));
        let largest = if gate {
            partial_sums(&above, &below)
        } else {
            partial_sums(&above, &below).max(partial_sums(&below, &above))
        };
        // One more for the noise itself, which is not an integer and may push a sum past a power of two.
        U * (real(largest) + real_size(above.len() + below.len()) + real(products))
    }

    /// The largest values of the positive (or negative) terms of a form, those of a group as one.
    fn one_sided(&self, form: &Form, sign: i64) -> Vec<i64> {
        let world = &self.worlds[super::world::MOST_DEPTH];
        let mut groups: BTreeMap<u32, i64> = BTreeMap::new();
        let mut values = vec![(sign * form.constant).max(0)];
        for term in &form.terms {
            let value = term.max(sign, &world.low, &world.high).max(0);
            if term.group == ALONE {
                values.push(value);
            } else {
                let most = groups.entry(term.group).or_insert(0);
                *most = (*most).max(value);
            }
        }
        values.extend(groups.values());
        values.retain(|&value| value > 0);
        values
    }

    fn dead_zone(&mut self, noise: &mut Noise, number: usize, argument: &Linear) -> Result<f64, MarginError> {
        let passed = self.gate_noise(noise, argument);
        if passed > noise.dead_zone.0 {
            noise.dead_zone = (passed, number);
        }
        if passed > DEAD_ZONE {
            return Err(self.too_noisy(number, "the argument of a step", passed, DEAD_ZONE));
        }
        // Roundings of the two gates, halved.
        Ok(if passed > 0.0 { self.rounding(&(argument.clone() * 4 + 3), true) } else { 0.0 })
    }

    fn too_noisy(&self, number: usize, what: &'static str, noise: f64, limit: f64) -> MarginError {
        MarginError::Noise { operation: self.netlist.operation_name(number), what, dtype: Dtype::F32, noise, limit }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a table")]
    fn table_noise(
        &mut self,
        noise: &mut Noise,
        number: usize,
        argument: &Linear,
        first: i64,
        columns: &[Vec<i64>],
        steps: StepKind,
        outputs: &[Signal],
    ) -> Result<Vec<Made>, MarginError> {
        let passed = self.gate_noise(noise, argument);
        let rounding = self.rounding(&(argument.clone() - first), true);
        let (_, most) = self.linear_range(argument);
        let step = if steps == StepKind::DeadZone { self.dead_zone(noise, number, argument)? } else { 0.0 };
        if passed > SIGNAL {
            return Err(self.too_noisy(number, "the argument of a table", passed, SIGNAL));
        }
        let mut result = Vec::new();
        for (column, &output) in columns.iter().zip(outputs) {
            if passed == 0.0 {
                result.push(Made { signal: output, noise: 0.0, terms: 0, sum: 0.0 });
                continue;
            }
            let slope = column_slope(column, steps);
            let mut total = 0.0;
            // What its neurons add up to, twice.
            let mut sides: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
            let mut adds = |value: i64| sides[usize::from(value < 0)].push(value.abs());
            let mut largest = 0_i64;
            let mut before = 0;
            for (threshold, pair) in (first + 1..).zip(column.windows(2)) {
                let change = pair[1] - pair[0] - slope;
                largest = largest.max((pair[1] - pair[0]).abs());
                let above = most - threshold;
                if above < -1 {
                    break;
                }
                match steps {
                    StepKind::DeadZone if change != 0 && above >= 0 => {
                        total += real(change.abs()) * step;
                        adds(change * (4 * above + 3));
                        adds(-change * (4 * above + 1));
                    }
                    StepKind::Plain if change != before => {
                        // One neuron for each change of slope.
                        total += real((change - before).abs()) * rounding;
                        adds(2 * (change - before) * (above + 1));
                    }
                    StepKind::DeadZone | StepKind::Plain => {}
                }
                before = change;
            }
            if steps == StepKind::Plain {
                total += real(largest) * passed;
            }
            if slope != 0 {
                total += passed;
                adds(2 * slope * (most - first));
            }
            // Roundings of products, and of the projection's sum.
            let [up, down] = &sides;
            let products: i64 = up.iter().chain(down).sum();
            let sums = partial_sums(up, down).max(partial_sums(down, up));
            let noise = total + U * real(products + sums) / 2.0;
            result.push(Made { signal: output, noise, terms: up.len() + down.len(), sum: real(products) / 2.0 });
        }
        Ok(result)
    }

    fn product_noise(&mut self, noise: &Noise, terms: &[Product], output: Signal) -> Made {
        let mut silent: Vec<f64> = Vec::new();
        let mut active: Vec<(f64, f64)> = Vec::new();
        for term in terms {
            let size = real(term.coefficient.abs());
            let (_, most) = self.linear_range(&term.gate);
            let (low, high) = self.linear_range(&term.up);
            if most < 0 {
                silent.push(0.0);
                active.push((0.0, 0.0));
                continue;
            }
            let up = real(high.abs().max(low.abs()));
            let (gate, up_noise) = (self.gate_noise(noise, &term.gate), self.form_noise(noise, &term.up));
            // At a gate of 0, silu passes about half: sigmoid(128 n) <= 1/2 + 32 n.
            let passed = size * gate * (up + up_noise);
            let half = passed * (0.5 + 32.0 * gate).min(1.0);
            let product = size * real(most.max(0)) * up;
            let rounded = if gate + up_noise > 0.0 { U * product } else { 0.0 };
            silent.push(half);
            active.push((passed - half + size * real(most.max(0)) * up_noise + rounded, product));
        }
        let whole = (0..terms.len()).map(|number| vec![number]).collect::<Vec<_>>();
        let cliques = self.cliques.get(&output).unwrap_or(&whole);
        let worst = |part: &dyn Fn(usize) -> f64| -> f64 {
            cliques.iter().map(|clique| clique.iter().map(|&number| part(number)).fold(0.0, f64::max)).sum()
        };
        // Gates at 0 or above at the same time: all, or as many as were counted.
        silent.sort_by(|a, b| b.total_cmp(a));
        let awake = self.awake.get(&output).copied().unwrap_or(silent.len());
        let passed: f64 = silent.iter().take(awake).sum();
        let total = passed + worst(&|number| active[number].0);
        // Terms that are not 0: the active ones, and what little those at a gate of 0 pass.
        let (count, sum) = (cliques.len() + awake, worst(&|number| active[number].1));
        let noise = if total > 0.0 { total + U * real_size(count) * (sum + 1.0) } else { 0.0 };
        Made { signal: output, noise, terms: count, sum }
    }

    fn read_noise(
        &mut self,
        noise: &mut Noise,
        number: usize,
        state: &State,
        port: usize,
        inherited: &BTreeMap<Signal, usize>,
    ) -> Result<(), MarginError> {
        let read = state.reads.get(port);
        if let Some(clear) = &state.clear {
            let clear = self.form_noise(noise, clear);
            if clear > CLEAR {
                return Err(self.too_noisy(number, "the clear form", clear, CLEAR));
            }
        }
        let mut keys: f64 = 0.0;
        for choice in std::iter::once(&state.write).chain(read.map(|read| &read.query)) {
            // An address adds its bits up; the forms of a choice stand alone.
            let forms: Vec<f64> = choice.forms().map(|form| self.form_noise(noise, form)).collect();
            keys = keys.max(match choice {
                RowChoice::Address { .. } => forms.iter().sum(),
                RowChoice::Rows(_) => forms.iter().copied().fold(0.0, f64::max),
            });
        }
        if keys > noise.row.0 {
            noise.row = (keys, number);
        }
        if keys > ROW {
            return Err(self.too_noisy(number, "a row form", keys, ROW));
        }
        let Some(read) = read else { return Ok(()) };
        let level = match &state.level {
            Level::EveryRow => 0.0,
            Level::When(form) => self.form_noise(noise, form),
        };
        let together = match &read.query {
            RowChoice::Rows(forms) => {
                forms.iter().map(|form| forms.iter().filter(|other| *other == form).count()).max().unwrap_or(1)
            }
            RowChoice::Address { .. } => 1,
        };
        for (value, &output) in state.value.iter().zip(&read.outputs) {
            let stored = self.form_noise(noise, value);
            let written = if stored + keys + level > 0.0 { WRITTEN } else { 0.0 };
            let total = READ + written + real_size(together) * (stored + level);
            self.settle(noise, output, total, inherited)?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound on small integers")]
pub(super) fn real(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "a number of terms")]
fn real_size(value: usize) -> f64 {
    value as f64
}
