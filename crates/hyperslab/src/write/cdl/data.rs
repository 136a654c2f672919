//! Values of a variable: how long they make its unlimited dimensions, and its elements.

use super::Source;
use super::types::{fill_into, is_character};
use super::value::Values;
use crate::convention::netcdf::cdl::Item;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::model::write::{Content, WriteLayout};
use crate::shape::{Coord, element_count, to_usize};
use bytes::Bytes;

/// An axis of a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) length: u64,
    pub(super) unlimited: bool,
}

/// Where axes begin whose values stand in braces of their own: all that may grow but the first.
fn braced(axes: &[Axis]) -> Vec<usize> {
    axes.iter().enumerate().skip(1).filter(|(_, axis)| axis.unlimited).map(|(i, _)| i).collect()
}

/// Characters of a row, which texts fill up; `None` where they stand one after the other.
fn row(axes: &[Axis]) -> Result<Option<usize>> {
    match axes {
        [_, .., last] if !last.unlimited => Ok(Some(to_usize(last.length.max(1))?)),
        _ => Ok(None),
    }
}

/// How long `items` make each axis of a variable of `dtype` that may grow; other axes are as they are.
pub(super) fn measure(source: &Source<'_>, dtype: &DType, axes: &[Axis], items: &[Item]) -> Result<Vec<u64>> {
    let mut lengths: Vec<u64> =
        axes.iter().map(|axis| if axis.unlimited { 0 } else { axis.length }).collect();
    let mut starts = vec![0];
    starts.extend(braced(axes));
    let mut level: Vec<&[Item]> = vec![items];
    for (k, &start) in starts.iter().enumerate() {
        let end = starts.get(k + 1).copied().unwrap_or(axes.len());
        let rest = axes.get(start + 1..end).unwrap_or(&[]).iter();
        let each = rest.fold(1u64, |n, axis| n.saturating_mul(axis.length));
        let last = end == axes.len();
        let mut next = Vec::new();
        let mut longest = 0u64;
        for items in level {
            let count =
                if last && is_character(dtype) { characters(items, row(axes)?) } else { items.len() as u64 };
            longest = longest.max(if each == 0 { 0 } else { count.div_ceil(each) });
            if !last {
                next.extend(items.iter().filter_map(|item| match item {
                    Item::List(inner) => Some(inner.as_slice()),
                    _ => None,
                }));
            }
        }
        if axes.get(start).is_some_and(|axis| axis.unlimited)
            && let Some(length) = lengths.get_mut(start)
        {
            *length = longest;
        }
        level = next;
    }
    let size = dtype.size().max(1) as u64;
    let bytes = element_count(&lengths)?.saturating_mul(size);
    if bytes > source.limits.output {
        return Err(Error::limit("bytes of a variable", bytes.into(), source.limits.output.into()));
    }
    Ok(lengths)
}

/// How many characters a list holds.
fn characters(items: &[Item], row: Option<usize>) -> u64 {
    let unit = row.unwrap_or(1).max(1);
    let mut count = 0usize;
    for item in items {
        match item {
            Item::Text(text) => {
                let length = if row.is_some() { text.len().max(1) } else { text.len() };
                count = count.next_multiple_of(unit).saturating_add(length.next_multiple_of(unit));
            }
            Item::Fill => count = count.next_multiple_of(unit).saturating_add(unit),
            _ => count = count.saturating_add(1),
        }
    }
    count as u64
}

/// Elements of an array from its first one on; those behind them are fill values.
#[derive(Debug)]
pub(super) enum Given {
    Fixed(Vec<u8>),
    Objects(Vec<Bytes>),
}

/// What a variable is while its values are read.
struct Reader<'a> {
    dtype: &'a DType,
    axes: &'a [Axis],
    lengths: &'a [u64],
    starts: Vec<usize>,
    fill: &'a [u8],
    row: Option<usize>,
    values: Values<'a>,
    given: Given,
}

/// The elements of a variable whose axes have these lengths. `fill` is one element.
pub(super) fn elements(
    source: &Source<'_>,
    at: usize,
    dtype: &DType,
    (axes, lengths): (&[Axis], &[u64]),
    fill: &[u8],
    items: &[Item],
) -> Result<Given> {
    let mut starts = vec![0];
    starts.extend(braced(axes));
    let given = if dtype.is_fixed() { Given::Fixed(Vec::new()) } else { Given::Objects(Vec::new()) };
    let values = Values::new(source, at);
    let mut reader = Reader { dtype, axes, lengths, starts, fill, row: row(axes)?, values, given };
    // What is behind the last value given is left to whoever wants it.
    let whole = reader.starts.len() > 1;
    reader.level(0, items, whole)?;
    Ok(reader.given)
}

impl Reader<'_> {
    /// The values of one pair of braces, which begin at axis `starts[k]`.
    fn level(&mut self, k: usize, items: &[Item], whole: bool) -> Result<()> {
        self.values.check_depth(k)?;
        let (start, end) = (
            self.starts.get(k).copied().unwrap_or(0),
            self.starts.get(k + 1).copied().unwrap_or(self.axes.len()),
        );
        let count = to_usize(element_count(self.lengths.get(start..end).unwrap_or(&[]))?)?;
        if end < self.axes.len() {
            if items.len() > count {
                let text = format!("{} rows where there is room for {count}", items.len());
                return Err(self.values.wrong_next(text));
            }
            for i in 0..count {
                match items.get(i) {
                    Some(Item::List(inner)) => self.level(k + 1, inner, whole)?,
                    Some(_) => {
                        return Err(self
                            .values
                            .wrong_next("a value that is in no braces")
                            .hint("what lies along an unlimited dimension other than the first stands in braces, row by row"));
                    }
                    None => self.level(k + 1, &[], whole)?,
                }
            }
            return Ok(());
        }
        if is_character(self.dtype)
            && let Given::Fixed(out) = &mut self.given
        {
            let (from, fill) = (out.len(), self.fill.first().copied().unwrap_or(0));
            self.values.characters(items, self.row, None, fill, out)?;
            // Rows are whole, and may be too many.
            let length = out.len().saturating_sub(from);
            if length > count {
                let text = format!("{length} characters where there is room for {count}");
                return Err(self.values.wrong(text));
            }
            if whole {
                out.resize(from.saturating_add(count), fill);
            }
            return Ok(());
        }
        for (i, item) in items.iter().enumerate() {
            if i >= count {
                let text = format!("{} values where there is room for {count}", items.len());
                return Err(self.values.wrong_next(text));
            }
            match &mut self.given {
                Given::Fixed(out) => self.values.element(self.dtype, item, Some(self.fill), 0, out)?,
                Given::Objects(out) => {
                    let mut object = Vec::new();
                    self.values.element(self.dtype, item, Some(self.fill), 0, &mut object)?;
                    out.push(object.into());
                }
            }
        }
        if whole {
            let missing = count.saturating_sub(items.len());
            match &mut self.given {
                Given::Fixed(out) => (0..missing).for_each(|_| out.extend_from_slice(self.fill)),
                Given::Objects(out) => {
                    let fill = Bytes::copy_from_slice(self.fill);
                    out.resize(out.len().saturating_add(missing), fill);
                }
            }
        }
        Ok(())
    }
}

/// One element that stands for those that nobody gave.
pub(super) fn default_fill(source: &Source<'_>, dtype: &DType) -> Result<Vec<u8>> {
    let mut fill = Vec::new();
    fill_into(dtype, &source.limits, 0, &mut fill)?;
    Ok(fill)
}

impl Given {
    /// Elements that are given.
    pub(super) fn count(&self, size: usize) -> usize {
        match self {
            Given::Fixed(bytes) => bytes.len() / size.max(1),
            Given::Objects(objects) => objects.len(),
        }
    }

    /// The elements of one chunk that lie within the array.
    pub(super) fn chunk(
        &self,
        layout: &WriteLayout,
        size: usize,
        coord: &[u64],
        fill: &[u8],
    ) -> Result<Content> {
        let (start, valid) = (layout.start_of(coord), layout.valid_of(coord));
        let count = to_usize(element_count(&valid)?)?;
        let width = to_usize(valid.last().copied().unwrap_or(1))?;
        let object = Bytes::copy_from_slice(fill);
        let (mut fixed, mut objects) = (Vec::new(), Vec::new());
        let mut at: Coord = valid.iter().map(|_| 0).collect();
        let rows = count.checked_div(width).unwrap_or(0);
        for _ in 0..rows {
            let flat = start.iter().zip(&at).zip(&layout.shape).fold(0u64, |n, ((&s, &a), &length)| {
                n.saturating_mul(length).saturating_add(s.saturating_add(a))
            });
            let flat = to_usize(flat)?;
            match self {
                Given::Fixed(bytes) => {
                    let from = flat.saturating_mul(size).min(bytes.len());
                    let to = flat.saturating_add(width).saturating_mul(size).min(bytes.len());
                    fixed.extend_from_slice(bytes.get(from..to).unwrap_or(&[]));
                    let missing = width.saturating_sub(to.saturating_sub(from) / size.max(1));
                    (0..missing).for_each(|_| fixed.extend_from_slice(fill));
                }
                Given::Objects(all) => {
                    let from = flat.min(all.len());
                    let to = flat.saturating_add(width).min(all.len());
                    let there = all.get(from..to).unwrap_or(&[]);
                    objects.extend_from_slice(there);
                    objects.resize(
                        objects.len().saturating_add(width.saturating_sub(there.len())),
                        object.clone(),
                    );
                }
            }
            // The next row: the last axis but one first.
            for axis in (0..valid.len().saturating_sub(1)).rev() {
                let (Some(slot), Some(&length)) = (at.get_mut(axis), valid.get(axis)) else { break };
                *slot += 1;
                if *slot < length {
                    break;
                }
                *slot = 0;
            }
        }
        Ok(match self {
            Given::Fixed(_) => Content::Fixed(fixed.into()),
            Given::Objects(_) => Content::Objects { elements: objects, targets: Vec::new() },
        })
    }
}

/// The chunks of a layout, in C order, that hold one of the first `count` elements.
pub(super) fn chunks(layout: &WriteLayout, count: u64) -> impl Iterator<Item = Coord> {
    let grid = layout.grid();
    let row = layout.shape.iter().skip(1).fold(1u64, |n, &d| n.saturating_mul(d)).max(1);
    let along = layout.chunk.first().copied().unwrap_or(1).max(1);
    // Along the first axis only as far as something is given.
    let first = count.div_ceil(row).div_ceil(along);
    let empty = count == 0 || grid.contains(&0);
    let mut next: Option<Coord> = (!empty).then(|| grid.iter().map(|_| 0).collect());
    std::iter::from_fn(move || {
        let coord = next.take()?;
        let mut following = coord.clone();
        for axis in (0..grid.len()).rev() {
            let end = grid.get(axis).copied().unwrap_or(1);
            let end = if axis == 0 { end.min(first) } else { end };
            let slot = following.get_mut(axis)?;
            *slot += 1;
            if *slot < end {
                next = Some(following);
                break;
            }
            *slot = 0;
        }
        Some(coord)
    })
}
