//! The machine in front of a base answers as its netlist does, and leaves the base's memory alone.

use std::path::Path;

use qwengpu_circuit::Evaluator;
use qwengpu_model::{DenseEngine, Engine, LayerCache, Precision, SparseEngine};
use qwengpu_weights::{Dtype, Layout};

use crate::random_base::RandomBase;
use crate::tiny::{halt, read, value, write};
use crate::{Merged, options, words};

fn engines(dir: &Path, precision: Precision) -> [Box<dyn Engine>; 2] {
    let dense = DenseEngine::from_dir(dir, precision).expect("a model");
    let sparse = SparseEngine::from_dir(dir, precision).expect("a model");
    [Box::new(dense), Box::new(sparse)]
}

/// What the machine hears: writes, then a question.
const PROMPT: usize = 5;

fn prompt() -> [usize; PROMPT] {
    [write(1, 5), write(0, 3), write(3, 7), write(1, 6), read(0)]
}

/// The netlist's answer.
fn answer(merged: &Merged) -> Vec<usize> {
    let mut evaluator = Evaluator::new(&merged.tiny.netlist);
    prompt().iter().for_each(|&token| evaluator.run(token).expect("a token"));
    let mut answer = vec![evaluator.next(read(0)).expect("no tie")];
    while answer.last() != Some(&halt()) {
        let last = answer[answer.len() - 1];
        evaluator.run(last).expect("a token");
        answer.push(evaluator.next(last).expect("no tie"));
    }
    answer
}

/// Recurrent states and windows of attention of the base's layers.
fn memory(engine: &dyn Engine, merged: &Merged) -> Vec<Vec<u32>> {
    let cache = engine.save();
    let places = &merged.manifest.merge.as_ref().expect("a base").base_layers;
    let states = places.iter().filter_map(|&place| match &cache.layers[place] {
        LayerCache::Linear { recurrent, .. } => {
            Some(recurrent.to_dense().iter().map(|value| value.to_bits()).collect())
        }
        LayerCache::Full { .. } => None,
    });
    states.collect()
}

fn check(base: &RandomBase, hidden: usize, layout: Layout, dtype: Dtype) {
    let merged = Merged::new(base, hidden, &options(dtype, layout));
    let expected = answer(&merged);
    assert_eq!(expected, [value(3), read(1), value(6), read(2), value(0), read(3), value(7), halt()]);
    let precision = if dtype == Dtype::F32 { Precision::F32 } else { Precision::Bf16 };
    let memory_of = merged.manifest.state("memory", 0).expect("the memory").to_location();
    for mut engine in engines(&merged.merged(), precision) {
        // Language before the machine's tokens, so that every part of the base remembers something.
        engine.forward(&words(base, 70)).expect("a forward");
        let before = memory(engine.as_ref(), &merged);
        assert!(before.iter().flatten().any(|&bits| bits != 0));
        let tokens: Vec<u32> = prompt().iter().map(|&number| merged.id(number)).collect();
        let mut spoken = Vec::new();
        let mut next = engine.argmax(&tokens).expect("a forward");
        assert!(memory(engine.as_ref(), &merged) == before, "a prefill of machine tokens changed the base");
        loop {
            spoken.push(merged.manifest.token_number(next).expect("a token of the machine"));
            if spoken.last() == Some(&halt()) || spoken.len() > 20 {
                break;
            }
            next = engine.argmax(&[next]).expect("a forward");
        }
        assert_eq!(spoken, expected);
        assert!(memory(engine.as_ref(), &merged) == before, "machine tokens changed the base");
        // The machine's memory is where the manifest says: row 1 holds 6.
        let bits = (0..3).map(|bit| {
            let (head, row, column) = memory_of.bit(1, bit).expect("a bit");
            engine.recurrent_state(memory_of.layer, head).expect("a state")[row * 128 + column]
        });
        let bits: Vec<f32> = bits.collect();
        assert!((bits[0]).abs() < 1e-3 && (bits[1] - 128.0).abs() < 1e-3 && (bits[2] - 128.0).abs() < 1e-3, "{bits:?}");
        // Language goes on without machine tokens in its answer.
        let word = engine.argmax(&words(base, 3)).expect("a forward");
        assert_eq!(merged.manifest.token_number(word), None);
    }
}

#[test]
fn in_front_of_a_plain_base() {
    check(&RandomBase::tiny(), 256, Layout::Prefix, Dtype::F32);
    check(&RandomBase { tied: true, ..RandomBase::tiny() }, 320, Layout::Portable, Dtype::Bf16);
}

#[test]
fn in_front_of_a_base_with_more_value_heads() {
    let base = RandomBase { key_heads: 2, value_heads: 4, hidden: 80, multimodal: true, seed: 9, ..RandomBase::tiny() };
    check(&base, 256, Layout::Portable, Dtype::F32);
    check(&base, 512, Layout::Prefix, Dtype::Bf16);
}
