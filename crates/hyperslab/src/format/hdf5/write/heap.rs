//! Fractal heaps, built from all their objects at once (specification, III.G).
//!
//! Objects go into direct blocks in the order in which they come; blocks that are too small for the next object are left
//! out. No free space is recorded: who adds to the heap later starts a block of its own.

use super::btree2::{self, TreeKind};
use super::disk::Disk;
use super::encoder::{Encoder, width_of};
use crate::error::{Error, Result};
use crate::format::hdf5::heap::DoublingTable;
use crate::format::hdf5::parse::{UNDEFINED, lookup3};

/// Blocks in a row of the doubling table.
const TABLE_WIDTH: u16 = 4;
/// Bytes of the largest direct block.
const MAX_DIRECT: u64 = 64 << 10;
/// Bytes of the largest object that lies in a block; larger ones lie on their own.
const MAX_MANAGED: u32 = 4096;
/// Flags: direct blocks have checksums.
const CHECKSUMMED: u8 = 0x02;

/// The numbers that differ from use to use.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapKind {
    /// Bytes of an identifier.
    pub(super) id_length: u16,
    /// Bytes of the smallest blocks.
    pub(super) start: u64,
    /// Bits of a heap offset.
    pub(super) max_bits: u16,
}

/// Links of a group.
pub(super) const LINKS: HeapKind = HeapKind { id_length: 7, start: 512, max_bits: 32 };
/// Attributes of an object.
pub(super) const ATTRIBUTES: HeapKind = HeapKind { id_length: 8, start: 1024, max_bits: 40 };

/// A direct block: its place in the heap and its objects.
struct Block {
    start: u64,
    size: u64,
    bytes: Vec<u8>,
}

struct Builder<'a> {
    disk: &'a mut Disk,
    kind: HeapKind,
    table: DoublingTable,
    header: u64,
    blocks: Vec<Block>,
}

/// Writes a heap of `objects`. Gives the address of its header, and an identifier for each object.
pub(super) fn write(disk: &mut Disk, kind: HeapKind, objects: &[&[u8]]) -> Result<(u64, Vec<Vec<u8>>)> {
    let table = DoublingTable::new(TABLE_WIDTH, kind.start, MAX_DIRECT, kind.max_bits)?;
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let length = 26 + 12 * l + 3 * o;
    let header = disk.allocate(length, 8)?;
    let mut heap = Builder { disk, kind, table, header, blocks: Vec::new() };

    let mut ids = Vec::with_capacity(objects.len());
    let mut huge = Vec::new();
    let mut huge_bytes = 0u64;
    for object in objects {
        let mut id = Encoder::new(sizes);
        if object.len() > MAX_MANAGED as usize {
            let address = heap.disk.place(object)?;
            huge_bytes += object.len() as u64;
            huge.push((address, object.len() as u64));
            id.u8(0x10).uint(huge.len() as u64, usize::from(kind.id_length - 1).min(8));
        } else {
            let offset = heap.insert(object)?;
            let length_width = ((MAX_DIRECT.ilog2() as usize).div_ceil(8)).min(width_of(MAX_MANAGED.into()));
            id.u8(0).uint(offset, heap.offset_bytes()).uint(object.len() as u64, length_width);
        }
        let mut id = id.finish();
        id.resize(kind.id_length.into(), 0);
        ids.push(id);
    }

    let mut huge_tree = UNDEFINED;
    if !huge.is_empty() {
        let mut records = Encoder::new(sizes);
        for (i, (address, length)) in (1u64..).zip(&huge) {
            records.address(*address).length(*length).length(i);
        }
        let tree = TreeKind { record_type: 1, record_size: (o + 2 * l) as u16, node_size: 512 };
        huge_tree = btree2::write(heap.disk, tree, records.as_bytes())?;
    }
    let managed = (objects.len() - huge.len()) as u64;
    let root = heap.root()?;

    let mut out = Encoder::new(sizes);
    out.put(b"FRHP").u8(0).u16(kind.id_length).u16(0).u8(CHECKSUMMED).u32(MAX_MANAGED);
    // Identifiers of huge objects count from 1; the field has the last one in use.
    out.length(huge.len() as u64).address(huge_tree);
    out.length(root.free).address(UNDEFINED);
    out.length(root.span).length(root.allocated).length(root.next).length(managed);
    out.length(huge_bytes).length(huge.len() as u64).length(0).length(0);
    out.u16(TABLE_WIDTH).length(kind.start).length(MAX_DIRECT).u16(kind.max_bits).u16(1);
    out.address(root.address).u16(root.rows).checksum();
    if out.len() as u64 != length {
        return Err(Error::invalid("the header of a fractal heap has another length than planned"));
    }
    heap.disk.put(header, &out.finish())?;
    Ok((header, ids))
}

/// The root block, and what the header says about all blocks.
struct Root {
    address: u64,
    rows: u16,
    /// Bytes of heap space that the root block covers.
    span: u64,
    /// Bytes of direct blocks.
    allocated: u64,
    /// Heap offset at which allocation goes on.
    next: u64,
    /// Bytes without objects, in blocks that there are and in those that there will be.
    free: u64,
}

impl Builder<'_> {
    fn offset_bytes(&self) -> usize {
        usize::from(self.kind.max_bits).div_ceil(8)
    }

    /// Bytes of a direct block in front of its objects.
    fn overhead(&self) -> usize {
        9 + usize::from(self.disk.sizes().offset) + self.offset_bytes()
    }

    /// The direct block at heap offset `offset`: its start and size.
    fn block_at(&self, offset: u64) -> Option<(u64, u64)> {
        let (mut start, mut within) = (0, offset);
        // Each step goes into a smaller block.
        loop {
            let slot = self.table.slot(within)?;
            start += slot.start;
            if !slot.indirect {
                return Some((start, slot.size));
            }
            within -= slot.start;
        }
    }

    /// Puts an object into the last block, or into the next that is large enough. Gives its heap offset.
    fn insert(&mut self, object: &[u8]) -> Result<u64> {
        let overhead = self.overhead();
        let room = |block: &Block| block.bytes.len() + object.len() <= block.size as usize;
        if !self.blocks.last().is_some_and(room) {
            let mut next = self.blocks.last().map_or(0, |b| b.start + b.size);
            loop {
                let limit = 1u64.checked_shl(self.kind.max_bits.into()).unwrap_or(u64::MAX);
                let found = self.block_at(next).filter(|(start, size)| start + size <= limit);
                let Some((start, size)) = found else {
                    return Err(Error::limit("bytes of a fractal heap", u128::from(next), limit.into()));
                };
                if overhead + object.len() <= size as usize {
                    self.blocks.push(Block { start, size, bytes: vec![0; overhead] });
                    break;
                }
                next = start + size;
            }
        }
        match self.blocks.last_mut() {
            Some(block) => {
                let offset = block.start + block.bytes.len() as u64;
                block.bytes.extend_from_slice(object);
                Ok(offset)
            }
            None => Err(Error::invalid("a fractal heap without a block")),
        }
    }

    /// Writes all blocks.
    fn root(&mut self) -> Result<Root> {
        let overhead = self.overhead() as u64;
        let blocks = std::mem::take(&mut self.blocks);
        let Some(last) = blocks.last() else {
            return Ok(Root { address: UNDEFINED, rows: 0, span: 0, allocated: 0, next: 0, free: 0 });
        };
        let allocated = blocks.iter().map(|b| b.size).sum();
        let used: u64 = blocks.iter().map(|b| b.bytes.len() as u64 - overhead).sum();
        let next = last.start + last.size;
        if next == self.table.start() {
            let address = self.direct(last)?;
            let free = last.size - overhead - used;
            return Ok(Root { address, rows: 0, span: last.size, allocated, next: 0, free });
        }
        let first = self.table.start() * u64::from(TABLE_WIDTH);
        // The fewest rows that reach so far: the first, then each as long as all before it.
        let rows = (1..=32u64).find(|&r| first << (r - 1) >= next).unwrap_or(1);
        let span = first << (rows - 1);
        let (direct, _) = self.table.entries(rows);
        let payload: u64 = (0..direct)
            .filter_map(|i| self.table.slot(self.entry_start(i)))
            .map(|slot| slot.size - overhead)
            .sum();
        let address = self.indirect(0, rows, &blocks)?;
        let free = payload.saturating_sub(used);
        Ok(Root { address, rows: rows as u16, span, allocated, next, free })
    }

    /// Offset of entry `i` in an indirect block.
    fn entry_start(&self, i: u64) -> u64 {
        let width = u64::from(TABLE_WIDTH);
        let (row, column) = (i / width, i % width);
        let size = self.table.start() << row.saturating_sub(1);
        if row == 0 { column * size } else { (width + column) * size }
    }

    /// Writes the indirect block of `rows` rows at heap offset `start`, with the blocks in its part.
    fn indirect(&mut self, start: u64, rows: u64, blocks: &[Block]) -> Result<u64> {
        let (direct, indirect) = self.table.entries(rows);
        let sizes = self.disk.sizes();
        let mut out = Encoder::new(sizes);
        out.put(b"FHIB").u8(0).address(self.header).uint(start, self.offset_bytes());
        for i in 0..direct + indirect {
            let at = start + self.entry_start(i);
            let Some(slot) = self.table.slot(self.entry_start(i)) else { break };
            let from = blocks.partition_point(|b| b.start < at);
            let to = blocks.partition_point(|b| b.start < at + slot.size);
            let own = blocks.get(from..to).unwrap_or_default();
            let address = match (own, slot.indirect) {
                ([], _) => UNDEFINED,
                ([block, ..], false) => self.direct(block)?,
                // Each step down halves the size at least, so that this ends.
                (own, true) => self.indirect(at, self.table.rows_of(slot.size).unwrap_or(1), own)?,
            };
            out.address(address);
        }
        out.checksum();
        self.disk.place(&out.finish())
    }

    fn direct(&mut self, block: &Block) -> Result<u64> {
        let mut out = Encoder::new(self.disk.sizes());
        out.put(b"FHDB").u8(0).address(self.header).uint(block.start, self.offset_bytes());
        let sum_at = out.len();
        out.zeros(4).put(block.bytes.get(self.overhead()..).unwrap_or_default());
        let mut bytes = out.finish();
        bytes.resize(block.size as usize, 0);
        let sum = lookup3(&bytes).to_le_bytes();
        if let Some(field) = bytes.get_mut(sum_at..sum_at + 4) {
            field.copy_from_slice(&sum);
        }
        self.disk.place(&bytes)
    }
}
