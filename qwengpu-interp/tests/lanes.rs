//! Instructions whose result depends on the lane or on other lanes, and memory.

use qwengpu_interp::{Machine, Outcome};
use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec, assemble};

/// Runs `source` in `threads` threads, with `r1` from global words 32.., and returns `r4` of each thread.
fn run(source: &str, threads: u16, inputs: &[u32]) -> Vec<u32> {
    let source = format!(
        "s2r r15, tid
         ld.b32 r1, [r15*4 + 128]
         iadd r4, r0, 0
         {source}
         st.b32 [r15*4], r4
         exit"
    );
    let program = assemble(&source).map_err(|errors| errors.render(&source)).expect("assembles");
    let mut machine = Machine::new(MachineSpec::seed(), &program).expect("is valid");
    let mut global = vec![0; 32];
    global.extend_from_slice(inputs);
    let launch = LaunchConfig::new(Dim3::linear(1), Dim3::linear(threads)).with_global(global);
    let run = machine.launch(&launch, 10_000).expect("launch is valid");
    assert_eq!(run.outcome, Outcome::Finished);
    machine.global()[..usize::from(threads)].to_vec()
}

#[test]
fn special_registers() {
    assert_eq!(run("s2r r4, laneid", 6, &[]), [0, 1, 2, 3, 0, 1]);
    assert_eq!(run("s2r r4, warpid", 6, &[]), [0, 0, 0, 0, 1, 1]);
    assert_eq!(run("s2r r4, tid", 6, &[]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(run("sdiv.div.lin r4, 3", 8, &[]), [0, 0, 0, 1, 1, 1, 2, 2]);
    assert_eq!(run("sdiv.mod.lin r4, 3", 8, &[]), [0, 1, 2, 0, 1, 2, 0, 1]);
    assert_eq!(run("sdiv.mod.lin r4, c[ntid.x]", 5, &[]), [0, 1, 2, 3, 4]);
}

#[test]
fn shuffles() {
    let values = [10, 11, 12, 13];
    let check = |source: &str, expected: [u32; 4]| assert_eq!(run(source, 4, &values), expected, "{source}");
    check("shfl.idx r4, r1, 2", [12, 12, 12, 12]);
    check("shfl.idx r4, r1, 5", [11, 11, 11, 11]);
    check("shfl.up r4, r1, 1", [10, 10, 11, 12]);
    check("shfl.up r4, r1, 3", [10, 11, 12, 10]);
    check("shfl.up r4, r1, 0", values);
    check("shfl.down r4, r1, 2", [12, 13, 12, 13]);
    check("shfl.down r4, r1, 31", values);
    check("shfl.down r4, r1, 32", values);
    check("shfl.bfly r4, r1, 1", [11, 10, 13, 12]);
    check("shfl.bfly r4, r1, 3", [13, 12, 11, 10]);
    check("shfl.bfly r4, r1, 4", values);
    // The distance is one of each lane.
    check("lop.xor r5, r15, 3\n shfl.idx r4, r1, r5", [13, 12, 11, 10]);
    // Inactive lanes are read, too.
    check("setp.eq p0, r15, 0\n @p0 shfl.idx r4, r1, 3", [13, 0, 0, 0]);
}

#[test]
fn votes_and_leaders() {
    let check = |source: &str, expected: [u32; 4]| assert_eq!(run(source, 4, &[5, 9, 5, 9]), expected, "{source}");
    check("setp.eq p0, r1, 9\n vote r4, p0", [10, 10, 10, 10]);
    check("setp.eq p0, r1, 9\n vote r4, !p0", [5, 5, 5, 5]);
    check("vote r4, pt", [15, 15, 15, 15]);
    check("setp.gt.u p1, r15, 1\n @p1 vote r4, pt", [0, 0, 12, 12]);
    check("lead p0, r1\n vote r4, p0", [3, 3, 3, 3]);
    check("lead p0, r15\n vote r4, p0", [15, 15, 15, 15]);
    check("lead p0, r0\n vote r4, p0", [1, 1, 1, 1]);
    // Only exec lanes count, and the others keep their predicate.
    check("setp.ne p1, r15, 0\n @p1 lead p0, r1\n vote r4, p0", [6, 6, 6, 6]);
    check("setp.eq p0, r15, 0\n setp.ne p1, r15, 0\n @p1 lead p0, r1\n vote r4, p0", [7, 7, 7, 7]);
}

#[test]
fn loads_extend_and_stores_cut() {
    let word = [0x8091_a2f3];
    let check = |source: &str, expected: u32| assert_eq!(run(source, 1, &word), [expected], "{source}");
    check("ld.u8 r4, [128]", 0xf3);
    check("ld.s8 r4, [128]", 0xffff_fff3);
    check("ld.u8 r4, [131]", 0x80);
    check("ld.u16 r4, [128]", 0xa2f3);
    check("ld.s16 r4, [128]", 0xffff_a2f3);
    check("ld.s16 r4, [130]", 0xffff_8091);
    check("ld.b32 r4, [128]", 0x8091_a2f3);
    check("iadd r2, r0, 0x11223344\n st.u8 [129], r2\n ld.b32 r4, [128]", 0x8091_44f3);
    check("iadd r2, r0, 0x11223344\n st.u16 [130], r2\n ld.b32 r4, [128]", 0x3344_a2f3);
    check("iadd r2, r0, 0x11223344\n st.b32 [128], r2\n ld.b32 r4, [128]", 0x1122_3344);
}

#[test]
fn addresses_have_all_their_parts() {
    let values = [1, 2, 3, 4];
    assert_eq!(run("ld.b32 r4, [r15*4 + 128]", 4, &values), values);
    assert_eq!(run("iadd r2, r0, 132\n lop.and r3, r15, 1\n ld.b32 r4, [r2 + r3*4 - 4]", 4, &values), [1, 2, 1, 2]);
    // ntid.x is 4: a constant word is added as it is.
    assert_eq!(run("ld.b32 r4, [c[ntid.x] + 128]", 4, &values), [2, 2, 2, 2]);
    // Sums wrap.
    assert_eq!(run("iadd r2, r0, -4\n ld.b32 r4, [r2 + 132]", 4, &values), [1, 1, 1, 1]);
    assert_eq!(run("iadd r2, r0, 0x40000000\n ld.b32 r4, [r2*4 + 128]", 4, &values), [1, 1, 1, 1]);
}

#[test]
fn the_highest_lane_wins_a_conflict() {
    assert_eq!(run("st.b32 [128], r15\n ld.b32 r4, [128]", 4, &[]), [3, 3, 3, 3]);
    assert_eq!(run("st.u8 [r15 + 128], r15\n ld.b32 r4, [128]", 4, &[]), [0x0302_0100; 4]);
    assert_eq!(run("lop.and r2, r15, 1\n st.b32 [r2*4 + 128], r15\n ld.b32 r4, [r2*4 + 128]", 4, &[]), [2, 3, 2, 3]);
}

#[test]
fn local_memory_is_private_and_shared_memory_is_not() {
    let local = "st.b32 [0x200000], r15\n bar\n ld.b32 r4, [0x200000]";
    assert_eq!(run(local, 8, &[]), [0, 1, 2, 3, 4, 5, 6, 7]);
    let shared = "st.b32 [r15*4 + 0x100000], r15\n bar\n lop.xor r2, r15, 7\n ld.b32 r4, [r2*4 + 0x100000]";
    assert_eq!(run(shared, 8, &[]), [7, 6, 5, 4, 3, 2, 1, 0]);
}
