//! The text form of the IR, for observers and snapshots.

use std::fmt::{self, Display, Formatter};

use qwengpu_isa::{BinaryOp, DivisionPart, Extremum, Signedness, TernaryOp, UnaryOp};

use super::function::{Function, SymbolSpace, Terminator};
use super::inst::{Inst, InstKind, PredOp, WordOp};
use super::value::{Address, Cond, Value};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Reg(reg) => write!(f, "{reg}"),
            Value::Imm(imm) if *imm > 0xffff_0000 => write!(f, "{}", imm.cast_signed()),
            Value::Imm(imm) if *imm > 0xffff => write!(f, "{imm:#x}"),
            Value::Imm(imm) => write!(f, "{imm}"),
            Value::Const(idx) => write!(f, "{idx}"),
            Value::Symbol(symbol, 0) => write!(f, "&{symbol}"),
            Value::Symbol(symbol, offset) => write!(f, "&{symbol}+{offset}"),
        }
    }
}

impl Display for Cond {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Cond::Fixed(truth) => write!(f, "{truth}"),
            Cond::Pred { pred, negated: false } => write!(f, "{pred}"),
            Cond::Pred { pred, negated: true } => write!(f, "!{pred}"),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut terms: Vec<String> = Vec::new();
        terms.extend(self.base.map(|base| base.to_string()));
        terms.extend(self.index.map(|index| format!("4*{index}")));
        terms.extend(self.constant.map(|constant| constant.to_string()));
        terms.extend(self.symbol.map(|symbol| format!("&{symbol}")));
        if self.offset != 0 || terms.is_empty() {
            terms.push(Value::Imm(self.offset).to_string());
        }
        write!(f, "[{}]", terms.join(" + "))
    }
}

fn sign(signedness: Signedness) -> &'static str {
    signedness.suffix()
}

impl Display for WordOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WordOp::Move(a) => write!(f, "move {a}"),
            WordOp::Ternary(op, a, b, c) => {
                match op {
                    TernaryOp::Iadd => f.write_str("add")?,
                    TernaryOp::Isub => f.write_str("sub")?,
                    TernaryOp::Imad => f.write_str("mad")?,
                    TernaryOp::Iscadd(shift) => write!(f, "scadd.{shift}")?,
                }
                write!(f, " {a}, {b}, {c}")
            }
            WordOp::Binary(op, a, b) => {
                match op {
                    BinaryOp::Lop(table) => write!(f, "{table}")?,
                    BinaryOp::Shl => f.write_str("shl")?,
                    BinaryOp::Shr(signedness) => write!(f, "shr.{}", sign(*signedness))?,
                    BinaryOp::Imnmx(Extremum::Min, s) => write!(f, "min.{}", sign(*s))?,
                    BinaryOp::Imnmx(Extremum::Max, s) => write!(f, "max.{}", sign(*s))?,
                }
                write!(f, " {a}, {b}")
            }
            WordOp::Unary(op, a) => {
                let name = match op {
                    UnaryOp::Clz => "clz",
                    UnaryOp::Popc => "popc",
                    UnaryOp::Brev => "brev",
                };
                write!(f, "{name} {a}")
            }
            WordOp::Logic3(table, a, b, c) => write!(f, "lop3.{table} {a}, {b}, {c}"),
            WordOp::Select(cond, a, b) => write!(f, "select {cond}, {a}, {b}"),
            WordOp::Shuffle(mode, a, b) => write!(f, "shuffle.{mode} {a}, {b}"),
            WordOp::Vote(cond) => write!(f, "vote {cond}"),
            WordOp::Special(special) => write!(f, "special {special}"),
            WordOp::SmallDivide(part, a, b) => {
                let name = match part {
                    DivisionPart::Quotient => "div",
                    DivisionPart::Remainder => "mod",
                };
                match a {
                    Some(a) => write!(f, "small_{name} {a}, {b}"),
                    None => write!(f, "small_{name} tid, {b}"),
                }
            }
            WordOp::Divide(signedness, part, a, b) => {
                write!(f, "divide.{part}.{} {a}, {b}", sign(*signedness))
            }
            WordOp::MulHigh(signedness, a, b) => write!(f, "mul_high.{} {a}, {b}", sign(*signedness)),
            WordOp::Load(width, address) => write!(f, "load.{width} {address}"),
            WordOp::Undefined => f.write_str("undefined"),
        }
    }
}

impl Display for PredOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PredOp::Compare(comparison, a, b, Cond::Fixed(true)) => {
                write!(f, "compare.{comparison} {a}, {b}")
            }
            PredOp::Compare(comparison, a, b, cond) => {
                write!(f, "compare.{comparison} {a}, {b} and {cond}")
            }
            PredOp::Logic(table, p, q) => write!(f, "{table} {p}, {q}"),
            PredOp::Lead(a) => write!(f, "lead {a}"),
            PredOp::Undefined => f.write_str("undefined"),
        }
    }
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.guard != Cond::TRUE {
            write!(f, "@{} ", self.guard)?;
        }
        match &self.kind {
            InstKind::Word(dst, op) => write!(f, "{dst} = {op}"),
            InstKind::Pred(dst, op) => write!(f, "{dst} = {op}"),
            InstKind::Store(width, address, value) => write!(f, "store.{width} {address}, {value}"),
            InstKind::Barrier => f.write_str("barrier"),
            InstKind::Trap(reason) => write!(f, "trap.{}", reason.name()),
            InstKind::Call(routine) => write!(f, "call {routine}"),
        }
    }
}

impl Display for Terminator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Terminator::Jump(target) => write!(f, "jump {target}"),
            Terminator::Branch(cond, yes, no) => write!(f, "branch {cond}, {yes}, {no}"),
            Terminator::Exit => f.write_str("exit"),
            Terminator::Return => f.write_str("return"),
        }
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}", self.name)?;
        for (idx, symbol) in self.symbols.iter().enumerate() {
            let space = match symbol.space {
                SymbolSpace::Static => "static",
                SymbolSpace::Extern => "extern",
                SymbolSpace::Shared => "shared",
                SymbolSpace::SharedExtern => "extern shared",
                SymbolSpace::Local => "local",
                SymbolSpace::PerThread => "per thread",
                SymbolSpace::Param => "param",
                SymbolSpace::Transfer => "transfer",
                SymbolSpace::Stack => "stack",
            };
            writeln!(f, "  s{idx}: {space} {} bytes, align {}", symbol.bytes, symbol.align)?;
        }
        for id in &self.layout {
            writeln!(f, "{id}:")?;
            let block = self.block(*id);
            for inst in &block.insts {
                writeln!(f, "    {inst}")?;
            }
            writeln!(f, "    {}", block.terminator)?;
        }
        Ok(())
    }
}
