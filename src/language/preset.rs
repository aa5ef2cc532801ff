//! Kernels that a language model calls by name: `gcd(48, 36)`, `dot([1, 2], [3, 4])`.
//!
//! The kernels are in `presets/presets.cu`; their PTX is part of the crate. [`PRESETS`] says what each takes and gives.

use thiserror::Error;

use crate::argument::Argument;
use crate::launch::Launch;
use qwengpu_isa::Dim3;

/// The kernels' PTX.
pub(crate) const PTX: &str = include_str!("../../presets/presets.ptx");

/// Most numbers of a list: with results and status, two lists fit into global memory.
pub const MAX_NUMBERS: usize = 18;

/// What a preset takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Numbers one after the other, or one list.
    List,
    /// Two lists of the same length.
    TwoLists,
    /// A list and a number.
    ListAndNumber,
    /// This many numbers.
    Numbers(usize),
    /// Two matrices, as lists of rows.
    TwoMatrices,
}

/// What a preset gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Number,
    /// Quotient and remainder.
    QuotientAndRemainder,
    /// As many numbers as the list has.
    List,
    /// As many numbers as the kernel says.
    Digits,
    Matrix,
}

/// A kernel with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name, in calls as in the PTX.
    pub name: &'static str,
    /// How a call looks.
    pub example: &'static str,
    /// What it computes.
    pub meaning: &'static str,
    takes: Takes,
    gives: Gives,
}

const fn preset(
    name: &'static str,
    example: &'static str,
    meaning: &'static str,
    takes: Takes,
    gives: Gives,
) -> Preset {
    Preset { name, example, meaning, takes, gives }
}

/// Every preset.
pub const PRESETS: [Preset; 16] = [
    preset("sum", "sum(3, 5, 9)", "the sum", Takes::List, Gives::Number),
    preset("product", "product(3, 5, 9)", "the product", Takes::List, Gives::Number),
    preset("min", "min(3, 5, 9)", "the least number", Takes::List, Gives::Number),
    preset("max", "max(3, 5, 9)", "the greatest number", Takes::List, Gives::Number),
    preset(
        "mean",
        "mean(3, 5, 9)",
        "quotient and remainder of sum and count",
        Takes::List,
        Gives::QuotientAndRemainder,
    ),
    preset("sort", "sort(9, 3, 5)", "the numbers in ascending order", Takes::List, Gives::List),
    preset("gcd", "gcd(48, 36)", "the greatest common divisor", Takes::List, Gives::Number),
    preset("lcm", "lcm(4, 6)", "the least common multiple", Takes::List, Gives::Number),
    preset("dot", "dot([1, 2], [3, 4])", "the dot product", Takes::TwoLists, Gives::Number),
    preset("count", "count([3, 5, 3], 3)", "how often a number is in a list", Takes::ListAndNumber, Gives::Number),
    preset("powmod", "powmod(7, 100, 13)", "a power modulo at most 65536", Takes::Numbers(3), Gives::Number),
    preset("factmod", "factmod(20, 1009)", "a factorial modulo at most 65536", Takes::Numbers(2), Gives::Number),
    preset("fib", "fib(50)", "a Fibonacci number; fib(0) is 0", Takes::Numbers(1), Gives::Number),
    preset("isprime", "isprime(97)", "1 for a prime, else 0; up to 2147483647", Takes::Numbers(1), Gives::Number),
    preset("digits", "digits(1234)", "the decimal digits", Takes::Numbers(1), Gives::Digits),
    preset(
        "matmul",
        "matmul([[1, 2], [3, 4]], [[5], [6]])",
        "the product of matrices",
        Takes::TwoMatrices,
        Gives::Matrix,
    ),
];

/// A call that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// There is no preset of that name.
    #[error("there is no function {name}; there are {}", PRESETS.map(|preset| preset.name).join(", "))]
    Name {
        /// The name.
        name: String,
    },
    /// The text is no list of arguments.
    #[error("column {column}: expected {expected}")]
    Syntax {
        /// Column, counting characters from 1.
        column: usize,
        /// What could stand there.
        expected: &'static str,
    },
    /// Arguments of other shapes than the preset's.
    #[error("{name} takes {expected}, as in {example}")]
    Arguments {
        /// The preset.
        name: &'static str,
        /// What it takes.
        expected: String,
        /// A call of it.
        example: &'static str,
    },
}

/// An argument of a call, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Number(i64),
    List(Vec<Item>),
}

/// A call, ready to launch.
#[derive(Debug, Clone)]
pub struct Call {
    /// The kernel to launch.
    pub preset: &'static Preset,
    /// The launch. The last buffer is the status, the one before it the result; `digits` has the count between them.
    pub launch: Launch,
    /// Elements of a row, for a matrix.
    columns: usize,
}

/// The name in front of a parenthesis, if the text looks like a call at all.
#[must_use]
pub(super) fn called_name(text: &str) -> Option<&str> {
    let (name, _) = text.trim().split_once('(')?;
    let name = name.trim_end();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    is_name.then_some(name)
}

impl Call {
    /// Reads a call such as `gcd(48, 36)`.
    ///
    /// # Errors
    /// If there is no such preset or the arguments are not what it takes.
    pub fn parse(text: &str) -> Result<Self, CallError> {
        let name = called_name(text).unwrap_or_default();
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        let preset = preset.ok_or_else(|| CallError::Name { name: name.to_owned() })?;
        let mut reader = Reader { text: text.chars().collect(), at: 0 };
        reader.skip_to('(');
        let items = reader.items(')', 0)?;
        reader.end()?;
        let refused = |expected: String| CallError::Arguments { name: preset.name, expected, example: preset.example };
        let lists = |count: usize| -> Option<Vec<Vec<i64>>> {
            let lists: Option<Vec<Vec<i64>>> = items.iter().map(list_of).collect();
            lists.filter(|lists| lists.len() == count)
        };
        let limited = |size: usize| (1..=MAX_NUMBERS).contains(&size);
        let (arguments, block, size, columns) = match preset.takes {
            Takes::List => {
                let nested = items.iter().map(number_of).collect::<Option<Vec<i64>>>();
                let values = nested.or_else(|| lists(1).and_then(|mut lists| lists.pop()));
                let values = values.filter(|values| limited(values.len()));
                let values = values.ok_or_else(|| refused(format!("1 to {MAX_NUMBERS} numbers")))?;
                let size = values.len();
                (vec![Argument::buffer(&values), count_of(size)], Dim3::linear(1), size, 0)
            }
            Takes::TwoLists => {
                let found = lists(2).filter(|lists| lists[0].len() == lists[1].len() && limited(lists[0].len()));
                let found = found.ok_or_else(|| refused(format!("two lists of 1 to {MAX_NUMBERS} numbers each")))?;
                let size = found[0].len();
                let arguments = found.iter().map(|list| Argument::buffer(list)).chain([count_of(size)]).collect();
                (arguments, Dim3::linear(1), size, 0)
            }
            Takes::ListAndNumber => {
                let found = match items.as_slice() {
                    [list, number] => list_of(list).zip(number_of(number)),
                    _ => None,
                };
                let found = found.filter(|(list, _)| limited(list.len()));
                let (list, number) = found.ok_or_else(|| refused("a list and a number".to_owned()))?;
                (vec![Argument::buffer(&list), count_of(list.len()), number.into()], Dim3::linear(1), list.len(), 0)
            }
            Takes::Numbers(count) => {
                let found = items.iter().map(number_of).collect::<Option<Vec<i64>>>();
                let found = found.filter(|numbers| numbers.len() == count);
                let numbers = found.ok_or_else(|| refused(format!("{count} numbers")))?;
                (numbers.into_iter().map(Argument::from).collect(), Dim3::linear(1), 19, 0)
            }
            Takes::TwoMatrices => {
                let found = match items.as_slice() {
                    [a, b] => matrix_of(a).zip(matrix_of(b)),
                    _ => None,
                };
                let fits = |(a, b): &(Matrix, Matrix)| {
                    a.columns == b.rows && [a.values.len(), b.values.len(), a.rows * b.columns].into_iter().all(limited)
                };
                let (a, b) = found.filter(fits).ok_or_else(|| {
                    refused(format!("two matrices of at most {MAX_NUMBERS} numbers that fit together"))
                })?;
                let inner = count_of(a.columns);
                let block = Dim3::new(small(b.columns), small(a.rows), 1);
                let size = a.rows * b.columns;
                (vec![Argument::buffer(&a.values), Argument::buffer(&b.values), inner], block, size, b.columns)
            }
        };
        let block = if preset.gives == Gives::List { Dim3::linear(small(size)) } else { block };
        let results = match preset.gives {
            Gives::Number => 1,
            Gives::QuotientAndRemainder => 2,
            Gives::List | Gives::Matrix => size,
            Gives::Digits => 19,
        };
        let mut launch = Launch::new(Dim3::linear(1), block);
        launch.arguments = arguments;
        launch = launch.argument(Argument::zeros::<i64>(results));
        if preset.gives == Gives::Digits {
            launch = launch.argument(Argument::zeros::<u32>(1));
        }
        launch = launch.argument(Argument::zeros::<u32>(1));
        Ok(Self { preset, launch, columns })
    }

    /// The result as it stands in the text; `counted` is what `digits` says of its length.
    #[must_use]
    pub fn shown(&self, results: &[i64], counted: usize) -> String {
        let joined = |values: &[i64]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self.preset.gives {
            Gives::Number => joined(results),
            Gives::QuotientAndRemainder => match results {
                [quotient, remainder] => format!("{quotient} remainder {remainder}"),
                _ => joined(results),
            },
            Gives::List => format!("[{}]", joined(results)),
            Gives::Digits => format!("[{}]", joined(&results[..counted.min(results.len())])),
            Gives::Matrix => {
                let rows = results.chunks(self.columns.max(1)).map(|row| format!("[{}]", joined(row)));
                format!("[{}]", rows.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Whether the kernel says how many results there are.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.preset.gives == Gives::Digits
    }
}

fn small(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

fn count_of(size: usize) -> Argument {
    Argument::from(i32::from(small(size)))
}

fn number_of(item: &Item) -> Option<i64> {
    if let Item::Number(value) = item { Some(*value) } else { None }
}

fn list_of(item: &Item) -> Option<Vec<i64>> {
    if let Item::List(items) = item { items.iter().map(number_of).collect() } else { None }
}

/// A matrix, row by row.
struct Matrix {
    values: Vec<i64>,
    rows: usize,
    columns: usize,
}

fn matrix_of(item: &Item) -> Option<Matrix> {
    let Item::List(rows) = item else { return None };
    let rows: Vec<Vec<i64>> = rows.iter().map(list_of).collect::<Option<_>>()?;
    let columns = rows.first()?.len();
    let even = rows.iter().all(|row| row.len() == columns);
    even.then(|| Matrix { rows: rows.len(), columns, values: rows.concat() })
}

/// Reads lists of numbers.
struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn skip_to(&mut self, symbol: char) {
        self.at = self.text.iter().position(|c| *c == symbol).map_or(self.text.len(), |at| at + 1);
    }

    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, CallError> {
        Err(CallError::Syntax { column: self.at + 1, expected })
    }

    /// Items up to a closing bracket.
    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Item>, CallError> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Some('[') if depth < 2 => {
                    self.at += 1;
                    items.push(Item::List(self.items(']', depth + 1)?));
                }
                Some(c) if c == '-' || c.is_ascii_digit() => items.push(Item::Number(self.number()?)),
                Some(_) | None => return self.expected("a number or a list"),
            }
            match self.peek() {
                Some(',') => self.at += 1,
                Some(c) if c == close => {
                    self.at += 1;
                    return Ok(items);
                }
                Some(_) | None => return self.expected("`,` or the closing bracket"),
            }
        }
    }

    fn number(&mut self) -> Result<i64, CallError> {
        let start = self.at;
        self.at += usize::from(self.text.get(start) == Some(&'-'));
        while self.text.get(self.at).is_some_and(char::is_ascii_digit) {
            self.at += 1;
        }
        let digits: String = self.text[start..self.at].iter().collect();
        digits.parse().or_else(|_| self.expected("a number of at most 64 bits"))
    }

    fn end(&mut self) -> Result<(), CallError> {
        if self.peek().is_none() { Ok(()) } else { self.expected("the end") }
    }
}
