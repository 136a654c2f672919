//! Objects of a transaction, which nobody sees before it is committed.
//!
//! A new hierarchy is written where it is to be, but its documents last and that of the root after all others: without it
//! there is nothing (a folder is made beside its place and renamed, too). Of one that is edited, new objects are written
//! to the folder `.hyperslab` of the store. A commit checks that what was read is still as it was, writes the
//! [`intent`](super::intent), carries it out and removes it. From the moment
//! at which the intent is there the transaction has happened: whoever opens the store to write, or a local one to read,
//! and finds it carries it out again, which does no harm where it was done.

use super::super::node::{NAMES, join};
use super::intent::{self, Failed, INTENT, Move, Turn};
use crate::error::{Error, ErrorKind, Result};
use crate::source::store::{NewDirectory, Precondition, Store, Version, WatchedStore};
use crate::source::write::SyncPolicy;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where writers keep what is not part of the hierarchy.
pub(super) const FOLDER: &str = ".hyperslab";

/// The object that says that a new hierarchy is not finished. What makes the root one comes last, but folders with nodes in
/// them are groups without.
const UNFINISHED: &str = ".hyperslab/new";

/// How many transactions this program has begun.
static NUMBER: AtomicU64 = AtomicU64::new(0);

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
        /// Keeps other writers out; `None` where the store cannot.
        claim: Option<Box<dyn fmt::Debug + Send + Sync>>,
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
        intent::replay(&*store, claim.is_some())?;
        if claim.is_some() {
            // Nobody else is writing: what is left there is of a transaction that was never committed.
            for key in store.list(FOLDER)?.iter().filter(|key| !key.ends_with("/lock")) {
                store.delete(key)?;
            }
            store.sweep(FOLDER)?;
        }
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = time.map_or(0, |t| t.as_nanos());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("{FOLDER}/{}-{time:x}-{number}", std::process::id());
        let mode = Mode::Edit { changes: BTreeMap::new(), claim, folder, next: 0 };
        Ok(Stage::new(Arc::new(WatchedStore::new(store)), mode, sync))
    }

    /// Removes everything that is there, so that what is written takes its place.
    pub(super) fn clear(&mut self) -> Result<()> {
        let keys = self.list("")?;
        if let Mode::Edit { changes, .. } = &mut self.mode {
            changes.extend(keys.into_iter().map(|key| (key, Pending::Removed)));
        }
        Ok(())
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
                Some(Pending::Put(at)) => self.store.inner().get(at),
                Some(Pending::Removed) => Ok(None),
                None if below_removed(changes, key) => Ok(None),
                None => self.store.get(key),
            },
            Mode::New(_) if self.written.contains(key) => self.store.inner().get(key),
            Mode::New(_) => Ok(None),
        }
    }

    /// Writes an object.
    pub(super) fn put(&mut self, key: &str, bytes: Bytes) -> Result<()> {
        self.bytes += bytes.len() as u64;
        match &mut self.mode {
            Mode::New(folder) => {
                if folder.is_none() && self.written.is_empty() {
                    self.store.put(UNFINISHED, Bytes::new(), &Precondition::None)?;
                    self.written.insert(UNFINISHED.to_owned());
                }
                // One that is there and not of this transaction is not overwritten.
                let ours = self.written.contains(key);
                let when = if ours { Precondition::None } else { Precondition::Absent };
                if let Err(e) = self.store.put(key, bytes.clone(), &when) {
                    // Where the answer was lost, it may be there all the same.
                    if e.kind() == ErrorKind::Io && self.store.inner().get(key).ok().flatten() == Some(bytes)
                    {
                        self.written.insert(key.to_owned());
                    }
                    return Err(e);
                }
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
        // `0` comes next behind `/`.
        let (from, to) = (format!("{prefix}/"), format!("{prefix}0"));
        let from = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(from.as_str()) };
        let to = if prefix.is_empty() { Bound::Unbounded } else { Bound::Excluded(to.as_str()) };
        Ok(match &self.mode {
            Mode::New(_) => {
                let ours = self.written.range::<str, _>((from, to));
                ours.filter(|key| *key != UNFINISHED).cloned().collect()
            }
            Mode::Edit { changes, .. } => {
                let inner = format!("{FOLDER}/");
                let mut keys: BTreeSet<String> =
                    self.store.list(prefix)?.into_iter().filter(|key| !key.starts_with(&inner)).collect();
                for (key, pending) in changes.range::<str, _>((from, to)) {
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
                if self.written.remove(UNFINISHED) {
                    // With its root it is finished, whatever is said.
                    let _ = store.delete(UNFINISHED);
                }
                store.commit()?;
                if let Some(folder) = folder.take() {
                    folder.publish()?;
                }
            }
            Mode::Edit { changes, claim, folder, .. } => {
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
                let keys = || changes.keys().map(String::as_str);
                let documents = documents_of(&store, keys());
                let check = || {
                    keys().chain(documents.iter().map(String::as_str)).try_for_each(|key| store.check(key))
                };
                if claim.is_none() {
                    let done = take_turn(&store, changes, folder, check);
                    self.done = !matches!(done, Err(Failed::Not(_)));
                    return match done {
                        Ok(()) => store.commit().map(|()| self.bytes),
                        Err(Failed::Not(e) | Failed::Perhaps(e)) => Err(e),
                    };
                }
                check()?;
                let intent = intent::document(&moves(changes, |_| Ok(None))?);
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
                    self.done = !is_withdrawn(&**store.inner(), &bytes, full);
                    return Err(match self.done {
                        true => {
                            e.context("whether the edit is committed shows when the store is opened again")
                        }
                        false => e,
                    });
                }
                // It has happened; from here on it can only be finished.
                self.done = true;
                intent::carry_out(&**store.inner(), &intent, full).map_err(intent::unfinished)?;
                store.commit()?;
            }
        }
        self.done = true;
        Ok(self.bytes)
    }
}

/// Takes an intent back that could not be written as it should; whether it is gone, whatever happens next.
fn is_withdrawn(store: &dyn Store, ours: &Bytes, full: bool) -> bool {
    let is_gone = match store.get_within(INTENT, intent::INTENT_MAX) {
        Ok(Some(there)) if there == *ours => store.delete(INTENT).is_ok(),
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
            Mode::New(None) => {
                // What makes it one goes first: with it, what is left would be read.
                let is_document =
                    |key: &&String| key.rsplit('/').next().is_some_and(|name| NAMES.contains(&name));
                let documents = self.written.iter().filter(is_document);
                if documents.map(|key| self.store.delete(key)).all(|done| done.is_ok()) {
                    let rest = self.written.iter().filter(|key| !is_document(key));
                    rest.for_each(|key| drop(self.store.delete(key)));
                }
            }
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

/// What is to be done, with the state of what each object replaces.
fn moves<'a>(
    changes: &'a BTreeMap<String, Pending>,
    replaces: impl Fn(&str) -> Result<Option<Option<Version>>>,
) -> Result<Vec<Move<'a>>> {
    let step = |(key, pending): (&'a String, &'a Pending)| {
        let from = match pending {
            Pending::Put(at) => Some(at.as_str()),
            Pending::Removed => None,
        };
        Ok(Move { key, from, replaces: replaces(key)? })
    };
    changes.iter().map(step).collect()
}

/// Commits in a store that keeps nobody out.
fn take_turn(
    store: &WatchedStore,
    changes: &BTreeMap<String, Pending>,
    owner: &str,
    check: impl Fn() -> Result<()>,
) -> std::result::Result<(), Failed> {
    let inner = &**store.inner();
    let turn = Turn::take(inner, owner).map_err(Failed::Not)?;
    // While nobody else commits. What was read is in the state in which it was read.
    let replaces = |key: &str| match store.seen(key) {
        Some(seen) => Ok(Some(seen)),
        None => inner.version(key).map(Some),
    };
    match check().and_then(|()| moves(changes, replaces)) {
        Ok(moves) => turn.commit(&moves),
        Err(e) => {
            turn.give_up();
            Err(Failed::Not(e))
        }
    }
}

/// The documents that were read of the objects that these keys are of, and of the groups that they are in. That of the root,
/// which holds others too, only where no other one is nearer.
fn documents_of<'a>(store: &WatchedStore, keys: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut looked: BTreeSet<&str> = BTreeSet::new();
    let mut documents = BTreeSet::new();
    for key in keys {
        let (mut rest, mut found) = (key, false);
        while !rest.is_empty() {
            rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
            if rest.is_empty() && found {
                break;
            }
            let seen =
                NAMES.map(|name| join(rest, name)).into_iter().filter(|name| store.seen(name).is_some());
            let before = documents.len();
            documents.extend(seen);
            found |= documents.len() > before;
            if !looked.insert(rest) {
                // Those above were looked at with another key.
                break;
            }
        }
    }
    documents
}

/// Fails if a hierarchy without a document at its root is one that is being written, or that was never finished.
pub(in super::super) fn check_finished(store: &dyn Store) -> Result<()> {
    if store.len(UNFINISHED)?.is_none() {
        return Ok(());
    }
    let text = "the hierarchy is being written, or was never finished";
    Err(Error::new(ErrorKind::NotYet, text)
        .at(UNFINISHED, 0)
        .hint("wait for its writer; if that died, write it anew with --overwrite"))
}

/// Finishes a commit that was interrupted, if there is one and nobody is at it; whether there was. For stores to which
/// looking is cheap.
pub fn recover(store: &dyn Store) -> Result<bool> {
    if store.len(INTENT)?.is_none() {
        return Ok(false);
    }
    let _claim = store.claim()?;
    intent::replay(store, true).map_err(|e| match e.kind() {
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
