//! Seconds from a specification to proven weights, in its three steps.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use criterion::{Criterion, criterion_group, criterion_main};
use qwengpu_circuit::{CompileOptions, Dtype, Geometry, compile, prove};
use qwengpu_isa::MachineSpec;

fn compilation(criterion: &mut Criterion) {
    let spec = MachineSpec::seed();
    let (geometry, options) = (Geometry::default(), CompileOptions::default());
    let machine = qwengpu_machine::build(&spec).expect("a netlist");
    let compiled = compile(&machine.netlist, &geometry, &options).expect("weights");
    let mut group = criterion.benchmark_group("compilation");
    group.sample_size(10);
    group.bench_function("netlist", |bencher| bencher.iter(|| qwengpu_machine::build(&spec).expect("a netlist")));
    group.bench_function("weights", |bencher| {
        bencher.iter(|| compile(&machine.netlist, &geometry, &options).expect("weights"));
    });
    group.bench_function("proof", |bencher| {
        bencher.iter(|| prove(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]).expect("a proof"));
    });
    group.finish();
}

criterion_group!(benches, compilation);
criterion_main!(benches);
