//! How files are opened and arrays are read.

use crate::codec::Registry;
use crate::exec::{Cancel, ChunkCache, MissingChunks};
use crate::limits::Limits;
use crate::source::write::Recovery;

/// How a file is opened; holds for everything read from it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Budgets for everything whose size the file decides.
    pub limits: Limits,
    /// The codecs that arrays may use.
    pub registry: Registry,
    /// Threads of one read at most; by default `HYPERSLAB_NUM_THREADS` or as many as the process may use.
    pub threads: Option<usize>,
    /// How files and stores that are far away are read.
    #[cfg(feature = "remote")]
    pub remote: crate::source::RemoteOptions,
    /// What reads give for chunks that were never written.
    pub missing: MissingChunks,
    /// Decoded chunks that are kept from read to read.
    pub cache: ChunkCache,
    /// What is done with a local file of which an edit was interrupted.
    pub recovery: Recovery,
    /// Stops reads, and transactions that are not being committed yet, from another thread.
    pub cancel: Option<Cancel>,
}

impl OpenOptions {
    /// The defaults.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    /// Sets what reads give for chunks that were never written.
    #[must_use]
    pub fn with_missing(mut self, missing: MissingChunks) -> Self {
        self.missing = missing;
        self
    }

    /// Sets what is done with a local file of which an edit was interrupted.
    #[must_use]
    pub fn with_recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Gives everything that is read and written a token that stops it.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets where decoded chunks are kept from read to read, and how many: `ChunkCache::new(0)` keeps none.
    #[must_use]
    pub fn with_cache(mut self, cache: ChunkCache) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the budgets.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the codecs that arrays may use.
    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets the number of threads of one read; 1 reads in the calling thread only.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// How one read is done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Fail where a value changes in conversion, instead of clamping or rounding it.
    pub exact: bool,
    /// Stops the read from another thread.
    pub cancel: Option<Cancel>,
    /// Threads at most, instead of the number given at opening.
    pub threads: Option<usize>,
    /// What chunks are that were never written, instead of what was said at opening.
    pub missing: Option<MissingChunks>,
}

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        ReadOptions::default()
    }

    /// Fails where a value changes in conversion.
    #[must_use]
    pub fn with_exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Sets what chunks are that were never written.
    #[must_use]
    pub fn with_missing(mut self, missing: MissingChunks) -> Self {
        self.missing = Some(missing);
        self
    }

    /// Gives the read a token that stops it.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}
