//! Budgets for anything whose size a file decides.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds that keep a hostile or damaged file from taking the machine with it.
///
/// All sizes are in bytes. The defaults fit a workstation; lower them for a service.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Metadata read for one object of a file (its header, a listing, the index of an array), all structures together,
    /// each counted every time it is parsed.
    pub metadata: u64,
    /// One document of metadata in a store, as text: what is longer is not read to its end. In memory it may take 32 times
    /// as many bytes.
    pub document: u64,
    /// One array or buffer given to the caller.
    pub output: u64,
    /// One decoded chunk.
    pub chunk: u64,
    /// Encoded bytes of one read that are in memory at a time.
    pub in_flight: u64,
    /// The description of one read: its chunks and points, not their elements.
    pub plan: u64,
    /// Nesting of groups, datatypes, heaps, index levels, virtual sources.
    pub depth: u32,
    /// Links followed to resolve one path.
    pub link_hops: u32,
    /// Whether links, external raw files and virtual sources may leave the folder of the file that names them.
    pub allow_outside: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            metadata: 1 << 30,
            document: 32 << 20,
            output: 64 << 30,
            chunk: 4 << 30,
            in_flight: 256 << 20,
            plan: 256 << 20,
            depth: 128,
            link_hops: 64,
            allow_outside: false,
        }
    }
}

impl Limits {
    /// Sets the largest array given to the caller, in bytes.
    #[must_use]
    pub fn with_output(mut self, bytes: u64) -> Self {
        self.output = bytes;
        self
    }

    /// Sets the metadata budget of one object, in bytes. Documents have to fit into it too.
    #[must_use]
    pub fn with_metadata(mut self, bytes: u64) -> Self {
        self.metadata = bytes;
        self.document = self.document.min(bytes / 32);
        self
    }

    /// Sets the largest decoded chunk, in bytes.
    #[must_use]
    pub fn with_chunk(mut self, bytes: u64) -> Self {
        self.chunk = bytes;
        self
    }

    /// Sets the longest document of metadata, in bytes.
    #[must_use]
    pub fn with_document(mut self, bytes: u64) -> Self {
        self.document = bytes;
        self
    }

    /// Allows links and external files outside the folder of the file that names them.
    #[must_use]
    pub fn with_allow_outside(mut self, allow: bool) -> Self {
        self.allow_outside = allow;
        self
    }

    /// Fails if nesting is deeper than allowed.
    pub fn check_depth(&self, what: &str, depth: u32) -> Result<()> {
        if depth > self.depth {
            return Err(Error::limit(format!("nesting of {what}"), depth as u128, self.depth as u128));
        }
        Ok(())
    }
}

/// A budget that is used up: shared by all parsers of one open file.
#[derive(Debug)]
pub struct Budget {
    what: &'static str,
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes for `what`.
    pub fn new(what: &'static str, limit: u64) -> Self {
        Budget { what, limit, used: AtomicU64::new(0) }
    }

    /// Takes `bytes`, or fails if they are not left.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        match before.checked_add(bytes) {
            Some(total) if total <= self.limit => Ok(()),
            _ => {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
                Err(Error::limit(self.what, before as u128 + bytes as u128, self.limit as u128))
            }
        }
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Gives back `bytes` that were taken and are no longer held.
    pub fn refund(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
