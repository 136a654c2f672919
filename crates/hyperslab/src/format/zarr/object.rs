//! A shard of a store as a source of bytes that is opened when it is read.

use crate::error::{Error, ErrorKind, Result};
use crate::source::store::Store;
use crate::source::{ByteRange, ReadHints, Source};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The objects of a store that are open, each of which may hold a file of the system.
#[derive(Debug)]
pub(super) struct Opened {
    store: Arc<dyn Store>,
    sources: Cache<Arc<str>, Arc<dyn Source>>,
}

impl Opened {
    /// At most 64 at a time.
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Opened> {
        Arc::new(Opened { store, sources: Cache::new(64) })
    }

    /// The chunks of the shard `key`, whose index was read, as a source that needs nothing until it is read.
    pub(super) fn shard(self: &Arc<Self>, key: Arc<str>, index: IndexRead) -> Arc<dyn Source> {
        Arc::new(Object { opened: self.clone(), key, index, proven: Mutex::new(None) })
    }

    /// The object of `key`, and whether it was opened just now.
    fn source(&self, key: &Arc<str>) -> Result<(Arc<dyn Source>, bool)> {
        if let Some(open) = self.sources.get(key) {
            return Ok((open, false));
        }
        let open = self.store.open(key)?.ok_or_else(|| {
            Error::new(ErrorKind::Changed, format!("{key} is no longer in {}", self.store.name()))
        })?;
        self.sources.insert(key.clone(), open.clone());
        Ok((open, true))
    }
}

/// What is known of the index of a shard, by which its chunks are found.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexRead {
    at_start: bool,
    length: u64,
    digest: u64,
}

impl IndexRead {
    /// Of the index as it is stored, first or last in its shard.
    pub(super) fn new(encoded: &[u8], at_start: bool) -> IndexRead {
        IndexRead { at_start, length: encoded.len() as u64, digest: digest(encoded) }
    }

    /// Where it lies in a shard of so many bytes.
    fn range(&self, all: u64) -> ByteRange {
        ByteRange::new(if self.at_start { 0 } else { all.saturating_sub(self.length) }, self.length.min(all))
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A shard whose index came by itself, before the shard was opened, and perhaps from another state of it.
#[derive(Debug)]
struct Object {
    opened: Arc<Opened>,
    key: Arc<str>,
    index: IndexRead,
    /// The source that was seen to hold the same index.
    proven: Mutex<Option<Weak<dyn Source>>>,
}

impl Object {
    fn is_proven(&self, source: &Arc<dyn Source>) -> bool {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        proven.as_ref().is_some_and(|proven| proven.ptr_eq(&Arc::downgrade(source)))
    }

    /// Fails if a range has bytes that are no part of the chunks. What is beyond the object itself is said when it is
    /// read.
    fn check(&self, ranges: &[ByteRange], all: u64) -> Result<()> {
        if self.index.at_start {
            return Ok(());
        }
        let end = self.index.range(all).offset;
        match ranges.iter().find(|r| r.offset.checked_add(r.length).is_none_or(|last| last > end)) {
            Some(r) => Err(Error::corrupt(
                format!("{} of {}", self.key, self.opened.store.name()),
                r.offset,
                format!("{} bytes reach into what lies behind the chunks, from {end:#x}", r.length),
            )),
            None => Ok(()),
        }
    }

    /// Reads `ranges`; with the first of them the index once more, which must be the one by which they were found.
    fn read_proven(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        loop {
            let (source, is_new) = self.opened.source(&self.key)?;
            let all = source.len()?;
            if self.is_proven(&source) {
                self.check(ranges, all)?;
                return source.read(ranges);
            }
            let checked = self.check(ranges, all);
            let mut wanted = if checked.is_ok() { ranges.to_vec() } else { Vec::new() };
            wanted.push(self.index.range(all));
            let mut answers = source.read(&wanted)?;
            if answers.pop().is_some_and(|index| digest(&index) == self.index.digest) {
                *self.proven.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(&source));
                return checked.map(|()| answers);
            }
            self.opened.sources.remove(&self.key);
            if is_new {
                let text =
                    format!("{} of {} was changed while it was read", self.key, self.opened.store.name());
                return Err(Error::new(ErrorKind::Changed, text).hint("open it again"));
            }
            // It was open since before the index was read.
        }
    }
}

impl Source for Object {
    fn len(&self) -> Result<u64> {
        let all = self.opened.source(&self.key)?.0.len()?;
        Ok(if self.index.at_start { all } else { self.index.range(all).offset })
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        self.read_proven(ranges)
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let (source, _) = self.opened.source(&self.key)?;
        let range = ByteRange::new(offset, buffer.len() as u64);
        if self.is_proven(&source) {
            self.check(&[range], source.len()?)?;
            return source.read_into(offset, buffer);
        }
        let bytes = self.read_proven(&[range])?.pop().unwrap_or_default();
        let short = || Error::new(ErrorKind::Io, "the source gave another number of bytes");
        let bytes = bytes.get(..buffer.len()).filter(|b| b.len() == bytes.len()).ok_or_else(short)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        self.opened.store.hints()
    }

    fn id(&self) -> Result<String> {
        self.opened.source(&self.key)?.0.id()
    }

    fn name(&self) -> String {
        format!("{} of {}", self.key, self.opened.store.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::MemoryStore;
    use crate::source::store::Precondition;

    #[test]
    fn chunks_are_read_only_behind_the_index_by_which_they_were_found() {
        for at_start in [false, true] {
            let store = Arc::new(MemoryStore::new());
            let put = |bytes: &'static [u8]| {
                store.put("s", Bytes::from_static(bytes), &Precondition::None).unwrap();
            };
            let (chunks, index): (u64, &[u8]) = if at_start { (2, b"ix") } else { (0, b"cd") };
            put(if at_start { b"ixabcd" } else { b"abcd" });
            let opened = Opened::new(store.clone());
            let shard = opened.shard("s".into(), IndexRead::new(index, at_start));
            let one = [ByteRange::new(chunks, 1)];
            assert_eq!(shard.read(&one).unwrap(), [Bytes::from_static(b"a")]);
            // What is open stays as it was.
            put(b"ABCDEF");
            assert_eq!(shard.read(&one).unwrap(), [Bytes::from_static(b"a")]);
            // An index that was read since then belongs to what is there now.
            let new: &[u8] = if at_start { b"AB" } else { b"EF" };
            let shard = opened.shard("s".into(), IndexRead::new(new, at_start));
            let mut letter = [0];
            shard.read_into(chunks, &mut letter).unwrap();
            assert_eq!(letter[0], if at_start { b'C' } else { b'A' });
            // The old one belongs to nothing any more.
            let shard = opened.shard("s".into(), IndexRead::new(index, at_start));
            for _ in 0..2 {
                assert_eq!(shard.read(&one).unwrap_err().kind(), ErrorKind::Changed);
                assert_eq!(shard.read_into(chunks, &mut letter).unwrap_err().kind(), ErrorKind::Changed);
            }
        }
    }
}
