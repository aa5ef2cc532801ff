//! The order of CTAs and warps.

use qwengpu_isa::{Axis, ConstIdx, Dim3, Place, Record};

use crate::machine::Machine;
use crate::step::step;
use crate::trace::{Counts, Event, InstructionTrace, Outcome, Run};

/// A launch under way: an iterator over its events.
///
/// After the last event, [`Execution::outcome`] says how it ended. An execution that is dropped early leaves the
/// machine as it is at that moment.
#[derive(Debug)]
pub struct Execution<'m> {
    machine: &'m mut Machine,
    grid: Dim3,
    threads: u16,
    step_limit: u64,
    cta: Dim3,
    next: Next,
    /// Where the next instruction is, if the record before it has started it.
    place: Option<Place>,
    counts: Counts,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The CTA at `cta` starts; the number of components of its position that have changed is known.
    Cta { changed: Changed },
    /// A warp is chosen.
    Schedule,
    /// A warp executes its next instruction.
    Run { warp: u8 },
    /// The grid ends.
    Halt(Outcome),
    /// Nothing: it has ended.
    Ended(Outcome),
}

/// The slowest component of the position that differs from that of the CTA before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    X,
    Y,
    Z,
}

impl<'m> Execution<'m> {
    /// The constants must hold the dimensions of the launch.
    pub(crate) fn new(machine: &'m mut Machine, grid: Dim3, threads: u16, step_limit: u64) -> Self {
        Self {
            machine,
            grid,
            threads,
            step_limit,
            cta: Dim3::ORIGIN,
            next: Next::Cta { changed: Changed::Z },
            place: None,
            counts: Counts::default(),
        }
    }

    /// How it ended; `None` while it runs.
    #[must_use]
    pub const fn outcome(&self) -> Option<Outcome> {
        match self.next {
            Next::Ended(outcome) => Some(outcome),
            Next::Cta { .. } | Next::Schedule | Next::Run { .. } | Next::Halt(_) => None,
        }
    }

    /// How much it has done so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The machine as it is now.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        self.machine
    }

    /// Runs to the end.
    #[must_use]
    pub fn finish(mut self) -> Run {
        let mut records = Vec::new();
        for event in self.by_ref() {
            records.extend(event.records());
        }
        // The iterator ends only with an outcome.
        let outcome = self.outcome().unwrap_or(Outcome::StepLimit);
        Run { records, outcome, counts: self.counts }
    }

    fn start_cta(&mut self, changed: Changed) -> Event {
        let mut records = Vec::new();
        if changed >= Changed::Z {
            records.push(Record::CtaZ { value: self.cta.z });
        }
        if changed >= Changed::Y {
            records.push(Record::CtaY { value: self.cta.y });
        }
        records.push(Record::CtaX { value: self.cta.x });
        for axis in Axis::ALL {
            self.machine.constants[ConstIdx::ctaid(axis).index()] = self.cta.get(axis).into();
        }
        self.machine.memories.clear_shared();
        let lanes = usize::from(self.machine.spec.lanes);
        for (index, warp) in self.machine.warps.iter_mut().enumerate() {
            warp.start(usize::from(self.threads).saturating_sub(lanes * index));
        }
        Event::Cta { cta: self.cta, records }
    }

    /// The lowest warp that can run, if there is one.
    fn runnable(&self) -> Option<u8> {
        (0..).zip(&self.machine.warps).find(|(_, warp)| warp.can_run()).map(|(index, _)| index)
    }

    /// Moves on to the next CTA; `None` after the last.
    fn advance_cta(&mut self) -> Option<Changed> {
        let Dim3 { x, y, z } = self.cta;
        let (cta, changed) = if x + 1 < self.grid.x {
            (Dim3::new(x + 1, y, z), Changed::X)
        } else if y + 1 < self.grid.y {
            (Dim3::new(0, y + 1, z), Changed::Y)
        } else if z + 1 < self.grid.z {
            (Dim3::new(0, 0, z + 1), Changed::Z)
        } else {
            return None;
        };
        self.cta = cta;
        Some(changed)
    }

    /// Chooses a warp, releases the barrier, or ends the CTA.
    fn schedule(&mut self) -> Option<Event> {
        if let Some(warp) = self.runnable() {
            self.next = Next::Run { warp };
            return Some(Event::Warp { warp });
        }
        if self.machine.warps.iter().any(|warp| warp.waiting) {
            for warp in &mut self.machine.warps {
                warp.waiting = false;
            }
            return Some(Event::Release);
        }
        self.next = match self.advance_cta() {
            Some(changed) => Next::Cta { changed },
            None => Next::Halt(Outcome::Finished),
        };
        self.next_event()
    }

    fn run(&mut self, warp: u8) -> Option<Event> {
        let Some((pc, active)) = self.machine.warps[usize::from(warp)].active() else {
            self.next = Next::Schedule;
            return self.next_event();
        };
        if self.counts.warp_instructions >= self.step_limit {
            self.next = Next::Ended(Outcome::StepLimit);
            return None;
        }
        let mut trace = step(self.machine, self.cta, warp, pc, active);
        self.counts.warp_instructions += 1;
        self.counts.lane_instructions += u64::from(trace.exec.bits().count_ones());
        self.next = self.after(&trace);
        self.join(&mut trace);
        Some(Event::Instruction(trace))
    }

    /// Leaves out the `EXEC` if the record before has started the instruction, and lets its last record start the next
    /// one if that follows in the same lanes.
    fn join(&mut self, trace: &mut InstructionTrace) {
        let started = self.place.take();
        if started.is_some() {
            trace.records.remove(0);
        }
        let follows = match self.next {
            Next::Run { warp } => {
                let next = trace.pc.next(self.machine.spec.rom_words);
                self.machine.warps[usize::from(warp)].active() == Some((next, trace.active))
            }
            _ => false,
        };
        if let Some(last) = trace.records.last_mut()
            && follows
            && let Some((joined, place)) = started.unwrap_or(Place::EXEC).next(*last)
        {
            *last = joined;
            self.place = Some(place);
        }
    }

    fn after(&self, trace: &InstructionTrace) -> Next {
        if let Some(fault) = trace.fault {
            return Next::Halt(Outcome::Fault(fault));
        }
        if self.machine.warps[usize::from(trace.warp)].can_run() {
            Next::Run { warp: trace.warp }
        } else {
            Next::Schedule
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        match self.next {
            Next::Cta { changed } => {
                self.next = Next::Schedule;
                Some(self.start_cta(changed))
            }
            Next::Schedule => self.schedule(),
            Next::Run { warp } => self.run(warp),
            Next::Halt(outcome) => {
                self.next = Next::Ended(outcome);
                Some(Event::Halt)
            }
            Next::Ended(_) => None,
        }
    }
}

impl Iterator for Execution<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let event = self.next_event()?;
        self.counts.tokens += u64::try_from(event.num_records()).unwrap_or(u64::MAX);
        Some(event)
    }
}
