//! Element types: as stored in a file, as wanted by the caller, and the conversion between.
//!
//! `Display` of a [`DType`] is its canonical notation (`i32le`, `compound{"a":f64be}`, `vstr:utf8:nullterm`), which the
//! tool prints and the conformance corpus uses. Sizes are in bytes, precisions and offsets in bits.

mod code;
mod convert;
mod netcdf;
mod notation;
mod number;
mod pack;
mod recode;
mod spell;
mod spelled;
mod texts;

pub use convert::{Conversion, Element, Native};
pub use netcdf::NetcdfType;
pub use notation::quote;
pub use pack::Packing;
pub use recode::Recode;

use crate::shape::Name;

/// Order of the bytes of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX: 16-bit words most significant first, bytes in each word least significant first.
    Vax,
}

/// A two's complement or unsigned integer, also the layout of bit fields and times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntegerType {
    /// Stored size in bytes.
    pub size: usize,
    /// Byte order; little for one byte.
    pub order: ByteOrder,
    /// Whether the value is signed.
    pub signed: bool,
    /// Significant bits.
    pub precision: u32,
    /// Bit at which they start, counted from the least significant.
    pub offset: u32,
}

impl IntegerType {
    /// An integer that uses all its bits.
    pub fn new(size: usize, order: ByteOrder, signed: bool) -> Self {
        IntegerType { size, order, signed, precision: 8 * size as u32, offset: 0 }
    }

    /// Whether all bits of the element are the value.
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.precision as usize == 8 * self.size
    }
}

/// How the leading mantissa bit of a float is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Normalization {
    /// Not normalised.
    None,
    /// The leading bit is set and stored.
    MsbSet,
    /// The leading bit is set and not stored (IEEE 754).
    Implied,
}

/// A floating-point layout; positions and sizes in bits, counted from the least significant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FloatType {
    /// Stored size in bytes.
    pub size: usize,
    /// Byte order.
    pub order: ByteOrder,
    /// Significant bits.
    pub precision: u32,
    /// Bit at which they start.
    pub offset: u32,
    /// Position of the sign bit.
    pub sign_position: u32,
    /// Position of the exponent.
    pub exponent_position: u32,
    /// Size of the exponent.
    pub exponent_size: u32,
    /// Position of the mantissa.
    pub mantissa_position: u32,
    /// Size of the mantissa.
    pub mantissa_size: u32,
    /// Exponent bias.
    pub bias: u64,
    /// Treatment of the leading mantissa bit.
    pub normalization: Normalization,
}

impl FloatType {
    /// IEEE 754 binary16, binary32 or binary64; `None` for other sizes.
    pub fn ieee(size: usize, order: ByteOrder) -> Option<Self> {
        let (exponent_size, mantissa_size) = match size {
            2 => (5, 10),
            4 => (8, 23),
            8 => (11, 52),
            _ => return None,
        };
        Some(Self::like_ieee(size, exponent_size, mantissa_size, order))
    }

    /// A sign, an exponent and a mantissa of so many bits, as IEEE 754 lays them out in `size` bytes.
    pub fn like_ieee(size: usize, exponent_size: u32, mantissa_size: u32, order: ByteOrder) -> Self {
        let bits = exponent_size + mantissa_size + 1;
        FloatType {
            size,
            order,
            precision: bits,
            offset: 0,
            sign_position: bits - 1,
            exponent_position: mantissa_size,
            exponent_size,
            mantissa_position: 0,
            mantissa_size,
            bias: (1u64 << exponent_size.saturating_sub(1).min(62)) - 1,
            normalization: Normalization::Implied,
        }
    }

    /// Whether this is exactly IEEE 754 binary16, binary32 or binary64, little or big endian.
    pub fn is_ieee(&self) -> bool {
        self.order != ByteOrder::Vax && Self::ieee(self.size, self.order).as_ref() == Some(self)
    }
}

/// What follows the text in a string of fixed size, and what ends a variable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringPadding {
    /// A NUL ends the text.
    NullTerminated,
    /// NULs fill the rest.
    NullPadded,
    /// Spaces fill the rest.
    SpacePadded,
}

/// Character set of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// US-ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// A member of a compound type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Byte offset in the element.
    pub offset: usize,
    /// Its type.
    pub dtype: DType,
}

/// A named value of an enumeration, in the encoding of the base type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnumMember {
    /// Its name.
    pub name: Name,
    /// Its value as stored.
    pub value: Vec<u8>,
}

/// What a reference points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// An object, by address.
    Object,
    /// A region of a dataset.
    Region,
    /// Object, region or attribute: HDF5 1.12's own encoding.
    Standard,
}

/// NumPy's units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say all")]
pub enum TimeUnit {
    Generic,
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Milli,
    Micro,
    Nano,
    Pico,
    Femto,
    Atto,
}

/// A date and time, or the time between two: eight bytes, the most negative number for "not a time".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DateTimeType {
    /// Byte order.
    pub order: ByteOrder,
    /// Whether it is a difference. Dates count from 1970-01-01, without leap seconds.
    pub delta: bool,
    /// How many units a step is.
    pub count: u32,
    /// The unit.
    pub unit: TimeUnit,
}

/// An element type as stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// Integer.
    Integer(IntegerType),
    /// Floating point.
    Float(FloatType),
    /// Bits without a numeric meaning.
    Bitfield(IntegerType),
    /// HDF5's time class.
    Time(IntegerType),
    /// Text in `size` bytes.
    String {
        /// Stored bytes.
        size: usize,
        /// What fills the rest.
        padding: StringPadding,
        /// Character set.
        charset: CharSet,
    },
    /// Text of any length; the element holds where it is.
    VarString {
        /// Stored bytes of the pointer.
        size: usize,
        /// What ends the text.
        padding: StringPadding,
        /// Character set.
        charset: CharSet,
    },
    /// Text of `length` characters of four bytes each, the rest NUL.
    Utf32 {
        /// Characters.
        length: usize,
        /// Byte order of a character.
        order: ByteOrder,
    },
    /// A date and time, or the time between two.
    DateTime(DateTimeType),
    /// Bytes without meaning.
    Opaque {
        /// Stored bytes.
        size: usize,
        /// The tag that says what they are.
        tag: Name,
    },
    /// Named members at offsets.
    Compound {
        /// Stored bytes, paddings included.
        size: usize,
        /// Members in stored order.
        fields: Vec<Field>,
    },
    /// Named values of an integer type.
    Enum {
        /// The integer type.
        base: Box<DType>,
        /// Members in stored order.
        members: Vec<EnumMember>,
    },
    /// A fixed block of elements.
    Array {
        /// The type of one.
        base: Box<DType>,
        /// Extents, slowest first.
        dims: Vec<u64>,
    },
    /// A sequence of any length; the element holds where it is.
    VarLen {
        /// Stored bytes of the pointer.
        size: usize,
        /// The type of one.
        base: Box<DType>,
    },
    /// Real part, then imaginary part (HDF5 2.0).
    Complex {
        /// The type of a part.
        base: Box<DType>,
    },
    /// A reference.
    Reference {
        /// Stored bytes.
        size: usize,
        /// What it points to.
        kind: ReferenceKind,
    },
}

impl DType {
    /// Stored size of one element in bytes. Parsers check that it fits before they build the type.
    pub fn size(&self) -> usize {
        match self {
            DType::Integer(t) | DType::Bitfield(t) | DType::Time(t) => t.size,
            DType::Float(t) => t.size,
            DType::Utf32 { length, .. } => length.saturating_mul(4),
            DType::DateTime(_) => 8,
            DType::String { size, .. }
            | DType::VarString { size, .. }
            | DType::Opaque { size, .. }
            | DType::Compound { size, .. }
            | DType::VarLen { size, .. }
            | DType::Reference { size, .. } => *size,
            DType::Enum { base, .. } => base.size(),
            DType::Array { base, dims } => dims
                .iter()
                .fold(base.size(), |n, &d| n.saturating_mul(usize::try_from(d).unwrap_or(usize::MAX))),
            DType::Complex { base } => base.size().saturating_mul(2),
        }
    }

    /// Whether elements are flat bytes: no part is of variable length or a reference.
    pub fn is_fixed(&self) -> bool {
        match self {
            DType::VarString { .. } | DType::VarLen { .. } | DType::Reference { .. } => false,
            DType::Compound { fields, .. } => fields.iter().all(|f| f.dtype.is_fixed()),
            DType::Enum { base, .. } | DType::Array { base, .. } | DType::Complex { base } => base.is_fixed(),
            _ => true,
        }
    }
}
