//! A checkpoint directory, memory-mapped: every tensor's presence, shape and dtype checked before any is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::bf16;
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::Deserialize;

use crate::config::Config;
use crate::engine::Precision;
use crate::error::LoadError;
use crate::extents::{data_extents, parts_within};
use crate::names::{EMBED_TOKENS, LM_HEAD, MULTIMODAL_PREFIX, SKIPPED_PREFIXES, TEXT_PREFIX, TensorSpec, tensor_specs};

const SINGLE_FILE: &str = "model.safetensors";
const INDEX_FILE: &str = "model.safetensors.index.json";

/// How a tensor's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    F32,
    Bf16,
}

/// Where a tensor's bytes are.
#[derive(Debug)]
struct Place {
    shard: usize,
    start: usize,
    end: usize,
    storage: Storage,
}

/// A mapped file, and which parts of it are no holes.
#[derive(Debug, Clone)]
struct Shard {
    map: Arc<Mmap>,
    data: Arc<[Range<usize>]>,
}

/// A checked checkpoint. Tensors go by their name behind the text model's prefix.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    shards: Vec<Shard>,
    places: BTreeMap<String, Place>,
}

/// The values of one tensor, row-major, converted one at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorValues<'a> {
    bytes: &'a [u8],
    /// Where they begin in their file, and which parts of that are no holes.
    start: usize,
    data: &'a [Range<usize>],
    storage: Storage,
}

impl Checkpoint {
    /// Maps the files of `dir` and checks them against `config`.
    pub(crate) fn open(dir: &Path, config: &Config) -> Result<Self, LoadError> {
        let mut shards = Vec::new();
        let mut found = BTreeMap::new();
        for file in list_files(dir)? {
            let shard = map_file(&file.path)?;
            let mut names = read_header(&file.path, &shard.map, shards.len())?;
            if let Some(name) = file.promised.into_iter().find(|name| !names.contains_key(name)) {
                return Err(LoadError::NotInShard { name, path: file.path });
            }
            if let Some(name) = names.keys().find(|name| found.contains_key(*name)) {
                return Err(LoadError::Duplicate { name: name.clone(), path: file.path });
            }
            found.append(&mut names);
            shards.push(shard);
        }
        let places = select(&shards, found, config)?;
        Ok(Self { shards, places })
    }

    /// The tensor of that name, if the model has it.
    pub(crate) fn get(&self, name: &str) -> Option<TensorValues<'_>> {
        let place = self.places.get(name)?;
        let Shard { map, data } = self.shards.get(place.shard)?;
        let bytes = map.get(place.start..place.end)?;
        Some(TensorValues { bytes, start: place.start, data, storage: place.storage })
    }

    /// Some of its values, to be kept; none if there are not as many.
    pub(crate) fn keep(&self, name: &str, values: Range<usize>) -> Option<Mapped> {
        let place = self.places.get(name)?;
        let width = place.storage.width();
        let bytes = place.start + values.start * width..place.start + values.end * width;
        let Shard { map, data } = self.shards.get(place.shard)?.clone();
        (bytes.start <= bytes.end && bytes.end <= place.end).then_some(Mapped {
            map,
            data,
            bytes,
            storage: place.storage,
        })
    }
}

/// Values of a tensor that stay where the file is mapped.
#[derive(Debug, Clone)]
pub(crate) struct Mapped {
    map: Arc<Mmap>,
    data: Arc<[Range<usize>]>,
    bytes: Range<usize>,
    storage: Storage,
}

/// Values in memory, by their dtype.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    F32(&'a [f32]),
    /// The bits of bf16 values.
    Bf16(&'a [u16]),
}

impl Mapped {
    /// What the values are stored in.
    pub(crate) fn precision(&self) -> Precision {
        match self.storage {
            Storage::F32 => Precision::F32,
            Storage::Bf16 => Precision::Bf16,
        }
    }

    /// Which of some values are not in holes: ranges of values, ascending and apart.
    pub(crate) fn data(&self, values: Range<usize>) -> Vec<Range<usize>> {
        let width = self.storage.width();
        let bytes = self.bytes.start + values.start * width..self.bytes.start + values.end * width;
        let parts = parts_within(&self.data, bytes, width);
        parts.map(|part| values.start + part.start / width..values.start + part.end / width).collect()
    }

    /// The values; none where they lie in a way that the processor cannot read them in place.
    pub(crate) fn values(&self) -> Option<Values<'_>> {
        let bytes = self.map.get(self.bytes.clone())?;
        match self.storage {
            _ if cfg!(target_endian = "big") => None,
            Storage::F32 => bytemuck::try_cast_slice(bytes).ok().map(Values::F32),
            Storage::Bf16 => bytemuck::try_cast_slice(bytes).ok().map(Values::Bf16),
        }
    }
}

impl Storage {
    /// Bytes of a value.
    fn width(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }
}

impl TensorValues<'_> {
    /// Number of values.
    pub(crate) fn len(self) -> usize {
        self.bytes.len() / self.width()
    }

    /// Some of the values; none if there are not as many.
    pub(crate) fn range(self, range: Range<usize>) -> Self {
        let bytes = self.bytes.get(range.start * self.width()..range.end * self.width()).unwrap_or_default();
        Self { bytes, start: self.start + range.start * self.width(), ..self }
    }

    /// Bytes of a value.
    fn width(self) -> usize {
        self.storage.width()
    }

    /// Calls `visit` with each index and value that isn't zero.
    pub(crate) fn for_each_nonzero(self, mut visit: impl FnMut(usize, f32)) {
        // Most of a compiled checkpoint is zero: pass over holes, then look at a whole cache line first.
        const LINE: usize = 64;
        let width = self.width();
        for part in parts_within(self.data, self.start..self.start + self.bytes.len(), LINE) {
            for (i, line) in (part.start / LINE..).zip(self.bytes[part].chunks(LINE)) {
                if line.iter().fold(0, |acc, &byte| acc | byte) == 0 {
                    continue;
                }
                let values = TensorValues { bytes: line, ..self };
                let first = i * (LINE / width);
                for (j, value) in values.iter().enumerate() {
                    if value != 0.0 {
                        visit(first + j, value);
                    }
                }
            }
        }
    }

    /// All values, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = f32> {
        let (f32s, bf16s) = match self.storage {
            Storage::F32 => (self.bytes, &[][..]),
            Storage::Bf16 => (&[][..], self.bytes),
        };
        let f32s = f32s.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        f32s.chain(bf16s.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()))
    }

    /// All values in f32.
    pub(crate) fn to_f32(self) -> Vec<f32> {
        match self.storage {
            Storage::F32 => self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            Storage::Bf16 => self.bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        }
    }

    /// The bits of all values in bf16, rounded to nearest even.
    pub(crate) fn to_bf16(self) -> Vec<u16> {
        match self.storage {
            Storage::F32 => self
                .bytes
                .chunks_exact(4)
                .map(|b| bf16::from_f32(f32::from_le_bytes([b[0], b[1], b[2], b[3]])).to_bits())
                .collect(),
            Storage::Bf16 => self.bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect(),
        }
    }
}

/// A file of the checkpoint, with the tensors that the index places in it.
struct ShardFile {
    path: PathBuf,
    promised: Vec<String>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

fn list_files(dir: &Path) -> Result<Vec<ShardFile>, LoadError> {
    let single = dir.join(SINGLE_FILE);
    if single.exists() {
        return Ok(vec![ShardFile { path: single, promised: Vec::new() }]);
    }
    let path = dir.join(INDEX_FILE);
    if !path.exists() {
        return Err(LoadError::NoWeights { dir: dir.to_owned() });
    }
    let text = std::fs::read_to_string(&path).map_err(|source| LoadError::Io { path: path.clone(), source })?;
    let index: Index = serde_json::from_str(&text).map_err(|source| LoadError::Index { path: path.clone(), source })?;
    let mut by_shard: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, shard) in index.weight_map {
        if Path::new(&shard).file_name() != Some(shard.as_ref()) {
            return Err(LoadError::ShardName { path, shard });
        }
        by_shard.entry(shard).or_default().push(name);
    }
    Ok(by_shard.into_iter().map(|(shard, promised)| ShardFile { path: dir.join(shard), promised }).collect())
}

fn map_file(path: &Path) -> Result<Shard, LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    #[expect(
        unsafe_code,
        reason = "a map is only sound while nobody truncates the file; checkpoints are written once, and a copy of \
                  gigabytes would defeat the streaming load"
    )]
    let mapped = unsafe { Mmap::map(&file) };
    let map = Arc::new(mapped.map_err(io)?);
    let data = data_extents(&file, map.len()).into();
    Ok(Shard { map, data })
}

/// Every tensor of one file, whatever its dtype: (shape, dtype, place).
fn read_header(path: &Path, mapped: &Mmap, shard: usize) -> Result<BTreeMap<String, Entry>, LoadError> {
    let path = || path.to_owned();
    let (header_len, metadata) = SafeTensors::read_metadata(mapped).map_err(|source| match source {
        SafeTensorError::MetadataIncompleteBuffer => LoadError::FileSize { path: path(), got: mapped.len() },
        source => LoadError::Header { path: path(), source },
    })?;
    let data_start = header_len + size_of::<u64>();
    let entries = metadata.offset_keys().into_iter().filter_map(|name| {
        let info = metadata.info(&name)?;
        let (start, end) = info.data_offsets;
        let entry = Entry {
            shape: info.shape.clone(),
            dtype: info.dtype,
            shard,
            start: data_start + start,
            end: data_start + end,
        };
        Some((name, entry))
    });
    Ok(entries.collect())
}

/// A tensor as a header describes it.
#[derive(Debug)]
struct Entry {
    shape: Vec<usize>,
    dtype: Dtype,
    shard: usize,
    start: usize,
    end: usize,
}

/// Picks the tensors of `config` out of all that were found.
fn select(
    shards: &[Shard],
    mut found: BTreeMap<String, Entry>,
    config: &Config,
) -> Result<BTreeMap<String, Place>, LoadError> {
    let multimodal = found.keys().any(|name| name.starts_with(MULTIMODAL_PREFIX));
    let prefix = if multimodal { MULTIMODAL_PREFIX } else { TEXT_PREFIX };
    let mut places = BTreeMap::new();
    for spec in tensor_specs(config) {
        let full_name = format!("{prefix}{}", spec.name);
        let place = check(found.remove(&full_name), &full_name, &spec)?;
        places.insert(spec.name, place);
    }
    let head = TensorSpec { name: LM_HEAD.to_owned(), shape: vec![config.vocab_size, config.hidden_size] };
    match (config.tie_word_embeddings, found.remove(LM_HEAD)) {
        (true, None) => {}
        (true, entry) => {
            let place = check(entry, LM_HEAD, &head)?;
            let bytes = |p: &Place| shards.get(p.shard).and_then(|shard| shard.map.get(p.start..p.end));
            if places.get(EMBED_TOKENS).and_then(bytes) != bytes(&place) {
                return Err(LoadError::TiedHeadDiffers { name: head.name });
            }
        }
        (false, entry) => {
            let place = check(entry, LM_HEAD, &head)?;
            places.insert(head.name, place);
        }
    }
    let left = found.into_keys().find(|name| !SKIPPED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    match left {
        Some(name) => Err(LoadError::Unexpected { name }),
        None => Ok(places),
    }
}

fn check(entry: Option<Entry>, name: &str, spec: &TensorSpec) -> Result<Place, LoadError> {
    let name = name.to_owned();
    let Some(entry) = entry else {
        return Err(LoadError::Missing { name, expected: spec.shape.clone() });
    };
    if entry.shape != spec.shape {
        return Err(LoadError::Shape { name, expected: spec.shape.clone(), got: entry.shape });
    }
    let storage = match entry.dtype {
        Dtype::F32 => Storage::F32,
        Dtype::BF16 => Storage::Bf16,
        other => return Err(LoadError::Dtype { name, got: format!("{other:?}") }),
    };
    Ok(Place { shard: entry.shard, start: entry.start, end: entry.end, storage })
}
