//! zlib-rs (through flate2) and ruzstd.

use super::{Envelope, Failure};
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{Error, ErrorKind, Read, Write};

/// Decodes zlib streams whose length is known.
pub(in crate::codec) struct Inflater(Decompress);

impl Inflater {
    pub(in crate::codec) fn new() -> Self {
        Inflater(Decompress::new(true))
    }

    /// Bytes written to the front of `out`.
    pub(in crate::codec) fn zlib(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        self.0.reset(true);
        let status = self.0.decompress(input, out, FlushDecompress::Finish);
        match status.map_err(|e| Failure::Damaged(e.to_string()))? {
            Status::StreamEnd => Ok(usize::try_from(self.0.total_out()).unwrap_or(out.len())),
            _ if self.0.total_out() == out.len() as u64 && self.0.total_in() < input.len() as u64 => {
                Err(Failure::Full)
            }
            _ => Err(Failure::Damaged("the stream is damaged or cut short".to_owned())),
        }
    }
}

/// Decodes Zstandard frames.
pub(in crate::codec) struct Unzstd(FrameDecoder);

impl Unzstd {
    pub(in crate::codec) fn new() -> Result<Self, Error> {
        Ok(Unzstd(FrameDecoder::new()))
    }

    /// Bytes written to the front of `out`.
    pub(in crate::codec) fn frames(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        // A window is memory that the frame asks for: no more than could be filled, and no less than the smallest.
        self.0.set_max_window_size((out.len() as u64).max(1 << 10).next_power_of_two());
        self.0.decode_all(input, out).map_err(|e| Failure::Damaged(e.to_string()))
    }

    /// Frames of unknown length, whose windows are at most 2^`window_log` bytes.
    pub(in crate::codec) fn reader(input: &[u8], window_log: u32) -> Result<impl Read, Error> {
        Ok(Frames { input, frame: None, window: 1 << window_log })
    }
}

/// One frame after the other.
struct Frames<'a> {
    input: &'a [u8],
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
    window: u64,
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(buffer)?;
                if n > 0 || buffer.is_empty() {
                    return Ok(n);
                }
            }
            // The frame is at its end: what it did not take is the next one.
            if let Some(frame) = self.frame.take() {
                self.input = frame.into_inner();
            }
            if self.input.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(self.input, self.window);
            self.frame = Some(frame.map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))?);
        }
    }
}

/// Deflates whole buffers.
pub(in crate::codec) struct Deflater(u32);

impl Deflater {
    /// Levels as those of zlib, 0 to 9.
    pub(in crate::codec) fn new(level: u32) -> Self {
        Deflater(level)
    }

    pub(in crate::codec) fn level(&self) -> u32 {
        self.0
    }

    /// One stream in the envelope asked for.
    pub(in crate::codec) fn deflate(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        envelope: Envelope,
    ) -> Result<(), Error> {
        out.clear();
        let level = Compression::new(self.0.min(9));
        match envelope {
            Envelope::Zlib => {
                let mut encoder = ZlibEncoder::new(out, level);
                encoder.write_all(input)?;
                encoder.finish().map(|_| ())
            }
            Envelope::Gzip => {
                let mut encoder = GzEncoder::new(out, level);
                encoder.write_all(input)?;
                encoder.finish().map(|_| ())
            }
        }
    }
}

/// Refused: the pure encoder writes frames without their length, which HDF5's filter needs.
pub(in crate::codec) struct Zstd(i32);

impl Zstd {
    pub(in crate::codec) fn new(level: i32) -> Result<Self, Error> {
        Ok(Zstd(level))
    }

    pub(in crate::codec) fn level(&self) -> i32 {
        self.0
    }

    pub(in crate::codec) fn frame(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<(), Error> {
        Err(Error::new(ErrorKind::Unsupported, "writing Zstandard needs the feature `c-codecs`"))
    }
}
