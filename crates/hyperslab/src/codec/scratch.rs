//! What a worker keeps from chunk to chunk.

use super::backend::{Deflater, Inflater, Unzstd, Zstd};
use super::set_len;
use std::fmt;

/// Buffers and states of decoders and encoders that a worker keeps from chunk to chunk, so that steady work allocates
/// nothing.
#[derive(Default)]
pub struct Scratch {
    spare: Vec<Vec<u8>>,
    inflate: Option<Inflater>,
    zstd: Option<Unzstd>,
    deflate: Option<Deflater>,
    compress: Option<Zstd>,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("spare", &self.spare.len()).finish_non_exhaustive()
    }
}

impl Scratch {
    /// An empty buffer, with the capacity of an earlier one where there is one.
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// A buffer of `len` bytes that hold anything: only what an earlier use did not fill is zeroed. The caller has
    /// checked that `len` is allowed.
    pub fn take_len(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        set_len(&mut buffer, len);
        buffer
    }

    /// Gives a buffer back.
    pub fn give(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < 8 {
            self.spare.push(buffer);
        }
    }

    pub(super) fn inflate(&mut self) -> &mut Inflater {
        self.inflate.get_or_insert_with(Inflater::new)
    }

    pub(super) fn zstd(&mut self) -> std::io::Result<&mut Unzstd> {
        Ok(match &mut self.zstd {
            Some(state) => state,
            empty => empty.insert(Unzstd::new()?),
        })
    }

    /// A deflater of this level.
    pub(super) fn deflate(&mut self, level: u32) -> &mut Deflater {
        self.deflate.take_if(|state| state.level() != level);
        self.deflate.get_or_insert_with(|| Deflater::new(level))
    }

    /// A compressor of this level.
    pub(super) fn compress(&mut self, level: i32) -> std::io::Result<&mut Zstd> {
        self.compress.take_if(|state| state.level() != level);
        Ok(match &mut self.compress {
            Some(state) => state,
            empty => empty.insert(Zstd::new(level)?),
        })
    }
}
