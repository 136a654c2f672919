//! The global heap: variable-length elements, region references, virtual mappings (specification, III.E).
//!
//! A collection is read once and serves all of its objects, so lookups are made in batches.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::file::Space;
use crate::model::HeapRef;
use crate::shape::to_usize;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

const COLLECTION: &str = "global heap collection";

/// Bytes of parsed collections kept in memory.
const CACHED: u64 = 16 << 20;

/// What libhdf5 makes a collection at least; one read is enough for most.
const USUAL_SIZE: u64 = 4096;

/// The global heap of one file.
#[derive(Debug)]
pub struct GlobalHeap {
    space: Space,
    /// `None` while the file may change.
    cache: Option<Cache<u64, Arc<Collection>, Bulk>>,
}

#[derive(Clone, Debug)]
struct Bulk;

impl Weighter<u64, Arc<Collection>> for Bulk {
    fn weight(&self, _: &u64, collection: &Arc<Collection>) -> u64 {
        collection.charged.max(1)
    }
}

impl GlobalHeap {
    /// The global heap of a file that does not change while it is open.
    pub fn new(space: Space) -> Self {
        let cache = Cache::with_weighter((CACHED / USUAL_SIZE) as usize, CACHED, Bulk);
        GlobalHeap { space, cache: Some(cache) }
    }

    /// The global heap of a file that another process may be writing: nothing is kept between calls.
    pub fn live(space: Space) -> Self {
        GlobalHeap { space, cache: None }
    }

    /// The bytes of one object.
    pub fn object(&self, reference: HeapRef) -> Result<Bytes> {
        self.collection(reference.address)?.object(reference.index)
    }

    /// Address and length of the bytes of one object.
    pub fn place(&self, reference: HeapRef) -> Result<(u64, u64)> {
        let collection = self.collection(reference.address)?;
        let entry = collection.entry(reference.index)?;
        Ok((reference.address.saturating_add(entry.start as u64), entry.length as u64))
    }

    /// The bytes of many objects, in the order of the questions; each collection is read once.
    pub fn objects(&self, references: &[HeapRef]) -> Result<Vec<Bytes>> {
        let mut order: Vec<usize> = (0..references.len()).collect();
        order.sort_by_key(|&i| references.get(i).map(|r| r.address));
        if self.space.is_remote() {
            let known = |address: &u64| self.cache.as_ref().is_some_and(|c| c.peek(address).is_some());
            let mut addresses: Vec<u64> =
                order.iter().filter_map(|&i| Some(references.get(i)?.address)).collect();
            addresses.dedup();
            self.space.prefetch(addresses.into_iter().filter(|a| !known(a)).map(|a| (a, USUAL_SIZE)));
        }
        let mut out = vec![Bytes::new(); references.len()];
        let mut current: Option<Arc<Collection>> = None;
        for i in order {
            let (Some(reference), Some(slot)) = (references.get(i), out.get_mut(i)) else { continue };
            let collection = match current.take() {
                Some(c) if c.address == reference.address => c,
                _ => self.collection(reference.address)?,
            };
            *slot = collection.object(reference.index)?;
            current = Some(collection);
        }
        Ok(out)
    }

    fn collection(&self, address: u64) -> Result<Arc<Collection>> {
        let Some(cache) = &self.cache else {
            // A collection has no checksum: whatever is wrong with it may be half written.
            return Collection::open(&self.space, address).map(Arc::new).map_err(Error::torn);
        };
        if let Some(found) = cache.get(&address) {
            return Ok(found);
        }
        let collection = Arc::new(Collection::open(&self.space, address)?);
        cache.insert(address, collection.clone());
        Ok(collection)
    }

    /// Visits every object of the collection at `address`: its index, reference count and bytes.
    pub fn for_each(&self, address: u64, visit: &mut dyn FnMut(u32, u16, Bytes) -> Result<()>) -> Result<()> {
        let collection = self.collection(address)?;
        collection.entries.iter().try_for_each(|e| visit(e.index.into(), e.count, collection.bytes_of(e)))
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    index: u16,
    count: u16,
    start: usize,
    length: usize,
}

/// One collection, its objects sorted by index.
#[derive(Debug)]
struct Collection {
    address: u64,
    bytes: Bytes,
    entries: Vec<Entry>,
    /// What it takes from the metadata budget while it is held: elements that live in the heap may well be more
    /// than the budget all together.
    charged: u64,
    space: Space,
}

impl Drop for Collection {
    fn drop(&mut self) {
        self.space.budget().refund(self.charged);
    }
}

impl Collection {
    fn open(space: &Space, address: u64) -> Result<Self> {
        let sizes = space.sizes();
        let head = space.read_up_to(COLLECTION, address, USUAL_SIZE)?;
        // From here on `collection` gives the charge back, whatever happens.
        let mut collection = Collection {
            address,
            charged: head.len() as u64,
            bytes: head,
            entries: Vec::new(),
            space: space.clone(),
        };
        let head = collection.bytes.clone();
        let mut c = space.cursor(&head, COLLECTION, address);
        c.signature(b"GCOL")?;
        let version = c.u8()?;
        if version != 1 {
            return Err(c.corrupt(format!("version {version}, only 1 is known")));
        }
        c.skip(3)?;
        let size = c.length(sizes)?;
        // Both headers fill up to a multiple of 8 bytes, whatever the size of lengths.
        c.align(8)?;
        let first = c.position();
        if size < first as u64 {
            return Err(c.corrupt(format!("a collection of {size} bytes is smaller than its own header")));
        }
        let length = to_usize(size)?;
        if length <= head.len() {
            collection.bytes = head.slice(..length);
        } else {
            collection.bytes = space.read(COLLECTION, address, size)?;
            collection.charged = collection.charged.saturating_add(size);
        }
        collection.parse(first)?;
        Ok(collection)
    }

    /// Finds the objects behind the header, which ends at `first`.
    fn parse(&mut self, first: usize) -> Result<()> {
        let sizes = self.space.sizes();
        let bytes = self.bytes.clone();
        let mut c = self.space.cursor(&bytes, COLLECTION, self.address);
        c.skip(first)?;
        let header = (8 + usize::from(sizes.length)).next_multiple_of(8);
        // Fewer trailing bytes than an object header are free space without one.
        while c.remaining() >= header {
            let index = c.u16()?;
            let count = c.u16()?;
            c.skip(4)?;
            let size = c.length(sizes)?;
            c.skip(header - 8 - usize::from(sizes.length))?;
            if index == 0 {
                // Free space; its size counts its own header. Nothing follows in files that libhdf5 wrote, and what
                // would follow a size too small to pass over is free too.
                match to_usize(size)?.checked_sub(header) {
                    Some(rest) if rest < c.remaining() => c.skip(rest)?,
                    _ => break,
                }
                continue;
            }
            let entry = Entry { index, count, start: c.position(), length: to_usize(size)? };
            c.skip(entry.length)
                .context(|| format!("object {index} of the collection at {:#x}", self.address))?;
            // The padding of the last object may be cut off.
            c.skip((entry.length.next_multiple_of(8) - entry.length).min(c.remaining()))?;
            self.entries.push(entry);
        }
        let held = (self.entries.len() * size_of::<Entry>()) as u64;
        self.space.budget().charge(held)?;
        self.charged = self.charged.saturating_add(held);
        if !self.entries.is_sorted_by_key(|e| e.index) {
            self.entries.sort_by_key(|e| e.index);
        }
        Ok(())
    }

    fn bytes_of(&self, entry: &Entry) -> Bytes {
        // In range: the cursor passed over it.
        self.bytes.slice(entry.start..entry.start + entry.length)
    }

    fn object(&self, index: u32) -> Result<Bytes> {
        self.entry(index).map(|e| self.bytes_of(e))
    }

    fn entry(&self, index: u32) -> Result<&Entry> {
        let found = self.entries.binary_search_by_key(&index, |e| u32::from(e.index)).ok();
        found.and_then(|i| self.entries.get(i)).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("there is no object {index} in the collection"))
                .at(COLLECTION, self.space.base().saturating_add(self.address))
                .torn()
        })
    }
}
