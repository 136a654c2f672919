//! Objects in memory.

use super::claim::Claims;
use super::{Get, Listing, Precondition, Store, Version, check_key, check_prefix, cut, next_names, refused};
use crate::error::{Context, Result};
use crate::source::{Latency, MemorySource, ReadHints, Source};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A store that lives as long as its process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    objects: RwLock<BTreeMap<String, Object>>,
    claimed: Claims,
}

#[derive(Clone, Debug)]
struct Object {
    bytes: Bytes,
    /// How many writes there were before it, of any object of any such store.
    version: u64,
}

static WRITES: AtomicU64 = AtomicU64::new(0);

impl MemoryStore {
    /// A store without objects.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    // A writer that panicked did so before or after it changed the map, never in between.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Object>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Object>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &str) -> Result<Option<Object>> {
        check_key(key)?;
        Ok(self.read().get(key).cloned())
    }
}

/// The keys below `prefix`, in order.
fn held<'a>(objects: &'a BTreeMap<String, Object>, prefix: &str) -> impl Iterator<Item = &'a String> {
    let start = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    let keys = objects.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
    keys.map(|(key, _)| key).take_while(move |key| key.starts_with(&start))
}

fn version(object: &Object) -> Version {
    Version(object.version.to_string())
}

impl Store for MemoryStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.find(key)?.map(|o| o.bytes.len() as u64))
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        let get = |get: &Get| match self.find(&get.key)? {
            Some(object) => {
                let bytes = cut(&object.bytes, get.part).context(|| &get.key)?;
                get.check(bytes.len() as u64)?;
                Ok(Some(bytes))
            }
            None => Ok(None),
        };
        gets.iter().map(get).collect()
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        Ok(self.find(key)?.as_ref().map(version))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        check_key(key)?;
        let mut objects = self.write();
        let old = objects.get(key);
        let holds = match when {
            Precondition::None => true,
            Precondition::Absent => old.is_none(),
            Precondition::Matches(wanted) => old.is_some_and(|old| version(old) == *wanted),
        };
        if !holds {
            return Err(refused(key, when));
        }
        let object = Object { bytes, version: WRITES.fetch_add(1, Ordering::Relaxed) };
        let new = version(&object);
        objects.insert(key.to_owned(), object);
        Ok(new)
    }

    fn delete(&self, key: &str) -> Result<bool> {
        check_key(key)?;
        Ok(self.write().remove(key).is_some())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = check_prefix(prefix)?;
        Ok(held(&self.read(), prefix).cloned().collect())
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        let prefix = check_prefix(prefix)?;
        Ok(next_names(prefix, held(&self.read(), prefix).map(String::as_str)))
    }

    fn claim(&self) -> Result<Option<Box<dyn std::fmt::Debug + Send + Sync>>> {
        self.claimed.take("memory")
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 0, max_merged: 16 << 20, concurrency: 1, latency: Latency::Memory }
    }

    fn name(&self) -> String {
        "memory".into()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        let object = self.find(key)?;
        Ok(object.map(|o| Arc::new(MemorySource::new(o.bytes, key)) as Arc<dyn Source>))
    }
}
