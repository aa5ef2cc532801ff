//! The tokenizer as the tokenizers crate reads it.

mod common;

use common::Tiny;
use qwengpu_weights::{EmitOptions, FIRST_MACHINE_TOKEN, Manifest};
use tempfile::TempDir;
use tokenizers::Tokenizer;

fn load(tiny: &Tiny, parent: &TempDir) -> (Tokenizer, Manifest) {
    let dir = parent.path().join("x");
    let manifest = tiny.emit(&dir, &EmitOptions::default()).expect("a checkpoint");
    (Tokenizer::from_file(dir.join("tokenizer.json")).expect("a tokenizer"), manifest)
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, true).expect("ids").get_ids().to_vec()
}

#[test]
fn each_token_of_the_machine_is_one_id() {
    let tiny = Tiny::new(1024);
    let parent = TempDir::new().expect("a directory");
    let (tokenizer, manifest) = load(&tiny, &parent);
    for (number, token) in tiny.netlist.tokens().iter().enumerate() {
        let id = manifest.token_id(number).expect("an id");
        assert_eq!(ids(&tokenizer, &token.text), [id], "{}", token.text);
        assert_eq!(tokenizer.id_to_token(id), Some(token.text.clone()));
        assert_eq!(tokenizer.decode(&[id], false).expect("a text"), token.text);
        assert_eq!(tokenizer.decode(&[id], true).expect("a text"), "");
    }
    assert_eq!(tokenizer.get_vocab_size(true), FIRST_MACHINE_TOKEN as usize + tiny.netlist.tokens().len());
    let stream: String = tiny.netlist.tokens().iter().map(|token| token.text.as_str()).collect();
    let first = manifest.first_machine_token;
    assert_eq!(ids(&tokenizer, &stream), (first..first + manifest.num_machine_tokens).collect::<Vec<_>>());
}

#[test]
fn any_text_is_encoded_by_its_bytes() {
    let parent = TempDir::new().expect("a directory");
    let (tokenizer, manifest) = load(&Tiny::new(1024), &parent);
    let all: String = (0..=0x2ff_u32).filter_map(char::from_u32).collect();
    for text in ["", " ", "hello world", "\0\t\r\n", "<|write:9:9|>", "na\u{ef}ve \u{1f980} \u{4f60}\u{597d}", &all] {
        let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
        assert_eq!(ids(&tokenizer, text), bytes, "{text:?}");
        assert_eq!(tokenizer.decode(&bytes, false).expect("a text"), text);
    }
    let halt = manifest.halt_token_id;
    assert_eq!(ids(&tokenizer, " <|halt|>x<|endoftext|>"), [32, halt, 120, 256]);
}
