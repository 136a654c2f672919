//! From what the header of a dataset says to the way to its elements.

use super::stacked::Stack;
use super::{ArrayShape, ChunkTable, ExternalSegment, ExternalSource, Whole, mapping};
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::dataset::Dataset;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::heap::{GlobalHeap, LocalHeap};
use crate::format::hdf5::message::external::ExternalFiles;
use crate::format::hdf5::message::layout::{Chunked, LayoutClass};
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::{ChunkGrid, ChunkIndex, ChunkOf, Dataspace, HeapRef, Layout, Storage, VirtualMapping};
use crate::shape::{Name, byte_count};
use crate::source::Neighbours;
use bytes::Bytes;
use std::sync::Arc;

/// What is needed to reach the elements of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The file.
    pub space: &'a Space,
    /// Its global heap.
    pub heap: &'a GlobalHeap,
    /// The files that it may name.
    pub neighbours: &'a Neighbours,
    /// Whether another process may be writing it.
    pub live: bool,
}

/// The grid of chunks, the words for the layout, and the way to the elements.
pub fn open(file: Surroundings<'_>, dataset: &Dataset) -> Result<(ChunkGrid, Layout, Storage)> {
    let space = file.space;
    let dims = dataset.space.dims();
    let rank = dims.len();
    let length = match dataset.space {
        Dataspace::Null => 0,
        _ => byte_count(dims, dataset.dtype.size())?,
    };
    let whole = |index: Whole| Storage::Chunks(Arc::new(index));
    match &dataset.layout.class {
        LayoutClass::Compact(bytes) => {
            Ok((ChunkGrid::Whole, Layout::Compact, whole(Whole::compact(bytes.clone(), length, rank))))
        }
        LayoutClass::Contiguous { address, size } => match &dataset.external {
            Some(files) => {
                let layout = Layout::External(files.slots.len());
                let source = Arc::new(external(file, files)?);
                Ok((ChunkGrid::Whole, layout, whole(Whole::external(source, length, rank))))
            }
            None => {
                let index = Whole::contiguous(space, *address, *size, length, rank);
                Ok((ChunkGrid::Whole, Layout::Contiguous, whole(index)))
            }
        },
        LayoutClass::Chunked(chunked) => {
            let grid = ChunkGrid::Regular(chunked.chunk.to_vec());
            let layout = Layout::Chunked { index: chunked.index.name() };
            Ok((grid, layout, Storage::Chunks(self::chunked(file, dataset, chunked)?)))
        }
        LayoutClass::Virtual { address, index } => {
            let mappings = virtual_mappings(file, *address, *index)?;
            Ok((ChunkGrid::Whole, Layout::Virtual(mappings.len()), Storage::Virtual(mappings.into())))
        }
    }
}

fn chunked(file: Surroundings<'_>, dataset: &Dataset, chunked: &Chunked) -> Result<Arc<dyn ChunkIndex>> {
    let Dataspace::Simple { dims, max } = &dataset.space else {
        // No extents, no chunks: libhdf5 makes no such dataset but for a null space, which has no elements.
        return Ok(Arc::new(Whole::compact(Default::default(), 0, 0)));
    };
    let shape =
        ArrayShape { dims, max, element: dataset.dtype.size() as u64, filtered: !dataset.filters.is_empty() };
    Ok(Arc::new(ChunkTable::new(file.space, chunked, shape)?.live(file.live)))
}

fn external(file: Surroundings<'_>, files: &ExternalFiles) -> Result<ExternalSource> {
    let heap = LocalHeap::open(file.space, files.heap)?;
    let segments = files.slots.iter().map(|slot| {
        let name = Name::from(heap.text(slot.name)?);
        Ok(ExternalSegment { name, offset: slot.offset, length: slot.size })
    });
    let segments = segments.collect::<Result<_>>()?;
    ExternalSource::new(segments, file.neighbours.clone(), file.space.data().clone())
}

/// Where the chunks of a virtual dataset are in one other array, if it is made of such: see `Stack`.
pub fn stacked(file: Surroundings<'_>, dataset: &Dataset, chunk_of: ChunkOf<'_>) -> Result<Option<Stack>> {
    let (LayoutClass::Virtual { address, index }, Dataspace::Simple { dims, .. }) =
        (&dataset.layout.class, &dataset.space)
    else {
        return Ok(None);
    };
    match virtual_block(file, *address, *index)? {
        Some(block) => {
            let at = file.space.base().saturating_add(*address);
            Stack::parse(&block, at, file.space.sizes(), dims, chunk_of)
        }
        None => Ok(Some(Stack::default())),
    }
}

fn virtual_mappings(file: Surroundings<'_>, address: u64, index: u32) -> Result<Vec<VirtualMapping>> {
    match virtual_block(file, address, index)? {
        Some(block) => mapping::parse(&block, file.space.base().saturating_add(address), file.space.sizes()),
        None => Ok(Vec::new()),
    }
}

/// The block of mappings in the global heap; `None` if there is none.
fn virtual_block(file: Surroundings<'_>, address: u64, index: u32) -> Result<Option<Bytes>> {
    if address == UNDEFINED {
        return Ok(None);
    }
    if address == 0 {
        return Err(Error::new(ErrorKind::Corrupt, "a virtual dataset whose mappings are at address 0"));
    }
    file.heap.object(HeapRef { address, index }).map(Some)
}
