//! The local heap: link names of an old-style group (specification, III.D).

use crate::error::{Error, Result};
use crate::format::hdf5::file::Space;
use bytes::Bytes;

const HEAP: &str = "local heap";
const DATA: &str = "local heap data segment";

/// A local heap with its data segment in memory.
#[derive(Clone, Debug)]
pub struct LocalHeap {
    address: u64,
    data: Bytes,
    /// File offset of the data segment, for messages.
    data_at: u64,
}

impl LocalHeap {
    /// Reads the heap whose header is at `address`, with its data segment.
    pub fn open(space: &Space, address: u64) -> Result<Self> {
        let sizes = space.sizes();
        let length = 8 + 2 * u64::from(sizes.length) + u64::from(sizes.offset);
        let bytes = space.read(HEAP, address, length)?;
        let mut c = space.cursor(&bytes, HEAP, address);
        c.signature(b"HEAP")?;
        let version = c.u8()?;
        if version != 0 {
            return Err(c.corrupt(format!("version {version}, only 0 is known")));
        }
        c.skip(3)?;
        let size = c.length(sizes)?;
        // The list of free blocks matters to writers only.
        c.length(sizes)?;
        let segment = c.address(sizes)?;
        if size == 0 {
            return Ok(LocalHeap { address, data: Bytes::new(), data_at: segment });
        }
        let data = space.read(DATA, segment, size)?;
        Ok(LocalHeap { address, data, data_at: space.base().saturating_add(segment) })
    }

    /// Address of the heap's header.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The text at `offset` of the data segment, without its NUL.
    pub fn text(&self, offset: u64) -> Result<&[u8]> {
        let rest = usize::try_from(offset).ok().and_then(|o| self.data.get(o..));
        let text = rest.and_then(|r| r.iter().position(|&b| b == 0).and_then(|n| r.get(..n)));
        text.ok_or_else(|| {
            Error::corrupt(
                DATA,
                self.data_at,
                format!("no terminated text at {offset} of {} bytes", self.data.len()),
            )
        })
    }
}
