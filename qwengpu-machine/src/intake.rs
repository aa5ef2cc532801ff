//! What the machine remembers of the records before this one: the word that is open, the bytes that arrived for it,
//! the warp that runs, the threads that exist.

use qwengpu_circuit::{Builder, Level, Linear, RowChoice, Signal, StateDescription};
use qwengpu_isa::MachineSpec;

use crate::inputs::{BYTE, Inputs, WORD, WORD_BYTES};

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
        let assembled = (0..usize::from(spec.lanes)).map(|lane| assembly(b, inputs, lane)).collect();

        let mut value: Vec<Linear> =
            [inputs.is_exec, inputs.is_rom, inputs.is_const, inputs.is_gmem].map(Linear::from).to_vec();
        value.extend(inputs.address.iter().map(|&bit| Linear::from(bit)));
        let reads = inputs.opens() + inputs.is_val + inputs.is_mem + inputs.is_pred;
        let open = latch(b, "open", inputs.opens(), value, reads);

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
            open_address: open[4..].to_vec(),
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

/// The bytes of one lane: a row for each byte position, which fills its own part of the word, so that reading all rows
/// gives the word so far. Opening a word empties it.
fn assembly(b: &mut Builder, inputs: &Inputs, lane: usize) -> Vec<Signal> {
    let mut write = vec![Linear::zero(); BROADCAST_ROWS];
    for (row, &position) in write.iter_mut().zip(&inputs.position) {
        *row = position + inputs.mask[lane] - 1;
    }
    write[WORD_BYTES] = inputs.opens();
    let value = (0..WORD).map(|i| inputs.position[i / BYTE] + inputs.byte[i % BYTE] - 1).collect();
    let description = StateDescription {
        rows: BROADCAST_ROWS,
        clear: Some(inputs.opens()),
        write: RowChoice::Rows(write),
        value,
        level: Level::When(inputs.opens()),
    };
    let query = RowChoice::Rows(vec![inputs.opens() + inputs.is_val; BROADCAST_ROWS]);
    b.state(&format!("assembly/lane{lane}"), description, vec![("read", query)]).remove(0)
}
