//! ZFP: blocks of 4 values along each axis, transformed, and stored bit plane by bit plane. HDF5 filter 32013, decoding.
//!
//! The parameters hold the header that starts a ZFP stream of its own; the chunk is the stream without it.

mod decode;
mod order;

use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len};
use crate::error::{Error, Result};
use crate::shape::to_usize;
use decode::{BitReader, Mode};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 32013;

/// HDF5's, under a name of its own since `zfpy` frames its streams in another way.
pub(super) const SPELLING: Spelling = Spelling {
    id: "hdf5zfp",
    numcodecs: r#"{"id":"hdf5zfp","parameters":[5247504,91252346,403444880,111,0]}"#,
    v3: "",
    hdf5: Some(Hdf5 {
        number: HDF5_ID,
        bind,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind(&json_to_parameters(configuration, context)?, context)),
    encodes: false,
};

/// HDF5: version of the filter, then the words of the header: magic, type and extents (52 bits), mode (12 or 64 bits).
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    let bytes: Vec<u8> = parameters.iter().skip(1).flat_map(|word| word.to_le_bytes()).collect();
    let Some((magic, header)) = bytes.split_first_chunk::<4>() else {
        return Err(corrupt(NAME, "no header in the parameters"));
    };
    match magic {
        b"zfp\x05" => {}
        [b'z', b'f', b'p', version] => {
            return Err(Error::unsupported(format_args!("ZFP streams of codec version {version}")));
        }
        _ => return Err(corrupt(NAME, "no ZFP header in the parameters")),
    }
    Ok(Arc::new(Zfp::parse(header).ok_or_else(|| corrupt(NAME, "the header is damaged"))?))
}

const NAME: &str = "zfp";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar {
    I32,
    I64,
    F32,
    F64,
}

#[derive(Debug)]
struct Zfp {
    scalar: Scalar,
    rank: usize,
    /// Extents, fastest first; 1 beyond the rank.
    extents: [usize; 4],
    mode: Mode,
}

impl Zfp {
    fn parse(header: &[u8]) -> Option<Zfp> {
        let mut bits = BitReader::new(header);
        let scalar = match bits.read(2)? {
            0 => Scalar::I32,
            1 => Scalar::I64,
            2 => Scalar::F32,
            _ => Scalar::F64,
        };
        let rank = bits.read(2)? as usize + 1;
        // All extents share 48 bits.
        let each = 48 / rank as u32;
        let mut extents = [1; 4];
        for extent in extents.iter_mut().take(rank) {
            *extent = to_usize(bits.read(each)? + 1).ok()?;
        }
        Some(Zfp { scalar, rank, extents, mode: Mode::parse(&mut bits)? })
    }

    fn decoded_len(&self) -> u64 {
        let size: u64 = if matches!(self.scalar, Scalar::I32 | Scalar::F32) { 4 } else { 8 };
        self.extents.iter().fold(size, |n, &extent| n.saturating_mul(extent as u64))
    }
}

impl Codec for Zfp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, check_max(NAME, self.decoded_len(), usize::try_from(bound).unwrap_or(max))?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        if self.decoded_len() != out.len() as u64 {
            let len = self.decoded_len();
            return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
        }
        let done = match self.scalar {
            Scalar::I32 => decode::decode::<i32>(self.rank, self.extents, &self.mode, input, out),
            Scalar::I64 => decode::decode::<i64>(self.rank, self.extents, &self.mode, input, out),
            Scalar::F32 => decode::decode::<f32>(self.rank, self.extents, &self.mode, input, out),
            Scalar::F64 => decode::decode::<f64>(self.rank, self.extents, &self.mode, input, out),
        };
        done.ok_or_else(|| corrupt(NAME, "the stream is cut short"))
    }

    fn encode(&self, _: &[u8], _: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        Err(Error::unsupported("writing ZFP streams (filter 32013)"))
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // A block of zeros takes one bit.
        encoded.saturating_mul(8 * 256 * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::{pipeline, spec};
    use crate::error::ErrorKind;

    /// 21 floats at a rate of 10 bits.
    const PARAMETERS: [u32; 4] = [0x1010_2011, 0x0570_667a, 322, 39 << 20];

    #[test]
    fn damaged_parameters_and_streams_are_errors() {
        let mut scratch = Scratch::default();
        let mut check = |parameters: &[u32], input: &[u8]| {
            let p = pipeline(&[spec(HDF5_ID, parameters)], 84);
            p.decode(input, 0, &mut Vec::new(), &mut scratch).map_err(|e| e.kind())
        };
        assert_eq!(check(&PARAMETERS, &[0; 32]), Ok(()));
        assert_eq!(check(&PARAMETERS, &[0xff; 32]), Ok(()));
        assert_eq!(check(&PARAMETERS, &[0; 16]), Err(ErrorKind::Corrupt));
        for len in 0..4 {
            assert_eq!(check(&PARAMETERS[..len], &[0; 32]), Err(ErrorKind::Corrupt));
        }
        assert_eq!(check(&[0, 0x0470_667a, 322, 39 << 20], &[0; 32]), Err(ErrorKind::Unsupported));
        assert_eq!(check(&[0, 0x0570_667a, u32::MAX, 39 << 20], &[0; 32]), Err(ErrorKind::Corrupt));
    }
}
