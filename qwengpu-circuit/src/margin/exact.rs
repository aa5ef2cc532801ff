//! Integers that must fit what holds them.
//!
//! bf16 has 8 significant bits, so it holds every integer up to 256 in magnitude. A pre-activation that is at most
//! -128 may be rounded (its silu is 0 all the same); every other activation must be exact: gates while positive, up
//! projections and products while the gate is positive, what an MLP adds to a channel, and the channel. Sums inside a
//! projection are f32: exact in any order while the magnitudes of their terms add up to less than `2^24` of the
//! smallest unit among them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::error::MarginError;
use super::facts::Facts;
use super::form::Form;
use super::world::Constraint;
use crate::compile::Compiled;
use crate::geometry::ConstantPlan;
use crate::ir::{Operation, Signal, StepKind};
use crate::linear::Linear;
use crate::neurons::column_slope;
use crate::units::Unit;

/// Largest integer up to which bf16 has them all.
const LARGEST: i64 = 256;
/// Largest sum of magnitudes of integers that f32 adds exactly.
const LARGEST_SUM: i64 = 1 << 24;

impl Facts<'_> {
    /// Proves that every activation of the compiled machine is exact.
    pub(super) fn prove_exact(&mut self, compiled: &Compiled) {
        for plan in &compiled.schedule.layers {
            for unit in plan.logic.iter().chain(&plan.ports) {
                let (Unit::Logic(number) | Unit::Port(number, _)) = *unit;
                let outcome = self.exact_operation(number);
                self.note(outcome, ());
            }
        }
        for outcome in [self.exact_channels(compiled), self.squares(compiled)] {
            self.note(outcome, ());
        }
    }

    fn exceeds(&self, number: usize, what: &'static str, bound: i64, limit: i64) -> MarginError {
        MarginError::Exactness { operation: self.netlist.operation_name(number), what, bound, limit }
    }

    fn sums(&mut self, number: usize, form: &Linear, factor: i64) -> Result<(), MarginError> {
        let terms: i64 = form.terms().map(|(signal, coefficient)| coefficient.abs() * self.magnitude(signal)).sum();
        let sum = factor * (form.constant().abs() + terms);
        if sum > LARGEST_SUM {
            Err(self.exceeds(number, "the sum of magnitudes of a form", sum, LARGEST_SUM))
        } else {
            Ok(())
        }
    }

    fn magnitude(&self, signal: Signal) -> i64 {
        let (low, high) = self.signal_range(signal);
        high.abs().max(low.abs())
    }

    fn exact_operation(&mut self, number: usize) -> Result<(), MarginError> {
        let netlist = self.netlist;
        match &netlist.operations()[number] {
            Operation::Table { argument, first, columns, steps, .. } => {
                self.sums(number, argument, if *steps == StepKind::DeadZone { 4 } else { 1 })?;
                let (_, most) = self.linear_range(argument);
                for column in columns {
                    let slope = column_slope(column, *steps);
                    let changes = (first + 1..).zip(column.windows(2)).filter(|(_, pair)| pair[1] - pair[0] != slope);
                    let lowest = changes.map(|(threshold, _)| threshold).next();
                    if slope != 0 && most - first > LARGEST {
                        return Err(self.exceeds(
                            number,
                            "the argument above a table's first entry",
                            most - first,
                            LARGEST,
                        ));
                    }
                    if let Some(threshold) = lowest {
                        let gate = match steps {
                            StepKind::DeadZone => 4 * (most - threshold) + 3,
                            StepKind::Plain => most - threshold + 1,
                        };
                        if gate > LARGEST {
                            return Err(self.exceeds(number, "the gate of a table's lowest step", gate, LARGEST));
                        }
                    }
                }
            }
            Operation::Products { terms, .. } => {
                for term in terms {
                    self.sums(number, &term.gate, 1)?;
                    self.sums(number, &term.up, 1)?;
                    self.exact_product(number, &term.gate, &term.up)?;
                }
            }
            Operation::Select { condition, then, otherwise, .. } => {
                let difference = then.clone() - otherwise;
                self.sums(number, condition, 4)?;
                self.sums(number, &difference, 1)?;
                self.exact_product(number, &(condition.clone() * 4 + 3), &difference)?;
                self.exact_product(number, otherwise, &Linear::one())?;
                let (low, _) = self.linear_range(otherwise);
                if low < 0 {
                    return Err(self.exceeds(number, "minus the value of a negative condition", -low, 0));
                }
            }
            Operation::State(state) => {
                let queries = state.reads.iter().flat_map(|read| read.query.forms());
                for form in state.forms().chain(queries) {
                    self.sums(number, form, 4)?;
                }
            }
        }
        Ok(())
    }

    /// A gate, an up form, and their product, while the gate is positive.
    fn exact_product(&mut self, number: usize, gate: &Linear, up: &Linear) -> Result<(), MarginError> {
        let (_, mut most) = self.linear_range(gate);
        if most <= 0 {
            return Ok(());
        }
        let (low, high) = self.linear_range(up);
        let mut factor = high.abs().max(low.abs());
        let product_fits = |most: i64, factor: i64| {
            most <= LARGEST
                && factor <= LARGEST
                && (most * factor <= LARGEST
                    || (up.is_constant() && crate::lower::is_bf16(most) && factor.count_ones() <= 1))
        };
        if !product_fits(most, factor) {
            // Both forms while the gate is positive.
            let [gate, up]: [Rc<Form>; 2] = [self.form(gate), self.form(up)];
            let active = [Constraint::at_least(&gate, 1)];
            let Some(gates) = self.range_if(&active, &gate) else { return Ok(()) };
            let Some(ups) = self.range_if(&active, &up) else { return Ok(()) };
            most = most.min(gates.1);
            factor = factor.min(ups.0.abs().max(ups.1.abs()));
        }
        if most > LARGEST {
            return Err(self.exceeds(number, "a gate", most, LARGEST));
        }
        if factor > LARGEST {
            return Err(self.exceeds(number, "an up projection", factor, LARGEST));
        }
        if product_fits(most, factor) {
            Ok(())
        } else {
            Err(self.exceeds(number, "gate times up projection", most * factor, LARGEST))
        }
    }

    /// What is added to a channel in one layer, and what it holds.
    fn exact_channels(&mut self, compiled: &Compiled) -> Result<(), MarginError> {
        let mut made: BTreeMap<Signal, (usize, usize)> = BTreeMap::new();
        for (layer, plan) in compiled.schedule.layers.iter().enumerate() {
            for unit in plan.ports.iter().chain(&plan.logic) {
                let (outputs, number) = match *unit {
                    Unit::Logic(number) => (self.netlist.operations()[number].outputs(), number),
                    Unit::Port(number, port) => match &self.netlist.operations()[number] {
                        Operation::State(state) => {
                            (state.reads.get(port).map_or_else(Vec::new, |read| read.outputs.clone()), number)
                        }
                        _ => (Vec::new(), number),
                    },
                };
                made.extend(outputs.into_iter().map(|output| (output, (layer, number))));
            }
        }
        for occupants in &compiled.placement.occupants {
            let mut gone: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
            for occupant in occupants {
                let total = occupant.signals.iter().fold((0, 0), |sum, &signal| {
                    let (low, high) = self.signal_range(signal);
                    (sum.0 + low.min(0), sum.1 + high.max(0))
                });
                let number =
                    occupant.signals.first().and_then(|signal| made.get(signal)).map_or(0, |&(_, number)| number);
                let bound = total.1.max(-total.0);
                if bound > LARGEST {
                    return Err(self.exceeds(number, "a channel", bound, LARGEST));
                }
                // In the layer in which the channel's last occupant is erased, both add up in one projection.
                if let Some(old) = occupant.made.and_then(|layer| gone.get(&layer)) {
                    let bound = (total.1 - old.0).max(old.1 - total.0);
                    if bound > LARGEST {
                        return Err(self.exceeds(number, "a channel that is erased and used again", bound, LARGEST));
                    }
                }
                if let Some(layer) = occupant.erased {
                    gone.insert(layer, total);
                }
            }
        }
        Ok(())
    }

    /// Sums of squares of all channels but the constant ones, around each layer.
    fn squares(&mut self, compiled: &Compiled) -> Result<(), MarginError> {
        for layer in 0..compiled.placement.layers.len() {
            let mut squares = i64::from(compiled.placement.one_channel.is_some());
            for occupant in compiled.placement.occupants.iter().flatten() {
                let alive = occupant.made.is_none_or(|made| made <= layer)
                    && occupant.erased.is_none_or(|erased| erased >= layer);
                if alive {
                    let total = occupant.signals.iter().fold((0, 0), |sum, &signal| {
                        let (low, high) = self.signal_range(signal);
                        (sum.0 + low.min(0), sum.1 + high.max(0))
                    });
                    squares += total.1.max(-total.0).pow(2);
                }
            }
            if squares >= ConstantPlan::SQUARES {
                return Err(MarginError::Squares { layer, squares, limit: ConstantPlan::SQUARES });
            }
            self.largest_squares = self.largest_squares.max(squares);
        }
        Ok(())
    }
}
