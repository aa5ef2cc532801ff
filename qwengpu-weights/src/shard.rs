//! Safetensors files: which tensor goes where, the headers, and the index.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};

use serde::{Serialize, Serializer};

use crate::dtype::Dtype;
use crate::names::shard_file;
use crate::sparse_file::SparseWriter;

/// A tensor that goes into a file.
pub(crate) trait ShardTensor {
    /// Why it could not be written.
    type Error: From<io::Error>;

    fn name(&self) -> &str;

    fn shape(&self) -> &[usize];

    fn dtype(&self) -> Dtype;

    /// Writes exactly [`ShardTensor::num_bytes`] bytes.
    fn write_values<W: Write + Seek>(&self, writer: &mut SparseWriter<W>) -> Result<(), Self::Error>;

    /// Bytes of all values.
    fn num_bytes(&self) -> u64 {
        self.shape().iter().product::<usize>() as u64 * self.dtype().size() as u64
    }
}

/// Cuts the tensors, in order, into shards of at most `max_bytes` of values; a tensor is never cut, so one that is
/// larger has a shard of its own.
pub(crate) fn plan_shards<T: ShardTensor>(tensors: &[T], max_bytes: u64) -> Vec<&[T]> {
    let mut shards = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (number, tensor) in tensors.iter().enumerate() {
        let size = tensor.num_bytes();
        if number > start && bytes.saturating_add(size) > max_bytes {
            shards.push(&tensors[start..number]);
            (start, bytes) = (number, 0);
        }
        bytes += size;
    }
    shards.push(&tensors[start..]);
    shards
}

#[derive(Serialize)]
struct TensorInfo<'a> {
    dtype: &'static str,
    shape: &'a [usize],
    data_offsets: [u64; 2],
}

/// The header's entries, in the order of the values.
struct Header<'s, T>(&'s [T]);

impl<T: ShardTensor> Serialize for Header<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;

        let mut map = serializer.serialize_map(Some(self.0.len() + 1))?;
        map.serialize_entry("__metadata__", &BTreeMap::from([("format", "pt")]))?;
        let mut start = 0;
        for tensor in self.0 {
            let end = start + tensor.num_bytes();
            let (dtype, shape) = (tensor.dtype().safetensors_name(), tensor.shape());
            map.serialize_entry(tensor.name(), &TensorInfo { dtype, shape, data_offsets: [start, end] })?;
            start = end;
        }
        map.end()
    }
}

/// Everything before the values: the length of the header and the header, padded so that values are aligned.
fn header_bytes<T: ShardTensor>(tensors: &[T]) -> io::Result<Vec<u8>> {
    const ALIGNMENT: usize = 8;
    let mut json = serde_json::to_vec(&Header(tensors))?;
    json.resize(json.len().next_multiple_of(ALIGNMENT), b' ');
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut json);
    Ok(bytes)
}

/// Writes a shard. `after_tensor` is told the bytes of each tensor once they are written, and may stop the writing:
/// then the result is `None`.
pub(crate) fn write_shard<T: ShardTensor>(
    file: File,
    tensors: &[T],
    after_tensor: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<File>, T::Error> {
    let header = header_bytes(tensors)?;
    let values: u64 = tensors.iter().map(ShardTensor::num_bytes).sum();
    file.set_len(header.len() as u64 + values)?;
    let mut writer = SparseWriter::new(file);
    writer.write(&header)?;
    for tensor in tensors {
        tensor.write_values(&mut writer)?;
        if !after_tensor(tensor.num_bytes()) {
            return Ok(None);
        }
    }
    let file = writer.finish()?;
    file.sync_all()?;
    Ok(Some(file))
}

/// `model.safetensors.index.json`: the shard of each tensor.
#[derive(Serialize)]
pub(crate) struct Index<'s> {
    metadata: IndexMetadata,
    weight_map: BTreeMap<&'s str, String>,
}

#[derive(Serialize)]
struct IndexMetadata {
    total_size: u64,
}

impl<'s> Index<'s> {
    pub(crate) fn new<T: ShardTensor>(shards: &[&'s [T]]) -> Self {
        let tensors = || shards.iter().enumerate().flat_map(|(number, shard)| shard.iter().map(move |t| (number, t)));
        Self {
            metadata: IndexMetadata { total_size: tensors().map(|(_, tensor)| tensor.num_bytes()).sum() },
            weight_map: tensors().map(|(number, tensor)| (tensor.name(), shard_file(number, shards.len()))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Content, TensorSpec};

    fn zeros(len: usize) -> TensorSpec<'static> {
        TensorSpec { name: format!("t{len}"), shape: vec![len], dtype: Dtype::Bf16, content: Content::Zeros }
    }

    fn sizes(lengths: &[usize], max_bytes: u64) -> Vec<Vec<usize>> {
        let tensors: Vec<_> = lengths.iter().map(|&len| zeros(len)).collect();
        let shards = plan_shards(&tensors, max_bytes);
        shards.iter().map(|shard| shard.iter().map(TensorSpec::len).collect()).collect()
    }

    #[test]
    fn shards_are_filled_in_order() {
        assert_eq!(sizes(&[5, 5, 5], 30), [vec![5, 5, 5]]);
        assert_eq!(sizes(&[5, 5, 5], 29), [vec![5, 5], vec![5]]);
        assert_eq!(sizes(&[1, 50, 1, 1], 10), [vec![1], vec![50], vec![1, 1]]);
        assert_eq!(sizes(&[50, 1], 0), [vec![50], vec![1]]);
    }

    #[test]
    fn the_header_is_aligned() {
        for len in [1, 10, 100, 1000] {
            let bytes = header_bytes(&[zeros(len), zeros(3)]).expect("a header");
            assert_eq!(bytes.len() % 8, 0);
            assert_eq!(bytes[..8], (bytes.len() as u64 - 8).to_le_bytes());
        }
    }
}
