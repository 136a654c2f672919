//! The intent of a commit, `.hyperslab/intent.json`: which object goes where, and which are removed.
//!
//! Where the writer keeps all others out, the intent is put once, and with it the transaction has happened. Where a store
//! cannot keep anybody out, the object is also what writers take turns by. It has two states, and each step from one to the
//! next is a put under a precondition, so that only one writer takes it:
//!
//! 1. *prepared*: a writer has the turn, and looks whether what it read is still as it was. Nothing has happened. A writer that
//!    finds one that stands still for long takes the turn over, and the other one finds that out at its next step.
//! 2. *committed*: it has happened, and says in which state each object was that is replaced. Objects go to their places under
//!    the precondition that they still are in it, so that a writer that was slow, or two that carry out the same, write
//!    over nothing that came later.

use super::stage::FOLDER;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::json::Json;
use crate::source::store::{Precondition, Store, Version};
use std::time::{Duration, Instant};

/// The document of a commit that is on its way.
pub(super) const INTENT: &str = ".hyperslab/intent.json";

/// The longest intent that is read.
pub(super) const INTENT_MAX: u64 = 1 << 30;

/// How long a writer waits for an intent that stands still before it takes it for that of one that died.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 60 } else { 5_000 });

/// How long a writer waits for its turn.
const TURN: Duration = Duration::from_secs(60);

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 50 });

/// Where an object comes from, and what it takes the place of.
#[derive(Debug)]
pub(super) struct Move<'a> {
    pub(super) key: &'a str,
    /// The key that it was written to; `None`: the object is removed.
    pub(super) from: Option<&'a str>,
    /// The state of what it replaces (`Some(None)`: nothing), where others may write at the same time.
    pub(super) replaces: Option<Option<Version>>,
}

/// The document of these moves.
pub(super) fn document(moves: &[Move<'_>]) -> Json {
    let text = |text: &str| Json::Text(text.to_owned());
    let state = |replaces: &Option<Option<Version>>| match replaces {
        None => None,
        Some(None) => Some(Json::Null),
        Some(Some(Version(word))) => Some(text(word)),
    };
    let (mut put, mut removed) = (Vec::new(), Vec::new());
    for step in moves {
        match step.from {
            Some(from) => {
                let words = [Some(text(step.key)), Some(text(from)), state(&step.replaces)];
                put.push(Json::List(words.into_iter().flatten().collect()));
            }
            None => removed.push(match state(&step.replaces) {
                None => text(step.key),
                Some(state) => Json::List(vec![text(step.key), state]),
            }),
        }
    }
    Json::Map(vec![
        ("hyperslab_intent".into(), Json::Integer(1)),
        ("put".into(), Json::List(put)),
        ("remove".into(), Json::List(removed)),
    ])
}

/// The document of a writer that has the turn.
fn prepared(owner: &str) -> Json {
    Json::Map(vec![
        ("hyperslab_intent".into(), Json::Integer(1)),
        ("prepared".into(), Json::Text(owner.to_owned())),
    ])
}

fn wrong() -> Error {
    Error::new(ErrorKind::Corrupt, format!("{INTENT} is not what a commit writes"))
}

/// The moves of a document; `None` of a turn that was taken.
fn moves(intent: &Json) -> Result<Option<Vec<Move<'_>>>> {
    if intent.get("hyperslab_intent").and_then(Json::as_integer) != Some(1) {
        return Err(wrong());
    }
    if intent.get("prepared").is_some() {
        return Ok(None);
    }
    let state = |found: Option<&Json>| match found {
        None => Ok(None),
        Some(Json::Null) => Ok(Some(None)),
        Some(word) => word.as_str().map(|word| Some(Some(Version(word.to_owned())))).ok_or_else(wrong),
    };
    let mut moves = Vec::new();
    // Removals first: in a folder, a name may be that of an object before and of a group after.
    for removed in intent.get("remove").and_then(Json::as_list).ok_or_else(wrong)? {
        let words = removed.as_list().unwrap_or(std::slice::from_ref(removed));
        let key = words.first().and_then(Json::as_str).ok_or_else(wrong)?;
        moves.push(Move { key, from: None, replaces: state(words.get(1))? });
    }
    for put in intent.get("put").and_then(Json::as_list).ok_or_else(wrong)? {
        let words = put.as_list().ok_or_else(wrong)?;
        let word = |i: usize| words.get(i).and_then(Json::as_str).ok_or_else(wrong);
        let (key, from) = (word(0)?, word(1)?);
        if !from.starts_with(FOLDER) {
            return Err(wrong());
        }
        moves.push(Move { key, from: Some(from), replaces: state(words.get(2))? });
    }
    Ok(Some(moves))
}

/// Does what an intent says; each step may have been done before. Gives the keys under which somebody else has written
/// something else meanwhile, which is left as it is.
fn do_all(store: &dyn Store, moves: &[Move<'_>], full: bool) -> Result<Vec<String>> {
    let mut others = Vec::new();
    for step in moves {
        let differs = match (&step.replaces, step.from) {
            (None, Some(from)) => store.rename(from, step.key).map(|()| false),
            (None, None) => store.delete(step.key).map(|_| false),
            (Some(replaces), Some(from)) => put(store, from, step.key, replaces.as_ref()),
            (Some(replaces), None) => remove(store, step.key, replaces.as_ref()),
        };
        if differs.context(|| step.key.to_owned())? {
            others.push(step.key.to_owned());
        }
    }
    if full {
        store.sync(&moves.iter().map(|step| step.key.to_owned()).collect::<Vec<_>>())?;
    }
    Ok(others)
}

/// Puts an object to its place; whether something else is there, which came later.
fn put(store: &dyn Store, from: &str, key: &str, replaces: Option<&Version>) -> Result<bool> {
    // It is gone once it has its place.
    let Some(bytes) = store.get(from)? else { return Ok(false) };
    let when = replaces.map_or(Precondition::Absent, |version| Precondition::Matches(version.clone()));
    let differs = match store.put(key, bytes.clone(), &when) {
        Ok(_) => false,
        Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::Changed) => {
            store.get(key)?.as_ref() != Some(&bytes)
        }
        Err(e) => return Err(e),
    };
    store.delete(from)?;
    Ok(differs)
}

/// Removes an object in a state; whether it is in another one. Object stores have no removal under a precondition.
fn remove(store: &dyn Store, key: &str, replaces: Option<&Version>) -> Result<bool> {
    match store.version(key)? {
        None => Ok(false),
        found if found.as_ref() == replaces => store.delete(key).map(|_| false),
        Some(_) => Ok(true),
    }
}

/// Carries out what this writer has committed, where it keeps all others out, and removes the intent.
pub(super) fn carry_out(store: &dyn Store, intent: &Json, full: bool) -> Result<()> {
    do_all(store, &moves(intent)?.ok_or_else(wrong)?, full)?;
    store.delete(INTENT)?;
    Ok(())
}

/// Removes the intent, if it still is the one in this state.
fn release(store: &dyn Store, version: &Version) -> Result<()> {
    remove(store, INTENT, Some(version)).map(drop)
}

/// The intent that there is, and its state.
fn find(store: &dyn Store) -> Result<Option<(Json, Version)>> {
    loop {
        let Some(version) = store.version(INTENT)? else { return Ok(None) };
        let Some(bytes) = store.get_within(INTENT, INTENT_MAX)? else { return Ok(None) };
        if store.version(INTENT)?.as_ref() == Some(&version) {
            return Ok(Some((Json::parse(&bytes).context(|| INTENT)?, version)));
        }
    }
}

/// Finishes a commit that was interrupted; whether there was one. `alone`: nobody else is writing. Otherwise one that
/// is under way is waited for.
pub(super) fn replay(store: &dyn Store, alone: bool) -> Result<bool> {
    let words = || "finishing an interrupted commit";
    if alone {
        let Some(bytes) = store.get_within(INTENT, INTENT_MAX)? else { return Ok(false) };
        let intent = Json::parse(&bytes).context(|| INTENT)?;
        let Some(moves) = moves(&intent)? else {
            store.delete(INTENT)?;
            return Ok(false);
        };
        do_all(store, &moves, true).context(words)?;
        store.delete(INTENT)?;
        return Ok(true);
    }
    let mut done = false;
    let mut waiting = Waiting::default();
    while let Some((intent, version)) = find(store)? {
        let Some(moves) = moves(&intent)? else { break };
        if waiting.is_over(&version) {
            do_all(store, &moves, true).context(words)?;
            release(store, &version)?;
            done = true;
        } else {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(done)
}

/// How long an intent has stood still.
#[derive(Debug, Default)]
struct Waiting(Option<(Version, Instant)>);

impl Waiting {
    fn is_over(&mut self, version: &Version) -> bool {
        match &self.0 {
            Some((seen, since)) if seen == version => since.elapsed() >= PATIENCE,
            _ => {
                self.0 = Some((version.clone(), Instant::now()));
                false
            }
        }
    }
}

/// A writer's turn to commit, in a store that keeps nobody out.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    store: &'a dyn Store,
    version: Version,
}

/// What became of a commit that failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing has happened.
    Not(Error),
    /// It has happened, or may have: objects that it needs have to stay.
    Perhaps(Error),
}

impl<'a> Turn<'a> {
    /// Waits for the turn.
    pub(super) fn take(store: &'a dyn Store, owner: &str) -> Result<Turn<'a>> {
        let begin = Instant::now();
        let ours = || prepared(owner).to_string().into();
        let mut waiting = Waiting::default();
        loop {
            match store.put(INTENT, ours(), &Precondition::Absent) {
                Ok(version) => return Ok(Turn { store, version }),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
            if begin.elapsed() > TURN {
                let text = "others are committing all the time";
                return Err(Error::new(ErrorKind::Changed, text).hint("try it again later"));
            }
            let Some((intent, version)) = find(store)? else { continue };
            if moves(&intent)?.is_some() {
                replay(store, false)?;
            } else if waiting.is_over(&version) {
                // Its writer died, or finds out.
                match store.put(INTENT, ours(), &Precondition::Matches(version)) {
                    Ok(version) => return Ok(Turn { store, version }),
                    Err(e) if e.kind() == ErrorKind::Changed => {}
                    Err(e) => return Err(e),
                }
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Gives the turn up.
    pub(super) fn give_up(self) {
        // Best effort: the next writer takes it over after a while.
        let _ = release(self.store, &self.version);
    }

    /// Commits these moves, and carries them out.
    pub(super) fn commit(self, moves: &[Move<'_>]) -> std::result::Result<(), Failed> {
        let bytes = document(moves).to_string().into();
        let put = self.store.put(INTENT, bytes, &Precondition::Matches(self.version.clone()));
        let version = match put {
            Ok(version) => version,
            Err(e) if e.kind() == ErrorKind::Changed => {
                let text = "another writer took the turn while this one was committing";
                let e = Error::new(ErrorKind::Changed, text);
                return Err(Failed::Not(e.hint("open the store again and make the change anew")));
            }
            // The server said no.
            Err(e) if e.kind() != ErrorKind::Io => {
                self.give_up();
                return Err(Failed::Not(e));
            }
            Err(e) => {
                let e = e.context("whether the edit is committed is not known");
                return Err(Failed::Perhaps(e.hint("open the store again to see")));
            }
        };
        let others = do_all(self.store, moves, false).map_err(|e| Failed::Perhaps(unfinished(e)))?;
        release(self.store, &version).map_err(|e| Failed::Perhaps(unfinished(e)))?;
        match others.as_slice() {
            [] => Ok(()),
            others => {
                let text = format!(
                    "the edit is committed, but somebody else wrote {} at the same time, which is left as it is",
                    others.join(", ")
                );
                // No longer `Changed`: made anew, it would be made twice.
                Err(Failed::Perhaps(Error::new(ErrorKind::Io, text)))
            }
        }
    }
}

/// The error of a commit that has happened, and is not all in its place.
pub(super) fn unfinished(e: Error) -> Error {
    e.context("the edit is committed, but not all of it is in its place")
        .hint("what is left is done when the store is opened to be written the next time")
}
