//! Many launches at once on one model: the streams share its weights, and each is a machine of its own.

use std::num::NonZeroUsize;
use std::time::Instant;

use qwengpu::{Argument, BatchEvent, Dim3, EngineKind, Gpu, Kernel, Launch, Outcome};

fn main() -> Result<(), qwengpu::Error> {
    // EngineKind::Dense gains by streams, since every read of its weights serves all of them.
    let mut gpu = Gpu::new(EngineKind::Sparse)?;
    let collatz = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/collatz.ptx"), None)?;
    let gcd = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/gcd.ptx"), None)?;

    let steps_from = |first: u32| {
        let numbers = [first, first + 1, first + 2, first + 3];
        Launch::new(Dim3::linear(1), Dim3::linear(4))
            .argument(Argument::buffer(&numbers))
            .argument(Argument::zeros::<i32>(4))
    };
    let divisor = Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&[48_u32, 1071, 17, 100]))
        .argument(Argument::buffer(&[36_u32, 462, 5, 75]))
        .argument(Argument::zeros::<u32>(4));
    let own: Vec<Launch> = (1..20).map(|i| steps_from(4 * i)).collect();
    let mut launches: Vec<(&Kernel, &Launch)> = own.iter().map(|launch| (&collatz, launch)).collect();
    launches.push((&gcd, &divisor));

    let streams = NonZeroUsize::new(8).expect("8 is not 0");
    println!("up to {} MB of states for each of {streams} streams", gpu.stream_bytes() >> 20);
    let begun = Instant::now();
    let results = gpu.launch_batch_with(&launches, streams, &mut |event| {
        if let BatchEvent::Ended { launch, .. } = event {
            println!("launch {launch} has ended after {:.3} s", begun.elapsed().as_secs_f64());
        }
    });
    for (result, (kernel, _)) in results.into_iter().zip(&launches) {
        let result = result?;
        assert_eq!(result.outcome, Outcome::Finished);
        println!("{}: {:?}", kernel.name(), result.buffers.last().map(|buffer| buffer.values().to_vec()));
    }
    Ok(())
}
