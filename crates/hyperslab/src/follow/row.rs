//! Whether rows are written.
//!
//! Storage can hold rows that nobody wrote: extents are announced before they are filled, chunks of several rows are stored
//! with one of them, arrays are made at full length. What was not written is fill then, and fill may also be what was written.
//! So a row counts as written
//!
//! 1. when all its chunks are there and no element of it is fill; or
//! 2. when in each column of chunks in which it holds fill a *later* row holds something else (its writer has moved past it)
//!    and it holds the same after [`Known::window`]: what a writer changes in place is not seen whole at one moment; or
//! 3. when the writer has closed the file.
//!
//! It is assumed that a writer goes through the rows of a column of chunks in their order, and that what it wrote before it
//! went on is seen a window later. Anything else is *not yet*.

use super::Part;
use super::settle::{Head, Settling, digest};
use crate::array::{Array, ReadOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::MissingChunks;
use crate::model::{
    ChunkGrid, ChunkRef, Elements, Hyperslab, Layout, SpaceSelection, Storage, Value, VirtualMapping,
};
use crate::select::{Item, Selection, Slice};
use crate::shape::{Coord, element_count, to_usize};
use bytes::Bytes;
use std::time::{Duration, Instant};

/// What is known of the rows of an array before they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Nobody writes any more: what is not there was never written.
    pub(super) closed: bool,
    /// How long rows that hold fill must hold the same.
    pub(super) window: Duration,
    /// How many rows to look at for one that is later, beyond those that are read.
    pub(super) ahead: u64,
    /// When the last look began.
    pub(super) before: Option<Instant>,
}

/// What can be said of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No element is fill.
    Written,
    /// Where it holds fill a later row does not.
    Passed,
    /// It holds fill, and nothing says that it was written.
    Open,
}

/// Reads as many of the rows `first..first + count` as are written, from the first one on; `None` if it is not. Rows that
/// have to wait are noted.
pub(super) fn read(
    array: &Array,
    first: u64,
    count: u64,
    known: Known,
    settling: &mut Settling,
) -> Result<Option<Part>> {
    if known.closed {
        settling.end_waiting();
        return attempt(array, first, count, known, settling).map(Some);
    }
    let end = first.saturating_add(count);
    match settling.head(first, known.window) {
        Head::None => border(array, first, count, known, settling),
        Head::Behind(at) => border(array, first, at.min(end) - first, known, settling),
        Head::Waits(behind) => {
            if behind < end {
                border(array, behind, end - behind, known, settling)?;
            }
            Ok(None)
        }
        Head::Due(run) => {
            let rows = match load(array, first, run.end - first, MissingChunks::NotYet) {
                Ok(rows) => Some(rows),
                Err(e) if is_early(&e) => None,
                Err(e) => return Err(e),
            };
            let same = match &rows {
                Some(rows) => run.is(rows.digest(0, run.end - first)?),
                None => false,
            };
            settling.decide(same);
            match rows.filter(|_| same) {
                Some(rows) => Ok(Some(rows.part(array))),
                None => border(array, first, count, known, settling),
            }
        }
    }
}

/// Whether an error says that something is not written yet, or half.
pub(super) fn is_early(e: &Error) -> bool {
    e.kind() == ErrorKind::NotYet || e.is_torn()
}

/// Searches for the border between rows that are there and rows that are not: they are written in order.
fn border(
    array: &Array,
    first: u64,
    count: u64,
    known: Known,
    settling: &mut Settling,
) -> Result<Option<Part>> {
    let mut best = None;
    let (mut low, mut high, mut wanted) = (0, count, count);
    loop {
        match attempt(array, first, wanted, known, settling) {
            Ok(part) => {
                let got = part.rows();
                if got < wanted {
                    return Ok(if got > low { Some(part) } else { best });
                }
                low = wanted;
                best = Some(part);
            }
            Err(e) if is_early(&e) => {
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

/// Reads all of these rows, gives those in front of the first that may not be written yet, perhaps none, and notes those
/// behind them that have to wait.
fn attempt(array: &Array, first: u64, count: u64, known: Known, settling: &mut Settling) -> Result<Part> {
    let missing = if known.closed { MissingChunks::Fill } else { MissingChunks::NotYet };
    let rows = load(array, first, count, missing)?;
    if known.closed {
        return Ok(rows.part(array));
    }
    let mut later = Vec::new();
    let step = step(array);
    let mut states = rows.states(array, first, settling.settled(), &mut later, step)?;
    let behind = first.saturating_add(count);
    let left = array.shape().first().copied().unwrap_or(0).saturating_sub(behind);
    // What lies behind may say more of rows that hold fill.
    if states.contains(&State::Open) && left > 0 {
        let more = load(array, behind, known.ahead.clamp(1, left), MissingChunks::Fill).and_then(|more| {
            later.clear();
            more.states(array, behind, 0, &mut later, None)?;
            step.map_or(Ok(()), |step| mark_chunks(array, step, behind, &mut later))
        });
        match more {
            Ok(()) => states = rows.states(array, first, settling.settled(), &mut later, step)?,
            Err(e) if is_early(&e) => {}
            Err(e) => return Err(e),
        }
    }
    let run = |from: usize, good: &dyn Fn(State) -> bool| {
        states.get(from..).unwrap_or_default().iter().take_while(|state| good(**state)).count()
    };
    let written = run(0, &|state| state == State::Written);
    let waiting = run(written, &|state| state != State::Open);
    let (from, to) = (written as u64, (written + waiting) as u64);
    // Those that follow ones that wait come with them.
    let noted = if settling.ends_at(first) { 0 } else { from };
    if noted < to {
        settling.note(first + noted, first + to, rows.digest(noted, to)?, known.before);
    }
    rows.part(array).first_rows(from)
}

/// Rows as they were read.
struct Loaded {
    shape: Vec<u64>,
    bytes: Bytes,
    elements: Elements,
    fixed: bool,
    /// Elements of a row.
    width: usize,
}

/// Reads rows, whatever they hold.
fn load(array: &Array, first: u64, count: u64, missing: MissingChunks) -> Result<Loaded> {
    let edge = |at: u64| i64::try_from(at).ok();
    let slice = Slice { start: edge(first), stop: edge(first.saturating_add(count)), step: 1 };
    let selection = Selection::vectorised(vec![Item::Slice(slice)]);
    let options = ReadOptions::new().with_missing(missing);
    array.attempt(|| {
        let (raw, _) = array.read_raw_with(&selection, &options)?;
        let width = to_usize(element_count(raw.shape.get(1..).unwrap_or(&[]))?)?;
        let total = to_usize(element_count(&raw.shape)?)?;
        let bytes = Bytes::from(raw.bytes);
        let elements = array.decode(&raw.dtype, bytes.clone(), total)?;
        Ok(Loaded { shape: raw.shape, bytes, elements, fixed: raw.dtype.is_fixed(), width })
    })
}

/// What rows hold, chunks that are missing as fill.
pub(super) fn content(array: &Array, first: u64, count: u64) -> Result<u64> {
    let rows = load(array, first, count, MissingChunks::Fill)?;
    rows.digest(0, count)
}

impl Loaded {
    fn part(self, array: &Array) -> Part {
        Part { array: array.clone(), shape: self.shape, bytes: self.bytes, elements: self.elements }
    }

    fn digest(&self, from: u64, to: u64) -> Result<u64> {
        let at = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(self.width);
        digest(&self.elements, &self.bytes, self.fixed, at(from), at(to))
    }

    /// What can be said of each row. `later`: in which columns of chunks a later row holds something but fill, before and
    /// after; empty for none. Rows below `settled` are written. `step`: the rows of a chunk, where all chunks of these rows
    /// are there and say that they were written.
    fn states(
        &self,
        array: &Array,
        first: u64,
        settled: u64,
        later: &mut Vec<bool>,
        step: Option<u64>,
    ) -> Result<Vec<State>> {
        let rows = usize::try_from(self.shape.first().copied().unwrap_or(0)).unwrap_or(usize::MAX);
        let mut states = vec![State::Written; rows];
        if self.width == 0 {
            return Ok(states);
        }
        let columns = Columns::new(array);
        let fill = Fill::new(array, self.fixed)?;
        later.resize(columns.count, false);
        let mut marks = vec![Mark::default(); columns.count];
        for (i, state) in states.iter_mut().enumerate().rev() {
            if first.saturating_add(i as u64) < settled {
                break;
            }
            marks.fill(Mark::default());
            columns.visit(i * self.width, |column, from, to| {
                let Some(mark) = marks.get_mut(column) else { return Ok(()) };
                for element in from..to {
                    if mark.fill && mark.data {
                        break;
                    }
                    match fill.is(self, element)? {
                        true => mark.fill = true,
                        false => mark.data = true,
                    }
                }
                Ok(())
            })?;
            if marks.iter().any(|mark| mark.fill) {
                let passed = marks.iter().zip(&*later).all(|(mark, later)| !mark.fill || *later);
                *state = if passed { State::Passed } else { State::Open };
            }
            if columns.in_order {
                marks.iter().zip(&mut *later).for_each(|(mark, later)| *later |= mark.data);
                // In front of the first row of its chunks.
                if step.is_some_and(|step| first.saturating_add(i as u64).is_multiple_of(step)) {
                    later.fill(true);
                }
            }
        }
        Ok(states)
    }
}

/// What a row holds in a column of chunks.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    fill: bool,
    data: bool,
}

/// Times of allocation, as the notes of an array call them, at which a chunk comes to be when something is written to it.
const INCREMENTAL: [&str; 2] = ["incremental", "default"];

/// Rows of a chunk, where a chunk is there only because something was written to it, be it fill: that its writer has gone on
/// to it is then known. Records of netCDF-3 are there as soon as one variable has them, and anybody may fill a store.
fn step(array: &Array) -> Option<u64> {
    let meta = array.meta();
    let written = |note: &(&str, String)| note.0 == "allocation time" && INCREMENTAL.contains(&&*note.1);
    match (&meta.grid, &meta.layout, array.storage()) {
        (ChunkGrid::Regular(chunk), Layout::Chunked { .. }, Storage::Chunks(_)) => {
            chunk.first().copied().filter(|&height| height > 0 && meta.notes.iter().any(written))
        }
        _ => None,
    }
}

/// Notes in which columns the first chunk is there of which all rows are at `behind` or later.
fn mark_chunks(array: &Array, step: u64, behind: u64, later: &mut [bool]) -> Result<()> {
    let Storage::Chunks(index) = array.storage() else { return Ok(()) };
    let row = behind.div_ceil(step);
    if row.saturating_mul(step) >= array.shape().first().copied().unwrap_or(0) {
        return Ok(());
    }
    let grid = Columns::new(array).grid;
    let at = |column: usize| {
        let mut left = column;
        let inner = grid.iter().rev().map(|&extent| {
            let place = left % extent.max(1);
            left /= extent.max(1);
            place as u64
        });
        let mut coord: Coord = inner.collect();
        coord.push(row);
        coord.reverse();
        coord
    };
    let wanted: Vec<Coord> = (0..later.len()).map(at).collect();
    let found = array.attempt(|| index.locate(&wanted))?;
    for (later, chunk) in later.iter_mut().zip(found) {
        *later |= matches!(chunk, ChunkRef::Range { .. });
    }
    Ok(())
}

/// The element that stands for those that were never written.
enum Fill {
    Bytes(Vec<u8>),
    /// Of elements that point to something: what it points to.
    Value(Value),
}

impl Fill {
    fn new(array: &Array, fixed: bool) -> Result<Self> {
        let meta = array.meta();
        let size = meta.dtype.size();
        let bytes = if meta.fill_element.len() == size { meta.fill_element.to_vec() } else { vec![0; size] };
        if fixed {
            return Ok(Fill::Bytes(bytes));
        }
        Ok(Fill::Value(array.decode(&meta.dtype, bytes.into(), 1)?.value(0)?))
    }

    fn is(&self, rows: &Loaded, element: usize) -> Result<bool> {
        match self {
            Fill::Bytes(fill) => {
                let at = element.saturating_mul(fill.len());
                Ok(rows.bytes.get(at..at.saturating_add(fill.len())) == Some(&fill[..]))
            }
            Fill::Value(fill) => Ok(rows.elements.value(element)? == *fill),
        }
    }
}

/// How a row is cut by the grid of chunks.
struct Columns {
    row: Vec<usize>,
    tile: Vec<usize>,
    grid: Vec<usize>,
    count: usize,
    /// Whether one writer goes through the rows of a column.
    in_order: bool,
}

impl Columns {
    fn new(array: &Array) -> Self {
        let whole = |d: &u64| usize::try_from(*d).unwrap_or(usize::MAX).max(1);
        let row: Vec<usize> = array.shape().get(1..).unwrap_or(&[]).iter().map(whole).collect();
        let tile: Vec<usize> = match &array.meta().grid {
            ChunkGrid::Regular(chunk) => {
                let own = chunk.get(1..).unwrap_or(&[]).iter().map(whole);
                own.zip(&row).map(|(tile, row)| tile.min(*row)).collect()
            }
            // In one piece; the others were refused before.
            ChunkGrid::Whole | ChunkGrid::Rectilinear { .. } => row.clone(),
        };
        // How the sources of a virtual dataset are cut is not known here: no element says anything of another.
        let (tile, in_order) = match array.storage() {
            Storage::Virtual(mappings) => (vec![1; row.len()], mappings.iter().all(maps_rows_in_order)),
            _ => (tile, true),
        };
        let grid: Vec<usize> = row.iter().zip(&tile).map(|(row, tile)| row.div_ceil(*tile)).collect();
        let count = grid.iter().fold(1usize, |n, &d| n.saturating_mul(d));
        Columns { row, tile, grid, count, in_order }
    }

    /// Calls `each` for each run of the elements of a row, the first of which is `start`, that lies in one column of chunks:
    /// number of the column, first element, the one behind the last.
    fn visit(&self, start: usize, mut each: impl FnMut(usize, usize, usize) -> Result<()>) -> Result<()> {
        let (Some(&line), Some(&run)) = (self.row.last(), self.tile.last()) else {
            return each(0, start, start + 1);
        };
        let above = self.row.len() - 1;
        let lines = self.row.iter().take(above).product::<usize>();
        for number in 0..lines {
            // The column of the line: its coordinates on the other axes, in units of tiles.
            let (mut left, mut place, mut stride) = (number, 0, self.grid.last().copied().unwrap_or(1));
            for ((&row, &tile), &grid) in self.row.iter().zip(&self.tile).zip(&self.grid).take(above).rev() {
                place += left % row / tile * stride;
                left /= row;
                stride *= grid;
            }
            let begin = start + number * line;
            for (column, at) in (0..line).step_by(run).enumerate() {
                each(place + column, begin + at, begin + (at + run).min(line))?;
            }
        }
        Ok(())
    }
}

/// Whether all rows of a part of a virtual dataset come from one source, which has them in the same order.
fn maps_rows_in_order(mapping: &VirtualMapping) -> bool {
    let rows = match &mapping.selection {
        SpaceSelection::All => true,
        SpaceSelection::Regular(Hyperslab { start, stride, count, block }) => {
            let one = count.first() == Some(&Some(1));
            let side_by_side = block.first().copied().flatten().is_some_and(|b| stride.first() == Some(&b));
            start.first() == Some(&0) && (one || side_by_side)
        }
        _ => false,
    };
    rows && !mapping.file.as_bytes().contains(&b'%') && !mapping.dataset.as_bytes().contains(&b'%')
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
