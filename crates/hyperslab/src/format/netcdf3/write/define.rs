//! What becomes of types, values and names in classic netCDF.

use crate::dtype::{ByteOrder, DType, StringPadding};
use crate::error::{Error, Result};
use crate::format::netcdf3::header::{Attribute, Type, Version};
use crate::model::Dataspace;
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Content, FillSpec, LayoutSpec, ObjectPath, Support,
};
use crate::shape::{Name, element_count, to_usize};
use bytes::Bytes;

/// A type of a variable: that of its values, and how many of them make an element of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) kind: Type,
    /// Bytes of an element. A text of more than one byte becomes a further axis of characters.
    pub(super) width: usize,
}

/// Why something cannot be kept; becomes an error that names the object.
pub(super) type Refused<T> = Result<T, String>;

/// The type in which elements of `dtype` are stored.
pub(super) fn stored(dtype: &DType, version: Version) -> Refused<Stored> {
    let kind = number(dtype).or_else(|| matches!(dtype, DType::String { .. }).then_some(Type::Char));
    let Some(kind) = kind else { return Err(format!("elements of type {dtype} in netCDF-3")) };
    if !kind.is_in(version) {
        return Err(format!("the type {} in CDF-{}, only in CDF-5", kind.name(), version.number()));
    }
    match dtype {
        DType::String { size: 0, .. } => Err("texts of no bytes in netCDF-3".into()),
        DType::String { size, .. } => Ok(Stored { kind, width: *size }),
        _ => Ok(Stored { kind, width: kind.size() }),
    }
}

fn number(dtype: &DType) -> Option<Type> {
    use Type::*;
    match dtype {
        DType::Integer(t) if t.is_whole() && t.order != ByteOrder::Vax => match (t.size, t.signed) {
            (1, true) => Some(Byte),
            (1, false) => Some(UByte),
            (2, true) => Some(Short),
            (2, false) => Some(UShort),
            (4, true) => Some(Int),
            (4, false) => Some(UInt),
            (8, true) => Some(Int64),
            (8, false) => Some(UInt64),
            _ => None,
        },
        DType::Float(t) if t.is_ieee() && t.size == 4 => Some(Float),
        DType::Float(t) if t.is_ieee() && t.size == 8 => Some(Double),
        _ => None,
    }
}

fn order(dtype: &DType) -> ByteOrder {
    match dtype {
        DType::Integer(t) => t.order,
        DType::Float(t) => t.order,
        _ => ByteOrder::Big,
    }
}

/// Elements most significant byte first.
fn big_endian(bytes: &Bytes, size: usize, order: ByteOrder) -> Bytes {
    if order != ByteOrder::Little || size <= 1 {
        return bytes.clone();
    }
    let mut out = bytes.to_vec();
    out.chunks_exact_mut(size).for_each(|element| element.reverse());
    out.into()
}

/// The value of one element for the elements that nobody writes, if it is not the one that netCDF takes by itself.
pub(super) fn fill(spec: &ArraySpec, stored: Stored) -> Refused<Option<Bytes>> {
    let FillSpec::Value(Content::Fixed(bytes)) = &spec.fill else { return Ok(None) };
    if bytes.len() != stored.width {
        return Err(format!("a fill value of {} bytes, the elements have {}", bytes.len(), stored.width));
    }
    let value = match stored.kind {
        Type::Char => match bytes.split_first() {
            Some((first, rest)) if rest.iter().all(|b| b == first) => Bytes::copy_from_slice(&[*first]),
            _ => return Err("a text of different characters as fill value in netCDF-3".into()),
        },
        _ => big_endian(bytes, stored.width, order(&spec.dtype)),
    };
    Ok((value != stored.kind.fill()).then_some(value))
}

/// The text without what fills it up.
fn text(bytes: &[u8], padding: StringPadding) -> &[u8] {
    match padding {
        StringPadding::NullTerminated => bytes.split(|&b| b == 0).next().unwrap_or(bytes),
        // All of it, as netCDF sees texts of fixed length: a NUL at their end is one that somebody wrote.
        StringPadding::NullPadded | StringPadding::SpacePadded => bytes,
    }
}

/// An attribute as it is stored, and what is different about it, if something is.
pub(super) fn attribute(
    spec: &AttributeSpec,
    version: Version,
) -> Result<Refused<(Attribute, Option<String>)>> {
    let name = &spec.name;
    let dims = spec.space.dims();
    let count = if spec.space.is_null() { 0 } else { element_count(dims)? };
    spec.content.check(&spec.dtype, count).map_err(|e| e.context(format!("attribute {name}")))?;
    let made = |kind, count, data: Bytes| Attribute { name: name.clone(), kind, count, data };
    let characters = |text: &[u8]| made(Type::Char, text.len() as u64, Bytes::copy_from_slice(text));
    let is_text = matches!(spec.dtype, DType::String { .. } | DType::VarString { .. });
    if is_text && count > 1 {
        return Ok(Err("a list of texts in an attribute of netCDF-3".into()));
    }
    Ok(Ok(match (&spec.dtype, &spec.content) {
        _ if is_text && count == 0 => (characters(b""), None),
        (DType::String { padding, .. }, Content::Fixed(bytes)) => {
            let scalar = matches!(spec.space, Dataspace::Scalar);
            (characters(text(bytes, *padding)), (!scalar).then(|| "one text instead of a list of one".into()))
        }
        (DType::VarString { .. }, Content::Objects { elements, .. }) => {
            let text = elements.first().and_then(|object| object.get(8..)).unwrap_or_default();
            (characters(text), Some("a text whose length is fixed".into()))
        }
        (dtype, Content::Fixed(bytes)) => {
            let Some(kind) = number(dtype) else {
                return Ok(Err(format!("an attribute of type {dtype} in netCDF-3")));
            };
            if dims.len() > 1 {
                return Ok(Err(format!("an attribute of {} axes in netCDF-3", dims.len())));
            }
            let data = big_endian(bytes, kind.size(), order(dtype));
            let scalar = matches!(spec.space, Dataspace::Scalar).then(|| "a list of one value".to_owned());
            if kind.is_in(version) {
                return Ok(Ok((made(kind, count, data), scalar)));
            }
            let Some((kind, data)) = narrowed(kind, &data) else {
                let text = format!(
                    "an attribute of type {} with values that no type of CDF-{} has",
                    kind.name(),
                    version.number()
                );
                return Ok(Err(text));
            };
            (made(kind, count, data), Some(format!("values of type {}", kind.name())))
        }
        (dtype, _) => return Ok(Err(format!("an attribute of type {dtype} in netCDF-3"))),
    }))
}

/// Integers in a type that every version has, if all of them fit.
fn narrowed(kind: Type, data: &Bytes) -> Option<(Type, Bytes)> {
    let value = |element: &[u8]| {
        let mut bytes = [if kind == Type::Int64 && element.first()? & 0x80 != 0 { 0xff } else { 0 }; 16];
        bytes.get_mut(16 - element.len()..)?.copy_from_slice(element);
        Some(i128::from_be_bytes(bytes))
    };
    let values: Option<Vec<i128>> = data.chunks_exact(kind.size()).map(value).collect();
    let values = values?;
    if kind == Type::UByte {
        let shorts = values.iter().map(|&n| i16::try_from(n).ok().map(i16::to_be_bytes));
        return Some((Type::Short, shorts.collect::<Option<Vec<_>>>()?.concat().into()));
    }
    let ints = values.iter().map(|&n| i32::try_from(n).ok().map(i32::to_be_bytes));
    Some((Type::Int, ints.collect::<Option<Vec<_>>>()?.concat().into()))
}

/// Fails unless a dimension, variable or attribute may be called so.
pub(super) fn check_name(name: &Name) -> Result<()> {
    let wrong = |why: &str| Err(Error::unsupported(format!("the name {name} in netCDF-3, {why}")));
    let Some(text) = name.as_str() else { return wrong("which is no UTF-8") };
    match text.chars().next() {
        None => return wrong("which is empty"),
        Some(first) if !(first.is_ascii_alphanumeric() || first == '_' || !first.is_ascii()) => {
            return wrong("which begins with neither a letter, a digit nor an underscore");
        }
        Some(_) => {}
    }
    if text.chars().any(|c| c == '/' || c.is_ascii_control()) {
        return wrong("which has a slash or a control character");
    }
    if text.ends_with(' ') {
        return wrong("which ends with a space");
    }
    if text.len() > 256 {
        return wrong("which has more than 256 bytes");
    }
    Ok(())
}

/// The name of an object in the root group, in which all are; `None` for the root itself.
pub(super) fn name_of(path: &ObjectPath) -> Result<Option<&Name>> {
    match path.names() {
        [] => Ok(None),
        [name] => Ok(Some(name)),
        _ => Err(Error::unsupported(format!("{path} in netCDF-3, which has no groups"))),
    }
}

/// What would become of a change.
pub(super) fn support(change: &Change, version: Version) -> Result<Support> {
    let dropped = |why: &str| Ok(Support::Dropped(format!("{why} in netCDF-3")));
    let refused = |result: Refused<Support>| Ok(result.unwrap_or_else(Support::Dropped));
    match change {
        Change::CreateGroup { .. } => dropped("groups"),
        Change::CommitType { .. } => dropped("named types"),
        Change::CreateLink { .. } => dropped("links"),
        Change::CreateDimension { group, .. } if !group.is_root() => dropped("groups"),
        Change::CreateArray { path, .. } if name_of(path).is_err() => dropped("groups"),
        Change::CreateArray { spec, .. } => refused(array(spec, version)),
        Change::SetAttribute { attribute: spec, .. } => {
            refused(attribute(spec, version)?.map(|(_, why)| match why {
                Some(why) => Support::Mapped(why),
                None => Support::Kept,
            }))
        }
        _ => Ok(Support::Kept),
    }
}

fn array(spec: &ArraySpec, version: Version) -> Refused<Support> {
    let stored = stored(&spec.dtype, version)?;
    let own = fill(spec, stored)?;
    let mut words: Vec<&str> = Vec::new();
    match &spec.layout {
        LayoutSpec::Virtual(_) | LayoutSpec::Stacked { .. } => {
            return Err("a virtual array in netCDF-3".into());
        }
        LayoutSpec::External(_) => return Err("data in other files in netCDF-3".into()),
        LayoutSpec::Chunked { .. } => words.push("without chunks"),
        _ => {}
    }
    if !spec.filters.is_empty() {
        words.push("without filters");
    }
    match &spec.space {
        Dataspace::Null => return Err("an array without elements in netCDF-3".into()),
        Dataspace::Simple { dims, max } => {
            if dims.iter().zip(max).skip(1).any(|(_, max)| max.is_none()) {
                return Err("an unlimited axis that is not the first in netCDF-3".into());
            }
            if dims.iter().zip(max).any(|(d, max)| max.is_some_and(|max| max != *d)) {
                words.push("of fixed extents");
            }
            if spec.dimensions.len() < dims.len() || spec.dimensions.iter().any(Option::is_none) {
                words.push("on dimensions that get names");
            }
        }
        Dataspace::Scalar => {}
    }
    if stored.kind == Type::Char && stored.width > 1 {
        words.push("with a further axis of characters");
    }
    if order(&spec.dtype) == ByteOrder::Little && stored.width > 1 {
        words.push("most significant byte first");
    }
    if own.is_some() {
        words.push("with the fill value as attribute _FillValue");
    }
    Ok(if words.is_empty() { Support::Kept } else { Support::Mapped(words.join(", ")) })
}

/// Extents of the pieces in which elements come: whole rows of the last axes, of about `target` bytes. Of records as many,
/// however many there are now.
pub(super) fn pieces(shape: &[u64], is_record: bool, width: usize, target: u64) -> Vec<u64> {
    let mut out = vec![1; shape.len()];
    let mut bytes = (width as u64).max(1);
    for (axis, (out, &length)) in out.iter_mut().zip(shape).enumerate().rev() {
        let fit = (target / bytes).max(1);
        let length = if is_record && axis == 0 { u64::MAX } else { length.max(1) };
        *out = length.min(fit);
        if length > fit {
            break;
        }
        bytes = bytes.saturating_mul(length);
    }
    out
}

/// The bytes of one element, for `width` of them.
pub(super) fn repeated(element: &[u8], width: usize) -> Result<Bytes> {
    let count = width / element.len().max(1);
    to_usize(count as u64).map(|count| element.repeat(count).into())
}
