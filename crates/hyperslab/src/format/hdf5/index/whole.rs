//! Storage in one piece: in the object header, in one run of bytes, in a row of external files.

use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::{Coord, to_usize};
use crate::source::Source;
use bytes::Bytes;
use std::sync::Arc;

/// An array that is one chunk.
#[derive(Debug)]
pub struct Whole {
    place: Place,
    rank: usize,
}

#[derive(Debug)]
enum Place {
    Absent,
    Memory(Bytes),
    Range {
        source: Arc<dyn Source>,
        offset: u64,
        length: u64,
    },
    /// A run of the file, which may not have grown up to it yet.
    Run {
        space: Space,
        address: u64,
        length: u64,
    },
    /// Known to be wrong; said when the data is asked for.
    Wrong {
        kind: ErrorKind,
        text: String,
        at: u64,
    },
}

impl Whole {
    /// Data in the object header: `bytes` for an array of `length` bytes.
    pub fn compact(bytes: Bytes, length: u64, rank: usize) -> Self {
        let have = bytes.len() as u64;
        let place = match to_usize(length) {
            _ if length == 0 => Place::Absent,
            Ok(n) if length <= have => Place::Memory(bytes.slice(..n)),
            _ => Place::Wrong {
                kind: ErrorKind::Corrupt,
                text: format!("compact data of {have} bytes for an array of {length}"),
                at: 0,
            },
        };
        Whole { place, rank }
    }

    /// A run at `address`, of `stored` bytes if the layout message says so, for an array of `length` bytes.
    pub fn contiguous(space: &Space, address: u64, stored: Option<u64>, length: u64, rank: usize) -> Self {
        let at = space.base().saturating_add(address);
        let place = if address == UNDEFINED || length == 0 {
            Place::Absent
        } else if let Some(stored) = stored.filter(|&s| s < length) {
            let text = format!("contiguous data of {stored} bytes for an array of {length}");
            Place::Wrong { kind: ErrorKind::Corrupt, text, at }
        } else {
            Place::Run { space: space.clone(), address, length }
        };
        Whole { place, rank }
    }

    /// A row of external files, see [`ExternalSource`](super::ExternalSource).
    pub fn external(source: Arc<dyn Source>, length: u64, rank: usize) -> Self {
        let place = match length {
            0 => Place::Absent,
            length => Place::Range { source, offset: 0, length },
        };
        Whole { place, rank }
    }

    fn chunk(&self) -> Result<ChunkRef> {
        match &self.place {
            Place::Absent => Ok(ChunkRef::Absent),
            Place::Memory(bytes) => Ok(ChunkRef::Memory { bytes: bytes.clone(), mask: 0 }),
            Place::Range { source, offset, length } => {
                Ok(ChunkRef::Range { source: source.clone(), offset: *offset, length: *length, mask: 0 })
            }
            Place::Run { space, address, length } => {
                let offset = space.resolve("contiguous data", *address, *length)?;
                Ok(ChunkRef::Range { source: space.data().clone(), offset, length: *length, mask: 0 })
            }
            Place::Wrong { kind, text, at } => Err(Error::new(*kind, text.clone()).at("data layout", *at)),
        }
    }
}

impl ChunkIndex for Whole {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        chunks.iter().map(|_| self.chunk()).collect()
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        match self.chunk() {
            Ok(ChunkRef::Absent) => Ok(()),
            Ok(chunk) => visit(std::iter::repeat_n(0, self.rank).collect(), chunk),
            Err(error) => {
                fault(Fault { object: None, error });
                Ok(())
            }
        }
    }
}
