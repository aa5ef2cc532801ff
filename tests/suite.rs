//! The kernels of the suite on three engines.

use std::path::Path;

use qwengpu::suite::Case;
use qwengpu::{EngineKind, Gpu, weights};

fn cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    Case::read_folder(&folder, "").expect("the cases are readable")
}

fn kernels() -> Vec<Case> {
    let cases = cases("kernels");
    assert!(cases.len() >= 64, "{} kernels", cases.len());
    cases
}

/// Runs up to `launches` launches of each case, compared with the interpreter or not.
fn run_all(gpu: &mut Gpu, cases: &[Case], launches: usize, check: bool) {
    let mut failed = Vec::new();
    for case in cases {
        match case.translate(gpu) {
            Ok(kernel) => {
                for (number, launch) in case.launches.iter().take(launches).enumerate() {
                    if let Err(error) = launch.run(gpu, &kernel, check) {
                        failed.push(format!("{} launch {number}: {error}", case.name));
                    }
                }
            }
            Err(error) => failed.push(format!("{}: {error}", case.name)),
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn interpreter() {
    run_all(&mut Gpu::new(EngineKind::Interp).expect("there is an interpreter"), &kernels(), usize::MAX, false);
}

#[test]
fn netlist_speaks_the_interpreters_records() {
    run_all(&mut Gpu::new(EngineKind::Netlist).expect("the netlist is built"), &kernels(), 1, true);
}

#[test]
fn sparse_weights_speak_the_interpreters_records() {
    run_all(&mut Gpu::new(EngineKind::Sparse).expect("the machine compiles"), &kernels(), 1, true);
}

/// Random kernels that were once wrong, as PTX of a compiler.
#[test]
fn kernels_that_were_found_wrong() {
    let cases = cases("tests/found");
    assert!(cases.len() >= 3, "{} kernels", cases.len());
    run_all(&mut Gpu::new(EngineKind::Interp).expect("there is an interpreter"), &cases, usize::MAX, false);
}

#[test]
fn the_same_machine_compiles_to_the_same_weights() {
    let spec = qwengpu::MachineSpec::seed();
    let compile = || weights::compile(&weights::build(&spec).expect("the netlist")).expect("the weights");
    assert!(compile().tensors == compile().tensors);
}
