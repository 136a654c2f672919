//! Shards to be written: many chunks in one object, in shards of their own if need be.

use super::super::array::Shard;
use super::options::ZarrOptions;
use crate::codec::{BindContext, Codec, Pipeline, Scratch};
use crate::dtype::{ByteOrder, DType};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::shape::{Coord, Name, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

/// How chunks lie in the shards that are objects.
#[derive(Debug)]
pub(super) struct ShardState {
    /// Chunks along each axis of a shard.
    pub(super) ratio: Vec<u64>,
    /// Shards in shards, from the outermost.
    levels: Vec<Level>,
    /// The most bytes of a shard that is encoded as a whole.
    limit: u64,
}

#[derive(Debug)]
struct Level {
    /// Parts along each axis of one shard: chunks, or shards of the next level.
    ratio: Vec<u64>,
    /// The order of axes in which they are numbered: which axis of the array each one is.
    order: Vec<usize>,
    index: Pipeline,
    index_length: u64,
    at_start: bool,
    /// Stages around a whole shard, in the order in which they encode.
    outer: Vec<Arc<dyn Codec>>,
}

/// The number of coordinates in C order of these extents.
fn number(coord: &[u64], extents: &[u64]) -> usize {
    let number = coord.iter().zip(extents).fold(0u64, |n, (c, r)| n.saturating_mul(*r).saturating_add(*c));
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The coordinates of a number.
fn coord(number: usize, extents: &[u64]) -> Coord {
    let mut rest = number as u64;
    let mut coord: Coord = extents.iter().map(|_| 0).collect();
    for (c, r) in coord.iter_mut().zip(extents).rev() {
        *c = rest % (*r).max(1);
        rest /= (*r).max(1);
    }
    coord
}

impl ShardState {
    /// Shards of these extents, as the document of an array has them.
    pub(super) fn new(extents: &[u64], shards: &[Shard], options: &ZarrOptions) -> Result<ShardState> {
        let mut above = extents;
        let mut levels = Vec::new();
        for shard in shards {
            let ratio = above.iter().zip(&shard.chunk).map(|(s, c)| s / (*c).max(1)).collect();
            levels.push(Level::new(ratio, shard, options)?);
            above = &shard.chunk;
        }
        let ratio: Vec<u64> = extents.iter().zip(above).map(|(s, c)| s / (*c).max(1)).collect();
        element_count(&ratio)?;
        Ok(ShardState { ratio, levels, limit: options.limits.chunk })
    }

    /// Number of chunks in a shard.
    pub(super) fn count(&self) -> Result<usize> {
        to_usize(element_count(&self.ratio)?)
    }

    /// The chunks of a stored shard, in C order.
    pub(super) fn open(&self, shard: &Bytes) -> Result<Vec<Option<Bytes>>> {
        // Each shard of a level, and the coordinates of it among those of its level.
        let mut parts: Vec<(Coord, Bytes)> = vec![(self.ratio.iter().map(|_| 0).collect(), shard.clone())];
        for level in &self.levels {
            let mut inner = Vec::new();
            for (at, shard) in parts {
                for (place, part) in level.places().zip(level.open(shard, self.limit)?) {
                    let Some(part) = part else { continue };
                    let within = at.iter().zip(&level.ratio).zip(&place);
                    let within = within.map(|((a, r), p)| a.saturating_mul(*r).saturating_add(*p)).collect();
                    inner.push((within, part));
                }
            }
            parts = inner;
        }
        let mut chunks = vec![None; self.count()?];
        for (at, chunk) in parts {
            if let Some(slot) = chunks.get_mut(number(&at, &self.ratio)) {
                *slot = Some(chunk);
            }
        }
        Ok(chunks)
    }

    /// A shard of these chunks; `None` if there are none.
    pub(super) fn close(&self, chunks: &[Option<Bytes>]) -> Result<Option<Bytes>> {
        let mut parts = chunks.to_vec();
        let mut grid = self.ratio.clone();
        for level in self.levels.iter().rev() {
            let above: Vec<u64> = grid.iter().zip(&level.ratio).map(|(g, r)| g / (*r).max(1)).collect();
            let mut outer = Vec::new();
            for shard in 0..to_usize(element_count(&above)?)? {
                let at = coord(shard, &above);
                let inner = level.places().map(|place| {
                    let within = at.iter().zip(&level.ratio).zip(&place);
                    let within: Coord =
                        within.map(|((a, r), p)| a.saturating_mul(*r).saturating_add(*p)).collect();
                    parts.get(number(&within, &grid)).cloned().flatten()
                });
                outer.push(level.close(&inner.collect::<Vec<_>>())?);
            }
            (parts, grid) = (outer, above);
        }
        Ok(parts.pop().flatten())
    }
}

impl Level {
    fn new(ratio: Vec<u64>, shard: &Shard, options: &ZarrOptions) -> Result<Level> {
        let number = DType::from_zarr("uint64", ByteOrder::Little);
        let number = number.ok_or_else(|| Error::unsupported("integers of eight bytes"))?;
        let mut extents = ratio.clone();
        extents.push(2);
        let chunk_bytes = byte_count(&extents, 8)?;
        if chunk_bytes > options.limits.metadata {
            let most = options.limits.metadata.into();
            return Err(Error::limit("bytes of a shard's index", chunk_bytes.into(), most));
        }
        let context = BindContext { dtype: &number, chunk: &extents, chunk_bytes };
        let index = options.registry.pipeline(&shard.index, &context)?;
        index.check(0).context(|| "shard index")?;
        let index_length =
            index.encoded_len().ok_or_else(|| Error::unsupported("a shard index of varying length"))?;
        let whole = DType::Opaque { size: 1, tag: Name::default() };
        let context = BindContext { dtype: &whole, chunk: &[], chunk_bytes: 1 };
        let outer = shard.outer.iter().map(|spec| options.registry.bind(spec, &context));
        let outer = outer.collect::<Result<_>>()?;
        Ok(Level { ratio, order: shard.order.clone(), index, index_length, at_start: shard.at_start, outer })
    }

    /// The coordinates of the parts of a shard, in the order in which the index has them.
    fn places(&self) -> impl Iterator<Item = Coord> + '_ {
        let turned: Vec<u64> =
            self.order.iter().map(|&axis| self.ratio.get(axis).copied().unwrap_or(1)).collect();
        let count = usize::try_from(turned.iter().fold(1u64, |n, r| n.saturating_mul(*r))).unwrap_or(0);
        (0..count).map(move |number| {
            let stored = coord(number, &turned);
            let mut place: Coord = self.ratio.iter().map(|_| 0).collect();
            for (&axis, &c) in self.order.iter().zip(&stored) {
                if let Some(slot) = place.get_mut(axis) {
                    *slot = c;
                }
            }
            place
        })
    }

    /// The parts of a stored shard, in the order of its index.
    fn open(&self, shard: Bytes, limit: u64) -> Result<Vec<Option<Bytes>>> {
        let mut scratch = Scratch::default();
        let shard = self.outer.iter().rev().try_fold(shard, |bytes, codec| {
            let mut out = Vec::new();
            let most = to_usize(codec.decoded_bound(bytes.len() as u64).min(limit))?;
            codec.decode(&bytes, &mut out, most, &mut scratch)?;
            Ok::<_, Error>(Bytes::from(out))
        })?;
        let corrupt = |what: String| Error::new(ErrorKind::Corrupt, what);
        let short = || corrupt(format!("a shard of {} bytes cannot hold its index", shard.len()));
        let length = to_usize(self.index_length)?;
        let free = shard.len().checked_sub(length).ok_or_else(short)?;
        let (stored, chunks) = match self.at_start {
            true => (shard.slice(..length), length..shard.len()),
            false => (shard.slice(free..), 0..free),
        };
        let mut index = Vec::new();
        self.index.decode(&stored, 0, &mut index, &mut scratch).context(|| "shard index")?;
        let entries = index.as_chunks::<16>().0.iter().map(|entry| {
            let (words, _) = entry.as_chunks::<8>();
            let (offset, length) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
            if (offset, length) == (u64::MAX, u64::MAX) {
                return Ok(None);
            }
            let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
            match usize::try_from(offset).ok().zip(end) {
                Some((from, to)) if from >= chunks.start && to <= chunks.end => Ok(Some(shard.slice(from..to))),
                _ => Err(corrupt(format!(
                    "the index of the shard says {length} bytes at {offset:#x}, which lie outside of its chunks"
                ))),
            }
        });
        entries.collect()
    }

    /// A shard of these parts; `None` if there are none.
    fn close(&self, parts: &[Option<Bytes>]) -> Result<Option<Bytes>> {
        if parts.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut at = if self.at_start { self.index_length } else { 0 };
        let mut index = Vec::with_capacity(parts.len().saturating_mul(16));
        for part in parts {
            let entry = match part {
                Some(bytes) => {
                    let entry = (at, bytes.len() as u64);
                    at = at.saturating_add(bytes.len() as u64);
                    entry
                }
                None => (u64::MAX, u64::MAX),
            };
            index.extend_from_slice(&entry.0.to_le_bytes());
            index.extend_from_slice(&entry.1.to_le_bytes());
        }
        let mut scratch = Scratch::default();
        let mut encoded = Vec::new();
        self.index.encode(&index, &mut encoded, &mut scratch).context(|| "shard index")?;
        let total = parts.iter().flatten().map(Bytes::len).sum::<usize>() + encoded.len();
        let mut shard = Vec::with_capacity(total);
        if self.at_start {
            shard.extend_from_slice(&encoded);
        }
        parts.iter().flatten().for_each(|bytes| shard.extend_from_slice(bytes));
        if !self.at_start {
            shard.extend_from_slice(&encoded);
        }
        for codec in &self.outer {
            let mut out = Vec::new();
            codec.encode(&shard, &mut out, &mut scratch)?;
            shard = out;
        }
        Ok(Some(shard.into()))
    }
}
