//! Uncommitted changes of an array, in memory.
//!
//! A [`StagedArray`] looks like an array that may be written. It holds its chunks in *slabs*: arrays made of chunks one
//! after the other along axis 0. The *full slab*, always number 0, is one chunk of the fill value. *Base slabs* come
//! next and are never written: an array of a file, or memory. *Staged slabs* are made as they are needed, to hold what
//! changes. Two arrays of integers, one for each chunk, say on which slab and where on it the chunk lies
//! ([`ChunkMap`]); everything else follows from them.
//!
//! What an operation does is decided before anything is done, as a plan ([`GetItemPlan`], [`SetItemPlan`],
//! [`ResizePlan`], [`LoadPlan`], [`HashPlan`], [`CommitPlan`], [`ChangesPlan`]): a value that knows shapes, chunks and
//! indices (the [`Ledger`]), never elements, and that can be printed. Whatever can fail is done before the ledger
//! changes, so that an error leaves the array as it was.

mod cells;
mod commit;
mod convert;
mod get;
mod hash;
mod ledger;
mod object;
mod plan;
mod resize;
mod selected;
mod set;
mod slab;
#[cfg(test)]
mod tests;
mod transfer;
mod values;

pub use commit::{Change, ChangeData, NewChunk, NewSlab};
pub use hash::Digest;
pub use ledger::{ChunkMap, Ledger};
pub use plan::{
    ChangedChunk, ChangesPlan, CommitPlan, GetItemPlan, HashPlan, LoadPlan, Pair, ResizePlan, SetItemPlan,
    Span,
};
pub use slab::BaseSlab;
pub use values::{Block, Values};

use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::select::{IntoSelection, Region};
use crate::shape::{element_count, to_usize};
use cells::{Cells, Kind};
use ledger::grid_of;
use selected::strides;
use slab::{ArraySlab, Buffer, Inner, Memory, Slab};
use std::sync::Arc;

/// An array in memory over others that are not changed: see the [module](self).
///
/// `clone` is cheap: both arrays share everything until one of them writes, and then only what it writes is copied.
#[derive(Clone, Debug)]
pub struct StagedArray {
    dtype: DType,
    kind: Kind,
    ledger: Ledger,
    /// One for each slab of the ledger.
    slabs: Vec<Option<Slab>>,
    /// What slabs in memory are parts of; the fill value first.
    buffers: Vec<Option<Buffer>>,
    /// The hashes of each slab's chunks, one row each, as far as they are known: all bits 0 where not.
    hash_tables: Vec<Option<Arc<Vec<Digest>>>>,
    /// The extents at the last commit.
    committed: Vec<u64>,
    writeable: bool,
    limits: Limits,
    threads: Option<usize>,
}

impl StagedArray {
    /// An array of nothing but its fill value. Without one, that is zeros; text is empty.
    pub fn full<'a>(
        shape: &[u64],
        chunk: &[u64],
        dtype: &DType,
        fill: Option<Values<'a>>,
    ) -> Result<StagedArray> {
        let fill = match fill {
            Some(fill) if element_count(fill.shape())? != 1 => {
                return Err(Error::invalid(format!("a fill value of shape {:?}", fill.shape())));
            }
            Some(fill) => fill.cells(dtype).context(|| "fill value")?.into_cells(),
            None => zero(dtype)?,
        };
        StagedArray::with_fill(shape, chunk, dtype, fill)
    }

    fn with_fill(shape: &[u64], chunk: &[u64], dtype: &DType, fill: Cells) -> Result<StagedArray> {
        let limits = Limits::default();
        let kind = Kind::of(dtype);
        if kind == Kind::Fixed(0) {
            return Err(Error::invalid(format!("elements of 0 bytes: {dtype}")));
        }
        grid_of(shape, chunk)?;
        to_usize(element_count(chunk)?.saturating_mul(dtype.size() as u64))?;
        let ledger = Ledger::full(shape.to_vec(), chunk.to_vec(), &limits)?;
        let full = Memory { buffer: 0, start: 0, strides: chunk.iter().map(|_| 0).collect() };
        Ok(StagedArray {
            dtype: dtype.clone(),
            kind,
            ledger,
            slabs: vec![Some(Slab::Memory(full))],
            buffers: vec![Some(Buffer::new(fill))],
            hash_tables: vec![None],
            committed: shape.to_vec(),
            writeable: true,
            limits,
            threads: None,
        })
    }

    /// An array over chunks of base slabs, all of `dtype`: chunk *i* in C order lies on slab `map.slab_indices()[i]` at
    /// row `map.slab_offsets()[i]`, where 0 is the full slab and base slabs count from 1.
    pub fn new<'a>(
        shape: &[u64],
        chunk: &[u64],
        dtype: &DType,
        bases: Vec<BaseSlab>,
        map: ChunkMap,
        fill: Option<Values<'a>>,
    ) -> Result<StagedArray> {
        let mut staged = StagedArray::full(shape, chunk, dtype, fill)?;
        if map.grid() != staged.ledger.map.grid() {
            let grid = staged.ledger.map.grid();
            return Err(Error::invalid(format!("a map of {:?} chunks for {grid:?}", map.grid())));
        }
        for base in bases {
            staged.push_base(base)?;
        }
        staged.ledger.map = Arc::new(map);
        staged.check_places()?;
        Ok(staged)
    }

    /// An array of a file, to be changed: its own chunks are what is staged. An array that is not stored in chunks is
    /// staged in blocks of about 1 MiB.
    pub fn over(array: &Array) -> Result<StagedArray> {
        StagedArray::over_chunked(array, &slab::chunk_of(array))
    }

    /// The same in chunks of other extents.
    pub fn over_chunked(array: &Array, chunk: &[u64]) -> Result<StagedArray> {
        let base = BaseSlab::array(array, chunk).context(|| format!("array {}", array.path()))?;
        let (dtype, stored) = (array.dtype(), &array.meta().fill_element);
        let fill = match Kind::of(dtype) {
            _ if stored.is_empty() => zero(dtype)?,
            Kind::Fixed(size) => Cells::Fixed { size, bytes: stored.to_vec() },
            Kind::Objects => Cells::Objects(object::of_stored(array, stored.clone(), 1)?),
        };
        let mut staged = StagedArray::with_fill(array.shape(), chunk, dtype, fill)?;
        staged.limits = array.options().limits.clone();
        staged.threads = array.options().threads;
        staged.push_base(base)?;
        let map = Arc::make_mut(&mut staged.ledger.map);
        let height = chunk.first().copied().unwrap_or(1);
        for at in 0..map.len() {
            map.set(ledger::Edit { at, slab: 1, offset: at as u64 * height });
        }
        Ok(staged)
    }

    /// Elements in memory as base slabs, which stay as they are: one slab for each column of chunks along axis 0, all
    /// of them parts of the same memory. Without a fill value, it is zeros.
    pub fn from_base<'a>(data: Block, chunk: &[u64], fill: Option<Values<'a>>) -> Result<StagedArray> {
        StagedArray::columns(data, chunk, fill, true)
    }

    /// Elements in memory as staged slabs, which are changed where they lie.
    pub fn from_staged<'a>(data: Block, chunk: &[u64], fill: Option<Values<'a>>) -> Result<StagedArray> {
        StagedArray::columns(data, chunk, fill, false)
    }

    fn columns(data: Block, chunk: &[u64], fill: Option<Values<'_>>, base: bool) -> Result<StagedArray> {
        let Block { shape, dtype, cells } = data;
        let mut staged = StagedArray::full(&shape, chunk, &dtype, fill)?;
        if element_count(&shape)? == 0 {
            return Ok(staged);
        }
        let layout = strides(&shape)?;
        staged.buffers.push(Some(Buffer::new(cells)));
        let grid = staged.ledger.map.grid().to_vec();
        let columns = element_count(grid.get(1..).unwrap_or(&[]))?;
        let height = staged.ledger.height();
        for column in 0..columns {
            let mut coord = ledger::coord_of(column, grid.get(1..).unwrap_or(&[]));
            coord.insert(0, 0);
            let mut extents: Vec<u64> = staged.ledger.extent(&coord, &shape).to_vec();
            let start = coord.iter().zip(chunk).zip(&layout);
            let start = start.map(|((&c, &n), &stride)| (c * n) as usize * stride).sum();
            match (extents.first_mut(), shape.first()) {
                (Some(rows), Some(&all)) => *rows = all,
                // A scalar has one chunk, of one row.
                _ => extents.push(1),
            }
            staged.slabs.push(Some(Slab::Memory(Memory { buffer: 1, start, strides: layout.clone() })));
            staged.ledger.slabs.push(Some(extents));
            staged.hash_tables.push(None);
        }
        let map = Arc::make_mut(&mut staged.ledger.map);
        for at in 0..map.len() {
            let row = at as u64 / columns;
            map.set(ledger::Edit { at, slab: (at as u64 % columns) as u32 + 1, offset: row * height });
        }
        if base {
            staged.ledger.bases = columns as usize;
        }
        Ok(staged)
    }

    /// Checks that every chunk lies on a slab that is there, and that its slab holds all of it.
    fn check_places(&self) -> Result<()> {
        let height = self.ledger.height();
        for at in 0..self.ledger.map.len() {
            let (slab, offset) = self.ledger.map.get(at);
            let coord = self.ledger.map.coord(at);
            let extent = self.ledger.extent(&coord, &self.ledger.shape);
            let place = self.slabs.get(slab as usize).zip(self.ledger.slabs.get(slab as usize));
            let fits = match place {
                Some((Some(_), _)) if slab == 0 => offset == 0,
                Some((Some(Slab::Array(array)), Some(shape))) => {
                    let held = self.ledger.extent(&array.coord(offset), array.array.shape());
                    let there = shape.first().is_none_or(|&rows| offset < rows);
                    offset % height == 0 && there && extent.iter().zip(&held).all(|(n, held)| n <= held)
                }
                // The last chunk may end before its place does.
                Some((Some(Slab::Memory(_)), Some(shape))) => {
                    let high = extent.first().copied().unwrap_or(1);
                    let rows = shape.first().copied().unwrap_or(1);
                    offset % height == 0 && offset.checked_add(high).is_some_and(|end| end <= rows)
                }
                _ => false,
            };
            if !fits {
                return Err(Error::new(
                    ErrorKind::OutOfBounds,
                    format!("slab {slab} does not hold chunk {:?} at row {offset}", coord.as_slice()),
                ));
            }
        }
        Ok(())
    }

    /// Appends a base slab; there are no staged ones yet.
    fn push_base(&mut self, base: BaseSlab) -> Result<()> {
        if base.dtype() != &self.dtype {
            return Err(Error::invalid(format!(
                "a base slab of {} for an array of {}",
                base.dtype(),
                self.dtype
            )));
        }
        let (slab, shape, table) = self.adopt(base, None)?;
        self.slabs.push(Some(slab));
        self.ledger.slabs.push(Some(shape));
        self.hash_tables.push(table);
        self.ledger.bases += 1;
        Ok(())
    }

    /// Makes a slab of a base slab: checks extents and hashes, and puts its memory among the buffers.
    #[allow(clippy::type_complexity)]
    fn adopt(
        &mut self,
        base: BaseSlab,
        extents: Option<&[u64]>,
    ) -> Result<(Slab, Vec<u64>, Option<Arc<Vec<Digest>>>)> {
        let chunk = &self.ledger.chunk;
        let shape = base.shape(chunk)?;
        let own_chunks = match &base.inner {
            Inner::Array(slab) => slab.chunk == *chunk,
            Inner::Memory { .. } => true,
        };
        let fits = own_chunks && shape.get(1..) == chunk.get(1..).or(Some(&[]));
        if !fits || extents.is_some_and(|wanted| wanted != shape) {
            return Err(Error::invalid(format!("a base slab of {shape:?} for chunks of {chunk:?}")));
        }
        let count = shape.first().map_or(1, |&rows| rows.div_ceil(self.ledger.height()));
        if let Some(hashes) = &base.hashes
            && hashes.len() as u64 != count
        {
            return Err(Error::invalid(format!("{} hashes for {count} chunks", hashes.len())));
        }
        let slab = match base.inner {
            Inner::Array(slab) => Slab::Array(slab),
            Inner::Memory { cells, .. } => {
                let memory = slab::memory(self.buffers.len(), &shape)?;
                self.buffers.push(Some(Buffer::new(cells)));
                Slab::Memory(memory)
            }
        };
        Ok((slab, shape, base.hashes))
    }

    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.ledger.shape
    }

    /// Extents of a chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.ledger.chunk
    }

    /// The type of its elements, as stored.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// The fill value: one element.
    pub fn fill(&self) -> Result<Block> {
        let cells = self.buffer(0)?.cells()?;
        Ok(Block { shape: Vec::new(), dtype: self.dtype.clone(), cells: (*cells).clone() })
    }

    /// Shapes and indices: all that plans know.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The hashes of each slab's chunks, as far as they are known; as long as the list of slabs.
    pub fn hash_tables(&self) -> impl Iterator<Item = Option<&[Digest]>> {
        self.hash_tables.iter().map(|table| table.as_ref().map(|t| t.as_slice()))
    }

    /// Whether anything was staged, or the extents were changed, since it was made or committed.
    pub fn has_changes(&self) -> bool {
        self.slabs.len() > self.ledger.bases + 1 || self.committed != self.ledger.shape
    }

    /// Bytes of staged slabs in memory; memory that copies of the array share counts for each.
    pub fn staged_bytes(&self) -> Result<u64> {
        let mut buffers: Vec<usize> =
            self.slabs.iter().skip(self.ledger.bases + 1).flatten().filter_map(buffer_of).collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers.into_iter().map(|b| Ok(self.buffer(b)?.cells()?.bytes())).sum()
    }

    /// Makes it refuse, or allow, everything that changes it.
    pub fn set_writeable(&mut self, writeable: bool) {
        self.writeable = writeable;
    }

    /// Threads that one operation uses at most.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the budgets: of one result and one slab (`output`), and of maps and plans (`plan`).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A second array with the same elements, which may be written even if this one may not. Nothing is copied before
    /// one of the two is written.
    #[must_use]
    pub fn copy(&self) -> StagedArray {
        StagedArray { writeable: true, ..self.clone() }
    }

    fn check_writeable(&self) -> Result<()> {
        if self.writeable {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Permission, "the staged array is read-only").hint("change a copy of it"))
    }

    fn resolve(&self, selection: impl IntoSelection) -> Result<Region> {
        let selection = selection.into_selection()?;
        selection
            .resolve(&self.ledger.shape, &self.limits)
            .map_err(|e| e.context(format!("selection {selection}")).context("staged array"))
    }

    fn slab(&self, slab: u32) -> Result<&Slab> {
        self.slabs
            .get(slab as usize)
            .and_then(|s| s.as_ref())
            .ok_or_else(|| Error::invalid(format!("a plan names slab {slab}, which is gone")))
    }

    fn buffer(&self, buffer: usize) -> Result<&Buffer> {
        self.buffers
            .get(buffer)
            .and_then(|b| b.as_ref())
            .ok_or_else(|| Error::invalid(format!("a slab names buffer {buffer}, which is gone")))
    }

    /// The elements of a buffer, to be written.
    fn own(&mut self, buffer: usize) -> Result<&mut Cells> {
        match self.buffers.get_mut(buffer).and_then(|b| b.as_mut()) {
            Some(buffer) => buffer.own(),
            None => Err(Error::invalid(format!("a slab names buffer {buffer}, which is gone"))),
        }
    }

    /// Makes a slab in memory one that can be written. Where other arrays share its memory, no more than the slab is copied.
    fn own_slab(&mut self, slab: u32) -> Result<()> {
        let Slab::Memory(from) = self.slab(slab)?.clone() else {
            return Err(Error::invalid("a plan writes to an array of a file"));
        };
        let of_buffer = |s: &Slab| buffer_of(s) == Some(from.buffer);
        let alone = self.slabs.iter().flatten().filter(|s| of_buffer(s)).count() < 2;
        if alone || !self.buffer(from.buffer)?.is_shared() {
            return self.own(from.buffer).map(|_| ());
        }
        let at = to_usize(slab.into())?;
        let extents = self.ledger.slabs.get(at).cloned().flatten().unwrap_or_default();
        let to = slab::memory(self.buffers.len(), &extents)?;
        let mut cells = Cells::new(self.kind, element_count(&extents)?, self.limits.output)?;
        let loops =
            transfer::box_loops(&extents, &selected::signed(&from.strides), &selected::signed(&to.strides));
        let source = self.buffer(from.buffer)?.cells()?;
        cells::copy(source.view(), from.start, &mut cells.view_mut(), 0, &loops)?;
        self.buffers.push(Some(Buffer::new(cells)));
        if let Some(slot) = self.slabs.get_mut(at) {
            *slot = Some(Slab::Memory(to));
        }
        Ok(())
    }

    /// Appends a slab in memory: of the ledger, which has its extents already, the last.
    fn push_memory(&mut self, cells: Cells, shape: &[u64]) -> Result<()> {
        let memory = slab::memory(self.buffers.len(), shape)?;
        self.buffers.push(Some(Buffer::new(cells)));
        self.slabs.push(Some(Slab::Memory(memory)));
        self.hash_tables.push(None);
        Ok(())
    }

    /// Lets go of buffers that no slab is part of.
    fn reclaim(&mut self) {
        let mut used = vec![false; self.buffers.len()];
        for buffer in self.slabs.iter().flatten().filter_map(buffer_of) {
            if let Some(used) = used.get_mut(buffer) {
                *used = true;
            }
        }
        for (buffer, used) in self.buffers.iter_mut().zip(used) {
            if !used {
                *buffer = None;
            }
        }
        while self.buffers.last().is_some_and(Option::is_none) {
            self.buffers.pop();
        }
    }

    /// A new array of its own made of elements of this machine, in C order of `shape`, as staged slabs.
    pub fn of<T: Element>(shape: &[u64], elements: Vec<T>, chunk: &[u64]) -> Result<StagedArray> {
        let values = Values::new(shape, &elements)?;
        StagedArray::from_staged(Block::from_values(&values)?, chunk, None)
    }
}

fn buffer_of(slab: &Slab) -> Option<usize> {
    match slab {
        Slab::Memory(memory) => Some(memory.buffer),
        Slab::Array(ArraySlab { .. }) => None,
    }
}

/// The element that stands for those never written, where nobody says what it is.
fn zero(dtype: &DType) -> Result<Cells> {
    Ok(match Kind::of(dtype) {
        Kind::Fixed(size) => Cells::Fixed { size, bytes: vec![0; size] },
        Kind::Objects => Cells::Objects(vec![object::zero(dtype)?]),
    })
}
