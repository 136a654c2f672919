//! Fill values: one stored element as JSON.

use crate::dtype::{ByteOrder, DType, FloatType};
use crate::json::{Json, to_base64};

/// One stored element of a [storable](super::types::storable) type. `plain`: text stands as it is, as netCDF does it.
pub(super) fn spelled(dtype: &DType, stored: &[u8], version: u8, plain: bool) -> Json {
    match dtype {
        dtype if dtype.is_bool() => Json::Bool(stored.iter().any(|&b| b != 0)),
        DType::Integer(t) => Json::Integer(t.value(stored)),
        DType::Float(t) => float(t, stored, version),
        DType::Complex { base } => {
            let (re, im) = stored.split_at(base.size().min(stored.len()));
            Json::List([re, im].map(|part| spelled(base, part, version, plain)).to_vec())
        }
        DType::DateTime(t) => match t.value(stored) {
            Some(value) => Json::Integer(value.into()),
            None => Json::Text("NaT".into()),
        },
        DType::Utf32 { order, .. } => {
            let units = stored.as_chunks::<4>().0.iter().map(|unit| match order {
                ByteOrder::Big => u32::from_be_bytes(*unit),
                _ => u32::from_le_bytes(*unit),
            });
            let text: String = units.filter_map(char::from_u32).collect();
            Json::Text(text.trim_end_matches('\0').to_owned())
        }
        DType::String { .. } => {
            let end = stored.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
            let text = stored.get(..end).unwrap_or(stored);
            match std::str::from_utf8(text) {
                Ok(text) if plain => Json::Text(text.to_owned()),
                _ => Json::Text(to_base64(text)),
            }
        }
        _ => Json::Text(to_base64(stored)),
    }
}

/// A float as a number with all its digits, or the word for it; in version 3 the bits of a NaN that is not the usual one.
pub(super) fn float(t: &FloatType, stored: &[u8], version: u8) -> Json {
    let value = t.value(stored);
    if value.is_nan() {
        let mut bits = stored.to_vec();
        if t.order == ByteOrder::Little {
            bits.reverse();
        }
        let usual: &[u8] = match t.size {
            2 => &[0x7e, 0],
            4 => &[0x7f, 0xc0, 0, 0],
            _ => &[0x7f, 0xf8, 0, 0, 0, 0, 0, 0],
        };
        if version == 3 && bits != usual {
            let hex: String = bits.iter().map(|b| format!("{b:02x}")).collect();
            return Json::Text(format!("0x{hex}"));
        }
        return Json::Text("NaN".into());
    }
    number(value)
}

/// A number, or the word for what JSON has none for.
pub(super) fn number(value: f64) -> Json {
    if value.is_nan() {
        Json::Text("NaN".into())
    } else if value.is_infinite() {
        Json::Text(if value < 0.0 { "-Infinity" } else { "Infinity" }.into())
    } else {
        Json::Float(value)
    }
}
