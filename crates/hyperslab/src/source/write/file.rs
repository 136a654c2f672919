//! The run of bytes that writers of formats see.

use super::disk::DiskFile;
use super::edit::Edit;
use super::{SyncPolicy, WriteOptions, beside, folder_of, journal, lock, recover};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::to_usize;
use crate::source::{ByteRange, Latency, ReadHints, Source, past_end};
use bytes::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A file that is being written: one growable run of bytes, of which others see nothing before [`WriteFile::commit`].
///
/// It is a [`Source`] too, of the bytes as they are now, so that the parsers of a format read what its writer wrote. Dropped
/// without a commit it leaves everything as it was. After an error of writing nothing more can be written to it.
#[derive(Debug)]
pub struct WriteFile {
    state: Mutex<State>,
    /// Where it is, or will be.
    path: PathBuf,
}

#[derive(Debug)]
struct State {
    edit: Edit,
    options: WriteOptions,
    /// The name of a new file until it gets its own.
    unfinished: Option<PathBuf>,
    /// The file that a new one will replace, locked.
    replaced: Option<Box<dyn DiskFile>>,
    /// Counts changes.
    version: u64,
    failed: bool,
}

impl WriteFile {
    /// A new file, empty for now. At its path nothing changes before the commit.
    ///
    /// Fails with [`ErrorKind::AlreadyExists`] if there is a file that may not be overwritten, and with
    /// [`ErrorKind::Permission`] if another program has it locked, or it may not be written.
    pub fn create(path: impl AsRef<Path>, options: &WriteOptions) -> Result<WriteFile> {
        let path = recover::resolved(path.as_ref())?.into_owned();
        let replaced = replaced(&path, options)?;
        let (file, unfinished) = beside(&path, &*options.disk)?;
        // The lock goes with the file to its name.
        let locked = lock::exclusive(file.file(), &path, options.locking);
        let edit = Edit::new(file, unfinished.clone(), 0, options.clone());
        let options = options.clone();
        let state =
            State { edit, options, unfinished: Some(unfinished), replaced, version: 0, failed: false };
        let out = WriteFile { state: Mutex::new(state), path };
        locked.map(|_| out)
    }

    /// A file that exists, to be changed in place. It is locked, and brought back to a whole state if an edit of it was
    /// interrupted, before anything else is done.
    pub fn edit(path: impl AsRef<Path>, options: &WriteOptions) -> Result<WriteFile> {
        let path = recover::resolved(path.as_ref())?.into_owned();
        check_regular(&path)?;
        let file = locked(&path, options)?;
        recover::roll_back(file.as_ref(), &path, options)?;
        let failed = |e| Error::io(format!("cannot look at {}", path.display()), e);
        let length = file.file().metadata().map_err(failed)?.len();
        let edit = Edit::new(file, path.clone(), length, options.clone());
        let options = options.clone();
        let state = State { edit, options, unfinished: None, replaced: None, version: 0, failed: false };
        Ok(WriteFile { state: Mutex::new(state), path })
    }

    /// A new file that will take the place of this one. This one keeps its lock until it is dropped, and is to be
    /// [abandoned](Self::abandon) before the new one is committed.
    pub fn successor(&self) -> Result<WriteFile> {
        let state = self.lock();
        let failed = |e| Error::io(format!("cannot open {}", self.path.display()), e);
        let options = state.options.clone();
        let is_there = state.unfinished.is_none() || state.replaced.is_some();
        let replaced = is_there.then(|| options.disk.open(&self.path, false)).transpose().map_err(failed)?;
        let (file, unfinished) = beside(&self.path, &*options.disk)?;
        let edit = Edit::new(file, unfinished.clone(), 0, options.clone());
        let unfinished = Some(unfinished);
        let state = State { edit, options, unfinished, replaced, version: 0, failed: false };
        Ok(WriteFile { state: Mutex::new(state), path: self.path.clone() })
    }

    /// Takes back all that was not committed. Nothing can be written any more; the lock stays.
    pub fn abandon(&self) -> Result<()> {
        let mut state = self.lock();
        state.failed = true;
        state.roll_back()
    }

    /// Says that the state of a file that is edited ends at `end`, its first byte that belongs to none: what stands there is
    /// cut off, and need not be brought back after a crash. To be said before anything is changed.
    pub fn set_end_of_state(&self, end: u64) -> Result<()> {
        self.lock().edit.protect(end)
    }

    /// Where it is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes as they were at the last commit, or when it was opened, whatever is written meanwhile. Reading them fails
    /// with [`ErrorKind::Changed`] once the file is no longer held to be written: it may be another one then.
    pub fn before(self: &Arc<Self>) -> Arc<dyn Source> {
        Arc::new(Before { file: Arc::downgrade(self), name: self.name() })
    }

    /// `length` bytes from `offset` as they are now.
    pub fn read_at(&self, offset: u64, length: u64) -> Result<Bytes> {
        let state = self.lock();
        let range = ByteRange::new(offset, length);
        if range.end().is_none_or(|end| end > state.edit.length) {
            return Err(past_end(range, state.edit.length));
        }
        let mut buffer = vec![0; to_usize(length)?];
        state.edit.read(offset, &mut buffer)?;
        Ok(Bytes::from(buffer))
    }

    /// Writes `bytes` at `offset`. Behind the end the file grows, and what lies between is zero.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.change(|edit| edit.write(offset, bytes))
    }

    /// Cuts the file, or makes it longer by zeros.
    pub fn set_len(&self, length: u64) -> Result<()> {
        self.change(|edit| edit.set_len(length))
    }

    fn change(&self, change: impl FnOnce(&mut Edit) -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        state.check()?;
        state.version += 1;
        let done = change(&mut state.edit);
        state.failed = done.is_err();
        done
    }

    /// Makes everything that was written durable and seen, all or nothing. More may be written after it, up to the next
    /// commit. After an error the file is as it was, unless the error says otherwise.
    pub fn commit(&self) -> Result<()> {
        let mut state = self.lock();
        state.check()?;
        let done = match state.unfinished.is_some() {
            true => state.publish(&self.path),
            false => state.edit.commit(),
        };
        let Err(e) = done else { return Ok(()) };
        state.failed = true;
        match state.roll_back() {
            Ok(()) => {
                let next = e.next_step().map_or_else(String::new, |next| format!("; {next}"));
                Err(e.hint(format!("{} is as it was{next}", self.path.display())))
            }
            Err(second) => Err(
                e.hint(format!("{second}; {} will be brought back by its next opener", self.path.display()))
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match self.failed {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Io,
                format!("an earlier write to {} failed", self.edit.path.display()),
            )
            .hint("nothing of this edit will be kept; start again")),
        }
    }

    /// Gives a new file its name.
    fn publish(&mut self, path: &Path) -> Result<()> {
        self.edit.finish_new()?;
        let Some(unfinished) = self.unfinished.clone() else { return Ok(()) };
        let failed = |e| Error::io(format!("cannot give {} its name", path.display()), e);
        let disk = self.options.disk.clone();
        match &self.replaced {
            Some(old) => {
                let keep = old
                    .file()
                    .metadata()
                    .and_then(|meta| self.edit.file.file().set_permissions(meta.permissions()));
                keep.map_err(failed)?;
                disk.rename(&unfinished, path).map_err(failed)?;
            }
            // Of two that make one file, one is told.
            None => match disk.link(&unfinished, path) {
                Ok(()) => {
                    // The file is there in any case.
                    let _ = disk.remove(&unfinished);
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(path)),
                // A file system without links.
                Err(_) if !path.exists() => disk.rename(&unfinished, path).map_err(failed)?,
                Err(_) => return Err(exists(path)),
            },
        }
        (self.unfinished, self.replaced) = (None, None);
        if !self.options.locking.is_wanted() {
            // It was to show that somebody is making it.
            let _ = self.edit.file.file().unlock();
        }
        self.edit.begin_at(path);
        match self.options.sync {
            SyncPolicy::Full => disk.sync_folder(&folder_of(path)).map_err(|e| {
                Error::io(format!("cannot sync the folder of {}, which is written", path.display()), e)
            }),
            SyncPolicy::None => Ok(()),
        }
    }

    fn roll_back(&mut self) -> Result<()> {
        match self.unfinished.take() {
            Some(unfinished) => {
                let removed = self.options.disk.remove(&unfinished);
                removed.map_err(|e| Error::io(format!("cannot remove {}", unfinished.display()), e))
            }
            None => self.edit.roll_back(),
        }
    }
}

impl Drop for WriteFile {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Where it fails the journal stays, and the next opener does it.
        let _ = state.roll_back();
    }
}

fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("{} exists", path.display()))
        .hint("overwrite it by --overwrite, or WriteOptions::with_overwrite in the library")
}

fn check_regular(path: &Path) -> Result<()> {
    let meta = fs::metadata(path).map_err(|e| Error::io(format!("cannot open {}", path.display()), e))?;
    match meta.is_file() {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("{} is no file that can be written by position", path.display())))
        }
    }
}

/// Opens a file to write it, and locks it.
fn locked(path: &Path, options: &WriteOptions) -> Result<Box<dyn DiskFile>> {
    let failed = |e| Error::io(format!("cannot open {} to write", path.display()), e);
    let file = options.disk.open(path, true).map_err(failed)?;
    lock::exclusive(file.file(), path, options.locking)?;
    // Another file may have got the name meanwhile.
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = file.file().metadata().map_err(failed)?;
        let named = fs::metadata(path).map_err(failed)?;
        if (own.dev(), own.ino()) != (named.dev(), named.ino()) {
            let text = format!("{} was replaced while it was opened", path.display());
            return Err(Error::new(ErrorKind::Changed, text).hint("try again"));
        }
    }
    Ok(file)
}

/// The file at the path of a new one, if there is one, locked and whole.
fn replaced(path: &Path, options: &WriteOptions) -> Result<Option<Box<dyn DiskFile>>> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            // A journal without its file says nothing, and would be taken for that of the new one.
            let journal = journal::path_of(path);
            if journal.is_file() {
                recover::remove(&journal, options)?;
            }
            return Ok(None);
        }
        Err(e) => return Err(Error::io(format!("cannot look at {}", path.display()), e)),
        Ok(_) => check_regular(path)?,
    }
    if !options.overwrite {
        return Err(exists(path));
    }
    let file = locked(path, options)?;
    recover::roll_back(file.as_ref(), path, options)?;
    Ok(Some(file))
}

/// A file beside `path` that loses its name at once, so that it goes away with the program, whatever ends that.
pub(crate) fn scratch(path: &Path, options: &WriteOptions) -> Result<Box<dyn DiskFile>> {
    let (file, name) = beside(path, &*options.disk)?;
    let failed = |e| Error::io(format!("cannot remove the name of {}", name.display()), e);
    options.disk.remove(&name).map_err(failed)?;
    Ok(file)
}

impl Source for WriteFile {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().edit.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.read_at(range.offset, range.length)).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let state = self.lock();
        let range = ByteRange::new(offset, buffer.len() as u64);
        match range.end() {
            Some(end) if end <= state.edit.length => state.edit.read(offset, buffer),
            _ => Err(past_end(range, state.edit.length)),
        }
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 4 << 10, max_merged: 1 << 20, concurrency: 1, latency: Latency::Local }
    }

    fn id(&self) -> Result<String> {
        let state = self.lock();
        Ok(format!("edit:{}:{:p}:{}", self.path.display(), self, state.version))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A file that is written, as it was before. Does not keep it locked.
#[derive(Debug)]
struct Before {
    file: Weak<WriteFile>,
    name: String,
}

impl Before {
    fn file(&self) -> Result<Arc<WriteFile>> {
        self.file.upgrade().ok_or_else(|| {
            let text = format!("the transaction on {} is over", self.name);
            Error::new(ErrorKind::Changed, text).hint("open it again")
        })
    }
}

impl Source for Before {
    fn len(&self) -> Result<u64> {
        Ok(self.file()?.lock().edit.length_before())
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let length = self.len()?;
        let one = |range: &ByteRange| {
            // Nothing is allocated that is not there.
            if range.end().is_none_or(|end| end > length) {
                return Err(past_end(*range, length));
            }
            let mut buffer = vec![0; to_usize(range.length)?];
            self.read_into(range.offset, &mut buffer)?;
            Ok(Bytes::from(buffer))
        };
        ranges.iter().map(one).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.file()?;
        let state = file.lock();
        let range = ByteRange::new(offset, buffer.len() as u64);
        match range.end() {
            Some(end) if end <= state.edit.length_before() => state.edit.read_before(offset, buffer),
            _ => Err(past_end(range, state.edit.length_before())),
        }
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 4 << 10, max_merged: 1 << 20, concurrency: 1, latency: Latency::Local }
    }

    fn id(&self) -> Result<String> {
        Ok(format!("before:{}:{:p}", self.name, self.file.as_ptr()))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
