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

#[test]
fn a_suite_of_launches_at_once_gives_what_launches_alone_give() {
    let suite = |rest: &[&str]| {
        let folder = format!("{}/kernels", env!("CARGO_MANIFEST_DIR"));
        let arguments = ["suite", "--kernels", &folder, "--filter", "v", "--json"];
        let json = crate::tool::qwengpu(arguments.iter().chain(rest)).success();
        serde_json::from_str::<Value>(&json).expect("JSON")
    };
    let mut alone = suite(&[]);
    let mut at_once = suite(&["--streams", "3", "--check"]);
    assert_eq!((&alone["streams"], &at_once["streams"]), (&Value::Null, &json!(3)));
    assert!(alone["launches"].as_u64() > Some(6) && alone["kernels"].as_array().map(Vec::len) > Some(2), "{alone}");
    assert!(at_once["tokens_per_second"].as_f64() > Some(0.0), "{at_once}");
    for summary in [&mut alone, &mut at_once] {
        for timed in ["streams", "seconds", "tokens_per_second"] {
            summary[timed] = Value::Null;
        }
        for kernel in summary["kernels"].as_array_mut().expect("kernels") {
            kernel["seconds"] = Value::Null;
        }
    }
    assert_eq!(alone, at_once);
}

#[test]
fn a_launch_that_fails_beside_others_is_named() {
    let (folder, path) = file("reverse.ptx", &std::fs::read_to_string(kernel("reverse.ptx")).expect("the kernel"));
    let case = std::fs::read_to_string(kernel("reverse.json")).expect("the case");
    let mut wrong: Value = serde_json::from_str(&case).expect("JSON");
    wrong["launches"][1]["expect"][0]["values"][0] = json!(77);
    std::fs::write(path.with_extension("json"), wrong.to_string()).expect("written");
    std::fs::write(folder.path().join("whole.json"), case).expect("written");
    let folder = folder.path().to_string_lossy().into_owned();
    for engine in ["interp", "sparse"] {
        let arguments = ["suite", "--engine", engine, "--kernels", &folder, "--streams", "2"];
        let finished = crate::tool::qwengpu(arguments).failure(1, &["1 of 2 kernels fail"]);
        assert!(finished.stdout.contains("FAIL: launch 1: buffer 0 is"), "{}", finished.stdout);
        assert!(finished.stdout.contains("pass\n"), "{}", finished.stdout);
    }
    crate::tool::qwengpu(["suite", "--streams", "0"]).failure(2, &["--streams"]);
    let drafted = ["suite", "--engine", "dense", "--streams", "2", "--draft", "interp"];
    crate::tool::qwengpu(drafted).failure(2, &["--streams", "--draft", "cannot be used with"]);
}
