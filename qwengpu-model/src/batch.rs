//! What a batch can do, whichever engine computes it: independent streams on one model.

use crate::cache::Cache;
use crate::config::Config;
use crate::error::Error;

/// Independent streams on one model, each with a memory of its own; [`Engine::batch`](crate::Engine::batch) makes one.
///
/// What a stream answers depends on its own tokens alone. Streams are numbered from 0.
/// An error leaves the memories as they were when it is one of the arguments'; after an error of the tensor library,
/// reset the streams that were to hear something.
///
/// ```no_run
/// use qwengpu_model::{Engine, Precision, SparseEngine};
///
/// let mut engine = SparseEngine::from_dir("checkpoint".as_ref(), Precision::F32)?;
/// let mut batch = engine.batch(2);
/// let first = batch.prefill(0, &[1, 2, 3])?;
/// let second = batch.prefill(1, &[4, 5])?;
/// let next = batch.argmax(&[Some(first), Some(second)])?;
/// assert_eq!(next.len(), 2);
/// # Ok::<(), qwengpu_model::Error>(())
/// ```
pub trait Batch {
    /// The model's dimensions and settings.
    fn config(&self) -> &Config;

    /// Number of streams.
    fn len(&self) -> usize;

    /// Whether there is no stream.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every stream with a token consumes it; the others stay as they are. Returns for each stream with a token the id
    /// of its largest logit, the first of equals.
    ///
    /// # Errors
    /// If there are not as many entries as streams, no stream has a token, or one is outside the vocabulary.
    fn argmax(&mut self, tokens: &[Option<u32>]) -> Result<Vec<Option<u32>>, Error>;

    /// One stream consumes tokens, as an engine would; returns the id of the largest logit after the last one.
    ///
    /// # Errors
    /// If there is no such stream, no token, or one is outside the vocabulary.
    fn prefill(&mut self, stream: usize, tokens: &[u32]) -> Result<u32, Error>;

    /// A stream's recurrent state of a value head, `[key head dim, value head dim]`, row-major. `layer` counts all layers.
    ///
    /// # Errors
    /// If there is no such stream, the layer isn't `linear_attention`, or there is no such head.
    fn recurrent_state(&self, stream: usize, layer: usize, head: usize) -> Result<&[f32], Error>;

    /// A copy of everything that a stream remembers.
    ///
    /// # Errors
    /// If there is no such stream.
    fn save(&mut self, stream: usize) -> Result<Cache, Error>;

    /// Lets a stream go on from a cache, of this model in a batch or an engine.
    ///
    /// # Errors
    /// If there is no such stream, or the cache doesn't fit the model.
    fn restore(&mut self, stream: usize, cache: &Cache) -> Result<(), Error>;

    /// Lets a stream forget everything.
    ///
    /// # Errors
    /// If there is no such stream.
    fn reset(&mut self, stream: usize) -> Result<(), Error>;
}
