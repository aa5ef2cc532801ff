//! A small solver: what follows, for one token, if some linear forms are at least some numbers.
//!
//! A world is a range for each signal, narrowed step by step until nothing changes or no value is left:
//!
//! - a form that must be at least `b` forces a term that the others cannot make up for;
//! - a signal that is `relu(gate)` and at least 1 has its gate at least as large; one that is small has a small gate;
//!   the same way back;
//! - outputs of a table that lie in ranges have their argument between the first and the last entry that agrees;
//! - a member of a proven exclusive group that is 1 makes the others 0;
//! - inputs are those of some token: a set of tokens is kept, and empty means contradiction;
//! - a bit read from a state that is 1 has the query active, and was written: two bits of one row that are 1 had both
//!   their forms at least 1 in the token that wrote them, which is a world of its own;
//! - a sum of products that is at least 1 has some product that is: each is tried, a contradiction in all of them is
//!   one of the whole.
//!
//! Everything only ever uses facts that were proven before, for operations in the netlist's order, so nothing is
//! circular. Stopping early proves less but nothing false.

use std::rc::Rc;

use super::facts::{Definition, Facts};
use super::form::{ALONE, Form};
use super::tokens::TokenSet;

/// `sign * form >= bound`.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) form: Rc<Form>,
    pub(super) sign: i64,
    pub(super) bound: i64,
}

impl Constraint {
    pub(super) fn at_least(form: &Rc<Form>, bound: i64) -> Self {
        Self { form: Rc::clone(form), sign: 1, bound }
    }

    pub(super) fn at_most(form: &Rc<Form>, bound: i64) -> Self {
        Self { form: Rc::clone(form), sign: -1, bound: -bound }
    }
}

/// No value is left for some signal.
pub(super) struct Contradiction;

/// Constraints past which nothing new is taken in.
const MOST_CONSTRAINTS: usize = 600;
/// Cases that a search may try.
const MOST_CASES: usize = 200;
/// How many levels of operands are narrowed when nothing else helps.
const DEEP_LEVELS: usize = 2;
/// Operands of a level that are narrowed.
const MOST_OPERANDS: usize = 2000;
/// How many worlds of earlier tokens may lie within each other.
pub(super) const MOST_DEPTH: usize = 4;

/// Alternatives, each a conjunction.
type Disjunction = Rc<Vec<Vec<Constraint>>>;

/// Ranges that can be narrowed and restored.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) low: Vec<i64>,
    pub(super) high: Vec<i64>,
    trail: Vec<(u32, i64, i64)>,
    constraints: Vec<Constraint>,
    disjunctions: Vec<Disjunction>,
    tokens: Option<TokenSet>,
    cases: usize,
}

/// A point to return to.
struct Mark {
    trail: usize,
    constraints: usize,
    disjunctions: Vec<Disjunction>,
    tokens: Option<TokenSet>,
}

impl World {
    fn mark(&self) -> Mark {
        Mark {
            trail: self.trail.len(),
            constraints: self.constraints.len(),
            disjunctions: self.disjunctions.clone(),
            tokens: self.tokens.clone(),
        }
    }

    fn is_open(&self, signal: u32) -> bool {
        self.low[signal as usize] < self.high[signal as usize]
    }

    fn restore(&mut self, mark: Mark) {
        while self.trail.len() > mark.trail {
            if let Some((signal, low, high)) = self.trail.pop() {
                self.low[signal as usize] = low;
                self.high[signal as usize] = high;
            }
        }
        self.constraints.truncate(mark.constraints);
        self.disjunctions = mark.disjunctions;
        self.tokens = mark.tokens;
    }
}

impl Facts<'_> {
    /// Whether no token can fulfil all constraints.
    pub(super) fn contradict(&mut self, constraints: &[Constraint]) -> bool {
        self.depth < MOST_DEPTH
            && self.within(
                constraints,
                |facts, depth| facts.search(depth, false).is_err() || facts.search(depth, true).is_err(),
                true,
            )
    }

    /// Smallest and largest value of a form in tokens that fulfil the constraints; `None` if there is no such token.
    pub(super) fn range_if(&mut self, constraints: &[Constraint], form: &Form) -> Option<(i64, i64)> {
        if self.depth >= MOST_DEPTH {
            return Some(self.range(form));
        }
        self.within(
            constraints,
            |facts, depth| Some(form.range(&facts.worlds[depth].low, &facts.worlds[depth].high)),
            None,
        )
    }

    /// Whether a form is at most `bound` in every token.
    pub(super) fn at_most(&mut self, form: &Rc<Form>, bound: i64) -> bool {
        self.range(form).1 <= bound || self.contradict(&[Constraint::at_least(form, bound + 1)])
    }

    /// Asserts constraints in a fresh world and asks it something; `otherwise` if they contradict at once.
    fn within<T>(&mut self, constraints: &[Constraint], ask: impl FnOnce(&mut Self, usize) -> T, otherwise: T) -> T {
        let depth = self.depth;
        self.depth += 1;
        self.worlds[depth].cases = 0;
        self.worlds[depth].tokens = None;
        let mark = self.worlds[depth].mark();
        self.worlds[depth].constraints.extend_from_slice(constraints);
        let outcome = self.propagate(depth);
        let answer = if outcome.is_ok() { ask(self, depth) } else { otherwise };
        self.worlds[depth].restore(mark);
        self.depth -= 1;
        answer
    }

    /// Looks for a contradiction in every case; leaves the world as it was.
    fn search(&mut self, depth: usize, deep: bool) -> Result<(), Contradiction> {
        let mark = self.worlds[depth].mark();
        self.worlds[depth].cases = 0;
        let outcome = self.search_cases(depth, deep);
        self.worlds[depth].restore(mark);
        outcome
    }

    fn search_cases(&mut self, depth: usize, deep: bool) -> Result<(), Contradiction> {
        if deep && self.worlds[depth].disjunctions.is_empty() {
            self.look_deep(depth)?;
            return if self.worlds[depth].disjunctions.is_empty() { Ok(()) } else { self.search_cases(depth, false) };
        }
        let open = &mut self.worlds[depth].disjunctions;
        let Some((smallest, _)) = open.iter().enumerate().min_by_key(|(_, cases)| cases.len()) else { return Ok(()) };
        let disjunction = open.remove(smallest);
        for case in disjunction.iter() {
            let world = &mut self.worlds[depth];
            world.cases += 1;
            if world.cases > MOST_CASES {
                return Ok(());
            }
            let mark = world.mark();
            world.constraints.extend_from_slice(case);
            let outcome = self.propagate(depth).and_then(|()| self.search_cases(depth, deep));
            self.worlds[depth].restore(mark);
            if outcome.is_ok() {
                return Ok(());
            }
        }
        Err(Contradiction)
    }

    fn propagate(&mut self, depth: usize) -> Result<(), Contradiction> {
        loop {
            let before = self.worlds[depth].trail.len();
            let mut number = 0;
            while number < self.worlds[depth].constraints.len() {
                let constraint = self.worlds[depth].constraints[number].clone();
                self.tighten(depth, &constraint)?;
                number += 1;
            }
            if self.worlds[depth].trail.len() == before {
                self.look_forward(depth)?;
                if self.worlds[depth].trail.len() == before {
                    return Ok(());
                }
            }
        }
    }

    /// Narrows the signals of a constraint.
    fn tighten(&mut self, depth: usize, constraint: &Constraint) -> Result<(), Contradiction> {
        let Constraint { form, sign, bound } = constraint;
        let (sign, bound) = (*sign, *bound);
        let world = &self.worlds[depth];
        let (low, high) = (&world.low, &world.high);
        let most = form.max(sign, low, high);
        if most < bound {
            return Err(Contradiction);
        }
        let inputs: i64 = form.terms.iter().filter(|term| term.is_input).map(|term| term.max(sign, low, high)).sum();
        let cap = form.input_cap(sign);
        let mut changes: Vec<(u32, i64, i64)> = Vec::new();
        for (place, term) in form.terms.iter().enumerate() {
            let signal = term.signal as usize;
            let span = high[signal] - low[signal];
            if span == 0 {
                continue;
            }
            let coefficient = sign * term.coefficient;
            let reach = coefficient.abs() * span;
            // What the form loses at most when this term is at its worst value.
            let lost = if term.is_input {
                inputs.min(cap) - (inputs - reach).min(cap)
            } else if term.group != ALONE && coefficient > 0 {
                let own = term.max(sign, low, high);
                let others = form.terms.iter().enumerate().filter(|(other, _)| *other != place);
                let second = others
                    .filter(|(_, other)| other.group == term.group && !other.is_input)
                    .map(|(_, other)| other.max(sign, low, high))
                    .fold(0, i64::max);
                (own - second).max(0)
            } else {
                reach
            };
            let slack = most - bound;
            if lost > slack {
                // With a cap or a group only the whole step is known to be too much.
                let keep = if lost == reach { slack / coefficient.abs() } else { span - 1 };
                if coefficient > 0 {
                    changes.push((term.signal, high[signal] - keep.min(span), high[signal]));
                } else {
                    changes.push((term.signal, low[signal], low[signal] + keep.min(span)));
                }
            }
        }
        for (signal, low, high) in changes {
            self.narrow(depth, signal, low, high)?;
        }
        Ok(())
    }

    /// Signals of constraints that are not fixed.
    fn open(&self, depth: usize) -> Vec<u32> {
        let world = &self.worlds[depth];
        let terms = world.constraints.iter().flat_map(|constraint| &constraint.form.terms);
        let mut open: Vec<u32> = terms.map(|term| term.signal).filter(|&signal| world.is_open(signal)).collect();
        open.sort_unstable();
        open.dedup();
        open
    }

    /// Narrows the operands of the operands of signals of constraints, then the operands, then the signals.
    fn look_deep(&mut self, depth: usize) -> Result<(), Contradiction> {
        let mut levels = vec![self.open(depth)];
        for _ in 0..DEEP_LEVELS {
            let mut next: Vec<u32> = Vec::new();
            for &signal in levels.last().into_iter().flatten() {
                self.definitions[signal as usize].operands(&mut next);
            }
            next.retain(|&signal| self.worlds[depth].is_open(signal));
            next.sort_unstable();
            next.dedup();
            next.truncate(MOST_OPERANDS);
            levels.push(next);
        }
        for signal in levels.into_iter().rev().flatten() {
            let (low, high) = self.forward(depth, signal);
            self.narrow(depth, signal, low, high)?;
        }
        self.propagate(depth)
    }

    /// Narrows signals of constraints by what their operands have become.
    fn look_forward(&mut self, depth: usize) -> Result<(), Contradiction> {
        for signal in self.open(depth) {
            let (low, high) = self.forward(depth, signal);
            self.narrow(depth, signal, low, high)?;
        }
        Ok(())
    }

    /// A signal's range from those of its operands.
    fn forward(&self, depth: usize, signal: u32) -> (i64, i64) {
        let world = &self.worlds[depth];
        let (low, high) = (&world.low, &world.high);
        let any = (i64::MIN, i64::MAX);
        match &self.definitions[signal as usize] {
            Definition::Relu(gate) => {
                let (least, most) = gate.range(low, high);
                (least.max(0), most.max(0))
            }
            Definition::Table { table, column } => {
                let (least, most) = table.argument.range(low, high);
                super::facts::column_range(&table.columns[*column], table.first, least, most)
            }
            Definition::Input => match &world.tokens {
                Some(tokens) => self.tokens.range_within(signal, tokens).unwrap_or((1, 0)),
                None => any,
            },
            Definition::Sum(terms) => {
                let positive =
                    terms.iter().all(|term| term.coefficient > 0 && term.up_constant.is_some_and(|up| up >= 0));
                if !positive {
                    return any;
                }
                let least = terms
                    .iter()
                    .map(|term| {
                        (-term.gate.max(-1, low, high)).max(0) * term.coefficient * term.up_constant.unwrap_or(0)
                    })
                    .sum();
                let silent = terms.iter().all(|term| term.gate.max(1, low, high) <= 0);
                (least, if silent { 0 } else { i64::MAX })
            }
            Definition::Select { condition, then, otherwise } => {
                let (least, most) = condition.range(low, high);
                let (a, b) = (then.range(low, high), otherwise.range(low, high));
                if least >= 0 {
                    a
                } else if most < 0 {
                    b
                } else {
                    (a.0.min(b.0), a.1.max(b.1))
                }
            }
            Definition::Read { .. } | Definition::Unknown => any,
        }
    }

    fn narrow(&mut self, depth: usize, signal: u32, low: i64, high: i64) -> Result<(), Contradiction> {
        let place = signal as usize;
        let world = &mut self.worlds[depth];
        let old = (world.low[place], world.high[place]);
        let new = (old.0.max(low), old.1.min(high));
        if new == old {
            return Ok(());
        }
        if new.0 > new.1 {
            return Err(Contradiction);
        }
        world.trail.push((signal, old.0, old.1));
        (world.low[place], world.high[place]) = new;
        if world.constraints.len() > MOST_CONSTRAINTS {
            return Ok(());
        }
        if new.0 >= 1 && old.0 < 1 {
            for &group in &self.groups.of[place].clone() {
                for other in self.groups.members[group as usize].clone() {
                    if other != signal {
                        self.narrow(depth, other, i64::MIN, 0)?;
                    }
                }
            }
        }
        self.look_back(depth, signal, old)
    }

    /// Takes in what a narrowed signal says of its operands.
    fn look_back(&mut self, depth: usize, signal: u32, old: (i64, i64)) -> Result<(), Contradiction> {
        let place = signal as usize;
        let (low, high) = (self.worlds[depth].low[place], self.worlds[depth].high[place]);
        let definition = self.definitions[place].clone();
        let world = &mut self.worlds[depth];
        match &definition {
            Definition::Input => {
                let mut tokens = world.tokens.take().unwrap_or_else(|| self.tokens.all());
                self.tokens.restrict(&mut tokens, signal, low, high);
                let none = tokens.iter().all(|&word| word == 0);
                world.tokens = Some(tokens);
                if none {
                    return Err(Contradiction);
                }
            }
            Definition::Relu(gate) => {
                if low >= 1 && low > old.0 {
                    world.constraints.push(Constraint::at_least(gate, low));
                }
                if high < old.1 {
                    world.constraints.push(Constraint::at_most(gate, high));
                }
            }
            Definition::Sum(terms) => {
                let positive =
                    terms.iter().all(|term| term.coefficient > 0 && term.up_constant.is_some_and(|up| up >= 0));
                if high <= 0 && positive {
                    for term in terms.iter().filter(|term| term.up_constant.is_some_and(|up| up > 0)) {
                        world.constraints.push(Constraint::at_most(&term.gate, 0));
                    }
                }
                if low >= 1 && old.0 < 1 {
                    let counts =
                        |term: &&super::facts::Term| term.up_constant.is_none_or(|up| up * term.coefficient > 0);
                    let cases = terms.iter().filter(counts).map(|term| {
                        let mut case = vec![Constraint::at_least(&term.gate, 1)];
                        if term.up_constant.is_none() {
                            case.push(if term.coefficient > 0 {
                                Constraint::at_least(&term.up, 1)
                            } else {
                                Constraint::at_most(&term.up, -1)
                            });
                        }
                        case
                    });
                    let cases: Vec<Vec<Constraint>> = cases.collect();
                    self.one_of(depth, cases);
                }
            }
            Definition::Table { table, .. } => {
                // Entries that agree with what is known of every output of the table.
                let length = table.columns.first().map_or(0, Vec::len);
                let agrees = |entry: &usize| {
                    table.columns.iter().zip(&table.outputs).all(|(column, &output)| {
                        (world.low[output as usize]..=world.high[output as usize]).contains(&column[*entry])
                    })
                };
                let (Some(least), Some(most)) = ((0..length).find(agrees), (0..length).rfind(agrees)) else {
                    return Err(Contradiction);
                };
                if least > 0 {
                    world.constraints.push(Constraint::at_least(&table.argument, table.first + as_i64(least)));
                }
                if most + 1 < length {
                    world.constraints.push(Constraint::at_most(&table.argument, table.first + as_i64(most)));
                }
            }
            Definition::Select { condition, then, otherwise } => {
                let both = |form: &Rc<Form>| [Constraint::at_least(form, low), Constraint::at_most(form, high)];
                let mut first = vec![Constraint::at_least(condition, 0)];
                first.extend(both(then));
                let mut second = vec![Constraint::at_most(condition, -1)];
                second.extend(both(otherwise));
                self.one_of(depth, vec![first, second]);
            }
            Definition::Read { port, bit } => {
                if low >= 1 && old.0 < 1 {
                    self.look_back_at_read(depth, *port, *bit)?;
                }
            }
            Definition::Unknown => {}
        }
        Ok(())
    }

    fn look_back_at_read(&mut self, depth: usize, port: usize, bit: usize) -> Result<(), Contradiction> {
        let facts = Rc::clone(&self.ports[port]);
        let cases: Vec<Vec<Constraint>> =
            facts.queries.iter().map(|query| vec![Constraint::at_least(query, 1)]).collect();
        self.one_of(depth, cases);
        for (other, &signal) in facts.outputs.iter().enumerate() {
            if other != bit && self.worlds[depth].low[signal as usize] >= 1 && self.stored_exclusive(port, bit, other) {
                return Err(Contradiction);
            }
        }
        Ok(())
    }

    /// Takes in alternatives: a single one at once, several for the search.
    fn one_of(&mut self, depth: usize, mut cases: Vec<Vec<Constraint>>) {
        let world = &mut self.worlds[depth];
        let possible = |case: &Vec<Constraint>| {
            case.iter()
                .all(|constraint| constraint.form.max(constraint.sign, &world.low, &world.high) >= constraint.bound)
        };
        cases.retain(possible);
        match cases.len() {
            1 => world.constraints.extend(cases.remove(0)),
            _ => world.disjunctions.push(Rc::new(cases)),
        }
    }
}

fn as_i64(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
