//! Deflate in a zlib envelope (RFC 1950): HDF5 filter 1.

use super::backend::{Envelope, Failure};
use super::spelling::{Hdf5, Spelling, json_to_level, level_to_json};
use super::{BindContext, Codec, Scratch, configuration, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use flate2::{Decompress, FlushDecompress, Status};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 1;

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "zlib",
    numcodecs: r#"{"id":"zlib","level":1}"#,
    v3: r#"{"name":"numcodecs.zlib","configuration":{"level":1}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json: level_to_json, to_parameters: json_to_level }),
    json: Some(bind_json),
    encodes: true,
};

/// HDF5: one parameter, the level.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = parameters.first().copied().unwrap_or(6).min(9);
    Ok(Arc::new(Deflate { level, short: true }))
}

/// Zarr's `zlib`: `level`.
pub(super) fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = configuration::integer(configuration, "level", 1, -1, 9)?;
    Ok(Arc::new(Deflate { level: u32::try_from(level).unwrap_or(6), short: false }))
}

#[derive(Debug)]
struct Deflate {
    level: u32,
    /// libhdf5 takes a chunk that ends early, and some writers cut the last chunk of a table at its last row.
    short: bool,
}

const NAME: &str = "deflate";

impl Codec for Deflate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        inflate(NAME, input, out, max)
    }

    /// The common case: the length is known, so that all of it is inflated in one go, straight into its place.
    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        inflate_into(NAME, input, out, scratch)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        deflate(NAME, input, out, self.level, scratch)
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        inflated_bound(encoded)
    }

    fn may_be_short(&self) -> bool {
        self.short
    }
}

/// The most bytes that a zlib stream of `encoded` bytes can hold: a match of 258 bytes costs at least two bits.
pub(super) fn inflated_bound(encoded: u64) -> u64 {
    encoded.saturating_mul(1032)
}

/// Inflates a zlib stream into exactly `out`.
pub(super) fn inflate_into(codec: &str, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    match scratch.inflate().zlib(input, out) {
        Ok(n) if n == out.len() => Ok(()),
        Ok(n) => Err(super::wrong_length(codec, n, out.len())),
        Err(Failure::Full) => {
            Err(corrupt(codec, format_args!("the stream holds more than the {} bytes wanted", out.len())))
        }
        Err(Failure::Damaged(why)) => Err(corrupt(codec, why)),
    }
}

/// Inflates a zlib stream of unknown length, at most `max` bytes.
pub(super) fn inflate(codec: &str, input: &[u8], out: &mut Vec<u8>, max: usize) -> Result<()> {
    let mut state = Decompress::new(true);
    out.clear();
    loop {
        let (read, written) = (state.total_in(), out.len());
        if out.len() == out.capacity() {
            // Grow by what the input may still give, doubling at most, never above `max` and one byte more, which
            // tells a stream that ends there from one that goes on.
            let room = (out.len() + 1).max(4096).max(input.len().saturating_mul(2)).min(max - out.len() + 1);
            out.reserve_exact(room);
        }
        let rest = usize::try_from(read).ok().and_then(|at| input.get(at..)).unwrap_or_default();
        let status = state
            .decompress_vec(rest, out, FlushDecompress::None)
            .map_err(|e| corrupt(codec, format_args!("the stream is damaged: {e}")))?;
        if out.len() > max {
            return Err(corrupt(codec, format_args!("the stream holds more than the {max} bytes possible")));
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        if state.total_in() == read && out.len() == written && out.len() < out.capacity() {
            return Err(corrupt(codec, "the stream is cut short"));
        }
    }
}

/// Deflates into a zlib stream.
pub(super) fn deflate(
    codec: &str,
    input: &[u8],
    out: &mut Vec<u8>,
    level: u32,
    scratch: &mut Scratch,
) -> Result<()> {
    let done = scratch.deflate(level).deflate(input, out, Envelope::Zlib);
    done.map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("{codec}: {e}")))
}
