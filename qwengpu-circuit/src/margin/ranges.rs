//! Proves declared ranges and groups, operation by operation.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::error::MarginError;
use super::facts::{Definition, Facts, Table, Term, column_range};
use super::world::Constraint;
use crate::ir::{Operation, Product, Signal};

impl Facts<'_> {
    /// Proves everything that the netlist declares; fills in definitions, ranges and groups on the way, and faults.
    /// Returns the assumptions about the history that the proof rests on.
    pub(super) fn prove_declarations(&mut self) -> Vec<String> {
        let netlist = self.netlist;
        for &input in netlist.inputs() {
            let outcome = self.accept(input, self.signal_range(input), String::new);
            self.note(outcome, ());
        }
        // Groups and enumerations come into force once their last signal is made.
        let mut made_by: Vec<usize> = vec![0; netlist.signals().len()];
        for (number, operation) in netlist.operations().iter().enumerate() {
            for output in operation.outputs() {
                made_by[output.index()] = number + 1;
            }
        }
        let last = |signals: &[Signal]| signals.iter().map(|signal| made_by[signal.index()]).max().unwrap_or(0);
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, group) in netlist.exclusives().iter().enumerate() {
            groups.entry(last(&group.members)).or_default().push(number);
        }
        let mut enumerations: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, enumeration) in netlist.enumerations().iter().enumerate() {
            enumerations.entry(last(&enumeration.outputs)).or_default().push(number);
        }
        let enumerated = super::cone::outputs(netlist);
        for &number in groups.get(&0).into_iter().flatten() {
            let outcome = self.prove_group(number);
            self.note(outcome, ());
        }
        let mut assumptions = Vec::new();
        for (number, operation) in netlist.operations().iter().enumerate() {
            match operation {
                Operation::Table { argument, first, columns, outputs, .. } => {
                    let argument = self.form(argument);
                    let (least, most) = self.range(&argument);
                    let table = Rc::new(Table {
                        argument,
                        first: *first,
                        columns: columns.clone(),
                        outputs: outputs.iter().map(|output| output.0).collect(),
                    });
                    for (number, (column, &output)) in columns.iter().zip(outputs).enumerate() {
                        self.set_range(output, column_range(column, *first, least, most));
                        self.definitions[output.index()] =
                            Definition::Table { table: Rc::clone(&table), column: number };
                    }
                }
                Operation::Products { terms, output } => {
                    let outcome = self.products(terms, *output, enumerated.contains(output));
                    self.note(outcome, ());
                }
                Operation::Select { condition, then, otherwise, output } => {
                    let [condition, then, otherwise] = [condition, then, otherwise].map(|form| self.form(form));
                    let (a, b) = (self.range(&then), self.range(&otherwise));
                    self.definitions[output.index()] = Definition::Select { condition, then, otherwise };
                    if !enumerated.contains(output) {
                        let outcome = self.accept(*output, (a.0.min(b.0), a.1.max(b.1)), String::new);
                        self.note(outcome, ());
                    }
                }
                Operation::State(state) => {
                    let outcome = self.state(number, state);
                    assumptions.extend(self.note(outcome, Vec::new()));
                }
            }
            for &enumeration in enumerations.get(&(number + 1)).into_iter().flatten() {
                let outcome = self.enumerate(enumeration);
                self.note(outcome, ());
            }
            for &group in groups.get(&(number + 1)).into_iter().flatten() {
                let outcome = self.prove_group(group);
                self.note(outcome, ());
            }
        }
        assumptions
    }

    /// Checks a bound against the declared range and records the range.
    pub(super) fn accept(
        &mut self,
        signal: Signal,
        (low, high): (i64, i64),
        hint: impl FnOnce() -> String,
    ) -> Result<(), MarginError> {
        let info = &self.netlist.signals()[signal.index()];
        let (declared_low, declared_high) = (*info.range.start(), *info.range.end());
        if low < declared_low || high > declared_high {
            return Err(MarginError::Range {
                signal: info.name.clone(),
                low,
                high,
                declared_low,
                declared_high,
                hint: hint(),
            });
        }
        self.set_range(signal, (low, high));
        Ok(())
    }

    fn products(&mut self, terms: &[Product], output: Signal, enumerated: bool) -> Result<(), MarginError> {
        let forms: Vec<Term> = terms
            .iter()
            .map(|term| Term {
                coefficient: term.coefficient,
                gate: self.form(&term.gate),
                up: self.form(&term.up),
                up_constant: term.up.is_constant().then(|| term.up.constant()),
            })
            .collect();
        let simple = matches!(&forms[..], [Term { coefficient: 1, up_constant: Some(1), .. }]);
        let forms = Rc::new(forms);
        self.definitions[output.index()] =
            if simple { Definition::Relu(Rc::clone(&forms[0].gate)) } else { Definition::Sum(Rc::clone(&forms)) };
        if enumerated {
            return Ok(());
        }
        let info = &self.netlist.signals()[output.index()];
        let declared = (*info.range.start(), *info.range.end());
        // First by intervals alone.
        let mut bounds: Vec<(i64, i64)> = forms.iter().map(|term| self.term_range(term, false)).collect();
        let total = |bounds: &[(i64, i64)]| bounds.iter().fold((0, 0), |sum, bound| (sum.0 + bound.0, sum.1 + bound.1));
        // A sum of several terms is bounded as well as can be: whatever reads it gains.
        let fits = |range: (i64, i64)| {
            range.0 >= declared.0 && range.1 <= declared.1 && (forms.len() == 1 || range.1 - range.0 <= 1)
        };
        if fits(total(&bounds)) {
            return self.accept(output, total(&bounds), String::new);
        }
        // Then each up form only while its gate is active.
        for (bound, term) in bounds.iter_mut().zip(forms.iter()) {
            *bound = self.term_range(term, true);
        }
        if fits(total(&bounds)) {
            return self.accept(output, total(&bounds), String::new);
        }
        // Then terms of which only one can be active count once.
        let mut cliques: Vec<Vec<usize>> = Vec::new();
        let mut clash: Option<(usize, usize)> = None;
        for number in 0..forms.len() {
            if bounds[number] == (0, 0) {
                continue;
            }
            let mut home = None;
            for (place, clique) in cliques.iter().enumerate() {
                let against = clique.iter().find(|&&other| !self.never_both(&forms[other].gate, &forms[number].gate));
                match against {
                    None => {
                        home = Some(place);
                        break;
                    }
                    Some(&other) => clash = clash.or(Some((other, number))),
                }
            }
            match home {
                Some(place) => cliques[place].push(number),
                None => cliques.push(vec![number]),
            }
        }
        let range = cliques.iter().fold((0, 0), |sum, clique| {
            let least = clique.iter().map(|&number| bounds[number].0).min().unwrap_or(0);
            let most = clique.iter().map(|&number| bounds[number].1).max().unwrap_or(0);
            (sum.0 + least, sum.1 + most)
        });
        self.count_awake(output, &forms, &cliques);
        self.cliques.insert(output, cliques);
        self.accept(output, range, || match clash {
            Some((a, b)) => format!(" (terms {a} and {b} may both be active)"),
            None => String::new(),
        })
    }

    /// Counts how many gates can be at least 0 at once: one of each clique, if that excludes all others.
    fn count_awake(&mut self, output: Signal, forms: &[Term], cliques: &[Vec<usize>]) {
        // Terms that are never active may be at 0 all the same.
        let placed: usize = cliques.iter().map(Vec::len).sum();
        let mut awake = forms.len() - placed;
        for clique in cliques {
            let both = |facts: &mut Self, a: usize, b: usize| {
                facts.contradict(&[Constraint::at_least(&forms[a].gate, 0), Constraint::at_least(&forms[b].gate, 0)])
            };
            let quiet = clique.len() > 1
                && (1..clique.len()).all(|second| (0..second).all(|first| both(self, clique[first], clique[second])));
            awake += if quiet { 1 } else { clique.len() };
        }
        self.awake.insert(output, awake);
    }

    /// Whether two gates are never both active.
    pub(super) fn never_both(&mut self, a: &Rc<super::form::Form>, b: &Rc<super::form::Form>) -> bool {
        self.contradict(&[Constraint::at_least(a, 1), Constraint::at_least(b, 1)])
    }

    /// Smallest and largest value of `coefficient * relu(gate) * up`.
    fn term_range(&mut self, term: &Term, while_active: bool) -> (i64, i64) {
        let (idle, gate) = self.range(&term.gate);
        if gate <= 0 {
            return (0, 0);
        }
        let active = [Constraint::at_least(&term.gate, 1)];
        let up = match term.up_constant {
            Some(up) if !while_active => Some((up, up)),
            Some(up) => (!self.contradict(&active)).then_some((up, up)),
            None if !while_active => Some(self.range(&term.up)),
            None => self.range_if(&active, &term.up),
        };
        let Some((least, most)) = up else { return (0, 0) };
        let gate = if while_active { self.range_if(&active, &term.gate).map_or(0, |range| range.1) } else { gate };
        // The product is monotone in the gate for each up, so its ends are at ends of both.
        let idle = idle.max(0);
        let ends = [idle * least, idle * most, gate * least, gate * most].map(|product| term.coefficient * product);
        (ends.into_iter().min().unwrap_or(0), ends.into_iter().max().unwrap_or(0))
    }

    fn prove_group(&mut self, number: usize) -> Result<(), MarginError> {
        let group = &self.netlist.exclusives()[number];
        for (place, &second) in group.members.iter().enumerate() {
            for &first in &group.members[..place] {
                let [a, b] = [first, second].map(|member| self.form(&member.into()));
                if !self.never_both(&a, &b) {
                    return Err(MarginError::Group {
                        group: group.name.clone(),
                        first: self.netlist.name(first).to_owned(),
                        second: self.netlist.name(second).to_owned(),
                    });
                }
            }
        }
        self.add_group(&group.members);
        Ok(())
    }
}
