//! A weight matrix where it lies: in the file's map if the checkpoint has the compute dtype, or in memory of our own.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use half::bf16;

use super::nonzeros::Nonzeros;
use crate::load::{Mapped, Values};

/// A matrix `[out, in]`, row-major, in the compute dtype. Clones share the values.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    storage: Storage,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Its sparse panels, once somebody has asked for them.
    nonzeros: Arc<OnceLock<Option<Nonzeros>>>,
}

#[derive(Debug, Clone)]
enum Storage {
    Mapped(Mapped),
    F32(Arc<Vec<f32>>),
    /// The bits of bf16 values.
    Bf16(Arc<Vec<u16>>),
}

impl Weight {
    /// Takes values that stay in the file; none if they cannot be read there, or are not as many.
    pub(crate) fn mapped(mapped: Mapped, rows: usize, cols: usize) -> Option<Self> {
        let len = match mapped.values()? {
            Values::F32(values) => values.len(),
            Values::Bf16(values) => values.len(),
        };
        (len == rows * cols).then_some(Self::new(Storage::Mapped(mapped), rows, cols))
    }

    pub(crate) fn f32(values: Vec<f32>, rows: usize, cols: usize) -> Self {
        Self::new(Storage::F32(Arc::new(values)), rows, cols)
    }

    /// Of bits.
    pub(crate) fn bf16(values: Vec<u16>, rows: usize, cols: usize) -> Self {
        Self::new(Storage::Bf16(Arc::new(values)), rows, cols)
    }

    fn new(storage: Storage, rows: usize, cols: usize) -> Self {
        Self { storage, rows, cols, nonzeros: Arc::default() }
    }

    /// Its sparse panels, if it has any; looks for them the first time.
    pub(crate) fn nonzeros(&self) -> Option<&Nonzeros> {
        if self.nonzeros.get().is_none() {
            // Not while the lock is held: a thread that waits for its part of the search may take up another forward.
            let found = Nonzeros::find(self);
            return self.nonzeros.get_or_init(|| found).as_ref();
        }
        self.nonzeros.get().and_then(Option::as_ref)
    }

    /// Which of some values are not known to be zero without being read: ranges of places, ascending and apart.
    pub(crate) fn data(&self, places: Range<usize>) -> Vec<Range<usize>> {
        match &self.storage {
            Storage::Mapped(mapped) => mapped.data(places),
            Storage::F32(_) | Storage::Bf16(_) => vec![places],
        }
    }

    pub(crate) fn values(&self) -> Values<'_> {
        match &self.storage {
            // `mapped` has seen that there are values.
            Storage::Mapped(mapped) => mapped.values().unwrap_or(Values::F32(&[])),
            Storage::F32(values) => Values::F32(values),
            Storage::Bf16(values) => Values::Bf16(values),
        }
    }

    /// Appends rows in f32.
    pub(crate) fn widen_rows(&self, first: usize, count: usize, out: &mut Vec<f32>) {
        let range = first * self.cols..(first + count) * self.cols;
        match self.values() {
            Values::F32(values) => out.extend_from_slice(&values[range]),
            Values::Bf16(bits) => out.extend(bits[range].iter().map(|&bits| widen(bits))),
        }
    }
}

/// The value of bf16 bits.
#[inline(always)]
pub(crate) fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bits of a value rounded to bf16.
pub(crate) fn narrow(value: f32) -> u16 {
    bf16::from_f32(value).to_bits()
}
