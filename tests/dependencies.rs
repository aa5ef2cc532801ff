//! What each crate may depend on, as ARCHITECTURE.md says.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The crates of the workspace that a crate may depend on.
const WORKSPACE: [(&str, &[&str]); 8] = [
    ("qwengpu-isa", &[]),
    ("qwengpu-interp", &["qwengpu-isa"]),
    ("qwengpu-ptx", &["qwengpu-isa"]),
    ("qwengpu-circuit", &[]),
    ("qwengpu-machine", &["qwengpu-isa", "qwengpu-circuit"]),
    ("qwengpu-weights", &["qwengpu-circuit"]),
    ("qwengpu-model", &[]),
    (
        "qwengpu",
        &[
            "qwengpu-isa",
            "qwengpu-interp",
            "qwengpu-ptx",
            "qwengpu-circuit",
            "qwengpu-machine",
            "qwengpu-weights",
            "qwengpu-model",
        ],
    ),
];

/// The crates of the workspace that the tests of a crate may use besides.
const TESTS: [(&str, &[&str]); 3] = [
    // Its own, for a feature that only tests want.
    ("qwengpu-isa", &["qwengpu-isa"]),
    ("qwengpu-ptx", &["qwengpu-interp"]),
    ("qwengpu-machine", &["qwengpu-interp"]),
];

/// Who alone may depend on a crate from outside; tests may read what they like.
const OUTSIDE: [(&str, &[&str]); 7] = [
    ("candle-core", &["qwengpu-model"]),
    ("candle-nn", &[]),
    ("safetensors", &["qwengpu-weights", "qwengpu-model"]),
    ("tokenizers", &["qwengpu-weights", "qwengpu"]),
    ("minijinja", &["qwengpu"]),
    ("clap", &["qwengpu"]),
    ("miette", &["qwengpu"]),
];

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let allowed: BTreeMap<&str, &[&str]> = WORKSPACE.into();
    let in_tests: BTreeMap<&str, &[&str]> = TESTS.into();
    let outside: BTreeMap<&str, &[&str]> = OUTSIDE.into();
    let mut seen = BTreeSet::new();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        seen.insert(name.to_owned());
        let Some(own) = allowed.get(name) else {
            broken.push(format!("{name} has no rule: add one here and in ARCHITECTURE.md"));
            continue;
        };
        for dependency in &package.dependencies {
            let target = dependency.name.as_str();
            let in_test = dependency.kind == DependencyKind::Development
                && (in_tests.get(name).is_some_and(|extra| extra.contains(&target)));
            if allowed.contains_key(target) && !own.contains(&target) && !in_test {
                broken.push(format!("{name} may not depend on {target}"));
            }
            let is_used = dependency.kind != DependencyKind::Development;
            if is_used && outside.get(target).is_some_and(|owners| !owners.contains(&name)) {
                broken.push(format!("{name} may not depend on {target}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
    let expected: BTreeSet<String> = allowed.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, expected, "the workspace has other crates than the rules name");
}
