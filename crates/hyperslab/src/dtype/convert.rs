//! From elements as stored to elements as wanted.

mod private {
    pub trait Sealed {}
}

/// An element type that a caller can ask for: the integers of 8 to 64 bits, `f32`, `f64`, `half::f16`, `bool` (not
/// zero), and complex numbers as `[f32; 2]` and `[f64; 2]`.
pub trait Element: private::Sealed + Copy + Send + Sync + std::fmt::Debug + 'static {}

macro_rules! elements {
    ($($t:ty),*) => {$(impl private::Sealed for $t {} impl Element for $t {})*};
}
elements!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, half::f16, bool, [f32; 2], [f64; 2]);
