//! A zip file, written: new, or in place of the one that was there.

use super::record::{Record, end};
use super::{File, ZipStore};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::shape::to_usize;
use crate::source::store::{
    Get, Listing, Precondition, Store, Version, below, check_key, check_prefix, next_names, refused,
};
use crate::source::write::{DiskFile, WriteFile, WriteOptions, scratch};
use crate::source::{ByteRange, FileSource, Latency, MemorySource, ReadHints, Source};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are copied at a time.
const RUN: u64 = 1 << 20;

/// A zip file in the making. What is put into it is seen here at once, and by others only after [`Store::commit`], which
/// writes the whole file beside its place, in the order of the keys and without times, and renames it: the same objects give
/// the same bytes. Without a commit everything stays as it was.
///
/// Objects are stored as they are; those of the file that was there are taken over as they stand in it.
#[derive(Debug)]
pub struct ZipWriter {
    path: PathBuf,
    options: WriteOptions,
    /// What stands in front of all keys in the file: empty, or a folder with its `/`.
    prefix: String,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The file that was there, and what was known of its state.
    base: Option<(ZipStore, Arc<FileSource>, String)>,
    /// Objects that were put, one after the other, in a file without a name.
    spool: Box<dyn DiskFile>,
    length: u64,
    objects: BTreeMap<String, Held>,
    /// Whether there is something to commit.
    changed: bool,
}

/// Where the bytes of an object are.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// In the file that was there: the number of the file in it.
    Base(usize),
    Spool {
        offset: u64,
        length: u64,
        crc: u32,
    },
}

impl ZipWriter {
    /// A new zip file. At its path nothing changes before the commit; there it fails if a file is there that may not be
    /// overwritten.
    pub fn create(path: impl AsRef<Path>, limits: &Limits, options: &WriteOptions) -> Result<ZipWriter> {
        ZipWriter::new(path.as_ref(), None, limits, options)
    }

    /// The zip file at `path`, to be changed. Files in it whose names are no keys are refused: they would be lost.
    pub fn edit(path: impl AsRef<Path>, limits: &Limits, options: &WriteOptions) -> Result<ZipWriter> {
        let path = path.as_ref();
        let source = Arc::new(FileSource::open(path)?);
        let id = source.id()?;
        let store = ZipStore::open(source.clone(), limits)?;
        store.check_rewritable().context(|| format!("zip file {}", path.display()))?;
        ZipWriter::new(path, Some((store, source, id)), limits, options)
    }

    fn new(
        path: &Path,
        base: Option<(ZipStore, Arc<FileSource>, String)>,
        limits: &Limits,
        options: &WriteOptions,
    ) -> Result<ZipWriter> {
        let spool = scratch(path, options)?;
        let mut prefix = String::new();
        let mut objects = BTreeMap::new();
        if let Some((store, ..)) = &base {
            prefix = store.prefix.clone();
            objects.extend(store.files.iter().enumerate().map(|(n, file)| (file.key.clone(), Held::Base(n))));
        }
        let state = State { changed: base.is_none(), base, spool, length: 0, objects };
        let (path, options, limits) = (path.to_owned(), options.clone(), limits.clone());
        Ok(ZipWriter { path, options, prefix, limits, state: Mutex::new(state) })
    }

    /// Puts everything into a folder of the zip file, as netCDF-C wants it. Of a file that was there the folder stays.
    pub fn with_prefix(mut self, folder: &str) -> Result<ZipWriter> {
        let folder = check_prefix(folder)?;
        let new = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).base.is_none();
        if new {
            self.prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        }
        Ok(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, what: &str, e: std::io::Error) -> Error {
        Error::io(format!("cannot {what} what is put into {}", self.path.display()), e)
    }

    /// The bytes of an object that was put.
    fn spooled(&self, state: &State, range: ByteRange) -> Result<Bytes> {
        let mut bytes = vec![0; to_usize(range.length)?];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match state.spool.read_at(range.offset.saturating_add(done as u64), rest) {
                Ok(0) => {
                    let text = format!("what was put into {} was cut off", self.path.display());
                    return Err(Error::new(ErrorKind::Io, text));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed("read", e)),
            }
        }
        Ok(bytes.into())
    }

    fn read(&self, get: &Get) -> Result<Option<Bytes>> {
        check_key(&get.key)?;
        let state = self.lock();
        match state.objects.get(&get.key) {
            None => Ok(None),
            Some(Held::Base(_)) => {
                let Some((base, ..)) = &state.base else { return Ok(None) };
                let mut answers = base.get_many(std::slice::from_ref(get));
                answers.pop().unwrap_or(Ok(None))
            }
            Some(&Held::Spool { offset, length, .. }) => {
                let range = crate::source::store::wanted(get.part, length)?;
                get.check(range.length)?;
                let at = ByteRange::new(offset.saturating_add(range.offset), range.length);
                self.spooled(&state, at).map(Some)
            }
        }
    }

    /// Writes all objects to `file`.
    fn write(&self, state: &State, file: &WriteFile) -> Result<()> {
        let (mut at, mut directory, mut entries) = (0u64, Vec::new(), 0u64);
        for (key, held) in &state.objects {
            let name = format!("{}{key}", self.prefix);
            let (record, start) = match *held {
                Held::Spool { offset, length, crc } => {
                    let (stored, header) = (length, at);
                    (Record { name: &name, method: 0, crc, stored, length, header }, offset)
                }
                Held::Base(number) => {
                    let (base, entry) = self.base_file(state, number)?;
                    (Record::copied(&name, &entry.entry, at), base.start_of(entry)?)
                }
            };
            let local = record.local()?;
            file.write_at(at, &local)?;
            at = at.saturating_add(local.len() as u64);
            let mut done = 0;
            while done < record.stored {
                let range = ByteRange::new(start.saturating_add(done), RUN.min(record.stored - done));
                let bytes = match held {
                    Held::Spool { .. } => self.spooled(state, range)?,
                    Held::Base(number) => self.base_file(state, *number)?.0.raw(range)?,
                };
                file.write_at(at, &bytes)?;
                (at, done) = (at.saturating_add(range.length), done + range.length);
            }
            directory.extend(record.central()?);
            if directory.len() as u64 > self.limits.metadata {
                let (length, most) = (directory.len() as u128, self.limits.metadata.into());
                return Err(Error::limit("bytes of the directory of a zip file", length, most));
            }
            entries += 1;
        }
        let end = end(entries, at, directory.len() as u64);
        file.write_at(at, &directory)?;
        file.write_at(at.saturating_add(directory.len() as u64), &end)
    }

    fn base_file<'a>(&self, state: &'a State, number: usize) -> Result<(&'a ZipStore, &'a File)> {
        let found = state.base.as_ref().and_then(|(base, ..)| Some((base, base.files.get(number)?)));
        found.ok_or_else(|| Error::invalid(format!("{} has no file {number}", self.path.display())))
    }

    /// Fails if somebody else changed the file that was there.
    fn check_base(&self, state: &State) -> Result<()> {
        let Some((_, source, id)) = &state.base else { return Ok(()) };
        if source.is_current()? && source.id()? == *id {
            return Ok(());
        }
        let text = format!("{} was changed by somebody else", self.path.display());
        Err(Error::new(ErrorKind::Changed, text).hint("open it again"))
    }
}

impl Store for ZipWriter {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        check_key(key)?;
        let state = self.lock();
        Ok(match state.objects.get(key) {
            None => None,
            Some(&Held::Spool { length, .. }) => Some(length),
            Some(&Held::Base(number)) => Some(self.base_file(&state, number)?.1.entry.length),
        })
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        gets.iter().map(|get| self.read(get).context(|| format!("{} in {}", get.key, self.name()))).collect()
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        check_key(key)?;
        let state = self.lock();
        Ok(version(&state, key))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        check_key(key)?;
        let mut sum = flate2::Crc::new();
        sum.update(&bytes);
        let mut state = self.lock();
        let holds = match when {
            Precondition::None => true,
            Precondition::Absent => !state.objects.contains_key(key),
            Precondition::Matches(wanted) => version(&state, key).as_ref() == Some(wanted),
        };
        if !holds {
            return Err(refused(key, when));
        }
        let (offset, length) = (state.length, bytes.len() as u64);
        state.spool.write_at(offset, &bytes).map_err(|e| self.failed("keep", e))?;
        // Never the same place twice, so that places tell states apart.
        state.length = offset.saturating_add(length.max(1));
        state.objects.insert(key.to_owned(), Held::Spool { offset, length, crc: sum.sum() });
        state.changed = true;
        version(&state, key).ok_or_else(|| Error::invalid("an object that was put is not there"))
    }

    fn delete(&self, key: &str) -> Result<bool> {
        check_key(key)?;
        let mut state = self.lock();
        let was_there = state.objects.remove(key).is_some();
        state.changed |= was_there;
        Ok(was_there)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let (prefix, state) = (check_prefix(prefix)?, self.lock());
        Ok(held(&state.objects, prefix)
            .filter(|key| below(prefix, key).is_some())
            .map(str::to_owned)
            .collect())
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        let (prefix, state) = (check_prefix(prefix)?, self.lock());
        Ok(next_names(prefix, held(&state.objects, prefix)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_key(to)?;
        let mut state = self.lock();
        if let Some(held) = state.objects.remove(from) {
            state.objects.insert(to.to_owned(), held);
            state.changed = true;
        }
        Ok(())
    }

    /// What is in the making is seen by nobody else, and the commit locks the file that it takes the place of.
    fn claim(&self) -> Result<Option<Box<dyn std::fmt::Debug + Send + Sync>>> {
        Ok(Some(Box::new(())))
    }

    /// Writes the zip file and gives it its name. More may be put after it, up to the next commit.
    fn commit(&self) -> Result<()> {
        let mut state = self.lock();
        if !state.changed {
            return Ok(());
        }
        self.check_base(&state)?;
        let options = self.options.clone().with_overwrite(self.options.overwrite || state.base.is_some());
        let file = WriteFile::create(&self.path, &options)?;
        self.write(&state, &file).context(|| format!("zip file {}", self.path.display()))?;
        self.check_base(&state)?;
        file.commit()?;
        drop(file);
        // What comes next goes on from the file as it is now.
        let source = Arc::new(FileSource::open(&self.path)?);
        let id = source.id()?;
        let prefix = self.prefix.trim_end_matches('/');
        let store = ZipStore::open_at(source.clone(), prefix, &self.limits)?;
        state.objects =
            store.files.iter().enumerate().map(|(n, file)| (file.key.clone(), Held::Base(n))).collect();
        state.base = Some((store, source, id));
        state.spool = scratch(&self.path, &self.options)?;
        state.length = 0;
        state.changed = false;
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 4 << 10, max_merged: 1 << 20, concurrency: 1, latency: Latency::Local }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        let name = format!("{key} in {}", self.name());
        Ok(self.get(key)?.map(|bytes| Arc::new(MemorySource::new(bytes, name)) as Arc<dyn Source>))
    }
}

/// The keys from `prefix` on that begin with it, in order.
fn held<'a>(objects: &'a BTreeMap<String, Held>, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let keys = objects.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
    keys.map(|(key, _)| key.as_str()).take_while(move |key| key.starts_with(prefix))
}

fn version(state: &State, key: &str) -> Option<Version> {
    Some(Version(match *state.objects.get(key)? {
        Held::Spool { offset, length, crc } => format!("{crc:08x}-{length}-put-{offset}"),
        Held::Base(_) => return state.base.as_ref()?.0.version(key).ok().flatten(),
    }))
}
