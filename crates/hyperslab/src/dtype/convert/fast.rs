//! Conversions between the number types of this machine, one compiled loop for each pair.

use super::element::Native;
use half::f16;

/// Fills the target from elements `stride` bytes apart in the source.
pub(super) type Run = fn(source: &[u8], stride: usize, target: &mut [u8]);

/// A number as stored.
trait Stored: Copy {
    const SIZE: usize;
    /// The number in the first bytes, little-endian, or big-endian if `swapped`.
    fn load(bytes: &[u8], swapped: bool) -> Self;
}

/// A number as wanted, made from a stored one by HDF5's rules.
trait Wanted<S>: Copy {
    const SIZE: usize;
    fn from_stored(value: S) -> Self;
    fn store(self, bytes: &mut [u8]);
}

fn convert<S: Stored, D: Wanted<S>, const SWAPPED: bool>(source: &[u8], stride: usize, target: &mut [u8]) {
    if stride == S::SIZE {
        for (to, from) in target.chunks_exact_mut(D::SIZE).zip(source.chunks_exact(S::SIZE)) {
            D::from_stored(S::load(from, SWAPPED)).store(to);
        }
        return;
    }
    let mut at = 0;
    for to in target.chunks_exact_mut(D::SIZE) {
        if let Some(from) = source.get(at..at + S::SIZE) {
            D::from_stored(S::load(from, SWAPPED)).store(to);
        }
        at += stride;
    }
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            const SIZE: usize = size_of::<$t>();
            #[inline(always)]
            fn load(bytes: &[u8], swapped: bool) -> Self {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(&bytes[..size_of::<$t>()]);
                if swapped { <$t>::from_be_bytes(raw) } else { <$t>::from_le_bytes(raw) }
            }
        }
    )*};
}
stored!(i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64);

macro_rules! wanted {
    ($d:ty, |$v:ident: $($s:ty),*| $make:expr) => {$(
        impl Wanted<$s> for $d {
            const SIZE: usize = size_of::<$d>();
            #[inline(always)]
            fn from_stored($v: $s) -> $d {
                $make
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

macro_rules! integers {
    ($($d:ty),*) => {$(
        // Clamped.
        wanted!($d, |v: i8, i16, i32, i64, u8, u16, u32, u64|
            <$d>::try_from(v).unwrap_or(if v > 0 { <$d>::MAX } else { <$d>::MIN }));
        // Cut, clamped, NaN to 0: what a cast does.
        wanted!($d, |v: f32, f64| v as $d);
        wanted!($d, |v: f16| v.to_f32() as $d);
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

wanted!(f64, |v: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64| v as f64);
wanted!(f64, |v: f16| v.to_f64());
wanted!(f32, |v: i8, i16, i32, i64, u8, u16, u32, u64, f32| v as f32);
wanted!(f32, |v: f16| v.to_f32());
// HDF5 makes everything beyond the largest finite number infinite, also what would round down to it.
wanted!(f32, |v: f64| if v.abs() > f64::from(f32::MAX) {
    f32::INFINITY.copysign(v as f32)
} else {
    v as f32
});
wanted!(f16, |v: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64| to_half(v as f64));
wanted!(f16, |v: f16| v);

#[inline(always)]
fn to_half(v: f64) -> f16 {
    if v.abs() > 65504.0 { if v > 0.0 { f16::INFINITY } else { f16::NEG_INFINITY } } else { f16::from_f64(v) }
}

/// Whether a number is not zero.
#[derive(Clone, Copy)]
struct Truth(u8);

macro_rules! truth {
    ($($s:ty: $zero:expr),*) => {$(
        impl Wanted<$s> for Truth {
            const SIZE: usize = 1;
            #[inline(always)]
            fn from_stored(value: $s) -> Truth {
                Truth(u8::from(value != $zero))
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&[self.0]);
            }
        }
    )*};
}
truth!(i8: 0, i16: 0, i32: 0, i64: 0, u8: 0, u16: 0, u32: 0, u64: 0, f16: f16::ZERO, f32: 0.0, f64: 0.0);

/// The loop from one type to another; `swapped`: the source is big-endian.
pub(super) fn run(source: Native, wanted: Native, swapped: bool) -> Run {
    macro_rules! to {
        ($s:ty) => {
            if swapped { to!($s, true) } else { to!($s, false) }
        };
        ($s:ty, $swapped:literal) => {
            match wanted {
                Native::I8 => convert::<$s, i8, $swapped>,
                Native::I16 => convert::<$s, i16, $swapped>,
                Native::I32 => convert::<$s, i32, $swapped>,
                Native::I64 => convert::<$s, i64, $swapped>,
                Native::U8 => convert::<$s, u8, $swapped>,
                Native::U16 => convert::<$s, u16, $swapped>,
                Native::U32 => convert::<$s, u32, $swapped>,
                Native::U64 => convert::<$s, u64, $swapped>,
                Native::F16 => convert::<$s, f16, $swapped>,
                Native::F32 => convert::<$s, f32, $swapped>,
                // Complex numbers are converted part by part.
                Native::F64 | Native::Complex32 | Native::Complex64 => convert::<$s, f64, $swapped>,
                Native::Bool => convert::<$s, Truth, $swapped>,
            }
        };
    }
    match source {
        Native::I8 => to!(i8, false),
        Native::U8 | Native::Bool => to!(u8, false),
        Native::I16 => to!(i16),
        Native::I32 => to!(i32),
        Native::I64 => to!(i64),
        Native::U16 => to!(u16),
        Native::U32 => to!(u32),
        Native::U64 => to!(u64),
        Native::F16 => to!(f16),
        Native::F32 => to!(f32),
        Native::F64 | Native::Complex32 | Native::Complex64 => to!(f64),
    }
}
