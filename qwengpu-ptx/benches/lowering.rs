//! Lowering of kernels of growing length: the throughput, in PTX instructions, should stay what it is.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

#[path = "../tests/common/growing.rs"]
#[allow(unreachable_pub, reason = "the tests use it too")]
mod growing;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use growing::{Shape, kernel};
use qwengpu_isa::MachineSpec;
use qwengpu_ptx::{Options, lower, parse};

fn lowering(criterion: &mut Criterion) {
    // Program memory for the longest; a kernel that does not fit is lowered up to the error, and more than once.
    let options = Options::new(MachineSpec { rom_words: 0x8000, ..MachineSpec::seed() });
    let mut group = criterion.benchmark_group("lower");
    group.sample_size(10);
    for shape in [Shape::Straight, Shape::Branchy, Shape::Barriers] {
        for length in [1_000_usize, 3_000, 10_000, 30_000] {
            let module = parse(&kernel(shape, length)).expect("the kernel is PTX");
            group.throughput(Throughput::Elements(length as u64));
            group.bench_function(BenchmarkId::new(format!("{shape:?}"), length), |bencher| {
                bencher.iter(|| lower(&module, None, &options).expect("the kernel fits"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, lowering);
criterion_main!(benches);
