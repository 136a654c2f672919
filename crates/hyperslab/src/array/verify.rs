//! Whether everything stored of an array can be read.

use super::Array;
use crate::codec::{Pipeline, Scratch};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec;
use crate::limits::Budget;
use crate::model::{ChunkRef, Column, Elements, Fault, Layout, Storage};
use crate::select::{Item, Selection, Slice};
use crate::shape::{Coord, element_count, to_usize};
use crate::source::{ByteRange, Source};
use std::sync::{Arc, OnceLock};

/// What was looked at in one array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Stored chunks that were looked at, the one of contiguous data included, sound or not.
    pub chunks: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Chunks that could not be looked at: this crate lacks a codec, or a limit or policy forbids it.
    pub skipped: u64,
}

/// Elements whose variable-length data is resolved at a time, and its bytes.
const SLAB: u64 = 1 << 14;
const SLAB_BYTES: u64 = 256 << 20;

/// Variable-length data of one array. A sound file holds each sequence once, so that only a file that repeats one without
/// end reaches this.
const ARRAY_BYTES: u64 = 4 << 30;

/// Bytes of decoded chunks that are held at a time, unless one has more.
const BUFFERS: u64 = 256 << 20;

impl Array {
    /// Looks at everything stored of this array: every entry of its chunk index, every chunk through its filters and
    /// their checksums, all files of external data, all variable-length data and all references. What is wrong goes to
    /// `fault`, and the look goes on. Chunks that can't be looked at are counted; each reason for that is one fault, of
    /// kind [`ErrorKind::Unsupported`], [`ErrorKind::LimitExceeded`] or [`ErrorKind::Permission`].
    pub fn verify(&self, fault: &mut dyn FnMut(Fault)) -> Verified {
        let mut verified = Verified::default();
        let mut report = |error: Error| {
            fault(Fault {
                object: Some(self.node().clone()),
                error: error.context(format!("array {}", self.path())),
            });
        };
        match self.storage() {
            Storage::Chunks(_) => {
                let sound = self.verify_chunks(&mut verified, &mut report);
                if !self.dtype().is_fixed() && verified.skipped == 0 {
                    self.verify_pointers(&sound, &mut report);
                }
            }
            // Elements that point elsewhere are not in such arrays.
            Storage::Tiles(_) => {
                // What one tile lacks the others lack too.
                let mut lacking = Vec::new();
                for (_, tile) in self.tiles() {
                    tile.verify_chunks(&mut verified, &mut |error| {
                        if !is_lacking(&error) {
                            report(error.context(tile.path()));
                        } else if !lacking.contains(&error.kind()) {
                            lacking.push(error.kind());
                            report(error);
                        }
                    });
                }
            }
            Storage::Virtual(mappings) => {
                for mapping in mappings.iter() {
                    // Missing sources are allowed: they give the fill value. Those that are there must open.
                    if mapping.file.as_bytes() != b"."
                        && !mapping.file.as_bytes().contains(&b'%')
                        && let Err(e) = self.hierarchy().neighbour(&mapping.file)
                    {
                        report(e.context(format!("source {} of the virtual dataset", mapping.file)));
                    }
                }
            }
        }
        verified
    }

    /// Looks at each stored chunk, and gives those in which nothing is wrong.
    fn verify_chunks(&self, verified: &mut Verified, report: &mut dyn FnMut(Error)) -> Vec<Coord> {
        let meta = self.meta();
        let limit = self.options().limits.chunk;
        let pipeline = match self.pipeline() {
            Ok(pipeline) => pipeline,
            Err(e) => {
                report(e);
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        let mut faults = Vec::new();
        let scanned = self.chunks(
            &mut |coord, chunk| {
                found.push((coord, chunk));
                Ok(())
            },
            &mut |f| faults.push(f.error),
        );
        faults.into_iter().chain(scanned.err()).for_each(&mut *report);
        let chunked = matches!(meta.layout, Layout::Chunked { .. });
        let external = matches!(meta.layout, Layout::External(_));
        let look = Look { pipeline, limit, chunked, external };
        // A buffer for a decoded chunk in each thread: of large ones fewer at a time.
        let most = usize::try_from(BUFFERS / pipeline.chunk_bytes().max(1)).unwrap_or(usize::MAX);
        let answers: Vec<OnceLock<(u64, Vec<Error>)>> = found.iter().map(|_| OnceLock::new()).collect();
        exec::for_each(found.len(), self.options().threads, most, Buffers::default, |buffers, i| {
            if let (Some((coord, chunk)), Some(answer)) = (found.get(i), answers.get(i))
                && let Some(length) = stored_length(chunk).transpose()
            {
                let look = |length| (length, look.at(chunk, self.least(coord), buffers));
                let _ = answer.set(length.map_or_else(|e| (0, vec![e]), look));
            }
        });
        let mut lacking = None;
        let mut sound = Vec::new();
        for ((coord, _), answer) in found.iter().zip(answers) {
            let Some((length, errors)) = answer.into_inner() else { continue };
            if errors.is_empty() {
                sound.push(coord.clone());
            }
            if errors.iter().any(is_lacking) {
                verified.skipped += 1;
            } else {
                verified.chunks += 1;
                verified.bytes = verified.bytes.saturating_add(length);
            }
            for e in errors {
                // What one chunk lacks the others lack too.
                if !chunked || !is_lacking(&e) || lacking.replace(e.kind()) != Some(e.kind()) {
                    report(if chunked { e.context(format!("chunk {:?}", coord.as_slice())) } else { e });
                }
            }
        }
        sound
    }

    /// Bytes of a chunk up to its last element within the extents.
    fn least(&self, chunk: &[u64]) -> u64 {
        let shape = self.meta().chunk_shape();
        let axes = chunk.iter().zip(shape).zip(self.shape());
        let last = axes.fold(0u64, |at, ((&coord, &extent), &dim)| {
            let inside = dim.saturating_sub(coord.saturating_mul(extent)).min(extent);
            at.saturating_mul(extent).saturating_add(inside.saturating_sub(1))
        });
        last.saturating_add(1).saturating_mul(self.dtype().size() as u64)
    }

    /// Resolves the variable-length data and the references of stored chunks. What was never stored points nowhere,
    /// however many elements the extents claim.
    fn verify_pointers(&self, chunks: &[Coord], report: &mut dyn FnMut(Error)) {
        let limit = self.options().limits.output.min(SLAB_BYTES);
        let budget = Budget::new("variable-length data of one array in bytes", ARRAY_BYTES);
        let shape = self.meta().chunk_shape();
        for chunk in chunks {
            let axes = chunk.iter().zip(shape).zip(self.shape());
            let mut bounds: Vec<(u64, u64)> = axes
                .map(|((&coord, &extent), &dim)| {
                    let start = coord.saturating_mul(extent).min(dim);
                    (start, start.saturating_add(extent).min(dim))
                })
                .collect();
            let inner = bounds.iter().skip(1).fold(1u64, |n, (start, stop)| n.saturating_mul(stop - start));
            let (mut from, end) = bounds.first().copied().unwrap_or((0, 1));
            let mut slab = SLAB;
            while from < end {
                let rows = (slab / inner.max(1)).clamp(1, end - from);
                if let Some(first) = bounds.first_mut() {
                    *first = (from, from + rows);
                }
                let result = self.read_raw(within(&bounds)).and_then(|raw| {
                    let count = to_usize(element_count(&raw.shape)?)?;
                    Elements::decode(&**self.hierarchy(), &raw.dtype, raw.bytes.into(), count, limit)
                });
                match result {
                    Ok(elements) => {
                        broken(elements.column(), report);
                        if let Err(e) = budget.charge(elements.heap_bytes()) {
                            return report(e);
                        }
                        from += rows;
                    }
                    // Long sequences: fewer of them at a time.
                    Err(e) if e.kind() == ErrorKind::LimitExceeded && slab > 1 && rows > 1 => slab /= 8,
                    Err(e) => {
                        report(e);
                        from += rows;
                    }
                }
            }
        }
    }
}

/// The elements between bounds on every axis.
fn within(bounds: &[(u64, u64)]) -> Selection {
    let edge = |at: u64| i64::try_from(at).ok();
    let slice =
        |&(start, stop): &(u64, u64)| Item::Slice(Slice { start: edge(start), stop: edge(stop), step: 1 });
    Selection::vectorised(bounds.iter().map(slice).collect::<Vec<_>>())
}

/// Reports the references of a column that can't be resolved. Types nest no deeper than their decoding allows.
fn broken(column: &Column, report: &mut dyn FnMut(Error)) {
    match column {
        Column::Sequence { items, .. } | Column::Array { items, .. } => broken(items, report),
        Column::Compound { columns, .. } => columns.iter().for_each(|c| broken(c, report)),
        Column::Reference(references) => {
            for (i, e) in references.iter().enumerate().filter_map(|(i, r)| r.as_ref().err().map(|e| (i, e)))
            {
                let e = Error::new(e.kind(), format!("reference {i} can't be resolved: {}", e.message()));
                report(e);
            }
        }
        _ => {}
    }
}

/// Whether it is we who lack something, and not the file that is wrong.
fn is_lacking(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::LimitExceeded | ErrorKind::Permission)
}

/// Opens each file of external data and reads a byte of it.
fn verify_parts(source: &Arc<dyn Source>, offset: u64, length: u64) -> Vec<Error> {
    let end = offset.saturating_add(length);
    let look = |at: u64| source.read_into(at, &mut [0]).err();
    source.parts().into_iter().filter(|at| (offset..end).contains(at)).filter_map(look).collect()
}

/// Bytes that are stored of a chunk; `None`: nothing is.
pub(super) fn stored_length(chunk: &ChunkRef) -> Result<Option<u64>> {
    match chunk {
        ChunkRef::Range { length, .. } => Ok(Some(*length)),
        ChunkRef::Memory { bytes, .. } => Ok(Some(bytes.len() as u64)),
        ChunkRef::Object { store, key } => store.len(key),
        ChunkRef::Absent => Ok(None),
    }
}

/// What a thread decodes with.
#[derive(Default)]
struct Buffers {
    decoded: Vec<u8>,
    scratch: Scratch,
}

/// How the chunks of one array are looked at.
struct Look<'a> {
    pipeline: &'a Pipeline,
    /// Bytes of a decoded chunk at most.
    limit: u64,
    /// Whether the storage is in chunks, which are encoded.
    chunked: bool,
    /// Whether the storage is in other files.
    external: bool,
}

impl Look<'_> {
    /// What is wrong with a chunk of which the first `least` bytes are within the array.
    fn at(&self, chunk: &ChunkRef, least: u64, buffers: &mut Buffers) -> Vec<Error> {
        match chunk {
            ChunkRef::Range { source, offset, length, .. } if self.external => {
                verify_parts(source, *offset, *length)
            }
            _ => self.decode(chunk, least, buffers).err().into_iter().collect(),
        }
    }

    fn decode(&self, chunk: &ChunkRef, least: u64, buffers: &mut Buffers) -> Result<()> {
        let pipeline = self.pipeline;
        let mut decode = |bytes: &[u8], mask| {
            if pipeline.chunk_bytes() > self.limit {
                let (bytes, limit) = (pipeline.chunk_bytes(), self.limit);
                return Err(Error::limit("bytes of a decoded chunk", bytes.into(), limit.into()));
            }
            pipeline.decode_least(least, bytes, mask, &mut buffers.decoded, &mut buffers.scratch)
        };
        match chunk {
            ChunkRef::Absent => Ok(()),
            ChunkRef::Memory { bytes, mask } if self.chunked => decode(bytes, *mask),
            ChunkRef::Memory { .. } => Ok(()),
            ChunkRef::Object { store, key } => {
                pipeline.check(0)?;
                match store.get_within(key, self.limit.min(pipeline.encoded_bound()))? {
                    Some(bytes) => decode(&bytes, 0).context(|| format!("{key} of {}", store.name())),
                    None => Ok(()),
                }
            }
            ChunkRef::Range { source, offset, length, mask } => {
                let there = source.len()?;
                if offset.checked_add(*length).is_none_or(|end| end > there) {
                    let text =
                        format!("{length} bytes reach beyond the end of {} at {there:#x}", source.name());
                    return Err(Error::new(ErrorKind::Truncated, text).at("chunk", *offset));
                }
                if !self.chunked {
                    return Ok(());
                }
                pipeline.check(*mask)?;
                if pipeline.is_identity(*mask) {
                    let wanted = pipeline.chunk_bytes();
                    if wanted != *length {
                        let text = format!("{length} bytes are stored where {wanted} belong");
                        return Err(Error::corrupt("chunk", *offset, text));
                    }
                    return Ok(());
                }
                let bytes = read(source, *offset, *length)?;
                decode(&bytes, *mask).map_err(|e| e.at("chunk", *offset))
            }
        }
    }
}

fn read(source: &Arc<dyn Source>, offset: u64, length: u64) -> Result<bytes::Bytes> {
    let bytes = source.read(&[ByteRange::new(offset, length)])?.pop();
    bytes.ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"))
}
