//! The datatype message, written: versions 1 to 5 by what the type needs and what the file is for.

use super::encoder::{Encoder, width_of};
use crate::dtype::{
    ByteOrder, CharSet, DType, EnumMember, Field, FloatType, IntegerType, Normalization, ReferenceKind,
    StringPadding,
};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The most members that a compound or an enumeration has.
const MAX_MEMBERS: usize = 0xffff;

/// The version that a whole type is written in: `least`, or what parts of it need.
fn version(dtype: &DType, least: u8) -> u8 {
    let own = match dtype {
        DType::Float(t) if t.order == ByteOrder::Vax => 3,
        DType::Reference { kind: ReferenceKind::Standard, .. } => 4,
        DType::Complex { .. } => 5,
        DType::Array { .. } => 2,
        _ => 1,
    };
    let parts = match dtype {
        DType::Compound { fields, .. } => fields.iter().map(|f| version(&f.dtype, least)).max().unwrap_or(1),
        DType::Enum { base, .. }
        | DType::Array { base, .. }
        | DType::VarLen { base, .. }
        | DType::Complex { base } => version(base, least),
        _ => 1,
    };
    own.max(parts).max(least)
}

/// Appends the message. `least` is the version for types that need no newer one: 1 for files of HDF5 1.6 and 1.8, 3 since.
pub(super) fn encode(out: &mut Encoder, dtype: &DType, least: u8, limits: &Limits) -> Result<()> {
    check_depth(dtype, limits, 0)?;
    datatype(out, dtype, version(dtype, least))
}

/// The version that [`encode`] writes a type in.
pub(super) fn needed(dtype: &DType) -> u8 {
    version(dtype, 1)
}

fn check_depth(dtype: &DType, limits: &Limits, depth: u32) -> Result<()> {
    limits.check_depth("datatypes", depth)?;
    match dtype {
        DType::Compound { fields, .. } => {
            fields.iter().try_for_each(|f| check_depth(&f.dtype, limits, depth + 1))
        }
        DType::Enum { base, .. }
        | DType::Array { base, .. }
        | DType::VarLen { base, .. }
        | DType::Complex { base } => check_depth(base, limits, depth + 1),
        _ => Ok(()),
    }
}

fn refuse(dtype: &DType, why: &str) -> Error {
    Error::unsupported(format!("the type {dtype} in HDF5: {why}"))
}

/// Class and version, class bits, size.
fn head(out: &mut Encoder, dtype: &DType, version: u8, class: u8, bits: u32) -> Result<()> {
    let size = u32::try_from(dtype.size()).map_err(|_| refuse(dtype, "an element is larger than 4 GiB"))?;
    if size == 0 {
        return Err(refuse(dtype, "an element has no bytes"));
    }
    out.u8(version << 4 | class).uint(bits.into(), 3).u32(size);
    Ok(())
}

fn datatype(out: &mut Encoder, dtype: &DType, version: u8) -> Result<()> {
    match dtype {
        DType::Integer(t) => {
            let bits = order(dtype, t.order)? | u32::from(t.signed) << 3;
            head(out, dtype, version, 0, bits)?;
            integer(out, dtype, t)
        }
        DType::Bitfield(t) => {
            head(out, dtype, version, 4, order(dtype, t.order)?)?;
            integer(out, dtype, t)
        }
        DType::Time(t) => {
            head(out, dtype, version, 2, order(dtype, t.order)?)?;
            out.u16(narrow(dtype, t.precision)?);
            Ok(())
        }
        DType::Float(t) => float(out, dtype, t, version),
        DType::String { padding, charset, .. } => {
            head(out, dtype, version, 3, self::padding(*padding) | self::charset(*charset) << 4)
        }
        DType::VarString { padding, charset, .. } => {
            let bits = 1 | self::padding(*padding) << 4 | self::charset(*charset) << 8;
            head(out, dtype, version, 9, bits)?;
            // The reference library makes texts of characters, which are bytes.
            datatype(out, &DType::Integer(IntegerType::new(1, ByteOrder::Little, false)), version)
        }
        DType::VarLen { base, .. } => {
            head(out, dtype, version, 9, 0)?;
            datatype(out, base, version)
        }
        DType::Opaque { tag, .. } => {
            let length = tag.as_bytes().len().next_multiple_of(8);
            if length > 0xf8 || tag.as_bytes().contains(&0) {
                return Err(refuse(dtype, "a tag has 248 bytes at most, none of them NUL"));
            }
            head(out, dtype, version, 5, length as u32)?;
            out.put(tag.as_bytes()).zeros(length - tag.as_bytes().len());
            Ok(())
        }
        DType::Compound { size, fields } => compound(out, dtype, *size, fields, version),
        DType::Enum { base, members } => enumeration(out, dtype, base, members, version),
        DType::Array { base, dims } => array(out, dtype, base, dims, version),
        DType::Complex { base } => {
            // One type for both parts, in rectangular form.
            head(out, dtype, version, 11, 1)?;
            datatype(out, base, version)
        }
        DType::Reference { kind, .. } => {
            let bits = match kind {
                ReferenceKind::Object => 0,
                ReferenceKind::Region => 1,
                // An object reference of encoding version 1.
                ReferenceKind::Standard => 2 | 1 << 4,
            };
            head(out, dtype, version, 7, bits)
        }
        DType::Utf32 { .. } => Err(refuse(dtype, "convert the text to UTF-8")),
        DType::DateTime(_) => Err(refuse(dtype, "store the number and say the unit in an attribute")),
    }
}

fn order(dtype: &DType, order: ByteOrder) -> Result<u32> {
    match order {
        ByteOrder::Little => Ok(0),
        ByteOrder::Big => Ok(1),
        ByteOrder::Vax => Err(refuse(dtype, "VAX order is for floating-point numbers")),
    }
}

fn narrow(dtype: &DType, value: u32) -> Result<u16> {
    u16::try_from(value).map_err(|_| refuse(dtype, "it has more than 65535 bits"))
}

fn byte(dtype: &DType, value: u32) -> Result<u8> {
    u8::try_from(value).map_err(|_| refuse(dtype, "a bit position is beyond 255"))
}

fn integer(out: &mut Encoder, dtype: &DType, t: &IntegerType) -> Result<()> {
    out.u16(narrow(dtype, t.offset)?).u16(narrow(dtype, t.precision)?);
    Ok(())
}

fn float(out: &mut Encoder, dtype: &DType, t: &FloatType, version: u8) -> Result<()> {
    let order = match t.order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 0x41,
    };
    let normalization = match t.normalization {
        Normalization::None => 0,
        Normalization::MsbSet => 1,
        Normalization::Implied => 2,
    };
    let sign = u32::from(byte(dtype, t.sign_position)?);
    head(out, dtype, version, 1, order | normalization << 4 | sign << 8)?;
    out.u16(narrow(dtype, t.offset)?).u16(narrow(dtype, t.precision)?);
    for position in [t.exponent_position, t.exponent_size, t.mantissa_position, t.mantissa_size] {
        out.u8(byte(dtype, position)?);
    }
    out.u32(u32::try_from(t.bias).map_err(|_| refuse(dtype, "the bias has more than 32 bits"))?);
    Ok(())
}

fn padding(padding: StringPadding) -> u32 {
    match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
    }
}

fn charset(charset: CharSet) -> u32 {
    match charset {
        CharSet::Ascii => 0,
        CharSet::Utf8 => 1,
    }
}

/// A member's name with its NUL, padded to a multiple of eight bytes before version 3.
fn member_name(out: &mut Encoder, name: &[u8], version: u8) {
    let length = name.len() + 1;
    out.c_string(name);
    if version < 3 {
        out.zeros(length.next_multiple_of(8) - length);
    }
}

/// Fails unless names can be stored: at least one and at most 65535, no NUL in any, no two the same.
fn check_names<'a>(dtype: &DType, names: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<u32> {
    let count = names.len();
    if count > MAX_MEMBERS {
        return Err(refuse(dtype, "it has more than 65535 members"));
    }
    let mut seen = std::collections::HashSet::with_capacity(count);
    for name in names {
        if name.contains(&0) || !seen.insert(name) {
            return Err(refuse(dtype, "a name of a member holds a NUL, or is there twice"));
        }
    }
    Ok(count as u32)
}

fn compound(out: &mut Encoder, dtype: &DType, size: usize, fields: &[Field], version: u8) -> Result<()> {
    let count = check_names(dtype, fields.iter().map(|f| f.name.as_bytes()))?;
    head(out, dtype, version, 6, count)?;
    let width = width_of(size as u64).min(4);
    for field in fields {
        let end = field.offset.checked_add(field.dtype.size());
        if end.is_none_or(|end| end > size) {
            return Err(refuse(dtype, "a member reaches beyond the element"));
        }
        member_name(out, field.name.as_bytes(), version);
        out.uint(field.offset as u64, if version < 3 { 4 } else { width });
        if version == 1 {
            // No extents: arrays are a class of their own since version 2. Rank, reserved bytes, permutation, extents.
            out.zeros(4 + 4 + 4 + 16);
        }
        datatype(out, &field.dtype, version)?;
    }
    Ok(())
}

fn enumeration(
    out: &mut Encoder,
    dtype: &DType,
    base: &DType,
    members: &[EnumMember],
    version: u8,
) -> Result<()> {
    let count = check_names(dtype, members.iter().map(|m| m.name.as_bytes()))?;
    if !matches!(base, DType::Integer(_)) || members.iter().any(|m| m.value.len() != base.size()) {
        return Err(refuse(dtype, "an enumeration is of integers, and its values have their size"));
    }
    head(out, dtype, version, 8, count)?;
    datatype(out, base, version)?;
    members.iter().for_each(|m| member_name(out, m.name.as_bytes(), version));
    members.iter().for_each(|m| {
        out.put(&m.value);
    });
    Ok(())
}

fn array(out: &mut Encoder, dtype: &DType, base: &DType, dims: &[u64], version: u8) -> Result<()> {
    let extents: Option<Vec<u32>> = dims.iter().map(|&d| u32::try_from(d).ok().filter(|&d| d > 0)).collect();
    let (Some(extents), 1..=32) = (extents, dims.len()) else {
        return Err(refuse(dtype, "an array type has 1 to 32 extents, none of them zero"));
    };
    head(out, dtype, version, 10, 0)?;
    out.u8(extents.len() as u8);
    if version < 3 {
        out.zeros(3);
    }
    extents.iter().for_each(|&d| {
        out.u32(d);
    });
    if version < 3 {
        // The permutation that nobody uses: none.
        (0..extents.len() as u32).for_each(|i| {
            out.u32(i);
        });
    }
    datatype(out, base, version)
}
