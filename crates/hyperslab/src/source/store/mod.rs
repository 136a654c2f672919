//! Named objects: what a Zarr hierarchy lives in. A directory tree, a zip file, memory.
//!
//! A [`Store`] maps keys to immutable bytes. A key is a path of names joined by `/`, without a leading or trailing one:
//! `ocean/sst/c/0/0`. A *prefix* names everything below it: the prefix `ocean` holds `ocean/sst/c/0/0` but not
//! `ocean2`; the empty prefix holds all. An object is never a prefix of another.

mod beside;
mod claim;
#[cfg(any(test, feature = "testing"))]
pub mod contract_tests;
mod directory;
mod memory;
#[cfg(test)]
mod tests;
mod watched;
mod zip;

pub use beside::NewDirectory;
pub(crate) use beside::bring_back;
pub use directory::DirectoryStore;
pub use memory::MemoryStore;
pub use watched::WatchedStore;
pub use zip::{ZipStore, ZipWriter};

use super::{ByteRange, ReadHints, Source, Traffic};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Which bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of them.
    Whole,
    /// Exactly these; beyond the end is [`ErrorKind::Truncated`].
    Range(ByteRange),
    /// The last so many; fewer if there are not as many.
    Suffix(u64),
}

/// One question to a store: these bytes of that object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Get {
    /// The object.
    pub key: String,
    /// Which of its bytes.
    pub part: Part,
    /// Bytes that the answer may have: a longer one is [`ErrorKind::LimitExceeded`].
    pub most: u64,
}

impl Get {
    /// All of `key`.
    pub fn whole(key: impl Into<String>) -> Get {
        Get { key: key.into(), part: Part::Whole, most: u64::MAX }
    }

    /// A range of `key`.
    pub fn range(key: impl Into<String>, range: ByteRange) -> Get {
        Get { key: key.into(), part: Part::Range(range), most: u64::MAX }
    }

    /// The last `length` bytes of `key`.
    pub fn suffix(key: impl Into<String>, length: u64) -> Get {
        Get { key: key.into(), part: Part::Suffix(length), most: u64::MAX }
    }

    /// The same, if it has at most so many bytes.
    #[must_use]
    pub fn within(self, most: u64) -> Get {
        Get { most, ..self }
    }

    /// Fails if `length` bytes are more than the answer may have.
    fn check(&self, length: u64) -> Result<()> {
        if length <= self.most {
            return Ok(());
        }
        Err(Error::limit(format!("bytes of {}", self.key), length.into(), self.most.into())
            .hint("raise --max-memory, or Limits in the library"))
    }
}

/// Which state of an object: equal versions of one key mean equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What must hold for an object to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// There is no such object; otherwise [`ErrorKind::AlreadyExists`].
    Absent,
    /// It is in this state; otherwise [`ErrorKind::Changed`].
    Matches(Version),
}

/// The next names below a prefix, each list sorted by bytes. A name can be in both only in stores that let an object be
/// a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names of objects.
    pub objects: Vec<String>,
    /// Names below which there is more.
    pub prefixes: Vec<String>,
}

/// Named objects.
///
/// Contract: `None` is given only if the store says that the object does not exist; every other failure is an error that
/// names the object. Reads give exactly the bytes asked for. A put is all or nothing: readers see the old object or the new
/// one. All calls may be made from any number of threads.
pub trait Store: Send + Sync + fmt::Debug {
    /// Length of an object in bytes; `None` if there is no such object, also where the key is only a prefix. Where
    /// prefixes are things of their own, as folders are, that one is in the way is an error.
    fn len(&self, key: &str) -> Result<Option<u64>>;

    /// The whole object.
    fn get(&self, key: &str) -> Result<Option<Bytes>> {
        one(self.get_many(&[Get::whole(key)]))
    }

    /// The whole object, if it has at most `most` bytes; a longer one is [`ErrorKind::LimitExceeded`] before more than
    /// these are in memory.
    fn get_within(&self, key: &str, most: u64) -> Result<Option<Bytes>> {
        one(self.get_many(&[Get::whole(key).within(most)]))
    }

    /// A range of an object.
    fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Bytes>> {
        one(self.get_many(&[Get::range(key, range)]))
    }

    /// Many parts of many objects; the answers stand in the order of the questions, one for each. Far away, where lengths
    /// are not known before, answers of one batch that together have more than [`Limits::in_flight`] bytes are
    /// [`ErrorKind::LimitExceeded`] from there on: ask for these one by one.
    ///
    /// [`Limits::in_flight`]: crate::Limits::in_flight
    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>>;

    /// The state of an object, for [`Precondition::Matches`].
    fn version(&self, key: &str) -> Result<Option<Version>>;

    /// Writes an object, whole, and gives its new state.
    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version>;

    /// Removes an object; whether it was there.
    fn delete(&self, key: &str) -> Result<bool>;

    /// Makes what was put and deleted durable and seen by others, where that is not done object by object: the whole of a
    /// zip file.
    fn commit(&self) -> Result<()> {
        Ok(())
    }

    /// The keys of all objects below a prefix, sorted by bytes.
    fn list(&self, prefix: &str) -> Result<Vec<String>>;

    /// The next names below a prefix.
    fn search(&self, prefix: &str) -> Result<Listing>;

    /// The keys of objects below a prefix with their lengths, sorted by bytes: of all of them if `deep`, else of those
    /// that stand next below it. What goes away meanwhile is left out.
    fn lengths(&self, prefix: &str, deep: bool) -> Result<Vec<(String, u64)>> {
        let keys = if deep {
            self.list(prefix)?
        } else {
            let next = self.search(prefix)?.objects;
            next.iter().map(|name| joined(prefix, name)).collect()
        };
        let length = |key: String| Ok(self.len(&key)?.map(|length| (key, length)));
        keys.into_iter().filter_map(|key| length(key).transpose()).collect()
    }

    /// Costs, for planning.
    fn hints(&self) -> ReadHints;

    /// What to call it in messages: a path or URL.
    fn name(&self) -> String;

    /// An object as a source of bytes; `None` if there is no such object.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>>;

    /// Keeps other writers out until what it gives is dropped: those of this program, and of others where the store can do
    /// so. `None`: it cannot; preconditions are all that there is. Waits for a short while if there is another writer, and
    /// then fails with [`ErrorKind::Permission`].
    fn claim(&self) -> Result<Option<Box<dyn fmt::Debug + Send + Sync>>> {
        Ok(None)
    }

    /// Removes what writers that were killed left below a prefix and what is no object, while the store is
    /// [claimed](Store::claim).
    fn sweep(&self, prefix: &str) -> Result<()> {
        let _ = prefix;
        Ok(())
    }

    /// Makes objects durable that were written, and the removal of those that are gone.
    fn sync(&self, keys: &[String]) -> Result<()> {
        let _ = keys;
        Ok(())
    }

    /// Puts an object that is durable when this returns, and of which no crash leaves a part under its key.
    fn put_durable(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        let version = self.put(key, bytes, when)?;
        self.sync(&[key.to_owned()])?;
        Ok(version)
    }

    /// Gives an object another key, in place of the one that has it. If there is no such object, nothing happens.
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if let Some(bytes) = self.get(from)? {
            self.put(to, bytes, &Precondition::None)?;
            self.delete(from)?;
        }
        Ok(())
    }

    /// What was asked of a server so far; nothing where there is none.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// The only answer of a batch of one.
fn one<T>(mut answers: Vec<Result<T>>) -> Result<T> {
    answers.pop().unwrap_or_else(|| Err(Error::new(ErrorKind::Io, "the store gave no answer")))
}

/// Fails unless `key` is one: names joined by `/`, none of them empty, `.` or `..`.
pub fn check_key(key: &str) -> Result<()> {
    let plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    if key.split('/').all(plain) {
        return Ok(());
    }
    Err(Error::invalid(format!("{key:?} is no key: names joined by /, none of them empty, . or ..")))
}

/// The prefix without a trailing `/`, checked as a key is; empty for all.
pub(super) fn check_prefix(prefix: &str) -> Result<&str> {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if !prefix.is_empty() {
        check_key(prefix)?;
    }
    Ok(prefix)
}

/// The key of what is called `name` next below a prefix.
pub(super) fn joined(prefix: &str, name: &str) -> String {
    match prefix.strip_suffix('/').unwrap_or(prefix) {
        "" => name.to_owned(),
        prefix => format!("{prefix}/{name}"),
    }
}

/// What stands behind `prefix` in `key`, if the prefix holds the key.
fn below<'a>(prefix: &str, key: &'a str) -> Option<&'a str> {
    if prefix.is_empty() { Some(key) } else { key.strip_prefix(prefix)?.strip_prefix('/') }
}

/// The next names below `prefix` among keys in order, all of which it holds.
fn next_names<'a>(prefix: &str, keys: impl Iterator<Item = &'a str>) -> Listing {
    let mut listing = Listing::default();
    for rest in keys.filter_map(|key| below(prefix, key)) {
        match rest.split_once('/') {
            None => listing.objects.push(rest.to_owned()),
            Some((name, _)) if listing.prefixes.last().is_none_or(|last| last != name) => {
                listing.prefixes.push(name.to_owned());
            }
            Some(_) => {}
        }
    }
    // Keys in order do not give names in order: `a-b/c` stands before `a/c`.
    listing.prefixes.sort_unstable();
    listing.prefixes.dedup();
    listing
}

/// Which bytes `part` asks of an object of `length` bytes.
fn wanted(part: Part, length: u64) -> Result<ByteRange> {
    match part {
        Part::Whole => Ok(ByteRange::new(0, length)),
        Part::Suffix(n) => Ok(ByteRange::new(length - n.min(length), n.min(length))),
        Part::Range(range) => match range.end() {
            Some(end) if end <= length => Ok(range),
            _ => Err(super::memory::past_end(range, length)),
        },
    }
}

/// The bytes of `part` in the whole object.
pub(super) fn cut(bytes: &Bytes, part: Part) -> Result<Bytes> {
    let range = wanted(part, bytes.len() as u64)?;
    // It lies within the buffer.
    Ok(bytes.slice(range.offset as usize..(range.offset + range.length) as usize))
}

/// The error for a store that cannot be written.
pub(super) fn read_only(name: &str) -> Error {
    Error::unsupported(format!("writing to {name}"))
}

/// A precondition that does not hold.
pub(super) fn refused(key: &str, when: &Precondition) -> Error {
    match when {
        Precondition::Absent => Error::new(ErrorKind::AlreadyExists, format!("{key} exists already")),
        _ => Error::new(ErrorKind::Changed, format!("{key} was changed by somebody else")),
    }
}
