//! Encodes chunks for a writer: in parallel, handed over in order, with a bounded number of bytes in memory.
//!
//! Chunks are taken in batches. While one batch is encoded the one before it is written, by one more task of the same
//! kind, so that neither waits for the other. What is written does not depend on the number of threads.

use super::{Cancel, for_each};
use crate::codec::Scratch;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::write::{Content, EncodedChunk, HierarchyWriter, ObjectPath, WriteLayout};
use crate::shape::{Coord, byte_count, element_count, runs, to_usize};
use bytes::Bytes;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of elements of one batch by default.
const BATCH: u64 = 64 << 20;
/// The same where nothing is encoded: what is gathered is written before it leaves the processor's caches.
const PLAIN_BATCH: u64 = 8 << 20;
/// A batch of fewer bytes is not worth the calling of another thread.
const ALONE: u64 = 32 << 10;

/// One chunk to be written.
#[derive(Clone, Debug)]
pub struct NewChunk<'a> {
    /// Its coordinates in the grid of the writer's layout.
    pub coord: Coord,
    /// What it holds.
    pub data: ChunkData<'a>,
}

/// What a new chunk holds.
#[derive(Clone, Debug)]
pub enum ChunkData<'a> {
    /// The elements that lie within the array ([`WriteLayout::valid_of`]), in C order.
    Elements(Content),
    /// The same of a fixed type, gathered when the chunk is encoded.
    Later(Later<'a>),
    /// A chunk that is encoded as the layout says, edge and all, by whoever made it.
    Encoded {
        /// The encoded bytes.
        bytes: Bytes,
        /// Bit *i* set: stage *i* of the pipeline was skipped.
        mask: u32,
    },
}

/// Puts the elements of a chunk into an empty buffer.
type Gather<'a> = dyn Fn(&mut Vec<u8>) -> Result<()> + Send + Sync + 'a;

/// Elements of a fixed type that are gathered by whoever encodes their chunk, while others gather those of other chunks.
#[derive(Clone)]
pub struct Later<'a>(Arc<Gather<'a>>);

impl<'a> Later<'a> {
    /// What `gather` puts into the empty buffer that it is given. It is called once.
    pub fn new(gather: impl Fn(&mut Vec<u8>) -> Result<()> + Send + Sync + 'a) -> Self {
        Later(Arc::new(gather))
    }
}

impl fmt::Debug for Later<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// How chunks are encoded.
#[derive(Clone, Debug, Default)]
pub struct EncodeOptions {
    /// Threads at most, the calling one counted; `None`: as many as the process may use.
    pub threads: Option<usize>,
    /// Stops the work.
    pub cancel: Option<Cancel>,
    /// Bytes of elements of one batch, of which two are in memory at a time; 64 MiB if it is `None`. One chunk may be more.
    pub batch: Option<u64>,
}

/// What was encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodeStats {
    /// Chunks that were encoded.
    pub chunks_encoded: u64,
    /// Chunks that came encoded.
    pub chunks_copied: u64,
    /// Chunks that hold only the fill value and were left out.
    pub chunks_skipped: u64,
    /// Bytes before encoding.
    pub bytes_in: u64,
    /// Bytes after it.
    pub bytes_out: u64,
}

impl EncodeStats {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &EncodeStats) {
        self.chunks_encoded += other.chunks_encoded;
        self.chunks_copied += other.chunks_copied;
        self.chunks_skipped += other.chunks_skipped;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// What is to be done for one chunk of a batch.
enum Job<'a> {
    /// Elements of a fixed type within the array.
    Elements(Bytes),
    /// So many bytes of them, still to be gathered.
    Later(u64, Later<'a>),
    /// What comes in front of the pipeline, whole.
    Flat(Bytes),
    Done(EncodedChunk),
}

/// The chunks of a batch, each with what it is to become and what it became.
type Slot<'a> = Mutex<(Coord, Option<Job<'a>>, Option<Result<EncodedChunk>>)>;

impl Job<'_> {
    fn length(&self) -> u64 {
        match self {
            Job::Elements(bytes) | Job::Flat(bytes) => bytes.len() as u64,
            Job::Later(length, _) => *length,
            Job::Done(chunk) => chunk.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
        }
    }
}

/// Encodes `chunks` as the writer wants those of `array` and hands them to it, in their order. Stops at the first error,
/// in whichever chunk it is.
pub fn encode<'a>(
    writer: &mut dyn HierarchyWriter,
    array: &ObjectPath,
    chunks: &mut dyn Iterator<Item = Result<NewChunk<'a>>>,
    options: &EncodeOptions,
) -> Result<EncodeStats> {
    let name = || format!("array {array}");
    let layout = writer.layout(array).context(name)?;
    let mut stats = EncodeStats::default();
    let mut before: Vec<EncodedChunk> = Vec::new();
    let plain = layout.pipeline.is_empty();
    // Buffers of chunks that are written: memory that the system need not clear again.
    let spare: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let mut more = true;
    let stopped = || options.cancel.as_ref().is_some_and(Cancel::is_cancelled);
    while more || !before.is_empty() {
        let bytes = stats.bytes_in;
        let batch =
            if more { take(writer, array, &layout, chunks, options, &mut stats)? } else { Vec::new() };
        more = !batch.is_empty();
        let threads = if stats.bytes_in - bytes < ALONE { Some(1) } else { options.threads };
        let written = Mutex::new((&mut *writer, Some(std::mem::take(&mut before)), Ok(())));
        // One more task than chunks: to write what was encoded before.
        for_each(batch.len() + 1, threads, usize::MAX, Scratch::default, |scratch, number| {
            match number.checked_sub(1).and_then(|i| batch.get(i)) {
                _ if stopped() => {}
                Some(slot) => run(slot, &layout, scratch, &spare),
                None => {
                    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                    let (writer, chunks, done) = &mut *written;
                    if let Some(chunks) = chunks.take().filter(|chunks| !chunks.is_empty()) {
                        let kept: Vec<Bytes> =
                            chunks.iter().filter(|_| plain).filter_map(|c| c.bytes.clone()).collect();
                        *done = writer.write_chunks(array, chunks);
                        let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
                        // As much as two batches hold, and no more: not every chunk is gathered.
                        let mut room = 2 * PLAIN_BATCH;
                        spare.iter().for_each(|buffer| room = room.saturating_sub(buffer.capacity() as u64));
                        for mut buffer in kept.into_iter().filter_map(|bytes| bytes.try_into_mut().ok()) {
                            if room == 0 {
                                break;
                            }
                            room = room.saturating_sub(buffer.capacity() as u64);
                            buffer.clear();
                            spare.push(buffer.into());
                        }
                    }
                }
            }
        });
        written.into_inner().unwrap_or_else(PoisonError::into_inner).2.context(name)?;
        if let Some(cancel) = &options.cancel {
            cancel.check()?;
        }
        for slot in batch {
            let (coord, _, done) = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            let done = done.unwrap_or_else(|| Err(Error::new(ErrorKind::Io, "a chunk was not encoded")));
            let chunk = done.context(|| format!("chunk {:?}", coord.as_slice())).context(name)?;
            match &chunk.bytes {
                Some(bytes) => stats.bytes_out += bytes.len() as u64,
                None => stats.chunks_skipped += 1,
            }
            before.push(chunk);
        }
    }
    Ok(stats)
}

/// The next batch: as many chunks as fit.
fn take<'a>(
    writer: &mut dyn HierarchyWriter,
    array: &ObjectPath,
    layout: &WriteLayout,
    chunks: &mut dyn Iterator<Item = Result<NewChunk<'a>>>,
    options: &EncodeOptions,
    stats: &mut EncodeStats,
) -> Result<Vec<Slot<'a>>> {
    let plain = layout.pipeline.is_empty() && layout.dtype.is_fixed();
    let most = options.batch.unwrap_or(if plain { PLAIN_BATCH } else { BATCH }).max(1);
    let mut batch = Vec::new();
    let mut bytes = 0u64;
    let grid = layout.grid();
    while bytes < most {
        let Some(NewChunk { coord, data }) = chunks.next().transpose()? else { break };
        let frame = || format!("chunk {:?} of array {array}", coord.as_slice());
        if coord.len() != grid.len() || coord.iter().zip(&grid).any(|(c, n)| c >= n) {
            let text = format!("there are {grid:?} chunks");
            return Err(Error::new(ErrorKind::OutOfBounds, text).context(frame()));
        }
        let job = match data {
            ChunkData::Encoded { bytes, mask } => {
                stats.chunks_copied += 1;
                Job::Done(EncodedChunk { coord: coord.clone(), bytes: Some(bytes), mask })
            }
            ChunkData::Later(later) => {
                stats.chunks_encoded += 1;
                Job::Later(byte_count(&layout.valid_of(&coord), layout.dtype.size())?, later)
            }
            ChunkData::Elements(content) => {
                let valid = layout.valid_of(&coord);
                content.check(&layout.dtype, element_count(&valid)?).context(frame)?;
                stats.chunks_encoded += 1;
                match content {
                    Content::Fixed(elements) => Job::Elements(elements),
                    Content::Objects { elements, targets } => {
                        let extent = layout.extent_of(&coord);
                        let elements = pad_objects(elements, &valid, &extent, &layout.fill)?;
                        let content = Content::Objects { elements, targets };
                        Job::Flat(writer.flatten(array, &content).context(frame)?)
                    }
                }
            }
        };
        let length = job.length();
        stats.bytes_in += length;
        bytes = bytes.saturating_add(length.max(256));
        batch.push(Mutex::new((coord, Some(job), None)));
    }
    Ok(batch)
}

fn run(slot: &Slot<'_>, layout: &WriteLayout, scratch: &mut Scratch, spare: &Mutex<Vec<Vec<u8>>>) {
    // Nobody else takes this slot.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let (coord, job, done) = &mut *slot;
    *done = match job.take() {
        Some(Job::Done(chunk)) => Some(Ok(chunk)),
        Some(Job::Flat(bytes)) => Some(stored(layout, coord, bytes, false, scratch)),
        Some(Job::Elements(bytes)) => Some(elements(layout, coord, bytes, scratch)),
        Some(Job::Later(length, later)) => {
            let taken = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let buffer = taken.unwrap_or_else(|| scratch.take());
            Some(gathered(layout, coord, length, &later, buffer, scratch))
        }
        None => None,
    };
}

/// Gathers a chunk into a buffer and encodes it.
fn gathered(
    layout: &WriteLayout,
    coord: &Coord,
    length: u64,
    Later(gather): &Later<'_>,
    mut buffer: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<EncodedChunk> {
    gather(&mut buffer)?;
    if buffer.len() as u64 != length || !layout.dtype.is_fixed() {
        let text = format!("{} bytes for a chunk of {length} of {}", buffer.len(), layout.dtype);
        return Err(Error::invalid(text));
    }
    if layout.pipeline.is_empty() {
        return elements(layout, coord, buffer.into(), scratch);
    }
    let done = match completed(layout, coord, &buffer)? {
        Completed::Skipped => Ok(EncodedChunk { coord: coord.clone(), bytes: None, mask: 0 }),
        Completed::Whole => stages(layout, coord, &buffer, !layout.cut_edges, scratch),
        Completed::Padded(bytes) => stages(layout, coord, &bytes, !layout.cut_edges, scratch),
    };
    scratch.give(buffer);
    done
}

/// Encodes the elements of a chunk within the array.
fn elements(
    layout: &WriteLayout,
    coord: &Coord,
    bytes: Bytes,
    scratch: &mut Scratch,
) -> Result<EncodedChunk> {
    let bytes = match completed(layout, coord, &bytes)? {
        Completed::Skipped => return Ok(EncodedChunk { coord: coord.clone(), bytes: None, mask: 0 }),
        Completed::Whole => bytes,
        Completed::Padded(bytes) => bytes.into(),
    };
    stored(layout, coord, bytes, !layout.cut_edges, scratch)
}

/// What the elements of a chunk within the array become in front of the pipeline.
enum Completed {
    /// They are the fill value and are left out.
    Skipped,
    /// They are all of the chunk.
    Whole,
    /// These: the chunk is filled up at the edge.
    Padded(Vec<u8>),
}

fn completed(layout: &WriteLayout, coord: &Coord, bytes: &[u8]) -> Result<Completed> {
    let zeros;
    let fill = match layout.fill.len() {
        0 => {
            zeros = vec![0; layout.dtype.size()];
            &zeros
        }
        _ => layout.fill.as_ref(),
    };
    if layout.may_skip_fill && is_only(bytes, fill) {
        return Ok(Completed::Skipped);
    }
    let (valid, extent) = (layout.valid_of(coord), layout.extent_of(coord));
    if valid == extent {
        return Ok(Completed::Whole);
    }
    Ok(Completed::Padded(pad(bytes, &valid, &extent, fill)?))
}

/// What is stored of a chunk, of which no copy is made where there is no pipeline.
fn stored(
    layout: &WriteLayout,
    coord: &Coord,
    bytes: Bytes,
    whole: bool,
    scratch: &mut Scratch,
) -> Result<EncodedChunk> {
    if layout.pipeline.is_empty() {
        return Ok(EncodedChunk { coord: coord.clone(), bytes: Some(bytes), mask: 0 });
    }
    stages(layout, coord, &bytes, whole, scratch)
}

/// Runs the pipeline. `whole`: the bytes must be those of a whole chunk.
fn stages(
    layout: &WriteLayout,
    coord: &Coord,
    bytes: &[u8],
    whole: bool,
    scratch: &mut Scratch,
) -> Result<EncodedChunk> {
    let mut out = scratch.take();
    let mask = match whole {
        true => layout.pipeline.encode(bytes, &mut out, scratch)?,
        false => layout.pipeline.encode_any(bytes, &mut out, scratch)?,
    };
    // The buffer, which has room for more, is of use for the next chunk.
    let bytes = Some(Bytes::copy_from_slice(&out));
    scratch.give(out);
    Ok(EncodedChunk { coord: coord.clone(), bytes, mask })
}

/// Whether `bytes` are nothing but copies of `element`.
fn is_only(bytes: &[u8], element: &[u8]) -> bool {
    let n = element.len();
    n > 0
        && bytes.len().is_multiple_of(n)
        && bytes.get(..n) == Some(element)
        && bytes.get(n..) == bytes.get(..bytes.len() - n)
}

/// Elements of a box as the first part of a larger one, the rest of which is `fill`.
fn pad(bytes: &[u8], valid: &[u64], extent: &[u64], fill: &[u8]) -> Result<Vec<u8>> {
    let size = fill.len();
    let count = to_usize(element_count(extent)?.saturating_mul(size as u64))?;
    let mut out = fill.repeat(count / size.max(1));
    for (from, to, run) in runs(valid, &vec![0; valid.len()], extent, valid)? {
        let place =
            out.get_mut(to * size..(to + run) * size).zip(bytes.get(from * size..(from + run) * size));
        let (to, from) = place.ok_or_else(|| Error::invalid("a chunk is shorter than its extents"))?;
        to.copy_from_slice(from);
    }
    Ok(out)
}

fn pad_objects(elements: Vec<Bytes>, valid: &[u64], extent: &[u64], fill: &Bytes) -> Result<Vec<Bytes>> {
    if valid == extent {
        return Ok(elements);
    }
    let mut out = vec![fill.clone(); to_usize(element_count(extent)?)?];
    for (from, to, run) in runs(valid, &vec![0; valid.len()], extent, valid)? {
        let place = out.get_mut(to..to + run).zip(elements.get(from..from + run));
        let (to, from) = place.ok_or_else(|| Error::invalid("a chunk is shorter than its extents"))?;
        to.clone_from_slice(from);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
