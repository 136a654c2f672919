//! The address space of one HDF5 file: metadata by address, bounded and budgeted.

use super::parse::{Cursor, Sizes, UNDEFINED};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use crate::source::{ByteRange, Latency, Source, Traffic};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that one prefetch may bring: less than the cache keeps.
const PREFETCHED: u64 = 32 << 20;

/// What a short run brings with it.
const BLOCK: u64 = 512;

/// What every HDF5 parser needs to follow an address. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Space {
    /// Metadata reads (through the block cache where there is one).
    metadata: Arc<dyn Source>,
    /// Raw data reads, uncached.
    data: Arc<dyn Source>,
    /// Absolute offset of address 0.
    base: u64,
    /// Absolute offset behind the last byte that belongs to the file; if it may grow, where that was when last looked at.
    end: Arc<AtomicU64>,
    growing: bool,
    sizes: Sizes,
    limits: Arc<Limits>,
    budget: Arc<Budget>,
}

impl Space {
    /// The space of a file whose address 0 is at `base` of the source and that ends at absolute offset `end`.
    pub fn new(
        metadata: Arc<dyn Source>,
        data: Arc<dyn Source>,
        base: u64,
        end: u64,
        sizes: Sizes,
        limits: Arc<Limits>,
    ) -> Self {
        let budget = Arc::new(Budget::new("metadata of one file in bytes", limits.metadata));
        let end = Arc::new(AtomicU64::new(end));
        Space { metadata, data, base, end, growing: false, sizes, limits, budget }
    }

    /// The same space of a file that grows: its end is where the source ends at the moment.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.growing = true;
        self
    }

    /// Sizes of addresses and lengths.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Limits that hold for this file.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// The file's metadata budget; parsers charge what they keep beyond the bytes that they read.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The same space with a budget of its own: for work that keeps nothing, so that it can be done any number of
    /// times, each time bounded.
    #[must_use]
    pub fn scoped(&self) -> Space {
        let budget = Arc::new(Budget::new("metadata of one object in bytes", self.limits.metadata));
        Space { budget, ..self.clone() }
    }

    /// The source of raw data.
    pub fn data(&self) -> &Arc<dyn Source> {
        &self.data
    }

    /// Absolute offset of address 0.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Absolute offset behind the last byte of the file.
    pub fn end(&self) -> u64 {
        self.end_from(u64::MAX)
    }

    /// The same, looked at again only if the end is not known to lie at or behind `wanted`.
    fn end_from(&self, wanted: u64) -> u64 {
        let known = self.end.load(Ordering::Relaxed);
        if !self.growing || wanted <= known {
            return known;
        }
        // A source that does not say its length is one that the read to come will complain about.
        let Ok(now) = self.metadata.len() else { return known };
        self.end.store(now, Ordering::Relaxed);
        now
    }

    /// Bytes of the file, looked at again only if they are not known to be at least `wanted`.
    pub fn room(&self, wanted: u64) -> u64 {
        self.end_from(self.base.saturating_add(wanted)).saturating_sub(self.base)
    }

    /// Absolute offset of `length` bytes at `address`, if all of them lie in the file.
    pub fn resolve(&self, structure: &'static str, address: u64, length: u64) -> Result<u64> {
        if address == UNDEFINED {
            return Err(Error::new(ErrorKind::Corrupt, format!("{structure}: the address is undefined")));
        }
        let offset = self.base.checked_add(address);
        let wanted = offset.and_then(|o| o.checked_add(length));
        let there = self.end_from(wanted.unwrap_or(u64::MAX));
        match wanted {
            Some(end) if end <= there => Ok(end - length),
            _ => Err(Error::new(
                ErrorKind::Truncated,
                format!("{length} bytes reach beyond the end of the file at {there:#x}"),
            )
            .at(structure, offset.unwrap_or(u64::MAX))),
        }
    }

    /// Reads `length` bytes of metadata at `address`.
    pub fn read(&self, structure: &'static str, address: u64, length: u64) -> Result<Bytes> {
        let offset = self.resolve(structure, address, length)?;
        self.budget.charge(length)?;
        let mut bytes = self.metadata.read(&[ByteRange::new(offset, length)]).at(structure, offset)?;
        bytes.pop().ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"))
    }

    /// Reads up to `length` bytes at `address`: fewer only at the end of the file.
    pub fn read_up_to(&self, structure: &'static str, address: u64, length: u64) -> Result<Bytes> {
        let offset = self.resolve(structure, address, 0)?;
        let there = self.end_from(offset.saturating_add(length));
        self.read(structure, address, length.min(there.saturating_sub(offset)))
    }

    /// Whether a read of metadata is worth waiting for others to go with it: they are then kept. Of what grows nothing is.
    pub fn is_remote(&self) -> bool {
        !self.growing && self.metadata.hints().latency == Latency::Remote
    }

    /// Brings runs of metadata, each an address and a length, into the block cache in one batch, where a request takes
    /// long. What lies outside the file or cannot be had is left to fail when it is read.
    pub fn prefetch(&self, runs: impl IntoIterator<Item = (u64, u64)>) {
        if !self.is_remote() {
            return;
        }
        let mut ranges = Vec::new();
        let mut left = PREFETCHED;
        for (address, length) in runs {
            let Ok(offset) = self.resolve("prefetched metadata", address, 0) else { continue };
            let length = length.min(self.end_from(0).saturating_sub(offset));
            let Some(rest) = left.checked_sub(length.max(BLOCK)) else { break };
            left = rest;
            ranges.push(ByteRange::new(offset, length));
        }
        if ranges.len() > 1 {
            let _ = self.metadata.read(&ranges);
        }
    }

    /// What was asked of a server so far.
    pub fn traffic(&self) -> Traffic {
        self.metadata.traffic()
    }

    /// A cursor over `bytes` that were read at `address`.
    pub fn cursor<'a>(&self, bytes: &'a [u8], structure: &'static str, address: u64) -> Cursor<'a> {
        Cursor::new(bytes, structure, self.base.saturating_add(address))
    }
}
