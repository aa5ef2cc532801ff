//! `qwengpu info`: what the compiled machine costs, or what a checkpoint holds.

use std::path::{Path, PathBuf};

use clap::Args;
use qwengpu::{MachineError, MachinePreset, MachineSpec, weights};
use qwengpu_circuit::CompileReport;
use qwengpu_weights::{LayerRecord, Manifest, StateRecord};

use super::arguments::MachineName;
use super::failure::Failure;
use super::output::outln;
use super::progress::{Paint, Spinner};

/// The arguments of `info`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu info                 the compiled machine, layer by layer
  qwengpu info --machines      a table of the machines that have names
  qwengpu info ./checkpoint    what an emitted checkpoint holds")]
pub(crate) struct InfoArgs {
    /// A checkpoint; without it, the machine is compiled and its figures are shown
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Compile every machine that has a name, and show a table of them
    #[arg(long, conflicts_with_all = ["directory", "machine"])]
    machines: bool,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.directory {
        return show_checkpoint(directory);
    }
    if args.machines {
        return show_machines();
    }
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&args.machine.spec())?;
    let compiled = weights::compile(&machine)?;
    drop(spinner);
    outln!("{}", compiled.report);
    Ok(())
}

/// The table of docs/machines.md.
fn show_machines() -> Result<(), Failure> {
    outln!(
        "| machine | instructions | global | shared | local | layers | hidden | heads | tokens | parameters | non-zeros |"
    );
    outln!("|---|---|---|---|---|---|---|---|---|---|---|");
    for MachinePreset { name, spec, .. } in MachinePreset::ALL {
        let report = weights::compile(&weights::build(&spec)?)?.report;
        let MachineSpec { rom_words, global_words, shared_words, local_words, .. } = spec;
        let nonzeros = report.total().nonzeros + report.embedding_nonzeros + report.lm_head_nonzeros;
        outln!(
            "| `{name}` | {rom_words} | {global_words} | {shared_words} | {local_words} | {} | {} | {} | {} | {} | {nonzeros} |",
            report.layers.len(),
            report.geometry.hidden,
            report.geometry.value_heads,
            report.tokens,
            report.num_parameters()
        );
    }
    Ok(())
}

fn show_checkpoint(directory: &Path) -> Result<(), Failure> {
    let manifest = Manifest::read(directory).map_err(MachineError::from)?;
    let Manifest { crate_version, machine, geometry, dtype, num_layers, vocab_size, report, .. } = &manifest;
    let paint = Paint::stdout();
    outln!(
        "{}: {num_layers} compiled layers in {dtype}, by qwengpu {crate_version}",
        paint.bold(&directory.display().to_string())
    );
    let sizes: Vec<String> = machine.iter().map(|(name, size)| format!("{name} {size}")).collect();
    outln!("machine: {}", sizes.join(", "));
    outln!(
        "model: hidden {}, intermediate {}, {} heads of {} x {}, vocabulary {vocab_size}",
        geometry.hidden,
        geometry.intermediate,
        geometry.value_heads,
        geometry.key_dim,
        geometry.value_dim
    );
    if let Some(facts) = &manifest.merge {
        super::merge::show(&manifest, facts);
    }
    let (first, count) = (manifest.first_machine_token, manifest.num_machine_tokens);
    outln!("token ids: {first} to {}, halt {}", first + count.saturating_sub(1), manifest.halt_token_id);
    outln!("channels in use: {} of {}", report.channels, geometry.hidden);
    outln!("\nlayer     heads   neurons  channels  non-zeros");
    for (number, layer) in report.layers.iter().enumerate() {
        let LayerRecord { heads, neurons, channels, nonzeros, .. } = layer;
        outln!("{number:>5}  {heads:>8}  {neurons:>8}  {channels:>8}  {nonzeros:>9}");
    }
    outln!("\nstate                             port  layer  rows  bits  heads");
    for state in &manifest.states {
        let heads: usize = state.heads.iter().map(Vec::len).sum();
        let StateRecord { name, port, layer, rows, bits, .. } = state;
        outln!("{name:<32}  {port:>4}  {layer:>5}  {rows:>4}  {bits:>4}  {heads:>5}");
    }
    for (name, value) in &report.margins {
        outln!("{name}: {value}");
    }
    Ok(())
}

/// A report in a few lines.
pub(crate) fn summary(report: &CompileReport) -> String {
    let total = report.total();
    let nonzeros = total.nonzeros + report.embedding_nonzeros + report.lm_head_nonzeros;
    format!(
        "{} layers, {} channels, {} neurons, {} heads, {} tokens, {} non-zero weights",
        report.layers.len(),
        report.channels,
        total.neurons,
        total.heads,
        report.tokens,
        nonzeros
    )
}
