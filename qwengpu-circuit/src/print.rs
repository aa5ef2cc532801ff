//! The text form of a netlist, for reading and for snapshots.
//!
//! ```text
//! input token/x 0..=15
//! table x first 0 dead-zone
//!   low 0..=3 = [0, 1, 2, 3]
//! products sum 0..=4
//!   + 1 * relu(a + b - 1) * (1)
//! select chosen 0..=1 = if c >= 0 then a else b
//! state rows 4 of 2 bits
//!   clear c
//!   write address [a0, a1] enable w
//!   value [v0, v1]
//!   level every row
//!   read address [a0, a1] enable r -> [rows/read/bit0, rows/read/bit1]
//! exclusive kind [a, b]
//! enumerate [a, b] -> [c]
//! token A sets [x = 3] says [1 * y]
//! ```

use std::fmt;

use crate::ir::{Level, Netlist, Operation, RowChoice, Signal, State, StepKind};
use crate::linear::Linear;

/// A form with the names of its signals.
struct Named<'a>(&'a Netlist, &'a Linear);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(netlist, form) = self;
        let mut first = true;
        for (signal, coefficient) in form.terms() {
            let sign = match (coefficient < 0, first) {
                (true, true) => "-",
                (true, false) => " - ",
                (false, true) => "",
                (false, false) => " + ",
            };
            formatter.write_str(sign)?;
            if coefficient.abs() != 1 {
                write!(formatter, "{} ", coefficient.abs())?;
            }
            formatter.write_str(netlist.name(signal))?;
            first = false;
        }
        match form.constant() {
            constant if first => write!(formatter, "{constant}"),
            0 => Ok(()),
            constant if constant < 0 => write!(formatter, " - {}", constant.abs()),
            constant => write!(formatter, " + {constant}"),
        }
    }
}

/// Several forms in brackets.
struct NamedList<'a>(&'a Netlist, &'a [Linear]);

impl fmt::Display for NamedList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (number, form) in self.1.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(formatter, "{comma}{}", Named(self.0, form))?;
        }
        formatter.write_str("]")
    }
}

impl fmt::Display for Netlist {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &input in self.inputs() {
            writeln!(formatter, "input {}", self.with_range(input))?;
        }
        for operation in self.operations() {
            self.print_operation(formatter, operation)?;
        }
        for group in self.exclusives() {
            writeln!(formatter, "exclusive {} {}", group.name, self.names(&group.members))?;
        }
        for hint in self.enumerations() {
            writeln!(formatter, "enumerate {} -> {}", self.names(&hint.cut), self.names(&hint.outputs))?;
        }
        for token in self.tokens() {
            let set: Vec<String> =
                token.inputs.iter().map(|&(input, value)| format!("{} = {value}", self.name(input))).collect();
            let says: Vec<String> =
                token.code.iter().map(|&(output, weight)| format!("{weight} * {}", self.name(output))).collect();
            writeln!(formatter, "token {} sets [{}] says [{}]", token.text, set.join(", "), says.join(", "))?;
        }
        Ok(())
    }
}

impl Netlist {
    fn with_range(&self, signal: Signal) -> String {
        let range = &self.signals()[signal.index()].range;
        format!("{} {}..={}", self.name(signal), range.start(), range.end())
    }

    fn names(&self, signals: &[Signal]) -> String {
        let names: Vec<&str> = signals.iter().map(|&signal| self.name(signal)).collect();
        format!("[{}]", names.join(", "))
    }

    fn print_operation(&self, formatter: &mut fmt::Formatter<'_>, operation: &Operation) -> fmt::Result {
        match operation {
            Operation::Table { argument, first, columns, steps, outputs } => {
                let steps = match steps {
                    StepKind::DeadZone => "dead-zone",
                    StepKind::Plain => "plain",
                };
                writeln!(formatter, "table {} first {first} {steps}", Named(self, argument))?;
                for (column, &output) in columns.iter().zip(outputs) {
                    writeln!(formatter, "  {} = {column:?}", self.with_range(output))?;
                }
                Ok(())
            }
            Operation::Products { terms, output } => {
                writeln!(formatter, "products {}", self.with_range(*output))?;
                for term in terms {
                    let sign = if term.coefficient < 0 { '-' } else { '+' };
                    let (size, gate, up) = (term.coefficient.abs(), Named(self, &term.gate), Named(self, &term.up));
                    writeln!(formatter, "  {sign} {size} * relu({gate}) * ({up})")?;
                }
                Ok(())
            }
            Operation::Select { condition, then, otherwise, output } => {
                let [condition, then, otherwise] =
                    [condition, then, otherwise].map(|form| Named(self, form).to_string());
                writeln!(
                    formatter,
                    "select {} = if {condition} >= 0 then {then} else {otherwise}",
                    self.with_range(*output)
                )
            }
            Operation::State(state) => self.print_state(formatter, state),
        }
    }

    fn print_state(&self, formatter: &mut fmt::Formatter<'_>, state: &State) -> fmt::Result {
        writeln!(formatter, "state {} {} of {} bits", state.name, state.rows, state.value.len())?;
        if let Some(clear) = &state.clear {
            writeln!(formatter, "  clear {}", Named(self, clear))?;
        }
        let choice = |choice: &RowChoice| match choice {
            RowChoice::Address { bits, enable } => {
                format!("address {} enable {}", NamedList(self, bits), Named(self, enable))
            }
            RowChoice::Rows(forms) => format!("rows {}", NamedList(self, forms)),
        };
        writeln!(formatter, "  write {}", choice(&state.write))?;
        writeln!(formatter, "  value {}", NamedList(self, &state.value))?;
        match &state.level {
            Level::EveryRow => writeln!(formatter, "  level every row")?,
            Level::When(form) => writeln!(formatter, "  level when {}", Named(self, form))?,
        }
        for read in &state.reads {
            writeln!(formatter, "  read {} -> {}", choice(&read.query), self.names(&read.outputs))?;
        }
        Ok(())
    }
}
