//! The transcript of a reply, its replay, and how a changed one is found out.

use serde_json::Value;
use tempfile::TempDir;

use crate::{err, merged, out, qwengpu, text};

#[test]
fn a_reply_is_replayed() {
    let folder = TempDir::new().expect("a folder");
    let (model, file) = (text(merged()), text(&folder.path().join("reply.json")));
    let question = "What is 1234 * 5678?";
    let said =
        qwengpu(&["generate", "--model", &model, "--prompt", question, "--check", "replay", "--transcript", &file]);
    assert!(said.status.success(), "{said:?}");
    let shown = out(&said);
    assert!(
        shown.contains("<gpu>1234 * 5678</gpu> = 7006652") && shown.contains("1 launches checked, 1 exact"),
        "{shown}"
    );

    for engine in ["sparse", "dense"] {
        let said = qwengpu(&["replay", &file, "--model", &model, "--engine", engine, "--json"]);
        assert!(said.status.success(), "{said:?}");
        let facts: Value = serde_json::from_str(&out(&said)).expect("JSON");
        assert_eq!((&facts["launches"], &facts["exact"]), (&1.into(), &1.into()));
    }

    let written = std::fs::read_to_string(&file).expect("a transcript");
    let mut changed: Value = serde_json::from_str(&written).expect("JSON");
    let pieces = changed["pieces"].as_array_mut().expect("pieces");
    let result = pieces.iter_mut().find(|piece| piece["author"] == "gpu").expect("a result");
    result["text"] = " = 7006653".into();
    std::fs::write(&file, changed.to_string()).expect("written");
    let said = qwengpu(&["replay", &file, "--model", &model]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(out(&said).contains("the text is \"= 7006653\", memory holds \"= 7006652\""), "{said:?}");

    for (content, expected) in [("{", "this is no transcript"), ("{\"format\": 1}", "this is no transcript")] {
        std::fs::write(&file, content).expect("written");
        let said = qwengpu(&["replay", &file, "--model", &model]);
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        assert!(err(&said).contains(expected), "{said:?}");
    }
}

#[test]
fn records_are_shown_as_they_come_and_authors_are_marked() {
    let model = text(merged());
    let question = ["generate", "--model", &model, "--prompt", "What is 12 + 34?"];
    let said = qwengpu(&[&question[..], &["--show", "records", "--check", "records"]].concat());
    assert!(said.status.success(), "{said:?}");
    assert!(out(&said).contains("<|halt|>") && out(&said).contains(" = 46"), "{said:?}");
    let said = qwengpu(&[&question[..], &["--show", "authors"]].concat());
    assert!(out(&said).contains("</gpu>[GPU: = 46]"), "{said:?}");
    let said = qwengpu(&[&question[..], &["--json", "--check", "replay"]].concat());
    let facts: Value = serde_json::from_str(&out(&said)).expect("JSON");
    assert_eq!((&facts["replay"]["exact"], &facts["launches"]), (&1.into(), &1.into()), "{facts}");
    let pieces = facts["pieces"].as_array().expect("pieces");
    let authors: Vec<&str> = pieces.iter().filter_map(|piece| piece["author"].as_str()).collect();
    assert_eq!(authors, ["model", "gpu", "model"]);
}
