//! Seconds a token against the length of the context, the hidden size, and the number of layers.

use std::time::Instant;

use qwengpu::Precision;
use qwengpu::weights::{build, model_weights};
use qwengpu_circuit::{CompileOptions, Geometry, compile};
use qwengpu_model::{DenseEngine, Engine, LayerType, SparseEngine, SparseWeights};

use super::super::dense::token_bytes;
use super::super::memory;
use super::{Curve, Failure, Series, Setting};

/// Tokens that are timed together on the sparse engine.
const WINDOW: usize = 256;
const SECONDS: &str = "time of a token (s)";
const SPARSE: &str = "sparse";
const DENSE: &str = "dense, bf16";

/// Weights of the machine in layers of a hidden size, and so many layers if they are more than it has.
fn weights(setting: &Setting<'_>, hidden: usize, layers: usize) -> Result<SparseWeights, Failure> {
    let machine = build(&setting.spec)?;
    let geometry = Geometry { hidden, ..Geometry::default() };
    let compiled = compile(&machine.netlist, &geometry, &CompileOptions::default()).map_err(Failure::wrong)?;
    let mut weights = model_weights(&compiled.tensors).map_err(Failure::wrong)?;
    let missing = layers.saturating_sub(weights.layers.len());
    if missing > 0 {
        // Layers of zeros add nothing to the residual stream.
        let mut config = weights.config.clone();
        config.layer_types = vec![LayerType::LinearAttention];
        let zeros = SparseWeights::zeros(config).map_err(Failure::wrong)?;
        weights.layers.extend(zeros.layers.iter().cycle().take(missing).cloned());
        weights.config.layer_types = vec![LayerType::LinearAttention; weights.layers.len()];
    }
    Ok(weights)
}

/// Seconds of the tokens, one after another.
fn seconds(engine: &mut dyn Engine, tokens: &[u32]) -> Result<f64, Failure> {
    let begun = Instant::now();
    for &token in tokens {
        engine.argmax(&[token]).map_err(Failure::wrong)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// The least seconds of one of the tokens: a dense engine does the same for each.
fn least_seconds(engine: &mut dyn Engine, tokens: &[u32]) -> Result<f64, Failure> {
    let mut least = f64::INFINITY;
    for token in tokens {
        least = least.min(seconds(engine, std::slice::from_ref(token))?);
    }
    Ok(least)
}

/// Seconds of each part of the tokens, the least of several engines that begin anew: what a sparse engine takes
/// depends on the token, and on what it has heard.
fn parts_seconds(setting: &Setting<'_>, weights: &SparseWeights, parts: &[&[u32]]) -> Result<Vec<f64>, Failure> {
    let mut least = vec![f64::INFINITY; parts.len()];
    for _ in 0..setting.rounds() {
        let mut engine = SparseEngine::from_weights(weights, Precision::F32).map_err(Failure::wrong)?;
        for (least, part) in least.iter_mut().zip(parts) {
            *least = least.min(seconds(&mut engine, part)?);
        }
    }
    Ok(least)
}

/// A dense engine in bf16, if there is memory for it.
fn dense(weights: &SparseWeights) -> Result<DenseEngine, Failure> {
    let bytes =
        token_bytes(&weights.config, Precision::Bf16) + 2 * weights.embed_tokens.rows() * weights.config.hidden_size;
    memory::refuse_without(bytes + (2 << 30))?;
    DenseEngine::from_weights(weights, Precision::Bf16).map_err(Failure::wrong)
}

/// Recurrent states do not grow, so a token costs the same behind any number of tokens.
#[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
pub(super) fn context(setting: &Setting<'_>) -> Result<Curve, Failure> {
    let weights = weights(setting, Geometry::default().hidden, 0)?;
    let (doublings, longest_dense, dense_window) = if setting.quick { (4, 256, 1) } else { (9, 2048, 8) };
    let stream = setting.stream((WINDOW << doublings) + WINDOW)?;
    setting.say("context: sparse");
    // Behind 256, 512, 1024 … tokens a part that counts, and what lies between.
    let mut parts = vec![&stream[..WINDOW]];
    let mut lengths = Vec::new();
    for doubling in 0..=doublings {
        let (length, next) = (WINDOW << doubling, WINDOW << (doubling + 1));
        lengths.push(length);
        parts.extend([&stream[length..length + WINDOW], &stream[length + WINDOW..next.min(stream.len())]]);
    }
    let taken = parts_seconds(setting, &weights, &parts)?;
    let counting = lengths.iter().zip(taken[1..].iter().step_by(2));
    let points = counting.map(|(&length, seconds)| (length as f64, seconds / WINDOW as f64)).collect();
    let mut dense = dense(&weights)?;
    let lengths: Vec<usize> = std::iter::successors(Some(64), |length| Some(2 * length))
        .take_while(|&length| length <= longest_dense)
        .collect();
    let mut least = vec![f64::INFINITY; lengths.len()];
    for _ in 0..setting.rounds().min(2) {
        dense.reset();
        for (least, &length) in least.iter_mut().zip(&lengths) {
            setting.say(&format!("context: dense, {length} tokens"));
            dense.forward(&stream[dense.position()..length]).map_err(Failure::wrong)?;
            *least = least.min(least_seconds(&mut dense, &stream[length..length + dense_window])?);
        }
    }
    let dense_points = lengths.iter().zip(least).map(|(&length, seconds)| (length as f64, seconds)).collect();
    Ok(Curve {
        name: "context",
        title: "Time of a token against the length of the context",
        x: "tokens before",
        y: SECONDS,
        base: 2.0,
        series: vec![
            Series { name: SPARSE.to_owned(), points },
            Series { name: DENSE.to_owned(), points: dense_points },
        ],
    })
}

/// Both engines for models of growing size; where memory does not suffice, the dense one stops.
fn sizes(
    setting: &Setting<'_>,
    what: &str,
    sizes: &[usize],
    make: &dyn Fn(usize) -> Result<(usize, SparseWeights), Failure>,
) -> Result<Vec<Series>, Failure> {
    let stream = setting.stream(if setting.quick { 1000 } else { 4000 })?;
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for &size in sizes {
        let (size, weights) = make(size)?;
        #[expect(clippy::cast_precision_loss, reason = "a size of a model")]
        let x = size as f64;
        setting.say(&format!("{what} {size}: sparse"));
        let parts: Vec<&[u32]> = stream.chunks(WINDOW).collect();
        let taken: f64 = parts_seconds(setting, &weights, &parts)?.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
        fast.push((x, taken / stream.len() as f64));
        setting.say(&format!("{what} {size}: dense"));
        match dense(&weights) {
            Ok(mut engine) => {
                engine.forward(&stream[..16]).map_err(Failure::wrong)?;
                slow.push((x, least_seconds(&mut engine, &stream[16..if setting.quick { 18 } else { 24 }])?));
            }
            Err(failure) if slow.is_empty() => return Err(failure),
            Err(_) => eprintln!("{what} {size}: no memory for the dense engine, so it is left out"),
        }
    }
    let series = |name: &str, points| Series { name: name.to_owned(), points };
    Ok(vec![series(SPARSE, fast), series(DENSE, slow)])
}

/// The same machine in a wider residual stream.
pub(super) fn width(setting: &Setting<'_>) -> Result<Curve, Failure> {
    let wanted: &[usize] = if setting.quick { &[2048, 4096] } else { &[2048, 4096, 8192] };
    let series = sizes(setting, "hidden size", wanted, &|hidden| Ok((hidden, weights(setting, hidden, 0)?)))?;
    Ok(Curve {
        name: "width",
        title: "Time of a token against the hidden size",
        x: "hidden size (channels)",
        y: SECONDS,
        base: 2.0,
        series,
    })
}

/// The same machine with layers of zeros behind it.
pub(super) fn depth(setting: &Setting<'_>) -> Result<Curve, Failure> {
    let wanted: &[usize] = if setting.quick { &[0, 32] } else { &[0, 24, 32, 48, 64] };
    let series = sizes(setting, "layers", wanted, &|layers| {
        let weights = weights(setting, Geometry::default().hidden, layers)?;
        Ok((weights.layers.len(), weights))
    })?;
    Ok(Curve {
        name: "depth",
        title: "Time of a token against the number of layers",
        x: "layers, those behind the machine's own of zeros",
        y: SECONDS,
        base: 2.0,
        series,
    })
}
