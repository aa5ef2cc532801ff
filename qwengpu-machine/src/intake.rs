//! What the machine remembers of the records before this one: the word that is open, the bytes that arrived for it,
//! the instruction that runs, its lanes and its warp, the threads that exist.

use qwengpu_circuit::{Builder, Level, Linear, RowChoice, Signal, StateDescription};
use qwengpu_isa::MachineSpec;

use crate::decode::{equals, gated};
use crate::inputs::{AHEAD, BYTE, DISTANCE_BITS, Inputs, WORD, WORD_BYTES};

/// Rows of a state that is read as a whole: the written rows, the row of the level, and unwritten ones up to a power of
/// four.
pub(crate) const BROADCAST_ROWS: usize = 16;

/// Signals read from the first states.
#[derive(Debug)]
pub(crate) struct Intake {
    /// The open word is the instruction that runs.
    pub(crate) open_exec: Signal,
    /// The open word is program memory.
    pub(crate) open_rom: Signal,
    /// The open word is in the constant bank.
    pub(crate) open_const: Signal,
    /// The open word is in global memory.
    pub(crate) open_gmem: Signal,
    /// Its address.
    pub(crate) open_address: Vec<Signal>,
    /// The address behind it, if it is program memory.
    pub(crate) open_ahead: Vec<Signal>,
    /// The instruction that starts; else 0.
    pub(crate) pc: Vec<Signal>,
    /// The one behind the instruction whose result is told; else 0.
    pub(crate) behind_told: Vec<Signal>,
    /// The one behind it, if an instruction starts; else 0.
    pub(crate) next_pc: Vec<Signal>,
    /// The active lanes, if an instruction starts; else 0.
    pub(crate) active: Vec<Signal>,
    /// How many instructions the one that runs is behind the last EXEC.
    pub(crate) distance: Vec<Signal>,
    /// How many it is behind the last one whose distance was told: 0 to 3, as two bits.
    pub(crate) since_told: [Signal; 2],
    /// The bytes that arrived since it was opened, by lane and bit.
    pub(crate) assembled: Vec<Vec<Signal>>,
    /// The warp that runs.
    pub(crate) warp: Vec<Signal>,
    /// The same, one-hot.
    pub(crate) warp_one_hot: Vec<Signal>,
    /// Whether a thread exists, at `warp * lanes + lane`.
    pub(crate) exists: Vec<Signal>,
}

impl Intake {
    /// Builds the states.
    pub(crate) fn build(b: &mut Builder, spec: &MachineSpec, inputs: &Inputs) -> Self {
        let assembled: Vec<Vec<Signal>> = (0..usize::from(spec.lanes)).map(|lane| assembly(b, inputs, lane)).collect();

        let reads = Linear::sum([inputs.starts, inputs.is_lone_result, inputs.is_rom, inputs.is_const, inputs.is_gmem]);
        let tells = inputs.starts + inputs.is_piece;
        let mut value: Vec<Signal> = vec![inputs.is_exec, inputs.is_rom, inputs.is_const, inputs.is_gmem];
        let kinds = value.len();
        value.extend(&inputs.address);
        value.extend(&inputs.mask);
        value.extend(inputs.ahead.iter().flatten());
        let value = value.into_iter().map(Linear::from).collect();
        let mut open = latch(b, "open", inputs.opens(), value, reads);
        let mut rest = open.split_off(kinds);
        let mut latched_mask = rest.split_off(inputs.address.len());
        let open_address = rest;
        let ahead: Vec<Vec<Signal>> =
            latched_mask.split_off(inputs.mask.len()).chunks(inputs.ahead[0].len()).map(<[Signal]>::to_vec).collect();
        let [odd, even] = [inputs.parity[0], inputs.parity[1]];
        let names = inputs.opens() + inputs.tells_distance();
        let value = inputs.distance.iter().map(|&told| told.into()).collect();
        let told = latch(b, "distance/told", names.clone(), value, tells.clone());
        b.exclusive("distance/told", &told);
        // The last instruction that started since: an odd number behind it; and whether one was two behind.
        let low = latch(b, "distance/low", inputs.opens() + inputs.is_next, vec![odd.into()], tells.clone())[0];
        let high = latch(b, "distance/high", names + even, vec![even.into()], tells.clone())[0];
        let place = Place { told, since: [low, high] };
        let [pc, next_pc, behind_told] = program_counters(b, inputs, &open_address, &ahead, &place);
        let distance = (0..DISTANCE_BITS)
            .map(|bit| {
                let counts = (0..AHEAD).filter(|count| count >> bit & 1 == 1);
                let gates = counts.flat_map(|count| place.is_at(count));
                gated(b, &format!("distance/bit{bit}"), gates.map(|at| at + &tells).collect())
            })
            .collect();
        let active = latched_mask
            .iter()
            .zip(&inputs.mask)
            .enumerate()
            .map(|(lane, (&latched, &named))| {
                let gates = vec![named + inputs.is_exec - 1, latched + inputs.is_next - 1];
                gated(b, &format!("active/lane{lane}"), gates)
            })
            .collect();

        let value = inputs.warp.iter().chain(&inputs.warp_one_hot).map(|&bit| Linear::from(bit)).collect();
        let reads = Linear::sum([inputs.is_exec, inputs.is_val, inputs.is_mem, inputs.is_pred, inputs.is_warp]);
        let mut warp = latch(b, "running_warp", inputs.is_warp.into(), value, reads);
        let warp_one_hot = warp.split_off(inputs.warp.len());
        b.exclusive("running_warp/one_hot", &warp_one_hot);

        let value = inputs.exists.iter().map(|&bit| Linear::from(bit)).collect();
        let exists = latch(b, "threads", inputs.is_threads.into(), value, inputs.decides());
        Self {
            open_exec: open[0],
            open_rom: open[1],
            open_const: open[2],
            open_gmem: open[3],
            open_address,
            open_ahead: ahead[0].clone(),
            pc,
            behind_told,
            next_pc,
            active,
            distance,
            since_told: place.since,
            assembled,
            warp,
            warp_one_hot,
            exists,
        }
    }
}

/// A state of one row.
pub(crate) fn latch(b: &mut Builder, name: &str, write: Linear, value: Vec<Linear>, read: Linear) -> Vec<Signal> {
    let description =
        StateDescription { rows: 1, clear: None, write: RowChoice::Rows(vec![write]), value, level: Level::EveryRow };
    b.state(name, description, vec![("read", RowChoice::Rows(vec![read]))]).remove(0)
}

/// The instruction that starts, the one behind it, and the one behind that whose result is told: of the program counters
/// that the last EXEC has named, those at the distance.
fn program_counters(
    b: &mut Builder,
    inputs: &Inputs,
    address: &[Signal],
    ahead: &[Vec<Signal>],
    place: &Place,
) -> [Vec<Signal>; 3] {
    // By distance: the instruction there, and the one behind it.
    let here = |count: usize, i: usize| if count == 0 { address[i] } else { ahead[count - 1][i] };
    let next = |count: usize, i: usize| ahead[count][i];
    let mut choose = |name: &str, gate: &dyn Fn(usize, usize) -> Vec<Linear>| -> Vec<Signal> {
        let gates = |i| {
            let at_once = |count| place.is_at(count).into_iter().map(move |at| (count, at));
            (0..AHEAD)
                .flat_map(at_once)
                .flat_map(|(count, at)| gate(count, i).into_iter().map(move |gate| gate + &at - 1))
                .collect()
        };
        (0..ahead[0].len()).map(|i| gated(b, &format!("{name}/bit{i}"), gates(i))).collect()
    };
    [
        choose("pc", &|count, i| vec![here(count, i) + inputs.starts]),
        choose("next_pc", &|count, i| vec![next(count, i) + inputs.starts]),
        choose("behind_told", &|count, i| {
            vec![here(count, i) + inputs.is_next, next(count, i) + inputs.is_lone_result]
        }),
    ]
}

/// How far the instruction that runs is behind the last EXEC.
struct Place {
    /// The distance that was told last, one-hot from 1.
    told: Vec<Signal>,
    /// The number of instructions since.
    since: [Signal; 2],
}

impl Place {
    /// For each way to be at a distance, a form that is 0 there, and else less.
    fn is_at(&self, distance: usize) -> Vec<Linear> {
        let told = |distance: usize| match distance.checked_sub(1) {
            Some(index) => self.told[index] - 1,
            None => -Linear::sum(self.told.iter().copied()),
        };
        let most = distance.min(usize::from(qwengpu_isa::Place::MAX_SINCE));
        (0..=most).map(|since| told(distance - since) + equals(&self.since, since)).collect()
    }
}

/// The bytes of one lane: a row for each byte position, which fills its own part of the word, so that reading all rows
/// gives the word so far. The first byte of a word empties it, and so does opening one in a prompt.
fn assembly(b: &mut Builder, inputs: &Inputs, lane: usize) -> Vec<Signal> {
    let mut write: Vec<Linear> = inputs.position.iter().map(|&position| position + inputs.mask[lane] - 1).collect();
    write[0] = inputs.begins[lane].into();
    let value = (0..WORD).map(|i| inputs.position[i / BYTE] + inputs.bytes[lane][i % BYTE] - 1).collect();
    let description = StateDescription {
        rows: WORD_BYTES,
        clear: Some(inputs.begins[lane].into()),
        write: RowChoice::Rows(write),
        value,
        level: Level::When(inputs.begins[lane].into()),
    };
    let query = RowChoice::Rows(vec![inputs.is_val.into(); WORD_BYTES]);
    b.state(&format!("assembly/lane{lane}"), description, vec![("read", query)]).remove(0)
}
