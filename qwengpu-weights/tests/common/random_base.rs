//! Random Qwen3.5 checkpoints of any size, streamed to disk: stand-ins for a base whose weights mean nothing.
#![allow(dead_code, reason = "each program that includes this uses a part")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

/// How tensors are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Bf16,
    F32,
    /// bf16, but `A_log` and the gated norm in f32, as released checkpoints have them.
    Mixed,
    /// bf16, but the norms and `dt_bias` in f16.
    Half,
}

/// A checkpoint to be written.
#[derive(Clone, Debug)]
pub struct RandomBase {
    pub hidden: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub key_heads: usize,
    pub value_heads: usize,
    pub attention_heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Tokens of the tokenizer; at least 257.
    pub tokens: usize,
    pub tied: bool,
    /// Names and configuration of a multimodal model, with a small vision part.
    pub multimodal: bool,
    /// Files of weights.
    pub shards: usize,
    pub storage: Storage,
    /// About the standard deviation of the logits.
    pub sharpness: f32,
    pub seed: u64,
}

/// A tensor: name, shape, mean, and standard deviation.
type Spec = (String, Vec<usize>, f32, f32);

impl RandomBase {
    /// Four layers of 64 channels, untied, in f32.
    pub fn tiny() -> Self {
        Self {
            hidden: 64,
            intermediate: 96,
            layers: 4,
            key_heads: 2,
            value_heads: 2,
            attention_heads: 2,
            kv_heads: 1,
            head_dim: 64,
            vocab: 300,
            tokens: 280,
            tied: false,
            multimodal: false,
            shards: 1,
            storage: Storage::F32,
            sharpness: 2.0,
            seed: 1,
        }
    }

    /// The true sizes of a released model, in bf16: `0.8B`, `2B`, `4B` or `9B`.
    pub fn released(name: &str) -> Option<Self> {
        let (hidden, intermediate, layers, value_heads, attention_heads, kv_heads) = match name {
            "0.8B" => (1024, 3584, 24, 16, 8, 2),
            "2B" => (2048, 6144, 24, 16, 8, 2),
            "4B" => (2560, 9216, 32, 32, 16, 4),
            "9B" => (4096, 12288, 32, 32, 16, 4),
            _ => return None,
        };
        Some(Self {
            hidden,
            intermediate,
            layers,
            key_heads: 16,
            value_heads,
            attention_heads,
            kv_heads,
            head_dim: 256,
            vocab: 248_320,
            tokens: 248_077,
            tied: name != "9B",
            multimodal: true,
            shards: if name == "9B" { 4 } else { 1 },
            storage: Storage::Mixed,
            sharpness: 3.0,
            seed: 1,
        })
    }

    /// Writes configuration, tokenizer and weights into a directory, which is made.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        write_json(&dir.join("config.json"), &self.config())?;
        write_json(
            &dir.join("generation_config.json"),
            &json!({"do_sample": false, "eos_token_id": [self.tokens - 1, 0]}),
        )?;
        write_json(&dir.join("tokenizer.json"), &self.tokenizer())?;
        let endoftext = json!({(self.tokens - 1).to_string(): added_token("<|endoftext|>", None)});
        let settings = json!({"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": endoftext});
        write_json(&dir.join("tokenizer_config.json"), &settings)?;
        let specs = self.specs();
        let per_file = specs.len().div_ceil(self.shards);
        let mut dice = Dice(self.seed);
        let mut map = BTreeMap::new();
        for (number, part) in specs.chunks(per_file).enumerate() {
            let name = if self.shards == 1 {
                "model.safetensors".to_owned()
            } else {
                format!("model-{:05}-of-{:05}.safetensors", number + 1, self.shards)
            };
            self.write_file(&dir.join(&name), part, &mut dice)?;
            map.extend(part.iter().map(|spec| (spec.0.clone(), name.clone())));
        }
        if self.shards > 1 {
            write_json(&dir.join("model.safetensors.index.json"), &json!({"metadata": {}, "weight_map": map}))?;
        }
        Ok(())
    }

    fn config(&self) -> Value {
        let rotary = self.head_dim / 4;
        let sections = [rotary / 2 - 2 * (rotary / 6), rotary / 6, rotary / 6];
        let types = (1..=self.layers).map(|n| if n % 4 == 0 { "full_attention" } else { "linear_attention" });
        let text = json!({
            "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "dtype": "bfloat16",
            "vocab_size": self.vocab, "hidden_size": self.hidden, "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers, "hidden_act": "silu", "num_attention_heads": self.attention_heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim, "attention_bias": false,
            "attn_output_gate": true, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
            "linear_value_head_dim": 128, "linear_num_key_heads": self.key_heads,
            "linear_num_value_heads": self.value_heads, "mamba_ssm_dtype": "float32",
            "full_attention_interval": 4, "layer_types": types.collect::<Vec<_>>(), "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000, "partial_rotary_factor": 0.25,
                "mrope_interleaved": true, "mrope_section": sections},
            "max_position_embeddings": 32768, "tie_word_embeddings": self.tied, "eos_token_id": self.tokens - 1,
            "a_field_of_tomorrow": {"kept": true},
        });
        if self.multimodal {
            json!({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                "text_config": text, "vision_config": {"model_type": "qwen3_5", "depth": 1},
                "tie_word_embeddings": self.tied})
        } else {
            text
        }
    }

    fn tokenizer(&self) -> Value {
        let mut vocabulary: Map<String, Value> =
            (0..=u8::MAX).map(|byte| (byte_character(byte).to_string(), byte.into())).collect();
        let words = (256..self.tokens - 1).map(|id| (format!("word{id}"), json!(id)));
        vocabulary.extend(words);
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
        json!({
            "version": "1.0", "truncation": null, "padding": null,
            "added_tokens": [added_token("<|endoftext|>", Some(self.tokens - 1))],
            "normalizer": null, "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                "vocab": vocabulary, "merges": []},
        })
    }

    fn specs(&self) -> Vec<Spec> {
        let prefix = if self.multimodal { "model.language_model." } else { "model." };
        let float = |size: usize| f32::from(u16::try_from(size).expect("a small size"));
        let own =
            |name: String, shape: &[usize], mean: f32, std: f32| (format!("{prefix}{name}"), shape.to_vec(), mean, std);
        // A tied embedding of size 1 would give logits of size sqrt(hidden): the final norm makes up for that.
        let gain = if self.tied { self.sharpness / float(self.hidden).sqrt() } else { self.sharpness };
        let mut specs = vec![
            own("embed_tokens.weight".to_owned(), &[self.vocab, self.hidden], 0.0, 1.0),
            own("norm.weight".to_owned(), &[self.hidden], gain - 1.0, 0.2 * gain),
        ];
        if !self.tied {
            let std = 1.0 / float(self.hidden).sqrt();
            specs.push(("lm_head.weight".to_owned(), vec![self.vocab, self.hidden], 0.0, std));
        }
        let (keys, values) = (self.key_heads * 128, self.value_heads * 128);
        let (queries, kv) = (self.attention_heads * self.head_dim, self.kv_heads * self.head_dim);
        for layer in 0..self.layers {
            let mut matrix = |name: &str, rows: usize, cols: usize| {
                let std = 1.0 / float(cols).sqrt();
                specs.push(own(format!("layers.{layer}.{name}.weight"), &[rows, cols], 0.0, std));
            };
            matrix("mlp.gate_proj", self.intermediate, self.hidden);
            matrix("mlp.up_proj", self.intermediate, self.hidden);
            matrix("mlp.down_proj", self.hidden, self.intermediate);
            let mut vectors = vec![("input_layernorm.weight", vec![self.hidden], 0.0, 0.2)];
            vectors.push(("post_attention_layernorm.weight", vec![self.hidden], 0.0, 0.2));
            if (layer + 1) % 4 == 0 {
                matrix("self_attn.q_proj", 2 * queries, self.hidden);
                matrix("self_attn.k_proj", kv, self.hidden);
                matrix("self_attn.v_proj", kv, self.hidden);
                matrix("self_attn.o_proj", self.hidden, queries);
                vectors.push(("self_attn.q_norm.weight", vec![self.head_dim], 0.0, 0.2));
                vectors.push(("self_attn.k_norm.weight", vec![self.head_dim], 0.0, 0.2));
            } else {
                matrix("linear_attn.in_proj_qkv", 2 * keys + values, self.hidden);
                matrix("linear_attn.in_proj_z", values, self.hidden);
                matrix("linear_attn.in_proj_b", self.value_heads, self.hidden);
                matrix("linear_attn.in_proj_a", self.value_heads, self.hidden);
                matrix("linear_attn.out_proj", self.hidden, values);
                vectors.push(("linear_attn.conv1d.weight", vec![2 * keys + values, 1, 4], 0.0, 0.5));
                vectors.push(("linear_attn.A_log", vec![self.value_heads], -1.0, 1.0));
                vectors.push(("linear_attn.dt_bias", vec![self.value_heads], -1.0, 1.5));
                vectors.push(("linear_attn.norm.weight", vec![128], 1.0, 0.2));
            }
            let vectors = vectors.into_iter();
            specs.extend(
                vectors.map(|(name, shape, mean, std)| own(format!("layers.{layer}.{name}"), &shape, mean, std)),
            );
        }
        if self.multimodal {
            specs.push(("model.visual.patch_embed.proj.weight".to_owned(), vec![8, 12], 0.0, 1.0));
            specs.push(("mtp.fc.weight".to_owned(), vec![self.hidden, 2 * self.hidden], 0.0, 0.1));
        }
        specs
    }

    fn dtype(&self, name: &str) -> &'static str {
        let is_kept = name.ends_with("A_log") || name.ends_with("linear_attn.norm.weight");
        match self.storage {
            Storage::F32 => "F32",
            Storage::Mixed if is_kept => "F32",
            Storage::Half if name.ends_with("norm.weight") || name.ends_with("dt_bias") => "F16",
            Storage::Bf16 | Storage::Mixed | Storage::Half => "BF16",
        }
    }

    fn write_file(&self, path: &Path, specs: &[Spec], dice: &mut Dice) -> io::Result<()> {
        let mut header = Map::new();
        let mut start = 0;
        for (name, shape, ..) in specs {
            let dtype = self.dtype(name);
            let end = start + shape.iter().product::<usize>() * if dtype == "F32" { 4 } else { 2 };
            header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
            start = end;
        }
        let mut header = serde_json::to_vec(&header)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(path)?);
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        for (name, shape, mean, std) in specs {
            let dtype = self.dtype(name);
            for _ in 0..shape.iter().product::<usize>() {
                let value = mean + std * dice.roll();
                match dtype {
                    "F32" => writer.write_all(&value.to_le_bytes())?,
                    "BF16" => writer.write_all(&bf16_bits(value).to_le_bytes())?,
                    _ => writer.write_all(&f16_bits(value).to_le_bytes())?,
                }
            }
        }
        writer.flush()
    }
}

/// A generator of uniform numbers: weights must only be irregular.
#[derive(Clone, Copy, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number of mean 0 and standard deviation 1.
    pub fn roll(&mut self) -> f32 {
        const SQRT_3: f32 = 1.732_050_8;
        let top = u16::try_from(self.next() >> 48).expect("16 bits");
        (f32::from(top) / 32768.0 - 1.0) * SQRT_3
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u32) -> u32 {
        u32::try_from((self.next() >> 32) % u64::from(limit)).expect("below the limit")
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

/// The nearest bf16 of a finite number, ties away from zero.
fn bf16_bits(value: f32) -> u16 {
    u16::try_from((value.to_bits() + 0x8000) >> 16).expect("16 bits")
}

/// The f16 next to a number towards zero; 0 for those that have no normal one.
fn f16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, exponent, mantissa) = (bits >> 31, bits >> 23 & 0xff, bits >> 13 & 0x3ff);
    let exponent = exponent.checked_sub(112).filter(|exponent| (1..31).contains(exponent));
    u16::try_from(sign << 15 | exponent.map_or(0, |exponent| exponent << 10 | mantissa)).expect("16 bits")
}

fn byte_character(byte: u8) -> char {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let before = (0..byte).filter(|&byte| !is_printable(byte)).count();
    let moved = || char::from_u32(0x100 + u32::try_from(before).expect("a byte")).expect("a character");
    if is_printable(byte) { char::from(byte) } else { moved() }
}

fn added_token(content: &str, id: Option<usize>) -> Value {
    let mut token = json!({"content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true});
    if let Some(id) = id {
        token["id"] = json!(id);
    }
    token
}

fn write_json(path: &Path, value: &Value) -> io::Result<()> {
    fs::write(path, serde_json::to_vec(value)?)
}
