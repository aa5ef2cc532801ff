//! Greedy decoding: what ends it, and that a run can be forked.

mod common;

use std::ops::ControlFlow;

use common::fixture;
use qwengpu_model::{DenseEngine, Engine, GenerateOptions, Generation, Precision, SparseEngine, StopReason, generate};

const PROMPT: [u32; 3] = [5, 17, 30];

fn run(engine: &mut dyn Engine, max_new_tokens: usize, stop_ids: &[u32], callback_limit: usize) -> Generation {
    engine.reset();
    let options = GenerateOptions { max_new_tokens, stop_ids: stop_ids.to_vec() };
    let mut seen = Vec::new();
    let generation = generate(engine, &PROMPT, &options, &mut |token| {
        seen.push(token);
        if seen.len() == callback_limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .expect("a generation");
    assert_eq!(seen, generation.tokens, "the callback sees every token");
    generation
}

#[test]
fn ends_for_each_reason() {
    let mut dense = DenseEngine::from_dir(&fixture(), Precision::F32).expect("a dense engine");
    let mut sparse = SparseEngine::from_dir(&fixture(), Precision::F32).expect("a sparse engine");
    let whole = run(&mut dense, 12, &[], usize::MAX);
    assert_eq!((whole.tokens.len(), whole.stop), (12, StopReason::Length));
    assert_eq!(dense.position(), PROMPT.len() + 11, "the last token is not consumed");
    assert_eq!(run(&mut sparse, 12, &[], usize::MAX), whole);

    let stop = whole.tokens[6];
    let first = whole.tokens.iter().position(|&token| token == stop).expect("it is among them");
    let stopped = run(&mut dense, 12, &[99, stop], usize::MAX);
    assert_eq!(stopped.stop, StopReason::StopToken(stop));
    assert_eq!(stopped.tokens, whole.tokens[..=first]);

    let broken = run(&mut sparse, 12, &[], 4);
    assert_eq!(broken.stop, StopReason::Callback);
    assert_eq!(broken.tokens, whole.tokens[..4]);

    let none = run(&mut sparse, 0, &[], usize::MAX);
    assert_eq!(none, Generation { tokens: Vec::new(), stop: StopReason::Length });
    assert_eq!(sparse.position(), PROMPT.len());
}

#[test]
fn a_saved_cache_forks_a_run() {
    let mut engine = SparseEngine::from_dir(&fixture(), Precision::F32).expect("a sparse engine");
    engine.forward(&PROMPT).expect("logits");
    let fork = engine.save();
    let expected = engine.argmax_all(&[1, 2, 3]).expect("ids");
    engine.argmax_all(&[4, 5]).expect("ids");
    engine.restore(&fork).expect("its own cache");
    assert_eq!(engine.position(), PROMPT.len());
    assert_eq!(engine.argmax_all(&[1, 2, 3]).expect("ids"), expected);
    let mut other = engine.clone();
    assert_eq!(other.forward(&[7]).expect("logits"), engine.forward(&[7]).expect("logits"));
}
