//! What slabs are made of: memory, or an array of any format.

use super::cells::{Cells, Kind};
use super::hash::Digest;
use super::ledger::{coord_of, grid_of};
use super::object;
use super::selected::strides;
use crate::array::{Array, RawData};
use crate::dtype::{Conversion, DType};
use crate::error::{Error, Result};
use crate::model::{ChunkGrid, ChunkRef, Storage};
use crate::plan::block_shape;
use crate::shape::{Coord, element_count, to_usize};
use hyperslab_kernels::canvas::Convert;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// One slab.
#[derive(Clone, Debug)]
pub(super) enum Slab {
    Memory(Memory),
    Array(ArraySlab),
}

/// A slab in memory: part of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) buffer: usize,
    /// Elements into the buffer.
    pub(super) start: usize,
    /// Distance in elements of neighbours on each axis; all 0 for the full slab.
    pub(super) strides: SmallVec<[usize; 4]>,
}

/// Elements that several slabs and copies of an array may share; whoever writes gets a copy of its own.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    cells: Arc<Cells>,
    /// A change of type that nobody has needed yet.
    pending: Option<Arc<Pending>>,
}

#[derive(Debug)]
struct Pending {
    conversion: Conversion,
    done: OnceLock<Arc<Cells>>,
}

impl Pending {
    fn cells(&self, before: &Cells) -> Result<Arc<Cells>> {
        if let Some(done) = self.done.get() {
            return Ok(done.clone());
        }
        let converted = Arc::new(convert(before, &self.conversion)?);
        Ok(self.done.get_or_init(|| converted).clone())
    }
}

/// All of `cells` converted.
pub(super) fn convert(cells: &Cells, conversion: &Conversion) -> Result<Cells> {
    let Cells::Fixed { size, bytes } = cells else {
        return Err(Error::invalid("elements of variable length do not convert"));
    };
    let count = bytes.len() / (*size).max(1);
    let mut converted = Cells::new(Kind::Fixed(conversion.target_size()), count as u64, u64::MAX)?;
    if let Cells::Fixed { bytes: target, .. } = &mut converted {
        conversion.run(bytes, *size, target)?;
    }
    Ok(converted)
}

impl Buffer {
    pub(super) fn new(cells: Cells) -> Buffer {
        Buffer { cells: Arc::new(cells), pending: None }
    }

    /// Its elements; converted now if that is still to be done.
    pub(super) fn cells(&self) -> Result<Arc<Cells>> {
        match &self.pending {
            Some(pending) => pending.cells(&self.cells),
            None => Ok(self.cells.clone()),
        }
    }

    /// Its elements to be written, its own.
    pub(super) fn own(&mut self) -> Result<&mut Cells> {
        if let Some(pending) = &self.pending {
            self.cells = pending.cells(&self.cells)?;
            self.pending = None;
        }
        Ok(Arc::make_mut(&mut self.cells))
    }

    /// Whether another array holds the same memory.
    pub(super) fn is_shared(&self) -> bool {
        self.pending.is_none() && Arc::strong_count(&self.cells) > 1
    }

    /// The same elements of another type, converted when they are needed.
    pub(super) fn astype(&self, conversion: Conversion) -> Result<Buffer> {
        Ok(Buffer {
            cells: self.cells()?,
            pending: Some(Arc::new(Pending { conversion, done: OnceLock::new() })),
        })
    }

    /// Whether a change of type is still to be done.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.as_ref().is_some_and(|p| p.done.get().is_none())
    }
}

/// An array of a file as a base slab: its chunks, or blocks of the size of chunks, one after the other in C order.
#[derive(Clone, Debug)]
pub(super) struct ArraySlab {
    pub(super) array: Array,
    /// The type that it presents; another one than its own is converted to at each read.
    pub(super) dtype: DType,
    pub(super) chunk: Vec<u64>,
    pub(super) grid: Vec<u64>,
    /// Whether these are the chunks that the array is stored in.
    pub(super) own: bool,
}

impl ArraySlab {
    /// Coordinates in the array's grid of the chunk at an offset.
    pub(super) fn coord(&self, offset: u64) -> Coord {
        let height = self.chunk.first().copied().unwrap_or(1).max(1);
        coord_of(offset / height, &self.grid)
    }

    /// Where stored chunks are.
    pub(super) fn locate(&self, coords: &[Coord]) -> Result<Vec<ChunkRef>> {
        let Storage::Chunks(index) = self.array.storage_now()? else {
            return Err(Error::invalid("a virtual dataset has no chunks"));
        };
        let found = index.locate(coords)?;
        if found.len() != coords.len() {
            return Err(Error::invalid("the index does not answer all questions"));
        }
        Ok(found)
    }
}

/// Something read-only for an array to stand on: `n` chunks one after the other along axis 0.
#[derive(Clone, Debug)]
pub struct BaseSlab {
    pub(super) inner: Inner,
    pub(super) hashes: Option<Arc<Vec<Digest>>>,
}

#[derive(Clone, Debug)]
pub(super) enum Inner {
    Array(ArraySlab),
    Memory { dtype: DType, shape: Vec<u64>, cells: Cells },
}

impl BaseSlab {
    /// An array of a file: chunk *n* of the slab is chunk *n* in C order of the array cut into chunks of these extents.
    /// Extents other than those of the chunks that it is stored in mean that reads decode more than they need.
    pub fn array(array: &Array, chunk: &[u64]) -> Result<BaseSlab> {
        BaseSlab::converted(array, chunk, array.dtype())
    }

    /// The same presented as another type: elements are converted when they are read.
    pub fn converted(array: &Array, chunk: &[u64], dtype: &DType) -> Result<BaseSlab> {
        if array.meta().space.is_null() {
            return Err(Error::invalid(format!("array {} has no elements", array.path())));
        }
        if dtype != array.dtype() {
            Conversion::between(array.dtype(), dtype)?;
        }
        let grid = grid_of(array.shape(), chunk)?;
        let stored = matches!(array.storage(), Storage::Chunks(_));
        let own = stored && matches!(&array.meta().grid, ChunkGrid::Regular(own) if own == chunk);
        let slab = ArraySlab { array: array.clone(), dtype: dtype.clone(), chunk: chunk.to_vec(), grid, own };
        Ok(BaseSlab { inner: Inner::Array(slab), hashes: None })
    }

    /// Elements in memory, as stored: whole chunks one after the other along axis 0. Types with references to
    /// variable-length data are not possible.
    pub fn memory(data: RawData) -> Result<BaseSlab> {
        if object::is_variable(&data.dtype) {
            return Err(Error::invalid(format!("stored elements of {} are only references", data.dtype)));
        }
        let size = data.dtype.size();
        if element_count(&data.shape)?.checked_mul(size as u64) != Some(data.bytes.len() as u64) {
            return Err(Error::invalid(format!("{} bytes for {:?}", data.bytes.len(), data.shape)));
        }
        let cells = Cells::Fixed { size, bytes: data.bytes };
        Ok(BaseSlab { inner: Inner::Memory { dtype: data.dtype, shape: data.shape, cells }, hashes: None })
    }

    /// With the SHA-256 of each of its chunks, in order; zeros where it is not known. See [`CommitPlan`] for what they
    /// are used for.
    ///
    /// [`CommitPlan`]: super::CommitPlan
    #[must_use]
    pub fn with_hashes(mut self, hashes: Vec<Digest>) -> BaseSlab {
        self.hashes = Some(Arc::new(hashes));
        self
    }

    /// The type of its elements.
    pub fn dtype(&self) -> &DType {
        match &self.inner {
            Inner::Array(slab) => &slab.dtype,
            Inner::Memory { dtype, .. } => dtype,
        }
    }

    /// Its extents as a slab of chunks with these extents.
    pub(super) fn shape(&self, chunk: &[u64]) -> Result<Vec<u64>> {
        match &self.inner {
            Inner::Memory { shape, .. } => Ok(shape.clone()),
            Inner::Array(slab) => {
                let rows = element_count(&slab.grid)?.checked_mul(chunk.first().copied().unwrap_or(1));
                let rows = rows.ok_or_else(|| Error::invalid("a slab of 2^64 rows"))?;
                Ok(std::iter::once(rows).chain(chunk.iter().skip(1).copied()).collect())
            }
        }
    }
}

/// The extents in which an array is staged if nobody says: those of its chunks, or blocks of about 1 MiB.
pub(super) fn chunk_of(array: &Array) -> Vec<u64> {
    match (&array.meta().grid, array.storage()) {
        (ChunkGrid::Regular(chunk), Storage::Chunks(_)) => chunk.clone(),
        _ => block_shape(array.shape(), array.dtype().size()),
    }
}

/// A buffer of elements of `kind` in whole chunks, and a slab that is all of it.
pub(super) fn memory(buffer: usize, shape: &[u64]) -> Result<Memory> {
    Ok(Memory { buffer, start: 0, strides: strides(shape)? })
}

impl Memory {
    /// Distances on the axes of an array of this rank: the slab of a scalar has an axis more.
    pub(super) fn steps(&self, rank: usize) -> &[usize] {
        self.strides.get(..rank).unwrap_or(&self.strides)
    }

    /// Elements into the buffer of a place on the slab.
    pub(super) fn place(&self, at: &[u64]) -> Result<usize> {
        at.iter().zip(&self.strides).try_fold(self.start, |n, (&c, &stride)| {
            to_usize(c)?
                .checked_mul(stride)
                .and_then(|more| n.checked_add(more))
                .ok_or_else(|| Error::invalid("a place outside of its slab"))
        })
    }
}
