//! Types of netCDF, and which of them an element type is.

use crate::dtype::{ByteOrder, Conversion, DType, FloatType, IntegerType, NetcdfType};
use crate::error::Result;
use crate::shape::Name;

/// A type of elements or attribute values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One that all forms of netCDF have.
    Atomic(NetcdfType),
    /// Text of any length.
    String,
    /// A user-defined type, as its place in [`NetcdfView::types`](super::NetcdfView::types).
    User(usize),
}

impl Type {
    /// Its name in CDL; empty for user-defined types.
    pub fn word(self) -> &'static str {
        match self {
            Type::Atomic(atomic) => atomic.word(),
            Type::String => "string",
            Type::User(_) => "",
        }
    }
}

/// Classes of user-defined types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Named members.
    Compound,
    /// Named values of an integer type.
    Enum,
    /// Sequences of any length.
    VarLen,
    /// Bytes without meaning.
    Opaque,
}

/// A user-defined type.
#[derive(Clone, Debug)]
pub struct UserType {
    /// Its name.
    pub name: Name,
    /// The group that defines it.
    pub group: usize,
    /// Its class.
    pub class: Class,
    /// The type as stored.
    pub dtype: DType,
    /// Whether the file has no name for it, and this one was made.
    pub invented: bool,
}

/// The class of a named type; `None` if netCDF has none for it.
pub(super) fn class_of(dtype: &DType) -> Option<Class> {
    match dtype {
        DType::Compound { .. } => Some(Class::Compound),
        DType::Enum { .. } => Some(Class::Enum),
        DType::VarLen { .. } => Some(Class::VarLen),
        DType::Opaque { .. } => Some(Class::Opaque),
        _ => None,
    }
}

/// The type of elements stored as `dtype`, with `types` as the user-defined ones.
pub(super) fn type_of(dtype: &DType, types: &[UserType]) -> Option<Type> {
    match dtype {
        DType::Integer(t) => integer(t),
        DType::Float(t) => float(t),
        DType::String { size: 1, .. } => Some(Type::Atomic(NetcdfType::Char)),
        DType::String { .. } | DType::VarString { .. } => Some(Type::String),
        dtype => types.iter().position(|t| same(&t.dtype, dtype, 0)).map(Type::User),
    }
}

/// The smallest type that holds all values of a floating-point layout.
fn float(t: &FloatType) -> Option<Type> {
    match (t.mantissa_size, t.exponent_size) {
        (0..=23, 0..=8) => Some(Type::Atomic(NetcdfType::Float)),
        (0..=52, 0..=11) => Some(Type::Atomic(NetcdfType::Double)),
        _ => None,
    }
}

/// The type in which numbers are shown that are stored in a layout that netCDF has no word for (half precision, 20 bits
/// in a thousand bytes): that of their netCDF type. `None`: they are shown as stored.
pub(super) fn presented(dtype: &DType) -> Option<DType> {
    let known = |order| if order == ByteOrder::Big { ByteOrder::Big } else { ByteOrder::Little };
    match dtype {
        DType::Float(t) if !(t.is_ieee() && t.size >= 4) => {
            let size = if float(t)? == Type::Atomic(NetcdfType::Float) { 4 } else { 8 };
            FloatType::ieee(size, known(t.order)).map(DType::Float)
        }
        DType::Integer(t) if t.size > 8 => {
            let size = match integer(t)? {
                Type::Atomic(NetcdfType::Byte) | Type::Atomic(NetcdfType::UByte) => 1,
                Type::Atomic(NetcdfType::Short) | Type::Atomic(NetcdfType::UShort) => 2,
                Type::Atomic(NetcdfType::Int) | Type::Atomic(NetcdfType::UInt) => 4,
                _ => 8,
            };
            Some(DType::Integer(IntegerType::new(size, known(t.order), t.signed)))
        }
        _ => None,
    }
}

/// Stored elements as elements of another type.
pub(super) fn converted(stored: &[u8], from: &DType, to: &DType) -> Result<Vec<u8>> {
    Conversion::between(from, to)?.convert(stored)
}

fn integer(t: &IntegerType) -> Option<Type> {
    NetcdfType::of_integer(t.precision, t.signed).map(Type::Atomic)
}

/// The value of a stored whole integer.
pub(super) fn value(stored: &[u8], t: &IntegerType) -> Option<i128> {
    if !(1..=8).contains(&stored.len()) || !t.is_whole() {
        return None;
    }
    let fold = |v: u64, b: &u8| v << 8 | u64::from(*b);
    let bits = match t.order {
        ByteOrder::Little => stored.iter().rev().fold(0, fold),
        ByteOrder::Big => stored.iter().fold(0, fold),
        ByteOrder::Vax => return None,
    };
    let unused = 64 - 8 * stored.len() as u32;
    Some(if t.signed { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits) })
}

/// Whether two types are equal in memory: byte orders and paddings do not matter.
fn same(a: &DType, b: &DType, depth: u32) -> bool {
    // No parser makes deeper types.
    if depth > 256 {
        return false;
    }
    let same = |a: &DType, b: &DType| same(a, b, depth + 1);
    match (a, b) {
        (DType::Integer(a), DType::Integer(b)) => a.signed == b.signed && integer(a) == integer(b),
        (DType::Float(a), DType::Float(b)) => a.size == b.size && a.exponent_size == b.exponent_size,
        (
            DType::String { size, padding, charset },
            DType::String { size: size_b, padding: padding_b, charset: charset_b },
        ) => size == size_b && padding == padding_b && charset == charset_b,
        (DType::VarString { charset, .. }, DType::VarString { charset: charset_b, .. }) => {
            charset == charset_b
        }
        (DType::Opaque { size, tag }, DType::Opaque { size: size_b, tag: tag_b }) => {
            size == size_b && tag == tag_b
        }
        (DType::Compound { fields, .. }, DType::Compound { fields: fields_b, .. }) => {
            fields.len() == fields_b.len()
                && fields.iter().zip(fields_b).all(|(a, b)| a.name == b.name && same(&a.dtype, &b.dtype))
        }
        (DType::Enum { base, members }, DType::Enum { base: base_b, members: members_b }) => {
            let value = |base: &DType, stored: &[u8]| match base {
                DType::Integer(t) => value(stored, t),
                _ => None,
            };
            same(base, base_b)
                && members.len() == members_b.len()
                && members
                    .iter()
                    .zip(members_b)
                    .all(|(a, b)| a.name == b.name && value(base, &a.value) == value(base_b, &b.value))
        }
        (DType::Array { base, dims }, DType::Array { base: base_b, dims: dims_b }) => {
            dims == dims_b && same(base, base_b)
        }
        (DType::VarLen { base, .. }, DType::VarLen { base: base_b, .. }) => same(base, base_b),
        (DType::Complex { base }, DType::Complex { base: base_b }) => same(base, base_b),
        (a, b) => a == b,
    }
}

/// The fill value of a type where no one set another, as one stored element.
pub(super) fn default_fill(dtype: &DType, kind: Type) -> Vec<u8> {
    let fill = if let Type::Atomic(atomic) = kind { atomic.fill() } else { &[] };
    let mut bytes: Vec<u8> = fill.iter().rev().copied().collect();
    let size = dtype.size();
    // An integer of an odd size is as long as it is, with the sign of the fill value.
    let sign = if bytes.len() < size && bytes.last().is_some_and(|&b| b >= 0x80) { 0xff } else { 0 };
    bytes.resize(size, sign);
    let order = match dtype {
        DType::Integer(t) => t.order,
        DType::Float(t) => t.order,
        _ => ByteOrder::Little,
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}
