//! The manifest: what it says of a machine, and how it is read back.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{BITS, ROWS, Tiny, halt, read};
use qwengpu_weights::{CONFIG_FILE, EmitOptions, MANIFEST_FILE, Manifest, ManifestError};
use tempfile::TempDir;

fn checkpoint(parent: &TempDir) -> (Tiny, PathBuf, Manifest) {
    let tiny = Tiny::new(1024);
    let dir = parent.path().join("x");
    let manifest = tiny.emit(&dir, &EmitOptions::default()).expect("a checkpoint");
    (tiny, dir, manifest)
}

#[test]
fn it_is_read_back() {
    let parent = TempDir::new().expect("a directory");
    let (tiny, dir, manifest) = checkpoint(&parent);
    let found = Manifest::read(&dir).expect("a manifest");
    assert_eq!(found, manifest);

    assert_eq!(found.machine["rows"], ROWS as u64);
    assert_eq!(found.geometry.hidden, 1024);
    assert_eq!(found.num_layers, tiny.compiled.tensors.num_layers);
    assert_eq!(found.report.layers.len(), found.num_layers);
    assert_eq!(found.report.margins.len(), 1);
    let memory = found.state("memory", 0).expect("the memory");
    assert_eq!((memory.rows, memory.bits), (ROWS, BITS));
    assert!(tiny.compiled.locations.contains(&memory.to_location()));
    assert_eq!(found.state("memory", 1), None);
    let names = found.channels.iter().flat_map(|channel| &channel.contents).flat_map(|content| &content.signals);
    assert!(names.into_iter().any(|name| name == "write/value/bit2"));
}

#[test]
fn ids_and_numbers() {
    let parent = TempDir::new().expect("a directory");
    let (_, _, manifest) = checkpoint(&parent);
    let id = manifest.token_id(halt()).expect("the last token");
    assert_eq!((id, manifest.token_number(id)), (manifest.halt_token_id, Some(halt())));
    assert_eq!(manifest.token_id(read(0)), Some(manifest.first_machine_token + 32));
    assert_eq!(manifest.token_id(halt() + 1), None);
    assert_eq!(manifest.token_number(id + 1), None);
    assert_eq!(manifest.token_number(manifest.first_machine_token - 1), None);
}

/// Changes a file of a checkpoint and reads the manifest.
fn changed(file: &str, change: impl Fn(&str) -> String) -> ManifestError {
    let parent = TempDir::new().expect("a directory");
    let (_, dir, _) = checkpoint(&parent);
    let path = dir.join(file);
    let text = fs::read_to_string(&path).expect("a file");
    let new = change(&text);
    assert!(new != text, "the change does nothing");
    fs::write(path, new).expect("a file");
    Manifest::read(&dir).expect_err("a manifest that is wrong")
}

#[test]
fn damaged_manifests_are_refused() {
    let error = changed(MANIFEST_FILE, |text| text[..text.len() / 2].to_owned());
    assert!(matches!(error, ManifestError::Truncated { .. }), "{error}");
    let error = changed(MANIFEST_FILE, |_| String::new());
    assert!(matches!(error, ManifestError::Truncated { .. }), "{error}");
    let error = changed(MANIFEST_FILE, |text| text.replace("\"vocab_size\":", "\"vocab_size\":\"many\",\"x\":"));
    assert!(matches!(error, ManifestError::Syntax { .. }), "{error}");
    let error = changed(MANIFEST_FILE, |text| text.replace("\"format_version\":1", "\"format_version\":2"));
    assert!(matches!(error, ManifestError::Version { got: 2, expected: 1, .. }), "{error}");
    for other in ["{}", "{\"format\": \"other\", \"format_version\": 1}", "{\"format\": \"qwengpu\"}"] {
        let error = changed(MANIFEST_FILE, |_| other.to_owned());
        assert!(matches!(error, ManifestError::Format { .. }), "{error}");
    }
}

#[test]
fn manifests_of_other_models_are_refused() {
    let error = changed(CONFIG_FILE, |text| text.replace("\"hidden_size\": 1024", "\"hidden_size\": 2048"));
    assert_eq!(
        error.to_string().split_once(": ").map(|(_, what)| what),
        Some("hidden_size is 2048 in the model and 1024 in the manifest")
    );
    let error = changed(CONFIG_FILE, |text| text.replace("\"num_hidden_layers\": ", "\"num_hidden_layers\": 1"));
    assert!(matches!(error, ManifestError::Mismatch { what: "num_hidden_layers", .. }), "{error}");
    let error = changed(CONFIG_FILE, |text| text[..20].to_owned());
    assert!(matches!(error, ManifestError::Truncated { .. }), "{error}");
}

#[test]
fn directories_without_a_machine() {
    let parent = TempDir::new().expect("a directory");
    let missing = |dir: &Path| Manifest::read(dir).expect_err("no manifest");
    assert!(matches!(missing(&parent.path().join("nowhere")), ManifestError::Missing { .. }));
    assert!(matches!(missing(parent.path()), ManifestError::Missing { .. }));
    fs::write(parent.path().join(CONFIG_FILE), "{}").expect("a file");
    assert!(matches!(missing(parent.path()), ManifestError::NoMachine { .. }));
    fs::create_dir(parent.path().join(MANIFEST_FILE)).expect("a directory");
    assert!(matches!(missing(parent.path()), ManifestError::Io { .. }));
}
