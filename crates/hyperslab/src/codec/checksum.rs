//! Checksums of Zarr: `crc32`, `crc32c` and `adler32`, four little-endian bytes before or behind the data.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, wrong_member};
use std::sync::Arc;

/// In Zarr.
pub(super) const CRC32: Spelling = Spelling {
    id: "crc32",
    numcodecs: r#"{"id":"crc32","location":"start"}"#,
    v3: r#"{"name":"numcodecs.crc32","configuration":{"location":"start"}}"#,
    hdf5: None,
    json: Some(bind_crc32),
    encodes: true,
};

/// `location`, `start` or `end`, by default `start`.
pub(super) fn bind_crc32(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    bind("crc32", |data, _| crc32(data), configuration, true)
}

/// In Zarr.
pub(super) const ADLER32: Spelling = Spelling {
    id: "adler32",
    numcodecs: r#"{"id":"adler32","location":"start"}"#,
    v3: r#"{"name":"numcodecs.adler32","configuration":{"location":"start"}}"#,
    hdf5: None,
    json: Some(bind_adler32),
    encodes: true,
};

/// `location`, by default `start`.
pub(super) fn bind_adler32(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    bind("adler32", |data, _| adler32(data), configuration, true)
}

/// In Zarr.
pub(super) const CRC32C: Spelling = Spelling {
    id: "crc32c",
    numcodecs: r#"{"id":"crc32c","location":"start"}"#,
    v3: r#"{"name":"crc32c"}"#,
    hdf5: None,
    json: Some(bind_crc32c),
    encodes: true,
};

/// `location`, by default `end`, the only place that Zarr 3 has.
pub(super) fn bind_crc32c(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    bind("crc32c", |data, _| crc32c::crc32c(data), configuration, false)
}

/// In Zarr.
pub(super) const LOOKUP3: Spelling = Spelling {
    id: "jenkins_lookup3",
    numcodecs: r#"{"id":"jenkins_lookup3","initval":0,"prefix":null}"#,
    v3: r#"{"name":"numcodecs.jenkins_lookup3","configuration":{"initval":0}}"#,
    hdf5: None,
    json: Some(bind_lookup3),
    encodes: true,
};

/// `initval`, by default 0; behind the data. A `prefix`, which numcodecs itself cannot write into a document, is refused.
pub(super) fn bind_lookup3(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let name = "jenkins_lookup3";
    if configuration.get("prefix").is_some_and(|prefix| !prefix.is_null()) {
        return Err(Error::unsupported(format_args!("{name} with a prefix")));
    }
    let seed = super::configuration::integer(configuration, "initval", 0, 0, u32::MAX.into())?;
    Ok(Arc::new(Checksum { name, sum: super::lookup3, seed: seed as u32, start: false }))
}

fn bind(
    name: &'static str,
    sum: fn(&[u8], u32) -> u32,
    configuration: &Json,
    start: bool,
) -> Result<Arc<dyn Codec>> {
    let start = match super::configuration::text(configuration, "location")? {
        None => start,
        Some("start") => true,
        Some("end") => false,
        Some(other) => {
            return Err(wrong_member("location", format_args!("{other:?} is neither start nor end")));
        }
    };
    Ok(Arc::new(Checksum { name, sum, seed: 0, start }))
}

/// The CRC of gzip and zip.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}

/// The checksum of zlib.
fn adler32(data: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1u32, 0u32);
    // So many bytes cannot overflow 32 bits.
    for block in data.chunks(5552) {
        for &byte in block {
            a += u32::from(byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

/// Stored bytes of a checksum.
const SUM: usize = 4;

#[derive(Debug)]
struct Checksum {
    name: &'static str,
    sum: fn(&[u8], u32) -> u32,
    /// What the sum starts with.
    seed: u32,
    start: bool,
}

impl Checksum {
    fn verify<'a>(&self, input: &'a [u8]) -> Result<&'a [u8]> {
        let parts = if self.start {
            input.split_first_chunk::<SUM>().map(|(sum, data)| (data, sum))
        } else {
            input.split_last_chunk::<SUM>()
        };
        let (data, stored) = parts.ok_or_else(|| {
            corrupt(self.name, format_args!("{} bytes cannot hold the checksum", input.len()))
        })?;
        let (stored, computed) = (u32::from_le_bytes(*stored), (self.sum)(data, self.seed));
        if stored != computed {
            let name = self.name;
            return Err(Error::new(
                ErrorKind::Checksum,
                format!("{name}: checksum mismatch: stored {stored:#010x}, computed {computed:#010x}"),
            ));
        }
        Ok(data)
    }
}

impl Codec for Checksum {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let data = self.verify(input)?;
        check_max(self.name, data.len() as u64, max)?;
        out.clear();
        out.extend_from_slice(data);
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        let sum = (self.sum)(input, self.seed).to_le_bytes();
        out.clear();
        out.reserve(input.len() + SUM);
        if self.start {
            out.extend_from_slice(&sum);
        }
        out.extend_from_slice(input);
        if !self.start {
            out.extend_from_slice(&sum);
        }
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded.saturating_sub(SUM as u64)
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        decoded.checked_add(SUM as u64)
    }

    fn view<'a>(&self, input: &'a [u8]) -> Option<Result<&'a [u8]>> {
        (!self.start).then(|| self.verify(input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the algorithms' definitions.
    #[test]
    fn known_sums() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        // Of numcodecs.
        let data: Vec<u8> = (0..24).collect();
        assert_eq!(super::super::lookup3(&data, 0).to_le_bytes(), [0x53, 0xdd, 0x0a, 0x9c]);
        assert_eq!(super::super::lookup3(&data, 7).to_le_bytes(), [0x66, 0x7c, 0xc1, 0x6b]);
    }
}
