//! The global heap, written (specification, III.E): elements of variable length, mappings of virtual datasets.

use super::disk::Disk;
use super::encoder::Encoder;
use crate::error::{Error, Result};
use crate::model::HeapRef;

/// Bytes of a collection at least, as the reference library has them.
const LEAST: u64 = 4096;
/// Bytes of a collection into which many objects go.
const LARGE: u64 = 64 << 10;
/// The most objects of a collection: an index has 16 bits.
const MAX_OBJECTS: u16 = u16::MAX;

/// A collection that still takes objects.
#[derive(Debug)]
struct Open {
    address: u64,
    size: u64,
    content: Encoder,
    objects: u16,
}

/// Where objects go.
#[derive(Debug, Default)]
pub(super) struct GlobalHeap {
    open: Option<Open>,
    /// Bytes of objects so far; many make collections larger.
    bytes: u64,
}

impl GlobalHeap {
    /// Stores an object.
    pub(super) fn insert(&mut self, disk: &mut Disk, object: &[u8]) -> Result<HeapRef> {
        let head = object_head(disk);
        let room = head + object.len().next_multiple_of(8);
        let fits =
            |open: &Open| open.objects < MAX_OBJECTS && (open.content.len() + room) as u64 <= open.size;
        if !self.open.as_ref().is_some_and(fits) {
            self.flush(disk)?;
            let usual = if self.bytes > LARGE { LARGE } else { LEAST };
            let size = ((collection_head(disk) + room) as u64).max(usual).next_multiple_of(8);
            let address = disk.allocate(size, 8)?;
            let mut content = Encoder::new(disk.sizes());
            content.put(b"GCOL").u8(1).zeros(3).length(size).align(8);
            self.open = Some(Open { address, size, content, objects: 0 });
        }
        let Some(open) = &mut self.open else {
            return Err(Error::invalid("no collection of the global heap is open"));
        };
        open.objects += 1;
        self.bytes = self.bytes.saturating_add(room as u64);
        // Index, reference count, reserved bytes, size.
        open.content.u16(open.objects).u16(0).zeros(4).length(object.len() as u64).align(8);
        open.content.put(object).align(8);
        Ok(HeapRef { address: open.address, index: open.objects.into() })
    }

    /// Writes the open collection.
    pub(super) fn flush(&mut self, disk: &mut Disk) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let left = open.size - open.content.len() as u64;
        if left >= object_head(disk) as u64 {
            // Free space is object 0; its size counts its own head.
            open.content.zeros(8).length(left).align(8);
        }
        let mut bytes = open.content.finish();
        bytes.resize(open.size as usize, 0);
        disk.put(open.address, &bytes)
    }
}

fn object_head(disk: &Disk) -> usize {
    (8 + usize::from(disk.sizes().length)).next_multiple_of(8)
}

fn collection_head(disk: &Disk) -> usize {
    (8 + usize::from(disk.sizes().length)).next_multiple_of(8)
}

/// A stored element of variable length: the number of its items, and where they are. None for an element without items.
pub(super) fn element(out: &mut Encoder, count: u32, place: Option<HeapRef>) {
    let place = place.unwrap_or(HeapRef { address: 0, index: 0 });
    out.u32(count).address(place.address).u32(place.index);
}
