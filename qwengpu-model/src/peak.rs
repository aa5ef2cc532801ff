//! What the tensor library can do on this machine: the measure for a prefill.

use std::time::Instant;

use candle_core::{Device, Tensor};

use crate::error::Error;

/// Seconds of a general matrix product in f32 as the dense engine's prefill has it: `[tokens, width]` times the
/// transpose of `[outputs, width]`, on all threads of the tensor library; the least of `rounds`, at least one.
///
/// It takes `2 * tokens * width * outputs` floating-point operations.
///
/// # Errors
/// If the tensor library refuses the sizes.
pub fn product_seconds(tokens: usize, width: usize, outputs: usize, rounds: usize) -> Result<f64, Error> {
    let values = |rows: usize| -> Result<Tensor, candle_core::Error> {
        // Neither zeros nor denormal numbers, which take another time on some processors.
        let ramp = Tensor::arange(0_u32, u32::try_from(rows * width).unwrap_or(u32::MAX), &Device::Cpu)?;
        (ramp.to_dtype(candle_core::DType::F32)?.sin()? + 1.5)?.reshape((rows, width))
    };
    let (x, weight) = (values(tokens)?, values(outputs)?);
    let mut least = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let begun = Instant::now();
        let product = x.matmul(&weight.t()?)?;
        std::hint::black_box(&product);
        least = least.min(begun.elapsed().as_secs_f64());
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_product_takes_longer() {
        let small = product_seconds(8, 64, 64, 3).expect("it multiplies");
        let large = product_seconds(256, 512, 512, 3).expect("it multiplies");
        assert!(small > 0.0 && large > small, "{small} {large}");
    }
}
