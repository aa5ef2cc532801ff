//! The machines with names: kernels that a smaller one has no room for, on three engines, and the proof of each.

use std::fmt::Write as _;

use qwengpu::{Argument, Check, Dim3, EngineKind, Gpu, GpuOptions, Kernel, Launch, MachinePreset, Outcome, weights};
use qwengpu_circuit::{Dtype, prove};

const VECTOR_ADD: &str = include_str!("../kernels/vector_add.ptx");

fn preset(name: &str) -> MachinePreset {
    *MachinePreset::find(name).expect("a machine of the table")
}

/// Runs a launch on three engines, every record compared with the interpreter's; gives the words of a buffer.
fn run(name: &str, ptx: &str, launch: &Launch, buffer: usize) -> Vec<u32> {
    let spec = preset(name).spec;
    let launch = Launch { check: true, ..launch.clone() };
    let run_on = |engine| {
        let mut gpu = Gpu::with_options(&GpuOptions { spec, ..GpuOptions::new(engine) }).expect("the machine is made");
        let kernel = Kernel::from_ptx(gpu.spec(), ptx, None).expect("the kernel fits");
        let result = gpu.launch(&kernel, &launch).expect("a launch");
        assert_eq!((&result.outcome, &result.check), (&Outcome::Finished, &Some(Check::Equal)), "{name}, {engine}");
        result.buffers[buffer].to_vec::<u32>().expect("a buffer of words")
    };
    let [interp, netlist, sparse] = [EngineKind::Interp, EngineKind::Netlist, EngineKind::Sparse].map(run_on);
    assert!(interp == netlist && interp == sparse, "{name}: memory is the same in every engine");
    interp
}

fn is_refused(name: &str, ptx: &str) -> bool {
    Kernel::from_ptx(&preset(name).spec, ptx, None).is_err()
}

fn header(parameters: &str, body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k({parameters})\n{{\n.reg .pred %p<4>;\n\
         .reg .b32 %r<16>;\n.reg .b64 %d<8>;\n{body}ret;\n}}\n"
    )
}

#[test]
fn buffers_beyond_the_seed() {
    let count = 100_u32;
    let launch = Launch::new(Dim3::linear(4), Dim3::linear(32))
        .argument(Argument::buffer(&(0..count).collect::<Vec<_>>()))
        .argument(Argument::buffer(&(0..count).map(|i| 1000 * i).collect::<Vec<_>>()))
        .argument(Argument::zeros::<u32>(100))
        .argument(count);
    let expected: Vec<u32> = (0..count).map(|i| 1001 * i).collect();
    for name in ["memory", "large"] {
        assert_eq!(run(name, VECTOR_ADD, &launch, 2), expected, "{name}");
    }
    let mut seed = Gpu::new(EngineKind::Interp).expect("the seed");
    let kernel = Kernel::from_ptx(seed.spec(), VECTOR_ADD, None).expect("the kernel is short");
    assert!(seed.launch(&kernel, &launch).is_err(), "300 words are more than the seed has");
}

#[test]
fn the_last_word_of_global_memory() {
    let ptx = header(
        ".param .u64 p, .param .u32 n",
        "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\n\
         ld.global.u32 %r2, [%d3];\nadd.u32 %r2, %r2, 5;\nst.global.u32 [%d3], %r2;\n",
    );
    for name in ["memory", "large"] {
        let words = preset(name).spec.global_words;
        let mut values = vec![0_u32; usize::from(words)];
        values[usize::from(words) - 1] = 0xfedc_ba98;
        values[3] = 77;
        let launch = Launch::new(Dim3::linear(1), Dim3::linear(1))
            .argument(Argument::buffer(&values))
            .argument(u32::from(words) - 1);
        let result = run(name, &ptx, &launch, 0);
        values[usize::from(words) - 1] += 5;
        assert!(result == values, "{name}: one word has changed");
    }
}

#[test]
fn programs_beyond_the_seed() {
    // A polynomial with more coefficients than the seed has instructions; a loop behind it jumps far up there.
    let mut body = String::from(
        "ld.param.u64 %d1, [p];\nmov.u32 %r5, %tid.x;\nld.global.u32 %r1, [%d1];\nadd.u32 %r1, %r1, %r5;\n",
    );
    body.push_str("mov.u32 %r2, 1;\n");
    for number in 0..600_u32 {
        writeln!(body, "mad.lo.u32 %r2, %r2, %r1, {};", number % 200 + 1).expect("a string takes any text");
    }
    body.push_str(
        "mov.u32 %r3, 0;\nL: xor.b32 %r2, %r2, %r3;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, %r1;\n@%p1 bra L;\n",
    );
    body.push_str("mul.wide.u32 %d2, %r5, 4;\nadd.s64 %d3, %d1, %d2;\nst.global.u32 [%d3], %r2;\n");
    let ptx = header(".param .u64 p", &body);
    assert!(is_refused("seed", &ptx) && is_refused("memory", &ptx));
    let expected: Vec<u32> = (0..4)
        .map(|thread| {
            let x = 3 + thread;
            let value = (0..600_u32).fold(1_u32, |sum, number| sum.wrapping_mul(x).wrapping_add(number % 200 + 1));
            (0..x).fold(value, |value, round| value ^ round)
        })
        .collect();
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(4)).argument(Argument::buffer(&[3_u32, 0, 0, 0]));
    for name in ["program", "large"] {
        assert_eq!(run(name, &ptx, &launch, 0), expected, "{name}");
    }
}

#[test]
fn shared_and_local_memory_beyond_the_seed() {
    // Thread t writes words t, t + 8, ... of 400 shared words, and reads its neighbour's in the end; a local array of
    // 40 words is written at places that depend on the thread.
    let ptx = header(
        ".param .u64 p",
        ".shared .align 4 .b8 s[1600];\n.local .align 4 .b8 a[160];\nld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, s;\nmov.u32 %r3, a;\nmov.u32 %r4, %r1;\nL: shl.b32 %r5, %r4, 2;\nadd.u32 %r6, %r2, %r5;\n\
         mad.lo.u32 %r7, %r4, %r4, %r1;\nst.shared.u32 [%r6], %r7;\nrem.u32 %r8, %r4, 40;\nshl.b32 %r8, %r8, 2;\n\
         add.u32 %r8, %r3, %r8;\nst.local.u32 [%r8], %r7;\nadd.u32 %r4, %r4, 57;\nsetp.lt.u32 %p1, %r4, 400;\n\
         @%p1 bra L;\nbar.sync 0;\nxor.b32 %r9, %r1, 1;\nadd.u32 %r9, %r9, 342;\nshl.b32 %r9, %r9, 2;\n\
         add.u32 %r9, %r2, %r9;\nld.shared.u32 %r10, [%r9];\nadd.u32 %r11, %r1, 22;\nshl.b32 %r11, %r11, 2;\n\
         add.u32 %r11, %r3, %r11;\nld.local.u32 %r12, [%r11];\nxor.b32 %r10, %r10, %r12;\n\
         mul.wide.u32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nst.global.u32 [%d3], %r10;\n",
    );
    assert!(is_refused("seed", &ptx) && is_refused("program", &ptx));
    let written = |thread: u32, word: u32| word * word + thread;
    let expected: Vec<u32> = (0..8)
        .map(|thread| {
            let other = thread ^ 1;
            // The words of a thread are 57 apart; 342 is six steps, and leaves 22 modulo 40.
            written(other, other + 342) ^ written(thread, thread + 342)
        })
        .collect();
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(8)).argument(Argument::zeros::<u32>(8));
    for name in ["memory", "large"] {
        assert_eq!(run(name, &ptx, &launch, 0), expected, "{name}");
    }
}

#[test]
fn every_machine_is_proven() {
    for MachinePreset { name, spec, .. } in MachinePreset::ALL {
        let machine = weights::build(&spec).expect("the netlist");
        let compiled = weights::compile(&machine).expect("it fits");
        let proof = prove(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]);
        assert!(proof.is_ok(), "{name}: {proof:?}");
    }
}

#[test]
fn the_table_of_the_documents_is_that_of_the_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/machines.md");
    let text = std::fs::read_to_string(path).expect("the document is readable");
    for MachinePreset { name, spec, .. } in MachinePreset::ALL {
        let sizes = [spec.rom_words, spec.global_words, spec.shared_words, spec.local_words];
        let row = sizes.iter().fold(format!("| `{name}` |"), |row, size| format!("{row} {size} |"));
        assert!(text.contains(&row), "docs/machines.md has no row {row}");
    }
}
