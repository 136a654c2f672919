//! Ranges of a remote file: what is in memory already, and requests for the rest.

use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use crate::source::ByteRange;
use crate::source::memory::past_end;
use bytes::Bytes;

/// Bytes of one request; longer ranges are asked for in pieces at the same time.
const PIECE: u64 = 16 << 20;

/// Reads `ranges` of a file of `length` bytes that begins with `front`. What lies beyond goes to `fetch` in one batch: runs
/// that are not empty and that one request can have.
pub(super) fn read(
    front: &Bytes,
    length: u64,
    ranges: &[ByteRange],
    fetch: impl FnOnce(Vec<ByteRange>) -> Result<Vec<Result<Bytes>>>,
) -> Result<Vec<Bytes>> {
    let mut pieces = Vec::new();
    for range in ranges {
        let end = range.end().filter(|&end| end <= length);
        let end = end.ok_or_else(|| past_end(*range, length))?;
        if range.length == 0 || in_front(front, *range).is_some() {
            continue;
        }
        let mut at = range.offset;
        while at < end {
            let length = PIECE.min(end - at);
            pieces.push(ByteRange::new(at, length));
            at += length;
        }
    }
    let mut came = if pieces.is_empty() { Vec::new() } else { fetch(pieces)? }.into_iter();
    let mut next = || came.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Io, "an answer is missing")));
    let mut out = Vec::with_capacity(ranges.len());
    for range in ranges {
        if range.length == 0 {
            out.push(Bytes::new());
        } else if let Some(bytes) = in_front(front, *range) {
            out.push(bytes);
        } else if range.length <= PIECE {
            out.push(next()?);
        } else {
            let mut whole = Vec::with_capacity(to_usize(range.length)?);
            while (whole.len() as u64) < range.length {
                whole.extend_from_slice(&next()?);
            }
            out.push(whole.into());
        }
    }
    Ok(out)
}

fn in_front(front: &Bytes, range: ByteRange) -> Option<Bytes> {
    let end = range.end().filter(|&end| end <= front.len() as u64)?;
    // Both are at most the length of the buffer.
    Some(front.slice(range.offset as usize..end as usize))
}

/// Copies the one answer to a read of exactly as many bytes.
pub(super) fn fill(buffer: &mut [u8], read: Vec<Bytes>) -> Result<()> {
    match read.first() {
        Some(bytes) if bytes.len() == buffer.len() => {
            buffer.copy_from_slice(bytes);
            Ok(())
        }
        _ => Err(Error::new(ErrorKind::Io, "an answer is missing")),
    }
}
