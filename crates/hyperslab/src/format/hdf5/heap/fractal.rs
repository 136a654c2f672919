//! The fractal heap: links, attributes and shared messages of new-style files (specification, III.G).
//!
//! An object's identifier says how it is stored: *tiny* in the identifier itself, *managed* at an offset of the heap's
//! linear address space, which a tree of blocks makes up, or *huge* on its own in the file.

use super::geometry::DoublingTable;
use crate::codec::{BindContext, FilterSpec, Registry, Scratch};
use crate::dtype::{ByteOrder, DType, IntegerType};
use crate::error::{Context, Error, Result};
use crate::format::hdf5::btree::v2::Tree;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::message::filter;
use crate::format::hdf5::parse::{Cursor, UNDEFINED, lookup3};
use crate::shape::to_usize;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

const HEADER: &str = "fractal heap header";
const DIRECT: &str = "fractal heap direct block";
const INDIRECT: &str = "fractal heap indirect block";
const HUGE: &str = "fractal heap huge object";
const FILTERS: &str = "filter pipeline of a fractal heap";
const ID: &str = "fractal heap identifier";

/// Bytes of blocks kept in memory.
const CACHED: usize = 8 << 20;

/// How an object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// In a block of the heap.
    Managed,
    /// On its own in the file.
    Huge,
    /// In its identifier.
    Tiny,
}

/// A fractal heap, its header read.
#[derive(Debug)]
pub struct FractalHeap {
    space: Space,
    address: u64,
    id_length: u16,
    table: DoublingTable,
    max_bits: u16,
    max_managed: u32,
    checksummed: bool,
    /// The pipeline, if blocks and huge objects are filtered.
    filters: Option<Vec<FilterSpec>>,
    registry: Registry,
    root: Root,
    huge_tree: u64,
    free_space: u64,
    blocks: Mutex<Blocks>,
}

/// The root block.
#[derive(Clone, Copy, Debug)]
enum Root {
    None,
    Direct(Stored),
    Indirect { address: u64, rows: u64 },
}

/// A direct block in the file: `filtered` is its encoded length and filter mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    address: u64,
    filtered: Option<(u64, u32)>,
}

/// The children of an indirect block; `None` where there is no block.
#[derive(Debug)]
struct Indirect {
    direct: Vec<Option<Stored>>,
    indirect: Vec<Option<u64>>,
}

/// Blocks that were read.
#[derive(Debug, Default)]
struct Blocks {
    /// Direct blocks by their offset in the heap.
    direct: BTreeMap<u64, Bytes>,
    /// Indirect blocks by their address.
    indirect: HashMap<u64, Arc<Indirect>>,
    bytes: usize,
}

impl Blocks {
    /// Makes room for `bytes` more.
    fn grow(&mut self, bytes: usize) {
        if self.bytes.saturating_add(bytes) > CACHED {
            *self = Blocks::default();
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl FractalHeap {
    /// Reads the header at `address`.
    pub fn open(space: &Space, address: u64) -> Result<Self> {
        let sizes = space.sizes();
        let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
        let fixed = 26 + 12 * l + 3 * o;
        let bytes = space.read(HEADER, address, fixed)?;
        let filters_length = {
            let mut c = space.cursor(&bytes, HEADER, address).sealed();
            c.signature(b"FRHP")?;
            let version = c.u8()?;
            if version != 0 {
                return Err(c.corrupt(format!("version {version}, only 0 is known")));
            }
            c.skip(2)?;
            u64::from(c.u16()?)
        };
        let bytes = match filters_length {
            0 => bytes,
            n => space.read(HEADER, address, fixed + l + 4 + n)?,
        };
        let mut c = space.cursor(&bytes, HEADER, address).sealed();
        c.skip(5)?;
        let id_length = c.u16()?;
        c.skip(2)?;
        let flags = c.u8()?;
        let max_managed = c.u32()?;
        c.length(sizes)?; // Next huge identifier: for writers.
        let huge_tree = c.address(sizes)?;
        c.length(sizes)?; // Free space in managed blocks,
        let free_space = c.address(sizes)?; // Its manager,
        // space managed, allocated, where allocation goes on, objects managed, huge bytes and objects, tiny ones.
        for _ in 0..8 {
            c.length(sizes)?;
        }
        let width = c.u16()?;
        let start = c.length(sizes)?;
        let max_direct = c.length(sizes)?;
        let max_bits = c.u16()?;
        c.skip(2)?; // Rows that a new root starts with: for writers.
        let root = c.address(sizes)?;
        let rows = u64::from(c.u16()?);
        let mut filters = None;
        let mut root_filtered = None;
        if filters_length != 0 {
            root_filtered = Some((c.length(sizes)?, c.u32()?));
            let (message, at) = (c.take_u64(filters_length)?, c.offset() - filters_length);
            filters = Some(filter::parse(Cursor::new(message, FILTERS, at))?);
        }
        c.checksum()?;

        let at = space.base().saturating_add(address);
        let table = DoublingTable::new(width, start, max_direct, max_bits).at(HEADER, at)?;
        if id_length < 2 || max_managed == 0 {
            let text = format!("identifiers of {id_length} bytes, managed objects to {max_managed} bytes");
            return Err(Error::corrupt(HEADER, at, text));
        }
        if rows > table.max_rows() {
            let text = format!("{rows} rows in the root block, at most {} fit", table.max_rows());
            return Err(Error::corrupt(HEADER, at, text));
        }
        let root = match (root, rows) {
            (UNDEFINED, _) => Root::None,
            (address, 0) => Root::Direct(Stored { address, filtered: root_filtered }),
            (address, rows) => Root::Indirect { address, rows },
        };
        Ok(FractalHeap {
            space: space.clone(),
            address,
            id_length,
            table,
            max_bits,
            max_managed,
            checksummed: flags & 2 != 0,
            filters,
            registry: Registry::default(),
            root,
            huge_tree,
            free_space,
            blocks: Mutex::default(),
        })
    }

    /// Address of the manager of its free space, undefined if there is none: for `check`.
    pub fn free_space(&self) -> u64 {
        self.free_space
    }

    /// Bytes of an identifier.
    pub fn id_length(&self) -> usize {
        self.id_length.into()
    }

    /// How the object of an identifier is stored.
    pub fn kind(&self, id: &[u8]) -> Result<ObjectKind> {
        let first = *id.first().ok_or_else(|| self.wrong_id("it has no bytes"))?;
        if first >> 6 != 0 {
            return Err(self.wrong_id(format!("version {}, only 0 is known", first >> 6)));
        }
        match first >> 4 & 3 {
            0 => Ok(ObjectKind::Managed),
            1 => Ok(ObjectKind::Huge),
            2 => Ok(ObjectKind::Tiny),
            _ => Err(self.wrong_id("type 3 is not in use")),
        }
    }

    /// The bytes of the object of `id`, which may be followed by padding.
    pub fn object(&self, id: &[u8]) -> Result<Bytes> {
        let kind = self.kind(id)?;
        let id = id
            .get(..self.id_length())
            .ok_or_else(|| self.wrong_id(format!("{} bytes instead of {}", id.len(), self.id_length)))?;
        match kind {
            ObjectKind::Managed => self.managed(id),
            ObjectKind::Huge => self.huge(id),
            ObjectKind::Tiny => self.tiny(id),
        }
    }

    #[cold]
    fn wrong_id(&self, text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        // The heap's address: where the identifier itself lies is known to the caller only.
        Error::corrupt(ID, self.space.base().saturating_add(self.address), text)
    }

    fn id_cursor<'a>(&self, id: &'a [u8]) -> Result<Cursor<'a>> {
        let mut c = self.space.cursor(id, ID, self.address);
        c.skip(1)?;
        Ok(c)
    }

    fn tiny(&self, id: &[u8]) -> Result<Bytes> {
        let mut c = self.id_cursor(id)?;
        let mut length = usize::from(id.first().copied().unwrap_or(0) & 0x0f);
        if self.id_length > 18 {
            length = length << 8 | usize::from(c.u8()?);
        }
        Ok(Bytes::copy_from_slice(c.take(length + 1)?))
    }

    // ---- managed objects

    fn managed(&self, id: &[u8]) -> Result<Bytes> {
        let mut c = self.id_cursor(id)?;
        let offset = c.uint(self.offset_bytes())?;
        let largest = (self.table.max_direct().ilog2() as usize).div_ceil(8);
        let length = c.uint(largest.min(self.max_managed.ilog2() as usize / 8 + 1))?;
        let (start, block) = self.block_at(offset)?;
        let within = to_usize(offset - start)?;
        let end = within.checked_add(to_usize(length)?).filter(|&end| end <= block.len());
        match end {
            Some(end) if within >= self.direct_overhead() => Ok(block.slice(within..end)),
            _ => Err(self.wrong_id(format!(
                "{length} bytes at {offset} do not lie in the block of {} bytes at {start}",
                block.len()
            ))),
        }
    }

    /// Bytes of a heap offset.
    fn offset_bytes(&self) -> usize {
        usize::from(self.max_bits).div_ceil(8)
    }

    /// Bytes of a direct block in front of its objects.
    fn direct_overhead(&self) -> usize {
        let checksum = if self.checksummed { 4 } else { 0 };
        5 + usize::from(self.space.sizes().offset) + self.offset_bytes() + checksum
    }

    /// The direct block that holds heap offset `offset`, and where it starts.
    fn block_at(&self, offset: u64) -> Result<(u64, Bytes)> {
        if let Some((&start, block)) = self.lock().direct.range(..=offset).next_back()
            && offset - start < block.len() as u64
        {
            return Ok((start, block.clone()));
        }
        let nothing = || self.wrong_id(format!("there is no block at heap offset {offset}"));
        let (mut address, mut rows) = match self.root {
            Root::None => return Err(nothing()),
            // A root that is a direct block has the starting size.
            Root::Direct(_) if offset >= self.table.start() => return Err(nothing()),
            Root::Direct(stored) => return Ok((0, self.direct(stored, 0, self.table.start())?)),
            Root::Indirect { address, rows } => (address, rows),
        };
        let mut start = 0;
        for depth in 1.. {
            self.space.limits().check_depth("fractal heap blocks", depth)?;
            let block = self.indirect(address, start, rows)?;
            let slot = self.table.slot(offset - start).ok_or_else(nothing)?;
            let entry = to_usize(slot.entry)?;
            start += slot.start;
            if !slot.indirect {
                let stored = block.direct.get(entry).copied().flatten().ok_or_else(nothing)?;
                return Ok((start, self.direct(stored, start, slot.size)?));
            }
            let child = entry.checked_sub(block.direct.len()).and_then(|i| block.indirect.get(i).copied());
            address = child.flatten().ok_or_else(nothing)?;
            // Each step down halves the size at least, so that this ends.
            rows = self.table.rows_of(slot.size).ok_or_else(nothing)?;
        }
        Err(nothing())
    }

    /// Reads the direct block of `size` bytes that starts at heap offset `start`.
    fn direct(&self, stored: Stored, start: u64, size: u64) -> Result<Bytes> {
        let bytes = match stored.filtered {
            None => self.space.read(DIRECT, stored.address, size)?,
            Some((length, mask)) => {
                let encoded = self.space.read(DIRECT, stored.address, length)?;
                self.decode(DIRECT, stored.address, &encoded, mask, size)?
            }
        };
        let mut c = self.space.cursor(&bytes, DIRECT, stored.address);
        // Its checksum stands among the rest, if it has one.
        let may_be_torn = |e: Error| if self.checksummed { e.torn() } else { e };
        c.signature(b"FHDB").map_err(may_be_torn)?;
        self.block_head(&mut c, start).map_err(may_be_torn)?;
        if self.checksummed {
            let from = c.position();
            let found = c.u32()?;
            let mut blank = bytes.to_vec();
            if let Some(field) = blank.get_mut(from..from + 4) {
                field.fill(0);
            }
            let computed = lookup3(&blank);
            if found != computed {
                let at = self.space.base().saturating_add(stored.address);
                return Err(Error::checksum(DIRECT, at, found, computed));
            }
        }
        let mut blocks = self.lock();
        blocks.grow(bytes.len());
        blocks.direct.insert(start, bytes.clone());
        Ok(bytes)
    }

    /// Version, owner and heap offset of a block.
    fn block_head(&self, c: &mut Cursor<'_>, start: u64) -> Result<()> {
        let version = c.u8()?;
        if version != 0 {
            return Err(c.corrupt(format!("version {version}, only 0 is known")));
        }
        let owner = c.address(self.space.sizes())?;
        if owner != self.address {
            return Err(c.corrupt(format!("it belongs to the heap at {owner:#x}, not {:#x}", self.address)));
        }
        let offset = c.uint(self.offset_bytes())?;
        if offset != start {
            return Err(c.corrupt(format!("heap offset {start} expected, {offset} found")));
        }
        Ok(())
    }

    /// Reads the indirect block of `rows` rows that starts at heap offset `start`.
    fn indirect(&self, address: u64, start: u64, rows: u64) -> Result<Arc<Indirect>> {
        if let Some(block) = self.lock().indirect.get(&address) {
            return Ok(block.clone());
        }
        let sizes = self.space.sizes();
        let (direct, indirect) = self.table.entries(rows);
        let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
        let filtered = self.filters.is_some();
        let pointer = if filtered { o + l + 4 } else { o };
        // At most 65535 columns and 65 rows.
        let length = 9 + o + self.offset_bytes() as u64 + direct * pointer + indirect * o;
        let bytes = self.space.read(INDIRECT, address, length)?;
        let mut c = self.space.cursor(&bytes, INDIRECT, address).sealed();
        c.signature(b"FHIB")?;
        self.block_head(&mut c, start)?;
        let mut block = Indirect { direct: Vec::new(), indirect: Vec::new() };
        for _ in 0..direct {
            let address = c.address(sizes)?;
            let filtered = if filtered { Some((c.length(sizes)?, c.u32()?)) } else { None };
            block.direct.push((address != UNDEFINED).then_some(Stored { address, filtered }));
        }
        for _ in 0..indirect {
            block.indirect.push(Some(c.address(sizes)?).filter(|&a| a != UNDEFINED));
        }
        c.checksum()?;
        let block = Arc::new(block);
        let mut blocks = self.lock();
        let held = block.direct.len() * size_of::<Option<Stored>>() + block.indirect.len() * 16;
        blocks.grow(held);
        blocks.indirect.insert(address, block.clone());
        Ok(block)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Blocks> {
        // Nothing that panics runs under the lock, and whole blocks only are in there.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- huge objects

    fn huge(&self, id: &[u8]) -> Result<Bytes> {
        let sizes = self.space.sizes();
        let (o, l) = (usize::from(sizes.offset), usize::from(sizes.length));
        let filtered = self.filters.is_some();
        let direct = if filtered { o + l + 4 + l } else { o + l };
        let mut c = self.id_cursor(id)?;
        if direct < id.len() {
            return self.huge_at(&mut c, filtered);
        }
        let key = c.uint(c.remaining().min(8))?;
        let tree = Tree::open(&self.space, self.huge_tree, if filtered { 2 } else { 1 })?;
        if tree.record_size() != direct + l {
            return Err(self.wrong_id(format!("records of {} bytes for huge objects", tree.record_size())));
        }
        let record = tree.search(&mut |record| {
            let mut c = self.space.cursor(record, HUGE, self.huge_tree);
            c.skip(direct)?;
            Ok(c.length(sizes)?.cmp(&key))
        })?;
        let Some(record) = record else {
            return Err(self.wrong_id(format!("there is no huge object {key}")));
        };
        self.huge_at(&mut self.space.cursor(&record, HUGE, self.huge_tree), filtered)
    }

    /// Reads the huge object whose address and lengths are next at the cursor.
    fn huge_at(&self, c: &mut Cursor<'_>, filtered: bool) -> Result<Bytes> {
        let sizes = self.space.sizes();
        let address = c.address(sizes)?;
        let length = c.length(sizes)?;
        if !filtered {
            return self.space.read(HUGE, address, length);
        }
        let mask = c.u32()?;
        let decoded = c.length(sizes)?;
        let encoded = self.space.read(HUGE, address, length)?;
        self.decode(HUGE, address, &encoded, mask, decoded)
    }

    /// Decodes a filtered block or object of `size` bytes.
    fn decode(
        &self,
        structure: &'static str,
        address: u64,
        encoded: &Bytes,
        mask: u32,
        size: u64,
    ) -> Result<Bytes> {
        let at = self.space.base().saturating_add(address);
        let allowed = self.space.limits().chunk;
        if size > allowed {
            return Err(
                Error::limit("bytes of a decoded heap block", size.into(), allowed.into()).at(structure, at)
            );
        }
        self.space.budget().charge(size)?;
        let dtype = DType::Integer(IntegerType::new(1, ByteOrder::Little, false));
        let context = BindContext { dtype: &dtype, chunk: &[size], chunk_bytes: size };
        let filters = self.filters.as_deref().unwrap_or_default();
        let mut block = Vec::new();
        let pipeline = self.registry.pipeline(filters, &context).at(structure, at)?;
        pipeline.decode(encoded, mask, &mut block, &mut Scratch::default()).at(structure, at)?;
        Ok(block.into())
    }
}
