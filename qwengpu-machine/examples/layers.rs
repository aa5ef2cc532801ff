//! Compiles a machine into layers of several sizes and prints a table; or into one, what it costs, and its proof.
//!
//! `layers [MACHINE]` prints the table, `layers MACHINE HIDDEN INTERMEDIATE HEADS [RESERVED]` the figures.
use qwengpu_circuit::{CompileOptions, Dtype, Geometry, compile, prove_all};
use qwengpu_isa::MachinePreset;

/// Hidden, intermediate and heads of the layers in the table: those of released models, and what lies between.
const GEOMETRIES: [(usize, usize, usize); 10] = [
    (2048, 2048, 16),
    (2048, 3072, 16),
    (2048, 6144, 16),
    (2048, 6144, 32),
    (2560, 9216, 16),
    (3072, 6144, 16),
    (4096, 6144, 16),
    (4096, 12288, 32),
    (5120, 6144, 16),
    (5120, 17408, 48),
];

/// Most layers of a machine.
const LAYERS: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "seed".to_owned());
    let preset = MachinePreset::find(&name).ok_or_else(|| format!("no machine is called {name}"))?;
    let machine = qwengpu_machine::build(&preset.spec)?;
    let sizes = std::env::args().skip(2).map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let geometry = match sizes[..] {
        [] => {
            table(&machine.netlist);
            return Ok(());
        }
        [hidden, intermediate, heads] => Geometry::new(hidden, intermediate, heads, LAYERS),
        [hidden, intermediate, heads, reserved] => {
            Geometry { reserved, ..Geometry::new(hidden, intermediate, heads, LAYERS) }
        }
        _ => return Err("layers [MACHINE [HIDDEN INTERMEDIATE HEADS [RESERVED]]]".into()),
    };
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

/// What the machine takes in each geometry.
fn table(netlist: &qwengpu_circuit::Netlist) {
    println!("| hidden | intermediate | heads | layers | neurons | channels | parameters | non-zeros |");
    println!("|---|---|---|---|---|---|---|---|");
    for (hidden, intermediate, heads) in GEOMETRIES {
        let geometry = Geometry::new(hidden, intermediate, heads, LAYERS);
        match compile(netlist, &geometry, &CompileOptions::default()) {
            Ok(compiled) => {
                let report = compiled.report;
                let nonzeros = report.total().nonzeros + report.embedding_nonzeros + report.lm_head_nonzeros;
                let (layers, neurons) = (report.layers.len(), report.total().neurons);
                let (channels, parameters) = (report.channels, report.num_parameters());
                println!(
                    "| {hidden} | {intermediate} | {heads} | {layers} | {neurons} | {channels} | {parameters} | {nonzeros} |"
                );
            }
            Err(error) => println!("| {hidden} | {intermediate} | {heads} | {error} | | | | |"),
        }
    }
}
