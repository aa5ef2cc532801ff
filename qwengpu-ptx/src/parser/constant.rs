//! Constant expressions: C's operators on 64-bit integers.

use super::Parser;
use crate::error::{PtxError, Result};
use crate::lexer::Kind;

/// The value of a constant expression and whether C's rules make it unsigned.
#[derive(Clone, Copy)]
struct Constant {
    bits: u64,
    unsigned: bool,
}

impl Constant {
    fn signed(bits: u64) -> Self {
        Constant { bits, unsigned: false }
    }
}

/// Binary operators by binding strength, weakest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser<'_, '_> {
    /// A constant expression's value, two's complement in 64 bits.
    pub(super) fn constant(&mut self) -> Result<u64> {
        Ok(self.conditional()?.bits)
    }

    /// A constant expression that starts with a value already read, as behind `name +`.
    pub(super) fn signed_offset(&mut self) -> Result<i64> {
        Ok(self.binary(8)?.bits.cast_signed())
    }

    fn conditional(&mut self) -> Result<Constant> {
        let condition = self.binary(0)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        self.nested(|p| {
            let yes = p.conditional()?;
            p.expect(":")?;
            let no = p.conditional()?;
            Ok(if condition.bits != 0 { yes } else { no })
        })
    }

    fn binary(&mut self, level: usize) -> Result<Constant> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        loop {
            let token = self.peek();
            if token.kind != Kind::Punct || !operators.contains(&token.text) {
                return Ok(left);
            }
            self.next();
            let right = self.binary(level + 1)?;
            left = apply(token.text, left, right)
                .ok_or_else(|| PtxError::invalid(token.span, token.text, "a constant is divided by zero"))?;
        }
    }

    fn unary(&mut self) -> Result<Constant> {
        let token = self.peek();
        if let Kind::Int(bits, suffix) = token.kind {
            self.next();
            return Ok(Constant { bits, unsigned: suffix || bits > i64::MAX.cast_unsigned() });
        }
        if token.kind == Kind::Word && token.text == "WARP_SZ" {
            self.next();
            return Ok(Constant::signed(4));
        }
        let operator = if token.kind == Kind::Punct { token.text } else { "" };
        if !matches!(operator, "-" | "+" | "~" | "!" | "(") {
            return Err(self.unexpected("an integer constant"));
        }
        self.next();
        self.nested(|p| {
            if operator == "(" {
                for (cast, unsigned) in [("s64", false), ("u64", true)] {
                    if p.eat_dotted(cast) {
                        p.expect(")")?;
                        let value = p.unary()?;
                        return Ok(Constant { unsigned, ..value });
                    }
                }
                let value = p.conditional()?;
                p.expect(")")?;
                return Ok(value);
            }
            let value = p.unary()?;
            Ok(match operator {
                "-" => Constant { bits: value.bits.wrapping_neg(), ..value },
                "~" => Constant { bits: !value.bits, ..value },
                "!" => Constant::signed(u64::from(value.bits == 0)),
                _ => value,
            })
        })
    }
}

fn apply(operator: &str, left: Constant, right: Constant) -> Option<Constant> {
    let unsigned = left.unsigned || right.unsigned;
    let (a, b) = (left.bits, right.bits);
    let (sa, sb) = (a.cast_signed(), b.cast_signed());
    let truth = |x: bool| Some(Constant::signed(u64::from(x)));
    let shift = u32::try_from(b).unwrap_or(64);
    let bits = match operator {
        "||" => return truth(a != 0 || b != 0),
        "&&" => return truth(a != 0 && b != 0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(if unsigned { a < b } else { sa < sb }),
        "<=" => return truth(if unsigned { a <= b } else { sa <= sb }),
        ">" => return truth(if unsigned { a > b } else { sa > sb }),
        ">=" => return truth(if unsigned { a >= b } else { sa >= sb }),
        "<<" => {
            return Some(Constant { bits: a.checked_shl(shift).unwrap_or(0), ..left });
        }
        ">>" => {
            let bits =
                if left.unsigned { a.checked_shr(shift).unwrap_or(0) } else { (sa >> shift.min(63)).cast_unsigned() };
            return Some(Constant { bits, ..left });
        }
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return None,
        "/" if unsigned => a / b,
        "%" if unsigned => a % b,
        "/" => sa.wrapping_div(sb).cast_unsigned(),
        _ => sa.wrapping_rem(sb).cast_unsigned(),
    };
    Some(Constant { bits, unsigned })
}
