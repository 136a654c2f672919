//! Streams of bits, the most significant of a byte first: n-bit, scale-offset and szip.

/// Reads bits from bytes.
pub(super) struct BitReader<'a> {
    rest: &'a [u8],
    /// The next bits, from the top down; zeros below.
    held: u64,
    /// How many bits are held.
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        BitReader { rest: input, held: 0, count: 0 }
    }

    /// Holds at least 57 bits, or all that are left.
    #[inline]
    fn refill(&mut self) {
        if let Some((next, _)) = self.rest.split_first_chunk::<8>() {
            // Whole bytes of the next eight that fit; bits taken in excess are the same when read again.
            self.held |= u64::from_be_bytes(*next) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = self.rest.get(bytes as usize..).unwrap_or_default();
            self.count += 8 * bytes;
        } else {
            while self.count <= 56
                && let Some((&byte, after)) = self.rest.split_first()
            {
                self.held |= u64::from(byte) << (56 - self.count);
                self.rest = after;
                self.count += 8;
            }
        }
    }

    /// The next `n` bits, at most 56, as a number; `None` at the end.
    #[inline]
    pub(super) fn read(&mut self, n: u32) -> Option<u64> {
        if self.count < n {
            self.refill();
            if self.count < n {
                return None;
            }
        }
        // In two steps, as a shift by 64 is none.
        let value = self.held >> 1 >> (63 - n);
        self.held <<= n;
        self.count -= n;
        Some(value)
    }

    /// The next `n` bits, at most 128.
    #[inline]
    pub(super) fn read_wide(&mut self, n: u32) -> Option<u128> {
        let mut value = 0;
        let mut left = n;
        while left > 0 {
            let step = left.min(32);
            value = value << step | u128::from(self.read(step)?);
            left -= step;
        }
        Some(value)
    }

    /// The number of zeros before the next one, which is read too.
    #[inline]
    pub(super) fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0u32;
        loop {
            if self.count == 0 {
                self.refill();
                if self.count == 0 {
                    return None;
                }
            }
            // Bits below `count` may be those of bytes not yet taken.
            let run = self.held.leading_zeros();
            if run < self.count {
                self.held = self.held << run << 1;
                self.count -= run + 1;
                return zeros.checked_add(run);
            }
            zeros = zeros.checked_add(self.count)?;
            self.held = 0;
            self.count = 0;
        }
    }
}

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet written, in the lower `count` bits; fewer than 8 between calls.
    held: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter { out, held: 0, count: 0 }
    }

    /// Appends the lower `n` bits of `value`, at most 56.
    #[inline]
    pub(super) fn write(&mut self, value: u64, n: u32) {
        self.held = self.held << n | value & ((1 << n) - 1);
        self.count += n;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.held >> self.count) as u8);
        }
    }

    /// Appends the lower `n` bits of `value`, at most 128.
    pub(super) fn write_wide(&mut self, value: u128, n: u32) {
        let mut left = n;
        while left > 0 {
            let step = left.min(32);
            left -= step;
            self.write((value >> left) as u64, step);
        }
    }

    /// Appends `zeros` zeros and a one.
    pub(super) fn unary(&mut self, zeros: u32) {
        let mut left = zeros;
        while left > 32 {
            self.write(0, 32);
            left -= 32;
        }
        self.write(1, left + 1);
    }

    /// Fills the last byte with zeros.
    pub(super) fn finish(mut self) {
        if self.count > 0 {
            self.write(0, 8 - self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(parts in prop::collection::vec((any::<u64>(), 0u32..=56, 0u32..100), 0..60)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &(value, n, zeros) in &parts {
                writer.write(value, n);
                writer.unary(zeros);
                writer.write_wide(u128::from(value) << 40, n + 64);
            }
            writer.finish();
            let mut reader = BitReader::new(&bytes);
            for &(value, n, zeros) in &parts {
                prop_assert_eq!(reader.read(n), Some(value & ((1 << n) - 1)));
                prop_assert_eq!(reader.unary(), Some(zeros));
                let wide = u128::from(value) << 40 & ((1 << (n + 64)) - 1);
                prop_assert_eq!(reader.read_wide(n + 64), Some(wide));
            }
            prop_assert!(reader.read(8).is_none());
        }
    }
}
