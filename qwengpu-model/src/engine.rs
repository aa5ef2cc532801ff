//! What every engine can do, and greedy decoding on top of it.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use crate::batch::Batch;
use crate::cache::Cache;
use crate::config::Config;
use crate::error::Error;
use crate::probe::Probe;

/// Where results are rounded; sums are f32 either way, and recurrent states are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Nowhere.
    F32,
    /// To bf16 at the points where a bf16 model rounds; the weights, too.
    Bf16,
}

impl Precision {
    /// The value as this precision keeps it.
    #[inline]
    #[must_use]
    pub fn round(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::Bf16 => half::bf16::from_f32(value).to_f32(),
        }
    }
}

/// A model that consumes tokens and remembers them.
///
/// An error leaves the memory as it was when it is one of the arguments'; after an error of the tensor library, reset.
pub trait Engine {
    /// The model's dimensions and settings.
    fn config(&self) -> &Config;

    /// Number of tokens consumed since the start or the last reset.
    fn position(&self) -> usize;

    /// Consumes the tokens; returns the logits `[vocab]` after the last one.
    ///
    /// # Errors
    /// If there is no token, or one is outside the vocabulary.
    fn forward(&mut self, tokens: &[u32]) -> Result<&[f32], Error>;

    /// Consumes the tokens; returns the id of the largest logit after the last one, the first of equals.
    ///
    /// The same as [`forward`](Self::forward) and [`argmax`], but an engine may be faster when nobody sees the logits.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn argmax(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        self.forward(tokens).map(argmax)
    }

    /// Consumes the tokens; returns the id of the largest logit after each of them, the first of equals.
    ///
    /// # Errors
    /// If a token is outside the vocabulary. No tokens are no error here.
    fn argmax_all(&mut self, tokens: &[u32]) -> Result<Vec<u32>, Error>;

    /// Consumes the tokens and shows their activations to the probe, logits of every token included.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn forward_probed(&mut self, tokens: &[u32], probe: &mut dyn Probe) -> Result<(), Error>;

    /// The recurrent state of a value head, `[key head dim, value head dim]`, row-major. `layer` counts all layers.
    ///
    /// # Errors
    /// If the layer isn't `linear_attention` or there is no such head.
    fn recurrent_state(&self, layer: usize, head: usize) -> Result<&[f32], Error>;

    /// A copy of everything remembered.
    fn save(&self) -> Cache;

    /// Goes on from a saved cache, its own or that of another engine for the same model.
    ///
    /// # Errors
    /// If the cache doesn't fit the model; the engine is as before then.
    fn restore(&mut self, cache: &Cache) -> Result<(), Error>;

    /// Forgets everything.
    fn reset(&mut self);

    /// Some empty streams on its weights. The engine is reset: what it remembered has to be saved before.
    ///
    /// Each stream takes as much memory as a [`Cache`].
    fn batch(&mut self, streams: usize) -> Box<dyn Batch + '_>;

    /// Computes on this many threads from now on, without a change of any result; an engine that has but one ignores it.
    ///
    /// # Errors
    /// If the threads cannot be started.
    fn set_threads(&mut self, _threads: NonZeroUsize) -> Result<(), Error> {
        Ok(())
    }
}

/// Index of the largest value, the first of equals. NaN is never the largest; 0 for no values.
#[must_use]
pub fn argmax(values: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, &value) in (0..).zip(values) {
        if value > best.1 {
            best = (id, value);
        }
    }
    best.0
}

/// When a generation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateOptions {
    /// Most tokens to generate.
    pub max_new_tokens: usize,
    /// A generation ends with the first of these ids.
    pub stop_ids: Vec<u32>,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// With this id, which is among the stop ids.
    StopToken(u32),
    /// After the largest number of tokens.
    Length,
    /// The callback said so.
    Callback,
}

/// What a generation gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The generated ids, a stop token included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub stop: StopReason,
}

/// Consumes the prompt, then decodes greedily; `on_token` sees each generated id.
///
/// The last generated token is not consumed, so that a further call may start with it.
///
/// # Errors
/// As [`Engine::forward`]; an empty prompt is an error.
pub fn generate(
    engine: &mut dyn Engine,
    prompt: &[u32],
    options: &GenerateOptions,
    on_token: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<Generation, Error> {
    let mut tokens = Vec::new();
    if options.max_new_tokens == 0 {
        engine.forward(prompt)?;
        return Ok(Generation { tokens, stop: StopReason::Length });
    }
    let mut next = engine.argmax(prompt)?;
    loop {
        tokens.push(next);
        let said = on_token(next);
        let stop = if options.stop_ids.contains(&next) {
            StopReason::StopToken(next)
        } else if said.is_break() {
            StopReason::Callback
        } else if tokens.len() >= options.max_new_tokens {
            StopReason::Length
        } else {
            next = engine.argmax(&[next])?;
            continue;
        };
        return Ok(Generation { tokens, stop });
    }
}

/// Refuses ids without embedding.
pub(crate) fn check_tokens(tokens: &[u32], vocab_size: usize) -> Result<(), Error> {
    match tokens.iter().enumerate().find(|&(_, &token)| token as usize >= vocab_size) {
        Some((index, &token)) => Err(Error::TokenOutOfRange { token, index, vocab_size }),
        None => Ok(()),
    }
}

/// The tokens that the streams of a batch hear, `None` for a stream that hears nothing.
///
/// Refuses another number of entries than streams, no token at all, and ids without embedding.
pub(crate) fn check_batch(tokens: &[Option<u32>], streams: usize, vocab_size: usize) -> Result<Vec<u32>, Error> {
    if tokens.len() != streams {
        return Err(Error::BatchTokens { expected: streams, got: tokens.len() });
    }
    let heard: Vec<u32> = tokens.iter().copied().flatten().collect();
    if heard.is_empty() {
        return Err(Error::NoTokens);
    }
    check_tokens(&heard, vocab_size)?;
    Ok(heard)
}
