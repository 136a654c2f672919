//! Conventions: what people agreed to mean by the groups, arrays and attributes of a format.
//!
//! A convention reads a [`Hierarchy`](crate::model::Hierarchy) and never a format.

pub mod netcdf;
