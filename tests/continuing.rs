//! Launches that go on with the machine as others left it, on every engine that is quick enough, checked record by record.

use qwengpu::{Argument, Check, Dim3, EngineKind, Error, Gpu, Kernel, Launch, LaunchError, Outcome, Record, Start};

const HISTOGRAM: &str = include_str!("../kernels/histogram.ptx");
const VECTOR_ADD: &str = include_str!("../kernels/vector_add.ptx");

fn histogram(text: &[u8], start: Start) -> Launch {
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(8))
        .argument(Argument::buffer(text))
        .argument(i32::try_from(text.len()).expect("a short text"))
        .argument(Argument::zeros::<i32>(8));
    Launch { start, check: true, ..launch }
}

/// Runs a launch; gives the bins and whether the program was spoken.
fn bins(gpu: &mut Gpu, kernel: &Kernel, launch: &Launch) -> (Vec<i32>, bool) {
    let result = gpu.launch(kernel, launch).expect("a launch");
    assert_eq!((&result.outcome, &result.check), (&Outcome::Finished, &Some(Check::Equal)), "{}", gpu.engine());
    let spoken = result.prompt.iter().any(|record| matches!(record, Record::Rom { .. }));
    (result.buffers[1].to_vec::<i32>().expect("a buffer of i32"), spoken)
}

#[test]
fn memory_and_program_outlast_a_launch() {
    for engine in [EngineKind::Interp, EngineKind::Netlist, EngineKind::Sparse] {
        let mut gpu = Gpu::new(engine).expect("a GPU");
        let kernel = Kernel::from_ptx(gpu.spec(), HISTOGRAM, None).expect("a kernel");
        let refused = gpu.launch(&kernel, &histogram(b"abc", Start::Keep));
        assert!(matches!(refused, Err(Error::Launch(LaunchError::NothingKept))), "{refused:?}");

        let first = histogram(b"abca", Start::Overwrite);
        assert_eq!(bins(&mut gpu, &kernel, &first), (vec![0, 2, 1, 1, 0, 0, 0, 0], true), "nothing is there yet");
        let kept = histogram(b"----", Start::Keep);
        assert_eq!(
            bins(&mut gpu, &kernel, &kept),
            (vec![0, 4, 2, 2, 0, 0, 0, 0], false),
            "the text is the first one's"
        );
        assert_eq!(bins(&mut gpu, &kernel, &kept), (vec![0, 6, 3, 3, 0, 0, 0, 0], false));
        let second = histogram(b"cc", Start::Overwrite);
        assert_eq!(bins(&mut gpu, &kernel, &second), (vec![0, 0, 0, 2, 0, 0, 0, 0], false), "zeros are written");

        // Another program; then the first one again, on a machine that is switched on for it.
        let other = Kernel::from_ptx(gpu.spec(), VECTOR_ADD, None).expect("a kernel");
        let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
            .argument(Argument::buffer(&[1_i32, 2]))
            .argument(Argument::buffer(&[10_i32, 20]))
            .argument(Argument::zeros::<i32>(2))
            .argument(2_i32);
        let result = gpu.launch(&other, &Launch { start: Start::Overwrite, check: true, ..launch }).expect("a launch");
        assert_eq!(result.check, Some(Check::Equal));
        assert_eq!(result.buffers[2].to_vec::<i32>(), Some(vec![11, 22]));
        for _ in 0..2 {
            let fresh = histogram(b"abca", Start::Fresh);
            assert_eq!(bins(&mut gpu, &kernel, &fresh), (vec![0, 2, 1, 1, 0, 0, 0, 0], true));
        }
    }
}

#[test]
fn a_launch_that_was_cut_off_leaves_nothing() {
    let mut gpu = Gpu::new(EngineKind::Interp).expect("a GPU");
    let kernel = Kernel::from_ptx(gpu.spec(), HISTOGRAM, None).expect("a kernel");
    let cut = Launch { max_tokens: 5, check: false, ..histogram(b"abca", Start::Fresh) };
    let result = gpu.launch(&kernel, &cut).expect("a launch");
    assert_eq!(result.outcome, Outcome::TokenLimit(5));
    let refused = gpu.launch(&kernel, &histogram(b"abca", Start::Keep));
    assert!(matches!(refused, Err(Error::Launch(LaunchError::NothingKept))), "{refused:?}");
    assert_eq!(bins(&mut gpu, &kernel, &histogram(b"b", Start::Overwrite)).0, [0, 0, 1, 0, 0, 0, 0, 0]);
}
