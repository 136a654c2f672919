//! The file as the writer sees it: one growable run of bytes, with room given out and taken back.

use super::target::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::parse::{Sizes, UNDEFINED};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes that are gathered before they are handed on.
const GATHERED: usize = 1 << 20;

/// Room that nobody uses.
#[derive(Debug, Default)]
struct Room {
    /// Length of each free run by its address.
    runs: BTreeMap<u64, u64>,
    /// Length and address, to find the smallest that is enough.
    by_length: BTreeSet<(u64, u64)>,
}

impl Room {
    fn insert(&mut self, address: u64, length: u64) {
        self.runs.insert(address, length);
        self.by_length.insert((length, address));
    }

    fn remove(&mut self, address: u64) -> Option<u64> {
        let length = self.runs.remove(&address)?;
        self.by_length.remove(&(length, address));
        Some(length)
    }

    /// Takes `length` bytes at a multiple of `align` out of the smallest run that has them.
    fn take(&mut self, length: u64, align: u64) -> Option<u64> {
        let fits = |&&(room, address): &&(u64, u64)| {
            address.next_multiple_of(align).checked_add(length).is_some_and(|end| end <= address + room)
        };
        let &(_, run) = self.by_length.range((length, 0)..).take(64).find(fits)?;
        let room = self.remove(run)?;
        let address = run.next_multiple_of(align);
        let (before, behind) = (address - run, run + room - address - length);
        if before > 0 {
            self.insert(run, before);
        }
        if behind > 0 {
            self.insert(address + length, behind);
        }
        Some(address)
    }

    /// Gives a run back, joined with its neighbours.
    fn give(&mut self, mut address: u64, mut length: u64) {
        if let Some((&before, &room)) = self.runs.range(..address).next_back()
            && before + room == address
        {
            self.remove(before);
            address = before;
            length += room;
        }
        if let Some(room) = self.remove(address + length) {
            length += room;
        }
        self.insert(address, length);
    }
}

/// The bytes of one HDF5 file. Addresses are relative to its base.
pub(super) struct Disk {
    target: Arc<dyn Target>,
    /// Offset of address 0.
    base: u64,
    sizes: Sizes,
    /// Address behind the last byte given out.
    end: u64,
    /// Address from which on the target holds nothing but zeros.
    zeros: u64,
    room: Room,
    /// Bytes that are on their way, and where they go.
    gathered: Vec<u8>,
    gathered_at: u64,
    written: u64,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("base", &self.base).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Disk {
    /// A file in `target` whose address 0 is at `base` and whose bytes up to `end` are in use.
    pub(super) fn new(target: Arc<dyn Target>, base: u64, end: u64, sizes: Sizes) -> Self {
        let room = Room::default();
        // What may stand behind the end is nobody's.
        let zeros = target.len().map_or(u64::MAX, |length| length.saturating_sub(base)).max(end);
        Disk { target, base, sizes, end, zeros, room, gathered: Vec::new(), gathered_at: 0, written: 0 }
    }

    /// Sizes of addresses and lengths.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Offset of address 0.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Address behind the last byte in use.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The largest address that the file's own size of addresses holds.
    fn largest(&self) -> u64 {
        match self.sizes.offset {
            n @ 0..8 => (1u64 << (8 * u32::from(n))) - 2,
            _ => i64::MAX as u64,
        }
    }

    /// Room for `length` bytes at a multiple of `align`.
    pub(super) fn allocate(&mut self, length: u64, align: u64) -> Result<u64> {
        let align = align.max(1);
        if let Some(address) = self.room.take(length, align) {
            return Ok(address);
        }
        let address = self.end.checked_next_multiple_of(align);
        let end = address.and_then(|a| a.checked_add(length)).filter(|&end| end <= self.largest());
        let (Some(address), Some(end)) = (address, end) else {
            return Err(Error::limit(
                "bytes of a file with addresses of this size",
                u128::from(self.end) + u128::from(length),
                self.largest().into(),
            ));
        };
        if address > self.end && address - self.end >= 512 {
            // What alignment leaves before large data holds metadata later. It was never written.
            self.room.give(self.end, address - self.end);
        }
        let behind = self.gathered_at + self.gathered.len() as u64;
        if behind == self.end && !self.gathered.is_empty() && address - self.end < 8 {
            // What alignment leaves is nobody's; with zeros there the run goes on.
            self.gathered.resize(self.gathered.len() + (address - self.end) as usize, 0);
        }
        self.end = end;
        self.zeros = self.zeros.max(end);
        Ok(address)
    }

    /// The same, with zeros in it.
    pub(super) fn allocate_zeroed(&mut self, length: u64, align: u64) -> Result<u64> {
        let zeros_from = self.zeros;
        let address = self.allocate(length, align)?;
        if address < zeros_from {
            let zeros = vec![0; length.min(GATHERED as u64 / 2) as usize];
            let mut done = 0;
            while done < length {
                let n = (length - done).min(zeros.len() as u64);
                self.put(address + done, zeros.get(..n as usize).unwrap_or(&zeros))?;
                done += n;
            }
        }
        Ok(address)
    }

    /// Says that nobody uses these bytes any more.
    pub(super) fn release(&mut self, address: u64, length: u64) {
        let inside = address.checked_add(length).is_some_and(|end| end <= self.end);
        if address != UNDEFINED && length > 0 && inside {
            self.room.give(address, length);
            // Room at the end is none: what comes next begins there, also if it needs more.
            let last = self.room.runs.last_key_value().map(|(&address, &length)| (address, length));
            if let Some((address, length)) = last
                && address + length == self.end
            {
                self.room.remove(address);
                self.end = address;
            }
        }
    }

    /// Offset of `length` bytes at an address, all of which are of the file.
    fn offset(&self, address: u64, length: u64) -> Result<u64> {
        let end = address.checked_add(length).filter(|&end| end <= self.end);
        let offset = end.and_then(|_| self.base.checked_add(address));
        offset.ok_or_else(|| {
            let text = format!("{length} bytes reach beyond the end of the file at {:#x}", self.end);
            Error::new(ErrorKind::Corrupt, text).at("HDF5 structure", address)
        })
    }

    /// Writes bytes at an address that was given out.
    pub(super) fn put(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let offset = self.offset(address, bytes.len() as u64)?;
        self.written = self.written.saturating_add(bytes.len() as u64);
        let behind = self.gathered_at + self.gathered.len() as u64;
        if self.gathered.is_empty() || address != behind || self.gathered.len() + bytes.len() > GATHERED {
            self.flush()?;
            self.gathered_at = address;
        }
        if bytes.len() >= GATHERED {
            self.flush()?;
            return self.target.write_at(offset, bytes);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Hands on what is gathered.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.gathered.is_empty() {
            self.target.write_at(self.base + self.gathered_at, &self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }

    /// Allocates room for a structure and writes it there.
    pub(super) fn place(&mut self, bytes: &[u8]) -> Result<u64> {
        let address = self.allocate(bytes.len() as u64, 8)?;
        self.put(address, bytes)?;
        Ok(address)
    }

    /// Reads bytes at an address, those on their way too.
    pub(super) fn read(&mut self, address: u64, length: usize) -> Result<Vec<u8>> {
        self.flush()?;
        // Before anything is allocated.
        let offset = self.offset(address, length as u64)?;
        let mut bytes = vec![0; length];
        self.target.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Changes bytes of a structure that is there.
    pub(super) fn patch(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.flush()?;
        let offset = self.offset(address, bytes.len() as u64)?;
        self.target.write_at(offset, bytes)
    }

    /// Bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The target, with everything handed on.
    pub(super) fn target(&mut self) -> Result<&Arc<dyn Target>> {
        self.flush()?;
        Ok(&self.target)
    }

    /// Cuts or extends the file to its end, and makes it last.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.flush()?;
        self.target.set_len(self.base + self.end)?;
        self.target.commit()
    }
}
