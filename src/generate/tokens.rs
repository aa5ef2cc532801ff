//! Text to the base's token ids and back; the machine's tokens are no text here.

use std::path::Path;

use serde_json::Value;
use tokenizers::Tokenizer;

use super::error::GenerateError;

/// The tokenizer of a merged checkpoint's base.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    tokenizer: Tokenizer,
    /// The same, for text in which special tokens are nothing special.
    plain: Tokenizer,
}

impl Vocabulary {
    /// Reads `tokenizer.json` and leaves out every id from `end` on, so that no text becomes a token of the machine.
    pub(crate) fn open(directory: &Path, end: usize) -> Result<Self, GenerateError> {
        let path = directory.join("tokenizer.json");
        let bad = |reason: String| GenerateError::Tokenizer { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        let mut document: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if let Some(added) = document["added_tokens"].as_array_mut() {
            added.retain(|token| token["id"].as_u64().is_some_and(|id| id < end as u64));
        }
        let bytes = serde_json::to_vec(&document).map_err(|error| bad(error.to_string()))?;
        let tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| bad(error.to_string()))?;
        let mut plain = tokenizer.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self { tokenizer, plain })
    }

    /// Ids of a text whose special tokens count as such: a prompt.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, GenerateError> {
        encode(&self.tokenizer, text)
    }

    /// Ids of a text that is only text.
    pub(crate) fn encode_plain(&self, text: &str) -> Result<Vec<u32>, GenerateError> {
        encode(&self.plain, text)
    }

    /// The text of one id, a special token's included.
    pub(crate) fn special(&self, id: u32) -> String {
        self.tokenizer.id_to_token(id).unwrap_or_default()
    }

    /// The text of ids, without special tokens. Bytes that are no whole character yet become replacement characters.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, GenerateError> {
        self.tokenizer.decode(ids, true).map_err(|error| GenerateError::Text(error.to_string()))
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, GenerateError> {
    let encoding = tokenizer.encode_fast(text, false).map_err(|error| GenerateError::Text(error.to_string()))?;
    Ok(encoding.get_ids().to_vec())
}
