//! Element types as documents of both versions spell them.

use crate::dtype::{ByteOrder, CharSet, DType, DateTimeType, Field, StringPadding, TimeUnit};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, wrong_member};
use crate::shape::Name;

/// What one element is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    /// As many bytes as its type says.
    Fixed(DType),
    /// Of any length.
    Variable(Variable),
}

/// Kinds of elements of any length.
pub(super) use crate::codec::Vlen as Variable;

/// Stored bytes of the pointer that stands for an element of any length.
pub(super) const POINTER: usize = 16;

impl Element {
    /// The type that the model knows.
    pub(super) fn dtype(&self) -> DType {
        match self {
            Element::Fixed(dtype) => dtype.clone(),
            Element::Variable(Variable::Bytes) => DType::VarLen {
                size: POINTER,
                base: Box::new(DType::Opaque { size: 1, tag: Name::default() }),
            },
            Element::Variable(_) => DType::VarString {
                size: POINTER,
                padding: StringPadding::NullTerminated,
                charset: CharSet::Utf8,
            },
        }
    }
}

/// Nesting of structured types that nobody needs.
const MAX_DEPTH: u32 = 32;

#[cold]
fn unknown(spelled: &Json) -> Error {
    Error::unsupported(format_args!("the data type {spelled}"))
}

/// Members one after the other, without paddings.
fn packed(fields: Vec<(Name, DType)>) -> Result<DType> {
    let mut size = 0usize;
    let fields = fields.into_iter().map(|(name, dtype)| {
        let offset = size;
        size = size
            .checked_add(dtype.size())
            .filter(|&n| n <= i32::MAX as usize)
            .ok_or_else(|| Error::new(ErrorKind::LimitExceeded, "a structured type of more than 2 GiB"))?;
        Ok(Field { name, offset, dtype })
    });
    let fields = fields.collect::<Result<_>>()?;
    Ok(DType::Compound { size, fields })
}

/// The type of Zarr 2's `dtype`: a code, or a list of `[name, type]` and `[name, type, extents]`. `O` is not one.
pub(super) fn v2(spelled: &Json, depth: u32) -> Result<DType> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of a structured type", depth.into(), MAX_DEPTH.into()));
    }
    match spelled {
        Json::Text(code) => DType::from_numpy(code).ok_or_else(|| unknown(spelled)),
        Json::List(members) if !members.is_empty() => {
            let members = members.iter().map(|member| {
                let parts = member.as_list().unwrap_or(&[]);
                let (Some(Json::Text(name)), Some(base)) = (parts.first(), parts.get(1)) else {
                    return Err(wrong_member(
                        "dtype",
                        format_args!("{member} is no member of a structured type"),
                    ));
                };
                let base = v2(base, depth + 1)?;
                let dtype = match parts.get(2) {
                    None => base,
                    Some(Json::List(dims)) if dims.is_empty() => base,
                    Some(extents) => {
                        let dims: Option<Vec<u64>> = match extents {
                            Json::List(dims) => dims.iter().map(Json::as_u64).collect(),
                            one => one.as_u64().map(|n| vec![n]),
                        };
                        let dims =
                            dims.ok_or_else(|| wrong_member("dtype", format_args!("extents {extents}")))?;
                        crate::shape::byte_count(&dims, base.size())?;
                        DType::Array { base: Box::new(base), dims }
                    }
                };
                Ok((Name::from(name.as_str()), dtype))
            });
            packed(members.collect::<Result<_>>()?)
        }
        _ => Err(unknown(spelled)),
    }
}

/// The type of Zarr 3's `data_type`: a name, or an object of `name` and `configuration`; numbers in this byte order.
pub(super) fn v3(spelled: &Json, order: ByteOrder, depth: u32) -> Result<Element> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of a structured type", depth.into(), MAX_DEPTH.into()));
    }
    let name = spelled.as_str().or_else(|| spelled.get("name").and_then(Json::as_str));
    let name = name.ok_or_else(|| wrong_member("data_type", format_args!("{spelled} has no name")))?;
    let member = |name| spelled.get("configuration").and_then(|c| c.get(name));
    if let Some(dtype) = DType::from_zarr(name, order) {
        return Ok(Element::Fixed(dtype));
    }
    let length = || {
        let length = member("length_bytes").and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        length
            .filter(|&n| n <= i32::MAX as usize)
            .ok_or_else(|| wrong_member("length_bytes", format_args!("missing in {spelled}")))
    };
    let fixed = match name {
        "string" => return Ok(Element::Variable(Variable::Text)),
        "variable_length_bytes" | "bytes" => return Ok(Element::Variable(Variable::Bytes)),
        "null_terminated_bytes" => {
            DType::String { size: length()?, padding: StringPadding::NullPadded, charset: CharSet::Ascii }
        }
        "raw_bytes" => DType::Opaque { size: length()?, tag: Name::default() },
        "fixed_length_utf32" => {
            let bytes = length()?;
            if !bytes.is_multiple_of(4) {
                let what = format_args!("{bytes} is no whole number of characters of four bytes");
                return Err(wrong_member("length_bytes", what));
            }
            DType::Utf32 { length: bytes / 4, order }
        }
        "numpy.datetime64" | "numpy.timedelta64" => {
            let unit = member("unit").and_then(Json::as_str).and_then(TimeUnit::parse);
            let count = member("scale_factor").map_or(Some(1), Json::as_u64);
            let count = count.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
            let (Some(unit), Some(count)) = (unit, count) else { return Err(unknown(spelled)) };
            DType::DateTime(DateTimeType { order, delta: name == "numpy.timedelta64", count, unit })
        }
        "structured" | "struct" => {
            let fields = member("fields").and_then(Json::as_list).unwrap_or(&[]);
            let fields = fields.iter().map(|field| {
                let (name, spelled) = match field {
                    Json::List(parts) => (parts.first(), parts.get(1)),
                    object => (object.get("name"), object.get("data_type")),
                };
                match (name, spelled) {
                    (Some(Json::Text(name)), Some(spelled)) => match v3(spelled, order, depth + 1)? {
                        Element::Fixed(dtype) => Ok((Name::from(name.as_str()), dtype)),
                        Element::Variable(_) => Err(unknown(spelled)),
                    },
                    _ => Err(wrong_member("fields", format_args!("{field} is no field"))),
                }
            });
            packed(fields.collect::<Result<_>>()?)?
        }
        _ => return Err(unknown(spelled)),
    };
    Ok(Element::Fixed(fixed))
}
