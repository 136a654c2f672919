//! Sources around other sources: to count and to remember what is asked, to be as slow as a network, and to fail on purpose.

use super::{ByteRange, Latency, ReadHints, Source, Traffic};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Counts calls, ranges and bytes.
#[derive(Debug)]
pub struct Counting {
    inner: Arc<dyn Source>,
    calls: AtomicU64,
    ranges: AtomicU64,
    bytes: AtomicU64,
}

impl Counting {
    /// Counts what is asked of `inner`.
    pub fn new(inner: Arc<dyn Source>) -> Self {
        Counting { inner, calls: 0.into(), ranges: 0.into(), bytes: 0.into() }
    }

    /// Calls of `read` and `read_into`: what a network would see as round trips.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Ranges asked for.
    pub fn ranges(&self) -> u64 {
        self.ranges.load(Ordering::Relaxed)
    }

    /// Bytes asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn count(&self, ranges: &[ByteRange]) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.ranges.fetch_add(ranges.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(total(ranges), Ordering::Relaxed);
    }
}

/// Is as slow as asked: every call waits, and bytes come at a limited rate.
#[derive(Debug)]
pub struct Throttled {
    inner: Arc<dyn Source>,
    latency: Duration,
    bytes_per_second: u64,
}

impl Throttled {
    /// Every call to `inner` takes `latency` and then the time that its bytes need.
    pub fn new(inner: Arc<dyn Source>, latency: Duration, bytes_per_second: u64) -> Self {
        Throttled { inner, latency, bytes_per_second }
    }

    fn wait(&self, bytes: u64) {
        let seconds = bytes as f64 / self.bytes_per_second.max(1) as f64;
        std::thread::sleep(self.latency + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
}

/// Fails one call and works again after it.
#[derive(Debug)]
pub struct Failing {
    inner: Arc<dyn Source>,
    at: u64,
    kind: ErrorKind,
    calls: AtomicU64,
}

impl Failing {
    /// Fails the call to `inner` with this number, counted from 0.
    pub fn new(inner: Arc<dyn Source>, at: u64) -> Self {
        Failing { inner, at, kind: ErrorKind::Io, calls: 0.into() }
    }

    /// Sets the kind of the error.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn step(&self) -> Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == self.at {
            return Err(Error::new(self.kind, format!("call {call} was made to fail")));
        }
        Ok(())
    }
}

/// Works up to a point, and never again after it.
#[derive(Debug)]
pub struct Crashing {
    inner: Arc<dyn Source>,
    calls_left: AtomicU64,
    bytes_left: AtomicU64,
}

impl Crashing {
    /// Stops after this many calls.
    pub fn after_calls(inner: Arc<dyn Source>, calls: u64) -> Self {
        Crashing { inner, calls_left: calls.into(), bytes_left: u64::MAX.into() }
    }

    /// Stops before the read that would go beyond this many bytes.
    pub fn after_bytes(inner: Arc<dyn Source>, bytes: u64) -> Self {
        Crashing { inner, calls_left: u64::MAX.into(), bytes_left: bytes.into() }
    }

    fn step(&self, bytes: u64) -> Result<()> {
        // The largest number stands for no limit.
        let take = |left: &AtomicU64, n: u64| {
            let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
                u64::MAX => Some(left),
                _ => left.checked_sub(n),
            });
            if taken.is_err() {
                left.store(0, Ordering::Relaxed);
            }
            taken.is_ok()
        };
        if take(&self.calls_left, 1) && (bytes == 0 || take(&self.bytes_left, bytes)) {
            return Ok(());
        }
        self.calls_left.store(0, Ordering::Relaxed);
        Err(Error::new(ErrorKind::Io, "the source has crashed"))
    }
}

/// Remembers which bytes were read. It counts as being in memory, so that nobody reads more than is wanted.
#[derive(Debug)]
pub struct Visited {
    inner: Arc<dyn Source>,
    /// First byte, and the one after the last.
    ranges: Mutex<Vec<(u64, u64)>>,
}

impl Visited {
    /// Remembers what is read of `inner`.
    pub fn new(inner: Arc<dyn Source>) -> Self {
        Visited { inner, ranges: Mutex::default() }
    }

    /// What was read, in rising order: first byte, and the one after the last. No two touch.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        merge(&mut ranges);
        ranges.clone()
    }

    fn note(&self, wanted: &[ByteRange]) {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.extend(wanted.iter().map(|range| (range.offset, range.offset.saturating_add(range.length))));
        // As many as there are runs in the file, about.
        if ranges.len().is_power_of_two() {
            merge(&mut ranges);
        }
    }
}

fn merge(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
}

/// A source that does `before(self, ranges)?` before each read.
macro_rules! wrapper {
    ($name:ident, $hints:expr, |$this:ident, $ranges:ident| $before:expr) => {
        impl Source for $name {
            fn len(&self) -> Result<u64> {
                self.inner.len()
            }

            fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
                let ($this, $ranges) = (self, ranges);
                $before;
                self.inner.read(ranges)
            }

            fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
                let ($this, $ranges) = (self, &[ByteRange::new(offset, buffer.len() as u64)]);
                $before;
                self.inner.read_into(offset, buffer)
            }

            fn hints(&self) -> ReadHints {
                let hints: fn(ReadHints) -> ReadHints = $hints;
                hints(self.inner.hints())
            }

            fn id(&self) -> Result<String> {
                self.inner.id()
            }

            fn is_current(&self) -> Result<bool> {
                self.inner.is_current()
            }

            fn name(&self) -> String {
                self.inner.name()
            }

            fn traffic(&self) -> Traffic {
                self.inner.traffic()
            }
        }
    };
}

fn total(ranges: &[ByteRange]) -> u64 {
    ranges.iter().fold(0, |n, r| n.saturating_add(r.length))
}

wrapper!(Counting, |hints| hints, |this, ranges| this.count(ranges));
wrapper!(Visited, |hints| ReadHints { gap: 0, latency: Latency::Memory, ..hints }, |this, ranges| this
    .note(ranges));
wrapper!(
    Throttled,
    |_| ReadHints { gap: 256 << 10, max_merged: 8 << 20, concurrency: 16, latency: Latency::Remote },
    |this, ranges| this.wait(total(ranges))
);
wrapper!(Failing, |hints| hints, |this, _ranges| this.step()?);
wrapper!(Crashing, |hints| hints, |this, ranges| this.step(total(ranges))?);
