//! The pipeline: verify, expand, schedule, place, lower.

use crate::error::CompileError;
use crate::geometry::Geometry;
use crate::ir::{Level, Netlist, Operation};
use crate::lower::{Lowering, split_constant};
use crate::neurons::Expansion;
use crate::place::{Placement, place};
use crate::report::CompileReport;
use crate::schedule::{Schedule, schedule};
use crate::tensors::{CircuitTensors, StateLocation};
use crate::units::Units;
use crate::verify::verify;

/// Choices of a compilation.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileOptions {
    /// How much one unit of a token's code adds to its logit; a power of two. The default of 32 lets no sampling
    /// setting in use prefer the second-best token.
    pub logit_unit: f32,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { logit_unit: 32.0 }
    }
}

/// A machine in weights, with the way it got there.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// Operations by layer.
    pub schedule: Schedule,
    /// Signals in channels, neurons and heads.
    pub placement: Placement,
    /// The weights.
    pub tensors: CircuitTensors,
    /// What it costs.
    pub report: CompileReport,
    /// Where a host finds each state's rows.
    pub locations: Vec<StateLocation>,
}

/// Compiles a netlist. The same netlist gives the same tensors, bit for bit.
///
/// Nothing is assumed about the values of signals; whether the weights compute what the netlist says is for the margin
/// pass to prove.
///
/// # Errors
/// [`CompileError`] when the netlist is not well formed or does not fit the geometry.
pub fn compile(netlist: &Netlist, geometry: &Geometry, options: &CompileOptions) -> Result<Compiled, CompileError> {
    let constant = geometry.constant()?;
    verify(netlist).map_err(CompileError::Netlist)?;
    let mut expansion = Expansion::new(netlist);
    let units = Units::new(netlist, geometry, &expansion);
    let one = constant.channels == 1 && needs_split_constants(netlist, &expansion);
    let schedule =
        schedule(netlist, geometry, &expansion, &units, geometry.reserved + constant.channels + usize::from(one))?;
    let placement = place(netlist, geometry, constant, one, &mut expansion, &units, &schedule);
    let lowering =
        Lowering { netlist, geometry, expansion: &expansion, placement: &placement, logit_unit: options.logit_unit };
    let tensors = lowering.lower()?;
    let report = CompileReport::new(&schedule, &placement, &tensors);
    let locations = placement.locations.clone();
    Ok(Compiled { schedule, placement, tensors, report, locations })
}

/// Whether some form's constant has more significant bits than one weight.
fn needs_split_constants(netlist: &Netlist, expansion: &Expansion) -> bool {
    let splits = |constant: i64| split_constant(constant).1 != 0;
    let neurons = expansion.neurons.iter().any(|neuron| splits(neuron.gate.constant()) || splits(neuron.up.constant()));
    let state = |operation: &Operation| {
        let Operation::State(state) = operation else { return false };
        let choices = std::iter::once(&state.write).chain(state.reads.iter().map(|read| &read.query));
        let rows =
            |choice: &crate::ir::RowChoice| (0..state.rows).any(|row| splits(2 * choice.row_form(row).constant() - 1));
        let level = match &state.level {
            Level::EveryRow => None,
            Level::When(form) => Some(form),
        };
        let plain = state.value.iter().chain(&state.clear).chain(level).any(|form| splits(form.constant()));
        plain || { choices }.any(rows)
    };
    neurons || netlist.operations().iter().any(state)
}
