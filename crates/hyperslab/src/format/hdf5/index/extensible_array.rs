//! The extensible array: entries for chunks of an array with one unlimited extent (specification, VII.D).
//!
//! Entries lie in the index block, then in data blocks whose addresses are in the index block, then in data blocks whose
//! addresses are in secondary blocks. Data blocks come in groups, one for each secondary block (the first groups have
//! none, their addresses are in the index block); the groups double in size, by more blocks and by larger blocks in turn.
//! Data blocks larger than a page are read by page.

use super::entry::{Entry, EntryFormat};
use super::grid::{Grid, Slots};
use super::owner::Owner;
use super::{Found, Lookup, page_is_written};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::{Cursor, UNDEFINED};
use crate::shape::to_usize;
use bytes::Bytes;

const HEADER: &str = "extensible array header";
const INDEX: &str = "extensible array index block";
const SECONDARY: &str = "extensible array secondary block";
const DATA: &str = "extensible array data block";
const PAGE: &str = "extensible array page";

/// The numbers that fix where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format::hdf5) struct Geometry {
    /// Entries in the index block.
    pub(in crate::format::hdf5) direct: u64,
    /// Entries of the smallest data blocks.
    pub(in crate::format::hdf5) smallest: u64,
    /// Groups of data blocks whose addresses are in the index block.
    pub(in crate::format::hdf5) near_groups: u32,
    /// Groups in all.
    pub(in crate::format::hdf5) groups: u32,
    /// Entries of a page.
    pub(in crate::format::hdf5) page: u64,
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format::hdf5) enum Place {
    /// In the index block, at this entry.
    Direct(u64),
    /// In a data block.
    Block {
        /// Group of the data block.
        group: u32,
        /// Number of the data block in its group.
        block: u64,
        /// Entry in the data block.
        entry: u64,
    },
}

impl Geometry {
    fn parse(c: &mut Cursor<'_>) -> Result<(Self, u32)> {
        let (max_bits, direct, smallest, pointers, page_bits) = (c.u8()?, c.u8()?, c.u8()?, c.u8()?, c.u8()?);
        let geometry = Geometry::from_parameters(max_bits, direct, smallest, pointers, page_bits);
        Ok((geometry.map_err(|e| c.corrupt(e.message().to_owned()))?, max_bits.into()))
    }

    /// What follows from the parameters in the header and in the layout message.
    pub(in crate::format::hdf5) fn from_parameters(
        max_bits: u8,
        direct: u8,
        smallest: u8,
        pointers: u8,
        page_bits: u8,
    ) -> Result<Self> {
        let wrong = |text: String| Err(Error::new(ErrorKind::Corrupt, text));
        if !smallest.is_power_of_two() || !pointers.is_power_of_two() {
            return wrong(format!(
                "data blocks of {smallest} entries and secondary blocks of {pointers} blocks are no powers of two"
            ));
        }
        let max_bits = u32::from(max_bits);
        if !(1..=64).contains(&max_bits) || smallest.ilog2() > max_bits || page_bits >= 64 {
            return wrong(format!("2^{max_bits} entries at most, in pages of 2^{page_bits}"));
        }
        let near_groups = 2 * pointers.ilog2();
        let groups = 1 + max_bits - smallest.ilog2();
        if near_groups > groups {
            return wrong(format!("{near_groups} of {groups} groups of data blocks in the index block"));
        }
        let page = 1 << page_bits;
        Ok(Geometry { direct: direct.into(), smallest: smallest.into(), near_groups, groups, page })
    }

    /// Data blocks in a group.
    pub(in crate::format::hdf5) fn blocks(&self, group: u32) -> u64 {
        // Groups are fewer than 66.
        1 << (group / 2).min(63)
    }

    /// Entries in each data block of a group.
    pub(in crate::format::hdf5) fn entries(&self, group: u32) -> u64 {
        self.smallest.saturating_mul(1 << group.div_ceil(2).min(63))
    }

    /// First slot of a group; `None` at 2^64.
    pub(in crate::format::hdf5) fn first(&self, group: u32) -> Option<u64> {
        let before = 1u64.checked_shl(group)?.checked_sub(1)?;
        self.direct.checked_add(self.smallest.checked_mul(before)?)
    }

    /// Where slot `slot` lies; `None` beyond the last group.
    pub(in crate::format::hdf5) fn place(&self, slot: u64) -> Option<Place> {
        let Some(behind) = slot.checked_sub(self.direct) else { return Some(Place::Direct(slot)) };
        let group = (behind / self.smallest).checked_add(1)?.ilog2();
        if group >= self.groups {
            return None;
        }
        let within = slot - self.first(group)?;
        let entries = self.entries(group);
        Some(Place::Block { group, block: within / entries, entry: within % entries })
    }

    /// Pages of each data block of a group; 0 if they are not paged.
    pub(in crate::format::hdf5) fn pages(&self, group: u32) -> u64 {
        let entries = self.entries(group);
        if entries > self.page { entries / self.page } else { 0 }
    }

    /// Addresses of data blocks in the index block.
    fn near_blocks(&self) -> u64 {
        (0..self.near_groups).map(|g| self.blocks(g)).sum()
    }
}

/// An extensible array, its header read.
#[derive(Debug)]
pub(super) struct ExtensibleArray {
    space: Space,
    owner: Owner,
    format: EntryFormat,
    slots: Slots,
    geometry: Geometry,
    /// Bytes of a slot number in blocks.
    number_size: usize,
    index: u64,
}

/// The index block.
struct IndexBlock {
    bytes: Bytes,
    /// Where its entries start.
    entries: usize,
    /// Addresses of data blocks, groups in order.
    near: Vec<u64>,
    /// Addresses of secondary blocks, from group `near_groups` on.
    secondary: Vec<u64>,
}

/// A data block that can be read.
struct DataBlock<'a> {
    address: u64,
    group: u32,
    /// First slot.
    first: u64,
    /// The bitmap of written pages of its group, and the number of its first page in it.
    written: Option<(&'a [u8], u64)>,
}

/// A secondary block.
struct Secondary {
    bytes: Bytes,
    bitmap: std::ops::Range<usize>,
    blocks: Vec<u64>,
}

impl ExtensibleArray {
    pub(super) fn open(space: &Space, address: u64, grid: &Grid) -> Result<Self> {
        let sizes = space.sizes();
        let length = 16 + 6 * u64::from(sizes.length) + u64::from(sizes.offset);
        let bytes = space.read(HEADER, address, length)?;
        let mut c = space.cursor(&bytes, HEADER, address).sealed();
        let (owner, size) = Owner::parse(&mut c, b"EAHD", address)?;
        let (geometry, max_bits) = Geometry::parse(&mut c)?;
        // Blocks and entries made so far: which ones, the addresses tell.
        for _ in 0..6 {
            c.length(sizes)?;
        }
        let index = c.address(sizes)?;
        c.checksum()?;
        let format = owner.entries(&c, space, size, grid.chunk_bytes())?;
        let slots = grid.unlimited().at(HEADER, space.base().saturating_add(address))?;
        let number_size = max_bits.div_ceil(8) as usize;
        Ok(ExtensibleArray { space: space.clone(), owner, format, slots, geometry, number_size, index })
    }

    /// The number of a block's first slot, behind those in the index block.
    fn block_number(&self, c: &mut Cursor<'_>, first: u64) -> Result<()> {
        let wanted = first.wrapping_sub(self.geometry.direct);
        let found = c.uint(self.number_size)?;
        if found != wanted {
            return Err(c.corrupt(format!("the block starts at entry {found}, {wanted} expected")));
        }
        Ok(())
    }

    fn index_block(&self) -> Result<IndexBlock> {
        let g = &self.geometry;
        let sizes = self.space.sizes();
        // At most 255 entries, 2 × 127 data blocks and 65 groups.
        let (near, secondary) = (g.near_blocks(), u64::from(g.groups - g.near_groups));
        let length = Owner::head_size(self.space.sizes())
            + g.direct * self.format.size() as u64
            + (near + secondary) * u64::from(sizes.offset)
            + 4;
        let bytes = self.space.read(INDEX, self.index, length)?;
        let mut c = self.space.cursor(&bytes, INDEX, self.index).sealed();
        self.owner.check(&mut c, b"EAIB", sizes)?;
        let entries = c.position();
        c.take_u64(g.direct * self.format.size() as u64)?;
        let near = (0..near).map(|_| c.address(sizes)).collect::<Result<_>>()?;
        let secondary = (0..secondary).map(|_| c.address(sizes)).collect::<Result<_>>()?;
        Ok(IndexBlock { bytes, entries, near, secondary })
    }

    fn secondary(&self, address: u64, group: u32) -> Result<Secondary> {
        let g = &self.geometry;
        let sizes = self.space.sizes();
        let at = self.space.base().saturating_add(address);
        let wrong = || Error::corrupt(SECONDARY, at, format!("group {group} is larger than any file"));
        let blocks = g.blocks(group);
        let bitmap = blocks.checked_mul(g.pages(group).div_ceil(8)).ok_or_else(wrong)?;
        let head = Owner::head_size(self.space.sizes()) + self.number_size as u64;
        let length = blocks
            .checked_mul(sizes.offset.into())
            .and_then(|n| n.checked_add(bitmap)?.checked_add(head + 4));
        let bytes = self.space.read(SECONDARY, address, length.ok_or_else(wrong)?)?;
        let mut c = self.space.cursor(&bytes, SECONDARY, address).sealed();
        self.owner.check(&mut c, b"EASB", sizes)?;
        self.block_number(&mut c, g.first(group).ok_or_else(wrong)?)?;
        let start = c.position();
        c.take_u64(bitmap)?;
        let bitmap = start..c.position();
        let blocks = (0..blocks).map(|_| c.address(sizes)).collect::<Result<_>>()?;
        Ok(Secondary { bytes, bitmap, blocks })
    }

    /// Bytes of a data block, without its pages.
    fn data_length(&self, group: u32) -> Option<u64> {
        let head = Owner::head_size(self.space.sizes()) + self.number_size as u64 + 4;
        if self.geometry.pages(group) > 0 {
            return Some(head);
        }
        self.geometry.entries(group).checked_mul(self.format.size() as u64)?.checked_add(head)
    }

    /// Reads a data block, without its pages. Gives the offset of its entries.
    fn data_block(&self, block: &DataBlock<'_>) -> Result<(Bytes, usize)> {
        let at = self.space.base().saturating_add(block.address);
        let length = self.data_length(block.group);
        let length = length.ok_or_else(|| Error::corrupt(DATA, at, "it is larger than any file"))?;
        let bytes = self.space.read(DATA, block.address, length)?;
        let mut c = self.space.cursor(&bytes, DATA, block.address).sealed();
        self.owner.check(&mut c, b"EADB", self.space.sizes())?;
        if block.written.is_some() {
            self.block_number(&mut c, block.first)?;
        } else {
            // Where the index block has the address, libhdf5 counts the blocks of earlier groups twice.
            c.skip(self.number_size)?;
        }
        let body = c.position();
        Ok((bytes, body))
    }

    /// Reads page `i` of a data block; `None` if it was never written.
    fn page(&self, block: &DataBlock<'_>, i: u64) -> Result<Option<(u64, Bytes)>> {
        let at = self.space.base().saturating_add(block.address);
        let Some((bitmap, first)) = block.written else {
            return Err(Error::corrupt(DATA, at, "a data block of the index block is larger than a page"));
        };
        if !page_is_written(Some(bitmap), first.saturating_add(i)) {
            return Ok(None);
        }
        let size = self.geometry.page.checked_mul(self.format.size() as u64).and_then(|n| n.checked_add(4));
        let place = size.and_then(|size| {
            let head = self.data_length(block.group)?;
            Some((block.address.checked_add(head)?.checked_add(i.checked_mul(size)?)?, size))
        });
        let (address, size) =
            place.ok_or_else(|| Error::corrupt(PAGE, at, format!("there is no page {i}")))?;
        let bytes = self.space.read(PAGE, address, size)?;
        let mut c = self.space.cursor(&bytes, PAGE, address);
        c.skip(bytes.len().saturating_sub(4))?;
        c.checksum()?;
        Ok(Some((address, bytes)))
    }

    /// Hands on the entries at the cursor, up to the checksum.
    fn entries(&self, c: &mut Cursor<'_>, first: u64, visit: &mut Found<'_>) -> Result<()> {
        let mut slot = first;
        while c.remaining() > 4 {
            if let Some(entry) = self.format.parse(c)? {
                visit(&self.slots.chunk(slot), entry)?;
            }
            slot = slot.saturating_add(1);
        }
        Ok(())
    }

    fn walk_data(
        &self,
        block: &DataBlock<'_>,
        visit: &mut Found<'_>,
        fault: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        let (bytes, body) = match self.data_block(block) {
            Ok(read) => read,
            Err(e) => return fault(e),
        };
        let pages = self.geometry.pages(block.group);
        if pages == 0 {
            let mut c = self.space.cursor(&bytes, DATA, block.address);
            c.skip(body)?;
            return self.entries(&mut c, block.first, visit);
        }
        for i in 0..pages {
            match self.page(block, i) {
                Ok(None) => {}
                Ok(Some((address, bytes))) => {
                    let first = block.first.saturating_add(i.saturating_mul(self.geometry.page));
                    self.entries(&mut self.space.cursor(&bytes, PAGE, address), first, visit)?;
                }
                Err(e) => {
                    fault(e)?;
                    if block.written.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The data blocks of a group that are there.
    fn blocks_of<'a>(
        &self,
        group: u32,
        addresses: &'a [u64],
        bitmap: Option<&'a [u8]>,
    ) -> impl Iterator<Item = DataBlock<'a>> {
        let (first, entries, pages) =
            (self.geometry.first(group), self.geometry.entries(group), self.geometry.pages(group));
        let written = addresses.iter().zip(0u64..).filter(|(a, _)| **a != UNDEFINED);
        written.filter_map(move |(&address, i)| {
            let first = first?.checked_add(i.checked_mul(entries)?)?;
            let written = bitmap.map(|b| (b, i.saturating_mul(pages)));
            Some(DataBlock { address, group, first, written })
        })
    }
}

impl Lookup for ExtensibleArray {
    fn walk(&self, mut visit: Found<'_>, fault: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        if self.index == UNDEFINED {
            return Ok(());
        }
        let index = match self.index_block() {
            Ok(index) => index,
            Err(e) => return fault(e),
        };
        let g = &self.geometry;
        let mut c = self.space.cursor(&index.bytes, INDEX, self.index);
        c.skip(index.entries)?;
        for slot in 0..g.direct {
            if let Some(entry) = self.format.parse(&mut c)? {
                visit(&self.slots.chunk(slot), entry)?;
            }
        }
        let mut near = index.near.as_slice();
        for group in 0..g.near_groups {
            let (own, rest) = near.split_at(to_usize(g.blocks(group))?.min(near.len()));
            near = rest;
            for block in self.blocks_of(group, own, None) {
                self.walk_data(&block, &mut visit, fault)?;
            }
        }
        for (group, &address) in (g.near_groups..).zip(&index.secondary) {
            if address == UNDEFINED {
                continue;
            }
            let secondary = match self.secondary(address, group) {
                Ok(secondary) => secondary,
                Err(e) => {
                    fault(e)?;
                    continue;
                }
            };
            let bitmap = secondary.bytes.get(secondary.bitmap.clone());
            for block in self.blocks_of(group, &secondary.blocks, bitmap) {
                self.walk_data(&block, &mut visit, fault)?;
            }
        }
        Ok(())
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        let g = &self.geometry;
        let place = self.slots.slot(chunk).and_then(|slot| g.place(slot));
        let Some(place) = place.filter(|_| self.index != UNDEFINED) else { return Ok(None) };
        let index = self.index_block()?;
        let size = self.format.size() as u64;
        let (group, block, entry) = match place {
            Place::Direct(entry) => {
                let mut c = self.space.cursor(&index.bytes, INDEX, self.index);
                c.skip(index.entries)?;
                c.take_u64(entry * size)?;
                return self.format.parse(&mut c);
            }
            Place::Block { group, block, entry } => (group, block, entry),
        };
        let at = |addresses: &[u64], i: u64| {
            let address = usize::try_from(i).ok().and_then(|i| addresses.get(i)).copied();
            address.filter(|&a| a != UNDEFINED)
        };
        let secondary;
        let (address, bitmap) = if group < g.near_groups {
            let before: u64 = (0..group).map(|g0| g.blocks(g0)).sum();
            (at(&index.near, before + block), None)
        } else {
            let Some(address) = at(&index.secondary, u64::from(group - g.near_groups)) else {
                return Ok(None);
            };
            secondary = self.secondary(address, group)?;
            (at(&secondary.blocks, block), secondary.bytes.get(secondary.bitmap.clone()))
        };
        let first = g.first(group).and_then(|f| f.checked_add(block.checked_mul(g.entries(group))?));
        let (Some(address), Some(first)) = (address, first) else { return Ok(None) };
        let pages = g.pages(group);
        let block =
            DataBlock { address, group, first, written: bitmap.map(|b| (b, block.saturating_mul(pages))) };
        if pages > 0 {
            let Some((address, bytes)) = self.page(&block, entry / g.page)? else { return Ok(None) };
            let mut c = self.space.cursor(&bytes, PAGE, address);
            c.take_u64((entry % g.page).saturating_mul(size))?;
            return self.format.parse(&mut c);
        }
        let (bytes, body) = self.data_block(&block)?;
        let mut c = self.space.cursor(&bytes, DATA, address);
        c.skip(body)?;
        c.take_u64(entry.saturating_mul(size))?;
        self.format.parse(&mut c)
    }
}
