//! Seconds to write a checkpoint: a machine of 4,000 tokens that repeat themselves, in layers of full size.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use qwengpu_circuit::{Builder, CompileOptions, Geometry, Token, compile};
use qwengpu_weights::{Dtype, EmitOptions, Source, emit};

const BITS: usize = 12;
const TOKENS: usize = 4000;

fn emission(criterion: &mut Criterion) {
    let mut builder = Builder::new();
    let bits: Vec<_> = (0..BITS).map(|bit| builder.input(&format!("bit[{bit}]"), 0..=1)).collect();
    let again: Vec<_> =
        bits.iter().enumerate().map(|(i, &bit)| builder.relu_bit(&format!("again[{i}]"), bit)).collect();
    for number in 0..TOKENS {
        let value = |i: usize| i64::try_from(number >> i & 1).expect("a bit");
        let inputs = bits.iter().enumerate().map(|(i, &bit)| (bit, value(i))).collect();
        let code = again.iter().enumerate().map(|(i, &bit)| (bit, 2 * value(i) - 1)).collect();
        builder.token(Token { text: format!("<|{number}|>"), inputs, code });
    }
    let netlist = builder.finish();
    let compiled = compile(&netlist, &Geometry::default(), &CompileOptions::default()).expect("weights");
    let (machine, margins) = (BTreeMap::new(), BTreeMap::new());
    let source = Source { netlist: &netlist, compiled: &compiled, halt_token: 0, machine, margins };
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("checkpoint");
    let mut group = criterion.benchmark_group("emission");
    group.sample_size(10);
    for dtype in [Dtype::Bf16, Dtype::F32] {
        let options = EmitOptions { dtype, overwrite: true, ..EmitOptions::default() };
        let write = || {
            let mut bytes = 0;
            let mut progress = |progress: qwengpu_weights::Progress| {
                bytes = progress.total;
                ControlFlow::Continue(())
            };
            emit(&source, &directory, &options, &mut progress).expect("a checkpoint");
            bytes
        };
        group.throughput(Throughput::Bytes(write()));
        group.bench_function(dtype.to_string(), |bencher| bencher.iter(write));
    }
    group.finish();
}

criterion_group!(benches, emission);
criterion_main!(benches);
