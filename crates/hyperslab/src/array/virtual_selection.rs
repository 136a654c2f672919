//! The elements of a stored selection, numbered in C order: which number has the element at these coordinates, and where
//! is the element with this number. The two selections of a virtual mapping correspond by these numbers.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Hyperslab, SpaceSelection};
use crate::shape::{Coord, element_count};

/// The indices that a regular selection picks on one axis, numbered from 0: blocks of `block` indices, `stride` apart.
/// The last block may be cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) start: u64,
    /// At least `block`.
    pub(super) stride: u64,
    /// At least 1.
    pub(super) block: u64,
    /// Number of indices.
    pub(super) len: u64,
}

impl Blocks {
    /// `len` indices in a row.
    pub(super) fn run(start: u64, len: u64) -> Self {
        Blocks { start, stride: len.max(1), block: len.max(1), len }
    }

    /// One axis of a hyperslab. `len` is the number of indices of an unlimited axis.
    fn of(slab: &Hyperslab, axis: usize, len: Option<u64>) -> Result<Self> {
        let part = |v: &[u64]| v.get(axis).copied().unwrap_or(1);
        let start = slab.start.get(axis).copied().unwrap_or(0);
        let stride = part(&slab.stride);
        let count = slab.count.get(axis).copied().flatten();
        let block = slab.block.get(axis).copied().flatten();
        let wrong = |text: String| Err(Error::new(ErrorKind::Corrupt, text));
        let blocks = match (count, block) {
            (Some(count), Some(block)) => {
                let len = count.checked_mul(block).ok_or_else(|| too_large(slab))?;
                Blocks { start, stride, block, len }
            }
            (_, block) => {
                let Some(len) = len else { return wrong(format!("axis {axis} of a selection is unlimited")) };
                // An unlimited block goes on for ever, so that there is only one.
                Blocks { start, stride, block: block.unwrap_or(len), len }
            }
        };
        if blocks.len == 0 {
            return Ok(Blocks { start, stride: 1, block: 1, len: 0 });
        }
        if blocks.block == 0 || blocks.len > blocks.block && blocks.stride < blocks.block {
            return wrong(format!("blocks of {} indices, {} apart", blocks.block, blocks.stride));
        }
        let stride = if blocks.len <= blocks.block { blocks.block } else { blocks.stride };
        let blocks = Blocks { stride, ..blocks };
        match blocks.last() {
            Some(_) => Ok(blocks),
            None => Err(too_large(slab)),
        }
    }

    /// Index number `i`, which must be less than `len`.
    pub(super) fn at(&self, i: u64) -> u64 {
        self.start + i / self.block * self.stride + i % self.block
    }

    fn last(&self) -> Option<u64> {
        let i = self.len.checked_sub(1)?;
        self.start.checked_add((i / self.block).checked_mul(self.stride)?)?.checked_add(i % self.block)
    }

    /// The smallest index, and the one behind the largest; equal if there are none.
    pub(super) fn bounds(&self) -> (u64, u64) {
        (self.start, self.last().map_or(self.start, |last| last.saturating_add(1)))
    }

    /// The number of an index.
    pub(super) fn number(&self, index: u64) -> Option<u64> {
        let behind = index.checked_sub(self.start)?;
        let (block, within) = (behind / self.stride, behind % self.stride);
        if within >= self.block {
            return None;
        }
        Some(block.checked_mul(self.block)?.checked_add(within)?).filter(|&i| i < self.len)
    }

    /// First index and distance, if the indices are evenly spaced.
    pub(super) fn even(&self) -> Option<(u64, u64)> {
        if self.len <= self.block || self.stride == self.block {
            Some((self.start, 1))
        } else if self.block == 1 {
            Some((self.start, self.stride))
        } else {
            None
        }
    }
}

fn too_large(slab: &Hyperslab) -> Error {
    Error::new(ErrorKind::LimitExceeded, format!("the selection {slab:?} reaches beyond 2^64"))
}

/// The unlimited axis of a selection, if it has one.
pub(super) fn unlimited_axis(selection: &SpaceSelection) -> Option<usize> {
    match selection {
        SpaceSelection::Regular(slab) => {
            slab.count.iter().zip(&slab.block).position(|(count, block)| count.is_none() || block.is_none())
        }
        _ => None,
    }
}

/// How many indices an unlimited selection has on its axis below the extent `extent`.
pub(super) fn indices_below(selection: &SpaceSelection, axis: usize, extent: u64) -> u64 {
    let SpaceSelection::Regular(slab) = selection else { return 0 };
    let (start, stride, block) = axis_of(slab, axis);
    let Some(room) = extent.checked_sub(start).filter(|&room| room > 0) else { return 0 };
    match block {
        Some(block) if block < stride => {
            let whole = (room - 1) / stride;
            whole.saturating_mul(block).saturating_add((room - whole * stride).min(block))
        }
        _ => room,
    }
}

/// The extent that an unlimited selection needs for `len` indices on its axis.
pub(super) fn extent_for(selection: &SpaceSelection, axis: usize, len: u64) -> u64 {
    let SpaceSelection::Regular(slab) = selection else { return 0 };
    let (start, stride, block) = axis_of(slab, axis);
    let Some(last) = len.checked_sub(1) else { return 0 };
    let end = match block {
        Some(block) if block < stride && block > 0 => {
            (last / block).saturating_mul(stride).saturating_add(last % block)
        }
        _ => last,
    };
    start.saturating_add(end).saturating_add(1)
}

fn axis_of(slab: &Hyperslab, axis: usize) -> (u64, u64, Option<u64>) {
    let part = |v: &[u64], other| v.get(axis).copied().unwrap_or(other);
    (part(&slab.start, 0), part(&slab.stride, 1).max(1), slab.block.get(axis).copied().flatten())
}

/// Block `number` of an unlimited selection of blocks, as a selection of its own.
pub(super) fn block_of(selection: &SpaceSelection, axis: usize, number: u64) -> Option<SpaceSelection> {
    let SpaceSelection::Regular(slab) = selection else { return None };
    let mut slab = slab.clone();
    let step = slab.stride.get(axis)?.checked_mul(number)?;
    let start = slab.start.get_mut(axis)?;
    *start = start.checked_add(step)?;
    *slab.count.get_mut(axis)? = Some(1);
    slab.block.get(axis).copied().flatten()?;
    Some(SpaceSelection::Regular(slab))
}

/// A run of elements along the last axis.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    /// All coordinates but the last.
    row: Coord,
    start: u64,
    end: u64,
    /// Elements in the runs before it.
    before: u64,
}

/// The elements of a selection.
#[derive(Clone, Debug)]
pub(super) enum Elements {
    /// Those of all axes, crossed.
    Regular(Vec<Blocks>),
    /// Single ones; the order is that of their coordinates, for lookups.
    Points { points: Vec<Coord>, order: Vec<usize> },
    /// Those of a union of blocks.
    Runs { runs: Box<[(Coord, u64, u64, u64)]>, count: u64 },
}

impl Elements {
    /// The elements of a selection of an array with these extents. `unlimited`: the number of indices on the unlimited
    /// axis; `allowed`: bytes of memory that an irregular selection may need.
    pub(super) fn new(
        selection: &SpaceSelection,
        dims: &[u64],
        unlimited: Option<u64>,
        allowed: u64,
    ) -> Result<Elements> {
        let check_rank = |rank: usize| match rank == dims.len() {
            true => Ok(()),
            false => {
                let text = format!("a selection of rank {rank} in an array of rank {}", dims.len());
                Err(Error::new(ErrorKind::Corrupt, text))
            }
        };
        match selection {
            SpaceSelection::None => Ok(Elements::Points { points: Vec::new(), order: Vec::new() }),
            SpaceSelection::All => Ok(Elements::Regular(dims.iter().map(|&n| Blocks::run(0, n)).collect())),
            SpaceSelection::Regular(slab) => {
                check_rank(slab.start.len())?;
                let axes = (0..slab.start.len()).map(|axis| Blocks::of(slab, axis, unlimited));
                Ok(Elements::Regular(axes.collect::<Result<_>>()?))
            }
            SpaceSelection::Points(points) => {
                points.iter().try_for_each(|p| check_rank(p.len()))?;
                let mut order: Vec<usize> = (0..points.len()).collect();
                order.sort_by(|&a, &b| points.get(a).cmp(&points.get(b)));
                Ok(Elements::Points { points: points.clone(), order })
            }
            SpaceSelection::Blocks(blocks) => {
                blocks.iter().try_for_each(|b| check_rank(b.0.len().max(b.1.len())))?;
                Self::union(blocks, allowed)
            }
        }
    }

    /// The union of blocks, each a pair of inclusive corners.
    fn union(blocks: &[(Coord, Coord)], allowed: u64) -> Result<Elements> {
        let mut runs: Vec<Run> = Vec::new();
        let mut rows = 0u64;
        for (low, high) in blocks {
            let (Some((&start, low_row)), Some((&last, high_row))) = (low.split_last(), high.split_last())
            else {
                continue;
            };
            let extents: Vec<u64> =
                high_row.iter().zip(low_row).map(|(h, l)| h.saturating_sub(*l).saturating_add(1)).collect();
            rows = rows.saturating_add(element_count(&extents)?);
            let memory = u128::from(rows) * size_of::<Run>() as u128;
            if memory > u128::from(allowed) {
                return Err(Error::limit("memory for a selection of blocks", memory, allowed.into()));
            }
            let mut row = Coord::from(low_row);
            loop {
                runs.push(Run { row: row.clone(), start, end: last.saturating_add(1), before: 0 });
                // Like an odometer: the last axis of the row first.
                let next = row.iter_mut().zip(low_row.iter().zip(high_row)).rev();
                let mut carried = true;
                for (at, (&low, &high)) in next {
                    if *at < high {
                        *at += 1;
                        carried = false;
                        break;
                    }
                    *at = low;
                }
                if carried {
                    break;
                }
            }
        }
        runs.sort();
        let mut merged: Vec<(Coord, u64, u64, u64)> = Vec::new();
        for run in runs {
            match merged.last_mut() {
                Some(last) if last.0 == run.row && run.start <= last.2 => last.2 = last.2.max(run.end),
                _ => merged.push((run.row, run.start, run.end, 0)),
            }
        }
        let mut count = 0u64;
        for run in &mut merged {
            run.3 = count;
            count = count.saturating_add(run.2 - run.1);
        }
        Ok(Elements::Runs { runs: merged.into(), count })
    }

    /// Number of elements; `None` if 2^64 or more.
    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Elements::Regular(axes) if axes.iter().any(|a| a.len == 0) => Some(0),
            Elements::Regular(axes) => axes.iter().try_fold(1u64, |n, a| n.checked_mul(a.len)),
            Elements::Points { points, .. } => Some(points.len() as u64),
            Elements::Runs { count, .. } => Some(*count),
        }
    }

    /// The number of the element at these coordinates.
    pub(super) fn number(&self, at: &[u64]) -> Option<u64> {
        match self {
            Elements::Regular(axes) => axes.iter().zip(at).try_fold(0u64, |n, (axis, &index)| {
                n.checked_mul(axis.len)?.checked_add(axis.number(index)?)
            }),
            Elements::Points { points, order } => {
                let found = order.binary_search_by(|&i| points.get(i).map(|p| &p[..]).cmp(&Some(at)));
                found.ok().and_then(|i| order.get(i)).map(|&i| i as u64)
            }
            Elements::Runs { runs, .. } => {
                let (&index, row) = at.split_last()?;
                let behind = runs.partition_point(|r| (&r.0[..], r.1) <= (row, index));
                let run = runs.get(behind.checked_sub(1)?)?;
                (run.0[..] == *row && index < run.2).then(|| run.3 + (index - run.1))
            }
        }
    }

    /// Puts the coordinates of element `number` behind those in `out`; `None` if there is no such element.
    pub(super) fn push(&self, number: u64, out: &mut Vec<u64>) -> Option<()> {
        match self {
            Elements::Regular(axes) => {
                let from = out.len();
                out.extend(axes.iter().map(|_| 0));
                let mut rest = number;
                for (slot, axis) in out.iter_mut().skip(from).zip(axes).rev() {
                    *slot = axis.at(rest.checked_rem(axis.len)?);
                    rest /= axis.len;
                }
                (rest == 0).then_some(())
            }
            Elements::Points { points, .. } => {
                out.extend(points.get(usize::try_from(number).ok()?)?);
                Some(())
            }
            Elements::Runs { runs, count } => {
                let behind = runs.partition_point(|r| r.3 <= number);
                let run = runs.get(behind.checked_sub(1)?).filter(|_| number < *count)?;
                out.extend(&run.0);
                out.push(run.1 + (number - run.3));
                Some(())
            }
        }
    }

    /// The smallest box that holds all elements: first index and the one behind the last on each axis.
    pub(super) fn bounds(&self, rank: usize) -> Vec<(u64, u64)> {
        let cover = |points: &mut dyn Iterator<Item = (usize, u64)>| {
            let mut bounds = vec![(u64::MAX, 0u64); rank];
            for (axis, index) in points {
                if let Some(b) = bounds.get_mut(axis) {
                    *b = (b.0.min(index), b.1.max(index.saturating_add(1)));
                }
            }
            bounds
        };
        match self {
            Elements::Regular(axes) => axes.iter().map(Blocks::bounds).collect(),
            Elements::Points { points, .. } => {
                cover(&mut points.iter().flat_map(|p| p.iter().copied().enumerate()))
            }
            Elements::Runs { runs, .. } => cover(&mut runs.iter().flat_map(|r| {
                let last = rank.saturating_sub(1);
                r.0.iter().copied().enumerate().chain([(last, r.1), (last, r.2 - 1)])
            })),
        }
    }
}
