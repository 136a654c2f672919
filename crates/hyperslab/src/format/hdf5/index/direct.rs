//! Indexes that are no structure of their own: the layout message says it all.

use super::entry::Entry;
use super::grid::{Grid, Slots};
use super::{Cost, Found, Lookup};
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::file::Space;
use crate::shape::Coord;

/// The one chunk of an array.
#[derive(Debug)]
pub(super) struct Single {
    pub(super) entry: Entry,
    pub(super) rank: usize,
}

impl Lookup for Single {
    fn walk(&self, visit: Found<'_>, _: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        visit(&Coord::from_elem(0, self.rank), self.entry)
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        Ok(chunk.iter().all(|&c| c == 0).then_some(self.entry))
    }

    fn cost(&self) -> Cost {
        Cost::Nothing
    }
}

/// Unfiltered chunks in a row, one for each of the maximum extents.
#[derive(Debug)]
pub(super) struct Implicit {
    pub(super) space: Space,
    pub(super) address: u64,
    pub(super) grid: Grid,
    pub(super) slots: Slots,
}

impl Lookup for Implicit {
    fn walk(&self, visit: Found<'_>, _: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        // All chunks lie in the file, so that there are not more of them than it has bytes.
        let count = self.grid.count().filter(|&n| n <= self.space.end());
        let count = count.ok_or_else(|| {
            Error::new(ErrorKind::Truncated, "an implicit index of more chunks than the file has bytes")
        })?;
        for number in 0..count {
            let chunk = self.grid.chunk_of(number);
            if let Some(entry) = self.find(&chunk)? {
                visit(&chunk, entry)?;
            }
        }
        Ok(())
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        let length = self.grid.chunk_bytes();
        let address = self.slots.slot(chunk).and_then(|s| self.address.checked_add(s.checked_mul(length)?));
        match address {
            Some(address) => Ok(Some(Entry { address, length, mask: 0 })),
            None => Err(Error::new(ErrorKind::Truncated, "the chunk lies beyond 2^64")),
        }
    }

    fn cost(&self) -> Cost {
        Cost::Nothing
    }
}
