//! Arrays of a transaction: made, resized, and filled with chunks.

use super::index::{self, Entry, Shape};
use super::message;
use super::object::{Array, Body, Chunked, Elsewhere, Fill, Id, Object, Storage, Target};
use super::transaction::Transaction;
use crate::codec::{BindContext, Registry, Scratch};
use crate::dtype::{DType, Field, ReferenceKind};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::message::fill::{AllocationTime, FillTime};
use crate::format::hdf5::message::layout::IndexKind;
use crate::model::Dataspace;
use crate::model::write::{
    self, ArraySpec, Content, EncodedChunk, FillSpec, LayoutSpec, ObjectPath, WriteLayout,
};
use crate::shape::{Coord, MAX_RANK, byte_count, element_count, to_usize};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most bytes of elements in an object header.
const MAX_COMPACT: u64 = 65_000;
/// Bytes of the pieces in which contiguous data comes.
const PIECE: u64 = 4 << 20;
/// Bytes of a chunk that nobody gave extents of.
const CHUNK: u64 = 1 << 20;
/// Large data starts at a multiple of this.
const PAGE: u64 = 4096;
/// Bytes from which on data is large.
const LARGE: u64 = 64 << 10;
/// The most bytes of a chunk: lengths of chunks have 32 bits before HDF5 2.0.
const MAX_CHUNK: u64 = u32::MAX as u64;

/// Where data of a length starts.
pub(super) fn alignment(length: u64) -> u64 {
    if length >= LARGE { PAGE } else { 8 }
}

/// Bytes that a chunk has at least where the array may grow along some axis, as netCDF-C gives records.
const LEAST: u64 = 4096;

/// Extents of a chunk of about [`CHUNK`] bytes, as square as the array.
fn auto_chunk(dims: &[u64], max: &[Option<u64>], element: u64) -> Coord {
    // An axis without a length yet is taken for one of moderate length.
    let mut chunk: Coord = dims
        .iter()
        .zip(max)
        .map(|(&d, m)| if d == 0 { m.unwrap_or(1024).clamp(1, 1024) } else { d })
        .collect();
    let bytes = |chunk: &[u64]| chunk.iter().fold(element.max(1), |n, &c| n.saturating_mul(c));
    while bytes(&chunk) > CHUNK {
        let Some(longest) = chunk.iter_mut().max_by_key(|c| **c).filter(|c| **c > 1) else { break };
        *longest = longest.div_ceil(2);
    }
    // What is there now is not what will be.
    while bytes(&chunk) < LEAST {
        let may_grow = |at: usize, c: u64| max.get(at).is_some_and(|m| m.is_none_or(|m| c < m));
        let growing = chunk.iter_mut().enumerate().filter(|(at, c)| may_grow(*at, **c));
        let Some((at, shortest)) = growing.min_by_key(|(_, c)| **c) else { break };
        let most = max.get(at).copied().flatten().unwrap_or(u64::MAX);
        *shortest = shortest.saturating_mul(2).min(most);
    }
    chunk
}

/// Extents of the pieces in which contiguous data of these extents comes: each is one run of bytes.
pub(super) fn pieces(dims: &[u64], element: u64) -> Vec<u64> {
    let mut piece: Vec<u64> = dims.iter().map(|&d| d.max(1)).collect();
    let mut bytes = piece.iter().fold(element.max(1), |n, &c| n.saturating_mul(c));
    for extent in &mut piece {
        if bytes <= PIECE {
            break;
        }
        let row = bytes / *extent;
        *extent = (PIECE / row.max(1)).max(1);
        bytes = row.saturating_mul(*extent);
    }
    piece
}

/// The same type with pointers as long as this file's.
fn adapted(dtype: &DType, offset: usize) -> DType {
    match dtype {
        DType::VarString { padding, charset, .. } => {
            DType::VarString { size: 8 + offset, padding: *padding, charset: *charset }
        }
        DType::VarLen { base, .. } => {
            DType::VarLen { size: 8 + offset, base: Box::new(adapted(base, offset)) }
        }
        DType::Array { base, dims } => {
            DType::Array { base: Box::new(adapted(base, offset)), dims: dims.clone() }
        }
        DType::Reference { kind: kind @ ReferenceKind::Object, .. } => {
            DType::Reference { kind: *kind, size: offset }
        }
        DType::Reference { kind: kind @ ReferenceKind::Region, .. } => {
            DType::Reference { kind: *kind, size: offset + 4 }
        }
        DType::Compound { size, fields } if !dtype.is_fixed() => {
            let new: Vec<Field> = fields
                .iter()
                .map(|f| Field { name: f.name.clone(), offset: f.offset, dtype: adapted(&f.dtype, offset) })
                .collect();
            if new.iter().zip(fields).all(|(a, b)| a.dtype.size() == b.dtype.size()) {
                return DType::Compound { size: *size, fields: new };
            }
            // Members of another size move up.
            let mut at = 0usize;
            let packed = new
                .into_iter()
                .map(|f| {
                    let offset = at;
                    at = at.saturating_add(f.dtype.size());
                    Field { offset, ..f }
                })
                .collect();
            DType::Compound { size: at, fields: packed }
        }
        other => other.clone(),
    }
}

/// Where a piece begins, in bytes from the start of its run.
pub(super) fn offset_of(layout: &WriteLayout, coord: &[u64]) -> Result<u64> {
    // Pieces are runs: the first element says where.
    let start = layout.start_of(coord);
    let number = start
        .iter()
        .zip(&layout.shape)
        .try_fold(0u64, |n, (&at, &d)| n.checked_mul(d).and_then(|n| n.checked_add(at)));
    let offset = number.and_then(|n| n.checked_mul(layout.dtype.size() as u64));
    offset.ok_or_else(|| Error::invalid("a piece beyond 2^64"))
}

impl Transaction {
    /// A type as this file has it.
    pub(super) fn adapted(&self, dtype: &DType) -> DType {
        adapted(dtype, self.disk.sizes().offset.into())
    }

    pub(super) fn create_array(&mut self, path: &ObjectPath, spec: &ArraySpec) -> Result<()> {
        let place = self.place_for(path)?;
        let array = self.new_array(spec)?;
        let committed = array.committed;
        let tracks = self.options.track_order;
        let id = self.add(Object::new(Body::Array(Box::new(array)), tracks));
        if let Some(user) = committed {
            self.refer(user, 1)?;
        }
        self.link(place, Target::Object(id), None)
    }

    /// The array of a description, with everything checked.
    pub(super) fn new_array(&mut self, spec: &ArraySpec) -> Result<Array> {
        let dtype = self.adapted(&spec.dtype);
        self.check_type(&dtype)?;
        let committed = self.committed(spec.committed.as_ref(), &dtype)?;
        let mut out = super::encoder::Encoder::new(self.disk.sizes());
        message::dataspace(&mut out, &spec.space, self.style())?;
        let dims = spec.space.dims();
        let bytes = if spec.space.is_null() { 0 } else { byte_count(dims, dtype.size())? };
        let fill = match &spec.fill {
            FillSpec::Undefined => Fill::Undefined,
            FillSpec::Default => Fill::Default,
            FillSpec::Value(content) => Fill::Value(self.value(&dtype, 1, content)?),
        };
        let storage = self.storage(spec, &dtype, bytes)?;
        let chunk: &[u64] = match &storage {
            Storage::Chunked(chunked) => &chunked.chunk,
            _ => dims,
        };
        let context =
            BindContext { dtype: &dtype, chunk, chunk_bytes: byte_count(chunk, dtype.size()).unwrap_or(0) };
        let filters = spec.filters.iter().map(|f| f.to_hdf5(&context)).collect::<Result<Vec<_>>>()?;
        message::filters(&mut out, &filters, self.style())?;
        let allocation = match (spec.allocation_time, &storage) {
            (_, Storage::Compact(_)) => AllocationTime::Early,
            (Some(write::AllocationTime::Early), _) => AllocationTime::Early,
            (Some(write::AllocationTime::Late), _) => AllocationTime::Late,
            (Some(write::AllocationTime::Incremental), _) => AllocationTime::Incremental,
            (None, Storage::Chunked(_) | Storage::Virtual(_)) => AllocationTime::Incremental,
            (None, _) => AllocationTime::Late,
        };
        let fill_time = match spec.fill_time {
            Some(write::FillTime::Allocation) => FillTime::Allocation,
            Some(write::FillTime::Never) => FillTime::Never,
            Some(write::FillTime::IfSet) | None => FillTime::IfSet,
        };
        if matches!(fill, Fill::Undefined) && fill_time == FillTime::Allocation {
            return Err(Error::invalid("a fill value that is to be written on allocation has to be defined"));
        }
        if !spec.dimensions.is_empty() && spec.dimensions.len() != dims.len() {
            let text = format!("{} dimensions for {} axes", spec.dimensions.len(), dims.len());
            return Err(Error::invalid(text));
        }
        self.check_dimensions(spec)?;
        let version = match self.options.libver {
            super::Libver::Earliest | super::Libver::V18 => 3,
            super::Libver::V110 => 4,
            super::Libver::Latest => 5,
        };
        let mut array = Array {
            dtype,
            committed,
            space: spec.space.clone(),
            fill,
            fill_time,
            allocation,
            filters,
            storage,
            version,
            dimensions: spec.dimensions.clone(),
            dirty: true,
        };
        self.check_provenance(&array)?;
        let kind = self.index_kind(&array)?;
        if let Storage::Chunked(chunked) = &mut array.storage {
            chunked.kind = kind;
        }
        if let Storage::Compact(_) = array.storage {
            let count = if array.space.is_null() { 0 } else { element_count(array.space.dims())? };
            array.storage = Storage::Compact(self.filled(&array, count)?);
        }
        Ok(array)
    }

    fn storage(&self, spec: &ArraySpec, dtype: &DType, bytes: u64) -> Result<Storage> {
        let (dims, max): (&[u64], &[Option<u64>]) = match &spec.space {
            Dataspace::Simple { dims, max } => (dims, max),
            _ => (&[], &[]),
        };
        let grows = dims.iter().zip(max).any(|(&d, &m)| m != Some(d));
        let whole = |what: &str| {
            if !spec.filters.is_empty() {
                return Err(Error::unsupported(format!("filters on {what} data")).hint("store it in chunks"));
            }
            if grows {
                return Err(
                    Error::unsupported(format!("{what} data that may grow")).hint("store it in chunks")
                );
            }
            Ok(())
        };
        let contiguous =
            || Storage::Contiguous { address: None, size: bytes, written: Some(BTreeSet::new()) };
        let chunked = |chunk: Coord| -> Result<Storage> {
            if dims.is_empty() {
                return Err(Error::unsupported("chunks of a scalar or null space"));
            }
            if chunk.len() != dims.len() || chunk.contains(&0) || chunk.len() > MAX_RANK {
                return Err(Error::invalid(format!("chunks {chunk:?} of an array of extents {dims:?}")));
            }
            // The reference library refuses chunks that are larger than a fixed extent.
            let larger = chunk.iter().zip(max).any(|(&c, m)| m.is_some_and(|m| c > m.max(1)));
            let size = byte_count(&chunk, dtype.size())?;
            if larger {
                let text = format!("chunks {chunk:?} larger than the maximum extents {max:?}");
                return Err(Error::unsupported(text).hint("make them as small as the extents"));
            }
            if size > MAX_CHUNK {
                return Err(Error::limit("bytes of a chunk", size.into(), MAX_CHUNK.into()));
            }
            Ok(Storage::Chunked(Chunked::new(chunk)))
        };
        match &spec.layout {
            LayoutSpec::Auto if dims.is_empty() => {
                whole("scalar")?;
                Ok(contiguous())
            }
            LayoutSpec::Auto if grows || !spec.filters.is_empty() => {
                chunked(auto_chunk(dims, max, dtype.size() as u64))
            }
            LayoutSpec::Auto | LayoutSpec::Contiguous => {
                whole("contiguous")?;
                Ok(contiguous())
            }
            LayoutSpec::Compact => {
                whole("compact")?;
                if bytes > MAX_COMPACT {
                    return Err(Error::limit("bytes of compact data", bytes.into(), MAX_COMPACT.into()));
                }
                Ok(Storage::Compact(Vec::new()))
            }
            LayoutSpec::Chunked { shard: Some(_), .. } => {
                Err(Error::unsupported("shards in HDF5").hint("chunks of this size are stored one by one"))
            }
            LayoutSpec::Chunked { chunk, .. } => chunked(chunk.as_slice().into()),
            LayoutSpec::Virtual(_) | LayoutSpec::Stacked { .. } => {
                if !spec.filters.is_empty() {
                    return Err(Error::unsupported("filters on a virtual dataset"));
                }
                if !self.has_virtual() {
                    return Err(Error::unsupported("virtual datasets in files for HDF5 1.8"));
                }
                let sizes = self.disk.sizes();
                Ok(Storage::Virtual(match &spec.layout {
                    LayoutSpec::Virtual(mappings) if !mappings.is_empty() => {
                        super::selection::mappings(mappings, sizes)?
                    }
                    LayoutSpec::Stacked { source, chunk, slots } if !slots.is_empty() => {
                        super::selection::stacked(dims, chunk, source, slots, sizes)?
                    }
                    _ => Vec::new(),
                }))
            }
            LayoutSpec::External(runs) => {
                if !spec.filters.is_empty() {
                    return Err(Error::unsupported("filters on external data"));
                }
                if runs.iter().any(|r| r.file.is_empty() || r.file.as_bytes().contains(&0)) {
                    return Err(Error::invalid("an external data file has a name, without NUL"));
                }
                Ok(Storage::External(runs.clone()))
            }
        }
    }

    /// What an index depends on.
    pub(super) fn shape_of<'a>(&self, array: &'a Array, chunk: &'a [u64]) -> Result<Shape<'a>> {
        let Dataspace::Simple { dims, max } = &array.space else {
            return Err(Error::invalid("chunks of a scalar or null space"));
        };
        Ok(Shape {
            dims,
            max,
            chunk,
            element: array.dtype.size() as u64,
            filtered: !array.filters.is_empty(),
            version: array.version,
            k: self.chunk_k,
        })
    }

    fn index_kind(&self, array: &Array) -> Result<IndexKind> {
        match &array.storage {
            Storage::Chunked(chunked) => Ok(index::kind(
                self.shape_of(array, &chunked.chunk)?,
                array.allocation == AllocationTime::Early,
            )),
            _ => Ok(IndexKind::BtreeV1),
        }
    }

    /// How the chunks of an array are to be encoded.
    pub(super) fn write_layout(&mut self, path: &ObjectPath) -> Result<WriteLayout> {
        let id = self.find(path)?;
        let meta = self.array(id).context(|| path.to_string())?.meta();
        let fill = self.fill_of(&meta).context(|| path.to_string())?;
        let array = self.array(id)?;
        let dtype = array.dtype.clone();
        let shape = array.space.dims().to_vec();
        let fill = if fill.is_empty() && !dtype.is_fixed() { Content::blank(&dtype)? } else { fill };
        let (chunk, cut_edges) = match &array.storage {
            Storage::Chunked(chunked) => (chunked.chunk.to_vec(), false),
            Storage::Contiguous { .. } | Storage::Compact(_) => (pieces(&shape, dtype.size() as u64), true),
            Storage::Virtual(_) | Storage::Elsewhere(Elsewhere::Virtual(_)) => {
                return Err(Error::unsupported("writing elements of a virtual dataset")
                    .hint("write those of its sources"));
            }
            Storage::External(_) | Storage::Elsewhere(Elsewhere::External(_)) => {
                return Err(Error::unsupported("writing elements that lie in other files"));
            }
        };
        let chunk_bytes = byte_count(&chunk, dtype.size())?;
        let context = BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes };
        let pipeline = Arc::new(Registry::default().pipeline(&array.filters, &context)?);
        let block = vec![1; chunk.len()];
        Ok(WriteLayout { dtype, shape, chunk, block, cut_edges, fill, may_skip_fill: true, pipeline })
    }

    /// The bytes of one chunk whose elements have parts of variable length, or are references.
    pub(super) fn flatten_chunk(&mut self, path: &ObjectPath, content: &Content) -> Result<Bytes> {
        let id = self.find(path)?;
        let dtype = self.array(id)?.dtype.clone();
        let count = content.count(dtype.size()) as u64;
        let value = self.value(&dtype, count, content).context(|| path.to_string())?;
        self.flatten(&dtype, &value)
    }

    /// Takes encoded chunks of one array.
    pub(super) fn write_chunks(&mut self, path: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()> {
        let id = self.find(path)?;
        self.check_editable(id)?;
        // Checked before anything is written.
        let layout = self.write_layout(path)?;
        let (grid, plain) = (layout.grid(), layout.pipeline.is_empty());
        for chunk in &chunks {
            let inside = chunk.coord.len() == grid.len() && chunk.coord.iter().zip(&grid).all(|(c, n)| c < n);
            if !inside {
                return Err(Error::new(
                    ErrorKind::OutOfBounds,
                    format!("{path}: there is no chunk {:?}, the grid has {grid:?}", chunk.coord),
                ));
            }
            let Some(bytes) = &chunk.bytes else { continue };
            let wanted = byte_count(&layout.extent_of(&chunk.coord), layout.dtype.size())?;
            if plain && bytes.len() as u64 != wanted {
                let text = format!("{path}: {} bytes for an unfiltered chunk of {wanted}", bytes.len());
                return Err(Error::invalid(text));
            }
            if bytes.len() as u64 > MAX_CHUNK {
                return Err(Error::limit("bytes of an encoded chunk", bytes.len() as u128, MAX_CHUNK.into()));
            }
        }
        self.look_up(id, &chunks)?;
        let chunks = self.plain_edges(id, &layout, chunks).context(|| path.to_string())?;
        self.forget_provenance(id)?;
        for chunk in chunks {
            let (chunk, gone) = self.settled(id, &layout, chunk).context(|| path.to_string())?;
            self.chunks += u64::from(chunk.bytes.is_some());
            self.write_chunk(id, &layout, chunk).context(|| path.to_string())?;
            gone.into_iter().for_each(|place| self.heap.remove(&self.disk, place));
        }
        Ok(())
    }

    /// Takes off the filters of chunks at the edge, where such are stored without.
    fn plain_edges(
        &mut self,
        id: Id,
        layout: &WriteLayout,
        mut chunks: Vec<EncodedChunk>,
    ) -> Result<Vec<EncodedChunk>> {
        let array = self.array(id)?;
        let mut scratch = Scratch::default();
        for EncodedChunk { coord, bytes, mask } in &mut chunks {
            let Some(encoded) = bytes.as_ref().filter(|_| array.is_plain(coord)) else { continue };
            let mut plain = Vec::new();
            layout
                .pipeline
                .decode(encoded, *mask, &mut plain, &mut scratch)
                .context(|| format!("chunk {coord:?}"))?;
            (*bytes, *mask) = (Some(plain.into()), 0);
        }
        Ok(chunks)
    }

    pub(super) fn write_chunk(&mut self, id: Id, layout: &WriteLayout, chunk: EncodedChunk) -> Result<()> {
        let EncodedChunk { coord, bytes, mask } = chunk;
        match &self.array(id)?.storage {
            Storage::Chunked(chunked) if chunked.kind == IndexKind::Implicit => {
                let bytes = match bytes {
                    Some(bytes) => bytes,
                    None => self.fill_chunk(id, layout, &coord)?,
                };
                self.allocate_implicit(id)?;
                let array = self.array(id)?;
                let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
                let entry = chunked.chunks.get(&coord).copied();
                let entry =
                    entry.ok_or_else(|| Error::invalid("an implicit index without one of its chunks"))?;
                self.disk.put(entry.address, &bytes)?;
                self.touch_implicit(id, coord)
            }
            Storage::Chunked(chunked) => {
                let old = chunked.entry(&coord);
                let Some(bytes) = bytes else {
                    if let Some(old) = old {
                        self.disk.release(old.address, old.length);
                        self.chunked_mut(id)?.set(coord, None);
                    }
                    return Ok(());
                };
                let length = bytes.len() as u64;
                let address = match old {
                    // In its place.
                    Some(old) if old.length == length => old.address,
                    _ => {
                        if let Some(old) = old {
                            self.disk.release(old.address, old.length);
                        }
                        self.disk.allocate(length, alignment(length))?
                    }
                };
                self.disk.put(address, &bytes)?;
                let entry = Entry { address, length, mask };
                if old != Some(entry) {
                    self.chunked_mut(id)?.set(coord, Some(entry));
                }
                Ok(())
            }
            // Nothing is there, and nothing will be: it is filled if something comes.
            Storage::Contiguous { address: None, .. } if bytes.is_none() => Ok(()),
            Storage::Contiguous { .. } | Storage::Compact(_) => {
                let bytes = match bytes {
                    Some(bytes) => bytes,
                    None => self.fill_chunk(id, layout, &coord)?,
                };
                self.write_piece(id, layout, coord, &bytes)
            }
            _ => Err(Error::invalid("chunks of an array that has none")),
        }
    }

    pub(super) fn write_piece(
        &mut self,
        id: Id,
        layout: &WriteLayout,
        coord: Coord,
        bytes: &[u8],
    ) -> Result<()> {
        let offset = offset_of(layout, &coord)?;
        let array = self.array_mut(id)?;
        match &mut array.storage {
            Storage::Compact(data) => {
                let from = to_usize(offset)?;
                let place = data.get_mut(from..from.saturating_add(bytes.len()));
                place.ok_or_else(|| Error::invalid("a piece beyond the data"))?.copy_from_slice(bytes);
                array.dirty = true;
                Ok(())
            }
            Storage::Contiguous { address, size, written } => {
                if let Some(written) = written {
                    written.insert(coord);
                }
                let size = *size;
                let address = match *address {
                    Some(address) => address,
                    None => {
                        array.dirty = true;
                        let new = self.disk.allocate_zeroed(size, alignment(size))?;
                        if let Storage::Contiguous { address, .. } = &mut self.array_mut(id)?.storage {
                            *address = Some(new);
                        }
                        new
                    }
                };
                if offset.saturating_add(bytes.len() as u64) > size {
                    return Err(Error::invalid("a piece beyond the data"));
                }
                self.disk.put(address + offset, bytes)
            }
            _ => Err(Error::invalid("a piece of an array that has none")),
        }
    }

    pub(super) fn chunked_mut(&mut self, id: Id) -> Result<&mut Chunked> {
        match &mut self.array_mut(id)?.storage {
            Storage::Chunked(chunked) => Ok(chunked),
            _ => Err(Error::invalid("the array is not stored in chunks")),
        }
    }

    /// Gives all chunks of an implicit index their places, in one run.
    pub(super) fn allocate_implicit(&mut self, id: Id) -> Result<()> {
        let array = self.array(id)?;
        let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
        if !chunked.chunks.is_empty() {
            return Ok(());
        }
        let Dataspace::Simple { max, .. } = &array.space else { return Ok(()) };
        // Slots of all chunks that there can be.
        let grid: Vec<u64> =
            max.iter().zip(&chunked.chunk).map(|(m, &c)| m.unwrap_or(u64::MAX).div_ceil(c)).collect();
        let count = element_count(&grid)?;
        let bytes = byte_count(&chunked.chunk, array.dtype.size())?;
        let all = count.checked_mul(bytes).filter(|&n| n <= i64::MAX as u64 && count <= 1 << 28);
        let all = all.ok_or_else(|| Error::unsupported(format!("{count} chunks allocated at once")))?;
        let first = self.disk.allocate_zeroed(all, alignment(all))?;
        let chunked = self.chunked_mut(id)?;
        for number in 0..count {
            let mut at: Coord = grid.as_slice().into();
            let mut rest = number;
            for c in at.iter_mut().rev() {
                let extent = (*c).max(1);
                *c = rest % extent;
                rest /= extent;
            }
            let entry = Entry { address: first + number * bytes, length: bytes, mask: 0 };
            chunked.chunks.insert(at, entry);
        }
        chunked.dirty = true;
        Ok(())
    }

    /// Remembers that a chunk of an implicit index was written.
    fn touch_implicit(&mut self, id: Id, coord: Coord) -> Result<()> {
        self.written.entry(id).or_default().insert(coord);
        Ok(())
    }
}

/// All coordinates of a grid, in C order.
pub(super) fn coordinates(grid: &[u64]) -> Result<impl Iterator<Item = Coord>> {
    let count = element_count(grid)?;
    let grid: Coord = grid.into();
    Ok((0..count).map(move |mut number| {
        let mut at = grid.clone();
        for c in at.iter_mut().rev() {
            let extent = (*c).max(1);
            *c = number % extent;
            number /= extent;
        }
        at
    }))
}

impl Array {
    /// The same array without what its storage holds.
    pub(super) fn meta(&self) -> Array {
        Array {
            dtype: self.dtype.clone(),
            committed: self.committed,
            space: self.space.clone(),
            fill: self.fill.clone(),
            fill_time: self.fill_time,
            allocation: self.allocation,
            filters: self.filters.clone(),
            storage: Storage::Compact(Vec::new()),
            version: self.version,
            dimensions: Vec::new(),
            dirty: false,
        }
    }
}
