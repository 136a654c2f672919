//! Assignments.

use super::StagedArray;
use super::cells::{Cells, View, copy};
use super::ledger::{Edit, Ledger};
use super::plan::{BoxCopy, SetItemPlan, by_slab};
use super::selected::{Entry, Selected, signed, strides};
use super::slab::Slab;
use super::values::Values;
use crate::error::{Context, Error, Result};
use crate::exec;
use crate::limits::Limits;
use crate::select::{IntoSelection, Region};
use crate::shape::element_count;
use smallvec::SmallVec;

impl SetItemPlan {
    /// Decides what an assignment to a region does.
    pub(super) fn new(ledger: &Ledger, region: Region, limits: &Limits) -> Result<SetItemPlan> {
        let selected = Selected::new(region, &ledger.chunk)?;
        let mut entries = selected.entries(ledger, limits)?;
        entries.sort_by_key(|e| (e.slab, e.offset));
        let staged = entries.partition_point(|e| !ledger.is_staged(e.slab));
        let in_place = entries.split_off(staged);
        let mut plan = SetItemPlan {
            selected,
            before: ledger.map.clone(),
            appended: Vec::new(),
            copies: Vec::new(),
            updates: Vec::with_capacity(entries.len() + in_place.len()),
            edits: Vec::with_capacity(entries.len()),
        };
        let (whole, partial): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|e| e.whole);
        let mut next = ledger.next_slab()?;
        // Their place in the order of the plan comes later: after the chunks that are covered wholly.
        let mut moved = Vec::with_capacity(partial.len());
        for (chunks, wholly) in [(partial, false), (whole, true)] {
            if chunks.is_empty() {
                continue;
            }
            plan.appended.push((next, ledger.slab_shape(chunks.len() as u64)?));
            for (i, e) in chunks.into_iter().enumerate() {
                let offset = i as u64 * ledger.height();
                if !wholly {
                    plan.copies.push(BoxCopy {
                        from: e.slab,
                        from_at: ledger.start(e.offset),
                        to: next,
                        to_at: ledger.start(offset),
                        count: ledger.extent(&ledger.map.coord(e.at), &ledger.shape),
                    });
                }
                plan.edits.push(Edit { at: e.at, slab: next, offset });
                let entry = Entry { slab: next, offset, ..e };
                if wholly { plan.updates.push(entry) } else { moved.push(entry) }
            }
            next = next.checked_add(1).ok_or_else(|| Error::limit("slabs", 1 << 32, 1 << 32))?;
        }
        // Grouped by slab: the new slab of whole chunks, then staged slabs in their order, then the other new one.
        plan.updates.extend(in_place);
        plan.updates.extend(moved);
        Ok(plan)
    }
}

impl StagedArray {
    /// What an assignment to this selection would do.
    pub fn set_plan(&self, selection: impl IntoSelection) -> Result<SetItemPlan> {
        SetItemPlan::new(&self.ledger, self.resolve(selection)?, &self.limits)
    }

    /// Assigns values, broadcast by NumPy's rules. Numbers are converted, and what stands behind the point is cut off where
    /// the array is of integers; a number that these cannot hold, NaN too, is an error, as for a number in NumPy 2. Where an element is selected more than once, the last value stays. After an error the array is as it was.
    pub fn set<'v>(&mut self, selection: impl IntoSelection, values: impl Into<Values<'v>>) -> Result<()> {
        self.check_writeable()?;
        let region = self.resolve(selection)?;
        let values = values.into();
        let converted = values.cells(&self.dtype).context(|| "values of an assignment")?;
        let expanded;
        let (steps, view) = match broadcast(values.shape(), &region)? {
            Some(steps) => (steps, converted.view()),
            None => {
                expanded = self.expand(converted.view(), values.shape(), region.shape())?;
                (signed(&strides(region.extents())?), expanded.view())
            }
        };
        let plan = SetItemPlan::new(&self.ledger, region, &self.limits)?;
        self.carry_out_set(plan, &steps, view)
    }

    fn carry_out_set(&mut self, plan: SetItemPlan, steps: &[isize], values: View<'_>) -> Result<()> {
        // Everything that can fail.
        let mut new: Vec<Cells> = Vec::with_capacity(plan.appended.len());
        for (slab, shape) in &plan.appended {
            let mut cells = Cells::new(self.kind, element_count(shape)?, self.limits.output)?;
            if plan.copies.first().is_some_and(|c| c.to == *slab) {
                self.gather(&plan.copies, &mut cells, shape)?;
            }
            new.push(cells);
        }
        let there = self.slabs.len();
        for (slab, _) in by_slab(&plan.updates).filter(|(slab, _)| (*slab as usize) < there) {
            self.own_slab(slab)?;
        }
        // From here on nothing fails.
        for ((_, shape), cells) in plan.appended.into_iter().zip(new) {
            self.push_memory(cells, &shape)?;
            self.ledger.slabs.push(Some(shape));
        }
        let SetItemPlan { selected, before, updates, edits, .. } = plan;
        drop(before);
        if !edits.is_empty() {
            let map = std::sync::Arc::make_mut(&mut self.ledger.map);
            edits.into_iter().for_each(|edit| map.set(edit));
        }
        for (slab, group) in by_slab(&updates) {
            self.update(&selected, slab, group, steps, values)?;
        }
        Ok(())
    }

    /// Copies values to chunks of one staged slab.
    fn update(
        &mut self,
        selected: &Selected,
        slab: u32,
        group: &[Entry],
        steps: &[isize],
        values: View<'_>,
    ) -> Result<()> {
        self.forget_hashes(slab);
        let Slab::Memory(memory) = self.slab(slab)?.clone() else {
            return Err(Error::invalid("a plan writes to an array of a file"));
        };
        let missing = || Error::invalid("a plan names a chunk outside of it");
        let steps_on_slab = memory.steps(self.ledger.chunk.len());
        if memory.start != 0 || *steps_on_slab != strides(&self.ledger.chunk)?[..] {
            let selected = selected.with_strides(steps_on_slab)?;
            for e in group {
                let at = memory.place(&self.ledger.start(e.offset))?;
                let part = selected.projection.get(e.number).ok_or_else(missing)?;
                let lanes = selected.lanes(&part, steps)?;
                let mut target = self.own(memory.buffer)?.view_mut();
                copy(values, lanes.box_at, &mut target, at.saturating_add(lanes.chunk_at), &lanes.loops)?;
            }
            return Ok(());
        }
        let mut cells = std::mem::replace(self.own(memory.buffer)?, Cells::Objects(Vec::new()));
        let done = self.tiles(group.iter().map(|e| Some(e.offset)), cells.view_mut()).and_then(
            |(tiles, elements)| {
                let work: Vec<_> = tiles.into_iter().zip(group).collect();
                exec::each(self.threads(elements), work, |(mut tile, e)| {
                    let part = selected.projection.get(e.number).ok_or_else(missing)?;
                    let lanes = selected.lanes(&part, steps)?;
                    copy(values, lanes.box_at, &mut tile, lanes.chunk_at, &lanes.loops)
                })
            },
        );
        *self.own(memory.buffer)? = cells;
        done
    }

    /// Values repeated as broadcasting says, in C order of `shape`.
    fn expand(&self, values: View<'_>, from: &[u64], shape: &[u64]) -> Result<Cells> {
        let mut cells = Cells::new(self.kind, element_count(shape)?, self.limits.output)?;
        let own = strides(from)?;
        let extra = from.len().saturating_sub(shape.len());
        let missing = shape.len().saturating_sub(from.len());
        let steps: Vec<isize> = (0..shape.len())
            .map(|axis| match axis.checked_sub(missing).map(|i| i + extra) {
                Some(i) if from.get(i).is_some_and(|&n| n != 1) => own.get(i).map_or(0, |&s| s as isize),
                _ => 0,
            })
            .collect();
        let to = signed(&strides(shape)?);
        let loops = super::transfer::box_loops(shape, &steps, &to);
        copy(values, 0, &mut cells.view_mut(), 0, &loops)?;
        Ok(cells)
    }
}

/// Steps in the values for each axis of the region's box; `None` if no steps do it and the values have to be expanded.
/// Fails where shapes do not fit.
fn broadcast(values: &[u64], region: &Region) -> Result<Option<SmallVec<[isize; 4]>>> {
    let (shape, extents) = (region.shape(), region.extents());
    // Axes of extent 1 in front may be too many.
    let extra = values.len().saturating_sub(shape.len());
    let (front, own) = values.split_at(extra);
    let tail = shape.get(shape.len() - own.len()..).unwrap_or(&[]);
    if front.iter().any(|&n| n != 1) || own.iter().zip(tail).any(|(&n, &wanted)| n != 1 && n != wanted) {
        return Err(Error::invalid(format!("values of shape {values:?} for a selection of shape {shape:?}")));
    }
    let count = element_count(values)?;
    if count == 1 {
        return Ok(Some(SmallVec::from_elem(0, extents.len())));
    }
    if count == element_count(shape)? {
        return Ok(Some(signed(&strides(extents)?)));
    }
    // The same axes once those of extent 1 are gone.
    let own_strides = strides(own)?;
    let offset = shape.len() - own.len();
    let long: Vec<usize> = (0..shape.len()).filter(|&i| shape.get(i) != Some(&1)).collect();
    let boxed: Vec<u64> = extents.iter().copied().filter(|&n| n != 1).collect();
    if long.iter().filter_map(|&i| shape.get(i)).ne(&boxed) {
        return Ok(None);
    }
    let mut axes = long.into_iter();
    let step = |&n: &u64| {
        if n == 1 {
            return 0;
        }
        let axis = axes.next().and_then(|i| i.checked_sub(offset));
        axis.filter(|&i| own.get(i).is_some_and(|&n| n != 1))
            .and_then(|i| own_strides.get(i))
            .map_or(0, |&s| isize::try_from(s).unwrap_or(isize::MAX))
    };
    Ok(Some(extents.iter().map(step).collect()))
}
