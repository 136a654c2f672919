//! From a region and a chunk index to tasks.

use super::{Fetch, Origin, Part, Task};
use crate::codec::Pipeline;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{ArrayMeta, ChunkGrid, ChunkRef};
use crate::select::{ChunkPart, Projection, Region};
use crate::shape::{Coord, byte_count, element_count, to_usize};
use crate::source::{ByteRange, Latency, Source, Store};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Elements that are stored in one run are read in blocks of about this many bytes, so that workers can share them.
const BLOCK: u64 = 1 << 20;

/// Chunks looked up in one call.
const BATCH: usize = 4096;

/// On a local source, requests are joined up to this length: a request costs less than what a second worker gains.
const LOCAL_UNIT: u64 = 64 << 10;

/// Where the elements of one chunk are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Where an index says, encoded.
    Stored(ChunkRef),
    /// In memory as they are, the first one of the chunk in front.
    Elements(Bytes),
}

impl Part {
    /// What to read of one array, looked up in its index.
    pub fn new(origin: &Origin<'_>, region: Region, limits: &Limits) -> Result<Part> {
        let meta = origin.meta;
        let element = meta.dtype.size();
        if element == 0 {
            return Err(Error::new(ErrorKind::Corrupt, "elements of 0 bytes"));
        }
        if !meta.fill_element.is_empty() && meta.fill_element.len() != element {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("a fill value of {} bytes for elements of {element}", meta.fill_element.len()),
            ));
        }
        let blocks = matches!(meta.grid, ChunkGrid::Whole) && origin.pipeline.is_empty();
        let chunk = match &meta.grid {
            ChunkGrid::Whole if blocks => block_shape(region.dims(), element),
            ChunkGrid::Whole => region.dims().iter().map(|&d| d.max(1)).collect(),
            ChunkGrid::Regular(chunk) => chunk.clone(),
            ChunkGrid::Rectilinear { .. } => {
                return Err(Error::invalid("one part of a plan for chunks of different extents"));
            }
        };
        let chunk_bytes = byte_count(&chunk, element)?;
        if chunk_bytes > limits.chunk {
            return Err(Error::limit("bytes of one chunk", chunk_bytes as u128, limits.chunk as u128)
                .hint("raise --max-memory, or Limits::chunk in the library"));
        }
        let projection = Projection::new(&region, &chunk)?;
        let memory = projection.len() as u128 * size_of::<Task>() as u128;
        if memory > limits.plan as u128 {
            return Err(Error::limit(
                format!("memory for the plan of {} chunks", projection.len()),
                memory,
                limits.plan as u128,
            )
            .hint("select less"));
        }
        let mut part = Part::empty(origin.name, meta, region, projection, chunk, origin.pipeline.clone());
        part.identity = origin.identity;
        part.tasks.reserve_exact(to_usize(part.projection.len())?);
        let mut finder = Finder { known: HashMap::new(), stores: HashMap::new() };
        if part.projection.is_empty() {
            return Ok(part);
        }
        if blocks {
            part.place_blocks(origin, &mut finder)?;
        } else {
            part.locate_chunks(origin, &mut finder, limits)?;
        }
        part.finish(limits)
    }

    /// What to read of the chunks of `region` that have these numbers in its projection onto chunks of `meta`'s grid;
    /// the others are left as they are. With `strides`, the elements in memory are so many elements apart on each axis.
    pub(crate) fn of_chunks(
        name: &str,
        meta: &ArrayMeta,
        pipeline: &Arc<Pipeline>,
        region: Region,
        strides: Option<&[usize]>,
        chunks: Vec<(u64, Place)>,
        limits: &Limits,
    ) -> Result<Part> {
        let chunk = meta.chunk_shape().to_vec();
        let projection = match strides {
            Some(strides) => Projection::with_strides(&region, &chunk, strides)?,
            None => Projection::new(&region, &chunk)?,
        };
        let mut part = Part::empty(name, meta, region, projection, chunk, pipeline.clone());
        let mut finder = Finder { known: HashMap::new(), stores: HashMap::new() };
        part.tasks.reserve_exact(chunks.len());
        for (chunk, place) in chunks {
            let fetch = match place {
                Place::Stored(at) => part.fetch(at, &mut finder, limits)?,
                Place::Elements(bytes) => {
                    part.inline.push(bytes);
                    Fetch::InlineStored { index: part.inline.len() - 1, offset: 0 }
                }
            };
            part.tasks.push(Task { chunk, fetch });
        }
        part.finish(limits)
    }

    fn empty(
        name: &str,
        meta: &ArrayMeta,
        region: Region,
        projection: Projection,
        chunk: Vec<u64>,
        pipeline: Arc<Pipeline>,
    ) -> Part {
        Part {
            name: name.to_owned(),
            identity: 0,
            most: 0,
            dtype: meta.dtype.clone(),
            fill: meta.fill_element.clone(),
            region,
            projection,
            chunk,
            pipeline,
            sources: Vec::new(),
            hints: Vec::new(),
            stores: Vec::new(),
            keys: Vec::new(),
            inline: Vec::new(),
            tasks: Vec::new(),
            units: Vec::new(),
        }
    }

    fn finish(mut self, limits: &Limits) -> Result<Part> {
        if !self.tasks.is_sorted_by_key(order) {
            self.tasks.sort_by_key(order);
        }
        self.most = limits.chunk.min(self.pipeline.encoded_bound());
        self.units = units(&self, limits)?;
        Ok(self)
    }

    /// Tasks for an array that is one run of stored elements.
    fn place_blocks(&mut self, origin: &Origin<'_>, finder: &mut Finder) -> Result<()> {
        let found = origin.index.locate(&[Coord::from_elem(0, self.chunk.len())])?;
        let [whole] = found.as_slice() else { return Err(wrong_count(1, found.len())) };
        let element = self.element() as u64;
        let dims = self.region.dims().to_vec();
        // The run must hold the array, or an element read later would come from something else.
        let needed = byte_count(&dims, self.element())?;
        let (at, length) = match whole {
            ChunkRef::Absent => (None, needed),
            ChunkRef::Memory { bytes, .. } => {
                self.inline.push(bytes.clone());
                (Some((0, 0)), bytes.len() as u64)
            }
            ChunkRef::Range { source, offset, length, .. } => {
                (Some((finder.source(self, source), *offset)), *length)
            }
            ChunkRef::Object { store, key } => match store.open(key)? {
                None => (None, needed),
                Some(source) => {
                    let length = source.len()?;
                    (Some((finder.source(self, &source), 0)), length)
                }
            },
        };
        if length < needed {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("{length} bytes are stored, the extents {dims:?} need {needed}"),
            ));
        }
        for n in 0..self.projection.len() {
            let Some(part) = self.projection.get(n) else { break };
            let first = part
                .coord
                .iter()
                .zip(&self.chunk)
                .zip(&dims)
                .fold(0u64, |at, ((&c, &chunk), &dim)| at * dim + c * chunk);
            let fetch = match (at, whole) {
                (None, _) => Fetch::Fill,
                (Some(_), ChunkRef::Memory { .. }) => {
                    Fetch::InlineStored { index: 0, offset: first * element }
                }
                // Both within `needed`, except that the offset itself may be near the end of all numbers.
                (Some((source, offset)), _) => Fetch::Stored {
                    source,
                    offset: offset.checked_add(first * element).ok_or_else(|| {
                        Error::new(ErrorKind::Corrupt, format!("data at {offset:#x} end beyond 2^64"))
                    })?,
                    length: needed - first * element,
                },
            };
            self.tasks.push(Task { chunk: n, fetch });
        }
        Ok(())
    }

    /// Tasks for an array in chunks.
    fn locate_chunks(&mut self, origin: &Origin<'_>, finder: &mut Finder, limits: &Limits) -> Result<()> {
        let mut coords: Vec<Coord> = Vec::with_capacity(BATCH.min(self.tasks.capacity()));
        let mut n = 0;
        while n < self.projection.len() {
            coords.clear();
            let end = self.projection.len().min(n + BATCH as u64);
            coords.extend((n..end).filter_map(|n| self.projection.get(n)).map(|part| part.coord));
            let found = origin.index.locate(&coords)?;
            if found.len() != coords.len() {
                return Err(wrong_count(coords.len(), found.len()));
            }
            for (i, at) in found.into_iter().enumerate() {
                let fetch = self
                    .fetch(at, finder, limits)
                    .context(|| format!("chunk {:?}", coords.get(i).map_or(&[][..], |c| &c[..])))?;
                self.tasks.push(Task { chunk: n + i as u64, fetch });
            }
            n = end;
        }
        Ok(())
    }

    fn fetch(&mut self, at: ChunkRef, finder: &mut Finder, limits: &Limits) -> Result<Fetch> {
        let chunk_bytes = byte_count(&self.chunk, self.element())?;
        let check = |length: u64| {
            if length < chunk_bytes {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!("{length} bytes are stored for an unfiltered chunk of {chunk_bytes}"),
                ));
            }
            Ok(())
        };
        Ok(match at {
            ChunkRef::Absent => Fetch::Fill,
            ChunkRef::Memory { bytes, mask } => {
                let index = self.inline.len();
                let identity = self.pipeline.is_identity(mask);
                if identity {
                    check(bytes.len() as u64)?;
                }
                self.inline.push(bytes);
                if identity {
                    Fetch::InlineStored { index, offset: 0 }
                } else {
                    Fetch::Inline { index, mask }
                }
            }
            ChunkRef::Range { source, offset, length, mask } => {
                if length > limits.chunk {
                    return Err(Error::limit("bytes of one chunk", length as u128, limits.chunk as u128)
                        .at("chunk", offset));
                }
                let source = finder.source(self, &source);
                if self.pipeline.is_identity(mask) {
                    check(length)?;
                    Fetch::Stored { source, offset, length: chunk_bytes }
                } else {
                    Fetch::Encoded { source, offset, length, mask }
                }
            }
            ChunkRef::Object { store, key } => {
                let store = finder.store(self, &store);
                self.keys.push(key);
                Fetch::Object { store, key: self.keys.len() - 1 }
            }
        })
    }
}

fn wrong_count(wanted: usize, got: usize) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the chunk index answers {got} of {wanted} questions"))
}

/// Numbers the sources of a part, each once.
struct Finder {
    known: HashMap<*const (), usize>,
    stores: HashMap<*const (), usize>,
}

impl Finder {
    fn source(&mut self, part: &mut Part, source: &Arc<dyn Source>) -> usize {
        let (sources, hints) = (&mut part.sources, &mut part.hints);
        *self.known.entry(Arc::as_ptr(source).cast()).or_insert_with(|| {
            sources.push(source.clone());
            hints.push(source.hints());
            sources.len() - 1
        })
    }
}

impl Finder {
    fn store(&mut self, part: &mut Part, store: &Arc<dyn Store>) -> usize {
        *self.stores.entry(Arc::as_ptr(store).cast()).or_insert_with(|| {
            part.stores.push((store.clone(), store.hints()));
            part.stores.len() - 1
        })
    }
}

/// Fills first, then what is in memory, then by place in the sources.
fn order(task: &Task) -> (u8, usize, u64) {
    match task.fetch {
        Fetch::Fill => (0, 0, task.chunk),
        Fetch::Inline { index, .. } | Fetch::InlineStored { index, .. } => (1, index, task.chunk),
        Fetch::Encoded { source, offset, .. } | Fetch::Stored { source, offset, .. } => (2, source, offset),
        Fetch::Object { store, key } => (3, store, key as u64),
    }
}

/// Extents of blocks of about [`BLOCK`] bytes in which elements follow one another as in the array: whole on the fast
/// axes, one on the slow ones.
pub(crate) fn block_shape(dims: &[u64], element: usize) -> Vec<u64> {
    let mut block = vec![1; dims.len()];
    let mut bytes = (element as u64).max(1);
    for (extent, &dim) in block.iter_mut().zip(dims).rev() {
        let fit = (BLOCK / bytes).clamp(1, dim.max(1));
        *extent = fit;
        bytes = bytes.saturating_mul(fit);
        if fit < dim {
            break;
        }
    }
    block
}

/// Neighbouring tasks that are fetched together: on a local source those whose requests are joined, on a remote one as
/// many as may be in flight at a time. Everything else stands alone.
fn units(part: &Part, limits: &Limits) -> Result<Vec<Range<usize>>> {
    let element = part.element() as u64;
    let mut units: Vec<Range<usize>> = Vec::new();
    // Source, end of its last range, and bytes of the unit that is being made.
    let mut open: Option<(usize, u64, u64)> = None;
    // Store and bytes of the unit of objects that is being made.
    let mut objects: Option<(usize, u64)> = None;
    // Fetching, waiting and decoding: three batches may be there at a time.
    let remote_unit = (limits.in_flight / 3).max(1);
    let fill_unit = 64;
    for (i, task) in part.tasks.iter().enumerate() {
        let (source, offset, length) = match task.fetch {
            Fetch::Encoded { source, offset, length, .. } => (source, offset, length),
            Fetch::Stored { source, offset, length } => {
                let wanted = part.projection.get(task.chunk).map_or(0, |p| p.count() as u64);
                (source, offset, length.min(wanted.saturating_mul(element)))
            }
            Fetch::Fill => {
                match units.last_mut() {
                    Some(last) if last.len() < fill_unit => last.end = i + 1,
                    _ => units.push(i..i + 1),
                }
                continue;
            }
            Fetch::Object { store, .. } if part.is_remote(task) => {
                // How long an object is, is not known before it is there: hardly more than what it decodes to.
                let length = part.pipeline.chunk_bytes().max(1);
                let joins =
                    objects.is_some_and(|(same, bytes)| same == store && bytes + length <= remote_unit);
                let before = objects.map_or(0, |(_, bytes)| bytes);
                match units.last_mut() {
                    Some(last) if joins => last.end = i + 1,
                    _ => units.push(i..i + 1),
                }
                objects = Some((store, if joins { before + length } else { length }));
                continue;
            }
            _ => {
                open = None;
                units.push(i..i + 1);
                continue;
            }
        };
        let hints = part.hints.get(source).copied().unwrap_or(super::NO_HINTS);
        let end = offset.saturating_add(length);
        let joins = open.is_some_and(|(same, last_end, bytes)| {
            same == source
                && if hints.latency == Latency::Remote {
                    bytes.saturating_add(length) <= remote_unit
                } else {
                    matches!(task.fetch, Fetch::Encoded { .. })
                        && offset >= last_end
                        && offset - last_end <= hints.gap
                        && bytes + (end - last_end) <= LOCAL_UNIT.min(hints.max_merged)
                }
        });
        match (units.last_mut(), &mut open) {
            (Some(last), Some((_, last_end, bytes))) if joins => {
                last.end = i + 1;
                *bytes = bytes.saturating_add(end.saturating_sub(*last_end).max(length));
                *last_end = end;
            }
            _ => {
                units.push(i..i + 1);
                // Narrowed reads of local data are requests of their own.
                let joinable =
                    hints.latency == Latency::Remote || matches!(task.fetch, Fetch::Encoded { .. });
                open = joinable.then_some((source, end, length));
            }
        }
    }
    Ok(units)
}

impl Part {
    /// The ranges that a unit of a local source reads: one for joined tasks.
    pub(crate) fn joined(&self, unit: &Range<usize>) -> Option<(usize, ByteRange)> {
        let tasks = self.tasks.get(unit.clone())?;
        let (first, last) = (tasks.first()?, tasks.last()?);
        match (first.fetch, last.fetch) {
            (
                Fetch::Encoded { source, offset, .. },
                Fetch::Encoded { source: same, offset: last, length, .. },
            ) if source == same => {
                let end = last.checked_add(length)?;
                Some((source, ByteRange::new(offset, end.checked_sub(offset)?)))
            }
            _ => None,
        }
    }

    /// Whether all elements of a chunk are wanted, as far as the array reaches.
    pub(crate) fn is_whole(&self, chunk: &ChunkPart<'_>) -> bool {
        let wanted = chunk.pieces.iter().fold(1u64, |n, piece| n.saturating_mul(piece.count() as u64));
        let extents = chunk.coord.iter().zip(&self.chunk).zip(self.region.dims());
        let all = extents.fold(1u64, |n, ((&c, &extent), &dim)| {
            n.saturating_mul(extent.min(dim.saturating_sub(c.saturating_mul(extent))))
        });
        wanted >= all
    }

    /// Number of chunks that hold selected elements.
    pub fn chunks(&self) -> u64 {
        self.projection.len()
    }

    /// Elements that the part writes.
    pub fn elements(&self) -> Result<u64> {
        self.region.count()
    }

    /// Whether the part writes every element of a result with these extents.
    pub(crate) fn covers(&self) -> bool {
        matches!(
            (self.region.count(), element_count(self.region.extents())),
            (Ok(written), Ok(all)) if written == all
        )
    }

    pub(crate) fn inline_bytes(&self, index: usize) -> Result<&Bytes> {
        self.inline.get(index).ok_or_else(|| Error::invalid("a plan names bytes that it does not hold"))
    }
}
