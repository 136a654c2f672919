//! Chunks added to B-trees in place: nodes that get more than they hold are split, and nothing else moves.

use super::disk::Disk;
use super::encoder::{Encoder, width_of};
use super::index::{Entry, EntryWriter, Shape, tree_key};
use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED, lookup3};
use crate::shape::{Coord, to_usize};
use std::cmp::Ordering;

const NODE1: &str = "version 1 B-tree node";
const NODE2: &str = "version 2 B-tree node";

/// Levels that a tree has at most.
const MAX_LEVELS: u16 = 64;

/// Chunks to be added or replaced, in C order.
pub(super) type Changes<'a> = &'a [(Coord, Entry)];

// ---- version 1

/// A node of version 1: the key before each child, and the key at the end.
struct Node1 {
    level: u8,
    left: u64,
    right: u64,
    children: Vec<(Vec<u8>, u64)>,
    end: Vec<u8>,
}

struct Tree1<'a> {
    disk: &'a mut Disk,
    shape: Shape<'a>,
    key_size: usize,
}

/// Adds chunks to the tree whose root is at `root`. Gives the root that it has then.
pub(super) fn version1(disk: &mut Disk, root: u64, shape: Shape<'_>, changes: Changes<'_>) -> Result<u64> {
    let key_size = 8 + 8 * (shape.chunk.len() + 1);
    let mut tree = Tree1 { disk, shape, key_size };
    let mut parts = tree.insert(root, changes, None)?;
    // A root that was split gets a parent; each level has fewer nodes.
    let mut level = tree.read(root)?.level;
    while parts.len() > 1 {
        level = level.checked_add(1).ok_or_else(|| Error::unsupported("a B-tree of 256 levels"))?;
        let last = parts.last().map_or(root, |p| p.1);
        let end = tree.read(last)?.end;
        let node = Node1 { level, left: UNDEFINED, right: UNDEFINED, children: parts, end };
        let address = tree.disk.allocate(tree.size(), 8)?;
        parts = tree.write(address, node)?;
    }
    Ok(parts.first().map_or(root, |p| p.1))
}

impl Tree1<'_> {
    fn capacity(&self) -> usize {
        2 * usize::from(self.shape.k).max(1)
    }

    fn size(&self) -> u64 {
        let offset = usize::from(self.disk.sizes().offset);
        (8 + 2 * offset + self.capacity() * (self.key_size + offset) + self.key_size) as u64
    }

    fn read(&mut self, address: u64) -> Result<Node1> {
        let sizes = self.disk.sizes();
        let size = self.size();
        let bytes = self.disk.read(address, to_usize(size)?)?;
        let mut c = Cursor::new(&bytes, NODE1, address);
        c.signature(b"TREE")?;
        if c.u8()? != 1 {
            return Err(c.corrupt("it is not of chunks"));
        }
        let level = c.u8()?;
        let count = c.u16()?;
        if usize::from(count) > self.capacity() {
            return Err(c.corrupt(format!("{count} entries, at most {} fit", self.capacity())));
        }
        let (left, right) = (c.address(sizes)?, c.address(sizes)?);
        let mut children = Vec::new();
        for _ in 0..count {
            let key = c.take(self.key_size)?.to_vec();
            children.push((key, c.address(sizes)?));
        }
        let end = c.take(self.key_size)?.to_vec();
        Ok(Node1 { level, left, right, children, end })
    }

    /// How the chunk of a key relates to another.
    fn compare(&self, key: &[u8], chunk: &[u64]) -> Result<Ordering> {
        let mut c = Cursor::new(key, NODE1, 0);
        c.skip(8)?;
        for (&extent, &at) in self.shape.chunk.iter().zip(chunk) {
            let order = c.u64()?.cmp(&at.saturating_mul(extent));
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    /// Adds chunks to the node at `address` and all below it. Gives the nodes that it is then, each with its first key.
    fn insert(
        &mut self,
        address: u64,
        changes: Changes<'_>,
        above: Option<u8>,
    ) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut node = self.read(address)?;
        if above.is_some_and(|above| u64::from(node.level) + 1 != u64::from(above)) {
            // Levels fall, so that this ends.
            return Err(Error::corrupt(NODE1, address, "a node on another level than its place says"));
        }
        let sizes = self.disk.sizes();
        let Some((last, _)) = changes.last() else {
            let first = node.children.first().map_or_else(|| node.end.clone(), |c| c.0.clone());
            return Ok(vec![(first, address)]);
        };
        // The key at the end lies behind every chunk.
        if self.compare(&node.end, last)?.is_le() {
            let mut behind = last.clone();
            behind.iter_mut().skip(1).for_each(|c| *c = 0);
            behind.first_mut().into_iter().for_each(|c| *c += 1);
            node.end = tree_key(sizes, None, &behind, self.shape.chunk)?;
        }
        if node.level == 0 {
            let mut old = std::mem::take(&mut node.children).into_iter().peekable();
            let mut merged = Vec::new();
            for (chunk, entry) in changes {
                while let Some((key, _)) = old.peek() {
                    match self.compare(key, chunk)? {
                        Ordering::Less => merged.extend(old.next()),
                        Ordering::Equal => {
                            old.next();
                        }
                        Ordering::Greater => break,
                    }
                }
                merged.push((tree_key(sizes, Some(entry), chunk, self.shape.chunk)?, entry.address));
            }
            merged.extend(old);
            node.children = merged;
            return self.write(address, node);
        }
        let old = std::mem::take(&mut node.children);
        let mut rest = changes;
        let mut new = Vec::with_capacity(old.len());
        for (i, (key, child)) in old.iter().enumerate() {
            // What lies before the next child's first key goes into this one.
            let count = match old.get(i + 1) {
                None => rest.len(),
                Some((next, _)) => {
                    let mut count = 0;
                    for (chunk, _) in rest {
                        if self.compare(next, chunk)?.is_le() {
                            break;
                        }
                        count += 1;
                    }
                    count
                }
            };
            let (own, behind) = rest.split_at(count);
            rest = behind;
            match own {
                [] => new.push((key.clone(), *child)),
                own => new.extend(self.insert(*child, own, Some(node.level))?),
            }
        }
        node.children = new;
        self.write(address, node)
    }

    /// Writes a node, split where it has more children than fit.
    fn write(&mut self, address: u64, node: Node1) -> Result<Vec<(Vec<u8>, u64)>> {
        let Node1 { level, left, right, children, end } = node;
        let size = self.size();
        let count = children.len().div_ceil(self.capacity()).max(1);
        let mut addresses = vec![address];
        for _ in 1..count {
            addresses.push(self.disk.allocate(size, 8)?);
        }
        if count > 1 && right != UNDEFINED {
            // The neighbour on the right has another one on its left.
            let mut out = Encoder::new(self.disk.sizes());
            out.address(addresses.last().copied().unwrap_or(address));
            self.disk.patch(right.saturating_add(8), out.as_bytes())?;
        }
        let at = |i: usize| addresses.get(i).copied();
        let (share, more) = (children.len() / count, children.len() % count);
        let (mut first, mut parts) = (0, Vec::with_capacity(count));
        for i in 0..count {
            let own = share + usize::from(i < more);
            let mut out = Encoder::new(self.disk.sizes());
            out.put(b"TREE").u8(1).u8(level).u16(own as u16);
            out.address(i.checked_sub(1).map_or(left, |i| at(i).unwrap_or(left)));
            out.address(at(i + 1).unwrap_or(right));
            for (key, child) in children.iter().skip(first).take(own) {
                out.put(key).address(*child);
            }
            let behind = children.get(first + own).map_or(&end, |c| &c.0);
            out.put(behind);
            let mut bytes = out.finish();
            bytes.resize(size as usize, 0);
            let place = at(i).unwrap_or(address);
            self.disk.put(place, &bytes)?;
            parts.push((children.get(first).map_or_else(|| end.clone(), |c| c.0.clone()), place));
            first += own;
        }
        Ok(parts)
    }
}

// ---- version 2

/// What follows from the sizes for the nodes of one level.
#[derive(Clone, Copy)]
struct Level {
    capacity: u64,
    total: u64,
    total_size: usize,
}

/// A pointer to a node: its address, its records, and those of all below it too.
#[derive(Clone, Copy)]
struct Pointer {
    address: u64,
    count: u64,
    total: u64,
}

/// What a node became: nodes, with a record between each two.
struct Parts {
    nodes: Vec<Pointer>,
    between: Vec<Vec<u8>>,
}

struct Tree2<'a> {
    disk: &'a mut Disk,
    entries: EntryWriter,
    rank: usize,
    record_type: u8,
    record_size: usize,
    node_size: u64,
    levels: Vec<Level>,
}

/// Adds chunks to the tree whose header is at `address`.
pub(super) fn version2(disk: &mut Disk, address: u64, shape: Shape<'_>, changes: Changes<'_>) -> Result<()> {
    let sizes = disk.sizes();
    let (o, l) = (usize::from(sizes.offset), usize::from(sizes.length));
    let bytes = disk.read(address, 22 + o + l)?;
    let mut c = Cursor::new(&bytes, "version 2 B-tree header", address);
    c.signature(b"BTHD")?;
    c.skip(1)?;
    let record_type = c.u8()?;
    let node_size = u64::from(c.u32()?);
    let record_size = usize::from(c.u16()?);
    let depth = c.u16()?;
    let (split, merge) = (c.u8()?, c.u8()?);
    let root = c.address(sizes)?;
    let root_count = u64::from(c.u16()?);
    let total = c.length(sizes)?;
    c.checksum()?;
    let rank = shape.chunk.len();
    let width = record_size.checked_sub(o + 8 * rank);
    let width = match (shape.filtered, width) {
        (false, Some(0)) => None,
        (true, Some(n @ 5..=12)) => Some(n - 4),
        _ => return Err(c.corrupt(format!("records of {record_size} bytes"))),
    };
    if depth > MAX_LEVELS || record_size == 0 {
        return Err(c.corrupt(format!("{depth} levels of records of {record_size} bytes")));
    }
    let entries = EntryWriter::of_width(width);
    let mut tree = Tree2 { disk, entries, rank, record_type, record_size, node_size, levels: Vec::new() };
    (0..=depth).for_each(|_| tree.add_level());
    let start = Pointer { address: root, count: root_count, total };
    let mut level = usize::from(depth);
    let mut parts = match root {
        UNDEFINED => {
            let address = tree.disk.allocate(node_size, 8)?;
            let empty = Pointer { address, count: 0, total: 0 };
            tree.insert(empty, 0, true, changes)?
        }
        _ => tree.insert(start, level, false, changes)?,
    };
    while parts.nodes.len() > 1 {
        level += 1;
        if level > usize::from(MAX_LEVELS) {
            return Err(Error::unsupported("a version 2 B-tree of more than 64 levels"));
        }
        tree.add_level();
        let address = tree.disk.allocate(node_size, 8)?;
        parts = tree.write(address, level, parts.between, parts.nodes)?;
    }
    let Some(root) = parts.nodes.first().copied() else { return Ok(()) };
    let mut out = Encoder::new(sizes);
    out.put(b"BTHD").u8(0).u8(record_type).u32(node_size as u32).u16(record_size as u16).u16(level as u16);
    out.u8(split).u8(merge).address(root.address).u16(root.count as u16).length(root.total).checksum();
    tree.disk.put(address, &out.finish())
}

impl Tree2<'_> {
    /// Signature, version, type and checksum.
    const OVERHEAD: u64 = 10;

    fn sizes(&self) -> Sizes {
        self.disk.sizes()
    }

    fn add_level(&mut self) {
        let record = self.record_size as u64;
        let leaf = self.node_size.saturating_sub(Self::OVERHEAD) / record;
        let level = match self.levels.last() {
            None => Level { capacity: leaf, total: leaf, total_size: 0 },
            Some(below) => {
                let pointer = (usize::from(self.sizes().offset) + width_of(leaf) + below.total_size) as u64;
                let capacity = self.node_size.saturating_sub(Self::OVERHEAD + pointer) / (record + pointer);
                let total = capacity.saturating_add(1).saturating_mul(below.total).saturating_add(capacity);
                Level { capacity, total, total_size: width_of(total) }
            }
        };
        self.levels.push(level);
    }

    fn level(&self, level: usize) -> Result<Level> {
        let found = self.levels.get(level).copied().filter(|l| l.capacity >= 2);
        found.ok_or_else(|| Error::unsupported("nodes of a version 2 B-tree that hold fewer than 2 records"))
    }

    fn record(&self, chunk: &[u64], entry: &Entry) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.sizes());
        self.entries.put(&mut out, Some(entry))?;
        chunk.iter().for_each(|&c| {
            out.u64(c);
        });
        Ok(out.finish())
    }

    fn compare(&self, record: &[u8], chunk: &[u64]) -> Result<Ordering> {
        let mut c = Cursor::new(record, NODE2, 0);
        c.skip(self.record_size.saturating_sub(8 * self.rank))?;
        for &at in chunk {
            let order = c.u64()?.cmp(&at);
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    fn read(&mut self, at: Pointer, level: usize) -> Result<(Vec<Vec<u8>>, Vec<Pointer>)> {
        let sizes = self.sizes();
        let info = self.level(level)?;
        if at.count > info.capacity {
            return Err(Error::corrupt(NODE2, at.address, format!("{} records", at.count)));
        }
        let bytes = self.disk.read(at.address, to_usize(self.node_size)?)?;
        let mut c = Cursor::new(&bytes, NODE2, at.address);
        c.signature(if level == 0 { b"BTLF" } else { b"BTIN" })?;
        c.skip(2)?;
        let mut records = Vec::new();
        for _ in 0..at.count {
            records.push(c.take(self.record_size)?.to_vec());
        }
        let mut children = Vec::new();
        if let Some(below) = level.checked_sub(1) {
            let (leaf, below) = (self.level(0)?, self.level(below)?);
            for _ in 0..=at.count {
                let address = c.address(sizes)?;
                let count = c.uint(width_of(leaf.capacity))?;
                let total = if level == 1 { count } else { c.uint(below.total_size)? };
                children.push(Pointer { address, count, total });
            }
        }
        let end = c.position();
        let stored = c.u32()?;
        let computed = lookup3(bytes.get(..end).unwrap_or_default());
        if stored != computed {
            return Err(Error::checksum(NODE2, at.address, stored, computed));
        }
        Ok((records, children))
    }

    /// Adds chunks to a node and all below it. Levels fall, so that this ends.
    fn insert(&mut self, at: Pointer, level: usize, new: bool, changes: Changes<'_>) -> Result<Parts> {
        let (mut records, children) = if new { (Vec::new(), Vec::new()) } else { self.read(at, level)? };
        let Some(below) = level.checked_sub(1) else {
            let mut merged = Vec::with_capacity(records.len() + changes.len());
            let mut old = records.into_iter().peekable();
            for (chunk, entry) in changes {
                while let Some(record) = old.peek() {
                    match self.compare(record, chunk)? {
                        Ordering::Less => merged.extend(old.next()),
                        Ordering::Equal => {
                            old.next();
                        }
                        Ordering::Greater => break,
                    }
                }
                merged.push(self.record(chunk, entry)?);
            }
            merged.extend(old);
            return self.write(at.address, level, merged, Vec::new());
        };
        let (mut all, mut nodes) = (Vec::new(), Vec::new());
        let mut rest = changes;
        for (i, child) in children.iter().enumerate() {
            let mut count = rest.len();
            let mut equal = false;
            if let Some(record) = records.get(i) {
                count = 0;
                for (chunk, _) in rest {
                    let order = self.compare(record, chunk)?;
                    equal = order.is_eq();
                    if order.is_le() {
                        break;
                    }
                    count += 1;
                }
            }
            let (own, behind) = rest.split_at(count);
            rest = behind;
            if own.is_empty() {
                nodes.push(*child);
            } else {
                let parts = self.insert(*child, below, false, own)?;
                nodes.extend(parts.nodes);
                all.extend(parts.between);
            }
            if let (true, Some(((chunk, entry), behind))) = (equal, rest.split_first()) {
                let new = self.record(chunk, entry)?;
                records.get_mut(i).into_iter().for_each(|r| r.clone_from(&new));
                rest = behind;
            }
            all.extend(records.get(i).cloned());
        }
        self.write(at.address, level, all, nodes)
    }

    /// Writes a node, split where it has more records than fit.
    fn write(
        &mut self,
        address: u64,
        level: usize,
        records: Vec<Vec<u8>>,
        children: Vec<Pointer>,
    ) -> Result<Parts> {
        let capacity = to_usize(self.level(level)?.capacity)?;
        // Between each two nodes one record goes up.
        let count = (records.len() + 1).div_ceil(capacity + 1).max(1);
        let own = records.len() + 1 - count;
        let (share, more) = (own / count, own % count);
        let mut parts = Parts { nodes: Vec::new(), between: Vec::new() };
        let mut first = 0;
        for i in 0..count {
            let n = share + usize::from(i < more);
            let mut out = Encoder::new(self.sizes());
            out.put(if level == 0 { b"BTLF" } else { b"BTIN" }).u8(0).u8(self.record_type);
            records.iter().skip(first).take(n).for_each(|r| {
                out.put(r);
            });
            let mut total = n as u64;
            if level > 0 {
                let (leaf, below) = (self.level(0)?, self.level(level - 1)?);
                for child in children.iter().skip(first).take(n + 1) {
                    out.address(child.address).uint(child.count, width_of(leaf.capacity));
                    out.uint(child.total, if level == 1 { 0 } else { below.total_size });
                    total = total.saturating_add(child.total);
                }
            }
            out.checksum();
            let mut bytes = out.finish();
            bytes.resize(bytes.len().max(self.node_size as usize), 0);
            let place = if i == 0 { address } else { self.disk.allocate(self.node_size, 8)? };
            self.disk.put(place, &bytes)?;
            parts.nodes.push(Pointer { address: place, count: n as u64, total });
            first += n;
            if i + 1 < count {
                parts.between.extend(records.get(first).cloned());
                first += 1;
            }
        }
        Ok(parts)
    }
}
