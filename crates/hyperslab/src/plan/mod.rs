//! Decides what a read will do, as a value. Nothing here reads data; only [`ChunkIndex::locate`] reads metadata.
//!
//! A [`ReadPlan`] fills one result from *parts*; an ordinary array is one part, a virtual dataset has one for each of
//! its sources. Each part has *tasks*, one for each touched chunk, in the order of their place in the file, and
//! *units* of neighbouring tasks that are fetched with one request or batch.
//!
//! [`ChunkIndex::locate`]: crate::model::ChunkIndex::locate

mod build;
mod display;
mod narrow;
#[cfg(test)]
mod tests;

pub(crate) use build::{Place, block_shape};
pub use display::Summary;
pub use narrow::Span;

use crate::codec::Pipeline;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::select::{Projection, Region};
use crate::shape::{byte_count, element_count, to_usize};
use crate::source::{ByteRange, Latency, ReadHints, Source, Store};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// What a read will do.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// Shape of the result.
    shape: Vec<u64>,
    /// Type of the elements, as stored.
    dtype: DType,
    /// One stored element for what no part covers; empty: zeros.
    background: Bytes,
    /// Whether the parts may leave elements to the background.
    sparse: bool,
    parts: Vec<Part>,
}

/// What is read from one array.
#[derive(Clone, Debug)]
pub struct Part {
    /// The array, for messages.
    pub(crate) name: String,
    /// Its number, for what is kept of it from read to read; 0: nothing is.
    pub(crate) identity: u64,
    /// The most bytes that an object may have which holds one encoded chunk.
    pub(crate) most: u64,
    /// Its element type as stored.
    pub(crate) dtype: DType,
    /// One stored element for chunks that were never written; empty: zeros.
    pub(crate) fill: Bytes,
    /// What is read, and where in the result it goes.
    pub(crate) region: Region,
    /// The region on the grid that is read by.
    pub(crate) projection: Projection,
    /// Extents of the chunks of that grid.
    pub(crate) chunk: Vec<u64>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) hints: Vec<ReadHints>,
    /// Stores that chunks are objects of, with their costs.
    pub(crate) stores: Vec<(Arc<dyn Store>, ReadHints)>,
    /// Keys of these objects.
    pub(crate) keys: Vec<Arc<str>>,
    /// Encoded bytes that are in memory.
    pub(crate) inline: Vec<Bytes>,
    pub(crate) tasks: Vec<Task>,
    /// Neighbouring tasks that are fetched together.
    pub(crate) units: Vec<Range<usize>>,
}

/// What is done for one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Number of the chunk in the projection.
    pub(crate) chunk: u64,
    pub(crate) fetch: Fetch,
}

/// Where the bytes of a chunk come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Nowhere: it was never written.
    Fill,
    /// Encoded bytes in memory.
    Inline { index: usize, mask: u32 },
    /// Encoded bytes of a source, all of them.
    Encoded { source: usize, offset: u64, length: u64, mask: u32 },
    /// Encoded bytes, or elements as stored, that are an object of a store: the fill value if it is not there.
    Object { store: usize, key: usize },
    /// Elements as stored, in a source, from here on: only what is wanted is read.
    Stored { source: usize, offset: u64, length: u64 },
    /// Elements as stored, in memory, from this byte on.
    InlineStored { index: usize, offset: u64 },
}

/// Where an array's chunks are, for [`Part::new`].
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// The array, for messages.
    pub name: &'a str,
    /// A number that no other array has, if decoded chunks may be kept; otherwise 0.
    pub identity: u64,
    /// Its description.
    pub meta: &'a crate::model::ArrayMeta,
    /// Its chunks.
    pub index: &'a dyn crate::model::ChunkIndex,
    /// Its filters.
    pub pipeline: &'a Arc<Pipeline>,
}

impl ReadPlan {
    /// A plan to read one array.
    pub fn new(origin: &Origin<'_>, region: Region, limits: &Limits) -> Result<ReadPlan> {
        let shape = region.shape().to_vec();
        check_output(&shape, origin.meta.dtype.size(), limits)?;
        let part = Part::new(origin, region, limits)?;
        Ok(ReadPlan {
            shape,
            dtype: origin.meta.dtype.clone(),
            background: Bytes::new(),
            sparse: false,
            parts: vec![part],
        })
    }

    /// A plan made of parts, each of which writes into its own elements of one result of this shape and type. What
    /// no part writes is `background`; where parts overlap, the later one wins.
    pub fn of_parts(
        shape: Vec<u64>,
        dtype: DType,
        background: Bytes,
        parts: Vec<Part>,
        limits: &Limits,
    ) -> Result<ReadPlan> {
        check_output(&shape, dtype.size(), limits)?;
        let count = element_count(&shape)?;
        for part in &parts {
            if element_count(part.region.extents())? != count {
                return Err(Error::invalid(format!("{} writes into a result of another size", part.name)));
            }
        }
        Ok(ReadPlan { shape, dtype, background, sparse: true, parts })
    }

    /// A plan made of parts that together write every element of the result once.
    pub(crate) fn of_tiles(
        shape: Vec<u64>,
        dtype: DType,
        parts: Vec<Part>,
        limits: &Limits,
    ) -> Result<ReadPlan> {
        let mut plan = ReadPlan::of_parts(shape, dtype, Bytes::new(), parts, limits)?;
        plan.sparse = false;
        Ok(plan)
    }

    /// Shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Type of the elements as stored.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Number of elements of the result.
    pub fn count(&self) -> Result<usize> {
        to_usize(element_count(&self.shape)?)
    }

    /// The arrays that are read.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse
    }

    pub(crate) fn background(&self) -> &Bytes {
        &self.background
    }
}

fn check_output(shape: &[u64], size: usize, limits: &Limits) -> Result<()> {
    let bytes = byte_count(shape, size)?;
    if bytes > limits.output {
        return Err(Error::limit("bytes of the result", bytes as u128, limits.output as u128)
            .hint("select less, or raise --max-memory, or Limits::output in the library"));
    }
    Ok(())
}

impl Part {
    /// Bytes of one element.
    pub(crate) fn element(&self) -> usize {
        self.dtype.size()
    }

    /// The ranges of the source that a task reads; none for what is in memory.
    pub(crate) fn spans(&self, task: &Task) -> Result<Vec<Span>> {
        match task.fetch {
            Fetch::Fill | Fetch::Inline { .. } | Fetch::InlineStored { .. } | Fetch::Object { .. } => {
                Ok(Vec::new())
            }
            Fetch::Encoded { offset, length, .. } => {
                Ok(vec![Span { range: ByteRange::new(offset, length), base: 0, windows: Vec::new() }])
            }
            Fetch::Stored { source, offset, length } => {
                let hints = self.hints.get(source).copied().unwrap_or(NO_HINTS);
                let Some(part) = self.projection.get(task.chunk) else { return Ok(Vec::new()) };
                narrow::spans(&part, self.element(), offset, length, &hints)
            }
        }
    }

    /// Whether requests of a task's source take long.
    pub(crate) fn is_remote(&self, task: &Task) -> bool {
        match task.fetch {
            Fetch::Encoded { source, .. } | Fetch::Stored { source, .. } => {
                self.hints.get(source).is_some_and(|h| h.latency == Latency::Remote)
            }
            Fetch::Object { store, .. } => {
                self.stores.get(store).is_some_and(|(_, h)| h.latency == Latency::Remote)
            }
            _ => false,
        }
    }
}

const NO_HINTS: ReadHints =
    ReadHints { gap: 0, max_merged: 1 << 20, concurrency: 1, latency: Latency::Local };
