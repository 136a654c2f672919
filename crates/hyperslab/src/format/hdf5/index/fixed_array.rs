//! The fixed array: one entry for each chunk of the maximum extents, in pages where there are many (specification,
//! VII.C).

use super::entry::{Entry, EntryFormat};
use super::grid::{Grid, Slots};
use super::owner::Owner;
use super::{Cost, Found, Lookup, page_is_written};
use crate::error::{Context, Error, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::UNDEFINED;
use bytes::Bytes;

const HEADER: &str = "fixed array header";
const BLOCK: &str = "fixed array data block";
const PAGE: &str = "fixed array page";

/// A fixed array, its header read.
#[derive(Debug)]
pub(super) struct FixedArray {
    space: Space,
    owner: Owner,
    format: EntryFormat,
    slots: Slots,
    /// Entries in all.
    count: u64,
    /// Entries of a page; the last page may have fewer.
    page: u64,
    block: u64,
}

/// The data block without its pages.
struct Block {
    bytes: Bytes,
    /// Where entries start if there are no pages, or the bitmap of written pages if there are.
    body: usize,
    /// Address of the first page.
    pages: u64,
}

impl FixedArray {
    pub(super) fn open(space: &Space, address: u64, grid: &Grid) -> Result<Self> {
        let sizes = space.sizes();
        let length = 12 + u64::from(sizes.length) + u64::from(sizes.offset);
        let bytes = space.read(HEADER, address, length)?;
        let mut c = space.cursor(&bytes, HEADER, address).sealed();
        let (owner, size) = Owner::parse(&mut c, b"FAHD", address)?;
        let page_bits = u32::from(c.u8()?);
        let count = c.length(sizes)?;
        let block = c.address(sizes)?;
        c.checksum()?;
        let at = space.base().saturating_add(address);
        let format = owner.entries(&c, space, size, grid.chunk_bytes())?;
        let page = 1u64
            .checked_shl(page_bits)
            .ok_or_else(|| c.corrupt(format!("pages of 2^{page_bits} entries")))?;
        let slots = grid.fixed().at(HEADER, at)?;
        Ok(FixedArray { space: space.clone(), owner, format, slots, count, page, block })
    }

    fn paged(&self) -> bool {
        self.count > self.page
    }

    /// Bytes of `entries` entries and the checksum behind them.
    fn sealed(&self, entries: u64) -> Option<u64> {
        entries.checked_mul(self.format.size() as u64)?.checked_add(4)
    }

    fn data_block(&self) -> Result<Block> {
        let sizes = self.space.sizes();
        let head = Owner::head_size(sizes);
        let at = self.space.base().saturating_add(self.block);
        let body = if self.paged() {
            self.count.div_ceil(self.page).div_ceil(8).checked_add(4)
        } else {
            self.sealed(self.count)
        };
        let length = body.and_then(|b| b.checked_add(head));
        let length = length.ok_or_else(|| Error::corrupt(BLOCK, at, format!("{} entries", self.count)))?;
        let bytes = self.space.read(BLOCK, self.block, length)?;
        let mut c = self.space.cursor(&bytes, BLOCK, self.block).sealed();
        self.owner.check(&mut c, b"FADB", sizes)?;
        let body = c.position();
        Ok(Block { bytes, body, pages: self.block.saturating_add(length) })
    }

    /// The address and the number of entries of page `i`.
    fn page(&self, block: &Block, i: u64) -> Option<(u64, u64)> {
        let start = i.checked_mul(self.sealed(self.page)?)?;
        let first = i.checked_mul(self.page)?;
        Some((block.pages.checked_add(start)?, self.page.min(self.count.checked_sub(first)?)))
    }

    fn read_page(&self, block: &Block, i: u64) -> Result<(u64, Bytes)> {
        let at = self.space.base().saturating_add(block.pages);
        let wrong = || Error::corrupt(PAGE, at, format!("there is no page {i}"));
        let (address, entries) = self.page(block, i).ok_or_else(wrong)?;
        let length = self.sealed(entries).ok_or_else(wrong)?;
        let bytes = self.space.read(PAGE, address, length)?;
        let mut c = self.space.cursor(&bytes, PAGE, address);
        c.skip(bytes.len().saturating_sub(4))?;
        c.checksum()?;
        Ok((address, bytes))
    }
}

impl Lookup for FixedArray {
    fn walk(&self, visit: Found<'_>, fault: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        if self.block == UNDEFINED {
            return Ok(());
        }
        let block = match self.data_block() {
            Ok(block) => block,
            Err(e) => return fault(e),
        };
        if !self.paged() {
            let mut c = self.space.cursor(&block.bytes, BLOCK, self.block);
            c.skip(block.body)?;
            for slot in 0..self.count {
                if let Some(entry) = self.format.parse(&mut c)? {
                    visit(&self.slots.chunk(slot), entry)?;
                }
            }
            return Ok(());
        }
        for i in 0..self.count.div_ceil(self.page) {
            if !page_is_written(block.bytes.get(block.body..), i) {
                continue;
            }
            let (address, bytes) = match self.read_page(&block, i) {
                Ok(page) => page,
                Err(e) => {
                    fault(e)?;
                    continue;
                }
            };
            let mut c = self.space.cursor(&bytes, PAGE, address);
            let mut slot = i * self.page;
            while c.remaining() > 4 {
                if let Some(entry) = self.format.parse(&mut c)? {
                    visit(&self.slots.chunk(slot), entry)?;
                }
                slot += 1;
            }
        }
        Ok(())
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        let Some(slot) = self.slots.slot(chunk).filter(|&slot| slot < self.count && self.block != UNDEFINED)
        else {
            return Ok(None);
        };
        let block = self.data_block()?;
        if !self.paged() {
            let mut c = self.space.cursor(&block.bytes, BLOCK, self.block);
            c.skip(block.body)?;
            c.take_u64(slot.saturating_mul(self.format.size() as u64))?;
            return self.format.parse(&mut c);
        }
        let i = slot / self.page;
        if !page_is_written(block.bytes.get(block.body..), i) {
            return Ok(None);
        }
        let (address, bytes) = self.read_page(&block, i)?;
        let mut c = self.space.cursor(&bytes, PAGE, address);
        c.take_u64((slot % self.page).saturating_mul(self.format.size() as u64))?;
        self.format.parse(&mut c)
    }

    fn cost(&self) -> Cost {
        if self.paged() { Cost::Part } else { Cost::All }
    }
}
