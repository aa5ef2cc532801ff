//! The state of warps and lanes.

use qwengpu_isa::{LaneMask, MachineSpec, Pc, PredReg, PredSource, Reg};

/// A warp slot: its lanes, and what its threads have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warp {
    pub(crate) lanes: Vec<Lane>,
    /// The predicates by index, without `pt`.
    predicates: [LaneMask; 7],
    all: LaneMask,
    /// Whether the warp waits at the barrier.
    pub(crate) waiting: bool,
}

/// A lane slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    registers: [u32; 16],
    pub(crate) pc: Pc,
    pub(crate) exited: bool,
}

impl Warp {
    pub(crate) fn new(spec: &MachineSpec) -> Self {
        let lane = Lane { registers: [0; 16], pc: Pc::ENTRY, exited: true };
        Self {
            lanes: vec![lane; usize::from(spec.lanes)],
            predicates: [LaneMask::EMPTY; 7],
            all: LaneMask::new(spec.full_mask()),
            waiting: false,
        }
    }

    /// Prepares for a CTA in which the first `threads` lanes exist. Registers and predicates are kept.
    pub(crate) fn start(&mut self, threads: usize) {
        self.waiting = false;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            lane.pc = Pc::ENTRY;
            lane.exited = index >= threads;
        }
    }

    /// The lanes that have not exited.
    pub(crate) fn live(&self) -> LaneMask {
        (0..).zip(&self.lanes).filter(|(_, lane)| !lane.exited).map(|(index, _)| index).collect()
    }

    /// Whether the warp has something to execute.
    pub(crate) fn can_run(&self) -> bool {
        !self.waiting && !self.live().is_empty()
    }

    /// The smallest pc of the live lanes, and the lanes that are there; `None` if all have exited.
    pub(crate) fn active(&self) -> Option<(Pc, LaneMask)> {
        let live = || (0..).zip(&self.lanes).filter(|(_, lane)| !lane.exited);
        let pc = live().map(|(_, lane)| lane.pc).min()?;
        Some((pc, live().filter(|(_, lane)| lane.pc == pc).map(|(index, _)| index).collect()))
    }

    pub(crate) fn register(&self, lane: u8, reg: Reg) -> u32 {
        self.lanes[usize::from(lane)].registers[usize::from(reg.index())]
    }

    pub(crate) fn set_register(&mut self, lane: u8, reg: Reg, value: u32) {
        if !reg.is_zero() {
            self.lanes[usize::from(lane)].registers[usize::from(reg.index())] = value;
        }
    }

    /// The lanes in which a predicate is true.
    pub(crate) fn predicate(&self, pred: PredReg) -> LaneMask {
        self.predicates.get(usize::from(pred.index())).copied().unwrap_or(self.all)
    }

    pub(crate) fn set_predicate(&mut self, pred: PredReg, bits: LaneMask) {
        if let Some(value) = self.predicates.get_mut(usize::from(pred.index())) {
            *value = bits;
        }
    }

    /// The lanes in which a predicate source is true.
    pub(crate) fn source(&self, source: PredSource) -> LaneMask {
        let bits = self.predicate(source.index);
        if source.negated { LaneMask::new(self.all.bits() & !bits.bits()) } else { bits }
    }
}
