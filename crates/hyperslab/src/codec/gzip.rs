//! Deflate in a gzip envelope (RFC 1952): Zarr's `gzip`.

use super::backend::Envelope;
use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, configuration, stream};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::sync::Arc;

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "gzip",
    numcodecs: r#"{"id":"gzip","level":1}"#,
    v3: r#"{"name":"gzip","configuration":{"level":5}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

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
        stream::decode(NAME, flate2::read::MultiGzDecoder::new(input), out, max)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        stream::decode_into(NAME, flate2::read::MultiGzDecoder::new(input), out)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        let done = scratch.deflate(self.level).deflate(input, out, Envelope::Gzip);
        done.map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}")))
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        super::deflate::inflated_bound(encoded)
    }
}
