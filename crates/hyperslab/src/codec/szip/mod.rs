//! Szip: the adaptive entropy coder of CCSDS 121.0-B. HDF5 filter 4.
//!
//! HDF5 puts the decoded length (4 bytes, little-endian) in front. Samples of 32 and 64 bits are taken apart into planes of
//! bytes first, and every scan line is padded to whole blocks.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use super::spelling::{Hdf5, Spelling};
use super::{BindContext, Codec, Scratch, check_max, configuration, corrupt, set_len};
use crate::dtype::ByteOrder;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use crate::shape::to_usize;
use hyperslab_kernels::shuffle::{shuffle, unshuffle};
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 4;

/// Bits of the option mask.
const OPTION_MSB: u32 = 16;
const OPTION_NEAREST_NEIGHBOUR: u32 = 32;
const OPTION_K13: u32 = 1;
const OPTION_CHIP: u32 = 2;
const OPTION_LSB: u32 = 8;
const OPTION_RAW: u32 = 128;

/// Blocks of a scan line that HDF5 makes.
const MAX_BLOCKS_BY_DEFAULT: u32 = 128;

/// HDF5's, as netCDF spells it in Zarr; what HDF5 adds to that has members of its own.
pub(super) const SPELLING: Spelling = Spelling {
    id: "szip",
    numcodecs: r#"{"id":"szip","mask":32,"pixels-per-block":8}"#,
    v3: r#"{"name":"szip","configuration":{"mask":32,"pixels-per-block":8}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json, to_parameters }),
    json: Some(|configuration, context| bind(&to_parameters(configuration, context)?, context)),
    encodes: true,
};

fn to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    let names = ["mask", "pixels-per-block", "bits-per-pixel", "pixels-per-scanline"];
    names.into_iter().zip(parameters.iter().map(|&p| Json::Integer(i128::from(p)))).collect()
}

/// Bits and samples of a scan line, if they are missing, as HDF5 finds them from the chunk.
fn to_parameters(configuration: &Json, context: &BindContext) -> Result<Vec<u32>> {
    let number = |name| configuration::integer(configuration, name, 0, 0, u32::MAX.into()).map(|n| n as u32);
    let (mask, block) = (number("mask")?, number("pixels-per-block")?);
    let (bits, line) = (number("bits-per-pixel")?, number("pixels-per-scanline")?);
    if bits != 0 && line != 0 {
        return Ok(vec![mask, block, bits, line]);
    }
    let wide = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let most = block.saturating_mul(MAX_BLOCKS_BY_DEFAULT);
    let line = match wide(context.chunk.last().copied().unwrap_or(1)) {
        short if short < block => most.min(wide(context.chunk_bytes / (context.dtype.size() as u64).max(1))),
        fit if fit <= MAX_INTERVAL => most.min(fit),
        _ => most,
    };
    // The order of bytes, no chip, k13, raw.
    let order =
        if context.dtype.with_order(ByteOrder::Big) == *context.dtype { OPTION_MSB } else { OPTION_LSB };
    let mask = mask & !OPTION_CHIP | OPTION_K13 | OPTION_RAW | order;
    Ok(vec![mask, block, wide(8 * context.dtype.size() as u64), line])
}

/// HDF5: option mask, samples of a block, bits of a sample, samples of a scan line.
pub(super) fn bind(parameters: &[u32], _: &BindContext) -> Result<Arc<dyn Codec>> {
    let [options, block, bits, line, ..] = parameters else {
        return Err(corrupt(NAME, format_args!("{} parameters are too few", parameters.len())));
    };
    // Samples of these widths are coded byte by byte.
    let (bits, planes) = match bits {
        32 => (8, 4),
        64 => (8, 8),
        1..=24 => (*bits, 1),
        other => return Err(corrupt(NAME, format_args!("samples of {other} bits"))),
    };
    if *block == 0
        || block % 2 != 0
        || *block > MAX_BLOCK
        || *line == 0
        || line.div_ceil(*block) > MAX_INTERVAL
    {
        return Err(corrupt(NAME, format_args!("blocks of {block} samples in scan lines of {line}")));
    }
    Ok(Arc::new(Szip {
        planes,
        line: to_usize((*line).into())?,
        coder: Coder {
            bits,
            block: to_usize((*block).into())?,
            blocks: to_usize(line.div_ceil(*block).into())?,
            differences: options & OPTION_NEAREST_NEIGHBOUR != 0,
        },
        big: options & OPTION_MSB != 0,
    }))
}

const NAME: &str = "szip";
/// Most samples of a block, and blocks between two reference samples.
const MAX_BLOCK: u32 = 64;
const MAX_INTERVAL: u32 = 4096;

#[derive(Debug)]
struct Szip {
    /// Bytes into which samples are taken apart; 1: they are not.
    planes: usize,
    /// Samples of a scan line.
    line: usize,
    coder: Coder,
    /// Whether samples of several bytes are big-endian.
    big: bool,
}

/// The parameters of the entropy coder.
#[derive(Debug)]
struct Coder {
    /// Bits of a sample.
    bits: u32,
    /// Samples of a block.
    block: usize,
    /// Blocks of a scan line; the first starts with a reference sample if differences are coded.
    blocks: usize,
    /// Whether differences to the sample before are coded.
    differences: bool,
}

impl Coder {
    /// The largest sample.
    fn most(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// Bits of the number of a coding option.
    fn option_bits(&self) -> u32 {
        match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }
}

impl Szip {
    /// Bytes of a sample.
    fn sample(&self) -> usize {
        match self.coder.bits {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    fn decode_samples(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if !out.len().is_multiple_of(self.sample()) {
            return Err(corrupt(NAME, format_args!("{} bytes of samples of {}", out.len(), self.sample())));
        }
        let mut decoder = decode::Decoder::new(&self.coder, data);
        let width = self.sample();
        for line in out.chunks_mut(self.line.saturating_mul(width)) {
            let samples = decoder.line(line.len() / width)?;
            match (width, self.big) {
                (1, _) => line.iter_mut().zip(samples).for_each(|(to, &from)| *to = from as u8),
                (2, false) => place(line, samples, |s| (s as u16).to_le_bytes()),
                (2, true) => place(line, samples, |s| (s as u16).to_be_bytes()),
                (_, false) => place(line, samples, u32::to_le_bytes),
                (_, true) => place(line, samples, u32::to_be_bytes),
            }
        }
        Ok(())
    }
}

fn place<const N: usize>(line: &mut [u8], samples: &[u32], bytes: impl Fn(u32) -> [u8; N]) {
    for (to, &from) in line.as_chunks_mut::<N>().0.iter_mut().zip(samples) {
        *to = bytes(from);
    }
}

impl Codec for Szip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        let len = u64::from(header(input)?.0);
        let bound = self.decoded_bound(input.len() as u64).min(max as u64);
        set_len(out, check_max(NAME, len, usize::try_from(bound).unwrap_or(max))?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let (len, data) = header(input)?;
        if u64::from(len) != out.len() as u64 {
            return Err(corrupt(NAME, format_args!("{len} decoded bytes where {} are wanted", out.len())));
        }
        if self.planes == 1 {
            return self.decode_samples(data, out);
        }
        let mut planes = scratch.take_len(out.len());
        let done = self.decode_samples(data, &mut planes);
        unshuffle(self.planes, &planes, out);
        scratch.give(planes);
        done
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, scratch: &mut Scratch) -> Result<()> {
        let width = self.sample();
        let len = u32::try_from(input.len()).ok().filter(|_| input.len().is_multiple_of(width * self.planes));
        let Some(len) = len else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{NAME}: {} bytes of samples", input.len()),
            ));
        };
        out.clear();
        out.extend_from_slice(&len.to_le_bytes());
        let mut planes = scratch.take_len(input.len());
        shuffle(self.planes, input, &mut planes);
        let sample = |bytes: &[u8]| {
            let join = |n: u32, &byte: &u8| n << 8 | u32::from(byte);
            let value = if self.big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
            value & self.coder.most()
        };
        let samples: Vec<u32> = planes.chunks_exact(width).map(sample).collect();
        scratch.give(planes);
        encode::encode(&self.coder, self.line, &samples, out);
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // Some bits can stand for 64 blocks of zeros.
        encoded.saturating_mul(8).saturating_mul(64 * u64::from(MAX_BLOCK) * 4)
    }
}

/// Decoded length and what follows.
fn header(input: &[u8]) -> Result<(u32, &[u8])> {
    match input.split_first_chunk::<4>() {
        Some((len, data)) => Ok((u32::from_le_bytes(*len), data)),
        None => Err(corrupt(NAME, "the header is cut short")),
    }
}
