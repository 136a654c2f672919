//! Attributes: JSON values as typed elements.

use crate::dtype::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};
use crate::error::{Error, Result};
use crate::json::Json;
use crate::model::{Attribute, AttributeEntry, Dataspace};
use crate::shape::Name;
use bytes::Bytes;

/// All attributes, sorted by the bytes of their names, with the order of the document.
pub(super) fn entries(document: &Json) -> Vec<AttributeEntry> {
    let members = document.as_map().unwrap_or(&[]);
    let mut entries: Vec<AttributeEntry> = Vec::with_capacity(members.len());
    for (i, (name, value)) in members.iter().enumerate() {
        // Of several of one name the last counts.
        if members.iter().skip(i + 1).take(1000).any(|(other, _)| other == name) {
            continue;
        }
        let name = Name::from(name.as_str());
        entries.push(match typed(value) {
            Ok((dtype, space, data)) => Ok(Attribute { name, dtype, space, data, order: Some(i as u64) }),
            Err(e) => Err((Some(name), e)),
        });
    }
    let key = |entry: &AttributeEntry| match entry {
        Ok(a) => Some(a.name.clone()),
        Err((name, _)) => name.clone(),
    };
    entries.sort_by_key(key);
    entries
}

/// What a list or a single value is made of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Signed,
    Unsigned,
    Float,
    Bool,
    Text,
}

fn kind(value: &Json) -> Option<Kind> {
    match value {
        Json::Integer(v) if i64::try_from(*v).is_ok() => Some(Kind::Signed),
        Json::Integer(v) if u64::try_from(*v).is_ok() => Some(Kind::Unsigned),
        Json::Float(_) => Some(Kind::Float),
        Json::Bool(_) => Some(Kind::Bool),
        Json::Text(_) => Some(Kind::Text),
        _ => None,
    }
}

/// The one kind that holds all values without loss.
fn common(values: &[Json]) -> Option<Kind> {
    let exact = |v: &Json| match v {
        Json::Integer(v) => v.unsigned_abs() <= 1 << 53,
        _ => true,
    };
    values.iter().map(kind).reduce(|a, b| match (a?, b?) {
        (a, b) if a == b => Some(a),
        (Kind::Signed | Kind::Float, Kind::Signed | Kind::Float) if values.iter().all(exact) => {
            Some(Kind::Float)
        }
        (Kind::Signed | Kind::Unsigned, Kind::Signed | Kind::Unsigned)
            if values.iter().all(|v| v.as_u64().is_some()) =>
        {
            Some(Kind::Unsigned)
        }
        _ => None,
    })?
}

/// Numbers, truth values, text and lists of one kind of these as such; everything else as JSON text.
fn typed(value: &Json) -> Result<(DType, Dataspace, Bytes)> {
    let list = |n: usize| Dataspace::Simple { dims: vec![n as u64], max: vec![Some(n as u64)] };
    match value {
        Json::Null => Ok((text_type(1), Dataspace::Null, Bytes::new())),
        Json::List(values) if values.is_empty() => Ok((integer(true), list(0), Bytes::new())),
        Json::List(values) => match common(values) {
            Some(kind) => {
                let (dtype, data) = elements(kind, values)?;
                Ok((dtype, list(values.len()), data))
            }
            None => json(value),
        },
        other => match kind(other) {
            Some(kind) => {
                let (dtype, data) = elements(kind, std::slice::from_ref(other))?;
                Ok((dtype, Dataspace::Scalar, data))
            }
            None => json(other),
        },
    }
}

fn json(value: &Json) -> Result<(DType, Dataspace, Bytes)> {
    let text = value.to_string();
    Ok((text_type(text.len()), Dataspace::Scalar, text.into_bytes().into()))
}

fn text_type(size: usize) -> DType {
    DType::String { size: size.max(1), padding: StringPadding::NullPadded, charset: CharSet::Utf8 }
}

fn integer(signed: bool) -> DType {
    DType::Integer(IntegerType::new(8, ByteOrder::Little, signed))
}

fn elements(kind: Kind, values: &[Json]) -> Result<(DType, Bytes)> {
    let mut data = Vec::new();
    let dtype = match kind {
        Kind::Signed | Kind::Unsigned => {
            // Both have the same bits.
            data.extend(values.iter().flat_map(|v| (v.as_integer().unwrap_or(0) as u64).to_le_bytes()));
            integer(kind == Kind::Signed)
        }
        Kind::Float => {
            data.extend(values.iter().flat_map(|v| v.as_f64().unwrap_or(f64::NAN).to_le_bytes()));
            FloatType::ieee(8, ByteOrder::Little)
                .map(DType::Float)
                .ok_or_else(|| Error::unsupported("floats of eight bytes"))?
        }
        Kind::Bool => {
            data.extend(values.iter().map(|v| u8::from(*v == Json::Bool(true))));
            DType::bool()
        }
        Kind::Text => {
            let texts = || values.iter().map(|v| v.as_str().unwrap_or(""));
            let size = texts().map(str::len).max().unwrap_or(0).max(1);
            let total = size.saturating_mul(values.len());
            let given: usize = texts().map(str::len).sum();
            // One long text among many short ones must not take memory for all of them.
            if total > (1 << 20) + given.saturating_mul(64) {
                return Err(Error::limit("bytes of a list of texts", total as u128, 1 << 20));
            }
            for text in texts() {
                data.extend_from_slice(text.as_bytes());
                data.resize(data.len() + size - text.len(), 0);
            }
            text_type(size)
        }
    };
    Ok((dtype, data.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(json: &str) -> String {
        let document = Json::parse(format!("{{\"a\": {json}}}").as_bytes()).unwrap();
        let a = entries(&document).pop().unwrap().unwrap();
        format!("{} {:?} {}", a.dtype, a.space.dims(), a.data.len())
    }

    #[test]
    fn values_keep_their_kind() {
        for (json, wanted) in [
            ("1", "i64le [] 8"),
            ("18446744073709551615", "u64le [] 8"),
            ("1.5", "f64le [] 8"),
            ("[1, 2.5]", "f64le [2] 16"),
            ("[1, 9007199254740993, 2.5]", "str24:utf8:nullpad [] 24"),
            ("[1, 18446744073709551615]", "u64le [2] 16"),
            ("true", "enum<i8>{\"FALSE\"=0,\"TRUE\"=1} [] 1"),
            ("\"é\"", "str2:utf8:nullpad [] 2"),
            ("\"\"", "str1:utf8:nullpad [] 1"),
            ("[\"a\", \"bcd\"]", "str3:utf8:nullpad [2] 6"),
            ("[]", "i64le [0] 0"),
            ("{\"b\": [1]}", "str9:utf8:nullpad [] 9"),
            ("[1, \"x\"]", "str7:utf8:nullpad [] 7"),
        ] {
            assert_eq!(described(json), wanted, "{json}");
        }
    }
}
