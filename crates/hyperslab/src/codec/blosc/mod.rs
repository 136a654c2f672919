//! Blosc, versions 1 and 2: HDF5 filters 32001 and 32026.
//!
//! Both store *chunks* ([`chunk`]): a header, then blocks that are shuffled and compressed one by one. Filter 32001
//! stores one such chunk. Filter 32026 stores a *frame* ([`frame`]) of chunks, and describes the order of the elements of
//! arrays of two and more dimensions in a metalayer of it ([`ndim`]).

mod blosclz;
mod chunk;
mod encode;
mod frame;
mod ndim;
#[cfg(test)]
mod tests;

use super::{BindContext, Codec, Scratch, check_max, configuration, set_len, wrong_length};
use crate::error::{Error, Result};
use crate::json::Json;
use chunk::Header;
use encode::Options;
use std::sync::Arc;

/// HDF5's numbers of the filters.
pub(super) const HDF5_ID: u16 = 32001;
pub(super) const HDF5_ID_2: u16 = 32026;

/// HDF5: filter revision, Blosc's format version, element size, bytes of a chunk, level, shuffle (0 none, 1 bytes, 2
/// bits), compressor. Chunks say by themselves how to decode them; this is for encoding.
pub(super) fn bind(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>> {
    let value = |i: usize, default: u32| parameters.get(i).copied().unwrap_or(default);
    let size = value(2, u32::try_from(context.dtype.size()).unwrap_or(1));
    Ok(Arc::new(Blosc {
        options: Options {
            size: u8::try_from(size).unwrap_or(1).max(1),
            level: value(4, 5).min(9),
            shuffle: value(5, 1),
            compressor: value(6, 0),
        },
    }))
}

/// Zarr's `blosc`: `cname`, `clevel`, `shuffle` (Zarr 2: 0 none, 1 bytes, 2 bits, −1 bits for elements of one byte;
/// Zarr 3: `noshuffle`, `shuffle`, `bitshuffle`), `typesize`, `blocksize`.
pub(super) fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let size = i64::try_from(context.dtype.size()).unwrap_or(1);
    let size = configuration::integer(configuration, "typesize", size, 0, i64::MAX)?;
    let shuffle = match configuration.get("shuffle") {
        Some(Json::Text(text)) => match text.as_str() {
            "noshuffle" => 0,
            "shuffle" => 1,
            "bitshuffle" => 2,
            other => return Err(Error::unsupported(format_args!("Blosc's shuffle {other:?}"))),
        },
        _ => match configuration::integer(configuration, "shuffle", 1, -1, 2)? {
            -1 => {
                if size == 1 {
                    2
                } else {
                    1
                }
            }
            other => other as u32,
        },
    };
    let compressors = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    let name = configuration::text(configuration, "cname")?.unwrap_or("lz4");
    let compressor = compressors
        .iter()
        .position(|c| *c == name)
        .ok_or_else(|| Error::unsupported(format_args!("Blosc's compressor {name:?}")))?;
    Ok(Arc::new(Blosc {
        options: Options {
            size: u8::try_from(size).unwrap_or(1).max(1),
            level: configuration::integer(configuration, "clevel", 5, 0, 9)? as u32,
            shuffle,
            compressor: compressor as u32,
        },
    }))
}

/// HDF5: filter revision, 0, element size, bytes of a chunk, level, filter, compressor, and for arrays of two and more
/// dimensions their number and extents. Frames say by themselves how to decode them.
pub(super) fn bind_2(_: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Blosc2))
}

/// One Blosc chunk.
#[derive(Debug)]
struct Blosc {
    options: Options,
}

const NAME: &str = "blosc";

impl Codec for Blosc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let header = Header::parse(NAME, input)?;
        set_len(out, check_max(NAME, header.len as u64, max)?);
        header.decode(NAME, input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let header = Header::parse(NAME, input)?;
        if header.len != out.len() {
            return Err(wrong_length(NAME, header.len, out.len()));
        }
        header.decode(NAME, input, out, scratch)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        encode::encode(&self.options, input, out, scratch)
    }

    fn decoded_bound(&self, _: u64) -> u64 {
        // A header alone may stand for as many zeros as its length field can say.
        i32::MAX as u64
    }
}

/// A Blosc2 frame.
#[derive(Debug)]
struct Blosc2;

const NAME_2: &str = "blosc2";

impl Codec for Blosc2 {
    fn name(&self) -> &'static str {
        NAME_2
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = frame::decoded_len(NAME_2, input)?;
        set_len(out, check_max(NAME_2, len, max)?);
        frame::decode(NAME_2, input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        frame::decode(NAME_2, input, out, scratch)
    }

    fn encode(&self, _: &[u8], _: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        Err(Error::unsupported("writing Blosc2 frames (filter 32026)"))
    }

    fn decoded_bound(&self, _: u64) -> u64 {
        i32::MAX as u64
    }
}
