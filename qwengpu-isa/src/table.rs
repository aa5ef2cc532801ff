//! The dense numbering of the records of a machine, and their text.

use std::ops::Range;

use thiserror::Error;

use crate::launch::Axis;
use crate::record::{Distance, FaultKind, Parity, Record};
use crate::reg::{ConstIdx, LaneMask, Pc};
use crate::spec::{MachineSpec, SpecError};

/// A kind of record: a contiguous range of indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// [`Record::Exec`]: `(mask - 1) * rom_words + pc`.
    Exec,
    /// [`Record::Val`]: `((mask - 1) * 4 + position) * 256 + byte`.
    Val,
    /// [`Record::ValNext`]: `((parity * masks + mask - 1) * 4 + position) * 256 + byte`, with `masks` of `VAL`.
    ValNext,
    /// [`Record::Ramp`]: `byte`, up to 255 less the number of the last lane.
    Ramp,
    /// [`Record::RampNext`]: `distance * ramps + byte`, with `ramps` the number of `RAMP`.
    RampNext,
    /// [`Record::Fill`]: `mask - 1`.
    Fill,
    /// [`Record::FillNext`]: `distance * masks + mask - 1`.
    FillNext,
    /// [`Record::Mem`]: `lane`.
    Mem,
    /// [`Record::MemNext`]: `distance * lanes + lane`.
    MemNext,
    /// [`Record::Pred`]: `bits`.
    Pred,
    /// [`Record::PredNext`]: `distance * (masks + 1) + bits`.
    PredNext,
    /// [`Record::Warp`]: `warp`.
    Warp,
    /// [`Record::CtaX`]: `value`.
    CtaX,
    /// [`Record::CtaY`]: `value`.
    CtaY,
    /// [`Record::CtaZ`]: `value`.
    CtaZ,
    /// [`Record::Release`].
    Release,
    /// [`Record::Fault`]: `kind * lanes + lane`.
    Fault,
    /// [`Record::Halt`].
    Halt,
    /// [`Record::Rom`]: `pc`.
    Rom,
    /// [`Record::Const`]: `index`.
    Const,
    /// [`Record::Gmem`]: `word`.
    Gmem,
    /// [`Record::Ntid`]: `axis * (max_threads + 1) + value`.
    Ntid,
    /// [`Record::Nctaid`]: `axis * (max_grid + 1) + value`.
    Nctaid,
    /// [`Record::Threads`]: `count`.
    Threads,
    /// [`Record::Go`].
    Go,
}

impl RecordKind {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 25] = [
        Self::Exec,
        Self::Val,
        Self::ValNext,
        Self::Ramp,
        Self::RampNext,
        Self::Fill,
        Self::FillNext,
        Self::Mem,
        Self::MemNext,
        Self::Pred,
        Self::PredNext,
        Self::Warp,
        Self::CtaX,
        Self::CtaY,
        Self::CtaZ,
        Self::Release,
        Self::Fault,
        Self::Halt,
        Self::Rom,
        Self::Const,
        Self::Gmem,
        Self::Ntid,
        Self::Nctaid,
        Self::Threads,
        Self::Go,
    ];

    /// The kind of a record.
    #[must_use]
    pub const fn of(record: Record) -> Self {
        match record {
            Record::Exec { .. } => Self::Exec,
            Record::Val { .. } => Self::Val,
            Record::ValNext { .. } => Self::ValNext,
            Record::Ramp { .. } => Self::Ramp,
            Record::RampNext { .. } => Self::RampNext,
            Record::Fill { .. } => Self::Fill,
            Record::FillNext { .. } => Self::FillNext,
            Record::Mem { .. } => Self::Mem,
            Record::MemNext { .. } => Self::MemNext,
            Record::Pred { .. } => Self::Pred,
            Record::PredNext { .. } => Self::PredNext,
            Record::Warp { .. } => Self::Warp,
            Record::CtaX { .. } => Self::CtaX,
            Record::CtaY { .. } => Self::CtaY,
            Record::CtaZ { .. } => Self::CtaZ,
            Record::Release => Self::Release,
            Record::Fault { .. } => Self::Fault,
            Record::Halt => Self::Halt,
            Record::Rom { .. } => Self::Rom,
            Record::Const { .. } => Self::Const,
            Record::Gmem { .. } => Self::Gmem,
            Record::Ntid { .. } => Self::Ntid,
            Record::Nctaid { .. } => Self::Nctaid,
            Record::Threads { .. } => Self::Threads,
            Record::Go => Self::Go,
        }
    }

    const fn position(self) -> usize {
        match self {
            Self::Exec => 0,
            Self::Val => 1,
            Self::ValNext => 2,
            Self::Ramp => 3,
            Self::RampNext => 4,
            Self::Fill => 5,
            Self::FillNext => 6,
            Self::Mem => 7,
            Self::MemNext => 8,
            Self::Pred => 9,
            Self::PredNext => 10,
            Self::Warp => 11,
            Self::CtaX => 12,
            Self::CtaY => 13,
            Self::CtaZ => 14,
            Self::Release => 15,
            Self::Fault => 16,
            Self::Halt => 17,
            Self::Rom => 18,
            Self::Const => 19,
            Self::Gmem => 20,
            Self::Ntid => 21,
            Self::Nctaid => 22,
            Self::Threads => 23,
            Self::Go => 24,
        }
    }
}

/// The records of a machine, numbered from 0 without gaps.
///
/// The id of the token of a record is its index plus the id of the first machine token of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordTable {
    spec: MachineSpec,
    /// First index of each kind, and the number of records at the end.
    starts: [u32; RecordKind::ALL.len() + 1],
}

impl RecordTable {
    /// The records of a machine.
    ///
    /// # Errors
    ///
    /// Fails if the sizes of the machine are invalid.
    pub fn new(spec: &MachineSpec) -> Result<Self, SpecError> {
        spec.validate()?;
        let mut starts = [0; RecordKind::ALL.len() + 1];
        for kind in RecordKind::ALL {
            starts[kind.position() + 1] = starts[kind.position()] + count(spec, kind);
        }
        Ok(Self { spec: *spec, starts })
    }

    /// The machine.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// Number of records.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a table is never empty")]
    pub const fn len(&self) -> u32 {
        self.starts[RecordKind::ALL.len()]
    }

    /// The indices of a kind.
    #[must_use]
    pub const fn range(&self, kind: RecordKind) -> Range<u32> {
        self.starts[kind.position()]..self.starts[kind.position() + 1]
    }

    /// The index of a record, if the machine has it.
    #[must_use]
    pub fn get(&self, record: Record) -> Option<u32> {
        let range = self.range(RecordKind::of(record));
        let index = range.start + self.within_kind(record)?;
        // An index of another kind, or of another record of this kind, means that a part is too large.
        (self.record(index) == Some(record)).then_some(index)
    }

    /// The index of a record.
    ///
    /// # Panics
    ///
    /// Panics if the machine does not have the record, for example the execution of an instruction beyond its program
    /// memory. [`RecordTable::get`] does not panic.
    #[must_use]
    #[expect(clippy::panic, reason = "documented; the checked variant is `get`")]
    pub fn index(&self, record: Record) -> u32 {
        self.get(record).unwrap_or_else(|| panic!("record {record} does not exist on this machine"))
    }

    /// The record of an index.
    #[must_use]
    pub fn record(&self, index: u32) -> Option<Record> {
        let kind = RecordKind::ALL.into_iter().find(|&kind| self.range(kind).contains(&index))?;
        let rest = index - self.range(kind).start;
        let byte = |value: u32| u8::try_from(value).ok();
        let half = |value: u32| u16::try_from(value).ok();
        // The number of the record that starts no instruction, and the distance.
        let with_distance = |kind, rest: u32| {
            let count = count(&self.spec, kind);
            Some((rest % count, Distance::new(u8::try_from(rest / count + 1).ok()?)?))
        };
        let axis = |stride: u32| Axis::ALL.into_iter().find(|axis| u32::from(axis.index()) == rest / stride);
        Some(match kind {
            RecordKind::Exec => {
                let rom = u32::from(self.spec.rom_words);
                Record::Exec { mask: LaneMask::new(byte(rest / rom + 1)?), pc: Pc::new(half(rest % rom)?) }
            }
            RecordKind::Val => Record::Val {
                mask: LaneMask::new(byte(rest / 1024 + 1)?),
                position: byte(rest / 256 % 4)?,
                byte: byte(rest % 256)?,
            },
            RecordKind::ValNext => {
                let count = count(&self.spec, RecordKind::Val);
                let (val, parity) = (rest % count, *Parity::ALL.get(usize::try_from(rest / count).ok()?)?);
                Record::ValNext {
                    mask: LaneMask::new(byte(val / 1024 + 1)?),
                    position: byte(val / 256 % 4)?,
                    byte: byte(val % 256)?,
                    parity,
                }
            }
            RecordKind::Ramp => Record::Ramp { byte: byte(rest)? },
            RecordKind::RampNext => {
                let (byte, distance) = with_distance(RecordKind::Ramp, rest)?;
                Record::RampNext { byte: u8::try_from(byte).ok()?, distance }
            }
            RecordKind::Fill => Record::Fill { mask: LaneMask::new(byte(rest + 1)?) },
            RecordKind::FillNext => {
                let (row, distance) = with_distance(RecordKind::Fill, rest)?;
                Record::FillNext { mask: LaneMask::new(byte(row + 1)?), distance }
            }
            RecordKind::Mem => Record::Mem { lane: byte(rest)? },
            RecordKind::MemNext => {
                let (lane, distance) = with_distance(RecordKind::Mem, rest)?;
                Record::MemNext { lane: byte(lane)?, distance }
            }
            RecordKind::Pred => Record::Pred { bits: LaneMask::new(byte(rest)?) },
            RecordKind::PredNext => {
                let (bits, distance) = with_distance(RecordKind::Pred, rest)?;
                Record::PredNext { bits: LaneMask::new(byte(bits)?), distance }
            }
            RecordKind::Warp => Record::Warp { warp: byte(rest)? },
            RecordKind::CtaX => Record::CtaX { value: half(rest)? },
            RecordKind::CtaY => Record::CtaY { value: half(rest)? },
            RecordKind::CtaZ => Record::CtaZ { value: half(rest)? },
            RecordKind::Release => Record::Release,
            RecordKind::Fault => {
                let lanes = u32::from(self.spec.lanes);
                let kind = FaultKind::ALL.into_iter().find(|kind| u32::from(kind.number()) == rest / lanes)?;
                Record::Fault { kind, lane: byte(rest % lanes)? }
            }
            RecordKind::Halt => Record::Halt,
            RecordKind::Rom => Record::Rom { pc: Pc::new(half(rest)?) },
            RecordKind::Const => Record::Const { index: ConstIdx::new(byte(rest)?)? },
            RecordKind::Gmem => Record::Gmem { word: half(rest)? },
            RecordKind::Ntid => {
                let stride = u32::from(self.spec.max_threads()) + 1;
                Record::Ntid { axis: axis(stride)?, value: half(rest % stride)? }
            }
            RecordKind::Nctaid => {
                let stride = u32::from(self.spec.max_grid) + 1;
                Record::Nctaid { axis: axis(stride)?, value: half(rest % stride)? }
            }
            RecordKind::Threads => Record::Threads { count: half(rest)? },
            RecordKind::Go => Record::Go,
        })
    }

    /// Every record, by ascending index.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.len()).filter_map(|index| self.record(index))
    }

    /// The text of a record: the same for every machine.
    #[must_use]
    pub fn text(&self, record: Record) -> String {
        record.to_string()
    }

    /// The record of a text.
    ///
    /// # Errors
    ///
    /// Fails if the text is not exactly the text of a record of the machine.
    pub fn parse(&self, text: &str) -> Result<Record, RecordError> {
        parse(text)
            .filter(|&record| record.to_string() == text && self.get(record).is_some())
            .ok_or_else(|| RecordError { text: text.to_owned() })
    }

    fn within_kind(&self, record: Record) -> Option<u32> {
        let mask_row = |mask: LaneMask| u32::from(mask.bits()).checked_sub(1);
        let with_next = |kind, number: u32, index: u8| {
            let count = count(&self.spec, kind);
            (number < count).then(|| u32::from(index) * count + number)
        };
        let val = |mask, position, byte| Some((mask_row(mask)? * 4 + u32::from(position)) * 256 + u32::from(byte));
        Some(match record {
            Record::Exec { mask, pc } => mask_row(mask)? * u32::from(self.spec.rom_words) + u32::from(pc.get()),
            Record::Val { mask, position, byte } => val(mask, position, byte)?,
            Record::ValNext { mask, position, byte, parity } => {
                with_next(RecordKind::Val, val(mask, position, byte)?, parity.index())?
            }
            Record::Ramp { byte } => byte.into(),
            Record::RampNext { byte, distance } => with_next(RecordKind::Ramp, byte.into(), distance.index())?,
            Record::Fill { mask } => mask_row(mask)?,
            Record::FillNext { mask, distance } => with_next(RecordKind::Fill, mask_row(mask)?, distance.index())?,
            Record::Mem { lane } => lane.into(),
            Record::MemNext { lane, distance } => with_next(RecordKind::Mem, lane.into(), distance.index())?,
            Record::Pred { bits } => bits.bits().into(),
            Record::PredNext { bits, distance } => with_next(RecordKind::Pred, bits.bits().into(), distance.index())?,
            Record::Warp { warp } => warp.into(),
            Record::CtaX { value } | Record::CtaY { value } | Record::CtaZ { value } => value.into(),
            Record::Release | Record::Halt | Record::Go => 0,
            Record::Fault { kind, lane } => u32::from(kind.number()) * u32::from(self.spec.lanes) + u32::from(lane),
            Record::Rom { pc } => pc.get().into(),
            Record::Const { index } => index.get().into(),
            Record::Gmem { word } => word.into(),
            Record::Ntid { axis, value } => {
                u32::from(axis.index()) * (u32::from(self.spec.max_threads()) + 1) + u32::from(value)
            }
            Record::Nctaid { axis, value } => {
                u32::from(axis.index()) * (u32::from(self.spec.max_grid) + 1) + u32::from(value)
            }
            Record::Threads { count } => count.into(),
        })
    }
}

/// Number of records of a kind.
fn count(spec: &MachineSpec, kind: RecordKind) -> u32 {
    let (parities, distances) = (2, u32::from(Distance::MAX));
    let lanes = u32::from(spec.lanes);
    let masks = u32::from(spec.full_mask());
    let threads = u32::from(spec.max_threads()) + 1;
    let grid = u32::from(spec.max_grid) + 1;
    match kind {
        RecordKind::Exec => masks * u32::from(spec.rom_words),
        RecordKind::Val => masks * 4 * 256,
        RecordKind::ValNext => parities * count(spec, RecordKind::Val),
        RecordKind::Ramp => 257 - lanes,
        RecordKind::RampNext => distances * count(spec, RecordKind::Ramp),
        RecordKind::Fill => masks,
        RecordKind::FillNext => distances * count(spec, RecordKind::Fill),
        RecordKind::Mem => lanes,
        RecordKind::MemNext => distances * count(spec, RecordKind::Mem),
        RecordKind::Pred => masks + 1,
        RecordKind::PredNext => distances * count(spec, RecordKind::Pred),
        RecordKind::Warp => spec.warps.into(),
        RecordKind::CtaX | RecordKind::CtaY | RecordKind::CtaZ => grid,
        RecordKind::Release | RecordKind::Halt | RecordKind::Go => 1,
        RecordKind::Fault => u32::from(FaultKind::COUNT) * lanes,
        RecordKind::Rom => spec.rom_words.into(),
        RecordKind::Const => spec.constant_words.into(),
        RecordKind::Gmem => spec.global_words.into(),
        RecordKind::Ntid => 3 * threads,
        RecordKind::Nctaid => 3 * grid,
        RecordKind::Threads => threads,
    }
}

/// A text that is no record of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no record of the machine")]
pub struct RecordError {
    /// The text.
    pub text: String,
}

/// Reads the text of a record, leniently: leading zeros and upper case digits may differ.
fn parse(text: &str) -> Option<Record> {
    let body = text.strip_prefix("<|")?.strip_suffix("|>")?;
    let mut parts = body.split(':');
    let name = parts.next()?;
    let fields: Vec<&str> = parts.collect();
    let number = |field: &str| u16::from_str_radix(field, 16).ok();
    let byte = |field: &str| u8::from_str_radix(field, 16).ok();
    let mask = |field: &str| byte(field).map(LaneMask::new);
    let parity = |text: &str| Parity::ALL.into_iter().find(|parity| parity.to_string() == text);
    let distance = |text: &str| Distance::all().find(|distance| distance.to_string() == text);
    // The name, and what stands behind it if the record starts an instruction.
    let (name, next) = name.split_at(name.find('+').unwrap_or(name.len()));
    let axis = |field: &str| Axis::ALL.into_iter().find(|axis| axis.to_string() == field);
    if !next.is_empty() {
        return Some(match (name, fields.as_slice()) {
            ("val", [m, position, value]) => {
                let (mask, position, byte) = (mask(m)?, byte(position)?, byte(value)?);
                Record::ValNext { mask, position, byte, parity: parity(next)? }
            }
            ("ramp", [value]) => Record::RampNext { byte: byte(value)?, distance: distance(next)? },
            ("fill", [m]) => Record::FillNext { mask: mask(m)?, distance: distance(next)? },
            ("mem", [lane]) => Record::MemNext { lane: byte(lane)?, distance: distance(next)? },
            ("pred", [bits]) => Record::PredNext { bits: mask(bits)?, distance: distance(next)? },
            _ => return None,
        });
    }
    Some(match (name, fields.as_slice()) {
        ("exec", [m, pc]) => Record::Exec { mask: mask(m)?, pc: Pc::new(number(pc)?) },
        ("val", [m, position, value]) => Record::Val { mask: mask(m)?, position: byte(position)?, byte: byte(value)? },
        ("ramp", [value]) => Record::Ramp { byte: byte(value)? },
        ("fill", [m]) => Record::Fill { mask: mask(m)? },
        ("mem", [lane]) => Record::Mem { lane: byte(lane)? },
        ("pred", [bits]) => Record::Pred { bits: mask(bits)? },
        ("warp", [warp]) => Record::Warp { warp: byte(warp)? },
        ("ctax", [value]) => Record::CtaX { value: number(value)? },
        ("ctay", [value]) => Record::CtaY { value: number(value)? },
        ("ctaz", [value]) => Record::CtaZ { value: number(value)? },
        ("release", []) => Record::Release,
        ("fault", [kind, lane]) => {
            let kind = byte(kind)?;
            let kind = FaultKind::ALL.into_iter().find(|candidate| candidate.number() == kind)?;
            Record::Fault { kind, lane: byte(lane)? }
        }
        ("halt", []) => Record::Halt,
        ("rom", [pc]) => Record::Rom { pc: Pc::new(number(pc)?) },
        ("const", [index]) => Record::Const { index: ConstIdx::new(byte(index)?)? },
        ("gmem", [word]) => Record::Gmem { word: number(word)? },
        ("ntid", [a, value]) => Record::Ntid { axis: axis(a)?, value: number(value)? },
        ("nctaid", [a, value]) => Record::Nctaid { axis: axis(a)?, value: number(value)? },
        ("threads", [count]) => Record::Threads { count: number(count)? },
        ("go", []) => Record::Go,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Distance = Distance::new(1).expect("a distance");

    fn table() -> RecordTable {
        RecordTable::new(&MachineSpec::seed()).expect("seed is valid")
    }

    #[test]
    fn the_table_is_dense_and_its_text_unique() {
        let table = table();
        assert_eq!(
            table.len(),
            7680 + 3 * 15360
                + 8 * 253
                + 8 * 15
                + 8 * 4
                + 8 * 16
                + 8
                + 3 * 256
                + 1
                + 28
                + 1
                + 512
                + 128
                + 126
                + 99
                + 768
                + 33
                + 1
        );
        let mut texts = std::collections::BTreeSet::new();
        for index in 0..table.len() {
            let record = table.record(index).expect("the table has no gaps");
            assert_eq!(table.index(record), index);
            let text = table.text(record);
            assert_eq!(table.parse(&text), Ok(record));
            assert!(texts.insert(text), "{record} has the text of another record");
        }
        assert_eq!(table.record(table.len()), None);
        assert_eq!(table.records().count(), usize::try_from(table.len()).expect("fits"));
    }

    #[test]
    fn formulas_of_the_table() {
        let table = table();
        let exec = Record::Exec { mask: LaneMask::new(0xf), pc: Pc::new(0x1c) };
        assert_eq!(table.index(exec), 14 * 512 + 0x1c);
        assert_eq!(table.text(exec), "<|exec:f:01c|>");
        let val = Record::Val { mask: LaneMask::new(3), position: 2, byte: 0x7f };
        assert_eq!(table.index(val), 7680 + (2 * 4 + 2) * 256 + 0x7f);
        assert_eq!(table.text(val), "<|val:3:2:7f|>");
        let next = Record::ValNext { mask: LaneMask::new(3), position: 2, byte: 0x7f, parity: Parity::Even };
        assert_eq!(table.index(next), 7680 + 2 * 15360 + (2 * 4 + 2) * 256 + 0x7f);
        assert_eq!(table.text(next), "<|val+2:3:2:7f|>");
        assert_eq!(next.without_next(), val);
        let next = Record::PredNext { bits: LaneMask::new(5), distance: ONE };
        assert_eq!(table.index(next), 7680 + 3 * 15360 + 8 * 253 + 8 * 15 + 8 * 4 + 16 + 5);
        assert_eq!(table.text(next), "<|pred+1:5|>");
    }

    #[test]
    fn records_of_larger_machines_are_refused() {
        let table = table();
        let missing = [
            Record::Exec { mask: LaneMask::new(1), pc: Pc::new(512) },
            Record::Exec { mask: LaneMask::EMPTY, pc: Pc::ENTRY },
            Record::Val { mask: LaneMask::new(1), position: 4, byte: 0 },
            Record::ValNext { mask: LaneMask::new(1), position: 4, byte: 0, parity: Parity::Odd },
            Record::PredNext { bits: LaneMask::new(16), distance: ONE },
            Record::Ramp { byte: 253 },
            Record::RampNext { byte: 253, distance: ONE },
            Record::Fill { mask: LaneMask::EMPTY },
            Record::FillNext { mask: LaneMask::new(16), distance: ONE },
            Record::Mem { lane: 4 },
            Record::MemNext { lane: 4, distance: ONE },
            Record::Gmem { word: 126 },
            Record::Ntid { axis: Axis::X, value: 33 },
            Record::Fault { kind: FaultKind::OutOfBounds, lane: 4 },
        ];
        for record in missing {
            assert_eq!(table.get(record), None, "{record}");
            assert!(table.parse(&record.to_string()).is_err(), "{record}");
        }
        assert!(table.parse("<|exec:F:01c|>").is_err());
        assert!(table.parse("<|exec:f:1c|>").is_err());
        assert!(table.parse("exec").is_err());
    }
}
