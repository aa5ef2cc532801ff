//! What must hold of a state so that its rows stay exact.
//!
//! Writes: every row form at most 1, at most one row at a time (by construction for addresses with bits in `0..=1`),
//! every value form at most 1 while a row is written. Reads: one row at a time, or classes of rows that share one form,
//! `4^j` of them, of which at most one class is active; then each bit may come from one row of a class only, and one
//! row, always, carries the level.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::error::MarginError;
use super::facts::{Definition, Facts, PortFacts, StateFacts};
use super::form::Form;
use super::world::Constraint;
use crate::ir::{Level, RowChoice, State};
use crate::linear::Linear;

/// Rows that are read together: their common form, and their numbers.
type Class = (Linear, Vec<usize>);

impl Facts<'_> {
    /// Proves a state and defines its outputs; returns what had to be assumed.
    pub(super) fn state(&mut self, number: usize, state: &State) -> Result<Vec<String>, MarginError> {
        let fault = |what: String| MarginError::State { state: state.name.clone(), what };
        let writes = self.row_choice(state, &state.write, "write")?;
        let values: Vec<Rc<Form>> = state.value.iter().map(|value| self.form(value)).collect();
        let written: Vec<Rc<Form>> = writes.iter().map(|(form, _)| self.form(form)).collect();
        if matches!(state.write, RowChoice::Rows(_)) {
            for second in 0..written.len() {
                for first in 0..second {
                    if !self.never_both(&written[first], &written[second]) {
                        return Err(fault(format!(
                            "rows {} and {} may be written at once",
                            writes[first].1[0], writes[second].1[0]
                        )));
                    }
                }
            }
            if let Some((_, rows)) = writes.iter().find(|(_, rows)| rows.len() > 1) {
                return Err(fault(format!("rows {} and {} have the same write form", rows[0], rows[1])));
            }
        }
        for (bit, value) in values.iter().enumerate() {
            self.at_most_while_written(value, &written)
                .map_err(|most| fault(format!("bit {bit} may be written as {most}")))?;
        }
        let level = match &state.level {
            Level::EveryRow => None,
            Level::When(form) => Some(self.form(form)),
        };
        if let Some(level) = &level {
            self.at_most_while_written(level, &written)
                .map_err(|most| fault(format!("the level may be written as {most}")))?;
        }
        if let Some(clear) = &state.clear {
            let clear = self.form(clear);
            if !self.at_most(&clear, 1) || self.range(&clear).0 < 0 {
                return Err(fault("the clear form is not a bit".to_owned()));
            }
        }
        self.states.insert(number, StateFacts { writes: written.clone(), values });
        let mut assumptions = Vec::new();
        for (port, read) in state.reads.iter().enumerate() {
            let classes = self.row_choice(state, &read.query, "query")?;
            let queries: Vec<Rc<Form>> = classes.iter().map(|(form, _)| self.form(form)).collect();
            let together = self.classes_read(state, port, &read.query, &classes, &queries, level.is_some())?;
            let holders = if together {
                let mut holders = Vec::new();
                for (_, class) in &classes {
                    self.one_level(state, class, &writes, level.as_ref())?;
                    holders.push(self.columns(number, state, class, &writes)?);
                }
                assumptions
                    .push(format!("{}: no row is read before the row that carries the level is written", state.name));
                Some(holders)
            } else {
                None
            };
            let outputs = read.outputs.iter().map(|output| output.0).collect();
            let facts = PortFacts { state: number, queries, outputs, classes: holders };
            for (bit, &output) in read.outputs.iter().enumerate() {
                self.definitions[output.index()] = Definition::Read { port: self.ports.len(), bit };
                self.accept(output, (0, 1), String::new)?;
            }
            self.ports.push(Rc::new(facts));
        }
        assumptions.dedup();
        Ok(assumptions)
    }

    fn at_most_while_written(&mut self, form: &Rc<Form>, written: &[Rc<Form>]) -> Result<(), i64> {
        let fits = self.at_most(form, 1)
            || written
                .iter()
                .all(|row| self.contradict(&[Constraint::at_least(form, 2), Constraint::at_least(row, 1)]));
        if fits { Ok(()) } else { Err(self.range(form).1) }
    }

    /// Checks the forms of a choice; returns the distinct forms that can be 1 with their rows. An address counts as one
    /// form, its enable, with all rows.
    fn row_choice(&mut self, state: &State, choice: &RowChoice, what: &str) -> Result<Vec<Class>, MarginError> {
        let fault = |what: String| MarginError::State { state: state.name.clone(), what };
        match choice {
            RowChoice::Address { bits, enable } => {
                let form = self.form(enable);
                if !self.at_most(&form, 1) {
                    return Err(fault(format!("the enable of the {what} may be {}", self.range(&form).1)));
                }
                for (number, bit) in bits.iter().enumerate() {
                    let form = self.form(bit);
                    let (low, high) = self.range(&form);
                    if (low < 0 && !self.contradict(&[Constraint::at_most(&form, -1)]))
                        || (high > 1 && !self.at_most(&form, 1))
                    {
                        return Err(fault(format!("address bit {number} of the {what} may be in {low}..={high}")));
                    }
                }
                Ok(vec![(enable.clone(), (0..state.rows).collect())])
            }
            RowChoice::Rows(forms) => {
                let mut classes: BTreeMap<&Linear, Vec<usize>> = BTreeMap::new();
                for (row, form) in forms.iter().enumerate() {
                    classes.entry(form).or_default().push(row);
                }
                let mut kept = Vec::new();
                for (linear, rows) in classes {
                    let form = self.form(linear);
                    if !self.at_most(&form, 1) {
                        return Err(fault(format!(
                            "the form of row {} of the {what} may be {}",
                            rows[0],
                            self.range(&form).1
                        )));
                    }
                    if self.range(&form).1 >= 1 {
                        kept.push((linear.clone(), rows));
                    }
                }
                Ok(kept)
            }
        }
    }

    /// Whether rows are read several at a time; checks that what is read is a legal number of rows.
    fn classes_read(
        &mut self,
        state: &State,
        port: usize,
        query: &RowChoice,
        classes: &[Class],
        queries: &[Rc<Form>],
        may_miss_level: bool,
    ) -> Result<bool, MarginError> {
        let fault = |what: String| MarginError::State { state: state.name.clone(), what };
        let single = matches!(query, RowChoice::Address { .. }) || classes.iter().all(|(_, rows)| rows.len() == 1);
        for second in 0..queries.len() {
            for first in 0..second {
                if !self.never_both(&queries[first], &queries[second]) {
                    let rows = (classes[first].1[0], classes[second].1[0]);
                    return Err(fault(format!(
                        "port {port} may read rows {} and {} at once, by different forms",
                        rows.0, rows.1
                    )));
                }
            }
        }
        if !single && let Some((_, rows)) = classes.iter().find(|(_, rows)| !is_power_of_four(rows.len())) {
            return Err(fault(format!("port {port} reads {} rows at once, not a power of four", rows.len())));
        }
        if single && may_miss_level {
            return Err(fault(format!("port {port} reads single rows, which may be without a level")));
        }
        Ok(!single)
    }

    /// Checks that one row of a class, whenever it is written, carries the level, and no other row ever does.
    fn one_level(
        &mut self,
        state: &State,
        class: &[usize],
        writes: &[Class],
        level: Option<&Rc<Form>>,
    ) -> Result<(), MarginError> {
        let fault = |what: String| MarginError::State { state: state.name.clone(), what };
        let Some(level) = level else {
            return Err(fault("rows that are read together all carry the level".to_owned()));
        };
        let mut carriers = Vec::new();
        for (write, rows) in writes.iter().filter(|(_, rows)| rows.iter().any(|row| class.contains(row))) {
            let write = self.form(write);
            let written = Constraint::at_least(&write, 1);
            if !self.contradict(&[written.clone(), Constraint::at_least(level, 1)]) {
                if !self.contradict(&[written, Constraint::at_most(level, 0)]) {
                    return Err(fault(format!("row {} is written with and without the level", rows[0])));
                }
                carriers.push(rows[0]);
            }
        }
        if let [first, second, ..] = carriers[..] {
            return Err(fault(format!("rows {first} and {second} are read together and both carry the level")));
        }
        if carriers.is_empty() {
            Err(fault("no row of those read together carries the level".to_owned()))
        } else {
            Ok(())
        }
    }

    /// For each bit, the row of a class that can hold it, by its place among the rows that can be written.
    fn columns(
        &mut self,
        number: usize,
        state: &State,
        class: &[usize],
        writes: &[Class],
    ) -> Result<Vec<Option<usize>>, MarginError> {
        let mut columns = Vec::new();
        for bit in 0..state.value.len() {
            let value = self.states.get(&number).map(|facts| Rc::clone(&facts.values[bit]));
            let Some(value) = value else { continue };
            let mut holder: Option<usize> = None;
            for (place, (write, rows)) in writes.iter().enumerate() {
                let write = self.form(write);
                let apart = !rows.iter().any(|row| class.contains(row));
                if apart || self.contradict(&[Constraint::at_least(&write, 1), Constraint::at_least(&value, 1)]) {
                    continue;
                }
                if let Some(other) = holder {
                    return Err(MarginError::State {
                        state: state.name.clone(),
                        what: format!(
                            "bit {bit} may be held by rows {} and {}, which are read together",
                            writes[other].1[0], rows[0]
                        ),
                    });
                }
                holder = Some(place);
            }
            columns.push(holder);
        }
        Ok(columns)
    }
}

fn is_power_of_four(count: usize) -> bool {
    count.is_power_of_two() && count.trailing_zeros().is_multiple_of(2)
}
