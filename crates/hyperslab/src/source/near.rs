//! Small reads of elements beside the metadata that is in memory anyway.

use super::{ByteRange, CachedSource, ReadHints, Source, Traffic};
use crate::error::Result;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longer ranges are worth a request of their own.
const SMALL: u64 = 16 << 10;

/// A small read so near behind the last one is taken for one of a row.
const ROW: u64 = 256 << 10;

/// A file that is far away, whose metadata is read through a cache of blocks. Small ranges are taken from blocks that are
/// there, and where one follows the other, as when thousands of small arrays are looked at, blocks are read for them; all
/// else goes straight to the file.
#[derive(Debug)]
pub struct NearSource {
    cache: Arc<CachedSource>,
    /// Where the last small read ended.
    last: AtomicU64,
}

impl NearSource {
    /// The file behind a cache.
    pub fn new(cache: Arc<CachedSource>) -> NearSource {
        NearSource { cache, last: AtomicU64::new(u64::MAX) }
    }

    /// Whether a lone read goes on where the last one ended.
    fn is_in_row(&self, ranges: &[ByteRange]) -> bool {
        let [range] = ranges else { return false };
        let last = self.last.swap(range.offset.saturating_add(range.length), Ordering::Relaxed);
        range.length <= SMALL && range.offset.checked_sub(last).is_some_and(|gap| gap <= ROW)
    }
}

impl Source for NearSource {
    fn len(&self) -> Result<u64> {
        self.cache.len()
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        if self.is_in_row(ranges) {
            return self.cache.read(ranges);
        }
        let there: Vec<Option<Bytes>> =
            ranges.iter().map(|r| if r.length <= SMALL { self.cache.held(*r) } else { None }).collect();
        let missing = ranges.iter().zip(&there).filter(|(_, there)| there.is_none());
        let missing: Vec<ByteRange> = missing.map(|(range, _)| *range).collect();
        if missing.len() == ranges.len() {
            return self.cache.inner().read(ranges);
        }
        let mut read =
            if missing.is_empty() { Vec::new() } else { self.cache.inner().read(&missing)? }.into_iter();
        Ok(there.into_iter().filter_map(|there| there.or_else(|| read.next())).collect())
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = ByteRange::new(offset, buffer.len() as u64);
        match if range.length <= SMALL { self.read(&[range])?.pop() } else { None } {
            Some(bytes) if bytes.len() == buffer.len() => {
                buffer.copy_from_slice(&bytes);
                Ok(())
            }
            _ => self.cache.inner().read_into(offset, buffer),
        }
    }

    fn parts(&self) -> Vec<u64> {
        self.cache.inner().parts()
    }

    fn hints(&self) -> ReadHints {
        self.cache.hints()
    }

    fn id(&self) -> Result<String> {
        self.cache.id()
    }

    fn is_current(&self) -> Result<bool> {
        self.cache.is_current()
    }

    fn name(&self) -> String {
        self.cache.name()
    }

    fn traffic(&self) -> Traffic {
        self.cache.traffic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Counting, MemorySource, contract};

    #[test]
    fn rows_of_small_reads_share_blocks_and_others_are_as_they_were() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let memory: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone(), "test"));
        contract::check(
            &NearSource::new(Arc::new(CachedSource::new(memory.clone(), 1 << 20).unwrap())),
            &bytes,
        )
        .unwrap();
        let counted = Arc::new(Counting::new(memory));
        let near = NearSource::new(Arc::new(CachedSource::new(counted.clone(), 1 << 20).unwrap()));
        let read = |ranges: &[(u64, u64)]| {
            let before = (counted.ranges(), counted.bytes());
            let ranges: Vec<_> = ranges.iter().map(|&(o, n)| ByteRange::new(o, n)).collect();
            for (range, got) in ranges.iter().zip(near.read(&ranges).unwrap()) {
                assert_eq!(got[..], bytes[range.offset as usize..][..range.length as usize]);
            }
            (counted.ranges() - before.0, counted.bytes() - before.1)
        };
        // The first one alone, then a block for all that follow in it.
        assert_eq!(read(&[(100, 50)]), (1, 50));
        assert_eq!(read(&[(200, 50)]), (1, 65_536));
        assert_eq!(read(&[(300, 50)]), (0, 0));
        // At random, and long ones, only what is wanted.
        assert_eq!(read(&[(900_000, 50)]), (1, 50));
        assert_eq!(read(&[(500_000, 50)]), (1, 50));
        assert_eq!(read(&[(500_100, 100_000)]), (1, 100_000));
        // Of a batch what is not there.
        assert_eq!(read(&[(400, 50), (700_000, 60), (10, 5)]), (1, 60));
    }
}
