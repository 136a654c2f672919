//! Heaps: where other structures keep things of any length (specification, III.D to III.G).

mod fractal;
mod geometry;
mod global;
mod local;
#[cfg(test)]
mod tests;

pub use fractal::{FractalHeap, ObjectKind};
pub use global::GlobalHeap;
pub use local::LocalHeap;
