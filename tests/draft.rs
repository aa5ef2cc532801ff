//! Drafts: what a model confirms many records at a time is what it speaks by itself, however wrong the draft.

use qwengpu::{Argument, Check, Dim3, Draft, EngineKind, Gpu, Kernel, Launch, LaunchResult, Outcome, Record, Start};

const COLLATZ: &str = include_str!("../kernels/collatz.ptx");
const HISTOGRAM: &str = include_str!("../kernels/histogram.ptx");

/// Some 300 records: a draft takes two forwards.
fn collatz() -> Launch {
    Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&[7_u32, 39, 18, 25]))
        .argument(Argument::zeros::<i32>(4))
}

fn run(gpu: &mut Gpu, kernel: &Kernel, launch: &Launch, draft: Draft) -> LaunchResult {
    gpu.launch(kernel, &Launch { draft, ..launch.clone() }).expect("a launch")
}

/// What a launch gives must not depend on its draft.
fn assert_same(got: &LaunchResult, plain: &LaunchResult, what: &str) {
    assert_eq!(got.records, plain.records, "{what}");
    assert_eq!((&got.outcome, &got.buffers), (&plain.outcome, &plain.buffers), "{what}");
}

#[test]
fn the_model_decides() {
    let mut gpu = Gpu::new(EngineKind::Sparse).expect("a GPU");
    let kernel = Kernel::from_ptx(gpu.spec(), COLLATZ, None).expect("a kernel");
    let plain = run(&mut gpu, &kernel, &collatz(), Draft::Nothing);
    assert_eq!((&plain.outcome, plain.drafted), (&Outcome::Finished, 0));
    let last = plain.records.len() - 1;
    assert!(last > 280, "{last} records");

    let drafted = run(&mut gpu, &kernel, &collatz().checked(), Draft::Interp);
    assert_same(&drafted, &plain, "the interpreter's draft");
    assert_eq!((drafted.drafted, &drafted.check), (plain.records.len(), &Some(Check::Equal)));

    // One wrong record: in front, within and at the ends of what is heard at once, and at the end.
    for place in [0, 1, 100, 255, 256, 257, last - 1, last] {
        let mut draft = plain.records.clone();
        draft[place] = Record::Warp { warp: 5 };
        assert_ne!(draft[place], plain.records[place], "place {place} is wrong");
        let result = run(&mut gpu, &kernel, &collatz(), Draft::Records(draft));
        assert_same(&result, &plain, &format!("a wrong record at {place}"));
        assert_eq!(result.drafted, place);
    }
    for length in [1, 2, 255, 256, 257, 258, last] {
        let result = run(&mut gpu, &kernel, &collatz(), Draft::Records(plain.records[..length].to_vec()));
        assert_same(&result, &plain, &format!("a draft of {length}"));
        assert_eq!(result.drafted, length);
    }
    let long = [&plain.records[..], &plain.records[..7]].concat();
    let result = run(&mut gpu, &kernel, &collatz(), Draft::Records(long));
    assert_same(&result, &plain, "a draft that goes on behind the end");
}

#[test]
fn a_launch_that_is_cut_off_holds_what_was_spoken() {
    let mut gpu = Gpu::new(EngineKind::Sparse).expect("a GPU");
    let kernel = Kernel::from_ptx(gpu.spec(), HISTOGRAM, None).expect("a kernel");
    let whole = Launch::new(Dim3::linear(1), Dim3::linear(8))
        .argument(Argument::buffer(b"abcabcaa"))
        .argument(8_i32)
        .argument(Argument::zeros::<i32>(8));
    let records = run(&mut gpu, &kernel, &whole, Draft::Nothing).records;
    let length = records.len();
    let draft = Draft::Records(records);
    for max_tokens in [1, 2, length / 2, length - 2, length - 1] {
        let launch = Launch { max_tokens, ..whole.clone() };
        let plain = run(&mut gpu, &kernel, &launch, Draft::Nothing);
        assert_eq!(plain.outcome, Outcome::TokenLimit(max_tokens));
        assert_same(&run(&mut gpu, &kernel, &launch, draft.clone()), &plain, "cut off");
        assert_same(&run(&mut gpu, &kernel, &launch, Draft::Interp), &plain, "cut off");
    }
}

#[test]
fn launches_go_on_behind_drafts() {
    let mut gpu = Gpu::new(EngineKind::Sparse).expect("a GPU");
    let kernel = Kernel::from_ptx(gpu.spec(), HISTOGRAM, None).expect("a kernel");
    let launch = |start| Launch {
        start,
        ..Launch::new(Dim3::linear(1), Dim3::linear(8))
            .argument(Argument::buffer(b"abca"))
            .argument(4_i32)
            .argument(Argument::zeros::<i32>(8))
            .checked()
    };
    for (start, times) in [(Start::Overwrite, 1), (Start::Keep, 2), (Start::Keep, 3)] {
        let result = run(&mut gpu, &kernel, &launch(start), Draft::Interp);
        assert_eq!((&result.outcome, &result.check), (&Outcome::Finished, &Some(Check::Equal)));
        assert_eq!(result.drafted, result.tokens);
        let bins = result.buffers[1].to_vec::<i32>().expect("a buffer of i32");
        assert_eq!(bins, [0, 2 * times, times, times, 0, 0, 0, 0]);
    }
    // And behind one that was right for the launch before: the bins hold other counts now.
    let stale = run(&mut gpu, &kernel, &launch(Start::Keep), Draft::Nothing).records;
    let result = run(&mut gpu, &kernel, &launch(Start::Keep), Draft::Records(stale));
    assert!((1..result.tokens - 1).contains(&result.drafted), "{} of {}", result.drafted, result.tokens);
    assert_eq!(result.check, Some(Check::Equal));
    let result = run(&mut gpu, &kernel, &launch(Start::Keep), Draft::Interp);
    assert_eq!(result.buffers[1].to_vec::<i32>(), Some(vec![0, 12, 6, 6, 0, 0, 0, 0]));
}

/// The dense engine hears what it confirms in products of matrices.
#[test]
fn a_dense_model_confirms() {
    let mut gpu = Gpu::new(EngineKind::Dense).expect("a GPU");
    let kernel = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/vector_add.ptx"), None).expect("a kernel");
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&[1_i32, 2, 3]))
        .argument(Argument::buffer(&[10_i32, 20, 30]))
        .argument(Argument::zeros::<i32>(3))
        .argument(3_i32)
        .checked();
    let drafted = run(&mut gpu, &kernel, &launch, Draft::Interp);
    assert_eq!((drafted.drafted, &drafted.check), (drafted.tokens, &Some(Check::Equal)));
    let mut draft = drafted.records.clone();
    let place = draft.len() - 6;
    draft[place] = Record::Halt;
    let result = run(&mut gpu, &kernel, &launch, Draft::Records(draft));
    assert_same(&result, &drafted, "a wrong record");
    assert_eq!((result.drafted, &result.check), (place, &Some(Check::Equal)));
}
