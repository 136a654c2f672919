//! The datatype message (type 0x0003): eleven classes and HDF5 2.0's complex, versions 1 to 5.

use crate::dtype::{
    ByteOrder, CharSet, DType, EnumMember, Field, FloatType, IntegerType, Normalization, ReferenceKind,
    StringPadding,
};
use crate::error::{Error, Result};
use crate::format::hdf5::parse::Cursor;
use crate::limits::Limits;
use crate::shape::{MAX_RANK, Name};

/// Parses the message and leaves the cursor behind it.
pub fn parse(c: &mut Cursor<'_>, limits: &Limits) -> Result<DType> {
    datatype(c, limits, 0)
}

fn datatype(c: &mut Cursor<'_>, limits: &Limits, depth: u32) -> Result<DType> {
    limits.check_depth("datatypes", depth)?;
    let head = Head::parse(c)?;
    match head.class {
        0 => Ok(DType::Integer(integer(c, &head, head.bit(3))?)),
        1 => Ok(DType::Float(float(c, &head)?)),
        2 => {
            let precision = u32::from(c.u16()?);
            let t = IntegerType { size: head.size, order: head.order(), signed: false, precision, offset: 0 };
            check_bits(c, t.offset, t.precision, head.size)?;
            Ok(DType::Time(t))
        }
        3 => {
            let (padding, charset) = (padding(c, head.bits & 0x0f)?, charset(c, head.bits >> 4 & 0x0f)?);
            Ok(DType::String { size: head.size, padding, charset })
        }
        4 => Ok(DType::Bitfield(integer(c, &head, false)?)),
        5 => {
            let tag = c.take((head.bits & 0xff) as usize)?;
            let tag = tag.split(|&b| b == 0).next().unwrap_or(tag);
            Ok(DType::Opaque { size: head.size, tag: Name::from(tag) })
        }
        6 => compound(c, &head, limits, depth),
        7 => {
            let kind = match head.bits & 0x0f {
                0 => ReferenceKind::Object,
                1 => ReferenceKind::Region,
                2..=4 => ReferenceKind::Standard,
                kind => return Err(c.corrupt(format!("reference type {kind}"))),
            };
            Ok(DType::Reference { size: head.size, kind })
        }
        8 => enumeration(c, &head, limits, depth),
        9 => {
            let base = Box::new(datatype(c, limits, depth + 1)?);
            match head.bits & 0x0f {
                0 => Ok(DType::VarLen { size: head.size, base }),
                1 => {
                    let (padding, charset) =
                        (padding(c, head.bits >> 4 & 0x0f)?, charset(c, head.bits >> 8 & 0x0f)?);
                    Ok(DType::VarString { size: head.size, padding, charset })
                }
                kind => Err(c.corrupt(format!("variable-length type {kind}"))),
            }
        }
        10 => array(c, &head, limits, depth),
        11 => {
            let base = Box::new(datatype(c, limits, depth + 1)?);
            if head.bits & 0x06 != 0 {
                return Err(Error::unsupported("complex numbers that are not in rectangular form"));
            }
            if base.size().checked_mul(2) != Some(head.size) {
                return Err(c.corrupt(format!("a complex number of {} bytes of two {base}", head.size)));
            }
            Ok(DType::Complex { base })
        }
        class => Err(Error::unsupported(format!("datatype class {class}"))),
    }
}

/// What every datatype starts with.
struct Head {
    version: u8,
    class: u8,
    bits: u32,
    size: usize,
}

impl Head {
    fn parse(c: &mut Cursor<'_>) -> Result<Head> {
        let here = c.clone();
        let byte = c.u8()?;
        let (version, class) = (byte >> 4, byte & 0x0f);
        if !(1..=5).contains(&version) {
            return Err(here.corrupt(format!("datatype version {version}, 1 to 5 are known")));
        }
        let bits = c.u24()?;
        let size = c.u32()?;
        if size == 0 && !matches!(class, 3 | 5 | 6) {
            return Err(here.corrupt(format!("an element of class {class} of zero bytes")));
        }
        // 32 bits always fit.
        Ok(Head { version, class, bits, size: size as usize })
    }

    fn bit(&self, n: u32) -> bool {
        self.bits >> n & 1 == 1
    }

    fn order(&self) -> ByteOrder {
        // One byte has no order; the notation calls it little.
        if self.bit(0) && self.size > 1 { ByteOrder::Big } else { ByteOrder::Little }
    }

    fn padded(&self) -> bool {
        self.version < 3
    }
}

fn check_bits(c: &Cursor<'_>, offset: u32, precision: u32, size: usize) -> Result<()> {
    if precision == 0 || u64::from(offset) + u64::from(precision) > 8 * size as u64 {
        return Err(c.corrupt(format!("{precision} bits from bit {offset} in {size} bytes")));
    }
    Ok(())
}

fn integer(c: &mut Cursor<'_>, head: &Head, signed: bool) -> Result<IntegerType> {
    let offset = u32::from(c.u16()?);
    let precision = u32::from(c.u16()?);
    check_bits(c, offset, precision, head.size)?;
    Ok(IntegerType { size: head.size, order: head.order(), signed, precision, offset })
}

fn float(c: &mut Cursor<'_>, head: &Head) -> Result<FloatType> {
    let order = match (head.bit(6), head.bit(0)) {
        // Bit 6 has a meaning since version 3.
        (true, true) if head.version >= 3 => ByteOrder::Vax,
        (true, false) if head.version >= 3 => return Err(c.corrupt("byte order 2 of a floating-point type")),
        _ => head.order(),
    };
    if order == ByteOrder::Vax && head.size % 2 == 1 {
        return Err(c.corrupt(format!("VAX order of {} bytes", head.size)));
    }
    let normalization = match head.bits >> 4 & 0x03 {
        0 => Normalization::None,
        1 => Normalization::MsbSet,
        2 => Normalization::Implied,
        n => return Err(c.corrupt(format!("mantissa normalization {n}"))),
    };
    let offset = u32::from(c.u16()?);
    let precision = u32::from(c.u16()?);
    check_bits(c, offset, precision, head.size)?;
    let exponent_position = u32::from(c.u8()?);
    let exponent_size = u32::from(c.u8()?);
    let mantissa_position = u32::from(c.u8()?);
    let mantissa_size = u32::from(c.u8()?);
    check_bits(c, exponent_position, exponent_size, head.size)?;
    check_bits(c, mantissa_position, mantissa_size, head.size)?;
    let sign_position = head.bits >> 8 & 0xff;
    check_bits(c, sign_position, 1, head.size)?;
    let bias = u64::from(c.u32()?);
    Ok(FloatType {
        size: head.size,
        order,
        precision,
        offset,
        sign_position,
        exponent_position,
        exponent_size,
        mantissa_position,
        mantissa_size,
        bias,
        normalization,
    })
}

fn padding(c: &Cursor<'_>, code: u32) -> Result<StringPadding> {
    match code {
        0 => Ok(StringPadding::NullTerminated),
        1 => Ok(StringPadding::NullPadded),
        2 => Ok(StringPadding::SpacePadded),
        _ => Err(c.corrupt(format!("string padding {code}"))),
    }
}

fn charset(c: &Cursor<'_>, code: u32) -> Result<CharSet> {
    match code {
        0 => Ok(CharSet::Ascii),
        1 => Ok(CharSet::Utf8),
        _ => Err(c.corrupt(format!("character set {code}"))),
    }
}

/// A member's name: padded to a multiple of eight bytes with its NUL, before version 3.
fn member_name(c: &mut Cursor<'_>, head: &Head) -> Result<Name> {
    let name = c.c_string()?;
    if head.padded() {
        let length = name.len() + 1;
        c.skip(length.next_multiple_of(8) - length)?;
    }
    Ok(Name::from(name))
}

fn compound(c: &mut Cursor<'_>, head: &Head, limits: &Limits, depth: u32) -> Result<DType> {
    let count = head.bits & 0xffff;
    let mut fields = Vec::new();
    // The fewest bytes that hold any offset in the element.
    let offset_width = (1..=4).find(|&n| n == 4 || head.size >> (8 * n) == 0).unwrap_or(4);
    for _ in 0..count {
        let name = member_name(c, head)?;
        let offset = if head.version < 3 { u64::from(c.u32()?) } else { c.uint(offset_width)? };
        let mut dims = Vec::new();
        if head.version == 1 {
            let rank = usize::from(c.u8()?);
            // Reserved bytes, an axis permutation that nobody used, reserved bytes.
            c.skip(3 + 4 + 4)?;
            let all = [c.u32()?, c.u32()?, c.u32()?, c.u32()?];
            match all.get(..rank) {
                Some(used) => dims.extend(used.iter().map(|&d| u64::from(d))),
                None => return Err(c.corrupt(format!("a member of rank {rank}, at most 4 is allowed"))),
            }
        }
        let mut dtype = datatype(c, limits, depth + 1)?;
        if !dims.is_empty() {
            array_size(c, &dtype, &dims)?;
            dtype = DType::Array { base: Box::new(dtype), dims };
        }
        let end = offset.checked_add(dtype.size() as u64);
        if end.is_none_or(|end| end > head.size as u64) {
            return Err(c.corrupt(format!(
                "member {name} ({} bytes at {offset}) reaches beyond the {} bytes of the element",
                dtype.size(),
                head.size
            )));
        }
        // The offset is at most the size, which fits.
        fields.push(Field { name, offset: offset as usize, dtype });
    }
    Ok(DType::Compound { size: head.size, fields })
}

fn enumeration(c: &mut Cursor<'_>, head: &Head, limits: &Limits, depth: u32) -> Result<DType> {
    let count = (head.bits & 0xffff) as usize;
    let base = datatype(c, limits, depth + 1)?;
    if !matches!(base, DType::Integer(_)) {
        return Err(c.corrupt(format!("an enumeration of {base}")));
    }
    if base.size() != head.size {
        return Err(c.corrupt(format!("an enumeration of {} bytes of {base}", head.size)));
    }
    let names = (0..count).map(|_| member_name(c, head)).collect::<Result<Vec<_>>>()?;
    let members = names
        .into_iter()
        .map(|name| Ok(EnumMember { name, value: c.take(head.size)?.to_vec() }))
        .collect::<Result<Vec<_>>>()?;
    Ok(DType::Enum { base: Box::new(base), members })
}

/// An array type. The class came with version 2; writers that say version 1 mean the same bytes.
fn array(c: &mut Cursor<'_>, head: &Head, limits: &Limits, depth: u32) -> Result<DType> {
    let rank = usize::from(c.u8()?);
    if rank == 0 || rank > MAX_RANK {
        return Err(c.corrupt(format!("an array type of rank {rank}")));
    }
    if head.version < 3 {
        c.skip(3)?;
    }
    let dims = (0..rank).map(|_| c.u32().map(u64::from)).collect::<Result<Vec<_>>>()?;
    if head.version < 3 {
        // An axis permutation that nobody used.
        c.skip(4 * rank)?;
    }
    let base = datatype(c, limits, depth + 1)?;
    let size = array_size(c, &base, &dims)?;
    if size != head.size as u64 {
        return Err(c.corrupt(format!("an array of {dims:?} {base} in {} bytes", head.size)));
    }
    Ok(DType::Array { base: Box::new(base), dims })
}

/// Bytes of an array type, which must fit into the 32 bits that any element's size has.
fn array_size(c: &Cursor<'_>, base: &DType, dims: &[u64]) -> Result<u64> {
    if dims.contains(&0) {
        return Err(c.corrupt("an array type with an extent of zero"));
    }
    dims.iter()
        .try_fold(base.size() as u64, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= u64::from(u32::MAX))
        .ok_or_else(|| c.corrupt(format!("an array type of {dims:?} elements of {} bytes", base.size())))
}
