//! What a writer knows of an array: how its chunks are encoded, and the objects that they go to.

use super::super::array::{self, ArrayDocument, Fill};
use super::super::types::{Element, Variable};
use super::node::{Members, Node};
use super::options::ZarrOptions;
use crate::codec::{BindContext, Codec, Pipeline, Scratch};
use crate::dtype::{ByteOrder, DType};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::Json;
use crate::model::write::WriteLayout;
use crate::shape::{Coord, Name, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

/// An array to be written.
#[derive(Debug)]
pub(super) struct ArrayState {
    pub(super) document: ArrayDocument,
    pub(super) layout: WriteLayout,
    pub(super) shard: Option<ShardState>,
    pub(super) variable: Option<VariableState>,
}

/// How chunks lie in shards.
#[derive(Debug)]
pub(super) struct ShardState {
    /// Chunks along each axis of a shard.
    pub(super) ratio: Vec<u64>,
    index: Pipeline,
    index_length: u64,
    at_start: bool,
}

/// How elements of any length are encoded.
#[derive(Debug)]
pub(super) struct VariableState {
    stages: Vec<Arc<dyn Codec>>,
    /// The most bytes of a decoded chunk.
    limit: u64,
}

impl ArrayState {
    /// From the document of an array. `by_netcdf` as in the reader. What can be read and not written is
    /// [`ErrorKind::Unsupported`].
    pub(super) fn new(node: &Node, by_netcdf: bool, options: &ZarrOptions) -> Result<ArrayState> {
        let metadata: &Members = &node.metadata;
        let json = Json::Map(metadata.clone());
        let mut document = match node.version {
            3 => array::v3(&json).context(|| "zarr.json")?,
            _ => array::v2(&json, false).context(|| ".zarray")?,
        };
        if by_netcdf && node.version == 2 {
            document.mend_default_fill();
        }
        if document.rectilinear.is_some() {
            return Err(Error::unsupported("writing to a rectilinear grid of chunks"));
        }
        if document.codecs.order.is_some() {
            return Err(Error::unsupported("writing elements of any length in another order of axes"));
        }
        let natural = |order: &[usize]| order.iter().copied().eq(0..order.len());
        let (chunk, shard) = match document.codecs.shards.as_slice() {
            [] => (document.chunk.clone(), None),
            [shard] if shard.outer.is_empty() && natural(&shard.order) => {
                let ratio: Vec<u64> =
                    document.chunk.iter().zip(&shard.chunk).map(|(s, c)| s / (*c).max(1)).collect();
                let state = ShardState::new(ratio, &shard.index, shard.at_start, options)?;
                (shard.chunk.clone(), Some(state))
            }
            [_] => return Err(Error::unsupported("writing shards that are encoded as a whole, or turned")),
            _ => return Err(Error::unsupported("writing shards in shards")),
        };
        let dtype = document.dtype();
        let (variable, pipeline) = match &document.element {
            Element::Fixed(dtype) => {
                let chunk_bytes = byte_count(&chunk, dtype.size())?;
                let context = BindContext { dtype, chunk: &chunk, chunk_bytes };
                (None, options.registry.pipeline(&document.codecs.filters, &context)?)
            }
            Element::Variable(Variable::Json) => {
                return Err(Error::unsupported("writing elements encoded by json2"));
            }
            Element::Variable(_) => {
                let byte = DType::Opaque { size: 1, tag: Name::default() };
                let context = BindContext { dtype: &byte, chunk: &[], chunk_bytes: 1 };
                let filters = &document.codecs.filters;
                let stages =
                    filters.iter().map(|f| options.registry.bind(f, &context)).collect::<Result<_>>()?;
                let limit = options.limits.chunk;
                (Some(VariableState { stages, limit }), options.registry.pipeline(filters, &context)?)
            }
        };
        pipeline.check(0)?;
        let (fill, may_skip_fill) = match (&document.fill, &variable) {
            (Fill::Undefined, _) => (Bytes::new(), false),
            (Fill::Value(bytes), None) => (Bytes::copy_from_slice(bytes), true),
            (Fill::Value(bytes), Some(_)) => (object(bytes), true),
        };
        let fill = if variable.is_some() && fill.is_empty() { object(&[]) } else { fill };
        let block = match &shard {
            Some(shard) => shard.ratio.clone(),
            None => chunk.iter().map(|_| 1).collect(),
        };
        let layout = WriteLayout {
            dtype,
            shape: document.shape.clone(),
            chunk,
            block,
            cut_edges: false,
            fill,
            may_skip_fill,
            pipeline: Arc::new(pipeline),
        };
        Ok(ArrayState { document, layout, shard, variable })
    }

    /// The coordinates of the object that a chunk goes to, and its number in it.
    pub(super) fn object_of(&self, coord: &[u64]) -> (Coord, usize) {
        let Some(shard) = &self.shard else { return (coord.iter().copied().collect(), 0) };
        let at = coord.iter().zip(&shard.ratio).map(|(c, r)| c / (*r).max(1)).collect();
        let number = coord
            .iter()
            .zip(&shard.ratio)
            .fold(0u64, |n, (c, r)| n.saturating_mul(*r).saturating_add(c % (*r).max(1)));
        (at, usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The chunks in the object at these coordinates that lie within the array: number in it, and coordinates.
    pub(super) fn chunks_in(&self, object: &[u64]) -> Result<Vec<(usize, Coord)>> {
        let Some(shard) = &self.shard else { return Ok(vec![(0, object.iter().copied().collect())]) };
        let count = to_usize(element_count(&shard.ratio)?)?;
        let grid = self.layout.grid();
        let coord = |number: usize| {
            let mut rest = number as u64;
            let mut coord: Coord =
                object.iter().zip(&shard.ratio).map(|(o, r)| o.saturating_mul(*r)).collect();
            for (c, r) in coord.iter_mut().zip(&shard.ratio).rev() {
                *c = c.saturating_add(rest % (*r).max(1));
                rest /= (*r).max(1);
            }
            (number, coord)
        };
        let within = |(_, coord): &(usize, Coord)| coord.iter().zip(&grid).all(|(c, n)| c < n);
        Ok((0..count).map(coord).filter(within).collect())
    }

    /// A chunk with everything at and beyond `keep` replaced by the fill value, encoded: `None` if it is as it was.
    pub(super) fn trimmed(&self, coord: &[u64], encoded: &Bytes, keep: &[u64]) -> Result<Option<Bytes>> {
        let mut scratch = Scratch::default();
        let start = self.layout.start_of(coord);
        let inside = |number: usize| {
            let mut rest = number as u64;
            let mut inside = true;
            for ((&start, &n), &keep) in start.iter().zip(&self.layout.chunk).zip(keep).rev() {
                inside &= start.saturating_add(rest % n.max(1)) < keep;
                rest /= n.max(1);
            }
            inside
        };
        let mut out = Vec::new();
        match &self.variable {
            None => {
                let mut elements = Vec::new();
                self.layout.pipeline.decode(encoded, 0, &mut elements, &mut scratch)?;
                let size = self.layout.dtype.size().max(1);
                let zeros = vec![0; size];
                let fill = if self.layout.fill.is_empty() { &zeros[..] } else { &self.layout.fill[..] };
                let mut changed = false;
                for (i, element) in elements.chunks_exact_mut(size).enumerate() {
                    if !inside(i) && element != fill {
                        element.copy_from_slice(fill);
                        changed = true;
                    }
                }
                if !changed {
                    return Ok(None);
                }
                self.layout.pipeline.encode(&elements, &mut out, &mut scratch)?;
            }
            Some(variable) => {
                let list = variable.decode(encoded, &mut scratch)?;
                let mut items = items(&list)?;
                let fill = self.layout.fill.get(8..).unwrap_or(&[]);
                let mut changed = false;
                for (i, item) in items.iter_mut().enumerate() {
                    if !inside(i) && *item != fill {
                        *item = fill;
                        changed = true;
                    }
                }
                if !changed {
                    return Ok(None);
                }
                let list = joined(items.into_iter())?;
                self.layout.pipeline.encode_any(&list, &mut out, &mut scratch)?;
            }
        }
        Ok(Some(out.into()))
    }
}

/// An element of any length as a writer takes it.
fn object(bytes: &[u8]) -> Bytes {
    let mut object = (bytes.len() as u64).to_le_bytes().to_vec();
    object.extend_from_slice(bytes);
    object.into()
}

/// Elements of any length as one list: their number, and each with its length in front.
pub(super) fn joined<'a>(items: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let word = |n: usize| {
        u32::try_from(n).map(u32::to_le_bytes).map_err(|_| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!("an element or a chunk of {n} bytes or elements; 2^32 - 1 are possible"),
            )
        })
    };
    let mut list = word(items.len())?.to_vec();
    for item in items {
        list.extend_from_slice(&word(item.len())?);
        list.extend_from_slice(item);
    }
    Ok(list)
}

fn items(list: &[u8]) -> Result<Vec<&[u8]>> {
    let short = || Error::new(ErrorKind::Corrupt, "a list of elements that ends early");
    let (count, mut rest) = list.split_first_chunk::<4>().ok_or_else(short)?;
    let count = u32::from_le_bytes(*count) as usize;
    let mut items = Vec::with_capacity(count.min(rest.len() / 4));
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let (item, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
        items.push(item);
        rest = after;
    }
    Ok(items)
}

impl VariableState {
    fn decode(&self, encoded: &[u8], scratch: &mut Scratch) -> Result<Vec<u8>> {
        let limit = to_usize(self.limit)?;
        let mut current = encoded.to_vec();
        for stage in self.stages.iter().rev() {
            let bound = stage.decoded_bound(current.len() as u64);
            let mut next = Vec::new();
            stage.decode(&current, &mut next, to_usize(bound.min(self.limit))?.min(limit), scratch)?;
            current = next;
        }
        Ok(current)
    }
}

impl ShardState {
    fn new(
        ratio: Vec<u64>,
        specs: &[crate::codec::FilterSpec],
        at_start: bool,
        options: &ZarrOptions,
    ) -> Result<ShardState> {
        let number = DType::from_zarr("uint64", ByteOrder::Little);
        let number = number.ok_or_else(|| Error::unsupported("integers of eight bytes"))?;
        let mut extents = ratio.clone();
        extents.push(2);
        let chunk_bytes = byte_count(&extents, 8)?;
        if chunk_bytes > options.limits.metadata {
            return Err(Error::limit(
                "bytes of a shard's index",
                chunk_bytes.into(),
                options.limits.metadata.into(),
            ));
        }
        let context = BindContext { dtype: &number, chunk: &extents, chunk_bytes };
        let index = options.registry.pipeline(specs, &context)?;
        index.check(0).context(|| "shard index")?;
        let index_length =
            index.encoded_len().ok_or_else(|| Error::unsupported("a shard index of varying length"))?;
        Ok(ShardState { ratio, index, index_length, at_start })
    }

    /// Number of chunks in a shard.
    pub(super) fn count(&self) -> Result<usize> {
        to_usize(element_count(&self.ratio)?)
    }

    /// The chunks of a stored shard.
    pub(super) fn open(&self, shard: &Bytes) -> Result<Vec<Option<Bytes>>> {
        let corrupt = |what: String| Error::new(ErrorKind::Corrupt, what);
        let short = || corrupt(format!("a shard of {} bytes cannot hold its index", shard.len()));
        let length = to_usize(self.index_length)?;
        let free = shard.len().checked_sub(length).ok_or_else(short)?;
        let (stored, chunks) = match self.at_start {
            true => (shard.slice(..length), length..shard.len()),
            false => (shard.slice(free..), 0..free),
        };
        let mut index = Vec::new();
        self.index.decode(&stored, 0, &mut index, &mut Scratch::default()).context(|| "shard index")?;
        let entries = index.as_chunks::<16>().0.iter().map(|entry| {
            let (words, _) = entry.as_chunks::<8>();
            let (offset, length) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
            if (offset, length) == (u64::MAX, u64::MAX) {
                return Ok(None);
            }
            let range = usize::try_from(offset).ok().zip(offset.checked_add(length).and_then(|e| usize::try_from(e).ok()));
            match range {
                Some((from, to)) if from >= chunks.start && to <= chunks.end => Ok(Some(shard.slice(from..to))),
                _ => Err(corrupt(format!("the index of the shard says {length} bytes at {offset:#x}, which lie outside of its chunks"))),
            }
        });
        entries.collect()
    }

    /// A shard of these chunks; `None` if there are none.
    pub(super) fn close(&self, chunks: &[Option<Bytes>]) -> Result<Option<Bytes>> {
        if chunks.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut at = if self.at_start { self.index_length } else { 0 };
        let mut index = Vec::with_capacity(chunks.len().saturating_mul(16));
        for chunk in chunks {
            let entry = match chunk {
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
        let mut encoded = Vec::new();
        self.index.encode(&index, &mut encoded, &mut Scratch::default()).context(|| "shard index")?;
        let total = chunks.iter().flatten().map(Bytes::len).sum::<usize>() + encoded.len();
        let mut shard = Vec::with_capacity(total);
        if self.at_start {
            shard.extend_from_slice(&encoded);
        }
        chunks.iter().flatten().for_each(|bytes| shard.extend_from_slice(bytes));
        if !self.at_start {
            shard.extend_from_slice(&encoded);
        }
        Ok(Some(shard.into()))
    }
}
