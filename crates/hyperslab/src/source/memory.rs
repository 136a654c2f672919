//! Bytes in memory as a source.

use super::{ByteRange, Latency, ReadHints, Source};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;

/// Bytes that are in memory.
#[derive(Clone, Debug)]
pub struct MemorySource {
    bytes: Bytes,
    name: String,
}

impl MemorySource {
    /// A source over `bytes`, called `name` in messages.
    pub fn new(bytes: impl Into<Bytes>, name: impl Into<String>) -> Self {
        MemorySource { bytes: bytes.into(), name: name.into() }
    }

    fn slice(&self, range: ByteRange) -> Result<Bytes> {
        match range.end() {
            Some(end) if end <= self.bytes.len() as u64 => {
                // Both fit: they are at most the length of the buffer.
                Ok(self.bytes.slice(range.offset as usize..end as usize))
            }
            _ => Err(past_end(range, self.bytes.len() as u64)),
        }
    }
}

/// The error for a range that is not all there.
pub(super) fn past_end(range: ByteRange, length: u64) -> Error {
    Error::new(
        ErrorKind::Truncated,
        format!(
            "{} bytes wanted at {:#x}, but there are only {length} bytes in all",
            range.length, range.offset
        ),
    )
}

impl Source for MemorySource {
    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|&r| self.slice(r)).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        buffer.copy_from_slice(&self.slice(ByteRange::new(offset, buffer.len() as u64))?);
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 0, max_merged: 16 << 20, concurrency: 1, latency: Latency::Memory }
    }

    fn id(&self) -> Result<String> {
        Ok(format!("memory:{:p}:{}", self.bytes.as_ptr(), self.bytes.len()))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
