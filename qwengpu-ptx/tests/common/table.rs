//! The data files of `tests/instructions`: what they say, and kernels that try it.
//!
//! `table.py` there describes the form. A kernel loads the operands of its thread, runs any number of a block's
//! instructions, each in a scope of its own, and stores their results one behind the other.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this module")]

use std::fmt::Write as _;
use std::path::Path;

/// What a value is: a predicate, or a number of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pred,
    B16,
    B32,
    B64,
}

impl Kind {
    fn new(text: &str) -> Self {
        match text {
            "pred" => Self::Pred,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            other => panic!("no kind of value is called {other}"),
        }
    }

    /// Words of memory of a value.
    pub fn words(self) -> usize {
        if self == Self::B64 { 2 } else { 1 }
    }

    fn register(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::B16 => "b16",
            Self::B32 => "b32",
            Self::B64 => "b64",
        }
    }
}

/// A register and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    pub name: String,
    pub kind: Kind,
}

impl Register {
    fn new(text: &str) -> Self {
        let (name, kind) = text.split_once(':').unwrap_or_else(|| panic!("`{text}` is no register"));
        Self { name: name.to_owned(), kind: Kind::new(kind) }
    }

    /// The number of the word of the thread's memory that it stands for.
    fn memory_word(&self) -> Option<usize> {
        self.name.strip_prefix('m')?.parse().ok()
    }
}

/// Instructions and what they leave, for every row of operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The section of the manual.
    pub section: String,
    pub text: String,
    pub results: Vec<(Register, Vec<u64>)>,
}

impl Case {
    /// Words of memory of the results of a thread.
    pub fn words(&self) -> usize {
        self.results.iter().map(|(register, _)| register.kind.words()).sum()
    }
}

/// Operands, and the cases that use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Whether results depend on the other threads of the warp.
    pub warp: bool,
    /// Where operands `m0`, `m1` ... are.
    pub space: Option<String>,
    pub operands: Vec<Register>,
    pub rows: Vec<Vec<u64>>,
    pub cases: Vec<Case>,
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|e| panic!("`{text}`: {e}"))
}

/// Reads a data file.
pub fn read(path: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("operands ") {
            let (operands, words): (Vec<&str>, Vec<&str>) = head.split(' ').partition(|word| word.contains(':'));
            blocks.push(Block {
                warp: words.contains(&"warp"),
                space: words.into_iter().find(|word| *word != "warp").map(str::to_owned),
                operands: operands.into_iter().map(Register::new).collect(),
                rows: Vec::new(),
                cases: Vec::new(),
            });
            continue;
        }
        let block = blocks.last_mut().expect("a block begins with `operands`");
        match (line.strip_prefix("  "), block.cases.last_mut()) {
            (Some(values), None) => block.rows.push(values.split(' ').map(hexadecimal).collect()),
            (Some(result), Some(case)) => {
                let (register, values) = result.split_once(" = ").expect("a result is `register = values`");
                let values: Vec<u64> = values.split(' ').map(hexadecimal).collect();
                assert_eq!(values.len(), block.rows.len(), "{}", case.text);
                case.results.push((Register::new(register), values));
            }
            (None, _) => {
                let (section, text) = line.split_once(' ').expect("a case is `section instructions`");
                block.cases.push(Case { section: section.to_owned(), text: text.to_owned(), results: Vec::new() });
            }
        }
    }
    blocks
}

impl Block {
    /// Words of memory of the operands of a thread.
    pub fn operand_words(&self) -> usize {
        self.operands.iter().map(|operand| operand.kind.words()).sum()
    }

    /// Words of memory that `%m` points to, of a thread.
    pub fn scratch_words(&self) -> usize {
        self.operands.iter().filter(|operand| operand.memory_word().is_some()).count()
    }

    /// The third buffer of a kernel, in words of a thread.
    pub fn scratch_buffer_words(&self) -> usize {
        if self.space.as_deref() == Some("global") { self.scratch_words() } else { 0 }
    }

    /// A row for each thread, as the kernel loads them.
    pub fn input(&self, rows: &[usize]) -> Vec<u32> {
        let mut words = Vec::new();
        for row in rows {
            for (operand, value) in self.operands.iter().zip(&self.rows[*row]) {
                let bytes = value.to_le_bytes();
                for at in 0..operand.kind.words() {
                    words.push(u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes")));
                }
            }
        }
        words
    }

    /// What is wrong with what a kernel of some cases stored for the rows of its threads.
    pub fn mistakes(&self, cases: &[&Case], rows: &[usize], output: &[u32]) -> Vec<String> {
        let mut mistakes = Vec::new();
        let stride: usize = cases.iter().map(|case| case.words()).sum();
        for (thread, &row) in rows.iter().enumerate() {
            let mut at = thread * stride;
            for case in cases {
                for (register, values) in &case.results {
                    let mut got = u64::from(output[at]);
                    if register.kind == Kind::B64 {
                        got |= u64::from(output[at + 1]) << 32;
                    }
                    at += register.kind.words();
                    if got != values[row] {
                        mistakes.push(format!(
                            "{} {}\n  {:x?} give {} = {got:#x} instead of {:#x}",
                            case.section, case.text, self.rows[row], register.name, values[row]
                        ));
                    }
                }
            }
        }
        mistakes
    }

    /// A kernel of some of the cases, for so many threads.
    pub fn kernel(&self, cases: &[&Case], threads: usize) -> String {
        let mut text = self.head(threads);
        for operand in &self.operands {
            let _ = writeln!(text, ".reg .{} %{};", operand.kind.register(), operand.name);
        }
        let _ = writeln!(text, "mad.wide.u32 %in, %thread, {}, %in;", 4 * self.operand_words());
        let mut at = 0;
        for Register { name, kind } in &self.operands {
            let _ = match kind {
                Kind::Pred => writeln!(text, "ld.global.u32 %x, [%in+{at}]; setp.ne.u32 %{name}, %x, 0;"),
                Kind::B16 => writeln!(text, "ld.global.u32 %x, [%in+{at}]; cvt.u16.u32 %{name}, %x;"),
                Kind::B32 => writeln!(text, "ld.global.u32 %{name}, [%in+{at}];"),
                Kind::B64 => {
                    let high = at + 4;
                    writeln!(
                        text,
                        "ld.global.u32 %x, [%in+{at}]; ld.global.u32 %y, [%in+{high}]; mov.b64 %{name}, {{%x, %y}};"
                    )
                }
            };
            at += 4 * kind.words();
        }
        self.tail(text, cases)
    }

    /// The same with a row's operands as constants, for one thread.
    pub fn constant_kernel(&self, case: &Case, row: usize) -> String {
        let mut text = self.head(1);
        for (Register { name, kind }, value) in self.operands.iter().zip(&self.rows[row]) {
            let _ = match kind {
                Kind::Pred => writeln!(text, ".reg .pred %{name}; setp.ne.u32 %{name}, {value}, 0;"),
                _ => writeln!(text, ".reg .{0} %{name}; mov.{0} %{name}, {value};", kind.register()),
            };
        }
        self.tail(text, &[case])
    }

    fn head(&self, threads: usize) -> String {
        let mut text = String::from(
            ".version 9.4\n.target sm_120a\n.address_size 64\n\
             .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 memory)\n{\n\
             .reg .b32 %thread, %x, %y; .reg .b64 %in, %out, %m; .reg .b32 %t<4>; .reg .b64 %w<4>; .reg .pred %q<6>;\n\
             ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %thread, %tid.x;\n",
        );
        let bytes = 4 * self.scratch_words();
        let _ = match self.space.as_deref() {
            None => Ok(()),
            Some("global") => {
                writeln!(text, "ld.param.u64 %m, [memory]; mad.wide.u32 %m, %thread, {bytes}, %m;")
            }
            Some("local") => writeln!(text, ".local .align 16 .b8 scratch[{bytes}]; mov.u64 %m, scratch;"),
            Some(space) => {
                let all = threads * bytes;
                writeln!(
                    text,
                    ".{space} .align 16 .b8 scratch[{all}]; mov.u64 %m, scratch; mad.wide.u32 %m, %thread, {bytes}, %m;"
                )
            }
        };
        text
    }

    fn tail(&self, mut text: String, cases: &[&Case]) -> String {
        let stride: usize = cases.iter().map(|case| case.words()).sum();
        let _ = writeln!(text, "mad.wide.u32 %out, %thread, {}, %out;", 4 * stride);
        let space = self.space.as_deref().unwrap_or_default();
        let mut at = 0;
        for case in cases {
            text.push_str("{\n");
            for (Register { name, kind }, _) in case.results.iter().filter(|(r, _)| r.memory_word().is_none()) {
                let _ = writeln!(text, ".reg .{} %{name};", kind.register());
            }
            for (word, operand) in self.operands.iter().filter_map(|o| Some((o.memory_word()?, o))) {
                let _ = writeln!(text, "st.{space}.u32 [%m+{}], %{};", 4 * word, operand.name);
            }
            let _ = writeln!(text, "{}", case.text);
            for (register, _) in &case.results {
                let Register { name, kind } = register;
                let _ = match (register.memory_word(), kind) {
                    (Some(word), _) => {
                        writeln!(text, "ld.{space}.u32 %x, [%m+{}]; st.global.u32 [%out+{at}], %x;", 4 * word)
                    }
                    (None, Kind::Pred) => writeln!(text, "selp.u32 %x, 1, 0, %{name}; st.global.u32 [%out+{at}], %x;"),
                    (None, Kind::B16) => writeln!(text, "cvt.u32.u16 %x, %{name}; st.global.u32 [%out+{at}], %x;"),
                    (None, Kind::B32) => writeln!(text, "st.global.u32 [%out+{at}], %{name};"),
                    (None, Kind::B64) => {
                        let high = at + 4;
                        writeln!(
                            text,
                            "mov.b64 {{%x, %y}}, %{name}; st.global.u32 [%out+{at}], %x; st.global.u32 [%out+{high}], %y;"
                        )
                    }
                };
                at += 4 * kind.words();
            }
            text.push_str("}\n");
        }
        text.push_str("ret;\n}\n");
        text
    }
}
