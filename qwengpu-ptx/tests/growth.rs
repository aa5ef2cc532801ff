//! The work of lowering grows as the kernel does, and no faster.

#![allow(clippy::panic, reason = "a failing test panics")]

#[path = "common/growing.rs"]
#[allow(unreachable_pub, reason = "the bench uses it too")]
mod growing;

use std::time::{Duration, Instant};

use growing::{Shape, kernel};
use qwengpu_isa::MachineSpec;
use qwengpu_ptx::{LoweredKernel, Options, lower, parse};

const SHAPES: [Shape; 3] = [Shape::Straight, Shape::Branchy, Shape::Barriers];

/// The kernel on a machine with program memory for it, and the shortest of so many times.
fn lowered(shape: Shape, length: usize, attempts: usize) -> (LoweredKernel, Duration) {
    let module = parse(&kernel(shape, length)).unwrap_or_else(|error| panic!("{error}"));
    let options = Options::new(MachineSpec { rom_words: 0x8000, ..MachineSpec::seed() });
    let attempt = || {
        let begun = Instant::now();
        let lowered = lower(&module, None, &options).unwrap_or_else(|error| panic!("{shape:?} {length}: {error}"));
        (lowered, begun.elapsed())
    };
    let (kernel, first) = attempt();
    let shortest = (1..attempts).map(|_| attempt().1).fold(first, Duration::min);
    (kernel, shortest)
}

#[test]
fn eight_times_the_length_takes_no_more_passes_and_less_than_the_square() {
    for shape in SHAPES {
        let (short, short_time) = lowered(shape, 1_000, 3);
        let (long, long_time) = lowered(shape, 8_000, 2);
        let growth = long.program.instructions.len() as f64 / short.program.instructions.len() as f64;
        assert!((6.0..12.0).contains(&growth), "{shape:?}: {growth} times the program");
        // Rounds of optimisation are bounded; that they are not used up shows that each does what it can.
        let passes = (short.stats.passes.len(), long.stats.passes.len());
        assert!(passes.1 <= 2 * passes.0, "{shape:?}: {passes:?} passes");
        // Linear is 8, quadratic 64; half-way by factors leaves room for other work on the processor.
        let ratio = long_time.as_secs_f64() / short_time.as_secs_f64();
        assert!(ratio < 24.0, "{shape:?}: {ratio:.1} times as long, {short_time:?} and {long_time:?}");
    }
}

#[test]
fn ten_thousand_instructions_are_lowered_to_the_last() {
    for shape in SHAPES {
        let (kernel, _) = lowered(shape, 10_000, 1);
        let lines = kernel.source_map.iter().max();
        // The kernel's last stores stand at the end of its text.
        assert!(lines.is_some_and(|line| *line > 10_000), "{shape:?}: up to line {lines:?}");
    }
}
