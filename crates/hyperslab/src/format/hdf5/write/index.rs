//! Chunk indexes, built from all their chunks at once: version 1 and 2 B-trees, fixed and extensible arrays
//! (specification, III.A and VII).

use super::btree1;
use super::btree2::{self, MERGE, SPLIT};
use super::disk::Disk;
use super::encoder::{Encoder, width_of};
use crate::error::{Error, Result};
use crate::format::hdf5::index::{Geometry, Grid, Slots};
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::parse::{Sizes, UNDEFINED};
use crate::shape::Coord;
use std::collections::BTreeMap;

/// Parameters of array indexes, as the reference library has them.
const FIXED_PAGE_BITS: u8 = 10;
const EXTENSIBLE: IndexKind = IndexKind::ExtensibleArray {
    max_bits: 32,
    index_elements: 4,
    min_pointers: 4,
    min_elements: 16,
    page_bits: 10,
};
/// Bytes of a node of a version 2 B-tree of chunks.
const NODE_SIZE: u32 = 2048;

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

/// Stored chunks by their coordinates, in C order.
pub(super) type Chunks = BTreeMap<Coord, Entry>;

/// What an index depends on beside its chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    pub(super) dims: &'a [u64],
    pub(super) max: &'a [Option<u64>],
    pub(super) chunk: &'a [u64],
    pub(super) element: u64,
    pub(super) filtered: bool,
    /// Version of the layout message; from 5 on lengths have the file's own size.
    pub(super) version: u8,
    /// Half the number of chunks in a node of a version 1 B-tree.
    pub(super) k: u16,
}

/// The kind of index that the reference library makes for an array. `early`: all chunks are allocated from the start.
pub(super) fn kind(shape: Shape<'_>, early: bool) -> IndexKind {
    if shape.version < 4 {
        return IndexKind::BtreeV1;
    }
    let unlimited = shape.max.iter().filter(|m| m.is_none()).count();
    let single = shape
        .dims
        .iter()
        .zip(shape.max)
        .zip(shape.chunk)
        .all(|((&dim, &max), &chunk)| max == Some(dim) && dim == chunk);
    match unlimited {
        0 if single => IndexKind::Single { filtered: None },
        0 if early && !shape.filtered => IndexKind::Implicit,
        0 => IndexKind::FixedArray { page_bits: FIXED_PAGE_BITS },
        1 => EXTENSIBLE,
        _ => IndexKind::BtreeV2 { node_size: NODE_SIZE, split: SPLIT, merge: MERGE },
    }
}

/// How entries are stored in arrays and version 2 B-trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryWriter {
    /// Bytes of the encoded length, where chunks are filtered.
    width: Option<usize>,
}

impl EntryWriter {
    pub(super) fn new(disk: &Disk, shape: Shape<'_>, chunk_bytes: u64) -> Self {
        let width = match shape.version {
            ..5 => (width_of(chunk_bytes) + 1).min(8),
            // The reference library allows for chunks that grow; later versions have a length.
            _ => usize::from(disk.sizes().length),
        };
        EntryWriter { width: shape.filtered.then_some(width) }
    }

    /// With lengths of as many bytes as an index has; none where chunks are not filtered.
    pub(super) fn of_width(width: Option<usize>) -> Self {
        EntryWriter { width }
    }

    pub(super) fn size(&self, disk: &Disk) -> usize {
        usize::from(disk.sizes().offset) + self.width.map_or(0, |w| w + 4)
    }

    /// 1 where chunks are filtered, as the blocks of arrays say.
    pub(super) fn client(&self) -> u8 {
        u8::from(self.width.is_some())
    }

    pub(super) fn put(&self, out: &mut Encoder, entry: Option<&Entry>) -> Result<()> {
        let entry = entry.copied().unwrap_or(Entry { address: UNDEFINED, length: 0, mask: 0 });
        out.address(entry.address);
        if let Some(width) = self.width {
            if width < 8 && entry.length >> (8 * width) != 0 {
                let text = format!("a chunk of {} encoded bytes in a length of {width}", entry.length);
                return Err(Error::unsupported(text).hint("filters make it longer: store it without them"));
            }
            out.uint(entry.length, width).u32(entry.mask);
        }
        Ok(())
    }
}

/// Writes the index of `chunks` of the given kind. Gives the kind as the layout message says it, and the address.
pub(super) fn write(
    disk: &mut Disk,
    kind: IndexKind,
    shape: Shape<'_>,
    chunks: &Chunks,
) -> Result<(IndexKind, u64)> {
    if chunks.is_empty() {
        let filtered = matches!(kind, IndexKind::Single { .. }) && shape.filtered;
        return match filtered {
            true => Ok((IndexKind::Single { filtered: Some((0, 0)) }, UNDEFINED)),
            false => Ok((kind, UNDEFINED)),
        };
    }
    let grid = Grid::new(shape.dims, shape.max, shape.chunk, shape.element)?;
    let entries = EntryWriter::new(disk, shape, grid.chunk_bytes());
    let address = match kind {
        IndexKind::Single { .. } => {
            let Some(entry) = chunks.values().next() else { return Ok((kind, UNDEFINED)) };
            let filtered = shape.filtered.then_some((entry.length, entry.mask));
            return Ok((IndexKind::Single { filtered }, entry.address));
        }
        IndexKind::Implicit => {
            // All chunks lie in one run, in the order of their numbers.
            let slots = grid.fixed()?;
            let first = chunks.iter().next().and_then(|(at, entry)| {
                let before = slots.slot(at)?.checked_mul(grid.chunk_bytes())?;
                entry.address.checked_sub(before)
            });
            first.ok_or_else(|| Error::invalid("chunks of an implicit index that do not lie in one run"))?
        }
        IndexKind::BtreeV1 => by_btree1(disk, shape, chunks)?,
        IndexKind::BtreeV2 { node_size, .. } => {
            let size = entries.size(disk) + 8 * shape.chunk.len();
            let mut records = Encoder::new(disk.sizes());
            for (at, entry) in chunks {
                entries.put(&mut records, Some(entry))?;
                at.iter().for_each(|&c| {
                    records.u64(c);
                });
            }
            let record_type = if shape.filtered { 11 } else { 10 };
            let tree = btree2::TreeKind { record_type, record_size: size as u16, node_size };
            btree2::write(disk, tree, records.as_bytes())?
        }
        IndexKind::FixedArray { page_bits } => {
            let slots = grid.fixed()?;
            let count = shape
                .max
                .iter()
                .zip(shape.chunk)
                .try_fold(1u64, |n, (m, &c)| n.checked_mul(m.unwrap_or(u64::MAX).div_ceil(c)));
            let count = count.ok_or_else(|| Error::unsupported("2^64 chunks"))?;
            fixed_array(disk, entries, page_bits, count, &numbered(&slots, chunks)?)?
        }
        IndexKind::ExtensibleArray { .. } => {
            let slots = grid.unlimited()?;
            extensible_array(disk, entries, kind, &numbered(&slots, chunks)?)?
        }
    };
    Ok((kind, address))
}

/// Chunks by the numbers that array-like indexes give them.
fn numbered(slots: &Slots, chunks: &Chunks) -> Result<BTreeMap<u64, Entry>> {
    let one = |(at, entry): (&Coord, &Entry)| match slots.slot(at) {
        Some(slot) => Ok((slot, *entry)),
        None => Err(Error::invalid(format!("chunk {at:?} lies beyond the maximum extents"))),
    };
    chunks.iter().map(one).collect()
}

/// A version 1 B-tree: keys hold length, mask and the offset of the first element, and one more number that is 0.
fn by_btree1(disk: &mut Disk, shape: Shape<'_>, chunks: &Chunks) -> Result<u64> {
    let (rank, sizes) = (shape.chunk.len(), disk.sizes());
    let key = |entry: Option<&Entry>, at: &[u64]| tree_key(sizes, entry, at, shape.chunk);
    let mut keys = chunks.iter().map(|(at, entry)| key(Some(entry), at)).collect::<Result<Vec<_>>>()?;
    // The key at the end lies behind every chunk.
    let mut end = chunks.keys().next_back().cloned().unwrap_or_default();
    end.iter_mut().skip(1).for_each(|c| *c = 0);
    end.first_mut().into_iter().for_each(|c| *c += 1);
    keys.push(key(None, &end)?);
    let children: Vec<u64> = chunks.values().map(|e| e.address).collect();
    let tree = btree1::TreeKind { node_type: 1, k: shape.k, key_size: 8 + 8 * (rank + 1) };
    btree1::write(disk, tree, &children, &keys, None)
}

/// The key of a chunk in a version 1 B-tree.
pub(super) fn tree_key(sizes: Sizes, entry: Option<&Entry>, at: &[u64], chunk: &[u64]) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    let length = u32::try_from(entry.map_or(0, |e| e.length))
        .map_err(|_| Error::unsupported("chunks of 4 GiB in files for HDF5 1.8"))?;
    out.u32(length).u32(entry.map_or(0, |e| e.mask));
    for (&c, &extent) in at.iter().zip(chunk) {
        out.u64(c.checked_mul(extent).ok_or_else(|| Error::unsupported("a chunk beyond 2^64"))?);
    }
    out.u64(0);
    Ok(out.finish())
}

/// Changes chunks of the index at `address`, `None`: removed. Gives the kind as the layout message says it and the address
/// that the index has then; nothing if it has to be written anew.
pub(super) fn update(
    disk: &mut Disk,
    kind: IndexKind,
    address: u64,
    shape: Shape<'_>,
    changes: &BTreeMap<Coord, Option<Entry>>,
) -> Result<Option<(IndexKind, u64)>> {
    let grid = Grid::new(shape.dims, shape.max, shape.chunk, shape.element)?;
    let slots = |slots: Slots| -> Result<super::update::Slots> {
        let slot =
            |at: &Coord| slots.slot(at).ok_or_else(|| Error::invalid(format!("there is no chunk {at:?}")));
        changes.iter().map(|(at, entry)| Ok((slot(at)?, *entry))).collect()
    };
    let added: Option<Vec<(Coord, Entry)>> =
        changes.iter().map(|(at, entry)| Some((at.clone(), (*entry)?))).collect();
    match (kind, added) {
        _ if address == UNDEFINED => Ok(None),
        (IndexKind::FixedArray { .. }, _) => {
            super::update::fixed_array(disk, address, shape.filtered, &slots(grid.fixed()?)?)?;
            Ok(Some((kind, address)))
        }
        (IndexKind::ExtensibleArray { .. }, _) => {
            super::update::extensible_array(disk, address, shape.filtered, &slots(grid.unlimited()?)?)?;
            Ok(Some((kind, address)))
        }
        (IndexKind::BtreeV1, Some(added)) => {
            Ok(Some((kind, super::insert::version1(disk, address, shape, &added)?)))
        }
        (IndexKind::BtreeV2 { .. }, Some(added)) => {
            super::insert::version2(disk, address, shape, &added)?;
            Ok(Some((kind, address)))
        }
        _ => Ok(None),
    }
}

/// Signature, version, client and owner: what every block of an array starts with.
fn block(disk: &Disk, signature: &[u8; 4], client: u8, header: u64) -> Encoder {
    let mut out = Encoder::new(disk.sizes());
    out.put(signature).u8(0).u8(client).address(header);
    out
}

/// Appends the entries of slots `from` to `to`.
fn run(
    out: &mut Encoder,
    entries: EntryWriter,
    chunks: &BTreeMap<u64, Entry>,
    from: u64,
    to: u64,
) -> Result<()> {
    let mut present = chunks.range(from..to).peekable();
    for slot in from..to {
        let entry = present.next_if(|(at, _)| **at == slot).map(|(_, entry)| entry);
        entries.put(out, entry)?;
    }
    Ok(())
}

fn fixed_array(
    disk: &mut Disk,
    entries: EntryWriter,
    page_bits: u8,
    count: u64,
    chunks: &BTreeMap<u64, Entry>,
) -> Result<u64> {
    let sizes = disk.sizes();
    let size = entries.size(disk) as u64;
    let client = entries.client();
    let header_size = 12 + u64::from(sizes.length) + u64::from(sizes.offset);
    let header = disk.allocate(header_size, 8)?;
    let page = 1u64 << page_bits.min(62);
    let too_large = || Error::unsupported(format!("a fixed array of {count} chunks"));
    let data = if count <= page {
        let mut out = block(disk, b"FADB", client, header);
        run(&mut out, entries, chunks, 0, count)?;
        out.checksum();
        disk.place(&out.finish())?
    } else {
        let pages = count.div_ceil(page);
        let bitmap_size = pages.div_ceil(8);
        let head = 6 + u64::from(sizes.offset) + bitmap_size + 4;
        let page_size = page.checked_mul(size).and_then(|n| n.checked_add(4)).ok_or_else(too_large)?;
        let last = (count - (pages - 1) * page) * size + 4;
        let total = (pages - 1).checked_mul(page_size).and_then(|n| n.checked_add(head + last));
        let data = disk.allocate(total.ok_or_else(too_large)?, 8)?;
        let mut bitmap = vec![0u8; crate::shape::to_usize(bitmap_size)?];
        let mut slot = chunks.keys().next().copied();
        while let Some(at) = slot {
            let i = at / page;
            bitmap.get_mut((i / 8) as usize).into_iter().for_each(|b| *b |= 0x80 >> (i % 8));
            slot = chunks.range((i + 1) * page..).next().map(|(&s, _)| s);
        }
        let mut out = block(disk, b"FADB", client, header);
        out.put(&bitmap).checksum();
        disk.put(data, &out.finish())?;
        let mut slot = chunks.keys().next().copied();
        while let Some(at) = slot {
            let i = at / page;
            let mut out = Encoder::new(sizes);
            run(&mut out, entries, chunks, i * page, ((i + 1) * page).min(count))?;
            out.checksum();
            disk.put(data + head + i * page_size, &out.finish())?;
            slot = chunks.range((i + 1) * page..).next().map(|(&s, _)| s);
        }
        data
    };
    let mut out = Encoder::new(sizes);
    out.put(b"FAHD").u8(0).u8(client).u8(size as u8).u8(page_bits).length(count).address(data).checksum();
    disk.put(header, &out.finish())?;
    Ok(header)
}

/// What the header of an extensible array counts.
#[derive(Default)]
struct Counts {
    secondary: u64,
    secondary_bytes: u64,
    data: u64,
    data_bytes: u64,
    /// Entries that there is room for.
    realized: u64,
}

/// An extensible array in the making.
struct Extensible<'a> {
    disk: &'a mut Disk,
    entries: EntryWriter,
    geometry: Geometry,
    /// Bytes of a slot number in blocks.
    number_size: usize,
    header: u64,
    chunks: &'a BTreeMap<u64, Entry>,
    counts: Counts,
}

fn extensible_array(
    disk: &mut Disk,
    entries: EntryWriter,
    kind: IndexKind,
    chunks: &BTreeMap<u64, Entry>,
) -> Result<u64> {
    let IndexKind::ExtensibleArray { max_bits, index_elements, min_pointers, min_elements, page_bits } = kind
    else {
        return Err(Error::invalid("the parameters of another index than an extensible array"));
    };
    let geometry =
        Geometry::from_parameters(max_bits, index_elements, min_elements, min_pointers, page_bits)?;
    let sizes = disk.sizes();
    let (client, size) = (entries.client(), entries.size(disk));
    let header = disk.allocate(16 + 6 * u64::from(sizes.length) + u64::from(sizes.offset), 8)?;
    let number_size = usize::from(max_bits).div_ceil(8);
    let mut array =
        Extensible { disk, entries, geometry, number_size, header, chunks, counts: Counts::default() };
    let index = array.index_block()?;
    let Counts { secondary, secondary_bytes, data, data_bytes, realized } = array.counts;
    let end = chunks.keys().next_back().map_or(0, |&last| last + 1);
    let mut out = Encoder::new(sizes);
    out.put(b"EAHD").u8(0).u8(client).u8(size as u8);
    out.u8(max_bits).u8(index_elements).u8(min_elements).u8(min_pointers).u8(page_bits);
    for number in [secondary, secondary_bytes, data, data_bytes, end, realized] {
        out.length(number);
    }
    out.address(index).checksum();
    disk.put(header, &out.finish())?;
    Ok(header)
}

impl Extensible<'_> {
    /// Whether there are chunks in slots `from` to `to`.
    fn any(&self, from: u64, to: u64) -> bool {
        self.chunks.range(from..to).next().is_some()
    }

    fn block(&self, signature: &[u8; 4]) -> Encoder {
        block(self.disk, signature, self.entries.client(), self.header)
    }

    fn index_block(&mut self) -> Result<u64> {
        let g = self.geometry;
        let beyond = || Error::unsupported("more chunks along the unlimited extent than an index holds");
        let last = self.chunks.keys().next_back().copied().unwrap_or(0);
        g.place(last).ok_or_else(beyond)?;
        self.counts.realized = g.direct;
        let mut addresses = Vec::new();
        for group in 0..g.groups {
            let Some(first) = g.first(group) else {
                addresses.push(UNDEFINED);
                continue;
            };
            let (blocks, entries) = (g.blocks(group), g.entries(group));
            if group < g.near_groups {
                for i in 0..blocks {
                    let from = first + i * entries;
                    let address = match self.any(from, from + entries) {
                        // As the reference library counts: the blocks of earlier groups twice.
                        true => {
                            let before: u64 = (0..group).map(|g0| g.blocks(g0)).sum();
                            let number = first - g.direct + (before + i) * entries;
                            self.data_block(group, from, number)?
                        }
                        false => UNDEFINED,
                    };
                    addresses.push(address);
                }
                continue;
            }
            let end = blocks.checked_mul(entries).and_then(|n| first.checked_add(n)).unwrap_or(u64::MAX);
            addresses.push(if self.any(first, end) { self.secondary(group, first)? } else { UNDEFINED });
        }
        let mut out = self.block(b"EAIB");
        run(&mut out, self.entries, self.chunks, 0, g.direct)?;
        addresses.into_iter().for_each(|a| {
            out.address(a);
        });
        out.checksum();
        self.disk.place(&out.finish())
    }

    fn secondary(&mut self, group: u32, first: u64) -> Result<u64> {
        let g = self.geometry;
        let (blocks, entries, pages) = (g.blocks(group), g.entries(group), g.pages(group));
        let mut bitmap = vec![0u8; crate::shape::to_usize(blocks * pages.div_ceil(8))?];
        let mut addresses = Vec::new();
        for i in 0..blocks {
            let from = first + i * entries;
            if !self.any(from, from.saturating_add(entries)) {
                addresses.push(UNDEFINED);
                continue;
            }
            addresses.push(self.data_block(group, from, from - g.direct)?);
            for page in (0..pages).filter(|p| self.any(from + p * g.page, from + (p + 1) * g.page)) {
                let at = i * pages + page;
                bitmap.get_mut((at / 8) as usize).into_iter().for_each(|b| *b |= 0x80 >> (at % 8));
            }
        }
        let mut out = self.block(b"EASB");
        out.uint(first - g.direct, self.number_size).put(&bitmap);
        addresses.into_iter().for_each(|a| {
            out.address(a);
        });
        out.checksum();
        let bytes = out.finish();
        self.counts.secondary += 1;
        self.counts.secondary_bytes += bytes.len() as u64;
        self.disk.place(&bytes)
    }

    /// Writes a data block whose entries start at slot `from`; `number` is what it says of that.
    fn data_block(&mut self, group: u32, from: u64, number: u64) -> Result<u64> {
        let g = self.geometry;
        let (entries, pages) = (g.entries(group), g.pages(group));
        let mut out = self.block(b"EADB");
        out.uint(number, self.number_size);
        if pages == 0 {
            run(&mut out, self.entries, self.chunks, from, from + entries)?;
            out.checksum();
        } else {
            out.checksum();
            for page in 0..pages {
                let mut part = Encoder::new(self.disk.sizes());
                run(&mut part, self.entries, self.chunks, from + page * g.page, from + (page + 1) * g.page)?;
                part.checksum();
                out.put(part.as_bytes());
            }
        }
        let bytes = out.finish();
        self.counts.data += 1;
        self.counts.data_bytes += bytes.len() as u64;
        self.counts.realized += entries;
        self.disk.place(&bytes)
    }
}
