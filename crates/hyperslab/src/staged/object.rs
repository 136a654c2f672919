//! Elements of variable length in memory.
//!
//! An element of which some part is of variable length is held as the bytes that stand for it in the hash of its chunk:
//! a text as its length, eight bytes little-endian, and its bytes; a sequence as the number of its items and the items;
//! fixed parts as stored; members of a compound one after the other. Two elements are equal exactly if their bytes are.
//! A text that was never written is an empty one.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{Column, Value};
use crate::shape::{element_count, to_usize};
use bytes::Bytes;
use std::sync::Arc;

/// One element of variable length.
pub(super) type Object = Bytes;

/// No type that a format can state nests deeper.
const MAX_DEPTH: u32 = 256;

/// Whether some part of an element is of variable length.
pub(super) fn is_variable(dtype: &DType) -> bool {
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => true,
        DType::Compound { fields, .. } => fields.iter().any(|f| is_variable(&f.dtype)),
        DType::Array { base, .. } | DType::Enum { base, .. } | DType::Complex { base } => is_variable(base),
        _ => false,
    }
}

/// Follows the references in stored elements of an array.
pub(super) fn of_stored(array: &Array, stored: Bytes, count: usize) -> Result<Vec<Object>> {
    let elements = array.decode(array.dtype(), stored, count)?;
    let mut objects = Vec::with_capacity(count.min(1 << 20));
    let mut bytes = Vec::new();
    for i in 0..count {
        bytes.clear();
        encode(elements.column(), i, &mut bytes)
            .context(|| format!("array {}, type {}", array.path(), array.dtype()))?;
        objects.push(Object::copy_from_slice(&bytes));
    }
    Ok(objects)
}

fn encode(column: &Column, i: usize, out: &mut Vec<u8>) -> Result<()> {
    let missing = || Error::new(ErrorKind::OutOfBounds, format!("there is no element {i}"));
    match column {
        Column::Fixed(fixed) => out.extend_from_slice(fixed.stored(i, i + 1)),
        Column::Text(texts) => {
            text_into(texts.get(i).ok_or_else(missing)?.as_deref().unwrap_or(&[]), out);
        }
        Column::Sequence { starts, items } => {
            let Some(&[from, to]) = starts.get(i..i + 2) else { return Err(missing()) };
            out.extend_from_slice(&(to.saturating_sub(from) as u64).to_le_bytes());
            (from..to).try_for_each(|item| encode(items, item, out))?;
        }
        Column::Compound { columns, .. } => columns.iter().try_for_each(|c| encode(c, i, out))?,
        Column::Array { count, items, .. } => {
            let from = i.saturating_mul(*count);
            (from..from.saturating_add(*count)).try_for_each(|item| encode(items, item, out))?;
        }
        Column::Reference(_) => {
            return Err(Error::unsupported("staging of references beside parts of variable length"));
        }
    }
    Ok(())
}

fn text_into(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// One text as an element.
pub(super) fn text(text: &str) -> Object {
    let mut bytes = Vec::with_capacity(8 + text.len());
    text_into(text.as_bytes(), &mut bytes);
    bytes.into()
}

/// The element that nobody has written, of a type without a fill value.
pub(super) fn zero(dtype: &DType) -> Result<Object> {
    let mut out = Vec::new();
    zero_into(dtype, &mut out, 0)?;
    Ok(out.into())
}

fn zero_into(dtype: &DType, out: &mut Vec<u8>, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => out.extend_from_slice(&[0; 8]),
        DType::Compound { fields, .. } if is_variable(dtype) => {
            fields.iter().try_for_each(|f| zero_into(&f.dtype, out, depth + 1))?;
        }
        DType::Array { base, dims } if is_variable(dtype) => {
            (0..element_count(dims)?).try_for_each(|_| zero_into(base, out, depth + 1))?;
        }
        DType::Reference { .. } => {
            return Err(Error::unsupported("staging of references beside parts of variable length"));
        }
        fixed => out.resize(out.len().saturating_add(fixed.size()), 0),
    }
    Ok(())
}

/// The text of an element of a string type.
pub(super) fn as_text(object: &Object) -> &[u8] {
    object.get(8..).unwrap_or(&[])
}

/// An element as a value.
pub(super) fn value(dtype: &DType, object: &Object) -> Result<Value> {
    let mut rest = &object[..];
    decode(dtype, &mut rest, 0)
}

fn decode(dtype: &DType, rest: &mut &[u8], depth: u32) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    Ok(match dtype {
        DType::VarString { .. } => {
            let length = count(rest)?;
            let bytes = take(rest, length)?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => Value::Bytes(Bytes::copy_from_slice(bytes)),
            }
        }
        DType::VarLen { base, .. } => {
            let items = count(rest)?;
            Value::List((0..items).map(|_| decode(base, rest, depth + 1)).collect::<Result<_>>()?)
        }
        DType::Compound { fields, .. } if is_variable(dtype) => {
            let names: Arc<[_]> = fields.iter().map(|f| f.name.clone()).collect();
            let values = fields.iter().map(|f| decode(&f.dtype, rest, depth + 1)).collect::<Result<_>>()?;
            Value::Compound(names, values)
        }
        DType::Array { base, dims } if is_variable(dtype) => {
            let flat = (0..element_count(dims)?).map(|_| decode(base, rest, depth + 1));
            Value::nest(dims, flat.collect::<Result<_>>()?)
        }
        fixed => Value::fixed(fixed, take(rest, fixed.size())?)?,
    })
}

fn count(rest: &mut &[u8]) -> Result<usize> {
    let bytes = take(rest, 8)?;
    to_usize(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let short = || Error::invalid("an element of variable length is shorter than its type");
    let (taken, after) = rest.split_at_checked(length).ok_or_else(short)?;
    *rest = after;
    Ok(taken)
}
