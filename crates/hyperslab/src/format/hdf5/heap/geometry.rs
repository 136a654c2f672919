//! The doubling table of a fractal heap: how its linear address space is cut into blocks (specification, III.G).
//!
//! A row has `width` blocks of one size. Rows 0 and 1 have blocks of the starting size, each further row blocks of
//! twice the size of the row before. Rows whose blocks would be larger than the largest direct block hold indirect
//! blocks, each a table of the same kind. Everything here follows from four numbers in the header.

use crate::error::{Error, ErrorKind, Result};

/// The numbers that fix the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format::hdf5) struct DoublingTable {
    width: u64,
    start: u64,
    max_direct: u64,
    /// Bits of a heap offset.
    max_bits: u32,
}

/// Where in an indirect block an offset falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format::hdf5) struct Slot {
    /// Number of the entry in the indirect block, over all rows.
    pub(in crate::format::hdf5) entry: u64,
    /// Offset of the child's first byte, relative to the indirect block.
    pub(in crate::format::hdf5) start: u64,
    /// Bytes of the child's part of the address space.
    pub(in crate::format::hdf5) size: u64,
    /// Whether the child is an indirect block.
    pub(in crate::format::hdf5) indirect: bool,
}

impl DoublingTable {
    /// Checks the numbers; `Err` says what is wrong with them.
    pub(in crate::format::hdf5) fn new(
        width: u16,
        start: u64,
        max_direct: u64,
        max_bits: u16,
    ) -> Result<Self> {
        let wrong = |text: String| Err(Error::new(ErrorKind::Corrupt, text));
        if width == 0 || !width.is_power_of_two() {
            return wrong(format!("table width {width} is not a power of two"));
        }
        if start == 0 || !start.is_power_of_two() || !max_direct.is_power_of_two() || max_direct < start {
            return wrong(format!("block sizes {start} to {max_direct} are not rising powers of two"));
        }
        let max_bits = u32::from(max_bits);
        if max_bits == 0 || max_bits > 64 {
            return wrong(format!("{max_bits} bits of heap offset, 1 to 64 are possible"));
        }
        let first_row = start.ilog2() + width.ilog2();
        if first_row > max_bits || max_direct.ilog2() > max_bits {
            return wrong(format!("blocks larger than the heap of 2^{max_bits} bytes"));
        }
        Ok(DoublingTable { width: width.into(), start, max_direct, max_bits })
    }

    /// Bits of the bytes that the first row covers.
    fn first_row_bits(&self) -> u32 {
        self.start.ilog2() + self.width.ilog2()
    }

    /// The most rows that an indirect block can have.
    pub(in crate::format::hdf5) fn max_rows(&self) -> u64 {
        u64::from(self.max_bits - self.first_row_bits()) + 1
    }

    /// The largest direct block.
    pub(in crate::format::hdf5) fn max_direct(&self) -> u64 {
        self.max_direct
    }

    /// Bytes of the starting blocks.
    pub(in crate::format::hdf5) fn start(&self) -> u64 {
        self.start
    }

    /// Rows of direct blocks in an indirect block of enough rows.
    pub(in crate::format::hdf5) fn direct_rows(&self) -> u64 {
        u64::from(self.max_direct.ilog2() - self.start.ilog2()) + 2
    }

    /// Rows of an indirect block that covers `size` bytes; `None` if no row fits.
    pub(in crate::format::hdf5) fn rows_of(&self, size: u64) -> Option<u64> {
        let bits = size.checked_ilog2()?;
        Some(u64::from(bits.checked_sub(self.first_row_bits())?) + 1)
    }

    /// Entries for direct and for indirect blocks in an indirect block of `rows`.
    pub(in crate::format::hdf5) fn entries(&self, rows: u64) -> (u64, u64) {
        let direct = rows.min(self.direct_rows());
        (direct * self.width, (rows - direct) * self.width)
    }

    /// Bytes of a block in `row`.
    fn block_size(&self, row: u64) -> Option<u64> {
        let doublings = u32::try_from(row.saturating_sub(1)).ok()?;
        self.start.checked_mul(1u64.checked_shl(doublings)?)
    }

    /// The entry of an indirect block that holds `offset`, relative to the block.
    pub(in crate::format::hdf5) fn slot(&self, offset: u64) -> Option<Slot> {
        let first = self.start.checked_mul(self.width)?;
        // Row r > 0 starts at first × 2^(r-1) and is as long as all rows before it.
        let row = if offset < first { 0 } else { u64::from((offset / first).ilog2()) + 1 };
        let row_start = if row == 0 { 0 } else { first << (row - 1) };
        let size = self.block_size(row)?;
        let column = (offset - row_start) / size;
        Some(Slot {
            entry: row * self.width + column,
            start: row_start + column * size,
            size,
            indirect: row >= self.direct_rows(),
        })
    }
}
