//! A plan as text, and as numbers.

use super::{Fetch, Part, ReadPlan, Task};
use crate::error::Result;
use crate::shape::{byte_count, element_count};
use crate::source::{ByteRange, Latency, merge};
use std::collections::BTreeMap;
use std::fmt;

/// A plan in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Arrays that are read.
    pub arrays: u64,
    /// Chunks that hold selected elements.
    pub chunks: u64,
    /// Chunks that were never written.
    pub fills: u64,
    /// Chunks that are decoded.
    pub decoded: u64,
    /// Chunks, or blocks of contiguous data, that are taken as stored.
    pub copied: u64,
    /// Requests to sources.
    pub requests: u64,
    /// Bytes that these requests ask for.
    pub bytes_read: u64,
    /// Bytes that come out of filters.
    pub bytes_decoded: u64,
    /// Bytes of the result as stored.
    pub bytes_out: u64,
    /// Bytes that one worker needs at most at a time.
    pub worker_bytes: u64,
}

impl Summary {
    /// Names and numbers in a fixed order, for printing.
    pub fn entries(&self) -> [(&'static str, u64); 10] {
        [
            ("arrays", self.arrays),
            ("chunks", self.chunks),
            ("fills", self.fills),
            ("decoded", self.decoded),
            ("copied", self.copied),
            ("requests", self.requests),
            ("bytes_read", self.bytes_read),
            ("bytes_decoded", self.bytes_decoded),
            ("bytes_out", self.bytes_out),
            ("worker_bytes", self.worker_bytes),
        ]
    }
}

impl ReadPlan {
    /// The plan in numbers.
    pub fn summary(&self) -> Result<Summary> {
        let mut sum = Summary {
            arrays: self.parts.len() as u64,
            bytes_out: byte_count(&self.shape, self.dtype.size())?,
            ..Summary::default()
        };
        for part in &self.parts {
            let chunk = byte_count(&part.chunk, part.element())?;
            sum.chunks += part.tasks.len() as u64;
            for task in &part.tasks {
                match task.fetch {
                    Fetch::Fill => sum.fills += 1,
                    Fetch::Object { .. } if part.pipeline.is_empty() => sum.copied += 1,
                    Fetch::Inline { .. } | Fetch::Encoded { .. } | Fetch::Object { .. } => {
                        sum.decoded += 1;
                        sum.bytes_decoded += chunk;
                    }
                    Fetch::Stored { .. } | Fetch::InlineStored { .. } => sum.copied += 1,
                }
                if let Fetch::Object { .. } = task.fetch {
                    // Its length is known only when it is there.
                    sum.requests += 1;
                    sum.worker_bytes = sum.worker_bytes.max(3 * chunk);
                }
                if let Fetch::Encoded { length, .. } = task.fetch {
                    sum.worker_bytes = sum.worker_bytes.max(length.saturating_add(2 * chunk));
                }
            }
            for unit in &part.units {
                for request in part.requests(unit, &|_| true)?.values().flatten() {
                    sum.requests += 1;
                    sum.bytes_read = sum.bytes_read.saturating_add(request.length);
                }
            }
        }
        Ok(sum)
    }
}

/// Bytes of a request that are worth a connection of their own.
const SHARE: u64 = 1 << 20;

impl Part {
    /// What a unit asks of each source for those of its tasks that are wanted, by their number in the unit.
    pub(crate) fn requests(
        &self,
        unit: &std::ops::Range<usize>,
        wanted_of: &dyn Fn(usize) -> bool,
    ) -> Result<BTreeMap<usize, Vec<ByteRange>>> {
        let mut wanted: BTreeMap<usize, Vec<ByteRange>> = BTreeMap::new();
        let tasks: &[Task] = self.tasks.get(unit.clone()).unwrap_or(&[]);
        let remote = tasks.iter().any(|t| self.is_remote(t));
        if tasks.len() > 1
            && !remote
            && let Some((source, range)) = self.joined(unit)
        {
            wanted.entry(source).or_default().push(range);
            return Ok(wanted);
        }
        for (i, task) in tasks.iter().enumerate() {
            if let Fetch::Encoded { source, .. } | Fetch::Stored { source, .. } = task.fetch
                && wanted_of(i)
            {
                wanted.entry(source).or_default().extend(self.spans(task)?.into_iter().map(|s| s.range));
            }
        }
        if remote {
            for (&source, ranges) in &mut wanted {
                ranges.sort_unstable();
                let hints = self.hints.get(source).copied().unwrap_or(super::NO_HINTS);
                // Long requests are no use where short ones could run side by side.
                let all = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.length));
                let share = all.div_ceil(hints.concurrency.max(1) as u64).max(SHARE);
                let most = hints.max_merged.min(share);
                *ranges = merge(ranges, hints.gap, most).into_iter().map(|m| m.range).collect();
            }
        }
        Ok(wanted)
    }
}

/// Lines of each kind that are printed before the rest is counted.
const SHOWN: usize = 20;

impl fmt::Display for ReadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = byte_count(&self.shape, self.dtype.size()).unwrap_or(0);
        writeln!(f, "read {:?} of {} ({bytes} bytes)", self.shape, self.dtype)?;
        if self.sparse {
            writeln!(f, "  elements of no part get the fill value")?;
        }
        for part in self.parts.iter().take(SHOWN) {
            part.print(f)?;
        }
        if self.parts.len() > SHOWN {
            writeln!(f, "  and {} more arrays", self.parts.len() - SHOWN)?;
        }
        match self.summary() {
            Ok(sum) => {
                f.write_str("total:")?;
                for (i, (name, value)) in sum.entries().iter().enumerate() {
                    write!(f, "{} {name} {value}", if i > 0 { "," } else { "" })?;
                }
                writeln!(f)
            }
            Err(e) => writeln!(f, "total: {e}"),
        }
    }
}

impl Part {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = element_count(self.region.dims()).unwrap_or(0);
        let wanted = self.region.count().unwrap_or(0);
        writeln!(f, "  {}: {wanted} of {count} elements", self.name)?;
        let fills = self.tasks.iter().filter(|t| t.fetch == Fetch::Fill).count();
        if fills > 0 {
            writeln!(f, "    fill {fills} of {} chunks of {:?}", self.tasks.len(), self.chunk)?;
        }
        let mut shown = 0;
        for unit in &self.units {
            let Some(tasks) = self.tasks.get(unit.clone()) else { continue };
            if tasks.iter().all(|t| t.fetch == Fetch::Fill) {
                continue;
            }
            if shown == SHOWN {
                writeln!(f, "    and more requests")?;
                break;
            }
            shown += 1;
            self.print_unit(f, unit, tasks)?;
        }
        Ok(())
    }

    fn print_unit(
        &self,
        f: &mut fmt::Formatter<'_>,
        unit: &std::ops::Range<usize>,
        tasks: &[Task],
    ) -> fmt::Result {
        match self.requests(unit, &|_| true) {
            Err(e) => writeln!(f, "    {e}")?,
            Ok(requests) => {
                for (source, ranges) in &requests {
                    let name = self.sources.get(*source).map_or(String::new(), |s| s.name());
                    let bytes: u64 = ranges.iter().fold(0, |n, r| n.saturating_add(r.length));
                    match ranges.as_slice() {
                        [one] => writeln!(f, "    read {one} of {name}")?,
                        [first, .., last] => writeln!(
                            f,
                            "    read {} ranges of {name}, {bytes} bytes, {first} to {last}",
                            ranges.len()
                        )?,
                        [] => {}
                    }
                }
            }
        }
        for task in tasks.iter().take(SHOWN) {
            let Some(part) = self.projection.get(task.chunk) else { continue };
            let coord = &part.coord[..];
            let wanted = part.count();
            match task.fetch {
                Fetch::Fill => {}
                Fetch::Object { store, key } => {
                    let name = self.stores.get(store).map_or(String::new(), |(s, _)| s.name());
                    let key = self.keys.get(key).map_or("", |k| k);
                    let stages: Vec<&str> = self.pipeline.names().collect();
                    let how = if stages.is_empty() {
                        String::new()
                    } else {
                        format!("decode by {}, ", stages.join(", "))
                    };
                    writeln!(f, "      get {key} of {name}, {how}take {wanted} elements of chunk {coord:?}")?;
                }
                Fetch::Inline { .. } | Fetch::Encoded { .. } => {
                    let stages: Vec<&str> = self.pipeline.names().collect();
                    writeln!(
                        f,
                        "      decode chunk {coord:?} by {}, take {wanted} elements",
                        stages.join(", ")
                    )?;
                }
                Fetch::Stored { .. } | Fetch::InlineStored { .. } => {
                    writeln!(f, "      take {wanted} elements of {:?} at {coord:?}", self.chunk)?;
                }
            }
        }
        if tasks.len() > SHOWN {
            writeln!(f, "      and {} more chunks", tasks.len() - SHOWN)?;
        }
        Ok(())
    }

    /// Whether any of its sources is remote.
    pub fn has_remote(&self) -> bool {
        let stores = self.stores.iter().map(|(_, h)| h);
        self.hints.iter().chain(stores).any(|h| h.latency == Latency::Remote)
    }
}
