//! The gated MLP.

use candle_core::Tensor;

use super::linear::Linear;
use super::ops;
use super::source::Source;
use crate::activation::silu;
use crate::engine::Precision;
use crate::error::Error;
use crate::names::in_layer;

/// `down(silu(gate x) * up x)`.
#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    precision: Precision,
}

impl Mlp {
    pub(crate) fn load(source: &Source<'_>, layer: usize) -> Result<Self, Error> {
        let (d, f) = (source.config.hidden_size, source.config.intermediate_size);
        let load = |name: &str, rows, cols| Linear::load(source, &in_layer(layer, name), rows, cols);
        Ok(Self {
            gate_proj: load("mlp.gate_proj.weight", f, d)?,
            up_proj: load("mlp.up_proj.weight", f, d)?,
            down_proj: load("mlp.down_proj.weight", d, f)?,
            precision: source.precision,
        })
    }

    /// `[tokens, hidden]` to the same.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let activated = ops::map(&self.gate_proj.forward(x)?, |x| self.precision.round(silu(x)))?;
        let neurons = ops::round((activated * self.up_proj.forward(x)?)?, self.precision)?;
        self.down_proj.forward(&neurons)
    }
}
