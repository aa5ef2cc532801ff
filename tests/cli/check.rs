//! Faults, limits and differences: exit status 1, in words.

use serde_json::{Value, json};

use crate::tool::{file, kernel, run_interp};

#[test]
fn a_fault_is_explained() {
    // Four threads store behind a buffer at the end of memory.
    let rest = "--grid 1 --block 4 --arg zeros:i32:60 --arg zeros:i32:60 --arg zeros:i32:3 --arg i32:8";
    let rest = rest.replace("--arg i32:8", "--arg i32:8 --grid 2");
    let rest = rest.replacen("--grid 1 ", "", 1);
    let finished = run_interp(&kernel("vector_add.ptx"), &rest);
    finished
        .failure(1, &["address out of bounds 0x1f8", "CTA (1, 0, 0)", "warp 0", "lane 2", "PTX line", "check indices"]);
    let text = run_interp(&kernel("vector_add.ptx"), &format!("{rest} --json")).failure(1, &["out of bounds"]).stdout;
    let object: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(object["fault"]["kind"], "address out of bounds");
    assert_eq!(object["fault"]["cta"], json!([1, 0, 0]));
    assert_eq!((&object["fault"]["warp"], &object["fault"]["lane"]), (&json!(0), &json!(2)));
    assert_eq!(object["fault"]["address"], 0x1f8);
    assert!(object["fault"]["line"].as_u64() > Some(0), "{object}");
    assert_eq!(object["buffers"].as_array().map(Vec::len), Some(3));
}

#[test]
fn an_endless_loop_is_cut_off() {
    let (_folder, path) = file("loop.asm", "again:\n    bra again\n");
    let finished = run_interp(&path.to_string_lossy(), "--grid 1 --block 1 --max-tokens 50 --check");
    finished.failure(1, &["not ended after 50 records", "--max-tokens"]);
}

#[test]
fn a_suite_with_a_wrong_expectation_fails() {
    let ptx = std::fs::read_to_string(kernel("reverse.ptx")).expect("the kernel");
    let case = std::fs::read_to_string(kernel("reverse.json")).expect("the case");
    let (folder, path) = file("reverse.ptx", &ptx);
    let suite = |text: &str| {
        std::fs::write(path.with_extension("json"), text).expect("written");
        crate::tool::qwengpu(["suite", "--engine", "interp", "--kernels", &folder.path().to_string_lossy()])
    };
    assert!(suite(&case).success().contains("1 of 1 kernels pass"));
    let mut wrong: Value = serde_json::from_str(&case).expect("JSON");
    wrong["launches"][0]["expect"][0]["values"][0] = json!(77);
    let finished = suite(&wrong.to_string()).failure(1, &["1 of 1 kernels fail"]);
    assert!(finished.stdout.contains("FAIL: launch 0: buffer 0 is"), "{}", finished.stdout);
}
