//! Carrying out transfers between slabs, in bulk.

use super::StagedArray;
use super::cells::{Cells, Kind, Loop, ViewMut, copy};
use super::object;
use super::plan::BoxCopy;
use super::selected::{signed, strides};
use super::slab::{ArraySlab, Memory, Slab};
use crate::array::Array;
use crate::error::{Context, Error, Result};
use crate::exec::{self, Form, MissingChunks, Output, ReadStats, RunOptions};
use crate::model::{ArrayMeta, ChunkGrid, Dataspace};
use crate::plan::{Part, Place, ReadPlan};
use crate::select::{Region, Selector};
use crate::shape::{Coord, element_count, to_usize};
use smallvec::SmallVec;

/// Chunks looked up in one call.
const BATCH: usize = 4096;

impl StagedArray {
    /// Bytes of one element in memory, for how many threads a transfer is worth.
    fn weight(&self) -> u64 {
        match self.kind {
            Kind::Fixed(size) => size as u64,
            Kind::Objects => 64,
        }
    }

    /// Threads for a transfer of so many elements.
    pub(super) fn threads(&self, elements: u64) -> usize {
        exec::copying_threads(elements.saturating_mul(self.weight()), self.threads)
    }

    /// Runs a plan into zeroed memory.
    pub(super) fn run(
        &self,
        plan: &ReadPlan,
        form: Form,
        bytes: &mut [u8],
        missing: MissingChunks,
    ) -> Result<ReadStats> {
        let options = RunOptions { threads: self.threads, missing, ..RunOptions::default() };
        exec::run(plan, form, Output { bytes, zeroed: true }, &options)
    }

    /// Reads an array as its file was opened, again where that is open to a writer who has torn it.
    pub(super) fn run_array(
        &self,
        slab: &ArraySlab,
        form: Form,
        bytes: &mut [u8],
        plan: impl Fn() -> Result<ReadPlan>,
    ) -> Result<()> {
        let missing = slab.array.options().missing;
        let mut first = true;
        slab.array.attempt(|| {
            if !std::mem::take(&mut first) {
                bytes.fill(0);
            }
            self.run(&plan()?, form, bytes, missing).map(|_| ())
        })
    }

    /// Fills chunks of a new slab of whole chunks, at most one copy for each chunk, in their order on the slab.
    pub(super) fn gather(&self, copies: &[BoxCopy], cells: &mut Cells, shape: &[u64]) -> Result<()> {
        for group in copies.chunk_by(|a, b| a.from == b.from) {
            let Some(first) = group.first() else { continue };
            match self.slab(first.from)? {
                Slab::Memory(memory) => self.gather_memory(memory, group, cells)?,
                Slab::Array(slab) => self
                    .gather_array(slab, group, cells, shape)
                    .context(|| format!("array {}", slab.array.path()))?,
            }
        }
        Ok(())
    }

    fn gather_memory(&self, memory: &Memory, copies: &[BoxCopy], cells: &mut Cells) -> Result<()> {
        let source = self.buffer(memory.buffer)?.cells()?;
        let (from, to) = (signed(&memory.strides), signed(&strides(&self.ledger.chunk)?));
        let (tiles, elements) =
            self.tiles(copies.iter().map(|c| c.to_at.first().copied()), cells.view_mut())?;
        let work: Vec<_> = tiles.into_iter().zip(copies).collect();
        exec::each(self.threads(elements), work, |(mut tile, one)| {
            let loops = box_loops(&one.count, &from, &to);
            copy(source.view(), memory.place(&one.from_at)?, &mut tile, 0, &loops)
        })
    }

    /// The chunks of a slab of whole chunks that start at these rows, ascending; and the elements of all.
    pub(super) fn tiles<'a>(
        &self,
        rows: impl Iterator<Item = Option<u64>>,
        slab: ViewMut<'a>,
    ) -> Result<(Vec<ViewMut<'a>>, u64)> {
        let chunk = to_usize(element_count(&self.ledger.chunk)?)?;
        let height = self.ledger.height();
        let starts: Result<Vec<usize>> =
            rows.map(|row| to_usize(row.unwrap_or(0) / height * chunk as u64)).collect();
        let tiles = slab
            .runs(&starts?, chunk)
            .ok_or_else(|| Error::invalid("a transfer of a plan lies outside of its slab"))?;
        let elements = tiles.len() as u64 * chunk as u64;
        Ok((tiles, elements))
    }

    fn gather_array(
        &self,
        slab: &ArraySlab,
        copies: &[BoxCopy],
        cells: &mut Cells,
        shape: &[u64],
    ) -> Result<()> {
        if let (true, Cells::Fixed { bytes, .. }) = (slab.own, &mut *cells) {
            // Whole chunks as they are stored: the new slab is read like an array of those chunks.
            let chunk = |c: &BoxCopy| {
                let row = c.to_at.first().copied().unwrap_or(0) / self.ledger.height();
                (row, c.from_at.first().copied().unwrap_or(0))
            };
            return self.run_array(slab, Form::Stored, bytes, || {
                self.stored_plan(slab, Region::all(shape), copies.iter().map(chunk))
            });
        }
        let to = signed(&strides(&self.ledger.chunk)?);
        let (tiles, _) = self.tiles(copies.iter().map(|c| c.to_at.first().copied()), cells.view_mut())?;
        for (mut tile, one) in tiles.into_iter().zip(copies) {
            let offset = one.from_at.first().copied().unwrap_or(0);
            let region = boxed(slab, &slab.coord(offset), &one.count)?;
            let read = self.read_array(slab, region)?;
            let from = signed(&strides(&one.count)?);
            copy(read.view(), 0, &mut tile, 0, &box_loops(&one.count, &from, &to))?;
        }
        Ok(())
    }

    /// What to read of stored chunks: of the chunks of `region` with these numbers, those at these offsets.
    pub(super) fn stored_plan(
        &self,
        slab: &ArraySlab,
        region: Region,
        chunks: impl Iterator<Item = (u64, u64)>,
    ) -> Result<ReadPlan> {
        let own = slab.array.meta();
        let meta = ArrayMeta {
            space: simple(region.dims()),
            grid: ChunkGrid::Regular(slab.chunk.clone()),
            ..own.clone()
        };
        let (numbers, coords): (Vec<u64>, Vec<Coord>) =
            chunks.map(|(number, offset)| (number, slab.coord(offset))).unzip();
        let mut places = Vec::with_capacity(numbers.len());
        for (numbers, coords) in numbers.chunks(BATCH).zip(coords.chunks(BATCH)) {
            let found = slab.locate(coords)?;
            places.extend(numbers.iter().copied().zip(found.into_iter().map(Place::Stored)));
        }
        let pipeline = slab.array.pipeline()?;
        let shape = region.shape().to_vec();
        let part = Part::of_chunks(slab.array.path(), &meta, pipeline, region, None, places, &self.limits)?;
        ReadPlan::of_tiles(shape, self.dtype.clone(), vec![part], &self.limits)
    }

    /// Reads a region of an array that is a slab, as this array holds its elements.
    pub(super) fn read_array(&self, slab: &ArraySlab, region: Region) -> Result<Cells> {
        let count = region.count()?;
        let stored = slab.array.dtype().size();
        let mut cells = Cells::new(Kind::Fixed(stored), count, self.limits.output)?;
        let Cells::Fixed { bytes, .. } = &mut cells else { return Ok(cells) };
        self.run_array(slab, Form::Stored, bytes, || slab.array.plan_region(region.clone()))?;
        self.as_held(&slab.array, slab, cells)
    }

    /// Stored elements of an array as this one holds them.
    pub(super) fn as_held(&self, array: &Array, slab: &ArraySlab, cells: Cells) -> Result<Cells> {
        match (self.kind, cells) {
            (Kind::Objects, Cells::Fixed { size, bytes }) => {
                let count = bytes.len() / size.max(1);
                Ok(Cells::Objects(object::of_stored(array, bytes.into(), count)?))
            }
            (Kind::Fixed(_), cells) if *array.dtype() != slab.dtype => {
                let conversion = crate::dtype::Conversion::between(array.dtype(), &slab.dtype)?;
                super::slab::convert(&cells, &conversion)
            }
            (_, cells) => Ok(cells),
        }
    }

    /// Copies boxes between slabs in memory, one after the other.
    pub(super) fn copy_boxes(&mut self, copies: &[BoxCopy]) -> Result<()> {
        for group in copies.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
            let Some(first) = group.first() else { continue };
            let (Slab::Memory(from), Slab::Memory(to)) =
                (self.slab(first.from)?.clone(), self.slab(first.to)?.clone())
            else {
                return Err(Error::invalid("a plan writes to an array of a file"));
            };
            let source = self.buffer(from.buffer)?.cells()?;
            let target = self.own(to.buffer)?;
            let mut target = target.view_mut();
            let (from_strides, to_strides) = (signed(&from.strides), signed(&to.strides));
            for one in group {
                let loops = box_loops(&one.count, &from_strides, &to_strides);
                let to_at = to.place(&one.to_at)?;
                copy(source.view(), from.place(&one.from_at)?, &mut target, to_at, &loops)?;
            }
            self.forget_hashes(first.to);
        }
        Ok(())
    }

    /// What is known of the hashes of a slab is no longer true.
    pub(super) fn forget_hashes(&mut self, slab: u32) {
        if let Some(table) = self.hash_tables.get_mut(slab as usize) {
            *table = None;
        }
    }
}

pub(super) fn simple(dims: &[u64]) -> Dataspace {
    Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&n| Some(n)).collect() }
}

/// Loops over a box.
pub(super) fn box_loops<'a>(count: &[u64], from: &[isize], to: &[isize]) -> SmallVec<[Loop<'a>; 4]> {
    let axes = count.iter().zip(from).zip(to);
    axes.map(|((&n, &from), &to)| Loop::even(usize::try_from(n).unwrap_or(usize::MAX), from, to)).collect()
}

/// A box of an array from the first element of one of its chunks.
fn boxed(slab: &ArraySlab, coord: &[u64], count: &[u64]) -> Result<Region> {
    let selectors: Vec<Selector> = coord
        .iter()
        .zip(&slab.chunk)
        .zip(count)
        .enumerate()
        .map(|(axis, ((&c, &chunk), &n))| Selector::range(axis, c.saturating_mul(chunk), 1, n))
        .collect();
    Region::new(slab.array.shape().to_vec(), selectors, count.to_vec(), count.to_vec())
}
