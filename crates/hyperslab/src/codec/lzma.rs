//! Zarr's `lzma`: streams of xz and of the LZMA tool before it.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, configuration, stream};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use lzma_rust2::{LzmaReader, XzOptions, XzReader, XzWriter};
use std::io::{Read, Write};
use std::sync::Arc;

/// `format` (1 xz, 2 LZMA alone) and `preset`. Raw streams and filters before them are not read.
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

fn bind_json(configuration: &Json, _: &BindContext) -> Result<Arc<dyn Codec>> {
    let alone = match configuration::integer(configuration, "format", 1, i64::MIN, i64::MAX)? {
        1 => false,
        2 => true,
        other => return Err(Error::unsupported(format_args!("lzma in format {other}"))),
    };
    // Levels above 9 are flags; the encoder does without.
    let preset = configuration::integer(configuration, "preset", 6, 0, u32::MAX.into())?;
    Ok(Arc::new(Lzma { alone, preset: (preset & 0xf).min(9) as u32 }))
}

#[derive(Debug)]
struct Lzma {
    alone: bool,
    preset: u32,
}

impl Lzma {
    fn reader<'a>(&self, input: &'a [u8]) -> Result<Box<dyn Read + 'a>> {
        if self.alone {
            let reader = LzmaReader::new_mem_limit(input, MEMORY, None);
            return Ok(Box::new(reader.map_err(|e| super::corrupt(NAME, e))?));
        }
        Ok(Box::new(XzReader::new_mem_limit(input, true, MEMORY)))
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
        if self.alone {
            return Err(Error::unsupported("writing lzma in format 2"));
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
