//! LZF, the format of liblzf: HDF5 filter 32000, h5py's own.

use super::lz::{Matcher, Output, common};
use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, corrupt, set_len, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 32000;

/// HDF5's, under its own name with its own parameters.
pub(super) const SPELLING: Spelling = Spelling {
    id: "lzf",
    numcodecs: r#"{"id":"lzf","parameters":[4,261,20000]}"#,
    v3: r#"{"name":"lzf","configuration":{"parameters":[4,261,20000]}}"#,
    hdf5: Some(Hdf5 {
        number: HDF5_ID,
        bind,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind(&json_to_parameters(configuration, context)?, context)),
    encodes: true,
};

/// HDF5: revision of the filter, version of LZF, bytes of a chunk. None of them changes how to decode.
pub(super) fn bind(_: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    Ok(Arc::new(Lzf))
}

#[derive(Debug)]
struct Lzf;

const NAME: &str = "lzf";
/// Shortest and longest match, and the farthest.
const MIN_MATCH: usize = 3;
const MAX_MATCH: usize = 264;
const WINDOW: usize = 1 << 13;
/// Longest run of literals.
const MAX_LITERALS: usize = 32;

impl Codec for Lzf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, usize::try_from(bound).unwrap_or(max));
        let len = decode(input, out)?;
        out.truncate(len);
        Ok(())
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        match decode(input, out)? {
            len if len == out.len() => Ok(()),
            len => Err(wrong_length(NAME, len, out.len())),
        }
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        if u32::try_from(input.len()).is_err() {
            return Err(Error::new(ErrorKind::Unsupported, "not supported: LZF chunks of 4 GiB and more"));
        }
        out.clear();
        let mut matcher = Matcher::new();
        let (mut at, mut literals) = (0, 0);
        while at < input.len() {
            let Some(place) = matcher.find(input, at, WINDOW) else {
                at += 1;
                continue;
            };
            put_literals(out, input.get(literals..at).unwrap_or_default());
            let len = common(input, place, at, MAX_MATCH);
            let (code, offset) = (len - 2, at - place - 1);
            // Both halves fit: the offset is below 2^13, the code below 7 + 256.
            out.push((code.min(7) << 5 | offset >> 8) as u8);
            if code >= 7 {
                out.push((code - 7) as u8);
            }
            out.push((offset & 0xff) as u8);
            at += len;
            literals = at;
        }
        put_literals(out, input.get(literals..).unwrap_or_default());
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // The longest match takes three bytes.
        encoded.saturating_mul(MAX_MATCH as u64 / MIN_MATCH as u64)
    }
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MAX_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

/// Decodes into the start of `out` and gives the length.
fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let room = out.len();
    let mut output = Output::new(out);
    let mut rest = input;
    let cut = || corrupt(NAME, "the data are cut short");
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        let control = usize::from(control);
        let done = if control < MAX_LITERALS {
            let (run, after) = rest.split_at_checked(control + 1).ok_or_else(cut)?;
            rest = after;
            output.literals(run)
        } else {
            let mut len = control >> 5;
            if len == 7 {
                let (&more, after) = rest.split_first().ok_or_else(cut)?;
                len += usize::from(more);
                rest = after;
            }
            let (&low, after) = rest.split_first().ok_or_else(cut)?;
            rest = after;
            output.repeat(((control & 0x1f) << 8 | usize::from(low)) + 1, len + 2)
        };
        if done.is_none() {
            return Err(corrupt(
                NAME,
                format_args!("a match before the start, or more than {room} bytes, at {}", output.len()),
            ));
        }
    }
    Ok(output.len())
}
