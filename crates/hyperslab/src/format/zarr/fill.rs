//! Fill values: JSON in many spellings, to one element as stored.

use crate::dtype::{ByteOrder, DType};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, base64};

/// One element as stored of the fill value `spelled`. `null` has none, but where a type has an element for what is not there.
pub(super) fn element(dtype: &DType, spelled: &Json) -> Result<Option<Vec<u8>>> {
    if spelled.is_null() {
        return Ok(match dtype {
            // Zero would be a date like any other.
            DType::DateTime(t) => Some(ordered(i64::MIN.to_le_bytes().to_vec(), t.order)),
            _ => None,
        });
    }
    let size = dtype.size();
    let wrong = || {
        let text = spelled.to_string();
        let text: String = text.chars().take(80).collect();
        Error::new(ErrorKind::Corrupt, format!("the fill value {text} is none of type {dtype}"))
    };
    // A list of one stands for its item, as netCDF 4.8 wrote it.
    let spelled = match spelled {
        Json::List(items) if items.len() == 1 && !matches!(dtype, DType::Opaque { .. }) => &items[0],
        other => other,
    };
    let stored = match dtype {
        DType::Integer(t) => t.spelled(spelled),
        DType::Enum { .. } => match spelled {
            Json::Bool(v) => Some(vec![u8::from(*v)]),
            other => other.as_f64().map(|v| vec![u8::from(v != 0.0)]),
        },
        DType::Float(t) => t.spelled(spelled),
        DType::Complex { base } => match (&**base, spelled) {
            (DType::Float(t), Json::List(parts)) if parts.len() == 2 => {
                let parts: Option<Vec<Vec<u8>>> = parts.iter().map(|part| t.spelled(part)).collect();
                parts.map(|parts| parts.concat())
            }
            (DType::Float(t), real) => t.spelled(real).map(|mut real| {
                real.resize(size, 0);
                real
            }),
            _ => None,
        },
        DType::DateTime(t) => {
            let value = match spelled {
                Json::Text(text) if text.eq_ignore_ascii_case("nat") => Some(i64::MIN),
                other => other.as_integer().and_then(|v| i64::try_from(v).ok()),
            };
            value.map(|v| ordered(v.to_le_bytes().to_vec(), t.order))
        }
        DType::Utf32 { order, .. } => match spelled {
            Json::Text(text) => Some(padded(
                text.chars().flat_map(|c| ordered(u32::from(c).to_le_bytes().to_vec(), *order)).collect(),
                size,
            )),
            other => is_zero(other).then(|| vec![0; size]),
        },
        DType::String { .. } | DType::Opaque { .. } | DType::Compound { .. } | DType::Array { .. } => {
            match spelled {
                Json::Text(text) => bytes(text, size),
                Json::List(items) if matches!(dtype, DType::Opaque { .. }) => {
                    let items: Option<Vec<u8>> =
                        items.iter().map(|b| b.as_u64().and_then(|b| u8::try_from(b).ok())).collect();
                    items.filter(|items| items.len() <= size).map(|items| padded(items, size))
                }
                Json::List(items) => members(dtype, items.iter().map(Some))?,
                Json::Map(_) => match dtype {
                    DType::Compound { fields, .. } => {
                        members(dtype, fields.iter().map(|f| f.name.as_str().and_then(|n| spelled.get(n))))?
                    }
                    _ => None,
                },
                other => is_zero(other).then(|| vec![0; size]),
            }
        }
        _ => None,
    };
    stored.filter(|s| s.len() == size).map(Some).ok_or_else(wrong)
}

/// A compound, member by member.
fn members<'a>(
    dtype: &DType,
    items: impl ExactSizeIterator<Item = Option<&'a Json>>,
) -> Result<Option<Vec<u8>>> {
    let DType::Compound { fields, size } = dtype else { return Ok(None) };
    if items.len() != fields.len() {
        return Ok(None);
    }
    let mut out = Vec::new();
    for (field, item) in fields.iter().zip(items) {
        match item.map(|item| element(&field.dtype, item)).transpose()?.flatten() {
            Some(stored) => out.extend_from_slice(&stored),
            None => out.resize(out.len().saturating_add(field.dtype.size()).min(*size), 0),
        }
    }
    Ok(Some(out))
}

fn is_zero(spelled: &Json) -> bool {
    matches!(spelled, Json::Bool(false)) || spelled.as_f64() == Some(0.0)
}

fn padded(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    bytes.resize(size, 0);
    bytes
}

fn ordered(mut bytes: Vec<u8>, order: ByteOrder) -> Vec<u8> {
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

/// Bytes in base 64; text that is none is taken as it is.
fn bytes(text: &str, size: usize) -> Option<Vec<u8>> {
    let decoded = base64(text).filter(|b| b.len() <= size);
    let plain = || Some(text.as_bytes().to_vec()).filter(|b| b.len() <= size);
    decoded.or_else(plain).map(|b| padded(b, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(code: &str, json: &str) -> Option<Vec<u8>> {
        element(&DType::from_numpy(code).unwrap(), &Json::parse(json.as_bytes()).unwrap())
            .unwrap_or(Some(vec![]))
    }

    #[test]
    fn every_spelling_is_an_element() {
        assert_eq!(fill("<i2", "-2"), Some(vec![0xfe, 0xff]));
        assert_eq!(fill(">i2", "258"), Some(vec![1, 2]));
        assert_eq!(fill("<i2", "[7]"), Some(vec![7, 0]));
        assert_eq!(fill("<u8", "18446744073709551615"), Some(vec![0xff; 8]));
        assert_eq!(fill("<i4", "null"), None);
        assert_eq!(fill("|b1", "true"), Some(vec![1]));
        for text in ["\"NaN\"", "NaN", "\"nan\"", "\"NaNf\""] {
            assert!(f32::from_le_bytes(fill("<f4", text).unwrap().try_into().unwrap()).is_nan(), "{text}");
        }
        for text in ["\"-Infinity\"", "\"-inf\"", "-Infinity", "\"-Infinityf\""] {
            assert_eq!(fill("<f8", text), Some(f64::NEG_INFINITY.to_le_bytes().to_vec()), "{text}");
        }
        assert_eq!(fill("<f4", "\"0x7fc00001\""), Some(vec![1, 0, 0xc0, 0x7f]));
        assert_eq!(fill("<c8", "[1.0, \"NaN\"]").unwrap()[..4], 1f32.to_le_bytes());
        assert_eq!(fill("|S3", "\"YWI=\""), Some(b"ab\0".to_vec()));
        assert_eq!(fill("|S3", "\"\""), Some(vec![0; 3]));
        assert_eq!(fill("|V2", "\"AQI=\""), Some(vec![1, 2]));
        assert_eq!(fill("<U2", "\"é\""), Some(vec![0xe9, 0, 0, 0, 0, 0, 0, 0]));
        for text in ["\"NaT\"", "null"] {
            assert_eq!(fill("<M8[s]", text), Some(i64::MIN.to_le_bytes().to_vec()));
            assert_eq!(fill(">m8[D]", text), Some(i64::MIN.to_be_bytes().to_vec()));
        }
    }

    #[test]
    fn what_is_no_element_is_refused() {
        for (code, json) in [
            ("<f4", "1e39"),
            ("<f2", "70000"),
            ("<f8", "1e400"),
            ("<f4", "\"1e39\""),
            ("<i1", "300"),
            ("<u2", "-1"),
            ("<f4", "\"x\""),
            ("<f4", "{}"),
            ("|S1", "\"YWJj\""),
        ] {
            assert_eq!(fill(code, json), Some(vec![]), "{code} {json}");
        }
    }
}
