//! Where bytes come from. A source knows nothing of types, codecs or formats.
//!
//! [`Source`] is an immutable run of bytes, read by range; [`Store`] maps names to such runs.

mod cache;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod file;
mod growing;
mod memory;
mod merge;
mod near;
mod neighbour;
#[cfg(feature = "remote")]
pub mod remote;
pub mod store;
#[cfg(test)]
mod tests;
mod window;
mod wrapper;
pub mod write;

pub use cache::CachedSource;
pub use file::FileSource;
pub use growing::GrowingSource;
pub use memory::MemorySource;
use memory::past_end;
pub use merge::{Merged, merge};
pub use near::NearSource;
pub use neighbour::{Neighbour, Neighbours};
#[cfg(feature = "remote")]
pub use remote::{
    CloudOptions, CloudPlace, CloudSource, CloudStore, HttpSource, HttpStore, Keys, RemoteOptions,
};
pub use store::{DirectoryStore, MemoryStore, Store, ZipStore, ZipWriter};
pub use window::Window;
pub use wrapper::{Counting, Crashing, Failing, Throttled, Visited};
pub use write::{SyncPolicy, WriteFile, WriteOptions};

use crate::error::Result;
use bytes::Bytes;
use std::fmt;

/// `length` bytes from `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl ByteRange {
    /// `length` bytes from `offset`.
    pub fn new(offset: u64, length: u64) -> Self {
        ByteRange { offset, length }
    }

    /// The byte after the last one; `None` beyond 2^64.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.length)
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{}", self.offset, self.length)
    }
}

/// How long a request takes before its first byte arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Bytes are in memory.
    Memory,
    /// A local file: microseconds.
    Local,
    /// A network: milliseconds and more.
    Remote,
}

/// What a source tells a planner about its costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHints {
    /// Unwanted bytes between two wanted ranges that are cheaper to read than to skip.
    pub gap: u64,
    /// Largest range worth making by merging.
    pub max_merged: u64,
    /// Requests that are useful at one time.
    pub concurrency: usize,
    /// Latency class.
    pub latency: Latency,
}

/// What was asked of a server for one source or store, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Requests, further tries included.
    pub requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Further tries after a failure.
    pub retries: u64,
    /// Reads answered from blocks in memory.
    pub hits: u64,
    /// Files that came whole since the server has no ranges.
    pub whole: u64,
}

/// One line of JSON.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { requests, bytes, retries, hits, whole } = self;
        write!(
            f,
            "{{\"remote_requests\":{requests},\"remote_bytes\":{bytes},\"remote_retries\":{retries},\
             \"cache_hits\":{hits},\"whole_downloads\":{whole}}}"
        )
    }
}

/// An immutable run of bytes.
///
/// Contract: a read gives exactly the bytes asked for or an error, never fewer; a range beyond the end is
/// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated). Reads are positional and may run in any number of threads.
pub trait Source: Send + Sync + fmt::Debug {
    /// Current length in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether there are no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads a batch; the answers stand in the order of the questions.
    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>>;

    /// Reads one run straight into the caller's buffer.
    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// First byte of each part that comes from a place of its own, and so can be missing alone, in rising order.
    fn parts(&self) -> Vec<u64> {
        vec![0]
    }

    /// Costs, for planning.
    fn hints(&self) -> ReadHints;

    /// Changes when the bytes may have changed: two equal answers mean the same bytes.
    fn id(&self) -> Result<String>;

    /// Whether its name still leads to it, and not to another run of bytes that took its place, or to none.
    fn is_current(&self) -> Result<bool> {
        Ok(true)
    }

    /// What to call it in messages: a path or URL.
    fn name(&self) -> String;

    /// What was asked of a server so far; nothing where there is none.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
