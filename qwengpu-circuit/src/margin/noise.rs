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
use crate::compile::Compiled;
use crate::ir::{Level, Operation, Product, Signal, State, StepKind};
use crate::linear::Linear;
use crate::neurons::column_slope;
use crate::units::Unit;

/// Half an ulp of 1 in f32.
const U: f64 = 1.0 / 16_777_216.0;
/// What a read adds, see the module.
const READ: f64 = 16.0 * U;
/// What a read adds if the forms that were written have noise, see the module.
const WRITTEN: f64 = 256.0 * U;
/// Largest noise of the argument of a dead-zone step or of a condition.
const DEAD_ZONE: f64 = 1.0 / 8.0;
/// Largest noise of a key, query or clear form: 256 times it stays 16 away from where an exponential is not 0.
const ROW: f64 = 1.0 / 16.0;
/// Largest noise of any signal.
const SIGNAL: f64 = 1.0 / 8.0;

/// Noise in f32, and how close it comes to what is allowed.
#[derive(Debug, Default)]
pub(super) struct Noise {
    pub(super) signals: Vec<f64>,
    /// Noise that erased channels keep.
    residue: Vec<f64>,
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
            ..Noise::default()
        };
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
            // Erased before reused: what is left of the old signal stays in the channel.
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
                    // The eraser passes what is off for a value of 0 in part, and rounds: gate, product, sum, channel.
                    noise.residue[channel] = if old > 0.0 { old + 4.0 * U * real(size) } else { 0.0 };
                }
            }
            for unit in &plan.logic {
                let Unit::Logic(number) = *unit else { continue };
                let outcome = self.logic_noise(&mut noise, number);
                let outputs = self.note(outcome, Vec::new());
                for (output, value) in outputs {
                    let outcome = self.settle(&mut noise, output, value, &inherited);
                    self.note(outcome, ());
                }
            }
        }
        noise
    }

    /// The noise of the outputs of a logic operation.
    fn logic_noise(&mut self, noise: &mut Noise, number: usize) -> Result<Vec<(Signal, f64)>, MarginError> {
        let outputs = match &self.netlist.operations()[number] {
            Operation::Table { argument, first, columns, steps, outputs } => {
                self.table_noise(noise, number, argument, *first, columns, *steps, outputs)?
            }
            Operation::Products { terms, output } => vec![(*output, self.product_noise(noise, terms, *output))],
            Operation::Select { condition, then, otherwise, output } => {
                let step = self.dead_zone(noise, number, condition)?;
                let difference = then.clone() - otherwise;
                let (low, high) = self.linear_range(&difference);
                let size = real(high.abs().max(low.abs()));
                let (form, other) = (self.form_noise(noise, &difference), self.form_noise(noise, otherwise));
                let (_, most) = self.linear_range(condition);
                let sum = form + other;
                let gate = real(4 * most.max(0) + 3);
                let rounded = if sum + step > 0.0 { 6.0 * U * gate * (size + 1.0) } else { 0.0 };
                vec![(*output, step * size + sum + rounded)]
            }
            Operation::State(_) => Vec::new(),
        };
        Ok(outputs)
    }

    /// Records a signal's noise: with the rounding of its channel, and what the channel had before.
    fn settle(&self, noise: &mut Noise, signal: Signal, value: f64, inherited: &BTreeMap<Signal, usize>) -> Result<(), MarginError> {
        let before = inherited.get(&signal).map_or(0.0, |&channel| noise.residue[channel]);
        let (low, high) = self.signal_range(signal);
        let mut total = value + before;
        if total > 0.0 {
            total += 2.0 * U * real(high.abs().max(low.abs()).max(1));
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
        if std::env::var("NOISE").is_ok() { eprintln!("NOISE {total:.2e} {} {low}..{high}", self.netlist.name(signal)); }
        Ok(())
    }

    /// The noise of a form: of its signals, and of roundings.
    fn form_noise(&self, noise: &Noise, form: &Linear) -> f64 {
        let passed: f64 = form.terms().map(|(signal, coefficient)| real(coefficient.abs()) * noise.signals[signal.index()]).sum();
        if passed > 0.0 { passed + self.rounding(form) } else { 0.0 }
    }

    /// What roundings add to a form of noisy signals.
    fn rounding(&self, form: &Linear) -> f64 {
        let (mut above, mut below) = (form.constant().max(0), (-form.constant()).max(0));
        let mut products = 0;
        for (signal, coefficient) in form.terms() {
            let (low, high) = self.signal_range(signal);
            let (a, b) = (coefficient * low, coefficient * high);
            above += a.max(b).max(0);
            below += (-a.min(b)).max(0);
            if !coefficient.unsigned_abs().is_power_of_two() {
                products += a.abs().max(b.abs());
            }
        }
        let sums = form.terms().len() - usize::from(form.constant() == 0);
        // One more for the noise itself, which is not an integer and may push a sum past a power of two.
        U * (real_size(sums) * real(above.max(below) + 1) + real(products))
    }

    fn dead_zone(&self, noise: &mut Noise, number: usize, argument: &Linear) -> Result<f64, MarginError> {
        let passed = self.form_noise(noise, argument);
        if passed > noise.dead_zone.0 {
            noise.dead_zone = (passed, number);
        }
        if passed > DEAD_ZONE {
            return Err(self.too_noisy(number, "the argument of a step", passed, DEAD_ZONE));
        }
        // Roundings of the two gates, halved.
        Ok(if passed > 0.0 { self.rounding(&(argument.clone() * 4 + 3)) } else { 0.0 })
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
    ) -> Result<Vec<(Signal, f64)>, MarginError> {
        let passed = self.form_noise(noise, argument);
        let (_, most) = self.linear_range(argument);
        let step = if steps == StepKind::DeadZone { self.dead_zone(noise, number, argument)? } else { 0.0 };
        if passed > DEAD_ZONE {
            return Err(self.too_noisy(number, "the argument of a table", passed, DEAD_ZONE));
        }
        let mut result = Vec::new();
        for (column, &output) in columns.iter().zip(outputs) {
            if passed == 0.0 {
                result.push((output, 0.0));
                continue;
            }
            let slope = column_slope(column, steps);
            let (mut total, mut magnitude, mut terms) = (0.0, 0.0, 0);
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
                        magnitude += real(change.abs()) * real(4 * above + 3) / 2.0;
                        terms += 2;
                    }
                    StepKind::Plain if change != before => {
                        // One neuron for each change of slope.
                        total += real((change - before).abs()) * self.rounding(argument);
                        magnitude += real((change - before).abs()) * real(above + 1);
                        terms += 1;
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
                magnitude += real(most - first);
                terms += 2;
            }
            // Roundings of products, and of the projection's sum.
            result.push((output, total + U * magnitude * (1.0 + real_size(terms))));
        }
        Ok(result)
    }

    fn product_noise(&mut self, noise: &Noise, terms: &[Product], output: Signal) -> f64 {
        let mut silent = 0.0;
        let mut active: Vec<(f64, f64)> = Vec::new();
        for term in terms {
            let size = real(term.coefficient.abs());
            let (_, most) = self.linear_range(&term.gate);
            let (low, high) = self.linear_range(&term.up);
            if most < 0 {
                active.push((0.0, 0.0));
                continue;
            }
            let up = real(high.abs().max(low.abs()));
            let (gate, up_noise) = (self.form_noise(noise, &term.gate), self.form_noise(noise, &term.up));
            // At a gate of 0, silu passes about half: sigmoid(128 n) <= 1/2 + 32 n.
            let passed = size * gate * (up + up_noise);
            let half = passed * (0.5 + 32.0 * gate).min(1.0);
            silent += half;
            let product = size * real(most.max(0)) * up;
            let rounded = if gate + up_noise > 0.0 { U * product } else { 0.0 };
            active.push((passed - half + size * real(most.max(0)) * up_noise + rounded, product));
        }
        let whole = (0..terms.len()).map(|number| vec![number]).collect::<Vec<_>>();
        let cliques = self.cliques.get(&output).unwrap_or(&whole);
        let worst = |part: fn(&(f64, f64)) -> f64| -> f64 {
            cliques.iter().map(|clique| clique.iter().map(|&number| part(&active[number])).fold(0.0, f64::max)).sum()
        };
        let total = silent + worst(|active| active.0);
        if total > 0.0 { total + U * real_size(cliques.len()) * worst(|active| active.1) } else { 0.0 }
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
        let rows = state.write.forms().chain(&state.clear).chain(read.into_iter().flat_map(|read| read.query.forms()));
        let mut keys: f64 = 0.0;
        for form in rows {
            // An address adds its bits up; the forms of a choice stand alone.
            keys = keys.max(self.form_noise(noise, form));
        }
        let address = |choice: &crate::ir::RowChoice| match choice {
            crate::ir::RowChoice::Address { .. } => choice.forms().map(|form| self.form_noise(noise, form)).sum(),
            crate::ir::RowChoice::Rows(_) => 0.0_f64,
        };
        keys = keys.max(address(&state.write)).max(read.map_or(0.0, |read| address(&read.query)));
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
            crate::ir::RowChoice::Rows(forms) => {
                forms.iter().map(|form| forms.iter().filter(|other| *other == form).count()).max().unwrap_or(1)
            }
            crate::ir::RowChoice::Address { .. } => 1,
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
