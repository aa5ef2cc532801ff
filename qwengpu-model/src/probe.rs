//! A look at activations while a model runs.

use std::collections::BTreeMap;
use std::fmt;

/// A place in the model whose activations can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// The residual stream: 0 behind the embedding, N behind layer N - 1. Width `hidden_size`.
    Hidden(usize),
    /// The residual stream inside a layer, behind its mixer and before its MLP. Width `hidden_size`.
    Mixed(usize),
    /// Behind the final norm. Width `hidden_size`.
    Normed,
    /// Width `vocab_size`.
    Logits,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden(layer) => write!(f, "hidden.{layer}"),
            Self::Mixed(layer) => write!(f, "mixed.{layer}"),
            Self::Normed => f.write_str("normed"),
            Self::Logits => f.write_str("logits"),
        }
    }
}

/// Receives activations during [`Engine::forward_probed`](crate::Engine::forward_probed).
pub trait Probe {
    /// Takes the activations `[tokens, width]` of one or more successive tokens, row-major.
    ///
    /// A forward of several tokens may come in several calls; those of one site are in the order of tokens.
    fn record(&mut self, site: Site, width: usize, rows: &[f32]);
}

/// A [`Probe`] that keeps everything it sees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorder {
    /// Activations `[tokens, width]` of each site, row-major.
    pub sites: BTreeMap<Site, Vec<f32>>,
}

impl Probe for Recorder {
    fn record(&mut self, site: Site, _width: usize, rows: &[f32]) {
        self.sites.entry(site).or_default().extend_from_slice(rows);
    }
}
