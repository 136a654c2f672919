//! Which bytes of a variable were written.

use std::collections::BTreeMap;

/// Ranges of bytes that do not touch: start and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the bytes from `start` to before `end`.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        if let Some((&before, &stop)) = self.0.range(..=start).next_back()
            && stop >= start
        {
            (start, end) = (before, end.max(stop));
        }
        while let Some((&next, &stop)) = self.0.range(start..).next()
            && next <= end
        {
            end = end.max(stop);
            self.0.remove(&next);
        }
        self.0.insert(start, end);
    }

    /// Forgets what is at `end` and behind.
    pub(super) fn truncate(&mut self, end: u64) {
        self.0.split_off(&end);
        if let Some(mut last) = self.0.last_entry()
            && *last.get() > end
        {
            last.insert(end);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(&start, &end)| (start, end))
    }

    /// What is missing of the bytes before `total`.
    pub(super) fn gaps(&self, total: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for (start, end) in self.iter().take_while(|(start, _)| *start < total) {
            if at < start {
                gaps.push((at, start));
            }
            at = end;
        }
        if at < total {
            gaps.push((at, total));
        }
        gaps
    }
}
