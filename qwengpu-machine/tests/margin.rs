//! The compiled machine computes exactly what the netlist says, in both number formats: proven, not sampled.

use qwengpu_circuit::{CompileOptions, Dtype, Geometry, compile, prove_all};
use qwengpu_isa::MachineSpec;

/// The number of layers that the machine may take.
const MOST_LAYERS: usize = 24;

#[test]
fn the_whole_machine_is_proven() {
    let machine = qwengpu_machine::build(&MachineSpec::seed()).expect("the preset can be built");
    let compiled = compile(&machine.netlist, &Geometry::default(), &CompileOptions::default()).expect("it fits");
    assert!(compiled.report.layers.len() <= MOST_LAYERS);
    match prove_all(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]) {
        Ok(report) => println!("{report}"),
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            panic!("{} claims are not proven:\n{}", faults.len(), faults.join("\n"));
        }
    }
}
