//! One engine for the world's chunked scientific arrays.
#![forbid(unsafe_code)]

pub mod array;
pub mod codec;
pub mod convention;
pub mod copy;
pub mod diff;
pub mod dtype;
pub mod follow;
pub mod model;
pub mod select;
pub mod source;
pub mod staged;
pub mod version;
pub mod write;

pub mod error;
pub mod exec;
pub mod format;
pub mod json;
mod limits;
pub mod plan;
pub mod shape;

pub use error::{Context, Error, ErrorKind, Result};
pub use limits::{Budget, Limits};

pub use array::{
    Address, Array, ArrayData, File, Group, NamedType, Object, OpenOptions, RawData, ReadOptions, Verdict,
    open, open_swmr, open_swmr_with, open_with,
};
pub use exec::{Cancel, ChunkCache, MissingChunks, ReadStats};
pub use follow::{Follow, FollowOptions, follow};
pub use plan::ReadPlan;
pub use select::Selection;
pub use staged::StagedArray;
pub use version::Versions;
pub use write::{Format, Transaction, change, create, edit};

/// The Rust of the README, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
