//! How a region falls on a grid of chunks.
//!
//! Each selector falls into *groups* by the chunk coordinates of its items; a touched chunk is one group of each
//! selector. Groups of ranges are computed, those of points are found by sorting, so that nothing is held for each
//! chunk, and the *n*-th part of a projection is had directly.

use super::region::{Region, Selector};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::{Coord, element_count, to_usize};
use smallvec::SmallVec;

/// The touched chunks of a regular grid, each once, numbered from 0.
#[derive(Clone, Debug)]
pub struct Projection {
    rank: usize,
    cuts: Vec<Cut>,
    len: u64,
}

/// One selector cut by chunks.
#[derive(Clone, Debug)]
enum Cut {
    Range {
        axis: usize,
        start: u64,
        step: u64,
        count: u64,
        chunk: u64,
        /// Distance in elements of neighbours along the axis in a chunk.
        stride: usize,
    },
    Points {
        axes: Vec<usize>,
        /// Chunk coordinates of the groups, those of one group side by side.
        coords: Vec<u64>,
        /// Where the groups begin, and the number of items.
        starts: Vec<usize>,
        /// Of each item in the order of the groups: how many elements into its chunk.
        inside: Vec<usize>,
        /// Of each item in that order: its number in the selector.
        order: Vec<usize>,
    },
}

/// What is wanted of one chunk.
#[derive(Clone, Debug)]
pub struct ChunkPart<'a> {
    /// Coordinates of the chunk in the grid.
    pub coord: Coord,
    /// One piece for each selector.
    pub pieces: SmallVec<[Piece<'a>; 4]>,
}

/// The items of one selector that lie in one chunk.
#[derive(Clone, Debug)]
pub enum Piece<'a> {
    /// Evenly spaced: item `first + i` is `start + i × step` elements into the chunk.
    Even {
        /// Which group of the selector this is.
        group: usize,
        /// First item.
        first: usize,
        /// Number of items.
        count: usize,
        /// Elements into the chunk, of the first item.
        start: usize,
        /// Elements between items.
        step: usize,
    },
    /// Item `first + i`, in the order of [`Projection::order`], is `inside[i]` elements into the chunk.
    Listed {
        /// Which group of the selector this is.
        group: usize,
        /// First item.
        first: usize,
        /// Elements into the chunk, ascending.
        inside: &'a [usize],
    },
}

impl Piece<'_> {
    /// Which group of the selector this is.
    pub fn group(&self) -> usize {
        match self {
            Piece::Even { group, .. } | Piece::Listed { group, .. } => *group,
        }
    }

    /// First item.
    pub fn first(&self) -> usize {
        match self {
            Piece::Even { first, .. } | Piece::Listed { first, .. } => *first,
        }
    }

    /// Number of items.
    pub fn count(&self) -> usize {
        match self {
            Piece::Even { count, .. } => *count,
            Piece::Listed { inside, .. } => inside.len(),
        }
    }

    /// Elements into the chunk of item `first + i`.
    pub fn inside(&self, i: usize) -> usize {
        match self {
            Piece::Even { start, step, .. } => start + i * step,
            Piece::Listed { inside, .. } => inside.get(i).copied().unwrap_or(0),
        }
    }
}

impl ChunkPart<'_> {
    /// Number of elements wanted.
    pub fn count(&self) -> usize {
        self.pieces.iter().map(Piece::count).product()
    }

    /// Elements of the chunk from its first up to the last one that is wanted.
    pub fn extent(&self) -> usize {
        // Listed items ascend too.
        let last = |piece: &Piece<'_>| piece.inside(piece.count().saturating_sub(1));
        self.pieces.iter().map(last).sum::<usize>() + 1
    }
}

impl Projection {
    /// Lays `region` over chunks with these extents, all at least 1.
    pub fn new(region: &Region, chunk: &[u64]) -> Result<Projection> {
        if chunk.len() != region.dims().len() {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("chunks of {} axes in an array of {}", chunk.len(), region.dims().len()),
            ));
        }
        if chunk.contains(&0) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("chunks of extents {chunk:?}, one of them 0"),
            ));
        }
        to_usize(element_count(chunk)?)?;
        let mut strides = vec![1usize; chunk.len()];
        for i in (1..chunk.len()).rev() {
            // No overflow: the product of all extents fits.
            strides[i - 1] = strides[i] * chunk[i] as usize;
        }
        Projection::with_strides(region, chunk, &strides)
    }

    /// The same where the elements of a chunk are `strides` elements apart on each axis, as those of a part of a larger
    /// block of memory.
    pub(crate) fn with_strides(region: &Region, chunk: &[u64], strides: &[usize]) -> Result<Projection> {
        if chunk.len() != region.dims().len() || chunk.contains(&0) || strides.len() != chunk.len() {
            return Err(Error::invalid(format!(
                "chunks {chunk:?} with strides {strides:?} in an array of {} axes",
                region.dims().len()
            )));
        }
        let strides = strides.to_vec();
        let empty = region.count()? == 0;
        let cuts: Vec<Cut> = region.selectors().iter().map(|s| Cut::new(s, chunk, &strides)).collect();
        let len = if empty {
            0
        } else {
            cuts.iter().try_fold(1u64, |n, cut| n.checked_mul(cut.groups())).ok_or_else(|| {
                Error::new(ErrorKind::LimitExceeded, "the selection touches more than 2^64 chunks")
            })?
        };
        Ok(Projection { rank: chunk.len(), cuts, len })
    }

    /// Number of touched chunks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no chunk is touched.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of groups of selector `i`.
    pub fn groups(&self, i: usize) -> u64 {
        self.cuts.get(i).map_or(0, Cut::groups)
    }

    /// Where the groups of selector `i` begin, ascending from 0, and last the number of its items.
    pub fn starts(&self, i: usize) -> Vec<usize> {
        match self.cuts.get(i) {
            Some(Cut::Points { starts, .. }) => starts.clone(),
            Some(cut @ Cut::Range { count, .. }) => {
                (0..cut.groups()).map(|g| cut.items(g).0 as usize).chain([*count as usize]).collect()
            }
            None => vec![0],
        }
    }

    /// The items of selector `i` in the order of its groups; `None`: they are in it already.
    pub fn order(&self, i: usize) -> Option<&[usize]> {
        match self.cuts.get(i) {
            Some(Cut::Points { order, .. }) => Some(order),
            _ => None,
        }
    }

    /// The part with number `n`.
    pub fn get(&self, n: u64) -> Option<ChunkPart<'_>> {
        if n >= self.len {
            return None;
        }
        let mut part = ChunkPart { coord: Coord::from_elem(0, self.rank), pieces: SmallVec::new() };
        let mut rest = n;
        for cut in self.cuts.iter().rev() {
            let groups = cut.groups();
            part.pieces.push(cut.piece(rest % groups, &mut part.coord));
            rest /= groups;
        }
        part.pieces.reverse();
        Some(part)
    }

    /// All parts in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = ChunkPart<'_>> {
        (0..self.len).map_while(|n| self.get(n))
    }
}

impl Cut {
    fn new(selector: &Selector, chunk: &[u64], strides: &[usize]) -> Cut {
        match selector {
            &Selector::Range { axis, start, step, count, .. } => {
                Cut::Range { axis, start, step, count, chunk: chunk[axis], stride: strides[axis] }
            }
            Selector::Points { axes, points, out } => {
                let of = |item: usize| &points[item * axes.len()..(item + 1) * axes.len()];
                let coords = |item: usize| of(item).iter().zip(axes).map(|(&p, &axis)| p / chunk[axis]);
                let inside = |item: usize| -> usize {
                    // Less than the chunk's extents, so it fits.
                    of(item)
                        .iter()
                        .zip(axes)
                        .map(|(&p, &axis)| (p % chunk[axis]) as usize * strides[axis])
                        .sum()
                };
                let mut order: Vec<usize> = (0..out.len()).collect();
                let sorted = |a: usize, b: usize| {
                    coords(a).cmp(coords(b)).then_with(|| inside(a).cmp(&inside(b))).then(a.cmp(&b))
                };
                if !order.is_sorted_by(|&a, &b| sorted(a, b).is_le()) {
                    order.sort_unstable_by(|&a, &b| sorted(a, b));
                }
                let mut starts = vec![0];
                let mut group_coords = Vec::new();
                for (i, &item) in order.iter().enumerate() {
                    let same = i > 0 && coords(order[i - 1]).eq(coords(item));
                    if !same {
                        if i > 0 {
                            starts.push(i);
                        }
                        group_coords.extend(coords(item));
                    }
                }
                if !order.is_empty() {
                    starts.push(order.len());
                }
                let inside = order.iter().map(|&item| inside(item)).collect();
                Cut::Points { axes: axes.clone(), coords: group_coords, starts, inside, order }
            }
        }
    }

    fn groups(&self) -> u64 {
        match self {
            Cut::Points { starts, .. } => starts.len() as u64 - 1,
            Cut::Range { count: 0, .. } => 0,
            // Steps longer than a chunk: every item has its own chunk, and chunks between them are not touched.
            Cut::Range { step, chunk, count, .. } if step >= chunk => *count,
            // Shorter steps leave no chunk out.
            Cut::Range { start, step, count, chunk, .. } => {
                (start + (count - 1) * step) / chunk - start / chunk + 1
            }
        }
    }

    /// First item of group `g` of a range, and the coordinate of its chunk.
    fn items(&self, g: u64) -> (u64, u64) {
        let Cut::Range { start, step, chunk, .. } = self else { return (0, 0) };
        if step >= chunk {
            // Below the extent of the array, as `g` is an item.
            return (g, (start + g * step) / chunk);
        }
        let coord = start / chunk + g;
        // The first item that is not before the chunk.
        let first = (coord * chunk).saturating_sub(*start).div_ceil(*step);
        (first, coord)
    }

    fn piece(&self, g: u64, coord: &mut [u64]) -> Piece<'_> {
        let group = g as usize;
        match self {
            &Cut::Range { axis, start, step, count, chunk, stride } => {
                let (first, at) = self.items(g);
                coord[axis] = at;
                let end = if g + 1 < self.groups() { self.items(g + 1).0 } else { count };
                // Within one chunk, hence the whole fits; a single item has no distance to others.
                let inside = (start + first * step) - at * chunk;
                let step = if end - first > 1 { step as usize * stride } else { 0 };
                Piece::Even {
                    group,
                    first: first as usize,
                    count: (end - first) as usize,
                    start: inside as usize * stride,
                    step,
                }
            }
            Cut::Points { axes, coords, starts, inside, .. } => {
                let of = coords.get(group * axes.len()..).unwrap_or(&[]);
                for (&axis, &at) in axes.iter().zip(of) {
                    coord[axis] = at;
                }
                let (first, end) = (starts[group], starts[group + 1]);
                Piece::Listed { group, first, inside: &inside[first..end] }
            }
        }
    }
}
