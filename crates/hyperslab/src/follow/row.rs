//! Whether rows are written.

use super::Part;
use crate::array::{Array, ReadOptions};
use crate::error::{ErrorKind, Result};
use crate::exec::MissingChunks;
use crate::model::ChunkGrid;
use crate::select::{Item, Selection, Slice};
use crate::shape::{element_count, to_usize};

/// What is known of the rows of an array before they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Rows below this were announced before the writer went on: what they hold is what was written.
    pub(super) settled: u64,
    /// Nobody writes any more: what is not there was never written.
    pub(super) closed: bool,
}

/// Reads as many of the rows `first..first + count` as are written, from the first one on; `None` if it is not.
pub(super) fn read(array: &Array, first: u64, count: u64, known: Known) -> Result<Option<Part>> {
    let mut best = None;
    // Rows are written in order: where some are there and some are not, the border is searched for.
    let (mut low, mut high, mut wanted) = (0, count, count);
    loop {
        match attempt(array, first, wanted, known) {
            Ok(part) => {
                let got = part.rows();
                if got < wanted {
                    return if got > low { Ok(Some(part)) } else { Ok(best) };
                }
                low = wanted;
                best = Some(part);
            }
            Err(e) if !known.closed && (e.kind() == ErrorKind::NotYet || e.is_torn()) => {
                // If even one row alone is torn, that is for the caller to count.
                if wanted == 1 && e.kind() != ErrorKind::NotYet {
                    return Err(e);
                }
                high = wanted - 1;
            }
            Err(e) => return Err(e),
        }
        if low >= high {
            return Ok(best);
        }
        wanted = low + (high - low).div_ceil(2);
    }
}

/// Reads all of these rows, and gives those in front of the first that may not be written yet, perhaps none.
fn attempt(array: &Array, first: u64, count: u64, known: Known) -> Result<Part> {
    let edge = |at: u64| i64::try_from(at).ok();
    let slice = Slice { start: edge(first), stop: edge(first.saturating_add(count)), step: 1 };
    let selection = Selection::vectorised(vec![Item::Slice(slice)]);
    let missing = if known.closed { MissingChunks::Fill } else { MissingChunks::NotYet };
    let options = ReadOptions::new().with_missing(missing);
    array.attempt(|| {
        let (raw, _) = array.read_raw_with(&selection, &options)?;
        let rows = match known.closed {
            true => count,
            false => written(array, &raw.bytes, first, count, known.settled),
        };
        let mut shape = raw.shape;
        if let Some(own) = shape.first_mut() {
            *own = rows;
        }
        let elements = to_usize(element_count(&shape)?)?;
        let mut bytes = raw.bytes;
        bytes.truncate(elements.saturating_mul(raw.dtype.size()));
        let bytes = bytes::Bytes::from(bytes);
        let elements = array.decode(&raw.dtype, bytes.clone(), elements)?;
        Ok(Part { array: array.clone(), shape, bytes, elements })
    })
}

impl Part {
    /// How many rows it has.
    fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(0)
    }

    /// The first `count` of its rows.
    pub(super) fn first_rows(self, count: u64) -> Result<Part> {
        if count >= self.rows() {
            return Ok(self);
        }
        let mut shape = self.shape;
        if let Some(own) = shape.first_mut() {
            *own = count.min(*own);
        }
        let elements = to_usize(element_count(&shape)?)?;
        let length = elements.saturating_mul(self.array.dtype().size()).min(self.bytes.len());
        let bytes = self.bytes.slice(..length);
        let elements = self.array.decode(self.array.dtype(), bytes.clone(), elements)?;
        Ok(Part { array: self.array, shape, bytes, elements })
    }
}

/// How many of the rows in `bytes`, from the first one on, were written.
///
/// A chunk that is there may hold rows that are not: a writer may announce an extent before it writes, and until then they
/// are fill. So a row of which all that lies in one chunk is fill counts as written only if a later row of the same chunk is
/// not fill there, or if it is settled.
fn written(array: &Array, bytes: &[u8], first: u64, count: u64, settled: u64) -> u64 {
    let meta = array.meta();
    let row: Vec<u64> = array.shape().get(1..).unwrap_or(&[]).to_vec();
    let size = meta.dtype.size().max(1);
    let row_bytes = row.iter().fold(size, |n, &d| n.saturating_mul(usize::try_from(d).unwrap_or(usize::MAX)));
    let zeros = vec![0; size];
    let fill = if meta.fill_element.len() == size { &meta.fill_element[..] } else { &zeros[..] };
    let (rows_of_chunk, tile) = match &meta.grid {
        ChunkGrid::Regular(chunk) => {
            (chunk.first().copied().unwrap_or(1).max(1), chunk.get(1..).unwrap_or(&[]).to_vec())
        }
        // Refused before.
        ChunkGrid::Whole | ChunkGrid::Rectilinear { .. } => (1, row.clone()),
    };
    if row_bytes == 0 {
        return count;
    }
    let mut ready = count;
    let mut block = None;
    // Which tiles of the rows of a chunk held something in a later row.
    let mut seen: Vec<bool> = Vec::new();
    for i in (0..count).rev() {
        let at = first.saturating_add(i);
        if at < settled {
            break;
        }
        if block.replace(at / rows_of_chunk) != Some(at / rows_of_chunk) {
            seen.clear();
        }
        let start = usize::try_from(i).unwrap_or(usize::MAX).saturating_mul(row_bytes);
        let own = bytes.get(start..start.saturating_add(row_bytes)).unwrap_or(&[]);
        note_tiles(own, &row, &tile, size, fill, &mut seen);
        if seen.contains(&false) {
            ready = i;
        }
    }
    ready
}

/// Notes the tiles of one row that hold anything but fill.
fn note_tiles(bytes: &[u8], row: &[u64], tile: &[u64], size: usize, fill: &[u8], seen: &mut Vec<bool>) {
    let extent = |i: usize| usize::try_from(row.get(i).copied().unwrap_or(1)).unwrap_or(usize::MAX).max(1);
    let part = |i: usize| {
        let part = tile.get(i).copied().unwrap_or(u64::MAX).max(1);
        usize::try_from(part).unwrap_or(usize::MAX).min(extent(i))
    };
    let rank = row.len();
    let grid: Vec<usize> = (0..rank).map(|i| extent(i).div_ceil(part(i))).collect();
    let tiles = grid.iter().product::<usize>().max(1);
    seen.resize(tiles, false);
    // The last axis in runs of a tile each.
    let (line, run) = match rank.checked_sub(1) {
        Some(last) => (extent(last), part(last)),
        None => (1, 1),
    };
    for (number, line_bytes) in bytes.chunks(line.saturating_mul(size).max(1)).enumerate() {
        // The tile of the line: its coordinates on the other axes, in units of tiles.
        let (mut left, mut place, mut stride) = (number, 0, grid.last().copied().unwrap_or(1));
        for i in (0..rank.saturating_sub(1)).rev() {
            place += left % extent(i) / part(i) * stride;
            left /= extent(i);
            stride *= grid.get(i).copied().unwrap_or(1);
        }
        for (column, run_bytes) in line_bytes.chunks(run.saturating_mul(size).max(1)).enumerate() {
            let Some(known) = seen.get_mut(place + column) else { continue };
            *known = *known || run_bytes.chunks(size).any(|element| element != fill);
        }
    }
}
