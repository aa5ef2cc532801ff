//! A part of a checkpoint that is a model of its own: some layers, a range of the vocabulary, the first channels.

use std::iter::once;
use std::ops::Range;

use crate::config::Config;
use crate::error::{ConfigError, Error};
use crate::load::{Checkpoint, Mapped, TensorValues};
use crate::names::{EMBED_TOKENS, LM_HEAD, in_layer, tensor_specs};

/// The share of a checkpoint that an engine loads, where some tokens need no more than that.
///
/// What is left out must be nothing to these tokens: layers that add zero, channels and neurons that stay zero. The
/// engine computes with the part as if it were the whole, and norms still divide by the whole hidden size.
/// Layers and ids are numbered within the part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Layers of the checkpoint, in ascending order.
    pub layers: Vec<usize>,
    /// Ids of the checkpoint.
    pub vocabulary: Range<usize>,
    /// Narrower sizes; `None` takes all. The sparse engine takes all in any case, since zeros cost it nothing.
    pub widths: Option<Widths>,
}

/// How much of each dimension belongs to a part, from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Channels of the residual stream.
    pub hidden_size: usize,
    /// Neurons of an MLP.
    pub intermediate_size: usize,
    /// Query and key heads of a linear layer.
    pub linear_num_key_heads: usize,
    /// Value heads of a linear layer.
    pub linear_num_value_heads: usize,
}

impl Part {
    /// The configuration of the part as a model.
    ///
    /// # Errors
    /// If the checkpoint has no such layers, ids or sizes.
    pub(crate) fn config(&self, whole: &Config) -> Result<Config, Error> {
        let invalid = |field, got: String, expected: String| Err(ConfigError::Invalid { field, got, expected }.into());
        let ascending = self.layers.windows(2).all(|pair| pair[0] < pair[1]);
        let count = whole.num_hidden_layers();
        if !ascending || self.layers.last().is_none_or(|&last| last >= count) {
            return invalid("layers of a part", format!("{:?}", self.layers), format!("some below {count}, ascending"));
        }
        if self.vocabulary.is_empty() || self.vocabulary.end > whole.vocab_size {
            let expected = format!("a range within 0..{}", whole.vocab_size);
            return invalid("vocabulary of a part", format!("{:?}", self.vocabulary), expected);
        }
        let mut config = Config {
            layer_types: self.layers.iter().map(|&layer| whole.layer_types[layer]).collect(),
            vocab_size: self.vocabulary.len(),
            ..whole.clone()
        };
        if let Some(widths) = self.widths {
            config.hidden_size = widths.hidden_size;
            config.intermediate_size = widths.intermediate_size;
            config.linear_num_key_heads = widths.linear_num_key_heads;
            config.linear_num_value_heads = widths.linear_num_value_heads;
            let sizes = [
                ("hidden_size", config.hidden_size, whole.hidden_size),
                ("intermediate_size", config.intermediate_size, whole.intermediate_size),
                ("linear_num_key_heads", config.linear_num_key_heads, whole.linear_num_key_heads),
                ("linear_num_value_heads", config.linear_num_value_heads, whole.linear_num_value_heads),
            ];
            if let Some((field, part, all)) = sizes.into_iter().find(|(_, part, all)| part > all) {
                return invalid(field, format!("{part} in a part"), format!("at most {all}, the checkpoint's"));
            }
            // Value heads belong to key heads in order, so that both must be cut at the same place.
            let ratio = whole.linear_num_value_heads / whole.linear_num_key_heads;
            if config.linear_num_value_heads != ratio * config.linear_num_key_heads {
                let expected = format!("{ratio} for each key head");
                return invalid("linear_num_value_heads", config.linear_num_value_heads.to_string(), expected);
            }
        }
        config.validate()?;
        Ok(config)
    }
}

/// A checkpoint seen through a part, or the whole of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    checkpoint: &'a Checkpoint,
    whole: &'a Config,
    /// The part and its configuration.
    part: Option<(&'a Part, &'a Config)>,
}

/// The rows and columns of a tensor that belong to a part.
#[derive(Debug, Clone)]
pub(crate) struct TensorSlice<'a> {
    checkpoint: &'a Checkpoint,
    /// The name in the checkpoint.
    name: String,
    values: TensorValues<'a>,
    /// Columns of the whole tensor.
    width: usize,
    rows: Vec<Range<usize>>,
    /// Columns of the part.
    cols: usize,
}

impl<'a> View<'a> {
    pub(crate) fn whole(checkpoint: &'a Checkpoint, config: &'a Config) -> Self {
        Self { checkpoint, whole: config, part: None }
    }

    /// `config` is the part's.
    pub(crate) fn part(checkpoint: &'a Checkpoint, whole: &'a Config, part: &'a Part, config: &'a Config) -> Self {
        Self { checkpoint, whole, part: Some((part, config)) }
    }

    /// The configuration of what is seen.
    pub(crate) fn config(&self) -> &'a Config {
        self.part.map_or(self.whole, |(_, config)| config)
    }

    /// What the norms of the residual stream divide by.
    pub(crate) fn norm_width(&self) -> usize {
        self.whole.hidden_size
    }

    /// What the part has of the tensor that it calls `name`.
    pub(crate) fn get(&self, name: &str) -> Option<TensorSlice<'a>> {
        let Some((part, config)) = self.part else {
            let values = self.checkpoint.get(name)?;
            let width = values.len();
            let (checkpoint, name) = (self.checkpoint, name.to_owned());
            return Some(TensorSlice { checkpoint, name, values, width, rows: once(0..1).collect(), cols: width });
        };
        let (name, kind) = match name.strip_prefix("layers.").and_then(|rest| rest.split_once('.')) {
            Some((layer, kind)) => (in_layer(*part.layers.get(layer.parse::<usize>().ok()?)?, kind), kind),
            None => (name.to_owned(), name),
        };
        let values = self.checkpoint.get(&name)?;
        let ([_, width], [own_rows, cols]) = (shape(self.whole, kind)?, shape(config, kind)?);
        let rows = match kind {
            EMBED_TOKENS | LM_HEAD => vec![part.vocabulary.clone()],
            // Queries, keys and values.
            "linear_attn.in_proj_qkv.weight" | "linear_attn.conv1d.weight" => {
                let (all, own) = (self.whole.key_dim(), config.key_dim());
                vec![0..own, all..all + own, 2 * all..2 * all + config.value_dim()]
            }
            _ => once(0..own_rows).collect(),
        };
        Some(TensorSlice { checkpoint: self.checkpoint, name, values, width, rows, cols })
    }
}

/// Rows and columns of the tensors of one kind: a name, without the layer in front. A vector is one row.
fn shape(config: &Config, kind: &str) -> Option<[usize; 2]> {
    if kind == LM_HEAD {
        return Some([config.vocab_size, config.hidden_size]);
    }
    let in_any_layer = |name: &str| name.strip_suffix(kind).is_some_and(|layer| layer.ends_with('.'));
    let spec = tensor_specs(config).into_iter().find(|spec| spec.name == kind || in_any_layer(&spec.name))?;
    match spec.shape[..] {
        [width] => Some([1, width]),
        // The convolution's weight has a dimension of 1 between.
        [rows, cols] | [rows, _, cols] => Some([rows, cols]),
        _ => None,
    }
}

impl<'a> TensorSlice<'a> {
    /// All values where they lie in the file, if nothing is left out between them.
    pub(crate) fn keep(&self) -> Option<Mapped> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        let adjoin = self.rows.windows(2).all(|pair| pair[0].end == pair[1].start);
        let values = first.start * self.width..last.end * self.width;
        if adjoin && self.cols == self.width { self.checkpoint.keep(&self.name, values) } else { None }
    }

    /// All values, row by row.
    pub(crate) fn collect<T>(&self, convert: impl Fn(TensorValues<'a>) -> Vec<T>) -> Vec<T> {
        let mut all = Vec::new();
        for rows in &self.rows {
            if self.cols == self.width {
                all.extend(convert(self.values.range(rows.start * self.width..rows.end * self.width)));
                continue;
            }
            for row in rows.clone() {
                let start = row * self.width;
                all.extend(convert(self.values.range(start..start + self.cols)));
            }
        }
        all
    }

    /// Calls `visit` with each index within the slice and value that isn't zero.
    pub(crate) fn for_each_nonzero(&self, mut visit: impl FnMut(usize, f32)) {
        let mut done = 0;
        for row in self.rows.iter().flat_map(Clone::clone) {
            let start = row * self.width;
            self.values.range(start..start + self.cols).for_each_nonzero(|col, value| visit(done + col, value));
            done += self.cols;
        }
    }
}
