//! A machine and a base model in one checkpoint: the compiled layers in front of the base's, in one residual stream.
//!
//! Language tokens take the base's way with the base's results; machine tokens take the machine's. docs/merge.md has the
//! design and its proof.

mod base;
mod base_config;
mod base_tensors;
mod base_tokenizer;
mod circuit;
mod config;
mod error;
mod index;
mod layout;
mod plan;
mod record;
mod rows;
mod space;
mod tensors;
mod widening;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use qwengpu_circuit::CircuitTensors;

pub use base::Base;
pub use error::{BaseError, MergeError};
pub use layout::Layout;
pub use plan::{MachineNeeds, MergePlan};
pub use record::{BaseRecord, ChannelRanges, MergeRecord, TensorAction, TensorRecord};

use base_tensors::Widener;
use base_tokenizer::MergedVocabulary;
use layout::{MergedLayer, arrange, places};
use rows::RowsError;
use tensors::MergedTensor;

use crate::directory::PendingDirectory;
use crate::dtype::Dtype;
use crate::emit::{Progress, Source, write_file, write_json, write_weights};
use crate::error::{EmitError, TokenError};
use crate::manifest::Manifest;
use crate::names;
use crate::records::{GeometryRecord, ReportRecord, StateRecord, channel_records};

/// Files of a base that are copied as they are, if they are there.
const COPIED: [&str; 10] = [
    "LICENSE",
    "LICENSE.txt",
    "NOTICE",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "merges.txt",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
];

/// Choices of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// How matrices are stored; what is carried over unchanged keeps its dtype.
    pub dtype: Dtype,
    /// How the layers are arranged.
    pub layout: Layout,
    /// Bytes of weights in a file before the next one is begun.
    pub max_shard_bytes: u64,
    /// Replaces an existing directory, if it is empty or holds a manifest.
    pub overwrite: bool,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self { dtype: Dtype::Bf16, layout: Layout::Prefix, max_shard_bytes: 4 << 30, overwrite: false }
    }
}

/// Writes the checkpoint of a base with a machine in front of it to `dir`.
///
/// `source` must have been compiled for [`MergePlan::geometry`]. As with [`emit`](crate::emit), the directory appears
/// when it is complete, and `progress` may end the writing.
///
/// # Errors
/// [`MergeError`] when the base turns out to be damaged, when layout or tokens don't go together, when the disk has no
/// room, or as [`emit`](crate::emit).
pub fn merge(
    base: &Base,
    plan: &MergePlan,
    source: &Source<'_>,
    dir: &Path,
    options: &MergeOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Manifest, MergeError> {
    let own = &source.compiled.tensors;
    plan.check(own)?;
    source.check_margins()?;
    let (netlist, tensors) = (source.netlist.tokens().len(), own.embedding.rows);
    if netlist != tensors {
        return Err(TokenError::Count { netlist, tensors }.into());
    }
    let vocabulary = base.tokenizer.with_machine(source.netlist, source.halt_token, base.config.vocab_size)?;
    let layers = arrange(options.layout, own.num_layers, &base.config.mixers)?;
    let circuit = circuit::spread_heads(own, plan.group());
    let mut widener = Widener {
        base,
        plan,
        circuit: &circuit,
        constant: source.compiled.placement.constant,
        constant_channel: source.compiled.placement.constant_channels.start,
        vocabulary_rows: vocabulary.rows(),
        dtype: options.dtype,
        records: Vec::new(),
    };
    let tensors = tensors::list(&mut widener, &layers)?;
    let records = std::mem::take(&mut widener.records);
    let manifest = make_manifest(base, plan, source, (&circuit, &vocabulary), &layers, options, records);
    let own_generation = read_generation_config(base)?;

    let pending = PendingDirectory::create(dir, options.overwrite)?;
    space::check_space(dir, tensors.iter().map(MergedTensor::bytes_on_disk).sum())?;
    let root = pending.path();
    let facts = (options.layout, options.dtype, vocabulary.rows());
    write_json(root, names::CONFIG_FILE, &config::model_config(base, plan, &layers, facts))?;
    let generation = config::generation_config(base, own_generation, vocabulary.halt_id);
    write_json(root, names::GENERATION_CONFIG_FILE, &generation)?;
    write_json(root, names::TOKENIZER_FILE, &base.tokenizer.merged_file(&vocabulary))?;
    if let Some(config) = base.tokenizer.merged_config(&vocabulary) {
        write_json(root, names::TOKENIZER_CONFIG_FILE, &config)?;
    }
    for name in COPIED {
        copy(&base.dir.join(name), &root.join(name))?;
    }
    write_file(root, names::MANIFEST_FILE, |writer| manifest.write(writer))?;
    write_weights(root, &tensors, options.max_shard_bytes, progress, &mut |path, error| match error {
        RowsError::Write(source) => EmitError::io("write", path, source).into(),
        RowsError::Source(error) => error,
    })?;
    pending.commit()?;
    Ok(manifest)
}

fn read_generation_config(base: &Base) -> Result<Option<serde_json::Map<String, serde_json::Value>>, BaseError> {
    let path = base.dir.join(names::GENERATION_CONFIG_FILE);
    path.exists().then(|| base::read_json(&path, "it says how text is generated")).transpose()
}

fn copy(from: &Path, to: &Path) -> Result<(), MergeError> {
    if from.is_file() {
        let bytes = fs::read(from).map_err(|source| BaseError::io(from, source))?;
        fs::write(to, bytes).map_err(|source| EmitError::io("write", to, source))?;
    }
    Ok(())
}

fn make_manifest(
    base: &Base,
    plan: &MergePlan,
    source: &Source<'_>,
    (circuit, vocabulary): (&CircuitTensors, &MergedVocabulary<'_>),
    layers: &[MergedLayer],
    options: &MergeOptions,
    mut tensors: Vec<TensorRecord>,
) -> Manifest {
    let compiled = source.compiled;
    let compiled_layers = places(layers, |layer| matches!(layer, MergedLayer::Compiled(_)));
    let location = |location| StateRecord::from(&circuit::spread_location(location, plan.group(), &compiled_layers));
    let dropped = base.dropped.iter().map(|(name, shape)| TensorRecord {
        name: name.clone(),
        shape: shape.clone(),
        target: None,
        actions: vec![TensorAction::Dropped],
    });
    tensors.extend(dropped);
    let (config, widening) = (&base.config, &plan.widening);
    Manifest {
        crate_version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: source.machine.clone(),
        geometry: GeometryRecord::from(&circuit.geometry),
        dtype: options.dtype,
        num_layers: circuit.num_layers,
        vocab_size: vocabulary.rows(),
        first_machine_token: vocabulary.first_machine_token,
        num_machine_tokens: vocabulary.num_machine_tokens,
        halt_token_id: vocabulary.halt_id,
        constant_channels: compiled.placement.constant_channels.clone().collect(),
        one_channel: compiled.placement.one_channel,
        states: compiled.locations.iter().map(location).collect(),
        report: ReportRecord::new(&compiled.report, &source.margins),
        channels: channel_records(source.netlist, &compiled.placement),
        merge: Some(MergeRecord {
            base: BaseRecord {
                name: base.name(),
                hidden: config.hidden,
                intermediate: config.intermediate,
                num_layers: config.mixers.len(),
                vocab_size: config.vocab_size,
                key_heads: config.key_heads,
                value_heads: config.value_heads,
                tied: config.tied,
                multimodal: base.is_multimodal,
            },
            layout: options.layout,
            num_layers: layers.len(),
            compiled_layers,
            base_layers: places(layers, |layer| matches!(layer, MergedLayer::Base(_))),
            exact: plan.is_exact() && !tensors.iter().any(|tensor| tensor.actions.contains(&TensorAction::Rounded)),
            channels: ChannelRanges {
                language: [0, widening.base],
                ballast: [widening.base, widening.reserved()],
                machine: [widening.reserved(), widening.hidden],
            },
            ballast: widening.ballast.clone(),
            scale_exponent: widening.scale_exponent,
            norm_exponent: widening.norm_exponent,
            norm_divisor: widening.divisor,
            flag_gain: widening.flag_gain,
            unused_tokens: vocabulary.unused(),
            tensors,
        }),
    }
}
