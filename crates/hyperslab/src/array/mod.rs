//! What a user holds: files, groups, arrays.

#[allow(clippy::module_inception)]
mod array;
mod file;
mod options;

pub use array::{Array, ArrayData, RawData};
pub use options::{OpenOptions, ReadOptions};
