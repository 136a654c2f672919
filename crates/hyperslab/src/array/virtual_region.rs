//! The part of a caller's region that falls into a virtual mapping, as a region of the mapping's source.

use super::virtual_selection::{Blocks, Elements};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::select::{Region, Selector};
use crate::shape::element_count;
use std::borrow::Cow;

/// The indices that a selection has on an axis of the virtual dataset, and the axis of the source with its own.
type Pair = (Blocks, Option<(usize, Blocks)>);

/// Two selections whose elements correspond axis by axis.
pub(super) struct Pairs {
    /// One for each axis of the virtual dataset.
    paired: Vec<Pair>,
    /// The other axes of the source, each of one index.
    alone: Vec<(usize, Blocks)>,
}

impl Pairs {
    /// An array and a part of it: for each axis the indices in the one, and those in the other.
    pub(super) fn new(paired: Vec<Pair>) -> Pairs {
        Pairs { paired, alone: Vec::new() }
    }
}

/// Pairs the axes of two selections, if their elements correspond axis by axis: axes with one index left out, both have
/// the same numbers of indices in the same order. `None`: they correspond only by number.
pub(super) fn alike(wanted: &Elements, given: &Elements) -> Option<Pairs> {
    let (Elements::Regular(wanted), Elements::Regular(given)) = (wanted, given) else { return None };
    let same = |a: &mut dyn Iterator<Item = &Blocks>, b: &mut dyn Iterator<Item = &Blocks>| {
        a.map(|a| a.len).eq(b.map(|b| b.len))
    };
    if same(&mut wanted.iter(), &mut given.iter()) {
        let pairs = wanted.iter().zip(given).enumerate();
        let paired = pairs.map(|(axis, (w, g))| (*w, Some((axis, *g)))).collect();
        return Some(Pairs::new(paired));
    }
    let long = |b: &&Blocks| b.len != 1;
    if !same(&mut wanted.iter().filter(long), &mut given.iter().filter(long)) {
        return None;
    }
    let mut partners = given.iter().copied().enumerate().filter(|(_, g)| g.len != 1);
    let paired = wanted.iter().map(|w| (*w, if w.len == 1 { None } else { partners.next() })).collect();
    let alone = given.iter().copied().enumerate().filter(|(_, g)| g.len == 1).collect();
    Some(Pairs { paired, alone })
}

/// The region of the source where elements correspond axis by axis.
pub(super) fn along_axes(
    region: &Region,
    source: &[u64],
    pairs: &Pairs,
    limits: &Limits,
) -> Result<Option<Region>> {
    let Some(mut selectors) = pick_all(region, &|axis| pairs.paired.get(axis).copied(), limits)? else {
        return Ok(None);
    };
    let mut extents = region.extents().to_vec();
    for (axis, blocks) in &pairs.alone {
        // An axis of one index adds an axis of one position.
        selectors.push(Selector::range(*axis, blocks.start, 1, 1));
        extents.push(1);
    }
    Region::new(source.to_vec(), selectors, extents, region.shape().to_vec()).map(Some)
}

/// The region of the source where elements correspond by number; `inside` is the caller's region as far as it lies in
/// the bounds of the virtual selection.
pub(super) fn by_number(
    region: &Region,
    inside: &[Selector],
    source: &[u64],
    wanted: &Elements,
    given: &Elements,
    limits: &Limits,
) -> Result<Option<Region>> {
    if wanted.count().is_none() {
        return Err(Error::limit("elements of a virtual mapping", u128::MAX, u64::MAX.into()));
    }
    let total = element_count(region.extents())?;
    let count = inside.iter().try_fold(1u64, |n, s| n.checked_mul(s.len())).unwrap_or(u64::MAX);
    check_memory(count, source.len() + 1, limits)?;
    let mut strides = vec![1u64; inside.len()];
    for i in (1..inside.len()).rev() {
        if let (Some(&extent), Some(&behind)) = (region.extents().get(i), strides.get(i)) {
            // The product of all extents fits.
            strides[i - 1] = behind * extent;
        }
    }
    let mut at = vec![0u64; region.dims().len()];
    let (mut points, mut out) = (Vec::new(), Vec::new());
    for item in 0..count {
        let mut rest = item;
        let mut position = 0;
        for (selector, stride) in inside.iter().zip(&strides).rev() {
            let i = rest % selector.len();
            rest /= selector.len();
            position += set(selector, i, &mut at) * stride;
        }
        if let Some(number) = wanted.number(&at) {
            let pushed = given.push(number, &mut points);
            pushed
                .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("no element {number} in a source")))?;
            out.push(position);
        }
    }
    if out.is_empty() {
        return Ok(None);
    }
    let selector = Selector::Points { axes: (0..source.len()).collect(), points, out };
    Region::new(source.to_vec(), vec![selector], vec![total], region.shape().to_vec()).map(Some)
}

/// Puts the indices of item `i` of a selector into `at`; gives its position.
fn set(selector: &Selector, i: u64, at: &mut [u64]) -> u64 {
    match selector {
        Selector::Range { axis, start, step, out_start, out_step, .. } => {
            if let Some(slot) = at.get_mut(*axis) {
                *slot = start + i * step;
            }
            out_start.wrapping_add_signed((i as i64).wrapping_mul(*out_step))
        }
        Selector::Points { axes, points, out } => {
            let item = i as usize;
            for (k, axis) in axes.iter().enumerate() {
                if let (Some(slot), Some(&point)) = (at.get_mut(*axis), points.get(item * axes.len() + k)) {
                    *slot = point;
                }
            }
            out.get(item).copied().unwrap_or(0)
        }
    }
}

fn check_memory(items: u64, words: usize, limits: &Limits) -> Result<()> {
    let bytes = u128::from(items) * 8 * words as u128;
    if bytes > u128::from(limits.plan) {
        return Err(Error::limit("memory for the plan of a virtual dataset", bytes, limits.plan.into())
            .hint("select less"));
    }
    Ok(())
}

/// All selectors of a region, narrowed and moved as [`pick`] does; `None` if nothing is left.
pub(super) fn pick_all(
    region: &Region,
    pair: &dyn Fn(usize) -> Option<Pair>,
    limits: &Limits,
) -> Result<Option<Vec<Selector>>> {
    let mut selectors = Vec::with_capacity(region.selectors().len());
    for selector in region.selectors() {
        match pick(selector, pair, limits)? {
            Some(selector) => selectors.push(selector),
            None => return Ok(None),
        }
    }
    Ok(Some(selectors))
}

/// The axes, points and positions of a selector.
type Listed<'a> = (Cow<'a, [usize]>, Cow<'a, [u64]>, Cow<'a, [u64]>);

/// The items of a selector whose indices lie in a selection, with the indices of the source that they correspond to.
fn pick<'a>(
    selector: &'a Selector,
    pair: &dyn Fn(usize) -> Option<Pair>,
    limits: &Limits,
) -> Result<Option<Selector>> {
    let paired = |axis: usize| {
        pair(axis)
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("no axis {axis} in a virtual mapping")))
    };
    let (axes, points, out): Listed<'a> = match selector {
        &Selector::Range { axis, start, step, count, out_start, out_step } => {
            let (wanted, given) = paired(axis)?;
            let (low, high) = wanted.bounds();
            // The items from `first` to before `end` lie in the bounds.
            let first = low.saturating_sub(start).div_ceil(step);
            let end = if high > start { (high - start).div_ceil(step).min(count) } else { 0 };
            if first >= end {
                return Ok(None);
            }
            let position = |i: u64| out_start.wrapping_add_signed((i as i64).wrapping_mul(out_step));
            if let (Some((from, 1)), Some((source_axis, given))) = (wanted.even(), given)
                && let Some((source, pace)) = given.even()
                && let Some(source_step) = step.checked_mul(pace)
            {
                return Ok(Some(Selector::Range {
                    axis: source_axis,
                    start: source + (start + first * step - from) * pace,
                    step: source_step,
                    count: end - first,
                    out_start: position(first),
                    out_step,
                }));
            }
            check_memory(end - first, 2, limits)?;
            let items = first..end;
            let points = items.clone().map(|i| start + i * step).collect();
            (Cow::Owned(vec![axis]), Cow::Owned(points), Cow::Owned(items.map(position).collect()))
        }
        Selector::Points { axes, points, out } => (axes.into(), points.into(), out.into()),
    };
    if axes.is_empty() {
        return Ok(Some(selector.clone()));
    }
    let pairs = axes.iter().map(|&axis| paired(axis)).collect::<Result<Vec<_>>>()?;
    let source_axes: Vec<usize> = pairs.iter().filter_map(|p| p.1.map(|(axis, _)| axis)).collect();
    let (mut source_points, mut kept) = (Vec::new(), Vec::new());
    for (point, &position) in points.chunks_exact(axes.len()).zip(&*out) {
        let before = source_points.len();
        let inside = point.iter().zip(&pairs).all(|(&index, (wanted, given))| match wanted.number(index) {
            Some(number) => {
                source_points.extend(given.map(|(_, given)| given.at(number)));
                true
            }
            None => false,
        });
        match inside {
            true => kept.push(position),
            false => source_points.truncate(before),
        }
    }
    if kept.is_empty() {
        return Ok(None);
    }
    Ok(Some(Selector::Points { axes: source_axes, points: source_points, out: kept }))
}
