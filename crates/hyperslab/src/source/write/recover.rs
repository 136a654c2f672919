//! What the next opener of a file does where an edit was interrupted.

use super::disk::{DiskFile, read_up_to};
use super::journal::{self, Journal, PAGE};
use super::{SyncPolicy, WriteOptions, folder_of, lock};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::{ByteRange, FileSource, ReadHints, Source};
use bytes::Bytes;
use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is done where an edit of a file was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// The file is brought back to the state before it, if it can be written; else its bytes are given as they were.
    #[default]
    RollBack,
    /// The file is not touched; its bytes are given as they were.
    LookThrough,
}

/// A journal beside a file: an edit is being committed, or was interrupted.
#[derive(Debug)]
pub struct JournalState {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of the file that it holds as they were.
    pub bytes: u64,
    /// Why it cannot be rolled back, if so.
    pub fault: Option<Error>,
}

/// How long a reader waits for a commit that is under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file's own name, where `path` is a link to it.
pub(super) fn resolved(path: &Path) -> Result<Cow<'_, Path>> {
    if !path.is_symlink() {
        return Ok(Cow::Borrowed(path));
    }
    let failed = |e| Error::io(format!("cannot follow {}", path.display()), e);
    Ok(Cow::Owned(path.canonicalize().map_err(failed)?))
}

/// The journal of a file, if there is a file of its name.
fn find(path: &Path, options: &WriteOptions, limits: &Limits) -> Result<Found> {
    let journal = journal::path_of(path);
    let failed = |e| Error::io(format!("cannot open {}", journal.display()), e);
    match fs::symlink_metadata(&journal) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(e) => return Err(failed(e)),
        Ok(meta) if !meta.is_file() => {
            let text = format!("{} stands where the journal of a file is, and is no file", journal.display());
            return Err(Error::invalid(text).hint("move it away"));
        }
        Ok(_) => {}
    }
    let file = match options.disk.open(&journal, false) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(e) => return Err(failed(e)),
    };
    Ok(Journal::read(file, journal, limits)?
        .map_or(Found::Empty, |journal| Found::Journal(Box::new(journal))))
}

enum Found {
    Nothing,
    /// One that was not finished before anything of the file was changed.
    Empty,
    Journal(Box<Journal>),
}

/// The journal beside the file at `path`, if there is one that matters.
pub fn journal_state(path: &Path, limits: &Limits) -> Result<Option<JournalState>> {
    let path = resolved(path)?;
    let options = WriteOptions::default();
    let Found::Journal(journal) = find(&path, &options, limits)? else { return Ok(None) };
    let failed = |e| Error::io(format!("cannot open {}", path.display()), e);
    let file = options.disk.open(&path, false).map_err(failed)?;
    let fault = fits(&journal, file.as_ref(), &path).err();
    let bytes = journal.pages.keys().map(|&page| journal.start.stored(page) as u64).sum();
    Ok(Some(JournalState { path: journal.path.clone(), bytes, fault }))
}

/// Fails unless a journal may be rolled back into a file.
fn fits(journal: &Journal, file: &dyn DiskFile, path: &Path) -> Result<()> {
    let failed = |e| Error::io(format!("cannot look at {}", path.display()), e);
    journal.check_owner(&file.file().metadata().map_err(failed)?)?;
    journal.verify(file, path)
}

/// Brings the file at `path` back to the state before an edit that was interrupted; whether there was one.
///
/// Fails with [`ErrorKind::Changed`] if the file is in no state in which the edit can have left it, and with
/// [`ErrorKind::Permission`] while another program has it locked, or where a stranger made the journal.
pub fn recover(path: &Path, options: &WriteOptions) -> Result<bool> {
    let path = resolved(path)?;
    if !journal::path_of(&path).exists() {
        return Ok(false);
    }
    let failed = |e| Error::io(format!("cannot open {} to write", path.display()), e);
    let file = options.disk.open(&path, true).map_err(failed)?;
    lock::exclusive(file.file(), &path, options.locking)?;
    roll_back(file.as_ref(), &path, options)
}

/// The same for a file that is open, and locked.
pub(super) fn roll_back(file: &dyn DiskFile, path: &Path, options: &WriteOptions) -> Result<bool> {
    let (journal, hot) = match find(path, options, &Limits::default())? {
        Found::Nothing => return Ok(false),
        Found::Empty => (journal::path_of(path), false),
        Found::Journal(journal) => {
            fits(&journal, file, path)?;
            restore(&journal, file, path, options.sync)?;
            (journal.path.clone(), true)
        }
    };
    remove(&journal, options)?;
    Ok(hot)
}

/// Removes a journal.
pub(super) fn remove(journal: &Path, options: &WriteOptions) -> Result<()> {
    let failed = |e| Error::io(format!("cannot remove {}", journal.display()), e);
    options.disk.remove(journal).map_err(failed)?;
    match options.sync {
        SyncPolicy::Full => options.disk.sync_folder(&folder_of(journal)).map_err(failed),
        SyncPolicy::None => Ok(()),
    }
}

fn restore(journal: &Journal, file: &dyn DiskFile, path: &Path, sync: SyncPolicy) -> Result<()> {
    let failed = |e| {
        Error::io(format!("cannot bring back {}", path.display()), e)
            .hint(format!("{} holds what stood there; the next opener tries again", journal.path.display()))
    };
    for &page in journal.pages.keys() {
        let old = journal.old(page)?;
        let mut now = vec![0; old.len()];
        let at = page.saturating_mul(PAGE);
        let n = read_up_to(file, at, &mut now).map_err(failed)?;
        if n < now.len() || now != old {
            file.write_at(at, &old).map_err(failed)?;
        }
    }
    let length = file.file().metadata().map_err(failed)?.len();
    if length > journal.start.length {
        file.set_len(journal.start.length).map_err(failed)?;
    }
    match sync {
        SyncPolicy::Full => file.sync().map_err(failed),
        SyncPolicy::None => Ok(()),
    }
}

/// Opens a local file to be read, in the state before an edit that was interrupted.
///
/// While an edit is being committed it waits, for a few seconds, and fails then with [`ErrorKind::NotYet`].
pub fn open_recovered(path: &Path, limits: &Limits, recovery: Recovery) -> Result<Arc<dyn Source>> {
    let began = Instant::now();
    loop {
        let source = FileSource::open(path)?;
        let real = resolved(path)?;
        let options = WriteOptions::default();
        let journal = match find(&real, &options, limits)? {
            Found::Nothing => return Ok(Arc::new(source)),
            Found::Empty => return Ok(Arc::new(source)),
            Found::Journal(journal) => journal,
        };
        let failed = |e| Error::io(format!("cannot open {}", real.display()), e);
        let writable = options.disk.open(&real, true).ok();
        let file = match &writable {
            Some(file) => file.as_ref().file().try_clone(),
            None => File::open(&real),
        };
        let file = file.map_err(failed)?;
        match lock::state(&file, options.locking) {
            lock::State::Taken if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            lock::State::Taken => {
                let text = format!("{} is being changed", real.display());
                return Err(Error::new(ErrorKind::NotYet, text).hint("open it again when that is done"));
            }
            lock::State::Ours if recovery == Recovery::RollBack && writable.is_some() => {
                if let Some(file) = &writable {
                    roll_back(file.as_ref(), &real, &options)?;
                }
                return Ok(Arc::new(FileSource::open(path)?));
            }
            _ => {
                let before = options.disk.open(&real, false).map_err(failed)?;
                fits(&journal, before.as_ref(), &real)?;
                return Ok(Arc::new(Before::new(source, *journal)?));
            }
        }
    }
}

/// A file as it was before an edit that was interrupted.
#[derive(Debug)]
struct Before {
    source: FileSource,
    journal: Journal,
    length: u64,
}

impl Before {
    fn new(source: FileSource, journal: Journal) -> Result<Self> {
        let length = source.len()?.min(journal.start.length);
        Ok(Before { source, journal, length })
    }
}

impl Source for Before {
    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let one = |range: &ByteRange| {
            if range.end().is_none_or(|end| end > self.length) {
                return Err(crate::source::past_end(*range, self.length));
            }
            let mut buffer = vec![0; crate::shape::to_usize(range.length)?];
            self.read_into(range.offset, &mut buffer)?;
            Ok(Bytes::from(buffer))
        };
        ranges.iter().map(one).collect()
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = ByteRange::new(offset, buffer.len() as u64);
        let end = match range.end() {
            Some(end) if end <= self.length => end,
            _ => return Err(crate::source::past_end(range, self.length)),
        };
        self.source.read_into(offset, buffer)?;
        for &page in self.journal.pages.range(offset / PAGE..end.div_ceil(PAGE)).map(|(page, _)| page) {
            let (old, at) = (self.journal.old(page)?, page.saturating_mul(PAGE));
            let skip = offset.saturating_sub(at) as usize;
            let old = old.get(skip..).unwrap_or_default();
            let to = buffer.get_mut(at.saturating_sub(offset) as usize..).unwrap_or_default();
            for (to, old) in to.iter_mut().zip(old) {
                *to = *old;
            }
        }
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        self.source.hints()
    }

    fn id(&self) -> Result<String> {
        Ok(format!("{} before {:?}", self.source.id()?, self.journal.start.salt))
    }

    fn is_current(&self) -> Result<bool> {
        self.source.is_current()
    }

    fn name(&self) -> String {
        self.source.name()
    }
}
