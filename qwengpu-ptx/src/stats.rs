//! Figures of a translation.

/// What one pass did to the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassStats {
    /// Name of the pass.
    pub pass: &'static str,
    /// Round of the optimising passes; 0 outside them.
    pub round: u32,
    /// Instructions before.
    pub before: usize,
    /// Instructions after.
    pub after: usize,
    /// What it did to the tokens of a warp, if [`Options::estimates`](crate::Options::estimates) asked for it.
    pub tokens: Option<TokenEstimates>,
}

/// Estimated tokens of a warp: see `docs/ptx.md` for what is assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEstimates {
    /// In front of a pass.
    pub before: u64,
    /// Behind it.
    pub after: u64,
}

/// Figures of a lowered kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// The passes, in the order they ran.
    pub passes: Vec<PassStats>,
    /// Instructions of the program.
    pub instructions: usize,
    /// Estimated tokens of a warp that runs it.
    pub estimated_tokens: u64,
    /// Architectural registers used.
    pub registers: usize,
    /// Predicates used.
    pub predicates: usize,
    /// Words of local memory used for spilled registers.
    pub spill_slots: usize,
    /// Bytes of local memory a thread uses.
    pub local_bytes: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Words of static global memory.
    pub static_words: usize,
}
