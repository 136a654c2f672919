//! One worker: fetches, decodes, converts and places the tasks of a unit.

use super::cache::Slot;
use super::{Job, MissingChunks, ReadStats};
use crate::codec::Scratch;
use crate::dtype::Conversion;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Fetch, Part, Span, Task};
use crate::select::{ChunkPart, Piece};
use crate::shape::to_usize;
use crate::source::{ByteRange, Source, Store};
use hyperslab_kernels::canvas::{Input, Lane, PlaceError, Tile, Verbatim};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// Buffers longer than this are not kept from read to read.
const KEPT: usize = 8 << 20;

/// Bytes that are read at a time where they are changed afterwards: while the processor's cache still has them.
const CACHED: usize = 128 << 10;

/// What a thread keeps from chunk to chunk and from read to read.
#[derive(Default)]
pub(super) struct Worker {
    encoded: Vec<u8>,
    decoded: Vec<u8>,
    scratch: Scratch,
    pub(super) stats: ReadStats,
}

thread_local! {
    static WORKER: RefCell<Option<Box<Worker>>> = const { RefCell::new(None) };
}

/// Runs `work` with this thread's buffers.
pub(super) fn with(work: impl FnOnce(&mut Worker)) {
    // Taken out, so that a source which reads an array itself gets buffers of its own.
    let kept = WORKER.try_with(|w| w.try_borrow_mut().ok().and_then(|mut w| w.take())).ok().flatten();
    let mut worker = kept.unwrap_or_default();
    work(&mut worker);
    if worker.encoded.capacity() > KEPT {
        worker.encoded = Vec::new();
    }
    if worker.decoded.capacity() > KEPT {
        worker.decoded = Vec::new();
        worker.scratch = Scratch::default();
    }
    let _ = WORKER.try_with(|w| w.try_borrow_mut().map(|mut w| *w = Some(worker)));
}

/// The lanes of a chunk's part; `windows` narrows its pieces, empty: to nothing.
type Lanes<'a> = SmallVec<[Lane<'a>; 4]>;

fn lanes<'a>(part: &ChunkPart<'a>, windows: &[Range<usize>]) -> Lanes<'a> {
    part.pieces
        .iter()
        .enumerate()
        .map(|(i, piece)| {
            let window = windows.get(i).cloned().unwrap_or(0..piece.count());
            let input = match *piece {
                Piece::Even { start, step, .. } => Input::Even { start: start + window.start * step, step },
                Piece::Listed { inside, .. } => Input::Listed(inside.get(window.clone()).unwrap_or(&[])),
            };
            Lane { first: piece.first() + window.start, count: window.len(), input }
        })
        .collect()
}

/// Converts and places elements; `source` starts with the chunk's element `base`.
pub(super) fn place(
    tile: &mut Tile<'_>,
    lanes: &[Lane<'_>],
    source: &[u8],
    base: usize,
    conversion: &Conversion,
) -> Result<()> {
    fn plain<const N: usize>(
        tile: &mut Tile<'_>,
        lanes: &[Lane<'_>],
        source: &[u8],
        base: usize,
    ) -> Result<()> {
        tile.place(lanes, source, base, &Verbatim::<N>).map_err(|e| match e {
            PlaceError::Bounds => out_of_bounds(),
            PlaceError::Convert(never) => match never {},
        })
    }
    if conversion.is_verbatim() {
        match conversion.target_size() {
            1 => return plain::<1>(tile, lanes, source, base),
            2 => return plain::<2>(tile, lanes, source, base),
            4 => return plain::<4>(tile, lanes, source, base),
            8 => return plain::<8>(tile, lanes, source, base),
            16 => return plain::<16>(tile, lanes, source, base),
            _ => {}
        }
    }
    tile.place(lanes, source, base, conversion).map_err(|e| match e {
        PlaceError::Bounds => out_of_bounds(),
        PlaceError::Convert(e) => e,
    })
}

fn out_of_bounds() -> Error {
    Error::new(ErrorKind::Corrupt, "a chunk holds fewer elements than are wanted of it")
}

/// Room for `length` bytes at the front of a buffer that only grows.
fn room(buffer: &mut Vec<u8>, length: usize) -> Result<&mut [u8]> {
    if buffer.len() < length {
        let more = length - buffer.len();
        buffer
            .try_reserve(more)
            .map_err(|_| Error::new(ErrorKind::LimitExceeded, format!("no memory for {length} bytes")))?;
        buffer.resize(length, 0);
    }
    Ok(&mut buffer[..length])
}

/// Reads a range into a buffer, which is not made longer than what the source has.
fn read<'b>(
    source: &Arc<dyn Source>,
    range: ByteRange,
    buffer: &'b mut Vec<u8>,
    stats: &mut ReadStats,
) -> Result<&'b [u8]> {
    if range.length > buffer.len() as u64 && range.length > 1 << 16 {
        let length = source.len()?;
        if range.end().is_none_or(|end| end > length) {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{} bytes wanted at {:#x}, but there are only {length}", range.length, range.offset),
            ));
        }
    }
    let buffer = room(buffer, to_usize(range.length)?)?;
    source.read_into(range.offset, buffer)?;
    stats.requests += 1;
    stats.bytes_read += range.length;
    Ok(buffer)
}

impl Worker {
    /// Does the tasks of a unit, fetching for itself.
    pub(super) fn unit(&mut self, job: &Job<'_>, unit: &Range<usize>) {
        let part = job.part;
        let tasks = part.tasks.get(unit.clone()).unwrap_or(&[]);
        let mut slots: SmallVec<[Slot; 4]> = tasks.iter().map(|task| job.slot(task)).collect();
        let all_wanted = !slots.iter().any(|slot| matches!(slot, Slot::Found(_)));
        let joined = if tasks.len() > 1 && all_wanted { part.joined(unit) } else { None };
        let mut buffer = std::mem::take(&mut self.encoded);
        // One request for all. If it fails, each chunk is read alone, so that the error is that of the right one.
        let merged = match joined.and_then(|(source, range)| Some((part.sources.get(source)?, range))) {
            Some((source, range)) if read(source, range, &mut buffer, &mut self.stats).is_ok() => Some(range),
            _ => None,
        };
        for (i, (task, slot)) in tasks.iter().zip(slots.drain(..)).enumerate() {
            let number = unit.start + i;
            if !job.wants(number) {
                break;
            }
            let done = match (task.fetch, merged) {
                (Fetch::Encoded { offset, length, mask, .. }, Some(range)) => {
                    // Within the range that was read, which fits memory.
                    let from = (offset - range.offset) as usize;
                    match buffer.get(from..from + length as usize) {
                        Some(encoded) => self.decoded(job, task, encoded, mask, slot),
                        None => Err(out_of_bounds()),
                    }
                }
                _ => self.task(job, task, slot, &mut buffer),
            };
            if let Err(e) = done {
                job.fail(number, describe(job, task, e));
            }
        }
        self.encoded = buffer;
        job.count(&std::mem::take(&mut self.stats));
    }

    /// Does a task, fetching for itself.
    pub(super) fn task(
        &mut self,
        job: &Job<'_>,
        task: &Task,
        slot: Slot,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let part = job.part;
        match task.fetch {
            _ if matches!(slot, Slot::Found(_)) => self.decoded(job, task, &[], 0, slot),
            Fetch::Encoded { source, offset, length, mask } => {
                let source = source_of(job, source)?;
                let range = ByteRange::new(offset, length);
                let encoded = read(source, range, buffer, &mut self.stats)?;
                self.decoded(job, task, encoded, mask, slot)
            }
            Fetch::Stored { source, .. } => {
                let source = source_of(job, source)?;
                let chunk = chunk_of(job, task)?;
                let mut tile = claim(job, &chunk)?;
                self.stats.chunks_copied += 1;
                for span in part.spans(task)? {
                    let lanes = lanes(&chunk, &span.windows);
                    if let Some(target) = straight(job, &mut tile, &lanes, &span) {
                        let piece = if job.conversion.is_verbatim() { target.len() } else { CACHED };
                        for (target, at) in target.chunks_mut(piece.max(1)).zip((0..).step_by(piece.max(1))) {
                            // Within the span, whose end is known to be a number.
                            source.read_into(span.range.offset + at, target)?;
                            self.stats.requests += 1;
                            job.conversion.in_place(target);
                        }
                        self.stats.bytes_read += span.range.length;
                    } else {
                        let bytes = read(source, span.range, buffer, &mut self.stats)?;
                        place(&mut tile, &lanes, bytes, span.base, job.conversion)?;
                    }
                }
                Ok(())
            }
            Fetch::Object { store, key } => {
                let bytes = object(job, store, key, |store, key| store.get_within(key, part.most))
                    .map_err(|e| too_long(part, e))?;
                self.stats.requests += 1;
                self.object(job, task, bytes.as_deref(), slot)
            }
            _ => self.in_memory(job, task),
        }
    }

    /// Does a task whose chunk is an object, given its bytes if there is one.
    pub(super) fn object(
        &mut self,
        job: &Job<'_>,
        task: &Task,
        bytes: Option<&[u8]>,
        slot: Slot,
    ) -> Result<()> {
        let Some(bytes) = bytes else { return self.fill(job, task) };
        self.stats.bytes_read += bytes.len() as u64;
        let pipeline = &job.part.pipeline;
        if !pipeline.is_empty() {
            return self.decoded(job, task, bytes, 0, slot);
        }
        if bytes.len() as u64 != pipeline.chunk_bytes() {
            let wanted = usize::try_from(pipeline.chunk_bytes()).unwrap_or(usize::MAX);
            return Err(crate::codec::wrong_length("unfiltered chunk", bytes.len(), wanted));
        }
        let chunk = chunk_of(job, task)?;
        self.stats.chunks_copied += 1;
        place(&mut claim(job, &chunk)?, &lanes(&chunk, &[]), bytes, 0, job.conversion)
    }

    /// Places the fill value.
    fn fill(&mut self, job: &Job<'_>, task: &Task) -> Result<()> {
        match job.missing {
            MissingChunks::Raise => {
                return Err(Error::new(ErrorKind::NotFound, "the chunk was never written"));
            }
            MissingChunks::NotYet => {
                return Err(Error::new(ErrorKind::NotYet, "the chunk is not written yet"));
            }
            MissingChunks::Fill | MissingChunks::Nan => {}
        }
        self.stats.chunks_filled += 1;
        if job.filled {
            return Ok(());
        }
        let chunk = chunk_of(job, task)?;
        let mut tile = claim(job, &chunk)?;
        // Every element from the same place.
        let mut lanes = lanes(&chunk, &[]);
        lanes.iter_mut().for_each(|lane| lane.input = Input::Even { start: 0, step: 0 });
        place(&mut tile, &lanes, &job.fill, 0, &Conversion::stored(job.fill.len()))
    }

    /// Does a task that needs nothing from a source.
    pub(super) fn in_memory(&mut self, job: &Job<'_>, task: &Task) -> Result<()> {
        match task.fetch {
            Fetch::Fill => self.fill(job, task),
            Fetch::Inline { index, mask } => {
                let bytes = job.part.inline_bytes(index)?.clone();
                self.decoded(job, task, &bytes, mask, Slot::Passing)
            }
            Fetch::InlineStored { index, offset } => {
                let bytes = job.part.inline_bytes(index)?;
                let from = bytes.get(to_usize(offset)?..).ok_or_else(out_of_bounds)?;
                let chunk = chunk_of(job, task)?;
                self.stats.chunks_copied += 1;
                place(&mut claim(job, &chunk)?, &lanes(&chunk, &[]), from, 0, job.conversion)
            }
            Fetch::Encoded { .. } | Fetch::Stored { .. } | Fetch::Object { .. } => {
                Err(Error::invalid("a task of a source has no bytes"))
            }
        }
    }

    /// Places the spans of stored elements, given their bytes.
    pub(super) fn stored<'b>(
        &mut self,
        job: &Job<'_>,
        task: &Task,
        bytes_of: impl Fn(ByteRange) -> Result<&'b [u8]>,
    ) -> Result<()> {
        let chunk = chunk_of(job, task)?;
        let mut tile = claim(job, &chunk)?;
        self.stats.chunks_copied += 1;
        for span in job.part.spans(task)? {
            let bytes = bytes_of(span.range)?;
            place(&mut tile, &lanes(&chunk, &span.windows), bytes, span.base, job.conversion)?;
        }
        Ok(())
    }

    /// Decodes a chunk, unless it is there already, and places what is wanted of it.
    pub(super) fn decoded(
        &mut self,
        job: &Job<'_>,
        task: &Task,
        encoded: &[u8],
        mask: u32,
        slot: Slot,
    ) -> Result<()> {
        let pipeline = &job.part.pipeline;
        let chunk = chunk_of(job, task)?;
        let mut tile = claim(job, &chunk)?;
        let lanes = lanes(&chunk, &[]);
        if let Slot::Found(bytes) = slot {
            self.stats.chunks_kept += 1;
            return place(&mut tile, &lanes, &bytes, 0, job.conversion);
        }
        self.stats.chunks_decoded += 1;
        self.stats.bytes_decoded += pipeline.chunk_bytes();
        if job.conversion.is_in_place()
            && let Some((0, target)) = tile.run(&lanes)
            && target.len() as u64 == pipeline.chunk_bytes()
        {
            pipeline.decode_into(encoded, mask, target, &mut self.scratch).map_err(half_written)?;
            job.conversion.in_place(target);
            return Ok(());
        }
        let least = (chunk.extent() * job.part.element()) as u64;
        if let (Slot::Wanted(key, version), Some(memory)) = (slot, &job.memory) {
            let mut decoded = Vec::new();
            pipeline
                .decode_least(least, encoded, mask, &mut decoded, &mut self.scratch)
                .map_err(half_written)?;
            place(&mut tile, &lanes, &decoded, 0, job.conversion)?;
            memory.keep(key, version, decoded);
            return Ok(());
        }
        pipeline
            .decode_least(least, encoded, mask, &mut self.decoded, &mut self.scratch)
            .map_err(half_written)?;
        place(&mut tile, &lanes, &self.decoded, 0, job.conversion)
    }
}

/// The bytes of the result that a span can be read into as it is.
fn straight<'t>(
    job: &Job<'_>,
    tile: &'t mut Tile<'_>,
    lanes: &[Lane<'_>],
    span: &Span,
) -> Option<&'t mut [u8]> {
    if !job.conversion.is_in_place() {
        return None;
    }
    let (first, target) = tile.run(lanes)?;
    (first == span.base && target.len() as u64 == span.range.length).then_some(target)
}

fn source_of<'a>(job: &Job<'a>, number: usize) -> Result<&'a Arc<dyn Source>> {
    job.part.sources.get(number).ok_or_else(|| Error::invalid("a plan names a source that it does not hold"))
}

/// What `get` says of the object of a task.
fn object<T>(
    job: &Job<'_>,
    store: usize,
    key: usize,
    get: impl FnOnce(&dyn Store, &str) -> Result<T>,
) -> Result<T> {
    match (job.part.stores.get(store), job.part.keys.get(key)) {
        (Some((store, _)), Some(key)) => get(&**store, key),
        _ => Err(Error::invalid("a plan names an object that it does not hold")),
    }
}

/// An object that was not read to its end, as no chunk is so long.
pub(super) fn too_long(part: &Part, error: Error) -> Error {
    if error.kind() != ErrorKind::LimitExceeded || part.most < part.pipeline.encoded_bound() {
        return error;
    }
    let (most, chunk) = (part.most, part.pipeline.chunk_bytes());
    let text = format!("the object has more than the {most} bytes that a chunk of {chunk} can be encoded to");
    Error::new(ErrorKind::Corrupt, text)
}

fn chunk_of<'a>(job: &Job<'a>, task: &Task) -> Result<ChunkPart<'a>> {
    job.part.projection.get(task.chunk).ok_or_else(|| Error::invalid("a plan names a chunk outside of it"))
}

fn claim<'a>(job: &Job<'a>, chunk: &ChunkPart<'_>) -> Result<Tile<'a>> {
    job.canvas
        .claim(chunk.pieces.iter().map(Piece::group))
        .ok_or_else(|| Error::invalid("a plan names the same chunk twice"))
}

/// Encoded bytes that do not decode may be half written by somebody else.
fn half_written(e: Error) -> Error {
    if e.kind() == ErrorKind::Corrupt { e.torn() } else { e }
}

/// Says which chunk failed, and where it lies.
pub(super) fn describe(job: &Job<'_>, task: &Task, error: Error) -> Error {
    let coord = job.part.projection.get(task.chunk).map(|p| p.coord);
    let coord = coord.as_deref().unwrap_or(&[]);
    match task.fetch {
        Fetch::Encoded { source, offset, .. } | Fetch::Stored { source, offset, .. } => {
            let name = job.part.sources.get(source).map_or(String::new(), |s| s.name());
            error.at("chunk", offset).context(format!("chunk {coord:?} in {name}"))
        }
        Fetch::Object { store, key } => {
            let name = object(job, store, key, |store, key| Ok(format!("{key} of {}", store.name())));
            error.context(format!("chunk {coord:?}, {}", name.unwrap_or_default()))
        }
        _ => error.context(format!("chunk {coord:?}")),
    }
}
