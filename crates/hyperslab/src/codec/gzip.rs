//! Deflate in a gzip envelope (RFC 1952): Zarr's `gzip`.

use super::{BindContext, Codec, Scratch, configuration, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use flate2::Compression;
use std::io::{Read, Write};
use std::sync::Arc;

/// `level`.
pub(super) fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = configuration::integer(configuration, "level", 6, -1, 9)?;
    Ok(Arc::new(Gzip { level: u32::try_from(level).unwrap_or(6) }))
}

#[derive(Debug)]
struct Gzip {
    level: u32,
}

const NAME: &str = "gzip";

impl Codec for Gzip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        out.clear();
        let mut limited = flate2::read::MultiGzDecoder::new(input).take((max as u64).saturating_add(1));
        limited.read_to_end(out).map_err(|e| corrupt(NAME, e))?;
        if out.len() > max {
            return Err(corrupt(NAME, format_args!("the stream holds more than the {max} bytes possible")));
        }
        Ok(())
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        let mut decoder = flate2::read::MultiGzDecoder::new(input);
        let mut at = 0;
        while let Some(rest) = out.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match decoder.read(rest).map_err(|e| corrupt(NAME, e))? {
                0 => return Err(super::wrong_length(NAME, at, out.len())),
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
        let failed = |e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}"));
        let mut encoder = flate2::write::GzEncoder::new(out, Compression::new(self.level));
        encoder.write_all(input).map_err(failed)?;
        encoder.finish().map(|_| ()).map_err(failed)
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        super::deflate::inflated_bound(encoded)
    }
}
