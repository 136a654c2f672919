//! Scale-offset: the smallest value, then every value less it, in as few bits as the largest needs. HDF5 filter 6.
//!
//! Encoded are the number of bits (4 bytes), the size of the smallest value (1 byte) and itself (8 bytes), all
//! little-endian, eight unused bytes, and the differences, the highest bit first. The largest difference of that many bits
//! stands for the fill value. Floating-point numbers are multiplied by a power of ten and rounded first (D-scaling), which
//! loses what is smaller.

use super::bits::{BitReader, BitWriter};
use super::spelling::{Hdf5, Spelling, json_to_parameters, parameters_to_json};
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len, wrong_length};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 6;

/// Scale types: D-scaling of floats, and integers. E-scaling (1) was never implemented by anybody.
const SCALE_D: u32 = 0;
const SCALE_INTEGER: u32 = 2;

/// HDF5's, under its own name with its own parameters.
pub(super) const SPELLING: Spelling = Spelling {
    id: "scaleoffset",
    numcodecs: r#"{"id":"scaleoffset","parameters":[2,0,5000,0,4,1,0,0]}"#,
    v3: r#"{"name":"scaleoffset","configuration":{"parameters":[2,0,5000,0,4,1,0,0]}}"#,
    hdf5: Some(Hdf5 {
        number: HDF5_ID,
        bind,
        to_json: parameters_to_json,
        to_parameters: json_to_parameters,
    }),
    json: Some(|configuration, context| bind(&json_to_parameters(configuration, context)?, context)),
    encodes: true,
};

/// HDF5: scale type, scale factor, elements of a chunk, class (0 integer, 1 float), size, sign, byte order (1 big),
/// whether there is a fill value, and that in up to twelve words.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    let [scale, factor, count, class, size, sign, order, has_fill, fill @ ..] = parameters else {
        return Err(corrupt(NAME, format_args!("{} parameters are too few", parameters.len())));
    };
    let word = |i: usize| u64::from(fill.get(i).copied().unwrap_or(0));
    let factor = *factor as i32;
    let kind = match (scale, class, size) {
        (&SCALE_INTEGER, 0, 1 | 2 | 4 | 8) => Kind::Integer {
            signed: *sign == 1,
            bits: u32::try_from(factor).ok().filter(|&bits| bits > 0 && bits <= 8 * size),
        },
        // Read as text, so that the power is the nearest number on every machine.
        (&SCALE_D, 1, 4) => Kind::Float { power: format!("1e{factor}").parse().unwrap_or(1.0) },
        (&SCALE_D, 1, 8) => Kind::Double { power: format!("1e{factor}").parse().unwrap_or(1.0) },
        _ => {
            return Err(Error::unsupported(format_args!(
                "scale-offset of type {scale} on elements of class {class} and {size} bytes"
            )));
        }
    };
    let size = *size as usize;
    Ok(Arc::new(ScaleOffset {
        kind,
        size,
        count: u64::from(*count),
        big: *order == 1,
        fill: (*has_fill == 1).then(|| (word(0) | word(1) << 32) & ones(8 * size as u32)),
    }))
}

const NAME: &str = "scaleoffset";
/// Bytes before the differences.
const HEADER: usize = 21;

#[derive(Debug)]
enum Kind {
    /// `bits`: as many as the file says; else as many as needed.
    Integer {
        signed: bool,
        bits: Option<u32>,
    },
    Float {
        power: f32,
    },
    Double {
        power: f64,
    },
}

#[derive(Debug)]
struct ScaleOffset {
    kind: Kind,
    /// Bytes of an element.
    size: usize,
    /// Elements of a chunk.
    count: u64,
    big: bool,
    /// The bits of the fill value.
    fill: Option<u64>,
}

/// `n` ones, at most 64.
fn ones(n: u32) -> u64 {
    u64::MAX.checked_shr(64 - n.min(64)).unwrap_or(0)
}

impl ScaleOffset {
    fn width(&self) -> u32 {
        8 * self.size as u32
    }

    /// The value that a difference stands for.
    fn restore(&self, difference: u64, least: u64) -> u64 {
        match self.kind {
            Kind::Integer { .. } => difference.wrapping_add(least) & ones(self.width()),
            Kind::Float { power } => {
                (difference as u32 as i32 as f32 / power + f32::from_bits(least as u32)).to_bits().into()
            }
            Kind::Double { power } => (difference as i64 as f64 / power + f64::from_bits(least)).to_bits(),
        }
    }

    fn get(&self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        if self.big {
            word.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
        } else {
            word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        u64::from_le_bytes(word)
    }

    fn put(&self, value: u64, out: &mut [u8]) {
        let word = value.to_le_bytes();
        if self.big {
            out.iter_mut().rev().zip(word).for_each(|(to, from)| *to = from);
        } else {
            out.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
    }

    /// The smallest value, the bits of a difference, and the differences; no differences where they do not fit in fewer
    /// bits than the values have.
    fn differences(&self, values: &[u64]) -> (u64, u32, Option<Vec<u64>>) {
        let width = self.width();
        let raw = (0, width, None);
        match self.kind {
            Kind::Integer { signed, bits } => {
                // Moves the smallest signed number to zero, so that unsigned comparison orders both kinds.
                let flip = if signed { 1 << (width - 1) } else { 0 };
                let used = || values.iter().filter(|&&v| Some(v) != self.fill).map(|v| v ^ flip);
                let least = used().min().unwrap_or(flip) ^ flip;
                let most = used().max().unwrap_or(flip) ^ flip;
                let span = most.wrapping_sub(least) & ones(width);
                let bits = match bits {
                    Some(bits) => bits,
                    None if span > ones(width) - 2 => return raw,
                    None => bits_for(span, self.fill.is_some()),
                };
                if bits >= width {
                    return raw;
                }
                let difference = |&v: &u64| match self.fill {
                    Some(fill) if v == fill => ones(bits),
                    _ => v.wrapping_sub(least) & ones(bits),
                };
                (least, bits, Some(values.iter().map(difference).collect()))
            }
            Kind::Float { power } => {
                let value = |bits: u64| f32::from_bits(bits as u32);
                self.scaled(
                    values,
                    |v| f64::from(value(v)),
                    |v, least| f64::from((value(v) * power - value(least) * power).round()),
                    1.0 / f64::from(power),
                )
            }
            Kind::Double { power } => self.scaled(
                values,
                f64::from_bits,
                |v, least| (f64::from_bits(v) * power - f64::from_bits(least) * power).round(),
                1.0 / power,
            ),
        }
    }

    /// D-scaling: `scale` gives the rounded difference of two values times the power; `near` is what counts as equal to
    /// the fill value.
    fn scaled(
        &self,
        values: &[u64],
        number: impl Fn(u64) -> f64,
        scale: impl Fn(u64, u64) -> f64,
        near: f64,
    ) -> (u64, u32, Option<Vec<u64>>) {
        let raw = (0, self.width(), None);
        let is_fill = |v: u64| self.fill.is_some_and(|fill| (number(v) - number(fill)).abs() < near);
        let used = || values.iter().copied().filter(|&v| !is_fill(v));
        let order = |a: &u64, b: &u64| number(*a).total_cmp(&number(*b));
        let (least, most) = match (used().min_by(order), used().max_by(order)) {
            (Some(least), Some(most)) => (least, most),
            _ => (0, 0),
        };
        let span = scale(most, least);
        // Anything that is not finite makes this false.
        if !(span >= 0.0 && span < 2f64.powi(self.width() as i32 - 2)) {
            return raw;
        }
        let bits = bits_for(span as u64, self.fill.is_some());
        if bits >= self.width() || used().any(|v| !number(v).is_finite()) {
            return raw;
        }
        let difference = |&v: &u64| if is_fill(v) { ones(bits) } else { scale(v, least) as u64 };
        (least, bits, Some(values.iter().map(difference).collect()))
    }
}

/// The bits that differences of up to `span` need, leaving the largest number for the fill value if there is one.
fn bits_for(span: u64, has_fill: bool) -> u32 {
    64 - span.saturating_add(has_fill.into()).leading_zeros()
}

impl Codec for ScaleOffset {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = self.count.saturating_mul(self.size as u64);
        set_len(out, check_max(NAME, len, max)?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        let len = self.count.saturating_mul(self.size as u64);
        if len != out.len() as u64 {
            return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
        }
        let Some((header, data)) = input.split_first_chunk::<HEADER>() else {
            return Err(corrupt(NAME, "the header is cut short"));
        };
        let [b0, b1, b2, b3, least_len, least @ ..] = header;
        let bits = u32::from_le_bytes([*b0, *b1, *b2, *b3]);
        let mut word = [0; 8];
        word.iter_mut().zip(least.iter().take((*least_len).into())).for_each(|(to, from)| *to = *from);
        let least = u64::from_le_bytes(word);
        if bits > self.width() {
            return Err(corrupt(NAME, format_args!("{bits} bits for elements of {} bytes", self.size)));
        }
        if bits == self.width() {
            // As they are, but little-endian.
            let data = data.get(..out.len()).ok_or_else(|| corrupt(NAME, "the data are cut short"))?;
            for (to, from) in out.chunks_exact_mut(self.size).zip(data.chunks_exact(self.size)) {
                to.copy_from_slice(from);
                if self.big {
                    to.reverse();
                }
            }
            return Ok(());
        }
        let mut reader = BitReader::new(data);
        for element in out.chunks_exact_mut(self.size) {
            let difference = match bits {
                ..=56 => reader.read(bits),
                _ => reader.read_wide(bits).map(|wide| wide as u64),
            };
            let difference = difference.ok_or_else(|| corrupt(NAME, "the data are cut short"))?;
            let value = match self.fill {
                Some(fill) if difference == ones(bits) => fill,
                _ => self.restore(difference, least),
            };
            self.put(value, element);
        }
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        if !input.len().is_multiple_of(self.size) {
            return Err(wrong_length(NAME, input.len(), input.len() / self.size * self.size));
        }
        let values: Vec<u64> = input.chunks_exact(self.size).map(|bytes| self.get(bytes)).collect();
        if values.len() as u64 != self.count {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{NAME}: {} elements in a chunk of {}", values.len(), self.count),
            ));
        }
        let (least, bits, differences) = self.differences(&values);
        out.clear();
        out.extend_from_slice(&bits.to_le_bytes());
        out.push(8);
        out.extend_from_slice(&least.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        match differences {
            Some(differences) => {
                let mut writer = BitWriter::new(out);
                differences.iter().for_each(|&d| writer.write_wide(d.into(), bits));
                writer.finish();
            }
            None => {
                for value in values {
                    out.extend_from_slice(value.to_le_bytes().get(..self.size).unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // Equal values take no bits at all.
        match encoded.checked_sub(HEADER as u64) {
            Some(_) => self.count.saturating_mul(self.size as u64),
            None => 0,
        }
    }
}
