//! TEMP
use qwengpu_isa::MachineSpec;
use qwengpu_ptx::{Options, lower, parse};
#[path = "../tests/common/growing.rs"]
mod growing;
#[path = "../tests/common/table.rs"]
#[allow(dead_code)]
mod table;
fn show(name: &str, text: &str, spec: MachineSpec) {
    let module = match parse(text) { Ok(m) => m, Err(e) => { println!("== {name}: parse {e}"); return; } };
    let names: Vec<String> = text.lines().filter_map(|l| l.trim().strip_prefix(".visible .entry ")).map(|l| l.split('(').next().unwrap().trim().to_owned()).collect();
    for k in names {
        match lower(&module, Some(&k), &Options::new(spec)) {
            Ok(l) => println!("== {name} {k}\n{}{:?}\n{:?}\n{} {} {} {} {}", l.program, l.static_data, l.source_map, l.stats.estimated_tokens, l.stats.instructions, l.stats.registers, l.stats.predicates, l.stats.spill_slots),
            Err(e) => println!("== {name} {k}\n{e}"),
        }
    }
}
fn main() {
    let seed = MachineSpec::seed();
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap();
        if file.ends_with(".ptx") { show(&file, &text, seed); continue; }
    }
    for shape in [growing::Shape::Straight, growing::Shape::Branchy, growing::Shape::Barriers] {
        for n in [30, 60, 100, 150, 200, 300, 400, 600, 800, 1000, 1500] {
            let text = growing::kernel(shape, n);
            show(&format!("{shape:?}{n}"), &text, seed);
            show(&format!("{shape:?}{n} large"), &text, MachineSpec { rom_words: 0x8000, ..seed });
            show(&format!("{shape:?}{n} few registers"), &text, MachineSpec { rom_words: 0x8000, registers: 9, local_words: 200, ..seed });
        }
    }
}
