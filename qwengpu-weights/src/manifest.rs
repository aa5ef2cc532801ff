//! `qwengpu.json`: what the checkpoint's channels, states and ids mean.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dtype::Dtype;
use crate::error::ManifestError;
use crate::merge::MergeRecord;
use crate::names::{CONFIG_FILE, MANIFEST_FILE};
use crate::records::{ChannelRecord, GeometryRecord, ReportRecord, StateRecord};

/// The version of manifests that are written and read.
pub const MANIFEST_VERSION: u64 = 1;
/// What the field `format` of every manifest says.
const FORMAT: &str = "qwengpu";

/// What a checkpoint's channels, states and ids mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the crate that wrote the checkpoint.
    pub crate_version: String,
    /// The machine's sizes, as its builder named them.
    pub machine: BTreeMap<String, u64>,
    /// Sizes of the compiled layers.
    pub geometry: GeometryRecord,
    /// How the weights are stored.
    pub dtype: Dtype,
    /// Compiled layers; see [`Manifest::model_layers`] for those of the model.
    pub num_layers: usize,
    /// Rows of both embeddings.
    pub vocab_size: usize,
    /// Id of the machine's token 0.
    pub first_machine_token: u32,
    /// Tokens of the machine; their ids have no holes.
    pub num_machine_tokens: u32,
    /// Id of the token that ends generation.
    pub halt_token_id: u32,
    /// Channels that hold the large constant.
    pub constant_channels: Vec<usize>,
    /// The channel that holds 1, if there is one.
    pub one_channel: Option<usize>,
    /// Where each copy of each state lies.
    pub states: Vec<StateRecord>,
    /// What the machine costs.
    pub report: ReportRecord,
    /// What each channel holds.
    pub channels: Vec<ChannelRecord>,
    /// The base that the machine stands in front of, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeRecord>,
}

/// The file: a manifest that says what it is.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    format_version: u64,
    #[serde(flatten)]
    manifest: &'a Manifest,
}

/// What is read first.
#[derive(Deserialize)]
struct Marker {
    format: Option<String>,
    format_version: Option<u64>,
}

/// What is compared with the model.
#[derive(Deserialize)]
struct ModelSizes {
    hidden_size: u64,
    intermediate_size: u64,
    num_hidden_layers: u64,
    vocab_size: u64,
}

impl Manifest {
    /// Reads the manifest of a checkpoint, and checks that it belongs to the model beside it.
    ///
    /// # Errors
    /// [`ManifestError`] when there is none, when it is damaged or of another version, or when the model has other sizes.
    pub fn read(dir: &Path) -> Result<Self, ManifestError> {
        let path = dir.join(MANIFEST_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let dir = dir.to_owned();
                let has_model = dir.join(CONFIG_FILE).exists();
                return Err(if has_model { ManifestError::NoMachine { dir } } else { ManifestError::Missing { dir } });
            }
            Err(source) => return Err(ManifestError::Io { path, source }),
        };
        let marker: Marker = parse(&path, &text)?;
        match (marker.format.as_deref(), marker.format_version) {
            (Some(FORMAT), Some(MANIFEST_VERSION)) => {}
            (Some(FORMAT), Some(got)) => return Err(ManifestError::Version { path, got, expected: MANIFEST_VERSION }),
            _ => return Err(ManifestError::Format { path }),
        }
        let manifest: Self = parse(&path, &text)?;
        manifest.check_model(dir)?;
        Ok(manifest)
    }

    fn check_model(&self, dir: &Path) -> Result<(), ManifestError> {
        let path = dir.join(CONFIG_FILE);
        let text = fs::read_to_string(&path).map_err(|source| ManifestError::Io { path: path.clone(), source })?;
        let sizes: ModelSizes = parse(&path, &text)?;
        let compared = [
            ("hidden_size", sizes.hidden_size, self.geometry.hidden),
            ("intermediate_size", sizes.intermediate_size, self.geometry.intermediate),
            ("num_hidden_layers", sizes.num_hidden_layers, self.model_layers()),
            ("vocab_size", sizes.vocab_size, self.vocab_size),
        ];
        match compared.into_iter().find(|&(_, model, manifest)| model != manifest as u64) {
            Some((what, model, manifest)) => {
                Err(ManifestError::Mismatch { dir: dir.to_owned(), what, model, manifest: manifest as u64 })
            }
            None => Ok(()),
        }
    }

    /// Writes the file's text.
    pub(crate) fn write(&self, writer: impl io::Write) -> io::Result<()> {
        let document = Document { format: FORMAT, format_version: MANIFEST_VERSION, manifest: self };
        Ok(serde_json::to_writer(writer, &document)?)
    }

    /// Layers of the model: one more than the machine's where there is no base.
    #[must_use]
    pub fn model_layers(&self) -> usize {
        self.merge.as_ref().map_or(self.num_layers + 1, |merge| merge.num_layers)
    }

    /// The id of a token of the machine.
    #[must_use]
    pub fn token_id(&self, number: usize) -> Option<u32> {
        let number = u32::try_from(number).ok().filter(|&number| number < self.num_machine_tokens)?;
        self.first_machine_token.checked_add(number)
    }

    /// The number of the machine's token with that id; `None` for ids of text.
    #[must_use]
    pub fn token_number(&self, id: u32) -> Option<usize> {
        let number = id.checked_sub(self.first_machine_token)?;
        (number < self.num_machine_tokens).then_some(number as usize)
    }

    /// The copy of a state that a read port uses.
    #[must_use]
    pub fn state(&self, name: &str, port: usize) -> Option<&StateRecord> {
        self.states.iter().find(|state| state.name == name && state.port == port)
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ManifestError> {
    serde_json::from_str(text).map_err(|source| {
        let path = path.to_owned();
        if source.is_eof() { ManifestError::Truncated { path, source } } else { ManifestError::Syntax { path, source } }
    })
}
