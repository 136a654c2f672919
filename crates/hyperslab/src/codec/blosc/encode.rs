//! Chunks of Blosc 1 from bytes.

use super::super::{Scratch, corrupt, deflate, lz4, set_len, zstandard};
use super::chunk::{FLAG_BITSHUFFLE, FLAG_ONE_STREAM, FLAG_SHUFFLE, FLAG_STORED, VERSION_1};
use super::{NAME, blosclz};
use crate::error::{Error, Result};
use hyperslab_kernels::bitshuffle::bitshuffle;
use hyperslab_kernels::shuffle::shuffle;

/// How to encode.
#[derive(Debug)]
pub(super) struct Options {
    /// Bytes of an element.
    pub(super) size: u8,
    /// 0 stores; 9 is slowest.
    pub(super) level: u32,
    /// 0 none, 1 bytes, 2 bits.
    pub(super) shuffle: u32,
    /// 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5 Zstandard.
    pub(super) compressor: u32,
}

const HEADER: usize = 16;

/// Bytes of a block: a part of the second-level cache for the fast compressors, more for those that gain by it.
fn block_len(options: &Options, len: usize) -> usize {
    let wanted = if options.compressor >= 4 { 256 << 10 } else { 64 << 10 };
    // Whole eights of elements, which is what Blosc's bit shuffle asks for.
    let unit = 8 * usize::from(options.size);
    (wanted / unit * unit).min(len).max(1)
}

/// Encodes `input` as one chunk.
pub(super) fn encode(
    options: &Options,
    input: &[u8],
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<()> {
    let format = match options.compressor {
        0 => 0,
        1 | 2 => 1,
        3 => 2,
        4 => 3,
        5 => 4,
        other => return Err(Error::unsupported(format_args!("Blosc with compressor {other}"))),
    };
    if input.len() > i32::MAX as usize - HEADER {
        return Err(corrupt(NAME, format_args!("{} bytes are more than a chunk can hold", input.len())));
    }
    let size = usize::from(options.size);
    let block = block_len(options, input.len());
    let shuffled = match options.shuffle {
        1 if size > 1 => FLAG_SHUFFLE,
        2 => FLAG_BITSHUFFLE,
        _ => 0,
    };
    out.clear();
    out.extend_from_slice(&[VERSION_1, 1, shuffled | FLAG_ONE_STREAM | format << 5, options.size]);
    for number in [input.len(), block, 0] {
        out.extend_from_slice(&(number as u32).to_le_bytes());
    }
    if options.level == 0 || input.is_empty() {
        return store(input, out);
    }
    let mut buffers = [scratch.take(), scratch.take(), scratch.take()];
    let done = encode_blocks(options, shuffled, block, input, out, &mut buffers, scratch);
    buffers.into_iter().for_each(|buffer| scratch.give(buffer));
    match done? {
        Some(()) => finish(out),
        None => store(input, out),
    }
}

/// Writes the offsets of the blocks and the blocks; `None` if they take as much room as the bytes themselves.
fn encode_blocks(
    options: &Options,
    shuffled: u8,
    block: usize,
    input: &[u8],
    out: &mut Vec<u8>,
    [planes, spare, encoded]: &mut [Vec<u8>; 3],
    scratch: &mut Scratch,
) -> Result<Option<()>> {
    let size = usize::from(options.size);
    let offsets = out.len();
    out.resize(offsets + 4 * input.len().div_ceil(block), 0);
    for (i, part) in input.chunks(block).enumerate() {
        let at = (out.len() as u32).to_le_bytes();
        if let Some(offset) = out.get_mut(offsets + 4 * i..).and_then(|o| o.first_chunk_mut()) {
            *offset = at;
        }
        let whole = part.len() - part.len() % size;
        let from = match shuffled {
            FLAG_SHUFFLE => {
                set_len(planes, part.len());
                shuffle(size, part, planes);
                planes.as_slice()
            }
            FLAG_BITSHUFFLE if (whole / size).is_multiple_of(8) => {
                set_len(planes, part.len());
                let (body, tail) = part.split_at(whole);
                let (to_body, to_tail) = planes.split_at_mut(whole);
                bitshuffle(size, body, to_body, spare);
                to_tail.copy_from_slice(tail);
                planes.as_slice()
            }
            // Blosc 1 leaves blocks that are not whole eights of elements as they are.
            _ => part,
        };
        compress(options, from, encoded, scratch)?;
        let stored = if encoded.len() < part.len() { encoded.as_slice() } else { from };
        out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        out.extend_from_slice(stored);
        if out.len() >= HEADER + input.len() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// Replaces what follows the header by the bytes as they are.
fn store(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.truncate(HEADER);
    if let Some(flags) = out.get_mut(2) {
        *flags |= FLAG_STORED;
    }
    out.extend_from_slice(input);
    finish(out)
}

/// Writes the encoded length into the header.
fn finish(out: &mut [u8]) -> Result<()> {
    let len = (out.len() as u32).to_le_bytes();
    if let Some(field) = out.get_mut(12..16) {
        field.copy_from_slice(&len);
    }
    Ok(())
}

fn compress(options: &Options, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
    match options.compressor {
        0 => {
            blosclz::compress(input, out);
            Ok(())
        }
        1 | 2 => lz4::compress(input, out),
        3 => {
            set_len(out, snap::raw::max_compress_len(input.len()));
            let len = snap::raw::Encoder::new().compress(input, out).map_err(|e| corrupt(NAME, e))?;
            out.truncate(len);
            Ok(())
        }
        4 => deflate::deflate(NAME, input, out, options.level, scratch),
        // As Blosc maps its levels: the highest is Zstandard's highest.
        _ => zstandard::compress(
            NAME,
            input,
            out,
            if options.level == 9 { 22 } else { 2 * options.level as i32 - 1 },
            scratch,
        ),
    }
}
