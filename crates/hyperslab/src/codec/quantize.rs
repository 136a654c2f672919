//! BitGroom and Granular BitRound: HDF5 filters 32022 and 32023.
//!
//! They round numbers before other filters compress them; what they leave are ordinary numbers, so that decoding gives
//! the bytes as they are.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, wrong_length};
use crate::error::{Error, Result};
use crate::json::Json;
use std::sync::Arc;

/// HDF5's numbers of these filters.
pub(super) const HDF5_IDS: [u16; 2] = [32022, 32023];

pub(super) fn bind(_: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Quantize))
}

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "bitround",
    numcodecs: r#"{"id":"bitround","keepbits":10}"#,
    v3: r#"{"name":"numcodecs.bitround","configuration":{"keepbits":10}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: false,
};

/// Zarr's `bitround`: `keepbits` of each mantissa. Zarr's `quantize` is another codec.
pub(super) fn bind_json(_: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Quantize))
}

#[derive(Debug)]
struct Quantize;

const NAME: &str = "quantize";

impl Codec for Quantize {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        check_max(NAME, input.len() as u64, max)?;
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        if input.len() != out.len() {
            return Err(wrong_length(NAME, input.len(), out.len()));
        }
        out.copy_from_slice(input);
        Ok(())
    }

    fn encode(&self, _: &[u8], _: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        Err(Error::unsupported("rounding numbers with BitGroom or BitRound while writing"))
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        Some(decoded)
    }

    fn view<'a>(&self, input: &'a [u8]) -> Option<Result<&'a [u8]>> {
        Some(Ok(input))
    }
}
