//! The bytes of one structure as they are put together: the counterpart of [`Cursor`](crate::format::hdf5::parse::Cursor).

use crate::format::hdf5::parse::{Sizes, lookup3};

/// Bytes of the smallest field that holds `largest`: 1 to 8.
pub(in crate::format::hdf5) fn width_of(largest: u64) -> usize {
    largest.checked_ilog2().unwrap_or(0) as usize / 8 + 1
}

/// Little-endian fields, one after the other.
#[derive(Clone, Debug)]
pub(in crate::format::hdf5) struct Encoder {
    bytes: Vec<u8>,
    sizes: Sizes,
}

impl Encoder {
    /// Nothing yet, for a file whose addresses and lengths have these sizes.
    pub(in crate::format::hdf5) fn new(sizes: Sizes) -> Self {
        Encoder { bytes: Vec::new(), sizes }
    }

    /// Sizes of addresses and lengths.
    pub(in crate::format::hdf5) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes so far.
    pub(in crate::format::hdf5) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes as they are.
    pub(in crate::format::hdf5) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// One byte.
    pub(in crate::format::hdf5) fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    /// Two bytes.
    pub(in crate::format::hdf5) fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Four bytes.
    pub(in crate::format::hdf5) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Eight bytes.
    pub(in crate::format::hdf5) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// The low `width` bytes of a number; more than eight are zeros.
    pub(in crate::format::hdf5) fn uint(&mut self, value: u64, width: usize) -> &mut Self {
        let bytes = value.to_le_bytes();
        self.put(bytes.get(..width.min(8)).unwrap_or(&bytes));
        self.zeros(width.saturating_sub(8))
    }

    /// An address; [`UNDEFINED`](crate::format::hdf5::parse::UNDEFINED) becomes all bits set in any size.
    pub(in crate::format::hdf5) fn address(&mut self, address: u64) -> &mut Self {
        self.uint(address, usize::from(self.sizes.offset))
    }

    /// A length; 2^64 - 1 becomes all bits set in any size.
    pub(in crate::format::hdf5) fn length(&mut self, length: u64) -> &mut Self {
        self.uint(length, usize::from(self.sizes.length))
    }

    /// `n` zeros.
    pub(in crate::format::hdf5) fn zeros(&mut self, n: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len() + n, 0);
        self
    }

    /// Zeros up to the next multiple of `n` bytes from the start.
    pub(in crate::format::hdf5) fn align(&mut self, n: usize) -> &mut Self {
        self.zeros(self.bytes.len().next_multiple_of(n) - self.bytes.len())
    }

    /// Bytes and a NUL.
    pub(in crate::format::hdf5) fn c_string(&mut self, text: &[u8]) -> &mut Self {
        self.put(text).u8(0)
    }

    /// The checksum of everything so far.
    pub(in crate::format::hdf5) fn checksum(&mut self) -> &mut Self {
        self.u32(lookup3(&self.bytes))
    }

    /// The bytes.
    pub(in crate::format::hdf5) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes so far.
    pub(in crate::format::hdf5) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
