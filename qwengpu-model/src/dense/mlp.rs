//! The gated MLP.

use super::linear::{Input, Linear};
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
    neurons: usize,
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
            neurons: f,
            precision: source.precision,
        })
    }

    /// `[tokens, hidden]` to the same.
    pub(crate) fn forward(&self, x: &Input) -> Result<Vec<f32>, Error> {
        let round = |x| self.precision.round(x);
        let mut neurons = self.gate_proj.forward(x)?;
        let up = self.up_proj.forward(x)?;
        ops::zip(&mut neurons, &up, |gate, up| round(round(silu(gate)) * up));
        self.down_proj.forward(&Input::new(neurons, self.neurons))
    }
}
