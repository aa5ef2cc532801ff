//! What becomes of each tensor of a base.

use std::ops::Range;

use qwengpu_circuit::{CircuitTensors, ConstantPlan};

use super::base::Base;
use super::base_config::Mixer;
use super::error::MergeError;
use super::index::BaseTensor;
use super::plan::MergePlan;
use super::record::{TensorAction, TensorRecord};
use super::rows::{Change, Constant, Segment, WidenedRows};
use crate::dtype::Dtype;
use crate::names;

/// What a gate, or a write strength, of a machine token is: so low that its sigmoid is 0.
const CLOSED: f32 = -128.0;
/// The softplus of this is 0 in f32.
const NO_DECAY: f32 = -104.0;

/// A tensor of the merged model that comes from the base.
#[derive(Clone, Debug)]
pub(crate) struct WidenedTensor<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) rows: WidenedRows<'a>,
}

/// Makes tensors of the base into those of the merged model, and notes what it does.
#[derive(Debug)]
pub(crate) struct Widener<'a> {
    pub(crate) base: &'a Base,
    pub(crate) plan: &'a MergePlan,
    pub(crate) circuit: &'a CircuitTensors,
    pub(crate) constant: ConstantPlan,
    /// The machine's first constant channel.
    pub(crate) constant_channel: usize,
    /// Rows of the merged vocabulary.
    pub(crate) vocabulary_rows: usize,
    pub(crate) dtype: Dtype,
    pub(crate) records: Vec<TensorRecord>,
}

impl<'a> Widener<'a> {
    /// The embedding.
    pub(crate) fn embedding(&mut self) -> WidenedTensor<'a> {
        let (base, widening) = (self.base, &self.plan.widening);
        let words = base.config.vocab_size;
        let ballast = (widening.base..).zip(&widening.ballast);
        let constants = ballast.map(|(column, &value)| Constant { rows: 0..words, column, value }).collect();
        let shape = vec![self.vocabulary_rows, widening.hidden];
        let mut tensor =
            self.widen(&base.embedding, names::EMBED_TOKENS, shape, Change::Scale(widening.scale_exponent), constants);
        tensor.rows.circuit = Some((&self.circuit.embedding, words));
        tensor
    }

    /// The head, which is never the embedding any more.
    pub(crate) fn head(&mut self) -> WidenedTensor<'a> {
        let (base, widening) = (self.base, &self.plan.widening);
        let words = base.config.vocab_size;
        let flag = Constant { rows: words..self.vocabulary_rows, column: widening.base, value: -widening.flag_gain };
        let shape = vec![self.vocabulary_rows, widening.hidden];
        let source = base.head.as_ref().unwrap_or(&base.embedding);
        let mut tensor = self.widen(source, names::LM_HEAD, shape, Change::Scale(-widening.norm_exponent), vec![flag]);
        tensor.rows.circuit = Some((&self.circuit.lm_head, words));
        tensor
    }

    /// The norm in front of the head.
    pub(crate) fn final_norm(&mut self) -> WidenedTensor<'a> {
        self.norm(&self.base.final_norm, names::FINAL_NORM.to_owned())
    }

    /// A layer of the base at a place of the merged model.
    ///
    /// # Errors
    /// If what the guards depend on can't be read.
    pub(crate) fn layer(&mut self, number: usize, place: usize) -> Result<Vec<WidenedTensor<'a>>, MergeError> {
        let layer = &self.base.layers[number];
        let decay = match (layer.mixer, layer.get(names::DT_BIAS)) {
            (Mixer::Linear, Some(bias)) => no_decay(&self.base.index.read(bias)?),
            _ => 0.0,
        };
        Ok(layer.tensors.iter().map(|(part, source)| self.part(part, source, place, decay)).collect())
    }

    fn part(&mut self, part: &'static str, source: &'a BaseTensor, place: usize, decay: f32) -> WidenedTensor<'a> {
        let (plan, config) = (self.plan, &self.base.config);
        let (hidden, intermediate) = (plan.widening.hidden, plan.intermediate);
        let (heads, values) = (plan.value_heads, plan.value_heads * config.value_dim);
        let qkv = 2 * plan.key_heads * config.key_dim + values;
        let writes = Change::Scale(plan.widening.scale_exponent);
        let reads = Change::Scale(-plan.widening.norm_exponent);
        let own = || source.shape[0];
        let guard = |rows: Range<usize>, form: f32| Constant {
            rows,
            column: self.constant_channel,
            value: form * self.constant.bias(),
        };
        let mut guards = Vec::new();
        let (shape, change) = match part {
            names::INPUT_LAYERNORM | names::POST_ATTENTION_LAYERNORM => {
                return self.norm(source, names::in_layer(place, part));
            }
            names::GATE_PROJ | names::UP_PROJ => (vec![intermediate, hidden], reads),
            names::DOWN_PROJ => (vec![hidden, intermediate], writes),
            names::IN_PROJ_QKV => (vec![qkv, hidden], reads),
            names::IN_PROJ_Z => (vec![values, hidden], reads),
            names::IN_PROJ_B => {
                guards.push(guard(0..own(), CLOSED));
                (vec![heads, hidden], reads)
            }
            names::IN_PROJ_A => {
                guards.push(guard(0..own(), decay));
                (vec![heads, hidden], reads)
            }
            names::CONV1D => (vec![qkv, 1, config.conv_kernel], Change::Keep),
            names::A_LOG | names::DT_BIAS => (vec![heads], Change::Keep),
            names::OUT_PROJ => (vec![hidden, values], writes),
            names::Q_PROJ => {
                // For each head its query, then its gate.
                let dim = config.attention_head_dim;
                let gates = (0..config.attention_heads).map(|head| (2 * head + 1) * dim..2 * (head + 1) * dim);
                guards.extend(gates.map(|rows| guard(rows, CLOSED)));
                (vec![own(), hidden], reads)
            }
            names::K_PROJ | names::V_PROJ => (vec![own(), hidden], reads),
            names::O_PROJ => (vec![hidden, source.cols()], writes),
            _ => (source.shape.clone(), Change::Keep),
        };
        let mut tensor = self.widen(source, &names::in_layer(place, part), shape, change, guards);
        if matches!(part, names::IN_PROJ_QKV | names::CONV1D) {
            tensor.rows.segments = self.qkv_segments();
        }
        tensor
    }

    /// Queries, keys and values keep together; heads are added behind each.
    fn qkv_segments(&self) -> Vec<Segment> {
        let config = &self.base.config;
        let (old, new) = (config.key_heads * config.key_dim, self.plan.key_heads * config.key_dim);
        let values = config.value_rows();
        [(0, 0, old), (old, new, old), (2 * old, 2 * new, values)]
            .map(|(from, to, count)| Segment { from, to, count })
            .into()
    }

    fn norm(&mut self, source: &'a BaseTensor, name: String) -> WidenedTensor<'a> {
        let widening = &self.plan.widening;
        let change = if widening.is_exact() { Change::Keep } else { Change::Divide(widening.divisor) };
        self.widen(source, &name, vec![widening.hidden], change, Vec::new())
    }

    fn widen(
        &mut self,
        source: &'a BaseTensor,
        name: &str,
        shape: Vec<usize>,
        change: Change,
        constants: Vec<Constant>,
    ) -> WidenedTensor<'a> {
        let own = source.storage.lossless();
        let dtype = match change {
            // What is carried over stays as it is.
            Change::Keep => own,
            // A norm is small, and what is rounded to bf16 cannot be had back.
            Change::Divide(_) if own == Dtype::F32 => Dtype::F32,
            Change::Divide(_) | Change::Scale(_) => self.dtype,
        };
        let mut actions = Vec::new();
        if shape != source.shape {
            actions.push(TensorAction::Widened);
        }
        match change {
            Change::Scale(exponent) if exponent != 0 => actions.push(TensorAction::Scaled(exponent)),
            Change::Divide(_) => actions.push(TensorAction::NormRescaled),
            Change::Keep | Change::Scale(_) => {}
        }
        if constants.iter().any(|constant| constant.column == self.constant_channel) {
            actions.push(TensorAction::GuardAdded);
        }
        if dtype == Dtype::Bf16 && own == Dtype::F32 {
            actions.push(TensorAction::Rounded);
        } else if !source.storage.is_same(dtype) {
            actions.push(TensorAction::Recoded);
        }
        if actions.is_empty() {
            actions.push(TensorAction::Unchanged);
        }
        self.records.push(TensorRecord {
            name: source.name.clone(),
            shape: source.shape.clone(),
            target: Some(name.to_owned()),
            actions,
        });
        let rows = WidenedRows {
            index: &self.base.index,
            source,
            segments: vec![Segment { from: 0, to: 0, count: source.shape[0] }],
            change,
            constants,
            circuit: None,
        };
        WidenedTensor { name: name.to_owned(), shape, dtype, rows }
    }
}

/// The negative power of two that lets no head decay: with each bias it is at most [`NO_DECAY`].
fn no_decay(biases: &[f32]) -> f32 {
    let largest = biases.iter().copied().fold(0.0_f32, f32::max);
    let mut form = CLOSED;
    while form + largest > NO_DECAY {
        form *= 2.0;
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decays_are_shut_off() {
        for (bias, expected) in [(-300.0, -128.0), (0.0, -128.0), (24.0, -128.0), (24.5, -256.0), (1000.0, -2048.0)] {
            assert_eq!(no_decay(&[bias, -5.0]).to_bits(), f32::to_bits(expected), "{bias}");
        }
        assert_eq!(no_decay(&[]).to_bits(), CLOSED.to_bits());
        // Also beyond where f32 counts in ones.
        assert!(no_decay(&[1e30]) + 1e30 <= NO_DECAY);
    }
}
