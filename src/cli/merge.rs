//! `qwengpu merge`: the compiled machine in front of a language model.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use qwengpu::{merge as fitting, weights};
use qwengpu_circuit::{Dtype as ProofDtype, prove};
use qwengpu_weights::{Base, Layout, Manifest, MergeError, MergeOptions, MergeRecord, merge};
use serde_json::json;

use super::arguments::{DtypeName, MachineName};
use super::emit::{explain_writing, margin_figures, warn_unproven};
use super::failure::Failure;
use super::output::outln;
use super::progress::{Bar, Spinner};

/// The arguments of `merge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu merge --base ./Qwen3.5-2B --out ./Qwen3.5-2B-GPU
  qwengpu merge --base ./Qwen3.5-0.8B --out ./merged --hidden 4096 --dtype f32

The base is a Qwen3.5 checkpoint, text or multimodal. Its distribution over tokens stays what it was; without rounding
where the hidden size grows by a power of four. transformers loads the directory as it loads the base.")]
pub(crate) struct MergeArgs {
    /// The checkpoint of the language model
    #[arg(long, value_name = "DIR")]
    base: PathBuf,
    /// The directory to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Channels of the merged model; the base's times the least power of four that has room unless given
    #[arg(long, value_name = "N")]
    hidden: Option<usize>,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
    /// How weights are stored
    #[arg(long, value_enum, default_value = "bf16")]
    dtype: DtypeName,
    /// How layers are arranged: prefix, or portable for engines that go by `full_attention_interval`
    #[arg(long, value_name = "LAYOUT", default_value_t = Layout::Prefix)]
    layout: Layout,
    /// Replace an existing checkpoint
    #[arg(long, visible_alias = "force")]
    overwrite: bool,
    /// Print facts as JSON
    #[arg(long)]
    json: bool,
}

impl MergeArgs {
    /// A merge with every choice as it is unless chosen.
    pub(crate) fn new(base: PathBuf, out: PathBuf) -> Self {
        Self {
            base,
            out,
            hidden: None,
            machine: MachineName::SEED,
            dtype: DtypeName::Bf16,
            layout: Layout::Prefix,
            overwrite: false,
            json: false,
        }
    }
}

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let manifest = write(args)?;
    let facts = manifest.merge.as_ref().ok_or_else(|| Failure::input("the manifest names no base"))?;
    if args.json {
        outln!("{}", json(&manifest, facts));
    } else {
        outln!("{} in {}:", args.out.display(), manifest.dtype);
        show(&manifest, facts);
    }
    Ok(())
}

/// Compiles the machine, proves it, and writes the checkpoint.
pub(crate) fn write(args: &MergeArgs) -> Result<Manifest, Failure> {
    let base = Base::open(&args.base).map_err(|error| explain(&error.into()))?;
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&args.machine.spec())?;
    let fitted = fitting::fit(&machine, &base, args.hidden)?;
    spinner.message("proving its margins");
    let proof = prove(&machine.netlist, &fitted.compiled, &[ProofDtype::F32, ProofDtype::Bf16]);
    drop(spinner);
    let margins = proof.as_ref().map(margin_figures).unwrap_or_default();
    let source = weights::source(&machine, &fitted.compiled, margins);
    let options = MergeOptions {
        dtype: args.dtype.stored(),
        layout: args.layout,
        overwrite: args.overwrite,
        ..MergeOptions::default()
    };
    let bar = Bar::bytes();
    let manifest = merge(&base, &fitted.plan, &source, &args.out, &options, &mut |progress| {
        bar.set(progress.written, progress.total);
        ControlFlow::Continue(())
    });
    drop(bar);
    let manifest = manifest.map_err(|error| explain(&error))?;
    if let Err(error) = proof {
        warn_unproven(&error);
    }
    Ok(manifest)
}

/// The facts of a merged checkpoint for people.
pub(crate) fn show(manifest: &Manifest, facts: &MergeRecord) {
    let MergeRecord { base, channels, layout, num_layers, compiled_layers, base_layers, .. } = facts;
    let (hidden, vocabulary) = (manifest.geometry.hidden, manifest.vocab_size);
    outln!(
        "base: {}, hidden {}, intermediate {}, {} layers, {} key and {} value heads, vocabulary {}{}{}",
        base.name,
        base.hidden,
        base.intermediate,
        base.num_layers,
        base.key_heads,
        base.value_heads,
        base.vocab_size,
        if base.tied { ", tied" } else { "" },
        if base.multimodal { ", text part of a multimodal model" } else { "" }
    );
    outln!("merged: hidden {hidden}, {num_layers} layers ({layout}), vocabulary {vocabulary}");
    let how = if facts.exact { "no weight of the base is rounded" } else { "weights of the base are rounded once" };
    outln!("widening: 2^{} in, 2^-{} out, {how}", facts.scale_exponent, facts.norm_exponent);
    let range = |[first, end]: [usize; 2]| format!("{first} to {}", end.saturating_sub(1));
    outln!(
        "channels: language {}, ballast {}, machine {}",
        range(channels.language),
        range(channels.ballast),
        range(channels.machine)
    );
    outln!("compiled layers at {}, base layers at {}", runs(compiled_layers), runs(base_layers));
    let first = manifest.first_machine_token;
    let last = first + manifest.num_machine_tokens.saturating_sub(1);
    outln!(
        "token ids: base 0 to {}, machine {first} to {last}, halt {}",
        first.saturating_sub(1),
        manifest.halt_token_id
    );
}

/// Numbers in ascending order, runs as their ends.
fn runs(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn json(manifest: &Manifest, facts: &MergeRecord) -> serde_json::Value {
    json!({
        "base": facts.base,
        "layout": facts.layout,
        "dtype": manifest.dtype,
        "hidden_size": manifest.geometry.hidden,
        "num_layers": facts.num_layers,
        "compiled_layers": facts.compiled_layers,
        "base_layers": facts.base_layers,
        "exact": facts.exact,
        "channels": facts.channels,
        "vocab_size": manifest.vocab_size,
        "first_machine_token": manifest.first_machine_token,
        "num_machine_tokens": manifest.num_machine_tokens,
        "halt_token_id": manifest.halt_token_id,
    })
}

fn explain(error: &MergeError) -> Failure {
    let emission = if let MergeError::Emit(emission) = error { Some(emission) } else { None };
    explain_writing(error, emission, "--overwrite")
}
