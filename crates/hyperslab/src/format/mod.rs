//! File formats: each a [`Hierarchy`](crate::model::Hierarchy), some metadata and a chunk index. Nothing else.

pub mod hdf5;
