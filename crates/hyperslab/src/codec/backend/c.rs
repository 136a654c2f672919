//! libdeflate and zstd.

use super::{Envelope, Failure};
use crate::codec::set_len;
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

/// Deflates whole buffers; keeps what it needs for one level.
pub(in crate::codec) struct Deflater {
    level: u32,
    state: libdeflater::Compressor,
}

impl Deflater {
    /// Levels as those of zlib, 0 to 9.
    pub(in crate::codec) fn new(level: u32) -> Self {
        let wanted = libdeflater::CompressionLvl::new(i32::try_from(level.min(9)).unwrap_or(6));
        Deflater { level, state: libdeflater::Compressor::new(wanted.unwrap_or_default()) }
    }

    pub(in crate::codec) fn level(&self) -> u32 {
        self.level
    }

    /// One stream in the envelope asked for.
    pub(in crate::codec) fn deflate(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        envelope: Envelope,
    ) -> Result<(), Error> {
        let bound = match envelope {
            Envelope::Zlib => self.state.zlib_compress_bound(input.len()),
            Envelope::Gzip => self.state.gzip_compress_bound(input.len()),
        };
        set_len(out, bound);
        let done = match envelope {
            Envelope::Zlib => self.state.zlib_compress(input, out),
            Envelope::Gzip => self.state.gzip_compress(input, out),
        };
        out.truncate(done.map_err(|e| Error::other(e.to_string()))?);
        Ok(())
    }
}

/// Compresses into frames of Zstandard that say their length; keeps what it needs for one level.
pub(in crate::codec) struct Zstd {
    level: i32,
    state: zstd::bulk::Compressor<'static>,
}

impl Zstd {
    /// Level 0 is the library's default.
    pub(in crate::codec) fn new(level: i32) -> Result<Self, Error> {
        Ok(Zstd { level, state: zstd::bulk::Compressor::new(level)? })
    }

    pub(in crate::codec) fn level(&self) -> i32 {
        self.level
    }

    pub(in crate::codec) fn frame(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        out.reserve(zstd::zstd_safe::compress_bound(input.len()));
        self.state.compress_to_buffer(input, out)?;
        Ok(())
    }
}
