//! A result that many threads write at once, each its own part.
//!
//! The result is a box in C order. On each of its axes, *items* are numbered from 0, and each item has its own position;
//! an axis is cut into runs of items. A *tile* is one run on each axis. Since positions are distinct and runs do not
//! overlap, two tiles never share an element; that is checked once, in [`Canvas::new`]. Each tile is handed out at most
//! once, so whoever holds it may write it without a lock.

#[cfg(test)]
mod tests;
mod tile;

pub use tile::{Convert, Input, Lane, PlaceError, Tile, Verbatim};

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// The positions of the items of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Positions {
    /// Item *i* is at `start + i × step`.
    Even {
        /// Position of item 0.
        start: usize,
        /// Distance, not 0.
        step: isize,
        /// Number of items.
        count: usize,
    },
    /// Item *i* is at the *i*-th of these.
    Listed(Vec<usize>),
}

impl Positions {
    /// Number of items.
    pub fn count(&self) -> usize {
        match self {
            Positions::Even { count, .. } => *count,
            Positions::Listed(list) => list.len(),
        }
    }

    /// Whether all positions are below `extent` and differ from each other.
    fn distinct_below(&self, extent: usize) -> bool {
        match self {
            Positions::Even { count: 0, .. } => true,
            Positions::Even { start, step, count } => {
                let last = *start as i128 + (*count as i128 - 1) * *step as i128;
                *start < extent && (0..extent as i128).contains(&last) && (*step != 0 || *count == 1)
            }
            Positions::Listed(list) => {
                // An ascending list needs no memory.
                if list.windows(2).all(|w| w[0] < w[1]) {
                    return list.last().is_none_or(|&last| last < extent);
                }
                let mut seen = vec![0u64; extent.div_ceil(64)];
                list.iter().all(|&p| {
                    let bit = 1 << (p % 64);
                    let word = seen.get_mut(p / 64).filter(|_| p < extent);
                    word.is_some_and(|w| {
                        let new = *w & bit == 0;
                        *w |= bit;
                        new
                    })
                })
            }
        }
    }
}

/// One axis of a canvas.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Extent in the result.
    pub extent: usize,
    /// Where its items are.
    pub positions: Positions,
    /// Where the runs of items begin, ascending from 0, and last the number of items.
    pub cuts: Vec<usize>,
}

/// A result to be written in tiles.
#[derive(Debug)]
pub struct Canvas<'a> {
    out: *mut u8,
    element: usize,
    axes: Vec<Axis>,
    /// Distance in bytes of neighbours on each axis.
    strides: Vec<usize>,
    /// One bit for each tile that is taken.
    claimed: Vec<AtomicU64>,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: `out` is only written through tiles; tiles are disjoint and each is handed out once (`claim`).
unsafe impl Sync for Canvas<'_> {}
// SAFETY: it stands for an exclusive borrow of bytes, which may move between threads.
unsafe impl Send for Canvas<'_> {}

impl<'a> Canvas<'a> {
    /// A canvas over `out`, elements of `element` bytes. `None` if the axes do not fit `out`, if a position is outside or
    /// taken twice, or if cuts are out of order.
    pub fn new(out: &'a mut [u8], element: usize, axes: Vec<Axis>) -> Option<Canvas<'a>> {
        let mut strides = vec![0; axes.len()];
        let mut bytes = element;
        let mut tiles = 1usize;
        for (axis, stride) in axes.iter().zip(&mut strides).rev() {
            *stride = bytes;
            bytes = bytes.checked_mul(axis.extent)?;
            let cuts = &axis.cuts;
            let ordered = cuts.first() == Some(&0)
                && cuts.last() == Some(&axis.positions.count())
                && cuts.windows(2).all(|w| w[0] < w[1]);
            if !ordered || !axis.positions.distinct_below(axis.extent) {
                return None;
            }
            tiles = tiles.checked_mul(cuts.len() - 1)?;
        }
        if element == 0 || bytes != out.len() {
            return None;
        }
        let mut claimed = Vec::new();
        claimed.try_reserve_exact(tiles.div_ceil(64)).ok()?;
        claimed.resize_with(tiles.div_ceil(64), AtomicU64::default);
        Some(Canvas { out: out.as_mut_ptr(), element, axes, strides, claimed, borrow: PhantomData })
    }

    /// Bytes of one element of the result.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Takes the tile with these run numbers, one for each axis. `None` if there is no such tile or it is taken.
    pub fn claim(&self, runs: impl IntoIterator<Item = usize>) -> Option<Tile<'_>> {
        let mut items = Vec::with_capacity(self.axes.len());
        let mut number = 0;
        let mut runs = runs.into_iter();
        for axis in &self.axes {
            let run = runs.next()?;
            let (&first, &end) = (axis.cuts.get(run)?, axis.cuts.get(run.checked_add(1)?)?);
            items.push((first, end - first));
            // No overflow: the number of tiles was computed the same way.
            number = number * (axis.cuts.len() - 1) + run;
        }
        if runs.next().is_some() {
            return None;
        }
        let bit = 1 << (number % 64);
        let before = self.claimed.get(number / 64)?.fetch_or(bit, Ordering::Relaxed);
        if before & bit != 0 {
            return None;
        }
        Some(Tile::new(self, items))
    }
}
