//! Figures of a compiled machine.

use std::fmt;

use crate::geometry::Geometry;
use crate::place::Placement;
use crate::schedule::Schedule;
use crate::tensors::CircuitTensors;

/// Use of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerUsage {
    /// Heads in use.
    pub heads: usize,
    /// Neurons in use.
    pub neurons: usize,
    /// Channels whose signal is erased here.
    pub erased: usize,
    /// Channels that hold a live signal or a constant behind the layer.
    pub channels: usize,
    /// Non-zero weights.
    pub nonzeros: usize,
}

/// What a machine costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileReport {
    /// The target.
    pub geometry: Geometry,
    /// Layers that the longest chain of operations needs.
    pub longest_chain: usize,
    /// Per layer.
    pub layers: Vec<LayerUsage>,
    /// Channels that are ever used.
    pub channels: usize,
    /// Tokens.
    pub tokens: usize,
    /// Non-zero weights of the embedding.
    pub embedding_nonzeros: usize,
    /// Non-zero weights of the token codes.
    pub lm_head_nonzeros: usize,
}

impl CompileReport {
    pub(crate) fn new(schedule: &Schedule, placement: &Placement, tensors: &CircuitTensors) -> Self {
        let layers = placement
            .layers
            .iter()
            .zip(&schedule.layers)
            .zip(&tensors.layers)
            .map(|((placed, plan), layer)| LayerUsage {
                heads: placed.heads.len(),
                neurons: placed.neurons.len(),
                erased: plan.erased.len(),
                channels: placed.channels_alive,
                nonzeros: layer.num_nonzeros(),
            })
            .collect();
        Self {
            geometry: tensors.geometry.clone(),
            longest_chain: schedule.longest_chain,
            layers,
            channels: placement.channels_used(),
            tokens: tensors.embedding.rows,
            embedding_nonzeros: tensors.embedding.num_nonzeros(),
            lm_head_nonzeros: tensors.lm_head.num_nonzeros(),
        }
    }

    /// Weights of the model, zeros counted: those of a layer's projections, convolution, norms and MLP, the
    /// embedding, the token codes and the last norm.
    #[must_use]
    pub fn num_parameters(&self) -> usize {
        let geometry = &self.geometry;
        let (hidden, heads) = (geometry.hidden, geometry.value_heads);
        let projections = hidden * (geometry.qkv_rows() + 2 * geometry.value_rows() + 2 * heads);
        let small = geometry.qkv_rows() * geometry.conv_kernel + 2 * heads + geometry.value_dim + 2 * hidden;
        let layer = projections + small + 3 * hidden * geometry.intermediate;
        self.layers.len() * layer + 2 * self.tokens * hidden + hidden
    }

    /// The sum over all layers; `channels` is the largest number.
    #[must_use]
    pub fn total(&self) -> LayerUsage {
        self.layers.iter().fold(LayerUsage::default(), |sum, layer| LayerUsage {
            heads: sum.heads + layer.heads,
            neurons: sum.neurons + layer.neurons,
            erased: sum.erased + layer.erased,
            channels: sum.channels.max(layer.channels),
            nonzeros: sum.nonzeros + layer.nonzeros,
        })
    }
}

impl fmt::Display for CompileReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Geometry { hidden, intermediate, value_heads, .. } = self.geometry;
        writeln!(
            formatter,
            "{} layers (longest chain {}), {} of {hidden} channels, {} tokens, {} + {} non-zeros in embedding and codes",
            self.layers.len(),
            self.longest_chain,
            self.channels,
            self.tokens,
            self.embedding_nonzeros,
            self.lm_head_nonzeros
        )?;
        writeln!(formatter, "layer  heads/{value_heads:<4} neurons/{intermediate:<6} erased  channels  non-zeros")?;
        let mut line = |name: &str, usage: &LayerUsage| {
            let LayerUsage { heads, neurons, erased, channels, nonzeros } = usage;
            writeln!(formatter, "{name:>5}  {heads:>10} {neurons:>14} {erased:>7}  {channels:>8}  {nonzeros:>9}")
        };
        for (number, usage) in self.layers.iter().enumerate() {
            line(&number.to_string(), usage)?;
        }
        line("total", &self.total())
    }
}
