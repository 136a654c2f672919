//! Answers that come too slowly, or are too long.

use super::RemoteOptions;
use super::failure;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Watches one answer: so many bytes have to come in each stretch of time, or it has failed. A server that sends a byte now
/// and then is given up as one that sends none.
#[derive(Debug)]
pub(super) struct Progress {
    window: Duration,
    /// Bytes that have to come in it.
    least: u64,
    ends: Instant,
    came: u64,
}

impl Progress {
    pub(super) fn new(options: &RemoteOptions) -> Progress {
        let least = (options.timeout.as_secs_f64() * options.slowest as f64) as u64;
        let window = options.timeout;
        Progress { window, least: least.max(1), ends: Instant::now() + window, came: 0 }
    }

    /// When the answer has failed, if no more comes until then.
    pub(super) fn ends(&self) -> Instant {
        self.ends
    }

    /// So many bytes came.
    pub(super) fn came(&mut self, bytes: usize) {
        self.came = self.came.saturating_add(bytes as u64);
        if self.came >= self.least {
            self.came = 0;
            self.ends = Instant::now() + self.window;
        }
    }

    /// What to say when it has failed.
    pub(super) fn failed(&self, url: &str) -> Error {
        let (url, window) = (failure::shown(url), self.window);
        match self.came {
            0 => Error::new(ErrorKind::Io, format!("no byte came in {window:?} from {url}")),
            came => Error::new(ErrorKind::Io, format!("only {came} bytes came in {window:?} from {url}"))
                .hint("the server or the network is too slow; RemoteOptions::slowest bounds it"),
        }
    }
}

/// How long to wait for an answer to begin, where `sent` bytes have to go there first.
pub(super) fn patience(options: &RemoteOptions, sent: usize) -> Duration {
    options.timeout.saturating_add(Duration::from_secs(sent as u64 / options.slowest.max(1)))
}

/// Bytes that the answers of one batch may have together: a batch is in memory until it is complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Option<Arc<Budget>>);

impl Room {
    /// For a batch of `count` answers. One alone has no more than its own bound.
    pub(super) fn new(count: usize, most: u64) -> Room {
        Room((count > 1).then(|| Arc::new(Budget::new("bytes of a batch of objects", most))))
    }

    /// A place in the room for one answer.
    pub(super) fn taken(&self) -> Taken {
        Taken { room: self.clone(), bytes: 0 }
    }
}

/// What one answer takes of the room; given back where it is not kept.
#[derive(Debug)]
pub(super) struct Taken {
    room: Room,
    bytes: u64,
}

impl Taken {
    pub(super) fn take(&mut self, bytes: usize) -> Result<()> {
        if let Some(budget) = &self.room.0 {
            budget.charge(bytes as u64)?;
            self.bytes += bytes as u64;
        }
        Ok(())
    }

    /// The answer is complete.
    pub(super) fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(budget) = &self.room.0 {
            budget.refund(self.bytes);
        }
    }
}
