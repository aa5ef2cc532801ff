//! A base checkpoint, checked as a whole before anything is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::base_config::{BaseConfig, Mixer};
use super::base_tokenizer::BaseTokenizer;
use super::error::BaseError;
use super::index::{BaseTensor, TensorIndex};
use crate::names;

/// How tensors of a text model begin.
const TEXT_PREFIX: &str = "model.";
/// How tensors of the text part of a multimodal model begin.
const MULTIMODAL_PREFIX: &str = "model.language_model.";
/// Parts that a text model doesn't have.
const DROPPED: [&str; 2] = ["model.visual.", "mtp."];

/// A Qwen3.5 checkpoint, text or multimodal, to be merged with a machine.
#[derive(Debug)]
pub struct Base {
    pub(crate) dir: PathBuf,
    pub(crate) config: BaseConfig,
    pub(crate) index: TensorIndex,
    pub(crate) tokenizer: BaseTokenizer,
    pub(crate) embedding: BaseTensor,
    pub(crate) final_norm: BaseTensor,
    /// `None` when it is the embedding.
    pub(crate) head: Option<BaseTensor>,
    pub(crate) layers: Vec<BaseLayer>,
    /// Tensors that a text model doesn't have, with their shapes.
    pub(crate) dropped: Vec<(String, Vec<usize>)>,
    /// Whether it is the text part of a multimodal model.
    pub(crate) is_multimodal: bool,
}

/// The tensors of a layer, by their names in a layer.
#[derive(Debug)]
pub(crate) struct BaseLayer {
    pub(crate) mixer: Mixer,
    pub(crate) tensors: Vec<(&'static str, BaseTensor)>,
}

impl BaseLayer {
    /// The tensor of a name.
    pub(crate) fn get(&self, part: &str) -> Option<&BaseTensor> {
        self.tensors.iter().find(|(name, _)| *name == part).map(|(_, tensor)| tensor)
    }
}

impl Base {
    /// Opens a checkpoint: reads its configuration, its tokenizer and the headers of its weights, and checks that they
    /// belong together.
    ///
    /// # Errors
    /// [`BaseError`] when something is missing, damaged, of another architecture, or has a machine already.
    pub fn open(dir: &Path) -> Result<Self, BaseError> {
        let manifest = dir.join(names::MANIFEST_FILE);
        if manifest.exists() {
            return Err(BaseError::HasMachine { path: manifest, found: "a manifest of qwengpu".to_owned() });
        }
        let config = BaseConfig::read(dir)?;
        let tokenizer = BaseTokenizer::read(dir, config.vocab_size)?;
        let mut index = TensorIndex::open(dir)?;
        let is_multimodal = index.has_prefix(MULTIMODAL_PREFIX);
        let prefix = if is_multimodal { MULTIMODAL_PREFIX } else { TEXT_PREFIX };
        let mut take = |name: &str, shape: &[usize]| {
            // Names are those of a text model.
            let name = format!("{prefix}{}", name.strip_prefix(TEXT_PREFIX).unwrap_or(name));
            index.take(&name, shape)?.ok_or_else(|| BaseError::MissingTensor {
                dir: dir.to_owned(),
                name,
                shape: shape.to_vec(),
            })
        };
        let embedding = take(names::EMBED_TOKENS, &[config.vocab_size, config.hidden])?;
        let final_norm = take(names::FINAL_NORM, &[config.hidden])?;
        let mut layers = Vec::with_capacity(config.mixers.len());
        for (number, &mixer) in config.mixers.iter().enumerate() {
            let tensors = layer_shapes(&config, mixer).into_iter();
            let tensors = tensors.map(|(part, shape)| Ok((part, take(&names::in_layer(number, part), &shape)?)));
            layers.push(BaseLayer { mixer, tensors: tensors.collect::<Result<_, BaseError>>()? });
        }
        let shape = [config.vocab_size, config.hidden];
        let head = match index.take(names::LM_HEAD, &shape)? {
            Some(head) if config.tied => {
                check_tied(&index, &embedding, &head)?;
                None
            }
            None if !config.tied => {
                let (dir, name) = (dir.to_owned(), names::LM_HEAD.to_owned());
                return Err(BaseError::MissingTensor { dir, name, shape: shape.to_vec() });
            }
            head => head,
        };
        let is_dropped = |name: &str| DROPPED.iter().any(|prefix| name.starts_with(prefix));
        if let Some((name, _, path)) = index.left().find(|(name, ..)| !is_dropped(name)) {
            return Err(BaseError::UnexpectedTensor { path: path.to_owned(), name: name.to_owned() });
        }
        let dropped = index.left().map(|(name, shape, _)| (name.to_owned(), shape.to_vec())).collect();
        let dir = dir.to_owned();
        Ok(Self { dir, config, index, tokenizer, embedding, final_norm, head, layers, dropped, is_multimodal })
    }

    /// Channels of its residual stream.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.config.hidden
    }

    /// The last part of its path, by which manifests call it.
    #[must_use]
    pub fn name(&self) -> String {
        let path = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Names and shapes of a layer's tensors.
fn layer_shapes(config: &BaseConfig, mixer: Mixer) -> Vec<(&'static str, Vec<usize>)> {
    let (hidden, intermediate) = (config.hidden, config.intermediate);
    let (qkv, values, heads) = (config.qkv_rows(), config.value_rows(), config.value_heads);
    let head_dim = config.attention_head_dim;
    let (queries, kv) = (config.attention_heads * head_dim, config.attention_kv_heads * head_dim);
    let mut shapes = vec![
        (names::INPUT_LAYERNORM, vec![hidden]),
        (names::POST_ATTENTION_LAYERNORM, vec![hidden]),
        (names::GATE_PROJ, vec![intermediate, hidden]),
        (names::UP_PROJ, vec![intermediate, hidden]),
        (names::DOWN_PROJ, vec![hidden, intermediate]),
    ];
    shapes.extend(match mixer {
        Mixer::Linear => vec![
            (names::IN_PROJ_QKV, vec![qkv, hidden]),
            (names::IN_PROJ_Z, vec![values, hidden]),
            (names::IN_PROJ_B, vec![heads, hidden]),
            (names::IN_PROJ_A, vec![heads, hidden]),
            (names::CONV1D, vec![qkv, 1, config.conv_kernel]),
            (names::A_LOG, vec![heads]),
            (names::DT_BIAS, vec![heads]),
            (names::LINEAR_NORM, vec![config.value_dim]),
            (names::OUT_PROJ, vec![hidden, values]),
        ],
        Mixer::Full => vec![
            (names::Q_PROJ, vec![2 * queries, hidden]),
            (names::K_PROJ, vec![kv, hidden]),
            (names::V_PROJ, vec![kv, hidden]),
            (names::O_PROJ, vec![hidden, queries]),
            (names::Q_NORM, vec![head_dim]),
            (names::K_NORM, vec![head_dim]),
        ],
    });
    shapes
}

/// A tied model may hold its head, too, if it is the embedding.
fn check_tied(index: &TensorIndex, embedding: &BaseTensor, head: &BaseTensor) -> Result<(), BaseError> {
    const BLOCK: usize = 1 << 20;
    let [rows, cols] = [embedding.shape[0], embedding.cols()];
    let step = (BLOCK / cols).max(1);
    let (mut bytes, mut expected, mut got) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..rows).step_by(step) {
        let count = step.min(rows - first);
        index.read_rows(embedding, first, count, &mut bytes, &mut expected)?;
        index.read_rows(head, first, count, &mut bytes, &mut got)?;
        if expected != got {
            return Err(BaseError::TiedHead { path: index.path(head).to_owned(), name: head.name.clone() });
        }
    }
    Ok(())
}

/// Reads a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path, purpose: &'static str) -> Result<T, BaseError> {
    let bytes = fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => BaseError::Missing { path: path.to_owned(), purpose },
        _ => BaseError::io(path, source),
    })?;
    serde_json::from_slice(&bytes).map_err(|source| BaseError::Json { path: path.to_owned(), source })
}
