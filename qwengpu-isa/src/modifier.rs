//! The typed modifiers of opcodes: what the `sub` field and some immediates mean.

use std::cmp::Ordering;
use std::fmt;

use crate::record::FaultKind;

/// Whether 32-bit values are read as unsigned or as two's complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signedness {
    /// 0 to 2^32 - 1.
    Unsigned,
    /// -2^31 to 2^31 - 1.
    Signed,
}

impl Signedness {
    /// `u` or `s`.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Unsigned => "u",
            Self::Signed => "s",
        }
    }
}

/// Why a program faults on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrapReason {
    /// No instruction: what program memory holds where nothing was written.
    Illegal,
    /// The program asks for it.
    Program,
    /// An assertion does not hold.
    Assertion,
    /// The stack is full.
    StackOverflow,
}

impl TrapReason {
    /// Every reason, by ascending field.
    pub const ALL: [Self; 4] = [Self::Illegal, Self::Program, Self::Assertion, Self::StackOverflow];

    /// The `sub` field.
    #[must_use]
    pub const fn field(self) -> u8 {
        match self {
            Self::Illegal => 0,
            Self::Program => 1,
            Self::Assertion => 2,
            Self::StackOverflow => 3,
        }
    }

    /// The reason of a `sub` field, if there is one.
    #[must_use]
    pub fn from_field(field: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.field() == field)
    }

    /// The kind of the fault.
    #[must_use]
    pub const fn fault(self) -> FaultKind {
        match self {
            Self::Illegal => FaultKind::IllegalInstruction,
            Self::Program => FaultKind::Trap,
            Self::Assertion => FaultKind::Assertion,
            Self::StackOverflow => FaultKind::StackOverflow,
        }
    }

    /// The modifier in assembly text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Illegal => "illegal",
            Self::Program => "program",
            Self::Assertion => "assertion",
            Self::StackOverflow => "stack",
        }
    }
}

/// Which of two values is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extremum {
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// An order relation, before signedness is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Relation {
    /// Every relation.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];

    /// Whether it holds between a value and another, of which the first is `order` to the second.
    #[must_use]
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

/// A comparison of two words. Equality has no signedness, so it has one form only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`, unsigned
    LtU,
    /// `a <= b`, unsigned
    LeU,
    /// `a > b`, unsigned
    GtU,
    /// `a >= b`, unsigned
    GeU,
    /// `a < b`, signed
    LtS,
    /// `a <= b`, signed
    LeS,
    /// `a > b`, signed
    GtS,
    /// `a >= b`, signed
    GeS,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Self; 10] =
        [Self::Eq, Self::Ne, Self::LtU, Self::LeU, Self::GtU, Self::GeU, Self::LtS, Self::LeS, Self::GtS, Self::GeS];

    /// The comparison of a relation; for equality the signedness does not matter.
    #[must_use]
    pub const fn new(relation: Relation, signedness: Signedness) -> Self {
        match (relation, signedness) {
            (Relation::Eq, _) => Self::Eq,
            (Relation::Ne, _) => Self::Ne,
            (Relation::Lt, Signedness::Unsigned) => Self::LtU,
            (Relation::Le, Signedness::Unsigned) => Self::LeU,
            (Relation::Gt, Signedness::Unsigned) => Self::GtU,
            (Relation::Ge, Signedness::Unsigned) => Self::GeU,
            (Relation::Lt, Signedness::Signed) => Self::LtS,
            (Relation::Le, Signedness::Signed) => Self::LeS,
            (Relation::Gt, Signedness::Signed) => Self::GtS,
            (Relation::Ge, Signedness::Signed) => Self::GeS,
        }
    }

    /// The relation without the signedness.
    #[must_use]
    pub const fn relation(self) -> Relation {
        match self {
            Self::Eq => Relation::Eq,
            Self::Ne => Relation::Ne,
            Self::LtU | Self::LtS => Relation::Lt,
            Self::LeU | Self::LeS => Relation::Le,
            Self::GtU | Self::GtS => Relation::Gt,
            Self::GeU | Self::GeS => Relation::Ge,
        }
    }

    /// Whether it holds for two words.
    #[must_use]
    pub fn holds(self, a: u32, b: u32) -> bool {
        self.relation().holds(match self.signedness() {
            Signedness::Unsigned => a.cmp(&b),
            Signedness::Signed => a.cast_signed().cmp(&b.cast_signed()),
        })
    }

    /// How the values are read; unsigned for equality.
    #[must_use]
    pub const fn signedness(self) -> Signedness {
        match self {
            Self::Eq | Self::Ne | Self::LtU | Self::LeU | Self::GtU | Self::GeU => Signedness::Unsigned,
            Self::LtS | Self::LeS | Self::GtS | Self::GeS => Signedness::Signed,
        }
    }

    /// The `sub` field.
    #[must_use]
    pub const fn field(self) -> u8 {
        match self {
            Self::Eq => 0,
            Self::Ne => 1,
            Self::LtU => 2,
            Self::LeU => 3,
            Self::GtU => 4,
            Self::GeU => 5,
            Self::LtS => 10,
            Self::LeS => 11,
            Self::GtS => 12,
            Self::GeS => 13,
        }
    }

    /// The comparison of a `sub` field, if there is one.
    #[must_use]
    pub fn from_field(field: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|comparison| comparison.field() == field)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::LtU => "lt.u",
            Self::LeU => "le.u",
            Self::GtU => "gt.u",
            Self::GeU => "ge.u",
            Self::LtS => "lt.s",
            Self::LeS => "le.s",
            Self::GtS => "gt.s",
            Self::GeS => "ge.s",
        })
    }
}

/// A boolean function of two inputs: bit `2*x + y` of the table is its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table2(u8);

impl Table2 {
    /// `x & y`
    pub const AND: Self = Self(0b1000);
    /// `x | y`
    pub const OR: Self = Self(0b1110);
    /// `x ^ y`
    pub const XOR: Self = Self(0b0110);
    /// `!(x & y)`
    pub const NAND: Self = Self(0b0111);
    /// `!(x | y)`
    pub const NOR: Self = Self(0b0001);
    /// `!(x ^ y)`
    pub const XNOR: Self = Self(0b1001);
    /// `x & !y`
    pub const ANDN: Self = Self(0b0100);
    /// `x | !y`
    pub const ORN: Self = Self(0b1101);
    /// `!y`
    pub const NOT: Self = Self(0b0101);
    /// `y`
    pub const COPY: Self = Self(0b1010);

    /// The tables that have a name in assembly text.
    pub const NAMED: [(Self, &'static str); 10] = [
        (Self::AND, "and"),
        (Self::OR, "or"),
        (Self::XOR, "xor"),
        (Self::NAND, "nand"),
        (Self::NOR, "nor"),
        (Self::XNOR, "xnor"),
        (Self::ANDN, "andn"),
        (Self::ORN, "orn"),
        (Self::NOT, "not"),
        (Self::COPY, "copy"),
    ];

    /// The function of a table, if it is below 16.
    #[must_use]
    pub const fn new(table: u8) -> Option<Self> {
        if table < 16 { Some(Self(table)) } else { None }
    }

    /// The 4-bit table.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The value of the function.
    #[must_use]
    pub const fn apply(self, x: bool, y: bool) -> bool {
        let row = (if x { 2 } else { 0 }) + (if y { 1 } else { 0 });
        self.0 >> row & 1 == 1
    }
}

impl fmt::Display for Table2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(table, _)| table == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A boolean function of three inputs: bit `4*x + 2*y + z` of the table is its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table3(u8);

impl Table3 {
    /// The function of a table.
    #[must_use]
    pub const fn new(table: u8) -> Self {
        Self(table)
    }

    /// The 8-bit table.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Table3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// The shift amount of `iscadd`, 1 to 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaleShift(u8);

impl ScaleShift {
    /// Times 2.
    pub const BY_2: Self = Self(1);
    /// Times 4.
    pub const BY_4: Self = Self(2);
    /// Times 8.
    pub const BY_8: Self = Self(3);
    /// Times 16.
    pub const BY_16: Self = Self(4);

    /// The shift by an amount, if it is in `1..=4`.
    #[must_use]
    pub const fn new(amount: u8) -> Option<Self> {
        if matches!(amount, 1..=4) { Some(Self(amount)) } else { None }
    }

    /// The amount.
    #[must_use]
    pub const fn amount(self) -> u8 {
        self.0
    }
}

impl fmt::Display for ScaleShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// Modifiers that are plain enumerations of the `sub` field.
macro_rules! modifiers {
    ($(
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $field:literal, $text:literal; )* }
    )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The `sub` field.
            #[must_use]
            pub const fn field(self) -> u8 {
                match self { $(Self::$variant => $field,)* }
            }

            /// The name in assembly text.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of a `sub` field, if there is one.
            #[must_use]
            pub fn from_field(field: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.field() == field)
            }

            /// The value of a name in assembly text, if there is one.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.text() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    )* };
}

modifiers! {
    /// How `shfl` finds its source lane, from `d` and this lane `l`.
    ShuffleMode {
        /// Lane `d & (lanes - 1)`.
        Idx = 0, "idx";
        /// Lane `l - d`, or `l` if there is none.
        Up = 1, "up";
        /// Lane `l + d`, or `l` if there is none.
        Down = 2, "down";
        /// Lane `l ^ d`, or `l` if there is none.
        Bfly = 3, "bfly";
    }

    /// A value a thread knows about itself.
    SpecialReg {
        /// The lane of the thread in its warp.
        LaneId = 0, "laneid";
        /// The warp of the thread in its CTA.
        WarpId = 1, "warpid";
        /// `lanes * warpid + laneid`.
        LinearTid = 2, "tid";
    }

    /// Which result of the small division is kept.
    DivisionPart {
        /// The quotient.
        Quotient = 0, "div";
        /// The remainder.
        Remainder = 1, "mod";
    }

    /// What a load reads and how it fills the register.
    LoadWidth {
        /// A byte, zero-extended.
        U8 = 0, "u8";
        /// A byte, sign-extended.
        S8 = 1, "s8";
        /// Two bytes, zero-extended.
        U16 = 2, "u16";
        /// Two bytes, sign-extended.
        S16 = 3, "s16";
        /// A word.
        B32 = 4, "b32";
    }

    /// What a store writes.
    StoreWidth {
        /// The low byte.
        U8 = 0, "u8";
        /// The low two bytes.
        U16 = 2, "u16";
        /// The word.
        B32 = 4, "b32";
    }
}

impl LoadWidth {
    /// Bytes read: the alignment the address must have.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 => 2,
            Self::B32 => 4,
        }
    }
}

impl StoreWidth {
    /// Bytes written: the alignment the address must have.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::B32 => 4,
        }
    }
}
