//! A transcript: who wrote what, and the launches behind what the GPU wrote.

use std::path::Path;

use qwengpu_isa::{Record, RecordTable};
use serde::{Deserialize, Serialize};

use super::error::GenerateError;
use super::request::Request;
use crate::launch::{LaunchResult, Outcome};

/// What every transcript says of itself.
const FORMAT: &str = "qwengpu-transcript";
/// The version that is written and read.
const VERSION: u32 = 1;

/// Who wrote a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// The user, or the chat template.
    Prompt,
    /// The language model.
    Model,
    /// The driver, from the GPU's memory.
    Gpu,
}

/// A piece of text by one author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Who wrote it.
    pub author: Author,
    /// The text.
    pub text: String,
    /// Its token ids.
    pub tokens: Vec<u32>,
    /// The launch that the text is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchRecord>,
}

/// A request and what the machine heard and spoke for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// What was asked for.
    #[serde(flatten)]
    pub request: Request,
    /// The PTX of a block's kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx: Option<String>,
    /// Whether the machine went on from the launch before.
    pub continues: bool,
    /// Whether the grid ended, by itself and without a fault.
    pub finished: bool,
    /// The numbers of the records that the machine heard, in the order of its tokens.
    pub prompt: Vec<u32>,
    /// Those of the records that it spoke.
    pub records: Vec<u32>,
}

/// A text with its authors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// The id of the machine's first token in the checkpoint.
    pub first_machine_token: u32,
    /// The most records that a launch might speak.
    pub max_launch_tokens: usize,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    first_machine_token: u32,
    max_launch_tokens: usize,
    pieces: Vec<Piece>,
}

impl LaunchRecord {
    pub(crate) fn new(request: Request, ptx: Option<String>, result: &LaunchResult, table: &RecordTable) -> Self {
        let numbers = |records: &[Record]| records.iter().filter_map(|&record| table.get(record)).collect();
        Self {
            request,
            ptx,
            continues: result.continues,
            finished: result.outcome == Outcome::Finished,
            prompt: numbers(&result.prompt),
            records: numbers(&result.records),
        }
    }
}

impl Transcript {
    /// The text of a model's and its GPU's pieces.
    #[must_use]
    pub fn reply(&self) -> String {
        let own = self.pieces.iter().filter(|piece| piece.author != Author::Prompt);
        own.map(|piece| piece.text.as_str()).collect()
    }

    /// The launches.
    pub fn launches(&self) -> impl Iterator<Item = &LaunchRecord> {
        self.pieces.iter().filter_map(|piece| piece.launch.as_ref())
    }

    /// Every token in the order in which a stock engine hears them: what a launch heard and spoke stands in front of
    /// its result.
    #[must_use]
    pub fn token_ids(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for piece in &self.pieces {
            if let Some(launch) = &piece.launch {
                ids.extend(launch.prompt.iter().chain(&launch.records).map(|number| self.first_machine_token + number));
            }
            ids.extend(&piece.tokens);
        }
        ids
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), GenerateError> {
        let document = Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            first_machine_token: self.first_machine_token,
            max_launch_tokens: self.max_launch_tokens,
            pieces: self.pieces.clone(),
        };
        let file = |source| GenerateError::File { path: path.to_owned(), source };
        let text = serde_json::to_string(&document).map_err(|error| file(error.into()))?;
        std::fs::write(path, text + "\n").map_err(file)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read or is no transcript.
    pub fn read(path: &Path) -> Result<Self, GenerateError> {
        let foreign = |reason: String| GenerateError::Foreign { path: path.to_owned(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|source| GenerateError::File { path: path.to_owned(), source })?;
        let document: Document =
            serde_json::from_str(&text).map_err(|error| foreign(format!("this is no transcript: {error}")))?;
        if document.format != FORMAT || document.version != VERSION {
            let found = format!("{} of version {}", document.format, document.version);
            return Err(foreign(format!("expected a {FORMAT} of version {VERSION}, found a {found}")));
        }
        let Document { first_machine_token, max_launch_tokens, pieces, .. } = document;
        Ok(Self { pieces, first_machine_token, max_launch_tokens })
    }
}
