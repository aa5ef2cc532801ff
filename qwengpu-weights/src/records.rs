//! What a manifest says of the parts of a machine, as it stands in the file.

use std::collections::BTreeMap;

use qwengpu_circuit::{CompileReport, Geometry, Netlist, Placement, Signal, StateLocation};
use serde::{Deserialize, Serialize};

/// Sizes of the compiled layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeometryRecord {
    /// Channels of the residual stream.
    pub hidden: usize,
    /// Neurons of an MLP.
    pub intermediate: usize,
    /// Query and key heads of a layer.
    pub key_heads: usize,
    /// Value heads of a layer.
    pub value_heads: usize,
    /// Rows of a head's recurrent state.
    pub key_dim: usize,
    /// Columns of a head's recurrent state.
    pub value_dim: usize,
    /// Taps of the short convolution.
    pub conv_kernel: usize,
}

impl From<&Geometry> for GeometryRecord {
    fn from(geometry: &Geometry) -> Self {
        Self {
            hidden: geometry.hidden,
            intermediate: geometry.intermediate,
            key_heads: geometry.key_heads,
            value_heads: geometry.value_heads,
            key_dim: geometry.key_dim,
            value_dim: geometry.value_dim,
            conv_kernel: geometry.conv_kernel,
        }
    }
}

/// Where one copy of a state lies in the recurrent states; see [`StateLocation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// The state's name.
    pub name: String,
    /// Number of the read port that this copy serves.
    pub port: usize,
    /// The layer.
    pub layer: usize,
    /// `heads[bank][slice]`: head numbers.
    pub heads: Vec<Vec<usize>>,
    /// Rows of the state.
    pub rows: usize,
    /// Bits of a row.
    pub bits: usize,
    /// Rows in a bank.
    pub rows_per_bank: usize,
    /// Bits in a slice.
    pub bits_per_slice: usize,
}

impl From<&StateLocation> for StateRecord {
    fn from(location: &StateLocation) -> Self {
        Self {
            name: location.state.clone(),
            port: location.port,
            layer: location.layer,
            heads: location.heads.clone(),
            rows: location.rows,
            bits: location.bits,
            rows_per_bank: location.rows_per_bank,
            bits_per_slice: location.bits_per_slice,
        }
    }
}

impl StateRecord {
    /// The location, which finds single bits.
    #[must_use]
    pub fn to_location(&self) -> StateLocation {
        StateLocation {
            state: self.name.clone(),
            port: self.port,
            layer: self.layer,
            heads: self.heads.clone(),
            rows: self.rows,
            bits: self.bits,
            rows_per_bank: self.rows_per_bank,
            bits_per_slice: self.bits_per_slice,
        }
    }
}

/// What a channel of the residual stream holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRecord {
    /// The channel.
    pub channel: usize,
    /// Its contents, one after another.
    pub contents: Vec<Occupancy>,
}

/// What a channel holds for some layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Names of the signals of which it holds the sum.
    pub signals: Vec<String>,
    /// The first layer that writes it; `None` if the embedding does.
    pub first_layer: Option<usize>,
    /// The layer that erases it; `None` if it lasts to the end.
    pub last_layer: Option<usize>,
}

/// The channels that are ever used, but for the constants.
pub(crate) fn channel_records(netlist: &Netlist, placement: &Placement) -> Vec<ChannelRecord> {
    let used = placement.occupants.iter().enumerate().filter(|(_, occupants)| !occupants.is_empty());
    used.map(|(channel, occupants)| {
        let name = |signal: &Signal| netlist.signals()[signal.index()].name.clone();
        let contents = occupants
            .iter()
            .map(|occupant| Occupancy {
                signals: occupant.signals.iter().map(name).collect(),
                first_layer: occupant.made,
                last_layer: occupant.erased,
            })
            .collect();
        ChannelRecord { channel, contents }
    })
    .collect()
}

/// What the machine costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRecord {
    /// Layers that the longest chain of operations needs.
    pub longest_chain: usize,
    /// Channels that are ever used.
    pub channels: usize,
    /// Non-zero weights of the embedding.
    pub embedding_nonzeros: usize,
    /// Non-zero weights of `lm_head`.
    pub lm_head_nonzeros: usize,
    /// The compiled layers.
    pub layers: Vec<LayerRecord>,
    /// Figures of the proof that the weights compute the netlist, by name.
    pub margins: BTreeMap<String, f64>,
}

/// Use of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerRecord {
    /// Heads in use.
    pub heads: usize,
    /// Neurons in use.
    pub neurons: usize,
    /// Channels whose signal is erased here.
    pub erased: usize,
    /// Channels that hold something behind the layer.
    pub channels: usize,
    /// Non-zero weights.
    pub nonzeros: usize,
}

impl ReportRecord {
    pub(crate) fn new(report: &CompileReport, margins: &BTreeMap<String, f64>) -> Self {
        let layers = report
            .layers
            .iter()
            .map(|usage| LayerRecord {
                heads: usage.heads,
                neurons: usage.neurons,
                erased: usage.erased,
                channels: usage.channels,
                nonzeros: usage.nonzeros,
            })
            .collect();
        Self {
            longest_chain: report.longest_chain,
            channels: report.channels,
            embedding_nonzeros: report.embedding_nonzeros,
            lm_head_nonzeros: report.lm_head_nonzeros,
            layers,
            margins: margins.clone(),
        }
    }
}
