//! A contiguous frame of Blosc2: header with metalayers, chunks, index of the chunks, trailer.
//!
//! The header and the trailer are MessagePack, with numbers big-endian; the chunks are as in [`super::chunk`]. The index
//! is itself a chunk, of eight-byte offsets, little-endian; a negative one stands for a chunk of one repeated value.

use super::super::{Scratch, check_max, corrupt, set_len, wrong_length};
use super::chunk::{Header, nan, repeat};
use super::ndim::Shape;
use crate::error::Result;

/// Places of fields in the header.
const HEADER_LEN: usize = 11;
const LEN: usize = 30;
const ENCODED_LEN: usize = 39;
const SIZE: usize = 48;
const CHUNK_LEN: usize = 58;
const METALAYERS: usize = 87;

/// A frame, parsed as far as decoding needs it.
struct Frame<'a> {
    /// Decoded bytes of all chunks.
    len: u64,
    /// Bytes of an element.
    size: usize,
    /// Decoded bytes of a chunk.
    chunk: u64,
    /// Chunks, and behind them the index.
    chunks: &'a [u8],
    index: &'a [u8],
    /// How an array of two and more dimensions is cut into blocks.
    shape: Option<Shape>,
}

fn number<const N: usize>(input: &[u8], at: usize) -> Option<[u8; N]> {
    input.get(at..)?.first_chunk().copied()
}

impl<'a> Frame<'a> {
    fn parse(codec: &'static str, input: &'a [u8]) -> Result<Frame<'a>> {
        if input.get(2..10) != Some(b"b2frame\0") {
            return Err(corrupt(codec, "no frame starts here"));
        }
        let parts = || {
            let header_len = u32::from_be_bytes(number(input, HEADER_LEN)?) as usize;
            let encoded = usize::try_from(u64::from_be_bytes(number(input, ENCODED_LEN)?)).ok()?;
            let (chunks, index) = input.get(header_len..)?.split_at_checked(encoded)?;
            Some(Frame {
                len: u64::from_be_bytes(number(input, LEN)?),
                size: u32::from_be_bytes(number(input, SIZE)?) as usize,
                chunk: u32::from_be_bytes(number(input, CHUNK_LEN)?).into(),
                chunks,
                index,
                shape: None,
            })
        };
        let mut frame = parts().ok_or_else(|| corrupt(codec, "the frame is cut short"))?;
        if frame.len > 0 && (frame.chunk == 0 || frame.size == 0) {
            return Err(corrupt(codec, "chunks or elements of zero bytes"));
        }
        if let Some(layer) = metalayer(input, b"b2nd") {
            frame.shape = Some(Shape::parse(codec, layer, frame.size)?);
        }
        Ok(frame)
    }

    /// Bytes of the array: without what pads its blocks.
    fn array_len(&self) -> u64 {
        self.shape.as_ref().map_or(self.len, |shape| shape.array_len)
    }
}

/// The value of a metalayer, a MessagePack `bin32`, if the header has it.
fn metalayer<'a>(input: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    // An array of three: bytes of it (uint16), a map16 of names to offsets, the values.
    let count = u16::from_be_bytes(number(input, METALAYERS + 5)?);
    let mut at = METALAYERS + 7;
    for _ in 0..count {
        let len = usize::from(input.get(at)? & 0x1f);
        let key = input.get(at + 1..)?.get(..len)?;
        at += 1 + len;
        let offset = u32::from_be_bytes(number(input, at + 1)?) as usize;
        at += 5;
        if key == name {
            let value = input.get(offset..)?;
            let len = u32::from_be_bytes(number(value, 1)?) as usize;
            return value.get(5..)?.get(..len);
        }
    }
    None
}

/// Decoded bytes of the array in the frame `input`.
pub(super) fn decoded_len(codec: &'static str, input: &[u8]) -> Result<u64> {
    Ok(Frame::parse(codec, input)?.array_len())
}

/// Decodes the frame `input` into exactly `out`.
pub(super) fn decode(codec: &'static str, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    let frame = Frame::parse(codec, input)?;
    if frame.array_len() != out.len() as u64 {
        return Err(wrong_length(codec, usize::try_from(frame.array_len()).unwrap_or(usize::MAX), out.len()));
    }
    match &frame.shape {
        Some(shape) if !shape.is_identity() => {
            // Padding may double every extent and no more, as blocks are not longer than the array.
            let most = out.len().saturating_mul(1 << shape.rank().min(16));
            let len = check_max(codec, frame.len, most)?;
            let mut blocks = scratch.take_len(len);
            let done = decode_chunks(codec, &frame, &mut blocks, scratch)
                .and_then(|()| shape.place(codec, &blocks, out));
            scratch.give(blocks);
            done
        }
        _ if frame.len != out.len() as u64 => {
            Err(corrupt(codec, format_args!("{} bytes in the frame of an array of {}", frame.len, out.len())))
        }
        _ => decode_chunks(codec, &frame, out, scratch),
    }
}

/// Decodes all chunks of a frame one behind the other.
fn decode_chunks(codec: &'static str, frame: &Frame, out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let chunk_len = usize::try_from(frame.chunk).unwrap_or(usize::MAX);
    let count = out.len().div_ceil(chunk_len);
    let index = Header::parse(codec, frame.index)?;
    if index.len / 8 < count || index.len % 8 != 0 || index.len > 8 * count + 64 {
        return Err(corrupt(codec, format_args!("an index of {} bytes for {count} chunks", index.len)));
    }
    let mut offsets = scratch.take();
    set_len(&mut offsets, index.len);
    index.decode(codec, frame.index, &mut offsets, scratch)?;
    for (target, offset) in out.chunks_mut(chunk_len).zip(offsets.as_chunks::<8>().0) {
        let offset = i64::from_le_bytes(*offset);
        match usize::try_from(offset) {
            Ok(at) => {
                let input = frame.chunks.get(at..).unwrap_or_default();
                let header = Header::parse(codec, input)?;
                if header.len != target.len() {
                    return Err(wrong_length(codec, header.len, target.len()));
                }
                header.decode(codec, input, target, scratch)?;
            }
            // The highest byte says which value is repeated.
            Err(_) => match offset >> 56 & 7 {
                1 | 4 => target.fill(0),
                2 => match nan(frame.size) {
                    Some(nan) => repeat(nan, target),
                    None => {
                        return Err(corrupt(codec, format_args!("NaN in elements of {} bytes", frame.size)));
                    }
                },
                other => return Err(corrupt(codec, format_args!("special chunk of kind {other}"))),
            },
        }
    }
    scratch.give(offsets);
    Ok(())
}
