//! Many launches at once: each gives what it gives alone on a fresh machine.

use std::num::NonZeroUsize;

use qwengpu::{
    Argument, BatchEvent, Check, Dim3, Draft, EngineKind, Error, Gpu, Kernel, Launch, LaunchError, LaunchResult,
    Outcome, Record, Start,
};

/// A kernel that reads the word which its argument says, and never ends if that is 0.
const SPIN: &str = "\
.kernel spin
.param pointer offset 0 size 8 align 8 data
    ld.b32 r1, [c[0]]
    setp.eq p0, r1, 0
again:
    @p0 bra again
    iadd r1, r1, 7
    st.b32 [c[0]], r1
    exit
";

struct Mix {
    kernels: Vec<Kernel>,
    /// A kernel's place, and a launch of it.
    launches: Vec<(usize, Launch)>,
}

impl Mix {
    fn new(gpu: &Gpu) -> Self {
        let ptx = [
            include_str!("../kernels/vector_add.ptx"),
            include_str!("../kernels/collatz.ptx"),
            include_str!("../kernels/histogram.ptx"),
        ];
        let mut kernels: Vec<Kernel> =
            ptx.iter().map(|ptx| Kernel::from_ptx(gpu.spec(), ptx, None).expect("a kernel")).collect();
        kernels.push(Kernel::from_assembly(gpu.spec(), SPIN).expect("a kernel"));
        Self { kernels, launches: Vec::new() }
    }

    fn add(mut self, kernel: usize, launch: Launch) -> Self {
        self.launches.push((kernel, launch));
        self
    }

    fn pairs(&self) -> Vec<(&Kernel, &Launch)> {
        self.launches.iter().map(|(kernel, launch)| (&self.kernels[*kernel], launch)).collect()
    }

    /// Runs the launches at once and gives what they gave.
    fn run(&self, gpu: &mut Gpu, streams: usize) -> Vec<Result<LaunchResult, Error>> {
        gpu.launch_batch(&self.pairs(), NonZeroUsize::new(streams).expect("streams"))
    }

    /// Each launch alone on a machine that has heard nothing before.
    fn alone(&self, gpu: &mut Gpu) -> Vec<Result<LaunchResult, Error>> {
        let run = |(kernel, launch): (&Kernel, &Launch)| {
            gpu.power_off();
            gpu.launch(kernel, launch)
        };
        self.pairs().into_iter().map(run).collect()
    }
}

fn vector_add(first: i32, count: i32) -> Launch {
    let values: Vec<i32> = (first..first + 3).collect();
    Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&values))
        .argument(Argument::buffer(&[10_i32, 20, 30]))
        .argument(Argument::zeros::<i32>(3))
        .argument(count)
}

/// Threads that read and write behind the end of memory.
fn fault() -> Launch {
    Launch::new(Dim3::linear(2), Dim3::linear(4))
        .argument(Argument::zeros::<i32>(60))
        .argument(Argument::zeros::<i32>(60))
        .argument(Argument::zeros::<i32>(3))
        .argument(8_i32)
}

fn collatz(numbers: [u32; 4]) -> Launch {
    Launch::new(Dim3::linear(1), Dim3::linear(4))
        .argument(Argument::buffer(&numbers))
        .argument(Argument::zeros::<i32>(4))
}

fn histogram(text: &[u8]) -> Launch {
    Launch::new(Dim3::linear(1), Dim3::linear(8))
        .argument(Argument::buffer(text))
        .argument(i32::try_from(text.len()).expect("a short text"))
        .argument(Argument::zeros::<i32>(8))
}

fn spin(word: u32, max_tokens: usize) -> Launch {
    Launch { max_tokens, ..Launch::new(Dim3::linear(1), Dim3::linear(1)).argument(Argument::buffer(&[word])) }
}

/// Launches of all lengths and ends.
fn mixed(gpu: &Gpu) -> Mix {
    Mix::new(gpu)
        .add(0, vector_add(1, 3).checked())
        .add(3, spin(0, 90))
        .add(0, fault())
        .add(1, collatz([1, 6, 7, 9]))
        .add(0, vector_add(0, 3).argument(7_i32))
        .add(2, histogram(b"abcabcaa").checked())
        .add(3, spin(5, 90).checked())
        .add(0, vector_add(1, 3).argument(1_i32))
        .add(1, Launch { max_tokens: 1, ..collatz([2, 2, 2, 2]) })
        .add(2, Launch { max_tokens: 0, ..histogram(b"aa") })
        .add(0, fault().checked())
        .add(3, spin(0, 31).checked())
        .add(1, collatz([3, 3, 1, 1]).checked())
        .add(0, vector_add(-5, 2))
}

fn same(got: &Result<LaunchResult, Error>, expected: &Result<LaunchResult, Error>, what: &str) {
    match (got, expected) {
        (Ok(got), Ok(expected)) => {
            assert_eq!(got.records, expected.records, "{what}");
            assert_eq!((&got.outcome, &got.buffers), (&expected.outcome, &expected.buffers), "{what}");
            assert_eq!((&got.check, &got.prompt), (&expected.check, &expected.prompt), "{what}");
            assert_eq!((got.tokens, got.drafted, got.continues), (expected.tokens, 0, false), "{what}");
            assert_eq!(got.warp_instructions, expected.warp_instructions, "{what}");
        }
        (Err(got), Err(expected)) => assert_eq!(got.to_string(), expected.to_string(), "{what}"),
        _ => assert_eq!(got.is_ok(), expected.is_ok(), "{what}: {got:?}, alone {expected:?}"),
    }
}

#[test]
fn launches_at_once_are_those_alone() {
    for (engine, streams) in
        [(EngineKind::Sparse, vec![1, 3, 5, 64]), (EngineKind::Netlist, vec![3]), (EngineKind::Interp, vec![3])]
    {
        let mut gpu = Gpu::new(engine).expect("a GPU");
        let mix = mixed(&gpu);
        let alone = mix.alone(&mut gpu);
        let ends: Vec<&str> = alone.iter().map(end).collect();
        let [add, cut, fault, refused] = ["finished", "cut", "fault", "refused"];
        let expected = [add, cut, fault, add, refused, add, add, refused, cut, cut, fault, cut, add, add];
        assert_eq!(ends, expected, "{engine}: the mix has every kind of end");
        for streams in streams {
            let results = mix.run(&mut gpu, streams);
            assert_eq!(results.len(), alone.len());
            for (number, (got, expected)) in results.iter().zip(&alone).enumerate() {
                same(got, expected, &format!("launch {number}, {engine}, {streams} streams"));
            }
        }
    }
}

/// How a launch ended, in a word.
fn end(result: &Result<LaunchResult, Error>) -> &'static str {
    match result.as_ref().map(|result| (&result.outcome, &result.check)) {
        Ok((_, Some(check))) if *check != Check::Equal => "different",
        Ok((Outcome::Finished, _)) => "finished",
        Ok((Outcome::Fault(_), _)) => "fault",
        Ok((Outcome::TokenLimit(_), _)) => "cut",
        Ok((Outcome::Mismatch, _)) => "different",
        Err(Error::Launch(_)) => "refused",
        Err(_) => "broken",
    }
}

/// Three launches on two streams: the last one begins where another has ended.
#[test]
fn a_dense_model_speaks_many_at_once() {
    let mut gpu = Gpu::new(EngineKind::Dense).expect("a GPU");
    let mix = Mix::new(&gpu)
        .add(3, spin(0, 12).checked())
        .add(3, Launch { max_tokens: 5, ..spin(4, 5) }.checked())
        .add(3, spin(6, 40).checked());
    let mut sparse = Gpu::new(EngineKind::Sparse).expect("a GPU");
    let alone = mix.alone(&mut sparse);
    assert_eq!(alone.iter().map(end).collect::<Vec<_>>(), ["cut", "cut", "finished"]);
    for (number, (got, expected)) in mix.run(&mut gpu, 2).iter().zip(&alone).enumerate() {
        same(got, expected, &format!("launch {number}"));
    }
    assert_eq!(gpu.enough_streams().get(), 16);
    assert_eq!(gpu.stream_bytes(), 15 * (16 * 128 * 128 + 3 * 2048 * 4) * 4);
}

#[test]
fn every_record_is_seen_in_its_order() {
    let mut gpu = Gpu::new(EngineKind::Sparse).expect("a GPU");
    let mix = Mix::new(&gpu).add(0, vector_add(1, 3)).add(3, spin(0, 20)).add(0, vector_add(1, 9).argument(0_i32));
    let mut heard: Vec<Vec<Record>> = vec![Vec::new(); 3];
    let mut ended = Vec::new();
    let mut turns = Vec::new();
    let two = NonZeroUsize::new(2).expect("two");
    let results = gpu.launch_batch_with(&mix.pairs(), two, &mut |event| match event {
        BatchEvent::Spoken { launch, record } => {
            heard[launch].push(record);
            turns.push(launch);
        }
        BatchEvent::Ended { launch, result } => ended.push((launch, result.is_ok())),
        _ => {}
    });
    assert_eq!(ended, [(1, true), (2, false), (0, true)]);
    assert_eq!(turns[..6], [0, 1, 0, 1, 0, 1], "a record of each in turn");
    for (heard, result) in heard.iter().zip(&results) {
        assert_eq!(*heard, result.as_ref().map(|result| result.records.clone()).unwrap_or_default());
    }
}

#[test]
fn what_no_batch_can_do_is_refused() {
    for engine in [EngineKind::Interp, EngineKind::Sparse] {
        let mut gpu = Gpu::new(engine).expect("a GPU");
        let fresh = vector_add(1, 3);
        let mix = Mix::new(&gpu)
            .add(0, Launch { start: Start::Keep, ..fresh.clone() })
            .add(0, Launch { start: Start::Overwrite, ..fresh.clone() })
            .add(0, Launch { draft: Draft::Interp, ..fresh.clone() })
            .add(0, fresh.clone());
        gpu.launch(&mix.kernels[0], &fresh).expect("a launch that leaves memory");
        let results = mix.run(&mut gpu, 4);
        assert!(matches!(results[0], Err(Error::Launch(LaunchError::BatchStart))));
        assert!(matches!(results[1], Err(Error::Launch(LaunchError::BatchStart))));
        assert!(matches!(results[2], Err(Error::Launch(LaunchError::BatchDraft))));
        assert!(results[3].as_ref().is_ok_and(LaunchResult::is_success));
        // Nothing is left that a launch could go on from, and the next one begins as ever.
        let keep = gpu.launch(&mix.kernels[0], &mix.launches[0].1);
        assert!(matches!(keep, Err(Error::Launch(LaunchError::NothingKept))));
        assert!(gpu.launch(&mix.kernels[0], &fresh.checked()).is_ok_and(|result| result.is_success()));
        assert!(gpu.launch_batch(&[], NonZeroUsize::MIN).is_empty());
    }
}
