//! Placement to tensors.
//!
//! A signal of value `n` is `n` in its channel and `n * 2^-m` behind a norm, so a form becomes a row of weights times
//! `2^m`; its constant is a weight on a constant channel. Scales, all powers of two:
//!
//! | tensor | row | why |
//! |---|---|---|
//! | `gate_proj` | 128 gate | `silu(128 n)` is `128 n` for integers above 0 and 0 for others |
//! | `up_proj` | up | |
//! | `down_proj` | down / 256 | 128 of the gate, and 2 because `down` counts halves |
//! | key, query | 128 (2 form - 1) | 128 for a row that takes part, at most -128 for others |
//! | value | 128 form; two last dims `2^22` level | the norm of a row that is read is the level's: `2^22 / 8` |
//! | `in_proj_z` | 128 | `silu(128) = 128` |
//! | `out_proj` | 32 | `128 / 2^22 * 8 * 128 * 32 = 1` |
//! | `in_proj_b` | 128 | `sigmoid(128) = 1` |
//! | `in_proj_a` | 256 clear, with `dt_bias = -128` | `softplus(128) = 128`, `exp(-128) = 0`; `softplus(-128) = 0` |
//!
//! Every constant comes from the constant channel and from `dt_bias`, so that a language token, which has zeros in all
//! machine channels, makes every gate, key and output gate 0.

use crate::error::CompileError;
use crate::geometry::{Geometry, LEVEL_DIMS};
use crate::ir::{Level, Netlist, Operation, Signal};
use crate::linear::Linear;
use crate::neurons::Expansion;
use crate::place::{PlacedHead, Placement};
use crate::tensors::{CircuitTensors, LayerTensors, NO_DECAY, STORED_BIT, SparseMatrix};

/// Gain in front of a silu that makes it an exact relu of integers.
const GAIN: f32 = 128.0;
/// What the level dims of a row hold.
const LEVEL: f32 = 4_194_304.0;
/// `dt_bias` of a head that can be cleared.
const CLEAR_BIAS: f32 = -128.0;
/// `in_proj_a` row of the clear form.
const CLEAR_GAIN: f32 = 256.0;
/// `out_proj` weight that turns what the gated norm leaves of a bit into 1.
const READ_GAIN: f32 = 32.0;

/// Whether an integer has at most 8 significant bits, as bf16 has.
pub(crate) fn is_bf16(value: i64) -> bool {
    let magnitude = value.unsigned_abs();
    magnitude == 0 || magnitude >> magnitude.trailing_zeros() < 256
}

/// Splits a constant in a part for the first constant channel and one for the second (or for the channel of ones),
/// each with at most 8 significant bits.
pub(crate) fn split_constant(constant: i64) -> (i64, i64) {
    if is_bf16(constant) {
        return (constant, 0);
    }
    let high = (constant + 128).div_euclid(256) * 256;
    (high, constant - high)
}

#[expect(clippy::cast_precision_loss, reason = "callers have checked that the integer has few bits")]
fn float(value: i64) -> f32 {
    value as f32
}

pub(crate) struct Lowering<'a> {
    pub(crate) netlist: &'a Netlist,
    pub(crate) geometry: &'a Geometry,
    pub(crate) expansion: &'a Expansion,
    pub(crate) placement: &'a Placement,
    pub(crate) logit_unit: f32,
}

impl Lowering<'_> {
    pub(crate) fn lower(&self) -> Result<CircuitTensors, CompileError> {
        let hidden = self.geometry.hidden;
        Ok(CircuitTensors {
            geometry: self.geometry.clone(),
            num_layers: self.placement.layers.len(),
            hidden,
            embedding: self.embedding()?,
            lm_head: self.lm_head()?,
            final_norm: vec![0.0; hidden],
            logit_unit: self.logit_unit,
            layers: (0..self.placement.layers.len()).map(|layer| self.layer(layer)).collect::<Result<_, _>>()?,
        })
    }

    fn channel(&self, signal: Signal) -> Option<usize> {
        self.placement.channels[signal.index()]
    }

    fn embedding(&self) -> Result<SparseMatrix, CompileError> {
        let mut matrix = SparseMatrix::zeros(self.netlist.tokens().len(), self.geometry.hidden);
        for (row, token) in self.netlist.tokens().iter().enumerate() {
            for channel in self.placement.constant_channels.clone() {
                matrix.push(row, channel, crate::geometry::ConstantPlan::VALUE);
            }
            if let Some(channel) = self.placement.one_channel {
                matrix.push(row, channel, 1.0);
            }
            for &(signal, value) in &token.inputs {
                if let Some(channel) = self.channel(signal) {
                    matrix.push(
                        row,
                        channel,
                        weight(value, || format!("input {} of token {}", self.netlist.name(signal), token.text))?,
                    );
                }
            }
        }
        Ok(matrix.normalised())
    }

    fn lm_head(&self) -> Result<SparseMatrix, CompileError> {
        let scale = self.placement.constant.unit() * self.logit_unit;
        let mut matrix = SparseMatrix::zeros(self.netlist.tokens().len(), self.geometry.hidden);
        for (row, token) in self.netlist.tokens().iter().enumerate() {
            for &(signal, value) in &token.code {
                if let Some(channel) = self.channel(signal) {
                    let value =
                        weight(value, || format!("code {} of token {}", self.netlist.name(signal), token.text))?;
                    matrix.push(row, channel, value * scale);
                }
            }
        }
        Ok(matrix.normalised())
    }

    /// Adds a row that computes `scale * form`.
    fn form(
        &self,
        matrix: &mut SparseMatrix,
        row: usize,
        form: &Linear,
        scale: f32,
        what: &str,
    ) -> Result<(), CompileError> {
        let constant = self.placement.constant;
        for (signal, coefficient) in form.terms() {
            // A shared channel holds the sum, and all of its signals have the same coefficient.
            if self.placement.class[signal.index()] != signal {
                continue;
            }
            if let Some(channel) = self.channel(signal) {
                let value = weight(coefficient, || format!("{what}: coefficient of {}", self.netlist.name(signal)))?;
                matrix.push(row, channel, value * scale * constant.unit());
            }
        }
        let (high, low) = split_constant(form.constant());
        let value = weight(high, || format!("{what}: constant"))?;
        matrix.push(row, self.placement.constant_channels.start, value * scale * constant.bias());
        if low != 0 {
            let value = weight(low, || format!("{what}: constant"))?;
            match self.placement.one_channel {
                Some(channel) => matrix.push(row, channel, value * scale * constant.unit()),
                None => matrix.push(row, self.placement.constant_channels.start + 1, value * scale * constant.bias()),
            }
        }
        Ok(())
    }

    fn layer(&self, number: usize) -> Result<LayerTensors, CompileError> {
        let geometry = self.geometry;
        let (hidden, heads, values) = (geometry.hidden, geometry.value_heads, geometry.value_rows());
        let mut layer = LayerTensors {
            in_proj_qkv: SparseMatrix::zeros(geometry.qkv_rows(), hidden),
            in_proj_z: SparseMatrix::zeros(values, hidden),
            in_proj_b: SparseMatrix::zeros(heads, hidden),
            in_proj_a: SparseMatrix::zeros(heads, hidden),
            conv1d: vec![[0.0, 0.0, 0.0, 1.0]; geometry.qkv_rows()],
            a_log: vec![NO_DECAY; heads],
            dt_bias: vec![0.0; heads],
            norm: vec![1.0; geometry.value_dim],
            out_proj: SparseMatrix::zeros(hidden, values),
            gate_proj: SparseMatrix::zeros(geometry.intermediate, hidden),
            up_proj: SparseMatrix::zeros(geometry.intermediate, hidden),
            down_proj: SparseMatrix::zeros(hidden, geometry.intermediate),
        };
        let placed = &self.placement.layers[number];
        for (head, place) in placed.heads.iter().enumerate() {
            self.head(&mut layer, head, *place)?;
        }
        for (row, neuron) in placed.neurons.iter().enumerate() {
            let what = || self.placement.neuron_name(self.netlist, number, row).unwrap_or_default();
            let forms = self.expansion.neuron(neuron.id);
            let name = what();
            self.form(&mut layer.gate_proj, row, &forms.gate, GAIN, &name)?;
            self.form(&mut layer.up_proj, row, &forms.up, 1.0, &name)?;
            for (&channel, &down) in &neuron.down {
                let value = weight(down, || format!("{name}: down weight"))?;
                layer.down_proj.push(channel, row, value / (2.0 * GAIN));
            }
        }
        layer.in_proj_qkv = layer.in_proj_qkv.normalised();
        layer.in_proj_z = layer.in_proj_z.normalised();
        layer.in_proj_b = layer.in_proj_b.normalised();
        layer.in_proj_a = layer.in_proj_a.normalised();
        layer.out_proj = layer.out_proj.normalised();
        layer.gate_proj = layer.gate_proj.normalised();
        layer.up_proj = layer.up_proj.normalised();
        layer.down_proj = layer.down_proj.normalised();
        Ok(layer)
    }

    fn head(&self, layer: &mut LayerTensors, head: usize, place: PlacedHead) -> Result<(), CompileError> {
        let geometry = self.geometry;
        let PlacedHead { operation, port, bank, slice } = place;
        let Operation::State(state) = &self.netlist.operations()[operation] else { return Ok(()) };
        let name = state.name.as_str();
        let query_base = head * geometry.key_dim;
        let key_base = (geometry.key_heads + head) * geometry.key_dim;
        let value_base = 2 * geometry.key_heads * geometry.key_dim + head * geometry.value_dim;
        let read = state.reads.get(port);
        let constant = Linear::one();
        for row in bank * geometry.key_dim..state.rows.min((bank + 1) * geometry.key_dim) {
            let dim = row - bank * geometry.key_dim;
            let takes_part = |form: Linear| form * 2 - 1;
            self.form(&mut layer.in_proj_qkv, key_base + dim, &takes_part(state.write.row_form(row)), GAIN, name)?;
            if let Some(read) = read {
                self.form(&mut layer.in_proj_qkv, query_base + dim, &takes_part(read.query.row_form(row)), GAIN, name)?;
            }
        }
        let first = slice * geometry.bits_per_head();
        for (dim, value) in state.value.iter().skip(first).take(geometry.bits_per_head()).enumerate() {
            self.form(&mut layer.in_proj_qkv, value_base + dim, value, STORED_BIT, name)?;
            let output = read.and_then(|read| read.outputs.get(first + dim));
            if let Some(channel) = output.and_then(|&output| self.channel(output)) {
                let gate = head * geometry.value_dim + dim;
                self.form(&mut layer.in_proj_z, gate, &constant, GAIN, name)?;
                layer.out_proj.push(channel, gate, READ_GAIN);
            }
        }
        let level = match &state.level {
            Level::EveryRow => &constant,
            Level::When(form) => form,
        };
        for dim in geometry.value_dim - LEVEL_DIMS..geometry.value_dim {
            self.form(&mut layer.in_proj_qkv, value_base + dim, level, LEVEL, name)?;
        }
        self.form(&mut layer.in_proj_b, head, &constant, GAIN, name)?;
        if let Some(clear) = &state.clear {
            layer.a_log[head] = 0.0;
            layer.dt_bias[head] = CLEAR_BIAS;
            self.form(&mut layer.in_proj_a, head, clear, CLEAR_GAIN, name)?;
        }
        Ok(())
    }
}

/// An integer as a weight that bf16 can hold.
fn weight(value: i64, what: impl Fn() -> String) -> Result<f32, CompileError> {
    if is_bf16(value) { Ok(float(value)) } else { Err(CompileError::Weight { what: what(), value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_bits() {
        for value in [0, 1, 255, 256, -255, 510, 1 << 40, -(129 << 20)] {
            assert!(is_bf16(value), "{value}");
        }
        for value in [257, -257, 511, 1025] {
            assert!(!is_bf16(value), "{value}");
        }
    }

    #[test]
    fn constants_split_in_two_weights() {
        for constant in -70_000_i64..70_000 {
            let (high, low) = split_constant(constant);
            assert_eq!(high + low, constant);
            assert!(is_bf16(low));
            assert!(is_bf16(high) || constant.abs() > 65_000, "{constant}");
        }
    }
}
