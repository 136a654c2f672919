//! Attributes: JSON values as typed elements.

use crate::dtype::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};
use crate::error::{Error, ErrorKind, Result};
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
            Ok((dtype, space, data)) => {
                Ok(Attribute { name, dtype, space, data, order: Some(i as u64), committed: None })
            }
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
    if let Some(text) = items(value).iter().find(|item| item.is_broken_text()) {
        let text = format!("the text {text} has half of a surrogate pair, which is no Unicode");
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    let list = |n: usize| Dataspace::Simple { dims: vec![n as u64], max: vec![Some(n as u64)] };
    match value {
        Json::Null => {
            let dtype = DType::String { size: 1, padding: StringPadding::NullPadded, charset: CharSet::Utf8 };
            Ok((dtype, Dataspace::Null, Bytes::new()))
        }
        Json::List(values) if values.is_empty() => Ok((integer(true), list(0), Bytes::new())),
        value => {
            let values = items(value);
            let Some(kind) = common(values) else { return json(value) };
            let Some((dtype, data)) = elements(kind, values)? else { return json(value) };
            let space = if value.as_list().is_some() { list(values.len()) } else { Dataspace::Scalar };
            Ok((dtype, space, data))
        }
    }
}

/// The items of a list, or the value alone.
fn items(value: &Json) -> &[Json] {
    value.as_list().unwrap_or(std::slice::from_ref(value))
}

fn json(value: &Json) -> Result<(DType, Dataspace, Bytes)> {
    let text = value.to_string();
    let dtype =
        DType::String { size: text.len(), padding: StringPadding::NullPadded, charset: CharSet::Utf8 };
    Ok((dtype, Dataspace::Scalar, text.into_bytes().into()))
}

fn integer(signed: bool) -> DType {
    DType::Integer(IntegerType::new(8, ByteOrder::Little, signed))
}

/// Elements of one kind; `None` for texts that no fixed size is right for.
fn elements(kind: Kind, values: &[Json]) -> Result<Option<(DType, Bytes)>> {
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
            let texts: Vec<&str> = values.iter().map(|v| v.as_str().unwrap_or("")).collect();
            return Ok(DType::of_texts(&texts).map(|(dtype, data)| (dtype, data.into())));
        }
    };
    Ok(Some((dtype, data.into())))
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
            // What ends with NUL keeps it; numbers beyond all doubles keep their digits.
            (r#""ab\u0000""#, "str3:utf8:spacepad [] 3"),
            (r#"["ab\u0000", "c "]"#, "str17:utf8:nullpad [] 17"),
            ("1e400", "str5:utf8:nullpad [] 5"),
            (r#"{"b": "\ud800"}"#, "str14:utf8:nullpad [] 14"),
        ] {
            assert_eq!(described(json), wanted, "{json}");
        }
    }

    #[test]
    fn text_that_is_no_unicode_is_an_error_of_its_attribute() {
        for json in [r#""a\ud800""#, r#"["b", "\udfff"]"#] {
            let document = Json::parse(format!("{{\"a\": {json}, \"b\": 1}}").as_bytes()).unwrap();
            let found = entries(&document);
            let (name, error) = found[0].as_ref().unwrap_err();
            assert_eq!(name.as_ref().and_then(Name::as_str), Some("a"));
            assert!(error.to_string().contains("\\ud"), "{error}");
            assert!(found[1].is_ok());
        }
    }
}
