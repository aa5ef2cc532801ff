//! Every tensor of a checkpoint: its name, its shape, and where its values come from.

use std::io::{self, Seek, Write};

use qwengpu_circuit::{CircuitTensors, Geometry, LayerTensors, SparseMatrix};

use crate::config::{ATTENTION_HEAD_DIM, ATTENTION_HEADS};
use crate::dtype::{Dtype, Stored};
use crate::error::TensorError;
use crate::names;
use crate::shard::ShardTensor;
use crate::sparse_file::SparseWriter;

/// The values of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// All zero.
    Zeros,
    /// All values, row-major.
    Values(&'a [f32]),
    /// A matrix; rows before `first_row`, and after its last, are zero.
    Matrix {
        /// The rows that are not zero.
        matrix: &'a SparseMatrix,
        /// Where they start.
        first_row: usize,
    },
}

/// A tensor of the checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct TensorSpec<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) content: Content<'a>,
}

impl TensorSpec<'_> {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Values with their positions in row-major order, ascending; those left out are zero.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, f32)> + '_ {
        let cols = self.shape.last().copied().unwrap_or(1);
        let (values, entries, first_row) = match self.content {
            Content::Zeros => (&[][..], &[][..], 0),
            Content::Values(values) => (values, &[][..], 0),
            Content::Matrix { matrix, first_row } => (&[][..], &matrix.entries[..], first_row),
        };
        let entry =
            move |&(row, col, value): &(u32, u32, f32)| ((first_row + row as usize) * cols + col as usize, value);
        values.iter().copied().enumerate().chain(entries.iter().map(entry))
    }

    /// Checks shape and order of the content, and that the dtype holds all values.
    pub(crate) fn check(&self) -> Result<(), TensorError> {
        let (tensor, dtype) = (|| self.name.clone(), self.dtype);
        match self.content {
            Content::Zeros => {}
            Content::Values(values) => {
                if values.len() != self.len() {
                    let (got, expected) = (vec![values.len()], self.shape.clone());
                    return Err(TensorError::Shape { tensor: tensor(), got, expected });
                }
            }
            Content::Matrix { matrix, first_row } => {
                // Only a vocabulary has rows around the matrix.
                let expected = vec![if first_row == 0 { self.shape[0] } else { matrix.rows }, self.shape[1]];
                let got = vec![matrix.rows, matrix.cols];
                if got != expected || first_row + matrix.rows > self.shape[0] {
                    return Err(TensorError::Shape { tensor: tensor(), got, expected });
                }
                let mut end = 0;
                for &(row, col, _) in &matrix.entries {
                    let (row, col) = (row as usize, col as usize);
                    let position = row * matrix.cols + col;
                    if row >= matrix.rows || col >= matrix.cols || position < end {
                        return Err(TensorError::Entry { tensor: tensor(), row, col });
                    }
                    end = position + 1;
                }
            }
        }
        match self.values().find(|&(_, value)| !dtype.holds(value)) {
            Some((index, value)) => {
                Err(TensorError::Inexact { tensor: tensor(), position: self.position(index), value, dtype })
            }
            None => Ok(()),
        }
    }

    /// An index in row-major order as one index for each dim.
    fn position(&self, mut index: usize) -> Vec<usize> {
        let mut position: Vec<usize> = self
            .shape
            .iter()
            .rev()
            .map(|&dim| {
                let within = index % dim;
                index /= dim;
                within
            })
            .collect();
        position.reverse();
        position
    }
}

impl ShardTensor for TensorSpec<'_> {
    type Error = io::Error;

    fn name(&self) -> &str {
        &self.name
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn write_values<W: Write + Seek>(&self, writer: &mut SparseWriter<W>) -> io::Result<()> {
        let size = self.dtype.size() as u64;
        let start = writer.position();
        for (index, value) in self.values() {
            writer.write_zeros(start + index as u64 * size - writer.position())?;
            writer.write(Stored::new(value, self.dtype).as_bytes())?;
        }
        writer.write_zeros(start + self.num_bytes() - writer.position())
    }
}

/// The rows of both embeddings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VocabularyRows {
    /// Rows of the tensors.
    pub(crate) total: usize,
    /// Row of the machine's token 0.
    pub(crate) first_machine_token: usize,
}

/// All tensors in the order of the file, checked.
pub(crate) fn list_tensors(
    tensors: &CircuitTensors,
    rows: VocabularyRows,
    dtype: Dtype,
) -> Result<Vec<TensorSpec<'_>>, TensorError> {
    if tensors.layers.len() != tensors.num_layers || tensors.layers.is_empty() {
        return Err(TensorError::Layers { got: tensors.layers.len(), expected: tensors.num_layers });
    }
    let hidden = tensors.geometry.hidden;
    let vocabulary = |matrix| Content::Matrix { matrix, first_row: rows.first_machine_token };
    let spec = |name, shape: &[usize], content| spec(name, shape, content, dtype);
    let mut specs = vec![
        spec(names::EMBED_TOKENS, &[rows.total, hidden], vocabulary(&tensors.embedding)),
        spec(names::FINAL_NORM, &[hidden], Content::Values(&tensors.final_norm)),
        spec(names::LM_HEAD, &[rows.total, hidden], vocabulary(&tensors.lm_head)),
    ];
    for (number, layer) in tensors.layers.iter().enumerate() {
        specs.extend(in_layer(number, compiled_layer(tensors, layer, dtype)));
    }
    let heads = (ATTENTION_HEADS, ATTENTION_HEADS, ATTENTION_HEAD_DIM);
    specs.extend(in_layer(tensors.layers.len(), attention_layer(&tensors.geometry, heads, dtype)));
    specs.iter().try_for_each(TensorSpec::check)?;
    Ok(specs)
}

fn spec<'a>(name: &str, shape: &[usize], content: Content<'a>, dtype: Dtype) -> TensorSpec<'a> {
    TensorSpec { name: name.to_owned(), shape: shape.to_vec(), dtype, content }
}

/// A matrix that fills its tensor.
pub(crate) fn matrix<'a>(name: &str, shape: &[usize], matrix: &'a SparseMatrix, dtype: Dtype) -> TensorSpec<'a> {
    spec(name, shape, Content::Matrix { matrix, first_row: 0 }, dtype)
}

/// Parts of a layer under their names in a model.
pub(crate) fn in_layer(number: usize, parts: Vec<TensorSpec<'_>>) -> impl Iterator<Item = TensorSpec<'_>> {
    parts.into_iter().map(move |part| TensorSpec { name: names::in_layer(number, &part.name), ..part })
}

/// Both norms of a layer, which stay neutral.
fn norms(hidden: usize, dtype: Dtype) -> [TensorSpec<'static>; 2] {
    [names::INPUT_LAYERNORM, names::POST_ATTENTION_LAYERNORM].map(|name| spec(name, &[hidden], Content::Zeros, dtype))
}

/// The parts of a layer of the machine.
pub(crate) fn compiled_layer<'a>(
    tensors: &CircuitTensors,
    layer: &'a LayerTensors,
    dtype: Dtype,
) -> Vec<TensorSpec<'a>> {
    let geometry = &tensors.geometry;
    let (hidden, intermediate) = (geometry.hidden, geometry.intermediate);
    let (qkv, values, heads) = (geometry.qkv_rows(), geometry.value_rows(), geometry.value_heads);
    let matrix = |name, rows, cols, content| matrix(name, &[rows, cols], content, dtype);
    let spec = |name, shape: &[usize], content| spec(name, shape, content, dtype);
    let taps = layer.conv1d.as_flattened();
    let mut specs = vec![
        matrix(names::IN_PROJ_QKV, qkv, hidden, &layer.in_proj_qkv),
        matrix(names::IN_PROJ_Z, values, hidden, &layer.in_proj_z),
        matrix(names::IN_PROJ_B, heads, hidden, &layer.in_proj_b),
        matrix(names::IN_PROJ_A, heads, hidden, &layer.in_proj_a),
        spec(names::CONV1D, &[qkv, 1, geometry.conv_kernel], Content::Values(taps)),
        spec(names::A_LOG, &[heads], Content::Values(&layer.a_log)),
        spec(names::DT_BIAS, &[heads], Content::Values(&layer.dt_bias)),
        spec(names::LINEAR_NORM, &[geometry.value_dim], Content::Values(&layer.norm)),
        matrix(names::OUT_PROJ, hidden, values, &layer.out_proj),
        matrix(names::GATE_PROJ, intermediate, hidden, &layer.gate_proj),
        matrix(names::UP_PROJ, intermediate, hidden, &layer.up_proj),
        matrix(names::DOWN_PROJ, hidden, intermediate, &layer.down_proj),
    ];
    specs.extend(norms(hidden, dtype));
    specs
}

/// A linear-attention layer of zeros, which does nothing.
pub(crate) fn neutral_linear_layer(geometry: &Geometry, dtype: Dtype) -> Vec<TensorSpec<'static>> {
    let (hidden, intermediate) = (geometry.hidden, geometry.intermediate);
    let (qkv, values, heads) = (geometry.qkv_rows(), geometry.value_rows(), geometry.value_heads);
    let zeros = |name, shape: &[usize]| spec(name, shape, Content::Zeros, dtype);
    let mut specs = vec![
        zeros(names::IN_PROJ_QKV, &[qkv, hidden]),
        zeros(names::IN_PROJ_Z, &[values, hidden]),
        zeros(names::IN_PROJ_B, &[heads, hidden]),
        zeros(names::IN_PROJ_A, &[heads, hidden]),
        zeros(names::CONV1D, &[qkv, 1, geometry.conv_kernel]),
        zeros(names::A_LOG, &[heads]),
        zeros(names::DT_BIAS, &[heads]),
        zeros(names::LINEAR_NORM, &[geometry.value_dim]),
        zeros(names::OUT_PROJ, &[hidden, values]),
        zeros(names::GATE_PROJ, &[intermediate, hidden]),
        zeros(names::UP_PROJ, &[intermediate, hidden]),
        zeros(names::DOWN_PROJ, &[hidden, intermediate]),
    ];
    specs.extend(norms(hidden, dtype));
    specs
}

/// A full-attention layer of zeros; `heads` are query heads, key and value heads, and their dim.
pub(crate) fn attention_layer(
    geometry: &Geometry,
    heads: (usize, usize, usize),
    dtype: Dtype,
) -> Vec<TensorSpec<'static>> {
    let (hidden, intermediate) = (geometry.hidden, geometry.intermediate);
    let (query_heads, kv_heads, head_dim) = heads;
    let (width, kv_width) = (query_heads * head_dim, kv_heads * head_dim);
    let zeros = |name, shape: &[usize]| spec(name, shape, Content::Zeros, dtype);
    let mut specs = vec![
        zeros(names::Q_PROJ, &[2 * width, hidden]),
        zeros(names::K_PROJ, &[kv_width, hidden]),
        zeros(names::V_PROJ, &[kv_width, hidden]),
        zeros(names::O_PROJ, &[hidden, width]),
        zeros(names::Q_NORM, &[head_dim]),
        zeros(names::K_NORM, &[head_dim]),
        zeros(names::GATE_PROJ, &[intermediate, hidden]),
        zeros(names::UP_PROJ, &[intermediate, hidden]),
        zeros(names::DOWN_PROJ, &[hidden, intermediate]),
    ];
    specs.extend(norms(hidden, dtype));
    specs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(entries: &[(u32, u32, f32)]) -> SparseMatrix {
        SparseMatrix { rows: 2, cols: 3, entries: entries.to_vec() }
    }

    fn check(matrix: &SparseMatrix, shape: [usize; 2], first_row: usize) -> Result<(), TensorError> {
        spec("t", &shape, Content::Matrix { matrix, first_row }, Dtype::Bf16).check()
    }

    #[test]
    fn matrices_are_placed_in_their_rows() {
        let matrix = matrix(&[(0, 2, 1.0), (1, 0, 2.0)]);
        let spec = spec("t", &[5, 3], Content::Matrix { matrix: &matrix, first_row: 2 }, Dtype::Bf16);
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.values().collect::<Vec<_>>(), [(8, 1.0), (9, 2.0)]);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let matrix = matrix(&[]);
        assert_eq!(check(&matrix, [2, 3], 0), Ok(()));
        for (shape, first_row) in [([3, 3], 0), ([2, 4], 0), ([3, 3], 2), ([9, 4], 2)] {
            assert!(matches!(check(&matrix, shape, first_row), Err(TensorError::Shape { .. })), "{shape:?}");
        }
        let values = spec("t", &[2, 2], Content::Values(&[0.0; 3]), Dtype::F32).check();
        let (got, expected) = (vec![3], vec![2, 2]);
        assert_eq!(values, Err(TensorError::Shape { tensor: "t".to_owned(), got, expected }));
    }

    #[test]
    fn entries_outside_or_out_of_order_are_refused() {
        for entries in [&[(2, 0, 1.0)][..], &[(0, 3, 1.0)], &[(1, 0, 1.0), (0, 0, 1.0)], &[(0, 1, 1.0), (0, 1, 1.0)]] {
            assert!(matches!(check(&matrix(entries), [2, 3], 0), Err(TensorError::Entry { .. })), "{entries:?}");
        }
    }

    #[test]
    fn inexact_values_are_named() {
        let error = check(&matrix(&[(0, 1, 4.0), (1, 2, 257.0)]), [2, 3], 0).expect_err("257 has nine bits");
        assert_eq!(error.to_string(), "t: 257 at [1, 2] is not exactly representable in bf16");
    }
}
