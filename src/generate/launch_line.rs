//! The launch at the end of a block: `f<<<1, 4>>>(int[]{1, 2}, int[2], 2);`.
//!
//! Grid and block are numbers or `dim3(x, y, z)`, with bytes of shared memory behind them if the kernel wants some.
//! `int[]{1, 2}` is a buffer with values and `int[2]` one of zeros, which counts as a result. `same` is a buffer that
//! the launch before had in this place, with what it left there.

use thiserror::Error;

use super::perform::LastBlock;
use crate::argument::{Argument, Buffer, ElementType, Scalar};
use crate::launch::{Launch, Start};
use qwengpu_isa::{Dim3, KernelSignature, ParamKind};

/// A launch line as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchLine {
    /// The kernel's name in the source.
    pub kernel: String,
    grid: Dim3,
    block: Dim3,
    shared_bytes: u32,
    arguments: Vec<Written>,
}

/// An argument as written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    Number(i128),
    Values(ElementType, Vec<i128>),
    Zeros(ElementType, usize),
    Same,
}

/// A launch line that cannot be read or does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchLineError {
    /// There is none.
    #[error("the block has no launch: end it with a line such as f<<<1, 4>>>(int[]{{1, 2}}, int[2], 2);")]
    Missing,
    /// It cannot be read.
    #[error("launch line, column {column}: expected {expected}")]
    Syntax {
        /// Column, counting characters from 1.
        column: usize,
        /// What could stand there.
        expected: &'static str,
    },
    /// An argument does not fit its parameter.
    #[error("argument {number} of {kernel}: {reason}")]
    Argument {
        /// Number of the argument, from 1.
        number: usize,
        /// The kernel.
        kernel: String,
        /// Why.
        reason: String,
    },
    /// `same` beside other buffers, or without a launch before.
    #[error("`same` stands for buffers of the launch before: write it for all buffers or for none{hint}")]
    Same {
        /// What else is wrong.
        hint: &'static str,
    },
}

/// Splits a block into its source and its last line that is not empty.
pub(crate) fn split(block: &str) -> Result<(&str, &str), LaunchLineError> {
    let trimmed = block.trim_end();
    let (source, line) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
    if line.contains("<<<") { Ok((source, line.trim())) } else { Err(LaunchLineError::Missing) }
}

impl LaunchLine {
    /// Reads a launch line.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(line: &str) -> Result<Self, LaunchLineError> {
        let mut reader = Reader { text: line.chars().collect(), at: 0 };
        let kernel = reader.name().ok_or_else(|| reader.expected("the name of a kernel"))?;
        reader.expect("<<<", "<<<")?;
        let grid = reader.dim3()?;
        reader.expect(",", "a comma and the size of a block")?;
        let block = reader.dim3()?;
        let shared_bytes = if reader.accept(",") { reader.size("bytes of shared memory")? } else { 0 };
        reader.expect(">>>", ">>>")?;
        reader.expect("(", "(")?;
        let mut arguments = Vec::new();
        if !reader.accept(")") {
            loop {
                arguments.push(reader.argument()?);
                if reader.accept(")") {
                    break;
                }
                reader.expect(",", "a comma or )")?;
            }
        }
        reader.accept(";");
        if reader.peek().is_some() {
            return Err(reader.expected("the end of the line"));
        }
        Ok(Self { kernel, grid, block, shared_bytes, arguments })
    }

    /// Whether every buffer is one of the launch before.
    #[must_use]
    pub fn is_continuation(&self) -> bool {
        self.arguments.contains(&Written::Same)
    }

    /// The launch, and which of its buffers are results: those of zeros, or all if there are none of these; with `same`
    /// buffers, those of the launch before.
    ///
    /// # Errors
    /// If an argument does not fit the kernel.
    pub(crate) fn launch(
        &self,
        signature: &KernelSignature,
        before: Option<&LastBlock>,
    ) -> Result<(Launch, Vec<usize>), LaunchLineError> {
        let wrong = |index: usize, reason: String| LaunchLineError::Argument {
            number: index + 1,
            kernel: self.kernel.clone(),
            reason,
        };
        let mut launch = Launch::new(self.grid, self.block);
        launch.shared_bytes = self.shared_bytes;
        let mut zeros = Vec::new();
        let mut buffers = 0;
        for (index, written) in self.arguments.iter().enumerate() {
            let argument = match written {
                Written::Number(value) => {
                    let Some(param) = signature.params.get(index) else {
                        return Err(wrong(index, format!("the kernel takes {} arguments", signature.params.len())));
                    };
                    let element = scalar_type(param.kind, param.size)
                        .ok_or_else(|| wrong(index, "a buffer is wanted here, such as int[4]".to_owned()))?;
                    let scalar = Scalar::new(element, *value).map_err(|error| wrong(index, error.to_string()))?;
                    Argument::Scalar(scalar)
                }
                Written::Values(element, values) => {
                    let buffer = Buffer::new(*element, values.clone());
                    Argument::Buffer(buffer.map_err(|error| wrong(index, error.to_string()))?)
                }
                Written::Zeros(element, count) => {
                    zeros.push(buffers);
                    let buffer = Buffer::new(*element, vec![0; *count]);
                    Argument::Buffer(buffer.map_err(|error| wrong(index, error.to_string()))?)
                }
                Written::Same => {
                    let before = before.ok_or(LaunchLineError::Same { hint: "; there was no launch before" })?;
                    match before.launch.arguments.get(index) {
                        Some(buffer @ Argument::Buffer(_)) => buffer.clone(),
                        _ => return Err(LaunchLineError::Same { hint: "; that launch had no buffer in this place" }),
                    }
                }
            };
            buffers += usize::from(matches!(argument, Argument::Buffer(_)));
            launch.arguments.push(argument);
        }
        if self.is_continuation() {
            let others =
                self.arguments.iter().any(|written| matches!(written, Written::Values(..) | Written::Zeros(..)));
            if others {
                return Err(LaunchLineError::Same { hint: "" });
            }
            launch.start = Start::Keep;
            return Ok((launch, before.map(|before| before.results.clone()).unwrap_or_default()));
        }
        let results = if zeros.is_empty() { (0..buffers).collect() } else { zeros };
        Ok((launch, results))
    }
}

/// The type of a scalar parameter; `None` for what only a pointer fits.
fn scalar_type(kind: ParamKind, size: u32) -> Option<ElementType> {
    match (kind, size) {
        (ParamKind::Signed, 1) => Some(ElementType::I8),
        (ParamKind::Signed, 2) => Some(ElementType::I16),
        (ParamKind::Signed, 4) => Some(ElementType::I32),
        (ParamKind::Signed, 8) => Some(ElementType::I64),
        (ParamKind::Unsigned | ParamKind::Bytes, 1) => Some(ElementType::U8),
        (ParamKind::Unsigned | ParamKind::Bytes, 2) => Some(ElementType::U16),
        (ParamKind::Unsigned | ParamKind::Bytes, 4) => Some(ElementType::U32),
        (ParamKind::Unsigned | ParamKind::Bytes, 8) => Some(ElementType::U64),
        _ => None,
    }
}

/// Most values of a buffer; far above what memory holds.
const MAX_VALUES: usize = 4096;

struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> LaunchLineError {
        LaunchLineError::Syntax { column: self.at + 1, expected }
    }

    fn accept(&mut self, mark: &str) -> bool {
        self.peek();
        let found = mark.chars().enumerate().all(|(offset, c)| self.text.get(self.at + offset) == Some(&c));
        if found {
            self.at += mark.chars().count();
        }
        found
    }

    fn expect(&mut self, mark: &str, expected: &'static str) -> Result<(), LaunchLineError> {
        if self.accept(mark) { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn name(&mut self) -> Option<String> {
        let first = self.peek()?;
        if !(first.is_ascii_alphabetic() || first == '_') {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        let name: String = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
        self.at += name.len();
        Some(name)
    }

    fn number(&mut self) -> Result<i128, LaunchLineError> {
        let negative = self.accept("-");
        let expected = self.expected("a number");
        self.peek();
        let rest: String =
            self.text.get(self.at..).unwrap_or_default().iter().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let digits = rest.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        // No type has more than 64 bits; so a sign in front of the number cannot overflow.
        let value = value.ok().filter(|value| (0..=i128::from(u64::MAX)).contains(value)).ok_or(expected)?;
        self.at += rest.chars().count();
        Ok(if negative { -value } else { value })
    }

    fn size<T: TryFrom<i128>>(&mut self, expected: &'static str) -> Result<T, LaunchLineError> {
        let error = self.expected(expected);
        T::try_from(self.number()?).map_err(|_| error)
    }

    fn dim3(&mut self) -> Result<Dim3, LaunchLineError> {
        if !self.accept("dim3") {
            return Ok(Dim3::linear(self.size("a size")?));
        }
        self.expect("(", "(")?;
        let mut sizes = [1; 3];
        for (index, size) in sizes.iter_mut().enumerate() {
            if index > 0 && !self.accept(",") {
                break;
            }
            *size = self.size("a size")?;
        }
        self.expect(")", ") behind at most three sizes")?;
        Ok(Dim3::new(sizes[0], sizes[1], sizes[2]))
    }

    fn argument(&mut self) -> Result<Written, LaunchLineError> {
        let Some(first) = self.name() else { return Ok(Written::Number(self.number()?)) };
        if first == "same" {
            return Ok(Written::Same);
        }
        let mut names = vec![first];
        while let Some(name) = self.name() {
            names.push(name);
        }
        let element = element_type(&names).ok_or_else(|| self.expected("a number, `same`, or a type such as int"))?;
        self.expect("[", "[ and the size of a buffer")?;
        if !self.accept("]") {
            let count = self.size("a size, or ] and values in braces")?;
            self.expect("]", "]")?;
            let expected = self.expected("at most 4096 elements");
            return if count <= MAX_VALUES { Ok(Written::Zeros(element, count)) } else { Err(expected) };
        }
        self.expect("{", "{ and the values")?;
        let mut values = Vec::new();
        while !self.accept("}") {
            if !values.is_empty() {
                self.expect(",", "a comma or }")?;
            }
            values.push(self.number()?);
            if values.len() > MAX_VALUES {
                return Err(self.expected("at most 4096 values"));
            }
        }
        Ok(Written::Values(element, values))
    }
}

/// The element type of a C type's words.
fn element_type(names: &[String]) -> Option<ElementType> {
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != "const").collect();
    Some(match names[..] {
        ["char" | "int8_t"] | ["signed", "char"] => ElementType::I8,
        ["uint8_t"] | ["unsigned", "char"] => ElementType::U8,
        ["short" | "int16_t"] | ["short", "int"] => ElementType::I16,
        ["uint16_t"] | ["unsigned", "short"] => ElementType::U16,
        ["int" | "int32_t"] => ElementType::I32,
        ["unsigned" | "uint32_t"] | ["unsigned", "int"] => ElementType::U32,
        ["int64_t" | "long"] | ["long", "long"] | ["long", "long", "int"] => ElementType::I64,
        ["uint64_t"] | ["unsigned", "long"] | ["unsigned", "long", "long"] => ElementType::U64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use qwengpu_isa::Param;

    fn parse(line: &str) -> Result<LaunchLine, String> {
        LaunchLine::parse(line).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_read() {
        let line = parse("f<<<1, 4>>>(int[]{1, -2}, int[2], 2);").expect("a launch");
        assert_eq!((line.kernel.as_str(), line.grid, line.block), ("f", Dim3::linear(1), Dim3::linear(4)));
        let values = Written::Values(ElementType::I32, vec![1, -2]);
        assert_eq!(line.arguments, [values, Written::Zeros(ElementType::I32, 2), Written::Number(2)]);
        let line =
            parse("g <<< dim3(2, 3), dim3(4), 64 >>> ( unsigned long long[ ]{ 0xffu } , same )").expect("a launch");
        assert_eq!((line.grid, line.block, line.shared_bytes), (Dim3::new(2, 3, 1), Dim3::linear(4), 64));
        assert_eq!(line.arguments, [Written::Values(ElementType::U64, vec![255]), Written::Same]);
        assert_eq!(parse("h<<<1, 1>>>()").expect("a launch").arguments, []);
    }

    #[test]
    fn other_lines_are_refused_with_their_place() {
        for (line, expected) in [
            ("<<<1, 1>>>()", "column 1: expected the name of a kernel"),
            ("f<<<1>>>()", "column 6: expected a comma and the size of a block"),
            ("f<<<1, 70000>>>()", "column 8: expected a size"),
            ("f<<<1, -1>>>()", "column 8: expected a size"),
            ("f<<<1, 1>>>(float[2])", "expected a number, `same`, or a type such as int"),
            ("f<<<1, 1>>>(int[]{1 2})", "column 21: expected a comma or }"),
            ("f<<<1, 1>>>(int[5000])", "at most 4096 elements"),
            ("f<<<1, 1>>>(99999999999999999999)", "column 13: expected a number"),
            ("f<<<1, 1>>>(1", "column 14: expected a comma or )"),
            ("f<<<1, 1>>>(1); g()", "expected the end of the line"),
        ] {
            let said = parse(line).expect_err(line);
            assert!(said.contains(expected), "{line}: {said}");
        }
        assert_eq!(split("int a;\n"), Err(LaunchLineError::Missing));
        assert_eq!(split("a\nb\nf<<<1, 1>>>();\n\n"), Ok(("a\nb", "f<<<1, 1>>>();")));
    }

    #[test]
    fn arguments_fit_parameters() {
        let mut signature = KernelSignature::new("f");
        signature.params = vec![
            Param { name: "a".into(), kind: ParamKind::Pointer, offset: 0, size: 8, align: 8 },
            Param { name: "n".into(), kind: ParamKind::Signed, offset: 8, size: 4, align: 4 },
        ];
        let launch = |line: &str, before: Option<&LastBlock>| {
            LaunchLine::parse(line).and_then(|line| line.launch(&signature, before)).map_err(|error| error.to_string())
        };
        let (first, results) = launch("f<<<1, 4>>>(int[]{7}, -3)", None).expect("a launch");
        assert_eq!((results, first.arguments[1].clone()), (vec![0], Argument::from(-3_i32)));
        assert!(launch("f<<<1, 4>>>(5, 5)", None).expect_err("refused").contains("a buffer is wanted"));
        assert!(launch("f<<<1, 4>>>(int[1], 5000000000)", None).expect_err("refused").contains("argument 2 of f"));
        assert!(launch("f<<<1, 4>>>(int[1], 1, 2)", None).expect_err("refused").contains("takes 2 arguments"));
        assert!(launch("f<<<1, 4>>>(same, 1)", None).expect_err("refused").contains("no launch before"));
        let before = LastBlock { ptx: String::new(), launch: first.clone(), results: vec![5] };
        let (next, results) = launch("f<<<1, 4>>>(same, 9)", Some(&before)).expect("a launch");
        assert_eq!((next.start, &next.arguments[0], results), (Start::Keep, &first.arguments[0], vec![5]));
    }
}
