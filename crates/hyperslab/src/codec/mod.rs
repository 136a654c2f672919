//! Bytes to bytes. A codec knows no file and no selection.
//!
//! A [`FilterSpec`] is what a file says about one stage; a [`Registry`] turns it into a [`Codec`] bound to the element
//! type and the chunk; a [`Pipeline`] is the stages of one array in the order in which they encode.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Name;
use std::fmt;

/// One stage as the file spells it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FilterSpec {
    /// An HDF5 filter: registered number, flags (bit 0: may be skipped if encoding fails), name if stored, parameters.
    Hdf5 {
        /// Registered number.
        id: u16,
        /// Flags as stored.
        flags: u16,
        /// Name as stored, often empty.
        name: Name,
        /// Client data.
        parameters: Vec<u32>,
    },
}

/// What a codec may know when it is bound.
#[derive(Clone, Debug)]
pub struct BindContext<'a> {
    /// Element type as stored.
    pub dtype: &'a DType,
    /// Chunk extents in elements.
    pub chunk: &'a [u64],
    /// Bytes of a whole decoded chunk.
    pub chunk_bytes: u64,
}

/// Buffers that a worker keeps from chunk to chunk, so that steady decoding allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    spare: Vec<Vec<u8>>,
}

impl Scratch {
    /// An empty buffer, with the capacity of an earlier one where there is one.
    pub fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < 8 {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// One prepared stage: bound once to its parameters, element type and chunk shape, then called for every chunk.
///
/// Contract: `decode` never writes more than `max` bytes and never allocates more than it can show to need; input that
/// is not what `encode` could have made is [`ErrorKind::Corrupt`] or [`ErrorKind::Checksum`], never a panic. Codecs do
/// not spawn threads.
pub trait Codec: Send + Sync + fmt::Debug {
    /// Short lowercase name, such as `deflate`.
    fn name(&self) -> &'static str;

    /// Decodes `input` into `out`, which comes empty; at most `max` bytes.
    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()>;

    /// Decodes `input` into exactly `out`; more or fewer bytes are an error.
    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let mut buffer = scratch.take();
        let done = self.decode(input, &mut buffer, out.len(), scratch).and_then(|()| {
            if buffer.len() != out.len() {
                return Err(wrong_length(self.name(), buffer.len(), out.len()));
            }
            out.copy_from_slice(&buffer);
            Ok(())
        });
        scratch.give(buffer);
        done
    }

    /// Encodes `input`, a whole chunk or the output of the stage before, into `out`, which comes empty.
    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()>;

    /// The most bytes that `encoded` bytes can decode to; what bounds an allocation before decoding.
    fn decoded_bound(&self, encoded: u64) -> u64;
}

/// The error for a stage that gives another length than its chunk has.
pub fn wrong_length(codec: &str, got: usize, wanted: usize) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{codec} decodes to {got} bytes where {wanted} are wanted"))
}
