//! The dtypes of a checkpoint, and which values each holds exactly.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 16 bits: the upper half of an f32.
    #[default]
    Bf16,
    /// 32 bits.
    F32,
}

/// A text that names no dtype.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no dtype: expected bf16 or f32")]
pub struct DtypeError {
    /// The text.
    pub text: String,
}

impl Dtype {
    /// Bytes of a value.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// Whether a value is finite and stored without rounding.
    #[must_use]
    pub const fn holds(self, value: f32) -> bool {
        value.is_finite()
            && match self {
                Self::Bf16 => value.to_bits().trailing_zeros() >= 16,
                Self::F32 => true,
            }
    }

    /// The name in a header of safetensors.
    pub(crate) const fn safetensors_name(self) -> &'static str {
        match self {
            Self::Bf16 => "BF16",
            Self::F32 => "F32",
        }
    }

    /// The name in a configuration.
    pub(crate) const fn torch_name(self) -> &'static str {
        match self {
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
        }
    }
}

/// The stored bytes of a value that [`Dtype::holds`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    bytes: [u8; 4],
    skipped: usize,
}

impl Stored {
    pub(crate) fn new(value: f32, dtype: Dtype) -> Self {
        // Little-endian: a bf16 is the last two bytes of the f32.
        Self { bytes: value.to_le_bytes(), skipped: 4 - dtype.size() }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.skipped..]
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        })
    }
}

impl FromStr for Dtype {
    type Err = DtypeError;

    fn from_str(text: &str) -> Result<Self, DtypeError> {
        match text {
            "bf16" => Ok(Self::Bf16),
            "f32" => Ok(Self::F32),
            _ => Err(DtypeError { text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_values() {
        for value in [0.0, -0.0, 1.0, 255.0, -256.0, 257.0 * 65536.0 / 257.0, 16_777_216.0, 2.0_f32.powi(-126)] {
            assert!(Dtype::Bf16.holds(value) && Dtype::F32.holds(value), "{value}");
        }
        for value in [257.0, 0.1, -1.0 / 3.0, f32::MIN_POSITIVE / 3.0] {
            assert!(!Dtype::Bf16.holds(value) && Dtype::F32.holds(value), "{value}");
        }
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!Dtype::Bf16.holds(value) && !Dtype::F32.holds(value), "{value}");
        }
    }

    #[test]
    fn stored_bytes() {
        assert_eq!(Stored::new(-2.5, Dtype::F32).as_bytes(), (-2.5_f32).to_le_bytes());
        assert_eq!(Stored::new(-2.5, Dtype::Bf16).as_bytes(), [0x20, 0xc0]);
    }

    #[test]
    fn texts() {
        for dtype in [Dtype::Bf16, Dtype::F32] {
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
        }
        assert_eq!("fp16".parse::<Dtype>(), Err(DtypeError { text: "fp16".to_owned() }));
    }
}
