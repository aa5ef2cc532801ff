//! The dense engine against what the machine can do: memory read, matrices multiplied.

use std::collections::BTreeMap;

use qwengpu::weights::{build, compile, model_config, source};
use qwengpu::{Draft, EngineKind, Launch, Precision};
use qwengpu_model::{Config, DenseEngine, Engine, product_seconds};

use super::checkpoint::Checkpoint;
use super::clock::{Reading, take_turns};
use super::figure::Figure;
use super::{Failure, Setting, memory};

/// Tokens of a prefill.
const PREFILL: usize = 512;

/// Entries of the linear maps of all layers: each is read once for a decoded token, and multiplied once for each token
/// of a prefill.
pub(crate) fn layer_entries(config: &Config) -> usize {
    let (hidden, values) = (config.hidden_size, config.linear_num_value_heads * config.linear_value_head_dim);
    let keys = 2 * config.linear_num_key_heads * config.linear_key_head_dim;
    let mixer = (keys + values) + values + 2 * config.linear_num_value_heads + values;
    config.layer_types.len() * hidden * (mixer + 3 * config.intermediate_size)
}

/// Bytes of weights that one decoded token needs, `lm_head` included.
pub(crate) fn token_bytes(config: &Config, precision: Precision) -> usize {
    let entries = layer_entries(config) + config.vocab_size * config.hidden_size;
    entries * if precision == Precision::F32 { 4 } else { 2 }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of models are far below 2^52")]
pub(crate) fn measure(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let machine = build(&setting.spec)?;
    let compiled = compile(&machine)?;
    let config = model_config(&compiled.tensors);
    let source = source(&machine, &compiled, BTreeMap::new());
    let stream = setting.stream(PREFILL + 64)?;
    let decoded = if setting.quick { 2 } else { 8 };
    let flops = 2.0 * layer_entries(&config) as f64 * PREFILL as f64;
    let product_flops = 2.0 * (PREFILL * config.hidden_size * config.intermediate_size) as f64;

    let mut figures = Vec::new();
    for (name, precision) in [("f32", Precision::F32), ("bf16", Precision::Bf16)] {
        let bytes = token_bytes(&config, precision);
        memory::refuse_without(2 * bytes + (2 << 30))?;
        setting.say(&format!("dense {name}: writing a checkpoint"));
        let checkpoint = Checkpoint::write(&source, precision)?;
        let stream = checkpoint.tokens(&stream);
        let (prompt, spoken) = stream.split_at(PREFILL);
        setting.say(&format!("dense {name}: loading"));
        let mut engine = DenseEngine::from_dir(&checkpoint.directory(), precision).map_err(Failure::wrong)?;
        // The first reading brings the files to memory, the first forward of several tokens finds zeros.
        engine.argmax(&spoken[..1]).map_err(Failure::wrong)?;
        engine.argmax(&prompt[..2]).map_err(Failure::wrong)?;
        let engine = std::cell::RefCell::new(engine);
        let plain = memory::Plain::new(bytes.min(1 << 30));
        let mut product = f64::INFINITY;
        setting.say(&format!("dense {name}: reading, decoding, multiplying, prefilling in turns"));
        let best = take_turns(
            setting.rounds().max(3),
            &mut [
                &mut || {
                    std::hint::black_box(plain.read());
                    Ok(())
                },
                &mut || {
                    let mut engine = engine.borrow_mut();
                    spoken[..decoded].iter().try_for_each(|&token| engine.argmax(&[token]).map(|_| ()))
                },
                &mut || {
                    let (hidden, neurons) = (config.hidden_size, config.intermediate_size);
                    product = product.min(product_seconds(PREFILL, hidden, neurons, 3)?);
                    Ok(())
                },
                &mut || {
                    let mut engine = engine.borrow_mut();
                    engine.reset();
                    engine.forward(prompt).map(|_| ())
                },
            ],
        )
        .map_err(Failure::wrong)?;
        let [plain_read, decoding, _, prefill] = best[..] else { continue };
        let decoded = decoded as f64;
        let read = Figure::rate(
            &format!("dense.{name}.plain_read"),
            plain.bytes() as f64,
            "B/s",
            plain_read,
            "a buffer beyond every cache, summed on all threads",
        );
        let moved = Figure::rate(
            &format!("dense.{name}.decode_read"),
            decoded * bytes as f64,
            "B/s",
            decoding,
            &format!("{:.2} GB of weights a token", bytes as f64 / 1e9),
        );
        let peak = Figure::rate(
            &format!("dense.{name}.product"),
            product_flops,
            "flop/s",
            Reading { wall: product, cpu: best[2].cpu.map(|cpu| cpu * product / best[2].wall) },
            "the tensor library's product in f32, of the sizes of an MLP",
        );
        let flop = Figure::rate(
            &format!("dense.{name}.prefill_product"),
            flops,
            "flop/s",
            prefill,
            "the linear maps of a prefill with their zeros, which are left out: may be more than product",
        );
        let ratios = [
            Figure::ratio(
                &format!("dense.{name}.decode_to_plain_read"),
                moved.value / read.value,
                "1 is all that memory can give",
            ),
            Figure::ratio(
                &format!("dense.{name}.prefill_to_product"),
                flop.value / peak.value,
                "above 1 where zeros are left out",
            ),
        ];
        figures.extend([
            Figure::rate(&format!("dense.{name}.decode"), decoded, "tokens/s", decoding, "one token at a time"),
            Figure::rate(
                &format!("dense.{name}.prefill"),
                PREFILL as f64,
                "tokens/s",
                prefill,
                &format!("{PREFILL} tokens at once"),
            ),
            read,
            moved,
            peak,
            flop,
        ]);
        figures.extend(ratios);
    }
    Ok(figures)
}

/// What `--check replay` and `--draft interp` do with a launch, against speaking it.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
pub(crate) fn verification(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for (name, kind, precision) in [
        ("sparse", EngineKind::Sparse, Precision::F32),
        ("dense-f32", EngineKind::Dense, Precision::F32),
        ("dense-bf16", EngineKind::Dense, Precision::Bf16),
    ] {
        let (kernel, launch) = setting.short_launch()?;
        setting.say(&format!("verification: {name}"));
        let mut gpu = setting.gpu(kind, precision)?;
        let library = |error| Failure::from_library(error, setting.kernels);
        let result = gpu.launch(&kernel, &launch).map_err(library)?;
        let drafted = Launch { draft: Draft::Interp, ..launch.clone() };
        let gpu = std::cell::RefCell::new(gpu);
        let speak = |launch: &Launch| gpu.borrow_mut().launch(&kernel, launch).map_err(library);
        let best = take_turns(
            setting.rounds().min(2),
            &mut [
                &mut || speak(&launch).map(|_| ()),
                &mut || match gpu.borrow_mut().verify(&result.prompt, &result.records, false) {
                    Ok(None) => Ok(()),
                    Ok(Some((place, _))) => Err(Failure::wrong(format!("record {place} is not the model's"))),
                    Err(error) => Err(Failure::wrong(error)),
                },
                &mut || match speak(&drafted)? {
                    confirmed if confirmed.records == result.records => Ok(()),
                    _ => Err(Failure::wrong("a drafted launch is not the spoken one")),
                },
            ],
        )?;
        let (tokens, prompt) = (result.records.len(), result.prompt.len());
        let over = format!("{tokens} tokens behind a prompt of {prompt}, which counts as time");
        figures.extend([
            Figure::rate(&format!("verify.{name}.spoken"), tokens as f64, "tokens/s", best[0], &over),
            Figure::rate(&format!("verify.{name}.verified"), tokens as f64, "tokens/s", best[1], &over),
            Figure::ratio(
                &format!("verify.{name}.verified_to_spoken"),
                best[0].wall / best[1].wall.max(f64::MIN_POSITIVE),
                "the same launch in turns",
            ),
            Figure::rate(&format!("verify.{name}.draft"), tokens as f64, "tokens/s", best[2], &over),
            Figure::ratio(
                &format!("verify.{name}.draft_to_spoken"),
                best[0].wall / best[2].wall.max(f64::MIN_POSITIVE),
                "the same launch drafted by the interpreter",
            ),
        ]);
    }
    Ok(figures)
}
