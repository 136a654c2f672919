//! The element types of this machine that callers can ask for.

use super::number::Layout;
use crate::dtype::{ByteOrder, DType, FloatType, IntegerType};
use half::f16;
use hyperslab_kernels::Plain;
use std::borrow::Cow;
use std::fmt;

/// A number type of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Native {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    /// Whether a number is not zero; one byte, 0 or 1.
    Bool,
    /// Two `f32`.
    Complex32,
    /// Two `f64`.
    Complex64,
}

impl Native {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Native::I8 | Native::U8 | Native::Bool => 1,
            Native::I16 | Native::U16 | Native::F16 => 2,
            Native::I32 | Native::U32 | Native::F32 => 4,
            Native::I64 | Native::U64 | Native::F64 | Native::Complex32 => 8,
            Native::Complex64 => 16,
        }
    }

    /// The type of the parts of a complex number.
    pub(super) fn complex_part(self) -> Option<Native> {
        match self {
            Native::Complex32 => Some(Native::F32),
            Native::Complex64 => Some(Native::F64),
            _ => None,
        }
    }

    /// Its elements as a stored type in the byte order of this machine; a Boolean is an unsigned byte.
    pub fn dtype(self) -> DType {
        let part = |native: Native| match native.layout() {
            Layout::Float(float) => DType::Float(float),
            Layout::Integer(integer) => DType::Integer(integer),
        };
        match self.complex_part() {
            Some(native) => DType::Complex { base: Box::new(part(native)) },
            None => part(self),
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Native::I8 | Native::I16 | Native::I32 | Native::I64)
    }

    /// How its elements are stored in memory.
    pub(super) fn layout(self) -> Layout {
        let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
        let float = match self {
            Native::F16 | Native::F32 | Native::F64 => FloatType::ieee(self.size(), order),
            _ => None,
        };
        match float {
            Some(float) => Layout::Float(float),
            None => Layout::Integer(IntegerType::new(self.size(), order, self.is_signed())),
        }
    }
}

impl fmt::Display for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Native::I8 => "i8",
            Native::I16 => "i16",
            Native::I32 => "i32",
            Native::I64 => "i64",
            Native::U8 => "u8",
            Native::U16 => "u16",
            Native::U32 => "u32",
            Native::U64 => "u64",
            Native::F16 => "f16",
            Native::F32 => "f32",
            Native::F64 => "f64",
            Native::Bool => "bool",
            Native::Complex32 => "complex of f32",
            Native::Complex64 => "complex of f64",
        })
    }
}

mod private {
    pub trait Sealed {}
}

/// An element type that a caller can ask for: the integers of 8 to 64 bits, `f32`, `f64`, `half::f16`, `bool` (whether a
/// number is not zero), and complex numbers as `[f32; 2]` and `[f64; 2]`.
pub trait Element: private::Sealed + Copy + Default + Send + Sync + fmt::Debug + 'static {
    /// The type as a value.
    const NATIVE: Native;

    /// What its elements are in memory while they are read.
    #[doc(hidden)]
    type Raw: Plain;

    #[doc(hidden)]
    fn from_raw(raw: Vec<Self::Raw>) -> Vec<Self>;

    /// The elements as raw ones, if these are the same.
    #[doc(hidden)]
    fn as_raw(elements: &mut [Self]) -> Option<&mut [Self::Raw]>;

    /// The elements as raw ones.
    #[doc(hidden)]
    fn raw(elements: &[Self]) -> Cow<'_, [Self::Raw]>;
}

macro_rules! elements {
    ($($t:ty => $native:ident),*) => {$(
        impl private::Sealed for $t {}
        impl Element for $t {
            const NATIVE: Native = Native::$native;
            type Raw = $t;
            fn from_raw(raw: Vec<$t>) -> Vec<$t> {
                raw
            }
            fn as_raw(elements: &mut [$t]) -> Option<&mut [$t]> {
                Some(elements)
            }
            fn raw(elements: &[$t]) -> Cow<'_, [$t]> {
                Cow::Borrowed(elements)
            }
        }
    )*};
}
elements!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64, f16 => F16, f32 => F32,
    f64 => F64, [f32; 2] => Complex32, [f64; 2] => Complex64
);

impl private::Sealed for bool {}
impl Element for bool {
    const NATIVE: Native = Native::Bool;
    type Raw = u8;
    fn from_raw(raw: Vec<u8>) -> Vec<bool> {
        raw.into_iter().map(|v| v != 0).collect()
    }
    fn as_raw(_: &mut [bool]) -> Option<&mut [u8]> {
        None
    }
    fn raw(elements: &[bool]) -> Cow<'_, [u8]> {
        elements.iter().map(|&v| u8::from(v)).collect()
    }
}
