//! The bitshuffle library's filter, with or without LZ4 or Zstandard behind it: HDF5 filter 32008.
//!
//! Elements are shuffled in blocks of a multiple of eight; the last elements, fewer than eight, are stored as they are.
//! With a compressor the decoded length (8 bytes) and the bytes of a block (4 bytes) come first and every block has its
//! encoded length (4 bytes) in front, all big-endian.

use super::spelling::{Hdf5, Spelling};
use super::{
    BindContext, Codec, Scratch, check_max, configuration, corrupt, lz4, set_len, wrong_length, zstandard,
};
use crate::error::{Error, Result};
use crate::json::Json;
use hyperslab_kernels::bitshuffle::{bitshuffle, bitunshuffle};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 32008;

/// HDF5: two version numbers, element size, elements of a block (0: by default), compressor (0 none, 2 LZ4, 3
/// Zstandard), its level.
pub(super) fn bind(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>> {
    let value = |i: usize| parameters.get(i).copied().unwrap_or(0);
    let size = match value(2) {
        0 => context.dtype.size(),
        size => size as usize,
    };
    if size == 0 || size > MAX_SIZE {
        return Err(corrupt(NAME, format_args!("elements of {size} bytes")));
    }
    let block = match value(3) as usize {
        0 => default_block(size),
        block => block,
    };
    if !block.is_multiple_of(8) {
        return Err(corrupt(NAME, format_args!("blocks of {block} elements, not a multiple of 8")));
    }
    let block = block.checked_mul(size).filter(|&bytes| u32::try_from(bytes).is_ok());
    let block = block.ok_or_else(|| corrupt(NAME, "blocks of 4 GiB and more"))?;
    let compressor = match value(4) {
        0 => Compressor::None,
        2 => Compressor::Lz4,
        3 => Compressor::Zstd { level: value(5) as i32 },
        other => return Err(Error::unsupported(format_args!("bitshuffle with compressor {other}"))),
    };
    Ok(Arc::new(Bitshuffle { size, block, compressor }))
}

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "bitshuffle",
    numcodecs: r#"{"id":"bitshuffle","elementsize":4,"blocksize":0,"cname":"lz4"}"#,
    v3: r#"{"name":"numcodecs.bitshuffle","configuration":{"elementsize":4,"blocksize":0,"cname":"lz4"}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json, to_parameters }),
    json: Some(bind_json),
    encodes: true,
};

fn to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    let value = |i: usize| parameters.get(i).copied().unwrap_or(0);
    let number = |i| Json::Integer(i128::from(value(i)));
    let name = match value(4) {
        0 => Json::Text("none".into()),
        2 => Json::Text("lz4".into()),
        3 => Json::Text("zstd".into()),
        other => Json::Integer(i128::from(other)),
    };
    let mut members = vec![("elementsize", number(2)), ("blocksize", number(3)), ("cname", name)];
    if parameters.len() > 5 {
        members.push(("clevel", Json::Integer(i128::from(value(5) as i32))));
    }
    members
}

/// Zarr's `bitshuffle`: `elementsize` and `blocksize` in elements, 0 and none by default, and `cname`: `none`, `lz4` or
/// `zstd` with `clevel`.
fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    bind(&to_parameters(configuration, context)?, context)
}

/// The filter's own version, 0.4, first.
fn to_parameters(configuration: &Json, _: &BindContext) -> Result<Vec<u32>> {
    let number = |name, high| configuration::integer(configuration, name, 0, 0, high);
    let compressor = match configuration::text(configuration, "cname")? {
        None | Some("none") => 0,
        Some("lz4") => 2,
        Some("zstd") => 3,
        Some(other) => return Err(Error::unsupported(format_args!("bitshuffle with compressor {other:?}"))),
    };
    let (size, block) =
        (number("elementsize", MAX_SIZE as i64)? as u32, number("blocksize", 1 << 28)? as u32);
    let mut parameters = vec![0, 4, size, block, compressor];
    if configuration.get("clevel").is_some() {
        parameters
            .push(configuration::integer(configuration, "clevel", 0, i32::MIN.into(), 22)? as i32 as u32);
    }
    Ok(parameters)
}

/// HDF5 elements have at most 2^32 bytes; a block of eight must stay below that.
const MAX_SIZE: usize = 1 << 28;

/// Elements of a block by default: about 8 KiB, a multiple of 8, at least 128.
fn default_block(size: usize) -> usize {
    (8192 / size / 8 * 8).max(128)
}

#[derive(Debug)]
struct Bitshuffle {
    /// Bytes of an element.
    size: usize,
    /// Bytes of a block when there is no header.
    block: usize,
    compressor: Compressor,
}

#[derive(Debug)]
enum Compressor {
    None,
    Lz4,
    Zstd { level: i32 },
}

const NAME: &str = "bitshuffle";

impl Codec for Bitshuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = match self.compressor {
            Compressor::None => input.len() as u64,
            _ => lz4::header(NAME, input)?.0,
        };
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, check_max(NAME, len, usize::try_from(bound).unwrap_or(max))?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let mut spare = scratch.take();
        let done = match self.compressor {
            Compressor::None => self.decode_plain(input, out, &mut spare),
            _ => self.decode_blocks(input, out, &mut spare, scratch),
        };
        scratch.give(spare);
        done
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        let mut spare = scratch.take();
        let (body, tail) = input.split_at(self.whole(input.len()));
        out.clear();
        match self.compressor {
            Compressor::None => {
                set_len(out, body.len());
                for (from, to) in body.chunks(self.block).zip(out.chunks_mut(self.block)) {
                    bitshuffle(self.size, from, to, &mut spare);
                }
            }
            _ => {
                out.extend_from_slice(&(input.len() as u64).to_be_bytes());
                out.extend_from_slice(&(self.block as u32).to_be_bytes());
                let (mut shuffled, mut encoded) = (scratch.take(), scratch.take());
                for part in body.chunks(self.block) {
                    set_len(&mut shuffled, part.len());
                    bitshuffle(self.size, part, &mut shuffled, &mut spare);
                    match self.compressor {
                        Compressor::Zstd { level } => {
                            zstandard::compress(NAME, &shuffled, &mut encoded, level, scratch)?;
                        }
                        _ => lz4::compress(&shuffled, &mut encoded)?,
                    }
                    out.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
                    out.extend_from_slice(&encoded);
                }
                scratch.give(shuffled);
                scratch.give(encoded);
            }
        }
        out.extend_from_slice(tail);
        scratch.give(spare);
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        match self.compressor {
            Compressor::None => encoded,
            Compressor::Lz4 => lz4::decompressed_bound(encoded),
            Compressor::Zstd { .. } => zstandard::decompressed_bound(encoded),
        }
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        matches!(self.compressor, Compressor::None).then_some(decoded)
    }
}

impl Bitshuffle {
    /// Bytes of whole eights of elements.
    fn whole(&self, len: usize) -> usize {
        len - len % (8 * self.size)
    }

    fn decode_plain(&self, input: &[u8], out: &mut [u8], spare: &mut Vec<u8>) -> Result<()> {
        if input.len() != out.len() {
            return Err(wrong_length(NAME, input.len(), out.len()));
        }
        let whole = self.whole(input.len());
        let (body, tail) = input.split_at(whole);
        let (out_body, out_tail) = out.split_at_mut(whole);
        for (from, to) in body.chunks(self.block).zip(out_body.chunks_mut(self.block)) {
            bitunshuffle(self.size, from, to, spare);
        }
        out_tail.copy_from_slice(tail);
        Ok(())
    }

    fn decode_blocks(
        &self,
        input: &[u8],
        out: &mut [u8],
        spare: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (len, block, mut rest) = lz4::header(NAME, input)?;
        if len != out.len() as u64 {
            return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
        }
        if block == 0 || !block.is_multiple_of(8 * self.size) {
            return Err(corrupt(NAME, format_args!("blocks of {block} bytes for elements of {}", self.size)));
        }
        let (body, tail) = out.split_at_mut(self.whole(out.len()));
        let mut shuffled = scratch.take_len(block.min(body.len()));
        for target in body.chunks_mut(block) {
            let part = rest
                .split_first_chunk::<4>()
                .and_then(|(stored, after)| after.split_at_checked(u32::from_be_bytes(*stored) as usize));
            let Some((encoded, after)) = part else {
                return Err(corrupt(NAME, "a block is cut short"));
            };
            rest = after;
            set_len(&mut shuffled, target.len());
            match self.compressor {
                Compressor::Zstd { .. } => {
                    zstandard::decompress_into(NAME, encoded, &mut shuffled, scratch)?;
                }
                _ => lz4::decompress_into(NAME, encoded, &mut shuffled)?,
            }
            bitunshuffle(self.size, &shuffled, target, spare);
        }
        scratch.give(shuffled);
        if rest.len() < tail.len() {
            return Err(corrupt(NAME, "the last elements are cut short"));
        }
        tail.copy_from_slice(rest.get(..tail.len()).unwrap_or_default());
        Ok(())
    }
}
