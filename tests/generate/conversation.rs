//! The command line of a conversation: several messages, limits, and what is refused.

use crate::{err, merged, out, qwengpu, qwengpu_with, standin, text};

#[test]
fn each_line_is_a_message() {
    let model = text(merged());
    let said = qwengpu_with(
        &["generate", "--model", &model, "--chat", "--check", "replay"],
        "What is 12 + 34?\nWhat is 56 * 78?\n",
    );
    assert!(said.status.success(), "{said:?}");
    let shown = out(&said);
    assert!(shown.contains(" = 46") && shown.matches("1 launches checked, 1 exact").count() == 2, "{shown}");
}

#[test]
fn limits_hold() {
    let model = text(merged());
    let ask = |more: &[&str]| {
        let said =
            qwengpu(&[&["generate", "--model", &model, "--prompt", "What is 12 + 34?", "--json"], more].concat());
        assert!(said.status.success(), "{said:?}");
        serde_json::from_str::<serde_json::Value>(&out(&said)).expect("JSON")
    };
    let facts = ask(&["--max-tokens", "3"]);
    assert_eq!((&facts["tokens"], &facts["ended"]), (&3.into(), &"it has as many tokens as it may have".into()));
    let facts = ask(&["--max-launches", "0"]);
    assert_eq!((&facts["launches"], &facts["ended"]), (&0.into(), &"it has as many launches as it may have".into()));
    let facts = ask(&["--max-launch-tokens", "20"]);
    let reply = facts["reply"].as_str().expect("a text");
    assert!(reply.contains(" = error: the kernel has not ended after 20 records"), "{reply}");
    let facts = ask(&["--stop", "answer"]);
    assert_eq!((&facts["reply"], &facts["ended"]), (&"The ".into(), &"a stop text came".into()));
    let facts = ask(&["--gpu", "off", "--max-tokens", "40"]);
    assert_eq!(facts["launches"], 0);
    let hot = ["--temperature", "1.5", "--seed", "7", "--top-k", "50", "--max-tokens", "20"];
    assert_eq!(ask(&hot)["reply"], ask(&hot)["reply"], "the same seed gives the same text");
}

#[test]
fn what_cannot_be_used_is_refused() {
    let (model, base) = (text(merged()), standin("checkpoint"));
    for (arguments, expected) in [
        (vec!["--model", &base, "--prompt", "x"], "qwengpu.json"),
        (vec!["--model", "/nowhere", "--prompt", "x"], "/nowhere"),
        (vec!["--model", &model, "--prompt", "", "--raw"], "the prompt is empty"),
        (vec!["--model", &model, "--prompt", "x", "--top-p", "2"], "top-p is 2, but must be above 0 and at most 1"),
        (vec!["--model", &model], "--prompt"),
        (vec!["--model", &model, "--prompt", "x", "--chat"], "cannot be used with"),
    ] {
        let said = qwengpu(&[&["generate"], &arguments[..]].concat());
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {said:?}");
        assert!(err(&said).contains(expected), "{arguments:?}: {}", err(&said));
    }
    // The machine's tokens are no text.
    let said =
        qwengpu(&["generate", "--model", &model, "--prompt", "<|go|> and <|halt|>", "--raw", "--max-tokens", "2"]);
    assert!(said.status.success(), "{said:?}");
}
