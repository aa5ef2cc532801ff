//! One instruction of one warp.
//!
//! An instruction is first evaluated into an [`Effect`] without changing anything, and then applied: so an
//! instruction that faults has no effect.

use qwengpu_isa::{
    Address, Dim3, Dividend, FaultKind, Instruction, LaneMask, Operand, Operation, Pc, PredReg, Record, Reg,
    SpecialReg, StoreWidth,
};

use crate::alu;
use crate::machine::Machine;
use crate::memory::Place;
use crate::records::value_records;
use crate::trace::{Fault, InstructionTrace, LaneTrace};
use crate::warp::Warp;

/// What an instruction is going to change, apart from the program counters of lanes that just go on.
enum Effect {
    /// Results for a register.
    Register { rd: Reg },
    /// The whole new value of a predicate.
    Predicate { pd: PredReg, bits: LaneMask },
    /// Values to store, by ascending lane.
    Store(Vec<(Place, u32)>),
    /// Where exec lanes go.
    Branch(Vec<(u8, Pc)>),
    /// Exec lanes exit.
    Exit,
    /// The warp waits.
    Wait,
}

/// An instruction of a warp while it is evaluated.
struct Context<'m> {
    machine: &'m Machine,
    warp: &'m Warp,
    warp_index: u8,
    active: LaneMask,
    exec: LaneMask,
}

/// Executes the next instruction of a warp, which must have live lanes at `pc`, namely `active`.
pub(crate) fn step(machine: &mut Machine, cta: Dim3, warp_index: u8, pc: Pc, active: LaneMask) -> InstructionTrace {
    let warp = &machine.warps[usize::from(warp_index)];
    let word = machine.rom[pc.index()];
    let instruction = Instruction::decode(word).ok();
    let exec = instruction.map_or(active, |instruction| active.and(warp.source(instruction.guard)));
    let mut trace = InstructionTrace {
        cta,
        warp: warp_index,
        pc,
        word,
        instruction,
        active,
        exec,
        lanes: Vec::new(),
        predicate: None,
        fault: None,
        records: vec![Record::Exec { mask: active, pc }],
    };
    let context = Context { machine, warp, warp_index, active, exec };
    match context.evaluate(instruction) {
        Ok((effect, lanes)) => {
            trace.lanes = lanes;
            apply(machine, effect, &mut trace);
        }
        Err((kind, lane, address)) => {
            trace.fault = Some(Fault { kind, cta, warp: warp_index, lane, pc, address });
            trace.records.push(Record::Fault { kind, lane });
            if let Some(address) = address {
                trace.records.extend(value_records(&[(lane, address)], machine.spec.lanes));
            }
        }
    }
    trace
}

/// Kind, lane and address of a fault.
type LaneFault = (FaultKind, u8, Option<u32>);

impl Context<'_> {
    fn evaluate(&self, instruction: Option<Instruction>) -> Result<(Effect, Vec<LaneTrace>), LaneFault> {
        // Active lanes are never empty, so the fallback does not occur.
        let lowest = self.active.lowest().unwrap_or(0);
        let Some(Instruction { operation, .. }) = instruction else {
            return Err((FaultKind::IllegalInstruction, lowest, None));
        };
        let effect = match operation {
            Operation::Trap { reason } => return Err((reason.fault(), lowest, None)),
            Operation::Bar if self.active != self.warp.live() => {
                return Err((FaultKind::BarrierDivergence, lowest, None));
            }
            Operation::Bar => Effect::Wait,
            Operation::Exit => Effect::Exit,
            Operation::Bra { target } => Effect::Branch(self.exec.lanes().map(|lane| (lane, target)).collect()),
            Operation::Brx { a } => {
                let target = |lane| {
                    let [low, high, ..] = self.warp.register(lane, a).to_le_bytes();
                    (lane, Pc::new(u16::from_le_bytes([low, high])))
                };
                Effect::Branch(self.exec.lanes().map(target).collect())
            }
            Operation::Brc { comparison, a, b, and, target } => {
                let taken = self.exec.and(self.warp.source(and));
                let holds = |lane: &u8| comparison.holds(self.warp.register(*lane, a), self.operand(*lane, b.widen()));
                Effect::Branch(taken.lanes().filter(holds).map(|lane| (lane, target)).collect())
            }
            Operation::St { width, address, c } => return self.store(width, address, c),
            Operation::Ld { width, rd, address } => {
                let places = self.places(address, width.bytes())?;
                let load = |(lane, address, place)| LaneTrace {
                    lane,
                    value: Some(alu::extend(width, self.machine.memories.load(place))),
                    address: Some(address),
                };
                return Ok((Effect::Register { rd }, places.into_iter().map(load).collect()));
            }
            Operation::Setp { comparison, pd, a, b, and } => {
                let and = self.warp.source(and);
                self.predicate(pd, |lane| {
                    and.contains(lane) && comparison.holds(self.warp.register(lane, a), self.operand(lane, b))
                })
            }
            Operation::Plop { table, pd, p, q } => {
                let (p, q) = (self.warp.source(p), self.warp.source(q));
                self.predicate(pd, |lane| table.apply(p.contains(lane), q.contains(lane)))
            }
            Operation::Lead { pd, a } => self.predicate(pd, |lane| {
                let value = self.warp.register(lane, a);
                self.exec.lanes().find(|&other| self.warp.register(other, a) == value) == Some(lane)
            }),
            Operation::Ternary { rd, .. }
            | Operation::Binary { rd, .. }
            | Operation::Unary { rd, .. }
            | Operation::Lop3 { rd, .. }
            | Operation::Sel { rd, .. }
            | Operation::Shfl { rd, .. }
            | Operation::Vote { rd, .. }
            | Operation::S2r { rd, .. }
            | Operation::Sdiv { rd, .. } => {
                let result = |lane| LaneTrace { lane, value: self.result(operation, lane), address: None };
                return Ok((Effect::Register { rd }, self.exec.lanes().map(result).collect()));
            }
        };
        Ok((effect, Vec::new()))
    }

    /// The result of an operation that only computes; `None` for all others.
    fn result(&self, operation: Operation, lane: u8) -> Option<u32> {
        let reg = |reg| self.warp.register(lane, reg);
        let value = |operand| self.operand(lane, operand);
        Some(match operation {
            Operation::Ternary { op, a, b, c, .. } => alu::ternary(op, reg(a), value(b), reg(c)),
            Operation::Binary { op, a, b, .. } => alu::binary(op, reg(a), value(b)),
            Operation::Unary { op, b, .. } => alu::unary(op, value(b)),
            Operation::Lop3 { table, a, b, c, .. } => alu::lop3(table, reg(a), reg(b), reg(c)),
            Operation::Sel { a, b, condition, .. } => {
                if self.warp.source(condition).contains(lane) {
                    reg(a)
                } else {
                    value(b)
                }
            }
            Operation::Shfl { mode, a, b, .. } => {
                let [lanes, _] = self.machine.spec.lanes.to_le_bytes();
                self.warp.register(alu::shuffle_source(mode, lane, value(b), lanes), a)
            }
            Operation::Vote { source, .. } => self.exec.and(self.warp.source(source)).bits().into(),
            Operation::S2r { special: SpecialReg::LaneId, .. } => lane.into(),
            Operation::S2r { special: SpecialReg::WarpId, .. } => self.warp_index.into(),
            Operation::S2r { special: SpecialReg::LinearTid, .. } => self.linear_tid(lane),
            Operation::Sdiv { part, dividend, b, .. } => {
                let x = match dividend {
                    Dividend::Register(a) => reg(a),
                    Dividend::LinearTid => self.linear_tid(lane),
                };
                alu::small_division(part, x, value(b))
            }
            Operation::Trap { .. }
            | Operation::Exit
            | Operation::Bra { .. }
            | Operation::Brx { .. }
            | Operation::Brc { .. }
            | Operation::Bar
            | Operation::Setp { .. }
            | Operation::Plop { .. }
            | Operation::Lead { .. }
            | Operation::Ld { .. }
            | Operation::St { .. } => return None,
        })
    }

    fn store(&self, width: StoreWidth, address: Address, c: Reg) -> Result<(Effect, Vec<LaneTrace>), LaneFault> {
        let places = self.places(address, width.bytes())?;
        let value = |lane| self.warp.register(lane, c);
        let stores = places.iter().map(|&(lane, _, place)| (place, value(lane))).collect();
        let lanes = places
            .iter()
            .map(|&(lane, address, _)| LaneTrace { lane, value: Some(value(lane)), address: Some(address) })
            .collect();
        Ok((Effect::Store(stores), lanes))
    }

    /// Lane, address and place of the accesses of the exec lanes, or the fault of the lowest lane that has one.
    fn places(&self, address: Address, bytes: u32) -> Result<Vec<(u8, u32, Place)>, LaneFault> {
        let place = |lane| {
            let constant = address.constant.map_or(0, |index| self.machine.constants[index.index()]);
            let address = self
                .warp
                .register(lane, address.base)
                .wrapping_add(self.warp.register(lane, address.index).wrapping_mul(4))
                .wrapping_add(constant)
                .wrapping_add_signed(address.offset.get());
            match self.machine.memories.place(self.slot(lane), address, bytes) {
                Ok(place) => Ok((lane, address, place)),
                Err(kind) => Err((kind, lane, Some(address))),
            }
        };
        self.exec.lanes().map(place).collect()
    }

    /// The new value of a predicate: the condition in exec lanes, the old value in all others.
    fn predicate(&self, pd: PredReg, condition: impl Fn(u8) -> bool) -> Effect {
        let old = LaneMask::new(self.warp.predicate(pd).bits() & !self.exec.bits());
        let new: LaneMask = self.exec.lanes().filter(|&lane| condition(lane)).collect();
        Effect::Predicate { pd, bits: LaneMask::new(old.bits() | new.bits()) }
    }

    fn operand(&self, lane: u8, operand: Operand) -> u32 {
        match operand {
            Operand::Register(reg) => self.warp.register(lane, reg),
            Operand::Immediate(value) => value,
            Operand::Constant(index) => self.machine.constants[index.index()],
        }
    }

    fn linear_tid(&self, lane: u8) -> u32 {
        u32::from(self.machine.spec.lanes) * u32::from(self.warp_index) + u32::from(lane)
    }

    fn slot(&self, lane: u8) -> usize {
        usize::from(self.machine.spec.lanes) * usize::from(self.warp_index) + usize::from(lane)
    }
}

/// Carries out an effect, advances the program counters of the active lanes, and speaks the records.
fn apply(machine: &mut Machine, effect: Effect, trace: &mut InstructionTrace) {
    let wrap = machine.spec.rom_words - 1;
    let next = trace.pc.next(machine.spec.rom_words);
    let warp = &mut machine.warps[usize::from(trace.warp)];
    for lane in trace.active.lanes() {
        warp.lanes[usize::from(lane)].pc = next;
    }
    match effect {
        Effect::Register { rd } => {
            let results: Vec<(u8, u32)> =
                trace.lanes.iter().filter_map(|lane| lane.value.map(|value| (lane.lane, value))).collect();
            for &(lane, value) in &results {
                warp.set_register(lane, rd, value);
            }
            if !rd.is_zero() {
                trace.records.extend(value_records(&results, machine.spec.lanes));
            }
        }
        Effect::Predicate { pd, bits } => {
            if !pd.is_true() && !trace.exec.is_empty() {
                warp.set_predicate(pd, bits);
                trace.predicate = Some(bits);
                trace.records.push(Record::Pred { bits });
            }
        }
        Effect::Store(stores) => {
            for (place, value) in stores {
                machine.memories.store(place, value);
            }
            trace.records.extend(trace.exec.lanes().map(|lane| Record::Mem { lane }));
        }
        Effect::Branch(targets) => {
            for (lane, target) in targets {
                warp.lanes[usize::from(lane)].pc = Pc::new(target.get() & wrap);
            }
        }
        Effect::Exit => {
            for lane in trace.exec.lanes() {
                warp.lanes[usize::from(lane)].exited = true;
            }
        }
        Effect::Wait => warp.waiting = true,
    }
}
