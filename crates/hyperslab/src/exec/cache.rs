//! Decoded chunks that are kept from read to read.

use super::Job;
use crate::plan::{Fetch, Part, Task};
use crate::shape::Coord;
use crate::source::Latency;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// Keeps chunks that were read in part, decoded, since neighbouring reads want the rest of them: planes of an array one
/// after the other, boxes at random. Chunks that are read whole are not kept, nor those of a read that decodes more than
/// half of what there is room for.
///
/// A clone is the same cache. Files opened with clones of the same options share one.
#[derive(Clone)]
pub struct ChunkCache {
    kept: Option<Arc<Cache<Key, Kept, BySize>>>,
    bytes: u64,
}

/// The array, by the number of its handle, and the chunk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    array: u64,
    chunk: Coord,
}

#[derive(Clone)]
struct Kept {
    /// Of what the bytes came from.
    version: u64,
    bytes: Arc<Vec<u8>>,
}

#[derive(Clone)]
struct BySize;

impl Weighter<Key, Kept> for BySize {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        // Some more for the entry itself, so that tiny chunks cannot be without number.
        kept.bytes.len() as u64 + 256
    }
}

impl Default for ChunkCache {
    /// Room for [`ChunkCache::BYTES`].
    fn default() -> Self {
        ChunkCache::new(ChunkCache::BYTES)
    }
}

impl fmt::Debug for ChunkCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkCache").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl ChunkCache {
    /// The room that there is by default.
    pub const BYTES: u64 = 64 << 20;

    /// A cache for so many bytes of decoded chunks; 0 keeps nothing.
    pub fn new(bytes: u64) -> Self {
        // One shard, as a few large entries would not fit the parts of many.
        let options =
            OptionsBuilder::new().estimated_items_capacity(1024).weight_capacity(bytes).shards(1).build();
        let kept = options.ok().filter(|_| bytes > 0).map(|options| {
            let (hash, cycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
            Arc::new(Cache::with_options(options, BySize, hash, cycle))
        });
        ChunkCache { kept, bytes }
    }

    fn get(&self, key: &Key, version: u64) -> Option<Arc<Vec<u8>>> {
        self.kept.as_ref()?.get(key).filter(|kept| kept.version == version).map(|kept| kept.bytes)
    }

    fn insert(&self, key: Key, version: u64, bytes: Vec<u8>) {
        if let Some(kept) = &self.kept {
            kept.insert(key, Kept { version, bytes: Arc::new(bytes) });
        }
    }
}

/// What is known of one task's chunk before it is read.
pub(super) enum Slot {
    /// It is not kept.
    Passing,
    /// It will be, under this key and version.
    Wanted(Key, u64),
    /// It is here.
    Found(Arc<Vec<u8>>),
}

/// The cache, as one job uses it.
pub(super) struct Memory<'a> {
    cache: &'a ChunkCache,
    array: u64,
    /// Of each source, asked for once.
    versions: Vec<OnceLock<Option<u64>>>,
}

impl<'a> Memory<'a> {
    /// The memory of a job on `part`, if its chunks are worth keeping.
    pub(super) fn new(cache: Option<&'a ChunkCache>, part: &Part) -> Option<Self> {
        let cache = cache.filter(|cache| cache.kept.is_some() && part.identity != 0)?;
        let decoded = part.pipeline.chunk_bytes().saturating_mul(part.tasks.len() as u64);
        let fits = !part.pipeline.is_empty() && decoded <= cache.bytes / 2;
        let versions = part.sources.iter().map(|_| OnceLock::new()).collect();
        fits.then_some(Memory { cache, array: part.identity, versions })
    }

    pub(super) fn keep(&self, key: Key, version: u64, bytes: Vec<u8>) {
        self.cache.insert(key, version, bytes);
    }

    /// What a chunk's bytes come from, as a number that changes when they may have.
    fn version(&self, part: &Part, fetch: Fetch) -> Option<u64> {
        match fetch {
            Fetch::Encoded { source, offset, length, mask } => {
                let id = || {
                    let id = part.sources.get(source)?.id().ok()?;
                    Some(hash(&id))
                };
                let of_source = (*self.versions.get(source)?.get_or_init(id))?;
                Some(hash(&(of_source, offset, length, mask)))
            }
            // Far away, asking would be another request.
            Fetch::Object { store, key } => {
                let (store, hints) = part.stores.get(store)?;
                let key = part.keys.get(key).filter(|_| hints.latency != Latency::Remote)?;
                store.version(key).ok()?.map(|version| hash(&version.0))
            }
            _ => None,
        }
    }

    fn known(&self, part: &Part, task: &Task) -> Option<Slot> {
        let chunk = part.projection.get(task.chunk)?;
        if part.is_whole(&chunk) {
            return None;
        }
        let version = self.version(part, task.fetch)?;
        let key = Key { array: self.array, chunk: chunk.coord };
        Some(match self.cache.get(&key, version) {
            Some(bytes) => Slot::Found(bytes),
            None => Slot::Wanted(key, version),
        })
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Job<'_> {
    /// What is known of a task's chunk; asked before its bytes are read, so that they are not older than the version.
    pub(super) fn slot(&self, task: &Task) -> Slot {
        slot(self.part, self.memory.as_ref(), task)
    }
}

/// The same, of a part.
pub(super) fn slot(part: &Part, memory: Option<&Memory<'_>>, task: &Task) -> Slot {
    memory.and_then(|memory| memory.known(part, task)).unwrap_or(Slot::Passing)
}
