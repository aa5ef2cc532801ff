//! The held-out questions.

use crate::{merged, out, qwengpu, standin, text};

fn evaluate(name: &str, at_least: &str) -> (bool, serde_json::Value) {
    let model = text(merged());
    let output = qwengpu(&["evaluate", "--model", &model, &standin(name), "--at-least", at_least, "--json"]);
    (output.status.success(), serde_json::from_str(&out(&output)).expect("JSON"))
}

#[test]
fn expressions_and_calls() {
    let (good, facts) = evaluate("normal.json", "22");
    assert!(good, "{facts:#}");
    assert_eq!(facts["questions"], 24);
}

#[test]
fn kernels() {
    // Without a compiler there is nothing to run; everything that is required has one.
    if let Err(error) = qwengpu::CudaCompiler::find() {
        assert!(std::env::var_os("QWENGPU_REQUIRE_ALL").is_none(), "{error}");
        return;
    }
    let (good, facts) = evaluate("advanced.json", "6");
    assert!(good, "{facts:#}");
    assert_eq!(facts["questions"], 8);
}

#[test]
fn too_few_right_answers_are_a_failure() {
    let (good, facts) = evaluate("normal.json", "25");
    assert!(!good && facts["right"].as_u64().is_some_and(|right| right <= 24), "{facts:#}");
}
