//! From a netlist to weights that a model runs: in memory, or from a checkpoint on disk.

use std::collections::BTreeMap;
use std::path::Path;

use qwengpu_circuit::{
    CircuitTensors, CompileOptions, Compiled, Geometry, LayerTensors, SparseMatrix as CircuitMatrix, StateLocation,
    compile as compile_netlist,
};
use qwengpu_isa::{MachineSpec, Record, RecordTable};
use qwengpu_machine::Machine;
use qwengpu_model::{
    Config, DenseEngine, Engine, LayerType, LayerWeights, LinearAttentionWeights, MixerWeights, Part, Precision,
    SparseEngine, SparseMatrix, SparseWeights, Widths,
};
use qwengpu_weights::{Manifest, MergeRecord, Source};

use crate::engine::{EngineKind, ModelSource, Vocabulary};
use crate::error::MachineError;

/// The `rms_norm_eps` of the model family.
const NORM_EPS: f64 = 1e-6;

/// Builds the netlist of a machine.
///
/// # Errors
/// If the machine has sizes that the netlist cannot have.
pub fn build(spec: &MachineSpec) -> Result<Machine, MachineError> {
    Ok(qwengpu_machine::build(spec)?)
}

/// Compiles a machine into layers of its [`geometry`].
///
/// # Errors
/// If the machine does not fit.
pub fn compile(machine: &Machine) -> Result<Compiled, MachineError> {
    Ok(compile_netlist(&machine.netlist, &geometry(machine.table.spec()), &CompileOptions::default())?)
}

/// The sizes of the layers that a machine is compiled into: the default ones, with more heads if a read port takes more.
///
/// A memory is a bank of rows a head, and all banks of a read port answer in one layer. Ports are spread over layers,
/// so machines that differ in their memories alone have layers of the same sizes up to 2,048 words.
#[must_use]
pub fn geometry(spec: &MachineSpec) -> Geometry {
    let default = Geometry::default();
    let [rom, global, shared, local, warps] =
        [spec.rom_words, spec.global_words, spec.shared_words, spec.local_words, spec.warps].map(usize::from);
    let rows = rom.max(global).max(shared).max(local.next_power_of_two() * warps);
    let banks = rows.div_ceil(default.key_dim).next_power_of_two();
    let heads = default.value_heads.max(banks);
    Geometry { key_heads: heads, value_heads: heads, ..default }
}

/// A model of a compiled machine, in memory; its tokens are the machine's alone.
pub(crate) fn in_memory(
    machine: Machine,
    compiled: Compiled,
    engine: EngineKind,
    precision: Precision,
) -> Result<ModelSource, MachineError> {
    let weights = model_weights(&compiled.tensors)?;
    let model: Box<dyn Engine> = if engine == EngineKind::Dense {
        Box::new(DenseEngine::from_weights(&weights, precision)?)
    } else {
        Box::new(SparseEngine::from_weights(&weights, precision)?)
    };
    Ok(ModelSource::new(model, Vocabulary::new(machine.table, 0), compiled.locations))
}

/// A model of a checkpoint. Behind a base's name stands only the machine's part: its layers and its tokens, since no
/// record needs the others.
pub(crate) fn load(directory: &Path, engine: EngineKind, precision: Precision) -> Result<ModelSource, MachineError> {
    let manifest = Manifest::read(directory)?;
    let spec = spec_of(directory, &manifest)?;
    let part = manifest.merge.as_ref().map(|merge| machine_part(&manifest, merge));
    let model: Box<dyn Engine> = match (engine == EngineKind::Dense, &part) {
        (true, None) => Box::new(DenseEngine::from_dir(directory, precision)?),
        (true, Some(part)) => Box::new(DenseEngine::from_part(directory, part, precision)?),
        (false, None) => Box::new(SparseEngine::from_dir(directory, precision)?),
        (false, Some(part)) => Box::new(SparseEngine::from_part(directory, part, precision)?),
    };
    let place = |layer: usize| match &part {
        Some(part) => part.layers.iter().position(|&own| own == layer).ok_or_else(|| MachineError::Checkpoint {
            path: directory.to_owned(),
            reason: format!("the manifest places a state in layer {layer}, which is none of the machine's"),
        }),
        None => Ok(layer),
    };
    let locations = manifest.states.iter().map(|state| {
        let location = state.to_location();
        Ok(StateLocation { layer: place(location.layer)?, ..location })
    });
    let table = RecordTable::new(&spec).map_err(qwengpu_machine::MachineError::from)?;
    let first_token = if part.is_some() { 0 } else { manifest.first_machine_token };
    let vocabulary = Vocabulary::new(table, first_token);
    Ok(ModelSource::new(model, vocabulary, locations.collect::<Result<_, MachineError>>()?))
}

/// What machine tokens need of a merged checkpoint.
fn machine_part(manifest: &Manifest, merge: &MergeRecord) -> Part {
    let first = manifest.first_machine_token as usize;
    let vocabulary = first..first + manifest.num_machine_tokens as usize;
    Part { layers: merge.compiled_layers.clone(), vocabulary, widths: None }
}

/// What language tokens need of a merged checkpoint: the base, in its own sizes but for the ballast.
#[must_use]
pub fn language_part(merge: &MergeRecord) -> Part {
    let widths = Widths {
        hidden_size: merge.channels.ballast[1],
        intermediate_size: merge.base.intermediate,
        linear_num_key_heads: merge.base.key_heads,
        linear_num_value_heads: merge.base.value_heads,
    };
    Part { layers: merge.base_layers.clone(), vocabulary: 0..merge.base.vocab_size, widths: Some(widths) }
}

/// The sizes of the machine in a checkpoint.
///
/// # Errors
/// If the manifest names other sizes than a machine has, or another number of tokens than they give.
pub fn spec_of(directory: &Path, manifest: &Manifest) -> Result<MachineSpec, MachineError> {
    let error = |reason: String| MachineError::Checkpoint { path: directory.to_owned(), reason };
    let mut spec = MachineSpec::seed();
    for (name, field) in sizes_mut(&mut spec) {
        let size = manifest.machine.get(name).ok_or_else(|| error(format!("the manifest names no {name}")))?;
        *field = u16::try_from(*size).map_err(|_| error(format!("{name} of {size} is no size of a machine")))?;
    }
    let table = RecordTable::new(&spec).map_err(|cause| error(cause.to_string()))?;
    if table.len() == manifest.num_machine_tokens {
        Ok(spec)
    } else {
        let (need, got) = (table.len(), manifest.num_machine_tokens);
        Err(error(format!("a machine of these sizes has {need} tokens, the checkpoint has {got}: emit it again")))
    }
}

/// What a checkpoint is made of, for [`qwengpu_weights::emit`].
#[must_use]
pub fn source<'a>(machine: &'a Machine, compiled: &'a Compiled, margins: BTreeMap<String, f64>) -> Source<'a> {
    let mut spec = *machine.table.spec();
    Source {
        netlist: &machine.netlist,
        compiled,
        halt_token: machine.table.index(Record::Halt) as usize,
        machine: sizes_mut(&mut spec).map(|(name, size)| (name.to_owned(), u64::from(*size))).into(),
        margins,
    }
}

/// Every size with its name in a manifest.
fn sizes_mut(spec: &mut MachineSpec) -> [(&'static str, &mut u16); 10] {
    let MachineSpec {
        lanes,
        registers,
        predicates,
        rom_words,
        global_words,
        shared_words,
        local_words,
        warps,
        constant_words,
        max_grid,
    } = spec;
    [
        ("lanes", lanes),
        ("registers", registers),
        ("predicates", predicates),
        ("rom_words", rom_words),
        ("global_words", global_words),
        ("shared_words", shared_words),
        ("local_words", local_words),
        ("warps", warps),
        ("constant_words", constant_words),
        ("max_grid", max_grid),
    ]
}

/// The sizes of a model that consists of the compiled layers alone.
#[must_use]
pub fn model_config(tensors: &CircuitTensors) -> Config {
    let geometry = &tensors.geometry;
    Config {
        vocab_size: tensors.embedding.rows,
        hidden_size: tensors.hidden,
        intermediate_size: geometry.intermediate,
        layer_types: vec![LayerType::LinearAttention; tensors.num_layers],
        // There is no attention layer; these only have to be valid.
        num_attention_heads: 1,
        num_key_value_heads: 1,
        head_dim: 256,
        linear_num_key_heads: geometry.key_heads,
        linear_num_value_heads: geometry.value_heads,
        linear_key_head_dim: geometry.key_dim,
        linear_value_head_dim: geometry.value_dim,
        linear_conv_kernel_dim: geometry.conv_kernel,
        rms_norm_eps: NORM_EPS,
        rope_theta: 1e7,
        partial_rotary_factor: 0.25,
        tie_word_embeddings: false,
        eos_token_ids: Vec::new(),
    }
}

/// The weights of a model that consists of the compiled layers alone, for an engine of [`qwengpu_model`].
///
/// # Errors
/// If a matrix has an entry that the model's crate refuses.
pub fn model_weights(tensors: &CircuitTensors) -> Result<SparseWeights, qwengpu_model::Error> {
    let named = |name: &str| {
        let name = name.to_owned();
        move |source| qwengpu_model::Error::Matrix { name, source }
    };
    let layers = (0..).zip(&tensors.layers).map(|(number, layer)| layer_weights(tensors.hidden, number, layer));
    Ok(SparseWeights {
        embed_tokens: matrix(&tensors.embedding).map_err(named("embed_tokens"))?,
        lm_head: Some(matrix(&tensors.lm_head).map_err(named("lm_head"))?),
        norm: tensors.final_norm.clone(),
        layers: layers.collect::<Result<_, _>>()?,
        config: model_config(tensors),
    })
}

fn layer_weights(hidden: usize, number: usize, layer: &LayerTensors) -> Result<LayerWeights, qwengpu_model::Error> {
    let convert = |name: &str, from: &CircuitMatrix| {
        matrix(from).map_err(|source| qwengpu_model::Error::Matrix { name: format!("layers.{number}.{name}"), source })
    };
    let taps = layer.conv1d.iter().flatten().copied().collect::<Vec<f32>>();
    let conv1d = SparseMatrix::from_dense(layer.conv1d.len(), 4, &taps).map_err(|source| {
        qwengpu_model::Error::Matrix { name: format!("layers.{number}.linear_attn.conv1d"), source }
    })?;
    Ok(LayerWeights {
        input_layernorm: vec![0.0; hidden],
        mixer: MixerWeights::Linear(LinearAttentionWeights {
            in_proj_qkv: convert("linear_attn.in_proj_qkv", &layer.in_proj_qkv)?,
            in_proj_z: convert("linear_attn.in_proj_z", &layer.in_proj_z)?,
            in_proj_b: convert("linear_attn.in_proj_b", &layer.in_proj_b)?,
            in_proj_a: convert("linear_attn.in_proj_a", &layer.in_proj_a)?,
            conv1d,
            a_log: layer.a_log.clone(),
            dt_bias: layer.dt_bias.clone(),
            norm: layer.norm.clone(),
            out_proj: convert("linear_attn.out_proj", &layer.out_proj)?,
        }),
        post_attention_layernorm: vec![0.0; hidden],
        gate_proj: convert("mlp.gate_proj", &layer.gate_proj)?,
        up_proj: convert("mlp.up_proj", &layer.up_proj)?,
        down_proj: convert("mlp.down_proj", &layer.down_proj)?,
    })
}

fn matrix(from: &CircuitMatrix) -> Result<SparseMatrix, qwengpu_model::MatrixError> {
    SparseMatrix::from_triplets(from.rows, from.cols, from.entries.iter().copied())
}
