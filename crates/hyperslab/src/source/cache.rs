//! A cache of blocks over a slow source: metadata is read in small pieces that lie near each other.

use super::{ByteRange, Latency, ReadHints, Source, Traffic};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a block.
const BLOCK: u64 = 64 << 10;

/// Ranges longer than this go straight to the source: they are read once, and would push out everything else.
const LONGEST: u64 = 16 * BLOCK;

/// A source whose blocks are kept in memory up to a bound. Its length is asked for once.
///
/// No lock is held while bytes are read: two threads that miss the same block read it both.
#[derive(Debug)]
pub struct CachedSource {
    inner: Arc<dyn Source>,
    length: u64,
    blocks: Cache<u64, Bytes, BySize>,
    hits: AtomicU64,
    /// Bytes that were read into blocks.
    loaded: AtomicU64,
}

#[derive(Clone, Debug)]
struct BySize;

impl Weighter<u64, Bytes> for BySize {
    fn weight(&self, _: &u64, block: &Bytes) -> u64 {
        block.len() as u64
    }
}

impl CachedSource {
    /// Keeps at most `bytes` of `inner` in memory.
    pub fn new(inner: Arc<dyn Source>, bytes: u64) -> Result<Self> {
        let length = inner.len()?;
        let blocks = (bytes / BLOCK).max(1);
        let cache = Cache::with_weighter(to_usize(blocks)?, blocks * BLOCK, BySize);
        Ok(CachedSource { inner, length, blocks: cache, hits: AtomicU64::new(0), loaded: AtomicU64::new(0) })
    }

    /// What is behind it.
    pub(super) fn inner(&self) -> &Arc<dyn Source> {
        &self.inner
    }

    /// A range of which all blocks are in memory, and that lies in the file.
    pub(super) fn held(&self, range: ByteRange) -> Option<Bytes> {
        let end = range.end().filter(|&end| range.length > 0 && end <= self.length)?;
        let mut out = Vec::with_capacity(to_usize(range.length).ok()?);
        for block in range.offset / BLOCK..=(end - 1) / BLOCK {
            self.copy(block, &self.blocks.get(&block)?, range, &mut out).ok()?;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(out.into())
    }

    /// Reads the blocks `wanted`, sorted and each once, and keeps them. Runs of neighbours are read in one piece, with the
    /// blocks between them where those cost less than another request: they are likely to be wanted next.
    fn load(&self, wanted: &[u64]) -> Result<Vec<(u64, Bytes)>> {
        let hints = self.inner.hints();
        let gap = if hints.latency == Latency::Remote { hints.gap.div_ceil(BLOCK) } else { 0 };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &block in wanted {
            match runs.last_mut() {
                Some((first, count))
                    if block - (*first + *count) <= gap && (block - *first) * BLOCK < LONGEST =>
                {
                    *count = block - *first + 1;
                }
                _ => runs.push((block, 1)),
            }
        }
        // Who wanted much of a file will want more, likely behind it: half as much again, far away, is read ahead.
        if let (Latency::Remote, Some((first, count))) = (hints.latency, runs.last_mut()) {
            let ahead = (self.loaded.load(Ordering::Relaxed) / 2 / BLOCK).min(LONGEST / BLOCK);
            let end = first.saturating_add(*count).saturating_add(ahead).min(self.length.div_ceil(BLOCK));
            *count = end.saturating_sub(*first).max(*count);
        }
        let ranges: Vec<_> = runs
            .iter()
            .map(|&(first, count)| {
                let start = first.saturating_mul(BLOCK);
                ByteRange::new(start, self.length.saturating_sub(start).min(count * BLOCK))
            })
            .collect();
        let mut blocks = Vec::with_capacity(wanted.len());
        for ((first, count), bytes) in runs.into_iter().zip(self.inner.read(&ranges)?) {
            self.loaded.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            for i in 0..count {
                let start = to_usize(i.saturating_mul(BLOCK))?.min(bytes.len());
                let end = start.saturating_add(to_usize(BLOCK)?).min(bytes.len());
                let part = bytes.get(start..end).unwrap_or_default();
                // A block of its own, so that a small part does not keep a long run in memory.
                let block = if count == 1 { bytes.clone() } else { Bytes::copy_from_slice(part) };
                self.blocks.insert(first + i, block.clone());
                blocks.push((first + i, block));
            }
        }
        Ok(blocks)
    }

    /// Copies the part of `block` that `range` wants behind what `out` holds already.
    fn copy(&self, number: u64, block: &[u8], range: ByteRange, out: &mut Vec<u8>) -> Result<()> {
        let at = range.offset.saturating_add(out.len() as u64);
        let start = at.saturating_sub(number.saturating_mul(BLOCK));
        let length = (range.length - out.len() as u64).min((block.len() as u64).saturating_sub(start));
        let part = to_usize(start).ok().and_then(|s| block.get(s..s.checked_add(to_usize(length).ok()?)?));
        match part {
            Some(part) if !part.is_empty() => {
                out.extend_from_slice(part);
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Changed, "the source became shorter while it was read")),
        }
    }
}

impl Source for CachedSource {
    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        // What is not in memory is read in one batch: first the blocks, then the long ranges.
        let mut missing = Vec::new();
        let mut held: Vec<(u64, Bytes)> = Vec::new();
        let mut long = Vec::new();
        for &range in ranges {
            let end = range.end().filter(|&end| end <= self.length);
            let end = end.ok_or_else(|| super::memory::past_end(range, self.length))?;
            if range.length > LONGEST {
                long.push(range);
            } else if range.length > 0 {
                for block in range.offset / BLOCK..=(end - 1) / BLOCK {
                    match self.blocks.get(&block) {
                        Some(bytes) => {
                            self.hits.fetch_add(1, Ordering::Relaxed);
                            held.push((block, bytes));
                        }
                        None => missing.push(block),
                    }
                }
            }
        }
        if !missing.is_empty() {
            missing.sort_unstable();
            missing.dedup();
            let loaded = self.load(&missing)?;
            held.extend(loaded);
        }
        let mut long = if long.is_empty() { Vec::new() } else { self.inner.read(&long)? }.into_iter();
        if held.len() > 1 {
            held.sort_unstable_by_key(|(block, _)| *block);
        }
        ranges
            .iter()
            .map(|&range| {
                if range.length > LONGEST {
                    return long.next().ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"));
                }
                let mut out = Vec::with_capacity(to_usize(range.length)?);
                while (out.len() as u64) < range.length {
                    let number = (range.offset + out.len() as u64) / BLOCK;
                    let found = held.binary_search_by_key(&number, |(block, _)| *block).ok();
                    let block = found.and_then(|i| held.get(i)).map(|(_, b)| b.as_ref()).unwrap_or_default();
                    self.copy(number, block, range, &mut out)?;
                }
                Ok(Bytes::from(out))
            })
            .collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = self.read(&[ByteRange::new(offset, buffer.len() as u64)])?;
        match read.first() {
            Some(bytes) if bytes.len() == buffer.len() => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Io, "the source gave no answer")),
        }
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
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
        Traffic { hits: self.hits.load(Ordering::Relaxed), ..self.inner.traffic() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::MemorySource;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Debug)]
    struct Counting(MemorySource, AtomicUsize);

    impl Source for Counting {
        fn len(&self) -> Result<u64> {
            self.0.len()
        }
        fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
            self.1.fetch_add(ranges.len(), Ordering::Relaxed);
            self.0.read(ranges)
        }
        fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
            self.0.read_into(offset, buffer)
        }
        fn hints(&self) -> ReadHints {
            self.0.hints()
        }
        fn id(&self) -> Result<String> {
            self.0.id()
        }
        fn name(&self) -> String {
            self.0.name()
        }
    }

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    fn cached(n: usize) -> (CachedSource, Arc<Counting>) {
        let inner = Arc::new(Counting(MemorySource::new(bytes(n), "test"), AtomicUsize::new(0)));
        (CachedSource::new(inner.clone(), 4 * BLOCK).unwrap(), inner)
    }

    #[test]
    fn near_pieces_are_read_once() {
        let (cache, inner) = cached(300_000);
        for i in 0..100 {
            cache.read(&[ByteRange::new(i * 100, 50)]).unwrap();
        }
        assert_eq!(inner.1.load(Ordering::Relaxed), 1);
        // Four more blocks in one run.
        cache.read(&[ByteRange::new(60_000, 200_000)]).unwrap();
        assert_eq!(inner.1.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn no_more_is_kept_than_the_bound_allows() {
        let (cache, inner) = cached(100 * BLOCK as usize);
        let read_all = || {
            for i in 0..100 {
                cache.read(&[ByteRange::new(i * BLOCK, 10)]).unwrap();
            }
        };
        read_all();
        assert!(cache.blocks.weight() <= 4 * BLOCK && cache.blocks.len() <= 4, "{}", cache.blocks.weight());
        let before = inner.1.load(Ordering::Relaxed);
        read_all();
        assert!(inner.1.load(Ordering::Relaxed) - before >= 96);
    }

    #[test]
    fn beyond_the_end_is_truncated() {
        let (cache, _) = cached(100);
        let kind = |o, n| cache.read(&[ByteRange::new(o, n)]).unwrap_err().kind();
        assert_eq!(kind(90, 11), ErrorKind::Truncated);
        assert_eq!(kind(u64::MAX, 2), ErrorKind::Truncated);
        assert!(cache.read(&[ByteRange::new(100, 0)]).unwrap()[0].is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn reads_what_the_source_has(ranges in prop::collection::vec((0u64..1_500_000, 0u64..1_400_000), 1..5)) {
            let n = 1_600_000;
            let (cache, _) = cached(n);
            let all = bytes(n);
            let ranges: Vec<_> =
                ranges.into_iter().map(|(o, l)| ByteRange::new(o, l.min(n as u64 - o))).collect();
            for _ in 0..2 {
                for (range, got) in ranges.iter().zip(cache.read(&ranges).unwrap()) {
                    let (o, l) = (range.offset as usize, range.length as usize);
                    prop_assert_eq!(&got[..], &all[o..o + l]);
                }
            }
        }
    }
}
