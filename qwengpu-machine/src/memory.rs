//! Global, shared and local memory: addresses, loads, stores, and what makes an access fault.
//!
//! Each memory is kept by byte position, so that a store of a byte or a half leaves the rest of the word alone. Global
//! and shared memory have a read port a lane; local memory is a state of its own for each lane.

use qwengpu_circuit::{Builder, Level, Linear, Product, RowChoice, Signal, StateDescription};
use qwengpu_isa::{LoadWidth, MachineSpec, Memory, Opcode, StoreWidth};

use crate::adder::{BASE, add_carries, add_digits, carry_once, digits};
use crate::decode::{Decoded, gated};
use crate::inputs::{BYTE, Inputs, WORD, WORD_BYTES, address_bits};
use crate::intake::Intake;
use crate::operands::{LaneOperands, Operands};

/// Bits of the byte within a word.
const BYTE_ADDRESS: usize = 2;
/// Shift of the index register in an address.
const INDEX_SHIFT: usize = 2;

/// Faults of one lane in an access.
#[derive(Debug)]
pub(crate) struct AccessFaults {
    pub(crate) out_of_bounds: Signal,
    pub(crate) misaligned: Signal,
}

impl AccessFaults {
    /// The result of an access that faults is its address, which follows the FAULT.
    fn add_address(&self, b: &mut Builder, address: &[Linear], result: &mut [Linear]) {
        for (i, (bit, sum)) in address.iter().zip(result).enumerate() {
            let gates = [self.out_of_bounds, self.misaligned].map(|fault| fault + bit.clone() - 1);
            *sum += gated(b, &format!("address/bit{i}"), gates.to_vec());
        }
    }
}

/// The name of the state that holds byte `byte` of the words of a memory; local memory has one for each lane.
#[must_use]
pub fn memory_state(memory: Memory, byte: usize, lane: Option<usize>) -> String {
    let name = match memory {
        Memory::Global => "global",
        Memory::Shared => "shared",
        Memory::Local => "local",
    };
    match lane {
        Some(lane) => format!("memory/{name}/byte{byte}/lane{lane}"),
        None => format!("memory/{name}/byte{byte}"),
    }
}

/// The window of a memory: the bit that marks it (none for global memory) and the bits of the word in it.
struct Window {
    marker: Option<usize>,
    word: std::ops::Range<usize>,
}

impl Window {
    fn of(spec: &MachineSpec, memory: Memory) -> Self {
        let window = spec.window(memory);
        let marker = (window.base != 0).then(|| window.base.trailing_zeros() as usize);
        Self { marker, word: BYTE_ADDRESS..BYTE_ADDRESS + address_bits(usize::from(window.words)) }
    }

    /// `enable` if the address lies in the window, else at most 0.
    fn contains<L: Into<Linear> + Clone>(&self, enable: Linear, address: &[L]) -> Linear {
        address.iter().enumerate().skip(self.word.end).fold(enable, |sum, (i, bit)| {
            if Some(i) == self.marker { sum + bit.clone() - 1 } else { sum - bit.clone() }
        })
    }
}

/// `a + 4 * b + c[k] + offset` of a lane, all 32 bits, while an access runs; else 0.
fn lane_address(b: &mut Builder, decoded: &Decoded, operands: &Operands, lane: &LaneOperands) -> Vec<Linear> {
    let mut index = vec![Linear::zero(); INDEX_SHIFT];
    index.extend(lane.register_b.iter().map(|&bit| Linear::from(bit)));
    let parts =
        [digits(&lane.register_a), digits(&index[..WORD]), digits(&operands.constant), digits(&decoded.immediate)];
    let largest = 4 * (BASE - 1);
    let off = largest + 4;
    let sums: Vec<Linear> = (0..parts[0].len())
        .map(|place| Linear::sum(parts.iter().map(|part| &part[place])) + decoded.access * off - off)
        .collect();
    let (digit, carry) = carry_once(b, "carry", &sums, largest);
    add_digits(b, "adder", &add_carries(&digit, &carry), BASE - 1 + largest / BASE)
}

/// Builds the memories; adds what is loaded into each lane's result.
pub(crate) fn build(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    operands: &Operands,
    results: &mut [Vec<Linear>],
) -> Vec<AccessFaults> {
    b.scope("memory", |b| {
        let addresses: Vec<Vec<Linear>> = operands
            .lanes
            .iter()
            .enumerate()
            .map(|(lane, operands_of_lane)| {
                b.scope(format!("address/lane{lane}"), |b| lane_address(b, decoded, operands, operands_of_lane))
            })
            .collect();
        let store = PendingStore::build(b, spec, inputs, intake, decoded, operands, &addresses);
        let write = WritePort::build(b, spec, inputs, intake, &store);
        let loads = read_memories(b, spec, inputs, intake, decoded, &write, &addresses);
        for (lane, (address, bytes)) in addresses.iter().zip(&loads).enumerate() {
            b.scope(format!("load/lane{lane}"), |b| extract(b, decoded, address, bytes, &mut results[lane]));
        }
        operands
            .lanes
            .iter()
            .zip(&addresses)
            .zip(results)
            .enumerate()
            .map(|(lane, ((operands, address), result))| {
                b.scope(format!("fault/lane{lane}"), |b| {
                    let faults = faults(b, spec, decoded, operands, address);
                    faults.add_address(b, address, result);
                    faults
                })
            })
            .collect()
    })
}

/// The store that runs, from its start on: each MEM carries out that of its lane, and may start the next instruction.
struct PendingStore {
    /// By lane: the bits of the address that tell the words of all memories apart.
    address: Vec<Vec<Signal>>,
    /// By lane: register `rc` as it was read.
    data: Vec<Vec<Signal>>,
    widths: Vec<(StoreWidth, Signal)>,
}

impl PendingStore {
    fn build(
        b: &mut Builder,
        spec: &MachineSpec,
        inputs: &Inputs,
        intake: &Intake,
        decoded: &Decoded,
        operands: &Operands,
        addresses: &[Vec<Linear>],
    ) -> Self {
        // The instruction that a MEM starts may be a store as well, so that there are two rows, by the parity of an
        // instruction's distance from the last EXEC.
        let odd = intake.distance[0];
        let st = decoded.is(Opcode::St);
        let starting = [st - odd, st + odd - 1];
        let lone = inputs.is_mem - inputs.is_next;
        // The store that is told stands before the instruction that it starts.
        let before_odd = inputs.is_mem + inputs.distance_is_odd - 1;
        let before_even = inputs.is_mem + inputs.is_next - inputs.distance_is_odd - 1;
        let told = [
            gated(b, "pending/even", vec![lone.clone() - odd, before_odd]),
            gated(b, "pending/odd", vec![lone + odd - 1, before_even]),
        ];
        // Upper bits are zero, or the access faults and nothing is stored.
        let end = |memory| {
            let window = Window::of(spec, memory);
            window.marker.map_or(0, |marker| marker + 1).max(window.word.end)
        };
        let bits = Memory::ALL.into_iter().map(end).max().unwrap_or(WORD);
        // A state for each part, since the address is known some layers above the others.
        let mut keep = |name: &str, value: Vec<Linear>| {
            let description = StateDescription {
                rows: starting.len(),
                clear: None,
                write: RowChoice::Rows(starting.to_vec()),
                value,
                level: Level::EveryRow,
            };
            let query = RowChoice::Rows(told.map(Linear::from).to_vec());
            b.state(&format!("pending/{name}"), description, vec![("told", query)]).remove(0)
        };
        let widths = keep("width", decoded.store.iter().map(|&(_, bit)| bit.into()).collect());
        let widths = decoded.store.iter().map(|&(width, _)| width).zip(widths).collect();
        let lanes = operands.lanes.iter().zip(addresses).enumerate();
        let (data, address) = lanes
            .map(|(lane, (operands, address))| {
                let data = operands.register_c.iter().map(|&bit| bit.into()).collect();
                (
                    keep(&format!("data/lane{lane}"), data),
                    keep(&format!("address/lane{lane}"), address[..bits].to_vec()),
                )
            })
            .unzip();
        Self { address, data, widths }
    }
}

/// What is written, and where: by a MEM in the lane it names, or by the words of a prompt.
struct WritePort {
    /// The bits of the address.
    address: Vec<Signal>,
    /// By lane and byte: a store that covers the byte.
    enable: Vec<Vec<Signal>>,
    /// A word of the prompt.
    load_word: Signal,
    /// By byte and bit.
    data: Vec<Vec<Signal>>,
}

impl WritePort {
    fn build(b: &mut Builder, spec: &MachineSpec, inputs: &Inputs, intake: &Intake, store: &PendingStore) -> Self {
        b.scope("write", |b| {
            let writes_word = inputs.is_lone_val + inputs.is_gmem;
            let load_word = b.relu_bit("load_word", writes_word.clone() + intake.open_gmem - 1);
            let global = Window::of(spec, Memory::Global);
            // The bit of the lane that MEM names.
            let of_lane = |bits: &[Vec<Signal>], i: usize| -> Vec<Linear> {
                inputs.mem_lane.iter().zip(bits).map(|(&selected, bits)| selected + bits[i] - 1).collect()
            };
            let address = (0..store.address[0].len())
                .map(|i| {
                    let mut gates = of_lane(&store.address, i);
                    if global.word.contains(&i) {
                        let bit = intake.open_address[i - global.word.start];
                        gates.push(writes_word.clone() + intake.open_gmem + bit - 2);
                    }
                    gated(b, &format!("address/bit{i}"), gates)
                })
                .collect();
            let enable: Vec<Vec<Signal>> = store
                .address
                .iter()
                .zip(&inputs.mem_lane)
                .enumerate()
                .map(|(lane, (address, &selected))| {
                    let covers =
                        |byte| covers(b, &format!("lane{lane}/byte{byte}"), &store.widths, selected, address, byte);
                    (0..WORD_BYTES).map(covers).collect()
                })
                .collect();
            for byte in 0..WORD_BYTES {
                let mut group: Vec<Signal> = enable.iter().map(|bytes| bytes[byte]).collect();
                group.push(load_word);
                b.exclusive(&format!("byte{byte}"), &group);
            }
            let mut widths: Vec<Signal> = store.widths.iter().map(|(_, bit)| *bit).collect();
            widths.push(load_word);
            b.exclusive("width", &widths);
            let word: Vec<Signal> = (0..WORD)
                .map(|i| {
                    let mut gates = of_lane(&store.data, i);
                    gates.push(writes_word.clone() + intake.open_gmem + intake.assembled[0][i] - 2);
                    gated(b, &format!("word/bit{i}"), gates)
                })
                .collect();
            let data = (0..WORD_BYTES)
                .map(|byte| {
                    (0..BYTE)
                        .map(|i| {
                            let mut gates = vec![load_word + word[byte * BYTE + i] - 1];
                            for &(width, active) in &store.widths {
                                let from = byte % usize::try_from(width.bytes()).unwrap_or(1);
                                gates.push(active + word[from * BYTE + i] - 1);
                            }
                            gated(b, &format!("data/byte{byte}/bit{i}"), gates)
                        })
                        .collect()
                })
                .collect();
            Self { address, enable, load_word, data }
        })
    }

    fn state(
        &self,
        byte: usize,
        rows: usize,
        bits: Vec<Linear>,
        enable: Linear,
        clear: Option<Linear>,
    ) -> StateDescription {
        StateDescription {
            rows,
            clear,
            write: RowChoice::Address { bits, enable },
            value: self.data[byte].iter().map(|&bit| bit.into()).collect(),
            level: Level::EveryRow,
        }
    }
}

/// `enable` if the address within its word is this byte, but for the lowest `skipped` bits; else at most 0.
fn at_byte<L: Into<Linear> + Clone>(enable: Linear, address: &[L], skipped: usize, byte: usize) -> Linear {
    (skipped..BYTE_ADDRESS).fold(enable, |gate, bit| {
        let set: Linear = address[bit].clone().into();
        gate + if byte >> bit & 1 == 1 { set } else { set.not() } - 1
    })
}

/// Whether the store of the selected lane covers a byte of the word at its address.
fn covers(
    b: &mut Builder,
    name: &str,
    widths: &[(StoreWidth, Signal)],
    selected: Signal,
    address: &[Signal],
    byte: usize,
) -> Signal {
    let gates = widths
        .iter()
        .map(|&(width, active)| {
            let skipped = match width {
                StoreWidth::U8 => 0,
                StoreWidth::U16 => 1,
                StoreWidth::B32 => BYTE_ADDRESS,
            };
            at_byte(active + selected - 1, address, skipped, byte)
        })
        .collect();
    gated(b, name, gates)
}

/// The bits read by each lane, by byte: the sum over the memories, of which at most one answers.
fn read_memories(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    write: &WritePort,
    addresses: &[Vec<Linear>],
) -> Vec<Vec<Vec<Linear>>> {
    let lanes = addresses.len();
    let mut loads = vec![vec![vec![Linear::zero(); BYTE]; WORD_BYTES]; lanes];
    let load = Linear::from(decoded.is(Opcode::Ld));
    let warp: Vec<Linear> = intake.warp.iter().map(|&bit| bit.into()).collect();
    for memory in Memory::ALL {
        let window = Window::of(spec, memory);
        let words = usize::from(spec.window(memory).words);
        let row_of = |address: &[Linear]| address[window.word.clone()].to_vec();
        let write_address: Vec<Linear> = write.address.iter().map(|&bit| bit.into()).collect();
        for byte in 0..WORD_BYTES {
            if memory == Memory::Local {
                for (lane, address) in addresses.iter().enumerate() {
                    let with_warp = |address: &[Linear]| [row_of(address), warp.clone()].concat();
                    let rows = (1 << window.word.len()) * usize::from(spec.warps);
                    let enable = window.contains(write.enable[lane][byte].into(), &write_address);
                    let description = write.state(byte, rows, with_warp(&write_address), enable, None);
                    let query =
                        RowChoice::Address { bits: with_warp(address), enable: window.contains(load.clone(), address) };
                    let name = short_name(memory, byte, Some(lane));
                    let read = b.state(&name, description, vec![("read", query)]).remove(0);
                    add_bits(&mut loads[lane][byte], &read);
                }
                continue;
            }
            let mut enable = Linear::sum(write.enable.iter().map(|bytes| bytes[byte]));
            if memory == Memory::Global {
                enable += write.load_word;
            }
            let clear = (memory == Memory::Shared).then(|| inputs.is_cta[0].into());
            let enable = window.contains(enable, &write_address);
            let description = write.state(byte, words, row_of(&write_address), enable, clear);
            let names: Vec<String> = (0..lanes).map(|lane| format!("lane{lane}")).collect();
            let queries = addresses
                .iter()
                .zip(&names)
                .map(|(address, name)| {
                    let enable = window.contains(load.clone(), address);
                    (name.as_str(), RowChoice::Address { bits: row_of(address), enable })
                })
                .collect();
            let reads = b.state(&short_name(memory, byte, None), description, queries);
            for (lane, read) in reads.iter().enumerate() {
                add_bits(&mut loads[lane][byte], read);
            }
        }
    }
    for (lane, bytes) in loads.iter().enumerate() {
        for (byte, bits) in bytes.iter().enumerate() {
            for (i, sum) in bits.iter().enumerate() {
                let members: Vec<Signal> = sum.terms().map(|(signal, _)| signal).collect();
                b.exclusive(&format!("load/lane{lane}/byte{byte}/bit{i}"), &members);
            }
        }
    }
    loads
}

/// [`memory_state`] inside the scope of this module.
fn short_name(memory: Memory, byte: usize, lane: Option<usize>) -> String {
    memory_state(memory, byte, lane).trim_start_matches("memory/").to_owned()
}

fn add_bits(sums: &mut [Linear], bits: &[Signal]) {
    for (sum, &bit) in sums.iter_mut().zip(bits) {
        *sum += bit;
    }
}

/// Moves the loaded bytes to their place in the result and extends their sign.
fn extract(b: &mut Builder, decoded: &Decoded, address: &[Linear], bytes: &[Vec<Linear>], result: &mut [Linear]) {
    let width = |wanted: LoadWidth| decoded.load.iter().find(|(width, _)| *width == wanted).map(|(_, bit)| *bit);
    let sum = |widths: &[LoadWidth]| Linear::sum(widths.iter().filter_map(|&wanted| width(wanted)));
    let at = |b: &mut Builder, name: String, enable: Linear, byte: usize| {
        b.relu_bit(&name, at_byte(enable, address, 0, byte))
    };
    // An access that is not aligned gives nothing: its fault needs the result.
    let word = at(b, "word_at0".to_owned(), sum(&[LoadWidth::B32]), 0);
    let (any_byte, any_half) = (sum(&[LoadWidth::U8, LoadWidth::S8]), sum(&[LoadWidth::U16, LoadWidth::S16]));
    let byte_at: Vec<Signal> = (0..4).map(|i| at(b, format!("byte_at{i}"), any_byte.clone(), i)).collect();
    let half_at: Vec<Signal> = (0..2).map(|i| at(b, format!("half_at{i}"), any_half.clone(), 2 * i)).collect();
    let signed_byte: Vec<Signal> =
        (0..4).map(|i| at(b, format!("signed_byte_at{i}"), sum(&[LoadWidth::S8]), i)).collect();
    let signed_half: Vec<Signal> =
        (0..2).map(|i| at(b, format!("signed_half_at{i}"), sum(&[LoadWidth::S16]), 2 * i)).collect();
    let routes: [Vec<(usize, Linear)>; WORD_BYTES] = [
        vec![
            (0, byte_at[0] + half_at[0] + word),
            (1, byte_at[1].into()),
            (2, byte_at[2] + half_at[1]),
            (3, byte_at[3].into()),
        ],
        vec![(1, half_at[0] + word), (3, half_at[1].into())],
        vec![(2, word.into())],
        vec![(3, word.into())],
    ];
    // A byte that is read is the sum over three memories; the result is made clean later.
    let routed = |b: &mut Builder, name: &str, gates: Vec<Linear>| {
        let most = 3 * i64::try_from(gates.len()).unwrap_or(0) * 3;
        let terms = gates.into_iter().map(|gate| Product { coefficient: 1, gate, up: Linear::one() }).collect();
        b.products(name, 0..=most, terms)
    };
    for (to, from) in routes.iter().enumerate() {
        for i in 0..BYTE {
            let gates = from.iter().map(|(byte, route)| route.clone() + &bytes[*byte][i] - 1).collect();
            result[to * BYTE + i] += routed(b, &format!("byte{to}/bit{i}"), gates);
        }
    }
    let sign = BYTE - 1;
    let gates = signed_byte.iter().enumerate().map(|(i, &at)| at + bytes[i][sign].clone() - 1).collect();
    let byte_sign = routed(b, "byte_sign", gates);
    let gates = signed_half.iter().enumerate().map(|(i, &at)| at + bytes[2 * i + 1][sign].clone() - 1).collect();
    let half_sign = routed(b, "half_sign", gates);
    for (i, sum) in result.iter_mut().enumerate().skip(BYTE) {
        *sum += byte_sign;
        if i >= 2 * BYTE {
            *sum += half_sign;
        }
    }
}

/// Whether the access of a lane that executes one faults.
fn faults(
    b: &mut Builder,
    spec: &MachineSpec,
    decoded: &Decoded,
    lane: &LaneOperands,
    address: &[Linear],
) -> AccessFaults {
    let mut inside = Linear::zero();
    for memory in Memory::ALL {
        let window = Window::of(spec, memory);
        let name = format!("in_{memory:?}").to_lowercase();
        let words = usize::from(spec.window(memory).words);
        let missing = (1 << window.word.len()) - words;
        inside += if missing == 0 {
            b.relu_bit(&name, window.contains(decoded.access.into(), address))
        } else {
            // The words that are missing at the top have all their upper bits set.
            let same = missing.trailing_zeros() as usize;
            let upper = &address[window.word.start + same..window.word.end];
            let most = i64::try_from(upper.len()).unwrap_or(0) - 1;
            let outside = window.contains(decoded.access.into(), address).not();
            b.step(&name, -Linear::sum(upper.iter()) - outside * (2 * most) + most)
        };
    }
    let [word, half] = decoded.aligned;
    let word = b.step("word_misaligned", word * 2 + &address[0] + &address[1] - 3);
    let half = b.relu_bit("half_misaligned", half + &address[0] - 1);
    let executes = lane.executes + decoded.any(Opcode::accesses_memory);
    let out_of_bounds = b.step("out_of_bounds", executes.clone() - 2 - inside.clone() * 2);
    let misaligned = b.step("misaligned", executes + (word + half) + &inside - 4);
    b.exclusive("kind", &[out_of_bounds, misaligned]);
    AccessFaults { out_of_bounds, misaligned }
}
