//! Shards: many chunks in one object, with an index of where each lies (codec `sharding_indexed`).
//!
//! The index holds offset and length of every chunk in C order, two unsigned numbers of eight bytes; both are 2^64 − 1
//! for a chunk that was never written. It comes first or last and has codecs of its own.

use super::object::{IndexRead, Opened};
use crate::codec::{Codec, Pipeline, Scratch};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::{Coord, element_count, to_usize};
use crate::source::store::{Get, Part};
use crate::source::{ByteRange, Source};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::sync::Arc;

/// Shards whose indexes are remembered.
const KNOWN: usize = 1024;

/// The chunks in shards, which another index locates.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) parent: Arc<dyn ChunkIndex>,
    pub(super) opened: Arc<Opened>,
    /// Chunks along each axis of a shard.
    pub(super) ratio: Vec<u64>,
    /// The order of axes in which they are numbered: which axis of the array each one is.
    pub(super) order: Vec<usize>,
    /// Chunks along each axis of the array.
    pub(super) grid: Vec<u64>,
    /// The stages of the index.
    pub(super) index: Pipeline,
    /// Bytes of an encoded index.
    pub(super) index_length: u64,
    pub(super) at_start: bool,
    /// Stages around a whole shard, in the order in which they encode.
    pub(super) outer: Vec<Arc<dyn Codec>>,
    /// The most bytes of a shard that has such stages.
    pub(super) limit: u64,
    pub(super) known: Known,
}

/// What is remembered of each shard.
pub(super) type Known = Cache<Coord, Option<Arc<Found>>>;

/// An empty memory of `shards` shards with indexes of `length` bytes: 64 MiB at most.
pub(super) fn nothing_known(shards: u64, length: u64) -> Known {
    let most = ((64 << 20) / length.max(1)).min(shards);
    Cache::new(usize::try_from(most).unwrap_or(KNOWN).clamp(4, KNOWN))
}

/// A shard, its index read.
#[derive(Debug)]
pub(super) struct Found {
    place: Place,
    /// Decoded.
    index: Vec<u8>,
}

/// Where the bytes of a shard are.
#[derive(Debug)]
enum Place {
    Memory(Bytes),
    /// Without a length, the source ends where the chunks end.
    Range {
        source: Arc<dyn Source>,
        offset: u64,
        length: Option<u64>,
    },
}

impl Shards {
    fn shard_of(&self, coord: &Coord) -> Coord {
        coord.iter().zip(&self.ratio).map(|(c, r)| c / r).collect()
    }

    /// Bytes before and behind the chunks of a shard, where its index is.
    fn reserved(&self) -> (u64, u64) {
        if self.at_start { (self.index_length, 0) } else { (0, self.index_length) }
    }

    /// The number of a chunk in the index of its shard.
    fn number(&self, coord: &Coord) -> u64 {
        self.order.iter().fold(0, |n, &axis| match (coord.get(axis), self.ratio.get(axis)) {
            (Some(c), Some(r)) => n * r + c % r,
            _ => n,
        })
    }

    fn decode_index(&self, encoded: &[u8]) -> Result<Vec<u8>> {
        if encoded.len() as u64 != self.index_length {
            let text =
                format!("a shard of {} bytes cannot hold its index of {}", encoded.len(), self.index_length);
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        let mut index = Vec::new();
        self.index.decode(encoded, 0, &mut index, &mut Scratch::default()).context(|| "shard index")?;
        Ok(index)
    }

    /// The index in a whole shard.
    fn in_memory(&self, bytes: Bytes) -> Result<Found> {
        let length = to_usize(self.index_length)?.min(bytes.len());
        let encoded = if self.at_start { &bytes[..length] } else { &bytes[bytes.len() - length..] };
        let index = self.decode_index(encoded)?;
        Ok(Found { index, place: Place::Memory(bytes) })
    }

    /// Undoes the stages around a whole shard.
    fn unwrap(&self, bytes: Bytes) -> Result<Bytes> {
        let most = to_usize(self.limit)?;
        let mut scratch = Scratch::default();
        self.outer.iter().rev().try_fold(bytes, |bytes, codec| {
            let mut out = Vec::new();
            let bound = codec.decoded_bound(bytes.len() as u64);
            let max = usize::try_from(bound).unwrap_or(usize::MAX).min(most);
            codec.decode(&bytes, &mut out, max, &mut scratch)?;
            Ok(out.into())
        })
    }

    /// Reads the indexes of shards that are not known yet, in one batch where they are objects.
    fn look(&self, shards: &[Coord]) -> Result<HashMap<Coord, Option<Arc<Found>>>> {
        let mut found = HashMap::new();
        let mut wanted: Vec<Coord> = Vec::new();
        for shard in shards {
            match self.known.get(shard) {
                Some(known) => {
                    found.insert(shard.clone(), known);
                }
                None => wanted.push(shard.clone()),
            }
        }
        let places = self.parent.locate(&wanted)?;
        if places.len() != wanted.len() {
            return Err(Error::new(ErrorKind::Corrupt, "the index of shards does not answer all questions"));
        }
        let part = if !self.outer.is_empty() {
            Part::Whole
        } else if self.at_start {
            Part::Range(ByteRange::new(0, self.index_length))
        } else {
            Part::Suffix(self.index_length)
        };
        // Objects of one store are asked for together.
        let store = places.iter().find_map(|p| match p {
            ChunkRef::Object { store, .. } => Some(store.clone()),
            _ => None,
        });
        let gets: Vec<Get> = places
            .iter()
            .filter_map(|p| match p {
                ChunkRef::Object { key, .. } => Some(Get { key: key.to_string(), part, most: self.limit }),
                _ => None,
            })
            .collect();
        let mut answers = store.map(|store| store.get_many(&gets)).unwrap_or_default().into_iter();
        for (shard, place) in wanted.into_iter().zip(places) {
            let at = match place {
                ChunkRef::Object { key, .. } => match answers.next() {
                    Some(answer) => self.object(key, answer),
                    None => Err(Error::new(ErrorKind::Io, "the store gave no answer")),
                },
                other => self.part(other),
            };
            let at = at.context(|| format!("shard {:?}", shard.as_slice()))?.map(Arc::new);
            self.known.insert(shard.clone(), at.clone());
            found.insert(shard, at);
        }
        Ok(found)
    }

    /// A shard that is an object, of which the store gave the index, or all.
    fn object(&self, key: Arc<str>, answer: Result<Option<Bytes>>) -> Result<Option<Found>> {
        let Some(bytes) = answer? else { return Ok(None) };
        if !self.outer.is_empty() {
            return self.in_memory(self.unwrap(bytes)?).map(Some);
        }
        let index = self.decode_index(&bytes)?;
        let read = IndexRead::new(&bytes, self.at_start);
        let place = Place::Range { source: self.opened.shard(key, read), offset: 0, length: None };
        Ok(Some(Found { place, index }))
    }

    /// A shard in memory or in another shard.
    fn part(&self, place: ChunkRef) -> Result<Option<Found>> {
        match place {
            ChunkRef::Absent => Ok(None),
            ChunkRef::Memory { bytes, .. } => self.in_memory(self.unwrap(bytes)?).map(Some),
            ChunkRef::Range { source, offset, length, .. } => {
                let read = |range| {
                    let bytes = source.read(&[range])?.pop();
                    bytes.ok_or_else(|| Error::new(ErrorKind::Io, "the source gave no answer"))
                };
                if !self.outer.is_empty() {
                    return self.in_memory(self.unwrap(read(ByteRange::new(offset, length))?)?).map(Some);
                }
                let at = match length.checked_sub(self.index_length) {
                    Some(_) if self.at_start => offset,
                    Some(before) => offset.saturating_add(before),
                    None => {
                        let text = format!("a shard of {length} bytes cannot hold its index");
                        return Err(Error::new(ErrorKind::Corrupt, text));
                    }
                };
                let index = self.decode_index(&read(ByteRange::new(at, self.index_length))?)?;
                let place = Place::Range { source, offset, length: Some(length) };
                Ok(Some(Found { place, index }))
            }
            ChunkRef::Object { .. } => Err(Error::invalid("an object where a part of one is wanted")),
        }
    }
}

impl Found {
    /// Where the chunk of this number is, in a shard with an index of `reserved` bytes before or behind the chunks.
    fn chunk(&self, number: u64, (before, behind): (u64, u64)) -> Result<ChunkRef> {
        let at = to_usize(number)?.saturating_mul(16);
        let entry = self.index.get(at..).and_then(|rest| rest.first_chunk::<16>());
        let entry =
            entry.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the index of a shard is too short"))?;
        let (words, _) = entry.as_chunks::<8>();
        let (offset, length) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
        if (offset, length) == (u64::MAX, u64::MAX) {
            return Ok(ChunkRef::Absent);
        }
        let end = offset.checked_add(length);
        let outside = || {
            let text = format!(
                "the index of the shard says {length} bytes at {offset:#x}, which lie outside of its chunks"
            );
            Error::new(ErrorKind::Corrupt, text)
        };
        let end = end.filter(|_| offset >= before).ok_or_else(outside)?;
        let chunks_end = match &self.place {
            Place::Memory(bytes) => Some(bytes.len() as u64),
            Place::Range { length, .. } => *length,
        };
        if chunks_end.is_some_and(|all| end > all.saturating_sub(behind)) {
            return Err(outside());
        }
        match &self.place {
            Place::Memory(bytes) => {
                let range = to_usize(offset)?..to_usize(end)?;
                Ok(ChunkRef::Memory { bytes: bytes.slice(range), mask: 0 })
            }
            Place::Range { source, offset: base, .. } => {
                let offset = base.checked_add(offset).ok_or_else(outside)?;
                Ok(ChunkRef::Range { source: source.clone(), offset, length, mask: 0 })
            }
        }
    }
}

impl ChunkIndex for Shards {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        let mut shards: Vec<Coord> = chunks.iter().map(|c| self.shard_of(c)).collect();
        shards.sort_unstable();
        shards.dedup();
        let found = self.look(&shards)?;
        chunks
            .iter()
            .map(|coord| match found.get(&self.shard_of(coord)) {
                Some(Some(shard)) => shard
                    .chunk(self.number(coord), self.reserved())
                    .context(|| format!("chunk {:?}", coord.as_slice())),
                _ => Ok(ChunkRef::Absent),
            })
            .collect()
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        let mut shards = Vec::new();
        self.parent.scan(
            &mut |coord, _| {
                shards.push(coord);
                Ok(())
            },
            fault,
        )?;
        let count = element_count(&self.ratio)?;
        for shard in shards {
            let found = match self.look(std::slice::from_ref(&shard)) {
                Ok(found) => found.into_values().next().flatten(),
                Err(error) => {
                    fault(Fault { object: None, error });
                    continue;
                }
            };
            let Some(found) = found else { continue };
            for number in 0..count {
                let mut rest = number;
                let mut coord: Coord = shard.iter().zip(&self.ratio).map(|(s, r)| s * r).collect();
                for &axis in self.order.iter().rev() {
                    if let (Some(c), Some(r)) = (coord.get_mut(axis), self.ratio.get(axis)) {
                        *c += rest % r;
                        rest /= r;
                    }
                }
                if coord.iter().zip(&self.grid).any(|(c, n)| c >= n) {
                    continue;
                }
                match found.chunk(number, self.reserved()) {
                    Ok(ChunkRef::Absent) => {}
                    Ok(at) => visit(coord, at)?,
                    Err(error) => fault(Fault {
                        object: None,
                        error: error.context(format!("chunk {:?}", coord.as_slice())),
                    }),
                }
            }
        }
        Ok(())
    }
}
