//! What a caller wants of an array, and how it falls on the grid of chunks. Pure arithmetic: no I/O, no element types.
//!
//! A [`Selection`] is what the caller wrote. Resolved against the extents of an array it becomes a [`Region`]: one
//! [`Selector`] for each axis of the result, all indices checked and non-negative. A region falls on a chunk grid as a
//! [`Projection`]: the touched chunks, each once, with what is wanted of them and where it goes.

mod into;
mod parse;
mod projection;

mod region;
mod selection;
#[cfg(test)]
mod tests;

pub use into::{All, IntoItem, IntoSelection, Step};

pub use projection::{ChunkPart, Piece, Projection};
pub use region::{Region, Selector};
pub use selection::{Item, List, Mask, Mode, Selection, Slice};
