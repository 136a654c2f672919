//! From a stream of blocks to values (Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", 2014).

use super::order::ORDER;

/// Reads bits, the least significant of a byte first.
pub(super) struct BitReader<'a> {
    input: &'a [u8],
    /// The next bit.
    at: u64,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        BitReader { input, at: 0 }
    }

    /// The next `n` bits, at most 57; `None` beyond the end.
    #[inline]
    pub(super) fn read(&mut self, n: u32) -> Option<u64> {
        let word = self.peek()?;
        self.skip(n.into())?;
        Some(word & ((1 << n) - 1))
    }

    /// The next 57 bits or more, with zeros beyond the end.
    #[inline]
    fn peek(&self) -> Option<u64> {
        let rest = self.input.get(usize::try_from(self.at / 8).ok()?..)?;
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        Some(word >> (self.at % 8))
    }

    #[inline]
    fn skip(&mut self, n: u64) -> Option<()> {
        self.at = self.at.checked_add(n).filter(|&at| at <= 8 * self.input.len() as u64)?;
        Some(())
    }

    /// Skips zeros up to a one and the one itself, at most `most` bits; gives the zeros, and whether there was a one.
    #[inline]
    fn zeros(&mut self, most: u32) -> Option<(u32, bool)> {
        let mut zeros = 0;
        while zeros < most {
            let step = (most - zeros).min(57);
            let run = self.peek()?.trailing_zeros();
            if run < step {
                self.skip(u64::from(run) + 1)?;
                return Some((zeros + run, true));
            }
            self.skip(step.into())?;
            zeros += step;
        }
        Some((zeros, false))
    }
}

/// How many bits and bit planes a block has.
#[derive(Debug, PartialEq)]
pub(super) struct Mode {
    /// Least and most bits of a block.
    min_bits: u32,
    max_bits: u32,
    /// Most bit planes.
    max_precision: u32,
    /// The exponent of the lowest bit plane of floating-point values.
    min_exponent: i32,
}

/// The lowest exponent of a double; one less means that no bit is lost.
const MIN_EXPONENT: i32 = -1074;
/// More bits than any block has.
const MAX_BITS: u32 = 16658;

impl Mode {
    /// From the 12 or 64 bits of the header.
    pub(super) fn parse(bits: &mut BitReader) -> Option<Mode> {
        let all = |max_precision, min_exponent| Mode {
            min_bits: 1,
            max_bits: MAX_BITS,
            max_precision,
            min_exponent,
        };
        Some(match bits.read(12)? as u32 {
            rate @ 0..2048 => Mode { min_bits: rate + 1, max_bits: rate + 1, ..all(64, MIN_EXPONENT) },
            precision @ 2048..2176 => all(precision + 1 - 2048, MIN_EXPONENT),
            2176 => all(64, MIN_EXPONENT - 1),
            accuracy @ 2177..4095 => all(64, accuracy as i32 - 2177 + MIN_EXPONENT),
            _ => {
                let [min_bits, max_bits] = [bits.read(15)? as u32 + 1, bits.read(15)? as u32 + 1];
                let max_precision = bits.read(7)? as u32 + 1;
                Mode { min_bits, max_bits, max_precision, min_exponent: bits.read(15)? as i32 - 16495 }
            }
        })
    }

    fn is_reversible(&self) -> bool {
        self.min_exponent < MIN_EXPONENT
    }
}

/// A type of values.
pub(super) trait Value: Copy + Default {
    /// Bits of a value.
    const BITS: u32;
    /// Bits of an exponent; 0 for integers.
    const EXPONENT_BITS: u32 = 0;

    /// From the integer of a block and the exponent of the block.
    fn scale(integer: i64, exponent: i32) -> Self;
    /// From an integer that stands for the bits of the value.
    fn reinterpret(integer: i64) -> Self;
    /// Writes the value, little-endian.
    fn put(self, out: &mut [u8]);
}

impl Value for i32 {
    const BITS: u32 = 32;
    fn scale(integer: i64, _: i32) -> Self {
        integer as i32
    }
    fn reinterpret(integer: i64) -> Self {
        integer as i32
    }
    fn put(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_le_bytes());
    }
}

impl Value for i64 {
    const BITS: u32 = 64;
    fn scale(integer: i64, _: i32) -> Self {
        integer
    }
    fn reinterpret(integer: i64) -> Self {
        integer
    }
    fn put(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_le_bytes());
    }
}

impl Value for f32 {
    const BITS: u32 = 32;
    const EXPONENT_BITS: u32 = 8;
    fn scale(integer: i64, exponent: i32) -> Self {
        power_of_two(exponent - 30) as f32 * integer as f32
    }
    fn reinterpret(integer: i64) -> Self {
        let bits = integer as i32;
        f32::from_bits(if bits < 0 { bits as u32 ^ 0x7fff_ffff } else { bits as u32 })
    }
    fn put(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_le_bytes());
    }
}

impl Value for f64 {
    const BITS: u32 = 64;
    const EXPONENT_BITS: u32 = 11;
    fn scale(integer: i64, exponent: i32) -> Self {
        power_of_two(exponent - 62) * integer as f64
    }
    fn reinterpret(integer: i64) -> Self {
        f64::from_bits(if integer < 0 { integer as u64 ^ (u64::MAX >> 1) } else { integer as u64 })
    }
    fn put(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_le_bytes());
    }
}

/// 2 to the `n`, exactly, or zero.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(match n {
        -1022..=1023 => ((n + 1023) as u64) << 52,
        -1074..-1022 => 1 << (n + 1074),
        1024.. => 0x7ff << 52,
        _ => 0,
    })
}

/// Decodes all blocks of an array into `out`. `None`: the stream ends too early.
pub(super) fn decode<T: Value>(
    rank: usize,
    extents: [usize; 4],
    mode: &Mode,
    input: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let order = *ORDER.get(rank - 1)?;
    let mut block = Block { values: [T::default(); 256], integers: [0; 256], bits: BitReader::new(input) };
    let size = T::BITS as usize / 8;
    let [nx, ny, nz, nw] = extents;
    for w in (0..nw).step_by(4) {
        for z in (0..nz).step_by(4) {
            for y in (0..ny).step_by(4) {
                for x in (0..nx).step_by(4) {
                    block.decode(rank, order, mode)?;
                    for l in 0..(nw - w).min(4) {
                        for k in 0..(nz - z).min(4) {
                            for j in 0..(ny - y).min(4) {
                                let row = (((w + l) * nz + z + k) * ny + y + j) * nx + x;
                                let len = (nx - x).min(4);
                                let target = out.get_mut(row * size..(row + len) * size)?;
                                let values = block.values.get(64 * l + 16 * k + 4 * j..)?;
                                for (to, value) in target.chunks_exact_mut(size).zip(values) {
                                    value.put(to);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    Some(())
}

/// One block of up to 256 values, and the stream it comes from.
struct Block<'a, T> {
    values: [T; 256],
    /// Coefficients as stored, then integers.
    integers: [u64; 256],
    bits: BitReader<'a>,
}

impl<T: Value> Block<'_, T> {
    fn decode(&mut self, rank: usize, order: &[u8], mode: &Mode) -> Option<()> {
        let start = self.bits.at;
        let len = order.len();
        let mut exponent = Some(0);
        let mut precision = mode.max_precision;
        if T::EXPONENT_BITS > 0 {
            // A bit says that not all values are zero; if none may be lost, one more that they have no exponent.
            if self.bits.read(1)? == 0 {
                self.values.fill(T::default());
                return self.finish(start, mode);
            }
            if mode.is_reversible() && self.bits.read(1)? == 1 {
                exponent = None;
            } else {
                let bias = (1 << (T::EXPONENT_BITS - 1)) - 1;
                let e = self.bits.read(T::EXPONENT_BITS)? as i32 - bias;
                exponent = Some(e);
                if !mode.is_reversible() {
                    let above = e.saturating_sub(mode.min_exponent).saturating_add(2 * rank as i32 + 2);
                    precision = precision.min(above.max(0) as u32);
                }
            }
        }
        if mode.is_reversible() {
            precision = self.bits.read(T::BITS.ilog2())? as u32 + 1;
        }
        let used = self.bits.at - start;
        let room = u64::from(mode.max_bits).saturating_sub(used) as u32;
        self.planes(room, precision, len)?;
        self.finish(start, mode)?;
        self.transform(rank, order, mode.is_reversible());
        let integers = self.integers.iter().take(len);
        for (value, &integer) in self.values.iter_mut().zip(integers) {
            let integer = integer as i64;
            *value = match exponent {
                Some(e) => T::scale(integer, e),
                None => T::reinterpret(integer),
            };
        }
        Some(())
    }

    /// Skips what pads the block.
    fn finish(&mut self, start: u64, mode: &Mode) -> Option<()> {
        let used = self.bits.at - start;
        self.bits.skip(u64::from(mode.min_bits).saturating_sub(used))
    }

    /// Bit planes from the highest down: of coefficients that had a bit already, one each; of the others, run lengths.
    fn planes(&mut self, mut room: u32, precision: u32, len: usize) -> Option<()> {
        self.integers.fill(0);
        let lowest = T::BITS.saturating_sub(precision);
        let mut active = 0;
        for plane in (lowest..T::BITS).rev() {
            if room == 0 {
                break;
            }
            let plain = active.min(room as usize);
            room -= plain as u32;
            for run in self.integers.get_mut(..plain)?.chunks_mut(32) {
                let mut bits = self.bits.read(run.len() as u32)?;
                for integer in run {
                    *integer |= (bits & 1) << plane;
                    bits >>= 1;
                }
            }
            while active < len && room > 0 {
                room -= 1;
                if self.bits.read(1)? == 0 {
                    break;
                }
                // The last one needs no bit, as it is known that there is one.
                let most = (len - 1 - active).min(room as usize) as u32;
                let (zeros, found) = self.bits.zeros(most)?;
                room -= zeros + u32::from(found);
                active += zeros as usize;
                *self.integers.get_mut(active)? |= 1 << plane;
                active += 1;
            }
        }
        Some(())
    }

    /// From coefficients to integers: sign, order, and the inverse transform along every axis, the slowest first.
    fn transform(&mut self, rank: usize, order: &[u8], reversible: bool) {
        // Negabinary: the odd bits count negative.
        let negative = 0xaaaa_aaaa_aaaa_aaaa_u64 >> (64 - T::BITS);
        let mut placed = [0i64; 256];
        for (&at, &bits) in order.iter().zip(&self.integers) {
            if let Some(to) = placed.get_mut(usize::from(at)) {
                *to = wrap::<T>((bits ^ negative).wrapping_sub(negative) as i64);
            }
        }
        for axis in (0..rank).rev() {
            let step = 1 << (2 * axis);
            for start in 0..order.len() {
                if start / step % 4 == 0 {
                    let line = [start, start + step, start + 2 * step, start + 3 * step];
                    let vector = line.map(|at| placed.get(at).copied().unwrap_or(0));
                    let lifted = if reversible { lift_exactly::<T>(vector) } else { lift::<T>(vector) };
                    for (at, value) in line.into_iter().zip(lifted) {
                        if let Some(to) = placed.get_mut(at) {
                            *to = value;
                        }
                    }
                }
            }
        }
        for (to, from) in self.integers.iter_mut().zip(placed) {
            *to = from as u64;
        }
    }
}

/// Arithmetic is that of the width of the values.
#[inline]
fn wrap<T: Value>(x: i64) -> i64 {
    if T::BITS == 32 { i64::from(x as i32) } else { x }
}

/// The inverse of ZFP's transform of four values, near to the discrete cosine transform, in steps that add and shift.
fn lift<T: Value>([mut x, mut y, mut z, mut w]: [i64; 4]) -> [i64; 4] {
    let add = |a: i64, b: i64| wrap::<T>(a.wrapping_add(b));
    let sub = |a: i64, b: i64| wrap::<T>(a.wrapping_sub(b));
    // Sum and difference of two values of which the first is their mean.
    let unfold = |mean: &mut i64, half: &mut i64| {
        *half = add(*half, *mean);
        *mean = sub(add(*mean, *mean), *half);
    };
    y = add(y, w >> 1);
    w = sub(w, y >> 1);
    unfold(&mut w, &mut y);
    unfold(&mut x, &mut z);
    unfold(&mut z, &mut y);
    unfold(&mut x, &mut w);
    [x, y, z, w]
}

/// The inverse of the transform that loses nothing: repeated sums.
fn lift_exactly<T: Value>([x, mut y, mut z, mut w]: [i64; 4]) -> [i64; 4] {
    let add = |a: i64, b: i64| wrap::<T>(a.wrapping_add(b));
    w = add(w, z);
    z = add(z, y);
    w = add(w, z);
    y = add(y, x);
    z = add(z, y);
    w = add(w, z);
    [x, y, z, w]
}
