//! Byte kernels: slices in, slices out.
//!
//! This is the only crate below the bindings that may use `unsafe`; every block carries a `SAFETY` note and
//! every kernel has a plain reference version that the tests compare it with.

pub mod shuffle;
