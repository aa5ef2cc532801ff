//! Seconds a token against the length of the context, the hidden size, and the number of layers.

use std::time::Instant;

use qwengpu::Precision;
use qwengpu::weights::{build, model_weights};
use qwengpu_circuit::{CompileOptions, Geometry, compile};
use qwengpu_model::{DenseEngine, Engine, LayerType, SparseEngine, SparseWeights};

use super::super::dense::token_bytes;
use super::super::memory;
use super::{Curve, Failure, Scale, Series, Setting};

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

/// The middle one of the seconds that each of the tokens takes.
fn median_seconds(engine: &mut dyn Engine, tokens: &[u32]) -> Result<f64, Failure> {
    let mut seconds = Vec::new();
    for &token in tokens {
        let begun = Instant::now();
        engine.argmax(&[token]).map_err(Failure::wrong)?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied().unwrap_or_default())
}

/// Seconds of one token in the mean: what a sparse engine takes depends on the token.
#[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
fn mean_seconds(engine: &mut dyn Engine, tokens: &[u32]) -> Result<f64, Failure> {
    let begun = Instant::now();
    for &token in tokens {
        engine.argmax(&[token]).map_err(Failure::wrong)?;
    }
    Ok(begun.elapsed().as_secs_f64() / tokens.len().max(1) as f64)
}

/// A dense engine in bf16, if there is memory for it.
fn dense(weights: &SparseWeights) -> Result<DenseEngine, Failure> {
    let bytes = token_bytes(&weights.config, Precision::Bf16) + 2 * weights.embed_tokens.rows() * weights.config.hidden_size;
    memory::refuse_without(bytes + (2 << 30))?;
    DenseEngine::from_weights(weights, Precision::Bf16).map_err(Failure::wrong)
}

fn sparse(weights: &SparseWeights) -> Result<SparseEngine, Failure> {
    SparseEngine::from_weights(weights, Precision::F32).map_err(Failure::wrong)
}

/// Recurrent states do not grow, so a token costs the same behind any number of tokens.
#[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
pub(super) fn context(setting: &Setting<'_>) -> Result<Curve, Failure> {
    let weights = weights(setting, Geometry::default().hidden, 0)?;
    let (longest, longest_dense, window, dense_window) =
        if setting.quick { (4096, 256, 256, 1) } else { (131_072, 2048, 1024, 8) };
    let stream = setting.stream(longest + window)?;
    let mut sparse = sparse(&weights)?;
    let mut points = Vec::new();
    let mut length = 256;
    while length <= longest {
        setting.say(&format!("context: sparse, {length} tokens"));
        for &token in &stream[sparse.position()..length] {
            sparse.argmax(&[token]).map_err(Failure::wrong)?;
        }
        points.push((length as f64, mean_seconds(&mut sparse, &stream[length..length + window])?));
        // The next length may lie within this window.
        length = (2 * length).max(sparse.position());
    }
    let mut dense = dense(&weights)?;
    let mut dense_points = Vec::new();
    let mut length = 64;
    while length <= longest_dense {
        setting.say(&format!("context: dense, {length} tokens"));
        dense.forward(&stream[dense.position()..length]).map_err(Failure::wrong)?;
        dense_points.push((length as f64, median_seconds(&mut dense, &stream[length..length + dense_window])?));
        length *= 2;
    }
    Ok(Curve {
        name: "context",
        title: "Time of a token against the length of the context",
        x: "tokens before",
        y: SECONDS,
        scale: Scale::Logarithmic,
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
        let mut least = f64::INFINITY;
        for _ in 0..setting.rounds() {
            let mut engine = sparse(&weights)?;
            least = least.min(mean_seconds(&mut engine, &stream)?);
        }
        fast.push((x, least));
        setting.say(&format!("{what} {size}: dense"));
        match dense(&weights) {
            Ok(mut engine) => {
                engine.forward(&stream[..16]).map_err(Failure::wrong)?;
                slow.push((x, median_seconds(&mut engine, &stream[16..if setting.quick { 18 } else { 24 }])?));
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
        scale: Scale::Logarithmic,
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
        scale: Scale::Logarithmic,
        series,
    })
}
