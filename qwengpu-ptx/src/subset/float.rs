//! Floating point, all of it refused.

use super::{FLOAT as REFUSED, Instruction, float, no};

/// `mad.f32` and the like come under the names they share with integers.
pub(super) const FLOAT: &[Instruction] = &[
    no("testp", "9.7.3.1", REFUSED, "testp.finite.f32 %p0, %r1;"),
    no("copysign", "9.7.3.2", REFUSED, "copysign.f32 %r0, %r1, %r2;"),
    float("add", "9.7.3.3, 9.7.4.1, 9.7.5", "add.f32 %r0, %r1, %r2;"),
    float("sub", "9.7.3.4, 9.7.4.2, 9.7.5", "sub.rn.f64 %d0, %d1, %d2;"),
    float("mul", "9.7.3.5, 9.7.4.3", "mul.f32 %r0, %r1, %r2;"),
    no("fma", "9.7.3.6, 9.7.4.4, 9.7.5", REFUSED, "fma.rn.f32 %r0, %r1, %r2, %r3;"),
    float("mad", "9.7.3.7", "mad.rn.f32 %r0, %r1, %r2, %r3;"),
    float("div", "9.7.3.8", "div.approx.f32 %r0, %r1, %r2;"),
    float("abs", "9.7.3.9, 9.7.4.6", "abs.f32 %r0, %r1;"),
    float("neg", "9.7.3.10, 9.7.4.5", "neg.f16 %h0, %h1;"),
    float("min", "9.7.3.11, 9.7.4.7", "min.f32 %r0, %r1, %r2;"),
    float("max", "9.7.3.12, 9.7.4.8", "max.f64 %d0, %d1, %d2;"),
    no("rcp", "9.7.3.13, 9.7.3.14", REFUSED, "rcp.rn.f32 %r0, %r1;"),
    no("sqrt", "9.7.3.15", REFUSED, "sqrt.rn.f32 %r0, %r1;"),
    no("rsqrt", "9.7.3.16, 9.7.3.17", REFUSED, "rsqrt.approx.f32 %r0, %r1;"),
    no("sin", "9.7.3.18", REFUSED, "sin.approx.f32 %r0, %r1;"),
    no("cos", "9.7.3.19", REFUSED, "cos.approx.f32 %r0, %r1;"),
    no("lg2", "9.7.3.20", REFUSED, "lg2.approx.f32 %r0, %r1;"),
    no("ex2", "9.7.3.21, 9.7.4.10", REFUSED, "ex2.approx.f32 %r0, %r1;"),
    no("tanh", "9.7.3.22, 9.7.4.9", REFUSED, "tanh.approx.f32 %r0, %r1;"),
];
