//! From a staged array to chunks.

use super::{Fit, Transaction, elements};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec::encode::{ChunkData, EncodeStats, Later, NewChunk, encode};
use crate::model::write::{Change, Content, ObjectPath, WriteLayout};
use crate::select::{Region, Selector};
use crate::shape::Coord;
use crate::staged::StagedArray;
use std::collections::BTreeSet;

/// Writes what of `staged` is not in the array at `path` already.
pub(super) fn write(
    transaction: &mut Transaction,
    path: &ObjectPath,
    staged: &StagedArray,
    fresh: bool,
) -> Result<EncodeStats> {
    let layout = transaction.writer.layout(path)?;
    if staged.shape().is_empty() && layout.shape == [1] {
        // A scalar, which NCZarr stores along an axis.
        let fit = Fit::new(staged.dtype(), &layout.dtype).context(|| format!("array {path}"))?;
        let content = fit.run(elements::content(staged.get(..)?))?;
        let chunk = NewChunk { coord: Coord::from_slice(&[0]), data: ChunkData::Elements(content) };
        return encode(&mut *transaction.writer, path, &mut std::iter::once(Ok(chunk)), &transaction.encode);
    }
    if layout.shape.len() != staged.shape().len() {
        return Err(Error::invalid(format!(
            "elements of shape {:?} for an array of {:?}",
            staged.shape(),
            layout.shape
        )));
    }
    let fit = Fit::new(staged.dtype(), &layout.dtype).context(|| format!("array {path}"))?;
    let own = transaction.array_before(path);
    if let Some(own) = &own
        && staged.stands_on_another_look(own)
    {
        let text = format!("array {path} was staged before the transaction began");
        return Err(Error::new(ErrorKind::Changed, text).hint("stage it with Transaction::stage"));
    }
    let resized = layout.shape != staged.shape();
    if resized {
        let change = Change::Resize { array: path.clone(), shape: staged.shape().to_vec() };
        transaction.writer.apply(change)?;
    }
    let layout = transaction.writer.layout(path)?;
    let own = own.as_ref().filter(|_| fit.is_identity());
    // What was never written is the same in both.
    let same_fill = match fit.run(elements::content(staged.fill()?))? {
        Content::Fixed(fill) if layout.fill.is_empty() => fill.iter().all(|&b| b == 0),
        Content::Fixed(fill) => fill == layout.fill,
        Content::Objects { elements, .. } => elements.first() == Some(&layout.fill),
    };
    let fresh = fresh && same_fill && layout.may_skip_fill;
    let boxes = staged.to_be_written(own, fresh, same_fill);
    let coords = touched(&layout, &boxes);
    let mut chunks = coords.into_iter().map(|coord| {
        let start = layout.start_of(&coord);
        let extent = layout.valid_of(&coord);
        let sides = start.iter().zip(extent.iter()).enumerate();
        let selectors =
            sides.map(|(axis, (&start, &count))| Selector::range(axis, start, 1, count)).collect();
        let region = Region::new(staged.shape().to_vec(), selectors, extent.to_vec(), extent.to_vec())?;
        let fit = &fit;
        let content = move || fit.run(elements::content(staged.get_region(region.clone())?));
        if !layout.dtype.is_fixed() {
            return Ok(NewChunk { coord, data: ChunkData::Elements(content()?) });
        }
        let later = Later::new(move |out| match content()? {
            Content::Fixed(bytes) => {
                out.extend_from_slice(&bytes);
                Ok(())
            }
            Content::Objects { .. } => Err(Error::invalid("elements of variable length for a fixed type")),
        });
        Ok(NewChunk { coord, data: ChunkData::Later(later) })
    });
    encode(&mut *transaction.writer, path, &mut chunks, &transaction.encode)
}

/// The chunks of a layout that boxes touch, those of one block after the other.
pub(super) fn touched(layout: &WriteLayout, boxes: &[(Coord, Coord)]) -> Vec<Coord> {
    let mut found: BTreeSet<(Coord, Coord)> = BTreeSet::new();
    for (start, extent) in boxes {
        if extent.contains(&0) {
            continue;
        }
        let ends: Coord = start.iter().zip(extent).map(|(s, n)| s.saturating_add(n - 1)).collect();
        let first: Coord = start.iter().zip(&layout.chunk).map(|(s, c)| s / (*c).max(1)).collect();
        let last: Coord = ends.iter().zip(&layout.chunk).map(|(e, c)| e / (*c).max(1)).collect();
        let mut coord = first.clone();
        loop {
            let block = coord.iter().zip(&layout.block).map(|(c, b)| c / (*b).max(1)).collect();
            found.insert((block, coord.clone()));
            // The next one of the box, the last axis first.
            let axis = (0..coord.len()).rev().find(|&axis| coord.get(axis) < last.get(axis));
            let Some(axis) = axis else { break };
            for (i, slot) in coord.iter_mut().enumerate().skip(axis) {
                *slot = if i == axis { *slot + 1 } else { first.get(i).copied().unwrap_or(0) };
            }
        }
    }
    found.into_iter().map(|(_, coord)| coord).collect()
}
