//! A tree of files.

use super::{Get, Listing, Precondition, Store, Version, check_key, check_prefix, one, refused, wanted};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use crate::source::write::{Disk, LocalDisk, Locking};
use crate::source::{FileSource, Latency, ReadHints, Source};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Folders known to lie in the root that are remembered.
const FOLDERS_KNOWN: usize = 4096;

/// Files that are made durable at a time.
const SYNCING: usize = 16;

/// How the name of a file that is being written begins; such files are no objects.
const UNFINISHED: &str = ".hyperslab-unfinished-";

/// A folder and everything below it. A key is the path of a file. What is there and is no file, such as a folder or a
/// link that leads nowhere, is an error for whoever asks for its key, never an absence; so is a file in the place of a
/// folder for whoever asks for what is in it.
///
/// Symbolic links are followed as long as they stay in the folder, unless [`Limits::allow_outside`] is set: others are
/// [`ErrorKind::Permission`]. A file whose name is not UTF-8 has no key. A folder without files shows up as a prefix.
#[derive(Debug)]
pub struct DirectoryStore {
    /// As given, for messages.
    path: PathBuf,
    /// All links resolved.
    root: PathBuf,
    limits: Limits,
    /// Folders that were found to lie in the root, by key.
    inside: Cache<String, ()>,
    /// Makes comparing versions and replacing one step, for the writers of this process.
    writing: Mutex<()>,
    disk: Arc<dyn Disk>,
    locking: Locking,
    written: AtomicU64,
}

impl DirectoryStore {
    /// The store in the folder at `path`, which must exist.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let opened = || format!("cannot open {}", path.display());
        let root = path.canonicalize().map_err(|e| Error::io(opened(), e))?;
        if !root.is_dir() {
            return Err(Error::invalid(format!("{} is a file, not a folder", path.display())));
        }
        let inside = Cache::new(FOLDERS_KNOWN);
        let (writing, written) = (Mutex::new(()), AtomicU64::new(0));
        let locking = Locking::default();
        let disk = Arc::new(LocalDisk);
        Ok(DirectoryStore { path, root, limits: limits.clone(), inside, writing, locking, written, disk })
    }

    /// Sets how a writer keeps others out.
    #[must_use]
    pub fn with_locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// The store in the folder at `path`, which is made if it does not exist.
    pub fn create(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        fs::create_dir_all(path).map_err(|e| Error::io(format!("cannot make {}", path.display()), e))?;
        DirectoryStore::open(path, limits)
    }

    /// Sets the file system, to record what is asked of it.
    #[must_use]
    pub fn with_disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    fn failed(&self, what: &str, key: &str, e: std::io::Error) -> Error {
        Error::io(format!("cannot {what} {}", self.root.join(key).display()), e)
    }

    fn leaves(&self, key: &str) -> Error {
        let text = format!("{key} is a symbolic link that leads out of {}", self.path.display());
        Error::new(ErrorKind::Permission, text)
            .hint("allow it with --allow-outside, or Limits::with_allow_outside in the library, if you trust the folder")
    }

    /// The file in the place of a folder on the way to a key.
    fn blocking(&self, key: &str) -> Option<PathBuf> {
        let folders = key.match_indices('/').filter_map(|(at, _)| key.get(..at));
        folders.map(|folder| self.root.join(folder)).find(|path| path.exists() && !path.is_dir())
    }

    /// What the system says of a key that is not there: nothing, or that a file stands in the place of a folder, in which
    /// objects may have been.
    fn absent<T>(&self, key: &str, e: &std::io::Error) -> Result<Option<T>> {
        if e.kind() != IoKind::NotADirectory {
            return Ok(None);
        }
        let Some(path) = self.blocking(&format!("{key}/")) else { return Ok(None) };
        let text = format!("{} is a file, in the place of the folder of {key}", path.display());
        Err(Error::new(ErrorKind::Io, text).hint("move it away, and look for what it took the place of"))
    }

    /// Where a file or folder really is; `None` if it is not there.
    fn real(&self, key: &str) -> Result<Option<PathBuf>> {
        match self.root.join(key).canonicalize() {
            Ok(path) if self.limits.allow_outside || path.starts_with(&self.root) => Ok(Some(path)),
            Ok(_) => Err(self.leaves(key)),
            Err(e) if is_absence(&e) => match self.broken_link(key) {
                Some(link) => {
                    Err(Error::new(ErrorKind::Io, format!("{} is a link to nothing", link.display()))
                        .hint("what it leads to was moved, or was never fetched (git-annex, DataLad)"))
                }
                None => self.absent(key, &e),
            },
            Err(e) => Err(self.failed("look at", key, e)),
        }
    }

    /// The link on the way to a key behind which there is nothing. Whoever made it meant something to be there.
    fn broken_link(&self, key: &str) -> Option<PathBuf> {
        let ends = key.match_indices('/').map(|(at, _)| at).chain([key.len()]);
        let paths = ends.filter_map(|end| key.get(..end)).map(|part| self.root.join(part));
        paths.into_iter().find(|path| path.is_symlink() && !path.exists())
    }

    /// Whether what there is in the root is a folder; `None` if there is nothing.
    fn folder(&self, key: &str) -> Result<Option<bool>> {
        if key.is_empty() || self.inside.get(key).is_some() {
            return Ok(Some(true));
        }
        let found = self.real(key)?.map(|path| path.is_dir());
        if found == Some(true) {
            self.inside.insert(key.to_owned(), ());
        }
        Ok(found)
    }

    /// Whether there is such a folder in the root.
    fn has_folder(&self, key: &str) -> Result<bool> {
        Ok(self.folder(key)? == Some(true))
    }

    /// The file of a key and what the system knows of it; `None` if there is none. A folder is none, and is not nothing.
    fn file(&self, key: &str) -> Result<Option<(PathBuf, Metadata)>> {
        let Some((path, meta)) = self.entry(key)? else { return Ok(None) };
        if !meta.is_file() {
            let what = if meta.is_dir() { "a folder" } else { "neither a file nor a folder" };
            let text = format!("{}, the place of the object {key}, is {what}", path.display());
            return Err(Error::new(ErrorKind::Io, text).hint("move it away, if it was put there by mistake"));
        }
        Ok(Some((path, meta)))
    }

    /// What there is in the place of a key's file.
    fn entry(&self, key: &str) -> Result<Option<(PathBuf, Metadata)>> {
        check_key(key)?;
        if let Some((folder, _)) = key.rsplit_once('/') {
            match self.folder(folder)? {
                Some(true) => {}
                Some(false) => return self.absent(folder, &IoKind::NotADirectory.into()),
                None => return Ok(None),
            }
        }
        let path = self.root.join(key);
        let looked = |e| self.failed("look at", key, e);
        let mut meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(e) if is_absence(&e) => return self.absent(key, &e),
            Err(e) => return Err(looked(e)),
        };
        if meta.is_symlink() {
            let Some(real) = self.real(key)? else { return Ok(None) };
            meta = fs::metadata(real).map_err(looked)?;
        }
        Ok(Some((path, meta)))
    }

    fn read(&self, get: &Get) -> Result<Option<Bytes>> {
        let Some((path, meta)) = self.file(&get.key)? else { return Ok(None) };
        let range = wanted(get.part, meta.len()).context(|| path.display().to_string())?;
        get.check(range.length)?;
        let source = match FileSource::open(&path) {
            Ok(source) => source,
            // Removed just now.
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        one(source.read(&[range])?.into_iter().map(|bytes| Ok(Some(bytes))).collect())
    }

    /// Makes the folder with this key and those above it, one after the other, so that none is made outside the root.
    fn make_folder(&self, folder: &str) -> Result<()> {
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for folder in ends.filter_map(|end| folder.get(..end)) {
            if self.has_folder(folder)? {
                continue;
            }
            match fs::create_dir(self.root.join(folder)) {
                Err(e) if e.kind() != IoKind::AlreadyExists => return Err(self.failed("make", folder, e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes `bytes` beside the file of `key`, in a folder that is made if need be.
    fn write_beside(&self, key: &str, bytes: &[u8], durable: bool) -> Result<PathBuf> {
        let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let name = format!("{UNFINISHED}{}-{number}", std::process::id());
        let path = self.root.join(folder).join(name);
        let mut tries = 0;
        let file = loop {
            self.make_folder(folder)?;
            match self.disk.create(&path) {
                Ok(file) => break file,
                // Somebody removed the folder, as it was empty.
                Err(e) if e.kind() == IoKind::NotFound && tries < 16 => {
                    tries += 1;
                    self.forget(folder);
                }
                Err(e) => return Err(self.failed("write", key, e)),
            }
        };
        match file.write_at(0, bytes).and_then(|()| if durable { file.sync() } else { Ok(()) }) {
            Ok(()) => Ok(path),
            Err(e) => {
                let _ = self.disk.remove(&path);
                Err(self.failed("write", key, e))
            }
        }
    }

    /// Writes an object; `durable`: its bytes are before it has its name.
    fn put_as(&self, key: &str, bytes: &[u8], when: &Precondition, durable: bool) -> Result<Version> {
        check_key(key)?;
        let unfinished = self.write_beside(key, bytes, durable)?;
        let path = self.root.join(key);
        let guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let done = match when {
            Precondition::None => self.disk.rename(&unfinished, &path),
            // Linking fails if there is something, in one step.
            Precondition::Absent => self.disk.link(&unfinished, &path),
            Precondition::Matches(wanted) => match self.file(key) {
                Ok(Some((_, meta))) if version(&meta) == *wanted => self.disk.rename(&unfinished, &path),
                Ok(_) => Err(IoKind::AlreadyExists.into()),
                Err(e) => {
                    let _ = self.disk.remove(&unfinished);
                    return Err(e);
                }
            },
        };
        drop(guard);
        if !matches!((when, &done), (Precondition::None | Precondition::Matches(_), Ok(()))) {
            let _ = self.disk.remove(&unfinished);
        }
        match done {
            Ok(()) => {}
            Err(e) if e.kind() == IoKind::AlreadyExists && *when != Precondition::None => {
                return Err(refused(key, when));
            }
            Err(e) => return Err(self.failed("write", key, e)),
        }
        let meta = fs::metadata(&path).map_err(|e| self.failed("look at", key, e))?;
        Ok(version(&meta))
    }

    /// Looks again, the next time, whether `folder` and those above it are there.
    fn forget(&self, folder: &str) {
        let mut folder = folder;
        self.inside.remove(folder);
        while let Some((above, _)) = folder.rsplit_once('/') {
            self.inside.remove(above);
            folder = above;
        }
    }

    /// Removes the folders above `key` that have become empty.
    fn prune(&self, key: &str) {
        let mut folder = key;
        while let Some((above, _)) = folder.rsplit_once('/') {
            self.inside.remove(above);
            // Only empty folders go.
            if fs::remove_dir(self.root.join(above)).is_err() {
                break;
            }
            folder = above;
        }
    }

    /// Names in a folder, sorted; `None` if there is no such folder.
    fn names(&self, folder: &str, budget: &Budget) -> Result<Option<Listing>> {
        if !self.has_folder(folder)? {
            return Ok(None);
        }
        let listed = |e| self.failed("list", folder, e);
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(e) if is_absence(&e) => return Ok(None),
            Err(e) => return Err(listed(e)),
        };
        let mut listing = Listing::default();
        for entry in entries {
            let entry = entry.map_err(listed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            budget.charge((name.len() + folder.len() + size_of::<String>()) as u64)?;
            let mut kind = entry.file_type().map_err(listed)?;
            if kind.is_symlink() {
                // What it leads to decides; whether it may be followed is asked when it is.
                match fs::metadata(entry.path()) {
                    Ok(meta) => kind = meta.file_type(),
                    // Whoever reads it is told.
                    Err(_) => {
                        listing.objects.push(name);
                        continue;
                    }
                }
            }
            if kind.is_dir() {
                listing.prefixes.push(name);
            } else if !kind.is_file() || !name.starts_with(UNFINISHED) {
                // Pipes and devices too: whoever reads them is told.
                listing.objects.push(name);
            }
        }
        listing.objects.sort_unstable();
        listing.prefixes.sort_unstable();
        Ok(Some(listing))
    }

    fn budget(&self) -> Budget {
        Budget::new("names in a folder in bytes", self.limits.metadata)
    }

    /// Adds the keys below `folder`. `above` has the real folders on the way, so that links in a circle end.
    fn walk(
        &self,
        folder: &str,
        above: &mut HashSet<PathBuf>,
        budget: &Budget,
        keys: &mut Vec<String>,
    ) -> Result<()> {
        self.limits.check_depth("folders", above.len() as u32)?;
        let Some(real) = self.real(folder)? else { return Ok(()) };
        if !above.insert(real.clone()) {
            return Ok(());
        }
        let join = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if let Some(listing) = self.names(folder, budget)? {
            keys.extend(listing.objects.into_iter().map(join));
            for name in listing.prefixes {
                self.walk(&join(name), above, budget, keys)?;
            }
        }
        above.remove(&real);
        Ok(())
    }
}

/// Whether the system says that something is not there.
fn is_absence(e: &std::io::Error) -> bool {
    // A name with a file in place of a folder, or one that no system allows, names nothing.
    matches!(e.kind(), IoKind::NotFound | IoKind::NotADirectory | IoKind::InvalidFilename)
}

fn version(meta: &Metadata) -> Version {
    let time = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(meta);
    #[cfg(not(unix))]
    let number = 0;
    Version(format!("{}-{}-{number}", meta.len(), time.map_or(0, |t| t.as_nanos())))
}

impl Store for DirectoryStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.file(key)?.map(|(_, meta)| meta.len()))
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        gets.iter().map(|get| self.read(get)).collect()
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        Ok(self.file(key)?.map(|(_, meta)| version(&meta)))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.put_as(key, &bytes, when, false)
    }

    fn put_durable(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        let version = self.put_as(key, &bytes, when, true)?;
        self.sync(&[key.to_owned()])?;
        Ok(version)
    }

    fn delete(&self, key: &str) -> Result<bool> {
        let entry = match self.entry(key) {
            // With the folder went what was in it.
            Err(_) if self.blocking(key).is_some() => return Ok(false),
            entry => entry?,
        };
        let Some((path, _)) = entry.filter(|(_, meta)| !meta.is_dir()) else { return Ok(false) };
        match self.disk.remove(&path) {
            Ok(()) => {
                self.prune(key);
                Ok(true)
            }
            Err(e) if is_absence(&e) => Ok(false),
            Err(e) => Err(self.failed("remove", key, e)),
        }
    }

    fn claim(&self) -> Result<Option<Box<dyn std::fmt::Debug + Send + Sync>>> {
        super::claim::of_folder(&self.root, self.locking)
    }

    fn sweep(&self, prefix: &str) -> Result<()> {
        let prefix = check_prefix(prefix)?;
        // Folders before what is in them.
        let mut folders = vec![self.root.join(prefix)];
        let mut next = 0;
        while let Some(folder) = folders.get(next) {
            next += 1;
            let mut inner = Vec::new();
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => inner.push(entry.path()),
                    Ok(kind)
                        if kind.is_file() && entry.file_name().to_string_lossy().starts_with(UNFINISHED) =>
                    {
                        self.disk.remove(&entry.path()).map_err(|e| self.failed("remove", prefix, e))?;
                    }
                    _ => {}
                }
            }
            folders.append(&mut inner);
        }
        for folder in folders.iter().skip(1).rev() {
            // Only empty folders go.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    fn sync(&self, keys: &[String]) -> Result<()> {
        let mut folders: HashSet<&str> = HashSet::new();
        for key in keys {
            check_key(key)?;
            let mut folder = key.as_str();
            while let Some((above, _)) = folder.rsplit_once('/') {
                if !folders.insert(above) {
                    break;
                }
                folder = above;
            }
        }
        // The disk takes many at a time as one.
        let threads = SYNCING.min(keys.len());
        let one =
            |key: &String| match self.disk.open(&self.root.join(key), false).and_then(|file| file.sync()) {
                Err(e) if !is_absence(&e) => Err(self.failed("sync", key, e)),
                _ => Ok(()),
            };
        std::thread::scope(|scope| {
            let part = keys.len().div_ceil(threads.max(1)).max(1);
            let workers: Vec<_> =
                keys.chunks(part).map(|part| scope.spawn(|| part.iter().try_for_each(one))).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "syncing was stopped")))
            })
        })?;
        folders.insert("");
        for folder in folders {
            match self.disk.sync_folder(&self.root.join(folder)) {
                Err(e) if !is_absence(&e) => return Err(self.failed("sync", folder, e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_key(to)?;
        let Some((path, _)) = self.file(from)? else { return Ok(()) };
        let folder = to.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.make_folder(folder)?;
        self.disk.rename(&path, &self.root.join(to)).map_err(|e| self.failed("write", to, e))?;
        self.prune(from);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = check_prefix(prefix)?;
        let mut keys = Vec::new();
        self.walk(prefix, &mut HashSet::new(), &self.budget(), &mut keys)?;
        keys.sort_unstable();
        Ok(keys)
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        Ok(self.names(check_prefix(prefix)?, &self.budget())?.unwrap_or_default())
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 4 << 10, max_merged: 1 << 20, concurrency: 4, latency: Latency::Local }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        match self.file(key)? {
            Some((path, _)) => Ok(Some(Arc::new(FileSource::open(path)?))),
            None => Ok(None),
        }
    }
}
