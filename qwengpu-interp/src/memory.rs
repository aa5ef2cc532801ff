//! The memories behind the generic address space.

use qwengpu_isa::{FaultKind, MachineSpec, Memory};

/// Global, shared and local memory of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memories {
    spec: MachineSpec,
    pub(crate) global: Vec<u32>,
    shared: Vec<u32>,
    /// The local memories of all slots in a row; a slot is `lanes * warp + lane`.
    local: Vec<u32>,
}

/// Bytes of one word of a memory, which an access has been found to be allowed to touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    memory: Memory,
    word: usize,
    /// Bits in front of the first byte of the access.
    shift: u32,
    /// The bits of the access, in place.
    mask: u32,
}

impl Memories {
    pub(crate) fn new(spec: &MachineSpec) -> Self {
        let slots = usize::from(spec.max_threads());
        Self {
            spec: *spec,
            global: vec![0; usize::from(spec.global_words)],
            shared: vec![0; usize::from(spec.shared_words)],
            local: vec![0; slots * usize::from(spec.local_words)],
        }
    }

    pub(crate) fn clear_shared(&mut self) {
        self.shared.fill(0);
    }

    /// The place of `bytes` bytes at an address, as the thread of a slot sees it.
    ///
    /// Out of bounds takes precedence over misaligned.
    pub(crate) fn place(&self, slot: usize, address: u32, bytes: u32) -> Result<Place, FaultKind> {
        let (memory, word) = self.spec.locate(address).ok_or(FaultKind::OutOfBounds)?;
        if !address.is_multiple_of(bytes) {
            return Err(FaultKind::Misaligned);
        }
        let word = match memory {
            Memory::Global | Memory::Shared => usize::from(word),
            Memory::Local => slot * usize::from(self.spec.local_words) + usize::from(word),
        };
        let shift = 8 * (address % 4);
        Ok(Place { memory, word, shift, mask: (u32::MAX >> (32 - 8 * bytes)) << shift })
    }

    /// The bytes of a place, in the low bits.
    pub(crate) fn load(&self, place: Place) -> u32 {
        (self.words(place.memory)[place.word] & place.mask) >> place.shift
    }

    /// Writes the low bits of a value to a place.
    pub(crate) fn store(&mut self, place: Place, value: u32) {
        let words = match place.memory {
            Memory::Global => &mut self.global,
            Memory::Shared => &mut self.shared,
            Memory::Local => &mut self.local,
        };
        let word = &mut words[place.word];
        *word = *word & !place.mask | value << place.shift & place.mask;
    }

    /// The words of a memory; local memory has the words of all slots in a row.
    pub(crate) fn words(&self, memory: Memory) -> &[u32] {
        match memory {
            Memory::Global => &self.global,
            Memory::Shared => &self.shared,
            Memory::Local => &self.local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qwengpu_isa::{LOCAL_BASE, SHARED_BASE};

    #[test]
    fn accesses_touch_only_their_bytes() {
        let mut memories = Memories::new(&MachineSpec::seed());
        memories.global[1] = 0x4433_2211;
        let mut check = |address, bytes, expected: u32, value, word: u32| {
            let place = memories.place(0, address, bytes).expect("is allowed");
            assert_eq!(memories.load(place), expected);
            memories.store(place, value);
            assert_eq!(memories.global[1], word);
        };
        check(4, 1, 0x11, 0xffff_ffaa, 0x4433_22aa);
        check(7, 1, 0x44, 0xbb, 0xbb33_22aa);
        check(6, 2, 0xbb33, 0x9999_1234, 0x1234_22aa);
        check(4, 4, 0x1234_22aa, 0xdead_beef, 0xdead_beef);
    }

    #[test]
    fn bounds_come_before_alignment() {
        let memories = Memories::new(&MachineSpec::seed());
        let kind = |address, bytes| memories.place(0, address, bytes).err();
        assert_eq!(kind(500, 4), None);
        assert_eq!(kind(501, 4), Some(FaultKind::Misaligned));
        assert_eq!(kind(503, 2), Some(FaultKind::Misaligned));
        assert_eq!(kind(503, 1), None);
        assert_eq!(kind(505, 4), Some(FaultKind::OutOfBounds));
        assert_eq!(kind(u32::MAX, 1), Some(FaultKind::OutOfBounds));
        assert_eq!(kind(SHARED_BASE + 508, 4), None);
        assert_eq!(kind(SHARED_BASE + 512, 4), Some(FaultKind::OutOfBounds));
    }

    #[test]
    fn every_slot_has_its_local_memory() {
        let mut memories = Memories::new(&MachineSpec::seed());
        for slot in 0..32 {
            let place = memories.place(slot, LOCAL_BASE + 60, 4).expect("is allowed");
            memories.store(place, 100 + u32::try_from(slot).expect("is small"));
        }
        for (slot, words) in memories.words(Memory::Local).chunks(16).enumerate() {
            assert_eq!(words[15], 100 + u32::try_from(slot).expect("is small"));
            assert_eq!(words[14], 0);
        }
    }
}
