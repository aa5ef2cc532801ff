//! Runs an assembly program on the netlist with plain integers and prints the records.
use qwengpu_circuit::Evaluator;
use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec, Record, assemble, prompt};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = MachineSpec::seed();
    let machine = qwengpu_machine::build(&spec)?;
    println!("{} signals, {} operations", machine.netlist.signals().len(), machine.netlist.operations().len());
    let source = std::fs::read_to_string(std::env::args().nth(1).ok_or("usage: speak FILE.asm")?)?;
    let program = assemble(&source)?;
    let launch = LaunchConfig::new(Dim3::linear(2), Dim3::linear(8))
        .with_parameters(&[0, 32])
        .with_global(vec![5, 3, 300, 70000, 1, 2, 3, 4]);
    let mut evaluator = Evaluator::new(&machine.netlist);
    let mut last = 0;
    for record in prompt(&spec, &program, &launch)? {
        last = machine.table.index(record) as usize;
        evaluator.run(last)?;
    }
    let mut count = 0;
    loop {
        last = evaluator.next(last)?;
        let record = machine.table.record(u32::try_from(last)?).ok_or("no record")?;
        println!("{}", machine.table.text(record));
        count += 1;
        if record == Record::Halt || count > 500 {
            break;
        }
        evaluator.run(last)?;
    }
    Ok(())
}
