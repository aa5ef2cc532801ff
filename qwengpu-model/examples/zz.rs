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
    let mut best = [f64::MAX; 2];
    for _ in 0..40 {
        let t = Instant::now();
        assert_eq!(e.argmax_all(&stream).expect("x"), stream);
        best[0] = best[0].min(t.elapsed().as_secs_f64() / 256.0);
        let t = Instant::now();
        e.forward(&stream).expect("x");
        best[1] = best[1].min(t.elapsed().as_secs_f64() / 256.0);
    }
    println!("choose {:.1} us/token, {:.0} tok/s; consume {:.1} us, {:.0}", best[0]*1e6, 1.0/best[0], best[1]*1e6, 1.0/best[1]);
}
