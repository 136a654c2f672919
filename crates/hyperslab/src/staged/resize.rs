//! Changes of extents, and bringing base chunks into memory.

use super::StagedArray;
use super::cells::Cells;
use super::ledger::{ChunkMap, Edit, Ledger, coord_of, grid_of};
use super::plan::{BoxCopy, LoadPlan, ResizePlan, Step};
use super::slab::{Buffer, Slab, memory};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::shape::{Coord, element_count, to_usize};
use std::collections::BTreeMap;
use std::sync::Arc;

impl ResizePlan {
    /// Decides what a change to these extents does. Axes that shrink come first, then each axis that grows, in order.
    pub(super) fn new(ledger: &Ledger, shape: &[u64], limits: &Limits) -> Result<ResizePlan> {
        let old = &ledger.shape;
        if shape.len() != old.len() {
            return Err(Error::invalid(format!(
                "an array of {} axes cannot get the shape {shape:?}",
                old.len()
            )));
        }
        let grid = grid_of(shape, &ledger.chunk)?;
        let mut plan = ResizePlan { steps: Vec::new(), after: ledger.clone() };
        if shape == old.as_slice() {
            return Ok(plan);
        }
        let small: Vec<u64> = old.iter().zip(shape).map(|(&a, &b)| a.min(b)).collect();
        let cropped = grid_of(&small, &ledger.chunk)?;
        let dropped = cropped != ledger.map.grid();
        if dropped {
            plan.after.map = Arc::new(ledger.map.resized(&cropped, limits)?);
        }
        for (axis, (&before, &now)) in old.iter().zip(&small).enumerate() {
            if now < before {
                // What is left of a base chunk is a chunk of its own, so that no two chunks are parts of the same rows.
                plan.unbase_edge(axis, &small)?;
            }
        }
        if grid != plan.after.map.grid() {
            plan.after.map = Arc::new(plan.after.map.resized(&grid, limits)?);
        }
        plan.pad(&small, shape)?;
        let mut current = small;
        for (axis, &now) in shape.iter().enumerate() {
            let before = current.get(axis).copied().unwrap_or(0);
            if now <= before {
                continue;
            }
            if before % plan.chunk(axis) != 0 {
                plan.unbase_edge(axis, &current)?;
                if axis == 0 {
                    plan.relocate(&current, now)?;
                }
                plan.fill_edge(axis, &current, now);
            }
            if let Some(extent) = current.get_mut(axis) {
                *extent = now;
            }
        }
        plan.after.shape = shape.to_vec();
        if dropped {
            plan.drop_unreferenced();
        }
        Ok(plan)
    }

    fn chunk(&self, axis: usize) -> u64 {
        self.after.chunk.get(axis).copied().unwrap_or(1).max(1)
    }

    /// The chunks that the edge of an array of these extents cuts along an axis: numbers, places and coordinates.
    fn edge(&self, axis: usize, shape: &[u64]) -> Vec<(usize, u32, u64, Coord)> {
        let chunk = self.chunk(axis);
        let Some(&extent) = shape.get(axis).filter(|&&n| n % chunk != 0) else { return Vec::new() };
        let mut grid: Vec<u64> = shape.iter().zip(&self.after.chunk).map(|(&n, &c)| n.div_ceil(c)).collect();
        if let Some(along) = grid.get_mut(axis) {
            *along = 1;
        }
        let count: u64 = grid.iter().product();
        (0..count)
            .map(|n| {
                let mut coord = coord_of(n, &grid);
                if let Some(along) = coord.get_mut(axis) {
                    *along = extent / chunk;
                }
                let at = self.after.map.number(&coord);
                let (slab, offset) = self.after.map.get(at);
                (at, slab, offset, coord)
            })
            .collect()
    }

    /// Copies edge chunks that lie on base slabs to a new slab.
    fn unbase_edge(&mut self, axis: usize, shape: &[u64]) -> Result<()> {
        let mut edge = self.edge(axis, shape);
        edge.retain(|(_, slab, ..)| *slab != 0 && !self.after.is_staged(*slab));
        let copies = move_chunks(&mut self.after, edge, shape)?;
        self.steps.extend(copies);
        Ok(())
    }

    /// Copies slabs that are too narrow, on an axis that grows, to slabs of whole chunks.
    fn pad(&mut self, old: &[u64], new: &[u64]) -> Result<()> {
        let grows = |axis: usize| old.get(axis) < new.get(axis);
        for slab in self.after.bases + 1..self.after.slabs.len() {
            let Some(Some(shape)) = self.after.slabs.get(slab) else { continue };
            let narrow = shape
                .iter()
                .zip(&self.after.chunk)
                .enumerate()
                .skip(1)
                .any(|(axis, (&n, &chunk))| n < chunk && grows(axis));
            if narrow {
                let rows = shape.first().copied().unwrap_or(1);
                let padded = self.after.slab_shape(rows.div_ceil(self.after.height()))?;
                self.steps.push(Step::Pad { slab: slab as u32, shape: padded.clone() });
                self.after.slabs[slab] = Some(padded);
            }
        }
        Ok(())
    }

    /// Moves the last chunks of staged slabs that end within them to a new slab, if they grow to `rows` in all.
    fn relocate(&mut self, shape: &[u64], rows: u64) -> Result<()> {
        let height = self.after.height();
        let mut edge = self.edge(0, shape);
        edge.retain(|(_, slab, offset, coord)| {
            let end = self.after.slabs.get(*slab as usize).and_then(|s| s.as_ref()?.first().copied());
            let first = coord.first().map_or(0, |&c| c * height);
            let high = height.min(rows.saturating_sub(first));
            self.after.is_staged(*slab) && end.is_some_and(|end| offset + high > end)
        });
        let slabs: Vec<(u32, u64)> = edge.iter().map(|(_, slab, offset, _)| (*slab, *offset)).collect();
        let copies = move_chunks(&mut self.after, edge, shape)?;
        self.steps.extend(copies);
        for (slab, rows) in slabs {
            let Some(slot) = self.after.slabs.get_mut(slab as usize) else { continue };
            if rows == 0 {
                *slot = None;
                self.steps.push(Step::Drop { slab });
            } else {
                if let Some(first) = slot.as_mut().and_then(|s| s.first_mut()) {
                    *first = rows;
                }
                self.steps.push(Step::Cut { slab, rows });
            }
        }
        Ok(())
    }

    /// Fills what edge chunks gain along an axis that grows to `now`.
    fn fill_edge(&mut self, axis: usize, shape: &[u64], now: u64) {
        let chunk = self.chunk(axis);
        let mut copies = Vec::new();
        for (_, slab, offset, coord) in self.edge(axis, shape) {
            if slab == 0 {
                continue;
            }
            let mut count = self.after.extent(&coord, shape);
            let mut inside = Coord::from_elem(0, count.len());
            if let (Some(count), Some(inside), Some(&c)) =
                (count.get_mut(axis), inside.get_mut(axis), coord.get(axis))
            {
                *inside = *count;
                *count = chunk.min(now - c * chunk) - *inside;
            }
            let mut to_at = inside.clone();
            if let Some(first) = to_at.first_mut() {
                *first += offset;
            }
            copies.push(BoxCopy { from: 0, from_at: inside, to: slab, to_at, count });
        }
        copies.sort_by_key(|c| c.to);
        if !copies.is_empty() {
            self.steps.push(Step::Copy(copies));
        }
    }

    fn drop_unreferenced(&mut self) {
        let seen = self.after.referenced();
        for slab in self.after.bases + 1..self.after.slabs.len() {
            if let (Some(slot @ Some(_)), Some(false)) = (self.after.slabs.get_mut(slab), seen.get(slab)) {
                *slot = None;
                self.steps.push(Step::Drop { slab: slab as u32 });
            }
        }
    }
}

/// Moves chunks, with what of them lies within `shape`, to a new slab.
fn move_chunks(
    ledger: &mut Ledger,
    mut chunks: Vec<(usize, u32, u64, Coord)>,
    shape: &[u64],
) -> Result<Vec<Step>> {
    if chunks.is_empty() {
        return Ok(Vec::new());
    }
    chunks.sort_by_key(|&(_, slab, offset, _)| (slab, offset));
    let new = ledger.next_slab()?;
    let slab_shape = ledger.slab_shape(chunks.len() as u64)?;
    let mut copies = Vec::with_capacity(chunks.len());
    let mut edits = Vec::with_capacity(chunks.len());
    for (i, (at, slab, offset, coord)) in chunks.into_iter().enumerate() {
        let to = i as u64 * ledger.height();
        copies.push(BoxCopy {
            from: slab,
            from_at: ledger.start(offset),
            to: new,
            to_at: ledger.start(to),
            count: ledger.extent(&coord, shape),
        });
        edits.push(Edit { at, slab: new, offset: to });
    }
    let map: &mut ChunkMap = Arc::make_mut(&mut ledger.map);
    edits.into_iter().for_each(|edit| map.set(edit));
    ledger.slabs.push(Some(slab_shape.clone()));
    Ok(vec![Step::Append { slab: new, shape: slab_shape }, Step::Copy(copies)])
}

impl LoadPlan {
    pub(super) fn new(ledger: &Ledger) -> Result<LoadPlan> {
        let mut after = ledger.clone();
        let on_base = |at: &usize| {
            let (slab, _) = ledger.map.get(*at);
            slab != 0 && !ledger.is_staged(slab)
        };
        let chunks: Vec<_> = (0..ledger.map.len())
            .filter(on_base)
            .map(|at| {
                let (slab, offset) = ledger.map.get(at);
                (at, slab, offset, ledger.map.coord(at))
            })
            .collect();
        let steps = move_chunks(&mut after, chunks, &ledger.shape)?;
        Ok(LoadPlan { steps, after })
    }
}

impl StagedArray {
    /// What a change to these extents would do.
    pub fn resize_plan(&self, shape: &[u64]) -> Result<ResizePlan> {
        ResizePlan::new(&self.ledger, shape, &self.limits)
    }

    /// Changes the extents. New elements have the fill value. After an error the array is as it was.
    pub fn resize(&mut self, shape: &[u64]) -> Result<()> {
        self.check_writeable()?;
        let ResizePlan { steps, after } = self.resize_plan(shape)?;
        self.carry_out(steps, after)
    }

    /// What bringing all base chunks into memory would do.
    pub fn load_plan(&self) -> Result<LoadPlan> {
        LoadPlan::new(&self.ledger)
    }

    /// Brings all chunks that lie on base slabs into memory. The base slabs stay in the list.
    pub fn load(&mut self) -> Result<()> {
        let LoadPlan { steps, after } = self.load_plan()?;
        if !steps.is_empty() {
            self.check_writeable()?;
        }
        self.carry_out(steps, after)
    }

    /// Does the steps of a plan: first what can fail (memory, and everything read from base slabs), then the rest.
    fn carry_out(&mut self, mut steps: Vec<Step>, after: Ledger) -> Result<()> {
        let mut new: BTreeMap<u32, Cells> = BTreeMap::new();
        let mut writes = Vec::new();
        for step in &mut steps {
            match step {
                Step::Append { slab, shape } | Step::Pad { slab, shape } => {
                    new.insert(*slab, Cells::new(self.kind, element_count(shape)?, self.limits.output)?);
                }
                Step::Copy(copies) => {
                    let (base, rest): (Vec<_>, Vec<_>) = std::mem::take(copies)
                        .into_iter()
                        .partition(|c| c.from != 0 && !self.ledger.is_staged(c.from));
                    for group in base.chunk_by(|a, b| a.to == b.to) {
                        let Some(to) = group.first().map(|c| c.to) else { continue };
                        let shape = after.slabs.get(to as usize).and_then(|s| s.as_ref());
                        if let (Some(cells), Some(shape)) = (new.get_mut(&to), shape) {
                            self.gather(group, cells, shape)?;
                        }
                    }
                    writes.extend(rest.iter().map(|c| c.to));
                    *copies = rest;
                }
                Step::Cut { .. } | Step::Drop { .. } => {}
            }
        }
        // Slabs that are written where they are become this array's own, of its own type.
        for slab in writes.into_iter().filter(|slab| !new.contains_key(slab)) {
            self.own_slab(slab)?;
        }
        for step in &steps {
            if let Step::Pad { slab, .. } = step
                && let Slab::Memory(memory) = self.slab(*slab)?
            {
                self.buffer(memory.buffer)?.cells()?;
            }
        }
        // From here on nothing fails.
        for step in steps {
            match step {
                Step::Append { slab, shape } => {
                    if let Some(cells) = new.remove(&slab) {
                        self.push_memory(cells, &shape)?;
                    }
                }
                Step::Copy(copies) => self.copy_boxes(&copies)?,
                Step::Pad { slab, shape } => {
                    if let Some(cells) = new.remove(&slab) {
                        self.pad_slab(slab, cells, &shape)?;
                    }
                }
                // The memory stays as it is; only the ledger says that there is less.
                Step::Cut { slab, .. } => self.forget_hashes(slab),
                Step::Drop { slab } => {
                    if let Some(slot) = self.slabs.get_mut(slab as usize) {
                        *slot = None;
                    }
                    self.forget_hashes(slab);
                }
            }
        }
        if after.shape != self.ledger.shape {
            // Chunks that the edge cuts are others now, even where nothing was written.
            for slab in self.ledger.bases as u32 + 1..self.slabs.len() as u32 {
                self.forget_hashes(slab);
            }
        }
        self.ledger = after;
        self.reclaim();
        Ok(())
    }

    /// Replaces a slab by a copy in `cells`, of whole chunks.
    fn pad_slab(&mut self, slab: u32, mut cells: Cells, shape: &[u64]) -> Result<()> {
        let Slab::Memory(from) = self.slab(slab)?.clone() else { return Ok(()) };
        let extents = self.ledger.slabs.get(to_usize(slab.into())?).cloned().flatten().unwrap_or_default();
        let to = memory(self.buffers.len(), shape)?;
        let loops = super::transfer::box_loops(
            &extents,
            &super::selected::signed(&from.strides),
            &super::selected::signed(&to.strides),
        );
        let source = self.buffer(from.buffer)?.cells()?;
        super::cells::copy(source.view(), from.start, &mut cells.view_mut(), 0, &loops)?;
        self.buffers.push(Some(Buffer::new(cells)));
        if let Some(slot) = self.slabs.get_mut(slab as usize) {
            *slot = Some(Slab::Memory(to));
        }
        self.forget_hashes(slab);
        Ok(())
    }
}
