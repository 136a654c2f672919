//! Where the bytes of a file go.

use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use crate::source::{ByteRange, Latency, ReadHints, Source, WriteFile};
use bytes::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One growable run of bytes that is read as it is now. Nothing of what is written is seen by others before the commit.
pub trait Target: Source {
    /// Writes bytes at `offset`; behind the end it grows, and what lies between is zeros.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Cuts it, or makes it longer by zeros.
    fn set_len(&self, length: u64) -> Result<()>;

    /// Makes everything durable and seen, all or nothing.
    fn commit(&self) -> Result<()>;
}

/// A file in memory.
#[derive(Debug, Default)]
pub struct MemoryTarget {
    bytes: Mutex<Vec<u8>>,
}

impl MemoryTarget {
    /// A file of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        MemoryTarget { bytes: Mutex::new(bytes) }
    }

    /// A copy of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for MemoryTarget {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().len() as u64)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let one = |range: &ByteRange| {
            let bytes = self.lock();
            let end = range.end().filter(|&end| end <= bytes.len() as u64);
            let found = end.and_then(|end| bytes.get(range.offset as usize..end as usize));
            found.map(Bytes::copy_from_slice).ok_or_else(|| beyond(range, bytes.len()))
        };
        ranges.iter().map(one).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let bytes = self.lock();
        let range = ByteRange::new(offset, buffer.len() as u64);
        let end = range.end().filter(|&end| end <= bytes.len() as u64);
        match end.and_then(|end| bytes.get(offset as usize..end as usize)) {
            Some(found) => {
                buffer.copy_from_slice(found);
                Ok(())
            }
            None => Err(beyond(&range, bytes.len())),
        }
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 0, max_merged: 16 << 20, concurrency: 1, latency: Latency::Memory }
    }

    fn id(&self) -> Result<String> {
        Ok(format!("memory:{:p}:{}", self, self.lock().len()))
    }

    fn name(&self) -> String {
        "a file in memory".into()
    }
}

/// Cuts or extends to `length` bytes, if there is so much memory.
fn grow(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    let more = length.saturating_sub(bytes.len());
    bytes
        .try_reserve(more)
        .map_err(|_| Error::limit("bytes in memory", length as u128, bytes.len() as u128))?;
    bytes.resize(length, 0);
    Ok(())
}

fn beyond(range: &ByteRange, length: usize) -> Error {
    Error::new(ErrorKind::Truncated, format!("{range} reaches beyond the {length} bytes of a file in memory"))
}

impl Target for MemoryTarget {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = to_usize(offset.saturating_add(bytes.len() as u64))?;
        let mut held = self.lock();
        if held.len() < end {
            grow(&mut held, end)?;
        }
        if let Some(place) = held.get_mut(end - bytes.len()..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        grow(&mut self.lock(), to_usize(length)?)
    }

    fn commit(&self) -> Result<()> {
        Ok(())
    }
}

impl Target for WriteFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        WriteFile::write_at(self, offset, bytes)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        WriteFile::set_len(self, length)
    }

    fn commit(&self) -> Result<()> {
        WriteFile::commit(self)
    }
}
