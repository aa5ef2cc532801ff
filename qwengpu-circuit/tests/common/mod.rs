//! A plain forward pass over [`CircuitTensors`], written from the description of the model alone, to check the
//! compiler against: every token by itself, as in decoding.

use qwengpu_circuit::{CircuitTensors, Compiled, Evaluator, Netlist, SparseMatrix};

/// Rounding of activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    Bf16,
}

impl Dtype {
    pub fn round(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::Bf16 => {
                let bits = value.to_bits();
                f32::from_bits(bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
            }
        }
    }
}

/// The residual stream around one layer's MLP.
pub struct Trace {
    pub mixed: Vec<f32>,
    pub out: Vec<f32>,
}

pub struct Simulator<'a> {
    tensors: &'a CircuitTensors,
    dtype: Dtype,
    /// By layer: `[head, row, value dim]`.
    pub states: Vec<Vec<f32>>,
    /// By layer: the last three outputs of `in_proj_qkv`, oldest first.
    conv: Vec<[Vec<f32>; 3]>,
}

const DIM: usize = 128;

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

impl<'a> Simulator<'a> {
    pub fn new(tensors: &'a CircuitTensors, dtype: Dtype) -> Self {
        let heads = tensors.geometry.value_heads;
        let rows = tensors.geometry.qkv_rows();
        Self {
            tensors,
            dtype,
            states: vec![vec![0.0; heads * DIM * DIM]; tensors.num_layers],
            conv: (0..tensors.num_layers).map(|_| std::array::from_fn(|_| vec![0.0; rows])).collect(),
        }
    }

    fn linear(&self, matrix: &SparseMatrix, x: &[f32]) -> Vec<f32> {
        assert_eq!(matrix.cols, x.len());
        let mut y = vec![0.0_f32; matrix.rows];
        for &(row, col, value) in &matrix.entries {
            y[row as usize] += value * x[col as usize];
        }
        y.iter().map(|&value| self.dtype.round(value)).collect()
    }

    fn norm(&self, x: &[f32], weight: impl Fn(usize) -> f32) -> Vec<f32> {
        let mean = x.iter().map(|value| value * value).sum::<f32>() / x.len() as f32;
        let scale = 1.0 / (mean + 1e-6).sqrt();
        x.iter().enumerate().map(|(i, value)| self.dtype.round(value * scale * (1.0 + weight(i)))).collect()
    }

    fn add(&self, x: &mut [f32], y: &[f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x = self.dtype.round(*x + y);
        }
    }

    /// Runs a token, or an embedding row of zeros for `None`: a language token as the compiled channels see it.
    pub fn run(&mut self, token: Option<usize>) -> Vec<Trace> {
        let tensors = self.tensors;
        let mut h = vec![0.0; tensors.hidden];
        for &(row, col, value) in &tensors.embedding.entries {
            if Some(row as usize) == token {
                h[col as usize] = value;
            }
        }
        let mut traces = Vec::new();
        for number in 0..tensors.num_layers {
            let mixed = self.mixer(number, &h);
            self.add(&mut h, &mixed);
            let before = h.clone();
            let layer = &tensors.layers[number];
            let x = self.norm(&h, |_| 0.0);
            let gate = self.linear(&layer.gate_proj, &x);
            let up = self.linear(&layer.up_proj, &x);
            let product: Vec<f32> =
                gate.iter().zip(&up).map(|(&gate, up)| self.dtype.round(self.dtype.round(silu(gate)) * up)).collect();
            let y = self.linear(&layer.down_proj, &product);
            self.add(&mut h, &y);
            traces.push(Trace { mixed: before, out: h.clone() });
        }
        traces
    }

    fn mixer(&mut self, number: usize, h: &[f32]) -> Vec<f32> {
        let layer = &self.tensors.layers[number];
        let geometry = &self.tensors.geometry;
        let x = self.norm(h, |_| 0.0);
        let raw = self.linear(&layer.in_proj_qkv, &x);
        let z = self.linear(&layer.in_proj_z, &x);
        let b = self.linear(&layer.in_proj_b, &x);
        let a = self.linear(&layer.in_proj_a, &x);
        let qkv: Vec<f32> = (0..raw.len())
            .map(|i| {
                let taps = layer.conv1d[i];
                let history = &self.conv[number];
                let sum =
                    taps[0] * history[0][i] + taps[1] * history[1][i] + taps[2] * history[2][i] + taps[3] * raw[i];
                self.dtype.round(silu(self.dtype.round(sum)))
            })
            .collect();
        self.conv[number].rotate_left(1);
        self.conv[number][2] = raw;
        let mut joined = vec![0.0; geometry.value_rows()];
        for head in 0..geometry.value_heads {
            let normalise = |from: usize| -> Vec<f32> {
                let part = &qkv[from..from + DIM];
                let scale = 1.0 / (part.iter().map(|value| value * value).sum::<f32>() + 1e-6).sqrt();
                part.iter().map(|value| value * scale).collect()
            };
            let q: Vec<f32> = normalise(head * DIM).iter().map(|value| value * (DIM as f32).powf(-0.5)).collect();
            let k = normalise((geometry.key_heads + head) * DIM);
            let value = &qkv[(2 * geometry.key_heads + head) * DIM..][..DIM];
            let beta = self.dtype.round(1.0 / (1.0 + (-b[head]).exp()));
            let g = -layer.a_log[head].exp() * softplus(a[head] + layer.dt_bias[head]);
            let decay = g.exp();
            let state = &mut self.states[number][head * DIM * DIM..][..DIM * DIM];
            state.iter_mut().for_each(|element| *element *= decay);
            let mut o = vec![0.0_f32; DIM];
            for dim in 0..DIM {
                let old: f32 = (0..DIM).map(|row| k[row] * state[row * DIM + dim]).sum();
                let delta = beta * (value[dim] - old);
                for row in 0..DIM {
                    state[row * DIM + dim] += k[row] * delta;
                }
                o[dim] = (0..DIM).map(|row| q[row] * state[row * DIM + dim]).sum();
            }
            let o: Vec<f32> = o.iter().map(|&value| self.dtype.round(value)).collect();
            let scale = 1.0 / (o.iter().map(|value| value * value).sum::<f32>() / DIM as f32 + 1e-6).sqrt();
            for dim in 0..DIM {
                let n = self.dtype.round(layer.norm[dim] * self.dtype.round(o[dim] * scale));
                joined[head * DIM + dim] = self.dtype.round(n * silu(z[head * DIM + dim]));
            }
        }
        self.linear(&layer.out_proj, &joined)
    }

    /// Logits of the machine's tokens.
    pub fn logits(&self, h: &[f32]) -> Vec<f32> {
        let x = self.norm(h, |i| self.tensors.final_norm[i]);
        self.linear(&self.tensors.lm_head, &x)
    }
}

/// Largest distance from an integer that is let pass in f32; bf16 must be exact.
pub const TOLERANCE: f32 = 1e-3;

/// Runs tokens through the evaluator and the weights in a dtype and compares every channel of every layer, the choice
/// of the next token where there is one, and the states at the end. Returns the evaluator's choices.
pub fn check_dtype(netlist: &Netlist, compiled: &Compiled, tokens: &[usize], dtype: Dtype) -> Vec<Option<usize>> {
    let tolerance = if dtype == Dtype::F32 { TOLERANCE } else { 0.0 };
    let mut evaluator = Evaluator::new(netlist);
    let mut simulator = Simulator::new(&compiled.tensors, dtype);
    let mut choices = Vec::new();
    for (position, &token) in tokens.iter().enumerate() {
        evaluator.run(token).expect("the netlist keeps its own rules");
        let traces = simulator.run(Some(token));
        let last = traces.last().expect("a layer");
        for (channel, occupants) in compiled.placement.occupants.iter().enumerate() {
            for occupant in occupants {
                let want: i64 = occupant.signals.iter().map(|&signal| evaluator.value(signal)).sum();
                let got = match occupant.erased {
                    Some(layer) => traces[layer].mixed[channel],
                    None => last.out[channel],
                };
                let names: Vec<&str> = occupant.signals.iter().map(|&signal| netlist.name(signal)).collect();
                assert!(
                    (got - want as f32).abs() <= tolerance,
                    "{dtype:?} position {position} token {token}: {names:?} is {got}, expected {want}"
                );
            }
            if occupants.last().is_some_and(|occupant| occupant.erased.is_some()) {
                assert!(last.out[channel].abs() <= tolerance, "{dtype:?} channel {channel} was not erased");
            }
        }
        let choice = evaluator.next(token).ok();
        if let Some(choice) = choice {
            let logits = simulator.logits(&last.out);
            let right = logits[choice];
            for (other, &logit) in logits.iter().enumerate() {
                assert!(
                    other == choice || right - logit >= 31.0,
                    "{dtype:?} token {other} has {logit}, {choice} has {right}"
                );
            }
        }
        choices.push(choice);
    }
    for location in &compiled.locations {
        let rows = evaluator.state_rows(&location.state).expect("the state exists");
        for (row, bits) in rows.iter().enumerate() {
            for (bit, &want) in bits.iter().enumerate() {
                let (head, row, dim) = location.bit(row, bit).expect("inside");
                let got = simulator.states[location.layer][(head * DIM + row) * DIM + dim];
                let want = want as f32 * qwengpu_circuit::STORED_BIT;
                assert!(
                    (got - want).abs() <= 128.0 * tolerance,
                    "{dtype:?} {} row {row} bit {bit}: {got}",
                    location.state
                );
            }
        }
    }
    choices
}

/// [`check_dtype`] in both dtypes.
pub fn check(netlist: &Netlist, compiled: &Compiled, tokens: &[usize]) -> Vec<Option<usize>> {
    check_dtype(netlist, compiled, tokens, Dtype::F32);
    check_dtype(netlist, compiled, tokens, Dtype::Bf16)
}
