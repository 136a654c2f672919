//! Chunks by way of a file: where no part of an array that fits into memory is made of whole chunks both there and here,
//! elements go to a file in the order in which they are wanted, and each stored chunk is decoded once.

use super::data::{Reader, append, coords_in, cut, step};
use crate::error::{Error, Result};
use crate::exec::encode::{ChunkData, Later, NewChunk};
use crate::model::write::{Content, WriteLayout};
use crate::shape::{Coord, byte_count, element_count, runs, to_usize};
use crate::source::write::{Disk, DiskFile, LocalDisk};
use bytes::Bytes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file that nobody else sees, and that goes with this value.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl Scratch {
    fn create(folder: &Path) -> Result<Scratch> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".hyperslab-scratch-{}-{number}", std::process::id()));
        let failed = |e| Error::io(format!("cannot write {}", path.display()), e);
        let file = LocalDisk.create(&path).map_err(failed)?;
        // Where a file can be open without a name, nothing is left of it whatever happens.
        if cfg!(unix) {
            let _ = LocalDisk.remove(&path);
        }
        Ok(Scratch { path, file })
    }
}

impl Scratch {
    fn write(&self, place: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(place, bytes).map_err(|e| {
            Error::io(format!("cannot write {}", self.path.display()), e).hint(
                "there must be room for the array without compression, or give more memory with --max-mem",
            )
        })
    }

    /// Reads as much as there is.
    fn read(&self, place: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let n = self.file.read_at(place.saturating_add(done as u64), rest);
            match n.map_err(|e| Error::io(format!("cannot read {}", self.path.display()), e))? {
                0 => break,
                n => done += n,
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !cfg!(unix) {
            let _ = LocalDisk.remove(&self.path);
        }
    }
}

/// Where a part that was read and a chunk that is wanted meet.
struct Meeting<'a> {
    coord: &'a Coord,
    content: &'a Content,
    /// Extents of the part.
    extents: &'a [u64],
    /// Where they meet in the part, and in the chunk.
    offset: Vec<u64>,
    within: Vec<u64>,
    /// In how many elements.
    count: Vec<u64>,
}

/// Reads all of an array, in parts made of whole stored chunks that take `budget` bytes or one chunk, and shows each with
/// every chunk that it meets.
fn each_meeting(
    reader: &Reader<'_>,
    layout: &WriteLayout,
    stored: &[u64],
    budget: u64,
    visit: &mut dyn FnMut(&Meeting<'_>) -> Result<()>,
) -> Result<()> {
    let size = reader.element_size(layout);
    let shape = reader.array.shape().to_vec();
    let mut part: Vec<u64> = stored.iter().zip(&shape).map(|(&s, &d)| s.min(d).max(1)).collect();
    for axis in (0..part.len()).rev() {
        let bytes = part.iter().fold(size, |n, &e| n.saturating_mul(e)).max(1);
        let room = (budget / bytes).max(1);
        if let (Some(slot), Some(&d)) = (part.get_mut(axis), shape.get(axis)) {
            *slot = slot.saturating_mul(room).min(d);
        }
    }
    let mut next = Some(shape.iter().map(|_| 0).collect::<Coord>());
    while let Some(start) = next {
        next = step(&start, &part, &shape);
        let Some((content, extents)) = reader.read_box(&start, &part)? else { continue };
        // All chunks that it touches, not only those that begin in it.
        let low: Vec<u64> = start.iter().zip(&layout.chunk).map(|(s, c)| s / (*c).max(1) * c).collect();
        let wide: Vec<u64> = start
            .iter()
            .zip(&extents)
            .zip(&low)
            .map(|((s, n), low)| s.saturating_add(*n).saturating_sub(*low))
            .collect();
        for coord in &coords_in(layout, &low, &wide) {
            let at = layout.start_of(coord);
            let valid = layout.valid_of(coord);
            // Where they meet, as seen from both.
            let first: Vec<u64> = at.iter().zip(&start).map(|(a, s)| *a.max(s)).collect();
            let ends = at.iter().zip(&valid).zip(start.iter().zip(&extents));
            let end: Vec<u64> =
                ends.map(|((a, v), (s, n))| a.saturating_add(*v).min(s.saturating_add(*n))).collect();
            if first.iter().zip(&end).any(|(f, e)| f >= e) {
                continue;
            }
            let count = first.iter().zip(&end).map(|(f, e)| e - f).collect();
            let offset = first.iter().zip(&start).map(|(f, s)| f - s).collect();
            let within = first.iter().zip(&at).map(|(f, a)| f - a).collect();
            visit(&Meeting { coord, content: &content, extents: &extents, offset, within, count })?;
        }
    }
    Ok(())
}

/// The number of an element, or a chunk, in C order.
fn number(coord: &[u64], extents: &[u64]) -> u64 {
    coord.iter().zip(extents).fold(0u64, |n, (c, e)| n.saturating_mul(*e).saturating_add(*c))
}

/// What there is of a chunk of an array of these extents.
fn there(layout: &WriteLayout, coord: &Coord, shape: &[u64]) -> Vec<u64> {
    let at = layout.start_of(coord);
    let sides = at.iter().zip(shape).zip(&layout.chunk);
    sides.map(|((a, d), c)| d.saturating_sub(*a).min(*c)).collect()
}

/// All chunks of an array.
fn all(layout: &WriteLayout) -> Vec<Coord> {
    let zeros: Vec<u64> = layout.shape.iter().map(|_| 0).collect();
    coords_in(layout, &zeros, &layout.shape)
}

/// The chunks of an array, from a file in which they lie one after the other.
pub(super) struct Scatter<'a> {
    layout: &'a WriteLayout,
    scratch: Arc<Scratch>,
    shape: Vec<u64>,
    bytes: u64,
}

impl<'a> Scatter<'a> {
    /// Reads all of an array, and writes it to the file.
    pub(super) fn new(
        reader: &Reader<'_>,
        layout: &'a WriteLayout,
        stored: &[u64],
        budget: u64,
    ) -> Result<Scatter<'a>> {
        let scratch = Arc::new(Scratch::create(&reader.scratch())?);
        let size = layout.dtype.size();
        let bytes = byte_count(&layout.chunk, size)?;
        let grid = layout.grid();
        let mut gathered = Vec::new();
        each_meeting(reader, layout, stored, budget, &mut |meeting| {
            let Content::Fixed(elements) = meeting.content else {
                return Err(Error::invalid("elements that are not fixed"));
            };
            let base = number(meeting.coord, &grid).saturating_mul(bytes);
            let inner = number(&meeting.within, &layout.chunk);
            // Put together first: what lies together in the chunk is written at once.
            gathered.clear();
            append(elements, size, meeting.extents, &meeting.offset, &meeting.count, &mut gathered)?;
            let zeros: Vec<u64> = meeting.count.iter().map(|_| 0).collect();
            for (from, to, run) in runs(&meeting.count, &zeros, &layout.chunk, &meeting.count)? {
                let piece = gathered.get(from * size..(from + run) * size);
                let piece = piece.ok_or_else(|| Error::invalid("a part that is shorter than its extents"))?;
                let place = base.saturating_add(inner.saturating_add(to as u64).saturating_mul(size as u64));
                scratch.write(place, piece)?;
            }
            Ok(())
        })?;
        let shape = reader.array.shape().to_vec();
        Ok(Scatter { layout, scratch, shape, bytes })
    }

    /// The chunks, each when it is asked for. Those that are not to be written are left out.
    pub(super) fn chunks(self) -> impl Iterator<Item = Result<NewChunk<'static>>> + 'a {
        all(self.layout).into_iter().filter_map(move |coord| self.chunk(&coord).transpose())
    }

    fn chunk(&self, coord: &Coord) -> Result<Option<NewChunk<'static>>> {
        let at = self.layout.start_of(coord);
        let there = there(self.layout, coord, &self.shape);
        if there.contains(&0) {
            return cut(self.layout, coord, &at, None);
        }
        let place = number(coord, &self.layout.grid()).saturating_mul(self.bytes);
        if there == self.layout.chunk && there == self.layout.valid_of(coord).as_slice() {
            // Read by whoever encodes it.
            let (scratch, length) = (self.scratch.clone(), to_usize(self.bytes)?);
            let later = Later::new(move |out| {
                out.resize(length, 0);
                scratch.read(place, out)
            });
            return Ok(Some(NewChunk { coord: coord.clone(), data: ChunkData::Later(later) }));
        }
        let mut bytes = vec![0; to_usize(self.bytes)?];
        // What lies behind the last element was never written.
        self.scratch.read(place, &mut bytes)?;
        if there == self.layout.chunk {
            return cut(self.layout, coord, &at, Some(&(Content::Fixed(bytes.into()), there)));
        }
        // Only what is of the array, in extents of its own.
        let size = self.layout.dtype.size();
        let zeros: Vec<u64> = there.iter().map(|_| 0).collect();
        let mut own = vec![0; to_usize(byte_count(&there, size)?)?];
        for (from, to, run) in runs(&self.layout.chunk, &zeros, &there, &there)? {
            let place =
                own.get_mut(to * size..(to + run) * size).zip(bytes.get(from * size..(from + run) * size));
            let (to, from) =
                place.ok_or_else(|| Error::invalid("a chunk that is shorter than its extents"))?;
            to.copy_from_slice(from);
        }
        cut(self.layout, coord, &at, Some(&(Content::Fixed(own.into()), there)))
    }
}

/// The chunks of an array of elements of any length, from a file to which those of each part went together.
pub(super) struct Spill<'a> {
    layout: &'a WriteLayout,
    scratch: Scratch,
    shape: Vec<u64>,
    /// The places in the file, and the lengths, of what there is of each chunk, by its number.
    segments: HashMap<u64, Vec<(u64, u64)>>,
}

impl<'a> Spill<'a> {
    /// Reads all of an array, and writes it to the file. Elements with references, which count from their own part on,
    /// are not for this.
    pub(super) fn new(
        reader: &Reader<'_>,
        layout: &'a WriteLayout,
        stored: &[u64],
        budget: u64,
    ) -> Result<Spill<'a>> {
        let scratch = Scratch::create(&reader.scratch())?;
        let shape = reader.array.shape().to_vec();
        let grid = layout.grid();
        let mut segments: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
        let mut end = 0u64;
        each_meeting(reader, layout, stored, budget, &mut |meeting| {
            let Content::Objects { elements, targets } = meeting.content else {
                return Err(Error::invalid("elements that are not of any length"));
            };
            if !targets.is_empty() {
                return Err(Error::invalid("references where none were expected"));
            }
            let own = there(layout, meeting.coord, &shape);
            let inner = number(&meeting.within, &own);
            let mut segment = Vec::new();
            for (from, to, run) in runs(meeting.extents, &meeting.offset, &own, &meeting.count)? {
                let piece = elements.get(from..from + run);
                let piece = piece.ok_or_else(|| Error::invalid("a part that is shorter than its extents"))?;
                for (place, element) in (inner.saturating_add(to as u64)..).zip(piece) {
                    segment.extend_from_slice(&place.to_le_bytes());
                    segment.extend_from_slice(&(element.len() as u64).to_le_bytes());
                    segment.extend_from_slice(element);
                }
            }
            scratch.write(end, &segment)?;
            let length = segment.len() as u64;
            segments.entry(number(meeting.coord, &grid)).or_default().push((end, length));
            end = end.saturating_add(length);
            Ok(())
        })?;
        Ok(Spill { layout, scratch, shape, segments })
    }

    /// The chunks, each when it is asked for. Those that are not to be written are left out.
    pub(super) fn chunks(self) -> impl Iterator<Item = Result<NewChunk<'static>>> + 'a {
        all(self.layout).into_iter().filter_map(move |coord| self.chunk(&coord).transpose())
    }

    fn chunk(&self, coord: &Coord) -> Result<Option<NewChunk<'static>>> {
        let at = self.layout.start_of(coord);
        let own = there(self.layout, coord, &self.shape);
        let Some(segments) = self.segments.get(&number(coord, &self.layout.grid())) else {
            return cut(self.layout, coord, &at, None);
        };
        let mut elements = vec![self.layout.fill.clone(); to_usize(element_count(&own)?)?];
        let broken = || Error::invalid("the scratch file is not what was written to it");
        for &(place, length) in segments {
            let mut bytes = vec![0; to_usize(length)?];
            self.scratch.read(place, &mut bytes)?;
            let bytes = Bytes::from(bytes);
            let mut at = 0usize;
            while at < bytes.len() {
                let word = |at: usize| {
                    let word =
                        bytes.get(at..at.saturating_add(8)).and_then(|b| b.first_chunk::<8>().copied());
                    word.map(u64::from_le_bytes).ok_or_else(broken).and_then(to_usize)
                };
                let (element, length) = (word(at)?, word(at + 8)?);
                let start = at + 16;
                let end = start.checked_add(length).filter(|&end| end <= bytes.len()).ok_or_else(broken)?;
                *elements.get_mut(element).ok_or_else(broken)? = bytes.slice(start..end);
                at = end;
            }
        }
        let content = Content::Objects { elements, targets: Vec::new() };
        cut(self.layout, coord, &at, Some(&(content, own)))
    }
}
