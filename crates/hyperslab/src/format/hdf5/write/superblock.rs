//! The superblock, written: version 0 in the earliest files, 2 for HDF5 1.8, 3 since (specification, II.A).

use super::Libver;
use super::encoder::Encoder;
use super::transaction::Transaction;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Sizes, UNDEFINED};
use crate::format::hdf5::superblock::SIGNATURE;

/// Bytes of the superblock of a new file.
pub(super) fn length(libver: Libver, sizes: Sizes) -> u64 {
    let o = u64::from(sizes.offset);
    match libver {
        Libver::Earliest => 24 + 4 * o + (2 * o + 24),
        _ => 16 + 4 * o,
    }
}

impl Transaction {
    /// Writes the superblock.
    pub(super) fn write_superblock(&mut self) -> Result<()> {
        if self.reading.is_some() {
            return self.update_superblock();
        }
        let sizes = self.disk.sizes();
        let base = self.disk.base();
        let (root, _) =
            self.object(self.root)?.place.ok_or_else(|| Error::invalid("a root without a place"))?;
        let end = base.saturating_add(self.disk.end());
        let mut out = Encoder::new(sizes);
        out.put(SIGNATURE);
        if self.options.libver == Libver::Earliest {
            // Versions of free space and root entry, reserved, version of shared messages, sizes, reserved.
            out.u8(0).u8(0).u8(0).u8(0).u8(0).u8(sizes.offset).u8(sizes.length).u8(0);
            out.u16(self.group_k.leaf).u16(self.group_k.internal).u32(0);
            out.address(base).address(UNDEFINED).address(end).address(UNDEFINED);
            // The entry of the root group: no name; its symbol table, where it has one.
            out.address(0).address(root);
            match self.root_table {
                Some(table) => out.u32(1).u32(0).address(table.btree).address(table.heap),
                None => out.u32(0).u32(0).zeros(16),
            };
        } else {
            let version = if self.options.libver == Libver::V18 { 2 } else { 3 };
            out.u8(version).u8(sizes.offset).u8(sizes.length).u8(0);
            out.address(base).address(UNDEFINED).address(end).address(root).checksum();
        }
        self.disk.patch(0, &out.finish())
    }
}
