//! Tokens a second of the dense engine, many at once and one at a time, on two layers shaped like a compiled machine.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

mod common;

use common::{Dice, VOCABULARY, compiled_shape};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use qwengpu_model::{DenseEngine, Engine, Precision};

fn prefill(criterion: &mut Criterion) {
    let mut dice = Dice(2);
    let stream: Vec<u32> = (0..256).map(|_| dice.below(VOCABULARY)).collect();
    let weights = compiled_shape(1);
    let mut group = criterion.benchmark_group("dense");
    group.sample_size(10);
    for (name, precision) in [("f32", Precision::F32), ("bf16", Precision::Bf16)] {
        let mut engine = DenseEngine::from_weights(&weights, precision).expect("an engine");
        group.throughput(Throughput::Elements(stream.len() as u64));
        group.bench_function(format!("prefill, {name}"), |bencher| {
            bencher.iter(|| {
                engine.reset();
                engine.forward(&stream).expect("logits")[0]
            });
        });
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("decode, {name}"), |bencher| {
            bencher.iter(|| engine.argmax(&stream[..1]).expect("an id"));
        });
    }
    group.finish();
}

criterion_group!(benches, prefill);
criterion_main!(benches);
