//! Reads. What lies in memory and what lies in files is one read plan, carried out by the one read path.

use super::cells::{Cells, Kind, View, ViewMut, copy};
use super::plan::{GetItemPlan, by_slab};
use super::selected::{Entry, Selected, signed, strides};
use super::slab::{ArraySlab, Memory, Slab};
use super::transfer::simple;
use super::values::{Block, no_numbers};
use super::{StagedArray, object};
use crate::array::ArrayData;
use crate::codec::Pipeline;
use crate::dtype::{DType, Element};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec::{Form, MissingChunks};
use crate::model::{ArrayMeta, ChunkGrid, ChunkRef, FillValue, Layout};
use crate::plan::{Part, Place, ReadPlan};
use crate::select::{IntoSelection, Region};
use crate::shape::{element_count, to_usize};
use bytes::Bytes;
use hyperslab_kernels::{bytes_of_mut, zeroed};
use std::sync::Arc;

/// The bytes of a buffer, to be cut into chunks without a copy.
struct Shared(Arc<Cells>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        match &*self.0 {
            Cells::Fixed { bytes, .. } => bytes,
            Cells::Objects(_) => &[],
        }
    }
}

impl StagedArray {
    /// What reading this selection would do.
    pub fn get_plan(&self, selection: impl IntoSelection) -> Result<GetItemPlan> {
        self.get_plan_of(self.resolve(selection)?)
    }

    fn get_plan_of(&self, region: Region) -> Result<GetItemPlan> {
        let selected = Selected::new(region, &self.ledger.chunk)?;
        let mut entries = selected.entries(&self.ledger, &self.limits)?;
        entries.sort_by_key(|e| (e.slab, e.offset));
        Ok(GetItemPlan { selected, entries })
    }

    /// Reads elements of any type. Nothing is kept: the same read again reads base slabs again.
    pub fn get(&self, selection: impl IntoSelection) -> Result<Block> {
        self.get_region(self.resolve(selection)?)
    }

    /// The same for a region of it.
    pub(crate) fn get_region(&self, region: Region) -> Result<Block> {
        let plan = self.get_plan_of(region)?;
        let shape = plan.shape().to_vec();
        let count = element_count(&shape)?;
        let cells = match self.kind {
            Kind::Fixed(_) => {
                let mut cells = Cells::new(self.kind, count, self.limits.output)?;
                if let Cells::Fixed { bytes, .. } = &mut cells {
                    self.carry_out_get(&plan, Form::Stored, bytes)?;
                }
                cells
            }
            Kind::Objects => self.get_objects(&plan, count)?,
        };
        Ok(Block { shape, dtype: self.dtype.clone(), cells })
    }

    /// Reads numbers as `T`; those that it cannot hold are clamped, as by [`Array::read`](crate::Array::read).
    pub fn read<T: Element>(&self, selection: impl IntoSelection) -> Result<ArrayData<T>> {
        let Kind::Fixed(_) = self.kind else { return Err(no_numbers(&self.dtype, T::NATIVE)) };
        let converted = |slab: &Slab| matches!(slab, Slab::Array(slab) if *slab.array.dtype() != self.dtype);
        if self.slabs.iter().flatten().any(converted) {
            // Elements pass through the type that the array presents.
            return self.get(selection)?.to::<T>();
        }
        let plan = self.get_plan(selection)?;
        let shape = plan.shape().to_vec();
        let count = to_usize(element_count(&shape)?)?;
        let bytes = count as u128 * size_of::<T::Raw>() as u128;
        if bytes > u128::from(self.limits.output) {
            return Err(Error::limit("bytes of the result", bytes, self.limits.output.into()));
        }
        let mut raw = zeroed::<T::Raw>(count).ok_or_else(|| {
            Error::new(ErrorKind::LimitExceeded, format!("no memory for a result of {bytes} bytes"))
        })?;
        let form = Form::Native { native: T::NATIVE, exact: false };
        self.carry_out_get(&plan, form, bytes_of_mut(&mut raw))?;
        Ok(ArrayData { shape, data: T::from_raw(raw) })
    }

    /// Reads text in C order.
    pub fn read_strings(&self, selection: impl IntoSelection) -> Result<Vec<String>> {
        if !matches!(self.dtype, DType::String { .. } | DType::VarString { .. } | DType::Utf32 { .. }) {
            return Err(Error::invalid(format!("the staged array holds {}, not text", self.dtype)));
        }
        self.get(selection)?.texts()
    }

    /// Reads elements of fixed size into zeroed memory.
    fn carry_out_get(&self, plan: &GetItemPlan, form: Form, out: &mut [u8]) -> Result<()> {
        let region = &plan.selected.region;
        let mut parts = Vec::new();
        // Chunks of the full slab and of slabs of whole chunks are one part.
        let mut plain: Vec<(u64, Place)> = Vec::new();
        let mut arrays: Vec<(&ArraySlab, &[Entry])> = Vec::new();
        let whole = strides(&self.ledger.chunk)?;
        for (slab, group) in by_slab(&plan.entries) {
            match self.slab(slab)? {
                _ if slab == 0 => {
                    plain.extend(group.iter().map(|e| (e.number, Place::Stored(ChunkRef::Absent))));
                }
                Slab::Memory(memory) => {
                    let places = self.places(memory, group)?;
                    let steps = memory.steps(whole.len());
                    if *steps == whole[..] {
                        plain.extend(places);
                    } else {
                        parts.push(self.memory_part(region.clone(), Some(steps), places)?);
                    }
                }
                Slab::Array(slab) if slab.own => {
                    let chunks = group.iter().map(|e| (e.number, e.offset));
                    self.run_array(slab, form, out, || {
                        self.stored_plan(slab, region.clone(), chunks.clone())
                    })
                    .context(|| format!("array {}", slab.array.path()))?;
                }
                Slab::Array(slab) => arrays.push((slab, group)),
            }
        }
        if !plain.is_empty() {
            parts.push(self.memory_part(region.clone(), None, plain)?);
        }
        let shape = region.shape().to_vec();
        if !parts.is_empty() {
            let plan = ReadPlan::of_tiles(shape, self.dtype.clone(), parts, &self.limits)?;
            self.run(&plan, form, out, MissingChunks::Fill)?;
        }
        for (slab, group) in arrays {
            self.scatter(&plan.selected, slab, group, form, out)
                .context(|| format!("array {}", slab.array.path()))?;
        }
        Ok(())
    }

    /// Where the chunks of a slab in memory are.
    fn places(&self, memory: &Memory, group: &[Entry]) -> Result<Vec<(u64, Place)>> {
        let cells = self.buffer(memory.buffer)?.cells()?;
        let size = self.dtype.size();
        let bytes = Bytes::from_owner(Shared(cells));
        let place = |e: &Entry| {
            let first = memory.place(&self.ledger.start(e.offset))?.saturating_mul(size);
            if first > bytes.len() {
                return Err(Error::invalid("a chunk lies outside of its slab"));
            }
            Ok((e.number, Place::Elements(bytes.slice(first..))))
        };
        group.iter().map(place).collect()
    }

    fn memory_part(
        &self,
        region: Region,
        strides: Option<&[usize]>,
        places: Vec<(u64, Place)>,
    ) -> Result<Part> {
        let fill = match &*self.buffer(0)?.cells()? {
            Cells::Fixed { bytes, .. } => Bytes::copy_from_slice(bytes),
            Cells::Objects(_) => Bytes::new(),
        };
        let meta = ArrayMeta {
            dtype: self.dtype.clone(),
            committed: None,
            space: simple(region.dims()),
            grid: ChunkGrid::Regular(self.ledger.chunk.clone()),
            layout: Layout::Chunked { index: "staged" },
            fill: FillValue::Value(fill.clone()),
            fill_element: fill,
            filters: Vec::new(),
            notes: Vec::new(),
        };
        let pipeline = Arc::new(Pipeline::default());
        Part::of_chunks("staged", &meta, &pipeline, region, strides, places, &self.limits)
    }

    /// Reads what lies on an array that is not stored in chunks like these: all at once if it may be, or chunk by chunk.
    fn scatter(
        &self,
        selected: &Selected,
        slab: &ArraySlab,
        group: &[Entry],
        form: Form,
        out: &mut [u8],
    ) -> Result<()> {
        let dims = slab.array.shape();
        let in_place =
            |e: &Entry| selected.projection.get(e.number).is_some_and(|p| p.coord == slab.coord(e.offset));
        let region = &selected.region;
        if group.len() as u64 == selected.projection.len() && group.iter().all(in_place) {
            let region = Region::new(
                dims.to_vec(),
                region.selectors().to_vec(),
                region.extents().to_vec(),
                region.shape().to_vec(),
            )?;
            if *slab.array.dtype() == slab.dtype {
                return self.run_array(slab, form, out, || slab.array.plan_region(region.clone()));
            }
        }
        for e in group {
            let Some(part) = selected.projection.get(e.number) else { continue };
            let own = selected.within(&part, &slab.coord(e.offset), dims)?;
            let counts = own.extents().to_vec();
            let (read, size) = if *slab.array.dtype() == slab.dtype {
                let size = match form {
                    Form::Stored => self.dtype.size(),
                    Form::Native { native, .. } => native.size(),
                };
                let mut cells = Cells::new(Kind::Fixed(size), element_count(&counts)?, self.limits.output)?;
                if let Cells::Fixed { bytes, .. } = &mut cells {
                    self.run_array(slab, form, bytes, || slab.array.plan_region(own.clone()))?;
                }
                (cells, size)
            } else {
                // Only asked for in the form that it presents.
                (self.read_array(slab, own)?, self.dtype.size())
            };
            let mut target = ViewMut::Bytes(size, out);
            place_part(selected, e.number, &counts, read.view(), &mut target)?;
        }
        Ok(())
    }

    /// Reads elements of variable length.
    fn get_objects(&self, plan: &GetItemPlan, count: u64) -> Result<Cells> {
        let selected = &plan.selected;
        let mut out = Cells::new(self.kind, count, self.limits.output)?;
        let extents = signed(&strides(selected.region.extents())?);
        for (slab, group) in by_slab(&plan.entries) {
            match self.slab(slab)? {
                Slab::Memory(memory) => {
                    let source = self.buffer(memory.buffer)?.cells()?;
                    let selected = selected.with_strides(memory.steps(self.ledger.chunk.len()))?;
                    for e in group {
                        let Some(part) = selected.projection.get(e.number) else { continue };
                        let lanes = selected.lanes(&part, &extents)?;
                        let loops = lanes.flipped();
                        let from = memory.place(&self.ledger.start(e.offset))?.saturating_add(lanes.chunk_at);
                        copy(source.view(), from, &mut out.view_mut(), lanes.box_at, &loops)?;
                    }
                }
                Slab::Array(slab) => {
                    let parts: Vec<_> = group
                        .iter()
                        .filter_map(|e| selected.projection.get(e.number).map(|p| (e, p)))
                        .collect();
                    // References of all chunks first, so that what they point to is fetched in one batch.
                    let mut stored = Vec::new();
                    let mut counts = Vec::new();
                    for (e, part) in &parts {
                        let own = selected.within(part, &slab.coord(e.offset), slab.array.shape())?;
                        counts.push(own.extents().to_vec());
                        let at = stored.len();
                        let bytes = to_usize(own.count()?)?.saturating_mul(slab.array.dtype().size());
                        stored.resize(at + bytes, 0);
                        let target = stored.get_mut(at..).unwrap_or(&mut []);
                        let plan = || slab.array.plan_region(own.clone());
                        self.run_array(slab, Form::Stored, target, plan)?;
                    }
                    let all = stored.len() / slab.array.dtype().size().max(1);
                    let objects = object::of_stored(&slab.array, stored.into(), all)?;
                    let mut rest = objects.as_slice();
                    for ((e, _), counts) in parts.iter().zip(&counts) {
                        let n = to_usize(element_count(counts)?)?;
                        let Some((own, after)) = rest.split_at_checked(n) else { break };
                        rest = after;
                        let mut target = out.view_mut();
                        place_part(selected, e.number, counts, View::Objects(own), &mut target)?;
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Places the elements of one chunk's part, side by side in C order of `counts`, in the result.
fn place_part(
    selected: &Selected,
    number: u64,
    counts: &[u64],
    read: View<'_>,
    out: &mut ViewMut<'_>,
) -> Result<()> {
    let Some(part) = selected.projection.get(number) else { return Ok(()) };
    let extents = signed(&strides(selected.region.extents())?);
    let lanes = selected.lanes(&part, &extents)?;
    let own = strides(counts)?;
    let mut loops = lanes.flipped();
    for (one, &stride) in loops.iter_mut().zip(&own) {
        one.from = super::cells::Steps::Even(isize::try_from(stride).unwrap_or(isize::MAX));
    }
    copy(read, 0, out, lanes.box_at, &loops)
}
