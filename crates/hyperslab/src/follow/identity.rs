//! Whether an array is still the one that was followed, and not another in its place.
//!
//! Two things tell. Its *identity* is what adding rows does not change: where it stands in its file (HDF5: the address of its
//! object header; netCDF-3: its place in the header), element type, chunks, filters, fill value, largest extents. *Samples* are
//! rows that were given: they hold still what they held.

use super::Part;
use super::settle::digest;
use crate::array::{Array, ReadOptions};
use crate::error::Result;
use crate::exec::MissingChunks;
use crate::model::{ArrayMeta, Dataspace, Layout, NodeId};
use crate::select::{Item, Selection, Slice};
use crate::shape::{element_count, to_usize};

/// Elements of a sample at most.
const ELEMENTS: u64 = 16 << 10;

/// Samples that are kept of an array.
const KEPT: usize = 8;

/// What adding rows does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(String);

impl Identity {
    pub(super) fn of(array: &Array) -> Self {
        let ArrayMeta { dtype, space, grid, layout, fill, filters, notes, .. } = array.meta();
        let max = match (space, array.node()) {
            // Zarr has no largest extents, and gives those of now.
            (_, NodeId::Path(_)) => &[],
            (Dataspace::Simple { max, .. }, _) => &max[..],
            _ => &[],
        };
        // Records of netCDF-3 are one piece or many, as there are one or more.
        let grid = match layout {
            Layout::Chunked { index: "records" } | Layout::Contiguous => String::new(),
            _ => format!("{grid:?} {layout:?}"),
        };
        let begin = notes.iter().find(|(key, _)| *key == "begin");
        Identity(format!("{} {dtype:?} {max:?} {grid} {begin:?} {fill:?} {filters:?}", array.node()))
    }
}

/// The beginning of a row that was given.
#[derive(Clone, Debug)]
struct Sample {
    row: u64,
    /// Extents of what was taken of the row.
    extents: Vec<u64>,
    digest: u64,
}

/// Samples of one array: of the first row that was given, and of the last ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes samples of rows that are given, the first of which is `first`.
    pub(super) fn take(&mut self, part: &Part, first: u64) -> Result<()> {
        let rows = part.shape.first().copied().unwrap_or(0);
        let Some(last) = rows.checked_sub(1) else { return Ok(()) };
        if self.0.is_empty() && last > 0 {
            self.add(part, first, 0)?;
        }
        self.add(part, first, last)
    }

    fn add(&mut self, part: &Part, first: u64, row: u64) -> Result<()> {
        let own = part.shape.get(1..).unwrap_or(&[]);
        let extents = beginning(own);
        let start = to_usize(element_count(own)?.saturating_mul(row))?;
        let end = start.saturating_add(to_usize(element_count(&extents)?)?);
        let digest = digest(&part.elements, &part.bytes, part.array.dtype().is_fixed(), start, end)?;
        if self.0.len() >= KEPT {
            self.0.remove(1);
        }
        self.0.push(Sample { row: first.saturating_add(row), extents, digest });
        Ok(())
    }

    /// Whether the rows that samples were taken of hold what they held, as far as the array has them: the first and the last
    /// of these, or `all`.
    pub(super) fn hold(&self, array: &Array, all: bool) -> Result<bool> {
        let rows = array.shape().first().copied().unwrap_or(0);
        let there: Vec<&Sample> = self.0.iter().filter(|sample| sample.row < rows).collect();
        let last = there.len().saturating_sub(1);
        for (i, sample) in there.into_iter().enumerate() {
            if (all || i == 0 || i == last) && !sample.holds(array)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Sample {
    fn holds(&self, array: &Array) -> Result<bool> {
        let own = array.shape().get(1..).unwrap_or(&[]);
        // Fewer columns than there were.
        if own.len() != self.extents.len() || own.iter().zip(&self.extents).any(|(own, taken)| own < taken) {
            return Ok(false);
        }
        let edge = |at: u64| i64::try_from(at).ok();
        let slice = |start: u64, length: u64| {
            Item::Slice(Slice { start: edge(start), stop: edge(start.saturating_add(length)), step: 1 })
        };
        let mut items = vec![slice(self.row, 1)];
        items.extend(self.extents.iter().map(|&length| slice(0, length)));
        let options = ReadOptions::new().with_missing(MissingChunks::Fill);
        array.attempt(|| {
            let (raw, _) = array.read_raw_with(Selection::vectorised(items.clone()), &options)?;
            let count = to_usize(element_count(&raw.shape)?)?;
            let bytes = bytes::Bytes::from(raw.bytes);
            let elements = array.decode(&raw.dtype, bytes.clone(), count)?;
            Ok(digest(&elements, &bytes, raw.dtype.is_fixed(), 0, count)? == self.digest)
        })
    }
}

/// The extents of the first elements of a row, in C order: as many as are taken at most.
fn beginning(row: &[u64]) -> Vec<u64> {
    let mut left = ELEMENTS;
    let mut extents: Vec<u64> = row
        .iter()
        .rev()
        .map(|&extent| {
            let taken = extent.min(left.max(1));
            // Beyond an axis that is cut, one index of each.
            left = if taken < extent { 0 } else { left.checked_div(extent).unwrap_or(0) };
            taken
        })
        .collect();
    extents.reverse();
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_row_is_one_run_of_it() {
        assert_eq!(beginning(&[]), [0u64; 0]);
        assert_eq!(beginning(&[7]), [7]);
        assert_eq!(beginning(&[4, 1 << 20]), [1, 16 << 10]);
        assert_eq!(beginning(&[2048, 2048]), [8, 2048]);
        assert_eq!(beginning(&[9, 3, 2000]), [2, 3, 2000]);
        assert_eq!(beginning(&[9, 3, 9000]), [1, 1, 9000]);
        assert_eq!(beginning(&[5, 0]), [1, 0]);
    }
}
