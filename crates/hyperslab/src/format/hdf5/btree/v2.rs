//! Version 2 B-trees (specification, III.A.2): records of one size in the order of their keys. Records are handed on as
//! bytes; what they mean is up to the caller.

use crate::error::{Error, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::UNDEFINED;
use bytes::Bytes;
use std::cmp::Ordering;

const HEADER: &str = "version 2 B-tree header";
const LEAF: &str = "version 2 B-tree leaf";
const INTERNAL: &str = "version 2 B-tree internal node";

/// Signature, version, type and checksum: what every node has beside records and pointers.
const NODE_OVERHEAD: u64 = 10;

/// Bytes of a number that is at most `limit`.
fn encoded_size(limit: u64) -> usize {
    limit.checked_ilog2().unwrap_or(0) as usize / 8 + 1
}

/// What follows from the sizes of nodes and records for the nodes of one level.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The most records in a node.
    capacity: u64,
    /// Bytes of a child pointer's count of the records in the child's whole subtree.
    total_size: usize,
}

/// A tree, its header read.
#[derive(Clone, Debug)]
pub struct Tree {
    space: Space,
    address: u64,
    record_type: u8,
    record_size: usize,
    node_size: u64,
    root: Child,
    depth: u16,
    records: u64,
    /// Levels from the leaves up.
    levels: Vec<Level>,
    /// Bytes of a child pointer's count of the records in the child itself.
    count_size: usize,
}

/// A pointer to a node.
#[derive(Clone, Copy, Debug)]
struct Child {
    address: u64,
    count: u64,
}

/// The bytes of one node, verified.
struct Node<'a> {
    bytes: Bytes,
    tree: &'a Tree,
    count: usize,
    /// Offset of the child pointers; the end of the records.
    children: usize,
    level: u16,
    address: u64,
}

impl Tree {
    /// Reads the header at `address`. A tree of another type than `record_type` is an error.
    pub fn open(space: &Space, address: u64, record_type: u8) -> Result<Self> {
        let sizes = space.sizes();
        let length = 22 + u64::from(sizes.offset) + u64::from(sizes.length);
        let bytes = space.read(HEADER, address, length)?;
        let mut c = space.cursor(&bytes, HEADER, address).sealed();
        c.signature(b"BTHD")?;
        let version = c.u8()?;
        if version != 0 {
            return Err(c.corrupt(format!("version {version}, only 0 is known")));
        }
        let found = c.u8()?;
        if found != record_type {
            return Err(c.corrupt(format!("record type {record_type} expected, {found} found")));
        }
        let node_size = u64::from(c.u32()?);
        let record_size = u64::from(c.u16()?);
        let depth = c.u16()?;
        c.skip(2)?; // When to split and merge nodes.
        let root = c.address(sizes)?;
        let count = u64::from(c.u16()?);
        let records = c.length(sizes)?;
        c.checksum()?;

        space.limits().check_depth("version 2 B-tree nodes", depth.into())?;
        let corrupt = |text: String| Error::corrupt(HEADER, space.base().saturating_add(address), text);
        if record_size == 0 {
            return Err(corrupt("records of 0 bytes".into()));
        }
        // No node and no record is stored twice.
        let fits = space.end().saturating_sub(space.base()) / record_size;
        if records > fits {
            return Err(corrupt(format!(
                "{records} records of {record_size} bytes, the file has room for {fits}"
            )));
        }
        let leaf = node_size.saturating_sub(NODE_OVERHEAD) / record_size;
        let count_size = encoded_size(leaf);
        let mut levels = vec![Level { capacity: leaf, total_size: 0 }];
        let mut below = leaf;
        let mut total_size = 0;
        for _ in 0..depth {
            let pointer = (usize::from(sizes.offset) + count_size + total_size) as u64;
            let capacity = node_size.saturating_sub(NODE_OVERHEAD + pointer) / (record_size + pointer);
            // Only a hostile tree has more than 2^64 records; saturation keeps the size at its most.
            below = capacity.saturating_add(1).saturating_mul(below).saturating_add(capacity);
            total_size = encoded_size(below);
            levels.push(Level { capacity, total_size });
        }
        if levels.iter().any(|l| l.capacity == 0) {
            return Err(corrupt(format!("no record of {record_size} bytes fits into a node of {node_size}")));
        }
        let record_size = record_size as usize;
        let root = Child { address: root, count };
        Ok(Tree {
            space: space.clone(),
            address,
            record_type,
            record_size,
            node_size,
            root,
            depth,
            records,
            levels,
            count_size,
        })
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> usize {
        self.record_size
    }

    /// Records in the whole tree, as its header says.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Levels of internal nodes.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Visits every record in order; the first fault ends the walk.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.walk(visit, &mut Err)
    }

    /// Visits every record in order. A node that cannot be read goes to `fault`; if that gives `Ok`, the walk goes on
    /// behind the node.
    pub fn walk(
        &self,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
        fault: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        if self.root.address == UNDEFINED {
            return match self.records {
                0 => Ok(()),
                n => fault(self.corrupt(format!("{n} records, but no root node"))),
            };
        }
        let mut walk = Walk { tree: self, visit, fault, records: 0, broken: false };
        walk.node(self.root, self.depth)?;
        let Walk { records, broken, .. } = walk;
        if !broken && records != self.records {
            return fault(self.corrupt(format!("{} records announced, {records} found", self.records)));
        }
        Ok(())
    }

    /// Finds a record: `compare` says how the record that it is shown relates to the one wanted.
    pub fn search(&self, compare: &mut dyn FnMut(&[u8]) -> Result<Ordering>) -> Result<Option<Vec<u8>>> {
        let mut at = self.root;
        if at.address == UNDEFINED || at.count == 0 && self.depth == 0 {
            return Ok(None);
        }
        for level in (0..=self.depth).rev() {
            let node = self.node(at, level)?;
            let (mut low, mut high) = (0, node.count);
            while low < high {
                let middle = low + (high - low) / 2;
                let record = node.record(middle)?;
                match compare(record)? {
                    Ordering::Equal => return Ok(Some(record.to_vec())),
                    Ordering::Less => low = middle + 1,
                    Ordering::Greater => high = middle,
                }
            }
            if level > 0 {
                at = node.child(low)?;
            }
        }
        Ok(None)
    }

    #[cold]
    fn corrupt(&self, text: String) -> Error {
        Error::corrupt(HEADER, self.space.base().saturating_add(self.address), text)
    }

    fn node(&self, child: Child, level: u16) -> Result<Node<'_>> {
        let (name, signature) = if level == 0 { (LEAF, b"BTLF") } else { (INTERNAL, b"BTIN") };
        let at = self.space.base().saturating_add(child.address);
        let Some(info) = self.levels.get(usize::from(level)) else {
            return Err(Error::corrupt(name, at, "deeper than the tree"));
        };
        if child.count > info.capacity {
            let text = format!("{} records, at most {} fit", child.count, info.capacity);
            return Err(Error::corrupt(name, at, text));
        }
        // At most the node size, which has 32 bits.
        let count = child.count as usize;
        let children = NODE_OVERHEAD as usize - 4 + count * self.record_size;
        let pointers = if level == 0 { 0 } else { (count + 1) * self.pointer_size(level) };
        let bytes = self.space.read(name, child.address, (children + pointers + 4) as u64)?;
        let mut c = self.space.cursor(&bytes, name, child.address).sealed();
        c.signature(signature)?;
        let version = c.u8()?;
        if version != 0 {
            return Err(c.corrupt(format!("version {version}, only 0 is known")));
        }
        let found = c.u8()?;
        if found != self.record_type {
            return Err(c.corrupt(format!("record type {} expected, {found} found", self.record_type)));
        }
        c.skip(children + pointers - c.position())?;
        c.checksum()?;
        Ok(Node { bytes, tree: self, count, children, level, address: child.address })
    }

    /// Bytes of a child pointer in a node of `level`.
    fn pointer_size(&self, level: u16) -> usize {
        let below = self.levels.get(usize::from(level).saturating_sub(1)).map_or(0, |l| l.total_size);
        usize::from(self.space.sizes().offset) + self.count_size + below
    }
}

impl Node<'_> {
    fn record(&self, i: usize) -> Result<&[u8]> {
        let size = self.tree.record_size;
        let start = NODE_OVERHEAD as usize - 4 + i * size;
        let bytes = if i < self.count { self.bytes.get(start..start + size) } else { None };
        bytes.ok_or_else(|| self.tree.corrupt(format!("no record {i} in the node at {:#x}", self.address)))
    }

    fn child(&self, i: usize) -> Result<Child> {
        let sizes = self.tree.space.sizes();
        let mut c = self.tree.space.cursor(&self.bytes, INTERNAL, self.address);
        c.skip(self.children + i * self.tree.pointer_size(self.level))?;
        let address = c.address(sizes)?;
        let count = c.uint(self.tree.count_size)?;
        Ok(Child { address, count })
    }
}

/// A walk in progress. Every node holds a record, so that the count of records ends a walk in circles.
struct Walk<'a, 'f> {
    tree: &'a Tree,
    visit: &'f mut dyn FnMut(&[u8]) -> Result<()>,
    fault: &'f mut dyn FnMut(Error) -> Result<()>,
    records: u64,
    /// Whether a node could not be read.
    broken: bool,
}

impl Walk<'_, '_> {
    fn fail(&mut self, error: Error) -> Result<()> {
        self.broken = true;
        (self.fault)(error)
    }

    fn node(&mut self, at: Child, level: u16) -> Result<()> {
        let node = match self.tree.node(at, level) {
            Ok(node) => node,
            Err(e) => return self.fail(e),
        };
        if self.records + node.count as u64 > self.tree.records {
            // Not only this node is wrong: the walk could go on for ever.
            return Err(self.tree.corrupt(format!("more than the {} records announced", self.tree.records)));
        }
        if level > 0 {
            let child = |i| Some((node.child(i).ok()?.address, self.tree.node_size));
            self.tree.space.prefetch((0..=node.count).filter_map(child));
        }
        for i in 0..node.count {
            if level > 0 {
                self.child(&node, i, level)?;
            }
            self.records += 1;
            (self.visit)(node.record(i)?)?;
        }
        if level > 0 {
            self.child(&node, node.count, level)?;
        }
        Ok(())
    }

    fn child(&mut self, node: &Node<'_>, i: usize, level: u16) -> Result<()> {
        let child = node.child(i)?;
        if child.count == 0 {
            let at = self.tree.space.base().saturating_add(child.address);
            let name = if level == 1 { LEAF } else { INTERNAL };
            return self.fail(Error::corrupt(name, at, "a node below the root without records"));
        }
        self.node(child, level - 1)
    }
}
