//! Memory, atomics, warps, calls and declarations, run on the interpreter.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

const HEADER: &str = ".version 7.0\n.target sm_75\n.address_size 64\n";

/// A kernel `k(buffer)` with module-level text in front; the buffer's address is in `%a`, the thread in `%t`.
fn kernel(module: &str, body: &str) -> String {
    format!(
        "{HEADER}{module}\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n.reg .b16 %rs<8>;\n\
         .reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.reg .b64 %a;\n.reg .b64 %m;\n.reg .b32 %t;\nld.param.u64 %a, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %m, %t, 4;\nadd.s64 %m, %a, %m;\n{body}\nret;\n}}\n"
    )
}

/// Runs the kernel on a buffer of words and gives the buffer afterwards. `%m` is the thread's own word.
fn check(module: &str, body: &str, threads: u16, before: &[u32], after: &[u32]) {
    let bytes: Vec<u8> = before.iter().flat_map(|w| w.to_le_bytes()).collect();
    let lowered = compile(&kernel(module, body));
    let done = run(&lowered, Dim3::linear(1), Dim3::linear(threads), &[Argument::Buffer(bytes)]);
    assert_eq!(done.buffers[0], after, "{body}\n{}", lowered.program);
}

#[test]
fn loads_and_stores_of_every_width() {
    let word = 0x8765_43f1;
    check("", "ld.global.u8 %r1, [%a+1];\nst.global.u32 [%a], %r1;", 1, &[word], &[0x43]);
    check("", "ld.global.s8 %r1, [%a];\nst.global.u32 [%a], %r1;", 1, &[word], &[0xffff_fff1]);
    check("", "ld.global.s16 %r1, [%a+2];\nst.global.u32 [%a], %r1;", 1, &[word], &[0xffff_8765]);
    check("", "ld.u16 %rs1, [%a+2];\nst.u16 [%a], %rs1;", 1, &[word], &[0x8765_8765]);
    check("", "ld.s8 %rs1, [%a];\ncvt.s32.s16 %r1, %rs1;\nst.u32 [%a], %r1;", 1, &[word], &[0xffff_fff1]);
    check("", "ld.s8 %rs1, [%a];\ncvt.u32.u16 %r1, %rs1;\nst.u32 [%a], %r1;", 1, &[word], &[0xfff1]);
    check("", "ld.global.u32 %r1, [%a];\nst.global.u8 [%a+3], %r1;", 1, &[word], &[0xf165_43f1]);
    check("", "ld.s32 %rd1, [%a];\nst.u64 [%a], %rd1;", 1, &[word, 0], &[word, 0xffff_ffff]);
    check("", "ld.u64 %rd1, [%a];\nadd.s64 %rd1, %rd1, 1;\nst.u64 [%a], %rd1;", 1, &[u32::MAX, 4], &[0, 5]);
    check("", "ld.v2.u32 {%r1, %r2}, [%a];\nst.v2.u32 [%a], {%r2, %r1};", 1, &[1, 2], &[2, 1]);
    check(
        "",
        "ld.v4.u8 {%r1, %r2, %r3, %r4}, [%a];\nadd.u32 %r1, %r1, %r4;\nst.v4.u8 [%a], {%r4, %r3, %r2, %r1};",
        1,
        &[0x0403_0201],
        &[0x0502_0304],
    );
    check(
        "",
        ".reg .v2 .u32 %v;\nld.v2.u32 %v, [%a];\nadd.u32 %r1, %v.x, %v.y;\nst.u32 [%a], %r1;",
        1,
        &[3, 4],
        &[7, 4],
    );
    check("", "ld.f32 %r1, [%a];\nst.f32 [%a+4], 0f3F800000;", 1, &[1, 2], &[1, 0x3f80_0000]);
}

#[test]
fn variables() {
    check(
        ".global .align 4 .b32 table[3] = {10, 20, 30};",
        "mov.u64 %rd1, table;\nld.global.u32 %r1, [%rd1+8];\nld.global.u32 %r2, [table+4];\nadd.u32 %r1, %r1, %r2;\nst.u32 [%a], %r1;",
        1,
        &[0],
        &[50],
    );
    check(
        ".const .align 1 .b8 bytes[5] = {1, 2, 3, 4, 255};\n.global .u64 where = bytes+4;",
        "ld.global.u64 %rd1, [where];\nld.const.u8 %r1, [%rd1];\nst.u32 [%a], %r1;",
        1,
        &[0],
        &[255],
    );
    check(
        ".extern .shared .align 4 .b8 dynamic[];\n.shared .align 4 .b32 fixed;",
        "st.shared.u32 [fixed], 7;\nst.shared.u32 [dynamic], 9;\nld.shared.u32 %r1, [fixed];\nld.shared.u32 %r2, [dynamic];\n\
         mad.lo.u32 %r1, %r1, 100, %r2;\nst.u32 [%a], %r1;",
        1,
        &[0],
        &[709],
    );
    // A local array indexed by a variable stays in memory.
    check(
        "",
        ".local .align 4 .b32 mine[4];\nmov.u64 %rd1, mine;\nst.local.u32 [mine], 5;\nst.local.u32 [mine+4], 6;\n\
         st.local.u32 [mine+8], 7;\nst.local.u32 [mine+12], 8;\nmul.wide.u32 %rd2, %t, 4;\nadd.s64 %rd1, %rd1, %rd2;\n\
         ld.local.u32 %r1, [%rd1];\nst.u32 [%m], %r1;",
        4,
        &[0; 4],
        &[5, 6, 7, 8],
    );
    // One that is not becomes registers, partial overlaps aside.
    check(
        "",
        ".local .align 4 .b8 mine[16];\nst.local.u32 [mine], 0x11223344;\nst.local.u8 [mine+1], 0xff;\nst.local.u32 [mine+8], 3;\n\
         ld.local.u32 %r1, [mine];\nld.local.u32 %r2, [mine+8];\nadd.u32 %r1, %r1, %r2;\nst.u32 [%a], %r1;",
        1,
        &[0],
        &[0x1122_ff47],
    );
    // An inner scope hides an outer name.
    check("", "mov.u32 %r1, 1;\n{ .reg .b32 %r1; mov.u32 %r1, 2; }\nst.u32 [%a], %r1;", 1, &[0], &[1]);
}

#[test]
fn atomics() {
    check("", "atom.global.add.u32 %r1, [%a], 2;\nst.u32 [%m+4], %r1;", 4, &[10, 0, 0, 0, 0], &[18, 10, 12, 14, 16]);
    check("", "red.global.add.u32 [%a], %t;", 8, &[1], &[29]);
    check("", "red.global.max.s32 [%a], %t;\nred.global.min.s32 [%a+4], -5;", 8, &[3, 0], &[7, 0xffff_fffb]);
    check("", "red.and.b32 [%a], 12;\nred.or.b32 [%a+4], %t;\nred.xor.b32 [%a+8], 1;", 4, &[15, 8, 4], &[12, 11, 4]);
    check("", "atom.exch.b32 %r1, [%a], %t;\nst.u32 [%m+4], %r1;", 4, &[9, 0, 0, 0, 0], &[3, 9, 0, 1, 2]);
    check("", "atom.cas.b32 %r1, [%a], %t, 50;\nst.u32 [%m+4], %r1;", 4, &[2, 0, 0, 0, 0], &[50, 2, 2, 2, 50]);
    check("", "atom.inc.u32 %r1, [%a], 2;\nst.u32 [%m+4], %r1;", 4, &[1, 0, 0, 0, 0], &[2, 1, 2, 0, 1]);
    check("", "atom.dec.u32 %r1, [%a], 2;\nst.u32 [%m+4], %r1;", 4, &[1, 0, 0, 0, 0], &[0, 1, 0, 2, 1]);
    check(
        "",
        "and.b32 %r2, %t, 1;\nmul.wide.u32 %rd1, %r2, 4;\nadd.s64 %rd1, %rd1, %a;\nred.add.u32 [%rd1], %t;",
        8,
        &[0, 0],
        &[12, 16],
    );
    check(
        "",
        "setp.gt.u32 %p1, %t, 1;\nmov.u32 %r1, 77;\n@%p1 atom.add.u32 %r1, [%a], 1;\nst.u32 [%m+4], %r1;",
        4,
        &[5, 0, 0, 0, 0],
        &[7, 77, 77, 5, 6],
    );
    check(
        "",
        "mov.u64 %rd2, 0xffffffff;\natom.add.u64 %rd1, [%a], %rd2;\nst.u32 [%m+8], %rd1;",
        2,
        &[1, 0, 0, 0],
        &[u32::MAX, 1, 1, 0],
    );
    check("", "mov.u64 %rd2, 3;\nmov.u64 %rd3, 4;\natom.cas.b64 %rd1, [%a], %rd2, %rd3;", 4, &[3, 0], &[4, 0]);
    check(
        ".shared .align 4 .b32 sum;",
        "setp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [sum], 100;\nbar.sync 0;\nred.shared.add.u32 [sum], %t;\nbar.sync 0;\n\
         ld.shared.u32 %r1, [sum];\nst.u32 [%m], %r1;",
        8,
        &[0; 8],
        &[128; 8],
    );
}

#[test]
fn warps() {
    let own = "ld.u32 %r1, [%m];\n";
    let values = [10, 11, 12, 13];
    let shuffled = |operation: &str, after: [u32; 4]| {
        check("", &format!("{own}{operation}\nst.u32 [%m], %r0;"), 4, &values, &after)
    };
    shuffled("shfl.sync.idx.b32 %r0, %r1, 2, 31, -1;", [12; 4]);
    shuffled("shfl.sync.up.b32 %r0, %r1, 1, 0, -1;", [10, 10, 11, 12]);
    shuffled("shfl.sync.down.b32 %r0, %r1, 1, 31, -1;", [11, 12, 13, 13]);
    shuffled("shfl.sync.bfly.b32 %r0, %r1, 3, 31, -1;", [13, 12, 11, 10]);
    shuffled("shfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;", values);
    shuffled("shfl.sync.down.b32 %r0|%p1, %r1, 1, 31, -1;\n@!%p1 mov.u32 %r0, 99;", [11, 12, 13, 99]);
    shuffled("shfl.sync.up.b32 %r0|%p1, %r1, 2, 0, -1;\n@!%p1 mov.u32 %r0, 99;", [99, 99, 10, 11]);
    // Segments of two lanes: width 2 makes the mask 0x1e.
    shuffled("shfl.sync.idx.b32 %r0, %r1, 1, 0x1e1f, -1;", [11, 11, 13, 13]);
    shuffled("shfl.sync.down.b32 %r0, %r1, 1, 0x1e1f, -1;", [11, 11, 13, 13]);
    shuffled("shfl.sync.up.b32 %r0|%p1, %r1, 1, 0x1e00, -1;\n@!%p1 mov.u32 %r0, 99;", [99, 10, 99, 12]);
    shuffled("mov.u32 %r2, 0x1c1f;\nshfl.sync.idx.b32 %r0, %r1, %t, 0x1c1f, 15;", values);
    shuffled("setp.gt.u32 %p1, %r1, 11;\nvote.sync.ballot.b32 %r0, %p1, -1;", [12; 4]);
    shuffled("setp.gt.u32 %p1, %r1, 11;\nvote.sync.any.pred %p2, %p1, -1;\nselp.b32 %r0, 1, 0, %p2;", [1; 4]);
    shuffled("setp.gt.u32 %p1, %r1, 11;\nvote.sync.all.pred %p2, %p1, -1;\nselp.b32 %r0, 1, 0, %p2;", [0; 4]);
    shuffled("setp.gt.u32 %p1, %r1, 9;\nvote.sync.uni.pred %p2, %p1, -1;\nselp.b32 %r0, 1, 0, %p2;", [1; 4]);
    shuffled("activemask.b32 %r0;", [15; 4]);
    shuffled("shr.u32 %r2, %r1, 1;\nmatch.any.sync.b32 %r0, %r2, -1;", [3, 3, 12, 12]);
    shuffled("redux.sync.add.s32 %r0, %r1, -1;", [46; 4]);
    shuffled("redux.sync.max.u32 %r0, %r1, -1;", [13; 4]);
    shuffled("mov.u32 %r0, %laneid;\nmov.u32 %r2, %lanemask_lt;\nmad.lo.u32 %r0, %r0, 16, %r2;", [0, 0x11, 0x23, 0x37]);
    shuffled("mov.u32 %r0, WARP_SZ;", [4; 4]);
}

#[test]
fn control_flow() {
    // Threads part, loop a different number of times, and meet again in front of the barrier.
    check(
        "",
        "mov.u32 %r1, 0;\nmov.u32 %r2, %t;\nL: setp.eq.u32 %p1, %r2, 0;\n@%p1 bra M;\nadd.u32 %r1, %r1, %r2;\n\
         sub.u32 %r2, %r2, 1;\nbra L;\nM: bar.sync 0;\nst.u32 [%m], %r1;",
        8,
        &[0; 8],
        &[0, 1, 3, 6, 10, 15, 21, 28],
    );
    check(
        "",
        "mov.u32 %r1, %t;\nT: .branchtargets A, B, C;\nbrx.idx %r1, T;\nA: mov.u32 %r2, 10;\nbra E;\nB: mov.u32 %r2, 20;\n\
         bra E;\nC: mov.u32 %r2, 30;\nE: st.u32 [%m], %r2;",
        3,
        &[0; 3],
        &[10, 20, 30],
    );
    check("", "setp.lt.u32 %p1, %t, 2;\n@%p1 exit;\nst.u32 [%m], 1;", 4, &[0; 4], &[0, 0, 1, 1]);
    check("", "setp.lt.u32 %p1, %t, 2;\n@%p1 bra N;\ntrap;\nN: st.u32 [%m], 1;", 2, &[0; 2], &[1, 1]);
}

#[test]
fn calls() {
    let square = ".func (.param .b32 result) square(.param .b32 x)\n{\n.reg .b32 %r<4>;\n.reg .pred %p;\nld.param.b32 %r1, [x];\n\
                  mul.lo.u32 %r2, %r1, %r1;\nst.param.b32 [result], %r2;\nsetp.eq.u32 %p, %r1, 2;\n@!%p ret;\n\
                  st.param.b32 [result], 77;\nret;\n}";
    check(
        square,
        "{ .param .b32 p0; st.param.b32 [p0], %t; .param .b32 r0; call.uni (r0), square, (p0); ld.param.b32 %r1, [r0]; }\n\
         st.u32 [%m], %r1;",
        4,
        &[0; 4],
        &[0, 1, 77, 9],
    );
    let registers = ".func (.reg .u32 %out) twice(.reg .u32 %in)\n{\nadd.u32 %out, %in, %in;\nret;\n}";
    check(registers, "call (%r1), twice, (%t);\nst.u32 [%m], %r1;", 3, &[0; 3], &[0, 2, 4]);
    let nested = format!(
        "{registers}\n.func (.reg .u32 %out) four(.reg .u32 %in)\n{{\n.reg .u32 %x;\ncall (%x), twice, (%in);\ncall (%out), twice, (%x);\nret;\n}}"
    );
    check(
        &nested,
        "setp.gt.u32 %p1, %t, 0;\nmov.u32 %r1, 5;\n@%p1 call (%r1), four, (%t);\nst.u32 [%m], %r1;",
        3,
        &[0; 3],
        &[5, 4, 8],
    );
}

#[test]
fn special_registers() {
    let ptx = kernel(
        "",
        "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %ntid.y;\nmul.lo.u32 %r4, %r2, %r3;\nmov.u32 %r5, %tid.y;\n\
         mad.lo.u32 %r6, %r5, %r2, %t;\nmad.lo.u32 %r7, %r1, %r4, %r6;\nmov.u32 %r8, %nctaid.x;\nmov.u32 %r9, %tid.z;\n\
         mad.lo.u32 %r10, %r8, 100, %r6;\nadd.u32 %r10, %r10, %r9;\nmul.wide.u32 %rd1, %r7, 4;\nadd.s64 %rd1, %a, %rd1;\nst.u32 [%rd1], %r10;",
    );
    let lowered = compile(&ptx);
    let done = run(&lowered, Dim3::linear(2), Dim3::new(3, 2, 1), &[Argument::Buffer(vec![0; 48])]);
    assert_eq!(done.buffers[0], [200, 201, 202, 203, 204, 205, 200, 201, 202, 203, 204, 205]);
}

#[test]
fn spilling() {
    // Twenty values live at once, from memory so that nothing folds.
    let mut body = String::new();
    for idx in 0..20 {
        body.push_str(&format!("ld.volatile.u32 %r{idx}, [%a+{}];\n", 4 * idx));
    }
    body.push_str("bar.sync 0;\nmov.u32 %r30, 0;\n");
    for idx in 0..20 {
        body.push_str(&format!("mad.lo.u32 %r30, %r30, 3, %r{idx};\n"));
    }
    for idx in 0..20 {
        body.push_str(&format!("mad.lo.u32 %r30, %r30, 5, %r{idx};\n"));
    }
    body.push_str("st.u32 [%a], %r30;");
    let before: Vec<u32> = (0..20).map(|n| n * n + 1).collect();
    let mut expected = 0u32;
    for factor in [3u32, 5] {
        for value in &before {
            expected = expected.wrapping_mul(factor).wrapping_add(*value);
        }
    }
    let mut after = before.clone();
    after[0] = expected;
    check("", &body, 1, &before, &after);
    let lowered = compile(&kernel("", &body));
    assert!(lowered.stats.spill_slots > 0, "nothing was spilled");
    // Ten predicates live at once.
    let mut body = String::from(".reg .pred %q<10>;\nld.u32 %r1, [%a];\n");
    for idx in 0..10 {
        body.push_str(&format!("ld.volatile.u32 %r2, [%a+{}];\nsetp.gt.u32 %q{idx}, %r2, 4;\n", 4 * idx));
    }
    body.push_str("bar.sync 0;\nmov.u32 %r3, 0;\n");
    for idx in 0..10 {
        body.push_str(&format!("@%q{idx} add.u32 %r3, %r3, {};\n", 1 << idx));
    }
    for idx in 0..10 {
        body.push_str(&format!("@!%q{idx} add.u32 %r3, %r3, {};\n", 1 << (idx + 10)));
    }
    body.push_str("st.u32 [%a], %r3;");
    let before = [9, 1, 7, 0, 0, 5, 6, 4, 3, 8];
    let bits = before.iter().enumerate().map(|(i, v)| if *v > 4 { 1 << i } else { 1 << (i + 10) }).sum::<u32>();
    let mut after = before;
    after[0] = bits;
    check("", &body, 1, &before, &after);
}

/// The dialect of NVRTC: debugging lines, pragmas, performance directives, scopes, branch tables, `.ptr`.
#[test]
fn another_compilers_dialect() {
    let ptx = "//\n// Generated by another compiler\n//\n.version 8.4\n.target sm_75, debug\n.address_size 64\n\n\t// .globl\tk\n\
        .visible .entry k(\n\t.param .u64 .ptr .global .align 4 k_param_0,\n\t.param .align 4 .b8 k_param_1[8]\n)\n\
        .maxntid 32, 1, 1\n.minnctapersm 1\n{\n\t.loc 1 3 0\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<12>;\n\t.reg .b64 %rd<8>;\n\
        \t.loc 1 4 7, function_name $L__info_string0, inlined_at 1 2 3\n\tld.param.u64 \t%rd1, [k_param_0];\n\
        \tld.param.v2.u32 \t{%r1, %r2}, [k_param_1];\n\tcvta.to.global.u64 \t%rd2, %rd1;\n\tmov.u32 \t%r3, %tid.x;\n\
        \tmul.wide.s32 \t%rd3, %r3, 16;\n\tadd.s64 \t%rd4, %rd2, %rd3;\n\tld.global.nc.L1::no_allocate.v4.u32 \t{%r4, %r5, %r6, %r7}, [%rd4];\n\
        \t.pragma \"nounroll\";\n\t{\n\t.reg .b32 %r4;\n\tmov.u32 %r4, 5;\n\tadd.s32 %r5, %r5, %r4;\n\t}\n\
        \tmad.lo.s32 \t%r8, %r4, %r1, %r5;\n\tshf.l.wrap.b32 \t%r9, %r6, %r7, 8;\n\tlop3.b32 \t%r10, %r8, %r9, %r2, 0x96;\n\
        \tsetp.ne.s32 \t%p1, %r3, 0;\n\t@%p1 bra \t$L__BB0_2;\n\tbra.uni \t$L__BB0_1;\n\n$L__BB0_1:\n\tst.global.u32 \t[%rd4], %r10;\n\n\
        $L__BB0_2:\n\tst.global.u32 \t[%rd4+4], %r10;\n\tret;\n\n}\n\
        \t.file\t1 \"kernel.cu\"\n\t.section\t.debug_str\n\t{\n$L__info_string0:\n.b8 95, 90\n.b8 0\n\t}\n";
    let lowered = compile(ptx);
    assert_eq!(lowered.program.signature.params[1].size, 8);
    // Its second parameter is an aggregate of two words: 3 and 7.
    let words: Vec<u32> = vec![10, 20, 0x0102_0304, 0x0506_0708, 1, 2, 3, 4];
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let expected = |a: u32, b: u32, c: u32, d: u32| (a * 3 + b + 5) ^ (d << 8 | c >> 24) ^ 7;
    let mut constants =
        lowered.program.signature.pack_arguments(&[&[0; 8], &[3, 0, 0, 0, 7, 0, 0, 0]]).expect("two arguments");
    constants.truncate(4);
    let launch =
        qwengpu_isa::LaunchConfig::new(Dim3::linear(1), Dim3::linear(2)).with_constants(constants).with_global(
            bytes.chunks(4).map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b))).collect::<Vec<u32>>(),
        );
    let mut machine =
        qwengpu_interp::Machine::new(qwengpu_isa::MachineSpec::seed(), &lowered.program).expect("a legal program");
    machine.launch(&launch, 1000).expect("a valid launch");
    let first = expected(10, 20, 0x0102_0304, 0x0506_0708);
    assert_eq!(machine.global()[..8], [first, first, 0x0102_0304, 0x0506_0708, 1, expected(1, 2, 3, 4), 3, 4]);
}

#[test]
fn local_words_accessed_in_several_widths() {
    // A word put together from bytes and a half word, read as a whole and in parts.
    let body = ".local .align 4 .b8 v[8];\nmov.u32 %r1, 0x7f1;\nst.local.u8 [v], %r1;\nst.local.u8 [v+1], 0x80;\nst.local.u16 [v+2], 0xfedc;\n\
        ld.local.u32 %r2, [v];\nld.local.s16 %r3, [v];\nld.local.s8 %r4, [v+1];\nld.local.u16 %rs1, [v+2];\ncvt.u32.u16 %r5, %rs1;\n\
        st.v4.u32 [%a], {%r2, %r3, %r4, %r5};";
    check("", body, 1, &[0; 4], &[0xfedc_80f1, 0xffff_80f1, 0xffff_ff80, 0xfedc]);
    assert_eq!(compile(&kernel("", body)).stats.local_bytes, 0);
    // The word survives where a guard fails.
    let guarded = ".local .align 4 .b8 v[4];\nst.local.u32 [v], 0x01020304;\nsetp.eq.u32 %p1, %t, 1;\n@%p1 st.local.u8 [v+2], 0xaa;\n\
        ld.local.u32 %r1, [v];\nst.u32 [%m], %r1;";
    check("", guarded, 3, &[0; 3], &[0x0102_0304, 0x01aa_0304, 0x0102_0304]);
}

#[test]
fn offsets_by_or() {
    let body = ".local .align 16 .b8 v[32];\nmov.u64 %rd1, v;\nor.b64 %rd2, %rd1, 8;\nor.b64 %rd3, %rd2, 4;\nst.local.u32 [%rd3], %t;\n\
        ld.local.u32 %r1, [v+12];\nst.u32 [%m], %r1;";
    check("", body, 4, &[9; 4], &[0, 1, 2, 3]);
    assert_eq!(compile(&kernel("", body)).stats.local_bytes, 0);
}

#[test]
fn variables_too_large_for_local_memory_lie_in_shared_memory() {
    // Twenty words a thread, filled and summed with indices known only at run time.
    let body = ".local .align 4 .b8 v[80];\n.shared .align 4 .b8 other[4];\nst.shared.u32 [other], 7;\nmov.u64 %rd1, v;\nmov.u32 %r1, 0;\n\
        F: mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmad.lo.u32 %r2, %r1, 10, %t;\nst.local.u32 [%rd3], %r2;\n\
        add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 20;\n@%p1 bra F;\nmov.u32 %r3, 0;\n\
        S: add.u32 %r1, %r1, -1;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.local.u32 %r2, [%rd3];\n\
        add.u32 %r3, %r3, %r2;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra S;\nld.shared.u32 %r4, [other];\nadd.u32 %r3, %r3, %r4;\n\
        st.u32 [%m], %r3;";
    let sum = |t: u32| 1900 + 20 * t + 7;
    check("", body, 6, &[0; 6], &[sum(0), sum(1), sum(2), sum(3), sum(4), sum(5)]);
    let lowered = compile(&kernel("", body));
    assert_eq!((lowered.stats.local_bytes, lowered.stats.shared_bytes), (0, 84));
}

#[test]
fn values_shared_over_too_long_a_distance_are_computed_again() {
    let terms = |op: &str| -> String {
        let term = |n: u32| format!("mul.lo.u32 %r3, %r1, {};\n{op} %r2, %r2, %r3;\n", 2 * n + 3);
        (0..40).map(term).collect()
    };
    let body = format!("ld.u32 %r1, [%m];\nmov.u32 %r2, 0;\n{}{}st.u32 [%m], %r2;", terms("xor.b32"), terms("add.u32"));
    let value = |x: u32| {
        let term = |n: u32| x.wrapping_mul(2 * n + 3);
        (0..40).fold((0..40).fold(0, |v, n| v ^ term(n)), |v: u32, n| v.wrapping_add(term(n)))
    };
    check("", &body, 2, &[5, 0xdead_beef], &[value(5), value(0xdead_beef)]);
}
