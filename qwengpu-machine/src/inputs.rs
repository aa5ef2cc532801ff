//! What the embedding of each record says: the signals with which a forward pass begins.

use qwengpu_circuit::{BIT, Builder, Linear, Signal};
use qwengpu_isa::{ConstIdx, Distance, FaultKind, LaneMask, MachineSpec, Parity, Pc, Record, RecordTable};

/// Bits of a byte.
pub(crate) const BYTE: usize = 8;
/// Bytes of a word.
pub(crate) const WORD_BYTES: usize = 4;
/// Bits of a word.
pub(crate) const WORD: usize = 32;

/// Number of bits that hold `0..count`.
pub(crate) fn address_bits(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

/// Rows of the grid state: the next `ctaid` and the limit of each axis.
pub(crate) const GRID_ROWS: usize = 6;

/// Number of program counters behind that of an EXEC which its embedding names: those of the instructions that may do
/// without one, and the next one.
pub(crate) const AHEAD: usize = Distance::MAX as usize + 1;
/// Bits of a distance.
pub(crate) const DISTANCE_BITS: usize = AHEAD.ilog2() as usize;

/// The signals that embeddings set. Bits are 0 in every record that does not name them.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) is_exec: Signal,
    /// EXEC, or another record with the next instruction: an instruction starts.
    pub(crate) starts: Signal,
    /// VAL, RAMP, FILL, MEM or PRED with the next instruction.
    pub(crate) is_next: Signal,
    /// By the parity of the distance, as [`qwengpu_isa::Parity::index`]: VAL with the next instruction.
    pub(crate) parity: Vec<Signal>,
    /// RAMP, FILL, MEM or PRED with the next instruction: its distance, one-hot, as [`Distance::index`].
    pub(crate) distance: Vec<Signal>,
    /// Whether it is odd.
    pub(crate) distance_is_odd: Signal,
    /// VAL, RAMP or FILL, with or without the next instruction.
    pub(crate) is_val: Signal,
    /// VAL, RAMP or FILL without the next instruction.
    pub(crate) is_lone_val: Signal,
    /// VAL, RAMP, FILL or PRED without the next instruction.
    pub(crate) is_lone_result: Signal,
    /// MEM, with or without the next instruction.
    pub(crate) is_mem: Signal,
    /// PRED, with or without the next instruction.
    pub(crate) is_pred: Signal,
    /// VAL, RAMP, FILL, MEM or PRED without the next instruction, FAULT: what the instruction has left to say goes on.
    pub(crate) is_piece: Signal,
    pub(crate) is_warp: Signal,
    /// By axis: x, y, z.
    pub(crate) is_cta: Vec<Signal>,
    pub(crate) is_release: Signal,
    pub(crate) is_fault: Signal,
    pub(crate) is_rom: Signal,
    pub(crate) is_const: Signal,
    pub(crate) is_gmem: Signal,
    pub(crate) is_threads: Signal,
    pub(crate) is_go: Signal,
    /// The record sets a word of the constant bank by itself: CTA, NTID, NCTAID.
    pub(crate) sets_constant: Signal,
    /// EXEC, VAL, FILL: the lanes.
    pub(crate) mask: Vec<Signal>,
    /// MEM: the lane, one-hot.
    pub(crate) mem_lane: Vec<Signal>,
    /// By lane: the bytes that have arrived are those of another word. ROM, CONST, GMEM; VAL of byte 0 in its lanes.
    pub(crate) begins: Vec<Signal>,
    /// VAL: byte position, one-hot.
    pub(crate) position: Vec<Signal>,
    pub(crate) is_fill: Signal,
    /// VAL, RAMP: the byte of each lane that has one.
    pub(crate) bytes: Vec<Vec<Signal>>,
    /// EXEC, ROM: pc; CONST, GMEM: word.
    pub(crate) address: Vec<Signal>,
    /// EXEC: pc + 1 to pc + [`AHEAD`], modulo the program memory. ROM: the first of them.
    pub(crate) ahead: Vec<Vec<Signal>>,
    /// Records with `sets_constant`: the word of the constant bank.
    pub(crate) constant_index: Vec<Signal>,
    /// Records with `sets_constant`: the value.
    pub(crate) constant_value: Vec<Signal>,
    /// CTA, NCTAID: row of the grid state, one-hot; 0..3 the next ctaid, 3..6 the limits.
    pub(crate) grid_row: Vec<Signal>,
    /// CTA: value + 1; NCTAID: value.
    pub(crate) grid_value: Vec<Signal>,
    /// THREADS: whether lane `l` of warp `w` exists, at `w * lanes + l`.
    pub(crate) exists: Vec<Signal>,
    /// PRED: the lanes.
    pub(crate) predicate: Vec<Signal>,
    /// Pieces of a result that may follow this record, at `position * lanes + lane`.
    pub(crate) later_val: Vec<Signal>,
    /// Whether a FILL may follow this record.
    pub(crate) later_fill: Signal,
    /// Stores that may follow this record, by lane.
    pub(crate) later_mem: Vec<Signal>,
    /// Whether a PRED may follow this record.
    pub(crate) later_pred: Signal,
    /// WARP: number.
    pub(crate) warp: Vec<Signal>,
    /// WARP: one-hot.
    pub(crate) warp_one_hot: Vec<Signal>,
}

impl Inputs {
    /// Declares the inputs of a machine.
    pub(crate) fn declare(b: &mut Builder, spec: &MachineSpec) -> Self {
        b.scope("token", |b| {
            let lanes = usize::from(spec.lanes);
            let warps = usize::from(spec.warps);
            let pc_bits = address_bits(usize::from(spec.rom_words));
            let most_words = spec.rom_words.max(spec.constant_words).max(spec.global_words);
            let each = |b: &mut Builder, name: &str, count: usize| -> Vec<Signal> {
                (0..count).map(|i| b.input(&format!("{name}{i}"), BIT)).collect()
            };
            let inputs = Self {
                is_exec: b.input("is_exec", BIT),
                starts: b.input("starts", BIT),
                is_next: b.input("is_next", BIT),
                parity: each(b, "parity", Parity::ALL.len()),
                distance: each(b, "distance", usize::from(Distance::MAX)),
                distance_is_odd: b.input("distance_is_odd", BIT),
                is_val: b.input("is_val", BIT),
                is_lone_val: b.input("is_lone_val", BIT),
                is_lone_result: b.input("is_lone_result", BIT),
                is_mem: b.input("is_mem", BIT),
                is_pred: b.input("is_pred", BIT),
                is_piece: b.input("is_piece", BIT),
                is_warp: b.input("is_warp", BIT),
                is_cta: each(b, "is_cta", 3),
                is_release: b.input("is_release", BIT),
                is_fault: b.input("is_fault", BIT),
                is_rom: b.input("is_rom", BIT),
                is_const: b.input("is_const", BIT),
                is_gmem: b.input("is_gmem", BIT),
                is_threads: b.input("is_threads", BIT),
                is_go: b.input("is_go", BIT),
                sets_constant: b.input("sets_constant", BIT),
                mask: each(b, "mask/lane", lanes),
                mem_lane: each(b, "mem_lane", lanes),
                begins: each(b, "begins/lane", lanes),
                position: each(b, "position", WORD_BYTES),
                is_fill: b.input("is_fill", BIT),
                bytes: (0..lanes).map(|lane| b.input_bits(&format!("byte/lane{lane}"), BYTE)).collect(),
                address: b.input_bits("address", address_bits(usize::from(most_words))),
                ahead: (1..=AHEAD).map(|n| b.input_bits(&format!("ahead{n}"), pc_bits)).collect(),
                constant_index: b.input_bits("constant_index", address_bits(usize::from(spec.constant_words))),
                constant_value: b.input_bits("constant_value", BYTE),
                grid_row: each(b, "grid_row", GRID_ROWS),
                grid_value: b.input_bits("grid_value", BYTE),
                exists: each(b, "exists/thread", warps * lanes),
                predicate: each(b, "predicate/lane", lanes),
                later_val: each(b, "later_val", WORD_BYTES * lanes),
                later_fill: b.input("later_fill", BIT),
                later_mem: each(b, "later_mem/lane", lanes),
                later_pred: b.input("later_pred", BIT),
                warp: b.input_bits("warp", address_bits(warps)),
                warp_one_hot: each(b, "warp_one_hot/warp", warps),
            };
            let mut kinds = vec![
                inputs.is_exec,
                inputs.is_val,
                inputs.is_mem,
                inputs.is_pred,
                inputs.is_warp,
                inputs.is_release,
                inputs.is_fault,
                inputs.is_rom,
                inputs.is_const,
                inputs.is_gmem,
                inputs.is_threads,
                inputs.is_go,
            ];
            kinds.extend(&inputs.is_cta);
            b.exclusive("kind", &kinds);
            let mut steps = vec![
                inputs.starts,
                inputs.is_piece,
                inputs.is_warp,
                inputs.is_release,
                inputs.is_rom,
                inputs.is_const,
                inputs.is_gmem,
                inputs.is_threads,
                inputs.is_go,
            ];
            steps.extend(&inputs.is_cta);
            b.exclusive("step", &steps);
            let mut others = vec![inputs.is_next, inputs.is_exec, inputs.is_lone_result, inputs.is_warp];
            others.extend([inputs.is_release, inputs.is_fault, inputs.is_rom, inputs.is_const, inputs.is_gmem]);
            others.extend(&inputs.is_cta);
            b.exclusive("other", &others);
            let mut distances = inputs.parity.clone();
            distances.extend(&inputs.distance);
            distances.extend([inputs.is_exec, inputs.is_lone_result, inputs.is_rom, inputs.is_const]);
            distances.extend([inputs.is_gmem, inputs.is_fault]);
            b.exclusive("distance", &distances);
            let mut positions = inputs.position.clone();
            positions.push(inputs.is_fill);
            b.exclusive("position", &positions);
            b.exclusive("grid_row", &inputs.grid_row);
            b.exclusive("warp_one_hot", &inputs.warp_one_hot);
            let mut writers = vec![inputs.is_lone_val, inputs.is_gmem];
            writers.extend(&inputs.mem_lane);
            b.exclusive("memory_writer", &writers);
            inputs
        })
    }

    /// 1 in records that open a word: EXEC, ROM, CONST, GMEM; and in FAULT, which opens none, so that the bytes of the
    /// address behind it go nowhere.
    pub(crate) fn opens(&self) -> Linear {
        Linear::sum([self.is_exec, self.is_rom, self.is_const, self.is_gmem, self.is_fault])
    }

    /// 1 in records that start an instruction and tell its distance.
    pub(crate) fn tells_distance(&self) -> Linear {
        Linear::sum(self.distance.iter().copied())
    }

    /// 1 in records after which the machine decides what to do next.
    pub(crate) fn decides(&self) -> Linear {
        Linear::sum([self.starts, self.is_warp, self.is_release, self.is_cta[0]])
    }

    /// The inputs that a record sets.
    pub(crate) fn of(&self, spec: &MachineSpec, record: Record) -> Vec<(Signal, i64)> {
        let mut set = Embedding::default();
        let lanes = usize::from(spec.lanes);
        match record {
            Record::Exec { mask, pc } => {
                set.one(self.is_exec);
                set.bits(&self.mask, usize::from(mask.bits()));
                set.bits(&self.address, pc.index());
                self.ahead_of(&mut set, spec, pc, AHEAD);
                self.start(&mut set);
            }
            Record::ValNext { mask, position, byte, parity } => {
                self.byte(&mut set, position, mask.lanes().map(|lane| (lane, byte)));
                set.one(self.parity[usize::from(parity.index())]);
                self.next(&mut set);
            }
            Record::RampNext { byte, distance } => {
                self.byte(&mut set, 0, ramp(spec, byte));
                self.next_at(&mut set, distance);
            }
            Record::Ramp { byte } => {
                self.byte(&mut set, 0, ramp(spec, byte));
                self.lone_val(&mut set);
                set.ones(&self.later_val[lanes..]);
                set.one(self.later_fill);
            }
            Record::Val { mask, position, byte } => {
                self.byte(&mut set, position, mask.lanes().map(|lane| (lane, byte)));
                self.lone_val(&mut set);
                let piece = usize::from(position) * lanes + usize::from(mask.lowest().unwrap_or(0));
                set.ones(&self.later_val[piece + 1..]);
                set.one(self.later_fill);
            }
            Record::Fill { mask } => {
                self.fill(&mut set, mask);
                self.lone_val(&mut set);
            }
            Record::FillNext { mask, distance } => {
                self.fill(&mut set, mask);
                self.next_at(&mut set, distance);
            }
            Record::Mem { lane } => {
                self.store(&mut set, lane);
                set.one(self.is_piece);
                set.ones(&self.later_mem[usize::from(lane) + 1..]);
            }
            Record::Pred { bits } => {
                self.predicate(&mut set, bits);
                set.one(self.is_lone_result);
                set.one(self.is_piece);
            }
            Record::MemNext { lane, distance } => {
                self.store(&mut set, lane);
                self.next_at(&mut set, distance);
            }
            Record::PredNext { bits, distance } => {
                self.predicate(&mut set, bits);
                self.next_at(&mut set, distance);
            }
            Record::Warp { warp } => {
                set.one(self.is_warp);
                set.bits(&self.warp, usize::from(warp));
                set.one(self.warp_one_hot[usize::from(warp)]);
            }
            Record::CtaX { value } => self.cta(&mut set, 0, value),
            Record::CtaY { value } => self.cta(&mut set, 1, value),
            Record::CtaZ { value } => self.cta(&mut set, 2, value),
            Record::Release => set.one(self.is_release),
            Record::Fault { .. } => {
                set.one(self.is_fault);
                set.one(self.is_piece);
                set.ones(&self.later_val);
                set.one(self.later_fill);
            }
            Record::Halt => {}
            Record::Rom { pc } => {
                set.one(self.is_rom);
                set.ones(&self.begins);
                set.bits(&self.address, pc.index());
                self.ahead_of(&mut set, spec, pc, 1);
            }
            Record::Const { index } => {
                set.one(self.is_const);
                set.ones(&self.begins);
                set.bits(&self.address, index.index());
            }
            Record::Gmem { word } => {
                set.one(self.is_gmem);
                set.ones(&self.begins);
                set.bits(&self.address, usize::from(word));
            }
            Record::Ntid { axis, value } => self.constant(&mut set, ConstIdx::ntid(axis), value),
            Record::Nctaid { axis, value } => {
                self.constant(&mut set, ConstIdx::nctaid(axis), value);
                set.one(self.grid_row[3 + usize::from(axis.index())]);
                set.bits(&self.grid_value, usize::from(value));
            }
            Record::Threads { count } => {
                set.one(self.is_threads);
                set.ones(&self.exists[..usize::from(count).min(self.exists.len())]);
            }
            Record::Go => set.one(self.is_go),
        }
        set.values
    }

    /// An instruction starts: everything may follow.
    fn start(&self, set: &mut Embedding) {
        set.one(self.starts);
        set.ones(&self.later_val);
        set.one(self.later_fill);
        set.ones(&self.later_mem);
        set.one(self.later_pred);
    }

    fn next(&self, set: &mut Embedding) {
        set.one(self.is_next);
        self.start(set);
    }

    fn next_at(&self, set: &mut Embedding, distance: Distance) {
        set.one(self.distance[usize::from(distance.index())]);
        if distance.get() % 2 == 1 {
            set.one(self.distance_is_odd);
        }
        self.next(set);
    }

    /// A byte of the result in some lanes.
    fn byte(&self, set: &mut Embedding, position: u8, bytes: impl Iterator<Item = (u8, u8)>) {
        set.one(self.is_val);
        set.one(self.position[usize::from(position)]);
        for (lane, byte) in bytes {
            let lane = usize::from(lane);
            set.one(self.mask[lane]);
            if position == 0 {
                set.one(self.begins[lane]);
            }
            set.bits(&self.bytes[lane], usize::from(byte));
        }
    }

    fn fill(&self, set: &mut Embedding, mask: LaneMask) {
        set.one(self.is_val);
        set.one(self.is_fill);
        set.bits(&self.mask, usize::from(mask.bits()));
    }

    fn lone_val(&self, set: &mut Embedding) {
        set.one(self.is_lone_val);
        set.one(self.is_lone_result);
        set.one(self.is_piece);
    }

    fn store(&self, set: &mut Embedding, lane: u8) {
        set.one(self.is_mem);
        set.one(self.mem_lane[usize::from(lane)]);
    }

    fn predicate(&self, set: &mut Embedding, bits: LaneMask) {
        set.one(self.is_pred);
        set.bits(&self.predicate, usize::from(bits.bits()));
    }

    /// The first `count` program counters behind `pc`.
    fn ahead_of(&self, set: &mut Embedding, spec: &MachineSpec, mut pc: Pc, count: usize) {
        for bits in &self.ahead[..count] {
            pc = pc.next(spec.rom_words);
            set.bits(bits, pc.index());
        }
    }

    fn cta(&self, set: &mut Embedding, axis: u8, value: u16) {
        set.one(self.is_cta[usize::from(axis)]);
        self.constant(set, ConstIdx::ctaid(qwengpu_isa::Axis::ALL[usize::from(axis)]), value);
        set.one(self.grid_row[usize::from(axis)]);
        set.bits(&self.grid_value, (usize::from(value) + 1) % (1 << BYTE));
    }

    fn constant(&self, set: &mut Embedding, index: ConstIdx, value: u16) {
        set.one(self.sets_constant);
        set.bits(&self.constant_index, index.index());
        set.bits(&self.constant_value, usize::from(value));
    }
}

/// The byte of each lane of a ramp.
fn ramp(spec: &MachineSpec, byte: u8) -> impl Iterator<Item = (u8, u8)> {
    LaneMask::new(spec.full_mask()).lanes().map(move |lane| (lane, byte.saturating_add(lane)))
}

/// Collects the inputs of one record.
#[derive(Default)]
struct Embedding {
    values: Vec<(Signal, i64)>,
}

impl Embedding {
    fn one(&mut self, signal: Signal) {
        self.values.push((signal, 1));
    }

    fn ones(&mut self, signals: &[Signal]) {
        self.values.extend(signals.iter().map(|&signal| (signal, 1)));
    }

    fn bits(&mut self, signals: &[Signal], value: usize) {
        for (i, &signal) in signals.iter().enumerate() {
            if value >> i & 1 == 1 {
                self.one(signal);
            }
        }
    }
}

/// A kind of record that tells of an effect.
#[derive(Debug)]
pub(crate) struct Told {
    /// With or without the next instruction.
    pub(crate) any: Signal,
    /// With the next instruction; of VAL by parity.
    pub(crate) next: Vec<Signal>,
}

/// The fields of a record that its code names, and the kind that it must have.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) val: Told,
    pub(crate) ramp: Told,
    pub(crate) fill: Told,
    pub(crate) mem: Told,
    pub(crate) pred: Told,
    pub(crate) exec: Signal,
    pub(crate) warp: Signal,
    pub(crate) cta: Vec<Signal>,
    pub(crate) release: Signal,
    pub(crate) fault: Signal,
    pub(crate) halt: Signal,
    /// EXEC, VAL, FILL: the lanes; PRED: the value.
    pub(crate) mask: Vec<Signal>,
    /// VAL: byte position, binary.
    pub(crate) position: Vec<Signal>,
    /// VAL: the byte; RAMP: that of lane 0; CTA: the value.
    pub(crate) byte: Vec<Signal>,
    /// EXEC: pc; WARP: number.
    pub(crate) pc: Vec<Signal>,
    /// MEM, FAULT: lane, binary.
    pub(crate) lane: Vec<Signal>,
    /// FAULT: kind, binary.
    pub(crate) fault_kind: Vec<Signal>,
    /// Records that tell a distance: that of the instruction before, which is one less.
    pub(crate) distance: Vec<Signal>,
}

/// Weight of the right kind in a logit. A record of another kind that has `n` of the right one's set bits is behind by
/// this less `n`; kinds share at most the 8 bits of a byte. No larger, since noise is multiplied by it, and no smaller
/// than the bits that a record can have.
const KIND_WEIGHT: i64 = 16;

impl Outputs {
    /// The weights of a record's logit. Of two records of a kind, the one whose fields equal the outputs is ahead by
    /// at least 1: a field bit that is 1 in the record counts +1 if the output is 1 and -1 if it is 0.
    pub(crate) fn code(&self, record: Record) -> Vec<(Signal, i64)> {
        let (kind, fields): (Signal, Vec<(&[Signal], usize)>) = match record {
            Record::Exec { mask, pc } => {
                (self.exec, vec![(&self.mask, usize::from(mask.bits())), (&self.pc, pc.index())])
            }
            Record::Val { mask, position, byte } | Record::ValNext { mask, position, byte, .. } => (
                self.val.any,
                vec![
                    (&self.mask, usize::from(mask.bits())),
                    (&self.position, usize::from(position)),
                    (&self.byte, usize::from(byte)),
                ],
            ),
            Record::Ramp { byte } | Record::RampNext { byte, .. } => {
                (self.ramp.any, vec![(&self.byte, usize::from(byte))])
            }
            Record::Fill { mask } | Record::FillNext { mask, .. } => {
                (self.fill.any, vec![(&self.mask, usize::from(mask.bits()))])
            }
            Record::Mem { lane } | Record::MemNext { lane, .. } => {
                (self.mem.any, vec![(&self.lane, usize::from(lane))])
            }
            Record::Pred { bits } | Record::PredNext { bits, .. } => {
                (self.pred.any, vec![(&self.mask, usize::from(bits.bits()))])
            }
            Record::Warp { warp } => (self.warp, vec![(&self.pc, usize::from(warp))]),
            Record::CtaX { value } => (self.cta[0], vec![(&self.byte, usize::from(value))]),
            Record::CtaY { value } => (self.cta[1], vec![(&self.byte, usize::from(value))]),
            Record::CtaZ { value } => (self.cta[2], vec![(&self.byte, usize::from(value))]),
            Record::Release => (self.release, vec![]),
            Record::Fault { kind, lane } => {
                (self.fault, vec![(&self.lane, usize::from(lane)), (&self.fault_kind, usize::from(kind.number()))])
            }
            Record::Halt => (self.halt, vec![]),
            Record::Rom { .. }
            | Record::Const { .. }
            | Record::Gmem { .. }
            | Record::Ntid { .. }
            | Record::Nctaid { .. }
            | Record::Threads { .. }
            | Record::Go => return Vec::new(),
        };
        let before = record.distance().map(|distance| (&self.distance[..], usize::from(distance.index())));
        let mut code = Vec::new();
        let mut ones = 0;
        for (signals, value) in fields.into_iter().chain(before) {
            for (i, &signal) in signals.iter().enumerate() {
                if value >> i & 1 == 1 {
                    code.push((signal, 2));
                    ones += 1;
                }
            }
        }
        let told = match record.without_next() {
            Record::Val { .. } => Some(&self.val),
            Record::Ramp { .. } => Some(&self.ramp),
            Record::Fill { .. } => Some(&self.fill),
            Record::Mem { .. } => Some(&self.mem),
            Record::Pred { .. } => Some(&self.pred),
            _ => None,
        };
        // With the next instruction, the record without it falls as far behind as it is ahead otherwise.
        let next = match record {
            Record::ValNext { parity, .. } => Some(parity.index()),
            _ => record.distance().map(|_| 0),
        };
        if let (Some(told), Some(next)) = (told, next) {
            let next = told.next[usize::from(next)];
            code.extend([(kind, -KIND_WEIGHT), (next, 2 * KIND_WEIGHT - ones)]);
        } else {
            code.extend(told.iter().flat_map(|told| &told.next).map(|&next| (next, -KIND_WEIGHT)));
            code.insert(0, (kind, KIND_WEIGHT - ones));
        }
        code
    }
}

/// Number of bits of a fault kind.
pub(crate) fn fault_kind_bits() -> usize {
    address_bits(FaultKind::ALL.len())
}

/// Declares every record of the table as a token, in the table's order.
pub(crate) fn declare_tokens(b: &mut Builder, table: &RecordTable, inputs: &Inputs, outputs: &Outputs) {
    for record in table.records() {
        b.token(qwengpu_circuit::Token {
            text: table.text(record),
            inputs: inputs.of(table.spec(), record),
            code: outputs.code(record),
        });
    }
}
