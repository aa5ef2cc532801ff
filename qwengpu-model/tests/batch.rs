//! Streams behind the trait, of either engine, against engines of their own.

mod common;

use common::fixture;
use qwengpu_model::{DenseEngine, Engine, Error, Precision, SparseEngine};

fn engines() -> [Box<dyn Engine>; 2] {
    let dense = DenseEngine::from_dir(&fixture(), Precision::F32).expect("a dense engine");
    let sparse = SparseEngine::from_dir(&fixture(), Precision::F32).expect("a sparse engine");
    [Box::new(dense), Box::new(sparse)]
}

#[test]
fn streams_hear_and_forget_by_themselves() {
    let prompts: [&[u32]; 3] = [&[3, 9, 4, 1], &[7], &[5, 5, 30]];
    for (mut engine, mut own) in engines().into_iter().zip(engines()) {
        engine.forward(&[11, 12]).expect("something to forget");
        let mut batch = engine.batch(3);
        assert_eq!((batch.len(), batch.is_empty()), (3, false));
        let mut next = Vec::new();
        for (stream, prompt) in prompts.into_iter().enumerate() {
            next.push(Some(batch.prefill(stream, prompt).expect("an id")));
        }
        let second = batch.argmax(&next).expect("ids");
        // One stream begins anew, another goes on.
        batch.reset(1).expect("a stream");
        let again = batch.prefill(1, &[2, 8]).expect("an id");
        let third = batch.argmax(&[second[0], None, second[2]]).expect("ids");
        assert_eq!(third[1], None);
        for (stream, prompt) in [(0, prompts[0]), (2, prompts[2])] {
            own.reset();
            assert_eq!(next[stream], own.argmax(prompt).ok(), "stream {stream}");
            assert_eq!(second[stream], own.argmax(&[next[stream].expect("an id")]).ok(), "stream {stream}");
            assert_eq!(third[stream], own.argmax(&[second[stream].expect("an id")]).ok(), "stream {stream}");
            states_agree(stream, batch.as_ref(), own.as_ref());
        }
        own.reset();
        assert_eq!(again, own.argmax(&[2, 8]).expect("an id"));
        states_agree(1, batch.as_ref(), own.as_ref());
        assert_eq!(batch.save(1).expect("a cache").position, 2);
        drop(batch);
        assert_eq!(engine.position(), 0, "the engine was reset");
        assert_eq!(engine.argmax(&[2, 8]).expect("an id"), again);
    }
}

fn states_agree(stream: usize, batch: &dyn qwengpu_model::Batch, own: &dyn Engine) {
    let mut compared = 0;
    for layer in 0..own.config().num_hidden_layers() {
        for head in 0..own.config().linear_num_value_heads {
            let Ok(expected) = own.recurrent_state(layer, head) else { continue };
            let got = batch.recurrent_state(stream, layer, head).expect("a state");
            let gap = common::largest_gap(got, expected);
            assert!(gap < 1e-5, "stream {stream}, layer {layer}, head {head}: {gap}");
            compared += usize::from(expected.iter().any(|&value| value != 0.0));
        }
    }
    assert!(compared > 0, "some states are not zero");
}

#[test]
fn what_is_not_there_is_refused() {
    for mut engine in engines() {
        let mut batch = engine.batch(2);
        let layers = batch.config().num_hidden_layers();
        assert!(matches!(batch.prefill(2, &[1]), Err(Error::NoStream { stream: 2, streams: 2 })));
        assert!(matches!(batch.prefill(1, &[]), Err(Error::NoTokens)));
        assert!(matches!(batch.prefill(1, &[1, 40]), Err(Error::TokenOutOfRange { token: 40, index: 1, .. })));
        assert!(matches!(batch.reset(2), Err(Error::NoStream { .. })));
        assert!(matches!(batch.recurrent_state(2, 0, 0), Err(Error::NoStream { .. })));
        assert!(matches!(batch.recurrent_state(0, layers, 0), Err(Error::NoRecurrentState { .. })));
        assert_eq!(batch.save(1).expect("a cache").position, 0, "refusals change nothing");
        assert!(batch.prefill(1, &[1]).is_ok());
    }
}
