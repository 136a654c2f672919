//! Numbers of any layout: integers of partial precision, floats of any size.

use super::element::Native;
use crate::dtype::{ByteOrder, DType, FloatType, IntegerType, Normalization};
use std::fmt;

/// How a number is stored.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Integer(IntegerType),
    Float(FloatType),
}

/// The exact value of a stored number: `mantissa × 2^scale`, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    negative: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Finite { mantissa: u128, scale: i64 },
    Infinite,
    Nan,
}

/// How a float is rounded that lies between two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest, halves to even: what the machine does.
    Even,
    /// To the nearest, halves away from zero: what HDF5 does in software.
    Away,
}

impl Layout {
    /// The layout of a numeric element: integers, bit fields, times, floats, and enumerations by their base.
    pub(super) fn of(dtype: &DType) -> Option<Layout> {
        match dtype {
            DType::Integer(t) | DType::Bitfield(t) | DType::Time(t) => Some(Layout::Integer(t.clone())),
            DType::Float(t) => Some(Layout::Float(t.clone())),
            // The number of units since 1970, or of a difference.
            DType::DateTime(t) => Some(Layout::Integer(IntegerType::new(8, t.order, true))),
            DType::Enum { base, .. } => match &**base {
                DType::Integer(t) | DType::Bitfield(t) => Some(Layout::Integer(t.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Says what is beyond us, if anything.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            Layout::Integer(t) if t.size > 16 => Err("integers of more than 128 bits"),
            Layout::Float(t) if t.size > 16 => Err("floats of more than 128 bits"),
            Layout::Float(t) if t.exponent_size > 32 => Err("exponents of more than 32 bits"),
            Layout::Float(t) if t.mantissa_size > 126 => Err("mantissas of more than 126 bits"),
            Layout::Float(t) if t.bias > u64::from(u32::MAX) => Err("a bias of more than 32 bits"),
            _ => Ok(()),
        }
    }

    /// The type of this machine that it is, but for byte order.
    pub(super) fn machine(&self) -> Option<(Native, ByteOrder)> {
        match self {
            Layout::Integer(t) if t.is_whole() && t.order != ByteOrder::Vax => {
                let native = match (t.size, t.signed) {
                    (1, true) => Native::I8,
                    (2, true) => Native::I16,
                    (4, true) => Native::I32,
                    (8, true) => Native::I64,
                    (1, false) => Native::U8,
                    (2, false) => Native::U16,
                    (4, false) => Native::U32,
                    (8, false) => Native::U64,
                    _ => return None,
                };
                Some((native, t.order))
            }
            Layout::Float(t) if t.is_ieee() => {
                let native = match t.size {
                    2 => Native::F16,
                    4 => Native::F32,
                    _ => Native::F64,
                };
                Some((native, t.order))
            }
            _ => None,
        }
    }

    /// How HDF5 rounds it: x87's own format is converted by the machine, every other by software.
    pub(super) fn rounding(&self) -> Rounding {
        match self {
            Layout::Integer(_) => Rounding::Even,
            Layout::Float(t) => {
                let x87 = t.order == ByteOrder::Little
                    && t.normalization == Normalization::None
                    && (t.exponent_size, t.mantissa_size) == (15, 64);
                if x87 { Rounding::Even } else { Rounding::Away }
            }
        }
    }

    /// The value of the element in the first bytes.
    pub(super) fn number(&self, raw: &[u8]) -> Number {
        match self {
            Layout::Integer(t) => integer(t, raw),
            Layout::Float(t) => float(t, raw),
        }
    }
}

/// The first `size` bytes as one number, in whatever order.
fn bits(raw: &[u8], size: usize, order: ByteOrder) -> u128 {
    let raw = raw.get(..size).unwrap_or(raw);
    let n = raw.len();
    let byte = |i: usize| -> u128 {
        let at = match order {
            ByteOrder::Little => Some(i),
            ByteOrder::Big => n.checked_sub(i + 1),
            // Words from the last, the bytes of each as they are.
            ByteOrder::Vax => n.checked_sub(i - i % 2 + 2).map(|word| word + i % 2),
        };
        at.and_then(|at| raw.get(at)).copied().unwrap_or(0).into()
    };
    (0..n.min(16)).fold(0, |v, i| v | byte(i) << (8 * i))
}

/// `size` bits from `position`.
fn field(bits: u128, position: u32, size: u32) -> u128 {
    let shifted = bits.checked_shr(position).unwrap_or(0);
    1u128.checked_shl(size).map_or(shifted, |end| shifted & (end - 1))
}

fn integer(t: &IntegerType, raw: &[u8]) -> Number {
    let value = field(bits(raw, t.size, t.order), t.offset, t.precision);
    let sign = t.precision.checked_sub(1).map_or(0, |top| field(value, top, 1));
    let negative = t.signed && sign == 1;
    let magnitude = if negative {
        // Two's complement in `precision` bits.
        field(value.wrapping_neg(), 0, t.precision)
    } else {
        value
    };
    Number { negative, kind: Kind::Finite { mantissa: magnitude, scale: 0 } }
}

fn float(t: &FloatType, raw: &[u8]) -> Number {
    let bits = bits(raw, t.size, t.order);
    let negative = field(bits, t.sign_position, 1) == 1;
    let exponent = field(bits, t.exponent_position, t.exponent_size);
    let mantissa = field(bits, t.mantissa_position, t.mantissa_size);
    let implied = t.normalization == Normalization::Implied;
    // Stored leading bits are not part of the fraction, and say nothing about infinity.
    let fraction_size = if implied { t.mantissa_size } else { t.mantissa_size.saturating_sub(1) };
    // The casts fit: `check` bounds exponents and bias to 32 bits.
    let bias = t.bias as i64;
    let kind = if t.order != ByteOrder::Vax
        && t.exponent_size > 0
        && exponent == field(u128::MAX, 0, t.exponent_size)
    {
        if field(mantissa, 0, fraction_size) == 0 { Kind::Infinite } else { Kind::Nan }
    } else {
        let (mantissa, power) = match (implied, exponent) {
            (true, 0) => (mantissa, 1 - bias),
            (true, e) => (mantissa | 1 << t.mantissa_size, e as i64 - bias),
            // The smallest exponent of formats with a stored leading bit has the scale of the next.
            (false, e) => (mantissa, (e as i64).max(1) - bias),
        };
        Kind::Finite { mantissa, scale: power - i64::from(fraction_size) }
    };
    Number { negative, kind }
}

impl Number {
    /// Whether it is this small integer.
    pub(super) fn is(&self, value: u128) -> bool {
        let other = Number { negative: false, kind: Kind::Finite { mantissa: value, scale: 0 } };
        *self == other
    }

    fn is_zero(&self) -> bool {
        matches!(self.kind, Kind::Finite { mantissa: 0, .. })
    }

    /// Writes it as `wanted`, in the order of this machine.
    pub(super) fn store(&self, wanted: Native, rounding: Rounding, to: &mut [u8]) {
        fn put<const N: usize>(to: &mut [u8], bytes: [u8; N]) {
            if to.len() == N {
                to.copy_from_slice(&bytes);
            }
        }
        match wanted {
            // The casts fit: the values are clamped to the type.
            Native::I8 => put(to, (self.integer(-1 << 7, (1 << 7) - 1) as i8).to_ne_bytes()),
            Native::I16 => put(to, (self.integer(-1 << 15, (1 << 15) - 1) as i16).to_ne_bytes()),
            Native::I32 => put(to, (self.integer(-1 << 31, (1 << 31) - 1) as i32).to_ne_bytes()),
            Native::I64 => put(to, (self.integer(-1 << 63, (1 << 63) - 1) as i64).to_ne_bytes()),
            Native::U8 => put(to, (self.integer(0, (1 << 8) - 1) as u8).to_ne_bytes()),
            Native::U16 => put(to, (self.integer(0, (1 << 16) - 1) as u16).to_ne_bytes()),
            Native::U32 => put(to, (self.integer(0, (1 << 32) - 1) as u32).to_ne_bytes()),
            Native::U64 => put(to, (self.integer(0, (1 << 64) - 1) as u64).to_ne_bytes()),
            Native::F16 => put(to, (self.float(11, 5, rounding) as u16).to_ne_bytes()),
            Native::F32 => put(to, (self.float(24, 8, rounding) as u32).to_ne_bytes()),
            Native::F64 | Native::Complex32 | Native::Complex64 => {
                put(to, self.float(53, 11, rounding).to_ne_bytes());
            }
            Native::Bool => put(to, [u8::from(!self.is_zero())]),
        }
    }

    /// The integer part, clamped; 0 for NaN.
    fn integer(&self, least: i128, most: i128) -> i128 {
        let magnitude = match self.kind {
            Kind::Nan => return 0,
            Kind::Infinite => u128::MAX,
            Kind::Finite { mantissa, scale } if scale <= 0 => {
                u32::try_from(-scale).ok().and_then(|s| mantissa.checked_shr(s)).unwrap_or(0)
            }
            Kind::Finite { mantissa: 0, .. } => 0,
            Kind::Finite { mantissa, scale } => {
                if scale > i64::from(mantissa.leading_zeros()) {
                    u128::MAX
                } else {
                    mantissa << scale
                }
            }
        };
        let value = i128::try_from(magnitude).unwrap_or(i128::MAX);
        (if self.negative { -value } else { value }).clamp(least, most)
    }

    /// The bits of the IEEE float with this many mantissa bits (the implied one counted) and exponent bits.
    fn float(&self, precision: u32, exponent_size: u32, rounding: Rounding) -> u64 {
        let fraction = precision - 1;
        let sign = u64::from(self.negative) << (fraction + exponent_size);
        let infinite = ((1u64 << exponent_size) - 1) << fraction;
        let bias = (1i64 << (exponent_size - 1)) - 1;
        let (mantissa, scale) = match self.kind {
            // The sign of a NaN says nothing.
            Kind::Nan => return infinite | 1 << (fraction - 1),
            Kind::Infinite => return sign | infinite,
            Kind::Finite { mantissa: 0, .. } => return sign,
            Kind::Finite { mantissa, scale } => (mantissa, scale),
        };
        let size = i64::from(128 - mantissa.leading_zeros());
        let exponent = scale.saturating_add(size - 1);
        if exponent > bias {
            return sign | infinite;
        }
        // Numbers below the normal ones have fewer bits.
        let normal = exponent >= 1 - bias;
        let kept = i64::from(precision) - if normal { 0 } else { 1 - bias - exponent };
        let dropped = size - kept;
        let rounded = if dropped <= 0 {
            mantissa << -dropped
        } else if dropped > size {
            0
        } else {
            let whole = mantissa.checked_shr(dropped as u32).unwrap_or(0);
            let rest = field(mantissa, 0, dropped as u32);
            let half = 1u128 << (dropped - 1);
            let up = match rounding {
                Rounding::Even => rest > half || rest == half && whole & 1 == 1,
                Rounding::Away => rest >= half,
            };
            whole + u128::from(up)
        };
        // A carry out of the fraction raises the exponent by itself, up to infinity.
        let base = if normal { ((exponent + bias - 1) as u64) << fraction } else { 0 };
        sign | (base + rounded as u64)
    }
}

/// The same value: all NaNs are one, and so are both zeros.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        if self.is_zero() || other.is_zero() {
            return self.is_zero() && other.is_zero();
        }
        match (self.kind, other.kind) {
            (Kind::Nan, Kind::Nan) => true,
            (Kind::Infinite, Kind::Infinite) => self.negative == other.negative,
            (Kind::Finite { mantissa: a, scale: b }, Kind::Finite { mantissa: c, scale: d }) => {
                let (x, y) = (a.trailing_zeros(), c.trailing_zeros());
                self.negative == other.negative && a >> x == c >> y && b + i64::from(x) == d + i64::from(y)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Finite { mantissa, scale: 0 } => {
                write!(f, "{}{mantissa}", if self.negative { "-" } else { "" })
            }
            _ => write!(f, "{}", f64::from_bits(self.float(53, 11, Rounding::Even))),
        }
    }
}
