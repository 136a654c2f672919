//! What a read did, and how to stop one.

use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a read did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadStats {
    /// Ranges asked of sources.
    pub requests: u64,
    /// Bytes read from sources, gaps between wanted ranges included.
    pub bytes_read: u64,
    /// Chunks that went through the filter pipeline.
    pub chunks_decoded: u64,
    /// Chunks that an earlier read had decoded already.
    pub chunks_kept: u64,
    /// Chunks or parts of them that were taken as stored.
    pub chunks_copied: u64,
    /// Chunks that were never written and got the fill value.
    pub chunks_filled: u64,
    /// Bytes that came out of filter pipelines.
    pub bytes_decoded: u64,
    /// Bytes given to the caller.
    pub bytes_out: u64,
    /// Requests made again after a failure.
    pub retries: u64,
    /// Threads that took part.
    pub threads: u64,
}

impl ReadStats {
    /// Adds the counts of another read, or of another worker of the same read.
    pub fn add(&mut self, other: &ReadStats) {
        self.requests += other.requests;
        self.bytes_read += other.bytes_read;
        self.chunks_decoded += other.chunks_decoded;
        self.chunks_kept += other.chunks_kept;
        self.chunks_copied += other.chunks_copied;
        self.chunks_filled += other.chunks_filled;
        self.bytes_decoded += other.bytes_decoded;
        self.bytes_out += other.bytes_out;
        self.retries += other.retries;
        self.threads = self.threads.max(other.threads);
    }

    /// Names and counts in a fixed order, for printing.
    pub fn entries(&self) -> [(&'static str, u64); 10] {
        [
            ("requests", self.requests),
            ("bytes_read", self.bytes_read),
            ("chunks_decoded", self.chunks_decoded),
            ("chunks_kept", self.chunks_kept),
            ("chunks_copied", self.chunks_copied),
            ("chunks_filled", self.chunks_filled),
            ("bytes_decoded", self.bytes_decoded),
            ("bytes_out", self.bytes_out),
            ("retries", self.retries),
            ("threads", self.threads),
        ]
    }
}

/// One line of JSON.
impl fmt::Display for ReadStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, count)) in self.entries().iter().enumerate() {
            write!(f, "{}\"{name}\":{count}", if i == 0 { "{" } else { "," })?;
        }
        f.write_str("}")
    }
}

/// Stops a read from another thread. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that has not been used.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Asks every read that holds this token to stop with [`ErrorKind::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Cancel::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the token was used.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the work was cancelled"));
        }
        Ok(())
    }
}
