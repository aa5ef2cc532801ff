//! Gives each operation a layer.
//!
//! A layer is a mixer, then an MLP. Time is counted in slots: the embedding is slot 0, the mixer of layer `i` slot
//! `2i + 1`, its MLP slot `2i + 2`; a unit may use what was made in earlier slots. Read ports of states go to mixers,
//! logic to MLPs. List scheduling takes the units by the latest slot that the longest chain above them allows, within
//! the neurons and heads of a layer and the channels of the residual stream. A dead signal's channel can be erased by
//! an MLP (one neuron for an input, two for others) and given to another signal in the same MLP.
//!
//! Several attempts are made: the fewest layers win, then the fewest erased channels.

use std::collections::BTreeSet;

use crate::error::CompileError;
use crate::geometry::Geometry;
use crate::ir::{Netlist, Signal};
use crate::neurons::{Expansion, NeuronId};
use crate::units::{Unit, Units};

/// What one layer does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerPlan {
    /// Read ports in the mixer.
    pub ports: Vec<Unit>,
    /// Logic in the MLP.
    pub logic: Vec<Unit>,
    /// Signals whose channels the MLP erases.
    pub erased: Vec<Signal>,
}

/// The layers of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// First to last.
    pub layers: Vec<LayerPlan>,
    /// Layers that the longest chain of operations needs, whatever the resources.
    pub longest_chain: usize,
}

impl Schedule {
    /// Number of channels erased and given to other signals, or free to be.
    #[must_use]
    pub fn num_erased(&self) -> usize {
        self.layers.iter().map(|layer| layer.erased.len()).sum()
    }
}

/// How many slots before its latest slot a unit may be placed even if that makes more signals alive.
const WINDOWS: [usize; 6] = [usize::MAX, 12, 8, 4, 2, 0];

/// When dead channels are erased that nothing needs yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Erasing {
    /// Only for read ports that are ready: fewer channels are reused, and more inputs among them, which cost less.
    Late,
    /// As soon as some later layer will need them, with whatever neurons are left.
    Early,
}

/// Schedules all units within the geometry; `taken` channels are reserved or hold constants.
pub(crate) fn schedule(
    netlist: &Netlist,
    geometry: &Geometry,
    expansion: &Expansion,
    units: &Units,
    taken: usize,
) -> Result<Schedule, CompileError> {
    let inputs: BTreeSet<Signal> =
        netlist.inputs().iter().filter(|&&input| units.is_read(input)).map(|&input| units.class(input)).collect();
    let needed = taken + inputs.len();
    if needed > geometry.hidden {
        return Err(CompileError::Inputs { needed, hidden: geometry.hidden });
    }
    let erasers = eraser_signs(netlist, units);
    let ahead = slots_ahead(units);
    let longest_chain = earliest(units).into_iter().max().unwrap_or(0).div_ceil(2);
    let mut failure = None;
    for layers in longest_chain.max(1)..=geometry.layers {
        let mut best: Option<Vec<LayerPlan>> = None;
        let ways = WINDOWS.into_iter().flat_map(|window| [(window, Erasing::Late), (window, Erasing::Early)]);
        for (window, erasing) in ways {
            let attempt = Attempt::new(netlist, geometry, expansion, units, &erasers, &ahead, (needed, erasing));
            match attempt.run(layers, window) {
                Ok(plan) => {
                    let erased = |plan: &[LayerPlan]| plan.iter().map(|layer| layer.erased.len()).sum::<usize>();
                    let is_free = erased(&plan) == 0;
                    if best.as_ref().is_none_or(|best| erased(&plan) < erased(best)) {
                        best = Some(plan);
                    }
                    if is_free {
                        break;
                    }
                }
                Err(unplaced) => failure = Some(unplaced),
            }
        }
        if let Some(layers) = best {
            return Ok(Schedule { layers, longest_chain });
        }
    }
    let (unplaced, first) = failure.unwrap_or((units.units.len(), None));
    Err(CompileError::Layers {
        unplaced,
        total: units.units.len(),
        layers: geometry.layers,
        needed: longest_chain,
        first: first
            .map_or_else(String::new, |(Unit::Logic(number) | Unit::Port(number, _))| netlist.operation_name(number)),
    })
}

/// The earliest slot of each unit when nothing but its uses holds it back.
fn earliest(units: &Units) -> Vec<usize> {
    let mut made = vec![0; units.readers.len()];
    let mut slots = Vec::with_capacity(units.units.len());
    for info in &units.units {
        let after = info.uses.iter().map(|signal| made[signal.index()]).max().unwrap_or(0);
        let slot = next_slot(after, info.is_port());
        info.makes.iter().for_each(|signal| made[signal.index()] = slot);
        slots.push(slot);
    }
    slots
}

/// The first slot after `after` of mixers (odd) or MLPs (even).
fn next_slot(after: usize, is_port: bool) -> usize {
    after + 1 + usize::from((after + 1).is_multiple_of(2) == is_port)
}

/// For each unit, how many slots must follow its own: the longest chain of units that need its outputs.
fn slots_ahead(units: &Units) -> Vec<usize> {
    let mut ahead = vec![0; units.units.len()];
    for number in (0..units.units.len()).rev() {
        let info = &units.units[number];
        let readers = info.makes.iter().flat_map(|signal| &units.readers[signal.index()]);
        // The last slot of a layer is its MLP; a mixer at the end has an MLP slot behind it.
        ahead[number] = readers
            .map(|&reader| ahead[reader] + if units.units[reader].is_port() == info.is_port() { 2 } else { 1 })
            .max()
            .unwrap_or(usize::from(info.is_port()));
    }
    ahead
}

struct Attempt<'a> {
    erasing: Erasing,
    /// For each class, the signs of its erasers.
    erasers: &'a [Vec<i64>],
    geometry: &'a Geometry,
    expansion: &'a Expansion,
    units: &'a Units,
    ahead: &'a [usize],
    /// For each unit, uses that are not made yet.
    missing: Vec<usize>,
    /// For each class, readers that are not placed yet.
    pending: Vec<usize>,
    /// Units whose uses are all made, most urgent first.
    ready: BTreeSet<(usize, usize)>,
    /// Channels never used.
    virgin: usize,
    /// Channels erased and not used again yet.
    clean: usize,
    /// Classes that no unit will read any more, whose channels were not erased; those that cost one neuron
    /// come first.
    dead: BTreeSet<(usize, Signal)>,
    /// Whether a class of signals has its channel; by the signal that stands for it.
    open: Vec<bool>,
    /// Classes that will need a channel still.
    unopened: usize,
    unplaced: usize,
}

impl<'a> Attempt<'a> {
    fn new(
        netlist: &'a Netlist,
        geometry: &'a Geometry,
        expansion: &'a Expansion,
        units: &'a Units,
        erasers: &'a [Vec<i64>],
        ahead: &'a [usize],
        (taken, erasing): (usize, Erasing),
    ) -> Self {
        let mut open = vec![false; units.class.len()];
        netlist.inputs().iter().for_each(|&input| open[units.class(input).index()] = true);
        let classes: BTreeSet<Signal> =
            units.units.iter().flat_map(|info| &info.makes).map(|&signal| units.class(signal)).collect();
        let unopened = classes.iter().filter(|class| !open[class.index()]).count();
        let mut attempt = Self {
            erasing,
            erasers,
            geometry,
            expansion,
            units,
            ahead,
            missing: units.units.iter().map(|info| info.uses.len()).collect(),
            pending: units.readers.iter().map(Vec::len).collect(),
            ready: BTreeSet::new(),
            virgin: geometry.hidden - taken,
            clean: 0,
            dead: BTreeSet::new(),
            open,
            unopened,
            unplaced: units.units.len(),
        };
        for number in 0..units.units.len() {
            if attempt.missing[number] == 0 {
                attempt.ready.insert(attempt.urgency(number));
            }
        }
        attempt.announce(netlist.inputs());
        attempt
    }

    /// Sorts the unit with the most slots ahead first.
    fn urgency(&self, number: usize) -> (usize, usize) {
        (usize::MAX - self.ahead[number], number)
    }

    /// Lets the readers of signals know that they are made.
    fn announce(&mut self, made: &[Signal]) {
        let units = self.units;
        for signal in made {
            for &reader in &units.readers[signal.index()] {
                self.missing[reader] -= 1;
                if self.missing[reader] == 0 {
                    self.ready.insert(self.urgency(reader));
                }
            }
        }
    }

    fn run(mut self, layers: usize, window: usize) -> Result<Vec<LayerPlan>, (usize, Option<Unit>)> {
        let mut plans = Vec::new();
        for layer in 0..layers {
            let mut plan = LayerPlan::default();
            let made = self.mixer(&mut plan, 2 * layer + 1, 2 * layers, window);
            self.announce(&made);
            self.mlp(&mut plan, 2 * layer + 2, 2 * layers, window);
            plans.push(plan);
        }
        if self.unplaced > 0 {
            let first = self.ready.first().map(|&(_, number)| self.units.units[number].unit);
            return Err((self.unplaced, first));
        }
        Ok(plans)
    }

    /// Ready units of a kind that may be placed in `slot`, most urgent first.
    fn candidates(&self, ports: bool, slot: usize, last: usize, window: usize) -> Vec<usize> {
        let may = |number: usize| {
            let info = &self.units.units[number];
            let latest = last.saturating_sub(self.ahead[number]);
            info.is_port() == ports
                && (latest <= slot.saturating_add(window) || self.opens(number).len() <= self.kills(number))
        };
        self.ready.iter().map(|&(_, number)| number).filter(|&number| may(number)).collect()
    }

    /// Classes that need a channel if a unit is placed.
    fn opens(&self, number: usize) -> BTreeSet<Signal> {
        let classes = self.units.units[number].makes.iter().map(|&signal| self.units.class(signal));
        classes.filter(|class| !self.open[class.index()]).collect()
    }

    /// How many classes nothing reads any more once a unit is placed.
    fn kills(&self, number: usize) -> usize {
        let units = self.units;
        let dies = |signal: &&Signal| {
            units.class(**signal) == **signal && self.pending[signal.index()] == 1 && !units.coded[signal.index()]
        };
        units.units[number].uses.iter().filter(dies).count()
    }

    fn settle(&mut self, number: usize) {
        let info = &self.units.units[number];
        self.ready.remove(&self.urgency(number));
        self.unplaced -= 1;
        for &signal in &info.uses {
            self.pending[signal.index()] -= 1;
            let dies = self.pending[signal.index()] == 0 && !self.units.coded[signal.index()];
            if dies && self.units.class(signal) == signal {
                self.dead.insert((self.erasers[signal.index()].len(), signal));
            }
        }
    }

    /// Takes channels for new classes: those never used first.
    fn take(&mut self, classes: &BTreeSet<Signal>) {
        let count = classes.len();
        classes.iter().for_each(|class| self.open[class.index()] = true);
        self.unopened -= count;
        let virgin = count.min(self.virgin);
        self.virgin -= virgin;
        self.clean -= count - virgin;
    }

    fn mixer(&mut self, plan: &mut LayerPlan, slot: usize, last: usize, window: usize) -> Vec<Signal> {
        let units = self.units;
        let mut heads = self.geometry.value_heads;
        let mut made = Vec::new();
        for number in self.candidates(true, slot, last, window) {
            let info = &units.units[number];
            let opens = self.opens(number);
            if info.heads <= heads && opens.len() <= self.virgin + self.clean {
                heads -= info.heads;
                self.take(&opens);
                self.settle(number);
                made.extend_from_slice(&info.makes);
                plan.ports.push(info.unit);
            }
        }
        made
    }

    fn mlp(&mut self, plan: &mut LayerPlan, slot: usize, last: usize, window: usize) {
        let (units, expansion) = (self.units, self.expansion);
        let mut left = self.geometry.intermediate;
        let mut present: BTreeSet<NeuronId> = BTreeSet::new();
        let mut made = Vec::new();
        for number in self.candidates(false, slot, last, window) {
            let info = &units.units[number];
            let Unit::Logic(operation) = info.unit else { continue };
            let fresh: BTreeSet<NeuronId> = expansion.operations[operation]
                .iter()
                .filter(|contribution| units.is_read(contribution.output))
                .map(|contribution| contribution.neuron)
                .filter(|neuron| !present.contains(neuron))
                .collect();
            let opens = self.opens(number);
            let short = opens.len().saturating_sub(self.virgin + self.clean);
            if fresh.len() > left || short > self.dead.len() + self.kills(number) {
                continue;
            }
            if short > 0 {
                // The erasers' cost is known once the unit's own uses count as dead; at most two neurons each.
                if fresh.len() + 2 * short > left {
                    continue;
                }
                self.settle(number);
                left -= self.erase(short, left, plan);
            } else {
                self.settle(number);
            }
            left -= fresh.len();
            self.take(&opens);
            present.extend(fresh);
            made.extend_from_slice(&info.makes);
            plan.logic.push(info.unit);
        }
        self.announce(&made);
        let wanted = match self.erasing {
            Erasing::Early => self.unopened,
            Erasing::Late => {
                let ports =
                    self.ready.iter().map(|&(_, number)| number).filter(|&number| units.units[number].is_port());
                ports.map(|number| self.opens(number).len()).sum::<usize>()
            }
        };
        self.erase(wanted.saturating_sub(self.virgin + self.clean), left, plan);
    }

    /// Erases up to `count` dead channels, the cheap ones first; returns the neurons that takes.
    fn erase(&mut self, count: usize, neurons: usize, plan: &mut LayerPlan) -> usize {
        let mut used = 0;
        for _ in 0..count {
            match self.dead.first().copied() {
                Some((_, signal)) if used + self.erasers[signal.index()].len() <= neurons => {
                    self.dead.pop_first();
                    used += self.erasers[signal.index()].len();
                    self.clean += 1;
                    plan.erased.push(signal);
                }
                _ => break,
            }
        }
        used
    }
}

/// For the signal that stands for a class, the neurons that erase its channel.
///
/// A channel that holds `x` is erased by adding `-x`. Inputs are exact, so `-relu(x)` does, and `relu(-x)` if they can
/// be negative. Other signals may be off from their integer, and `relu` in front of 0 is not one: there both are needed,
/// because `silu(y) - silu(-y) = y` for every `y`.
pub(crate) fn eraser_signs(netlist: &Netlist, units: &Units) -> Vec<Vec<i64>> {
    let ranges = class_ranges(netlist, units);
    let mut exact = vec![false; netlist.signals().len()];
    netlist.inputs().iter().for_each(|input| exact[input.index()] = true);
    for (place, class) in units.class.iter().enumerate() {
        exact[class.index()] &= exact[place];
    }
    let signs = |(place, (low, high)): (usize, &(i64, i64))| {
        let needed = |sign: &i64| !exact[place] || low * sign > 0 || high * sign > 0;
        [1, -1].into_iter().filter(needed).collect()
    };
    ranges.iter().enumerate().map(signs).collect()
}

/// For the signal that stands for a class, the range of the sum by the declared ranges.
pub(crate) fn class_ranges(netlist: &Netlist, units: &Units) -> Vec<(i64, i64)> {
    let mut ranges = vec![(0, 0); netlist.signals().len()];
    for (info, class) in netlist.signals().iter().zip(&units.class) {
        let range = &mut ranges[class.index()];
        *range = (range.0 + info.range.start(), range.1 + info.range.end());
    }
    ranges
}
