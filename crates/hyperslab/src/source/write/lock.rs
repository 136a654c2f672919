//! Locks of whole files, the same that libhdf5 takes (`flock`), so that each side sees those of the other.

use crate::error::{Error, ErrorKind, Result};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock of somebody else may last until the file counts as taken.
const MOMENT: Duration = Duration::from_millis(200);

/// Whether files are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Locking {
    /// As `HDF5_USE_FILE_LOCKING` says (`TRUE`, `FALSE`, `BEST_EFFORT`), by default `BestEffort`.
    #[default]
    Environment,
    /// Always; where the file system has no locks, files are not edited.
    Always,
    /// Where the file system has locks.
    BestEffort,
    /// Never: the caller sees to it that no two programs write one file.
    Never,
}

impl Locking {
    /// Whether files are locked at all.
    pub(super) fn is_wanted(self) -> bool {
        self.resolved() != Locking::Never
    }

    fn resolved(self) -> Locking {
        match self {
            Locking::Environment => spelled(std::env::var("HDF5_USE_FILE_LOCKING").ok().as_deref()),
            other => other,
        }
    }
}

/// What a value of `HDF5_USE_FILE_LOCKING` means, to libhdf5 and so here.
fn spelled(value: Option<&str>) -> Locking {
    match value {
        Some("FALSE" | "0") => Locking::Never,
        Some("TRUE" | "1") => Locking::Always,
        _ => Locking::BestEffort,
    }
}

/// Locks an open file for one writer alone, until it is closed. False: it is not locked, as it was not to be or cannot be.
///
/// Fails with [`ErrorKind::Permission`] if another program has locked it.
pub(in crate::source) fn exclusive(file: &File, path: &Path, locking: Locking) -> Result<bool> {
    let locking = locking.resolved();
    if locking == Locking::Never {
        return Ok(false);
    }
    match within_a_moment(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => {
            let who = holder(file).map_or_else(String::new, |who| format!(" by {who}"));
            Err(Error::new(ErrorKind::Permission, format!("{} is open and locked{who}", path.display())).hint(
                "close it there first; HDF5_USE_FILE_LOCKING=FALSE goes without locks, if you know that nobody writes it",
            ))
        }
        Err(TryLockError::Error(e)) if locking == Locking::BestEffort && has_no_locks(&e) => Ok(false),
        Err(TryLockError::Error(e)) => Err(Error::io(format!("cannot lock {}", path.display()), e)
            .hint("HDF5_USE_FILE_LOCKING=BEST_EFFORT goes without locks where the file system has none")),
    }
}

/// Locks a file, also if it takes a moment: a process that another thread starts holds what is open here, and so its locks, until
/// it runs its own program.
fn within_a_moment(file: &File) -> std::result::Result<(), TryLockError> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < MOMENT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Who has a file locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// This program has locked it now.
    Ours,
    /// Another one.
    Taken,
    /// That cannot be told.
    Unknown,
}

/// Locks a file if nobody else has.
pub(super) fn state(file: &File, locking: Locking) -> State {
    if locking.resolved() == Locking::Never {
        return State::Unknown;
    }
    match file.try_lock() {
        Ok(()) => State::Ours,
        Err(TryLockError::WouldBlock) => State::Taken,
        Err(TryLockError::Error(_)) => State::Unknown,
    }
}

/// Unsupported, or a lock server that is not there (ENOLCK).
fn has_no_locks(e: &std::io::Error) -> bool {
    e.kind() == std::io::ErrorKind::Unsupported || (cfg!(target_os = "linux") && e.raw_os_error() == Some(37))
}

/// How often the list of locks is looked through for one that is known to be there.
#[cfg(target_os = "linux")]
const LOOKS: u32 = 5;

/// Who holds a lock on a file, as far as the system tells.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let number = file.metadata().ok()?.ino().to_string();
    // Entries can be missing while others change.
    let process = (0..LOOKS).find_map(|_| {
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // 1: FLOCK  ADVISORY  WRITE 28891 fe:00:1234 0 EOF
        locks.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(4);
            let process = words.next()?;
            (words.next()?.rsplit(':').next()? == number).then(|| process.to_owned())
        })
    })?;
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(match name.trim() {
        "" => format!("process {process}"),
        name => format!("{name} (process {process})"),
    })
}

#[cfg(not(target_os = "linux"))]
fn holder(_file: &File) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_means_what_it_means_to_libhdf5() {
        for (value, wanted) in [
            (None, Locking::BestEffort),
            (Some("FALSE"), Locking::Never),
            (Some("0"), Locking::Never),
            (Some("TRUE"), Locking::Always),
            (Some("1"), Locking::Always),
            (Some("BEST_EFFORT"), Locking::BestEffort),
            (Some("whatever"), Locking::BestEffort),
        ] {
            assert_eq!(spelled(value), wanted, "{value:?}");
        }
    }

    #[test]
    fn a_locked_file_is_refused_and_its_holder_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"a").unwrap();
        let (first, second) = (File::open(&path).unwrap(), File::open(&path).unwrap());
        assert!(exclusive(&first, &path, Locking::Always).unwrap());
        let error = exclusive(&second, &path, Locking::Always).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Permission, "{error}");
        if cfg!(target_os = "linux") {
            assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        }
        assert_eq!(state(&second, Locking::Always), State::Taken);
        assert!(!exclusive(&second, &path, Locking::Never).unwrap());
        drop(first);
        assert!(exclusive(&second, &path, Locking::Always).unwrap());
    }
}
