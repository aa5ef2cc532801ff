//! Integer expressions that the GPU computes: what may stand in a span, and the PTX it becomes.
//!
//! Numbers have 64 bits. `+ - *`, `/` and `%` as in C (towards zero), `**` or `^` for powers, parentheses, and a sign in
//! front. A number of the text is an argument of the kernel and not a constant of its code, so nothing is left for a
//! compiler to compute. The kernel checks each step: it leaves a [`Status`] beside the result.

use thiserror::Error;

/// Most operations of an expression; the program memory has room for them.
pub const MAX_OPERATIONS: usize = 8;

/// Deepest nesting of parentheses and signs.
const MAX_DEPTH: usize = 16;

/// Why a kernel has no result; the numbers are those of `presets/presets.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is a result.
    Good,
    /// It has more than 64 bits.
    Overflow,
    /// A divisor is zero.
    ZeroDivision,
    /// An argument is outside what the kernel takes.
    Range,
}

impl Status {
    /// The status of a word.
    #[must_use]
    pub const fn of(word: u32) -> Self {
        match word {
            0 => Self::Good,
            1 => Self::Overflow,
            2 => Self::ZeroDivision,
            _ => Self::Range,
        }
    }

    /// In words, for the text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Good => "a result",
            Self::Overflow => "the result has more than 64 bits",
            Self::ZeroDivision => "division by zero",
            Self::Range => "an argument is out of range",
        }
    }
}

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// A character that cannot stand there.
    #[error("column {column}: expected {expected}, found {found}")]
    Unexpected {
        /// Column, counting characters from 1.
        column: usize,
        /// What could stand there.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// A number with more than 63 bits.
    #[error("column {column}: the number has more than 63 bits")]
    Number {
        /// Column of its first digit.
        column: usize,
    },
    /// More operations than fit.
    #[error("more than {MAX_OPERATIONS} operations: split the expression")]
    Long,
    /// Too many parentheses within parentheses.
    #[error("more than {MAX_DEPTH} levels of parentheses and signs")]
    Deep,
}

/// An operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

/// A step: its operands are earlier steps or numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    operator: Operator,
    left: Operand,
    right: Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// A number of the text, by its position among them.
    Number(usize),
    /// The result of a step.
    Step(usize),
}

/// An expression, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    numbers: Vec<i64>,
    steps: Vec<Step>,
    result: Operand,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// If the text is none, or too long.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser =
            Parser { text: text.chars().collect(), at: 0, depth: 0, numbers: Vec::new(), steps: Vec::new() };
        let result = parser.sum()?;
        match parser.peek() {
            None => Ok(Self { numbers: parser.numbers, steps: parser.steps, result }),
            Some(_) => Err(parser.unexpected("an operator or the end")),
        }
    }

    /// The numbers in the text, in order; they are the kernel's arguments behind the two buffers.
    #[must_use]
    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// The kernel `expression(out, status, numbers...)`; `out` has 64 bits and `status` 32.
    #[must_use]
    pub fn to_ptx(&self) -> String {
        let mut ptx = Ptx { text: String::new(), registers: 0, labels: 0 };
        let params = (0..self.numbers.len()).map(|n| format!(", .param .s64 number{n}")).collect::<String>();
        let numbers: Vec<String> = (0..self.numbers.len())
            .map(|n| {
                let register = ptx.register();
                ptx.line(&format!("ld.param.s64 {register}, [number{n}];"));
                register
            })
            .collect();
        let mut results: Vec<String> = Vec::new();
        let of = |operand: Operand, results: &[String]| match operand {
            Operand::Number(n) => numbers[n].clone(),
            Operand::Step(n) => results[n].clone(),
        };
        for step in &self.steps {
            let (left, right) = (of(step.left, &results), of(step.right, &results));
            let result = ptx.step(step.operator, &left, &right);
            results.push(result);
        }
        let result = of(self.result, &results);
        format!(
            ".version 7.0\n.target sm_75\n.address_size 64\n\
             .visible .entry expression(.param .u64 out, .param .u64 status{params})\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %status;\n.reg .b64 %a<2>;\n.reg .b64 %r<{}>;\n\
             ld.param.u64 %a0, [out];\nld.param.u64 %a1, [status];\n{}\
             st.global.s64 [%a0], {result};\nret;\n\
             OVERFLOW:\nmov.u32 %status, 1;\nbra FAIL;\nZERO:\nmov.u32 %status, 2;\nbra FAIL;\nRANGE:\nmov.u32 %status, 3;\n\
             FAIL:\nst.global.u32 [%a1], %status;\nret;\n}}\n",
            ptx.registers.max(1),
            ptx.text,
        )
    }
}

/// The text of a kernel as it grows.
struct Ptx {
    text: String,
    registers: usize,
    labels: usize,
}

impl Ptx {
    fn register(&mut self) -> String {
        self.registers += 1;
        format!("%r{}", self.registers - 1)
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// The code of a step, and the register with its result.
    fn step(&mut self, operator: Operator, a: &str, b: &str) -> String {
        let result = self.register();
        match operator {
            Operator::Add | Operator::Subtract => {
                // The sign of the result is wrong where both operands (one of them negated) have the other sign.
                let (name, other) = if operator == Operator::Add { ("add", result.as_str()) } else { ("sub", a) };
                let (x, y) = (self.register(), self.register());
                self.line(&format!(
                    "{name}.s64 {result}, {a}, {b};\nxor.b64 {x}, {a}, {result};\nxor.b64 {y}, {b}, {other};"
                ));
                self.line(&format!("and.b64 {x}, {x}, {y};\nsetp.lt.s64 %p0, {x}, 0;\n@%p0 bra OVERFLOW;"));
            }
            Operator::Multiply => self.multiply(&result, a, b),
            Operator::Divide | Operator::Remainder => {
                self.line(&format!("setp.eq.s64 %p0, {b}, 0;\n@%p0 bra ZERO;"));
                let name = if operator == Operator::Divide { "div" } else { "rem" };
                self.line(&format!("{name}.s64 {result}, {a}, {b};"));
                if operator == Operator::Divide {
                    // Only the least number by -1 has a quotient that does not fit.
                    self.line(&format!(
                        "setp.eq.s64 %p0, {b}, -1;\nsetp.eq.s64 %p1, {a}, 0x8000000000000000;\nand.pred %p0, %p0, %p1;\n\
                         @%p0 bra OVERFLOW;"
                    ));
                }
            }
            Operator::Power => self.power(&result, a, b),
        }
        result
    }

    fn multiply(&mut self, result: &str, a: &str, b: &str) {
        let (high, sign) = (self.register(), self.register());
        let product = self.register();
        self.line(&format!(
            "mul.lo.s64 {product}, {a}, {b};\nmul.hi.s64 {high}, {a}, {b};\nshr.s64 {sign}, {product}, 63;\n\
             setp.ne.s64 %p0, {high}, {sign};\n@%p0 bra OVERFLOW;\nmov.s64 {result}, {product};"
        ));
    }

    /// Multiplies as often as the exponent says; for 0, 1 and -1 its last bits are enough.
    fn power(&mut self, result: &str, base: &str, exponent: &str) {
        let (left, size, few) = (self.register(), self.register(), self.register());
        let number = self.labels;
        self.labels += 1;
        self.line(&format!(
            "setp.lt.s64 %p0, {exponent}, 0;\n@%p0 bra RANGE;\nmov.s64 {left}, {exponent};\n\
             add.s64 {size}, {base}, 1;\nsetp.gt.u64 %p1, {size}, 2;\n@%p1 bra LOOP{number};\n\
             and.b64 {few}, {exponent}, 1;\nsetp.gt.s64 %p1, {exponent}, 1;\n@!%p1 bra LOOP{number};\n\
             add.s64 {left}, {few}, 2;\nLOOP{number}:\nmov.s64 {result}, 1;\nNEXT{number}:\n\
             setp.eq.s64 %p0, {left}, 0;\n@%p0 bra DONE{number};"
        ));
        self.multiply(result, result, base);
        self.line(&format!("sub.s64 {left}, {left}, 1;\nbra NEXT{number};\nDONE{number}:"));
    }
}

/// Recursive descent; every call consumes at least a character or ends.
struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
    numbers: Vec<i64>,
    steps: Vec<Step>,
}

impl Parser {
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(symbol);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&mut self, expected: &'static str) -> ExpressionError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        ExpressionError::Unexpected { column: self.at + 1, expected, found }
    }

    fn step(&mut self, operator: Operator, left: Operand, right: Operand) -> Result<Operand, ExpressionError> {
        if self.steps.len() >= MAX_OPERATIONS {
            return Err(ExpressionError::Long);
        }
        self.steps.push(Step { operator, left, right });
        Ok(Operand::Step(self.steps.len() - 1))
    }

    fn sum(&mut self) -> Result<Operand, ExpressionError> {
        let mut left = self.term()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.term()?;
            left = self.step(operator, left, right)?;
        }
    }

    fn term(&mut self) -> Result<Operand, ExpressionError> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                Some('%') => Operator::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            // `//` is how some write a whole quotient.
            if operator == Operator::Divide {
                self.take('/');
            }
            let right = self.signed()?;
            left = self.step(operator, left, right)?;
        }
    }

    /// A sign binds weaker than a power: -2 ** 2 is -4.
    fn signed(&mut self) -> Result<Operand, ExpressionError> {
        if self.take('-') {
            let operand = self.deeper(Self::signed)?;
            let zero = self.number(0);
            return self.step(Operator::Subtract, zero, operand);
        }
        self.power()
    }

    fn power(&mut self) -> Result<Operand, ExpressionError> {
        let base = self.primary()?;
        let symbol = self.peek();
        let doubled = symbol == Some('*') && self.text.get(self.at + 1) == Some(&'*');
        if symbol != Some('^') && !doubled {
            return Ok(base);
        }
        self.at += 1 + usize::from(doubled);
        let exponent = self.deeper(Self::signed)?;
        self.step(Operator::Power, base, exponent)
    }

    fn primary(&mut self) -> Result<Operand, ExpressionError> {
        if self.take('(') {
            let inner = self.deeper(Self::sum)?;
            return if self.take(')') { Ok(inner) } else { Err(self.unexpected("an operator or `)`")) };
        }
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(self.unexpected("a number or `(`"));
        }
        let start = self.at;
        let mut digits = String::new();
        while let Some(digit) = self.text.get(self.at).filter(|c| c.is_ascii_digit()) {
            digits.push(*digit);
            self.at += 1;
        }
        let value = digits.parse().map_err(|_| ExpressionError::Number { column: start + 1 })?;
        Ok(self.number(value))
    }

    fn number(&mut self, value: i64) -> Operand {
        self.numbers.push(value);
        Operand::Number(self.numbers.len() - 1)
    }

    fn deeper(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Operand, ExpressionError>,
    ) -> Result<Operand, ExpressionError> {
        if self.depth >= MAX_DEPTH {
            return Err(ExpressionError::Deep);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }
}
