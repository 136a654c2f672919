//! The canonical notation of element types.

use super::{ByteOrder, CharSet, DType, FloatType, IntegerType, Normalization, ReferenceKind, StringPadding};
use crate::shape::Name;
use std::fmt;

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ByteOrder::Little => "le",
            ByteOrder::Big => "be",
            ByteOrder::Vax => "vax",
        })
    }
}

impl fmt::Display for StringPadding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StringPadding::NullTerminated => "nullterm",
            StringPadding::NullPadded => "nullpad",
            StringPadding::SpacePadded => "spacepad",
        })
    }
}

impl fmt::Display for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CharSet::Ascii => "ascii",
            CharSet::Utf8 => "utf8",
        })
    }
}

/// A name as a JSON string in ASCII, as Python's `json.dumps` writes it.
pub fn quote(name: &Name, f: &mut impl fmt::Write) -> fmt::Result {
    f.write_char('"')?;
    for c in name.to_string().chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            ' '..='~' => f.write_char(c)?,
            _ => {
                let mut units = [0u16; 2];
                c.encode_utf16(&mut units).iter().try_for_each(|u| write!(f, "\\u{u:04x}"))?;
            }
        }
    }
    f.write_char('"')
}

fn integer(f: &mut fmt::Formatter<'_>, prefix: &str, t: &IntegerType) -> fmt::Result {
    write!(f, "{prefix}{}", 8 * t.size)?;
    if t.size > 1 {
        write!(f, "{}", t.order)?;
    }
    if !t.is_whole() {
        write!(f, "[p={},o={}]", t.precision, t.offset)?;
    }
    Ok(())
}

fn float(f: &mut fmt::Formatter<'_>, t: &FloatType) -> fmt::Result {
    if t.is_ieee() {
        return write!(f, "f{}{}", 8 * t.size, t.order);
    }
    let norm = match t.normalization {
        Normalization::Implied => "implied",
        Normalization::MsbSet => "msbset",
        Normalization::None => "none",
    };
    write!(
        f,
        "float{}{}[p={},o={},s={},e={}:{},m={}:{},b={},n={norm}]",
        8 * t.size,
        t.order,
        t.precision,
        t.offset,
        t.sign_position,
        t.exponent_position,
        t.exponent_size,
        t.mantissa_position,
        t.mantissa_size,
        t.bias,
    )
}

/// The decimal value of an enumeration member, in the base type's own byte order.
fn member_value(base: &DType, raw: &[u8]) -> i128 {
    let DType::Integer(t) = base else { return 0 };
    t.value(raw)
}

impl IntegerType {
    /// The value of one stored element; the low 128 bits of wider ones.
    pub fn value(&self, raw: &[u8]) -> i128 {
        let mut v: u128 = 0;
        for i in 0..raw.len().min(16) {
            let byte = if self.order == ByteOrder::Big { raw[raw.len() - 1 - i] } else { raw[i] };
            v |= u128::from(byte) << (8 * i);
        }
        v = v.checked_shr(self.offset).unwrap_or(0);
        if self.precision < 128 {
            v &= (1u128 << self.precision) - 1;
            if self.signed && self.precision > 0 && v >> (self.precision - 1) & 1 == 1 {
                v |= u128::MAX << self.precision;
            }
        }
        v as i128
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Integer(t) => integer(f, if t.signed { "i" } else { "u" }, t),
            DType::Bitfield(t) => integer(f, "b", t),
            DType::Time(t) => integer(f, "time", t),
            DType::Float(t) => float(f, t),
            DType::String { size, padding, charset } => write!(f, "str{size}:{charset}:{padding}"),
            DType::Utf32 { length, order } => write!(f, "ucs4:{length}{order}"),
            DType::DateTime(t) => {
                let name = if t.delta { "timedelta64" } else { "datetime64" };
                let count = if t.count == 1 { String::new() } else { t.count.to_string() };
                write!(f, "{name}[{count}{}]{}", t.unit.abbreviation(), t.order)
            }
            DType::VarString { padding, charset, .. } => write!(f, "vstr:{charset}:{padding}"),
            DType::Opaque { size, tag } => {
                write!(f, "opaque{size}:")?;
                quote(tag, f)
            }
            DType::Compound { fields, .. } => {
                f.write_str("compound{")?;
                for (i, field) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quote(&field.name, f)?;
                    write!(f, ":{}", field.dtype)?;
                }
                f.write_str("}")
            }
            DType::Enum { base, members } => {
                write!(f, "enum<{base}>{{")?;
                for (i, member) in members.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quote(&member.name, f)?;
                    write!(f, "={}", member_value(base, &member.value))?;
                }
                f.write_str("}")
            }
            DType::Array { base, dims } => {
                f.write_str("array[")?;
                for (i, d) in dims.iter().enumerate() {
                    write!(f, "{}{d}", if i > 0 { "," } else { "" })?;
                }
                write!(f, "]<{base}>")
            }
            DType::VarLen { base, .. } => write!(f, "vlen<{base}>"),
            DType::Complex { base } => write!(f, "complex<{base}>"),
            DType::Reference { kind, .. } => f.write_str(match kind {
                ReferenceKind::Object => "ref:obj",
                ReferenceKind::Region => "ref:reg",
                ReferenceKind::Standard => "ref:std",
            }),
        }
    }
}
