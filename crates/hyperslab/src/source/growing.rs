//! An object of a store as a source that is read as it is at the moment.

use super::{ByteRange, ReadHints, Source, Store, Traffic};
use crate::error::{Error, ErrorKind, Result};
use crate::source::store::Get;
use bytes::Bytes;
use std::sync::Arc;

/// An object that somebody else is writing: no state of it is pinned, and nothing of it is kept.
#[derive(Clone, Debug)]
pub struct GrowingSource {
    store: Arc<dyn Store>,
    key: String,
}

impl GrowingSource {
    /// The object `key` of `store`.
    pub fn new(store: Arc<dyn Store>, key: impl Into<String>) -> Self {
        GrowingSource { store, key: key.into() }
    }

    fn gone(&self) -> Error {
        Error::new(ErrorKind::NotFound, format!("there is no {} in {}", self.key, self.store.name()))
    }
}

impl Source for GrowingSource {
    fn len(&self) -> Result<u64> {
        self.store.len(&self.key)?.ok_or_else(|| self.gone())
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let gets: Vec<Get> = ranges.iter().map(|&range| Get::range(self.key.as_str(), range)).collect();
        let answers = self.store.get_many(&gets).into_iter();
        answers.map(|answer| answer?.ok_or_else(|| self.gone())).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = ByteRange::new(offset, buffer.len() as u64);
        match self.read(&[range])?.first() {
            Some(bytes) if bytes.len() == buffer.len() => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Io, "the store gave no answer")),
        }
    }

    fn hints(&self) -> ReadHints {
        self.store.hints()
    }

    fn id(&self) -> Result<String> {
        let version = self.store.version(&self.key)?.ok_or_else(|| self.gone())?;
        Ok(format!("{}/{}:{version}", self.store.name(), self.key))
    }

    fn name(&self) -> String {
        format!("{}/{}", self.store.name(), self.key)
    }

    fn traffic(&self) -> Traffic {
        self.store.traffic()
    }
}
