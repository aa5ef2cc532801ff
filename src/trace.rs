//! What a stream of records says, for people: where it is, and each warp instruction as one line.

use std::fmt;

use qwengpu_isa::{Dim3, FaultKind, Instruction, LaneMask, MachineSpec, Operation, Pc, Record};

use crate::kernel::Kernel;

/// Where in the grid a stream is: the CTA, the warp and the instruction that the last records named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) cta: Dim3,
    pub(crate) warp: u8,
    pub(crate) pc: Pc,
    /// Where the program memory ends.
    rom_words: u16,
}

impl Position {
    /// In front of the first record.
    pub(crate) fn start(spec: &MachineSpec) -> Self {
        Self { cta: Dim3::ORIGIN, warp: 0, pc: Pc::ENTRY, rom_words: spec.rom_words }
    }

    pub(crate) fn follow(&mut self, record: Record) {
        match record {
            Record::CtaX { value } => self.cta.x = value,
            Record::CtaY { value } => self.cta.y = value,
            Record::CtaZ { value } => self.cta.z = value,
            Record::Warp { warp } => self.warp = warp,
            Record::Exec { pc, .. } => self.pc = pc,
            _ if record.starts_instruction() => self.pc = self.pc.next(self.rom_words),
            _ => {}
        }
    }
}

/// A fault of a kernel, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// The CTA.
    pub cta: Dim3,
    /// The warp in its CTA.
    pub warp: u8,
    /// The lowest lane that faults.
    pub lane: u8,
    /// The address that it accessed, if it faults by an access.
    pub address: Option<u32>,
    /// The instruction's index.
    pub pc: Pc,
    /// The instruction's text, if the program has one there.
    pub instruction: Option<String>,
    /// The line of the PTX source that it comes from.
    pub line: Option<u32>,
}

impl Fault {
    pub(crate) fn new(kernel: &Kernel, at: Position, kind: FaultKind, lane: u8) -> Self {
        let Position { cta, warp, pc, .. } = at;
        let instruction = kernel.program().instructions.get(pc.index()).map(Instruction::to_string);
        Self { kind, cta, warp, lane, address: None, pc, instruction, line: kernel.source_line(pc.index()) }
    }

    /// Hears a record behind the `FAULT`: a byte of the address, or none.
    pub(crate) fn hear(&mut self, record: Record) {
        let bits = match record {
            Record::Val { position, byte, .. } => u32::from(byte) << (8 * position),
            Record::Fill { .. } => Record::FILLED,
            _ => return,
        };
        *self.address.get_or_insert(0) |= bits;
    }

    /// What the kind means, in a sentence.
    #[must_use]
    pub const fn explanation(&self) -> &'static str {
        match self.kind {
            FaultKind::OutOfBounds => {
                "the address lies outside every memory: check indices against the sizes of the buffers"
            }
            FaultKind::Misaligned => "the address is no multiple of the access size: check casts between pointer types",
            FaultKind::IllegalInstruction => "control left the program",
            FaultKind::BarrierDivergence => {
                "a barrier was reached by some lanes of the warp only: move it out of divergent code"
            }
            FaultKind::Trap => "the kernel executed a trap",
            FaultKind::Assertion => "an assertion of the kernel does not hold",
            FaultKind::StackOverflow => "calls are nested too deeply for the local memory of a thread",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, cta, warp, lane, pc, .. } = self;
        write!(f, "{kind}")?;
        if let Some(address) = self.address {
            write!(f, " {address:#x}")?;
        }
        write!(f, " in CTA {cta}, warp {warp}, lane {lane}, at instruction {pc}")?;
        if let Some(instruction) = &self.instruction {
            write!(f, " `{instruction}`")?;
        }
        match self.line {
            Some(line) => write!(f, ", PTX line {line}"),
            None => Ok(()),
        }
    }
}

/// Turns records into lines of text: one for each warp instruction with what it gave.
#[derive(Debug)]
pub struct Narrator<'a> {
    kernel: &'a Kernel,
    lanes: u8,
    position: Position,
    open: Option<OpenInstruction>,
    /// A fault whose address is still coming.
    fault: Option<Fault>,
}

/// A warp instruction whose records are still coming.
#[derive(Debug)]
struct OpenInstruction {
    mask: LaneMask,
    /// The result of each lane that has one.
    values: [Option<u32>; 8],
    stored: LaneMask,
    predicate: Option<LaneMask>,
}

impl OpenInstruction {
    const fn new(mask: LaneMask) -> Self {
        Self { mask, values: [None; 8], stored: LaneMask::EMPTY, predicate: None }
    }
}

impl<'a> Narrator<'a> {
    /// Starts in front of the first record.
    #[must_use]
    pub fn new(spec: &MachineSpec, kernel: &'a Kernel) -> Self {
        let lanes = u8::try_from(spec.lanes).unwrap_or(u8::MAX).min(8);
        Self { kernel, lanes, position: Position::start(spec), open: None, fault: None }
    }

    /// Hears a record; gives the lines that it completes.
    pub fn hear(&mut self, record: Record) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(open) = &mut self.open {
            match record.without_next() {
                Record::Val { mask, position, byte } => {
                    for lane in mask.lanes() {
                        let value = open.values[usize::from(lane)].get_or_insert(0);
                        *value |= u32::from(byte) << (8 * position);
                    }
                }
                Record::Fill { mask } => {
                    for lane in mask.lanes() {
                        *open.values[usize::from(lane)].get_or_insert(0) |= Record::FILLED;
                    }
                }
                Record::Ramp { byte } => {
                    for (value, lane) in open.values.iter_mut().zip(0..self.lanes) {
                        *value = Some(u32::from(byte) + u32::from(lane));
                    }
                }
                Record::Mem { lane } => {
                    open.stored = open.stored.with(lane);
                }
                Record::Pred { bits } => {
                    open.predicate = Some(bits);
                }
                _ => lines.extend(self.end_instruction()),
            }
        }
        let mask = self.open.as_ref().map(|open| open.mask);
        if record.starts_instruction() {
            lines.extend(self.end_instruction());
        }
        self.position.follow(record);
        match record {
            Record::Exec { mask, .. } => self.open = Some(OpenInstruction::new(mask)),
            _ if record.starts_instruction() => self.open = mask.map(OpenInstruction::new),
            Record::CtaX { .. } => lines.push(format!("CTA {}", self.position.cta)),
            Record::Warp { warp } => lines.push(format!("warp {warp}")),
            Record::Release => lines.push("barrier released".to_owned()),
            Record::Fault { kind, lane } => {
                self.fault = Some(Fault::new(self.kernel, self.position, kind, lane));
            }
            Record::Val { .. } | Record::Fill { .. } => {
                if let Some(fault) = &mut self.fault {
                    fault.hear(record);
                }
            }
            Record::Halt => {
                lines.extend(self.fault.take().map(|fault| format!("fault: {fault}")));
                lines.push("halt".to_owned());
            }
            _ => {}
        }
        lines
    }

    /// The line of the instruction that has told everything, if one was telling.
    fn end_instruction(&mut self) -> Option<String> {
        self.open.take().map(|open| self.line(&open))
    }

    fn line(&self, open: &OpenInstruction) -> String {
        let pc = self.position.pc;
        let instruction = self.kernel.program().instructions.get(pc.index());
        let text = instruction.map_or_else(|| "?".to_owned(), Instruction::to_string);
        let lanes: String =
            (0..self.lanes).map(|lane| if open.mask.contains(lane) { char::from(b'0' + lane) } else { '.' }).collect();
        let mut line = format!("  {pc:>3}  {lanes}  {text:<36}");
        let operation = instruction.map(|instruction| &instruction.operation);
        if open.values.iter().any(Option::is_some) {
            let name = operation.and_then(Operation::rd).map_or_else(|| "?".to_owned(), |rd| rd.to_string());
            let value =
                |value: &Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.cast_signed().to_string());
            let values: Vec<String> = open.values.iter().take(self.lanes.into()).map(value).collect();
            line += &format!("  {name} = {}", values.join(" "));
        }
        if let Some(bits) = open.predicate {
            let name = operation.and_then(Operation::pd).map_or_else(|| "?".to_owned(), |pd| pd.to_string());
            let bits: Vec<&str> = (0..self.lanes).map(|lane| if bits.contains(lane) { "1" } else { "0" }).collect();
            line += &format!("  {name} = {}", bits.join(" "));
        }
        if !open.stored.is_empty() {
            let lanes: Vec<String> = open.stored.lanes().map(|lane| lane.to_string()).collect();
            line += &format!("  stored by lanes {}", lanes.join(" "));
        }
        line.trim_end().to_owned()
    }
}
