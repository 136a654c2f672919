//! Files that are written: all or nothing, whatever happens.
//!
//! [`WriteFile`] is one growable run of bytes, for a new file as for one that is edited. What is written is seen by others
//! only after [`WriteFile::commit`]; whatever ends the program before that (an error, a full disk, a signal, the power)
//! leaves the file as it was.
//!
//! A *new* file is written beside its place under another name, synced and renamed. An *edit* keeps changed pages in memory
//! and writes what is new behind the end of what was there. Its commit writes what stood in the changed pages to a journal
//! beside the file (`FILE.hyperslab-journal`), syncs it, changes the pages, syncs the file and removes the journal. Whoever
//! opens the file next and finds a journal brings back what it holds ([`recover`]).

mod disk;
mod edit;
mod file;
mod journal;
mod lock;
mod recover;
#[cfg(any(test, feature = "testing"))]
pub mod simulate;
#[cfg(test)]
mod tests;
mod unfinished;

pub use disk::{Disk, DiskFile, LocalDisk};
pub use file::WriteFile;
pub(crate) use file::scratch;
pub use lock::Locking;
pub(in crate::source) use lock::exclusive;
pub use recover::{JournalState, Recovery, journal_state, open_recovered, recover};
pub use unfinished::{beside, leftovers};
pub(in crate::source) use unfinished::{folder_beside, is_at};

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When what was written is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// At each step that the next one relies on: old or new state after a crash of the program, the system or the power.
    #[default]
    Full,
    /// Never: old or new state after a crash of the program only. For files that can be made again.
    None,
}

/// How files are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// When what was written is made durable.
    pub sync: SyncPolicy,
    /// Whether files are locked.
    pub locking: Locking,
    /// Whether a new file may take the place of one that is there.
    pub overwrite: bool,
    /// Bytes of changed pages that are kept in memory at most.
    pub memory: u64,
    /// The file system.
    pub disk: Arc<dyn Disk>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            sync: SyncPolicy::default(),
            locking: Locking::default(),
            overwrite: false,
            memory: 64 << 20,
            disk: Arc::new(LocalDisk),
        }
    }
}

impl WriteOptions {
    /// The defaults: durable, locked, nothing overwritten.
    pub fn new() -> Self {
        WriteOptions::default()
    }

    /// Sets when what was written is made durable.
    #[must_use]
    pub fn with_sync(mut self, sync: SyncPolicy) -> Self {
        self.sync = sync;
        self
    }

    /// Sets whether files are locked.
    #[must_use]
    pub fn with_locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// Sets whether a new file may take the place of one that is there.
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets how many bytes of changed pages are kept in memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the file system.
    #[must_use]
    pub fn with_disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }
}

/// The folder of a file.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.into(),
        _ => PathBuf::from("."),
    }
}
