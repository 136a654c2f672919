//! Zarr's `lzma`: streams of xz, of the LZMA tool before it, and without a header.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, configuration, stream};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, wrong_member};
use lzma_rust2::filter::delta::DeltaReader;
use lzma_rust2::{Lzma2Reader, LzmaReader, XzOptions, XzReader, XzWriter};
use std::io::{Read, Write};
use std::sync::Arc;

/// `format` (1 xz, 2 LZMA alone, 3 raw), `preset`, and of raw streams `filters`.
pub(super) const SPELLING: Spelling = Spelling {
    id: "lzma",
    numcodecs: r#"{"id":"lzma","format":1,"check":-1,"preset":null,"filters":null}"#,
    v3: r#"{"name":"numcodecs.lzma","configuration":{"format":1,"check":-1,"preset":null,"filters":null}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

const NAME: &str = "lzma";

/// The most memory that a stream may ask for, in KiB: what the highest preset needs, and some more.
const MEMORY: u32 = 96 << 10;

/// Identities of filters, as Python's `lzma` has them.
const LZMA1: i128 = 0x4000_0000_0000_0001;
const LZMA2: i128 = 0x21;
const DELTA: i128 = 0x03;

/// What a stream is made of.
#[derive(Debug)]
enum Format {
    Xz,
    /// The LZMA tool's.
    Alone,
    /// No header: `filters` of the configuration tells.
    Raw {
        coder: Coder,
        delta: Option<usize>,
    },
}

/// The last filter of a raw stream.
#[derive(Debug)]
enum Coder {
    Lzma1 { dictionary: u32, lc: u32, lp: u32, pb: u32 },
    Lzma2 { dictionary: u32 },
}

fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let format = match configuration::integer(configuration, "format", 1, i64::MIN, i64::MAX)? {
        1 => Format::Xz,
        2 => Format::Alone,
        3 => raw(configuration)?,
        other => return Err(Error::unsupported(format_args!("lzma in format {other}"))),
    };
    // Levels above 9 are flags; the encoder does without.
    let preset = configuration::integer(configuration, "preset", 6, 0, u32::MAX.into())?;
    Ok(Arc::new(Lzma { format, preset: (preset & 0xf).min(9) as u32 }))
}

/// A raw stream: differences perhaps, and LZMA of either kind. Filters for machine code are refused by name.
fn raw(configuration: &Json) -> Result<Format> {
    let filters = configuration.get("filters").and_then(Json::as_list).unwrap_or(&[]);
    let Some((last, before)) = filters.split_last() else {
        return Err(wrong_member("filters", "missing for a raw stream of lzma"));
    };
    let id = |filter: &Json| filter.get("id").and_then(Json::as_integer);
    let refused = |filter: &Json| Error::unsupported(format_args!("lzma with the filter {filter}"));
    let number = |name: &str, default: i64, most: i64| {
        configuration::integer(last, name, default, 0, most).map(|v| v as u32)
    };
    // The dictionaries of liblzma's presets.
    let preset = (number("preset", 6, u32::MAX.into())? & 0xf).min(9) as usize;
    let bits = [18, 20, 21, 22, 22, 23, 23, 24, 25, 26];
    let dictionary = 1u32 << bits.get(preset).copied().unwrap_or(23);
    let dictionary = number("dict_size", dictionary.into(), u32::MAX.into())?;
    let coder = match id(last) {
        Some(LZMA2) => Coder::Lzma2 { dictionary },
        Some(LZMA1) => {
            let (lc, lp, pb) = (number("lc", 3, 4)?, number("lp", 0, 4)?, number("pb", 2, 4)?);
            Coder::Lzma1 { dictionary, lc, lp, pb }
        }
        _ => return Err(refused(last)),
    };
    let delta = match before {
        [] => None,
        [filter] if id(filter) == Some(DELTA) => {
            Some(configuration::integer(filter, "dist", 1, 1, 256)? as usize)
        }
        [filter, ..] => return Err(refused(filter)),
    };
    Ok(Format::Raw { coder, delta })
}

#[derive(Debug)]
struct Lzma {
    format: Format,
    preset: u32,
}

impl Lzma {
    fn reader<'a>(&self, input: &'a [u8]) -> Result<Box<dyn Read + 'a>> {
        let corrupt = |e| super::corrupt(NAME, e);
        Ok(match &self.format {
            Format::Xz => Box::new(XzReader::new_mem_limit(input, true, MEMORY)),
            Format::Alone => Box::new(LzmaReader::new_mem_limit(input, MEMORY, None).map_err(corrupt)?),
            Format::Raw { coder, delta } => {
                // No more than what is possible, whatever the document says.
                let size = |dictionary: u32| {
                    let most = u64::from(MEMORY) << 9;
                    u32::try_from(u64::from(dictionary).min(most)).unwrap_or(u32::MAX)
                };
                let coder: Box<dyn Read + 'a> = match *coder {
                    Coder::Lzma2 { dictionary } => Box::new(
                        Lzma2Reader::new_mem_limit(input, size(dictionary), MEMORY, None).map_err(corrupt)?,
                    ),
                    // Its end is marked.
                    Coder::Lzma1 { dictionary, lc, lp, pb } => Box::new(
                        LzmaReader::new(input, u64::MAX, lc, lp, pb, size(dictionary), None)
                            .map_err(corrupt)?,
                    ),
                };
                match delta {
                    Some(distance) => Box::new(DeltaReader::new(coder, *distance)),
                    None => coder,
                }
            }
        })
    }
}

impl Codec for Lzma {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        stream::decode(NAME, self.reader(input)?, out, max)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        stream::decode_into(NAME, self.reader(input)?, out)
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        match self.format {
            Format::Xz => {}
            Format::Alone => return Err(Error::unsupported("writing lzma in format 2")),
            Format::Raw { .. } => return Err(Error::unsupported("writing lzma in format 3")),
        }
        let failed = |e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}"));
        out.clear();
        let mut writer = XzWriter::new(&mut *out, XzOptions::with_preset(self.preset)).map_err(failed)?;
        writer.write_all(input).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // A match of 273 bytes takes a dozen decisions, of which each costs a fiftieth of a bit at least.
        encoded.saturating_mul(1 << 14).saturating_add(1 << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn bind(configuration: &str) -> Result<Arc<dyn Codec>> {
        let dtype = DType::from_numpy("|u1").unwrap();
        let context = BindContext { dtype: &dtype, chunk: &[128], chunk_bytes: 128 };
        bind_json(&Json::parse(configuration.as_bytes()).unwrap(), &context)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    /// Streams of liblzma: twice the numbers from 0 to 63.
    #[test]
    fn raw_streams_are_read() {
        let wanted: Vec<u8> = (0..64).chain(0..64).collect();
        for (filters, stream) in [
            (
                r#"[{"id":33,"preset":6}]"#,
                "e0007f00435d00000052500a84f99bb28021a969d627e03e065a5f048d53d404ba39570509c15524de9db871593160a19ff96f4973f2c8ea8cba1a8b29692180fe33837b216df494000000",
            ),
            (
                r#"[{"id":3,"dist":4},{"id":33,"dict_size":65536}]"#,
                "e0007f00105d00000052500aa085c0c9418b38ddb0000000",
            ),
            (
                r#"[{"id":4611686018427387905,"dict_size":4096,"lc":0,"lp":2,"pb":0}]"#,
                "00000042444581950f4273c429d2fdf18ba8839eb0aa30750b1ef39366b417f900b49e789e98bc474382f928cfe37622c25a86fb9b7913476677a1a69ed85abc4a9c05129398fffffdba7000",
            ),
        ] {
            let codec = bind(&format!(r#"{{"format":3,"filters":{filters}}}"#)).unwrap();
            let (stream, mut scratch, mut out) = (bytes(stream), Scratch::default(), vec![0; 128]);
            codec.decode_into(&stream, &mut out, &mut scratch).unwrap();
            assert_eq!(out, wanted, "{filters}");
            for length in 0..stream.len() / 2 {
                assert!(
                    codec.decode_into(&stream[..length], &mut out, &mut scratch).is_err(),
                    "{filters} {length}"
                );
            }
        }
    }

    #[test]
    fn other_filters_are_refused_by_name() {
        for (configuration, kind) in [
            (r#"{"format":3}"#, ErrorKind::Corrupt),
            (r#"{"format":3,"filters":[{"id":4},{"id":33}]}"#, ErrorKind::Unsupported),
            (r#"{"format":3,"filters":[{"id":3}]}"#, ErrorKind::Unsupported),
            (r#"{"format":9}"#, ErrorKind::Unsupported),
        ] {
            assert_eq!(bind(configuration).unwrap_err().kind(), kind, "{configuration}");
        }
    }
}
