//! The sizes of a machine, and the constants of its address space.

use thiserror::Error;

/// Number of words in the constant bank; the width of its index is fixed by the encoding.
pub const CONSTANT_WORDS: u16 = 128;

/// Most threads a CTA can have on any machine: the operand range of the small division.
pub const MAX_CTA_THREADS: u16 = 32;

/// Address of the first byte of global memory.
pub const GLOBAL_BASE: u32 = 0;

/// Address of the first byte of shared memory.
pub const SHARED_BASE: u32 = 0x0010_0000;

/// Address of the first byte of local memory.
pub const LOCAL_BASE: u32 = 0x0020_0000;

/// Every size of a machine.
///
/// All fields are `u16`, so that they convert to `u32` and `usize` without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MachineSpec {
    /// Lanes a warp: a power of two, at most 8.
    pub lanes: u16,
    /// Registers a lane, counting `r0`, which always reads zero.
    pub registers: u16,
    /// Writable predicates a lane, not counting the constant `pt`.
    pub predicates: u16,
    /// Instructions the program memory holds: a power of two.
    pub rom_words: u16,
    /// Words of global memory.
    pub global_words: u16,
    /// Words of shared memory of a CTA.
    pub shared_words: u16,
    /// Words of local memory of each thread.
    pub local_words: u16,
    /// Warps a CTA can have.
    pub warps: u16,
    /// Words of the constant bank: always [`CONSTANT_WORDS`].
    pub constant_words: u16,
    /// Most CTAs a grid can have in one dimension.
    pub max_grid: u16,
}

impl MachineSpec {
    /// The first machine: 4 lanes, 8 warps, 126 words of global memory.
    #[must_use]
    pub const fn seed() -> Self {
        Self {
            lanes: 4,
            registers: 16,
            predicates: 7,
            rom_words: 512,
            global_words: 126,
            shared_words: 128,
            local_words: 16,
            warps: 8,
            constant_words: CONSTANT_WORDS,
            max_grid: 255,
        }
    }

    /// Checks every size against the encoding and the address map.
    ///
    /// # Errors
    ///
    /// Returns the first size that is out of range.
    pub fn validate(&self) -> Result<(), SpecError> {
        let in_range = |field, value: u16, min: u16, max: u16| {
            if (min..=max).contains(&value) { Ok(()) } else { Err(SpecError::OutOfRange { field, value, min, max }) }
        };
        let power_of_two = |field, value: u16| {
            if value.is_power_of_two() { Ok(()) } else { Err(SpecError::NotPowerOfTwo { field, value }) }
        };
        in_range("lanes", self.lanes, 1, 8)?;
        power_of_two("lanes", self.lanes)?;
        in_range("registers", self.registers, 2, 16)?;
        in_range("predicates", self.predicates, 1, 7)?;
        in_range("rom_words", self.rom_words, 2, 0x8000)?;
        power_of_two("rom_words", self.rom_words)?;
        in_range("global_words", self.global_words, 1, u16::MAX)?;
        in_range("shared_words", self.shared_words, 1, u16::MAX)?;
        in_range("local_words", self.local_words, 1, u16::MAX)?;
        in_range("warps", self.warps, 1, MAX_CTA_THREADS / self.lanes)?;
        in_range("constant_words", self.constant_words, CONSTANT_WORDS, CONSTANT_WORDS)?;
        in_range("max_grid", self.max_grid, 1, 4095)
    }

    /// Most threads a CTA can have: `lanes * warps`.
    #[must_use]
    pub const fn max_threads(&self) -> u16 {
        self.lanes * self.warps
    }

    /// The mask of all lanes of a warp, bit `l` for lane `l`.
    #[must_use]
    pub const fn full_mask(&self) -> u8 {
        // `lanes` is at most 8, so the shift amount is in 0..=7.
        u8::MAX >> (8 - self.lanes)
    }

    /// The addresses of a memory.
    #[must_use]
    pub const fn window(&self, memory: Memory) -> MemoryWindow {
        let (base, words) = match memory {
            Memory::Global => (GLOBAL_BASE, self.global_words),
            Memory::Shared => (SHARED_BASE, self.shared_words),
            Memory::Local => (LOCAL_BASE, self.local_words),
        };
        MemoryWindow { base, words }
    }

    /// The memory an address falls into, and the index of its word there.
    ///
    /// `None` if the address is out of bounds.
    #[must_use]
    pub fn locate(&self, address: u32) -> Option<(Memory, u16)> {
        Memory::ALL.into_iter().find_map(|memory| self.window(memory).word_index(address).map(|word| (memory, word)))
    }
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self::seed()
    }
}

/// A memory with a window in the generic address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Seen by every thread of the grid.
    Global,
    /// Seen by the threads of one CTA; zero when the CTA starts.
    Shared,
    /// Seen by one thread; keeps what its (warp, lane) slot last held.
    Local,
}

impl Memory {
    /// Every memory, by ascending address.
    pub const ALL: [Self; 3] = [Self::Global, Self::Shared, Self::Local];
}

/// The byte addresses of one memory: `words` words from `base` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryWindow {
    /// Address of the first byte.
    pub base: u32,
    /// Number of words.
    pub words: u16,
}

impl MemoryWindow {
    /// The index of the word that contains `address`, if the window contains it.
    #[must_use]
    pub fn word_index(&self, address: u32) -> Option<u16> {
        let word = u16::try_from(address.checked_sub(self.base)? / 4).ok()?;
        (word < self.words).then_some(word)
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        4 * u32::from(self.words)
    }
}

/// A size no machine can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A size is outside its range.
    #[error("{field} is {value}, expected {min}..={max}")]
    OutOfRange {
        /// Name of the field of [`MachineSpec`].
        field: &'static str,
        /// Its value.
        value: u16,
        /// Least value allowed.
        min: u16,
        /// Greatest value allowed.
        max: u16,
    },
    /// A size must be a power of two and is not.
    #[error("{field} is {value}, expected a power of two")]
    NotPowerOfTwo {
        /// Name of the field of [`MachineSpec`].
        field: &'static str,
        /// Its value.
        value: u16,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_is_valid() {
        assert_eq!(MachineSpec::seed().validate(), Ok(()));
        assert_eq!(MachineSpec::seed().max_threads(), 32);
        assert_eq!(MachineSpec::seed().full_mask(), 0b1111);
    }

    #[test]
    fn bad_sizes_are_refused() {
        let mut spec = MachineSpec::seed();
        spec.lanes = 3;
        assert_eq!(spec.validate(), Err(SpecError::NotPowerOfTwo { field: "lanes", value: 3 }));
        let mut spec = MachineSpec::seed();
        spec.warps = 9;
        assert_eq!(spec.validate(), Err(SpecError::OutOfRange { field: "warps", value: 9, min: 1, max: 8 }));
    }

    #[test]
    fn windows_hold_exactly_their_words() {
        let spec = MachineSpec::seed();
        let cases = [
            (0, Some((Memory::Global, 0))),
            (503, Some((Memory::Global, 125))),
            (504, None),
            (SHARED_BASE - 1, None),
            (SHARED_BASE, Some((Memory::Shared, 0))),
            (SHARED_BASE + 511, Some((Memory::Shared, 127))),
            (SHARED_BASE + 512, None),
            (LOCAL_BASE + 63, Some((Memory::Local, 15))),
            (LOCAL_BASE + 64, None),
            (u32::MAX, None),
        ];
        for (address, expected) in cases {
            assert_eq!(spec.locate(address), expected, "address {address:#x}");
        }
    }
}
