//! The kernels of `kernels/`, on the interpreter.

#![allow(clippy::panic, reason = "a failing test panics")]

#[path = "common/suite.rs"]
mod suite;

#[test]
fn every_kernel_gives_its_results() {
    let names = suite::names();
    assert!(names.len() >= 62, "{} kernels", names.len());
    for name in names {
        let ptx = suite::folder().join(format!("{name}.ptx"));
        if let Err(error) = suite::check(&name, &ptx) {
            panic!("{name}: {error}");
        }
    }
}
