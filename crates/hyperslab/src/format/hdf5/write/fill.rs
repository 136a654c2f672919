//! Elements that nobody wrote: fill values, and where they have to be stored.

use super::array::{alignment, coordinates, pieces};
use super::copy::has_heap;
use super::index::Entry;
use super::object::{Array, Fill, Id, Storage, Value};
use super::transaction::Transaction;
use crate::dtype::DType;
use crate::error::{Context, Error, Result};
use crate::format::hdf5::message::fill::{AllocationTime, FillTime};
use crate::format::hdf5::message::layout::IndexKind;
use crate::model::Elements;
use crate::model::write::{Content, WriteLayout};
use crate::shape::{Coord, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

impl Array {
    /// Whether elements that nobody wrote are zeros as stored.
    pub(super) fn fills_zeros(&self) -> bool {
        match &self.fill {
            _ if self.fill_time == FillTime::Never => true,
            Fill::Undefined | Fill::Default => true,
            // Nothing of any length is an empty text or no items, wherever it says that it lies.
            Fill::Stored(bytes) if matches!(self.dtype, DType::VarString { .. } | DType::VarLen { .. }) => {
                bytes.iter().take(4).all(|&b| b == 0)
            }
            Fill::Stored(bytes) | Fill::Value(Value::Fixed(bytes)) => bytes.iter().all(|&b| b == 0),
            Fill::Value(Value::Objects { .. }) => false,
        }
    }

    /// Whether a chunk is stored without its filters, because it reaches beyond the extents and such are not filtered.
    pub(super) fn is_plain(&self, coord: &[u64]) -> bool {
        match &self.storage {
            Storage::Chunked(chunked) => {
                chunked.edge_unfiltered && is_partial(coord, &chunked.chunk, self.space.dims())
            }
            _ => false,
        }
    }
}

/// Whether a chunk reaches beyond the extents.
pub(super) fn is_partial(coord: &[u64], chunk: &[u64], dims: &[u64]) -> bool {
    coord.iter().zip(chunk).zip(dims).any(|((&c, &n), &d)| c.saturating_add(1).saturating_mul(n) > d)
}

/// `bytes` bytes of one element over and over; zeros if it is empty.
fn repeated(element: &[u8], bytes: u64, size: usize) -> Result<Vec<u8>> {
    let length = to_usize(bytes)?;
    if element.is_empty() {
        return Ok(vec![0; length]);
    }
    if element.len() != size {
        let text = format!("a fill value of {} bytes for elements of {size}", element.len());
        return Err(Error::invalid(text));
    }
    let mut out = Vec::with_capacity(length);
    while out.len() < length {
        out.extend_from_slice(element);
    }
    Ok(out)
}

impl Transaction {
    /// `count` stored elements that stand for those never written. What they point to is theirs alone: who writes over one
    /// of them gives up its object on the heap, and no other element may miss it.
    pub(super) fn filled(&mut self, array: &Array, count: u64) -> Result<Vec<u8>> {
        let size = array.dtype.size();
        let bytes = byte_count(&[count], size)?;
        if array.fills_zeros() {
            return Ok(vec![0; to_usize(bytes)?]);
        }
        match &array.fill {
            Fill::Undefined | Fill::Default => Ok(vec![0; to_usize(bytes)?]),
            Fill::Stored(element) | Fill::Value(Value::Fixed(element)) => {
                let run = repeated(element, bytes, size)?;
                match has_heap(&array.dtype) {
                    true => Ok(self.deep(&array.dtype, &run.into())?.to_vec()),
                    false => Ok(run),
                }
            }
            Fill::Value(Value::Objects { elements, targets }) => {
                let one = elements.first().cloned().unwrap_or_default();
                let elements = vec![one; to_usize(count)?];
                let value = Value::Objects { elements, targets: targets.clone() };
                Ok(self.flatten(&array.dtype, &value)?.to_vec())
            }
        }
    }

    /// The bytes of a chunk of nothing but the fill value.
    pub(super) fn fill_chunk(&mut self, id: Id, layout: &WriteLayout, coord: &[u64]) -> Result<Bytes> {
        let array = self.array(id)?.meta();
        Ok(self.filled(&array, element_count(&layout.extent_of(coord))?)?.into())
    }

    /// One element that stands for those never written, as a [`WriteLayout`] has it.
    pub(super) fn fill_of(&mut self, array: &Array) -> Result<Bytes> {
        match &array.fill {
            _ if array.fills_zeros() => Ok(Bytes::new()),
            Fill::Undefined | Fill::Default => Ok(Bytes::new()),
            Fill::Value(Value::Fixed(bytes)) => Ok(bytes.clone()),
            Fill::Value(Value::Objects { elements, .. }) => Ok(elements.first().cloned().unwrap_or_default()),
            Fill::Stored(bytes) if array.dtype.is_fixed() => Ok(bytes.clone()),
            Fill::Stored(bytes) => self.fill_object(&array.dtype, bytes).context(|| "fill value"),
        }
    }

    /// A stored element as the object that it stands for.
    fn fill_object(&mut self, dtype: &DType, stored: &Bytes) -> Result<Bytes> {
        let file = self.file()?;
        let elements = Elements::decode(&*file, dtype, stored.clone(), 1, self.limits.output)?;
        match Content::of_elements(dtype, &elements, &|_| None)? {
            Content::Objects { elements, targets } if targets.is_empty() => {
                Ok(elements.first().cloned().unwrap_or_default())
            }
            _ => Err(Error::unsupported("writing chunks of references with a fill value")),
        }
    }

    /// Fills what was allocated and not written.
    pub(super) fn complete(&mut self, id: Id) -> Result<()> {
        let array = self.array(id)?;
        let early = array.allocation == AllocationTime::Early && self.object(id)?.stored.is_none();
        let meta = array.meta();
        let layout_of = |chunk: Vec<u64>, cut_edges| WriteLayout {
            dtype: meta.dtype.clone(),
            shape: meta.space.dims().to_vec(),
            block: vec![1; chunk.len()],
            chunk,
            cut_edges,
            fill: Bytes::new(),
            may_skip_fill: true,
            pipeline: Arc::default(),
        };
        let zeros = meta.fills_zeros();
        match &array.storage {
            Storage::Contiguous { address, size, written } => {
                let (address, size) = (*address, *size);
                let Some(written) = written.clone() else { return Ok(()) };
                if size == 0 || address.is_none() && !early || address.is_some() && zeros {
                    return Ok(());
                }
                if zeros {
                    let new = self.disk.allocate_zeroed(size, alignment(size))?;
                    if let Storage::Contiguous { address, .. } = &mut self.array_mut(id)?.storage {
                        *address = Some(new);
                    }
                    return Ok(());
                }
                let layout = layout_of(pieces(meta.space.dims(), meta.dtype.size() as u64), true);
                for coord in coordinates(&layout.grid())? {
                    if !written.contains(&coord) {
                        let bytes = self.fill_chunk(id, &layout, &coord)?;
                        self.write_piece(id, &layout, coord, &bytes)?;
                    }
                }
                Ok(())
            }
            Storage::Chunked(chunked) if chunked.kind == IndexKind::Implicit => {
                let chunk = chunked.chunk.to_vec();
                if self.object(id)?.stored.is_some() {
                    return Ok(());
                }
                self.allocate_implicit(id)?;
                let written = self.written.remove(&id).unwrap_or_default();
                if zeros {
                    return Ok(());
                }
                let layout = layout_of(chunk, false);
                let places: Vec<(Coord, Entry)> =
                    self.chunked_mut(id)?.chunks.iter().map(|(c, e)| (c.clone(), *e)).collect();
                for (coord, entry) in places {
                    if !written.contains(&coord) {
                        let bytes = self.fill_chunk(id, &layout, &coord)?;
                        self.disk.put(entry.address, &bytes)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
