//! Ids. Each prints as it reads in the text form of the IR.

use std::fmt;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(u32);

        impl $name {
            pub(crate) fn new(idx: usize) -> Self {
                Self(u32::try_from(idx).unwrap_or(u32::MAX))
            }

            pub(crate) fn idx(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )* };
}

entities! {
    /// A virtual register: a word in every thread.
    VReg "v";
    /// A virtual predicate: a bit in every thread.
    VPred "q";
    /// A basic block.
    BlockId "b";
    /// A variable in memory.
    SymbolId "s";
    /// A function that is called, not inlined.
    RoutineId "f";
}

/// The place of an instruction: a block and a position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InstRef {
    pub(crate) block: BlockId,
    /// Position; the terminator has the position past the last instruction.
    pub(crate) pos: usize,
}
