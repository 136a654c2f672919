//! Types by their names in CDL.

use super::Place;
use crate::convention::netcdf::cdl::UserType;
use crate::dtype::{
    ByteOrder, CharSet, DType, EnumMember, Field, FloatType, IntegerType, NetcdfType, StringPadding,
};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::model::write::{Content, ObjectPath};
use crate::shape::{Name, element_count, to_usize};

/// Bytes that point to a text or a sequence. A writer puts its own in their place.
const POINTER: usize = 16;

/// A user-defined type.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The group that defines it.
    pub(super) group: usize,
    pub(super) path: ObjectPath,
    pub(super) dtype: DType,
}

/// The type of characters.
pub(super) fn character() -> DType {
    DType::String { size: 1, padding: StringPadding::NullTerminated, charset: CharSet::Ascii }
}

/// The type of texts of any length.
pub(super) fn text() -> DType {
    DType::VarString { size: POINTER, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 }
}

pub(super) fn is_text(dtype: &DType) -> bool {
    matches!(dtype, DType::VarString { .. })
}

pub(super) fn is_character(dtype: &DType) -> bool {
    matches!(dtype, DType::String { .. })
}

/// The type that CDL has by itself under a name, its elements in a byte order.
pub(super) fn primitive(word: &str, order: ByteOrder) -> Option<DType> {
    let integer = |size: usize, signed| {
        let order = if size == 1 { ByteOrder::Little } else { order };
        Some(DType::Integer(IntegerType::new(size, order, signed)))
    };
    match word {
        "char" => Some(character()),
        "string" => Some(text()),
        "byte" => integer(1, true),
        "ubyte" => integer(1, false),
        "short" => integer(2, true),
        "ushort" => integer(2, false),
        "int" | "long" | "integer" => integer(4, true),
        "uint" | "ulong" | "uinteger" | "unsigned" => integer(4, false),
        "int64" => integer(8, true),
        "uint64" => integer(8, false),
        "float" | "real" => FloatType::ieee(4, order).map(DType::Float),
        "double" => FloatType::ieee(8, order).map(DType::Float),
        _ => None,
    }
}

/// The atomic type that a number or character is.
pub(super) fn atomic(dtype: &DType) -> Option<NetcdfType> {
    match dtype {
        DType::Integer(t) => NetcdfType::of_integer(t.precision, t.signed),
        DType::Float(t) if t.size == 4 => Some(NetcdfType::Float),
        DType::Float(_) => Some(NetcdfType::Double),
        DType::String { .. } => Some(NetcdfType::Char),
        _ => None,
    }
}

/// Numbers of this type in another byte order.
pub(super) fn in_order(dtype: &DType, order: ByteOrder) -> DType {
    match dtype {
        DType::Integer(t) if t.size > 1 => DType::Integer(IntegerType { order, ..t.clone() }),
        DType::Float(t) => DType::Float(FloatType { order, ..t.clone() }),
        other => other.clone(),
    }
}

/// What stands for an element that nobody gave: netCDF's fill value of each part.
pub(super) fn fill_into(dtype: &DType, limits: &Limits, depth: u32, out: &mut Vec<u8>) -> Result<()> {
    limits.check_depth("types of CDL", depth)?;
    match dtype {
        DType::Compound { size, fields } => {
            let start = out.len();
            let fixed = dtype.is_fixed();
            for field in fields {
                if fixed {
                    out.resize(start.saturating_add(field.offset), 0);
                }
                fill_into(&field.dtype, limits, depth + 1, out)?;
            }
            if fixed {
                out.resize(start.saturating_add(*size), 0);
            }
        }
        DType::Array { base, dims } => {
            for _ in 0..element_count(dims)? {
                fill_into(base, limits, depth + 1, out)?;
            }
        }
        DType::VarString { .. } | DType::VarLen { .. } => out.extend_from_slice(&[0; 8]),
        dtype => match atomic(dtype) {
            Some(kind) => number_into(dtype, kind.fill(), out),
            None => out.resize(out.len().saturating_add(dtype.size()), 0),
        },
    }
    Ok(())
}

/// An element of which every bit is 0: what netCDF-C lets a file say of those that nobody wrote, where the type is not atomic.
pub(super) fn zero_into(dtype: &DType, limits: &Limits, depth: u32, out: &mut Vec<u8>) -> Result<()> {
    limits.check_depth("types of CDL", depth)?;
    match dtype {
        fixed if fixed.is_fixed() => out.resize(out.len().saturating_add(fixed.size()), 0),
        DType::Compound { fields, .. } => {
            fields.iter().try_for_each(|f| zero_into(&f.dtype, limits, depth + 1, out))?;
        }
        DType::Array { base, dims } => {
            for _ in 0..element_count(dims)? {
                zero_into(base, limits, depth + 1, out)?;
            }
        }
        // A text that is none, so that all of the compound is zeros in the file.
        DType::VarString { .. } if depth > 0 => out.extend_from_slice(&Content::NONE.to_le_bytes()),
        // No bytes, no items.
        _ => out.extend_from_slice(&[0; 8]),
    }
    Ok(())
}

/// A number, given most significant byte first, as it is stored.
fn number_into(dtype: &DType, big: &[u8], out: &mut Vec<u8>) {
    let little = match dtype {
        DType::Integer(t) => t.order == ByteOrder::Little,
        DType::Float(t) => t.order == ByteOrder::Little,
        _ => false,
    };
    if little { out.extend(big.iter().rev()) } else { out.extend_from_slice(big) }
}

/// The type of a name as the group at `places[group]` sees it: CDL's own, one of this group or of one around it, one at a
/// path, or else the only one of the file that is called so.
pub(super) fn find<'a>(
    known: &'a [Known],
    places: &[Place<'_>],
    group: usize,
    name: &str,
) -> Option<&'a Known> {
    if name.starts_with('/') {
        return known.iter().find(|k| k.path.to_string() == name);
    }
    let called = |k: &&Known| k.path.names().last().is_some_and(|last| last.as_bytes() == name.as_bytes());
    let mut at = Some(group);
    while let Some(group) = at {
        if let Some(found) = known.iter().filter(called).find(|k| k.group == group) {
            return Some(found);
        }
        at = places.get(group)?.parent;
    }
    let mut all = known.iter().filter(called);
    all.next().filter(|_| all.next().is_none())
}

/// Adds the types of a group.
pub(super) fn define(known: &mut Vec<Known>, places: &[Place<'_>], group: usize) -> Result<()> {
    let Some(place) = places.get(group) else { return Ok(()) };
    for user in &place.group.types {
        let wrong = |what: String| place.wrong(user.at(), 0, what);
        let path = place.path.join(user.name());
        if known.iter().any(|k| k.path == path) {
            return Err(wrong(format!("{} is a type of this group already", user.name())));
        }
        let typed = |name: &str| match primitive(name, ByteOrder::Little) {
            Some(dtype) => Ok(dtype),
            None => match find(known, places, group, name) {
                Some(known) => Ok(known.dtype.clone()),
                None => Err(wrong(format!("{name} is no type that was defined before"))),
            },
        };
        let dtype = match user {
            UserType::Opaque { size, .. } => {
                let size = to_usize(*size)?;
                if size == 0 {
                    return Err(wrong("an opaque type has at least one byte".into()));
                }
                DType::Opaque { size, tag: Name::from("") }
            }
            UserType::VarLen { base, .. } => DType::VarLen { size: POINTER, base: Box::new(typed(base)?) },
            UserType::Enum { base, members, .. } => {
                let base = typed(base)?;
                let DType::Integer(t) = &base else {
                    return Err(wrong("the type of an enumeration is an integer".into()));
                };
                let mut stored = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let value = integer(t, *value)
                        .ok_or_else(|| wrong(format!("{name} = {value} does not fit its type")))?;
                    stored.push(EnumMember { name: Name::from(name.as_str()), value });
                }
                DType::Enum { base: Box::new(base), members: stored }
            }
            UserType::Compound { fields, .. } => {
                let (mut at, mut widest) = (0usize, 1);
                let mut made = Vec::with_capacity(fields.len());
                for (name, kind, extents) in fields {
                    let mut dtype = typed(kind)?;
                    if !extents.is_empty() {
                        element_count(extents)?;
                        dtype = DType::Array { base: Box::new(dtype), dims: extents.clone() };
                    }
                    let too_large = || wrong("a compound that is too large".into());
                    let align = alignment(&dtype, &place.source.limits, 0)?;
                    widest = widest.max(align);
                    let offset = at.checked_next_multiple_of(align).ok_or_else(too_large)?;
                    at = offset.checked_add(dtype.size()).ok_or_else(too_large)?;
                    made.push(Field { name: Name::from(name.as_str()), offset, dtype });
                }
                if made.is_empty() {
                    return Err(wrong("a compound has at least one member".into()));
                }
                let size = at.checked_next_multiple_of(widest);
                let size = size.ok_or_else(|| wrong("a compound that is too large".into()))?;
                DType::Compound { size, fields: made }
            }
        };
        known.push(Known { group, path, dtype });
    }
    Ok(())
}

/// Where C puts a member: at multiples of this.
fn alignment(dtype: &DType, limits: &Limits, depth: u32) -> Result<usize> {
    limits.check_depth("types of CDL", depth)?;
    Ok(match dtype {
        DType::Integer(t) => t.size.max(1),
        DType::Float(t) => t.size.max(1),
        DType::VarString { .. } | DType::VarLen { .. } => 8,
        DType::Enum { base, .. } | DType::Array { base, .. } => alignment(base, limits, depth + 1)?,
        DType::Compound { fields, .. } => {
            let mut widest = 1;
            for field in fields {
                widest = widest.max(alignment(&field.dtype, limits, depth + 1)?);
            }
            widest
        }
        _ => 1,
    })
}

/// An integer as stored; `None` if it does not fit.
pub(super) fn integer(t: &IntegerType, value: i128) -> Option<Vec<u8>> {
    let bits = 8 * u32::try_from(t.size).ok().filter(|size| (1..=8).contains(size))?;
    let (low, high) =
        if t.signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if !(low..=high).contains(&value) {
        return None;
    }
    let mut bytes = value.to_le_bytes().get(..t.size)?.to_vec();
    if t.order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

/// Fails for a type without a name in CDL.
pub(super) fn resolve(
    known: &[Known],
    places: &[Place<'_>],
    group: usize,
    name: &str,
    at: usize,
) -> Result<(DType, Option<ObjectPath>)> {
    if let Some(dtype) = primitive(name, ByteOrder::Little) {
        return Ok((dtype, None));
    }
    match find(known, places, group, name) {
        Some(known) => Ok((known.dtype.clone(), Some(known.path.clone()))),
        None => {
            let what = format!("{name} is no type");
            let error = places.get(group).map(|p| p.wrong(at, 0, &what));
            Err(error
                .unwrap_or_else(|| Error::invalid(what))
                .hint("define it under types: of this group or of one around it, or write its path"))
        }
    }
}
