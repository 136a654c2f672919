//! hyperslab against the reference libraries: what the tests of this crate share.
//!
//! The reference libraries run in the Python that `scripts/python-env` makes; `scripts/test` does that.

pub mod archive;
pub mod codecs;
pub mod compare;
pub mod corpus;
#[cfg(feature = "remote")]
pub mod crash;
pub mod extent;
#[cfg(feature = "remote")]
pub mod history;
pub mod mutation;
pub mod probe;
pub mod reference;
pub mod rewrite;
pub mod rng;
pub mod swmr;
pub mod tool;
