//! What a manifest says of a merge.

use serde::{Deserialize, Serialize};

use super::layout::Layout;

/// A base and how it became part of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeRecord {
    /// The base.
    pub base: BaseRecord,
    /// How the layers are arranged.
    pub layout: Layout,
    /// Layers of the model.
    pub num_layers: usize,
    /// Places of the machine's layers in the model, first to last; other parts of the manifest count the machine's
    /// layers alone, but for the states, whose layers are those of the model.
    pub compiled_layers: Vec<usize>,
    /// Places of the base's layers in the model, first to last.
    pub base_layers: Vec<usize>,
    /// Whether no weight of the base was rounded.
    pub exact: bool,
    /// What each part of the residual stream is for.
    pub channels: ChannelRanges,
    /// What language tokens hold in the ballast channels.
    pub ballast: Vec<f32>,
    /// `log2` of the factor of everything that is written into language channels.
    pub scale_exponent: i32,
    /// `log2` of the divisor of everything that reads language channels behind a norm.
    pub norm_exponent: i32,
    /// What `1 + w` of the norms was divided by.
    pub norm_divisor: f64,
    /// What machine rows of the head hold, negated, for the first ballast channel.
    pub flag_gain: f32,
    /// Tokens that were added between the base's and the machine's, so that ids have no hole.
    pub unused_tokens: u32,
    /// Every tensor of the base; one that became two is there twice.
    pub tensors: Vec<TensorRecord>,
}

/// The sizes of a base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseRecord {
    /// The name of its directory.
    pub name: String,
    /// Channels of its residual stream.
    pub hidden: usize,
    /// Neurons of an MLP.
    pub intermediate: usize,
    /// Layers.
    pub num_layers: usize,
    /// Rows of its embedding; ids below this are the base's.
    pub vocab_size: usize,
    /// Query and key heads of a linear layer.
    pub key_heads: usize,
    /// Value heads of a linear layer.
    pub value_heads: usize,
    /// Whether its head was its embedding.
    pub tied: bool,
    /// Whether it was the text part of a multimodal model.
    pub multimodal: bool,
}

/// First channel and the channel behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRanges {
    /// The base's residual stream.
    pub language: [usize; 2],
    /// Constants of language tokens.
    pub ballast: [usize; 2],
    /// The machine's.
    pub machine: [usize; 2],
}

/// What became of a tensor of the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorRecord {
    /// Its name in the base.
    pub name: String,
    /// Its shape in the base.
    pub shape: Vec<usize>,
    /// Its name in the merged model; `None` if it was dropped.
    pub target: Option<String>,
    /// What was done to it.
    pub actions: Vec<TensorAction>,
}

/// Something that was done to a tensor of the base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorAction {
    /// Nothing: the same bytes.
    Unchanged,
    /// Rows or columns were added.
    Widened,
    /// Multiplied by two to this power.
    Scaled(i32),
    /// `1 + w` was divided by [`MergeRecord::norm_divisor`].
    NormRescaled,
    /// A column of the machine's constant was filled, so that machine tokens do nothing here.
    GuardAdded,
    /// Stored in another dtype that holds all its values.
    Recoded,
    /// Rounded to a narrower dtype.
    Rounded,
    /// Left out: no part of a text model.
    Dropped,
}
