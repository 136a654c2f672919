//! A selection resolved against the extents of an array.

use super::selection::{Item, List, Mask, Mode, Selection, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::shape::{MAX_RANK, element_count};

/// What one axis of the result picks from the array, and where in that axis of the result it goes.
///
/// The *items* of a selector are numbered from 0 in ascending order of what they pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Item *i* picks index `start + i × step` of `axis` for position `out_start + i × out_step`.
    Range {
        /// Axis of the array.
        axis: usize,
        /// First index.
        start: u64,
        /// Distance of the indices, at least 1.
        step: u64,
        /// Number of items.
        count: u64,
        /// Position of item 0.
        out_start: u64,
        /// Distance of the positions, not 0.
        out_step: i64,
    },
    /// Item *i* picks the indices `points[i × axes ..]` of `axes` together, for position `out[i]`. No axes at all: the
    /// positions are those of the other selectors' elements repeated.
    Points {
        /// Axes of the array.
        axes: Vec<usize>,
        /// Indices, those of one item side by side.
        points: Vec<u64>,
        /// Distinct positions.
        out: Vec<u64>,
    },
}

impl Selector {
    /// Picks `count` indices of `axis` from `start`, `step` apart, into positions from 0.
    pub fn range(axis: usize, start: u64, step: u64, count: u64) -> Self {
        Selector::Range { axis, start, step, count, out_start: 0, out_step: 1 }
    }

    /// Number of items.
    pub fn len(&self) -> u64 {
        match self {
            Selector::Range { count, .. } => *count,
            Selector::Points { out, .. } => out.len() as u64,
        }
    }

    /// Whether nothing is picked.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The axes of the array that it picks from.
    pub fn axes(&self) -> &[usize] {
        match self {
            Selector::Range { axis, .. } => std::slice::from_ref(axis),
            Selector::Points { axes, .. } => axes,
        }
    }
}

/// A selection with all indices checked: the elements picked are the cross product of the selectors' items, and the
/// element of items *(i, j, …)* goes to position *(out(i), out(j), …)* of a box in C order, one axis for each selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    dims: Vec<u64>,
    selectors: Vec<Selector>,
    extents: Vec<u64>,
    shape: Vec<u64>,
}

impl Region {
    /// A region from its parts, for plans that write into a part of a larger result (virtual datasets, staged edits).
    ///
    /// `extents` are those of the box that the positions lie in, one for each selector; `shape` is what the caller sees
    /// of it. Each axis of the array must belong to exactly one selector, and all indices and positions must be inside.
    pub fn new(
        dims: Vec<u64>,
        selectors: Vec<Selector>,
        extents: Vec<u64>,
        shape: Vec<u64>,
    ) -> Result<Region> {
        let region = Region { dims, selectors, extents, shape };
        region.check()?;
        Ok(region)
    }

    /// The whole of an array.
    pub fn all(dims: &[u64]) -> Region {
        let selectors = dims.iter().enumerate().map(|(axis, &n)| Selector::range(axis, 0, 1, n)).collect();
        Region { dims: dims.to_vec(), selectors, extents: dims.to_vec(), shape: dims.to_vec() }
    }

    fn check(&self) -> Result<()> {
        let rank = self.dims.len();
        let mut seen = vec![0u32; rank];
        for axis in self.selectors.iter().flat_map(|s| s.axes()) {
            *seen.get_mut(*axis).ok_or_else(|| Error::invalid(format!("a region names axis {axis}")))? += 1;
        }
        if seen.iter().any(|&n| n != 1) || self.extents.len() != self.selectors.len() {
            return Err(Error::invalid("a region needs exactly one selector for each axis"));
        }
        if element_count(&self.extents)? != element_count(&self.shape)? {
            return Err(Error::invalid("the box of a region and its shape differ in size"));
        }
        for (selector, &extent) in self.selectors.iter().zip(&self.extents) {
            match selector {
                Selector::Range { axis, start, step, count, out_start, out_step } => {
                    let Some(last) = count.checked_sub(1) else { continue };
                    let index = *start as i128 + last as i128 * *step as i128;
                    let position = *out_start as i128 + last as i128 * *out_step as i128;
                    if *step == 0 || *out_step == 0 {
                        return Err(Error::invalid("a step of a region is 0"));
                    }
                    if index >= self.dims[*axis] as i128 {
                        return Err(outside(*axis, index, self.dims[*axis]));
                    }
                    if position < 0 || position.max(*out_start as i128) >= extent as i128 {
                        return Err(Error::invalid(format!("position {position} is outside of the result")));
                    }
                }
                Selector::Points { axes, points, out } => {
                    if out.len().checked_mul(axes.len()) != Some(points.len()) {
                        return Err(Error::invalid("a region's points and positions differ in number"));
                    }
                    for (i, &index) in points.iter().enumerate() {
                        let axis = axes[i % axes.len()];
                        if index >= self.dims[axis] {
                            return Err(outside(axis, index as i128, self.dims[axis]));
                        }
                    }
                    if let Some(p) = out.iter().find(|&&p| p >= extent) {
                        return Err(Error::invalid(format!("position {p} is outside of the result")));
                    }
                }
            }
        }
        Ok(())
    }

    /// Extents of the array.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// One selector for each axis of the result's box.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// Extents of the result's box.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// The shape of the result as the caller sees it: the same elements in the same order as the box.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of elements picked.
    pub fn count(&self) -> Result<u64> {
        if self.selectors.iter().any(Selector::is_empty) {
            return Ok(0);
        }
        self.selectors.iter().try_fold(1u64, |n, s| n.checked_mul(s.len())).ok_or_else(too_large)
    }
}

fn too_large() -> Error {
    Error::new(ErrorKind::LimitExceeded, "the selection holds more than 2^64 elements")
}

fn outside(axis: usize, index: i128, extent: u64) -> Error {
    Error::new(
        ErrorKind::OutOfBounds,
        format!("index {index} is outside of axis {axis}, which has extent {extent}"),
    )
}

/// An index counted from the end if negative, checked.
fn wrap(axis: usize, index: i64, extent: u64) -> Result<u64> {
    let wrapped = if index < 0 { index as i128 + extent as i128 } else { index as i128 };
    if wrapped < 0 || wrapped >= extent as i128 {
        return Err(outside(axis, index as i128, extent));
    }
    Ok(wrapped as u64)
}

/// Selector and shape in the result of one place there.
struct Place {
    selector: Option<Selector>,
    shape: Vec<u64>,
}

/// An array of indices for one axis, to be broadcast.
struct Indices {
    axis: usize,
    shape: Vec<u64>,
    values: Vec<u64>,
}

impl Selection {
    /// Checks the selection against the extents of an array.
    pub fn resolve(&self, dims: &[u64], limits: &Limits) -> Result<Region> {
        if dims.len() > MAX_RANK {
            return Err(Error::limit("rank", dims.len() as u128, MAX_RANK as u128));
        }
        let items = expand(self.items(), dims.len())?;
        let vectorised = self.mode() == Mode::Vectorised
            && items.iter().any(|i| matches!(i, Item::List(_) | Item::Mask(_)));
        let mut places: Vec<Place> = Vec::new();
        // The joint points of the vectorised mode: where they stand, and whether something separates them.
        let mut points: Vec<Indices> = Vec::new();
        let mut bare_masks: Vec<Vec<u64>> = Vec::new();
        let mut joint: Option<usize> = None;
        let (mut open, mut separated) = (false, false);
        let mut axis = 0;
        for item in &items {
            let advanced = vectorised && matches!(item, Item::Index(_) | Item::List(_) | Item::Mask(_));
            if advanced {
                separated |= joint.is_some() && !open;
                joint.get_or_insert(places.len());
            }
            open = advanced;
            match item {
                Item::NewAxis => places.push(Place { selector: None, shape: vec![1] }),
                Item::Ellipsis => {}
                Item::Slice(slice) => {
                    places.push(sliced(axis, slice, dims[axis]));
                    axis += 1;
                }
                Item::Index(index) => {
                    let start = wrap(axis, *index, dims[axis])?;
                    places.push(Place {
                        selector: Some(Selector::range(axis, start, 1, 1)),
                        shape: Vec::new(),
                    });
                    axis += 1;
                }
                Item::List(list) => {
                    let indices = listed(axis, list, dims[axis])?;
                    axis += 1;
                    if vectorised {
                        points.push(indices);
                    } else {
                        places.push(orthogonal(indices));
                    }
                }
                Item::Mask(mask) => {
                    let axes = axis..axis + mask.shape().len();
                    let columns = masked(axes.clone(), mask, dims, limits)?;
                    axis = axes.end;
                    if !vectorised {
                        let n = columns.first().map_or_else(|| bare(mask), |c| c.values.len() as u64);
                        places.push(joined(&columns, &[n], limits)?);
                    } else if columns.is_empty() {
                        bare_masks.push(vec![bare(mask)]);
                    } else {
                        points.extend(columns);
                    }
                }
            }
        }
        if vectorised {
            let shapes = points.iter().map(|p| &p.shape).chain(&bare_masks);
            let shape = broadcast(shapes)?;
            let at = if separated { 0 } else { joint.unwrap_or(0) };
            places.insert(at, joined(&points, &shape, limits)?);
        }
        let mut region = Region {
            dims: dims.to_vec(),
            selectors: Vec::with_capacity(places.len()),
            extents: Vec::with_capacity(places.len()),
            shape: Vec::new(),
        };
        for place in places {
            region.shape.extend(place.shape);
            if let Some(selector) = place.selector {
                region.extents.push(selector.len());
                region.selectors.push(selector);
            }
        }
        if region.shape.len() > 2 * MAX_RANK {
            return Err(Error::limit("rank of the result", region.shape.len() as u128, 2 * MAX_RANK as u128));
        }
        region.count()?;
        Ok(region)
    }
}

/// The items with one slice for each axis that an ellipsis covers. The ellipsis stays: it separates points even where it
/// covers no axis.
fn expand(items: &[Item], rank: usize) -> Result<Vec<Item>> {
    let named: usize = items
        .iter()
        .map(|item| match item {
            Item::Index(_) | Item::Slice(_) | Item::List(_) => 1,
            Item::Mask(mask) => mask.shape().len(),
            Item::Ellipsis | Item::NewAxis => 0,
        })
        .sum();
    let Some(rest) = rank.checked_sub(named) else {
        return Err(Error::invalid(format!("{named} axes are indexed, but the array has {rank}")));
    };
    if items.iter().filter(|i| matches!(i, Item::Ellipsis)).count() > 1 {
        return Err(Error::invalid("a selection has more than one ellipsis"));
    }
    let mut expanded = Vec::with_capacity(items.len() + rest);
    let whole = std::iter::repeat_n(Item::Slice(Slice::ALL), rest);
    let mut whole = Some(whole);
    for item in items {
        expanded.push(item.clone());
        if matches!(item, Item::Ellipsis) {
            expanded.extend(whole.take().into_iter().flatten());
        }
    }
    expanded.extend(whole.into_iter().flatten());
    Ok(expanded)
}

fn sliced(axis: usize, slice: &Slice, extent: u64) -> Place {
    let (start, step, count) = slice.indices(extent);
    let last = start + step * (count.max(1) - 1) as i128;
    let selector = match count {
        0 => Selector::range(axis, 0, 1, 0),
        // All of these lie between 0 and the extent.
        1 => Selector::range(axis, start as u64, 1, 1),
        _ if step > 0 => Selector::range(axis, start as u64, step as u64, count),
        _ => Selector::Range {
            axis,
            start: last as u64,
            step: step.unsigned_abs() as u64,
            count,
            out_start: count - 1,
            out_step: -1,
        },
    };
    Place { selector: Some(selector), shape: vec![count] }
}

fn listed(axis: usize, list: &List, extent: u64) -> Result<Indices> {
    let values: Result<Vec<u64>> = list.values().iter().map(|&i| wrap(axis, i, extent)).collect();
    Ok(Indices { axis, shape: list.shape().to_vec(), values: values? })
}

/// Elements that a mask without axes lets through.
fn bare(mask: &Mask) -> u64 {
    mask.values().iter().filter(|&&v| v).count() as u64
}

/// The indices at which a mask is true, one column for each of its axes.
fn masked(axes: std::ops::Range<usize>, mask: &Mask, dims: &[u64], limits: &Limits) -> Result<Vec<Indices>> {
    let extents = dims.get(axes.clone()).unwrap_or(&[]);
    if extents != mask.shape() {
        let shape = mask.shape();
        return Err(Error::new(
            ErrorKind::OutOfBounds,
            format!("a mask of shape {shape:?} does not fit the extents {extents:?} of axes {axes:?}"),
        ));
    }
    let n = bare(mask);
    check_points(n, axes.len(), limits)?;
    let mut columns: Vec<Indices> =
        axes.map(|axis| Indices { axis, shape: vec![n], values: Vec::new() }).collect();
    for (at, _) in mask.values().iter().enumerate().filter(|(_, v)| **v) {
        let mut rest = at as u64;
        for (column, &extent) in columns.iter_mut().zip(extents).rev() {
            column.values.push(rest % extent);
            rest /= extent;
        }
    }
    Ok(columns)
}

fn check_points(n: u64, axes: usize, limits: &Limits) -> Result<()> {
    let bytes = n as u128 * (axes as u128 + 2) * 8;
    if bytes > limits.plan as u128 {
        return Err(Error::limit("memory for the points of a selection", bytes, limits.plan as u128));
    }
    Ok(())
}

fn orthogonal(indices: Indices) -> Place {
    let out = (0..indices.values.len() as u64).collect();
    let selector = Selector::Points { axes: vec![indices.axis], points: indices.values, out };
    Place { selector: Some(selector), shape: indices.shape }
}

/// NumPy's broadcasting of shapes.
fn broadcast<'a>(shapes: impl Iterator<Item = &'a Vec<u64>>) -> Result<Vec<u64>> {
    let mut result: Vec<u64> = Vec::new();
    for shape in shapes {
        if shape.len() > result.len() {
            let missing = shape.len() - result.len();
            result.splice(0..0, std::iter::repeat_n(1, missing));
        }
        let offset = result.len() - shape.len();
        for (have, &want) in result[offset..].iter_mut().zip(shape) {
            if *have == 1 {
                *have = want;
            } else if want != 1 && want != *have {
                return Err(Error::invalid(format!(
                    "lists of {have} and {want} indices cannot be combined point by point"
                ))
                .hint("use outer indexing to combine them axis by axis"));
            }
        }
    }
    Ok(result)
}

/// Arrays of indices broadcast to `shape` and picked from together.
fn joined(columns: &[Indices], shape: &[u64], limits: &Limits) -> Result<Place> {
    let n = element_count(shape)?;
    check_points(n, columns.len(), limits)?;
    let mut points = Vec::with_capacity(n as usize * columns.len());
    // For each column, how far it moves along each axis of the broadcast shape.
    let strides: Vec<Vec<usize>> = columns
        .iter()
        .map(|column| {
            let missing = shape.len() - column.shape.len();
            let mut strides = vec![0; shape.len()];
            let mut stride = 1;
            for (i, &extent) in column.shape.iter().enumerate().rev() {
                if extent != 1 {
                    strides[missing + i] = stride;
                }
                stride *= extent as usize;
            }
            strides
        })
        .collect();
    let mut position = vec![0u64; shape.len()];
    for _ in 0..n {
        for (column, strides) in columns.iter().zip(&strides) {
            let at: usize = position.iter().zip(strides).map(|(&p, s)| p as usize * s).sum();
            points.push(column.values.get(at).copied().unwrap_or(0));
        }
        for (p, &extent) in position.iter_mut().zip(shape).rev() {
            *p += 1;
            if *p < extent {
                break;
            }
            *p = 0;
        }
    }
    let axes = columns.iter().map(|c| c.axis).collect();
    let selector = Selector::Points { axes, points, out: (0..n).collect() };
    Ok(Place { selector: Some(selector), shape: shape.to_vec() })
}
