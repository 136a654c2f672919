//! Numbers as JSON documents spell them, to one element as stored.

use super::{ByteOrder, FloatType, IntegerType};
use crate::json::Json;

/// Bytes from the least significant on, in `order`.
fn ordered(mut bytes: Vec<u8>, order: ByteOrder) -> Vec<u8> {
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

impl IntegerType {
    /// The stored element that `spelled` stands for: a number (a fraction is cut, as NumPy does it), its digits as text,
    /// or a truth value. `None` if it does not fit.
    pub fn spelled(&self, spelled: &Json) -> Option<Vec<u8>> {
        let value = match spelled {
            Json::Bool(v) => i128::from(*v),
            Json::Text(text) => text.trim().parse().ok()?,
            Json::Float(v) if v.fract() == 0.0 => *v as i128,
            other => other.as_integer()?,
        };
        let bytes = value.to_le_bytes().get(..self.size)?.to_vec();
        let bits = 8 * u32::try_from(self.size).ok().filter(|size| (1..=8).contains(size))?;
        let fits = if self.signed {
            (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value)
        } else {
            (0..1i128 << bits).contains(&value)
        };
        fits.then(|| ordered(bytes, self.order))
    }
}

impl FloatType {
    /// The stored element that `spelled` stands for: a number, `NaN`, `-NaN` (with its sign), `Infinity`, `-Infinity` in any case and a few more
    /// spellings, or the bits in hex. `None` if it is none of these, a number that the type is too small for, or the type
    /// is not one of IEEE 754.
    pub fn spelled(&self, spelled: &Json) -> Option<Vec<u8>> {
        // The usual one, without a sign.
        const NAN: f64 = f64::from_bits(0x7ff8 << 48);
        let value = match spelled {
            Json::Text(text) => {
                if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    let bits = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 2 * self.size)?;
                    return Some(ordered(bits.to_le_bytes().get(..self.size)?.to_vec(), self.order));
                }
                match text.trim().to_ascii_lowercase().trim_end_matches('f') {
                    "nan" | "+nan" => NAN,
                    "-nan" => -NAN,
                    "infinity" | "in" | "+infinity" | "+in" => f64::INFINITY,
                    "-infinity" | "-in" => f64::NEG_INFINITY,
                    other => other.parse().ok().filter(|v: &f64| v.is_finite())?,
                }
            }
            Json::Bool(v) => f64::from(u8::from(*v)),
            other => other.as_f64()?,
        };
        if value.is_nan() && self.is_ieee() {
            return self.not_a_number(value.is_sign_negative());
        }
        if !self.is_ieee() {
            let bits = self.narrowed(value)?;
            return Some(ordered(bits.to_le_bytes().get(..self.size)?.to_vec(), self.order));
        }
        let rounded = match self.size {
            2 => half::f16::from_f64(value).to_f64(),
            4 => f64::from(value as f32),
            _ => value,
        };
        if value.is_finite() != rounded.is_finite() {
            return None;
        }
        let bytes = match self.size {
            2 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            4 => (value as f32).to_le_bytes().to_vec(),
            8 => value.to_le_bytes().to_vec(),
            _ => return None,
        };
        Some(ordered(bytes, self.order))
    }

    /// The usual NaN of IEEE 754 with a sign: a conversion between floats need not keep that.
    fn not_a_number(&self, negative: bool) -> Option<Vec<u8>> {
        let (positive, sign) = match self.size {
            2 => (0x7e00u64, 1 << 15),
            4 => (0x7fc0_0000, 1 << 31),
            8 => (0x7ff8 << 48, 1 << 63),
            _ => return None,
        };
        let bits = if negative { positive | sign } else { positive };
        Some(ordered(bits.to_le_bytes().get(..self.size)?.to_vec(), self.order))
    }

    /// The bits of a value in a layout of at most two bytes like those of IEEE 754, rounded to the nearest, ties to even.
    /// `None` for other layouts, and for numbers beyond the largest.
    fn narrowed(&self, value: f64) -> Option<u64> {
        let (exponent, mantissa) = (self.exponent_size, self.mantissa_size);
        if self.size > 2 || *self != FloatType::like_ieee(self.size, exponent, mantissa, self.order) {
            return None;
        }
        let infinity = ((1u64 << exponent) - 1) << mantissa;
        let lowest = 1 - i32::try_from(self.bias).ok()?;
        let magnitude = value.abs();
        let bits = if value.is_nan() {
            infinity | 1 << (mantissa - 1)
        } else if value.is_infinite() {
            infinity
        } else {
            // Below the lowest exponent numbers are as far apart as right above it.
            let own = (magnitude.to_bits() >> 52) as i32 - 1023;
            let scale = own.max(lowest);
            // Exact but for the rounding, which comes last: a power of two.
            let steps = (magnitude * 2f64.powi(mantissa as i32 - scale)).round_ties_even() as u64;
            let above = u64::try_from(scale - lowest).ok()?;
            // A mantissa that overflows makes the exponent one higher.
            let bits = (above << mantissa) + steps;
            if bits >= infinity {
                return None;
            }
            bits
        };
        Some(bits | u64::from(value.is_sign_negative()) << self.sign_position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    /// Every number of the small floats is the nearest to itself, and halves go to the even one.
    #[test]
    fn small_floats_are_rounded() {
        for (name, infinity) in
            [("bfloat16", 0x7f80u64), ("float8_e3m4", 0x70), ("float8_e4m3", 0x78), ("float8_e5m2", 0x7c)]
        {
            let Some(DType::Float(t)) = DType::from_zarr(name, ByteOrder::Little) else { panic!("{name}") };
            let value = |bits: u64| t.value(&bits.to_le_bytes()[..t.size]);
            for bits in 0..infinity {
                assert_eq!(t.narrowed(value(bits)), Some(bits), "{name} {bits:#x}");
                assert_eq!(t.narrowed(-value(bits)), Some(bits | 1 << t.sign_position));
                if bits + 1 < infinity {
                    let half = (value(bits) + value(bits + 1)) / 2.0;
                    assert_eq!(t.narrowed(half), Some(bits + (bits & 1)), "{name} {bits:#x}");
                }
            }
            assert_eq!(t.narrowed(f64::INFINITY), Some(infinity));
            assert!(value(t.narrowed(f64::NAN).unwrap()).is_nan());
            assert_eq!(t.narrowed(1e300), None);
            assert_eq!(value(infinity), f64::INFINITY);
        }
        let Some(DType::Float(t)) = DType::from_zarr("bfloat16", ByteOrder::Big) else { panic!() };
        assert_eq!(t.spelled(&Json::Float(1.5)), Some(vec![0x3f, 0xc0]));
        assert_eq!(t.spelled(&Json::Text("NaN".into())), Some(vec![0x7f, 0xc0]));
        assert_eq!(t.spelled(&Json::Text("0x3fc0".into())), Some(vec![0x3f, 0xc0]));
        assert_eq!(t.spelled(&Json::Text("-NaN".into())), Some(vec![0xff, 0xc0]));
    }

    #[test]
    fn a_nan_keeps_its_sign() {
        for (code, positive, negative) in [
            (">f2", "7e00", "fe00"),
            (">f4", "7fc00000", "ffc00000"),
            ("<f8", "000000000000f87f", "000000000000f8ff"),
        ] {
            let Some(DType::Float(t)) = DType::from_numpy(code) else { panic!("{code}") };
            let bits = |text: &str| -> Option<String> {
                let stored = t.spelled(&Json::Text(text.into()))?;
                Some(stored.iter().map(|b| format!("{b:02x}")).collect())
            };
            for (text, wanted) in [
                ("NaN", Some(positive)),
                ("+nan", Some(positive)),
                ("-NaN", Some(negative)),
                ("-nanf", Some(negative)),
                ("- NaN", None),
                ("--nan", None),
                ("nan(7)", None),
            ] {
                assert_eq!(bits(text).as_deref(), wanted, "{code} {text}");
            }
        }
    }
}
