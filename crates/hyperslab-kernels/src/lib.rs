//! Byte kernels: slices in, slices out; and one call of the system.
//!
//! This is the only crate below the bindings that may use `unsafe`; every block carries a `SAFETY` note and
//! every kernel has a plain reference version that the tests compare it with.

pub mod bitshuffle;
pub mod canvas;
mod memory;
mod names;
pub mod shuffle;
mod swap;

pub use memory::{Plain, bytes_of, bytes_of_mut, zeroed};
pub use names::exchange;
pub use swap::{swap_elements, swap_in_place};
