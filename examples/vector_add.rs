//! Runs a CUDA kernel that was compiled to PTX on the compiled weights, and checks it against the interpreter.

use qwengpu::{Argument, Check, Dim3, EngineKind, Error, Gpu, Kernel, Launch};

fn main() -> Result<(), Error> {
    let mut gpu = Gpu::new(EngineKind::Sparse)?;
    let kernel = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/vector_add.ptx"), None)?;
    let launch = Launch::new(Dim3::linear(2), Dim3::linear(4))
        .argument(Argument::buffer(&[1_i32, 2, 3, 4, 5]))
        .argument(Argument::buffer(&[10_i32, 20, 30, 40, 50]))
        .argument(Argument::zeros::<i32>(5))
        .argument(5_i32)
        .checked();
    let result = gpu.launch(&kernel, &launch)?;
    println!("{:?}", result.buffers[2].values());
    println!("{} warp instructions, {} tokens", result.warp_instructions, result.tokens);
    println!("same as the interpreter: {}", result.check == Some(Check::Equal));
    Ok(())
}
