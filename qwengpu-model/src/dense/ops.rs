//! Tensor operations that the library hasn't, or not with one rounding.

use candle_core::{Device, Result, Tensor};

use crate::engine::Precision;

/// An f32 tensor `[rows, width]` of these values.
pub(crate) fn tensor(values: Vec<f32>, rows: usize, width: usize) -> Result<Tensor> {
    Tensor::from_vec(values, (rows, width), &Device::Cpu)
}

/// All values, row-major.
pub(crate) fn to_vec(x: &Tensor) -> Result<Vec<f32>> {
    x.flatten_all()?.to_vec1()
}

/// Applies `f` to every value.
pub(crate) fn map(x: &Tensor, f: impl Fn(f32) -> f32) -> Result<Tensor> {
    let mut values = to_vec(x)?;
    values.iter_mut().for_each(|value| *value = f(*value));
    Tensor::from_vec(values, x.shape(), &Device::Cpu)
}

/// One rounding to the compute dtype; the result is f32 again.
pub(crate) fn round(x: Tensor, precision: Precision) -> Result<Tensor> {
    match precision {
        Precision::F32 => Ok(x),
        Precision::Bf16 => map(&x, |value| precision.round(value)),
    }
}
