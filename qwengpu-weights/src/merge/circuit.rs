//! Compiled layers in a model with several value heads for each key head.

use qwengpu_circuit::{CircuitTensors, Geometry, LayerTensors, NO_DECAY, SparseMatrix, StateLocation};

/// The machine's tensors with `group` value heads for each key head: head `j` of the machine becomes value head
/// `j * group`; the heads between are zero, and what they keep is zero for ever, so that nobody has to let it decay.
pub(crate) fn spread_heads(circuit: &CircuitTensors, group: usize) -> CircuitTensors {
    let old = &circuit.geometry;
    let geometry = Geometry { value_heads: old.key_heads * group, ..old.clone() };
    let layers = circuit.layers.iter().map(|layer| spread_layer(layer, old, &geometry, group)).collect();
    CircuitTensors { geometry, layers, ..circuit.clone() }
}

fn spread_layer(layer: &LayerTensors, old: &Geometry, new: &Geometry, group: usize) -> LayerTensors {
    let keys = 2 * old.key_heads * old.key_dim;
    let value = move |row: usize| row / old.value_dim * group * old.value_dim + row % old.value_dim;
    let qkv = move |row: usize| if row < keys { row } else { keys + value(row - keys) };
    let head = move |row: usize| row * group;
    let spread = |values: &[f32], between: f32| {
        let mut spread = vec![between; values.len() * group];
        values.iter().enumerate().for_each(|(number, &value)| spread[head(number)] = value);
        spread
    };
    let mut conv1d = vec![[0.0, 0.0, 0.0, 1.0]; new.qkv_rows()];
    layer.conv1d.iter().enumerate().for_each(|(row, &taps)| conv1d[qkv(row)] = taps);
    LayerTensors {
        in_proj_qkv: place_rows(&layer.in_proj_qkv, new.qkv_rows(), qkv),
        in_proj_z: place_rows(&layer.in_proj_z, new.value_rows(), value),
        in_proj_b: place_rows(&layer.in_proj_b, new.value_heads, head),
        in_proj_a: place_rows(&layer.in_proj_a, new.value_heads, head),
        conv1d,
        a_log: spread(&layer.a_log, NO_DECAY),
        dt_bias: spread(&layer.dt_bias, 0.0),
        out_proj: place_cols(&layer.out_proj, new.value_rows(), value),
        ..layer.clone()
    }
}

/// Positions in tensors of every geometry fit 32 bits.
fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// `place` is increasing, so entries stay in order.
fn place_rows(matrix: &SparseMatrix, rows: usize, place: impl Fn(usize) -> usize) -> SparseMatrix {
    let entries = matrix.entries.iter().map(|&(row, col, value)| (index(place(row as usize)), col, value));
    SparseMatrix { rows, cols: matrix.cols, entries: entries.collect() }
}

fn place_cols(matrix: &SparseMatrix, cols: usize, place: impl Fn(usize) -> usize) -> SparseMatrix {
    let entries = matrix.entries.iter().map(|&(row, col, value)| (row, index(place(col as usize)), value));
    SparseMatrix { rows: matrix.rows, cols, entries: entries.collect() }
}

/// Where a state lies in the merged model.
pub(crate) fn spread_location(location: &StateLocation, group: usize, layers: &[usize]) -> StateLocation {
    let heads = location.heads.iter().map(|bank| bank.iter().map(|head| head * group).collect()).collect();
    let layer = layers.get(location.layer).copied().unwrap_or(location.layer);
    StateLocation { layer, heads, ..location.clone() }
}
