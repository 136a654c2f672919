//! Values in CDL.

use super::number::{Conversion, general, with_point};
use super::text::{Place, quoted};
use hyperslab::convention::netcdf::{NetcdfView, Type};
use hyperslab::dtype::{DType, NetcdfType, Packing};
use hyperslab::model::Value;

/// How numbers are printed.
pub(super) struct Formats {
    /// Significant digits of `float` and `double`.
    single: usize,
    double: usize,
    /// Whether the user gave them, so that they come before a variable's own format.
    single_given: bool,
    double_given: bool,
}

/// How the numbers of one variable are printed.
pub(super) enum Own {
    Digits(usize),
    Format(Conversion),
}

impl Formats {
    /// From `f[,d]`.
    pub(super) fn new(precision: Option<&str>) -> Result<Formats, String> {
        let mut formats = Formats { single: 7, double: 15, single_given: false, double_given: false };
        let Some(text) = precision else { return Ok(formats) };
        let (single, double) = text.split_once(',').unwrap_or((text, ""));
        let digits = |text: &str| match text.trim().parse() {
            Ok(n @ 1..=20) => Ok(n),
            _ => Err(format!("-p {text}: 1 to 20 significant digits can be shown")),
        };
        if !single.is_empty() {
            (formats.single, formats.single_given) = (digits(single)?, true);
        }
        if !double.is_empty() {
            (formats.double, formats.double_given) = (digits(double)?, true);
        }
        Ok(formats)
    }

    /// The format of a variable's numbers, with `own` as its attribute `C_format`.
    pub(super) fn of(&self, kind: Type, own: Option<&str>) -> Own {
        let float = matches!(kind, Type::Atomic(NetcdfType::Float) | Type::Atomic(NetcdfType::Double));
        let given = kind == Type::Atomic(NetcdfType::Float) && self.single_given
            || kind == Type::Atomic(NetcdfType::Double) && self.double_given;
        let own = own.and_then(Conversion::parse).filter(|c| !given && c.is_float() == float);
        let digits = if kind == Type::Atomic(NetcdfType::Float) { self.single } else { self.double };
        own.map_or(Own::Digits(digits), Own::Format)
    }

    /// A value of an attribute, with the suffix that tells its type.
    pub(super) fn attribute(&self, kind: Type, value: &Value) -> String {
        let suffix = match kind {
            Type::Atomic(NetcdfType::Byte) => "b",
            Type::Atomic(NetcdfType::Short) => "s",
            Type::Atomic(NetcdfType::UByte) => "UB",
            Type::Atomic(NetcdfType::UShort) => "US",
            Type::Atomic(NetcdfType::UInt) => "U",
            Type::Atomic(NetcdfType::Int64) => "LL",
            Type::Atomic(NetcdfType::UInt64) => "ULL",
            Type::Atomic(NetcdfType::Float) => "f",
            _ => "",
        };
        match value {
            Value::Single(v) if v.is_finite() => {
                format!("{}{suffix}", with_point(f64::from(*v), self.single))
            }
            Value::Double(v) if v.is_finite() => format!("{}{suffix}", with_point(*v, self.double)),
            Value::Single(v) => special(f64::from(*v), "f"),
            Value::Double(v) => special(*v, ""),
            other => format!("{other}{suffix}"),
        }
    }

    /// An element of a variable of numbers.
    pub(super) fn element(&self, own: &Own, value: &Value) -> String {
        let float = |v: f64, suffix| match own {
            _ if !v.is_finite() => special(v, suffix),
            Own::Digits(digits) => general(v, *digits, false),
            Own::Format(conversion) => conversion.float(v),
        };
        match (value, own) {
            (Value::Single(v), _) => float(f64::from(*v), "f"),
            (Value::Double(v), _) => float(*v, ""),
            (Value::Integer(v), Own::Format(conversion)) => conversion.integer(*v),
            (other, _) => other.to_string(),
        }
    }

    /// A value of any type, alone or as part of another.
    pub(super) fn value(&self, view: &NetcdfView, dtype: &DType, value: &Value) -> Vec<u8> {
        match (dtype, value) {
            (DType::Compound { fields, .. }, Value::Compound(_, values)) => {
                let parts = fields.iter().zip(values).map(|(f, v)| self.value(view, &f.dtype, v));
                braces(parts)
            }
            (DType::Array { base, dims }, value) => {
                let mut flat = Vec::new();
                flatten(value, dims.len(), &mut flat);
                if matches!(view.type_of(base), Some(Type::Atomic(NetcdfType::Char))) {
                    let text: Vec<u8> = flat.iter().map(|v| character(v)).collect();
                    let length = dims.last().and_then(|&n| usize::try_from(n).ok()).unwrap_or(1).max(1);
                    return braces(text.chunks(length).map(|row| quoted(row, Place::Member)));
                }
                braces(flat.into_iter().map(|v| self.value(view, base, v)))
            }
            (DType::VarLen { base, .. }, Value::List(values)) => {
                braces(values.iter().map(|v| self.value(view, base, v)))
            }
            (DType::VarLen { .. }, _) => b"{}".to_vec(),
            (DType::Enum { .. }, Value::Bool(v)) => if *v { "TRUE" } else { "FALSE" }.into(),
            (DType::Enum { .. }, Value::Enum { name: Some(name), .. }) => name.as_bytes().to_vec(),
            (DType::Opaque { .. }, Value::Bytes(bytes)) => opaque(bytes),
            (DType::String { size: 1, .. }, value) => quoted(&[character(value)], Place::Member),
            (DType::String { .. } | DType::VarString { .. }, Value::Text(text)) => string(text.as_bytes()),
            (DType::String { .. } | DType::VarString { .. }, Value::Bytes(bytes)) => string(bytes),
            (DType::VarString { .. }, _) => b"NIL".to_vec(),
            (DType::Float(t), value) if t.size == 4 => self.element(&Own::Digits(self.single), value).into(),
            (_, value) => self.element(&Own::Digits(self.double), value).into(),
        }
    }
}

/// A value as a double, if it is a number.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(v) => Some(*v as f64),
        Value::Single(v) => Some(f64::from(*v)),
        Value::Double(v) => Some(*v),
        _ => None,
    }
}

/// A string. The C program shows a vertical tab as a newline.
pub(super) fn string(text: &[u8]) -> Vec<u8> {
    let text: Vec<u8> = text.iter().map(|&b| if b == 0x0b { b'\n' } else { b }).collect();
    quoted(&text, Place::Whole)
}

fn character(value: &Value) -> u8 {
    match value {
        Value::Text(text) => text.as_bytes().first().copied().unwrap_or(0),
        Value::Bytes(bytes) => bytes.first().copied().unwrap_or(0),
        _ => 0,
    }
}

fn flatten<'a>(value: &'a Value, depth: usize, out: &mut Vec<&'a Value>) {
    match value {
        Value::List(values) if depth > 0 => values.iter().for_each(|v| flatten(v, depth - 1, out)),
        other => out.push(other),
    }
}

fn braces(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let parts: Vec<_> = parts.collect();
    let mut out = b"{".to_vec();
    out.extend(parts.join(&b", "[..]));
    out.push(b'}');
    out
}

fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"0X".to_vec();
    bytes.iter().for_each(|b| out.extend(format!("{b:02X}").bytes()));
    out
}

fn special(value: f64, suffix: &str) -> String {
    match (value.is_nan(), value > 0.0) {
        (true, _) => format!("NaN{suffix}"),
        (_, true) => format!("Infinity{suffix}"),
        _ => format!("-Infinity{suffix}"),
    }
}

/// A stored integer of up to 64 bits.
pub(super) fn integer(dtype: &DType, stored: &[u8]) -> Option<i128> {
    let DType::Integer(t) = dtype else { return None };
    let mut packed = Vec::new();
    Packing::new(dtype).ok()?.pack(stored, 1, &mut packed).ok()?;
    let bits = packed.iter().take(8).rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
    let unused = 64u32.saturating_sub(8 * packed.len() as u32).min(63);
    Some(if t.signed { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits) })
}

/// Whether a value is the fill value, as the C program sees it: floats need not be quite equal.
pub(super) fn is_fill(fill: &Value, value: &Value) -> bool {
    match (fill, value) {
        (Value::Single(a), Value::Single(b)) => {
            (*a > 0.0) == (*b > 0.0)
                && (a.is_finite() && b.is_finite() && (a - b).abs() <= (f32::EPSILON * b).abs()
                    || a.is_nan() && b.is_nan()
                    || a.is_infinite() && b.is_infinite())
        }
        (Value::Double(a), Value::Double(b)) => {
            (*a > 0.0) == (*b > 0.0)
                && (a.is_finite() && b.is_finite() && (a - b).abs() <= (f64::EPSILON * b).abs()
                    || a.is_nan() && b.is_nan()
                    || a.is_infinite() && b.is_infinite())
        }
        (a, b) => a == b,
    }
}
