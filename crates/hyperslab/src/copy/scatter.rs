//! Chunks by way of a file: where no part of an array that fits into memory is made of whole chunks both there and here,
//! elements go to a file in the order in which they are wanted, and each stored chunk is decoded once.

use super::data::{Reader, coords_in, cut, step};
use crate::error::{Error, Result};
use crate::exec::encode::NewChunk;
use crate::model::write::{Content, WriteLayout};
use crate::shape::{Coord, byte_count, runs, to_usize};
use crate::source::write::{Disk, DiskFile, LocalDisk};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
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

impl Drop for Scratch {
    fn drop(&mut self) {
        if !cfg!(unix) {
            let _ = LocalDisk.remove(&self.path);
        }
    }
}

/// The chunks of an array, from a file in which they lie one after the other.
pub(super) struct Scatter<'a> {
    layout: &'a WriteLayout,
    scratch: Scratch,
    coords: VecDeque<Coord>,
    shape: Vec<u64>,
    bytes: u64,
}

impl<'a> Scatter<'a> {
    /// Reads all of an array, in parts made of whole stored chunks that take `budget` bytes or one chunk, and writes it to
    /// the file.
    pub(super) fn new(
        reader: &Reader<'_>,
        layout: &'a WriteLayout,
        stored: &[u64],
        budget: u64,
    ) -> Result<Scatter<'a>> {
        let scratch = Scratch::create(&reader.scratch())?;
        let size = layout.dtype.size();
        let bytes = byte_count(&layout.chunk, size)?;
        let shape = reader.array.shape().to_vec();
        let mut part: Vec<u64> = stored.iter().zip(&shape).map(|(&s, &d)| s.min(d).max(1)).collect();
        for axis in (0..part.len()).rev() {
            let room = (budget / byte_count(&part, size.max(reader.array.dtype().size()))?.max(1)).max(1);
            if let (Some(slot), Some(&d)) = (part.get_mut(axis), shape.get(axis)) {
                *slot = slot.saturating_mul(room).min(d);
            }
        }
        let grid = layout.grid();
        let number = |coord: &[u64]| {
            coord.iter().zip(&grid).fold(0u64, |n, (c, g)| n.saturating_mul(*g).saturating_add(*c))
        };
        let mut next = Some(shape.iter().map(|_| 0).collect::<Coord>());
        while let Some(start) = next {
            next = step(&start, &part, &shape);
            let Some((Content::Fixed(elements), extents)) = reader.read_box(&start, &part)? else { continue };
            // All chunks that it touches, not only those that begin in it.
            let low: Vec<u64> = start.iter().zip(&layout.chunk).map(|(s, c)| s / (*c).max(1) * c).collect();
            let wide: Vec<u64> = start
                .iter()
                .zip(&extents)
                .zip(&low)
                .map(|((s, n), low)| s.saturating_add(*n).saturating_sub(*low))
                .collect();
            for coord in coords_in(layout, &low, &wide) {
                let at = layout.start_of(&coord);
                let valid = layout.valid_of(&coord);
                // Where they meet, as seen from both.
                let first: Vec<u64> = at.iter().zip(&start).map(|(a, s)| *a.max(s)).collect();
                let ends = at.iter().zip(&valid).zip(start.iter().zip(&extents));
                let end: Vec<u64> =
                    ends.map(|((a, v), (s, n))| a.saturating_add(*v).min(s.saturating_add(*n))).collect();
                if first.iter().zip(&end).any(|(f, e)| f >= e) {
                    continue;
                }
                let count: Vec<u64> = first.iter().zip(&end).map(|(f, e)| e - f).collect();
                let offset: Vec<u64> = first.iter().zip(&start).map(|(f, s)| f - s).collect();
                let within: Vec<u64> = first.iter().zip(&at).map(|(f, a)| f - a).collect();
                let base = number(&coord).saturating_mul(bytes);
                let inner = within
                    .iter()
                    .zip(&layout.chunk)
                    .fold(0u64, |n, (w, c)| n.saturating_mul(*c).saturating_add(*w));
                for (from, to, run) in runs(&extents, &offset, &layout.chunk, &count)? {
                    let piece = elements.get(from * size..(from + run) * size);
                    let piece =
                        piece.ok_or_else(|| Error::invalid("a part that is shorter than its extents"))?;
                    let place =
                        base.saturating_add(inner.saturating_add(to as u64).saturating_mul(size as u64));
                    scratch.file.write_at(place, piece).map_err(|e| {
                        Error::io(format!("cannot write {}", scratch.path.display()), e)
                            .hint("there must be room for the array without compression, or give more memory with --max-mem")
                    })?;
                }
            }
        }
        let zeros: Vec<u64> = layout.shape.iter().map(|_| 0).collect();
        let coords = coords_in(layout, &zeros, &layout.shape).into();
        Ok(Scatter { layout, scratch, coords, shape, bytes })
    }

    fn chunk(&self, coord: &Coord) -> Result<Option<NewChunk<'static>>> {
        let grid = self.layout.grid();
        let number = coord.iter().zip(&grid).fold(0u64, |n, (c, g)| n.saturating_mul(*g).saturating_add(*c));
        let at = self.layout.start_of(coord);
        let there: Vec<u64> = at
            .iter()
            .zip(&self.shape)
            .zip(&self.layout.chunk)
            .map(|((a, d), c)| d.saturating_sub(*a).min(*c))
            .collect();
        if there.contains(&0) {
            return cut(self.layout, coord, &at, None);
        }
        let mut bytes = vec![0; to_usize(self.bytes)?];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let from = number.saturating_mul(self.bytes).saturating_add(done as u64);
            let n = self.scratch.file.read_at(from, rest);
            match n.map_err(|e| Error::io(format!("cannot read {}", self.scratch.path.display()), e))? {
                // What lies behind the last element was never written.
                0 => break,
                n => done += n,
            }
        }
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

impl Iterator for Scatter<'_> {
    type Item = Result<NewChunk<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let coord = self.coords.pop_front()?;
            match self.chunk(&coord) {
                Ok(Some(chunk)) => return Some(Ok(chunk)),
                Ok(None) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
