//! Numcodecs' `base64`: bytes as text (RFC 4648, section 4).

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, corrupt};
use crate::error::Result;
use crate::json::{self, Json};
use std::sync::Arc;

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "base64",
    numcodecs: r#"{"id":"base64"}"#,
    v3: "",
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// No configuration.
pub(super) fn bind_json(_: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Base64))
}

#[derive(Debug)]
struct Base64;

const NAME: &str = "base64";

impl Codec for Base64 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let text = std::str::from_utf8(input).ok();
        let decoded = text.and_then(json::base64).ok_or_else(|| corrupt(NAME, "no text in base 64"))?;
        check_max(NAME, decoded.len() as u64, max)?;
        *out = decoded;
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        out.clear();
        for three in input.chunks(3) {
            let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
            for digit in 0..4 {
                // Six bits, an index within the digits.
                let value = (bits >> (18 - 6 * digit) & 63) as usize;
                let digit = if digit <= three.len() { DIGITS.get(value).copied() } else { None };
                out.push(digit.unwrap_or(b'='));
            }
        }
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded / 4 * 3
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        decoded.div_ceil(3).checked_mul(4)
    }
}
