//! A selection cut along the outermost axis of its result.

use hyperslab::Selection;
use hyperslab::select::{Item, Slice};

/// Stored bytes that a slab aims at.
const TARGET: u64 = 32 << 20;

/// Selections whose results, one after the other, are the result of the whole.
pub(super) struct Slabs {
    items: Vec<Item>,
    /// The item that is cut, and what it picks: first index, step, count.
    cut: Option<(usize, i64, i64, u64)>,
    /// Indices of a slab.
    each: u64,
    next: u64,
    whole: Option<Selection>,
}

impl Slabs {
    /// Cuts `selection` of an array of extents `dims` so that no chunk is decoded for two slabs, where the target size
    /// allows, nor more than `limit` bytes are held. Lists and masks are not cut, since they may go anywhere.
    pub(super) fn new(
        selection: &Selection,
        dims: &[u64],
        chunk: Option<&[u64]>,
        size: usize,
        limit: u64,
    ) -> Slabs {
        let target = TARGET.min(limit);
        let whole = Slabs { items: Vec::new(), cut: None, each: 1, next: 0, whole: Some(selection.clone()) };
        let Some(items) = full(selection, dims.len()) else { return whole };
        let mut axis = 0;
        let mut row = (size as u64).max(1);
        let mut cut = None;
        for (place, item) in items.iter().enumerate() {
            match (item, dims.get(axis)) {
                (Item::Slice(slice), Some(&extent)) => {
                    let (start, step, count) = indices(slice, extent);
                    match cut {
                        None => cut = Some((place, axis, start, step, count)),
                        Some(_) => row = row.saturating_mul(count),
                    }
                    axis += 1;
                }
                (Item::Index(_), _) => axis += 1,
                _ => {}
            }
        }
        let Some((place, axis, start, step, count)) = cut else { return whole };
        if count == 0 || row == 0 || row.saturating_mul(count) <= target {
            return whole;
        }
        let rows = (target / row).max(1);
        // Whole chunks along the cut axis, unless a single one is far beyond the target.
        let chunk = chunk.and_then(|c| c.get(axis)).map_or(1, |c| c.div_ceil(step.unsigned_abs()).max(1));
        let each = if rows >= chunk {
            rows - rows % chunk
        } else if chunk / rows < 8 && row.saturating_mul(chunk) <= limit {
            chunk
        } else {
            rows
        };
        Slabs { items, cut: Some((place, start, step, count)), each, next: 0, whole: None }
    }

    /// Number of slabs.
    pub(super) fn len(&self) -> u64 {
        self.cut.map_or(1, |(_, _, _, count)| count.div_ceil(self.each))
    }
}

impl Iterator for Slabs {
    type Item = Selection;

    fn next(&mut self) -> Option<Selection> {
        if let Some(whole) = self.whole.take() {
            return Some(whole);
        }
        let (place, start, step, count) = self.cut?;
        if self.next >= count {
            return None;
        }
        let end = count.min(self.next.saturating_add(self.each));
        // Below 2^63, since they are indices of an axis.
        let at = |i: u64| start + step * i as i64;
        // Going down, an end before index 0 is an open one.
        let stop = Some(at(end - 1) + step.signum()).filter(|&s| s >= 0);
        let slice = Slice { start: Some(at(self.next)), stop, step };
        self.next = end;
        let mut items = self.items.clone();
        *items.get_mut(place)? = Item::Slice(slice);
        Some(Selection::vectorised(items))
    }
}

/// The items for all axes, the ellipsis spelled out; `None` if there are lists or masks.
pub(super) fn full(selection: &Selection, rank: usize) -> Option<Vec<Item>> {
    let axes = |i: &&Item| matches!(i, Item::Index(_) | Item::Slice(_));
    let missing = rank.checked_sub(selection.items().iter().filter(axes).count())?;
    let fill = || std::iter::repeat_n(Item::Slice(Slice::ALL), missing);
    let mut items = Vec::new();
    let mut open = true;
    for item in selection.items() {
        match item {
            Item::List(_) | Item::Mask(_) => return None,
            Item::Ellipsis if open => {
                open = false;
                items.extend(fill());
            }
            Item::Ellipsis => return None,
            other => items.push(other.clone()),
        }
    }
    if open {
        items.extend(fill());
    }
    Some(items)
}

/// First index, step and count of what a slice picks from an axis, as Python's `slice.indices`.
pub(super) fn indices(slice: &Slice, extent: u64) -> (i64, i64, u64) {
    let (n, step) = (extent as i128, slice.step as i128);
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |at: i64| (if at < 0 { at as i128 + n } else { at as i128 }).clamp(low, high);
    let start = slice.start.map_or(if step > 0 { low } else { high }, clamp);
    let stop = slice.stop.map_or(if step > 0 { high } else { low }, clamp);
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance <= 0 || step == 0 { 0 } else { (distance - 1) / step.abs() + 1 };
    (start as i64, slice.step, count as u64)
}
