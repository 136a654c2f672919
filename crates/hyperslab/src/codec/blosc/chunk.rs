//! One Blosc chunk: a header of 16 bytes, or 32 with the filters of version 2, and blocks.
//!
//! After the header stand the offsets of the blocks; a block is one stream or one a byte of the element, and a stream is
//! its length (4 bytes) and its compressed bytes. All numbers are little-endian.

use super::super::{Scratch, corrupt, deflate, lz4, zstandard};
use super::blosclz;
use crate::error::{Error, Result};
use hyperslab_kernels::bitshuffle::bitunshuffle;
use hyperslab_kernels::shuffle::unshuffle;
use smallvec::SmallVec;

/// Format version of Blosc 1; its bit shuffle treats counts that are not a multiple of eight in its own way.
pub(super) const VERSION_1: u8 = 2;

pub(super) const FLAG_SHUFFLE: u8 = 1;
pub(super) const FLAG_STORED: u8 = 2;
pub(super) const FLAG_BITSHUFFLE: u8 = 4;
const FLAG_DELTA: u8 = 8;
pub(super) const FLAG_ONE_STREAM: u8 = 16;

/// Elements of more bytes, and blocks of fewer elements, are never split into streams by Blosc 1.
const MAX_SPLIT: usize = 16;
const MIN_SPLIT: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compressor {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    Shuffle(usize),
    Bitshuffle,
    Delta,
}

/// What the whole chunk holds where it has no blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Special {
    Zeros,
    NaN,
    Value,
    Uninitialized,
}

/// The header of a chunk.
#[derive(Debug)]
pub(super) struct Header {
    version: u8,
    flags: u8,
    /// Bytes of an element.
    size: usize,
    /// Decoded bytes.
    pub(super) len: usize,
    /// Decoded bytes of a block.
    block: usize,
    /// Bytes of the header.
    header_len: usize,
    /// The number of the compressor: in the flags, or of a plugin.
    compressor: u8,
    /// Filters in the order in which they encode.
    filters: SmallVec<[Filter; 6]>,
    special: Option<Special>,
}

/// `N` bytes at `at`.
fn bytes<const N: usize>(input: &[u8], at: usize) -> Option<[u8; N]> {
    input.get(at..)?.first_chunk().copied()
}

fn number(input: &[u8], at: usize) -> Option<usize> {
    u32::from_le_bytes(bytes(input, at)?).try_into().ok()
}

impl Header {
    pub(super) fn parse(codec: &'static str, input: &[u8]) -> Result<Header> {
        let fixed: Option<([u8; 4], usize, usize)> =
            (|| Some((bytes(input, 0)?, number(input, 4)?, number(input, 8)?)))();
        let Some(([version, _, flags, size], len, block)) = fixed else {
            return Err(corrupt(codec, "the chunk header is cut short"));
        };
        if len > i32::MAX as usize || (block == 0 && len > 0) || size == 0 {
            return Err(corrupt(
                codec,
                format_args!("a chunk of {len} bytes in blocks of {block} with elements of {size}"),
            ));
        }
        let mut header = Header {
            version,
            flags,
            size: size.into(),
            len,
            block: block.max(1),
            header_len: 16,
            compressor: flags >> 5,
            filters: SmallVec::new(),
            special: None,
        };
        if flags & FLAG_SHUFFLE != 0 && flags & FLAG_BITSHUFFLE != 0 {
            header.parse_extension(codec, input)?;
        } else {
            if flags & FLAG_DELTA != 0 {
                header.filters.push(Filter::Delta);
            }
            if flags & FLAG_SHUFFLE != 0 {
                header.filters.push(Filter::Shuffle(header.size));
            } else if flags & FLAG_BITSHUFFLE != 0 {
                header.filters.push(Filter::Bitshuffle);
            }
        }
        Ok(header)
    }

    /// The second half of a long header: filters with their parameters, a compressor that is a plugin, more flags.
    fn parse_extension(&mut self, codec: &'static str, input: &[u8]) -> Result<()> {
        let Some([f0, f1, f2, f3, f4, f5, plugin, _, m0, m1, m2, m3, m4, m5, _, flags]) = bytes(input, 16)
        else {
            return Err(corrupt(codec, "the chunk header is cut short"));
        };
        self.header_len = 32;
        for (code, parameter) in [(f0, m0), (f1, m1), (f2, m2), (f3, m3), (f4, m4), (f5, m5)] {
            let filter = match code {
                0 => continue,
                1 if parameter == 0 => Filter::Shuffle(self.size),
                1 => Filter::Shuffle(parameter.into()),
                2 => Filter::Bitshuffle,
                3 => Filter::Delta,
                // Truncating precision is not undone.
                4 => continue,
                other => {
                    return Err(Error::unsupported(format_args!("Blosc2 chunk with filter plugin {other}")));
                }
            };
            self.filters.push(filter);
        }
        if flags & 1 != 0 {
            return Err(Error::unsupported("Blosc2 chunk with a dictionary"));
        }
        if flags & 8 != 0 {
            return Err(Error::unsupported("lazy Blosc2 chunk"));
        }
        self.special = match flags >> 4 & 7 {
            0 => None,
            1 => Some(Special::Zeros),
            2 => Some(Special::NaN),
            3 => Some(Special::Value),
            4 => Some(Special::Uninitialized),
            other => return Err(corrupt(codec, format_args!("special chunk of kind {other}"))),
        };
        if self.compressor == 6 {
            self.compressor = plugin;
        }
        Ok(())
    }

    fn compressor(&self) -> Result<Compressor> {
        Ok(match self.compressor {
            0 => Compressor::BloscLz,
            1 => Compressor::Lz4,
            2 => Compressor::Snappy,
            3 => Compressor::Zlib,
            4 => Compressor::Zstd,
            other => return Err(Error::unsupported(format_args!("Blosc with compressor {other}"))),
        })
    }

    /// Decodes the chunk `input` that starts with this header into `out`, which is `len` bytes long.
    pub(super) fn decode(
        &self,
        codec: &'static str,
        input: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        if let Some(special) = self.special {
            return self.fill(codec, special, input, out);
        }
        if self.flags & FLAG_STORED != 0 {
            let Some(stored) = input.get(self.header_len..).and_then(|data| data.get(..out.len())) else {
                return Err(corrupt(codec, "a stored chunk is cut short"));
            };
            out.copy_from_slice(stored);
            return Ok(());
        }
        let compressor = self.compressor()?;
        let buffers = &mut [scratch.take(), scratch.take(), scratch.take()];
        let mut done = Ok(());
        let (mut start, mut place) = (0, self.header_len);
        while start < out.len() && done.is_ok() {
            let end = out.len().min(start + self.block);
            let (before, rest) = out.split_at_mut(start);
            let block = rest.get_mut(..end - start).unwrap_or_default();
            let reference = before.get(..block.len());
            done = match number(input, place).and_then(|offset| input.get(offset..)) {
                None => Err(corrupt(codec, "the offset of a block is damaged")),
                Some(streams) => {
                    self.decode_block(codec, compressor, streams, block, reference, buffers, scratch)
                }
            };
            start = end;
            place += 4;
        }
        for buffer in buffers {
            scratch.give(std::mem::take(buffer));
        }
        done
    }

    /// One block: its streams, then its filters backwards. `reference` is the start of the chunk, but for its first
    /// block.
    #[expect(clippy::too_many_arguments)]
    fn decode_block(
        &self,
        codec: &'static str,
        compressor: Compressor,
        streams: &[u8],
        block: &mut [u8],
        reference: Option<&[u8]>,
        buffers: &mut [Vec<u8>; 3],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some((last, others)) = self.filters.split_first() else {
            return self.decode_streams(codec, compressor, streams, block, scratch);
        };
        let [from, to, spare] = buffers;
        super::super::set_len(from, block.len());
        self.decode_streams(codec, compressor, streams, from, scratch)?;
        for &filter in others.iter().rev() {
            super::super::set_len(to, block.len());
            self.undo(filter, from, to, reference, spare);
            std::mem::swap(from, to);
        }
        self.undo(*last, from, block, reference, spare);
        Ok(())
    }

    fn decode_streams(
        &self,
        codec: &'static str,
        compressor: Compressor,
        mut streams: &[u8],
        block: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let whole = block.len() == self.block;
        let old = self.version > VERSION_1 || self.size <= MAX_SPLIT && self.block / self.size >= MIN_SPLIT;
        let count = if self.flags & FLAG_ONE_STREAM == 0 && whole && old { self.size } else { 1 };
        if !block.len().is_multiple_of(count) || block.len() < count {
            return Err(corrupt(codec, format_args!("a block of {} bytes in {count} streams", block.len())));
        }
        let cut = || corrupt(codec, "a stream is cut short");
        for target in block.chunks_exact_mut(block.len() / count) {
            let (stored, after) = streams.split_first_chunk::<4>().ok_or_else(cut)?;
            streams = after;
            let stored = i32::from_le_bytes(*stored);
            let Ok(len) = usize::try_from(stored) else {
                // A run of one byte: the length is minus that byte, and a token follows that says so.
                let (&token, after) = streams.split_first().ok_or_else(cut)?;
                streams = after;
                match u8::try_from(stored.unsigned_abs()) {
                    Ok(byte) if token & 1 != 0 => target.fill(byte),
                    _ => return Err(corrupt(codec, format_args!("a stream of {stored} bytes"))),
                }
                continue;
            };
            if len == 0 {
                target.fill(0);
                continue;
            }
            let (encoded, after) = streams.split_at_checked(len).ok_or_else(cut)?;
            streams = after;
            if len == target.len() {
                target.copy_from_slice(encoded);
                continue;
            }
            match compressor {
                Compressor::BloscLz => match blosclz::decompress(encoded, target) {
                    Some(n) if n == target.len() => {}
                    _ => return Err(corrupt(codec, "a BloscLZ stream is damaged")),
                },
                Compressor::Lz4 => lz4::decompress_into(codec, encoded, target)?,
                Compressor::Snappy => match snap::raw::Decoder::new().decompress(encoded, target) {
                    Ok(n) if n == target.len() => {}
                    _ => return Err(corrupt(codec, "a Snappy stream is damaged")),
                },
                Compressor::Zlib => deflate::inflate_into(codec, encoded, target, scratch)?,
                Compressor::Zstd => zstandard::decompress_into(codec, encoded, target, scratch)?,
            }
        }
        Ok(())
    }

    /// Undoes one filter from `from` into `to`, which are equally long.
    fn undo(
        &self,
        filter: Filter,
        from: &[u8],
        to: &mut [u8],
        reference: Option<&[u8]>,
        spare: &mut Vec<u8>,
    ) {
        match filter {
            Filter::Shuffle(size) => unshuffle(size, from, to),
            Filter::Bitshuffle => {
                let count = from.len() / self.size;
                let whole = match (self.version <= VERSION_1, count % 8) {
                    (_, 0) => count * self.size,
                    (true, _) => 0,
                    (false, rest) => (count - rest) * self.size,
                };
                let (body, tail) = from.split_at(whole);
                let (to_body, to_tail) = to.split_at_mut(whole);
                bitunshuffle(self.size, body, to_body, spare);
                to_tail.copy_from_slice(tail);
            }
            Filter::Delta => {
                to.copy_from_slice(from);
                match reference {
                    // Every element is stored as its difference to the same one in the first block,
                    Some(reference) => {
                        for (byte, other) in to.iter_mut().zip(reference) {
                            *byte ^= other;
                        }
                    }
                    // and in the first block, as its difference to the one before.
                    None => {
                        let unit = match self.size {
                            1 | 2 | 4 | 8 => self.size,
                            size if size % 8 == 0 => 8,
                            _ => 1,
                        };
                        let whole = to.len() - to.len() % unit;
                        for i in unit..whole {
                            if let Some(&before) = to.get(i - unit)
                                && let Some(byte) = to.get_mut(i)
                            {
                                *byte ^= before;
                            }
                        }
                    }
                }
            }
        }
    }

    /// A chunk of one repeated element.
    fn fill(&self, codec: &'static str, special: Special, input: &[u8], out: &mut [u8]) -> Result<()> {
        let element: &[u8] = match special {
            Special::Zeros | Special::Uninitialized => {
                out.fill(0);
                return Ok(());
            }
            Special::NaN => nan(self.size)
                .ok_or_else(|| corrupt(codec, format_args!("NaN in elements of {} bytes", self.size)))?,
            Special::Value => input
                .get(self.header_len..)
                .and_then(|data| data.get(..self.size))
                .ok_or_else(|| corrupt(codec, "a repeated value is cut short"))?,
        };
        repeat(element, out);
        Ok(())
    }
}

/// A NaN of 4 or 8 bytes as Blosc2 writes it.
pub(super) fn nan(size: usize) -> Option<&'static [u8]> {
    match size {
        4 => Some(&[0, 0, 0xc0, 0x7f]),
        8 => Some(&[0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        _ => None,
    }
}

/// Fills `out` with an element over and over.
pub(super) fn repeat(element: &[u8], out: &mut [u8]) {
    for target in out.chunks_mut(element.len().max(1)) {
        target.copy_from_slice(element.get(..target.len()).unwrap_or_default());
    }
}
