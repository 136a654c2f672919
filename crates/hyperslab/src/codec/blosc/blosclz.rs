//! BloscLZ, Blosc's own compressor, which comes from FastLZ.
//!
//! A control byte below 32 is a run of that many literals and one more; others hold the length of a match in their upper
//! three bits and the upper five bits of its distance.

use super::super::lz::{Matcher, Output, common};

/// Distances above this have two bytes more.
const NEAR: usize = 8191;
/// Longest run of literals.
const MAX_LITERALS: usize = 32;
const MIN_MATCH: usize = 3;
/// Bytes at the end that are literals, as Blosc's decoder wants to read on behind every match.
const END: usize = 4;

/// Decompresses into the start of `out` and gives the length; `None` if the input is damaged or does not fit.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut output = Output::new(out);
    let mut rest = input.iter();
    // The first bytes are always literals; the upper bits of the first control byte name the version.
    let mut control = usize::from(*rest.next()?) & 0x1f;
    loop {
        if control < MAX_LITERALS {
            let (run, after) = rest.as_slice().split_at_checked(control + 1)?;
            output.literals(run)?;
            rest = after.iter();
        } else {
            let mut len = (control >> 5) + 2;
            if len == 9 {
                loop {
                    let more = usize::from(*rest.next()?);
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = usize::from(*rest.next()?);
            let mut distance = (control & 0x1f) << 8 | low;
            if distance == NEAR {
                distance += usize::from(*rest.next()?) << 8 | usize::from(*rest.next()?);
            }
            output.repeat(distance + 1, len)?;
        }
        match rest.next() {
            Some(&next) => control = usize::from(next),
            None => return Some(output.len()),
        }
    }
}

/// Compresses `input`, which is not empty.
pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut matcher = Matcher::new();
    let (mut at, mut literals) = (0, 0);
    while at + MIN_MATCH + END <= input.len() {
        let Some(place) = matcher.find(input, at, NEAR) else {
            at += 1;
            continue;
        };
        put_literals(out, input.get(literals..at).unwrap_or_default());
        let len = common(input, place, at, input.len() - END - at);
        let (code, offset) = (len - MIN_MATCH + 1, at - place - 1);
        // The offset is below 2^13.
        out.push((code.min(7) << 5 | offset >> 8) as u8);
        if let Some(mut more) = code.checked_sub(7) {
            while more >= 255 {
                out.push(255);
                more -= 255;
            }
            out.push(more as u8);
        }
        out.push((offset & 0xff) as u8);
        at += len;
        literals = at;
    }
    put_literals(out, input.get(literals..).unwrap_or_default());
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MAX_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}
