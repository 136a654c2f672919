//! Values of elements whose parts all have a fixed size.

use super::Value;
use crate::dtype::{ByteOrder, DType, DateTimeType, FloatType, IntegerType, StringPadding};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::{Name, to_usize};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// How stored elements of one fixed type become values; made once, used for every element.
#[derive(Clone, Debug)]
pub(super) enum Decoder {
    Integer(IntegerType),
    Half(FloatType),
    Single(FloatType),
    Float(FloatType),
    Text(StringPadding),
    Utf32(ByteOrder),
    DateTime(DateTimeType),
    Opaque,
    Bool { integer: IntegerType, truth: Vec<u8> },
    Enum { integer: Option<IntegerType>, names: HashMap<Vec<u8>, Name> },
    Compound { names: Arc<[Name]>, parts: Vec<(usize, usize, Decoder)> },
    Array { dims: Vec<u64>, count: usize, size: usize, base: Box<Decoder> },
    Complex { size: usize, base: Box<Decoder> },
}

impl Decoder {
    pub(super) fn new(dtype: &DType) -> Result<Decoder> {
        Self::build(dtype, 0)
    }

    fn build(dtype: &DType, depth: u32) -> Result<Decoder> {
        if depth > 256 {
            return Err(Error::limit("nesting of datatypes", depth.into(), 256));
        }
        let base = |base: &DType| Self::build(base, depth + 1).map(Box::new);
        Ok(match dtype {
            DType::Integer(t) => Decoder::Integer(t.clone()),
            DType::Bitfield(t) | DType::Time(t) => {
                Decoder::Integer(IntegerType { signed: false, ..t.clone() })
            }
            DType::Float(t) if t.is_ieee() && t.size == 2 => Decoder::Half(t.clone()),
            DType::Float(t) if t.is_ieee() && t.size == 4 => Decoder::Single(t.clone()),
            DType::Float(t) => Decoder::Float(t.clone()),
            DType::String { padding, .. } => Decoder::Text(*padding),
            DType::Utf32 { order, .. } => Decoder::Utf32(*order),
            DType::DateTime(t) => Decoder::DateTime(t.clone()),
            DType::Opaque { .. } => Decoder::Opaque,
            DType::Enum { base, members } => match (base.as_ref(), members.as_slice()) {
                (DType::Integer(t), [no, yes])
                    if no.name.as_bytes() == b"FALSE" && yes.name.as_bytes() == b"TRUE" =>
                {
                    Decoder::Bool { integer: t.clone(), truth: yes.value.clone() }
                }
                (base, members) => Decoder::Enum {
                    integer: match base {
                        DType::Integer(t) => Some(t.clone()),
                        _ => None,
                    },
                    names: members.iter().rev().map(|m| (m.value.clone(), m.name.clone())).collect(),
                },
            },
            DType::Compound { fields, .. } => Decoder::Compound {
                names: fields.iter().map(|f| f.name.clone()).collect(),
                parts: fields
                    .iter()
                    .map(|f| Ok((f.offset, f.dtype.size(), Self::build(&f.dtype, depth + 1)?)))
                    .collect::<Result<_>>()?,
            },
            DType::Array { base: b, dims } => Decoder::Array {
                dims: dims.clone(),
                count: to_usize(crate::shape::element_count(dims)?)?,
                size: b.size(),
                base: base(b)?,
            },
            DType::Complex { base: b } => Decoder::Complex { size: b.size(), base: base(b)? },
            DType::VarString { .. } | DType::VarLen { .. } | DType::Reference { .. } => {
                return Err(Error::invalid(format!("{dtype} is not of fixed size")));
            }
        })
    }

    pub(super) fn value(&self, raw: &[u8]) -> Result<Value> {
        Ok(match self {
            Decoder::Integer(t) if t.size > 16 => Value::Bytes(Bytes::copy_from_slice(raw)),
            Decoder::Integer(t) => match t.value(raw) {
                // All 128 bits are in the value.
                v if v < 0 && !t.signed => Value::Unsigned(v as u128),
                v => Value::Integer(v),
            },
            Decoder::Half(t) => Value::Half(half::f16::from_f64(t.value(raw))),
            Decoder::Single(t) => Value::Single(t.value(raw) as f32),
            Decoder::Float(t) => Value::Double(t.value(raw)),
            Decoder::Text(padding) => text(trim(raw, *padding)),
            Decoder::Utf32(order) => {
                let units = raw.as_chunks::<4>().0.iter().map(|unit| match order {
                    ByteOrder::Big => u32::from_be_bytes(*unit),
                    _ => u32::from_le_bytes(*unit),
                });
                match units.map(char::from_u32).collect::<Option<String>>() {
                    Some(text) => Value::Text(text.trim_end_matches('\0').to_owned()),
                    // Halves of surrogate pairs and what is beyond Unicode.
                    None => Value::Bytes(Bytes::copy_from_slice(raw)),
                }
            }
            Decoder::DateTime(t) => match (t.text(raw), t.value(raw)) {
                (Some(text), _) => Value::Text(text),
                (None, Some(value)) => Value::Integer(value.into()),
                (None, None) => Value::Null,
            },
            Decoder::Opaque => Value::Bytes(Bytes::copy_from_slice(raw)),
            Decoder::Bool { truth, .. } if raw == truth.as_slice() => Value::Bool(true),
            Decoder::Bool { integer, .. } => match integer.value(raw) {
                0 => Value::Bool(false),
                value => Value::Enum { name: None, value },
            },
            Decoder::Enum { integer, names } => Value::Enum {
                name: names.get(raw).cloned(),
                value: integer.as_ref().map_or(0, |t| t.value(raw)),
            },
            Decoder::Compound { names, parts } => Value::Compound(
                names.clone(),
                parts.iter().map(|(at, size, p)| p.value(part(raw, *at, *size)?)).collect::<Result<_>>()?,
            ),
            Decoder::Array { dims, count, size, base } => {
                if *count > raw.len() {
                    // Elements without bytes: as many as the type says would be without bound.
                    return Ok(Value::List(Vec::new()));
                }
                let flat = (0..*count).map(|i| base.value(part(raw, i * size, *size)?));
                Value::nest(dims, flat.collect::<Result<_>>()?)
            }
            Decoder::Complex { size, base } => Value::Complex(Box::new([
                base.value(part(raw, 0, *size)?)?,
                base.value(part(raw, *size, *size)?)?,
            ])),
        })
    }
}

fn part(raw: &[u8], at: usize, size: usize) -> Result<&[u8]> {
    at.checked_add(size)
        .and_then(|end| raw.get(at..end))
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "a part of the element lies outside of it"))
}

/// A stored string without its padding.
fn trim(raw: &[u8], padding: StringPadding) -> &[u8] {
    let end = match padding {
        StringPadding::NullTerminated => raw.iter().position(|&b| b == 0),
        StringPadding::NullPadded => raw.iter().rposition(|&b| b != 0).map_or(Some(0), |i| Some(i + 1)),
        StringPadding::SpacePadded => raw.iter().rposition(|&b| b != b' ').map_or(Some(0), |i| Some(i + 1)),
    };
    raw.get(..end.unwrap_or(raw.len())).unwrap_or(raw)
}

/// Text, or bytes where they are not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(Bytes::copy_from_slice(bytes)),
    }
}
