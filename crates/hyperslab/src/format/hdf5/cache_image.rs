//! The metadata cache image (specification, "metadata cache image block"): a file closed with one has its newest
//! metadata there and not where addresses point. The image is laid over the source, so that no parser needs to know.

use super::file::Space;
use super::message::extension::CacheImage;
use crate::error::{Error, ErrorKind, Result};
use crate::source::{ByteRange, ReadHints, Source, Traffic};
use bytes::Bytes;
use std::sync::Arc;

const IMAGE: &str = "metadata cache image";

/// A source with parts laid over it.
#[derive(Debug)]
pub struct Overlay {
    inner: Arc<dyn Source>,
    /// Offset in the source and bytes, sorted, none overlapping another.
    parts: Vec<(u64, Bytes)>,
}

impl Overlay {
    /// Lays the image in `space` over its metadata source `inner`.
    pub fn open(space: &Space, inner: Arc<dyn Source>, image: CacheImage) -> Result<Overlay> {
        let bytes = space.read(IMAGE, image.address, image.length)?;
        let sizes = space.sizes();
        let mut c = space.cursor(&bytes, IMAGE, image.address);
        c.signature(b"MDCI")?;
        let version = c.u8()?;
        if version != 0 {
            return Err(Error::unsupported(format!("metadata cache image version {version}")));
        }
        let _flags = c.u8()?;
        let _length = c.length(sizes)?;
        let count = c.u32()?;
        let mut parts = Vec::new();
        for _ in 0..count {
            // Type, flags, ring, age, flush dependencies, rank: of use to writers.
            c.skip(8)?;
            let parents = usize::from(c.u16()?);
            c.skip(4)?;
            let address = c.address(sizes)?;
            let length = c.length(sizes)?;
            c.skip(parents * usize::from(sizes.offset))?;
            let start = c.position();
            let part = c.take_u64(length)?;
            if part.is_empty() {
                return Err(c.corrupt("an entry of zero bytes"));
            }
            // The structure may lie behind what was ever written of the file, but not behind the largest offset.
            let offset = space.base().checked_add(address).filter(|o| o.checked_add(length).is_some());
            let offset = offset.ok_or_else(|| c.corrupt(format!("an entry for address {address:#x}")))?;
            parts.push((offset, bytes.slice(start..start + part.len())));
        }
        let end = bytes.len().saturating_sub(4);
        c.skip(end.saturating_sub(c.position()))?;
        c.checksum()?;
        parts.sort_by_key(|(offset, _)| *offset);
        let overlap = |pair: &[(u64, Bytes)]| match pair {
            [(a, bytes), (b, _)] => a + bytes.len() as u64 > *b,
            _ => false,
        };
        if parts.windows(2).any(overlap) {
            return Err(c.corrupt("two entries for the same bytes"));
        }
        Ok(Overlay { inner, parts })
    }

    /// The parts that touch `range`.
    fn touching(&self, range: ByteRange) -> &[(u64, Bytes)] {
        let end = range.offset.saturating_add(range.length);
        let first = self.parts.partition_point(|(offset, bytes)| offset + bytes.len() as u64 <= range.offset);
        let behind = self.parts.partition_point(|(offset, _)| *offset < end);
        self.parts.get(first..behind).unwrap_or_default()
    }

    fn lay(&self, range: ByteRange, buffer: &mut [u8]) {
        for (offset, bytes) in self.touching(range) {
            let low = (*offset).max(range.offset);
            let high = (offset + bytes.len() as u64).min(range.offset.saturating_add(range.length));
            // All within the buffer's or the part's length.
            let to = (low - range.offset) as usize..(high - range.offset) as usize;
            let from = (low - offset) as usize..(high - offset) as usize;
            if let (Some(to), Some(from)) = (buffer.get_mut(to), bytes.get(from)) {
                to.copy_from_slice(from);
            }
        }
    }
}

impl Source for Overlay {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let read = self.inner.read(ranges)?;
        if read.len() != ranges.len() {
            return Err(Error::new(ErrorKind::Io, "the source gave too few answers"));
        }
        let lay = |(bytes, &range): (Bytes, &ByteRange)| {
            if self.touching(range).is_empty() {
                return bytes;
            }
            let mut bytes = Vec::from(bytes);
            self.lay(range, &mut bytes);
            Bytes::from(bytes)
        };
        Ok(read.into_iter().zip(ranges).map(lay).collect())
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.inner.read_into(offset, buffer)?;
        self.lay(ByteRange::new(offset, buffer.len() as u64), buffer);
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }

    fn id(&self) -> Result<String> {
        self.inner.id()
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
}
