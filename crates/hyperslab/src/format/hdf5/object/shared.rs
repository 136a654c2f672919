//! Messages shared between objects (specification, III.G): a table of indexes, each with a heap.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::btree::v2::Tree;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::heap::FractalHeap;
use crate::format::hdf5::message::{Message, kind};
use crate::format::hdf5::parse::UNDEFINED;

const TABLE: &str = "shared message table";
const LIST: &str = "shared message list";

/// The record type of a B-tree over shared messages.
const RECORD_TYPE: u8 = 7;

/// How an index finds its messages; readers go by the heap's identifiers and need neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// A list, searched from its start.
    List,
    /// A version 2 B-tree over hashes.
    Btree,
}

/// One index: the messages of some types.
#[derive(Debug)]
struct Index {
    kind: IndexKind,
    /// Bit *n* set: holds messages of type *n*.
    types: u16,
    /// The most messages of a list.
    list_max: u16,
    messages: u16,
    address: u64,
    heap: Option<FractalHeap>,
    heap_offset: u64,
}

/// The table, its heaps open.
#[derive(Debug)]
pub struct SharedTable {
    space: Space,
    indexes: Vec<Index>,
}

impl SharedTable {
    /// Reads the table of `indexes` indexes at `address`.
    pub fn open(space: &Space, address: u64, indexes: u8) -> Result<SharedTable> {
        let sizes = space.sizes();
        let each = 14 + 2 * u64::from(sizes.offset);
        let bytes = space.read(TABLE, address, 4 + each * u64::from(indexes) + 4)?;
        let mut c = space.cursor(&bytes, TABLE, address);
        c.signature(b"SMTB")?;
        let mut found = Vec::new();
        for _ in 0..indexes {
            let version = c.u8()?;
            if version != 0 {
                return Err(Error::unsupported(format!("shared message index version {version}")));
            }
            let kind = match c.u8()? {
                0 => IndexKind::List,
                1 => IndexKind::Btree,
                kind => return Err(c.corrupt(format!("shared message index type {kind}"))),
            };
            let types = c.u16()?;
            let _smallest = c.u32()?;
            let list_max = c.u16()?;
            let _btree_min = c.u16()?;
            let messages = c.u16()?;
            let index = c.address(sizes)?;
            let heap = c.address(sizes)?;
            let heap_offset = space.base().saturating_add(heap);
            found.push((kind, types, list_max, messages, index, heap, heap_offset));
        }
        c.checksum()?;
        let indexes = found
            .into_iter()
            .map(|(kind, types, list_max, messages, address, heap, heap_offset)| {
                let heap = if heap == UNDEFINED { None } else { Some(FractalHeap::open(space, heap)?) };
                Ok(Index { kind, types, list_max, messages, address, heap, heap_offset })
            })
            .collect::<Result<_>>()?;
        Ok(SharedTable { space: space.clone(), indexes })
    }

    /// The message of type `kind` with the heap identifier `id`.
    pub fn message(&self, kind: u16, id: &[u8]) -> Result<Message> {
        let index = self.indexes.iter().find(|i| kind < 16 && i.types >> kind & 1 == 1).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("no index holds the {}s", kind::name(kind)))
        })?;
        let heap = index.heap.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("the index of the {}s is empty", kind::name(kind)))
        })?;
        let bytes = heap.object(id)?;
        Ok(Message { kind, flags: 0, creation_order: None, bytes, offset: index.heap_offset })
    }

    /// One line an index, for people.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for index in &self.indexes {
            let kind = match index.kind {
                IndexKind::List => "list",
                IndexKind::Btree => "B-tree",
            };
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&format!("{kind} of {} messages of types {:#06x}", index.messages, index.types));
        }
        text
    }

    /// Reads every index as a whole.
    pub fn check(&self, fault: &mut dyn FnMut(Error)) {
        for index in &self.indexes {
            if index.address == UNDEFINED {
                continue;
            }
            let done = match index.kind {
                IndexKind::List => self.check_list(index),
                IndexKind::Btree => Tree::open(&self.space, index.address, RECORD_TYPE)
                    .and_then(|tree| tree.for_each(&mut |record| self.check_record(index, record))),
            };
            if let Err(e) = done {
                fault(e.context("shared messages"));
            }
        }
    }

    fn record_size(&self) -> usize {
        // Location, hash, then either reference count and heap identifier or the place in an object header.
        5 + (4 + 8).max(4 + usize::from(self.space.sizes().offset))
    }

    fn check_list(&self, index: &Index) -> Result<()> {
        let size = self.record_size();
        // The list has room for all that it may hold; its checksum stands behind what it holds.
        let held = u64::from(index.messages.min(index.list_max)) * size as u64;
        let bytes = self.space.read(LIST, index.address, 4 + held + 4)?;
        let mut c = self.space.cursor(&bytes, LIST, index.address);
        c.signature(b"SMLI")?;
        for _ in 0..index.messages.min(index.list_max) {
            self.check_record(index, c.take(size)?)?;
        }
        c.checksum()
    }

    fn check_record(&self, index: &Index, record: &[u8]) -> Result<()> {
        // Only messages in the heap can be looked at without knowing their owner.
        if record.first() != Some(&0) {
            return Ok(());
        }
        match (&index.heap, record.get(9..17)) {
            (Some(heap), Some(id)) => heap.object(id).map(|_| ()).context(|| "message in the heap"),
            _ => Err(Error::corrupt(TABLE, index.address, "a message in a heap that does not exist")),
        }
    }
}
