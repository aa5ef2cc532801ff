//! Scalar types and state spaces.

use std::fmt;

/// What a scalar type's bits stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeClass {
    /// `.uN`.
    Unsigned,
    /// `.sN`.
    Signed,
    /// `.bN`.
    Bits,
    /// `.fN` and its packed and alternative formats.
    Float,
    /// `.pred`.
    Predicate,
}

macro_rules! scalar_types {
    ($($variant:ident $text:literal $class:ident $bits:literal;)*) => {
        /// A fundamental type of PTX.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ScalarType {
            $(#[doc = concat!("`.", $text, "`")] $variant,)*
        }

        impl ScalarType {
            /// Every type, in the order of declaration.
            pub const ALL: &[ScalarType] = &[$(ScalarType::$variant),*];

            /// The name without its dot.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(ScalarType::$variant => $text,)* }
            }

            /// What the bits stand for.
            #[must_use]
            pub fn class(self) -> TypeClass {
                match self { $(ScalarType::$variant => TypeClass::$class,)* }
            }

            /// The width in bits; 1 for a predicate.
            #[must_use]
            pub fn bits(self) -> u32 {
                match self { $(ScalarType::$variant => $bits,)* }
            }
        }
    };
}

scalar_types! {
    U8 "u8" Unsigned 8;
    U16 "u16" Unsigned 16;
    U32 "u32" Unsigned 32;
    U64 "u64" Unsigned 64;
    S8 "s8" Signed 8;
    S16 "s16" Signed 16;
    S32 "s32" Signed 32;
    S64 "s64" Signed 64;
    B8 "b8" Bits 8;
    B16 "b16" Bits 16;
    B32 "b32" Bits 32;
    B64 "b64" Bits 64;
    B128 "b128" Bits 128;
    F16 "f16" Float 16;
    F16x2 "f16x2" Float 32;
    Bf16 "bf16" Float 16;
    Bf16x2 "bf16x2" Float 32;
    Tf32 "tf32" Float 32;
    F32 "f32" Float 32;
    F64 "f64" Float 64;
    Pred "pred" Predicate 1;
}

impl ScalarType {
    /// The type of that name (without its dot).
    #[must_use]
    pub fn from_name(name: &str) -> Option<ScalarType> {
        ScalarType::ALL.iter().copied().find(|t| t.name() == name)
    }

    /// The width in bytes; 1 for a predicate.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether it is `.sN`.
    #[must_use]
    pub fn is_signed(self) -> bool {
        self.class() == TypeClass::Signed
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateSpace {
    /// `.reg`: registers.
    Reg,
    /// `.param`: parameters of kernels and functions.
    Param,
    /// `.global`: memory of the whole grid.
    Global,
    /// `.shared`: memory of a CTA.
    Shared,
    /// `.local`: memory of a thread.
    Local,
    /// `.const`: read-only memory of the whole grid.
    Const,
}

impl StateSpace {
    /// The space of that name (without its dot, and without a `::` suffix).
    #[must_use]
    pub fn from_name(name: &str) -> Option<StateSpace> {
        match name {
            "reg" => Some(StateSpace::Reg),
            "param" | "param::entry" | "param::func" => Some(StateSpace::Param),
            "global" => Some(StateSpace::Global),
            "shared" | "shared::cta" => Some(StateSpace::Shared),
            "local" => Some(StateSpace::Local),
            "const" => Some(StateSpace::Const),
            _ => None,
        }
    }

    /// The name without its dot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StateSpace::Reg => "reg",
            StateSpace::Param => "param",
            StateSpace::Global => "global",
            StateSpace::Shared => "shared",
            StateSpace::Local => "local",
            StateSpace::Const => "const",
        }
    }
}

impl fmt::Display for StateSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}
