//! A store that remembers in which state it read each object: what a writer that read them relies on.

use super::{Get, Listing, Precondition, Store, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::source::{ReadHints, Source, Traffic};
use bytes::Bytes;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Reads go to a store, and the version that each object had before it was read is kept.
#[derive(Debug)]
pub struct WatchedStore {
    inner: Arc<dyn Store>,
    /// `None`: there was no such object.
    seen: Mutex<HashMap<String, Option<Version>>>,
}

impl WatchedStore {
    /// Watches what is read from `inner`.
    pub fn new(inner: Arc<dyn Store>) -> WatchedStore {
        WatchedStore { inner, seen: Mutex::default() }
    }

    /// The store itself, of which nothing is remembered.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    /// In which state an object was read, if it was.
    pub fn seen(&self, key: &str) -> Option<Option<Version>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Fails with [`ErrorKind::Changed`] if an object is not as it was when it was read.
    pub fn check(&self, key: &str) -> Result<()> {
        match self.seen(key) {
            Some(seen) if self.inner.version(key)? != seen => {
                let text = format!("{key} was changed by somebody else since it was read");
                Err(Error::new(ErrorKind::Changed, text).hint("open it again and make the change anew"))
            }
            _ => Ok(()),
        }
    }

    fn note(&self, key: &str) -> Result<()> {
        if self.seen(key).is_none() {
            // Before it is read, so that what changes meanwhile is noticed.
            let version = self.inner.version(key)?;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.entry(key.to_owned()).or_insert(version);
        }
        Ok(())
    }
}

impl Store for WatchedStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        self.note(key)?;
        self.inner.len(key)
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        match gets.iter().try_for_each(|get| self.note(&get.key)) {
            Ok(()) => self.inner.get_many(gets),
            Err(e) => gets.iter().map(|_| Err(Error::new(e.kind(), e.message().to_owned()))).collect(),
        }
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        self.inner.version(key)
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.inner.put(key, bytes, when)
    }

    fn delete(&self, key: &str) -> Result<bool> {
        self.inner.delete(key)
    }

    fn commit(&self) -> Result<()> {
        self.inner.commit()
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        self.inner.search(prefix)
    }

    fn lengths(&self, prefix: &str, deep: bool) -> Result<Vec<(String, u64)>> {
        self.inner.lengths(prefix, deep)
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        self.note(key)?;
        self.inner.open(key)
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }

    fn claim(&self) -> Result<Option<Box<dyn fmt::Debug + Send + Sync>>> {
        self.inner.claim()
    }

    fn sweep(&self, prefix: &str) -> Result<()> {
        self.inner.sweep(prefix)
    }

    fn sync(&self, keys: &[String]) -> Result<()> {
        self.inner.sync(keys)
    }

    fn put_durable(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.inner.put_durable(key, bytes, when)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }
}
