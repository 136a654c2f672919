//! Objects of a transaction, which nobody sees before it is committed.
//!
//! A new hierarchy is written where it is to be, but its documents last and that of the root after all others: without it
//! there is nothing (a folder is made beside its place and renamed, too). Of one that is edited, new objects are written
//! to the folder `.hyperslab` of the store. A commit checks that what was read is still as it was, writes the *intent*
//! (`.hyperslab/intent.json`, which object goes where and which are removed), carries it out and removes it. From the moment
//! at which the intent is there the transaction has happened: whoever opens the store to write, or a local one to read,
//! and finds it carries it out again, which does no harm where it was done.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::Json;
use crate::source::store::{NewDirectory, Precondition, Store, WatchedStore};
use crate::source::write::SyncPolicy;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Where writers keep what is not part of the hierarchy.
pub(super) const FOLDER: &str = ".hyperslab";

/// The document of a commit that is on its way.
const INTENT: &str = ".hyperslab/intent.json";

/// The longest intent that is read.
const INTENT_MAX: u64 = 1 << 30;

/// What becomes of an object.
#[derive(Debug)]
enum Pending {
    /// It is written, and now has this key.
    Put(String),
    Removed,
}

#[derive(Debug)]
enum Mode {
    /// A hierarchy that nobody sees yet, in a folder beside its place if it has one.
    New(Option<NewDirectory>),
    /// One that is there.
    Edit {
        changes: BTreeMap<String, Pending>,
        /// Keeps other writers out.
        _claim: Option<Box<dyn fmt::Debug + Send + Sync>>,
        /// The folder of this transaction.
        folder: String,
        next: u64,
    },
}

/// The objects of a transaction.
#[derive(Debug)]
pub(super) struct Stage {
    store: Arc<WatchedStore>,
    mode: Mode,
    sync: SyncPolicy,
    /// Of a new hierarchy, what was written.
    written: BTreeSet<String>,
    bytes: u64,
    done: bool,
}

impl Stage {
    /// Objects of a new hierarchy in a store without one; `folder`: the store is that of a folder beside its place.
    pub(super) fn create(store: Arc<dyn Store>, folder: Option<NewDirectory>, sync: SyncPolicy) -> Stage {
        Stage::new(Arc::new(WatchedStore::new(store)), Mode::New(folder), sync)
    }

    fn new(store: Arc<WatchedStore>, mode: Mode, sync: SyncPolicy) -> Stage {
        Stage { store, mode, sync, written: BTreeSet::new(), bytes: 0, done: false }
    }

    /// Objects of a hierarchy that is there. What another transaction has begun to commit is finished first.
    pub(super) fn edit(store: Arc<dyn Store>, sync: SyncPolicy) -> Result<Stage> {
        let claim = store.claim()?;
        replay(&*store)?;
        if claim.is_some() {
            // Nobody else is writing: what is left there is of a transaction that was never committed.
            for key in store.list(FOLDER)?.iter().filter(|key| !key.ends_with("/lock")) {
                store.delete(key)?;
            }
            store.sweep(FOLDER)?;
        }
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = time.map_or(0, |t| t.as_nanos());
        let folder = format!("{FOLDER}/{}-{time:x}", std::process::id());
        let mode = Mode::Edit { changes: BTreeMap::new(), _claim: claim, folder, next: 0 };
        Ok(Stage::new(Arc::new(WatchedStore::new(store)), mode, sync))
    }

    /// The store as it was before the transaction. What is read through it is checked when it is committed.
    pub(super) fn before(&self) -> &Arc<WatchedStore> {
        &self.store
    }

    /// Whether it is a new hierarchy.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.mode, Mode::New(_))
    }

    /// An object as the transaction has made it.
    pub(super) fn get(&self, key: &str) -> Result<Option<Bytes>> {
        match &self.mode {
            Mode::Edit { changes, .. } => match changes.get(key) {
                Some(Pending::Put(at)) => self.store.get(at),
                Some(Pending::Removed) => Ok(None),
                None if below_removed(changes, key) => Ok(None),
                None => self.store.get(key),
            },
            Mode::New(_) if self.written.contains(key) => self.store.get(key),
            Mode::New(_) => Ok(None),
        }
    }

    /// Writes an object.
    pub(super) fn put(&mut self, key: &str, bytes: Bytes) -> Result<()> {
        self.bytes += bytes.len() as u64;
        match &mut self.mode {
            Mode::New(_) => {
                // One that is there and not of this transaction is not overwritten.
                let ours = self.written.contains(key);
                let when = if ours { Precondition::None } else { Precondition::Absent };
                self.store.put(key, bytes, &when)?;
                self.written.insert(key.to_owned());
            }
            Mode::Edit { changes, folder, next, .. } => {
                let at = format!("{folder}/{next}");
                self.store.put(&at, bytes, &Precondition::None)?;
                *next += 1;
                if let Some(Pending::Put(old)) = changes.insert(key.to_owned(), Pending::Put(at)) {
                    self.store.delete(&old)?;
                }
            }
        }
        Ok(())
    }

    /// Removes an object, if it is there.
    pub(super) fn remove(&mut self, key: &str) -> Result<()> {
        match &mut self.mode {
            Mode::New(_) => {
                if self.written.remove(key) {
                    self.store.delete(key)?;
                }
            }
            Mode::Edit { changes, .. } => {
                let there = match changes.get(key) {
                    Some(Pending::Removed) => false,
                    Some(Pending::Put(_)) => true,
                    None => !below_removed(changes, key) && self.store.len(key)?.is_some(),
                };
                if there && let Some(Pending::Put(old)) = changes.insert(key.to_owned(), Pending::Removed) {
                    self.store.delete(&old)?;
                }
            }
        }
        Ok(())
    }

    /// The keys below a prefix, as the transaction has made them, in order.
    pub(super) fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let holds = |key: &str| {
            prefix.is_empty() || key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        };
        Ok(match &self.mode {
            Mode::New(_) => self.written.iter().filter(|key| holds(key)).cloned().collect(),
            Mode::Edit { changes, .. } => {
                let inner = format!("{FOLDER}/");
                let mut keys: BTreeSet<String> =
                    self.store.list(prefix)?.into_iter().filter(|key| !key.starts_with(&inner)).collect();
                for (key, pending) in changes.iter().filter(|(key, _)| holds(key)) {
                    match pending {
                        Pending::Put(_) => keys.insert(key.clone()),
                        Pending::Removed => keys.remove(key),
                    };
                }
                keys.into_iter().collect()
            }
        })
    }

    /// Makes everything durable and visible. The last of `documents` is the one without which nothing is seen.
    pub(super) fn commit(mut self, documents: Vec<(String, Bytes)>) -> Result<u64> {
        for (key, bytes) in documents {
            // A document that says the same as before is left alone.
            if self.get(&key)?.is_some_and(|old| old == bytes) {
                continue;
            }
            self.put(&key, bytes)?;
        }
        let full = self.sync == SyncPolicy::Full;
        let store = self.store.clone();
        match &mut self.mode {
            Mode::New(folder) => {
                if full {
                    let keys: Vec<String> = self.written.iter().cloned().collect();
                    store.sync(&keys)?;
                }
                store.commit()?;
                if let Some(folder) = folder.take() {
                    folder.publish()?;
                }
            }
            Mode::Edit { changes, .. } => {
                if changes.is_empty() {
                    self.done = true;
                    return Ok(self.bytes);
                }
                let staged = changes.values().filter_map(|p| match p {
                    Pending::Put(at) => Some(at.clone()),
                    Pending::Removed => None,
                });
                if full {
                    store.sync(&staged.collect::<Vec<_>>())?;
                }
                // What was read and is not changed decided what was written, too: documents above all.
                changes.keys().try_for_each(|key| store.check(key))?;
                let intent = intent(changes);
                let bytes: Bytes = intent.to_string().into();
                let put = match full {
                    true => store.put_durable(INTENT, bytes.clone(), &Precondition::Absent),
                    false => store.put(INTENT, bytes.clone(), &Precondition::Absent),
                };
                if let Err(e) = put {
                    if e.kind() == ErrorKind::AlreadyExists {
                        let text = "another transaction is being committed at the same time";
                        return Err(Error::new(ErrorKind::Changed, text)
                            .hint("open the store again and make the change anew"));
                    }
                    // It may be there all the same. Then what it names has to stay, until it is surely gone.
                    self.done = !is_withdrawn(&*store, &bytes, full);
                    return Err(match self.done {
                        true => {
                            e.context("whether the edit is committed shows when the store is opened again")
                        }
                        false => e,
                    });
                }
                // It has happened; from here on it can only be finished.
                self.done = true;
                carry_out(&*store, &intent, full).map_err(|e| {
                    e.context("the edit is committed, but not all of it is in its place")
                        .hint("what is left is done when the store is opened to be written the next time")
                })?;
                store.commit()?;
            }
        }
        self.done = true;
        Ok(self.bytes)
    }
}

/// Takes an intent back that could not be written as it should; whether it is gone, whatever happens next.
fn is_withdrawn(store: &dyn Store, intent: &Bytes, full: bool) -> bool {
    let is_gone = match store.get_within(INTENT, INTENT_MAX) {
        Ok(Some(there)) if there == *intent => store.delete(INTENT).is_ok(),
        // There is none, or that of somebody else.
        Ok(_) => true,
        Err(_) => false,
    };
    is_gone && (!full || store.sync(&[INTENT.to_owned()]).is_ok())
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // Best effort: what is left is never seen, and is removed by the next transaction.
        match &self.mode {
            Mode::New(Some(_)) => {}
            Mode::New(None) => self.written.iter().for_each(|key| {
                let _ = self.store.delete(key);
            }),
            Mode::Edit { changes, .. } => {
                for pending in changes.values() {
                    if let Pending::Put(at) = pending {
                        let _ = self.store.delete(at);
                    }
                }
            }
        }
    }
}

/// Whether an object is removed in the place of which a folder comes now: in a store of files, nothing can be below it yet.
fn below_removed(changes: &BTreeMap<String, Pending>, key: &str) -> bool {
    let above = key.match_indices('/').filter_map(|(at, _)| key.get(..at));
    above.into_iter().any(|above| matches!(changes.get(above), Some(Pending::Removed)))
}

fn intent(changes: &BTreeMap<String, Pending>) -> Json {
    let (mut put, mut removed) = (Vec::new(), Vec::new());
    for (key, pending) in changes {
        match pending {
            Pending::Put(at) => {
                put.push(Json::List(vec![Json::Text(key.clone()), Json::Text(at.clone())]));
            }
            Pending::Removed => removed.push(Json::Text(key.clone())),
        }
    }
    Json::Map(vec![
        ("hyperslab_intent".into(), Json::Integer(1)),
        ("put".into(), Json::List(put)),
        ("remove".into(), Json::List(removed)),
    ])
}

/// Does what an intent says, and removes it. Each step may have been done before.
fn carry_out(store: &dyn Store, intent: &Json, full: bool) -> Result<()> {
    let wrong = || Error::new(ErrorKind::Corrupt, format!("{INTENT} is not what a commit writes"));
    if intent.get("hyperslab_intent").and_then(Json::as_integer) != Some(1) {
        return Err(wrong());
    }
    let mut keys = Vec::new();
    // Removals first: in a folder, a name may be that of an object before and of a group after.
    for key in intent.get("remove").and_then(Json::as_list).ok_or_else(wrong)? {
        let key = key.as_str().ok_or_else(wrong)?;
        store.delete(key).context(|| key.to_owned())?;
        keys.push(key.to_owned());
    }
    for pair in intent.get("put").and_then(Json::as_list).ok_or_else(wrong)? {
        let (Some(key), Some(at)) = (
            pair.as_list().and_then(|p| p.first()).and_then(Json::as_str),
            pair.as_list().and_then(|p| p.get(1)).and_then(Json::as_str),
        ) else {
            return Err(wrong());
        };
        if !at.starts_with(FOLDER) {
            return Err(wrong());
        }
        store.rename(at, key).context(|| key.to_owned())?;
        keys.push(key.to_owned());
    }
    if full {
        store.sync(&keys)?;
    }
    store.delete(INTENT)?;
    Ok(())
}

/// Finishes a commit that was interrupted; whether there was one.
fn replay(store: &dyn Store) -> Result<bool> {
    let Some(bytes) = store.get_within(INTENT, INTENT_MAX)? else { return Ok(false) };
    let intent = Json::parse(&bytes).context(|| INTENT)?;
    carry_out(store, &intent, true).context(|| "finishing an interrupted commit")?;
    Ok(true)
}

/// Finishes a commit that was interrupted, if there is one and nobody is at it; whether there was. For stores to which
/// looking is cheap.
pub fn recover(store: &dyn Store) -> Result<bool> {
    if store.len(INTENT)?.is_none() {
        return Ok(false);
    }
    let _claim = store.claim()?;
    replay(store).map_err(|e| match e.kind() {
        ErrorKind::Permission => {
            e.hint("an edit was interrupted; open the store once where it can be written")
        }
        _ => e,
    })
}

/// What is left of transactions: a commit that was interrupted, and objects that nobody sees.
pub(in super::super) fn leftovers(store: &dyn Store) -> Result<Option<Error>> {
    if store.len(INTENT)?.is_some() {
        let text = "the commit of an edit was interrupted, or is under way";
        return Ok(Some(
            Error::new(ErrorKind::NotYet, text)
                .at(INTENT, 0)
                .hint("it is finished when the store is opened to be written, or a local one to be read"),
        ));
    }
    let left = store.list(FOLDER)?.into_iter().filter(|key| !key.ends_with("/lock")).count();
    if left == 0 {
        return Ok(None);
    }
    let text = format!(
        "{left} objects below {FOLDER} are of a transaction that is under way, or was never committed"
    );
    Ok(Some(Error::new(ErrorKind::NotYet, text).hint("the next edit removes them if nobody is writing")))
}
