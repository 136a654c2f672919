//! Heaps: where other structures keep things of any length (specification, III.D to III.G).

mod fractal;
mod geometry;
mod global;
mod local;
#[cfg(test)]
mod tests;

pub use fractal::{FractalHeap, ObjectKind};
pub(in crate::format::hdf5) use geometry::DoublingTable;
pub use global::GlobalHeap;
pub use local::LocalHeap;
