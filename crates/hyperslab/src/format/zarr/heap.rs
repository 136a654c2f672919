//! Elements of any length (`vlen-utf8`, `vlen-bytes`, `json2`).
//!
//! A chunk of such elements is a list, which has no room in an array of fixed elements. What stands there instead is a
//! pointer made up here: the number of the array (4 bytes), the number of the element in its chunk (4 bytes) and that of
//! the chunk (8 bytes), all little-endian. Chunks are read when pointers are followed; a few decoded ones are kept.

use super::types::{POINTER, Variable};
use crate::codec::{Codec, Scratch};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault, HeapRef, Workers};
use crate::shape::{Coord, element_count, to_usize};
use crate::source::ByteRange;
use crate::source::store::Get;
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bits of a heap address that are the number of a chunk; the others are that of the array.
const CHUNK_BITS: u32 = 40;

/// The element that stands for the fill value.
const FILL: u32 = u32::MAX;

/// Decoded chunks that are kept of each array.
const KEPT: usize = 16;

/// The arrays of a hierarchy that have elements of any length.
#[derive(Debug, Default)]
pub(super) struct Heap {
    arrays: Mutex<Arrays>,
}

#[derive(Debug, Default)]
struct Arrays {
    list: Vec<Arc<VariableArray>>,
    numbers: HashMap<String, u32>,
}

/// One such array.
#[derive(Debug)]
pub(super) struct VariableArray {
    pub(super) kind: Variable,
    pub(super) index: Arc<dyn ChunkIndex>,
    /// Extents of a chunk.
    pub(super) chunk: Vec<u64>,
    /// Chunks along each axis.
    pub(super) grid: Vec<u64>,
    /// The order of the axes in which a chunk is stored, if it is not that of the array.
    pub(super) order: Option<Vec<usize>>,
    /// The stages behind the list.
    pub(super) stages: Vec<Result<Arc<dyn Codec>>>,
    /// What an element is that was never written.
    pub(super) fill: Bytes,
    /// The most bytes of a decoded chunk.
    pub(super) limit: u64,
    pub(super) decoded: Decoded,
    /// Whether a chunk that was never written is an error.
    pub(super) raise: bool,
}

pub(super) type Decoded = Cache<u64, Arc<Vec<Bytes>>>;

/// No chunks yet.
pub(super) fn nothing_decoded() -> Decoded {
    Cache::new(KEPT)
}

fn pointer(array: u32, element: u32, chunk: u64) -> [u8; POINTER] {
    let mut out = [0; POINTER];
    out[..4].copy_from_slice(&array.to_le_bytes());
    out[4..8].copy_from_slice(&element.to_le_bytes());
    out[8..].copy_from_slice(&chunk.to_le_bytes());
    out
}

impl Heap {
    /// Takes in the array at `path`; gives its index of pointers and its fill element.
    pub(super) fn add(&self, path: &str, array: VariableArray) -> Result<(Arc<dyn ChunkIndex>, Bytes)> {
        let elements = element_count(&array.chunk)?;
        if elements >= u64::from(FILL) || element_count(&array.grid)? >= 1 << CHUNK_BITS {
            return Err(Error::unsupported("elements of any length in so many or so long chunks"));
        }
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        let known = arrays.numbers.get(path).copied();
        let number = match known {
            Some(number) => number,
            None => {
                if arrays.list.len() >= (1 << (64 - CHUNK_BITS)) - 1 {
                    return Err(Error::unsupported("so many arrays with elements of any length"));
                }
                let array = Arc::new(array);
                arrays.list.push(array);
                // Numbers begin with 1, so that zeros are no pointer.
                let number = arrays.list.len() as u32;
                arrays.numbers.insert(path.to_owned(), number);
                number
            }
        };
        let array = self.get(&arrays, number)?;
        let fill = Bytes::copy_from_slice(&pointer(number, FILL, 0));
        Ok((Arc::new(Pointers { number, array }), fill))
    }

    fn get(&self, arrays: &Arrays, number: u32) -> Result<Arc<VariableArray>> {
        let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        let array = at.and_then(|at| arrays.list.get(at)).cloned();
        array.ok_or_else(|| Error::invalid("an element that points into no array of this store"))
    }

    /// Where the value of a stored element is; `None` for zeros.
    pub(super) fn reference(&self, stored: &[u8]) -> Result<Option<(u64, HeapRef)>> {
        let Some(stored) = stored.first_chunk::<POINTER>() else {
            return Err(Error::invalid("an element of any length is a pointer of 16 bytes"));
        };
        let word =
            |at: usize| u32::from_le_bytes([stored[at], stored[at + 1], stored[at + 2], stored[at + 3]]);
        let array = word(0);
        if array == 0 {
            return Ok(None);
        }
        let chunk = u64::from(word(8)) | u64::from(word(12)) << 32;
        if chunk >= 1 << CHUNK_BITS || array >> (64 - CHUNK_BITS) != 0 {
            return Err(Error::invalid("an element that points into no array of this store"));
        }
        let heap = HeapRef { address: u64::from(array) << CHUNK_BITS | chunk, index: word(4) };
        Ok(Some((HeapRef::WHOLE, heap)))
    }

    /// The values, in the order of the questions; each chunk is read once.
    pub(super) fn values(&self, refs: &[HeapRef], workers: &dyn Workers) -> Result<Vec<Bytes>> {
        let mut wanted: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for r in refs {
            let chunks = wanted.entry((r.address >> CHUNK_BITS) as u32).or_default();
            if r.index != FILL {
                chunks.insert(r.address & ((1 << CHUNK_BITS) - 1));
            }
        }
        let mut values: HashMap<(u32, u64), Arc<Vec<Bytes>>> = HashMap::new();
        let mut arrays = HashMap::new();
        for (number, chunks) in wanted {
            let array = {
                let known = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
                self.get(&known, number)?
            };
            let chunks: Vec<u64> = chunks.into_iter().collect();
            for batch in chunks.chunks(256) {
                for (chunk, list) in batch.iter().zip(array.read(batch, workers)?) {
                    values.insert((number, *chunk), list);
                }
            }
            arrays.insert(number, array);
        }
        refs.iter()
            .map(|r| {
                let number = (r.address >> CHUNK_BITS) as u32;
                let array = arrays.get(&number);
                let array = array.ok_or_else(|| Error::invalid("an element that points nowhere"))?;
                let chunk = values.get(&(number, r.address & ((1 << CHUNK_BITS) - 1)));
                match chunk {
                    Some(list) if r.index != FILL && !list.is_empty() => {
                        list.get(r.index as usize).cloned().ok_or_else(|| {
                            Error::new(ErrorKind::OutOfBounds, "an element beyond the end of its chunk")
                        })
                    }
                    _ => Ok(array.fill.clone()),
                }
            })
            .collect()
    }
}

impl VariableArray {
    fn coord(&self, chunk: u64) -> Coord {
        let mut rest = chunk;
        let mut coord = Coord::from_elem(0, self.grid.len());
        for (c, &n) in coord.iter_mut().zip(&self.grid).rev() {
            *c = rest % n.max(1);
            rest /= n.max(1);
        }
        coord
    }

    fn number(&self, coord: &[u64]) -> u64 {
        coord.iter().zip(&self.grid).fold(0, |n, (c, extent)| n * extent + c)
    }

    /// The values of these chunks; none at all for a chunk that was never written.
    fn read(&self, chunks: &[u64], workers: &dyn Workers) -> Result<Vec<Arc<Vec<Bytes>>>> {
        let mut found: Vec<Option<Arc<Vec<Bytes>>>> = chunks.iter().map(|c| self.decoded.get(c)).collect();
        let missing: Vec<u64> =
            chunks.iter().zip(&found).filter(|(_, f)| f.is_none()).map(|(c, _)| *c).collect();
        let coords: Vec<Coord> = missing.iter().map(|c| self.coord(*c)).collect();
        let places = self.index.locate(&coords)?;
        let gets: Vec<Get> = places
            .iter()
            .filter_map(|p| match p {
                ChunkRef::Object { key, .. } => Some(Get::whole(key.to_string()).within(self.limit)),
                _ => None,
            })
            .collect();
        let store = places.iter().find_map(|p| match p {
            ChunkRef::Object { store, .. } => Some(store.clone()),
            _ => None,
        });
        let mut answers = store.iter().flat_map(|s| {
            let alone = |(get, answer): (&Get, Result<Option<Bytes>>)| match answer {
                // Too long together.
                Err(e) if e.kind() == ErrorKind::LimitExceeded => s.get_within(&get.key, get.most),
                answer => answer,
            };
            gets.iter().zip(s.get_many(&gets)).map(alone).collect::<Vec<_>>()
        });
        let encoded: Vec<Result<Option<Bytes>>> = places
            .into_iter()
            .map(|place| match place {
                ChunkRef::Object { .. } => match answers.next() {
                    Some(answer) => answer,
                    None => Err(Error::new(ErrorKind::Io, "the store gave no answer")),
                },
                ChunkRef::Memory { bytes, .. } => Ok(Some(bytes)),
                ChunkRef::Range { source, offset, length, .. } => {
                    source.read(&[ByteRange::new(offset, length)]).map(|mut bytes| bytes.pop())
                }
                ChunkRef::Absent => Ok(None),
            })
            .collect();
        let decoded: Vec<OnceLock<Result<Vec<Bytes>>>> = encoded.iter().map(|_| OnceLock::new()).collect();
        workers.run(encoded.len(), &|i| {
            if let (Some(Ok(Some(bytes))), Some(slot)) = (encoded.get(i), decoded.get(i)) {
                let _ = slot.set(self.decode(bytes.clone()));
            }
        });
        let mut read = encoded.into_iter().zip(decoded).zip(coords).map(|((bytes, slot), coord)| {
            let list = match (bytes, slot.into_inner()) {
                (Err(e), _) => Err(e),
                (Ok(Some(_)), Some(decoded)) => decoded,
                (Ok(Some(_)), None) => Err(Error::invalid("workers that leave work undone")),
                (Ok(None), _) if self.raise => {
                    Err(Error::new(ErrorKind::NotFound, "the chunk was never written"))
                }
                (Ok(None), _) => Ok(Vec::new()),
            };
            list.context(|| format!("chunk {:?}", coord.as_slice()))
        });
        for (chunk, slot) in chunks.iter().zip(&mut found) {
            if slot.is_none() {
                let list =
                    read.next().ok_or_else(|| Error::invalid("the index does not answer all questions"))?;
                let list = Arc::new(list?);
                // Only what is small is worth keeping.
                if list.iter().map(|v| v.len() + 32).sum::<usize>() < 8 << 20 {
                    self.decoded.insert(*chunk, list.clone());
                }
                *slot = Some(list);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The values of one chunk, in stored order.
    fn decode(&self, encoded: Bytes) -> Result<Vec<Bytes>> {
        let mut scratch = Scratch::default();
        let mut bytes = encoded;
        for stage in self.stages.iter().rev() {
            let codec = match stage {
                Ok(codec) => codec,
                Err(e) => return Err(Error::new(e.kind(), e.message().to_owned())),
            };
            let bound = codec.decoded_bound(bytes.len() as u64).min(self.limit);
            let mut out = Vec::new();
            codec.decode(&bytes, &mut out, to_usize(bound)?, &mut scratch)?;
            bytes = out.into();
        }
        let list = self.kind.decode(&bytes)?;
        let wanted = element_count(&self.chunk)?;
        if list.len() as u64 != wanted {
            let text = format!("a chunk of {wanted} elements holds {}", list.len());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        Ok(list)
    }
}

/// Pointers in place of elements.
#[derive(Debug)]
struct Pointers {
    number: u32,
    array: Arc<VariableArray>,
}

impl Pointers {
    /// The pointers of one chunk.
    fn chunk(&self, coord: &[u64]) -> Result<ChunkRef> {
        let chunk = self.array.number(coord);
        let count = element_count(&self.array.chunk)?;
        let mut bytes = Vec::with_capacity(to_usize(count)?.saturating_mul(POINTER));
        let extents = &self.array.chunk;
        // How far apart neighbours along each axis of the array are in stored order.
        let mut steps = vec![1u64; extents.len()];
        let natural: Vec<usize> = (0..extents.len()).collect();
        let order = self.array.order.as_ref().unwrap_or(&natural);
        let mut step = 1u64;
        for &axis in order.iter().rev() {
            if let (Some(slot), Some(extent)) = (steps.get_mut(axis), extents.get(axis)) {
                *slot = step;
                step *= extent;
            }
        }
        for element in 0..count {
            let mut rest = element;
            let mut stored = 0;
            for (extent, step) in extents.iter().zip(&steps).rev() {
                stored += rest % extent * step;
                rest /= extent;
            }
            // Below the number that stands for the fill value, which was checked.
            bytes.extend_from_slice(&pointer(self.number, stored as u32, chunk));
        }
        Ok(ChunkRef::Memory { bytes: bytes.into(), mask: 0 })
    }
}

impl ChunkIndex for Pointers {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        chunks.iter().map(|coord| self.chunk(coord)).collect()
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        self.array.index.scan(
            &mut |coord, _| {
                let at = self.chunk(&coord)?;
                visit(coord, at)
            },
            fault,
        )
    }
}
