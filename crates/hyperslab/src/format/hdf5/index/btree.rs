//! Chunks in B-trees: version 1 (specification, III.A.1, node type 1) and version 2 (record types 10 and 11).

use super::entry::{Entry, EntryFormat};
use super::grid::Grid;
use super::{Found, Lookup};
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::btree::{v1, v2};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::Cursor;
use crate::shape::Coord;
use std::cmp::Ordering;

const RECORD: &str = "chunk record";

/// Version 1: keys hold the offset of a chunk's first element, and one more number that is always 0.
#[derive(Debug)]
pub(super) struct BtreeV1 {
    pub(super) space: Space,
    pub(super) root: u64,
    pub(super) grid: Grid,
}

impl BtreeV1 {
    fn node(&self, address: u64) -> Result<v1::Node> {
        // Rank is at most 32.
        let key_size = 8 + 8 * (self.grid.rank() + 1);
        v1::Node::open(&self.space, address, v1::NodeType::Chunk, key_size)
    }

    /// The chunk of a key, with its length and mask.
    fn key(&self, c: &mut Cursor<'_>) -> Result<(Coord, u64, u32)> {
        let length = u64::from(c.u32()?);
        let mask = c.u32()?;
        let mut chunk = Coord::new();
        for &extent in self.grid.chunk() {
            let offset = c.u64()?;
            if offset % extent != 0 {
                return Err(c.corrupt(format!("offset {offset} is no multiple of the chunk extent {extent}")));
            }
            chunk.push(offset / extent);
        }
        Ok((chunk, length, mask))
    }

    /// How the chunk of a key relates to `chunk`. The key behind the last child need not be the offset of a chunk.
    fn compare(&self, mut c: Cursor<'_>, chunk: &[u64]) -> Result<Ordering> {
        c.skip(8)?;
        for (&extent, &wanted) in self.grid.chunk().iter().zip(chunk) {
            let order = (c.u64()?).cmp(&wanted.saturating_mul(extent));
            if order != Ordering::Equal {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    fn walk_node(&self, address: u64, parent: Option<u8>, visits: &mut Visits<'_>) -> Result<()> {
        let node = match self.node(address) {
            Ok(node) => node,
            Err(e) => return (visits.fault)(e),
        };
        if let Some(parent) = parent
            && u64::from(node.level()) + 1 != u64::from(parent)
        {
            // What leads in a circle does not go down.
            let text = format!("level {} below level {parent}", node.level());
            return (visits.fault)(Error::corrupt("version 1 B-tree node", self.absolute(address), text));
        }
        self.space.limits().check_depth("version 1 B-tree nodes", node.level().into())?;
        for i in 0..node.len() {
            if node.level() > 0 {
                visits.count(1)?;
                self.walk_node(node.child(i)?, Some(node.level()), visits)?;
                continue;
            }
            let child = node.child(i)?;
            let (chunk, length, mask) = match self.key(&mut node.key(i)?) {
                Ok(key) => key,
                Err(e) => {
                    (visits.fault)(e)?;
                    continue;
                }
            };
            (visits.visit)(&chunk, Entry { address: child, length, mask })?;
        }
        Ok(())
    }

    fn absolute(&self, address: u64) -> u64 {
        self.space.base().saturating_add(address)
    }
}

/// The two sinks of a walk, and how many nodes it may still visit.
struct Visits<'a> {
    visit: Found<'a>,
    fault: &'a mut dyn FnMut(Error) -> Result<()>,
    left: u64,
}

impl Visits<'_> {
    fn count(&mut self, nodes: u64) -> Result<()> {
        match self.left.checked_sub(nodes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::Corrupt,
                "version 1 B-tree with more nodes than the file has room for",
            )),
        }
    }
}

impl Lookup for BtreeV1 {
    fn walk(&self, visit: Found<'_>, fault: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        // A node has 24 bytes at least, and each is in the tree once.
        let left = self.space.end() / 24;
        let mut visits = Visits { visit, fault, left };
        self.walk_node(self.root, None, &mut visits)
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        let mut node = self.node(self.root)?;
        loop {
            // The last child whose key is not behind the chunk.
            let (mut low, mut high) = (0, node.len());
            while low < high {
                let middle = low + (high - low) / 2;
                match self.compare(node.key(middle)?, chunk)? {
                    Ordering::Greater => high = middle,
                    _ => low = middle + 1,
                }
            }
            let Some(i) = low.checked_sub(1) else { return Ok(None) };
            if node.level() == 0 {
                if self.compare(node.key(i)?, chunk)? != Ordering::Equal {
                    return Ok(None);
                }
                let (_, length, mask) = self.key(&mut node.key(i)?)?;
                return Ok(Some(Entry { address: node.child(i)?, length, mask }));
            }
            let below = self.node(node.child(i)?)?;
            if below.level() >= node.level() {
                let text = format!("level {} below level {}", below.level(), node.level());
                return Err(Error::corrupt("version 1 B-tree node", self.absolute(below.address()), text));
            }
            node = below;
        }
    }
}

/// Version 2: records hold an entry and the coordinates of the chunk.
#[derive(Debug)]
pub(super) struct BtreeV2 {
    space: Space,
    tree: v2::Tree,
    address: u64,
    format: EntryFormat,
    rank: usize,
}

impl BtreeV2 {
    pub(super) fn open(space: &Space, address: u64, grid: &Grid, filtered: bool) -> Result<Self> {
        let tree = v2::Tree::open(space, address, if filtered { 11 } else { 10 })?;
        let rank = grid.rank();
        let entry = tree.record_size().checked_sub(8 * rank);
        let format = entry.and_then(|n| EntryFormat::new(space.sizes(), filtered, n, grid.chunk_bytes()));
        let format = format.ok_or_else(|| {
            let text = format!("records of {} bytes for chunks of rank {rank}", tree.record_size());
            Error::corrupt("version 2 B-tree header", space.base().saturating_add(address), text)
        })?;
        Ok(BtreeV2 { space: space.clone(), tree, address, format, rank })
    }

    fn record(&self, record: &[u8]) -> Result<(Coord, Option<Entry>)> {
        let mut c = self.space.cursor(record, RECORD, self.address);
        let entry = self.format.parse(&mut c)?;
        let chunk = (0..self.rank).map(|_| c.u64()).collect::<Result<_>>()?;
        Ok((chunk, entry))
    }
}

impl Lookup for BtreeV2 {
    fn walk(&self, visit: Found<'_>, fault: &mut dyn FnMut(Error) -> Result<()>) -> Result<()> {
        let each = &mut |record: &[u8]| {
            let (chunk, entry) = self.record(record)?;
            match entry {
                Some(entry) => visit(&chunk, entry),
                None => Ok(()),
            }
        };
        self.tree.walk(each, fault)
    }

    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>> {
        let found = self.tree.search(&mut |record| Ok(self.record(record)?.0[..].cmp(chunk)))?;
        match found {
            Some(record) => Ok(self.record(&record)?.1),
            None => Ok(None),
        }
    }
}
