//! The global heap, written (specification, III.E): elements of variable length, mappings of virtual datasets.
//!
//! Collections that were begun, or that stand in the file and have room left, are held and written later: objects come and go
//! until then, and what stays is put together without gaps.

use super::disk::Disk;
use super::encoder::Encoder;
use crate::error::{Error, Result};
use crate::model::HeapRef;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a collection at least, as the reference library has them.
const LEAST: u64 = 4096;
/// Bytes of a collection into which many objects go.
const LARGE: u64 = 64 << 10;
/// The most objects of a collection: an index has 16 bits.
const MAX_OBJECTS: usize = u16::MAX as usize;
/// Bytes of collections that are held at most.
const MAX_HELD: u64 = 4 << 20;

/// An object of a collection of the file: its index, reference count and bytes.
pub(super) type StoredObject = (u16, u16, Bytes);

/// An object of a collection that is held.
#[derive(Debug)]
struct Object {
    bytes: Bytes,
    references: u16,
    /// Whether it was made in this transaction.
    is_new: bool,
}

/// A collection that still takes objects.
#[derive(Debug)]
struct Held {
    size: u64,
    /// Bytes in use, heads included.
    used: u64,
    /// The objects by their indexes, which begin with 1.
    objects: BTreeMap<u16, Object>,
    /// Indexes of objects that are gone.
    vacant: Vec<u16>,
    /// Whether it is of the file.
    is_old: bool,
}

/// Where objects go.
#[derive(Debug, Default)]
pub(super) struct GlobalHeap {
    held: BTreeMap<u64, Held>,
    /// Bytes of the collections that are held.
    held_bytes: u64,
    /// The collection that objects go to.
    current: u64,
    /// Whether others may have room.
    is_loose: bool,
    /// Bytes of objects so far; many make collections larger.
    bytes: u64,
}

impl Held {
    /// Adds an object, if there is room for its `room` bytes.
    fn add(&mut self, object: &[u8], room: u64) -> Option<u16> {
        if self.used.saturating_add(room) > self.size {
            return None;
        }
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => {
                u16::try_from(self.objects.len() + 1).ok().filter(|_| self.objects.len() < MAX_OBJECTS)?
            }
        };
        self.used += room;
        let object = Object { bytes: Bytes::copy_from_slice(object), references: 0, is_new: true };
        self.objects.insert(index, object);
        Some(index)
    }
}

impl GlobalHeap {
    /// Stores an object.
    pub(super) fn insert(&mut self, disk: &mut Disk, object: &[u8]) -> Result<HeapRef> {
        let room = room(disk, object.len());
        self.bytes = self.bytes.saturating_add(room);
        let place = |address: u64, index: u16| HeapRef { address, index: index.into() };
        if let Some(index) = self.held.get_mut(&self.current).and_then(|held| held.add(object, room)) {
            return Ok(place(self.current, index));
        }
        if self.is_loose {
            for (&address, held) in &mut self.held {
                if let Some(index) = held.add(object, room) {
                    self.current = address;
                    return Ok(place(address, index));
                }
            }
            self.is_loose = false;
        }
        if self.held_bytes > MAX_HELD {
            self.flush(disk)?;
        }
        let usual = if self.bytes > LARGE { LARGE } else { LEAST };
        let head = head(disk);
        let size = head.saturating_add(room).max(usual).next_multiple_of(8);
        let address = disk.allocate(size, 8)?;
        let mut held = Held { size, used: head, objects: BTreeMap::new(), vacant: Vec::new(), is_old: false };
        let index = held.add(object, room);
        self.held.insert(address, held);
        self.held_bytes = self.held_bytes.saturating_add(size);
        self.current = address;
        let index = index.ok_or_else(|| Error::invalid("a collection too small for its first object"))?;
        Ok(place(address, index))
    }

    /// The bytes of an object that was made in this transaction and is not written yet.
    pub(super) fn new_object(&self, place: HeapRef) -> Option<&Bytes> {
        let index = u16::try_from(place.index).ok()?;
        self.held.get(&place.address)?.objects.get(&index).filter(|o| o.is_new).map(|o| &o.bytes)
    }

    /// The bytes of an object of a collection that is held.
    pub(super) fn held_object(&self, place: HeapRef) -> Option<&Bytes> {
        let index = u16::try_from(place.index).ok()?;
        self.held.get(&place.address)?.objects.get(&index).map(|o| &o.bytes)
    }

    /// Gives up an object that was made in this transaction and is not written yet.
    pub(super) fn remove(&mut self, disk: &Disk, place: HeapRef) {
        if self.new_object(place).is_none() {
            return;
        }
        let Ok(index) = u16::try_from(place.index) else { return };
        let Some(held) = self.held.get_mut(&place.address) else { return };
        let Some(object) = held.objects.remove(&index) else { return };
        held.vacant.push(index);
        held.used = held.used.saturating_sub(room(disk, object.bytes.len()));
        self.is_loose = true;
    }

    /// Gives back the room of collections that hold nothing.
    pub(super) fn trim(&mut self, disk: &mut Disk) {
        let empty = |held: &Held| held.objects.is_empty() && !held.is_old;
        let gone: Vec<u64> =
            self.held.iter().rev().filter(|(_, held)| empty(held)).map(|(&address, _)| address).collect();
        for address in gone {
            if let Some(held) = self.held.remove(&address) {
                self.held_bytes = self.held_bytes.saturating_sub(held.size);
                disk.release(address, held.size);
            }
        }
    }

    /// Lets objects go to the collection at an address, as long as it has room. Whether it is held.
    pub(super) fn prefer(&mut self, address: u64) -> bool {
        let is_held = self.held.contains_key(&address);
        if is_held {
            self.current = address;
        }
        is_held
    }

    /// Takes a collection of the file, of `size` bytes in all, into which more objects may go: its objects by their indexes,
    /// with their reference counts.
    pub(super) fn adopt(&mut self, disk: &Disk, address: u64, size: u64, objects: Vec<StoredObject>) {
        let count = objects.len();
        let objects: BTreeMap<u16, Object> = objects
            .into_iter()
            .map(|(index, references, bytes)| (index, Object { bytes, references, is_new: false }))
            .collect();
        let used = objects.values().fold(head(disk), |n, o| n.saturating_add(room(disk, o.bytes.len())));
        let last = objects.last_key_value().map_or(0, |(&index, _)| index);
        if objects.len() != count || used > size || objects.contains_key(&0) {
            return;
        }
        let vacant = (1..=last).rev().filter(|index| !objects.contains_key(index)).collect();
        self.held_bytes = self.held_bytes.saturating_add(size);
        self.held.insert(address, Held { size, used, objects, vacant, is_old: true });
        self.current = address;
        self.is_loose = true;
    }

    /// Writes the collections that are held.
    pub(super) fn flush(&mut self, disk: &mut Disk) -> Result<()> {
        self.trim(disk);
        self.held_bytes = 0;
        self.is_loose = false;
        for (address, held) in std::mem::take(&mut self.held) {
            if held.is_old && !held.objects.values().any(|o| o.is_new) {
                continue;
            }
            let mut out = Encoder::new(disk.sizes());
            out.put(b"GCOL").u8(1).zeros(3).length(held.size).align(8);
            for (index, object) in &held.objects {
                // Index, reference count, reserved bytes, size.
                out.u16(*index).u16(object.references).zeros(4).length(object.bytes.len() as u64).align(8);
                out.put(&object.bytes).align(8);
            }
            let left = held.size.saturating_sub(out.len() as u64);
            if left >= head(disk) {
                // Free space is object 0; its size counts its own head.
                out.zeros(8).length(left).align(8);
            }
            let mut bytes = out.finish();
            bytes.resize(crate::shape::to_usize(held.size)?, 0);
            disk.put(address, &bytes)?;
        }
        Ok(())
    }
}

/// Bytes in front of an object, and in front of a collection.
fn head(disk: &Disk) -> u64 {
    (8 + u64::from(disk.sizes().length)).next_multiple_of(8)
}

/// Bytes that an object takes.
fn room(disk: &Disk, length: usize) -> u64 {
    head(disk).saturating_add((length as u64).next_multiple_of(8))
}

/// A stored element of variable length: the number of its items, and where they are. None for an element without items.
pub(super) fn element(out: &mut Encoder, count: u32, place: Option<HeapRef>) {
    let place = place.unwrap_or(HeapRef { address: 0, index: 0 });
    out.u32(count).address(place.address).u32(place.index);
}
