//! t
use qwengpu_model::*;
fn main() {
    let b = std::fs::read("/tmp/exact_ref.safetensors").expect("x");
    let f = safetensors::SafeTensors::deserialize(&b).expect("x");
    let g = |n: &str| -> Vec<u32> { f.tensor(n).expect("x").data().chunks(8).map(|c| i64::from_le_bytes(c.try_into().expect("8")) as u32).collect() };
    let (t, a, e) = (g("t"), g("a"), g("e"));
    let p = std::path::Path::new("/tmp/exact");
    for prec in [Precision::F32, Precision::Bf16] {
        let mut eng = SparseEngine::from_dir(p, prec).expect("s");
        let mut times = vec![]; let mut w = 0;
        for _ in 0..20 { eng.reset();
        for (i, &tok) in t.iter().enumerate() { let at = std::time::Instant::now(); let id = eng.argmax(&[tok]).expect("x"); times.push(at.elapsed().as_secs_f64() * 1e6); if let Ok(j) = a.binary_search(&(i as u32)) { if id != e[j] { w += 1; } } } }
        times.sort_by(f64::total_cmp);
        println!("{prec:?} wrong {w}: us/token min {:.2} p10 {:.2} p50 {:.2} p90 {:.2}", times[0], times[times.len()/10], times[times.len()/2], times[times.len()*9/10]);
    }
}
