//! HDF5, parsed from bytes (HDF5 File Format Specification, version 4.0).
//!
//! Bottom up: [`parse`] (a checked cursor), [`mod@file`] (address space of one file), `heap`, `btree` (structures that others
//! point into), `message` (what an object header holds), `object` (headers), `group`, `attribute`, `index` (chunk
//! coordinates to byte locations), and `hierarchy`, the face to the rest of the engine. [`mod@write`] is the way back.

pub mod attribute;
pub mod btree;
pub mod cache_image;
pub mod dataset;
pub mod file;
pub mod free_space;
pub mod group;
pub mod heap;
pub mod hierarchy;
mod idle;
pub mod index;
pub mod message;
pub mod object;
pub mod parse;
pub mod reference;
pub mod superblock;
#[cfg(test)]
pub(crate) mod test_space;
#[cfg(test)]
mod tests;
pub mod write;
