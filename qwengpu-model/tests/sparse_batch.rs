//! Streams on one sparse model against as many engines.

mod common;

use common::fixture;
use qwengpu_model::{Batch, Engine, Error, Precision, SparseBatch, SparseEngine};

fn engine() -> SparseEngine {
    SparseEngine::from_dir(&fixture(), Precision::F32).expect("a sparse engine")
}

#[test]
fn a_batch_is_as_many_engines() {
    const STREAMS: usize = 5;
    let mut batch = SparseBatch::new(engine(), STREAMS);
    let mut engines = vec![engine(); STREAMS];
    for (stream, engine) in (0_u32..).zip(&mut engines) {
        let prompt: Vec<u32> = (0..=stream).map(|i| 3 + i).collect();
        engine.forward(&prompt).expect("logits");
        batch.restore(stream as usize, &engine.save()).expect("a fitting cache");
    }
    for step in 0..12_u32 {
        // A third of the streams sits out, another in each step.
        let token = |stream: u32| (!(stream + step).is_multiple_of(3)).then_some((7 * stream + 5 * step) % 40);
        let tokens: Vec<Option<u32>> = (0_u32..).map(token).take(STREAMS).collect();
        let expected = engines.iter_mut().zip(&tokens);
        let expected = expected.map(|(engine, token)| token.map(|token| engine.argmax(&[token]).expect("an id")));
        assert_eq!(expected.collect::<Vec<_>>(), batch.argmax(&tokens).expect("ids"));
    }
    for (stream, engine) in engines.iter().enumerate() {
        assert_eq!(batch.save(stream).expect("a cache"), engine.save());
    }
}

#[test]
fn batches_refuse_what_they_have_not() {
    let mut engine = engine();
    let mut batch = SparseBatch::new(engine.clone(), 2);
    assert!((batch.len(), batch.is_empty()) == (2, false) && SparseBatch::new(engine.clone(), 0).is_empty());
    assert!(matches!(batch.argmax(&[Some(1)]), Err(Error::BatchTokens { expected: 2, got: 1 })));
    assert!(matches!(batch.argmax(&[None, None]), Err(Error::NoTokens)));
    assert!(matches!(batch.argmax(&[Some(1), Some(40)]), Err(Error::TokenOutOfRange { token: 40, .. })));
    assert!(matches!(batch.save(2), Err(Error::NoStream { stream: 2, streams: 2 })));
    engine.forward(&[1, 2]).expect("logits");
    assert!(matches!(batch.restore(2, &engine.save()), Err(Error::NoStream { stream: 2, streams: 2 })));
    let mut other = engine.save();
    other.layers.pop();
    assert!(matches!(batch.restore(0, &other), Err(Error::CacheLayers { .. })));
    assert_eq!(batch.save(0).expect("a cache").position, 0, "refusals change nothing");
}
