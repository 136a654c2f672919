//! A cursor over the bytes of one structure. Every read is checked; an error names the structure and the offset in the
//! file at which it lies.

use crate::error::{Error, Result};
use crate::shape::to_usize;

/// "No address": all bits set, in any offset size.
pub const UNDEFINED: u64 = u64::MAX;

/// Sizes of addresses and lengths in this file, from its superblock: 2, 4 or 8 (16 and 32 are not in use).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an address.
    pub offset: u8,
    /// Bytes of a length.
    pub length: u8,
}

/// A cursor over `bytes`, which start at file offset `at` and are part of `structure`.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    at: u64,
    structure: &'static str,
    sealed: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8], structure: &'static str, at: u64) -> Self {
        Cursor { bytes, position: 0, at, structure, sealed: false }
    }

    /// The same cursor over a structure whose last four bytes are its checksum. What is wrong in it may be half written
    /// by somebody else, unless the checksum matches.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sealed = true;
        self
    }

    /// Offset from the start of the structure.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Offset in the file.
    pub fn offset(&self) -> u64 {
        self.at.saturating_add(self.position as u64)
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// All bytes of the structure.
    pub fn all(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes that are left, without moving.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// An error of this structure at the current position.
    #[cold]
    pub fn corrupt(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        let error = Error::corrupt(self.structure, self.offset(), message);
        let sound = |bytes: &[u8]| match bytes.split_last_chunk::<4>() {
            Some((body, sum)) => u32::from_le_bytes(*sum) == lookup3(body),
            None => false,
        };
        if self.sealed && !sound(self.bytes) { error.torn() } else { error }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.position.checked_add(n).and_then(|end| self.bytes.get(self.position..end)) {
            Some(bytes) => {
                self.position += n;
                Ok(bytes)
            }
            None => Err(self.corrupt(format!("{n} bytes wanted, {} left", self.remaining()))),
        }
    }

    /// The next `n` bytes, where `n` comes from the file.
    pub fn take_u64(&mut self, n: u64) -> Result<&'a [u8]> {
        self.take(to_usize(n)?)
    }

    /// Passes over `n` bytes.
    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(|_| ())
    }

    /// Passes to the next multiple of `n` from the start of the structure.
    pub fn align(&mut self, n: usize) -> Result<()> {
        self.skip(self.position.next_multiple_of(n) - self.position)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little endian.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Three bytes, little endian.
    pub fn u24(&mut self) -> Result<u32> {
        Ok(self.uint(3)? as u32)
    }

    /// Four bytes, little endian.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, little endian.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// `n` bytes (at most 8 of them significant), little endian.
    pub fn uint(&mut self, n: usize) -> Result<u64> {
        let bytes = self.take(n)?;
        if bytes.iter().skip(8).any(|&b| b != 0) {
            return Err(self.corrupt("number larger than 64 bits"));
        }
        Ok(bytes.iter().take(8).rev().fold(0, |v, &b| v << 8 | u64::from(b)))
    }

    /// An address; [`UNDEFINED`] if all its bits are set.
    pub fn address(&mut self, sizes: Sizes) -> Result<u64> {
        let n = usize::from(sizes.offset);
        let bytes = self.take(n)?;
        if bytes.iter().all(|&b| b == 0xff) {
            return Ok(UNDEFINED);
        }
        Ok(bytes.iter().take(8).rev().fold(0, |v, &b| v << 8 | u64::from(b)))
    }

    /// A length; [`UNDEFINED`] if all its bits are set.
    pub fn length(&mut self, sizes: Sizes) -> Result<u64> {
        self.address(Sizes { offset: sizes.length, length: sizes.length })
    }

    /// Fails unless the next bytes are `signature`.
    pub fn signature(&mut self, signature: &[u8; 4]) -> Result<()> {
        let here = self.clone();
        let found = self.take(4)?;
        if found != signature {
            let text = |b: &[u8]| b.escape_ascii().to_string();
            return Err(here.corrupt(format!(
                "signature {:?} expected, {:?} found",
                text(signature),
                text(found)
            )));
        }
        Ok(())
    }

    /// Fails unless the next four bytes are the checksum of everything before them.
    pub fn checksum(&mut self) -> Result<()> {
        let computed = lookup3(&self.bytes[..self.position]);
        let stored = self.u32()?;
        if stored != computed {
            return Err(Error::checksum(self.structure, self.at, stored, computed));
        }
        Ok(())
    }

    /// Bytes up to and without the next NUL, which is passed over.
    pub fn c_string(&mut self) -> Result<&'a [u8]> {
        match self.rest().iter().position(|&b| b == 0) {
            Some(n) => {
                let text = self.take(n)?;
                self.skip(1)?;
                Ok(text)
            }
            None => Err(self.corrupt("text without a terminating NUL")),
        }
    }
}

/// The checksum of all HDF5 metadata.
pub fn lookup3(key: &[u8]) -> u32 {
    crate::codec::lookup3(key, 0)
}
