//! A session: a language model and its GPU, out of one merged checkpoint.
//!
//! The language model is the base's layers and the GPU the compiled ones, each in an engine of its own: language tokens
//! do not pass the compiled layers, for which they are nothing, and records do not pass the base's. So a launch leaves
//! the language model's caches as they were, and text leaves the machine's memory as it was.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use qwengpu_isa::RecordTable;
use qwengpu_model::{Cache, DenseEngine, Engine, Precision};
use qwengpu_weights::Manifest;
use serde_json::Value;

use super::error::GenerateError;
use super::perform::LastBlock;
use super::sampling::Sampling;
use super::template::{ChatTemplate, Message};
use super::tokens::Vocabulary;
use crate::engine::EngineKind;
use crate::gpu::{Gpu, GpuOptions, SavedMachine};
use crate::weights::{language_part, spec_of};

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// What runs launches: an engine of the checkpoint's weights, or the interpreter for a comparison.
    pub engine: EngineKind,
    /// Where weights and activations are rounded.
    pub precision: Precision,
    /// Threads of the language model, and of launches in the dense engine; `None` takes as many as there are processors.
    pub threads: Option<NonZeroUsize>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { engine: EngineKind::Sparse, precision: Precision::F32, threads: None }
    }
}

/// A language model with a GPU.
#[derive(Debug)]
pub struct Session {
    pub(crate) language: DenseEngine,
    pub(crate) gpu: Gpu,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) table: RecordTable,
    pub(crate) first_machine_token: u32,
    /// Ids that end a reply.
    pub(crate) end_ids: Vec<u32>,
    /// Tokens that the language model has heard.
    pub(crate) context: Vec<u32>,
    /// Their text, special tokens included.
    pub(crate) text: String,
    /// Logits behind them; empty at the beginning.
    pub(crate) logits: Vec<f32>,
    pub(crate) last: Option<LastBlock>,
    template: Option<ChatTemplate>,
    sampling: Sampling,
    directory: PathBuf,
}

/// Everything that a session remembers: clone it to fork a conversation.
#[derive(Debug, Clone)]
pub struct SavedSession {
    pub(crate) language: Cache,
    pub(crate) context: Vec<u32>,
    pub(crate) text: String,
    pub(crate) logits: Vec<f32>,
    last: Option<LastBlock>,
    machine: SavedMachine,
}

impl Session {
    /// Opens a merged checkpoint.
    ///
    /// # Errors
    /// If it is none, or is damaged.
    pub fn open(directory: &Path, options: SessionOptions) -> Result<Self, GenerateError> {
        let manifest = Manifest::read(directory)?;
        let Some(merge) = &manifest.merge else {
            return Err(GenerateError::NoLanguage { path: directory.to_owned() });
        };
        let spec = spec_of(directory, &manifest)?;
        let vocabulary = Vocabulary::open(directory, merge.base.vocab_size)?;
        let tokenizer_config = settings(directory, "tokenizer_config.json")?.unwrap_or_default();
        let file = template_file(directory)?;
        let generation = settings(directory, "generation_config.json")?.unwrap_or_default();
        let sampling = Sampling::from_json(&generation.to_string()).map_err(|error| GenerateError::Settings {
            path: directory.join("generation_config.json"),
            reason: error.to_string(),
        })?;
        let mut language = DenseEngine::from_part(directory, &language_part(merge), options.precision)?;
        if let Some(threads) = options.threads {
            language.set_threads(threads)?;
        }
        let mut end_ids = language.config().eos_token_ids.clone();
        end_ids.retain(|&id| (id as usize) < merge.base.vocab_size);
        let checkpoint = options.engine.is_model().then(|| directory.to_owned());
        let gpu = GpuOptions {
            spec,
            engine: options.engine,
            precision: options.precision,
            checkpoint,
            threads: options.threads,
        };
        Ok(Self {
            language,
            gpu: Gpu::with_options(&gpu)?,
            vocabulary,
            table: RecordTable::new(&spec).map_err(|error| GenerateError::Options(error.to_string()))?,
            first_machine_token: manifest.first_machine_token,
            end_ids,
            context: Vec::new(),
            text: String::new(),
            logits: Vec::new(),
            last: None,
            template: ChatTemplate::new(&tokenizer_config, file),
            sampling,
            directory: directory.to_owned(),
        })
    }

    /// The directory of the checkpoint.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How the checkpoint wants to be sampled.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The GPU.
    pub fn gpu(&mut self) -> &mut Gpu {
        &mut self.gpu
    }

    /// Tokens that the language model has heard.
    #[must_use]
    pub fn context(&self) -> &[u32] {
        &self.context
    }

    /// Their text, special tokens included: a prompt that begins with it goes on from here.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Logits of the base's tokens behind the context; none in front of the first token.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// A conversation as the text that the model goes on from, by the checkpoint's template.
    ///
    /// # Errors
    /// If there is no template, or it refuses the messages.
    pub fn chat_prompt(&self, messages: &[Message]) -> Result<String, GenerateError> {
        let template = self.template.as_ref();
        let template = template.ok_or_else(|| GenerateError::NoTemplate { path: self.directory.clone() })?;
        Ok(template.render(messages)?)
    }

    /// Lets the language model hear tokens and notes their text.
    pub(crate) fn hear(&mut self, tokens: &[u32], text: &str) -> Result<(), GenerateError> {
        if !tokens.is_empty() {
            self.logits = self.language.forward(tokens)?.to_vec();
            self.context.extend(tokens);
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Brings the language model to the end of a text; what it has heard of it is not heard again. Returns the tokens
    /// that it heard now.
    pub(crate) fn move_to(&mut self, text: &str) -> Result<Vec<u32>, GenerateError> {
        if self.text.is_empty() || !text.starts_with(&self.text) {
            self.language.reset();
            self.context.clear();
            self.text.clear();
        }
        let new = text.get(self.text.len()..).unwrap_or_default().to_owned();
        let tokens = self.vocabulary.encode(&new)?;
        if self.context.is_empty() && tokens.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        self.hear(&tokens, &new)?;
        Ok(tokens)
    }

    /// Forgets everything: the text and the machine.
    pub fn reset(&mut self) {
        self.language.reset();
        self.context.clear();
        self.text.clear();
        self.logits.clear();
        self.last = None;
        self.gpu.power_off();
    }

    /// A copy of everything that the session remembers.
    #[must_use]
    pub fn save(&self) -> SavedSession {
        SavedSession {
            language: self.language.save(),
            context: self.context.clone(),
            text: self.text.clone(),
            logits: self.logits.clone(),
            last: self.last.clone(),
            machine: self.gpu.save(),
        }
    }

    /// Goes on from what was saved, in this or another session of the same checkpoint.
    ///
    /// # Errors
    /// If it does not fit the checkpoint; the session is as before then.
    pub fn restore(&mut self, saved: &SavedSession) -> Result<(), GenerateError> {
        self.language.restore(&saved.language)?;
        self.gpu.restore(&saved.machine)?;
        self.context.clone_from(&saved.context);
        self.text.clone_from(&saved.text);
        self.logits.clone_from(&saved.logits);
        self.last.clone_from(&saved.last);
        Ok(())
    }
}

/// A template in a file of its own: multimodal checkpoints have one in JSON.
fn template_file(directory: &Path) -> Result<Option<String>, GenerateError> {
    let path = directory.join("chat_template.jinja");
    if path.exists() {
        let text = std::fs::read_to_string(&path);
        return text.map(Some).map_err(|source| GenerateError::File { path, source });
    }
    let document = settings(directory, "chat_template.json")?.unwrap_or_default();
    Ok(document["chat_template"].as_str().map(str::to_owned))
}

/// A JSON file of a checkpoint, if it is there.
fn settings(directory: &Path, name: &str) -> Result<Option<Value>, GenerateError> {
    let path = directory.join(name);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).map_err(|source| GenerateError::File { path: path.clone(), source })?;
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|error| GenerateError::Settings { path, reason: error.to_string() })
}
