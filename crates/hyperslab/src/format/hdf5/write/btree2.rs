//! Version 2 B-trees, built from all their records at once (specification, III.A.2).
//!
//! Records are spread evenly over as few nodes as hold them, so that a reader needs the fewest and a writer who adds to
//! the tree finds nodes of about the same fill.

use super::disk::Disk;
use super::encoder::{Encoder, width_of};
use crate::error::{Error, Result};
use crate::format::hdf5::parse::UNDEFINED;

/// Signature, version, type and checksum: what every node has beside records and pointers.
const NODE_OVERHEAD: u64 = 10;

/// Percentage of a node's size at which it is split, and at which two are joined, as the reference library has them.
pub(super) const SPLIT: u8 = 100;
/// See [`SPLIT`].
pub(super) const MERGE: u8 = 40;

/// What a tree holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeKind {
    /// Record type.
    pub(super) record_type: u8,
    /// Bytes of a record.
    pub(super) record_size: u16,
    /// Bytes of a node.
    pub(super) node_size: u32,
}

/// What follows from the sizes for the nodes of one level.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The most records in a node.
    capacity: u64,
    /// The most records in a node and all below it.
    total: u64,
    /// Bytes of a child pointer's count of the records in the child's whole subtree, for a child of this level.
    total_size: usize,
}

struct Builder<'a> {
    disk: &'a mut Disk,
    kind: TreeKind,
    records: &'a [u8],
    levels: Vec<Level>,
    count_size: usize,
}

/// Writes a tree of `records`, which lie one after the other in the order of their keys. Gives the address of the header.
pub(super) fn write(disk: &mut Disk, kind: TreeKind, records: &[u8]) -> Result<u64> {
    let size = u64::from(kind.record_size);
    let count = records.len() as u64 / size.max(1);
    let node = u64::from(kind.node_size);
    let leaf = node.saturating_sub(NODE_OVERHEAD) / size.max(1);
    let count_size = width_of(leaf);
    let mut levels = vec![Level { capacity: leaf, total: leaf, total_size: 0 }];
    while let Some(below) = levels.last().copied().filter(|l| l.total < count) {
        let pointer = usize::from(disk.sizes().offset) + count_size + below.total_size;
        let capacity = node.saturating_sub(NODE_OVERHEAD + pointer as u64) / (size + pointer as u64);
        if capacity < 2 || levels.len() > 64 {
            return Err(Error::unsupported(format!("records of {size} bytes in nodes of {node}")));
        }
        let total = capacity.saturating_add(1).saturating_mul(below.total).saturating_add(capacity);
        levels.push(Level { capacity, total, total_size: width_of(total) });
    }
    let depth = levels.len() as u16 - 1;
    let sizes = disk.sizes();
    let mut builder = Builder { disk, kind, records, levels, count_size };
    let (root, root_count) = match count {
        0 => (UNDEFINED, 0),
        _ => builder.node(usize::from(depth), 0, count)?,
    };
    let mut out = Encoder::new(sizes);
    out.put(b"BTHD").u8(0).u8(kind.record_type).u32(kind.node_size).u16(kind.record_size).u16(depth);
    out.u8(SPLIT).u8(MERGE).address(root).u16(root_count).length(count).checksum();
    builder.disk.place(&out.finish())
}

impl Builder<'_> {
    /// Writes the node of `level` over `count` records from `first` on, and all below it. Gives its address and the number
    /// of its own records. Levels fall, so that this ends.
    fn node(&mut self, level: usize, first: u64, count: u64) -> Result<(u64, u16)> {
        let size = u64::from(self.kind.record_size);
        let records = self.records;
        let record = |i: u64| {
            let start = (i * size) as usize;
            records.get(start..start + size as usize).unwrap_or_default()
        };
        let mut out = Encoder::new(self.disk.sizes());
        let own = match self.levels.get(level.wrapping_sub(1)).copied() {
            None => {
                out.put(b"BTLF").u8(0).u8(self.kind.record_type);
                (first..first + count).for_each(|i| {
                    out.put(record(i));
                });
                count
            }
            Some(below) => {
                out.put(b"BTIN").u8(0).u8(self.kind.record_type);
                // `children` nodes below and one record less between them.
                let children = (count + 1).div_ceil(below.total.saturating_add(1));
                let (share, more) = ((count + 1 - children) / children, (count + 1 - children) % children);
                let mut parts = Vec::new();
                let mut at = first;
                for i in 0..children {
                    let part = share + u64::from(i < more);
                    parts.push((at, part));
                    at += part + 1;
                }
                parts.iter().skip(1).for_each(|&(start, _)| {
                    out.put(record(start - 1));
                });
                for (start, part) in parts {
                    let (address, own) = self.node(level - 1, start, part)?;
                    out.address(address).uint(own.into(), self.count_size).uint(part, below.total_size);
                }
                children - 1
            }
        };
        if own > self.levels.get(level).map_or(0, |l| l.capacity) {
            return Err(Error::unsupported("a version 2 B-tree node with more records than fit"));
        }
        out.checksum();
        let address = self.disk.allocate(self.kind.node_size.into(), 8)?;
        let mut bytes = out.finish();
        bytes.resize(bytes.len().max(self.kind.node_size as usize), 0);
        self.disk.put(address, &bytes)?;
        Ok((address, own as u16))
    }
}
