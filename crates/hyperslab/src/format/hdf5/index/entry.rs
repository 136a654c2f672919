//! What an index says of one chunk, and the table of all of them.

use crate::error::Result;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Address of its first byte.
    pub(super) address: u64,
    /// Encoded length in bytes.
    pub(super) length: u64,
    /// Bit *i*: filter *i* was skipped.
    pub(super) mask: u32,
}

/// How entries are stored in fixed arrays, extensible arrays and version 2 B-trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryFormat {
    sizes: Sizes,
    /// Bytes of the encoded length, where chunks are filtered.
    width: Option<usize>,
    /// Bytes of a decoded chunk.
    chunk_bytes: u64,
}

impl EntryFormat {
    /// Entries of `size` bytes. The width of the encoded length follows: it depends on the version of the layout
    /// message, but is what an entry has beside address and mask.
    pub(super) fn new(sizes: Sizes, filtered: bool, size: usize, chunk_bytes: u64) -> Option<Self> {
        let rest = size.checked_sub(sizes.offset.into())?;
        let width = match filtered {
            true => Some(rest.checked_sub(4).filter(|w| (1..=8).contains(w))?),
            false if rest == 0 => None,
            false => return None,
        };
        Some(EntryFormat { sizes, width, chunk_bytes })
    }

    /// Bytes of an entry.
    pub(super) fn size(&self) -> usize {
        usize::from(self.sizes.offset) + self.width.map_or(0, |w| w + 4)
    }

    /// Reads an entry; `None` for a chunk that was never written.
    pub(super) fn parse(&self, c: &mut Cursor<'_>) -> Result<Option<Entry>> {
        let address = c.address(self.sizes)?;
        let (length, mask) = match self.width {
            Some(width) => (c.uint(width)?, c.u32()?),
            None => (self.chunk_bytes, 0),
        };
        Ok((address != UNDEFINED).then_some(Entry { address, length, mask }))
    }
}

/// All stored chunks of an array by their number in C order.
#[derive(Debug)]
pub(super) struct Table {
    /// Sorted by number, once sealed.
    chunks: Vec<(u64, Entry)>,
    /// Where the next lookup probably finds its answer: lookups come in C order.
    next: AtomicUsize,
    /// Chunks that the metadata budget was charged for.
    charged: usize,
    space: Space,
}

impl Table {
    /// Chunks charged for at a time.
    const STEP: usize = 4096;

    /// An empty table. What it holds is taken from the metadata budget, and given back when it is dropped.
    pub(super) fn new(space: &Space) -> Self {
        Table { chunks: Vec::new(), next: AtomicUsize::new(0), charged: 0, space: space.clone() }
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, number: u64, entry: Entry) -> Result<()> {
        if self.chunks.len() >= self.charged {
            self.space.budget().charge(Self::bytes(Self::STEP))?;
            self.charged += Self::STEP;
        }
        self.chunks.push((number, entry));
        Ok(())
    }

    /// Makes the table ready for lookups.
    pub(super) fn sealed(mut self) -> Self {
        if !self.chunks.is_sorted_by_key(|c| c.0) {
            self.chunks.sort_by_key(|c| c.0);
        }
        self
    }

    /// The chunk with this number.
    pub(super) fn get(&self, number: u64) -> Option<Entry> {
        let guess = self.next.load(Ordering::Relaxed);
        let at = match self.chunks.get(guess) {
            Some(chunk) if chunk.0 == number => guess,
            _ => self.chunks.binary_search_by_key(&number, |c| c.0).ok()?,
        };
        self.next.store(at + 1, Ordering::Relaxed);
        self.chunks.get(at).map(|c| c.1)
    }

    fn bytes(chunks: usize) -> u64 {
        (chunks * size_of::<(u64, Entry)>()) as u64
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.space.budget().refund(Self::bytes(self.charged));
    }
}
