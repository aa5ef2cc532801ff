//! A base's tokenizer, and the same with the machine's tokens added.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use qwengpu_circuit::Netlist;
use serde_json::{Map, Value, json};

use super::base::read_json;
use super::error::BaseError;
use crate::error::TokenError;
use crate::names::{TOKENIZER_CONFIG_FILE, TOKENIZER_FILE};

/// How the texts of tokens begin that a merge has added.
const ADDED_PREFIX: &str = "<|qg:";
/// The rows of both embeddings are a multiple of this, which other engines like.
const ROW_MULTIPLE: usize = 64;
/// Fields of a tokenizer.
const ADDED_TOKENS: &str = "added_tokens";
const ADDED_TOKENS_DECODER: &str = "added_tokens_decoder";

/// The tokenizer of a base: ids without a hole.
#[derive(Debug)]
pub(crate) struct BaseTokenizer {
    path: PathBuf,
    file: Map<String, Value>,
    /// `tokenizer_config.json`, if there is one.
    config: Option<Map<String, Value>>,
    texts: BTreeSet<String>,
    /// Ids in use: from 0 to this less one.
    len: u32,
}

/// The tokens of a merged model, by id: the base's, unused ones up to the end of its embedding, the machine's.
#[derive(Clone, Debug)]
pub(crate) struct MergedVocabulary<'a> {
    netlist: &'a Netlist,
    /// Ids of the base's tokenizer.
    base_tokens: u32,
    /// Rows of the base's embedding, and id of the machine's first token.
    pub(crate) first_machine_token: u32,
    pub(crate) num_machine_tokens: u32,
    pub(crate) halt_id: u32,
}

impl BaseTokenizer {
    /// Reads `tokenizer.json`, and `tokenizer_config.json` if it is there.
    pub(crate) fn read(dir: &Path, vocab_size: usize) -> Result<Self, BaseError> {
        let path = dir.join(TOKENIZER_FILE);
        let file: Map<String, Value> = read_json(&path, "the machine's tokens are added to it")?;
        let config_path = dir.join(TOKENIZER_CONFIG_FILE);
        let config = config_path.exists().then(|| read_json(&config_path, "it has settings of the tokenizer"));
        let config = config.transpose()?;
        let wrong = |reason: &str| BaseError::Tokenizer { path: path.clone(), reason: reason.to_owned() };
        let vocabulary = file.get("model").and_then(|model| model.get("vocab")).and_then(Value::as_object);
        let vocabulary = vocabulary.ok_or_else(|| wrong("model.vocab is no table of tokens"))?;
        let added = match file.get(ADDED_TOKENS) {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(added)) => added,
            Some(_) => return Err(wrong("added_tokens is no list")),
        };
        let own = |text: &str| {
            let found = || BaseError::HasMachine { path: path.clone(), found: format!("token {text}") };
            if text.starts_with(ADDED_PREFIX) { Err(found()) } else { Ok(()) }
        };
        let id_of = |id: Option<&Value>| id.and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        let mut ids = BTreeMap::new();
        for (text, id) in vocabulary {
            own(text)?;
            let id = id_of(Some(id)).ok_or_else(|| wrong("a token of the vocabulary has no id"))?;
            if ids.insert(id, text).is_some() {
                return Err(wrong("two tokens of the vocabulary have one id"));
            }
        }
        if let Some((id, _)) = (0..).zip(ids.keys()).find(|(expected, id)| expected != *id) {
            return Err(BaseError::TokenHole { path, id });
        }
        let mut texts: BTreeSet<String> = vocabulary.keys().cloned().collect();
        // The library numbers added tokens on from the vocabulary's end, whatever the file says.
        let mut len = u32::try_from(ids.len()).map_err(|_| wrong("too many tokens"))?;
        for token in added {
            let text =
                token.get("content").and_then(Value::as_str).ok_or_else(|| wrong("an added token has no text"))?;
            own(text)?;
            let got = id_of(token.get("id")).ok_or_else(|| wrong("an added token has no id"))?;
            if let Some(known) = vocabulary.get(text) {
                if id_of(Some(known)) != Some(got) {
                    return Err(wrong("an added token has another id in the vocabulary"));
                }
            } else if texts.insert(text.to_owned()) {
                if got != len {
                    return Err(BaseError::AddedId { path, text: text.to_owned(), got, expected: len });
                }
                len += 1;
            }
        }
        if len as usize > vocab_size {
            return Err(BaseError::TokenCount { path, got: len as usize, vocab_size });
        }
        Ok(Self { path, file, config, texts, len })
    }

    /// The vocabulary with a machine's tokens.
    ///
    /// # Errors
    /// [`BaseError::HasMachine`] if the base has a token of that text, as [`TokenError`] if the machine's contradict
    /// each other.
    pub(crate) fn with_machine<'a>(
        &self,
        netlist: &'a Netlist,
        halt: usize,
        vocab_size: usize,
    ) -> Result<MergedVocabulary<'a>, super::error::MergeError> {
        let count = netlist.tokens().len();
        if halt >= count {
            return Err(TokenError::Halt { number: halt, count }.into());
        }
        let mut seen = BTreeSet::new();
        for (number, token) in netlist.tokens().iter().enumerate() {
            if self.texts.contains(&token.text) {
                let found = format!("token {}", token.text);
                return Err(BaseError::HasMachine { path: self.path.clone(), found }.into());
            }
            if token.text.is_empty() || token.text.starts_with(ADDED_PREFIX) || !seen.insert(&token.text) {
                return Err(TokenError::Text { number, text: token.text.clone() }.into());
            }
        }
        let id = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(MergedVocabulary {
            netlist,
            base_tokens: self.len,
            first_machine_token: id(vocab_size),
            num_machine_tokens: id(count),
            halt_id: id(vocab_size + halt),
        })
    }

    /// `tokenizer.json` with all tokens.
    pub(crate) fn merged_file(&self, vocabulary: &MergedVocabulary<'_>) -> Map<String, Value> {
        let mut file = self.file.clone();
        let mut added = file.get(ADDED_TOKENS).and_then(Value::as_array).cloned().unwrap_or_default();
        added.extend(vocabulary.added().map(|(id, content)| {
            let mut token = added_token(content);
            token.insert("id".to_owned(), id.into());
            Value::Object(token)
        }));
        file.insert(ADDED_TOKENS.to_owned(), Value::Array(added));
        file
    }

    /// `tokenizer_config.json` with all tokens, if the base has one; where it lists added tokens, it lists all.
    pub(crate) fn merged_config(&self, vocabulary: &MergedVocabulary<'_>) -> Option<Map<String, Value>> {
        let mut config = self.config.clone()?;
        if let Some(Value::Object(decoder)) = config.get_mut(ADDED_TOKENS_DECODER) {
            decoder.extend(vocabulary.added().map(|(id, content)| (id.to_string(), added_token(content).into())));
        }
        Some(config)
    }
}

impl MergedVocabulary<'_> {
    /// Rows of both embeddings.
    pub(crate) fn rows(&self) -> usize {
        (self.first_machine_token as usize + self.num_machine_tokens as usize).next_multiple_of(ROW_MULTIPLE)
    }

    /// Tokens between the base's and the machine's.
    pub(crate) fn unused(&self) -> u32 {
        self.first_machine_token - self.base_tokens
    }

    /// Ids and texts that the base doesn't have, in the order of ids.
    fn added(&self) -> impl Iterator<Item = (u32, String)> {
        let unused = (0..self.unused()).map(|number| format!("{ADDED_PREFIX}unused:{number:03}|>"));
        let machine = self.netlist.tokens().iter().map(|token| token.text.clone());
        (self.base_tokens..).zip(unused.chain(machine))
    }
}

/// A special token without its id.
fn added_token(content: String) -> Map<String, Value> {
    let mut token = Map::new();
    token.insert("content".to_owned(), json!(content));
    for flag in ["single_word", "lstrip", "rstrip", "normalized"] {
        token.insert(flag.to_owned(), json!(false));
    }
    token.insert("special".to_owned(), json!(true));
    token
}
