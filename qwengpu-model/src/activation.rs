//! Scalar functions, each computed in f32 as the reference computes it.

/// `x * sigmoid(x)`. Exactly x for large x; minus zero once the exponential overflows.
#[inline]
pub(crate) fn silu(x: f32) -> f32 {
    // Nothing is as frequent as zero. Beyond 32 the exponential is below half an ulp of 1, and below -89 it is infinite: spare the call.
    if x >= 32.0 {
        x
    } else if x <= -89.0 {
        -0.0
    } else if x == 0.0 {
        x
    } else {
        x / (1.0 + (-x).exp())
    }
}

/// `1 / (1 + exp(-x))`.
#[inline]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `ln(1 + exp(x))`, x itself above 20.
#[inline]
pub(crate) fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

/// `exp(x)` by its sum, in place.
pub(crate) fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// What the squares' sum is increased by in an l2 norm.
pub(crate) const L2_EPS: f32 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the shortcuts must not change a bit")]
    fn shortcuts_of_silu_are_exact() {
        for i in 0..20_000 {
            let x = 32.0 + i as f32 / 64.0;
            assert_eq!(silu(x), x / (1.0 + (-x).exp()));
            let x = -89.0 - i as f32 / 64.0;
            assert_eq!(silu(x).to_bits(), (x / (1.0 + (-x).exp())).to_bits());
        }
        assert_eq!(silu(0.0).to_bits(), 0.0_f32.to_bits());
        assert_eq!(silu(-0.0).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(softplus(25.0), 25.0);
        assert_eq!(sigmoid(-128.0), 0.0);
        assert_eq!(sigmoid(128.0), 1.0);
    }
}
