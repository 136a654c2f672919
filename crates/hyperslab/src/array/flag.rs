//! The flags by which a writer says that it has a file open, and how to clear those of one that is gone.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::superblock::Superblock;
use crate::source::write::recover;
use crate::source::{FileSource, WriteOptions};
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What was done to clear the flags of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Where the superblock was saved as it was.
    pub saved: PathBuf,
    /// The flags that were set.
    pub flags: u32,
    /// The end of the file as it was stored, and as it is stored now.
    pub end: (u64, u64),
}

/// Whether a process of this machine, this one included, has a file open to write it, as far as can be told: `None` where that
/// is not at all, or only of some processes. A writer on another machine is not seen, nor one in another container.
pub fn is_being_written(path: &Path) -> Option<bool> {
    has_writer(path, None)
}

/// The same, where `own` is a file that this process has open for other reasons.
fn has_writer(path: &Path, own: Option<&File>) -> Option<bool> {
    #[cfg(target_os = "linux")]
    return linux::has_writer(path, own);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (path, own);
        None
    }
}

/// Clears the flags that keep other programs from opening an HDF5 file whose writer is gone, and stores its length as its
/// end, so that all that was flushed can be read. `None`: no flags are set.
///
/// The superblock is saved beside the file first (`FILE.superblock`) and is on disk before the file is touched; the new one
/// is one write. Fails with [`ErrorKind::Permission`] while a writer has the file locked or has it open, and where it cannot
/// be told whether one has, unless `gone` vouches for it: a flag that is cleared under a writer lets a second one in.
pub fn clear_writer_flags(path: &Path, gone: bool) -> Result<Option<Cleared>> {
    clear(path, |own| has_writer(path, Some(own)), gone)
}

fn clear(
    path: &Path,
    is_being_written: impl Fn(&File) -> Option<bool>,
    gone: bool,
) -> Result<Option<Cleared>> {
    let name = path.display();
    // An edit that was interrupted is taken back first, or that would take back the flags.
    recover(path, &WriteOptions::default())?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| Error::io(format!("cannot open {name} to write"), e))?;
    let alive = || {
        Error::new(ErrorKind::Permission, format!("a writer has {name} open"))
            .hint("end it first; the flags are cleared when it closes the file")
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(alive()),
        // Not all file systems have locks.
        Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(e)) => return Err(Error::io(format!("cannot lock {name}"), e)),
    }
    let source = FileSource::open(path)?;
    let offset = Superblock::find(&source)?
        .ok_or_else(|| Error::unsupported(format!("{name}, which is no HDF5 file")))?;
    let old = Superblock::open(&source, offset).context(|| name.to_string())?;
    if old.version < 3 || old.flags == 0 {
        return Ok(None);
    }
    // A SWMR writer holds no lock while it writes.
    match is_being_written(&file) {
        Some(true) => return Err(alive()),
        Some(false) => {}
        None if gone => {}
        None => {
            return Err(Error::new(
                ErrorKind::Permission,
                format!("cannot tell whether a writer has {name} open: not all processes of this machine can be seen"),
            )
            .hint(format!(
                "look as its administrator (`sudo fuser -v {name}`), and on every machine that has the file mounted; if \
                 none has it open to write, say so (check --clear-flag --writer-is-gone)"
            )));
        }
    }
    let length = file.metadata().map_err(|e| Error::io(format!("cannot look at {name}"), e))?.len();
    let end = old.end.max(length);
    let bytes = old.bytes(&source)?;
    let saved = save(path, &bytes)?;
    let cleared = old.cleared(&bytes, end)?;
    let wrote = file
        .seek(SeekFrom::Start(offset))
        .and_then(|_| file.write_all(&cleared))
        .and_then(|()| file.sync_all());
    wrote.map_err(|e| {
        Error::io(format!("cannot write the superblock of {name}"), e)
            .hint(format!("it is saved in {}", saved.display()))
    })?;
    Ok(Some(Cleared { saved, flags: old.flags, end: (old.end, end) }))
}

/// Writes the bytes of a superblock to a new file beside `path`, and to the disk.
fn save(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    for number in 0..1000 {
        let mut name = path.as_os_str().to_owned();
        name.push(".superblock");
        if number > 0 {
            name.push(format!(".{number}"));
        }
        let saved = PathBuf::from(name);
        let failed = |e| Error::io(format!("cannot save the superblock as {}", saved.display()), e);
        let mut file = match File::options().write(true).create_new(true).open(&saved) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(failed(e)),
        };
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        // The name too must be there after a crash.
        #[cfg(unix)]
        if let Some(folder) = saved.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        return Ok(saved);
    }
    Err(Error::new(ErrorKind::AlreadyExists, format!("too many saved superblocks beside {}", path.display())))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// Looks at the open files of all processes.
    pub(super) fn has_writer(path: &Path, own: Option<&File>) -> Option<bool> {
        let wanted = std::fs::metadata(path).ok()?;
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        // A folder of processes that shows only those of this user looks as if there were no others.
        let mut all = Path::new("/proc/1").exists()
            && !hides_processes(&read("/proc/self/mounts"), &read("/proc/self/status"));
        let (this, own) = (std::process::id().to_string(), own.map(|file| file.as_raw_fd().to_string()));
        for process in std::fs::read_dir("/proc").ok()?.flatten() {
            let folder = process.path();
            let number = process.file_name().to_string_lossy().into_owned();
            if !number.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            // Processes of others do not show their files.
            let files = match std::fs::read_dir(folder.join("fd")) {
                Ok(files) => files,
                Err(e) => {
                    // One that has ended meanwhile has nothing open.
                    all &= e.kind() != std::io::ErrorKind::PermissionDenied;
                    continue;
                }
            };
            for file in files.flatten() {
                let Ok(open) = std::fs::metadata(file.path()) else { continue };
                if (open.dev(), open.ino()) != (wanted.dev(), wanted.ino()) {
                    continue;
                }
                let descriptor = file.file_name();
                if number == this && own.as_deref() == Some(&*descriptor.to_string_lossy()) {
                    continue;
                }
                let info =
                    std::fs::read_to_string(folder.join("fdinfo").join(descriptor)).unwrap_or_default();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                match flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()) {
                    // The last two bits: 0 is for reading only.
                    Some(flags) if flags & 3 == 0 => {}
                    Some(_) => return Some(true),
                    // It was closed meanwhile, or nobody says what for it is open.
                    None => all &= !file.path().exists(),
                }
            }
        }
        all.then_some(false)
    }

    /// Whether the mounts of this machine hide processes of others from this one, whose status this is.
    pub(super) fn hides_processes(mounts: &str, status: &str) -> bool {
        let mut fields = mounts.lines().map(|line| line.split(' '));
        let options = fields.find_map(|mut line| {
            let (kind, options) = (line.nth(1) == Some("/proc"), line.nth(1));
            options.filter(|_| kind)
        });
        let mut hidden =
            options.unwrap_or_default().split(',').filter_map(|option| option.strip_prefix("hidepid="));
        let hidden = hidden.next_back().is_some_and(|how| !matches!(how, "0" | "off"));
        // The second of the four is what counts: the effective user.
        let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        hidden && user.and_then(|ids| ids.split_whitespace().nth(1)) != Some("0")
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod process_tests {
    use super::*;

    #[test]
    fn a_writer_in_this_process_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = File::create(&path).unwrap();
        assert_eq!(is_being_written(&path), Some(true));
        assert_ne!(has_writer(&path, Some(&file)), Some(true));
        let reader = File::open(&path).unwrap();
        drop(file);
        assert_ne!(is_being_written(&path), Some(true));
        drop(reader);
    }

    #[test]
    fn processes_that_are_hidden_are_not_taken_for_gone() {
        let mounts =
            |options: &str| format!("/dev/sda / ext4 rw 0 0\nproc /proc proc rw,nosuid{options} 0 0\n");
        let status =
            |user: u32| format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t0\t0\t0\t0\n");
        let hides = |options: &str, user| linux::hides_processes(&mounts(options), &status(user));
        for options in [",hidepid=2", ",gid=4,hidepid=invisible", ",hidepid=4,x", ",hidepid=1"] {
            assert!(hides(options, 1000) && !hides(options, 0), "{options}");
        }
        assert!(!hides("", 1000) && !hides(",hidepid=0", 1000));
        assert!(!linux::hides_processes("", ""));
    }
}

// The file of the test is packed with Zstandard.
#[cfg(feature = "c-codecs")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_nobody_can_see_is_not_taken_for_gone() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/swmr_later.h5.zst");
        let bytes = zstd::decode_all(File::open(data).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        std::fs::write(&path, &bytes).unwrap();
        for (alive, gone) in [(None, false), (Some(true), false), (Some(true), true)] {
            let error = clear(&path, |_| alive, gone).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Permission, "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        // One that holds the lock, whoever it is, and whoever vouches for it.
        let locked = File::open(&path).unwrap();
        locked.lock().unwrap();
        assert_eq!(clear(&path, |_| Some(false), true).unwrap_err().kind(), ErrorKind::Permission);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        drop(locked);
        assert!(clear(&path, |_| None, true).unwrap().is_some());
        std::fs::write(&path, &bytes).unwrap();
        assert!(clear(&path, |_| Some(false), false).unwrap().is_some());
        assert!(clear(&path, |_| None, false).unwrap().is_none());
    }
}
