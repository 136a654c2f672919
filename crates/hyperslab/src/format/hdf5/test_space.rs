//! What the tests of HDF5 structures share: a file in memory, structures found by their signature, checksums renewed.

use super::file::Space;
use super::parse::{Sizes, lookup3};
use crate::limits::Limits;
use crate::source::MemorySource;
use std::sync::Arc;

/// A file of `bytes` with 8-byte addresses and lengths.
pub(crate) fn space(bytes: &[u8]) -> Space {
    limited(bytes, Limits::default())
}

/// The same under `limits`.
pub(crate) fn limited(bytes: &[u8], limits: Limits) -> Space {
    let source = Arc::new(MemorySource::new(bytes.to_vec(), "test"));
    let sizes = Sizes { offset: 8, length: 8 };
    Space::new(source.clone(), source, 0, bytes.len() as u64, sizes, Arc::new(limits))
}

/// Where `signature` stands.
pub(crate) fn find(bytes: &[u8], signature: &[u8; 4]) -> Vec<u64> {
    (0..bytes.len().saturating_sub(3)).filter(|&i| &bytes[i..i + 4] == signature).map(|i| i as u64).collect()
}

/// Stores the checksum of the `length` bytes at `at` behind them.
pub(crate) fn reseal(bytes: &mut [u8], at: usize, length: usize) {
    let sum = lookup3(&bytes[at..at + length]);
    bytes[at + length..at + length + 4].copy_from_slice(&sum.to_le_bytes());
}
