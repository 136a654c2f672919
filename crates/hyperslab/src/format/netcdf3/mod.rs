//! Classic netCDF: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit sizes).
//!
//! A file is one header and the data that it points to; there are no groups, no filters, no chunks.
//!
//! Read it in this order: [`header`] parses the bytes, [`layout`] works out from it where each variable lies, [`index`]
//! answers for chunks, [`hierarchy`] shows all of it as the model; [`write`](mod@write) goes the other way.

pub mod header;
pub mod hierarchy;
pub mod index;
pub mod layout;
#[cfg(test)]
mod tests;
pub mod write;

pub use header::Version;
pub use hierarchy::NetCdf3;
