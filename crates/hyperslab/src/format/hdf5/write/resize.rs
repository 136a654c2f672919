//! Other extents of an array: what is cut off is given up, and growing again shows the fill value.

use super::array::coordinates;
use super::fill::is_partial;
use super::index::Entry;
use super::object::{Array, Id, Storage};
use super::transaction::Transaction;
use crate::codec::{BindContext, Registry, Scratch};
use crate::error::{Context, Error, Result};
use crate::format::hdf5::index::Grid;
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::Dataspace;
use crate::model::write::{EncodedChunk, ObjectPath, WriteLayout};
use crate::shape::{Coord, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

impl Transaction {
    /// Other extents of an array.
    pub(super) fn resize(&mut self, path: &ObjectPath, shape: &[u64]) -> Result<()> {
        let id = self.find(path)?;
        self.check_editable(id)?;
        let array = self.array(id)?;
        let Dataspace::Simple { dims, max } = &array.space else {
            return Err(Error::invalid("a scalar or null space has no extents to change"));
        };
        if shape.len() != dims.len() {
            return Err(Error::invalid(format!("extents {shape:?} for an array of rank {}", dims.len())));
        }
        if shape == dims.as_slice() {
            return Ok(());
        }
        if shape.iter().zip(max).any(|(&d, m)| m.is_some_and(|m| d > m)) {
            return Err(Error::invalid(format!("extents {shape:?} beyond the maximum extents {max:?}")));
        }
        element_count(shape)?;
        byte_count(shape, array.dtype.size())?;
        let Storage::Chunked(chunked) = &array.storage else {
            return Err(Error::unsupported("other extents of data that is not stored in chunks"));
        };
        let implicit = chunked.kind == IndexKind::Implicit;
        let plain_edges = chunked.edge_unfiltered && !array.filters.is_empty();
        let shrinks = shape.iter().zip(dims).any(|(new, old)| new < old);
        if shrinks || plain_edges || implicit {
            self.load_chunks(id)?;
            self.cut(id, shape, implicit)?;
        }
        if implicit {
            self.expose(id, shape)?;
        }
        self.forget_provenance(id)?;
        let array = self.array_mut(id)?;
        if let Dataspace::Simple { dims, .. } = &mut array.space {
            dims.clear();
            dims.extend_from_slice(shape);
        }
        array.dirty = true;
        Ok(())
    }

    /// Gives up what lies beyond `shape`: whole chunks, and the elements of chunks at the edge, which become fill values.
    /// Chunks that are at the edge now and were not, or the other way, are encoded as it is for these.
    fn cut(&mut self, id: Id, shape: &[u64], implicit: bool) -> Result<()> {
        let array = self.array(id)?;
        let meta = array.meta();
        let old = array.space.dims().to_vec();
        let chunked = self.chunked_mut(id)?;
        let (chunk, plain_edges) = (chunked.chunk.clone(), chunked.edge_unfiltered);
        let beyond =
            |at: &[u64]| at.iter().zip(&chunk).zip(shape).any(|((&c, &n), &d)| c.saturating_mul(n) >= d);
        // Reaches over the new extents, where it held elements of the old ones.
        let crosses = |at: &[u64]| {
            at.iter().zip(&chunk).zip(shape.iter().zip(&old)).any(|((&c, &n), (&new, &old))| {
                let end = c.saturating_add(1).saturating_mul(n).min(old);
                new < end
            })
        };
        let was_plain = |at: &[u64]| plain_edges && is_partial(at, &chunk, &old);
        let is_plain = |at: &[u64]| plain_edges && is_partial(at, &chunk, shape);
        let chunks: Vec<(Coord, Entry)> =
            self.chunked_mut(id)?.chunks.iter().map(|(c, e)| (c.clone(), *e)).collect();
        let chunk_bytes = byte_count(&chunk, meta.dtype.size())?;
        let changes = |at: &[u64]| !beyond(at) && (crosses(at) || was_plain(at) != is_plain(at));
        // Decoded before anything changes, so that a chunk that cannot be read leaves everything as it was.
        let mut edges = Vec::new();
        if chunks.iter().any(|(at, _)| changes(at)) {
            let context = BindContext { dtype: &meta.dtype, chunk: &chunk, chunk_bytes };
            let pipeline = Registry::default().pipeline(&meta.filters, &context)?;
            let mut scratch = Scratch::default();
            for (coord, entry) in chunks.iter().filter(|(at, _)| changes(at)) {
                let stored = self.disk.read(entry.address, to_usize(entry.length)?)?;
                let mut bytes = Vec::new();
                match was_plain(coord) {
                    true => bytes = stored,
                    false => pipeline
                        .decode(&stored, entry.mask, &mut bytes, &mut scratch)
                        .context(|| format!("chunk {coord:?}"))?,
                }
                if crosses(coord) {
                    self.blank(&meta, &mut bytes, coord, &chunk, shape)?;
                }
                let (mut encoded, mut mask) = (Vec::new(), 0);
                match is_plain(coord) {
                    true => encoded = bytes,
                    false => mask = pipeline.encode(&bytes, &mut encoded, &mut scratch)?,
                }
                edges.push(EncodedChunk { coord: coord.clone(), bytes: Some(encoded.into()), mask });
            }
        }
        // Those of an implicit index keep their places, whatever the extents are.
        for (coord, entry) in chunks.iter().filter(|(at, _)| beyond(at) && !implicit) {
            self.disk.release(entry.address, entry.length);
            self.chunked_mut(id)?.set(coord.clone(), None);
        }
        let layout = WriteLayout {
            dtype: meta.dtype.clone(),
            shape: old,
            block: vec![1; chunk.len()],
            chunk: chunk.to_vec(),
            cut_edges: false,
            fill: Bytes::new(),
            may_skip_fill: true,
            pipeline: Arc::default(),
        };
        for edge in edges {
            self.write_chunk(id, &layout, edge)?;
        }
        Ok(())
    }

    /// Overwrites the elements of a chunk that lie beyond `shape`.
    fn blank(
        &mut self,
        array: &Array,
        bytes: &mut [u8],
        coord: &[u64],
        chunk: &[u64],
        shape: &[u64],
    ) -> Result<()> {
        let size = array.dtype.size().max(1);
        let is_outside = |number: u64| {
            let mut rest = number;
            let mut outside = false;
            for ((&c, &n), &d) in coord.iter().zip(chunk).zip(shape).rev() {
                let within = rest % n.max(1);
                rest /= n.max(1);
                outside |= c.saturating_mul(n).saturating_add(within) >= d;
            }
            outside
        };
        let total = (bytes.len() / size) as u64;
        let count = (0..total).filter(|&n| is_outside(n)).count() as u64;
        let fill = self.filled(array, count)?;
        let mut fills = fill.chunks_exact(size);
        for (_, element) in (0u64..).zip(bytes.chunks_exact_mut(size)).filter(|(n, _)| is_outside(*n)) {
            if let Some(fill) = fills.next() {
                element.copy_from_slice(fill);
            }
        }
        Ok(())
    }

    /// Fills the chunks of an implicit index that come to lie within the extents. They have places from the start, and may
    /// hold what was cut off.
    fn expose(&mut self, id: Id, shape: &[u64]) -> Result<()> {
        let array = self.array(id)?;
        let meta = array.meta();
        let Dataspace::Simple { dims: old, max } = meta.space.clone() else { return Ok(()) };
        let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
        let chunk = chunked.chunk.clone();
        let grid = Grid::new(&old, &max, &chunk, meta.dtype.size() as u64)?;
        let (slots, bytes) = (grid.fixed()?, grid.chunk_bytes());
        let slot = |at: &[u64]| slots.slot(at).and_then(|slot| slot.checked_mul(bytes));
        let first = match chunked.chunks.iter().next() {
            Some((at, entry)) => slot(at).and_then(|before| entry.address.checked_sub(before)),
            // No chunk was within the extents.
            None if chunked.address != UNDEFINED => Some(chunked.address),
            // They are filled when they get their places.
            None => return Ok(()),
        };
        let beyond = || Error::invalid("chunks of an implicit index that do not lie in one run");
        let first = first.ok_or_else(beyond)?;
        let counts: Vec<u64> = shape.iter().zip(&chunk).map(|(&d, &n)| d.div_ceil(n.max(1))).collect();
        let is_new =
            |at: &[u64]| at.iter().zip(&chunk).zip(&old).any(|((&c, &n), &d)| c.saturating_mul(n) >= d);
        for at in coordinates(&counts)?.filter(|at| is_new(at)) {
            let address = slot(&at).and_then(|n| n.checked_add(first)).ok_or_else(beyond)?;
            let fill = self.filled(&meta, element_count(&chunk)?)?;
            self.disk.put(address, &fill)?;
            self.chunked_mut(id)?.chunks.insert(at, Entry { address, length: bytes, mask: 0 });
        }
        Ok(())
    }
}
