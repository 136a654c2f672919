//! Rows that hold fill, and that their writer has moved past: when they count as written.

use crate::error::Result;
use crate::model::Elements;
use std::collections::VecDeque;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

/// What is known of the rows of one array that were looked at and not given.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// Rows below this are known to be written.
    settled: u64,
    /// Rows side by side that wait, the first ones first.
    runs: VecDeque<Run>,
    /// When the last look began that did not see the rows that were settled last.
    before: Option<Instant>,
}

/// Rows that were noted together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    /// The row behind the last one.
    pub(super) end: u64,
    /// What they held.
    digest: u64,
    since: Instant,
    before: Option<Instant>,
}

/// What to do about the rows that were noted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// There are none.
    None,
    /// Rows in front of them come first: those below this one.
    Behind(u64),
    /// They have to wait; the row behind all of them.
    Waits(u64),
    /// These have waited, and must be the same still.
    Due(Run),
}

impl Settling {
    /// Rows below this are known to be written.
    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    /// When the last look began that did not see the rows that were settled last.
    pub(super) fn before(&self) -> Option<Instant> {
        self.before
    }

    /// Forgets all that is not about rows below `end`.
    pub(super) fn cut(&mut self, end: u64) {
        self.settled = self.settled.min(end);
        self.runs.clear();
    }

    /// No row has to wait any more.
    pub(super) fn end_waiting(&mut self) {
        self.runs.clear();
    }

    /// What to do when row `next` is the next one, where rows wait for `window`.
    pub(super) fn head(&mut self, next: u64, window: Duration) -> Head {
        // Rows that were given in another way.
        while self.runs.front().is_some_and(|run| run.end <= next) {
            self.runs.pop_front();
        }
        let (Some(head), Some(last)) = (self.runs.front(), self.runs.back()) else { return Head::None };
        if head.first < next {
            self.runs.clear();
            Head::None
        } else if head.first > next {
            Head::Behind(head.first)
        } else if head.since.elapsed() < window {
            Head::Waits(last.end)
        } else {
            Head::Due(*head)
        }
    }

    /// How long until the first rows have waited; `None` if none do.
    pub(super) fn due(&self, window: Duration) -> Option<Duration> {
        self.runs.front().map(|run| window.saturating_sub(run.since.elapsed()))
    }

    /// Notes rows that are to wait, if they do not wait yet.
    pub(super) fn note(&mut self, first: u64, end: u64, digest: u64, before: Option<Instant>) {
        if (self.runs.is_empty() || self.ends_at(first)) && first < end {
            self.runs.push_back(Run { first, end, digest, since: Instant::now(), before });
        }
    }

    /// Whether the rows that wait end where row `first` begins.
    pub(super) fn ends_at(&self, first: u64) -> bool {
        self.runs.back().is_some_and(|last| last.end == first)
    }

    /// The first rows that wait are as they were, or not: then all are to be looked at anew.
    pub(super) fn decide(&mut self, same: bool) {
        if let (true, Some(run)) = (same, self.runs.pop_front()) {
            self.settled = self.settled.max(run.end);
            self.before = run.before;
        } else {
            self.runs.clear();
        }
    }
}

impl Run {
    /// Whether rows still hold what they did.
    pub(super) fn is(&self, digest: u64) -> bool {
        self.digest == digest
    }
}

/// What elements `from..to` hold: of flat elements their bytes, of others what they point to.
pub(super) fn digest(elements: &Elements, bytes: &[u8], fixed: bool, from: usize, to: usize) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    if fixed {
        let size = bytes.len().checked_div(elements.count()).unwrap_or(0);
        let at = |i: usize| i.saturating_mul(size).min(bytes.len());
        hasher.write(bytes.get(at(from)..at(to)).unwrap_or_default());
    } else {
        let mut text = String::new();
        for i in from..to.min(elements.count()) {
            text.clear();
            // Writing to a text does not fail.
            let _ = write!(text, "{:?}", elements.value(i)?);
            hasher.write(text.as_bytes());
            hasher.write_u8(0xff);
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    #[test]
    fn rows_wait_and_must_stay_the_same() {
        let mut settling = Settling::default();
        assert!(matches!(settling.head(3, SHORT), Head::None));
        settling.note(4, 6, 1, None);
        // Not side by side, or noted already.
        settling.note(9, 10, 2, None);
        settling.note(4, 6, 3, None);
        settling.note(6, 7, 4, None);
        assert!(matches!(settling.head(3, SHORT), Head::Behind(4)));
        assert!(matches!(settling.head(4, Duration::from_secs(9)), Head::Waits(7)));
        assert!(settling.due(Duration::from_secs(9)).is_some_and(|left| left > Duration::from_secs(8)));
        std::thread::sleep(SHORT);
        let Head::Due(run) = settling.head(4, SHORT) else { panic!("{settling:?}") };
        assert!(run.is(1) && !run.is(3));
        settling.decide(true);
        assert_eq!(settling.settled(), 6);
        // Another value: all begins anew.
        assert!(matches!(settling.head(6, SHORT), Head::Due(_)));
        settling.decide(false);
        assert!(matches!(settling.head(6, SHORT), Head::None));
        settling.note(6, 9, 1, None);
        settling.cut(2);
        assert!(settling.settled() == 2 && settling.due(SHORT).is_none());
    }
}
