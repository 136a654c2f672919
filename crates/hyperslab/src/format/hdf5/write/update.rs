//! Chunk indexes changed in place: a few entries of a large index cost a few blocks of it.
//!
//! Every block has a checksum behind it. Those that are touched are held until all changes are made, and are written once.

use super::disk::Disk;
use super::encoder::Encoder;
use super::index::{Entry, EntryWriter};
use crate::error::{Error, Result};
use crate::format::hdf5::index::Geometry;
use crate::format::hdf5::parse::{Cursor, UNDEFINED, lookup3};
use crate::shape::to_usize;
use std::collections::BTreeMap;

/// The most bytes of a block of an index that is made.
const MAX_BLOCK: u64 = 1 << 28;

/// What becomes of slots: an entry, or none.
pub(super) type Slots = BTreeMap<u64, Option<Entry>>;

/// Blocks that are changed, by their addresses; the last four bytes of each are its checksum.
pub(super) struct Blocks<'a> {
    pub(super) disk: &'a mut Disk,
    held: BTreeMap<u64, Vec<u8>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(disk: &'a mut Disk) -> Self {
        Blocks { disk, held: BTreeMap::new() }
    }

    /// The block of `length` bytes at `address`, its checksum included.
    pub(super) fn get(&mut self, address: u64, length: u64) -> Result<&mut Vec<u8>> {
        match self.held.entry(address) {
            std::collections::btree_map::Entry::Occupied(held) => Ok(held.into_mut()),
            std::collections::btree_map::Entry::Vacant(place) => {
                let bytes = self.disk.read(address, to_usize(length)?)?;
                let (body, sum) = bytes.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
                let (stored, computed) = (u32::from_le_bytes(*sum), lookup3(body));
                if stored != computed {
                    return Err(Error::checksum("block of a chunk index", address, stored, computed));
                }
                Ok(place.insert(bytes))
            }
        }
    }

    /// Fails unless the block of `length` bytes at `address` lies in the file.
    fn check(&self, address: u64, length: u64) -> Result<()> {
        match address.checked_add(length) {
            Some(end) if end <= self.disk.end() => Ok(()),
            _ => Err(Error::corrupt(
                "block of a chunk index",
                address,
                "it reaches beyond the end of the file",
            )),
        }
    }

    /// A new block of these bytes, without the checksum.
    pub(super) fn add(&mut self, bytes: Vec<u8>) -> Result<u64> {
        let length = bytes.len() as u64 + 4;
        let address = self.disk.allocate(length, 8)?;
        self.hold(address, bytes);
        Ok(address)
    }

    /// The block at `address` will be these bytes and their checksum.
    pub(super) fn hold(&mut self, address: u64, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(&[0; 4]);
        self.held.insert(address, bytes);
    }

    /// Writes all blocks.
    pub(super) fn write(self) -> Result<()> {
        for (address, mut bytes) in self.held {
            let body = bytes.len().saturating_sub(4);
            let sum = lookup3(bytes.get(..body).unwrap_or_default()).to_le_bytes();
            if let Some(field) = bytes.get_mut(body..) {
                field.copy_from_slice(&sum);
            }
            self.disk.put(address, &bytes)?;
        }
        Ok(())
    }
}

/// Overwrites bytes of a block.
fn patch(bytes: &mut [u8], at: u64, new: &[u8]) -> Result<()> {
    let at = to_usize(at)?;
    match bytes.get_mut(at..at.saturating_add(new.len())) {
        Some(place) => {
            place.copy_from_slice(new);
            Ok(())
        }
        None => Err(Error::invalid("a block of a chunk index that is shorter than its parts")),
    }
}

/// The header of an array, as both kinds start.
struct Head {
    client: u8,
    entries: EntryWriter,
    size: u64,
}

fn head<'a>(blocks: &mut Blocks<'_>, c: &mut Cursor<'a>, filtered: bool) -> Result<Head> {
    let offset = usize::from(blocks.disk.sizes().offset);
    c.skip(5)?;
    let (client, size) = (c.u8()?, c.u8()?);
    let width = usize::from(size).checked_sub(offset);
    let width = match (filtered, width) {
        (false, Some(0)) => None,
        (true, Some(n @ 5..=12)) => Some(n - 4),
        _ => return Err(c.corrupt(format!("entries of {size} bytes"))),
    };
    Ok(Head { client, entries: EntryWriter::of_width(width), size: size.into() })
}

fn entry_bytes(disk: &Disk, entries: EntryWriter, entry: &Option<Entry>) -> Result<Vec<u8>> {
    let mut out = Encoder::new(disk.sizes());
    entries.put(&mut out, entry.as_ref())?;
    Ok(out.finish())
}

fn empty_entries(disk: &Disk, entries: EntryWriter, count: u64) -> Result<Vec<u8>> {
    let one = entry_bytes(disk, entries, &None)?;
    Ok(one.repeat(to_usize(count)?))
}

/// Changes entries of the fixed array whose header is at `address`.
pub(super) fn fixed_array(disk: &mut Disk, address: u64, filtered: bool, changes: &Slots) -> Result<()> {
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let mut blocks = Blocks::new(disk);
    let header = blocks.get(address, 12 + l + o)?.clone();
    let mut c = Cursor::new(&header, "fixed array header", address);
    let Head { entries, size, .. } = head(&mut blocks, &mut c, filtered)?;
    let page = 1u64.checked_shl(c.u8()?.into()).ok_or_else(|| c.corrupt("pages of 2^64 entries"))?;
    let count = c.length(sizes)?;
    let data = c.address(sizes)?;
    let too_large = || Error::invalid(format!("a fixed array of {count} entries"));
    let head_size = 6 + o;
    for (&slot, entry) in changes {
        if slot >= count || data == UNDEFINED {
            return Err(Error::invalid(format!("slot {slot} of a fixed array of {count}")));
        }
        let bytes = entry_bytes(blocks.disk, entries, entry)?;
        if count <= page {
            let length = count.checked_mul(size).and_then(|n| n.checked_add(head_size + 4));
            let block = blocks.get(data, length.ok_or_else(too_large)?)?;
            patch(block, head_size + slot * size, &bytes)?;
            continue;
        }
        let bitmap = count.div_ceil(page).div_ceil(8);
        let prefix = head_size + bitmap + 4;
        let i = slot / page;
        let page_size = page.checked_mul(size).and_then(|n| n.checked_add(4)).ok_or_else(too_large)?;
        let at = i
            .checked_mul(page_size)
            .and_then(|n| n.checked_add(data)?.checked_add(prefix))
            .ok_or_else(too_large)?;
        let own = page.min(count - i * page);
        if set_bit(blocks.get(data, prefix)?, head_size, i)? {
            blocks.check(at, own * size + 4)?;
            let empty = empty_entries(blocks.disk, entries, own)?;
            blocks.hold(at, empty);
        }
        patch(blocks.get(at, own * size + 4)?, (slot % page) * size, &bytes)?;
    }
    blocks.write()
}

/// Fails if a block of `length` bytes is larger than any index of use has.
fn check_length(length: u64) -> Result<()> {
    match length {
        0..=MAX_BLOCK => Ok(()),
        _ => Err(Error::limit("bytes of a block of a chunk index", length.into(), MAX_BLOCK.into())),
    }
}

/// Sets bit `i` of the bitmap at `from`. Whether it was not set.
fn set_bit(bytes: &mut [u8], from: u64, i: u64) -> Result<bool> {
    let at = to_usize(from + i / 8)?;
    let byte = bytes.get_mut(at).ok_or_else(|| Error::invalid("a page beyond the bitmap of pages"))?;
    let bit = 0x80 >> (i % 8);
    let new = *byte & bit == 0;
    *byte |= bit;
    Ok(new)
}

/// An extensible array that is changed.
struct Extensible<'a> {
    blocks: Blocks<'a>,
    header: u64,
    client: u8,
    entries: EntryWriter,
    size: u64,
    geometry: Geometry,
    number_size: u64,
    index: u64,
    index_size: u64,
    /// Secondary blocks and their bytes, data blocks and their bytes, first slot never used, entries that there is room for.
    counts: [u64; 6],
}

/// Changes entries of the extensible array whose header is at `address`.
pub(super) fn extensible_array(disk: &mut Disk, address: u64, filtered: bool, changes: &Slots) -> Result<()> {
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let mut blocks = Blocks::new(disk);
    let header = blocks.get(address, 16 + 6 * l + o)?.clone();
    let mut c = Cursor::new(&header, "extensible array header", address);
    let Head { client, entries, size } = head(&mut blocks, &mut c, filtered)?;
    let (max_bits, direct, smallest, pointers, page_bits) = (c.u8()?, c.u8()?, c.u8()?, c.u8()?, c.u8()?);
    let geometry = Geometry::from_parameters(max_bits, direct, smallest, pointers, page_bits)?;
    let mut counts = [0; 6];
    for count in &mut counts {
        *count = c.length(sizes)?;
    }
    let index = c.address(sizes)?;
    if index == UNDEFINED {
        return Err(c.corrupt("no index block"));
    }
    let near: u64 = (0..geometry.near_groups).map(|g| geometry.blocks(g)).sum();
    let secondary = u64::from(geometry.groups - geometry.near_groups);
    let index_size = 6 + o + geometry.direct * size + (near + secondary) * o + 4;
    let number_size = u64::from(max_bits).div_ceil(8);
    let mut array = Extensible {
        blocks,
        header: address,
        client,
        entries,
        size,
        geometry,
        number_size,
        index,
        index_size,
        counts,
    };
    for (&slot, entry) in changes {
        array.set(slot, entry)?;
    }
    if let Some((&last, _)) = changes.iter().rev().find(|(_, entry)| entry.is_some()) {
        array.counts[4] = array.counts[4].max(last + 1);
    }
    let mut out = Encoder::new(sizes);
    array.counts.iter().for_each(|&n| {
        out.length(n);
    });
    let Extensible { mut blocks, .. } = array;
    patch(blocks.get(address, 16 + 6 * l + o)?, 12, out.as_bytes())?;
    blocks.write()
}

impl Extensible<'_> {
    fn offset(&self) -> u64 {
        self.blocks.disk.sizes().offset.into()
    }

    fn block(&self, signature: &[u8; 4]) -> Encoder {
        let mut out = Encoder::new(self.blocks.disk.sizes());
        out.put(signature).u8(0).u8(self.client).address(self.header);
        out
    }

    /// The address at `at` of a block.
    fn address(&mut self, block: (u64, u64), at: u64) -> Result<u64> {
        let sizes = self.blocks.disk.sizes();
        let bytes = self.blocks.get(block.0, block.1)?;
        let mut c = Cursor::new(bytes, "extensible array block", block.0);
        c.take_u64(at)?;
        c.address(sizes)
    }

    fn set_address(&mut self, block: (u64, u64), at: u64, address: u64) -> Result<()> {
        let mut out = Encoder::new(self.blocks.disk.sizes());
        out.address(address);
        patch(self.blocks.get(block.0, block.1)?, at, out.as_bytes())
    }

    fn set(&mut self, slot: u64, entry: &Option<Entry>) -> Result<()> {
        use crate::format::hdf5::index::Place;
        let g = self.geometry;
        let bytes = entry_bytes(self.blocks.disk, self.entries, entry)?;
        let beyond = || Error::unsupported("more chunks along the unlimited extent than an index holds");
        let head = 6 + self.offset();
        let index = (self.index, self.index_size);
        let (group, block, within) = match g.place(slot).ok_or_else(beyond)? {
            Place::Direct(i) => {
                return patch(self.blocks.get(index.0, index.1)?, head + i * self.size, &bytes);
            }
            Place::Block { group, block, entry } => (group, block, entry),
        };
        let first = g.first(group).ok_or_else(beyond)?;
        let (entries, pages) = (g.entries(group), g.pages(group));
        let addresses = head + g.direct * self.size;
        // The block that has the address of the data block, where in it, and where its bitmap of pages is.
        let (owner, at, bitmap) = if group < g.near_groups {
            let before: u64 = (0..group).map(|g0| g.blocks(g0)).sum();
            (index, addresses + (before + block) * self.offset(), None)
        } else {
            let near: u64 = (0..g.near_groups).map(|g0| g.blocks(g0)).sum();
            let at = addresses + (near + u64::from(group - g.near_groups)) * self.offset();
            let blocks = g.blocks(group);
            let bitmap = blocks.saturating_mul(pages.div_ceil(8));
            let length = blocks.saturating_mul(self.offset()).saturating_add(bitmap);
            let length = length.saturating_add(head + self.number_size + 4);
            let mut address = self.address(index, at)?;
            check_length(length)?;
            if address == UNDEFINED {
                let mut out = self.block(b"EASB");
                out.uint(first - g.direct, self.number_size as usize).zeros(to_usize(bitmap)?);
                (0..blocks).for_each(|_| {
                    out.address(UNDEFINED);
                });
                address = self.blocks.add(out.finish())?;
                self.set_address(index, at, address)?;
                self.counts[0] += 1;
                self.counts[1] += length;
            }
            let from = head + self.number_size;
            ((address, length), from + bitmap + block * self.offset(), Some(from))
        };
        let prefix = head + self.number_size + 4;
        let mut data = self.address(owner, at)?;
        if data == UNDEFINED {
            let mut out = self.block(b"EADB");
            let start = match bitmap {
                Some(_) => first - g.direct + block * entries,
                // As the reference library counts: the blocks of earlier groups twice.
                None => {
                    let before: u64 = (0..group).map(|g0| g.blocks(g0)).sum();
                    first - g.direct + (before + block) * entries
                }
            };
            out.uint(start, self.number_size as usize);
            check_length(entries.saturating_mul(self.size))?;
            let page_bytes = pages * (g.page * self.size + 4);
            let length = match pages {
                0 => {
                    out.put(&empty_entries(self.blocks.disk, self.entries, entries)?);
                    out.len() as u64 + 4
                }
                _ => prefix + page_bytes,
            };
            data = self.blocks.disk.allocate(length, 8)?;
            self.blocks.hold(data, out.finish());
            self.set_address(owner, at, data)?;
            self.counts[2] += 1;
            self.counts[3] += length;
            self.counts[5] += entries;
        }
        if pages == 0 {
            let length = prefix + entries * self.size;
            return patch(self.blocks.get(data, length)?, prefix - 4 + within * self.size, &bytes);
        }
        let Some(bitmap) = bitmap else {
            return Err(Error::unsupported("pages in data blocks of the index block of an extensible array"));
        };
        let page = within / g.page;
        check_length(g.page.saturating_mul(self.size))?;
        let place = data.saturating_add(prefix).saturating_add(page * (g.page * self.size + 4));
        if set_bit(self.blocks.get(owner.0, owner.1)?, bitmap, block * pages + page)? {
            self.blocks.check(place, g.page * self.size + 4)?;
            let empty = empty_entries(self.blocks.disk, self.entries, g.page)?;
            self.blocks.hold(place, empty);
        }
        patch(self.blocks.get(place, g.page * self.size + 4)?, (within % g.page) * self.size, &bytes)
    }
}
