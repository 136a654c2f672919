//! The entropy decoder (CCSDS 121.0-B-3, section 5).

use super::super::bits::BitReader;
use super::super::corrupt;
use super::{Coder, NAME};
use crate::error::Result;

/// Blocks of zeros are counted within segments of this many.
const SEGMENT: usize = 64;
/// The code for all zero blocks up to the end of the segment.
const REST_OF_SEGMENT: u32 = 4;
/// The largest symbol of the second extension: a pair of numbers whose sum is at most 12.
const MAX_PAIR: u32 = 90;

pub(super) struct Decoder<'a> {
    coder: &'a Coder,
    bits: BitReader<'a>,
    /// Samples of the current line, whole blocks.
    samples: Vec<u32>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(coder: &'a Coder, data: &'a [u8]) -> Self {
        Decoder { coder, bits: BitReader::new(data), samples: Vec::new() }
    }

    /// The next scan line, of which only `count` samples are needed.
    pub(super) fn line(&mut self, count: usize) -> Result<&[u32]> {
        // At most 4096 blocks of 64 samples, which `bind` has checked.
        let len = self.coder.block * self.coder.blocks;
        self.samples.clear();
        while self.samples.len() < count {
            let before = self.samples.len();
            if self.block(len).is_none() || self.samples.len() > len || self.samples.len() == before {
                return Err(corrupt(NAME, "the data are damaged or cut short"));
            }
        }
        if self.coder.differences {
            self.add_differences();
        }
        Ok(self.samples.get(..count).unwrap_or_default())
    }

    /// One block, or a run of blocks of zeros.
    fn block(&mut self, line: usize) -> Option<()> {
        let coder = self.coder;
        let last = (1 << coder.option_bits()) - 1;
        let option = self.bits.read(coder.option_bits())?;
        let low_entropy = if option == 0 { Some(self.bits.read(1)?) } else { None };
        if option == last {
            for _ in 0..coder.block {
                self.samples.push(self.bits.read(coder.bits)? as u32);
            }
            return Some(());
        }
        // The first block of a line starts with a sample as it is.
        let reference = usize::from(coder.differences && self.samples.is_empty());
        if reference == 1 {
            self.samples.push(self.bits.read(coder.bits)? as u32);
        }
        match low_entropy {
            Some(0) => {
                let code = self.bits.unary()?;
                let used = self.samples.len() / coder.block;
                let blocks = match code {
                    REST_OF_SEGMENT => (coder.blocks - used).min(SEGMENT - used % SEGMENT),
                    n if n < REST_OF_SEGMENT => n as usize + 1,
                    n => n as usize,
                };
                let end = used.checked_add(blocks)?.checked_mul(coder.block).filter(|&end| end <= line)?;
                self.samples.resize(end, 0);
            }
            Some(_) => self.pairs(reference)?,
            None => {
                let low = option as u32 - 1;
                let start = self.samples.len();
                for _ in reference..coder.block {
                    self.samples.push(self.bits.unary()?.checked_shl(low)?);
                }
                if low > 0 {
                    for sample in self.samples.get_mut(start..)? {
                        *sample |= self.bits.read(low)? as u32;
                    }
                }
            }
        }
        Some(())
    }

    /// Second extension: one code for two numbers *a* and *b*, by their sum and then by *b*.
    fn pairs(&mut self, reference: usize) -> Option<()> {
        let mut i = reference;
        while i < self.coder.block {
            let code = self.bits.unary().filter(|&code| code <= MAX_PAIR)?;
            let mut sum = 0;
            while (sum + 1) * (sum + 2) / 2 <= code {
                sum += 1;
            }
            let b = code - sum * (sum + 1) / 2;
            if i.is_multiple_of(2) {
                self.samples.push(sum - b);
                i += 1;
            }
            self.samples.push(b);
            i += 1;
        }
        Some(())
    }

    /// From differences, folded so that they are not negative, to samples (section 4.2).
    fn add_differences(&mut self) {
        let most = self.coder.most();
        let middle = most / 2 + 1;
        let mut samples = self.samples.iter_mut();
        let Some(&mut mut value) = samples.next() else { return };
        for sample in samples {
            let folded = *sample & most;
            // The room to the nearer end of the range decides how the difference was folded.
            let room = if value < middle { value } else { most - value };
            value = if folded.div_ceil(2) <= room {
                match folded % 2 {
                    0 => value.wrapping_add(folded / 2),
                    _ => value.wrapping_sub(folded / 2 + 1),
                }
            } else if value < middle {
                folded
            } else {
                most - folded
            } & most;
            *sample = value;
        }
    }
}
