//! What the headers and blocks of fixed and extensible arrays have in common: each block repeats which array it is of.

use super::entry::EntryFormat;
use crate::error::Result;
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::{Cursor, Sizes};

/// An array, as its blocks name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// What its entries are for: 0 chunks, 1 filtered chunks.
    client: u8,
    /// Address of its header.
    header: u64,
}

impl Owner {
    /// Reads the start of the header at `address`: signature, version, client, and the bytes of an entry.
    pub(super) fn parse(c: &mut Cursor<'_>, signature: &[u8; 4], address: u64) -> Result<(Owner, usize)> {
        c.signature(signature)?;
        version(c)?;
        let client = c.u8()?;
        Ok((Owner { client, header: address }, usize::from(c.u8()?)))
    }

    /// How entries of `size` bytes are stored; `c` stands behind the header, whose checksum is known to be right.
    pub(super) fn entries(
        &self,
        c: &Cursor<'_>,
        space: &Space,
        size: usize,
        chunk_bytes: u64,
    ) -> Result<EntryFormat> {
        let format = match self.client {
            0 | 1 => EntryFormat::new(space.sizes(), self.client == 1, size, chunk_bytes),
            _ => None,
        };
        format.ok_or_else(|| c.corrupt(format!("entries of {size} bytes for client {}", self.client)))
    }

    /// Bytes of what every block starts with: signature, version, client, owner.
    pub(super) fn head_size(sizes: Sizes) -> u64 {
        6 + u64::from(sizes.offset)
    }

    /// Reads what every block starts with, and verifies the checksum at the end of the block.
    pub(super) fn check(&self, c: &mut Cursor<'_>, signature: &[u8; 4], sizes: Sizes) -> Result<()> {
        let mut whole = c.clone();
        c.signature(signature)?;
        version(c)?;
        let client = c.u8()?;
        if client != self.client {
            return Err(c.corrupt(format!("client {} expected, {client} found", self.client)));
        }
        let owner = c.address(sizes)?;
        if owner != self.header {
            return Err(c.corrupt(format!("it belongs to the array at {owner:#x}, not {:#x}", self.header)));
        }
        whole.skip(whole.remaining().saturating_sub(4))?;
        whole.checksum()
    }
}

fn version(c: &mut Cursor<'_>) -> Result<()> {
    match c.u8()? {
        0 => Ok(()),
        version => Err(c.corrupt(format!("version {version}, only 0 is known"))),
    }
}
