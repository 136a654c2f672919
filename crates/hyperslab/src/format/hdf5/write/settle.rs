//! Elements of variable length that take the place of others: those that stay the same keep their objects on the heap.
//!
//! A chunk is written as a whole, also if one of its elements changed, and whoever wrote it put all of its elements on the heap
//! anew. Here these objects are given up again where the element that was there says the same, and the others go to where
//! their neighbours are, if there is room. So a text that is added to many takes the room of one, and an element that nobody
//! set stays so.
//!
//! Objects that are in the file already are never given up: another writer may have let two elements point to one.

use super::copy::has_heap;
use super::global::StoredObject;
use super::object::{Id, Storage};
use super::transaction::Transaction;
use crate::codec::Scratch;
use crate::dtype::DType;
use crate::error::{Context, Result};
use crate::format::hdf5::heap::GlobalHeap;
use crate::format::hdf5::parse::{Cursor, UNDEFINED};
use crate::model::HeapRef;
use crate::model::write::{EncodedChunk, WriteLayout};
use crate::shape::to_usize;

/// Collections that are larger get no further objects.
const MAX_ADOPTED: u64 = 1 << 20;

/// Where in an element parts of variable length are stored, if these hold no such themselves.
fn parts(dtype: &DType, at: usize, out: &mut Vec<usize>) {
    match dtype {
        DType::VarString { .. } => out.push(at),
        DType::VarLen { base, .. } if !has_heap(base) => out.push(at),
        DType::Compound { fields, .. } => {
            fields.iter().for_each(|f| parts(&f.dtype, at.saturating_add(f.offset), out));
        }
        DType::Array { base, dims } if has_heap(base) => {
            let count = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
            // Not more than an element has bytes.
            let count = count.min((dtype.size() / base.size().max(1)) as u64);
            (0..count).for_each(|i| parts(base, at.saturating_add(i as usize * base.size()), out));
        }
        _ => {}
    }
}

/// A stored part: how many items it has, and where they are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stored {
    count: u32,
    place: HeapRef,
}

impl Stored {
    fn is_unset(&self) -> bool {
        self.place.address == 0 || self.place.address == UNDEFINED
    }
}

impl Transaction {
    /// The same chunk, with the objects of the elements that it takes the place of where these say the same; and the objects
    /// that nobody needs when it is written.
    pub(super) fn settled(
        &mut self,
        id: Id,
        layout: &WriteLayout,
        chunk: EncodedChunk,
    ) -> Result<(EncodedChunk, Vec<HeapRef>)> {
        let Some(encoded) = chunk.bytes.as_ref().filter(|_| has_heap(&layout.dtype)) else {
            return Ok((chunk, Vec::new()));
        };
        let mut scratch = Scratch::default();
        let array = self.array(id)?;
        let is_plain = array.is_plain(&chunk.coord);
        let (old, mask) = match &array.storage {
            Storage::Chunked(chunked) => match chunked.entry(&chunk.coord) {
                Some(entry) => (Some((entry.address, entry.length)), entry.mask),
                None => (None, 0),
            },
            Storage::Contiguous { address: Some(address), written, .. }
                if written.as_ref().is_none_or(|written| written.contains(&chunk.coord)) =>
            {
                let offset = super::array::offset_of(layout, &chunk.coord)?;
                (Some((address.saturating_add(offset), encoded.len() as u64)), 0)
            }
            _ => (None, 0),
        };
        let Some((address, length)) = old else { return Ok((chunk, Vec::new())) };
        let filtered = !is_plain && !layout.pipeline.is_empty();
        let stored = self.disk.read(address, to_usize(length)?)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if filtered {
            // What cannot be read is written over.
            if layout.pipeline.decode(&stored, mask, &mut before, &mut scratch).is_err() {
                return Ok((chunk, Vec::new()));
            }
            layout
                .pipeline
                .decode(encoded, chunk.mask, &mut after, &mut scratch)
                .context(|| format!("chunk {:?}", chunk.coord.as_slice()))?;
        } else {
            (before, after) = (stored, encoded.to_vec());
        }
        if before.len() != after.len() {
            return Ok((chunk, Vec::new()));
        }
        let gone = self.settle(&layout.dtype, &before, &mut after)?;
        if !filtered {
            return Ok((EncodedChunk { bytes: Some(after.into()), ..chunk }, gone));
        }
        let mut encoded = Vec::new();
        let mask = layout.pipeline.encode(&after, &mut encoded, &mut scratch)?;
        Ok((EncodedChunk { bytes: Some(encoded.into()), mask, ..chunk }, gone))
    }

    /// Lets the stored elements `new` keep the objects of `old`, whose place they take, where these are the same. Gives those
    /// objects of this transaction that are not theirs any more.
    fn settle(&mut self, dtype: &DType, old: &[u8], new: &mut [u8]) -> Result<Vec<HeapRef>> {
        let mut places = Vec::new();
        parts(dtype, 0, &mut places);
        let size = dtype.size().max(1);
        let width = 8 + usize::from(self.disk.sizes().offset);
        let heap = GlobalHeap::new(self.space()?);
        let (mut moves, mut gone, mut beside) = (Vec::new(), Vec::new(), None);
        for start in (0..new.len()).step_by(size) {
            for &place in &places {
                let range = start + place..start + place + width;
                let (Some(was), Some(is)) = (old.get(range.clone()), new.get(range.clone())) else {
                    continue;
                };
                let (before, after) = (self.stored(was)?, self.stored(is)?);
                if !before.is_unset() {
                    // The last one in the file is the youngest, and likely to have room.
                    beside = beside.max(Some(before.place.address));
                }
                let now = self.heap.new_object(after.place).cloned();
                let same = match (before.is_unset(), &now) {
                    (true, _) => after.count == 0,
                    (false, Some(now)) if before.count == after.count => {
                        match self.heap.held_object(before.place) {
                            Some(bytes) => bytes == now,
                            None => heap.object(before.place).is_ok_and(|bytes| bytes == *now),
                        }
                    }
                    (false, _) => false,
                };
                if same {
                    if let Some(field) = new.get_mut(range) {
                        field.copy_from_slice(was);
                    }
                } else {
                    if before.place != after.place {
                        gone.push(before.place);
                    }
                    moves.extend(now.map(|now| (range, after, now)));
                }
                self.heap.remove(&self.disk, after.place);
            }
        }
        if let Some(address) = beside {
            self.adopt(address);
        }
        for (range, after, now) in moves {
            let place = self.heap.insert(&mut self.disk, &now)?;
            let mut out = super::encoder::Encoder::new(self.disk.sizes());
            super::global::element(&mut out, after.count, Some(place));
            if let Some(field) = new.get_mut(range) {
                field.copy_from_slice(out.as_bytes());
            }
        }
        self.heap.trim(&mut self.disk);
        Ok(gone)
    }

    fn stored(&self, bytes: &[u8]) -> Result<Stored> {
        let mut c = Cursor::new(bytes, "variable-length element", 0);
        let count = c.u32()?;
        let place = HeapRef { address: c.address(self.disk.sizes())?, index: c.u32()? };
        Ok(Stored { count, place })
    }

    /// Lets objects go to the collection at an address, if it can be read and has room.
    fn adopt(&mut self, address: u64) {
        if self.heap.prefer(address) {
            return;
        }
        let mut read = || -> Result<(u64, Vec<StoredObject>)> {
            let sizes = self.disk.sizes();
            let head = self.disk.read(address, 8 + usize::from(sizes.length))?;
            let mut c = Cursor::new(&head, "global heap collection", address);
            c.signature(b"GCOL")?;
            c.skip(4)?;
            let size = c.length(sizes)?;
            let mut objects = Vec::new();
            if size <= MAX_ADOPTED {
                GlobalHeap::new(self.space()?).for_each(address, &mut |index, references, bytes| {
                    objects.push((index as u16, references, bytes));
                    Ok(())
                })?;
            }
            Ok((size, objects))
        };
        // One that is damaged is left as it is.
        if let Ok((size, objects)) = read()
            && size <= MAX_ADOPTED
        {
            self.heap.adopt(&self.disk, address, size, objects);
        }
    }
}
