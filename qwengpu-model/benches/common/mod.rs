//! Weights shaped like a compiled machine: most are zero, and few channels are active for a token.
//!
//! Hidden size 2048, 6144 neurons, linear layers of 16 heads that write and read state rows by one-hot keys, a layer of
//! zeros with full attention, 26,000 embeddings. A constant channel of 2^24 feeds a bias to every neuron.

use qwengpu_model::{
    Config, LayerType, LayerWeights, LinearAttentionWeights, MixerWeights, SparseMatrix, SparseWeights,
};

const HIDDEN: u32 = 2048;
const NEURONS: u32 = 6144;
pub(crate) const VOCABULARY: u32 = 26_000;
const HEADS: u32 = 16;
const DIM: u32 = 128;
/// Channels 1 to 512: four one-hot groups of 128.
const GROUPS: u32 = 4;
/// Then bits from the embedding.
const BITS: u32 = 1 + GROUPS * DIM;
const NUM_BITS: u32 = 512;
/// Then what layers compute.
const RESULTS: u32 = BITS + NUM_BITS;
const NUM_RESULTS: u32 = 256;
/// Then the answer, two channels for each bit.
const ANSWER_BITS: u32 = 15;
const ANSWER: u32 = RESULTS + NUM_RESULTS;

const CONSTANT: f32 = 16_777_216.0;
const GAIN: f32 = 128.0;

/// A weight that turns a channel of 1 into 1 behind the norm: two constant channels give 2048 a mean square of 2^38.
fn unit() -> f32 {
    524_288.0
}

/// A weight on the constant channel that gives 1.
fn bias() -> f32 {
    unit() / CONSTANT
}

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("below a u32")
    }
}

fn matrix(rows: u32, cols: u32, mut entries: Vec<(u32, u32, f32)>) -> SparseMatrix {
    entries.sort_by_key(|&(row, col, _)| (row, col));
    entries.dedup_by_key(|&mut (row, col, _)| (row, col));
    SparseMatrix::from_triplets(rows as usize, cols as usize, entries).expect("entries")
}

fn config(linear_layers: usize) -> Config {
    let mut layer_types = vec![LayerType::LinearAttention; linear_layers];
    layer_types.push(LayerType::FullAttention);
    Config {
        vocab_size: VOCABULARY as usize,
        hidden_size: HIDDEN as usize,
        intermediate_size: NEURONS as usize,
        layer_types,
        num_attention_heads: 8,
        num_key_value_heads: 2,
        head_dim: 256,
        linear_num_key_heads: HEADS as usize,
        linear_num_value_heads: HEADS as usize,
        linear_key_head_dim: DIM as usize,
        linear_value_head_dim: DIM as usize,
        linear_conv_kernel_dim: 4,
        rms_norm_eps: 1e-6,
        rope_theta: 1e7,
        partial_rotary_factor: 0.25,
        tie_word_embeddings: false,
        eos_token_ids: Vec::new(),
    }
}

fn fill_mixer(mixer: &mut LinearAttentionWeights, dice: &mut Dice) {
    let key_dim = HEADS * DIM;
    let (mut qkv, mut z, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for head in 0..HEADS {
        for i in 0..DIM {
            qkv.push((head * DIM + i, 1 + ((head + 1) % GROUPS) * DIM + i, GAIN * unit()));
            qkv.push((key_dim + head * DIM + i, 1 + (head % GROUPS) * DIM + i, GAIN * unit()));
        }
        for j in 0..32 {
            let value = 2 * key_dim + head * DIM + j;
            qkv.push((value, BITS + dice.below(NUM_BITS), GAIN * unit()));
            z.push((head * DIM + j, 0, GAIN * bias()));
            out.push((RESULTS + dice.below(NUM_RESULTS), head * DIM + j, 32.0));
        }
        qkv.extend([126, 127].map(|j| (2 * key_dim + head * DIM + j, 0, 4_194_304.0 * bias())));
    }
    mixer.in_proj_qkv = matrix(3 * key_dim, HIDDEN, qkv);
    mixer.in_proj_z = matrix(key_dim, HIDDEN, z);
    mixer.in_proj_b = matrix(HEADS, HIDDEN, (0..HEADS).map(|head| (head, 0, GAIN * bias())).collect());
    mixer.conv1d = matrix(3 * key_dim, 4, (0..3 * key_dim).map(|channel| (channel, 3, 1.0)).collect());
    mixer.a_log.fill(-120.0);
    mixer.norm.fill(1.0);
    mixer.out_proj = matrix(HIDDEN, key_dim, out);
}

fn fill_mlp(layer: &mut LayerWeights, dice: &mut Dice) {
    let (mut gate, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
    for neuron in 0..NEURONS {
        for _ in 0..3 {
            gate.push((neuron, BITS + dice.below(NUM_BITS), 2.0 * GAIN * unit()));
        }
        gate.push((neuron, RESULTS + dice.below(NUM_RESULTS), -2.0 * GAIN * unit()));
        gate.push((neuron, 0, -3.0 * GAIN * bias()));
        up.push((neuron, 0, bias()));
        down.push((RESULTS + dice.below(NUM_RESULTS), neuron, 1.0 / GAIN));
    }
    layer.gate_proj = matrix(NEURONS, HIDDEN, gate);
    layer.up_proj = matrix(NEURONS, HIDDEN, up);
    layer.down_proj = matrix(HIDDEN, NEURONS, down);
}

/// The answer's bits are those of the embedding.
fn fill_last_mlp(layer: &mut LayerWeights) {
    let (mut gate, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
    for bit in 0..ANSWER_BITS {
        let (one, zero) = (2 * bit, 2 * bit + 1);
        gate.extend([(one, BITS + bit, GAIN * unit()), (zero, BITS + bit, -GAIN * unit()), (zero, 0, GAIN * bias())]);
        up.extend([(one, 0, bias()), (zero, 0, bias())]);
        down.extend([(ANSWER + one, one, 256.0 / GAIN), (ANSWER + zero, zero, 256.0 / GAIN)]);
    }
    layer.gate_proj = matrix(NEURONS, HIDDEN, gate);
    layer.up_proj = matrix(NEURONS, HIDDEN, up);
    layer.down_proj = matrix(HIDDEN, NEURONS, down);
}

/// Weights of a model with this many linear layers, and one more that answers.
pub(crate) fn compiled_shape(linear_layers: usize) -> SparseWeights {
    let mut dice = Dice(1);
    let mut weights = SparseWeights::zeros(config(linear_layers)).expect("a valid configuration");
    let (mut embed, mut head) = (Vec::new(), Vec::new());
    for token in 0..VOCABULARY {
        embed.extend([(token, 0, CONSTANT), (token, HIDDEN - 1, CONSTANT)]);
        embed.extend((0..GROUPS).map(|group| (token, 1 + group * DIM + dice.below(DIM), 1.0)));
        for bit in 0..ANSWER_BITS {
            let is_set = token >> bit & 1 == 1;
            if is_set {
                embed.push((token, BITS + bit, 1.0));
            }
            head.push((token, ANSWER + 2 * bit + u32::from(!is_set), 256.0));
        }
        embed.extend((0..25).map(|_| (token, BITS + ANSWER_BITS + dice.below(NUM_BITS - ANSWER_BITS), 1.0)));
    }
    weights.embed_tokens = matrix(VOCABULARY, HIDDEN, embed);
    weights.lm_head = Some(matrix(VOCABULARY, HIDDEN, head));
    weights.norm.fill(-1.0);
    weights.norm[ANSWER as usize..(ANSWER + 2 * ANSWER_BITS) as usize].fill(255.0);
    for layer in &mut weights.layers {
        match &mut layer.mixer {
            MixerWeights::Linear(mixer) => {
                fill_mixer(mixer, &mut dice);
                fill_mlp(layer, &mut dice);
            }
            MixerWeights::Full(_) => fill_last_mlp(layer),
        }
    }
    weights
}
