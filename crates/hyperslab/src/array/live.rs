//! Files that are read while somebody else writes them.
//!
//! HDF5 has SWMR for it: one writer, any number of readers. A *live* file is read by the path of any other file, with three
//! differences that are made where it is opened: it has no end but that of its source, nothing is kept from call to call,
//! and whole operations are run again where the writer has torn them ([`Retry`](crate::model::Retry)).

use super::file::{name, store_hierarchy};
use super::{Address, Array, File, Location, OpenOptions};
use crate::error::{Context, Result};
use crate::format::zarr::Consolidation;
use crate::model::{ChunkRef, Retry, Storage, Writer};
use crate::shape::{Coord, byte_count, to_usize};
use crate::source::{ByteRange, Latency, Neighbours, Source};
use bytes::Bytes;
use std::sync::Arc;

/// Opens the file of an address to be read while a SWMR writer may have it open. Takes no lock and does not disturb the
/// writer.
///
/// The file is *live* if its superblock says that a writer has it open: then reads see what is there at the moment, and
/// [`Array::refresh`] what was added. Any other file is opened as by [`open`](super::open).
pub fn open_swmr(address: impl Into<Address>) -> Result<File> {
    open_swmr_with(address, &OpenOptions::default())
}

/// The same with options.
pub fn open_swmr_with(address: impl Into<Address>, options: &OpenOptions) -> Result<File> {
    Ok(Origin::open(&address.into(), options)?.0)
}

/// Where the bytes of a file come from that is read while it is written.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    source: Arc<dyn Source>,
    neighbours: Neighbours,
}

impl Origin {
    /// Opens the file of an address, as [`open_swmr_with`] does; no origin is given of a store.
    pub(crate) fn open(address: &Address, options: &OpenOptions) -> Result<(File, Option<Origin>)> {
        if let Some(source) = Location::growing(address, options)? {
            let origin = Origin { source, neighbours: Neighbours::none() };
            let file = origin.reopen(address, options)?;
            if file.is_swmr_read() {
                return Ok((file, Some(origin)));
            }
        }
        match Location::open(address, options)? {
            Location::File(source, neighbours) => {
                let origin = Origin { source, neighbours };
                Ok((origin.reopen(address, options)?, Some(origin)))
            }
            Location::Store(store) => {
                let hierarchy = store_hierarchy(store, options, Consolidation::default())?;
                Ok((File::from_hierarchy(hierarchy, name(address), options), None))
            }
        }
    }

    /// Opens the same file once more, wherever its name leads to now.
    pub(crate) fn reopen(&self, address: &Address, options: &OpenOptions) -> Result<File> {
        open_source(self.source.clone(), self.neighbours.clone(), name(address), options)
    }

    /// Whether its name still leads to it.
    pub(crate) fn is_current(&self) -> Result<bool> {
        self.source.is_current()
    }
}

fn open_source(
    source: Arc<dyn Source>,
    neighbours: Neighbours,
    name: String,
    options: &OpenOptions,
) -> Result<File> {
    let hierarchy = crate::format::open_live(source, neighbours, options.limits.clone())?;
    Ok(File::from_hierarchy(hierarchy, name, options))
}

impl File {
    /// Opens the file in a source whose length may grow, to be read while a SWMR writer may have it open; see
    /// [`open_swmr`]. The source must give the bytes as they are now, and must not keep any.
    pub fn open_swmr_source(source: Arc<dyn Source>, options: &OpenOptions) -> Result<File> {
        let name = source.name();
        open_source(source, Neighbours::none(), name, options)
    }

    /// Whether it is live: opened by [`open_swmr`] while a SWMR writer had it open.
    pub fn is_swmr_read(&self) -> bool {
        self.hierarchy().retry().is_some_and(Retry::is_live)
    }

    /// Whether a SWMR writer has it open, as its superblock says now. A writer that crashed or was killed never says that
    /// it is gone: whoever waits for it needs another reason to stop.
    pub fn swmr_writer_active(&self) -> Result<bool> {
        let writer = self.hierarchy().writer().context(|| format!("file {}", self.name()))?;
        Ok(writer == Writer::Swmr)
    }

    /// How often operations on it, and on the files that it names, were run again because the writer had torn them.
    pub fn swmr_retries(&self) -> u64 {
        self.hierarchy().retry().map_or(0, Retry::retries)
    }

    /// How often an operation on a live file is run at most before its error is returned: 100 unless set.
    pub fn swmr_read_attempts(&self) -> u32 {
        self.hierarchy().retry().map_or(1, Retry::attempts)
    }

    /// Sets how often an operation on a live file is run at most. Pauses between the attempts double from 1 µs up to 10 ms.
    pub fn set_swmr_read_attempts(&self, attempts: u32) {
        if let Some(retry) = self.hierarchy().retry() {
            retry.set_attempts(attempts);
        }
    }
}

impl Array {
    /// Reads its description again (of HDF5: its object header, and nothing else), so that this handle has the extents of
    /// now. Other handles, clones of this one too, keep theirs. A virtual dataset opens its sources again.
    ///
    /// Only what is read live changes: of a file that was opened otherwise, the description is that of its opening.
    pub fn refresh(&mut self) -> Result<()> {
        *self = self.reopened()?;
        Ok(())
    }

    /// Who has its file open to write it, or those of the sources of a virtual dataset that were opened so far.
    pub(crate) fn writer(&self) -> Result<Writer> {
        let Storage::Virtual(_) = self.storage() else { return self.hierarchy().writer() };
        let sources = self.sources().arrays();
        let mut all = if sources.is_empty() { Writer::Unknown } else { Writer::None };
        for source in sources {
            match source.writer()? {
                Writer::Swmr => return Ok(Writer::Swmr),
                Writer::None => {}
                other => all = other,
            }
        }
        Ok(all)
    }

    /// All elements as stored, in C order, without copying them: of compact data, and of contiguous data of a file that is
    /// in memory. `None` where they would have to be read or decoded, and for a live file, which is never in memory.
    pub fn raw_bytes(&self) -> Result<Option<Bytes>> {
        let Storage::Chunks(index) = self.storage() else { return Ok(None) };
        let one = self.meta().chunk_shape() == self.shape();
        if self.is_live() || !one || !self.meta().filters.is_empty() || self.meta().space.is_null() {
            return Ok(None);
        }
        let length = byte_count(self.shape(), self.dtype().size())?;
        let first: Coord = self.shape().iter().map(|_| 0).collect();
        let bytes = match index.locate(&[first])?.pop() {
            Some(ChunkRef::Memory { bytes, .. }) => bytes,
            Some(ChunkRef::Range { source, offset, .. }) if source.hints().latency == Latency::Memory => {
                source.read(&[ByteRange::new(offset, length)])?.pop().unwrap_or_default()
            }
            _ => return Ok(None),
        };
        let length = to_usize(length)?;
        Ok((bytes.len() >= length).then(|| bytes.slice(..length)))
    }
}
