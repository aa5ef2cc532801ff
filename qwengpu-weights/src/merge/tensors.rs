//! Every tensor of a merged model, in the order of the files.

use std::io::{Seek, Write};

use super::base_config::Mixer;
use super::base_tensors::{WidenedTensor, Widener};
use super::error::MergeError;
use super::layout::MergedLayer;
use super::rows::RowsError;
use crate::dtype::Dtype;
use crate::names;
use crate::shard::ShardTensor;
use crate::sparse_file::{PAGE, SparseWriter, pages_of};
use crate::tensor::{TensorSpec, attention_layer, compiled_layer, in_layer, neutral_linear_layer};

/// A tensor of a merged model.
#[derive(Clone, Debug)]
pub(crate) enum MergedTensor<'a> {
    /// From the base.
    Base(WidenedTensor<'a>),
    /// From the machine, or zero.
    Machine(TensorSpec<'a>),
}

impl MergedTensor<'_> {
    /// About how many bytes it takes on a disk that stores no pages of zeros.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        match self {
            Self::Base(tensor) => {
                let rows = tensor.shape.first().copied().unwrap_or(1);
                tensor.rows.bytes_on_disk((rows, tensor.shape.iter().skip(1).product()), tensor.dtype)
            }
            Self::Machine(tensor) => {
                let bytes = tensor.values().map(|(place, _)| place * tensor.dtype.size());
                ((pages_of(bytes) * PAGE) as u64).min(tensor.num_bytes())
            }
        }
    }
}

impl ShardTensor for MergedTensor<'_> {
    type Error = RowsError;

    fn name(&self) -> &str {
        match self {
            Self::Base(tensor) => &tensor.name,
            Self::Machine(tensor) => &tensor.name,
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::Base(tensor) => &tensor.shape,
            Self::Machine(tensor) => &tensor.shape,
        }
    }

    fn dtype(&self) -> Dtype {
        match self {
            Self::Base(tensor) => tensor.dtype,
            Self::Machine(tensor) => tensor.dtype,
        }
    }

    fn write_values<W: Write + Seek>(&self, writer: &mut SparseWriter<W>) -> Result<(), RowsError> {
        match self {
            Self::Base(tensor) => {
                let rows = tensor.shape.first().copied().unwrap_or(1);
                tensor.rows.write((rows, tensor.shape.iter().skip(1).product()), tensor.dtype, writer)
            }
            Self::Machine(tensor) => Ok(tensor.write_values(writer)?),
        }
    }
}

/// All tensors; what becomes of the base's is noted by the widener.
///
/// # Errors
/// If the circuit's tensors contradict each other, the dtype can't hold them, or the base can't be read.
pub(crate) fn list<'a>(widener: &mut Widener<'a>, layers: &[MergedLayer]) -> Result<Vec<MergedTensor<'a>>, MergeError> {
    let (circuit, base, dtype) = (widener.circuit, widener.base, widener.dtype);
    for (name, matrix) in [(names::EMBED_TOKENS, &circuit.embedding), (names::LM_HEAD, &circuit.lm_head)] {
        crate::tensor::matrix(name, &[matrix.rows, matrix.cols], matrix, dtype).check()?;
    }
    let mut all = vec![
        MergedTensor::Base(widener.embedding()),
        MergedTensor::Base(widener.final_norm()),
        MergedTensor::Base(widener.head()),
    ];
    let heads = (base.config.attention_heads, base.config.attention_kv_heads, base.config.attention_head_dim);
    for (place, &layer) in layers.iter().enumerate() {
        let parts = match layer {
            MergedLayer::Base(number) => {
                all.extend(widener.layer(number, place)?.into_iter().map(MergedTensor::Base));
                continue;
            }
            MergedLayer::Compiled(number) => compiled_layer(circuit, &circuit.layers[number], dtype),
            MergedLayer::Neutral(Mixer::Linear) => neutral_linear_layer(&circuit.geometry, dtype),
            MergedLayer::Neutral(Mixer::Full) => attention_layer(&circuit.geometry, heads, dtype),
        };
        for part in in_layer(place, parts) {
            part.check()?;
            all.push(MergedTensor::Machine(part));
        }
    }
    Ok(all)
}
