//! Attributes as JSON.

use super::fill::number;
use super::notes::Notes;
use crate::dtype::{DType, StringPadding};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, to_base64};
use crate::model::write::{AttributeSpec, Content};
use crate::model::{Dataspace, Value};
use crate::shape::element_count;

/// Nesting of types that nobody needs.
const MAX_DEPTH: u32 = 64;

/// The value of an attribute as JSON. `scalars`: a list of one value stands as the value, as netCDF does it.
pub(super) fn value(spec: &AttributeSpec, scalars: bool, notes: &mut Notes) -> Result<Json> {
    let is_text = matches!(spec.dtype, DType::String { .. } | DType::VarString { .. });
    if spec.space.is_null() && scalars && is_text {
        // netCDF takes null for the text "null", and no elements for an empty text.
        return Ok(Json::Text(String::new()));
    }
    if spec.space.is_null() {
        notes.mapped("an attribute without elements as null");
        return Ok(Json::Null);
    }
    let dims = spec.space.dims();
    let count = element_count(dims)?;
    spec.content.check(&spec.dtype, count)?;
    if dims.len() > 1 {
        notes.mapped("attributes of more than one axis as nested lists");
    }
    describe(&spec.dtype, notes);
    let flat: Vec<Json> = match &spec.content {
        Content::Fixed(bytes) => {
            let size = spec.dtype.size();
            if size == 0 {
                return Err(unfit(&spec.dtype));
            }
            bytes.chunks_exact(size).map(|e| json(&Value::fixed(&spec.dtype, e)?)).collect::<Result<_>>()?
        }
        Content::Objects { elements, .. } => elements
            .iter()
            .map(|element| {
                let mut rest = &element[..];
                object(&spec.dtype, &mut rest, 0)
            })
            .collect::<Result<_>>()?,
    };
    let is_spelled = |v: &Json| match v {
        Json::Float(v) => !v.is_finite(),
        other => matches!(other, Json::Text(_)),
    };
    if matches!(spec.dtype, DType::Float(_)) && flat.iter().any(is_spelled) {
        notes.mapped("a number that JSON has no word for as text");
    }
    let is_list = matches!(spec.space, Dataspace::Simple { .. }) && !(scalars && count == 1);
    if is_list { Ok(nest(dims, flat)) } else { flat.into_iter().next().ok_or_else(|| unfit(&spec.dtype)) }
}

fn unfit(dtype: &DType) -> Error {
    Error::unsupported(format_args!("attributes of type {dtype} in Zarr"))
}

/// What of a type the JSON does not tell.
fn describe(dtype: &DType, notes: &mut Notes) {
    match dtype {
        DType::Integer(t) if t.size == 8 => {}
        DType::Float(t) if t.is_ieee() && t.size == 8 => {}
        DType::VarString { .. } | DType::Utf32 { .. } => {}
        DType::String { padding: StringPadding::NullPadded, .. } => {}
        dtype if dtype.is_bool() => {}
        DType::Integer(_) | DType::Float(_) => notes.mapped(format!("an attribute without its type {dtype}")),
        DType::String { .. } => notes.mapped("attributes of text without its padding"),
        DType::Enum { .. } => notes.mapped("an enumeration as integers"),
        DType::Compound { .. } => notes.mapped("compounds as objects of JSON"),
        DType::Opaque { .. } => notes.mapped("opaque elements in base 64"),
        other => notes.mapped(format!("an attribute of type {other} as JSON")),
    }
}

/// A value as JSON.
fn json(value: &Value) -> Result<Json> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Integer(v) => Json::Integer(*v),
        Value::Unsigned(v) => i128::try_from(*v)
            .map(Json::Integer)
            .map_err(|_| Error::unsupported(format_args!("the number {v} in an attribute")))?,
        Value::Half(v) => number(v.to_f64()),
        Value::Single(v) => number(f64::from(*v)),
        Value::Double(v) => number(*v),
        Value::Bool(v) => Json::Bool(*v),
        Value::Enum { value, .. } => Json::Integer(*value),
        Value::Text(text) => Json::Text(text.clone()),
        Value::Bytes(bytes) => Json::Text(to_base64(bytes)),
        Value::List(items) => Json::List(items.iter().map(json).collect::<Result<_>>()?),
        Value::Compound(names, values) => {
            let members = names.iter().zip(values).map(|(name, value)| {
                let name = name
                    .as_str()
                    .ok_or_else(|| Error::unsupported(format_args!("the name {name} in JSON")))?;
                Ok((name.to_owned(), json(value)?))
            });
            Json::Map(members.collect::<Result<_>>()?)
        }
        Value::Complex(parts) => Json::List(parts.iter().map(json).collect::<Result<_>>()?),
        Value::Reference(_) | Value::Broken(_) => return Err(Error::unsupported("references in Zarr")),
    })
}

/// An element of which some part is of variable length, as [`Content`] holds it.
fn object(dtype: &DType, rest: &mut &[u8], depth: u32) -> Result<Json> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    Ok(match dtype {
        DType::VarString { .. } => {
            let length = text_length(rest)?;
            let text = std::str::from_utf8(take(rest, length)?)
                .map_err(|_| Error::unsupported("text that is not UTF-8 in an attribute of Zarr"))?;
            Json::Text(text.to_owned())
        }
        DType::VarLen { base, .. } => {
            let items = count(rest)?;
            Json::List((0..items).map(|_| object(base, rest, depth + 1)).collect::<Result<_>>()?)
        }
        DType::Compound { fields, .. } if !dtype.is_fixed() => {
            let members = fields.iter().map(|f| {
                let name = f.name.as_str();
                let name =
                    name.ok_or_else(|| Error::unsupported(format_args!("the name {} in JSON", f.name)))?;
                Ok((name.to_owned(), object(&f.dtype, rest, depth + 1)?))
            });
            Json::Map(members.collect::<Result<_>>()?)
        }
        DType::Array { base, dims } if !dtype.is_fixed() => {
            let flat = (0..element_count(dims)?).map(|_| object(base, rest, depth + 1));
            nest(dims, flat.collect::<Result<_>>()?)
        }
        DType::Reference { .. } => return Err(Error::unsupported("references in Zarr")),
        fixed => json(&Value::fixed(fixed, take(rest, fixed.size())?)?)?,
    })
}

pub(super) fn count(rest: &mut &[u8]) -> Result<usize> {
    let bytes = take(rest, 8)?;
    crate::shape::to_usize(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// How many bytes of text come next; of a text that is none there are no bytes.
fn text_length(rest: &mut &[u8]) -> Result<usize> {
    match rest.strip_prefix(&Content::NONE.to_le_bytes()) {
        Some(behind) => {
            *rest = behind;
            Ok(0)
        }
        None => count(rest),
    }
}

pub(super) fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let short = || Error::new(ErrorKind::InvalidArgument, "an element is shorter than its type");
    let (taken, after) = rest.split_at_checked(length).ok_or_else(short)?;
    *rest = after;
    Ok(taken)
}

/// A flat list as lists of lists.
fn nest(dims: &[u64], flat: Vec<Json>) -> Json {
    let mut level = flat;
    for &d in dims.iter().skip(1).rev() {
        let d = usize::try_from(d).unwrap_or(usize::MAX).max(1);
        level = level.chunks(d).map(|items| Json::List(items.to_vec())).collect();
    }
    Json::List(level)
}

/// The type of an attribute as NCZarr records it: `>S1` for text, `|S<n>` for strings, and codes of NumPy.
pub(super) fn nczarr_type(spec: &AttributeSpec) -> Option<String> {
    Some(match &spec.dtype {
        // One text is characters, as in netCDF; a list is of strings.
        DType::String { .. } if spec.space.dims().is_empty() => ">S1".into(),
        DType::String { size, .. } => format!("|S{}", (*size).max(1)),
        DType::VarString { .. } => {
            let Content::Objects { elements, .. } = &spec.content else { return None };
            let longest = elements.iter().map(|e| e.len().saturating_sub(8)).max().unwrap_or(0);
            format!("|S{}", longest.max(1))
        }
        dtype if dtype.is_bool() => "|u1".into(),
        dtype => {
            dtype.to_numpy().filter(|code| matches!(code.as_bytes().get(1), Some(b'i' | b'u' | b'f')))?
        }
    })
}
