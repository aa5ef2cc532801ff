//! The tensors of a base: which file holds each, and rows of them by positioned reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::tensor::Metadata;
use serde::Deserialize;

use super::base::read_json;
use super::error::BaseError;
use crate::names;

/// The longest header that is read.
const LONGEST_HEADER: u64 = 100 << 20;
/// Bytes of the number in front of a header.
const PREFIX: u64 = 8;

/// How a base stores a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Bf16,
    F16,
    F32,
}

impl Storage {
    const fn size(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 => 2,
            Self::F32 => 4,
        }
    }

    fn decode(self, bytes: &[u8], values: &mut Vec<f32>) {
        match self {
            Self::Bf16 => {
                values.extend(bytes.as_chunks().0.iter().map(|&pair| bf16::from_le_bytes(pair).to_f32()));
            }
            Self::F16 => values.extend(bytes.as_chunks().0.iter().map(|&pair| f16::from_le_bytes(pair).to_f32())),
            Self::F32 => values.extend(bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four))),
        }
    }
}

/// A tensor of a base.
#[derive(Clone, Debug)]
pub(crate) struct BaseTensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) storage: Storage,
    file: usize,
    /// Of the first value in its file.
    offset: u64,
}

impl BaseTensor {
    /// Values of a row: all dims but the first.
    pub(crate) fn cols(&self) -> usize {
        self.shape.iter().skip(1).product()
    }
}

/// A tensor as a header describes it; its dtype may be one that no weight has.
#[derive(Clone, Debug)]
struct Entry {
    shape: Vec<usize>,
    dtype: safetensors::Dtype,
    file: usize,
    offset: u64,
}

/// All tensors of a base that have not been asked for.
#[derive(Debug)]
pub(crate) struct TensorIndex {
    files: Vec<(PathBuf, File)>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl TensorIndex {
    /// Reads all headers; nothing of a tensor is read yet.
    pub(crate) fn open(dir: &Path) -> Result<Self, BaseError> {
        let mut index = Self { files: Vec::new(), entries: BTreeMap::new() };
        let single = dir.join(names::shard_file(0, 1));
        if single.exists() {
            index.add_file(single)?;
            return Ok(index);
        }
        let path = dir.join(names::INDEX_FILE);
        if !path.exists() {
            return Err(BaseError::Missing { path: single, purpose: "and there is no index of shards either" });
        }
        let shards: ShardIndex = read_json(&path, "it names the files of weights")?;
        let wrong = |reason: String| BaseError::Index { path: path.clone(), reason };
        let mut by_shard: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tensor, shard) in &shards.weight_map {
            if Path::new(shard).file_name() != Some(shard.as_ref()) {
                return Err(wrong(format!("{shard:?} is no file name")));
            }
            by_shard.entry(shard).or_default().push(tensor);
        }
        for (shard, promised) in by_shard {
            let number = index.files.len();
            index.add_file(dir.join(shard))?;
            let held = |name: &&str| index.entries.get(*name).is_none_or(|entry| entry.file != number);
            if let Some(name) = promised.into_iter().find(held) {
                return Err(wrong(format!("tensor {name} is not in {shard}")));
            }
        }
        Ok(index)
    }

    fn add_file(&mut self, path: PathBuf) -> Result<(), BaseError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => BaseError::Missing { path: path.clone(), purpose: "it holds weights" },
            _ => BaseError::io(&path, source),
        };
        let mut file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let header = |reason: String| BaseError::Header { path: path.clone(), reason };
        if length < PREFIX {
            return Err(BaseError::Length { path, got: length, expected: PREFIX });
        }
        let mut prefix = [0; size_of::<u64>()];
        file.read_exact(&mut prefix).map_err(io)?;
        let header_len = u64::from_le_bytes(prefix);
        if header_len > LONGEST_HEADER {
            return Err(header(format!("a header of {header_len} bytes is none")));
        }
        if length < PREFIX + header_len {
            return Err(BaseError::Length { path, got: length, expected: PREFIX + header_len });
        }
        let mut text = Vec::new();
        (&file).take(header_len).read_to_end(&mut text).map_err(io)?;
        let metadata: Metadata =
            serde_json::from_slice(&text).map_err(|error| header(format!("bad header: {error}")))?;
        let start = PREFIX + header_len;
        let expected = start + metadata.data_len() as u64;
        if length != expected {
            return Err(BaseError::Length { path, got: length, expected });
        }
        let number = self.files.len();
        for name in metadata.offset_keys() {
            let Some(info) = metadata.info(&name) else { continue };
            let offset = start + info.data_offsets.0 as u64;
            let entry = Entry { shape: info.shape.clone(), dtype: info.dtype, file: number, offset };
            if let Some(other) = self.entries.insert(name.clone(), entry) {
                let other = self.files[other.file].0.display().to_string();
                return Err(header(format!("tensor {name} is in {other}, too")));
            }
        }
        self.files.push((path, file));
        Ok(())
    }

    /// The file that holds a tensor.
    pub(crate) fn path(&self, tensor: &BaseTensor) -> &Path {
        &self.files[tensor.file].0
    }

    /// Whether some tensor's name begins so.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        self.entries.range(prefix.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// Takes a tensor out, if it is there.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Option<BaseTensor>, BaseError> {
        let Some(entry) = self.entries.remove(name) else { return Ok(None) };
        let path = || self.files[entry.file].0.clone();
        let name = name.to_owned();
        if entry.shape != shape {
            return Err(BaseError::Shape { path: path(), name, got: entry.shape, expected: shape.to_vec() });
        }
        let storage = match entry.dtype {
            safetensors::Dtype::BF16 => Storage::Bf16,
            safetensors::Dtype::F16 => Storage::F16,
            safetensors::Dtype::F32 => Storage::F32,
            other => return Err(BaseError::TensorDtype { path: path(), name, got: format!("{other:?}") }),
        };
        Ok(Some(BaseTensor { name, shape: entry.shape, storage, file: entry.file, offset: entry.offset }))
    }

    /// What was never taken: names with shapes, and the file of each.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&str, &[usize], &Path)> {
        let left = self.entries.iter();
        left.map(|(name, entry)| (name.as_str(), &entry.shape[..], self.files[entry.file].0.as_path()))
    }

    /// Reads `count` rows from `first` on into `values`, which is emptied before.
    ///
    /// # Errors
    /// If the file can't be read, or a value is not finite.
    pub(crate) fn read_rows(
        &self,
        tensor: &BaseTensor,
        first: usize,
        count: usize,
        bytes: &mut Vec<u8>,
        values: &mut Vec<f32>,
    ) -> Result<(), BaseError> {
        let (path, file) = &self.files[tensor.file];
        let (cols, size) = (tensor.cols(), tensor.storage.size());
        bytes.resize(count * cols * size, 0);
        let mut file: &File = file;
        file.seek(SeekFrom::Start(tensor.offset + (first * cols * size) as u64))
            .and_then(|_| file.read_exact(bytes))
            .map_err(|source| BaseError::io(path, source))?;
        values.clear();
        tensor.storage.decode(bytes, values);
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(index) => {
                let mut position = vec![first + index / cols];
                if tensor.shape.len() > 1 {
                    position.push(index % cols);
                }
                let (path, name, value) = (path.clone(), tensor.name.clone(), values[index]);
                Err(BaseError::NotFinite { path, name, position, value })
            }
        }
    }

    /// All values of a small tensor.
    pub(crate) fn read(&self, tensor: &BaseTensor) -> Result<Vec<f32>, BaseError> {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let rows = tensor.shape.first().copied().unwrap_or(1);
        self.read_rows(tensor, 0, rows, &mut bytes, &mut values)?;
        Ok(values)
    }
}
