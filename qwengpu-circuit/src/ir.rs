//! The netlist: typed signals and operations, with no layer numbers in it.
//!
//! A netlist describes what one token does: its embedding sets the inputs, operations compute further signals,
//! states remember rows between tokens, and outputs choose the next token. Operations stand in the order in
//! which they were added, and may only use signals that exist already, so the order is topological.
//!
//! # What an operation becomes
//!
//! | operation | in a Qwen3.5 layer |
//! |---|---|
//! | [`Operation::Table`] | two MLP neurons for each step of the argument at which an output changes |
//! | [`Operation::Products`] | one MLP neuron a term: `relu(gate) * up` |
//! | [`Operation::Select`] | three MLP neurons: a step times the difference, and the `otherwise` value |
//! | [`Operation::State`] | for each read port, the heads of a Gated DeltaNet whose state holds the rows |

use std::ops::RangeInclusive;

use crate::linear::Linear;

/// One integer value of a token's forward pass; held by one channel of the residual stream while it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub(crate) u32);

impl Signal {
    /// Position in [`Netlist::signals`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Name and declared values of a signal.
#[derive(Clone, Debug)]
pub struct SignalInfo {
    /// Unique path-like name, such as `operand/a/lane2/bit5`.
    pub name: String,
    /// The smallest and the largest value that the signal takes; proven by the margin pass.
    pub range: RangeInclusive<i64>,
}

/// One term of [`Operation::Products`]: `coefficient * relu(gate) * up`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Integer factor of the term.
    pub coefficient: i64,
    /// Counts only while positive.
    pub gate: Linear,
    /// The other factor, of either sign.
    pub up: Linear,
}

/// The rows that a state reads or writes for one token.
///
/// A row takes part when its form is 1; every other value of the form must be at most 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChoice {
    /// Row number `sum(2^i * bits[i])` while `enable` is 1, none while it is at most 0. Bits are 0 or 1.
    /// Rows past the state's end are none (and a bit may exist only to make an address miss).
    Address {
        /// Address bits, least significant first.
        bits: Vec<Linear>,
        /// 1 to take part; any value of at most 0 otherwise.
        enable: Linear,
    },
    /// Row `i` takes part while `forms[i]` is 1. A read must choose no row or a number of rows that is a power of
    /// four; a write at most one.
    Rows(Vec<Linear>),
}

/// Which rows carry the constant level that the norm after a read needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// Each written row carries it. Reads choose one row at a time.
    EveryRow,
    /// A row carries it only if it is written while this bit is 1. For states that are read many rows at once,
    /// exactly one of which carries the level.
    When(Linear),
}

/// A memory of rows of bits that lasts from token to token.
///
/// For each token, in this order: if `clear` is 1 every row becomes zero; the row chosen by `write` is replaced by
/// `value`; each read port gives the sum of the rows that it chooses. A row never written reads as zero.
#[derive(Clone, Debug)]
pub struct State {
    /// Unique name.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// 1 when the token empties the state (a decay to exactly zero), if it can be emptied.
    pub clear: Option<Linear>,
    /// The row that is written.
    pub write: RowChoice,
    /// The bits that are written: each form is at most 1 in a token that writes; negative values count as 0 (the
    /// silu after the short convolution is a relu, so a conjunction `a + b - 1` is free here).
    pub value: Vec<Linear>,
    /// Where the norm's level is.
    pub level: Level,
    /// Independent readers of the same rows; each becomes a copy of the state.
    pub reads: Vec<ReadPort>,
}

/// One reader of a [`State`].
#[derive(Clone, Debug)]
pub struct ReadPort {
    /// The rows that are read.
    pub query: RowChoice,
    /// What was read, a signal for each bit of the row.
    pub outputs: Vec<Signal>,
}

/// A step of the netlist.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Functions of one small integer: `outputs[k] = columns[k][argument - first]`, with the argument clamped to
    /// `first ..= first + len - 1`.
    Table {
        /// The argument.
        argument: Linear,
        /// The argument's value for entry 0.
        first: i64,
        /// A list of values for each output, all of the same length.
        columns: Vec<Vec<i64>>,
        /// Whether steps have a dead zone around the knee, which removes the argument's noise. Needs an argument of
        /// at most 63 above each step; without, up to 255.
        steps: StepKind,
        /// A signal for each column.
        outputs: Vec<Signal>,
    },
    /// A sum of products.
    Products {
        /// The terms.
        terms: Vec<Product>,
        /// The sum.
        output: Signal,
    },
    /// `output = if condition >= 0 { then } else { otherwise }`; both values non-negative.
    Select {
        /// Chooses by its sign.
        condition: Linear,
        /// Value for `condition >= 0`.
        then: Linear,
        /// Value for `condition < 0`.
        otherwise: Linear,
        /// The chosen value.
        output: Signal,
    },
    /// A memory.
    State(State),
}

/// How the steps of a table are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// `[x >= t] = (relu(4(x-t)+3) - relu(4(x-t)+1)) / 2`: no noise of `x` below 1/4 passes.
    DeadZone,
    /// `[x >= t] = relu(x-t+1) - relu(x-t)`: for arguments up to 255 above a step; noise of `x` passes once.
    Plain,
}

/// A token of the machine: the inputs that its embedding sets, and the code by which it is chosen.
#[derive(Clone, Debug)]
pub struct Token {
    /// The text of the token, unique.
    pub text: String,
    /// Values of inputs; inputs that are not listed are zero.
    pub inputs: Vec<(Signal, i64)>,
    /// Weights of outputs in this token's logit; empty for a token that is never spoken.
    pub code: Vec<(Signal, i64)>,
}

/// A set of bits of which at most one is 1, with the place where it was declared.
#[derive(Clone, Debug)]
pub struct Exclusive {
    /// What the group is, for messages.
    pub name: String,
    /// The members: 0/1 signals.
    pub members: Vec<Signal>,
}

/// A hint for the margin pass: what lies between `cut` and `outputs` depends on the cut alone, which takes few values.
#[derive(Clone, Debug)]
pub struct Enumeration {
    /// Signals whose values are enumerated over their ranges.
    pub cut: Vec<Signal>,
    /// Signals whose ranges, and the ranges of everything between, are proven by evaluating every combination.
    pub outputs: Vec<Signal>,
}

/// A machine, as signals, operations and tokens.
#[derive(Clone, Debug, Default)]
pub struct Netlist {
    pub(crate) signals: Vec<SignalInfo>,
    pub(crate) inputs: Vec<Signal>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) exclusives: Vec<Exclusive>,
    pub(crate) enumerations: Vec<Enumeration>,
}

impl Netlist {
    /// All signals; a [`Signal`] is an index into them.
    #[must_use]
    pub fn signals(&self) -> &[SignalInfo] {
        &self.signals
    }

    /// Signals that the embedding sets.
    #[must_use]
    pub fn inputs(&self) -> &[Signal] {
        &self.inputs
    }

    /// Operations in topological order.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Tokens; the machine's token numbers are indices into them.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Declared groups of which at most one signal is 1 in any token.
    #[must_use]
    pub fn exclusives(&self) -> &[Exclusive] {
        &self.exclusives
    }

    /// Hints by which the margin pass proves ranges through enumeration.
    #[must_use]
    pub fn enumerations(&self) -> &[Enumeration] {
        &self.enumerations
    }
}
