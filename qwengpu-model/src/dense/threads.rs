//! The threads that an engine computes on.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

/// Some of its own, or rayon's; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Threads(Option<Arc<ThreadPool>>);

impl Threads {
    pub(crate) fn new(threads: NonZeroUsize) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new().num_threads(threads.get()).build();
        let pool = pool.map_err(|source| Error::Threads { threads: threads.get(), source })?;
        Ok(Self(Some(Arc::new(pool))))
    }

    /// Does the work there, its parallel parts included.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}
