//! What structures of a file take, so that it can be used again when they are written anew or removed.
//!
//! Only what is found whole is given back: where a part cannot be read, or its checksum does not match, all of the
//! structure stays where it is. That costs room and nothing else.

use super::disk::Disk;
use super::encoder::width_of;
use super::group::Table;
use super::object::{Body, Id, Storage};
use super::transaction::Transaction;
use crate::error::{Error, Result};
use crate::format::hdf5::heap::DoublingTable;
use crate::format::hdf5::index::Geometry;
use crate::format::hdf5::message::attribute::AttributeInfo;
use crate::format::hdf5::message::kind;
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::message::link::LinkInfo;
use crate::format::hdf5::parse::{Cursor, UNDEFINED, lookup3};
use crate::shape::to_usize;

/// Runs of bytes: address and length.
type Runs = Vec<(u64, u64)>;

/// The most blocks of one structure that are looked for.
const MAX_BLOCKS: usize = 1 << 20;

/// Reads a structure whose last four bytes are its checksum.
fn sealed(disk: &mut Disk, address: u64, length: u64) -> Result<Vec<u8>> {
    let bytes = disk.read(address, to_usize(length)?)?;
    let (body, sum) = bytes.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    let (stored, computed) = (u32::from_le_bytes(*sum), lookup3(body));
    match stored == computed {
        true => Ok(bytes),
        false => Err(Error::checksum("HDF5 structure", address, stored, computed)),
    }
}

fn push(runs: &mut Runs, address: u64, length: u64) -> Result<()> {
    if runs.len() >= MAX_BLOCKS {
        return Err(Error::limit("blocks of one structure", runs.len() as u128, MAX_BLOCKS as u128));
    }
    runs.push((address, length));
    Ok(())
}

/// The blocks of the version 2 B-tree whose header is at `address`; `visit` sees every record.
fn tree2(
    disk: &mut Disk,
    address: u64,
    runs: &mut Runs,
    visit: &mut dyn FnMut(&mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    if address == UNDEFINED {
        return Ok(());
    }
    let sizes = disk.sizes();
    let length = 22 + u64::from(sizes.offset) + u64::from(sizes.length);
    let bytes = sealed(disk, address, length)?;
    let mut c = Cursor::new(&bytes, "version 2 B-tree header", address);
    c.signature(b"BTHD")?;
    c.skip(2)?;
    let (node, record, depth) = (u64::from(c.u32()?), usize::from(c.u16()?), c.u16()?);
    c.skip(2)?;
    let (root, count) = (c.address(sizes)?, u64::from(c.u16()?));
    push(runs, address, length)?;
    if record == 0 || depth > 64 {
        return Err(c.corrupt(format!("{depth} levels of records of {record} bytes")));
    }
    if root == UNDEFINED {
        return Ok(());
    }
    // Sizes of the counts in pointers, from the leaves up.
    let leaf = node.saturating_sub(10) / record as u64;
    let (mut totals, mut total) = (vec![0usize], leaf);
    for _ in 0..depth {
        let below = totals.last().copied().unwrap_or(0);
        let pointer = (usize::from(sizes.offset) + width_of(leaf) + below) as u64;
        let capacity = node.saturating_sub(10 + pointer) / (record as u64 + pointer);
        total = capacity.saturating_add(1).saturating_mul(total).saturating_add(capacity);
        totals.push(width_of(total));
    }
    let mut todo = vec![(root, count, depth)];
    while let Some((at, count, level)) = todo.pop() {
        let bytes = disk.read(at, to_usize(node)?)?;
        let mut c = Cursor::new(&bytes, "version 2 B-tree node", at);
        c.signature(if level == 0 { b"BTLF" } else { b"BTIN" })?;
        c.skip(2)?;
        for _ in 0..count {
            visit(&mut Cursor::new(c.take(record)?, "version 2 B-tree record", at))?;
        }
        let below = usize::from(level).checked_sub(1).and_then(|below| totals.get(below).copied());
        for _ in 0..below.map_or(0, |_| count + 1) {
            let (child, own) = (c.address(sizes)?, c.uint(width_of(leaf))?);
            c.uint(below.unwrap_or(0))?;
            todo.push((child, own, level - 1));
        }
        let end = c.position();
        let (stored, computed) = (c.u32()?, lookup3(bytes.get(..end).unwrap_or_default()));
        if stored != computed {
            return Err(Error::checksum("version 2 B-tree node", at, stored, computed));
        }
        push(runs, at, node)?;
    }
    Ok(())
}

/// The blocks of the fractal heap whose header is at `address`, with what its free space and its huge objects take.
fn heap(disk: &mut Disk, address: u64, runs: &mut Runs) -> Result<()> {
    if address == UNDEFINED {
        return Ok(());
    }
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let length = 26 + 12 * l + 3 * o;
    let bytes = disk.read(address, to_usize(length)?)?;
    let mut c = Cursor::new(&bytes, "fractal heap header", address);
    c.signature(b"FRHP")?;
    c.skip(3)?;
    if c.u16()? != 0 {
        return Err(c.corrupt("its blocks are filtered"));
    }
    sealed(disk, address, length)?;
    c.skip(5)?;
    c.length(sizes)?;
    let huge = c.address(sizes)?;
    c.length(sizes)?;
    let space = c.address(sizes)?;
    for _ in 0..8 {
        c.length(sizes)?;
    }
    let (width, start, max_direct, bits) = (c.u16()?, c.length(sizes)?, c.length(sizes)?, c.u16()?);
    c.skip(2)?;
    let (root, rows) = (c.address(sizes)?, u64::from(c.u16()?));
    let table = DoublingTable::new(width, start, max_direct, bits)?;
    push(runs, address, length)?;
    let mut objects = Vec::new();
    tree2(disk, huge, runs, &mut |c| {
        objects.push((c.address(sizes)?, c.length(sizes)?));
        Ok(())
    })?;
    runs.append(&mut objects);
    if space != UNDEFINED {
        let length = 18 + 7 * l + o;
        let bytes = sealed(disk, space, length)?;
        let mut c = Cursor::new(&bytes, "free-space manager", space);
        c.signature(b"FSHD")?;
        c.take_u64(2 + 4 * l + 8 + l)?;
        let sections = c.address(sizes)?;
        c.length(sizes)?;
        let allocated = c.length(sizes)?;
        push(runs, space, length)?;
        if sections != UNDEFINED {
            push(runs, sections, allocated)?;
        }
    }
    if root == UNDEFINED {
        return Ok(());
    }
    if rows == 0 {
        return push(runs, root, start);
    }
    let mut todo = vec![(root, rows)];
    while let Some((at, rows)) = todo.pop() {
        if rows > table.max_rows() {
            return Err(Error::corrupt("fractal heap indirect block", at, format!("{rows} rows")));
        }
        let (direct, indirect) = table.entries(rows);
        let length = 9 + o + u64::from(bits).div_ceil(8) + (direct + indirect) * o;
        let bytes = sealed(disk, at, length)?;
        let mut c = Cursor::new(&bytes, "fractal heap indirect block", at);
        c.signature(b"FHIB")?;
        c.take_u64(1 + o + u64::from(bits).div_ceil(8))?;
        push(runs, at, length)?;
        let width = u64::from(width);
        for i in 0..direct + indirect {
            let child = c.address(sizes)?;
            if child == UNDEFINED {
                continue;
            }
            let size = start.checked_shl((i / width).saturating_sub(1) as u32).unwrap_or(0);
            match (i < direct, table.rows_of(size)) {
                (true, _) => push(runs, child, size)?,
                (false, Some(rows)) => todo.push((child, rows)),
                (false, None) => return Err(c.corrupt("a block smaller than a row")),
            }
            if todo.len() > MAX_BLOCKS {
                return Err(c.corrupt("more blocks than there can be"));
            }
        }
    }
    Ok(())
}

/// The nodes of a version 1 B-tree whose children are `leaf` bytes long, if these belong to it.
fn tree1(disk: &mut Disk, root: u64, node: u64, key: u64, leaf: Option<u64>, runs: &mut Runs) -> Result<()> {
    let sizes = disk.sizes();
    let mut todo = vec![(root, None)];
    while let Some((at, above)) = todo.pop() {
        let bytes = disk.read(at, to_usize(node)?)?;
        let mut c = Cursor::new(&bytes, "version 1 B-tree node", at);
        c.signature(b"TREE")?;
        c.skip(1)?;
        let (level, count) = (c.u8()?, c.u16()?);
        if above.is_some_and(|above: u8| above != level.wrapping_add(1)) {
            return Err(c.corrupt("a node on another level than its place says"));
        }
        c.skip(2 * usize::from(sizes.offset))?;
        push(runs, at, node)?;
        for _ in 0..count {
            c.take_u64(key)?;
            let child = c.address(sizes)?;
            match (level, leaf) {
                (0, Some(leaf)) => push(runs, child, leaf)?,
                (0, None) => {}
                _ => todo.push((child, Some(level))),
            }
        }
    }
    Ok(())
}

/// The blocks of the fixed array whose header is at `address`.
fn fixed_array(disk: &mut Disk, address: u64, runs: &mut Runs) -> Result<()> {
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let bytes = sealed(disk, address, 12 + l + o)?;
    let mut c = Cursor::new(&bytes, "fixed array header", address);
    c.signature(b"FAHD")?;
    c.skip(2)?;
    let (size, page_bits) = (u64::from(c.u8()?), u32::from(c.u8()?));
    let (count, data) = (c.length(sizes)?, c.address(sizes)?);
    push(runs, address, 12 + l + o)?;
    if data == UNDEFINED {
        return Ok(());
    }
    let page = 1u64.checked_shl(page_bits).ok_or_else(|| c.corrupt("pages of 2^64 entries"))?;
    let too_large = || Error::invalid(format!("a fixed array of {count} entries"));
    let entries = count.checked_mul(size).ok_or_else(too_large)?;
    if count <= page {
        let length = entries.saturating_add(6 + o + 4);
        sealed(disk, data, length)?;
        return push(runs, data, length);
    }
    let pages = count.div_ceil(page);
    let prefix = 6 + o + pages.div_ceil(8) + 4;
    sealed(disk, data, prefix)?;
    let length = pages.checked_mul(4).and_then(|n| n.checked_add(entries)?.checked_add(prefix));
    push(runs, data, length.ok_or_else(too_large)?)
}

/// The blocks of the extensible array whose header is at `address`.
fn extensible_array(disk: &mut Disk, address: u64, runs: &mut Runs) -> Result<()> {
    let sizes = disk.sizes();
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    let length = 16 + 6 * l + o;
    let bytes = sealed(disk, address, length)?;
    let mut c = Cursor::new(&bytes, "extensible array header", address);
    c.signature(b"EAHD")?;
    c.skip(2)?;
    let size = u64::from(c.u8()?);
    let (max_bits, direct, smallest, pointers, page_bits) = (c.u8()?, c.u8()?, c.u8()?, c.u8()?, c.u8()?);
    let g = Geometry::from_parameters(max_bits, direct, smallest, pointers, page_bits)?;
    c.take_u64(6 * l)?;
    let index = c.address(sizes)?;
    push(runs, address, length)?;
    if index == UNDEFINED {
        return Ok(());
    }
    let number_size = u64::from(max_bits).div_ceil(8);
    // The block of one group, and what a block of addresses of such takes.
    let data_length = |group: u32| -> Option<u64> {
        let (entries, pages) = (g.entries(group).checked_mul(size)?, g.pages(group));
        entries.checked_add(6 + o + number_size + 4)?.checked_add(pages.checked_mul(4)?)
    };
    let too_large = || Error::invalid("a data block of 2^64 bytes in an extensible array");
    let near: u64 = (0..g.near_groups).map(|group| g.blocks(group)).sum();
    let far = u64::from(g.groups.saturating_sub(g.near_groups));
    let index_length = 6 + o + g.direct * size + (near + far) * o + 4;
    let bytes = sealed(disk, index, index_length)?;
    let mut c = Cursor::new(&bytes, "extensible array index block", index);
    c.signature(b"EAIB")?;
    c.take_u64(2 + o + g.direct * size)?;
    push(runs, index, index_length)?;
    for group in 0..g.near_groups {
        for _ in 0..g.blocks(group) {
            let data = c.address(sizes)?;
            if data != UNDEFINED {
                push(runs, data, data_length(group).ok_or_else(too_large)?)?;
            }
        }
    }
    for group in g.near_groups..g.groups {
        let at = c.address(sizes)?;
        if at == UNDEFINED {
            continue;
        }
        let (blocks, pages) = (g.blocks(group), g.pages(group));
        let bitmap = blocks.saturating_mul(pages.div_ceil(8));
        let length = blocks.saturating_mul(o).saturating_add(bitmap).saturating_add(6 + o + number_size + 4);
        let bytes = sealed(disk, at, length)?;
        let mut c = Cursor::new(&bytes, "extensible array secondary block", at);
        c.signature(b"EASB")?;
        c.take_u64(2 + o + number_size + bitmap)?;
        push(runs, at, length)?;
        for _ in 0..blocks {
            let data = c.address(sizes)?;
            if data != UNDEFINED {
                push(runs, data, data_length(group).ok_or_else(too_large)?)?;
            }
        }
    }
    Ok(())
}

impl Transaction {
    /// Gives back what was found, or nothing.
    fn give_back(&mut self, found: Result<Runs>) {
        // What cannot be read takes its room and does no harm.
        let mut runs = found.unwrap_or_default();
        runs.sort_unstable();
        let apart = runs.windows(2).all(|pair| match pair {
            [(a, n), (b, _)] => a.checked_add(*n).is_some_and(|end| end <= *b),
            _ => true,
        });
        if apart {
            runs.into_iter().for_each(|(address, length)| self.disk.release(address, length));
        }
    }

    /// Gives back the heap and the trees of an object's attributes, which are written anew or removed.
    pub(super) fn reclaim_attributes(&mut self, id: Id) -> Result<()> {
        let Some(stored) = &self.object(id)?.stored else { return Ok(()) };
        let sizes = self.disk.sizes();
        let message = stored.attribute_messages.iter().find(|m| m.kind == kind::ATTRIBUTE_INFO);
        let info =
            message.and_then(|m| AttributeInfo::parse(Cursor::new(&m.body, "attribute info", 0), sizes).ok());
        if let Some(info) = info.filter(|info| info.heap != UNDEFINED) {
            let found = self.dense(info.heap, &[info.names, info.order.unwrap_or(UNDEFINED)]);
            self.give_back(found);
        }
        Ok(())
    }

    /// Gives back what holds the links of a group, which are written anew or removed; a symbol table's first blocks only if
    /// it is removed.
    pub(super) fn reclaim_links(&mut self, id: Id, removed: bool) -> Result<()> {
        let Some(stored) = &self.object(id)?.stored else { return Ok(()) };
        let sizes = self.disk.sizes();
        let message = stored.link_messages.iter().find(|m| m.kind == kind::LINK_INFO);
        let info = message.and_then(|m| LinkInfo::parse(Cursor::new(&m.body, "link info", 0), sizes).ok());
        let table = stored.table;
        if let Some(info) = info.filter(|info| info.heap != UNDEFINED) {
            let found = self.dense(info.heap, &[info.names, info.order.unwrap_or(UNDEFINED)]);
            self.give_back(found);
        }
        if let Some(table) = table {
            let found = self.table(table, removed);
            self.give_back(found);
        }
        Ok(())
    }

    /// Gives back the index of an array's chunks, which is written anew or removed.
    pub(super) fn reclaim_index(&mut self, id: Id) -> Result<()> {
        let Body::Array(array) = &self.object(id)?.body else { return Ok(()) };
        let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
        let (kind, address, rank) = (chunked.kind, chunked.address, chunked.chunk.len() as u64);
        if self.object(id)?.stored.is_none() || address == UNDEFINED {
            return Ok(());
        }
        let offset = u64::from(self.disk.sizes().offset);
        let key = 8 + 8 * (rank + 1);
        let node = 8 + 2 * offset + 2 * u64::from(self.chunk_k) * (key + offset) + key;
        let mut runs = Runs::new();
        let found = match kind {
            IndexKind::BtreeV1 => tree1(&mut self.disk, address, node, key, None, &mut runs),
            IndexKind::BtreeV2 { .. } => tree2(&mut self.disk, address, &mut runs, &mut |_| Ok(())),
            IndexKind::FixedArray { .. } => fixed_array(&mut self.disk, address, &mut runs),
            IndexKind::ExtensibleArray { .. } => extensible_array(&mut self.disk, address, &mut runs),
            // Chunks and nothing else.
            IndexKind::Single { .. } | IndexKind::Implicit => return Ok(()),
        };
        self.give_back(found.map(|()| runs));
        Ok(())
    }

    fn dense(&mut self, heap_at: u64, trees: &[u64]) -> Result<Runs> {
        let mut runs = Runs::new();
        heap(&mut self.disk, heap_at, &mut runs)?;
        for &tree in trees {
            tree2(&mut self.disk, tree, &mut runs, &mut |_| Ok(()))?;
        }
        Ok(runs)
    }

    fn table(&mut self, table: Table, removed: bool) -> Result<Runs> {
        let sizes = self.disk.sizes();
        let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
        let k = self.group_k;
        let node = 8 + 2 * o + 2 * u64::from(k.internal) * (l + o) + l;
        let symbols = 8 + 2 * u64::from(k.leaf) * (2 * o + 24);
        let mut runs = Runs::new();
        tree1(&mut self.disk, table.btree, node, l, Some(symbols), &mut runs)?;
        let length = 8 + 2 * l + o;
        let bytes = self.disk.read(table.heap, to_usize(length)?)?;
        let mut c = Cursor::new(&bytes, "local heap", table.heap);
        c.signature(b"HEAP")?;
        c.skip(4)?;
        let size = c.length(sizes)?;
        c.length(sizes)?;
        let segment = c.address(sizes)?;
        push(&mut runs, segment, size)?;
        match removed {
            true => push(&mut runs, table.heap, length)?,
            // These stay where they are.
            false => runs.retain(|&(address, _)| address != table.btree),
        }
        Ok(runs)
    }
}
