//! Tokens per second of the sparse engine on weights shaped like a compiled machine.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

mod common;

use common::{Dice, VOCABULARY, compiled_shape};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use qwengpu_model::{Engine, Precision, SparseEngine};

fn tokens(criterion: &mut Criterion) {
    let stream: Vec<u32> = {
        // A loop over 64 records, as a program would have it.
        let mut dice = Dice(2);
        let records: Vec<u32> = (0..64).map(|_| dice.below(VOCABULARY)).collect();
        records.iter().copied().cycle().take(256).collect()
    };
    let mut group = criterion.benchmark_group("sparse");
    group.throughput(Throughput::Elements(stream.len() as u64));
    for linear_layers in [12, 23] {
        let weights = compiled_shape(linear_layers);
        let mut engine = SparseEngine::from_weights(&weights, Precision::F32).expect("an engine");
        assert_eq!(engine.argmax_all(&stream).expect("ids"), stream, "every token answers itself");
        group.bench_function(format!("choose, {linear_layers} layers"), |bencher| {
            bencher.iter(|| engine.argmax_all(&stream).expect("ids"));
        });
        group.bench_function(format!("consume, {linear_layers} layers"), |bencher| {
            bencher.iter(|| engine.forward(&stream).expect("logits")[0]);
        });
    }
    group.finish();
}

criterion_group!(benches, tokens);
criterion_main!(benches);
