//! BitGroom and Granular BitRound: HDF5 filters 32022 and 32023, and Zarr's `bitround`.
//!
//! They round numbers before other filters compress them; what they leave are ordinary numbers, so that decoding gives
//! the bytes as they are.

use super::configuration::{self, Scalar, ScalarKind};
use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, wrong_length};
use crate::error::{Error, Result};
use crate::json::Json;
use std::sync::Arc;

/// HDF5's numbers of these filters.
pub(super) const HDF5_IDS: [u16; 2] = [32022, 32023];

pub(super) fn bind(_: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Quantize { rounding: None }))
}

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "bitround",
    numcodecs: r#"{"id":"bitround","keepbits":10}"#,
    v3: r#"{"name":"numcodecs.bitround","configuration":{"keepbits":10}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// Zarr's `bitround`: `keepbits` of each mantissa. Zarr's `quantize` is another codec.
pub(super) fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let keep = configuration::integer(configuration, "keepbits", -1, -1, 52)?;
    // Decoding needs neither.
    let scalar = Scalar::of(context.dtype).filter(|s| s.kind == ScalarKind::Float);
    Ok(Arc::new(Quantize { rounding: scalar.zip(u32::try_from(keep).ok()) }))
}

/// Rounds one float, given as its bits, to `keep` bits of its mantissa of `mantissa` bits, ties to even, as numcodecs
/// does: what is beyond the largest number becomes infinity. What is no number stays as it is.
fn round(bits: u64, mantissa: u32, exponent: u32, keep: u32) -> u64 {
    let exponents = ((1u64 << exponent) - 1) << mantissa;
    let drop = mantissa.saturating_sub(keep);
    if drop == 0 || bits & exponents == exponents {
        return bits;
    }
    let half = (1u64 << (drop - 1)) - 1;
    let up = bits.wrapping_add((bits >> drop & 1) + half);
    up >> drop << drop
}

#[derive(Debug)]
struct Quantize {
    /// Of numbers that this can round: what they are, and how many bits stay.
    rounding: Option<(Scalar, u32)>,
}

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

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        let Some((scalar, keep)) = &self.rounding else {
            return Err(Error::unsupported(
                "rounding with BitGroom while writing, or with bitround what is no float or without keepbits",
            ));
        };
        let (exponent, mantissa) = match scalar.size {
            2 => (5, 10),
            4 => (8, 23),
            _ => (11, 52),
        };
        if *keep > mantissa {
            return Err(Error::invalid(format!("bitround: {keep} bits of a mantissa of {mantissa}")));
        }
        out.clear();
        out.extend_from_slice(input);
        for raw in out.chunks_exact_mut(scalar.size) {
            let bits = round(scalar.bits(raw), mantissa, exponent, *keep);
            scalar.put_bits(bits, raw);
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What numcodecs makes of the same numbers.
    #[test]
    fn floats_are_rounded_as_numcodecs_rounds_them() {
        let single = |v: f32| f32::from_bits(round(u64::from(v.to_bits()), 23, 8, 3) as u32);
        for (v, wanted) in [
            (1.0, 1.0),
            (1.0625, 1.0),
            (1.1875, 1.25),
            (1.3, 1.25),
            (-2.7, -2.75),
            (f32::INFINITY, f32::INFINITY),
            (0.0, 0.0),
            (3.4e38, f32::INFINITY),
            (1e-40, 0.0),
        ] {
            assert_eq!(single(v), wanted, "{v}");
        }
        // Numcodecs makes a negative zero of this one.
        assert!(single(f32::from_bits(0x7fff_ffff)).is_nan());
        for (v, wanted) in [(15360, 15360), (15424, 15360), (15667, 15616), (49510, 49536)] {
            assert_eq!(round(v, 10, 5, 3), wanted);
        }
        assert_eq!(round(0.1f64.to_bits(), 52, 11, 3), 4591982770057641984);
        assert_eq!(round(0.1f64.to_bits(), 52, 11, 52), 0.1f64.to_bits());
    }
}
