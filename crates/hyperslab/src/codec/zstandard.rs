//! Zstandard frames: HDF5 filter 32015.

use super::backend::{Failure, Unzstd};
use super::spelling::{Hdf5, Spelling, json_to_level, level_to_json};
use super::{BindContext, Codec, Scratch, configuration, corrupt, stream, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 32015;

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "zstd",
    numcodecs: r#"{"id":"zstd","level":0,"checksum":false}"#,
    v3: r#"{"name":"zstd","configuration":{"level":0,"checksum":false}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json: level_to_json, to_parameters: json_to_level }),
    json: Some(bind_json),
    encodes: cfg!(feature = "c-codecs"),
};

/// HDF5: one parameter, the level.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    // The level is a signed number in an unsigned field; the encoder brings it into range.
    let level = parameters.first().map_or(DEFAULT_LEVEL, |&l| l as i32);
    Ok(Arc::new(Zstd { level }))
}

/// Zarr's `zstd`: `level`, and `checksum`, whether frames end with one.
pub(super) fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = configuration::integer(configuration, "level", 0, i32::MIN.into(), i32::MAX.into())?;
    Ok(Arc::new(Zstd { level: level as i32 }))
}

#[derive(Debug)]
struct Zstd {
    level: i32,
}

const NAME: &str = "zstd";

/// The library's own default.
const DEFAULT_LEVEL: i32 = 3;

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        decompress(NAME, input, out, max)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        decompress_into(NAME, input, out, scratch)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        compress(NAME, input, out, self.level, scratch)
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        decompressed_bound(encoded)
    }
}

/// The most bytes that frames of `encoded` bytes can hold: a block of at most 128 KiB takes at least four bytes, three
/// of its header and the byte that is repeated.
pub(super) fn decompressed_bound(encoded: u64) -> u64 {
    encoded.saturating_mul((128 << 10) / 4)
}

/// Decompresses frames into exactly `out`.
pub(super) fn decompress_into(
    codec: &str,
    input: &[u8],
    out: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    let state = scratch.zstd().map_err(|e| Error::io(format_args!("{codec}: decoder"), e))?;
    match state.frames(input, out) {
        Ok(n) if n == out.len() => Ok(()),
        Ok(n) => Err(wrong_length(codec, n, out.len())),
        Err(Failure::Full) => Err(corrupt(codec, "the frame is longer than its chunk")),
        Err(Failure::Damaged(why)) => Err(corrupt(codec, why)),
    }
}

/// Decompresses frames of unknown length, at most `max` bytes.
pub(super) fn decompress(codec: &str, input: &[u8], out: &mut Vec<u8>, max: usize) -> Result<()> {
    // The window is memory that the frame asks for: no more than could be filled, and no less than the smallest.
    let window = (max as u64).next_power_of_two().ilog2().clamp(10, 31);
    let state = Unzstd::reader(input, window).map_err(|e| corrupt(codec, e))?;
    stream::decode(codec, state, out, max)
}

/// Compresses into one frame that says its length.
pub(super) fn compress(
    codec: &str,
    input: &[u8],
    out: &mut Vec<u8>,
    level: i32,
    scratch: &mut Scratch,
) -> Result<()> {
    scratch.compress(level).and_then(|state| state.frame(input, out)).map_err(|e| {
        let kind = match e.kind() {
            std::io::ErrorKind::Unsupported => ErrorKind::Unsupported,
            _ => ErrorKind::InvalidArgument,
        };
        Error::new(kind, format!("{codec}: {e}"))
    })
}
