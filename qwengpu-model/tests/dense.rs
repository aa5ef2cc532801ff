//! What the dense engine may do without a change of its results: leave weights in files, share them, use threads.

mod common;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use common::{fixture, largest_gap};
use qwengpu_model::{Batch, DenseBatch, DenseEngine, Engine, Error, Precision, SparseWeights};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tempfile::TempDir;

/// f32 rounding through the four layers of the fixture, where sums have another order.
const TOLERANCE: f32 = 1e-4;

/// Logits of a prefill that is long enough for the general product, and of a step behind it.
fn logits(engine: &mut DenseEngine) -> Vec<u32> {
    engine.reset();
    let prompt: Vec<u32> = (0..70).map(|i| i * 7 % 40).collect();
    let mut all = engine.forward(&prompt).expect("logits").to_vec();
    all.extend(engine.forward(&[3]).expect("logits"));
    all.iter().map(|logit| logit.to_bits()).collect()
}

/// A copy of the fixture whose weights are a file of these bytes.
fn checkpoint(weights: &[u8]) -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    for name in ["config.json", "generation_config.json"] {
        fs::copy(fixture().join(name), dir.path().join(name)).expect("a copy");
    }
    fs::write(dir.path().join("model.safetensors"), weights).expect("written");
    dir
}

fn weights() -> Vec<u8> {
    fs::read(fixture().join("model.safetensors")).expect("the fixture")
}

/// The fixture's weights, rounded.
fn rounded() -> Vec<u8> {
    let bytes = weights();
    let file = SafeTensors::deserialize(&bytes).expect("a valid fixture");
    let round = |view: &TensorView<'_>| -> Vec<u8> {
        let values = view.data().as_chunks::<4>().0.iter().map(|&b| half::bf16::from_f32(f32::from_le_bytes(b)));
        values.flat_map(half::bf16::to_le_bytes).collect()
    };
    let tensors: Vec<_> = file.iter().map(|(name, view)| (name, view.shape().to_vec(), round(&view))).collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (*name, TensorView::new(Dtype::BF16, shape.clone(), bytes).expect("a valid tensor"))
    });
    safetensors::serialize(views, None).expect("a file")
}

/// The same file with a header that is one byte longer, so that no value is where a processor reads it in one piece.
fn shifted(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_first_chunk::<8>().expect("a header");
    let length = u64::from_le_bytes(*length);
    let (header, data) = rest.split_at(usize::try_from(length).expect("a short header"));
    [&(length + 1).to_le_bytes()[..], header, b" ", data].concat()
}

fn engine(dir: &Path, precision: Precision) -> DenseEngine {
    DenseEngine::from_dir(dir, precision).expect("a dense engine")
}

#[test]
fn weights_in_files_are_those_in_memory() {
    let sparse = SparseWeights::from_dir(&fixture()).expect("weights");
    let shifted_f32 = checkpoint(&shifted(&weights()));
    let in_bf16 = checkpoint(&rounded());
    let shifted_bf16 = checkpoint(&shifted(&rounded()));
    for precision in [Precision::F32, Precision::Bf16] {
        let mut in_memory = DenseEngine::from_weights(&sparse, precision).expect("a dense engine");
        let expected = logits(&mut in_memory);
        assert_eq!(logits(&mut engine(&fixture(), precision)), expected);
        assert_eq!(logits(&mut engine(shifted_f32.path(), precision)), expected);
        let from_bf16 = [in_bf16.path(), shifted_bf16.path()].map(|dir| logits(&mut engine(dir, precision)));
        assert_eq!(from_bf16[0], from_bf16[1]);
        assert_eq!(from_bf16[0] == expected, precision == Precision::Bf16, "rounding is seen in f32 alone");
    }
}

#[test]
fn threads_change_no_bit() {
    for precision in [Precision::F32, Precision::Bf16] {
        let mut engine = engine(&fixture(), precision);
        let expected = logits(&mut engine);
        for threads in [1, 2, 3] {
            engine.set_threads(NonZeroUsize::new(threads).expect("a number")).expect("threads");
            assert_eq!(logits(&mut engine), expected, "{threads} threads");
        }
    }
}

#[test]
fn a_batch_is_as_many_engines() {
    // Few streams and many take different ways through the weights.
    for streams in [1, 3, 40] {
        let base = engine(&fixture(), Precision::F32);
        let mut batch = DenseBatch::new(&base, streams);
        let mut engines = vec![base; streams];
        for (stream, engine) in engines.iter_mut().enumerate() {
            let prompt: Vec<u32> = (0..1 + u32::try_from(stream % 5).expect("small")).map(|i| 3 + i).collect();
            engine.forward(&prompt).expect("logits");
            batch.restore(stream, &engine.save()).expect("a fitting cache");
        }
        for step in 0..4_usize {
            // A third of the streams sits out, another in each step.
            let tokens: Vec<Option<u32>> = (0..streams)
                .map(|stream| {
                    (streams == 1 || (stream + step) % 3 > 0)
                        .then_some(u32::try_from((stream + 5 * step) % 40).expect("small"))
                })
                .collect();
            let logits = batch.forward(&tokens).expect("logits");
            let mut rows = logits.chunks_exact(batch.config().vocab_size);
            for (engine, token) in engines.iter_mut().zip(&tokens) {
                if let Some(token) = token {
                    let gap = largest_gap(rows.next().expect("a row"), engine.forward(&[*token]).expect("logits"));
                    assert!(gap <= TOLERANCE, "{streams} streams, step {step}: {gap}");
                }
            }
            assert_eq!(rows.next(), None);
        }
        for (stream, engine) in engines.iter_mut().enumerate() {
            let (own, expected) = (batch.save(stream).expect("a cache"), engine.save());
            assert_eq!(own.position, expected.position);
            engine.restore(&own).expect("its cache");
        }
        let tokens = vec![Some(9); streams];
        let ids = batch.argmax(&tokens).expect("ids");
        let expected: Vec<_> = engines.iter_mut().map(|engine| engine.argmax(&[9]).ok()).collect();
        assert_eq!(ids, expected);
    }
}

#[test]
fn batches_refuse_what_they_have_not() {
    let mut engine = engine(&fixture(), Precision::F32);
    let mut batch = DenseBatch::new(&engine, 2);
    assert!((batch.len(), batch.is_empty()) == (2, false) && DenseBatch::new(&engine, 0).is_empty());
    let refused = |result: Result<Vec<f32>, Error>| result.expect_err("a refusal").to_string();
    assert_eq!(refused(batch.forward(&[Some(1)])), "1 tokens for 2 streams: give None to a stream that hears nothing");
    assert!(matches!(batch.forward(&[None, None]), Err(Error::NoTokens)));
    assert!(matches!(batch.forward(&[Some(1), Some(40)]), Err(Error::TokenOutOfRange { token: 40, .. })));
    assert!(matches!(batch.save(2), Err(Error::NoStream { stream: 2, streams: 2 })));
    engine.forward(&[1, 2]).expect("logits");
    assert!(matches!(batch.restore(2, &engine.save()), Err(Error::NoStream { stream: 2, streams: 2 })));
    let mut other = engine.save();
    other.layers.pop();
    assert!(matches!(batch.restore(0, &other), Err(Error::CacheLayers { .. })));
    assert_eq!(batch.save(0).expect("a cache").position, 0, "refusals change nothing");
}
