//! Every instruction that computes, on edge values, against plain Rust.

use qwengpu_interp::{Machine, Outcome};
use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec, assemble};

const EDGES: [u32; 16] = [
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    0xff,
    0x100,
    0x1234_5678,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xdead_beef,
    0xffff_fffe,
    0xffff_ffff,
];

/// A machine for `instruction`, which reads `r1`, `r2`, `r3` or `c[0]`, `c[1]`, `c[2]` and writes `r4` or `p1`.
fn machine(instruction: &str) -> Machine {
    let source = format!(
        "iadd r1, r0, c[0]
         iadd r2, r0, c[1]
         iadd r3, r0, c[2]
         setp.ne p2, r3, 0
         {instruction}
         iadd r5, r0, 1
         @p1 sel r4, r5, r0, p1
         st.b32 [0], r4
         exit"
    );
    let program = assemble(&source).map_err(|errors| errors.render(&source)).expect("assembles");
    Machine::new(MachineSpec::seed(), &program).expect("is valid")
}

/// `r4`, or 1 if the instruction has made `p1` true.
fn run(machine: &mut Machine, inputs: [u32; 3]) -> u32 {
    let launch = LaunchConfig::new(Dim3::linear(1), Dim3::linear(1)).with_parameters(&inputs);
    let run = machine.launch(&launch, 100).expect("launch is valid");
    assert_eq!(run.outcome, Outcome::Finished);
    machine.global()[0]
}

fn check(instruction: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let mut machine = machine(instruction);
    for a in EDGES {
        for b in EDGES {
            for c in [0, 1, 0x8000_0000, 0xffff_ffff] {
                let got = run(&mut machine, [a, b, c]);
                assert_eq!(got, expected(a, b, c), "{instruction} with {a:#x}, {b:#x}, {c:#x}");
            }
        }
    }
}

fn signed(value: u32) -> i32 {
    value.cast_signed()
}

#[test]
fn sums_and_products() {
    check("iadd r4, r1, r2, r3", |a, b, c| a.wrapping_add(b).wrapping_add(c));
    check("iadd r4, r1, -1", |a, _, _| a.wrapping_sub(1));
    check("isub r4, r1, c[1], r3", |a, b, c| a.wrapping_sub(b).wrapping_add(c));
    check("imad r4, r1, r2, r3", |a, b, c| {
        let [b0, b1, b2, b3, ..] = (u64::from(a) * u64::from(b) + u64::from(c)).to_le_bytes();
        u32::from_le_bytes([b0, b1, b2, b3])
    });
    for shift in 1..=4 {
        check(&format!("iscadd.{shift} r4, r1, r2, r3"), |a, b, c| {
            a.wrapping_mul(1 << shift).wrapping_add(b).wrapping_add(c)
        });
    }
    check("iadd r4, r1, r2, r1", |a, b, _| a.wrapping_mul(2).wrapping_add(b));
}

#[test]
fn bits() {
    check("lop.and r4, r1, r2", |a, b, _| a & b);
    check("lop.or r4, r1, r2", |a, b, _| a | b);
    check("lop.xor r4, r1, c[1]", |a, b, _| a ^ b);
    check("lop.nand r4, r1, r2", |a, b, _| !(a & b));
    check("lop.nor r4, r1, r2", |a, b, _| !(a | b));
    check("lop.xnor r4, r1, r2", |a, b, _| !(a ^ b));
    check("lop.andn r4, r1, r2", |a, b, _| a & !b);
    check("lop.orn r4, r1, r2", |a, b, _| a | !b);
    check("lop.not r4, r0, r2", |_, b, _| !b);
    check("lop.copy r4, r1, r2", |_, b, _| b);
    check("lop.2 r4, r1, r2", |a, b, _| !a & b);
    check("lop.0 r4, r1, r2", |_, _, _| 0);
    check("lop.15 r4, r1, r2", |_, _, _| u32::MAX);
    check("lop3.0xe8 r4, r1, r2, r3", |a, b, c| a & b | a & c | b & c);
    check("lop3.0x96 r4, r1, r2, r3", |a, b, c| a ^ b ^ c);
    check("lop3.0xca r4, r1, r2, r3", |a, b, c| a & b | !a & c);
    check("clz r4, r2", |_, b, _| (0..32).find(|bit| b << bit >> 31 == 1).unwrap_or(32));
    check("popc r4, r2", |_, b, _| (0..32).map(|bit| b >> bit & 1).sum());
    check("brev r4, r2", |_, b, _| (0..32).map(|bit| (b >> bit & 1) << (31 - bit)).sum());
    check("brev r4, 1", |_, _, _| 0x8000_0000);
}

#[test]
fn shifts() {
    check("shl r4, r1, r2", |a, b, _| if b > 31 { 0 } else { a << b });
    check("shr.u r4, r1, r2", |a, b, _| if b > 31 { 0 } else { a >> b });
    check("shr.s r4, r1, r2", |a, b, _| {
        let fill = if signed(a) < 0 { u32::MAX } else { 0 };
        (0..b.min(32)).fold(a, |value, _| value >> 1 | fill << 31)
    });
}

#[test]
fn choices() {
    check("imnmx.min.u r4, r1, r2", |a, b, _| if a < b { a } else { b });
    check("imnmx.max.u r4, r1, r2", |a, b, _| if a > b { a } else { b });
    check("imnmx.min.s r4, r1, r2", |a, b, _| if signed(a) < signed(b) { a } else { b });
    check("imnmx.max.s r4, r1, r2", |a, b, _| if signed(a) > signed(b) { a } else { b });
    check("sel r4, r1, r2, p2", |a, b, c| if c != 0 { a } else { b });
    check("sel r4, r1, c[1], !p2", |a, b, c| if c == 0 { a } else { b });
    check("sel r4, r1, 7, !pt", |_, _, _| 7);
}

#[test]
fn comparisons() {
    let check = |name: &str, expected: fn(u32, u32) -> bool| {
        let prepare = "iadd r4, r0, 0\n";
        check(&format!("{prepare} setp.{name} p1, r1, r2"), |a, b, _| expected(a, b).into());
        check(&format!("{prepare} setp.{name} p1, r1, c[1], !p2"), |a, b, c| (expected(a, b) && c == 0).into());
    };
    check("eq", |a, b| a == b);
    check("ne", |a, b| a != b);
    check("lt.u", |a, b| a < b);
    check("le.u", |a, b| a <= b);
    check("gt.u", |a, b| a > b);
    check("ge.u", |a, b| a >= b);
    check("lt.s", |a, b| signed(a) < signed(b));
    check("le.s", |a, b| signed(a) <= signed(b));
    check("gt.s", |a, b| signed(a) > signed(b));
    check("ge.s", |a, b| signed(a) >= signed(b));
}

#[test]
fn predicate_logic() {
    for table in 0..16u32 {
        let source = format!("iadd r4, r0, 0\n setp.ne p3, r1, 0\n plop.{table} p1, p3, !p2");
        check(&source, |a, _, c| table >> (2 * u32::from(a != 0) + u32::from(c == 0)) & 1);
    }
}

#[test]
fn small_divisions() {
    for x in 0..=33u32 {
        for y in 0..=66u32 {
            let (a, b) = (x % 32, y % 64);
            let quotient = a.checked_div(b).unwrap_or(31);
            for (name, expected) in [("div", quotient), ("mod", a.checked_rem(b).unwrap_or(a))] {
                let mut machine = machine(&format!("sdiv.{name} r4, r1, c[1]"));
                // Bits above the operand range are ignored.
                let inputs = [x | (0xffff_ff00 * (x & 1)), y | (0x4000_0000 * (y & 1)), 0];
                assert_eq!(run(&mut machine, inputs), expected, "{x} {name} {y}");
            }
        }
    }
}

#[test]
fn guards_and_discarded_results() {
    check("@p2 iadd r4, r0, 5\n @!p2 iadd r4, r0, 6", |_, _, c| if c != 0 { 5 } else { 6 });
    check("iadd r4, r0, 9\n @!pt iadd r4, r0, 5", |_, _, _| 9);
    check("iadd r0, r1, r2\n iadd r4, r0, 0", |_, _, _| 0);
    check("iadd r4, r0, 0\n setp.ne p1, r1, r2\n @!pt setp.eq p1, r1, r2", |a, b, _| (a != b).into());
    check("iadd r4, r0, 3\n setp.eq p1, r0, 1\n setp.eq pt, r0, 1\n @!pt iadd r4, r0, 4", |_, _, _| 3);
}
