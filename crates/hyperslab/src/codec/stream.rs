//! Streams that a library decodes bit by bit.

use super::{corrupt, wrong_length};
use crate::error::Result;
use std::io::Read;

/// Reads a stream to its end into `out`, which is emptied before; at most `max` bytes.
pub(super) fn decode(codec: &str, stream: impl Read, out: &mut Vec<u8>, max: usize) -> Result<()> {
    out.clear();
    let mut limited = stream.take((max as u64).saturating_add(1));
    limited.read_to_end(out).map_err(|e| corrupt(codec, e))?;
    if out.len() > max {
        return Err(corrupt(codec, format_args!("the stream holds more than the {max} bytes possible")));
    }
    Ok(())
}

/// Reads a stream that holds exactly `out`.
pub(super) fn decode_into(codec: &str, mut stream: impl Read, out: &mut [u8]) -> Result<()> {
    let mut at = 0;
    while let Some(rest) = out.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest).map_err(|e| corrupt(codec, e))? {
            0 => return Err(wrong_length(codec, at, out.len())),
            n => at += n,
        }
    }
    // The end of the stream, with its checksum, comes after the last byte.
    match stream.read(&mut [0]).map_err(|e| corrupt(codec, e))? {
        0 => Ok(()),
        _ => Err(corrupt(codec, format_args!("the stream holds more than the {} bytes wanted", out.len()))),
    }
}
