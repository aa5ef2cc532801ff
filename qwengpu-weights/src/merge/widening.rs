//! The numbers by which a base is widened so that its function stays what it was; docs/merge.md derives them.

use half::bf16;

use super::base_config::NORM_EPS;

/// The most channels that hold constants of language tokens.
const MOST_BALLAST: usize = 4;
/// How far the squares of these constants may be from what they should sum up to.
const BALLAST_ERROR: f64 = 1e-6;
/// What the flag holds when nothing has to be balanced: its square vanishes beside any mean in f32.
const FAINT_FLAG: f32 = 1.0 / (1_u64 << 40) as f32;
/// The logit of a machine token in a language position is at most `-2^8` ...
const REPELLED_LOG2: i32 = 8;
/// ... while the root mean square of the final residual stream is at most `2^14`.
const LARGEST_RMS_LOG2: i32 = 14;

/// How a base of `base` channels fits into `hidden` channels.
///
/// With `r = hidden / base`, `s = 2^scale_exponent` is the least power of two with `s^2 >= r`, and
/// `sqrt(r) = 2^norm_exponent * divisor` with a divisor between `sqrt(1/2)` and `sqrt(2)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Widening {
    pub(crate) base: usize,
    pub(crate) hidden: usize,
    /// `log2` of what everything that is written into the language channels is multiplied by.
    pub(crate) scale_exponent: i32,
    /// `log2` of what everything that reads behind a norm is divided by.
    pub(crate) norm_exponent: i32,
    /// What `1 + w` of the norms is divided by; 1 if `hidden / base` is a power of four.
    pub(crate) divisor: f64,
    /// What language tokens hold in the channels behind the language's, all exact in bf16, the first not zero.
    pub(crate) ballast: Vec<f32>,
    /// What machine rows of the head hold, negated, for the first of these channels.
    pub(crate) flag_gain: f32,
}

impl Widening {
    /// The numbers for a widening; `None` unless `hidden` is larger than `base`, which is at least 1.
    pub(crate) fn new(base: usize, hidden: usize) -> Option<Self> {
        if base == 0 || hidden <= base || hidden >= 1 << 30 {
            return None;
        }
        let (narrow, wide) = (base as u64, hidden as u64);
        let scale_exponent = (0..32).find(|&exponent| narrow << (2 * exponent) >= wide)?;
        // The least j with r / 4^j < 2; then r / 4^j >= 1/2.
        let norm_exponent = (0..32).find(|&exponent| narrow << (2 * exponent + 1) > wide)?;
        let square = float(hidden) / (float(base) * 4_f64.powi(norm_exponent));
        let ballast = ballast(NORM_EPS * (float(base) * 4_f64.powi(scale_exponent) - float(hidden)));
        let gain = (f64::from(REPELLED_LOG2 + LARGEST_RMS_LOG2).exp2() / f64::from(ballast[0])).log2().ceil().exp2();
        Some(Self {
            base,
            hidden,
            scale_exponent,
            norm_exponent,
            divisor: square.sqrt(),
            ballast,
            flag_gain: bf16::from_f64(gain).to_f32(),
        })
    }

    /// Channels in front of the machine's.
    pub(crate) fn reserved(&self) -> usize {
        self.base + self.ballast.len()
    }

    /// Whether nothing of the base is rounded: `hidden / base` is a power of four.
    pub(crate) fn is_exact(&self) -> bool {
        self.base << (2 * self.norm_exponent) == self.hidden
    }
}

/// Sizes are far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "hidden sizes have at most 30 bits")]
fn float(size: usize) -> f64 {
    size as f64
}

/// Values of bf16 whose squares sum up to `sum`, largest first.
fn ballast(sum: f64) -> Vec<f32> {
    if sum <= 0.0 {
        return vec![FAINT_FLAG];
    }
    let mut values = Vec::new();
    let mut left = sum;
    while values.len() < MOST_BALLAST && left > BALLAST_ERROR * sum {
        let root = left.sqrt();
        let mut value = bf16::from_f64(root);
        if value.to_f64() > root {
            value = bf16::from_bits(value.to_bits() - 1);
        }
        left -= value.to_f64() * value.to_f64();
        values.push(value.to_f32());
    }
    values
}

/// A number rounded once to bf16: the nearest, ties to even.
pub(crate) fn round_to_bf16(value: f64) -> f32 {
    let mut near = single(value);
    if f64::from(near).to_bits() != value.to_bits() && near.is_finite() {
        // Towards zero, with the last bit set: then the second rounding sees that something was cut off.
        if f64::from(near).abs() > value.abs() {
            near = f32::from_bits(near.to_bits() - 1);
        }
        near = f32::from_bits(near.to_bits() | 1);
    }
    bf16::from_f32(near).to_f32()
}

/// A number rounded once to f32.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

/// `2^exponent`.
pub(crate) fn power_of_two(exponent: i32) -> f32 {
    single(f64::from(exponent).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sizes() {
        for (base, hidden, scale, norm, exact) in [
            (1024, 4096, 1, 1, true),
            (192, 3072, 2, 2, true),
            (2048, 4096, 1, 1, false),
            (1024, 3072, 1, 1, false),
            (2560, 5120, 1, 1, false),
            (4096, 6144, 1, 0, false),
        ] {
            let widening = Widening::new(base, hidden).expect("a widening");
            assert_eq!((widening.scale_exponent, widening.norm_exponent), (scale, norm), "{base} to {hidden}");
            assert_eq!(widening.is_exact(), exact, "{base} to {hidden}");
            assert_eq!((widening.divisor - 1.0).abs() < 1e-15, exact, "{base} to {hidden}");
            let product = widening.divisor * 2_f64.powi(norm);
            assert!((product * product - float(hidden) / float(base)).abs() < 1e-12);
            assert!(widening.divisor * widening.divisor >= 0.5 && widening.divisor * widening.divisor < 2.0);
        }
        assert_eq!(Widening::new(64, 64), None);
        assert_eq!(Widening::new(0, 64), None);
    }

    #[test]
    fn ballast_balances_eps() {
        for (base, hidden) in [(2048, 4096), (1024, 3072), (2560, 5120), (4096, 6144), (48, 1024), (1000, 3072)] {
            let widening = Widening::new(base, hidden).expect("a widening");
            let squares: f64 = widening.ballast.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
            let (r, s) = (float(hidden) / float(base), 2_f64.powi(widening.scale_exponent));
            let expected = float(hidden) * 1e-6 * (s * s / r - 1.0);
            assert!((squares / expected - 1.0).abs() < 1e-6, "{base} to {hidden}: {squares} for {expected}");
            assert!(widening.ballast.iter().all(|&value| value > 0.0 && value.to_bits().trailing_zeros() >= 16));
        }
    }

    #[test]
    fn the_flag_repels_machine_tokens() {
        for (base, hidden) in [(2048, 4096), (1024, 4096), (192, 3072), (4096, 6144)] {
            let widening = Widening::new(base, hidden).expect("a widening");
            let logit = f64::from(widening.flag_gain) * f64::from(widening.ballast[0]) / 2_f64.powi(LARGEST_RMS_LOG2);
            assert!((256.0..=512.0).contains(&logit), "{base} to {hidden}: {logit}");
            assert_eq!(widening.flag_gain.to_bits() << 9, 0, "a power of two");
        }
    }

    #[test]
    fn numbers_are_rounded_once() {
        // Just above half a step of bf16: f32 alone would round it to the tie, and the tie to even.
        let tie = 1.0 + 2_f64.powi(-8);
        assert_eq!(round_to_bf16(tie).to_bits(), 1.0_f32.to_bits());
        assert_eq!(round_to_bf16(tie + 2_f64.powi(-40)).to_bits(), (1.0_f32 + 2_f32.powi(-7)).to_bits());
        assert_eq!(round_to_bf16(-tie - 2_f64.powi(-40)).to_bits(), (-1.0_f32 - 2_f32.powi(-7)).to_bits());
        assert_eq!(round_to_bf16(tie - 2_f64.powi(-40)).to_bits(), 1.0_f32.to_bits());
        assert_eq!(round_to_bf16(-0.0).to_bits(), (-0.0_f32).to_bits());
    }
}
