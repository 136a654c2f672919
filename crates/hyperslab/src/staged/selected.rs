//! The chunks that a selection touches, where they lie, and how the selection falls into each.

use super::cells::{Loop, Steps};
use super::ledger::Ledger;
use super::plan::{Pair, Span};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::select::{ChunkPart, Piece, Projection, Region, Selector};
use crate::shape::to_usize;
use smallvec::SmallVec;

/// A region on the grid of chunks, and where in the result or value it goes: the steps from the user's index to indices
/// of chunks and of points in a chunk.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    pub(super) region: Region,
    pub(super) projection: Projection,
    chunk: Vec<u64>,
    /// Of each selector of points: positions in the result, in the order of the projection.
    positions: Vec<Vec<usize>>,
}

/// What one selector picks: of the axes of a chunk, and of an axis of the result.
type AxisPair = (Vec<(usize, Span)>, Span);

/// One touched chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number in the projection.
    pub(super) number: u64,
    /// Its number in the map.
    pub(super) at: usize,
    pub(super) slab: u32,
    pub(super) offset: u64,
    /// Whether all of it is selected.
    pub(super) whole: bool,
}

/// How a selection falls into one chunk: loops from the box of the result to the chunk.
#[derive(Debug)]
pub(super) struct Lanes<'a> {
    /// Elements into the box and into the chunk.
    pub(super) box_at: usize,
    pub(super) chunk_at: usize,
    /// From the box to the chunk.
    pub(super) loops: SmallVec<[Loop<'a>; 4]>,
}

impl<'a> Lanes<'a> {
    /// Loops from the chunk to the box.
    pub(super) fn flipped(&self) -> SmallVec<[Loop<'a>; 4]> {
        self.loops.iter().map(|l| Loop { count: l.count, from: l.to, to: l.from }).collect()
    }
}

impl Selected {
    pub(super) fn new(region: Region, chunk: &[u64]) -> Result<Selected> {
        let projection = Projection::new(&region, chunk)?;
        let positions = positions(&region, &projection)?;
        Ok(Selected { region, projection, chunk: chunk.to_vec(), positions })
    }

    /// The same for chunks whose elements are so many elements apart on each axis.
    pub(super) fn with_strides(&self, strides: &[usize]) -> Result<Selected> {
        let projection = Projection::with_strides(&self.region, &self.chunk, strides)?;
        Ok(Selected { projection, ..self.clone() })
    }

    /// The touched chunks in C order, with what the ledger says of them.
    pub(super) fn entries(&self, ledger: &Ledger, limits: &Limits) -> Result<Vec<Entry>> {
        let bytes = u128::from(self.projection.len()) * size_of::<Entry>() as u128;
        if bytes > u128::from(limits.plan) {
            return Err(Error::limit("bytes for the plan of a selection", bytes, limits.plan.into())
                .hint("select less, or raise Limits::plan"));
        }
        let mut entries = Vec::with_capacity(to_usize(self.projection.len())?);
        for number in 0..self.projection.len() {
            let Some(part) = self.projection.get(number) else { break };
            let at = ledger.map.number(&part.coord);
            let (slab, offset) = ledger.map.get(at);
            let extent = ledger.extent(&part.coord, &ledger.shape);
            let whole = self.is_whole(&part, &extent);
            entries.push(Entry { number, at, slab, offset, whole });
        }
        Ok(entries)
    }

    /// Whether every element of a chunk that lies within the array is selected.
    fn is_whole(&self, part: &ChunkPart<'_>, extent: &[u64]) -> bool {
        part.pieces.iter().zip(self.region.selectors()).all(|(piece, selector)| {
            let all: u64 =
                selector.axes().iter().map(|&axis| extent.get(axis).copied().unwrap_or(0)).product();
            let distinct = match piece {
                Piece::Even { count, .. } => *count,
                Piece::Listed { inside, .. } => {
                    inside.len() - inside.windows(2).filter(|w| matches!(w, [a, b] if a == b)).count()
                }
            };
            distinct as u64 == all
        })
    }

    /// How the selection falls into a chunk, the box of the result being laid out with these strides in elements.
    pub(super) fn lanes<'a>(&'a self, part: &ChunkPart<'a>, strides: &[isize]) -> Result<Lanes<'a>> {
        let mut lanes = Lanes { box_at: 0, chunk_at: 0, loops: SmallVec::new() };
        let mut box_at = 0i128;
        for (i, (piece, selector)) in part.pieces.iter().zip(self.region.selectors()).enumerate() {
            let stride = strides.get(i).copied().unwrap_or(0);
            let (first, count) = (piece.first(), piece.count());
            let from = match selector {
                Selector::Range { out_start, out_step, .. } => {
                    let start = *out_start as i128 + first as i128 * *out_step as i128;
                    box_at += start * stride as i128;
                    Steps::Even((*out_step as isize).wrapping_mul(stride))
                }
                Selector::Points { .. } => {
                    let list = self.positions.get(i).and_then(|p| p.get(first..first + count));
                    Steps::Listed(list.unwrap_or(&[]), stride)
                }
            };
            let to = match *piece {
                Piece::Even { start, step, .. } => {
                    lanes.chunk_at += start;
                    Steps::Even(step as isize)
                }
                Piece::Listed { inside, .. } => Steps::Listed(inside, 1),
            };
            lanes.loops.push(Loop { count, from, to });
        }
        lanes.box_at = usize::try_from(box_at)
            .map_err(|_| Error::invalid("a selection starts outside of its result"))?;
        Ok(lanes)
    }

    /// The part of the region that lies in one chunk, of an array in which that chunk is `coord` of a grid over
    /// `dims`; with a result of its own.
    pub(super) fn within(&self, part: &ChunkPart<'_>, coord: &[u64], dims: &[u64]) -> Result<Region> {
        // Index in the other array, given one in this.
        let moved = |axis: usize, index: u64| {
            let get = |list: &[u64]| list.get(axis).copied().unwrap_or(0);
            let chunk = get(&self.chunk);
            index
                .checked_sub(get(&part.coord).saturating_mul(chunk))
                .and_then(|inside| get(coord).checked_mul(chunk)?.checked_add(inside))
                .ok_or_else(|| Error::invalid("a part of a selection lies outside of its chunk"))
        };
        let mut selectors = Vec::with_capacity(part.pieces.len());
        for (i, (piece, selector)) in part.pieces.iter().zip(self.region.selectors()).enumerate() {
            let (first, count) = (piece.first(), piece.count());
            selectors.push(match selector {
                Selector::Range { axis, start, step, .. } => {
                    let start = start.saturating_add(step.saturating_mul(first as u64));
                    Selector::range(*axis, moved(*axis, start)?, *step, count as u64)
                }
                Selector::Points { axes, points, .. } => {
                    let order = self.projection.order(i).and_then(|o| o.get(first..first + count));
                    let mut own = Vec::with_capacity(count * axes.len());
                    for &item in order.unwrap_or(&[]) {
                        for (j, &axis) in axes.iter().enumerate() {
                            own.push(moved(axis, points.get(item * axes.len() + j).copied().unwrap_or(0))?);
                        }
                    }
                    Selector::Points { axes: axes.clone(), points: own, out: (0..count as u64).collect() }
                }
            });
        }
        let extents: Vec<u64> = selectors.iter().map(Selector::len).collect();
        Region::new(dims.to_vec(), selectors, extents.clone(), extents)
    }

    /// The slice pairs of one chunk: what of the slab at `offset`, and what of the result.
    pub(super) fn pairs(&self, number: u64, offset: u64) -> Vec<Pair> {
        let Some(part) = self.projection.get(number) else { return Vec::new() };
        // One list of one-dimensional pairs for each selector.
        let lists: Vec<Vec<AxisPair>> =
            part.pieces.iter().enumerate().map(|(i, piece)| self.spans(i, piece)).collect();
        let mut pairs = Vec::new();
        let mut at = vec![0usize; lists.len()];
        if lists.iter().any(Vec::is_empty) {
            return pairs;
        }
        loop {
            let mut slab = vec![Span { start: 0, count: 1, step: 1 }; self.chunk.len().max(1)];
            let mut other = Vec::with_capacity(lists.len());
            for (list, &choice) in lists.iter().zip(&at) {
                let Some((axes, result)) = list.get(choice) else { continue };
                for (axis, span) in axes {
                    if let Some(slot) = slab.get_mut(*axis) {
                        *slot = *span;
                    }
                }
                other.push(*result);
            }
            if let Some(first) = slab.first_mut() {
                first.start = first.start.saturating_add(offset);
            }
            pairs.push(Pair { slab, other });
            let mut axis = at.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return pairs };
                axis = next;
                at[axis] += 1;
                if at[axis] < lists[axis].len() {
                    break;
                }
                at[axis] = 0;
            }
        }
    }

    /// The one-dimensional pairs of one selector in one chunk: its axes in the chunk, and the axis of the result.
    fn spans(&self, i: usize, piece: &Piece<'_>) -> Vec<AxisPair> {
        let Some(selector) = self.region.selectors().get(i) else { return Vec::new() };
        let (first, count) = (piece.first() as u64, piece.count() as u64);
        let chunk = |axis: usize| self.chunk.get(axis).copied().unwrap_or(1).max(1);
        match selector {
            Selector::Range { axis, start, step, out_start, out_step, .. } => {
                let inside = start.saturating_add(first.saturating_mul(*step)) % chunk(*axis);
                let out = (*out_start as i64).saturating_add((first as i64).saturating_mul(*out_step));
                let slab = Span { start: inside, count, step: *step as i64 };
                vec![(vec![(*axis, slab)], Span { start: out.max(0) as u64, count, step: *out_step })]
            }
            Selector::Points { axes, points, .. } => {
                let order = self.projection.order(i).unwrap_or(&[]);
                let items = first as usize..(first + count) as usize;
                let positions = self.positions.get(i).map_or(&[][..], Vec::as_slice);
                let single = |item: usize| -> (Vec<u64>, u64) {
                    let from = order.get(item).copied().unwrap_or(0) * axes.len();
                    let inside = axes.iter().zip(points.get(from..).unwrap_or(&[]));
                    let position = positions.get(item).copied().unwrap_or(0) as u64;
                    (inside.map(|(&axis, &p)| p % chunk(axis)).collect(), position)
                };
                let mut out: Vec<AxisPair> = Vec::new();
                for item in items {
                    let (inside, position) = single(item);
                    if let Some((last, result)) = out.last_mut()
                        && let ([(_, run)], [next]) = (last.as_mut_slice(), inside.as_slice())
                        && run.extend(*next, result, position)
                    {
                        continue;
                    }
                    let one = |start| Span { start, count: 1, step: 1 };
                    let slab = axes.iter().copied().zip(inside.into_iter().map(one)).collect();
                    out.push((slab, one(position)));
                }
                out
            }
        }
    }
}

impl Span {
    /// Takes one more point of slab and result into a run, if it continues both.
    fn extend(&mut self, next: u64, result: &mut Span, position: u64) -> bool {
        let step = |run: &Span, next: u64| {
            let last = run.start as i64 + run.step * (run.count as i64 - 1);
            next as i64 - last
        };
        let (slab_step, result_step) = (step(self, next), step(result, position));
        let fits = slab_step > 0
            && result_step > 0
            && (self.count == 1 || (slab_step == self.step && result_step == result.step));
        if fits {
            (self.step, result.step) = (slab_step, result_step);
            self.count += 1;
            result.count += 1;
        }
        fits
    }
}

fn positions(region: &Region, projection: &Projection) -> Result<Vec<Vec<usize>>> {
    let of = |(i, selector): (usize, &Selector)| match selector {
        Selector::Range { .. } => Ok(Vec::new()),
        Selector::Points { out, .. } => {
            let order = projection.order(i).unwrap_or(&[]);
            order.iter().map(|&item| to_usize(out.get(item).copied().unwrap_or(u64::MAX))).collect()
        }
    };
    region.selectors().iter().enumerate().map(of).collect()
}

/// Distances of neighbours in a box in C order, in elements.
pub(super) fn strides(extents: &[u64]) -> Result<SmallVec<[usize; 4]>> {
    let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, extents.len());
    let mut stride = 1u64;
    for (slot, &n) in strides.iter_mut().zip(extents).rev() {
        *slot = to_usize(stride)?;
        stride = stride
            .checked_mul(n.max(1))
            .ok_or_else(|| Error::limit("elements of a slab", u128::from(stride) * u128::from(n), 1 << 63))?;
    }
    Ok(strides)
}

/// The same with a sign.
pub(super) fn signed(strides: &[usize]) -> SmallVec<[isize; 4]> {
    strides.iter().map(|&s| isize::try_from(s).unwrap_or(isize::MAX)).collect()
}
