//! Gives signals channels, neurons their numbers, and read ports their heads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::geometry::{ConstantPlan, Geometry};
use crate::ir::{Netlist, Operation, Signal};
use crate::linear::Linear;
use crate::neurons::{Contribution, Expansion, NeuronId};
use crate::schedule::{Schedule, eraser_signs};
use crate::tensors::StateLocation;
use crate::units::{Unit, Units, bank_grid};

/// What a channel holds, from when to when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The signals, of which the channel holds the sum: several if they only ever appear together.
    pub signals: Vec<Signal>,
    /// The layer whose mixer or MLP is the first to write; `None` for inputs.
    pub made: Option<usize>,
    /// The layer whose MLP erases it, if one does.
    pub erased: Option<usize>,
}

/// What a neuron is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeuronRole {
    /// Part of an operation, by its number (the first that uses the neuron).
    Operation(usize),
    /// Erases the channel of a signal, and of those that share it.
    Eraser(Signal),
}

/// A neuron of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedNeuron {
    pub(crate) id: NeuronId,
    /// What it is for.
    pub role: NeuronRole,
    /// Channels it adds to, with the down weight in units of 1/256.
    pub down: BTreeMap<usize, i64>,
}

/// A head of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedHead {
    /// Number of the state's operation.
    pub operation: usize,
    /// Number of the read port.
    pub port: usize,
    /// Which 128 rows of the state.
    pub bank: usize,
    /// Which 126 bits of the rows.
    pub slice: usize,
}

/// What one layer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerPlacement {
    /// Neurons in order.
    pub neurons: Vec<PlacedNeuron>,
    /// Heads in order.
    pub heads: Vec<PlacedHead>,
    /// Channels that hold a live signal or a constant behind this layer.
    pub channels_alive: usize,
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The constant.
    pub constant: ConstantPlan,
    /// Channels that hold the constant `2^24`.
    pub constant_channels: Range<usize>,
    /// A channel that holds 1 for every machine token, if some constant needs more bits than one weight has and there
    /// is but one constant channel.
    pub one_channel: Option<usize>,
    /// For each signal, the one that stands for those that share its channel.
    pub(crate) class: Vec<Signal>,
    /// For each signal, its channel; `None` for signals that nothing reads.
    pub channels: Vec<Option<usize>>,
    /// For each channel, the signals that it holds one after another.
    pub occupants: Vec<Vec<Occupant>>,
    /// The layers.
    pub layers: Vec<LayerPlacement>,
    /// Where each copy of each state lies.
    pub locations: Vec<StateLocation>,
}

impl Placement {
    /// Number of channels that are ever used.
    #[must_use]
    pub fn channels_used(&self) -> usize {
        let shared = self.constant_channels.len() + usize::from(self.one_channel.is_some());
        shared + self.occupants.iter().filter(|occupants| !occupants.is_empty()).count()
    }

    /// What a neuron is, such as `alu/sum` or `erase alu/carry`.
    #[must_use]
    pub fn neuron_name(&self, netlist: &Netlist, layer: usize, neuron: usize) -> Option<String> {
        Some(match self.layers.get(layer)?.neurons.get(neuron)?.role {
            NeuronRole::Operation(number) => netlist.operation_name(number),
            NeuronRole::Eraser(signal) => format!("erase {}", netlist.name(signal)),
        })
    }

    /// What a head is, such as `registers port 1 bank 0 slice 0`.
    #[must_use]
    pub fn head_name(&self, netlist: &Netlist, layer: usize, head: usize) -> Option<String> {
        let PlacedHead { operation, port, bank, slice } = *self.layers.get(layer)?.heads.get(head)?;
        Some(format!("{} port {port} bank {bank} slice {slice}", netlist.operation_name(operation)))
    }
}

/// Channels in use.
struct Channels<'a> {
    units: &'a Units,
    free: BTreeSet<usize>,
    of: Vec<Option<usize>>,
    occupants: Vec<Vec<Occupant>>,
}

impl Channels<'_> {
    /// The channel of the signal's class, or else the lowest free one; the schedule has counted that there is one.
    fn give(&mut self, signal: Signal, made: Option<usize>) {
        let class = self.units.class(signal);
        if let Some(channel) = self.of[class.index()] {
            self.of[signal.index()] = Some(channel);
            if let Some(occupant) = self.occupants[channel].last_mut() {
                occupant.signals.push(signal);
            }
            return;
        }
        let channel = self.free.pop_first().expect("the schedule counts channels");
        self.of[class.index()] = Some(channel);
        self.of[signal.index()] = Some(channel);
        self.occupants[channel].push(Occupant { signals: vec![signal], made, erased: None });
    }

    fn erase(&mut self, class: Signal, layer: usize) -> Option<usize> {
        let channel = self.of[class.index()]?;
        if let Some(occupant) = self.occupants[channel].last_mut() {
            occupant.erased = Some(layer);
        }
        self.free.insert(channel);
        Some(channel)
    }
}

/// Places a schedule; `one` asks for the channel that holds 1. New neurons (erasers) are added to the expansion.
pub(crate) fn place(
    netlist: &Netlist,
    geometry: &Geometry,
    constant: ConstantPlan,
    one: bool,
    expansion: &mut Expansion,
    units: &Units,
    schedule: &Schedule,
) -> Placement {
    let constant_channels = geometry.reserved..geometry.reserved + constant.channels;
    let one_channel = one.then_some(constant_channels.end);
    let first = constant_channels.end + usize::from(one);
    let erasers = eraser_signs(netlist, units);
    let mut channels = Channels {
        units,
        free: (first..geometry.hidden).collect(),
        of: vec![None; netlist.signals().len()],
        occupants: vec![Vec::new(); geometry.hidden],
    };
    for &input in netlist.inputs() {
        if units.is_read(input) {
            channels.give(input, None);
        }
    }
    let mut layers = Vec::new();
    let mut locations = Vec::new();
    for (number, plan) in schedule.layers.iter().enumerate() {
        let mut layer = LayerPlacement::default();
        for &unit in &plan.ports {
            let Unit::Port(operation, port) = unit else { continue };
            let Operation::State(state) = &netlist.operations()[operation] else { continue };
            let (banks, slices) = bank_grid(geometry, state.rows, state.value.len());
            let grid = |bank, slice| layer.heads.len() + bank * slices + slice;
            locations.push(StateLocation {
                state: state.name.clone(),
                port,
                layer: number,
                heads: (0..banks).map(|bank| (0..slices).map(|slice| grid(bank, slice)).collect()).collect(),
                rows: state.rows,
                bits: state.value.len(),
                rows_per_bank: geometry.key_dim,
                bits_per_slice: geometry.bits_per_head(),
            });
            for bank in 0..banks {
                layer.heads.extend((0..slices).map(|slice| PlacedHead { operation, port, bank, slice }));
            }
            for &output in state.reads.get(port).map_or(&[][..], |read| &read.outputs) {
                if units.is_read(output) {
                    channels.give(output, Some(number));
                }
            }
        }
        let mut neurons = Neurons::default();
        for &signal in &plan.erased {
            if let Some(channel) = channels.erase(signal, number) {
                for &sign in &erasers[signal.index()] {
                    let id = expansion.intern(Linear::from(signal) * sign, Linear::one());
                    neurons.add(id, NeuronRole::Eraser(signal), channel, -2 * sign);
                }
            }
        }
        for &unit in &plan.logic {
            let Unit::Logic(operation) = unit else { continue };
            for output in netlist.operations()[operation].outputs() {
                if units.is_read(output) {
                    channels.give(output, Some(number));
                }
            }
            for &Contribution { neuron, output, down } in &expansion.operations[operation] {
                if units.is_read(output)
                    && let Some(channel) = channels.of[output.index()]
                {
                    neurons.add(neuron, NeuronRole::Operation(operation), channel, down);
                }
            }
        }
        layer.neurons = neurons.placed;
        layer.channels_alive = geometry.hidden - geometry.reserved - channels.free.len();
        layers.push(layer);
    }
    let Channels { of, occupants, .. } = channels;
    let class = units.class.clone();
    Placement { class, constant, constant_channels, one_channel, channels: of, occupants, layers, locations }
}

/// The neurons of one layer, each id once.
#[derive(Default)]
struct Neurons {
    placed: Vec<PlacedNeuron>,
    positions: BTreeMap<NeuronId, usize>,
}

impl Neurons {
    fn add(&mut self, id: NeuronId, role: NeuronRole, channel: usize, down: i64) {
        let position = *self.positions.entry(id).or_insert_with(|| {
            self.placed.push(PlacedNeuron { id, role, down: BTreeMap::new() });
            self.placed.len() - 1
        });
        *self.placed[position].down.entry(channel).or_insert(0) += down;
    }
}
