//! The value of one stored floating-point number of any layout.

use super::{ByteOrder, FloatType, Normalization};

impl FloatType {
    /// The value of one stored element, rounded to the nearest `f64` (ties to even). Layouts wider than 128 bits lose
    /// what lies above.
    pub fn value(&self, raw: &[u8]) -> f64 {
        if self.is_ieee() {
            return self.ieee_value(raw);
        }
        let bits = self.bits(raw);
        let negative = field(bits, self.sign_position, 1) == 1;
        let exponent = field(bits, self.exponent_position, self.exponent_size);
        let mantissa = field(bits, self.mantissa_position, self.mantissa_size);
        let implied = self.normalization == Normalization::Implied;
        // Without an implied bit, the leading bit is stored and says nothing about infinity.
        let fraction_size = if implied { self.mantissa_size } else { self.mantissa_size.saturating_sub(1) };
        let all_ones = field(u128::MAX, 0, self.exponent_size);
        let magnitude = if exponent == all_ones && self.exponent_size > 0 && self.order != ByteOrder::Vax {
            if field(mantissa, 0, fraction_size) == 0 { f64::INFINITY } else { f64::NAN }
        } else {
            let bias = i128::from(self.bias);
            // A denormal number has the scale of the smallest exponent and no implied bit.
            let (whole, scale) = match (implied, exponent) {
                (true, 0) => (mantissa, 1 - bias),
                (true, e) => (
                    mantissa | 1u128.checked_shl(self.mantissa_size).unwrap_or(0),
                    i128::try_from(e).unwrap_or(i128::MAX).saturating_sub(bias),
                ),
                (false, e) => (mantissa, i128::try_from(e).unwrap_or(i128::MAX).saturating_sub(bias)),
            };
            scaled(whole, scale.saturating_sub(i128::from(fraction_size)))
        };
        if negative { -magnitude } else { magnitude }
    }

    fn ieee_value(&self, raw: &[u8]) -> f64 {
        let bits = self.bits(raw);
        // The casts keep all bits: the sizes are those of `is_ieee`.
        match self.size {
            2 => half::f16::from_bits(bits as u16).to_f64(),
            4 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits as u64),
        }
    }

    /// The element as one little-endian number.
    fn bits(&self, raw: &[u8]) -> u128 {
        let n = raw.len();
        (0..n.min(16)).fold(0, |v, i| {
            let byte = match self.order {
                ByteOrder::Little => raw.get(i),
                ByteOrder::Big => raw.get(n - 1 - i),
                // Words from the end, each as it is.
                ByteOrder::Vax => raw.get((n - n.min(i / 2 * 2 + 2)) + i % 2),
            };
            v | u128::from(byte.copied().unwrap_or(0)) << (8 * i)
        })
    }
}

/// `size` bits from `position`.
fn field(bits: u128, position: u32, size: u32) -> u128 {
    let shifted = bits.checked_shr(position).unwrap_or(0);
    match 1u128.checked_shl(size) {
        Some(end) => shifted & (end - 1),
        None => shifted,
    }
}

/// `whole` × 2^`scale`, rounded to nearest, ties to even.
fn scaled(whole: u128, scale: i128) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let size = i128::from(128 - whole.leading_zeros());
    let top = scale.saturating_add(size - 1);
    if top > 1023 {
        return f64::INFINITY;
    }
    // Bits that the result can hold: fewer below the smallest normal number.
    let keep = if top >= -1022 { 53 } else { 53 - (-1022 - top) };
    if keep < 0 {
        return 0.0;
    }
    let drop = size - keep;
    let (kept, scale) = if drop > 0 {
        // `drop` is at most 128, because `keep` is not negative.
        let kept = whole.checked_shr(drop as u32).unwrap_or(0);
        let lost = field(whole, 0, drop as u32);
        let half = 1u128 << (drop - 1);
        (kept + u128::from(lost > half || (lost == half && kept & 1 == 1)), scale + drop)
    } else {
        (whole, scale)
    };
    // Two exact steps, since 2^scale alone may not be representable; scale lies within ±1200 here.
    let half = (scale / 2) as i32;
    kept as f64 * 2f64.powi(half) * 2f64.powi(scale as i32 - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IEEE binary64 spelled so that the general path is taken.
    fn value(raw: u64) -> f64 {
        let t = FloatType::ieee(8, ByteOrder::Little).unwrap();
        let general = FloatType { precision: 63, ..t };
        general.value(&raw.to_le_bytes())
    }

    #[test]
    fn the_general_path_agrees_with_the_machine() {
        for x in
            [0.0, -0.0, 1.0, -1.5, 0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310, f64::INFINITY, 1e300]
        {
            assert_eq!(value(x.to_bits()).to_bits(), x.to_bits(), "{x}");
        }
        assert!(value(f64::NAN.to_bits()).is_nan());
    }

    #[test]
    fn other_layouts() {
        let bfloat = FloatType {
            size: 2,
            precision: 16,
            sign_position: 15,
            exponent_position: 7,
            exponent_size: 8,
            mantissa_size: 7,
            ..FloatType::ieee(4, ByteOrder::Little).unwrap()
        };
        assert_eq!(bfloat.value(&0x3fc0u16.to_le_bytes()), 1.5);
        // x87: 64 bits of mantissa with its leading bit, in 16 bytes.
        let x87 = FloatType {
            size: 16,
            precision: 80,
            sign_position: 79,
            exponent_position: 64,
            exponent_size: 15,
            mantissa_size: 64,
            bias: 16383,
            normalization: Normalization::None,
            ..FloatType::ieee(8, ByteOrder::Little).unwrap()
        };
        let raw = (0x3fffu128 << 64 | 0xc000_0000_0000_0000).to_le_bytes();
        assert_eq!(x87.value(&raw), 1.5);
        assert_eq!(x87.value(&(0x7fffu128 << 64 | 1 << 63).to_le_bytes()), f64::INFINITY);
        // A tie between two doubles goes to the even one; just above it goes up.
        let near = |low: u128| x87.value(&(0x3fffu128 << 64 | 1 << 63 | low).to_le_bytes());
        assert_eq!(near(1 << 10), 1.0);
        assert_eq!(near((1 << 10) + 1), 1.0 + f64::EPSILON);
        // VAX F: 1.5 is 0x40c0 in the first word; its bias is 129 with an implied bit.
        let vax =
            FloatType { order: ByteOrder::Vax, bias: 129, ..FloatType::ieee(4, ByteOrder::Little).unwrap() };
        assert_eq!(vax.value(&[0xc0, 0x40, 0, 0]), 1.5);
    }
}
