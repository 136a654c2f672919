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
    /// The stored element that `spelled` stands for: a number, `NaN`, `Infinity`, `-Infinity` in any case and a few more
    /// spellings, or the bits in hex. `None` if it is none of these, a number that the type is too small for, or the type
    /// is not one of IEEE 754.
    pub fn spelled(&self, spelled: &Json) -> Option<Vec<u8>> {
        let value = match spelled {
            Json::Text(text) => {
                if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    let bits = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 2 * self.size)?;
                    return Some(ordered(bits.to_le_bytes().get(..self.size)?.to_vec(), self.order));
                }
                match text.trim().to_ascii_lowercase().trim_end_matches('f') {
                    "nan" | "-nan" => f64::NAN,
                    "infinity" | "in" | "+infinity" | "+in" => f64::INFINITY,
                    "-infinity" | "-in" => f64::NEG_INFINITY,
                    other => other.parse().ok().filter(|v: &f64| v.is_finite())?,
                }
            }
            Json::Bool(v) => f64::from(u8::from(*v)),
            other => other.as_f64()?,
        };
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
}
