//! Tokens a second of every engine: the same launch of `vector_add`.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use qwengpu::{Argument, Dim3, EngineKind, Gpu, GpuOptions, Kernel, Launch, Precision};

fn engines(criterion: &mut Criterion) {
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&[1_i32, 2, 3, 4]))
        .argument(Argument::buffer(&[10_i32, 20, 30, 40]))
        .argument(Argument::zeros::<i32>(4))
        .argument(4_i32);
    let mut group = criterion.benchmark_group("engines");
    group.sample_size(10);
    // The dense engine takes a fifth of a second for a token, so it speaks two.
    for (name, engine, precision, max_tokens) in [
        ("interp", EngineKind::Interp, Precision::F32, 1000),
        ("netlist", EngineKind::Netlist, Precision::F32, 1000),
        ("sparse", EngineKind::Sparse, Precision::F32, 1000),
        ("dense bf16", EngineKind::Dense, Precision::Bf16, 2),
    ] {
        let mut gpu = Gpu::with_options(&GpuOptions { precision, ..GpuOptions::new(engine) }).expect("an engine");
        let text = include_str!("../kernels/vector_add.ptx");
        let kernel = Kernel::from_ptx(gpu.spec(), text, None).expect("a kernel");
        let launch = Launch { max_tokens, ..launch.clone() };
        let tokens = gpu.launch(&kernel, &launch).expect("it runs").tokens;
        group.throughput(Throughput::Elements(tokens as u64));
        group.bench_function(name, |bencher| bencher.iter(|| gpu.launch(&kernel, &launch).expect("it runs").tokens));
    }
    group.finish();
}

criterion_group!(benches, engines);
criterion_main!(benches);
