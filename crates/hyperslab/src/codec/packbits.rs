//! Numcodecs' `packbits`: eight truth values in a byte, the first in the highest bit, and in front the number of unused
//! bits at the end.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len};
use crate::dtype::{ByteOrder, DType, IntegerType};
use crate::error::Result;
use crate::json::Json;
use std::sync::Arc;

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "packbits",
    numcodecs: r#"{"id":"packbits"}"#,
    v3: r#"{"name":"numcodecs.packbits"}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// No configuration.
pub(super) fn bind_json(_: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(PackBits))
}

#[derive(Debug)]
struct PackBits;

const NAME: &str = "packbits";

impl Codec for PackBits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let Some((&unused, packed)) = input.split_first() else {
            return Err(corrupt(NAME, "no byte says how many bits are unused"));
        };
        let bits = (packed.len() as u64 * 8).checked_sub(u64::from(unused)).filter(|_| unused < 8);
        let bits = bits.ok_or_else(|| corrupt(NAME, format_args!("{unused} unused bits")))?;
        set_len(out, check_max(NAME, bits, max)?);
        for (byte, values) in packed.iter().zip(out.chunks_mut(8)) {
            for (i, value) in values.iter_mut().enumerate() {
                *value = byte >> (7 - i) & 1;
            }
        }
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        out.clear();
        // Below eight.
        out.push((input.len().next_multiple_of(8) - input.len()) as u8);
        out.extend(input.chunks(8).map(|values| {
            values.iter().enumerate().fold(0, |byte, (i, &v)| byte | u8::from(v != 0) << (7 - i))
        }));
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded.saturating_sub(1).saturating_mul(8)
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        Some(decoded.div_ceil(8) + 1)
    }

    fn encoded_dtype(&self) -> Option<DType> {
        Some(DType::Integer(IntegerType::new(1, ByteOrder::Little, false)))
    }
}
