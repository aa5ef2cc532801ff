//! Global memory as the machine keeps it: a state for each byte of a word, a row for each word, a column for each bit.

use qwengpu_circuit::{STORED_BIT, StateLocation};
use qwengpu_isa::{MachineSpec, Memory};
use qwengpu_machine::memory_state;

use crate::error::RunError;

/// Bytes of a word.
const WORD_BYTES: usize = 4;
/// Bits of a byte.
const BYTE_BITS: usize = 8;

/// How far an element of the recurrent state may be from a bit's two values.
///
/// Written values are exact; a chunked prefill may leave a residue of 2^-12 of a bit where writes cancel.
const TOLERANCE: f32 = STORED_BIT / 1024.0;

/// Assembles the words; `byte(i)` opens the state of byte `i`, which answers whether a bit of a word is set.
pub(crate) fn words<B>(spec: &MachineSpec, byte: impl Fn(usize) -> Result<B, RunError>) -> Result<Vec<u32>, RunError>
where
    B: Fn(usize, usize) -> Result<bool, RunError>,
{
    let mut words = vec![0; usize::from(spec.global_words)];
    for position in 0..WORD_BYTES {
        let is_set = byte(position)?;
        for (number, word) in words.iter_mut().enumerate() {
            for bit in 0..BYTE_BITS {
                if is_set(number, bit)? {
                    *word |= 1 << (BYTE_BITS * position + bit);
                }
            }
        }
    }
    Ok(words)
}

/// Reads global memory from the recurrent states of a model: `state(layer, head)` has rows of `width` values.
pub(crate) fn read<'a>(
    spec: &MachineSpec,
    locations: &[StateLocation],
    width: usize,
    state: impl Fn(usize, usize) -> Result<&'a [f32], qwengpu_model::Error>,
) -> Result<Vec<u32>, RunError> {
    let state = &state;
    words(spec, |byte| {
        let name = memory_state(Memory::Global, byte, None);
        // Each read port has a copy of its own, and all copies are written alike.
        let found = locations.iter().find(|location| location.state == name);
        let location = found.ok_or(RunError::NoState(name))?;
        Ok(move |word: usize, bit: usize| {
            let Some((head, row, column)) = location.bit(word, bit) else { return Ok(false) };
            let value = state(location.layer, head)?.get(row * width + column).copied().unwrap_or(f32::NAN);
            exact_bit(value).ok_or(RunError::NoBit { word, bit: BYTE_BITS * byte + bit, value, one: STORED_BIT })
        })
    })
}

/// The bit that an element of a recurrent state holds; `None` for a value that is neither.
fn exact_bit(value: f32) -> Option<bool> {
    if (value - STORED_BIT).abs() <= TOLERANCE {
        Some(true)
    } else if value.abs() <= TOLERANCE {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bits_are_bits() {
        assert_eq!(exact_bit(0.0), Some(false));
        assert_eq!(exact_bit(-0.01), Some(false));
        assert_eq!(exact_bit(STORED_BIT), Some(true));
        assert_eq!(exact_bit(127.99), Some(true));
        for value in [1.0, 64.0, -128.0, 256.0, f32::NAN, f32::INFINITY] {
            assert_eq!(exact_bit(value), None, "{value}");
        }
    }

    #[test]
    fn words_are_little_endian() {
        let spec = MachineSpec::seed();
        let words =
            words(&spec, |byte| Ok(move |word, bit| Ok(word == 3 && byte == 1 && bit == 7))).expect("no errors");
        assert_eq!(words[3], 0x8000);
        assert_eq!(words.iter().filter(|&&word| word != 0).count(), 1);
    }
}
