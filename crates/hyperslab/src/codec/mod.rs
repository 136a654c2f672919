//! Bytes to bytes. A codec knows no file and no selection.
//!
//! A [`FilterSpec`] is what a file says about one stage; a [`Registry`] turns it into a [`Codec`] bound to the element
//! type and the chunk; a [`Pipeline`] is the stages of one array in the order in which they encode.

mod backend;
mod base64;
mod bits;
mod bitshuffle;
mod blosc;
mod byte_order;
mod bzip2;
mod checksum;
mod configuration;
mod deflate;
mod elementwise;
mod fletcher32;
mod gzip;
mod lookup3;
mod lz;
mod lz4;
mod lzf;
mod lzma;
mod nbit;
mod packbits;
mod pcodec;
mod pipeline;
mod quantize;
mod registry;
mod scaleoffset;
mod scratch;
mod shuffle;
mod spelling;
mod stream;
mod szip;
#[cfg(test)]
mod tests;
mod transpose;
mod vlen;
mod zfp;
mod zstandard;

pub(crate) use byte_order::missing as byte_order_missing;
pub use lookup3::lookup3;
pub use pipeline::Pipeline;
pub use registry::{Bind, BindJson, Registry, filter_name};
pub use scratch::Scratch;
pub use spelling::{Hdf5, SPELLINGS, Spelling};
pub use vlen::{Vlen, json_is_of_texts};

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
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
    /// A Zarr codec: the name of Zarr 3 or the id of Zarr 2, and the configuration, an object.
    Zarr {
        /// Name or id.
        name: String,
        /// Its other members.
        configuration: Json,
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

    /// What `decoded` bytes encode to, for codecs that always give the same length; it tells the pipeline how long the
    /// output of the stage behind this one is.
    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        let _ = decoded;
        None
    }

    /// The type of the elements that it encodes to, for codecs that change it.
    fn encoded_dtype(&self) -> Option<DType> {
        None
    }

    /// The extents of the chunk that it encodes to, for codecs that change them.
    fn encoded_shape(&self) -> Option<Vec<u64>> {
        None
    }

    /// Whether a chunk that decodes to fewer bytes than its shape has may be taken: elements beyond are not there.
    fn may_be_short(&self) -> bool {
        false
    }

    /// For codecs whose decoded bytes are a part of the encoded ones (checksums): that part, without a copy.
    fn view<'a>(&self, input: &'a [u8]) -> Option<Result<&'a [u8]>> {
        let _ = input;
        None
    }
}

/// The error for a stage that gives another length than its chunk has.
pub fn wrong_length(codec: &str, got: usize, wanted: usize) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{codec} decodes to {got} bytes where {wanted} are wanted"))
}

/// The error for input that `codec` cannot have written.
#[cold]
fn corrupt(codec: &str, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{codec}: {what}"))
}

/// Fails if `wanted` bytes are more than `max`; called before anything of that size is allocated.
fn check_max(codec: &str, wanted: u64, max: usize) -> Result<usize> {
    match usize::try_from(wanted) {
        Ok(n) if n <= max => Ok(n),
        _ => Err(corrupt(codec, format_args!("{wanted} decoded bytes, at most {max} are possible"))),
    }
}

/// Makes `out` exactly `len` bytes long; what it holds then is not defined, and the caller overwrites all of it.
fn set_len(out: &mut Vec<u8>, len: usize) {
    if out.len() > len {
        out.truncate(len);
    } else {
        out.resize(len, 0);
    }
}
