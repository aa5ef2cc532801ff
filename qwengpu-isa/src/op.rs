//! Opcodes and their static properties.

use std::fmt;

/// Where an instruction puts its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// It has no result.
    None,
    /// Register `rd`; spoken as `VAL` records.
    Register,
    /// Predicate `pd`; spoken as one `PRED` record.
    Predicate,
}

/// How a source field of the encoding is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldUse {
    /// Not used: the field is zero.
    Unused,
    /// A register.
    Register,
    /// Operand B: a register, an immediate, or a constant word. Only `rb`.
    Operand,
    /// A predicate, plain or negated.
    Predicate,
}

/// The source fields an opcode uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandUse {
    /// Use of field `ra`.
    pub a: FieldUse,
    /// Use of field `rb`, with `b_kind` and `imm` if it is an operand.
    pub b: FieldUse,
    /// Use of field `rc`.
    pub c: FieldUse,
}

macro_rules! field_use {
    (-) => {
        FieldUse::Unused
    };
    (r) => {
        FieldUse::Register
    };
    (o) => {
        FieldUse::Operand
    };
    (p) => {
        FieldUse::Predicate
    };
}

// One table declares the enum and its properties, so that the documentation of a variant and the text that the
// instruction table of docs/isa.md prints are the same string.
macro_rules! opcodes {
    ($(
        #[doc = $doc:literal]
        $name:ident = $number:literal, $mnemonic:literal, $destination:ident, [$a:tt $b:tt $c:tt], $syntax:literal;
    )*) => {
        /// What an instruction does.
        ///
        /// In the equations `a`, `b`, `c` are the values of `ra`, operand B and `rc` in one lane, and all arithmetic
        /// is modulo 2^32. An instruction acts on its exec lanes: the active lanes whose guard is true. Registers and
        /// predicates of other lanes keep their values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $(
                #[doc = $doc]
                $name = $number,
            )*
        }

        impl Opcode {
            /// Every opcode, by ascending number.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The number in the encoding.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$name => $number,)*
                }
            }

            /// The name in assembly text, without modifiers.
            #[must_use]
            pub const fn mnemonic(self) -> &'static str {
                match self {
                    $(Self::$name => $mnemonic,)*
                }
            }

            /// Where the result goes.
            #[must_use]
            pub const fn destination(self) -> Destination {
                match self {
                    $(Self::$name => Destination::$destination,)*
                }
            }

            /// Which source fields are used, and how.
            #[must_use]
            pub const fn operand_use(self) -> OperandUse {
                match self {
                    $(Self::$name => OperandUse { a: field_use!($a), b: field_use!($b), c: field_use!($c) },)*
                }
            }

            /// The form of the instruction in assembly text.
            #[must_use]
            pub const fn syntax(self) -> &'static str {
                match self {
                    $(Self::$name => $syntax,)*
                }
            }

            /// What the instruction does, as an equation.
            #[must_use]
            pub const fn equation(self) -> &'static str {
                match self {
                    $(Self::$name => $doc.trim_ascii(),)*
                }
            }
        }
    };
}

opcodes! {
    /// Faults; the guard must be `pt`.
    Trap = 0, "trap", None, [- - -], "trap.{illegal,program,assertion,stack}";
    /// Exec lanes exit.
    Exit = 1, "exit", None, [- - -], "exit";
    /// `pc = target` in exec lanes; other active lanes go on.
    Bra = 2, "bra", None, [- - -], "bra target";
    /// `pc = a` in exec lanes, modulo the program memory size; other active lanes go on.
    Brx = 3, "brx", None, [r - -], "brx ra";
    /// Waits for the CTA; every lane that has not exited must be active, and the guard must be `pt`.
    Bar = 4, "bar", None, [- - -], "bar";
    /// `rd = a + b + c`
    Iadd = 5, "iadd", Register, [r o r], "iadd rd, ra, b[, rc]";
    /// `rd = a - b + c`
    Isub = 6, "isub", Register, [r o r], "isub rd, ra, b[, rc]";
    /// `rd = a * b + c`, low 32 bits.
    Imad = 7, "imad", Register, [r o r], "imad rd, ra, b[, rc]";
    /// `rd = (a << s) + b + c` with `s` in `1..=4`.
    Iscadd = 8, "iscadd", Register, [r o r], "iscadd.s rd, ra, b[, rc]";
    /// Bitwise: bit of `rd` = bit `2*a + b` of the 4-bit table.
    Lop = 9, "lop", Register, [r o -], "lop.table rd, ra, b";
    /// `rd = b > 31 ? 0 : a << b`
    Shl = 10, "shl", Register, [r o -], "shl rd, ra, b";
    /// `rd = a >> min(b, 32)`; signed (`s`) fills with the sign, unsigned (`u`) with zeros.
    Shr = 11, "shr", Register, [r o -], "shr.{u,s} rd, ra, b";
    /// `rd = min(a, b)` or `max(a, b)`, unsigned (`u`) or signed (`s`).
    Imnmx = 12, "imnmx", Register, [r o -], "imnmx.{min,max}.{u,s} rd, ra, b";
    /// `rd = p ? a : b`
    Sel = 13, "sel", Register, [r o p], "sel rd, ra, b, p";
    /// `pd = compare(a, b) && p`
    Setp = 14, "setp", Predicate, [r o p], "setp.{eq,ne,lt.u,lt.s,le.u,..} pd, ra, b[, p]";
    /// `pd` = bit `2*p + q` of the 4-bit table.
    Plop = 15, "plop", Predicate, [p p -], "plop.table pd, p, q";
    /// `rd = a` of the source lane, from `d = b & 31` and this lane `l`: `idx` lane `d & (lanes-1)`, `up` `l-d`, `down` `l+d`, `bfly` `l^d`; lane `l` itself where that does not exist.
    Shfl = 16, "shfl", Register, [r o -], "shfl.{idx,up,down,bfly} rd, ra, b";
    /// `rd` = the exec lanes whose `p` is true, bit `l` for lane `l`.
    Vote = 17, "vote", Register, [- - p], "vote rd, p";
    /// `rd` = special register: `laneid`, `warpid`, or `tid`, which is `lanes * warpid + laneid`.
    S2r = 18, "s2r", Register, [- - -], "s2r rd, special";
    /// Small division with `x = a & 31` or the linear thread id (`lin`) and `y = b & 63`: `q = y == 0 ? 31 : x / y`; `div`: `rd = q`, `mod`: `rd = x - q*y`.
    Sdiv = 19, "sdiv", Register, [r o -], "sdiv.{div,mod} rd, ra, b | sdiv.{div,mod}.lin rd, b";
    /// `rd` = number of leading zeros of `b`; 32 for 0.
    Clz = 20, "clz", Register, [- o -], "clz rd, b";
    /// `rd` = number of ones in `b`.
    Popc = 21, "popc", Register, [- o -], "popc rd, b";
    /// `pd` = this lane is the lowest exec lane among those with equal `a`.
    Lead = 22, "lead", Predicate, [r - -], "lead pd, ra";
    /// `rd` = the bits of `b` in reverse order.
    Brev = 23, "brev", Register, [- o -], "brev rd, b";
    /// Bitwise: bit of `rd` = bit `4*a + 2*b + c` of the 8-bit table.
    Lop3 = 24, "lop3", Register, [r r r], "lop3.table rd, ra, rb, rc";
    /// `pc = target` in exec lanes where `compare(a, b) && p`; other active lanes go on. An immediate `b` is below 2^16.
    Brc = 30, "brc", None, [r o p], "brc.{eq,ne,lt.u,lt.s,le.u,..} ra, b[, p], target";
    /// `rd = memory[a + 4*b + c[k] + offset]`, zero- or sign-extended.
    Ld = 32, "ld", Register, [r r -], "ld.{u8,s8,u16,s16,b32} rd, [address]";
    /// `memory[a + 4*b + c[k] + offset] = c`; the highest lane wins a conflict.
    St = 33, "st", None, [r r r], "st.{u8,u16,b32} [address], rc";
}

impl Opcode {
    /// The opcode of a number, if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.number() == number)
    }

    /// The opcode of a mnemonic, if there is one.
    #[must_use]
    pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.mnemonic() == mnemonic)
    }

    /// Whether the result goes to a register.
    #[must_use]
    pub const fn has_rd(self) -> bool {
        matches!(self.destination(), Destination::Register)
    }

    /// Whether the result goes to a predicate.
    #[must_use]
    pub const fn has_pd(self) -> bool {
        matches!(self.destination(), Destination::Predicate)
    }

    /// Whether it reads or writes memory.
    #[must_use]
    pub const fn accesses_memory(self) -> bool {
        matches!(self, Self::Ld | Self::St)
    }

    /// Whether it can have a guard other than `pt`.
    #[must_use]
    pub const fn allows_guard(self) -> bool {
        !matches!(self, Self::Trap | Self::Bar)
    }

    /// Whether it changes the pc of a lane to anything but the next instruction, or ends or stops lanes.
    #[must_use]
    pub const fn is_control(self) -> bool {
        matches!(self, Self::Trap | Self::Exit | Self::Bra | Self::Brx | Self::Brc | Self::Bar)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_bit_5_marks_memory() {
        for op in Opcode::ALL {
            assert_eq!(op.number() & 32 != 0, op.accesses_memory());
            assert_eq!(Opcode::from_number(op.number()), Some(*op));
            assert_eq!(Opcode::from_mnemonic(op.mnemonic()), Some(*op));
        }
        assert_eq!(Opcode::from_number(27), None);
        assert_eq!(Opcode::from_number(63), None);
        assert_eq!(Opcode::from_mnemonic("nop"), None);
    }
}
