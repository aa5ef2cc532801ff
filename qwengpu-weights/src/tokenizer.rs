//! Ids, `tokenizer.json` and `tokenizer_config.json`.

use std::collections::{BTreeMap, BTreeSet};

use qwengpu_circuit::Netlist;
use serde::Serialize;

use crate::config::MAX_POSITIONS;
use crate::error::TokenError;
use crate::tensor::VocabularyRows;

/// Ids of bytes come first; the id of a byte is its value.
const NUM_BYTES: u32 = 256;
/// The tokens between bytes and the machine's.
const BASE_SPECIALS: [&str; 1] = [PAD_TEXT];
/// Pads batches.
const PAD_TEXT: &str = "<|endoftext|>";
/// The rows of both embeddings are a multiple of this, which other engines like.
const ROW_MULTIPLE: usize = 64;

/// The id of the machine's token 0: right behind the bytes and `<|endoftext|>`, because the libraries number added
/// tokens without holes.
pub const FIRST_MACHINE_TOKEN: u32 = NUM_BYTES + 1;

/// All tokens of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary<'a> {
    texts: Vec<&'a str>,
    first_machine_token: u32,
    num_machine_tokens: u32,
    halt: u32,
}

impl<'a> Vocabulary<'a> {
    /// The id of `<|endoftext|>`, which pads batches.
    pub(crate) const PAD_ID: u32 = NUM_BYTES;

    /// Checks the netlist's tokens.
    pub(crate) fn new(netlist: &'a Netlist, halt: usize) -> Result<Self, TokenError> {
        let count = netlist.tokens().len();
        if halt >= count {
            return Err(TokenError::Halt { number: halt, count });
        }
        let bytes: Vec<String> = (0..=u8::MAX).map(|byte| byte_character(byte).to_string()).collect();
        let mut seen: BTreeSet<&str> = bytes.iter().map(String::as_str).chain(BASE_SPECIALS).collect();
        for (number, token) in netlist.tokens().iter().enumerate() {
            if token.text.is_empty() || !seen.insert(&token.text) {
                return Err(TokenError::Text { number, text: token.text.clone() });
            }
        }
        Ok(Self {
            texts: BASE_SPECIALS.into_iter().chain(netlist.tokens().iter().map(|token| token.text.as_str())).collect(),
            first_machine_token: FIRST_MACHINE_TOKEN,
            num_machine_tokens: id(count),
            halt: id(halt),
        })
    }

    pub(crate) fn first_machine_token(&self) -> u32 {
        self.first_machine_token
    }

    pub(crate) fn num_machine_tokens(&self) -> u32 {
        self.num_machine_tokens
    }

    pub(crate) fn halt_id(&self) -> u32 {
        self.first_machine_token + self.halt
    }

    /// Rows of both embeddings.
    pub(crate) fn padded_len(&self) -> usize {
        (NUM_BYTES as usize + self.texts.len()).next_multiple_of(ROW_MULTIPLE)
    }

    pub(crate) fn rows(&self) -> VocabularyRows {
        VocabularyRows { total: self.padded_len(), first_machine_token: self.first_machine_token as usize }
    }

    fn text(&self, id: u32) -> Option<&'a str> {
        self.texts.get(id.checked_sub(NUM_BYTES)? as usize).copied()
    }
}

/// Numbers of tokens fit 32 bits, as entries of the embedding do.
fn id(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The character that stands for a byte in a byte-level vocabulary: the byte's own if it is printable in Latin-1, else
/// one of those from U+0100, in order.
fn byte_character(byte: u8) -> char {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&byte| !is_printable(byte)).count();
    char::from_u32(0x100 + id(before)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// `tokenizer.json`.
#[derive(Debug, Serialize)]
pub(crate) struct TokenizerFile<'a> {
    version: &'static str,
    truncation: Option<()>,
    padding: Option<()>,
    added_tokens: Vec<AddedToken<'a>>,
    normalizer: Option<()>,
    pre_tokenizer: ByteLevel,
    post_processor: Option<()>,
    decoder: ByteLevel,
    model: BytePairs,
}

#[derive(Debug, Serialize)]
struct AddedToken<'a> {
    id: u32,
    content: &'a str,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ByteLevel {
    r#type: &'static str,
    add_prefix_space: bool,
    trim_offsets: bool,
    use_regex: bool,
}

#[derive(Debug, Serialize)]
struct BytePairs {
    r#type: &'static str,
    dropout: Option<f64>,
    unk_token: Option<&'static str>,
    continuing_subword_prefix: Option<&'static str>,
    end_of_word_suffix: Option<&'static str>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: BTreeMap<String, u32>,
    merges: [[&'static str; 2]; 0],
}

impl<'a> TokenizerFile<'a> {
    pub(crate) fn new(vocabulary: &Vocabulary<'a>) -> Self {
        let added_token = |(id, &content): (u32, &&'a str)| AddedToken {
            id,
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        };
        let byte_level =
            ByteLevel { r#type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
        Self {
            version: "1.0",
            truncation: None,
            padding: None,
            added_tokens: (NUM_BYTES..).zip(&vocabulary.texts).map(added_token).collect(),
            normalizer: None,
            pre_tokenizer: byte_level,
            post_processor: None,
            decoder: byte_level,
            model: BytePairs {
                r#type: "BPE",
                dropout: None,
                unk_token: None,
                continuing_subword_prefix: None,
                end_of_word_suffix: None,
                fuse_unk: false,
                byte_fallback: false,
                ignore_merges: false,
                vocab: (0..=u8::MAX).map(|byte| (byte_character(byte).to_string(), byte.into())).collect(),
                merges: [],
            },
        }
    }
}

/// `tokenizer_config.json`.
#[derive(Debug, Serialize)]
pub(crate) struct TokenizerConfig<'a> {
    tokenizer_class: &'static str,
    model_max_length: usize,
    clean_up_tokenization_spaces: bool,
    add_prefix_space: bool,
    bos_token: Option<&'a str>,
    eos_token: Option<&'a str>,
    pad_token: &'a str,
    unk_token: Option<&'a str>,
}

impl<'a> TokenizerConfig<'a> {
    pub(crate) fn new(vocabulary: &Vocabulary<'a>) -> Self {
        Self {
            tokenizer_class: "PreTrainedTokenizerFast",
            model_max_length: MAX_POSITIONS,
            clean_up_tokenization_spaces: false,
            add_prefix_space: false,
            bos_token: None,
            eos_token: vocabulary.text(vocabulary.halt_id()),
            pad_token: PAD_TEXT,
            unk_token: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use qwengpu_circuit::{Builder, Token};

    use super::*;

    fn netlist(texts: &[&str]) -> Netlist {
        let mut b = Builder::new();
        for &text in texts {
            b.token(Token { text: text.to_owned(), inputs: Vec::new(), code: Vec::new() });
        }
        b.finish()
    }

    #[test]
    fn ids_follow_the_bytes_without_holes() {
        let netlist = netlist(&["<|a|>", "<|b|>"]);
        let vocabulary = Vocabulary::new(&netlist, 1).expect("a vocabulary");
        assert_eq!((Vocabulary::PAD_ID, vocabulary.halt_id(), vocabulary.padded_len()), (256, 258, 320));
        let ids: Vec<u32> = TokenizerFile::new(&vocabulary).added_tokens.iter().map(|token| token.id).collect();
        assert_eq!(ids, [256, 257, 258]);
        assert_eq!(vocabulary.text(258), Some("<|b|>"));
        assert_eq!(vocabulary.text(259), None);
    }

    #[test]
    fn texts_of_other_tokens_are_refused() {
        for text in ["", "a", "\u{120}", PAD_TEXT, "<|x|>"] {
            let netlist = netlist(&["<|x|>", text]);
            let error = Vocabulary::new(&netlist, 0).expect_err("a text in use");
            assert_eq!(error, TokenError::Text { number: 1, text: text.to_owned() });
        }
        let netlist = netlist(&["<|x|>"]);
        assert_eq!(Vocabulary::new(&netlist, 1).err(), Some(TokenError::Halt { number: 1, count: 1 }));
    }

    #[test]
    fn characters_of_bytes() {
        let all: BTreeSet<char> = (0..=u8::MAX).map(byte_character).collect();
        assert_eq!(all.len(), 256);
        for (byte, character) in [(b'A', 'A'), (b' ', '\u{120}'), (b'\n', '\u{10a}'), (0xad, '\u{143}'), (0, '\u{100}')]
        {
            assert_eq!(byte_character(byte), character);
        }
    }
}
