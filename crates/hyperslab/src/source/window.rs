//! A part of a source as a source.

use super::memory::past_end;
use super::{ByteRange, ReadHints, Source, Traffic};
use crate::error::Result;
use bytes::Bytes;
use std::sync::Arc;

/// A run of bytes of another source, which begins at 0 again.
#[derive(Clone, Debug)]
pub struct Window {
    inner: Arc<dyn Source>,
    part: ByteRange,
    name: String,
}

impl Window {
    /// The bytes `part` of `inner`, called `name` in messages.
    pub fn new(inner: Arc<dyn Source>, part: ByteRange, name: impl Into<String>) -> Self {
        Window { inner, part, name: name.into() }
    }

    fn moved(&self, range: ByteRange) -> Result<ByteRange> {
        let inside = range.end().is_some_and(|end| end <= self.part.length);
        match self.part.offset.checked_add(range.offset) {
            Some(offset) if inside => Ok(ByteRange::new(offset, range.length)),
            _ => Err(past_end(range, self.part.length)),
        }
    }
}

impl Source for Window {
    fn len(&self) -> Result<u64> {
        Ok(self.part.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let moved: Vec<_> = ranges.iter().map(|&range| self.moved(range)).collect::<Result<_>>()?;
        self.inner.read(&moved)
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = self.moved(ByteRange::new(offset, buffer.len() as u64))?;
        self.inner.read_into(range.offset, buffer)
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }

    fn id(&self) -> Result<String> {
        Ok(format!("{}@{}", self.inner.id()?, self.part))
    }

    fn is_current(&self) -> Result<bool> {
        self.inner.is_current()
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
}
