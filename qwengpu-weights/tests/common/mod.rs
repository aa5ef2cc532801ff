//! A small machine, compiled, and its emission.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use qwengpu_circuit::{
    Builder, CompileOptions, Compiled, Geometry, Level, Linear, Netlist, RowChoice, Signal, StateDescription, Token,
    compile,
};
use qwengpu_weights::{
    Base, EmitError, EmitOptions, MachineNeeds, Manifest, MergeError, MergeOptions, MergePlan, Source, emit, merge,
};

/// Rows of the machine's memory.
pub const ROWS: usize = 4;
/// Bits of a row.
pub const BITS: usize = 3;

/// A memory that is spoken row by row: after `<|read:r|>` the machine says `<|value:v|>`, the row's value, then
/// `<|read:r+1|>`, and after the last row `<|halt|>`. `<|write:r:v|>` is for prompts.
#[derive(Debug)]
pub struct Tiny {
    pub netlist: Netlist,
    pub compiled: Compiled,
}

/// Number of a write.
pub fn write(row: usize, value: usize) -> usize {
    (row << BITS) + value
}

/// Number of a read.
pub fn read(row: usize) -> usize {
    write(ROWS, 0) + row
}

/// Number of a spoken value.
pub fn value(value: usize) -> usize {
    read(ROWS) + value
}

/// Number of the halt token.
pub fn halt() -> usize {
    value(1 << BITS)
}

impl Tiny {
    /// The machine in layers of a hidden size.
    pub fn new(hidden: usize) -> Self {
        Self::with_geometry(&Geometry::new(hidden, 48, 1, 8))
    }

    /// The machine in layers of any sizes.
    pub fn with_geometry(geometry: &Geometry) -> Self {
        let netlist = tiny_netlist();
        let compiled = compile(&netlist, geometry, &CompileOptions::default()).expect("a machine that fits");
        Self { netlist, compiled }
    }

    /// Merges the machine with a base.
    pub fn merge(
        base: &Path,
        hidden: usize,
        dir: &Path,
        options: &MergeOptions,
    ) -> Result<(Self, Manifest), MergeError> {
        let base = Base::open(base)?;
        let plan = MergePlan::new(&base, hidden, MachineNeeds { heads: 1, intermediate: 48, layers: 8 })?;
        let tiny = Self::with_geometry(&plan.geometry());
        let manifest = merge(&base, &plan, &tiny.source(), dir, options, &mut |_| ControlFlow::Continue(()))?;
        Ok((tiny, manifest))
    }

    pub fn source(&self) -> Source<'_> {
        let machine = BTreeMap::from([("bits".to_owned(), BITS as u64), ("rows".to_owned(), ROWS as u64)]);
        let margins = BTreeMap::from([("smallest logit margin".to_owned(), 32.0)]);
        Source { netlist: &self.netlist, compiled: &self.compiled, halt_token: halt(), machine, margins }
    }

    pub fn emit(&self, dir: &Path, options: &EmitOptions) -> Result<Manifest, EmitError> {
        emit(&self.source(), dir, options, &mut |_| ControlFlow::Continue(()))
    }
}

/// Makes a merged checkpoint in f32 what it would be if a norm of the base had not been rescaled: that in front of the
/// base's first layer. The base must store its norms in f32.
pub fn undo_a_norm(dir: &Path, manifest: &Manifest) {
    let facts = manifest.merge.as_ref().expect("a base");
    let name = format!("model.layers.{}.input_layernorm.weight", facts.base_layers[0]);
    let path = dir.join("model.safetensors");
    let mut bytes = std::fs::read(&path).expect("the weights");
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))).expect("a length");
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let start = header[&name]["data_offsets"][0].as_u64().expect("an offset");
    let start = 8 + length + usize::try_from(start).expect("an offset");
    for weight in bytes[start..start + 4 * facts.base.hidden].as_chunks_mut::<4>().0 {
        #[expect(clippy::cast_possible_truncation, reason = "what a merge without this step would have written")]
        let unscaled = ((1.0 + f64::from(f32::from_le_bytes(*weight))) * facts.norm_divisor - 1.0) as f32;
        *weight = unscaled.to_le_bytes();
    }
    std::fs::write(&path, bytes).expect("written");
}

fn tiny_netlist() -> Netlist {
    let mut b = Builder::new();
    let write_row: Vec<Signal> = (0..ROWS).map(|row| b.input(&format!("write/row{row}"), 0..=1)).collect();
    let written = b.input_bits("write/value", BITS);
    let read_row: Vec<Signal> = (0..ROWS).map(|row| b.input(&format!("read/row{row}"), 0..=1)).collect();
    let is_value = b.input("is_value", 0..=1);
    let is_end = b.input("is_end", 0..=1);
    b.exclusive("kinds", &[&write_row[..], &read_row, &[is_value]].concat());

    let rows = |signals: &[Signal]| RowChoice::Rows(signals.iter().map(|&row| row.into()).collect());
    let memory = StateDescription {
        rows: ROWS,
        clear: None,
        write: rows(&write_row),
        value: written.iter().map(|&bit| bit.into()).collect(),
        level: Level::EveryRow,
    };
    let row = b.state("memory", memory, vec![("read", rows(&read_row))]).remove(0);
    let is_read = Linear::sum(read_row.iter().copied());
    let number = |bit: usize| Linear::sum((0..ROWS).filter(|row| row >> bit & 1 == 1).map(|row| read_row[row]));
    let cursor = StateDescription {
        rows: 1,
        clear: None,
        write: RowChoice::Rows(vec![is_read.clone()]),
        value: vec![number(0), number(1)],
        level: Level::EveryRow,
    };
    let last = b.state("cursor", cursor, vec![("last", rows(&[is_value]))]).remove(0);

    let mut answers = Vec::new();
    for (i, &bit) in row.iter().enumerate() {
        let zero = b.and(&format!("answer/zero{i}"), &[is_read.clone(), Linear::from(bit).not()]);
        answers.push([zero, bit]);
    }
    let literal =
        |row: usize, bit: usize| if row >> bit & 1 == 1 { last[bit].into() } else { Linear::from(last[bit]).not() };
    let after: Vec<Signal> = (0..ROWS)
        .map(|row| b.and(&format!("answer/after{row}"), &[is_value.into(), literal(row, 0), literal(row, 1)]))
        .collect();

    let mut token = |text: String, inputs: Vec<(Signal, i64)>, code: Vec<(Signal, i64)>| {
        b.token(Token { text, inputs, code });
    };
    for (row, &chosen) in write_row.iter().enumerate() {
        for value in 0..1 << BITS {
            let bits = (0..BITS).filter(|bit| value >> bit & 1 == 1).map(|bit| (written[bit], 1));
            let inputs = bits.chain([(chosen, 1), (is_end, 1)]).collect();
            token(format!("<|write:{row}:{value}|>"), inputs, Vec::new());
        }
    }
    for (row, &chosen) in read_row.iter().enumerate() {
        let code = row.checked_sub(1).map(|before| (after[before], 1));
        token(format!("<|read:{row}|>"), vec![(chosen, 1)], code.into_iter().collect());
    }
    for value in 0..1_usize << BITS {
        let code = answers.iter().enumerate().map(|(i, answer)| (answer[value >> i & 1], 1)).collect();
        token(format!("<|value:{value}|>"), vec![(is_value, 1)], code);
    }
    token("<|halt|>".to_owned(), vec![(is_end, 1)], vec![(after[ROWS - 1], 1), (is_end, 1)]);
    b.finish()
}
