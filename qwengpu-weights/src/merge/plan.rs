//! The sizes of a merged model, before the machine is compiled for them.

use qwengpu_circuit::{CircuitTensors, Geometry};

use super::base::Base;
use super::base_config::BaseConfig;
use super::error::MergeError;
use super::widening::Widening;

/// What a machine wants of the layers, besides channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineNeeds {
    /// Key heads; a base with fewer is given more, all zero.
    pub heads: usize,
    /// Neurons of an MLP; a base with fewer is given more, all zero.
    pub intermediate: usize,
    /// The most layers that the machine may take.
    pub layers: usize,
}

/// The sizes of a merged model.
#[derive(Clone, Debug, PartialEq)]
pub struct MergePlan {
    pub(crate) widening: Widening,
    pub(crate) intermediate: usize,
    pub(crate) key_heads: usize,
    pub(crate) value_heads: usize,
    layers: usize,
}

impl MergePlan {
    /// Plans a merge into `hidden` channels.
    ///
    /// # Errors
    /// [`MergeError::Hidden`] when the base leaves no channel for a machine.
    pub fn new(base: &Base, hidden: usize, needs: MachineNeeds) -> Result<Self, MergeError> {
        let config: &BaseConfig = &base.config;
        let refuse = || MergeError::Hidden { hidden, base: config.hidden };
        let widening = Widening::new(config.hidden, hidden).ok_or_else(refuse)?;
        if widening.reserved() >= hidden {
            return Err(refuse());
        }
        let key_heads = needs.heads.max(config.key_heads);
        Ok(Self {
            widening,
            intermediate: needs.intermediate.max(config.intermediate),
            key_heads,
            value_heads: key_heads * config.group(),
            layers: needs.layers,
        })
    }

    /// The geometry to compile the machine for.
    ///
    /// The machine has as many value heads as key heads; head `j` of it becomes the first value head of key head `j`.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let widening = &self.widening;
        let geometry = Geometry::new(widening.hidden, self.intermediate, self.key_heads, self.layers);
        Geometry { reserved: widening.reserved(), ..geometry }
    }

    /// Channels of the merged residual stream.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.widening.hidden
    }

    /// Whether no weight of the base is rounded, in the dtype that it has: the hidden size grows by a power of four.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.widening.is_exact()
    }

    /// Value heads for each head of the machine.
    pub(crate) fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }

    /// Checks that a machine was compiled for this plan.
    pub(crate) fn check(&self, circuit: &CircuitTensors) -> Result<(), MergeError> {
        let (got, expected) = (&circuit.geometry, self.geometry());
        let sizes = [
            ("hidden size", got.hidden, expected.hidden),
            ("reserved channels", got.reserved, expected.reserved),
            ("intermediate size", got.intermediate, expected.intermediate),
            ("key heads", got.key_heads, expected.key_heads),
            ("value heads", got.value_heads, expected.value_heads),
        ];
        match sizes.into_iter().find(|(_, got, expected)| got != expected) {
            Some((what, got, expected)) => Err(MergeError::Geometry { what, got, expected }),
            None => Ok(()),
        }
    }
}
