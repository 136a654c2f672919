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

use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, check_max, configuration, set_len, wrong_length};
use crate::error::{Error, Result};
use crate::json::Json;
use chunk::Header;
use encode::Options;
use std::sync::Arc;

/// HDF5's numbers of the filters.
pub(super) const HDF5_ID: u16 = 32001;
pub(super) const HDF5_ID_2: u16 = 32026;

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "blosc",
    numcodecs: r#"{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}"#,
    v3: r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","blocksize":0,"typesize":4}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json, to_parameters }),
    json: Some(bind_json),
    encodes: true,
};

/// HDF5's Blosc2, under a name of its own.
pub(super) const HDF5_BLOSC2: Spelling = Spelling {
    id: "hdf5blosc2",
    numcodecs: r#"{"id":"hdf5blosc2","parameters":[1,0,4,20000,5,1,1]}"#,
    v3: r#"{"name":"hdf5blosc2","configuration":{"parameters":[1,0,4,20000,5,1,1]}}"#,
    hdf5: Some(Hdf5 {
        number: HDF5_ID_2,
        bind: bind_2,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind_2(&json_to_parameters(configuration, context)?, context)),
    encodes: false,
};

/// Blosc's compressors by number.
const COMPRESSORS: [&str; 6] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];

fn to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    let value = |i: usize, default: u32| parameters.get(i).copied().unwrap_or(default);
    let number = |value: u32| Json::Integer(i128::from(value));
    let name = COMPRESSORS.get(value(6, 0) as usize).map_or(number(value(6, 0)), |n| Json::Text((*n).into()));
    let mut members = vec![
        ("cname", name),
        ("clevel", number(value(4, 5))),
        ("shuffle", number(value(5, 1))),
        ("blocksize", number(0)),
    ];
    if let Some(&size) = parameters.get(2) {
        members.push(("typesize", number(size)));
    }
    members
}

/// The filter's own numbers first: its revision, and that of Blosc's format.
fn to_parameters(configuration: &Json, context: &BindContext) -> Result<Vec<u32>> {
    let options = options(configuration, context)?;
    let bytes = u32::try_from(context.chunk_bytes).unwrap_or(u32::MAX);
    Ok(vec![2, 2, options.size.into(), bytes, options.level, options.shuffle, options.compressor])
}

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
fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Blosc { options: options(configuration, context)? }))
}

fn options(configuration: &Json, context: &BindContext) -> Result<Options> {
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
    let name = configuration::text(configuration, "cname")?.unwrap_or("lz4");
    let compressor = COMPRESSORS
        .iter()
        .position(|c| *c == name)
        .ok_or_else(|| Error::unsupported(format_args!("Blosc's compressor {name:?}")))?;
    Ok(Options {
        size: u8::try_from(size).unwrap_or(1).max(1),
        level: configuration::integer(configuration, "clevel", 5, 0, 9)? as u32,
        shuffle,
        compressor: compressor as u32,
    })
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
