//! Parsing: the corpus, and text printed again.

#![allow(clippy::panic, reason = "a failing test panics")]

use std::path::PathBuf;

use qwengpu_ptx::parse;

fn corpus() -> Vec<(PathBuf, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the corpus folder is readable") {
            let path = entry.expect("the corpus folder is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ptx") {
                let text = std::fs::read_to_string(&path).expect("a corpus file is text");
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn printing_and_parsing_is_the_identity() {
    let files = corpus();
    assert!(files.len() >= 80, "the corpus went missing");
    for (path, text) in files {
        let module = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(module.kernels().count() > 0, "{}", path.display());
        let printed = module.to_string();
        let again = parse(&printed).unwrap_or_else(|e| panic!("{}: {e}\n{printed}", path.display()));
        assert_eq!(printed, again.to_string(), "{}", path.display());
    }
}
