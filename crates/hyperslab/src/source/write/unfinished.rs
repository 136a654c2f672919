//! What is made beside its place under another name, `.NAME.hyperslab-unfinished-PROCESS-NUMBER`, until it is complete.
//!
//! Its maker has it locked from the moment at which it uses it, and the system drops the lock when the maker ends, whatever ends
//! it. So the next one that makes something of the same name knows what nobody will finish, and removes it.

use super::disk::{Disk, DiskFile};
use super::folder_of;
use crate::error::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What stands in such names behind that of what it will be.
const MARK: &str = ".hyperslab-unfinished-";
/// Numbers that are tried.
const TRIES: u32 = 1000;
/// The next number, so that no name comes twice: the removal of what had it may not have reached the disk.
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Bytes of the name that are kept: the longest names of file systems have 255.
const KEPT: usize = 160;

/// How such names begin.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = (0..=name.len().min(KEPT)).rev().find_map(|end| name.get(..end)).unwrap_or_default();
    format!(".{kept}{MARK}")
}

/// Makes a file beside `path` to be renamed to it, or to be removed, and locks it as long as it is open where the file system has
/// locks. What others that were killed left there is removed.
pub fn beside(path: &Path, disk: &dyn Disk) -> Result<(Box<dyn DiskFile>, PathBuf)> {
    made(path, disk, |name| disk.create(name).map(|file| (is_mine(file.file(), name), file)))
}

/// The same for a folder, which is locked as long as the file that is given is kept.
pub(in crate::source) fn folder_beside(path: &Path, disk: &dyn Disk) -> Result<(Option<File>, PathBuf)> {
    made(path, disk, |name| {
        fs::create_dir(name)?;
        // Not all systems open folders.
        let file = File::open(name).ok();
        Ok((file.as_ref().is_none_or(|file| is_mine(file, name)), file))
    })
}

fn made<T>(
    path: &Path,
    disk: &dyn Disk,
    make: impl Fn(&Path) -> io::Result<(bool, T)>,
) -> Result<(T, PathBuf)> {
    for left in leftovers(path) {
        // One that cannot be removed does no harm.
        let _ = if left.is_dir() { fs::remove_dir_all(&left) } else { disk.remove(&left) };
    }
    let (folder, prefix) = (folder_of(path), prefix(path));
    let failed = |e| Error::io(format!("cannot make {} beside its place", path.display()), e);
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = folder.join(format!("{prefix}{}-{number}", std::process::id()));
        match make(&name) {
            Ok((true, file)) => return Ok((file, name)),
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
            // It is taken, or somebody took it for a leftover before it was locked.
            _ => {}
        }
    }
    Err(failed(io::ErrorKind::AlreadyExists.into()))
}

/// Locks what was made just now; false if another one was faster, to remove it.
fn is_mine(file: &File, name: &Path) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        // Without locks nobody removes it either.
        _ => is_at(file, name),
    }
}

/// Whether a file is the one that its path leads to.
pub(in crate::source) fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (ours, there);
        true
    }
}

/// What was begun beside `path` to become it, and that nobody will finish: nobody has it locked.
pub fn leftovers(path: &Path) -> Vec<PathBuf> {
    let prefix = prefix(path);
    let is_one = |name: &str| {
        let numbers = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('-'));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        numbers.is_some_and(|(process, number)| digits(process) && digits(number))
    };
    let entries = fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    let mut found: Vec<PathBuf> = named.map(|entry| entry.path()).filter(|path| is_dead(path)).collect();
    found.sort_unstable();
    found
}

fn is_dead(path: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    let file = match (meta.is_file(), meta.is_dir()) {
        (true, _) => File::options().write(true).open(path),
        (_, true) => File::open(path),
        // No link is followed.
        _ => return false,
    };
    file.is_ok_and(|file| file.try_lock().is_ok() && is_at(&file, path))
}
