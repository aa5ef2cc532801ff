//! Shows a loop whose lanes leave at different times: the records of each warp instruction in words.

use qwengpu::{Argument, Dim3, EngineKind, Error, Gpu, Kernel, Launch, Narrator};

fn main() -> Result<(), Error> {
    let mut gpu = Gpu::new(EngineKind::Interp)?;
    let spec = *gpu.spec();
    let kernel = Kernel::from_ptx(&spec, include_str!("../kernels/collatz.ptx"), None)?;
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&[1_u32, 2, 3, 4]))
        .argument(Argument::zeros::<i32>(4));
    let mut narrator = Narrator::new(&spec, &kernel);
    let result = gpu.launch_with(&kernel, &launch, &mut |record| {
        for line in narrator.hear(record) {
            println!("{line}");
        }
    })?;
    println!("steps: {:?}", result.buffers[1].values());
    Ok(())
}
