//! An object of a store as a source of bytes that is opened when it is read.

use crate::error::{Error, ErrorKind, Result};
use crate::source::store::Store;
use crate::source::{ByteRange, ReadHints, Source};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::sync::Arc;

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

    /// The object of `key` but for the last `behind` bytes, as a source that needs nothing until it is read.
    pub(super) fn object(self: &Arc<Self>, key: Arc<str>, behind: u64) -> Arc<dyn Source> {
        Arc::new(Object { opened: self.clone(), key, behind })
    }
}

#[derive(Debug)]
struct Object {
    opened: Arc<Opened>,
    key: Arc<str>,
    /// Bytes at the end that are no part of the source.
    behind: u64,
}

impl Object {
    /// Fails if a range has bytes that are no part of the source. What is beyond the object itself is said when it is
    /// read.
    fn check(&self, ranges: &[ByteRange]) -> Result<()> {
        if self.behind == 0 {
            return Ok(());
        }
        let end = self.len()?;
        match ranges.iter().find(|r| r.offset.checked_add(r.length).is_none_or(|last| last > end)) {
            Some(r) => Err(Error::corrupt(
                format!("{} of {}", self.key, self.opened.store.name()),
                r.offset,
                format!("{} bytes reach into what lies behind the chunks, from {end:#x}", r.length),
            )),
            None => Ok(()),
        }
    }

    fn source(&self) -> Result<Arc<dyn Source>> {
        if let Some(open) = self.opened.sources.get(&self.key) {
            return Ok(open);
        }
        let open = self.opened.store.open(&self.key)?;
        let open = open.ok_or_else(|| {
            Error::new(
                ErrorKind::Changed,
                format!("{} is no longer in {}", self.key, self.opened.store.name()),
            )
        })?;
        self.opened.sources.insert(self.key.clone(), open.clone());
        Ok(open)
    }
}

impl Source for Object {
    fn len(&self) -> Result<u64> {
        Ok(self.source()?.len()?.saturating_sub(self.behind))
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        self.check(ranges)?;
        self.source()?.read(ranges)
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.check(&[ByteRange::new(offset, buffer.len() as u64)])?;
        self.source()?.read_into(offset, buffer)
    }

    fn hints(&self) -> ReadHints {
        self.opened.store.hints()
    }

    fn id(&self) -> Result<String> {
        self.source()?.id()
    }

    fn name(&self) -> String {
        format!("{} of {}", self.key, self.opened.store.name())
    }
}
