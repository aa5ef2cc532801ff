//! TEMP
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;
use qwengpu_isa::MachineSpec;
use qwengpu_ptx::{Options, Stage, lower, parse};
#[path = "../tests/common/growing.rs"]
mod growing;
use growing::{Shape, kernel};
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let shapes: &[Shape] = match arguments[0].as_str() { "s" => &[Shape::Straight], "b" => &[Shape::Branchy], "r" => &[Shape::Barriers], _ => &[Shape::Straight, Shape::Branchy] };
    for shape in shapes {
        for n in arguments[1..].iter().map(|s| s.parse::<usize>().unwrap()) {
            let text = kernel(*shape, n);
            let t0 = Instant::now();
            let module = parse(&text).unwrap();
            let parsed = t0.elapsed();
            let times: RefCell<(Instant, BTreeMap<&'static str, (f64, u32)>)> = RefCell::new((Instant::now(), BTreeMap::new()));
            let observe = |stage: &Stage<'_>| {
                let mut t = times.borrow_mut();
                let d = t.0.elapsed().as_secs_f64();
                let e = t.1.entry(stage.pass).or_default();
                e.0 += d; e.1 += 1;
                t.0 = Instant::now();
            };
            let spec = MachineSpec { rom_words: 0x8000, ..MachineSpec::seed() };
            let profile = std::env::var("PROFILE").is_ok();
            let options = Options { spec, observer: if profile { Some(&observe) } else { None }, estimates: false };
            let t1 = Instant::now();
            let r = lower(&module, None, &options);
            let took = t1.elapsed();
            match &r {
                Ok(k) => println!("{shape:?} {n}: parse {:.3} lower {:.3} insts {} regs {} spills {}", parsed.as_secs_f64(), took.as_secs_f64(), k.stats.instructions, k.stats.registers, k.stats.spill_slots),
                Err(e) => println!("{shape:?} {n}: parse {:.3} lower {:.3} ERR {e}", parsed.as_secs_f64(), took.as_secs_f64()),
            }
            if profile {
                let t = times.borrow();
                let mut v: Vec<_> = t.1.iter().collect();
                v.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
                for (p, (d, c)) in v.iter().take(22) { println!("   {p:24} {d:8.3} {c}"); }
                println!("   tail {:.3}", t.0.elapsed().as_secs_f64());
            }
        }
    }
}
