//! Tokens against work, from the interpreter: the same on every machine.

use qwengpu::{Argument, Dim3, EngineKind, Gpu, Kernel, Launch, Outcome, Precision};

use super::{Curve, Failure, Series, Setting};

const MATMUL: &str = include_str!("matmul.ptx");

/// A kernel with the launch that does so much work.
struct Subject {
    name: &'static str,
    kernel: Kernel,
    /// Size of a launch, and its work.
    sizes: Vec<(u16, f64)>,
    launch: fn(u16) -> Launch,
    expected: fn(u16) -> Option<Argument>,
}

pub(super) fn measure(setting: &Setting<'_>) -> Result<Curve, Failure> {
    setting.say("tokens against work");
    let mut gpu = setting.gpu(EngineKind::Interp, Precision::F32)?;
    let matmul = Kernel::from_ptx(gpu.spec(), MATMUL, None)
        .map_err(|error| Failure::from_kernel(error, std::path::Path::new("matmul.ptx")))?;
    let linear = |sizes: &[u16]| sizes.iter().map(|&size| (size, f64::from(size))).collect();
    let subjects = [
        Subject {
            name: "vector_add: elements",
            kernel: setting.kernel("vector_add")?.0,
            sizes: linear(&[1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]),
            launch: |size| {
                Launch::new(Dim3::linear(size.div_ceil(4)), Dim3::linear(4))
                    .argument(numbers(size, 3))
                    .argument(numbers(size, 5))
                    .argument(zeros(size))
                    .argument(i32::from(size))
            },
            expected: |size| Some(values(size, |i| 8 * i)),
        },
        Subject {
            name: "monte_carlo: iterations of each thread",
            kernel: setting.kernel("monte_carlo")?.0,
            sizes: linear(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
            launch: |size| {
                Launch::new(Dim3::linear(1), Dim3::linear(4))
                    .argument(12_345_u32)
                    .argument(i32::from(size))
                    .argument(Argument::zeros::<u32>(4))
                    .argument(Argument::zeros::<i32>(1))
            },
            expected: |_| None,
        },
        Subject {
            name: "dot_product: elements reduced to one",
            kernel: setting.kernel("dot_product")?.0,
            sizes: linear(&[1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 60]),
            launch: |size| {
                Launch::new(Dim3::linear(1), Dim3::linear(4))
                    .argument(numbers(size, 1))
                    .argument(numbers(size, 1))
                    .argument(zeros(1))
                    .argument(i32::from(size))
            },
            expected: |size| Some(values(1, |_| (0..i32::from(size)).map(|i| i * i).sum())),
        },
        Subject {
            name: "matmul: products, n³",
            kernel: matmul,
            sizes: (1..=6).map(|size| (size, f64::from(size).powi(3))).collect(),
            launch: |size| {
                let entries = size * size;
                Launch::new(Dim3::linear(size), Dim3::linear(size))
                    .argument(numbers(entries, 1))
                    .argument(numbers(entries, 1))
                    .argument(zeros(entries))
                    .argument(i32::from(size))
            },
            expected: |size| {
                let n = i32::from(size);
                Some(values(size * size, |i| (0..n).map(|k| (i / n * n + k) * (k * n + i % n)).sum()))
            },
        },
    ];
    let series = subjects.iter().map(|subject| run(&mut gpu, subject)).collect::<Result<Vec<_>, _>>()?;
    Ok(Curve {
        name: "work",
        title: "Tokens against work",
        x: "work of a launch (unit of each kernel)",
        y: "tokens spoken",
        base: 10.0,
        series,
    })
}

/// One series, with results compared where they are easily known.
#[expect(clippy::cast_precision_loss, reason = "a launch has a million tokens at most")]
fn run(gpu: &mut Gpu, subject: &Subject) -> Result<Series, Failure> {
    let mut points = Vec::new();
    for &(size, work) in &subject.sizes {
        let launch = (subject.launch)(size);
        let result = gpu.launch(&subject.kernel, &launch);
        let result = result.map_err(|error| Failure::from_library(error, std::path::Path::new(subject.name)))?;
        let wrong = |what: &str| Failure::wrong(format!("{} of size {size}: {what}", subject.name));
        if result.outcome != Outcome::Finished {
            return Err(wrong("the launch does not end"));
        }
        if let Some(expected) = (subject.expected)(size) {
            let found = result.buffers.iter().any(|buffer| Argument::Buffer(buffer.clone()) == expected);
            found.then_some(()).ok_or_else(|| wrong("the result is wrong"))?;
        }
        points.push((work, result.tokens as f64));
    }
    Ok(Series { name: subject.name.to_owned(), points })
}

fn values(count: u16, value: impl Fn(i32) -> i32) -> Argument {
    Argument::buffer(&(0..i32::from(count)).map(value).collect::<Vec<_>>())
}

fn numbers(count: u16, factor: i32) -> Argument {
    values(count, |i| factor * i)
}

fn zeros(count: u16) -> Argument {
    Argument::zeros::<i32>(usize::from(count))
}
