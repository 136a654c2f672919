//! Bytes that are far away: files and stores behind `http(s)://`, and behind the protocols of object stores.
//!
//! The faces are as synchronous as all others; a runtime inside carries the requests (`runtime`). What all have in
//! common: many requests at a time, another try for what is worth one, counts of everything, and hints that follow what was
//! measured.

mod cloud;
mod failure;
mod http;
mod link;
mod pieces;
mod profile;
mod progress;
mod runtime;
#[cfg(test)]
mod tests;

pub use cloud::{CloudPlace, CloudSource, CloudStore};
pub use http::{HttpSource, HttpStore};
pub use profile::{CloudOptions, Keys};

use super::{Latency, ReadHints, Traffic};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How remote files and stores are read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Bytes from the front that the first request asks for; formats keep there what they look at first.
    pub first: u64,
    /// Requests at a time.
    pub concurrency: usize,
    /// Further tries of a request that failed in a way that may pass.
    pub retries: u32,
    /// Time before the first further try; it doubles with each.
    pub delay: Duration,
    /// Time without a byte after which a request has failed.
    pub timeout: Duration,
    /// Bytes a second below which an answer has failed, over a stretch of `timeout`.
    pub slowest: u64,
    /// Largest file to download whole, in bytes, if the server has no ranges.
    pub whole: u64,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions {
            first: 128 << 10,
            concurrency: 24,
            retries: 5,
            delay: Duration::from_millis(100),
            timeout: Duration::from_secs(30),
            slowest: 256,
            whole: 1 << 30,
        }
    }
}

/// The longest that a server may make us wait for another try.
const LONGEST_DELAY: Duration = Duration::from_secs(20);

impl RemoteOptions {
    /// How long to wait before try number `attempt`, counted from 1, or as long as the server asked for.
    fn pause(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.delay.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        asked.unwrap_or(Duration::ZERO).max(doubled).min(LONGEST_DELAY)
    }
}

/// What was done for one source or store, and how fast it was.
#[derive(Debug, Default)]
struct Meter {
    requests: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    whole: AtomicU64,
    pace: Mutex<Pace>,
}

/// Moving averages; zero until something was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Seconds until the answer to a request begins.
    latency: f64,
    /// Bytes a second of one answer.
    rate: f64,
}

/// The weight of the newest measurement.
const NEWEST: f64 = 0.2;

/// Answers shorter than this say nothing about the rate.
const LONG_ENOUGH: u64 = 256 << 10;

/// Bytes a second of one answer until something was measured.
const ASSUMED: f64 = 50e6;

impl Meter {
    /// The head of an answer came.
    fn answered(&self, latency: Duration) {
        self.measured(latency, 0, Duration::ZERO);
    }

    /// The body of an answer came.
    fn arrived(&self, bytes: u64, transfer: Duration) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let latency = self.pace.lock().unwrap_or_else(PoisonError::into_inner).latency;
        self.measured(Duration::from_secs_f64(latency), bytes, transfer);
    }

    fn measured(&self, latency: Duration, bytes: u64, transfer: Duration) {
        let mix = |old: &mut f64, new: f64| {
            *old = if *old == 0.0 { new } else { *old * (1.0 - NEWEST) + new * NEWEST };
        };
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        mix(&mut pace.latency, latency.as_secs_f64());
        if bytes >= LONG_ENOUGH {
            // What arrived together with the head took no time that could be measured.
            mix(&mut pace.rate, bytes as f64 / transfer.as_secs_f64().max(1e-4));
        }
    }

    fn traffic(&self) -> Traffic {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            requests: load(&self.requests),
            bytes: load(&self.bytes),
            retries: load(&self.retries),
            hits: 0,
            whole: load(&self.whole),
        }
    }

    /// A gap is worth reading through if that takes no longer than another request would; since many requests run at a
    /// time, only a part of its latency counts. Requests are joined until the latency is a small part of what one takes,
    /// and no longer: shorter ones can run side by side.
    fn hints(&self, concurrency: usize) -> ReadHints {
        let pace = *self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let (rate, longest) = if pace.rate == 0.0 { (ASSUMED, 2e6) } else { (pace.rate, 8e6) };
        let (gap, most) = (pace.latency * rate / 4.0, (pace.latency * rate * 4.0).min(longest));
        // Within these bounds in any case, so that they fit.
        let (gap, max_merged) = (gap.clamp(16e3, 512e3) as u64, most.clamp(1e6, 8e6) as u64);
        ReadHints { gap, max_merged, concurrency, latency: Latency::Remote }
    }
}
