//! Fletcher's checksum behind the data: HDF5 filter 3.

use super::spelling::{Hdf5, Spelling};
use super::{BindContext, Codec, Scratch, check_max, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 3;

/// HDF5: no parameters.
pub(super) fn bind(_: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Fletcher32))
}

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "fletcher32",
    numcodecs: r#"{"id":"fletcher32"}"#,
    v3: r#"{"name":"numcodecs.fletcher32"}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json: |_| Vec::new(), to_parameters: |_, _| Ok(Vec::new()) }),
    json: Some(bind_json),
    encodes: true,
};

/// Zarr's `fletcher32`: no configuration.
pub(super) fn bind_json(_: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Fletcher32))
}

#[derive(Debug)]
struct Fletcher32;

const NAME: &str = "fletcher32";

/// Stored bytes of the checksum.
const SUM: usize = 4;

impl Codec for Fletcher32 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let data = verify(input)?;
        check_max(NAME, data.len() as u64, max)?;
        out.clear();
        out.extend_from_slice(data);
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        out.clear();
        out.reserve(input.len() + SUM);
        out.extend_from_slice(input);
        out.extend_from_slice(&checksum(input).to_le_bytes());
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded.saturating_sub(SUM as u64)
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        decoded.checked_add(SUM as u64)
    }

    fn view<'a>(&self, input: &'a [u8]) -> Option<Result<&'a [u8]>> {
        Some(verify(input))
    }
}

/// The data before the checksum, if it matches.
///
/// Libraries before 1.6.3 swapped the bytes of both halves of the sum on little-endian machines; such sums are good too.
fn verify(input: &[u8]) -> Result<&[u8]> {
    let Some((data, stored)) = input.split_last_chunk::<SUM>() else {
        return Err(corrupt(NAME, format_args!("{} bytes cannot hold the checksum", input.len())));
    };
    let stored = u32::from_le_bytes(*stored);
    let computed = checksum(data);
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if stored != computed && stored != swapped {
        return Err(Error::new(
            ErrorKind::Checksum,
            format!("{NAME}: checksum mismatch: stored {stored:#010x}, computed {computed:#010x}"),
        ));
    }
    Ok(data)
}

/// Fletcher's sum of 16-bit big-endian words; an odd byte at the end is the high half of a word.
fn checksum(data: &[u8]) -> u32 {
    // Folded to 16 bits and never to zero but for all zeros: end-around carry, as the C library does it.
    let fold = |sum: u64| if sum == 0 { 0 } else { ((sum - 1) % 0xffff + 1) as u32 };
    let (mut first, mut second) = (0u64, 0u64);
    // Within 2^16 words the second sum stays below 2^49.
    for block in data.chunks(1 << 17) {
        let words = block.chunks_exact(2);
        let rest = words.remainder();
        for word in words {
            first += u64::from(word[0]) << 8 | u64::from(word[1]);
            second += first;
        }
        if let [byte] = rest {
            first += u64::from(*byte) << 8;
            second += first;
        }
        first = fold(first).into();
        second = fold(second).into();
    }
    fold(second) << 16 | fold(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums as published for the algorithm on big-endian words.
    #[test]
    fn known_sums() {
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(&[0; 9]), 0);
        assert_eq!(checksum(&[0xff, 0xff]), 0xffff_ffff);
        assert_eq!(checksum(b"ab"), 0x6162_6162);
        assert_eq!(checksum(b"a"), 0x6100_6100);
        assert_eq!(checksum(b"abcd"), 0x2629_c4c6);
    }

    #[test]
    fn both_byte_orders_are_good() {
        let mut encoded = b"some data".to_vec();
        let sum = checksum(&encoded).to_le_bytes();
        encoded.extend_from_slice(&[sum[1], sum[0], sum[3], sum[2]]);
        assert_eq!(verify(&encoded).unwrap(), b"some data");
        encoded[3] ^= 1;
        assert_eq!(verify(&encoded).unwrap_err().kind(), ErrorKind::Checksum);
        assert_eq!(verify(b"abc").unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
