//! The sparse engine against the dense one, on random weights of every density.

mod common;

use common::largest_gap;
use proptest::prelude::*;
use qwengpu_model::{
    Config, DenseEngine, Engine, LayerCache, LayerType, MixerWeights, Precision, Recorder, SparseEngine, SparseMatrix,
    SparseWeights, argmax,
};

/// A linear congruential generator: weights must only be irregular.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let top = u16::try_from(self.0 >> 48).expect("16 bits");
        f32::from(top) / 65536.0
    }

    fn vector(&mut self, values: &mut [f32], mean: f32, size: f32) {
        for value in values {
            *value = mean + size * (2.0 * self.unit() - 1.0);
        }
    }

    fn matrix(&mut self, matrix: &mut SparseMatrix, density: f32, size: f32) {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let mut values = vec![0.0; rows * cols];
        for value in &mut values {
            if self.unit() < density {
                *value = size * (2.0 * self.unit() - 1.0);
            }
        }
        *matrix = SparseMatrix::from_dense(rows, cols, &values).expect("finite values");
    }
}

fn config(kernel: usize, tied: bool) -> Config {
    use LayerType::{FullAttention, LinearAttention};
    Config {
        vocab_size: 50,
        hidden_size: 24,
        intermediate_size: 40,
        layer_types: vec![LinearAttention, FullAttention, LinearAttention],
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 8,
        linear_num_key_heads: 2,
        linear_num_value_heads: 4,
        linear_key_head_dim: 6,
        linear_value_head_dim: 10,
        linear_conv_kernel_dim: kernel,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        partial_rotary_factor: 0.5,
        tie_word_embeddings: tied,
        eos_token_ids: Vec::new(),
    }
}

fn random_weights(seed: u64, density: f32, kernel: usize, tied: bool) -> SparseWeights {
    let mut dice = Dice(seed);
    let mut weights = SparseWeights::zeros(config(kernel, tied)).expect("a valid configuration");
    dice.matrix(&mut weights.embed_tokens, density.max(0.1), 1.0);
    if let Some(head) = &mut weights.lm_head {
        dice.matrix(head, density.max(0.1), 1.0);
    }
    dice.vector(&mut weights.norm, 0.0, 0.5);
    for layer in &mut weights.layers {
        dice.vector(&mut layer.input_layernorm, 0.0, 0.5);
        dice.vector(&mut layer.post_attention_layernorm, 0.0, 0.5);
        for matrix in [&mut layer.gate_proj, &mut layer.up_proj, &mut layer.down_proj] {
            dice.matrix(matrix, density, 1.0);
        }
        match &mut layer.mixer {
            MixerWeights::Linear(w) => {
                for matrix in [&mut w.in_proj_qkv, &mut w.in_proj_z, &mut w.in_proj_b, &mut w.in_proj_a] {
                    dice.matrix(matrix, density, 1.0);
                }
                dice.matrix(&mut w.conv1d, density, 1.0);
                dice.matrix(&mut w.out_proj, density, 1.0);
                dice.vector(&mut w.a_log, -2.0, 2.0);
                dice.vector(&mut w.dt_bias, 0.0, 1.0);
                dice.vector(&mut w.norm, 1.0, 0.5);
            }
            MixerWeights::Full(w) => {
                for matrix in [&mut w.q_proj, &mut w.k_proj, &mut w.v_proj, &mut w.o_proj] {
                    dice.matrix(matrix, density, 1.0);
                }
                dice.vector(&mut w.q_norm, 0.0, 0.5);
                dice.vector(&mut w.k_norm, 0.0, 0.5);
            }
        }
    }
    weights
}

/// Leaves convolutions that look at the newest token alone.
fn keep_newest_taps(weights: &mut SparseWeights) {
    for layer in &mut weights.layers {
        if let MixerWeights::Linear(mixer) = &mut layer.mixer {
            let (channels, kernel) = (mixer.conv1d.rows(), mixer.conv1d.cols());
            let mut taps = mixer.conv1d.to_dense();
            taps.chunks_exact_mut(kernel).for_each(|taps| taps[..kernel - 1].fill(0.0));
            mixer.conv1d = SparseMatrix::from_dense(channels, kernel, &taps).expect("finite values");
        }
    }
}

/// Lets channel 0 hold most neurons far below zero, where their `silu` is exactly zero unless others raise them.
fn hold_down(weights: &mut SparseWeights, seed: u64) {
    let mut dice = Dice(seed);
    let (vocab, hidden) = (weights.config.vocab_size, weights.config.hidden_size);
    let mut embeddings = weights.embed_tokens.to_dense();
    embeddings.iter_mut().step_by(hidden).for_each(|constant| *constant = 4.0);
    weights.embed_tokens = SparseMatrix::from_dense(vocab, hidden, &embeddings).expect("finite values");
    for layer in &mut weights.layers {
        layer.post_attention_layernorm[0] = 0.0;
        let mut gate = layer.gate_proj.to_dense();
        for row in gate.chunks_exact_mut(hidden) {
            row.iter_mut().for_each(|weight| *weight *= 100.0);
            row[0] = -60.0 * dice.unit();
        }
        layer.gate_proj = SparseMatrix::from_dense(layer.gate_proj.rows(), hidden, &gate).expect("finite values");
        // Sums of size 100 would drown the constant in the next layer.
        let (rows, cols) = (layer.down_proj.rows(), layer.down_proj.cols());
        let down: Vec<f32> = layer.down_proj.to_dense().iter().map(|weight| weight / 100.0).collect();
        layer.down_proj = SparseMatrix::from_dense(rows, cols, &down).expect("finite values");
    }
}

/// f32 rounding through three layers whose gains are above 1, relative to the largest value.
const TOLERANCE: f32 = 1e-3;

/// The largest difference, by the largest value.
fn relative_gap(a: &[f32], b: &[f32]) -> f32 {
    largest_gap(a, b) / b.iter().fold(1.0, |largest, value| value.abs().max(largest))
}

/// Everything a run shows: activations of `tokens` one by one.
fn record(engine: &mut dyn Engine, tokens: &[u32]) -> Recorder {
    let mut recorder = Recorder::default();
    for token in tokens {
        engine.forward_probed(&[*token], &mut recorder).expect("a forward");
    }
    recorder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn sparse_and_dense_agree(
        seed: u64,
        density in prop_oneof![Just(0.02_f32), Just(0.1), Just(0.5), Just(1.0)],
        kernel in 1..5_usize,
        tied: bool,
        held: bool,
        pointwise: bool,
        tokens in prop::collection::vec(0..50_u32, 1..20),
    ) {
        let mut weights = random_weights(seed, density, kernel, tied);
        if pointwise {
            keep_newest_taps(&mut weights);
        }
        if held {
            hold_down(&mut weights, seed);
        }
        let mut sparse = SparseEngine::from_weights(&weights, Precision::F32).expect("a sparse engine");
        let mut dense = DenseEngine::from_weights(&weights, Precision::F32).expect("a dense engine");
        let (a, b) = (record(&mut sparse, &tokens), record(&mut dense, &tokens));
        for (site, values) in &a.sites {
            let gap = relative_gap(values, &b.sites[site]);
            prop_assert!(gap < TOLERANCE, "{site} differs by {gap}");
        }

        for (a, b) in sparse.save().layers.iter().zip(&dense.save().layers) {
            if let (LayerCache::Linear { conv: a, .. }, LayerCache::Linear { conv: b, .. }) = (a, b) {
                let gap = relative_gap(&a.to_dense(), &b.to_dense());
                prop_assert!(gap < TOLERANCE, "what a convolution remembers differs by {gap}");
            }
        }

        // A cache moves from one engine to the other, and both go on alike.
        let cache = dense.save();
        sparse.restore(&cache).expect("a fitting cache");
        prop_assert_eq!(&sparse.save(), &cache);
        let gap = relative_gap(sparse.forward(&tokens).expect("logits"), dense.forward(&tokens).expect("logits"));
        prop_assert!(gap < TOLERANCE, "after the move, logits differ by {gap}");

        // The search for the largest logit finds what a scan finds.
        sparse.reset();
        let mut scan = sparse.clone();
        let ids = sparse.argmax_all(&tokens).expect("ids");
        for (token, id) in tokens.iter().zip(ids) {
            prop_assert_eq!(argmax(scan.forward(&[*token]).expect("logits")), id);
        }
    }

    #[test]
    fn searches_agree_with_scans_in_bf16(seed: u64, tokens in prop::collection::vec(0..50_u32, 1..20)) {
        let weights = random_weights(seed, 0.3, 4, false);
        let mut search = SparseEngine::from_weights(&weights, Precision::Bf16).expect("a sparse engine");
        let mut scan = search.clone();
        for token in tokens {
            let expected = argmax(scan.forward(&[token]).expect("logits"));
            prop_assert_eq!(search.argmax(&[token]).expect("an id"), expected);
        }
    }
}

#[test]
fn integers_give_the_same_bits_in_every_engine_and_precision() {
    // Weights and activations that bf16 holds: embeddings of 1, maps of small powers of two, no norm at work but a
    // constant channel's.
    let mut weights = SparseWeights::zeros(config(4, false)).expect("a valid configuration");
    let big = 2.0_f32.powi(24);
    let rows = (0..50_u32).flat_map(|token| [(token, 0, big), (token, 1 + token % 23, 1.0)]);
    weights.embed_tokens = SparseMatrix::from_triplets(50, 24, rows).expect("entries");
    weights.norm = vec![-1.0; 24];
    weights.norm[1..].fill(255.0);
    let unit = big / 24.0_f32.sqrt();
    let neurons = (0..23_u32).map(|i| (i, 1 + i, 128.0 * unit));
    weights.layers[0].gate_proj = SparseMatrix::from_triplets(40, 24, neurons).expect("entries");
    let bias = (0..40_u32).map(|i| (i, 0, 1.0));
    weights.layers[0].up_proj = SparseMatrix::from_triplets(40, 24, bias).expect("entries");
    let down = (0..23_u32).map(|i| (1 + (i + 1) % 23, i, 2.0));
    weights.layers[0].down_proj = SparseMatrix::from_triplets(24, 40, down).expect("entries");
    let head = (0..50_u32).map(|token| (token, 1 + token % 23, 1.0));
    weights.lm_head = Some(SparseMatrix::from_triplets(50, 24, head).expect("entries"));

    for precision in [Precision::F32, Precision::Bf16] {
        let mut sparse = SparseEngine::from_weights(&weights, precision).expect("a sparse engine");
        let mut dense = DenseEngine::from_weights(&weights, precision).expect("a dense engine");
        for token in 0..50_u32 {
            let expected = (token % 23 + 1) % 23;
            assert_eq!(sparse.argmax(&[token]).expect("an id"), expected);
            assert_eq!(dense.argmax(&[token]).expect("an id"), expected);
        }
    }
}
