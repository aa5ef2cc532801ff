//! Rotary positions on the first dimensions of a full-attention head.

use crate::config::Config;
use crate::engine::Precision;

/// Rotates queries and keys by their position. Dimension i goes with i + half of the rotated ones.
#[derive(Debug, Clone)]
pub(crate) struct Rope {
    inverse_frequencies: Vec<f32>,
    precision: Precision,
}

/// Cosine and sine of a position's angles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Angles {
    cos_sin: Vec<(f32, f32)>,
}

impl Rope {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "frequencies are f32, their exponents are small integers"
    )]
    pub(crate) fn new(config: &Config, precision: Precision) -> Self {
        let dims = config.rotary_dim();
        let frequency = |i: usize| {
            let exponent = (2 * i) as f32 / dims as f32;
            1.0 / (config.rope_theta.powf(f64::from(exponent)) as f32)
        };
        Self { inverse_frequencies: (0..dims / 2).map(frequency).collect(), precision }
    }

    /// Fills in the angles of a position.
    #[expect(clippy::cast_precision_loss, reason = "positions are f32 in the reference, too")]
    pub(crate) fn angles(&self, position: usize, angles: &mut Angles) {
        angles.cos_sin.clear();
        angles.cos_sin.extend(self.inverse_frequencies.iter().map(|&frequency| {
            let angle = position as f32 * frequency;
            (self.precision.round(angle.cos()), self.precision.round(angle.sin()))
        }));
    }

    /// Rotates one head's vector in place; both products and their sum are rounded.
    pub(crate) fn rotate(&self, angles: &Angles, head: &mut [f32]) {
        let round = |value| self.precision.round(value);
        let (first, rest) = head.split_at_mut(angles.cos_sin.len());
        for ((a, b), &(cos, sin)) in first.iter_mut().zip(rest).zip(&angles.cos_sin) {
            let (x, y) = (*a, *b);
            *a = round(round(x * cos) + round(-y * sin));
            *b = round(round(y * cos) + round(x * sin));
        }
    }
}
