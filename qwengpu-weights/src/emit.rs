//! A compiled machine to a checkpoint directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use qwengpu_circuit::{Compiled, Netlist};
use serde::Serialize;

use crate::config::{GenerationConfig, ModelConfig};
use crate::directory::PendingDirectory;
use crate::dtype::Dtype;
use crate::error::{EmitError, TokenError};
use crate::manifest::Manifest;
use crate::names;
use crate::records::{GeometryRecord, ReportRecord, StateRecord, channel_records};
use crate::shard::{Index, ShardTensor, plan_shards, write_shard};
use crate::tensor::list_tensors;
use crate::tokenizer::{TokenizerConfig, TokenizerFile, Vocabulary};

/// What a checkpoint is made of.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The machine, for the texts of tokens and the names of signals.
    pub netlist: &'a Netlist,
    /// The same machine in weights.
    pub compiled: &'a Compiled,
    /// Number of the token that ends generation.
    pub halt_token: usize,
    /// The machine's sizes, by names of the caller's choice; they go into the manifest.
    pub machine: BTreeMap<String, u64>,
    /// Figures of the proof that the weights compute the netlist; they go into the manifest and must be finite.
    pub margins: BTreeMap<String, f64>,
}

impl Source<'_> {
    /// JSON holds finite numbers only.
    pub(crate) fn check_margins(&self) -> Result<(), EmitError> {
        match self.margins.iter().find(|(_, value)| !value.is_finite()) {
            Some((name, &value)) => Err(EmitError::Margin { name: name.clone(), value }),
            None => Ok(()),
        }
    }
}

/// Choices of an emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitOptions {
    /// How weights are stored.
    pub dtype: Dtype,
    /// Bytes of weights in a file before the next one is begun.
    pub max_shard_bytes: u64,
    /// Replaces an existing directory, if it is empty or holds a manifest.
    pub overwrite: bool,
}

impl Default for EmitOptions {
    fn default() -> Self {
        Self { dtype: Dtype::Bf16, max_shard_bytes: 4 << 30, overwrite: false }
    }
}

/// How far an emission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of weights written, counting holes.
    pub written: u64,
    /// Bytes of all weights.
    pub total: u64,
}

/// Writes a checkpoint to `dir`, which must not exist unless [`EmitOptions::overwrite`] is set.
///
/// The directory appears under its name only when it is complete; after an error, nothing of it is left. `progress` is
/// called before the first tensor and after each one; [`ControlFlow::Break`] ends the emission.
///
/// # Errors
/// [`EmitError`] when the tensors can't be stored exactly, when the tokens can't be a vocabulary, when there is
/// something at `dir`, when the system fails, or when `progress` breaks off.
pub fn emit(
    source: &Source<'_>,
    dir: &Path,
    options: &EmitOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Manifest, EmitError> {
    let circuit = &source.compiled.tensors;
    let vocabulary = Vocabulary::new(source.netlist, source.halt_token)?;
    let (netlist, tensors) = (source.netlist.tokens().len(), circuit.embedding.rows);
    if netlist != tensors {
        return Err(TokenError::Count { netlist, tensors }.into());
    }
    source.check_margins()?;
    let tensors = list_tensors(circuit, vocabulary.rows(), options.dtype)?;
    let manifest = make_manifest(source, &vocabulary, options.dtype);

    let pending = PendingDirectory::create(dir, options.overwrite)?;
    let root = pending.path();
    write_json(root, names::CONFIG_FILE, &ModelConfig::new(circuit, &vocabulary, options.dtype))?;
    write_json(root, names::GENERATION_CONFIG_FILE, &GenerationConfig::new(&vocabulary))?;
    write_json(root, names::TOKENIZER_FILE, &TokenizerFile::new(&vocabulary))?;
    write_json(root, names::TOKENIZER_CONFIG_FILE, &TokenizerConfig::new(&vocabulary))?;
    write_file(root, names::MANIFEST_FILE, |writer| manifest.write(writer))?;
    write_weights(root, &tensors, options.max_shard_bytes, progress, &mut |path, error| {
        EmitError::io("write", path, error)
    })?;
    pending.commit()?;
    Ok(manifest)
}

fn make_manifest(source: &Source<'_>, vocabulary: &Vocabulary<'_>, dtype: Dtype) -> Manifest {
    let Compiled { placement, tensors, report, locations, .. } = source.compiled;
    Manifest {
        crate_version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: source.machine.clone(),
        geometry: GeometryRecord::from(&tensors.geometry),
        dtype,
        num_layers: tensors.num_layers,
        vocab_size: vocabulary.padded_len(),
        first_machine_token: vocabulary.first_machine_token(),
        num_machine_tokens: vocabulary.num_machine_tokens(),
        halt_token_id: vocabulary.halt_id(),
        constant_channels: placement.constant_channels.clone().collect(),
        one_channel: placement.one_channel,
        states: locations.iter().map(StateRecord::from).collect(),
        report: ReportRecord::new(report, &source.margins),
        channels: channel_records(source.netlist, placement),
        merge: None,
    }
}

/// Writes all tensors in shards; `explain` says what it means that one could not be written to a file.
pub(crate) fn write_weights<T: ShardTensor, E: From<EmitError>>(
    root: &Path,
    tensors: &[T],
    max_shard_bytes: u64,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    explain: &mut dyn FnMut(&Path, T::Error) -> E,
) -> Result<(), E> {
    let total = tensors.iter().map(ShardTensor::num_bytes).sum();
    let mut written = 0;
    let mut advance = |bytes: u64| {
        written += bytes;
        progress(Progress { written, total }).is_continue().then_some(()).ok_or(EmitError::Cancelled { written, total })
    };
    advance(0)?;
    let shards = plan_shards(tensors, max_shard_bytes);
    for (number, &shard) in shards.iter().enumerate() {
        let path = root.join(names::shard_file(number, shards.len()));
        let file = File::create_new(&path).map_err(|source| EmitError::io("create", &path, source))?;
        let mut stopped = None;
        let mut after_tensor = |bytes| {
            stopped = advance(bytes).err();
            stopped.is_none()
        };
        write_shard(file, shard, &mut after_tensor).map_err(|error| explain(&path, error))?;
        if let Some(error) = stopped {
            return Err(error.into());
        }
    }
    if shards.len() > 1 {
        write_json(root, names::INDEX_FILE, &Index::new(&shards))?;
    }
    Ok(())
}

pub(crate) fn write_json(root: &Path, name: &str, value: &impl Serialize) -> Result<(), EmitError> {
    write_file(root, name, |writer| Ok(serde_json::to_writer_pretty(writer, value)?))
}

/// Writes a text file with a newline at its end.
pub(crate) fn write_file(
    root: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), EmitError> {
    let path = root.join(name);
    let run = || {
        let mut writer = BufWriter::new(File::create_new(&path)?);
        write(&mut writer)?;
        writer.write_all(b"\n")?;
        writer.into_inner()?.sync_all()
    };
    run().map_err(|source| EmitError::io("write", &path, source))
}
