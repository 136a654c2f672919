//! LZ4 blocks in HDF5's framing: HDF5 filter 32004.
//!
//! Decoded length (8 bytes) and block length (4 bytes), then every block with its encoded length (4 bytes) in front, all
//! big-endian. A block whose encoded length is its decoded one is stored as it is.

use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 32004;

/// HDF5: one parameter, bytes of a block; none or 0 means 1 GiB.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    let block = match parameters.first() {
        Some(&block) if block > 0 => (block as usize).min(MAX_BLOCK),
        _ => 1 << 30,
    };
    Ok(Arc::new(Lz4 { block }))
}

/// Zarr's.
pub(super) const SPELLING: Spelling = Spelling {
    id: "lz4",
    numcodecs: r#"{"id":"lz4","acceleration":1}"#,
    v3: r#"{"name":"numcodecs.lz4","configuration":{"acceleration":1}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// HDF5's, under a name of its own since its framing is another.
pub(super) const HDF5_LZ4: Spelling = Spelling {
    id: "hdf5lz4",
    numcodecs: r#"{"id":"hdf5lz4","parameters":[1073741824]}"#,
    v3: r#"{"name":"hdf5lz4","configuration":{"parameters":[1073741824]}}"#,
    hdf5: Some(Hdf5 {
        number: HDF5_ID,
        bind,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind(&json_to_parameters(configuration, context)?, context)),
    encodes: true,
};

/// Zarr's `lz4`, in numcodecs' framing: the decoded length (4 bytes, little-endian), then one block. `acceleration` is of
/// the encoder only.
pub(super) fn bind_json(_: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Numcodecs))
}

/// One block behind its decoded length.
#[derive(Debug)]
struct Numcodecs;

impl Codec for Numcodecs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = input.first_chunk().map_or(0, |len| u64::from(u32::from_le_bytes(*len)));
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, check_max(NAME, len, usize::try_from(bound).unwrap_or(max))?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        let Some((len, block)) = input.split_first_chunk::<4>() else {
            return Err(corrupt(NAME, "the decoded length is missing"));
        };
        let len = u32::from_le_bytes(*len) as usize;
        if len != out.len() {
            return Err(wrong_length(NAME, len, out.len()));
        }
        decompress_into(NAME, block, out)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        let len = u32::try_from(input.len())
            .map_err(|_| Error::new(ErrorKind::InvalidArgument, "lz4: chunks of 4 GiB and more"))?;
        let mut block = scratch.take();
        let done = compress(input, &mut block);
        out.clear();
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&block);
        scratch.give(block);
        done
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        decompressed_bound(encoded)
    }
}

/// LZ4's own limit of one block.
const MAX_BLOCK: usize = 0x7e00_0000;

#[derive(Debug)]
struct Lz4 {
    /// Bytes of a block when encoding.
    block: usize,
}

const NAME: &str = "lz4";

impl Codec for Lz4 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let (len, ..) = header(NAME, input)?;
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        let len = check_max(NAME, len, usize::try_from(bound).unwrap_or(max))?;
        set_len(out, len);
        decode(input, out)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        decode(input, out)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        let block = self.block.min(input.len()).max(1);
        out.clear();
        out.extend_from_slice(&(input.len() as u64).to_be_bytes());
        out.extend_from_slice(&(block as u32).to_be_bytes());
        let mut buffer = scratch.take();
        for part in input.chunks(block) {
            compress(part, &mut buffer)?;
            let stored = if buffer.len() < part.len() { buffer.as_slice() } else { part };
            out.extend_from_slice(&(stored.len() as u32).to_be_bytes());
            out.extend_from_slice(stored);
        }
        scratch.give(buffer);
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        decompressed_bound(encoded)
    }
}

/// The most bytes that LZ4 blocks of `encoded` bytes can hold: every byte of a match length adds 255.
pub(super) fn decompressed_bound(encoded: u64) -> u64 {
    encoded.saturating_mul(255)
}

/// Decompresses one LZ4 block into exactly `out`.
pub(super) fn decompress_into(codec: &str, input: &[u8], out: &mut [u8]) -> Result<()> {
    match lz4_flex::block::decompress_into(input, out) {
        Ok(n) if n == out.len() => Ok(()),
        Ok(n) => Err(wrong_length(codec, n, out.len())),
        Err(e) => Err(corrupt(codec, e)),
    }
}

/// Compresses into one LZ4 block.
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    set_len(out, lz4_flex::block::get_maximum_output_size(input.len()));
    let len = lz4_flex::block::compress_into(input, out)
        .map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}")))?;
    out.truncate(len);
    Ok(())
}

/// What HDF5's filters of LZ4 and bitshuffle start with: decoded length, bytes of a block, and what follows.
pub(super) fn header<'a>(codec: &str, input: &'a [u8]) -> Result<(u64, usize, &'a [u8])> {
    let parts = input.split_first_chunk::<8>().and_then(|(len, rest)| {
        let (block, rest) = rest.split_first_chunk::<4>()?;
        Some((u64::from_be_bytes(*len), u32::from_be_bytes(*block) as usize, rest))
    });
    parts.ok_or_else(|| corrupt(codec, "the header is cut short"))
}

fn decode(input: &[u8], out: &mut [u8]) -> Result<()> {
    let (len, block, mut rest) = header(NAME, input)?;
    if len != out.len() as u64 {
        return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
    }
    if block == 0 && !out.is_empty() {
        return Err(corrupt(NAME, "blocks of zero bytes"));
    }
    for target in out.chunks_mut(block.max(1)) {
        let part = rest
            .split_first_chunk::<4>()
            .and_then(|(stored, after)| after.split_at_checked(u32::from_be_bytes(*stored) as usize));
        let Some((encoded, after)) = part else {
            return Err(corrupt(NAME, "a block is cut short"));
        };
        if encoded.len() == target.len() {
            target.copy_from_slice(encoded);
        } else {
            decompress_into(NAME, encoded, target)?;
        }
        rest = after;
    }
    Ok(())
}
