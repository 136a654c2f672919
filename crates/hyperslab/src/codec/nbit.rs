//! N-bit: only the significant bits of every number are stored. HDF5 filter 5.
//!
//! The parameters describe the element type; the data are one stream of bits, of every number the significant ones, the
//! highest first. Bits outside them decode to zero.

use super::bits::{BitReader, BitWriter};
use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len, wrong_length};
use crate::error::{Error, Result};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 5;

/// HDF5's, under its own name with its own parameters.
pub(super) const SPELLING: Spelling = Spelling {
    id: "nbit",
    numcodecs: r#"{"id":"nbit","parameters":[8,0,5000,1,4,0,3,0]}"#,
    v3: r#"{"name":"nbit","configuration":{"parameters":[8,0,5000,1,4,0,3,0]}}"#,
    hdf5: Some(Hdf5 {
        number: HDF5_ID,
        bind,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind(&json_to_parameters(configuration, context)?, context)),
    encodes: true,
};

/// HDF5: number of parameters, whether all bits are significant, elements of a chunk, then the type (see [`Kind`]).
pub(super) fn bind(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>> {
    let [_, plain, count, kind @ ..] = parameters else {
        return Err(corrupt(NAME, format_args!("{} parameters are too few", parameters.len())));
    };
    if *plain == 1 {
        let size = context.dtype.size().max(1);
        return Ok(Arc::new(NBit { count: u64::from(*count), size, bits: 8 * size as u64, kind: None }));
    }
    let (kind, _) = Kind::parse(kind, 0, &mut { MAX_KINDS })?;
    let (size, bits) = (kind.size(), kind.bits());
    if size == 0 || bits == 0 {
        return Err(corrupt(NAME, "elements of zero bits"));
    }
    Ok(Arc::new(NBit { count: u64::from(*count), size, bits, kind: Some(kind) }))
}

const NAME: &str = "nbit";
/// Levels of arrays and compounds in each other, and types in all.
const MAX_DEPTH: u32 = 32;
const MAX_KINDS: u32 = 1 << 16;

#[derive(Debug)]
struct NBit {
    /// Elements of a chunk.
    count: u64,
    /// Decoded bytes of an element.
    size: usize,
    /// Encoded bits of an element.
    bits: u64,
    /// How an element is made; none: stored as it is.
    kind: Option<Kind>,
}

/// A type as the parameters tell it: a number for the class, the size in bytes, and what belongs to the class.
#[derive(Debug)]
enum Kind {
    /// 1: byte order (0 little, 1 big), precision, offset of the lowest significant bit.
    Number { size: usize, big: bool, precision: u32, offset: u32 },
    /// 2: the type of an element.
    Array { size: usize, base: Box<Kind> },
    /// 3: number of members, then of each its byte offset and type.
    Compound { size: usize, members: Vec<(usize, Kind)> },
    /// 4: bytes that are stored as they are.
    Bytes { size: usize },
}

impl Kind {
    /// Parses the parameters of a type and gives those that follow. `left` counts down the types that may still come.
    fn parse<'a>(parameters: &'a [u32], depth: u32, left: &mut u32) -> Result<(Kind, &'a [u32])> {
        let cut = || corrupt(NAME, "the parameters of the type are cut short");
        if depth > MAX_DEPTH || *left == 0 {
            return Err(corrupt(NAME, "the type is nested too deeply or has too many members"));
        }
        *left -= 1;
        let [class, size, rest @ ..] = parameters else { return Err(cut()) };
        let size = *size as usize;
        match class {
            1 => {
                let [order, precision, offset, rest @ ..] = rest else { return Err(cut()) };
                let (precision, offset) = (*precision, *offset);
                let end = u64::from(precision) + u64::from(offset);
                if precision == 0 || end > 8 * size as u64 || size > 16 || *order > 1 {
                    return Err(corrupt(
                        NAME,
                        format_args!(
                            "{precision} bits from bit {offset} on of {size} bytes in order {order}"
                        ),
                    ));
                }
                Ok((Kind::Number { size, big: *order == 1, precision, offset }, rest))
            }
            2 => {
                let (base, after) = Kind::parse(rest, depth + 1, left)?;
                Ok((Kind::Array { size, base: Box::new(base) }, after))
            }
            3 => {
                let [count, rest @ ..] = rest else { return Err(cut()) };
                let mut rest = rest;
                let (mut members, mut used) = (Vec::new(), 0usize);
                for _ in 0..*count {
                    if members.last().is_some_and(|(_, member): &(usize, Kind)| member.misleads()) {
                        return Err(Error::unsupported(
                            "n-bit compound with a member behind an array of arrays or compounds, \
                             which the C library stores wrongly and cannot read either",
                        ));
                    }
                    let [offset, after @ ..] = rest else { return Err(cut()) };
                    let (member, after) = Kind::parse(after, depth + 1, left)?;
                    let offset = *offset as usize;
                    used = used.saturating_add(member.size());
                    if used > size || offset.checked_add(member.size()).is_none_or(|end| end > size) {
                        return Err(corrupt(
                            NAME,
                            format_args!("members beyond the {size} bytes of a compound"),
                        ));
                    }
                    members.push((offset, member));
                    rest = after;
                }
                Ok((Kind::Compound { size, members }, rest))
            }
            4 => Ok((Kind::Bytes { size }, rest)),
            other => Err(corrupt(NAME, format_args!("type class {other}"))),
        }
    }

    fn size(&self) -> usize {
        match self {
            Kind::Number { size, .. }
            | Kind::Array { size, .. }
            | Kind::Compound { size, .. }
            | Kind::Bytes { size } => *size,
        }
    }

    /// Whether the C library loses its place in the parameters behind this type: it does not step over those of an array
    /// element that is an array or compound itself.
    fn misleads(&self) -> bool {
        match self {
            Kind::Array { base, .. } => matches!(**base, Kind::Array { .. } | Kind::Compound { .. }),
            Kind::Compound { members, .. } => members.last().is_some_and(|(_, member)| member.misleads()),
            _ => false,
        }
    }

    /// Encoded bits; at most those of the size.
    fn bits(&self) -> u64 {
        match self {
            Kind::Number { precision, .. } => u64::from(*precision),
            Kind::Array { size, base } => size.checked_div(base.size()).unwrap_or(0) as u64 * base.bits(),
            Kind::Compound { members, .. } => members.iter().map(|(_, member)| member.bits()).sum(),
            Kind::Bytes { size } => 8 * *size as u64,
        }
    }

    /// Reads one value into its zeroed bytes. `None`: the input ends.
    fn read(&self, input: &mut BitReader, out: &mut [u8]) -> Option<()> {
        match self {
            Kind::Number { big, precision, offset, .. } => {
                if out.len() <= 8 {
                    let value = match *precision {
                        n @ ..=56 => input.read(n)?,
                        n => input.read(n - 32)? << 32 | input.read(32)?,
                    } << offset;
                    put(out, *big, &value.to_le_bytes());
                } else {
                    put(out, *big, &(input.read_wide(*precision)? << offset).to_le_bytes());
                }
            }
            Kind::Array { base, .. } => {
                for element in out.chunks_exact_mut(base.size().max(1)) {
                    base.read(input, element)?;
                }
            }
            Kind::Compound { members, .. } => {
                for (offset, member) in members {
                    member.read(input, out.get_mut(*offset..)?.get_mut(..member.size())?)?;
                }
            }
            Kind::Bytes { .. } => {
                for byte in out {
                    *byte = input.read(8)? as u8;
                }
            }
        }
        Some(())
    }

    fn write(&self, value: &[u8], out: &mut BitWriter) {
        match self {
            Kind::Number { big, precision, offset, .. } => {
                let mut bytes = [0; 16];
                for (to, from) in bytes.iter_mut().zip(little(value, *big)) {
                    *to = from;
                }
                out.write_wide(u128::from_le_bytes(bytes) >> offset, *precision);
            }
            Kind::Array { base, .. } => {
                value.chunks_exact(base.size().max(1)).for_each(|element| base.write(element, out));
            }
            Kind::Compound { members, .. } => {
                for (offset, member) in members {
                    let field = value.get(*offset..).and_then(|v| v.get(..member.size()));
                    member.write(field.unwrap_or_default(), out);
                }
            }
            Kind::Bytes { .. } => value.iter().for_each(|&byte| out.write(byte.into(), 8)),
        }
    }
}

/// Writes a number into its bytes.
#[inline]
fn put(out: &mut [u8], big: bool, little: &[u8]) {
    if big {
        out.iter_mut().rev().zip(little).for_each(|(to, from)| *to = *from);
    } else {
        out.iter_mut().zip(little).for_each(|(to, from)| *to = *from);
    }
}

/// The bytes of a number, the least significant first.
fn little(value: &[u8], big: bool) -> impl Iterator<Item = u8> {
    let len = value.len();
    (0..len).map(move |i| value.get(if big { len - 1 - i } else { i }).copied().unwrap_or(0))
}

impl Codec for NBit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = match self.kind {
            None => input.len() as u64,
            Some(_) => self.count.saturating_mul(self.size as u64),
        };
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, check_max(NAME, len, usize::try_from(bound).unwrap_or(max))?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        let Some(kind) = &self.kind else {
            if input.len() != out.len() {
                return Err(wrong_length(NAME, input.len(), out.len()));
            }
            out.copy_from_slice(input);
            return Ok(());
        };
        let len = self.count.saturating_mul(self.size as u64);
        if len != out.len() as u64 {
            return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
        }
        out.fill(0);
        let mut bits = BitReader::new(input);
        for element in out.chunks_exact_mut(self.size) {
            kind.read(&mut bits, element).ok_or_else(|| corrupt(NAME, "the data are cut short"))?;
        }
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        out.clear();
        let Some(kind) = &self.kind else {
            out.extend_from_slice(input);
            return Ok(());
        };
        if !input.len().is_multiple_of(self.size) {
            return Err(wrong_length(NAME, input.len(), input.len() / self.size * self.size));
        }
        let mut bits = BitWriter::new(out);
        input.chunks_exact(self.size).for_each(|element| kind.write(element, &mut bits));
        bits.finish();
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        match self.kind {
            None => encoded,
            Some(_) => (encoded.saturating_mul(8) / self.bits).saturating_mul(self.size as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::{noise, pipeline, spec};
    use crate::error::ErrorKind;

    /// A compound with an array, a big-endian number of odd width, bytes, and a gap.
    const COMPOUND: [u32; 27] =
        [0, 0, 50, 3, 24, 4, 0, 1, 4, 1, 17, 9, 4, 2, 6, 1, 2, 0, 11, 2, 12, 4, 3, 16, 1, 8, 0];

    #[test]
    fn compounds_round_trip() {
        let mut parameters = COMPOUND.to_vec();
        parameters.extend([61, 3]);
        let p = pipeline(&[spec(HDF5_ID, &parameters)], 50 * 24);
        let mut scratch = Scratch::default();
        let (mut encoded, mut once, mut twice) = (Vec::new(), Vec::new(), Vec::new());
        p.encode(&noise(50 * 24), &mut encoded, &mut scratch).unwrap();
        assert_eq!(encoded.len(), (50 * (17 + 33 + 24 + 61usize)).div_ceil(8));
        p.decode(&encoded, 0, &mut once, &mut scratch).unwrap();
        p.encode(&once, &mut encoded, &mut scratch).unwrap();
        p.decode(&encoded, 0, &mut twice, &mut scratch).unwrap();
        assert!(once == twice && once.iter().any(|&b| b != 0));
    }

    #[test]
    fn parameters_that_cannot_be_are_errors() {
        let mut scratch = Scratch::default();
        let mut check = |parameters: &[u32]| {
            let p = pipeline(&[spec(HDF5_ID, parameters)], 400);
            p.decode(&[0; 400], 0, &mut Vec::new(), &mut scratch).unwrap_err().kind()
        };
        for len in 0..COMPOUND.len() {
            check(&COMPOUND[..len]);
        }
        assert_eq!(check(&[0, 0, 100, 1, 4, 0, 30, 3]), ErrorKind::Corrupt);
        assert_eq!(check(&[0, 0, 100, 1, 4, 0, 0, 3]), ErrorKind::Corrupt);
        assert_eq!(check(&[0, 0, u32::MAX, 1, 4, 0, 30, 0]), ErrorKind::Corrupt);
        let mut deep = vec![0, 0, 100];
        deep.extend([2, 4].repeat(1000));
        assert_eq!(check(&deep), ErrorKind::Corrupt);
        let behind = [0, 0, 100, 3, 4, 2, 0, 2, 2, 3, 1, 1, 0, 4, 1, 2, 4, 2];
        assert_eq!(check(&behind), ErrorKind::Unsupported);
    }
}
