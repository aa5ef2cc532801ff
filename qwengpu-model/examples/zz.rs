//! dbg
#[path = "../benches/common/mod.rs"]
mod common;
use common::*;
use qwengpu_model::*;
use std::time::Instant;
fn main() {
    let layers: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(12);
    let weights = compiled_shape(layers);
    let mut e = SparseEngine::from_weights(&weights, Precision::F32).expect("e");
    let mut dice = Dice(2);
    let stream: Vec<u32> = (0..256).map(|_| dice.below(VOCABULARY)).collect();
    let mut r = Recorder::default();
    e.forward_probed(&stream[..50], &mut r).expect("x");
    for (s, v) in &r.sites { if *s != Site::Logits { print!("{s}:{} ", v.iter().filter(|x| **x != 0.0).count() / 50); } }
    println!();
    let mut times = Vec::new();
    for _ in 0..8 { for &t in &stream {
        let at = Instant::now();
        assert_eq!(e.argmax(&[t]).expect("x"), t);
        times.push(at.elapsed().as_secs_f64() * 1e6);
    }}
    times.sort_by(f64::total_cmp);
    println!("us/token: min {:.1} p10 {:.1} p50 {:.1} mean {:.1}", times[0], times[times.len()/10], times[times.len()/2], times.iter().sum::<f64>()/times.len() as f64);
}
