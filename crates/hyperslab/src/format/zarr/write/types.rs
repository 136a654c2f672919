//! Element types as documents spell them, from any type of the model: the way back of [`types`](super::super::types).

use super::super::types::POINTER;
use super::notes::Notes;
use crate::dtype::{ByteOrder, CharSet, DType, DateTimeType, Field, FloatType, IntegerType, StringPadding};
use crate::error::{Error, Result};
use crate::json::Json;
use crate::shape::{Name, byte_count};

/// Nesting of structured types that nobody needs.
const MAX_DEPTH: u32 = 32;

/// A string of any length, as the reader presents it.
fn variable_text() -> DType {
    DType::VarString { size: POINTER, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 }
}

/// Bytes of any number, as the reader presents them.
fn variable_bytes() -> DType {
    DType::VarLen { size: POINTER, base: Box::new(DType::Opaque { size: 1, tag: Name::default() }) }
}

/// The type that Zarr stores for one of the model, which holds the same values. What of the type is not in it goes to
/// `notes`. Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what Zarr has no type for.
pub(super) fn storable(dtype: &DType, notes: &mut Notes) -> Result<DType> {
    match dtype {
        DType::VarString { .. } => Ok(variable_text()),
        DType::VarLen { base, .. } if matches!(**base, DType::Opaque { size: 1, .. }) => Ok(variable_bytes()),
        dtype => fixed(dtype, notes, 0),
    }
}

fn fixed(dtype: &DType, notes: &mut Notes, depth: u32) -> Result<DType> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of a structured type", depth.into(), MAX_DEPTH.into()));
    }
    let no = || Err(Error::unsupported(format_args!("elements of type {dtype} in Zarr")));
    Ok(match dtype {
        DType::Integer(t) => match integer(t, notes) {
            Some(t) => DType::Integer(t),
            None => return no(),
        },
        DType::Bitfield(t) => {
            notes.mapped("bit fields as unsigned integers");
            match integer(&IntegerType { signed: false, ..t.clone() }, notes) {
                Some(t) => DType::Integer(t),
                None => return no(),
            }
        }
        DType::Time(t) => {
            notes.mapped("times as integers");
            match integer(t, notes) {
                Some(t) => DType::Integer(t),
                None => return no(),
            }
        }
        DType::Float(t) => match float(t, notes) {
            Some(t) => DType::Float(t),
            None => return no(),
        },
        DType::String { size: 0, .. } | DType::Opaque { size: 0, .. } | DType::Utf32 { length: 0, .. } => {
            return no();
        }
        DType::String { size, padding, charset } => {
            if *padding != StringPadding::NullPadded {
                notes.mapped("text with NULs behind it");
            }
            if *charset != CharSet::Ascii {
                notes.mapped("text without its character set");
            }
            DType::String { size: *size, padding: StringPadding::NullPadded, charset: CharSet::Ascii }
        }
        DType::Utf32 { .. } => dtype.clone(),
        DType::DateTime(_) => dtype.clone(),
        DType::Opaque { size, tag } => {
            if !tag.is_empty() {
                notes.mapped("opaque elements without their tag");
            }
            DType::Opaque { size: *size, tag: Name::default() }
        }
        dtype if dtype.is_bool() => DType::bool(),
        DType::Enum { base, members } => {
            let names = members.iter().map(|m| (m.name.as_bytes(), m.value.as_slice()));
            if names.eq([(&b"FALSE"[..], &[0u8][..]), (&b"TRUE"[..], &[1u8][..])]) {
                return Ok(DType::bool());
            }
            notes.mapped("enumerations as integers, without the names of their members");
            fixed(base, notes, depth + 1)?
        }
        DType::Complex { base } => match fixed(base, notes, depth + 1)? {
            DType::Float(t) if t.size >= 4 => DType::Complex { base: Box::new(DType::Float(t)) },
            DType::Float(t) => {
                notes.mapped("complex numbers of wider parts");
                match FloatType::ieee(4, t.order) {
                    Some(t) => DType::Complex { base: Box::new(DType::Float(t)) },
                    None => return no(),
                }
            }
            _ => return no(),
        },
        DType::Compound { fields, .. } => {
            let mut at = 0usize;
            let fields: Vec<Field> = fields
                .iter()
                .map(|f| {
                    let dtype = fixed(&f.dtype, notes, depth + 1)?;
                    let offset = at;
                    at = at.saturating_add(dtype.size());
                    match f.name.as_str() {
                        Some(_) => Ok(Field { name: f.name.clone(), offset, dtype }),
                        None => {
                            Err(Error::unsupported(format_args!("the name {} of a member in Zarr", f.name)))
                        }
                    }
                })
                .collect::<Result<_>>()?;
            if fields.is_empty() {
                return no();
            }
            if at != dtype.size() {
                notes.mapped("compounds without paddings");
            }
            DType::Compound { size: at, fields }
        }
        DType::Array { base, dims } if depth > 0 => {
            let base = fixed(base, notes, depth + 1)?;
            byte_count(dims, base.size())?;
            DType::Array { base: Box::new(base), dims: dims.clone() }
        }
        _ => return no(),
    })
}

fn integer(t: &IntegerType, notes: &mut Notes) -> Option<IntegerType> {
    let bits = usize::try_from(t.precision).ok()?;
    let size = [1, 2, 4, 8].into_iter().find(|size| *size >= t.size.min(8) && 8 * size >= bits)?;
    let order = if t.order == ByteOrder::Big && size > 1 { ByteOrder::Big } else { ByteOrder::Little };
    if !t.is_whole() || size != t.size {
        notes.mapped("integers of all bits");
    } else if order != t.order && size > 1 {
        notes.mapped("numbers in another byte order");
    }
    Some(IntegerType::new(size, order, t.signed))
}

fn float(t: &FloatType, notes: &mut Notes) -> Option<FloatType> {
    if t.is_ieee() {
        return Some(t.clone());
    }
    let order = if t.order == ByteOrder::Big { ByteOrder::Big } else { ByteOrder::Little };
    let fits = |size| {
        let ieee = FloatType::ieee(size, order)?;
        let order_only = FloatType { order, ..t.clone() } == ieee;
        let wider = t.mantissa_size <= ieee.mantissa_size && t.exponent_size < ieee.exponent_size;
        (order_only || wider).then_some(ieee)
    };
    let found = [2, 4, 8].into_iter().find_map(fits)?;
    notes.mapped("floats of IEEE 754");
    Some(found)
}

/// The same type with all numbers in one byte order.
pub(super) fn with_order(dtype: &DType, order: ByteOrder) -> DType {
    let base = |base: &DType| Box::new(with_order(base, order));
    match dtype {
        DType::Integer(t) if t.size > 1 => DType::Integer(IntegerType { order, ..t.clone() }),
        DType::Float(t) => DType::Float(FloatType { order, ..t.clone() }),
        DType::Utf32 { length, .. } => DType::Utf32 { length: *length, order },
        DType::DateTime(t) => DType::DateTime(DateTimeType { order, ..t.clone() }),
        DType::Complex { base: b } => DType::Complex { base: base(b) },
        DType::Array { base: b, dims } => DType::Array { base: base(b), dims: dims.clone() },
        DType::Compound { size, fields } => DType::Compound {
            size: *size,
            fields: fields
                .iter()
                .map(|f| Field { name: f.name.clone(), offset: f.offset, dtype: with_order(&f.dtype, order) })
                .collect(),
        },
        other => other.clone(),
    }
}

fn number(n: usize) -> Json {
    Json::Integer(n as i128)
}

fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

fn unknown(dtype: &DType) -> Error {
    Error::unsupported(format_args!("elements of type {dtype} in Zarr"))
}

/// `dtype` of Zarr 2 for a [storable] type.
pub(super) fn v2(dtype: &DType) -> Result<Json> {
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => Ok(text("|O")),
        DType::Compound { fields, .. } => {
            let members = fields.iter().map(|f| {
                let name = text(f.name.to_string());
                Ok(Json::List(match &f.dtype {
                    DType::Array { base, dims } => {
                        let dims = dims.iter().map(|&d| Json::Integer(d.into())).collect();
                        vec![name, v2(base)?, Json::List(dims)]
                    }
                    dtype => vec![name, v2(dtype)?],
                }))
            });
            Ok(Json::List(members.collect::<Result<_>>()?))
        }
        dtype => dtype.to_numpy().map(text).ok_or_else(|| unknown(dtype)),
    }
}

/// `data_type` of Zarr 3 for a [storable] type; its byte order is that of the codec `bytes`.
pub(super) fn v3(dtype: &DType) -> Result<Json> {
    let named = |name: &str, members: Vec<(&str, Json)>| {
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Json::Map(vec![("name".into(), text(name)), ("configuration".into(), Json::Map(members))])
    };
    Ok(match dtype {
        DType::VarString { .. } => text("string"),
        DType::VarLen { .. } => text("variable_length_bytes"),
        DType::String { size, .. } => named("null_terminated_bytes", vec![("length_bytes", number(*size))]),
        DType::Opaque { size, .. } => named("raw_bytes", vec![("length_bytes", number(*size))]),
        DType::Utf32 { length, .. } => {
            named("fixed_length_utf32", vec![("length_bytes", number(length.saturating_mul(4)))])
        }
        DType::DateTime(t) => {
            let name = if t.delta { "numpy.timedelta64" } else { "numpy.datetime64" };
            let count = Json::Integer(t.count.into());
            named(name, vec![("unit", text(t.unit.abbreviation())), ("scale_factor", count)])
        }
        DType::Compound { fields, .. } => {
            let fields = fields
                .iter()
                .map(|f| Ok(Json::List(vec![text(f.name.to_string()), v3(&f.dtype)?])))
                .collect::<Result<_>>()?;
            named("structured", vec![("fields", Json::List(fields))])
        }
        dtype => dtype.to_zarr().map(text).ok_or_else(|| unknown(dtype))?,
    })
}
