//! Chunks of an array moved along its first axis, together with what virtual datasets say of them.

use super::index::Entry;
use super::object::{Body, Elsewhere, Id, Storage};
use super::transaction::Transaction;
use crate::error::{Context, Error, Result};
use crate::format::hdf5::heap::GlobalHeap;
use crate::format::hdf5::index;
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::write::Restack;
use crate::model::{Dataspace, HeapRef};
use crate::shape::{Coord, to_usize};
use std::collections::{BTreeMap, HashSet};

/// Where the mappings of a virtual dataset are.
enum Mappings {
    /// On the heap of the file: address and length.
    Stored(u64, u64),
    /// Of an array that this transaction made.
    New(Id),
}

impl Transaction {
    /// Moves chunks. No chunk is read or written: the index leads to where they are.
    pub(super) fn restack(&mut self, restack: &Restack) -> Result<()> {
        let id = self.find(&restack.stack)?;
        self.check_editable(id)?;
        let array = self.array(id)?;
        let Storage::Chunked(chunked) = &array.storage else {
            return Err(Error::unsupported("moving chunks of an array that has none"));
        };
        if chunked.kind == IndexKind::Implicit {
            return Err(Error::unsupported("moving chunks that lie in one run (implicit index)"));
        }
        let chunk = chunked.chunk.clone();
        let dims = array.space.dims().to_vec();
        let (height, rest) = match (chunk.split_first(), dims.split_first()) {
            (Some((&height, rest)), Some((_, own))) if rest == own => (height.max(1), rest.len()),
            _ => return Err(Error::invalid(format!("chunks {chunk:?} of {dims:?} are no stack"))),
        };
        // Mappings are changed where they are: collections that are held would be written over them.
        self.heap.flush(&mut self.disk)?;
        let count = count(&restack.slots)?;
        let rows = count.checked_mul(height).ok_or_else(|| Error::invalid("more rows than 2^64"))?;
        self.load_chunks(id)?;
        let path: Vec<u8> =
            restack.stack.names().iter().flat_map(|name| [b"/", name.as_bytes()].concat()).collect();
        let mut maps = Vec::with_capacity(restack.maps.len());
        let mut heap = None;
        let mut seen = HashSet::new();
        for map in &restack.maps {
            let found = self.mappings(map, &mut heap, &mut seen).context(|| map.to_string())?;
            maps.extend(found.into_iter().map(|found| (map, found)));
        }
        // All of them are looked at before one is changed.
        for is_check in [true, false] {
            for (map, place) in &maps {
                self.move_in(place, &path, &chunk, &restack.slots, is_check).context(|| map.to_string())?;
            }
        }
        let chunks = std::mem::take(&mut self.chunked_mut(id)?.chunks);
        let mut kept: BTreeMap<Coord, Entry> = BTreeMap::new();
        for (mut at, entry) in chunks {
            let slot = at.first().copied().unwrap_or(0);
            let new = usize::try_from(slot).ok().and_then(|slot| restack.slots.get(slot).copied().flatten());
            if let (Some(new), Some(first)) = (new, at.first_mut()) {
                *first = new;
                if let std::collections::btree_map::Entry::Vacant(place) = kept.entry(at) {
                    place.insert(entry);
                    continue;
                }
            }
            self.disk.release(entry.address, entry.length);
        }
        let chunked = self.chunked_mut(id)?;
        chunked.chunks = kept;
        chunked.dirty = true;
        let array = self.array_mut(id)?;
        if let Dataspace::Simple { dims, .. } = &mut array.space {
            dims.truncate(1 + rest);
            dims.iter_mut().take(1).for_each(|dim| *dim = rows);
        }
        array.dirty = true;
        Ok(())
    }

    /// Where the mappings of a virtual dataset are; `None` if it has none, or if they were `seen`.
    fn mappings(
        &mut self,
        map: &crate::model::write::ObjectPath,
        heap: &mut Option<GlobalHeap>,
        seen: &mut HashSet<HeapRef>,
    ) -> Result<Option<Mappings>> {
        let id = self.find(map)?;
        self.check_editable(id)?;
        let Body::Array(array) = &self.object(id)?.body else {
            return Err(Error::invalid("it is no virtual dataset"));
        };
        match &array.storage {
            Storage::Virtual(block) => Ok((!block.is_empty()).then_some(Mappings::New(id))),
            Storage::Elsewhere(Elsewhere::Virtual(place)) => {
                let place = *place;
                if place.address == UNDEFINED || !seen.insert(place) {
                    return Ok(None);
                }
                let heap = match heap {
                    Some(heap) => heap,
                    None => heap.insert(GlobalHeap::new(self.space()?)),
                };
                let (address, length) = heap.place(place)?;
                Ok(Some(Mappings::Stored(address, length)))
            }
            _ => Err(Error::invalid("it is no virtual dataset")),
        }
    }

    fn move_in(
        &mut self,
        place: &Mappings,
        stack: &[u8],
        chunk: &[u64],
        slots: &[Option<u64>],
        is_check: bool,
    ) -> Result<()> {
        let sizes = self.disk.sizes();
        match *place {
            Mappings::Stored(address, length) => {
                let mut bytes = self.disk.read(address, to_usize(length)?)?;
                index::restack(&mut bytes, address, sizes, stack, chunk, slots)?;
                if !is_check {
                    self.disk.patch(address, &bytes)?;
                }
            }
            Mappings::New(id) => {
                let Storage::Virtual(block) = &mut self.array_mut(id)?.storage else { return Ok(()) };
                let mut bytes = block.clone();
                index::restack(&mut bytes, 0, sizes, stack, chunk, slots)?;
                if !is_check {
                    *block = bytes;
                }
            }
        }
        Ok(())
    }
}

/// How many chunks are kept. Fails if a number is left out.
fn count(slots: &[Option<u64>]) -> Result<u64> {
    let kept: HashSet<u64> = slots.iter().copied().flatten().collect();
    let count = kept.len() as u64;
    match kept.iter().find(|&&slot| slot >= count) {
        Some(slot) => Err(Error::invalid(format!("{count} chunks are kept, and one becomes number {slot}"))),
        None => Ok(count),
    }
}
