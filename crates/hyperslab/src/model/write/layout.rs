//! How chunks of an array are to be encoded, and encoded chunks.

use crate::codec::Pipeline;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{Coord, element_count};
use bytes::Bytes;
use std::sync::Arc;

/// What a writer wants of the chunks of an array.
#[derive(Clone, Debug)]
pub struct WriteLayout {
    /// Element type as stored.
    pub dtype: DType,
    /// Extents of the array.
    pub shape: Vec<u64>,
    /// Extents of a chunk. Of data that is not chunked, the pieces in which the writer wants it: whole rows of its last
    /// axes.
    pub chunk: Vec<u64>,
    /// How many chunks along each axis lie in one object or block (a shard of Zarr); 1 elsewhere. Chunks of one block
    /// that come one after the other save the writer from reading the block again.
    pub block: Vec<u64>,
    /// Whether chunks at the edge are cut to what lies within the array, and not filled up with `fill`.
    pub cut_edges: bool,
    /// One stored element that stands for those never written; empty means zeros. Of elements that are objects it is one
    /// of them ([`Content`](super::Content)); an empty one is an element of which nothing is said.
    pub fill: Bytes,
    /// Whether a chunk that holds nothing but the fill value may be left out: reading an absent chunk gives the same.
    pub may_skip_fill: bool,
    /// The stages that encode a chunk.
    pub pipeline: Arc<Pipeline>,
}

impl WriteLayout {
    /// Chunks along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(&d, &c)| d.div_ceil(c.max(1))).collect()
    }

    /// The first element of the chunk at `coord`.
    pub fn start_of(&self, coord: &[u64]) -> Coord {
        coord.iter().zip(&self.chunk).map(|(&c, &n)| c.saturating_mul(n)).collect()
    }

    /// The part of the chunk at `coord` that lies within the array.
    pub fn valid_of(&self, coord: &[u64]) -> Coord {
        let start = self.start_of(coord);
        let within = start.iter().zip(&self.shape).zip(&self.chunk);
        within.map(|((&start, &d), &c)| d.saturating_sub(start).min(c)).collect()
    }

    /// The extents that the chunk at `coord` is encoded with.
    pub fn extent_of(&self, coord: &[u64]) -> Coord {
        if self.cut_edges { self.valid_of(coord) } else { self.chunk.iter().copied().collect() }
    }

    /// Number of chunks.
    pub fn count(&self) -> Result<u64> {
        element_count(&self.grid())
    }
}

/// A chunk as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedChunk {
    /// Its coordinates in the grid of the layout.
    pub coord: Coord,
    /// The encoded bytes; `None` for a chunk that is the fill value and shall not be stored.
    pub bytes: Option<Bytes>,
    /// Bit *i* set: stage *i* of the pipeline was skipped.
    pub mask: u32,
}
