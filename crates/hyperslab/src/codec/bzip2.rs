//! bzip2 streams: HDF5 filter 307.

use super::{BindContext, Codec, Scratch, configuration, corrupt, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use bzip2::Compression;
use bzip2::read::{BzDecoder, BzEncoder};
use std::io::Read;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 307;

/// HDF5: one parameter, the block size in units of 100 kB.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Bzip2 { level: parameters.first().copied().unwrap_or(9).clamp(1, 9) }))
}

/// Zarr's `bz2`: `level`.
pub(super) fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = configuration::integer(configuration, "level", 1, 1, 9)?;
    Ok(Arc::new(Bzip2 { level: level as u32 }))
}

#[derive(Debug)]
struct Bzip2 {
    level: u32,
}

const NAME: &str = "bzip2";

impl Codec for Bzip2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        out.clear();
        let mut limited = BzDecoder::new(input).take((max as u64).saturating_add(1));
        limited.read_to_end(out).map_err(|e| corrupt(NAME, e))?;
        if out.len() > max {
            return Err(corrupt(NAME, format_args!("the stream holds more than the {max} bytes possible")));
        }
        Ok(())
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        let mut decoder = BzDecoder::new(input);
        let mut at = 0;
        while let Some(rest) = out.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match decoder.read(rest).map_err(|e| corrupt(NAME, e))? {
                0 => return Err(wrong_length(NAME, at, out.len())),
                n => at += n,
            }
        }
        // The end of the stream, with its checksum, comes after the last byte.
        match decoder.read(&mut [0]).map_err(|e| corrupt(NAME, e))? {
            0 => Ok(()),
            _ => {
                Err(corrupt(NAME, format_args!("the stream holds more than the {} bytes wanted", out.len())))
            }
        }
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        out.clear();
        BzEncoder::new(input, Compression::new(self.level))
            .read_to_end(out)
            .map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}")))?;
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // A block holds 900,000 bytes after runs of up to 259 were cut to five, and takes more than twenty bytes.
        (encoded / 20).saturating_add(1).saturating_mul(900_000 / 5 * 259)
    }
}
