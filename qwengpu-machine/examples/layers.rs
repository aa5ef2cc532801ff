//! Compiles the machine, prints what it costs, and proves it: `layers [HIDDEN [INTERMEDIATE [HEADS [RESERVED]]]]`.
use qwengpu_circuit::{CompileOptions, Dtype, Geometry, compile, prove_all};
use qwengpu_isa::MachineSpec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |i: usize, default: usize| std::env::args().nth(i).map_or(Ok(default), |text| text.parse());
    let (hidden, intermediate, heads) = (number(1, 2048)?, number(2, 6144)?, number(3, 16)?);
    let machine = qwengpu_machine::build(&MachineSpec::seed())?;
    let geometry = Geometry { reserved: number(4, 0)?, ..Geometry::new(hidden, intermediate, heads, 64) };
    let begun = std::time::Instant::now();
    let compiled = compile(&machine.netlist, &geometry, &CompileOptions::default())?;
    println!("{}", compiled.report);
    eprintln!("{:.2} s", begun.elapsed().as_secs_f64());
    match prove_all(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]) {
        Ok(report) => println!("{report}"),
        Err(faults) => {
            for fault in &faults {
                println!("{fault}");
            }
            return Err(format!("{} claims are not proven", faults.len()).into());
        }
    }
    eprintln!("{:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}
