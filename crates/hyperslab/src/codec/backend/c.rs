//! libdeflate and zstd.

use super::Failure;
use std::io::{Error, Read};

/// Decodes zlib streams whose length is known.
pub(in crate::codec) struct Inflater(libdeflater::Decompressor);

impl Inflater {
    pub(in crate::codec) fn new() -> Self {
        Inflater(libdeflater::Decompressor::new())
    }

    /// Bytes written to the front of `out`.
    pub(in crate::codec) fn zlib(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        use libdeflater::DecompressionError::{BadData, InsufficientSpace};
        self.0.zlib_decompress(input, out).map_err(|e| match e {
            InsufficientSpace => Failure::Full,
            BadData => Failure::Damaged("the stream is damaged or cut short".to_owned()),
        })
    }
}

/// Decodes Zstandard frames.
pub(in crate::codec) struct Unzstd(zstd::bulk::Decompressor<'static>);

impl Unzstd {
    pub(in crate::codec) fn new() -> Result<Self, Error> {
        Ok(Unzstd(zstd::bulk::Decompressor::new()?))
    }

    /// Bytes written to the front of `out`.
    pub(in crate::codec) fn frames(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        self.0.decompress_to_buffer(input, out).map_err(|e| Failure::Damaged(e.to_string()))
    }

    /// Frames of unknown length, whose windows are at most 2^`window_log` bytes.
    pub(in crate::codec) fn reader(input: &[u8], window_log: u32) -> Result<impl Read, Error> {
        let mut state = zstd::stream::read::Decoder::with_buffer(input)?;
        state.window_log_max(window_log)?;
        Ok(state)
    }
}

/// Compresses into one frame that says its length; level 0 is the library's default.
pub(in crate::codec) fn compress_zstd(input: &[u8], out: &mut Vec<u8>, level: i32) -> Result<(), Error> {
    out.reserve(zstd::zstd_safe::compress_bound(input.len()));
    zstd::bulk::Compressor::new(level)?.compress_to_buffer(input, out)?;
    Ok(())
}
