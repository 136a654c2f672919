//! Whether everything stored of an array can be read.

use super::Array;
use crate::codec::{Pipeline, Scratch};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::model::{ChunkRef, Column, Elements, Fault, Layout, Storage};
use crate::select::{Item, Selection, Slice};
use crate::shape::{element_count, to_usize};
use crate::source::{ByteRange, Source};
use std::sync::Arc;

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
            Storage::Chunks(_) => self.verify_chunks(&mut verified, &mut report),
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
        if !self.dtype().is_fixed() && verified.skipped == 0 {
            self.verify_pointers(&mut report);
        }
        verified
    }

    fn verify_chunks(&self, verified: &mut Verified, report: &mut dyn FnMut(Error)) {
        let meta = self.meta();
        let limit = self.options().limits.chunk;
        let pipeline = match self.pipeline() {
            Ok(pipeline) => pipeline,
            Err(e) => return report(e),
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
        let (mut scratch, mut decoded) = (Scratch::default(), Vec::new());
        let mut lacking = None;
        for (coord, chunk) in found {
            let name =
                |e: Error| if chunked { e.context(format!("chunk {:?}", coord.as_slice())) } else { e };
            let length = match &chunk {
                ChunkRef::Range { length, .. } => *length,
                ChunkRef::Memory { bytes, .. } => bytes.len() as u64,
                ChunkRef::Object { store, key } => match store.len(key) {
                    Ok(Some(length)) => length,
                    Ok(None) => continue,
                    Err(e) => {
                        report(name(e));
                        continue;
                    }
                },
                ChunkRef::Absent => continue,
            };
            let errors = match &chunk {
                ChunkRef::Range { source, offset, length, .. } if external => {
                    verify_parts(source, *offset, *length)
                }
                _ => {
                    let result = verify_chunk(&chunk, pipeline, limit, chunked, &mut decoded, &mut scratch);
                    result.err().into_iter().collect()
                }
            };
            if errors.iter().any(is_lacking) {
                verified.skipped += 1;
            } else {
                verified.chunks += 1;
                verified.bytes = verified.bytes.saturating_add(length);
            }
            for e in errors {
                // What one chunk lacks the others lack too.
                if !chunked || !is_lacking(&e) || lacking.replace(e.kind()) != Some(e.kind()) {
                    report(name(e));
                }
            }
        }
    }

    /// Resolves all variable-length data and all references.
    fn verify_pointers(&self, report: &mut dyn FnMut(Error)) {
        let limit = self.options().limits.output.min(SLAB_BYTES);
        let budget = Budget::new("variable-length data of one array in bytes", ARRAY_BYTES);
        let mut slab = SLAB;
        let mut from = 0;
        while let Some((rows, selection)) = self.slab(from, slab) {
            let result = self.read_raw(selection).and_then(|raw| {
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

    /// The rows of the slowest axis from `from` on that hold about `elements` elements: their number, and the selection.
    pub(super) fn slab(&self, from: u64, elements: u64) -> Option<(u64, Selection)> {
        let dims = self.shape();
        if self.meta().space.is_null() || dims.contains(&0) {
            return None;
        }
        let rows = dims.first().copied().unwrap_or(1);
        if from >= rows {
            return None;
        }
        let Some(inner) = dims.get(1..) else { return Some((1, Selection::all())) };
        let row = inner.iter().fold(1u64, |n, &d| n.saturating_mul(d));
        let count = (elements / row).max(1).min(rows - from);
        let edge = |at: u64| i64::try_from(at).ok();
        let slice = Slice { start: edge(from), stop: edge(from + count), step: 1 };
        Some((count, Selection::vectorised(vec![Item::Slice(slice)])))
    }
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

fn verify_chunk(
    chunk: &ChunkRef,
    pipeline: &Pipeline,
    limit: u64,
    chunked: bool,
    decoded: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<()> {
    match chunk {
        ChunkRef::Absent => Ok(()),
        ChunkRef::Memory { bytes, mask } if chunked => {
            decode(bytes, *mask, pipeline, limit, decoded, scratch)
        }
        ChunkRef::Memory { .. } => Ok(()),
        ChunkRef::Object { store, key } => {
            pipeline.check(0)?;
            match store.get(key)? {
                Some(bytes) => decode(&bytes, 0, pipeline, limit, decoded, scratch)
                    .map_err(|e| e.context(format!("{key} of {}", store.name()))),
                None => Ok(()),
            }
        }
        ChunkRef::Range { source, offset, length, mask } => {
            let there = source.len()?;
            if offset.checked_add(*length).is_none_or(|end| end > there) {
                let text = format!("{length} bytes reach beyond the end of {} at {there:#x}", source.name());
                return Err(Error::new(ErrorKind::Truncated, text).at("chunk", *offset));
            }
            if !chunked {
                return Ok(());
            }
            pipeline.check(*mask)?;
            if pipeline.is_identity(*mask) {
                return match pipeline.chunk_bytes() {
                    wanted if wanted == *length => Ok(()),
                    wanted => Err(Error::corrupt(
                        "chunk",
                        *offset,
                        format!("{length} bytes are stored where {wanted} belong"),
                    )),
                };
            }
            let bytes = read(source, *offset, *length)?;
            decode(&bytes, *mask, pipeline, limit, decoded, scratch).map_err(|e| e.at("chunk", *offset))
        }
    }
}

fn read(source: &Arc<dyn Source>, offset: u64, length: u64) -> Result<bytes::Bytes> {
    let bytes = source.read(&[ByteRange::new(offset, length)])?.pop();
    bytes.ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"))
}

fn decode(
    bytes: &[u8],
    mask: u32,
    pipeline: &Pipeline,
    limit: u64,
    decoded: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<()> {
    if pipeline.chunk_bytes() > limit {
        return Err(Error::limit("bytes of a decoded chunk", pipeline.chunk_bytes().into(), limit.into()));
    }
    pipeline.decode(bytes, mask, decoded, scratch)
}
