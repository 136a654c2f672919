//! The elements of one array.

use super::CopyOptions;
use super::plan::chunks_of;
use super::scatter::{Scatter, Spill};
use crate::array::{Array, ReadOptions};
use crate::codec::Scratch;
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec::encode::{ChunkData, EncodeStats, Later, NewChunk};
use crate::model::write::{Content, Losses, ObjectPath, WriteLayout};
use crate::model::{ChunkGrid, ChunkRef, FillValue, NodeId, Storage};
use crate::select::{Region, Selector};
use crate::shape::{Coord, byte_count, element_count, runs, to_usize};
use crate::source::store::{Get, Store};
use crate::source::{ByteRange, Source};
use crate::write::{Fit, Format, Transaction};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// Encoded chunks that are fetched at a time.
const BATCH: usize = 64;

/// Copies the elements of `array` to the array at `path`.
pub(super) fn copy(
    array: &Array,
    transaction: &mut Transaction,
    path: &str,
    (format, options): (Format, &CopyOptions),
    path_of: &dyn Fn(&NodeId) -> Option<ObjectPath>,
) -> Result<(EncodeStats, Losses)> {
    let at = ObjectPath::spelled(path);
    let layout = transaction.layout_of(&at)?;
    if array.meta().space.is_null() || element_count(array.shape())? == 0 {
        return Ok((EncodeStats::default(), Losses::default()));
    }
    let fit = Fit::new(array.dtype(), &layout.dtype).context(|| format!("array {path}"))?;
    let lost = RefCell::default();
    let reader = Reader { array: array.clone(), fit, path_of, options, lost };
    if is_blank(&reader, &layout)? {
        return Ok((EncodeStats::default(), Losses::default()));
    }
    let stats = elements(&reader, transaction, format, &at, &layout)?;
    Ok((stats, reader.lost.into_inner()))
}

/// Whether nobody ever wrote to an array, and what is read of it then is what is read of its copy.
fn is_blank(reader: &Reader<'_>, layout: &WriteLayout) -> Result<bool> {
    let array = &reader.array;
    if !layout.may_skip_fill || !matches!(array.storage(), Storage::Chunks(_)) {
        return Ok(false);
    }
    let zeros = |bytes: &[u8]| bytes.iter().all(|&b| b == 0);
    let own = &array.meta().fill_element;
    let same = match (own.is_empty(), array.dtype().is_fixed()) {
        (true, _) => zeros(&layout.fill),
        (false, true) => {
            matches!(reader.fit.run(Content::Fixed(own.clone()))?, Content::Fixed(fill) if fill == layout.fill)
        }
        (false, false) => false,
    };
    if !same {
        return Ok(false);
    }
    let found = Cell::new(false);
    let ended = array.chunks(
        &mut |_, at| {
            found.set(found.get() || !matches!(at, ChunkRef::Absent));
            // One is enough.
            if found.get() { Err(Error::new(ErrorKind::Cancelled, "a chunk was found")) } else { Ok(()) }
        },
        &mut |_| found.set(true),
    );
    Ok(ended.is_ok() && !found.get())
}

fn elements(
    reader: &Reader<'_>,
    transaction: &mut Transaction,
    format: Format,
    at: &ObjectPath,
    layout: &WriteLayout,
) -> Result<EncodeStats> {
    let Reader { array, options, .. } = reader;
    // What one format calls a scalar, another calls a list of one element.
    if element_count(array.shape())? == 1
        && element_count(&layout.shape)? == 1
        && array.shape() != layout.shape
        || array.shape().is_empty()
    {
        let content = reader.read(Region::all(array.shape()))?;
        let coord = layout.shape.iter().map(|_| 0).collect();
        let chunk = NewChunk { coord, data: ChunkData::Elements(content) };
        return transaction.write_chunks(at, &mut std::iter::once(Ok(chunk)));
    }
    if array.shape().len() != layout.shape.len() {
        return Err(Error::invalid(format!("{:?} elements for {:?}", array.shape(), layout.shape)));
    }
    if let Some(mut stored) = Stored::new(array, layout, &reader.fit, format)? {
        return transaction.write_chunks(at, &mut stored);
    }
    // A quarter: what is read, what is cut of it, and what is encoded, twice.
    let budget = (options.memory / 4).max(1 << 20);
    let size = reader.element_size(layout);
    let stored = match &array.meta().grid {
        // Any part of it can be read alone.
        ChunkGrid::Whole => array.shape().iter().map(|_| 1).collect(),
        _ => chunks_of(array).unwrap_or_default(),
    };
    let block: Vec<u64> = layout.chunk.iter().zip(&layout.block).map(|(c, b)| c.saturating_mul(*b)).collect();
    let is_fixed = array.dtype().is_fixed() && layout.dtype.is_fixed();
    match tile(&layout.shape, &stored, &block, size, budget) {
        Some(tile) => {
            let mut chunks = Tiles::new(reader, layout, tile);
            transaction.write_chunks(at, &mut chunks)
        }
        None if is_fixed => {
            let scatter = Scatter::new(reader, layout, &stored, budget)?;
            transaction.write_chunks(at, &mut scatter.chunks())
        }
        None if !is_fixed && !refers(array.dtype(), 0) => {
            let spill = Spill::new(reader, layout, &stored, budget)?;
            transaction.write_chunks(at, &mut spill.chunks())
        }
        // References count from their own part on: each block is read by itself.
        None => {
            let mut chunks = Tiles::new(reader, layout, block);
            transaction.write_chunks(at, &mut chunks)
        }
    }
}

/// Whether some part of a type is a reference.
fn refers(dtype: &DType, depth: u32) -> bool {
    // No parser makes deeper types.
    depth > 128
        || match dtype {
            DType::Reference { .. } => true,
            DType::VarLen { base, .. } | DType::Array { base, .. } => refers(base, depth + 1),
            DType::Compound { fields, .. } => fields.iter().any(|f| refers(&f.dtype, depth + 1)),
            _ => false,
        }
}

/// Extents of tiles such that each stored chunk lies in two of them at most, and one tile takes `budget` bytes at most;
/// whole blocks, or to the end of an axis. `None` if there are no such.
pub(super) fn tile(shape: &[u64], stored: &[u64], block: &[u64], size: u64, budget: u64) -> Option<Vec<u64>> {
    let bytes = |extent: &[u64]| extent.iter().fold(size, |n, &e| n.saturating_mul(e));
    let capped = |extent: u64, d: u64| extent.min(d).max(1);
    let common: Vec<u64> = stored
        .iter()
        .zip(block)
        .zip(shape)
        .map(|((&s, &b), &d)| capped(multiple(s.min(d).max(1), b), d))
        .collect();
    if bytes(&common) <= budget {
        let mut extent = common;
        // Longer, the last axis first, for larger reads.
        for axis in (0..extent.len()).rev() {
            let (Some(&now), Some(&d)) = (extent.get(axis), shape.get(axis)) else { continue };
            let room = budget / bytes(&extent).max(1);
            let longer = capped(now.saturating_mul(room.max(1)), d);
            if let Some(slot) = extent.get_mut(axis) {
                *slot = longer;
            }
        }
        return Some(extent);
    }
    // Bands across one axis, as high as a chunk or higher, so that one crosses at most one border.
    (0..shape.len()).find_map(|axis| {
        let mut extent = shape.to_vec();
        let (&b, &d, &s) = (block.get(axis)?, shape.get(axis)?, stored.get(axis)?);
        *extent.get_mut(axis)? = 1;
        let row = bytes(&extent).max(1);
        let high = (budget / row / b.max(1)).saturating_mul(b);
        (high > 0 && high.saturating_add(1) >= s.min(d)).then(|| {
            if let Some(slot) = extent.get_mut(axis) {
                *slot = capped(high, d);
            }
            extent
        })
    })
}

/// The least common multiple, or a very large number.
fn multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a.max(1) / x).saturating_mul(b.max(1))
}

/// Reads elements as the target stores them.
pub(super) struct Reader<'a> {
    pub(super) array: Array,
    fit: Fit,
    path_of: &'a dyn Fn(&NodeId) -> Option<ObjectPath>,
    options: &'a CopyOptions,
    /// References that lead nowhere in the copy.
    lost: RefCell<Losses>,
}

impl Reader<'_> {
    /// A folder for what does not fit into memory.
    pub(super) fn scratch(&self) -> std::path::PathBuf {
        self.options.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Bytes that an element takes in memory, about.
    pub(super) fn element_size(&self, layout: &WriteLayout) -> u64 {
        let stored = layout.dtype.size().max(self.array.dtype().size()).max(1) as u64;
        // An object is a buffer of its own.
        if self.array.dtype().is_fixed() && layout.dtype.is_fixed() {
            stored
        } else {
            stored.saturating_add(64)
        }
    }

    /// The elements of a region.
    pub(super) fn read(&self, region: Region) -> Result<Content> {
        let array = &self.array;
        let options = match &self.options.create.open.cancel {
            Some(cancel) => ReadOptions::new().with_cancel(cancel.clone()),
            None => ReadOptions::new(),
        };
        let raw = array.read_region(region, &options)?;
        let content = match array.dtype().is_fixed() {
            true => Content::Fixed(raw.bytes.into()),
            false => {
                let count = to_usize(element_count(&raw.shape)?)?;
                let elements = array.decode(array.dtype(), raw.bytes.into(), count)?;
                let mut lost = self.lost.borrow_mut();
                Content::of_elements_in(array.dtype(), &elements, self.path_of, &mut lost)
                    .context(|| format!("array {}", array.path()))?
            }
        };
        self.fit.run(content).context(|| format!("array {}", array.path()))
    }

    /// The elements of a box, as far as it lies within the array: these, and the extents that there are.
    pub(super) fn read_box(&self, start: &[u64], extent: &[u64]) -> Result<Option<(Content, Vec<u64>)>> {
        let shape = self.array.shape();
        let there: Vec<u64> = start
            .iter()
            .zip(extent)
            .zip(shape)
            .map(|((&start, &n), &d)| n.min(d.saturating_sub(start)))
            .collect();
        if there.contains(&0) {
            return Ok(None);
        }
        let sides = start.iter().zip(&there).enumerate();
        let selectors = sides.map(|(axis, (&start, &n))| Selector::range(axis, start, 1, n)).collect();
        let region = Region::new(shape.to_vec(), selectors, there.clone(), there.clone())?;
        Ok(Some((self.read(region)?, there)))
    }
}

/// Elements of a box, and its extents.
type Held = (Content, Vec<u64>);

/// What is asked of one source or store, each with its place among the answers.
type Asked<S, Q> = Vec<(Arc<S>, Vec<(usize, Q)>)>;

/// Chunks by way of tiles, each of which is read at once.
struct Tiles<'a> {
    reader: &'a Reader<'a>,
    layout: &'a WriteLayout,
    tile: Vec<u64>,
    /// First element of the next tile; `None` behind the last.
    next: Option<Coord>,
    /// The tile that is open: its start, its elements and their extents.
    open: Option<(Coord, Option<Arc<Held>>)>,
    coords: VecDeque<Coord>,
}

impl<'a> Tiles<'a> {
    fn new(reader: &'a Reader<'a>, layout: &'a WriteLayout, tile: Vec<u64>) -> Tiles<'a> {
        let next = Some(layout.shape.iter().map(|_| 0).collect());
        Tiles { reader, layout, tile, next, open: None, coords: VecDeque::new() }
    }

    fn advance(&mut self) -> Result<bool> {
        let Some(start) = self.next.take() else { return Ok(false) };
        let extent: Vec<u64> = start
            .iter()
            .zip(&self.tile)
            .zip(&self.layout.shape)
            .map(|((&s, &t), &d)| t.min(d.saturating_sub(s)))
            .collect();
        self.next = step(&start, &self.tile, &self.layout.shape);
        self.coords = coords_in(self.layout, &start, &extent).into();
        self.open = Some((start.clone(), self.reader.read_box(&start, &extent)?.map(Arc::new)));
        Ok(true)
    }
}

/// The next start of a walk over a box in steps; `None` at its end.
pub(super) fn step(start: &Coord, steps: &[u64], shape: &[u64]) -> Option<Coord> {
    let mut next = start.clone();
    for axis in (0..next.len()).rev() {
        let (slot, &by, &d) = (next.get_mut(axis)?, steps.get(axis)?, shape.get(axis)?);
        *slot = slot.saturating_add(by.max(1));
        if *slot < d {
            return Some(next);
        }
        *slot = 0;
    }
    None
}

/// The chunks that begin in a box, those of one block after the other.
pub(super) fn coords_in(layout: &WriteLayout, start: &[u64], extent: &[u64]) -> Vec<Coord> {
    let sides = start.iter().zip(extent).zip(&layout.chunk);
    let first: Coord = sides.clone().map(|((s, _), c)| s.div_ceil((*c).max(1))).collect();
    let end: Coord = sides.map(|((s, n), c)| s.saturating_add(*n).div_ceil((*c).max(1))).collect();
    if first.iter().zip(&end).any(|(f, e)| f >= e) {
        return Vec::new();
    }
    let mut coords = Vec::new();
    let count: Vec<u64> = first.iter().zip(&end).map(|(f, e)| e - f).collect();
    let ones: Vec<u64> = count.iter().map(|_| 1).collect();
    let mut at: Option<Coord> = Some(count.iter().map(|_| 0).collect());
    while let Some(offset) = at {
        coords.push(offset.iter().zip(&first).map(|(o, f)| o + f).collect::<Coord>());
        at = step(&offset, &ones, &count);
    }
    if layout.block.iter().any(|&b| b > 1) {
        let block = |coord: &Coord| -> Coord {
            coord.iter().zip(&layout.block).map(|(c, b)| c / (*b).max(1)).collect()
        };
        coords.sort_by(|a, b| block(a).cmp(&block(b)).then(a.cmp(b)));
    }
    coords
}

impl Iterator for Tiles<'_> {
    type Item = Result<NewChunk<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(coord) = self.coords.pop_front() {
                let (start, held) = self.open.as_ref()?;
                if let Some(chunk) = held.as_ref().and_then(|held| later(self.layout, &coord, start, held)) {
                    return Some(Ok(chunk));
                }
                match cut(self.layout, &coord, start, held.as_deref()) {
                    Ok(Some(chunk)) => return Some(Ok(chunk)),
                    Ok(None) => continue,
                    Err(e) => return Some(Err(e)),
                }
            }
            // One tile at a time.
            self.open = None;
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// The chunk at `coord`, if all of it is in a box of elements of a fixed type that begins at `start`: it is cut out when it
/// is encoded.
fn later(layout: &WriteLayout, coord: &Coord, start: &[u64], held: &Arc<Held>) -> Option<NewChunk<'static>> {
    let valid = layout.valid_of(coord);
    let at = layout.start_of(coord);
    let offset: Coord = at.iter().zip(start).map(|(a, s)| a.saturating_sub(*s)).collect();
    let mut sides = offset.iter().zip(&valid).zip(&held.1);
    if !layout.dtype.is_fixed() || !sides.all(|((o, v), extent)| o.saturating_add(*v) <= *extent) {
        return None;
    }
    let (held, size) = (held.clone(), layout.dtype.size());
    let gather = move |out: &mut Vec<u8>| {
        let (Content::Fixed(bytes), extents) = &*held else { return Err(outside()) };
        append(bytes, size, extents, &offset, &valid, out)
    };
    Some(NewChunk { coord: coord.clone(), data: ChunkData::Later(Later::new(gather)) })
}

/// Appends the elements of a box, which begins at `offset` in one of these extents.
pub(super) fn append(
    bytes: &[u8],
    size: usize,
    extents: &[u64],
    offset: &[u64],
    count: &[u64],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.reserve_exact(to_usize(byte_count(count, size)?)?);
    for (from, _, run) in runs(extents, offset, count, count)? {
        let from = from.saturating_mul(size);
        let run = bytes.get(from..from.saturating_add(run.saturating_mul(size)));
        out.extend_from_slice(run.ok_or_else(outside)?);
    }
    Ok(())
}

/// The chunk at `coord`, of elements of a box that begins at `start`; `None` if there is nothing of it and it need not be
/// written. What of it is not in the box is the fill value.
pub(super) fn cut(
    layout: &WriteLayout,
    coord: &Coord,
    start: &[u64],
    held: Option<&(Content, Vec<u64>)>,
) -> Result<Option<NewChunk<'static>>> {
    let at = layout.start_of(coord);
    let valid = layout.valid_of(coord);
    let offset: Vec<u64> = at.iter().zip(start).map(|(a, s)| a.saturating_sub(*s)).collect();
    let extents = held.map(|(_, extents)| extents.as_slice()).unwrap_or(&[]);
    let there: Vec<u64> = offset
        .iter()
        .zip(&valid)
        .enumerate()
        .map(|(axis, (&o, &v))| v.min(extents.get(axis).copied().unwrap_or(0).saturating_sub(o)))
        .collect();
    let empty = there.contains(&0);
    if empty && layout.may_skip_fill {
        return Ok(None);
    }
    let count = to_usize(element_count(&valid)?)?;
    let content = match held.map(|(content, _)| content) {
        Some(Content::Objects { elements, targets }) => {
            let mut out = vec![layout.fill.clone(); count];
            if !empty {
                for (from, to, run) in runs(extents, &offset, &valid, &there)? {
                    let place = out.get_mut(to..to + run).zip(elements.get(from..from + run));
                    let (to, from) = place.ok_or_else(outside)?;
                    to.clone_from_slice(from);
                }
            }
            Content::Objects { elements: out, targets: targets.clone() }
        }
        None if !layout.dtype.is_fixed() => {
            Content::Objects { elements: vec![layout.fill.clone(); count], targets: Vec::new() }
        }
        found => {
            let size = layout.dtype.size();
            let whole = there.as_slice() == valid.as_slice();
            let mut out = match (whole, layout.fill.is_empty()) {
                (false, false) => layout.fill.repeat(count),
                _ => vec![0; count.saturating_mul(size)],
            };
            if let (Some(Content::Fixed(bytes)), false) = (found, empty) {
                for (from, to, run) in runs(extents, &offset, &valid, &there)? {
                    let place = out
                        .get_mut(to * size..(to + run) * size)
                        .zip(bytes.get(from * size..(from + run) * size));
                    let (to, from) = place.ok_or_else(outside)?;
                    to.copy_from_slice(from);
                }
            }
            Content::Fixed(out.into())
        }
    };
    Ok(Some(NewChunk { coord: coord.clone(), data: ChunkData::Elements(content) }))
}

fn outside() -> Error {
    Error::new(ErrorKind::OutOfBounds, "a chunk that lies outside of what was read")
}

/// Chunks as they are stored, where the target stores them so too.
struct Stored {
    chunks: VecDeque<(Coord, ChunkRef)>,
    fetched: VecDeque<NewChunk<'static>>,
    array: Array,
    layout: WriteLayout,
    /// Whether chunks may be without some of their filters there, too.
    keeps_masks: bool,
}

impl Stored {
    /// `None` if they have to be encoded anew.
    fn new(array: &Array, layout: &WriteLayout, fit: &Fit, format: Format) -> Result<Option<Stored>> {
        let meta = array.meta();
        let Storage::Chunks(_) = array.storage() else { return Ok(None) };
        let same = fit.is_identity()
            && array.dtype() == &layout.dtype
            && array.dtype().is_fixed()
            && array.shape() == layout.shape
            && matches!(&meta.grid, ChunkGrid::Regular(chunk) if *chunk == layout.chunk)
            && !layout.cut_edges;
        if !same {
            return Ok(None);
        }
        let mut chunks = Vec::new();
        let mut faults = Vec::new();
        array.chunks(
            &mut |coord, at| {
                chunks.push((coord, at));
                Ok(())
            },
            &mut |fault| faults.push(fault.error),
        )?;
        if let Some(fault) = faults.into_iter().next() {
            return Err(fault.context(format!("array {}", array.path())));
        }
        let grid = layout.grid();
        chunks.retain(|(coord, at)| {
            !matches!(at, ChunkRef::Absent) && coord.iter().zip(&grid).all(|(c, n)| c < n)
        });
        if !layout.may_skip_fill
            && meta.fill != FillValue::Undefined
            && chunks.len() as u64 != layout.count()?
        {
            return Ok(None);
        }
        // The same filters by name may still not be the same; the first chunk tells.
        let Some((_, first)) = chunks.iter().find(|(_, at)| mask_of(at) == 0) else {
            return Ok(if chunks.is_empty() {
                Some(Stored::of(array, layout, format, chunks))
            } else {
                None
            });
        };
        let Some(bytes) = fetch(std::slice::from_ref(first))?.pop().flatten() else { return Ok(None) };
        let (mut ours, mut theirs, mut scratch) = (Vec::new(), Vec::new(), Scratch::default());
        let source = array.pipeline()?;
        if source.names().count() != layout.pipeline.names().count() {
            return Ok(None);
        }
        source.decode(&bytes, 0, &mut theirs, &mut scratch).context(|| format!("array {}", array.path()))?;
        let decoded = layout.pipeline.decode(&bytes, 0, &mut ours, &mut scratch);
        if decoded.is_err() || ours != theirs {
            return Ok(None);
        }
        // And they encode to the same bytes here, so that a stage that decodes to what it is given is no other one.
        let mut again = Vec::new();
        if layout.pipeline.is_empty() != source.is_empty() {
            return Ok(None);
        }
        if source.encode(&theirs, &mut again, &mut scratch).is_ok() {
            let mut other = Vec::new();
            layout.pipeline.encode(&ours, &mut other, &mut scratch)?;
            let sums = layout.pipeline.decode(&again, 0, &mut ours, &mut scratch).is_ok()
                && source.decode(&other, 0, &mut theirs, &mut scratch).is_ok();
            if !sums || ours != theirs {
                return Ok(None);
            }
        }
        Ok(Some(Stored::of(array, layout, format, chunks)))
    }

    fn of(array: &Array, layout: &WriteLayout, format: Format, mut chunks: Vec<(Coord, ChunkRef)>) -> Stored {
        let block = |coord: &Coord| -> Coord {
            coord.iter().zip(&layout.block).map(|(c, b)| c / (*b).max(1)).collect()
        };
        chunks.sort_by(|(a, _), (b, _)| block(a).cmp(&block(b)).then(a.cmp(b)));
        let chunks = chunks.into();
        let keeps_masks = matches!(format, Format::Hdf5 | Format::NetCdf4);
        let (array, layout) = (array.clone(), layout.clone());
        Stored { chunks, fetched: VecDeque::new(), array, layout, keeps_masks }
    }

    fn fill(&mut self) -> Result<()> {
        let count = self.chunks.len().min(BATCH);
        let batch: Vec<(Coord, ChunkRef)> = self.chunks.drain(..count).collect();
        let refs: Vec<ChunkRef> = batch.iter().map(|(_, at)| at.clone()).collect();
        let found = fetch(&refs)?;
        for ((coord, at), bytes) in batch.into_iter().zip(found) {
            let Some(bytes) = bytes else { continue };
            let mask = mask_of(&at);
            let data = if mask == 0 || self.keeps_masks {
                ChunkData::Encoded { bytes, mask }
            } else {
                // A chunk without some of its filters gets them now.
                let (mut elements, mut scratch) = (Vec::new(), Scratch::default());
                self.array
                    .pipeline()?
                    .decode(&bytes, mask, &mut elements, &mut scratch)
                    .context(|| format!("chunk {:?}", coord.as_slice()))?;
                let held = (Content::Fixed(elements.into()), self.layout.chunk.clone());
                match cut(&self.layout, &coord, &self.layout.start_of(&coord), Some(&held))? {
                    Some(chunk) => chunk.data,
                    None => continue,
                }
            };
            self.fetched.push_back(NewChunk { coord, data });
        }
        Ok(())
    }
}

impl Iterator for Stored {
    type Item = Result<NewChunk<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.fetched.is_empty() && !self.chunks.is_empty() {
            if let Err(e) = self.fill() {
                return Some(Err(e));
            }
        }
        self.fetched.pop_front().map(Ok)
    }
}

fn mask_of(at: &ChunkRef) -> u32 {
    match at {
        ChunkRef::Memory { mask, .. } | ChunkRef::Range { mask, .. } => *mask,
        _ => 0,
    }
}

/// The stored bytes of chunks, those of one source in one batch; `None` for objects that are not there.
fn fetch(refs: &[ChunkRef]) -> Result<Vec<Option<Bytes>>> {
    let mut found: Vec<Option<Bytes>> = vec![None; refs.len()];
    let mut sources: Asked<dyn Source, ByteRange> = Vec::new();
    let mut stores: Asked<dyn Store, Get> = Vec::new();
    for (i, at) in refs.iter().enumerate() {
        match at {
            ChunkRef::Range { source, offset, length, .. } => {
                let range = (i, ByteRange::new(*offset, *length));
                match sources.iter_mut().find(|(known, _)| Arc::ptr_eq(known, source)) {
                    Some((_, ranges)) => ranges.push(range),
                    None => sources.push((source.clone(), vec![range])),
                }
            }
            ChunkRef::Memory { bytes, .. } => {
                if let Some(slot) = found.get_mut(i) {
                    *slot = Some(bytes.clone());
                }
            }
            ChunkRef::Object { store, key } => {
                let get = (i, Get::whole(key.to_string()));
                match stores.iter_mut().find(|(known, _)| Arc::ptr_eq(known, store)) {
                    Some((_, gets)) => gets.push(get),
                    None => stores.push((store.clone(), vec![get])),
                }
            }
            ChunkRef::Absent => {}
        }
    }
    for (source, ranges) in sources {
        let wanted: Vec<ByteRange> = ranges.iter().map(|(_, range)| *range).collect();
        for ((i, _), bytes) in ranges.into_iter().zip(source.read(&wanted)?) {
            if let Some(slot) = found.get_mut(i) {
                *slot = Some(bytes);
            }
        }
    }
    for (store, gets) in stores {
        let wanted: Vec<Get> = gets.iter().map(|(_, get)| get.clone()).collect();
        for ((i, get), bytes) in gets.into_iter().zip(store.get_many(&wanted)) {
            if let Some(slot) = found.get_mut(i) {
                *slot = bytes.context(|| get.key)?;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many tiles a stored chunk touches at most.
    fn most(shape: &[u64], stored: &[u64], tile: &[u64]) -> u64 {
        let axis = |((&d, &s), &t): ((&u64, &u64), &u64)| {
            let touched = |first: u64| (first + s.min(d - first) - 1) / t - first / t + 1;
            (0..d.div_ceil(s)).map(|c| touched(c * s)).max().unwrap()
        };
        shape.iter().zip(stored).zip(tile).map(axis).product()
    }

    #[test]
    fn tiles_touch_each_stored_chunk_twice_at_most() {
        #[allow(clippy::type_complexity)]
        let cases: &[(&[u64], &[u64], &[u64], u64, bool)] = &[
            (&[100, 100], &[10, 10], &[20, 5], 1 << 20, true),
            (&[100, 100], &[7, 100], &[100, 9], 1 << 20, true),
            (&[1000, 64, 64], &[1, 64, 64], &[100, 16, 16], 2 << 20, true),
            (&[1000, 64, 64], &[1, 64, 64], &[1000, 4, 4], 100_000, false),
            (&[50, 50], &[13, 11], &[17, 19], 4 * 50 * 17, true),
            (&[5], &[100], &[3], 1 << 20, true),
        ];
        for (shape, stored, block, budget, there) in cases {
            let found = tile(shape, stored, block, 4, *budget);
            assert_eq!(found.is_some(), *there, "{shape:?} {stored:?} {block:?}");
            let Some(tile) = found else { continue };
            assert!(4 * tile.iter().product::<u64>() <= *budget, "{tile:?}");
            assert!(most(shape, stored, &tile) <= 2, "{shape:?} {stored:?} {tile:?}");
            for ((t, b), d) in tile.iter().zip(*block).zip(*shape) {
                assert!(t % b == 0 || t == d, "{tile:?} {block:?}");
            }
        }
    }
}
