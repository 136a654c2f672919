//! bzip2 streams: HDF5 filter 307.

use super::spelling::{Hdf5, Spelling, json_to_level, level_to_json};
use super::{BindContext, Codec, Scratch, configuration, stream};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use bzip2::Compression;
use bzip2::read::{BzDecoder, BzEncoder};
use std::io::Read;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 307;

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "bz2",
    numcodecs: r#"{"id":"bz2","level":1}"#,
    v3: r#"{"name":"numcodecs.bz2","configuration":{"level":1}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json: level_to_json, to_parameters: json_to_level }),
    json: Some(bind_json),
    encodes: true,
};

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
        stream::decode(NAME, BzDecoder::new(input), out, max)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        stream::decode_into(NAME, BzDecoder::new(input), out)
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
