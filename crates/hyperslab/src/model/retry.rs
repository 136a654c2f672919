//! Reading what somebody else is writing: again, where the bytes were caught half written.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Attempts of one operation, the first one counted: as many as the reference library makes.
const ATTEMPTS: u32 = 100;

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_millis(10);

/// How often an operation on a file that is being written is run, and how often it had to be run again.
///
/// Parsers are pure functions of bytes, so that a whole operation is run again rather than the one read that failed: what
/// comes out was read in a run in which every structure was sound. Clones share their counts.
#[derive(Clone, Debug)]
pub struct Retry {
    live: bool,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    attempts: AtomicU32,
    retries: AtomicU64,
}

impl Retry {
    /// The default number of attempts, nothing counted. `live`: whether the file is being written.
    pub fn new(live: bool) -> Self {
        Retry { live, counts: Arc::new(Counts { attempts: ATTEMPTS.into(), retries: 0.into() }) }
    }

    /// The same settings and counts for a file that this one names.
    #[must_use]
    pub fn with_live(&self, live: bool) -> Self {
        Retry { live, ..self.clone() }
    }

    /// Whether the file is being written. Nothing is run again if it is not.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Attempts of one operation, the first one counted.
    pub fn attempts(&self) -> u32 {
        self.counts.attempts.load(Ordering::Relaxed)
    }

    /// Sets the attempts of one operation; 1 or less tries nothing again.
    pub fn set_attempts(&self, attempts: u32) {
        self.counts.attempts.store(attempts, Ordering::Relaxed);
    }

    /// How often something was run again so far.
    pub fn retries(&self) -> u64 {
        self.counts.retries.load(Ordering::Relaxed)
    }

    /// Runs `work`, again while it fails with what a concurrent writer can cause. Other errors are returned at once.
    pub fn run<T>(&self, work: impl FnMut() -> Result<T>) -> Result<T> {
        self.run_until(work, |done| done.as_ref().is_err_and(Error::is_torn))
    }

    /// Runs `work`, again while its result is torn; after the last attempt that result is returned as it is.
    pub fn run_until<T>(
        &self,
        mut work: impl FnMut() -> Result<T>,
        torn: impl Fn(&Result<T>) -> bool,
    ) -> Result<T> {
        let mut pause = Duration::from_micros(1);
        let mut attempt = 1;
        loop {
            let done = work();
            // What an inner operation has tried often enough is not tried again by the outer one.
            if !self.live || done.as_ref().is_err_and(Error::is_tried) || !torn(&done) {
                return done;
            }
            if attempt >= self.attempts() {
                return done.map_err(|e| {
                    e.tried().hint("a writer has the file open, or died with it open: try again later")
                });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
            attempt += 1;
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::time::Instant;

    /// Fails so many times.
    fn fails(times: u32, kind: ErrorKind) -> impl FnMut() -> Result<u32> {
        let mut left = times;
        move || {
            if left == 0 {
                return Ok(7);
            }
            left -= 1;
            Err(Error::new(kind, "no"))
        }
    }

    #[test]
    fn what_a_writer_can_cause_is_tried_again() {
        let retry = Retry::new(true);
        assert_eq!(retry.run(fails(3, ErrorKind::Checksum)).unwrap(), 7);
        assert_eq!(retry.run(fails(2, ErrorKind::Truncated)).unwrap(), 7);
        assert_eq!(retry.retries(), 5);
        assert_eq!(
            retry.with_live(false).run(fails(1, ErrorKind::Checksum)).unwrap_err().code(),
            "E_CHECKSUM"
        );
        assert_eq!(retry.retries(), 5);
    }

    #[test]
    fn anything_else_fails_at_once_and_the_attempts_end() {
        let retry = Retry::new(true);
        assert_eq!(retry.run(fails(1, ErrorKind::Corrupt)).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(retry.retries(), 0);
        assert!(retry.run(|| Err::<(), _>(Error::invalid("x").torn())).is_err());
        assert_eq!(retry.retries(), 99);
        retry.set_attempts(3);
        let error = retry.run(fails(9, ErrorKind::Checksum)).unwrap_err();
        assert!(error.is_tried() && error.is_torn());
        assert_eq!(retry.retries(), 101);
        // An operation made of operations does not multiply the attempts.
        let nested = retry.run(|| retry.run(fails(9, ErrorKind::Checksum)));
        assert!(nested.is_err());
        assert_eq!(retry.retries(), 103);
    }

    #[test]
    fn all_attempts_take_less_than_a_few_seconds() {
        let start = Instant::now();
        let _ = Retry::new(true).run(fails(1000, ErrorKind::Checksum));
        let took = start.elapsed();
        assert!(took > Duration::from_millis(800) && took < Duration::from_secs(4), "{took:?}");
    }
}
