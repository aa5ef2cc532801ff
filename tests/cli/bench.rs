//! `bench`: its forms, and what it refuses before it measures.

use serde_json::Value;

use crate::tool::{file, qwengpu};

fn kernels() -> String {
    format!("{}/kernels", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn figures_have_names_units_and_values() {
    let arguments = ["bench", "--quick", "--json", "--only", "lowering", "--kernels", &kernels()];
    let report: Value = serde_json::from_str(&qwengpu(arguments).success()).expect("JSON");
    assert_eq!((&report["version"], &report["quick"]), (&1.into(), &true.into()));
    let figures = report["figures"].as_array().expect("a list");
    let names: Vec<&str> = figures.iter().filter_map(|figure| figure["name"].as_str()).collect();
    assert_eq!(names, ["lowering.parse", "lowering.lower", "lowering.whole"]);
    for figure in figures {
        assert!(figure["value"].as_f64().is_some_and(|value| value > 0.0), "{figure}");
        assert_eq!(figure["unit"], "instructions/s");
    }
}

#[test]
fn a_document_gets_the_table_and_keeps_the_rest() {
    let text = "front\n<!-- qwengpu bench: begin -->\nold\n<!-- qwengpu bench: end -->\nback\n";
    let (_folder, path) = file("page.md", text);
    let path_text = path.to_string_lossy();
    let arguments = ["bench", "--quick", "--only", "lowering", "--kernels", &kernels(), "--update", &path_text];
    assert!(qwengpu(arguments).success().contains("lowering.whole"));
    let written = std::fs::read_to_string(&path).expect("the page");
    assert!(written.starts_with("front\n") && written.ends_with("back\n"), "{written}");
    assert!(written.contains("| `lowering.whole` | ") && !written.contains("old"), "{written}");
}

#[test]
fn the_curve_of_work_is_the_documents() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let out = folder.path().to_string_lossy();
    qwengpu(["bench", "--only", "work", "--curves", &out, "--kernels", &kernels()]).success();
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("a curve");
    let written = read(&folder.path().join("work.csv"));
    let document = read(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/figures/work.csv")));
    assert_eq!(written, document, "renew it: qwengpu bench --only work --curves docs/figures");
    assert!(read(&folder.path().join("work.svg")).contains("tokens spoken"));
}

#[test]
fn what_cannot_be_measured_is_bad_input() {
    qwengpu(["bench", "--only", "speed"]).failure(2, &["speed"]);
    qwengpu(["bench", "--only", "work", "--kernels", &kernels()]).failure(2, &["--curves"]);
    let transformers = ["bench", "--only", "transformers", "--kernels", &kernels()];
    qwengpu(transformers).failure(2, &["--transformers", "pip install torch transformers"]);
    let missing = transformers.into_iter().chain(["--transformers", "/nowhere/python"]);
    qwengpu(missing).failure(2, &["/nowhere/python could not be started", "--transformers"]);
    let merged = ["bench", "--only", "lowering,merged", "--kernels", &kernels(), "--base", "/nowhere"];
    qwengpu(merged).failure(2, &["/nowhere", "--base"]);
    qwengpu(["bench", "--kernels", "/nowhere"]).failure(2, &["/nowhere", "--kernels"]);
    let (_folder, path) = file("page.md", "no place");
    let path = path.to_string_lossy();
    let arguments = ["bench", "--only", "lowering", "--kernels", &kernels(), "--update", &path];
    qwengpu(arguments).failure(2, &["qwengpu bench: begin"]);
}
