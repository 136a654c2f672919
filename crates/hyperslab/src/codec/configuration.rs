//! The configuration of a Zarr codec: JSON members, read with defaults and checked.

use crate::dtype::{ByteOrder, DType};
use crate::error::Result;
use crate::json::{Json, wrong_member};

/// An integer member within bounds; `default` if it is missing or `null`.
pub(super) fn integer(configuration: &Json, name: &str, default: i64, low: i64, high: i64) -> Result<i64> {
    match configuration.get(name) {
        None | Some(Json::Null) => Ok(default),
        Some(value) => match value.as_integer().and_then(|v| i64::try_from(v).ok()) {
            Some(v) if (low..=high).contains(&v) => Ok(v),
            _ => Err(wrong_member(name, format_args!("{value} is not a number from {low} to {high}"))),
        },
    }
}

/// A text member; `None` if it is missing or `null`.
pub(super) fn text<'a>(configuration: &'a Json, name: &str) -> Result<Option<&'a str>> {
    match configuration.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(value) => Err(wrong_member(name, format_args!("{value} is no text"))),
    }
}

/// A float member.
pub(super) fn float(configuration: &Json, name: &str) -> Result<f64> {
    let value = configuration.get(name);
    value.and_then(Json::as_f64).ok_or_else(|| wrong_member(name, "a number is missing"))
}

/// An element type, as NumPy's code or as a name of Zarr 3; `default` if it is missing.
pub(super) fn dtype(configuration: &Json, name: &str, default: &DType) -> Result<DType> {
    match text(configuration, name)? {
        None => Ok(default.clone()),
        Some(code) => DType::from_numpy(code)
            .or_else(|| DType::from_zarr(code, ByteOrder::Little))
            .ok_or_else(|| wrong_member(name, format_args!("the type {code:?} is not known here"))),
    }
}

/// A number in one of the forms that codecs compute with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    pub(super) size: usize,
    pub(super) order: ByteOrder,
    pub(super) kind: ScalarKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Signed,
    Unsigned,
    Float,
}

impl Scalar {
    /// The scalar of a numeric type; truth values count as unsigned.
    pub(super) fn of(dtype: &DType) -> Option<Scalar> {
        match dtype {
            DType::Integer(t) if t.is_whole() && matches!(t.size, 1 | 2 | 4 | 8) => Some(Scalar {
                size: t.size,
                order: t.order,
                kind: if t.signed { ScalarKind::Signed } else { ScalarKind::Unsigned },
            }),
            DType::DateTime(t) => Some(Scalar { size: 8, order: t.order, kind: ScalarKind::Signed }),
            DType::Float(t) if t.is_ieee() => {
                Some(Scalar { size: t.size, order: t.order, kind: ScalarKind::Float })
            }
            other if other.is_bool() => {
                Some(Scalar { size: 1, order: ByteOrder::Little, kind: ScalarKind::Unsigned })
            }
            _ => None,
        }
    }

    /// The same, or an error that says what the codec cannot do.
    pub(super) fn wanted(codec: &str, dtype: &DType) -> Result<Scalar> {
        Scalar::of(dtype).ok_or_else(|| {
            crate::error::Error::unsupported(format_args!("{codec} of elements of type {dtype}"))
        })
    }

    /// Its bits, sign-extended to 64, in the first bytes of `raw`.
    pub(super) fn bits(&self, raw: &[u8]) -> u64 {
        let mut bits = 0u64;
        for i in 0..self.size {
            let at = if self.order == ByteOrder::Big { self.size - 1 - i } else { i };
            bits |= u64::from(raw.get(at).copied().unwrap_or(0)) << (8 * i);
        }
        let spare = 64 - 8 * self.size as u32;
        if self.kind == ScalarKind::Signed { (((bits << spare) as i64) >> spare) as u64 } else { bits }
    }

    /// Writes the low bits into the first bytes of `raw`.
    pub(super) fn put_bits(&self, bits: u64, raw: &mut [u8]) {
        for i in 0..self.size {
            let at = if self.order == ByteOrder::Big { self.size - 1 - i } else { i };
            if let Some(byte) = raw.get_mut(at) {
                *byte = (bits >> (8 * i)) as u8;
            }
        }
    }

    /// Its value.
    pub(super) fn value(&self, raw: &[u8]) -> f64 {
        let bits = self.bits(raw);
        match (self.kind, self.size) {
            (ScalarKind::Signed, _) => bits as i64 as f64,
            (ScalarKind::Unsigned, _) => bits as f64,
            (ScalarKind::Float, 2) => half::f16::from_bits(bits as u16).to_f64(),
            (ScalarKind::Float, 4) => f64::from(f32::from_bits(bits as u32)),
            (ScalarKind::Float, _) => f64::from_bits(bits),
        }
    }

    /// Writes a value: floats rounded, integers cut to whole numbers and wrapped, as C casts.
    pub(super) fn put(&self, value: f64, raw: &mut [u8]) {
        let bits = match (self.kind, self.size) {
            (ScalarKind::Float, 2) => u64::from(half::f16::from_f64(value).to_bits()),
            (ScalarKind::Float, 4) => u64::from((value as f32).to_bits()),
            (ScalarKind::Float, _) => value.to_bits(),
            (ScalarKind::Unsigned, 8) if value >= 0.0 => value as u64,
            _ => value as i64 as u64,
        };
        self.put_bits(bits, raw);
    }

    /// Writes a value of another scalar, without a detour over floats between integers.
    pub(super) fn convert(&self, from: &Scalar, raw: &[u8], out: &mut [u8]) {
        let float = |s: &Scalar| s.kind == ScalarKind::Float;
        if !float(self) && !float(from) || self.kind == from.kind && self.size == from.size {
            self.put_bits(from.bits(raw), out);
        } else {
            self.put(from.value(raw), out);
        }
    }
}
