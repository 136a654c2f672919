//! The flags by which a writer says that it has a file open, and how to clear those of one that is gone.

use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::hdf5::superblock::Superblock;
use crate::source::FileSource;
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

/// Whether a process of this machine has a file open to write it, as far as can be told: `None` where that is not at all,
/// or only of some processes. A writer on another machine is not seen.
pub fn is_being_written(path: &Path) -> Option<bool> {
    #[cfg(target_os = "linux")]
    return linux::is_being_written(path);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
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
    clear(path, is_being_written, gone)
}

fn clear(
    path: &Path,
    is_being_written: impl Fn(&Path) -> Option<bool>,
    gone: bool,
) -> Result<Option<Cleared>> {
    let name = path.display();
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
    match is_being_written(path) {
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
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// Looks at the open files of all processes.
    pub(super) fn is_being_written(path: &Path) -> Option<bool> {
        let wanted = std::fs::metadata(path).ok()?;
        let mut all = true;
        for process in std::fs::read_dir("/proc").ok()?.flatten() {
            let folder = process.path();
            if !process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
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
                let info =
                    std::fs::read_to_string(folder.join("fdinfo").join(file.file_name())).unwrap_or_default();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()).unwrap_or(0);
                let own = process.file_name().to_string_lossy() == std::process::id().to_string();
                // The last two bits: 0 is for reading only.
                if flags & 3 != 0 && !own {
                    return Some(true);
                }
            }
        }
        all.then_some(false)
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
        assert!(clear(&path, |_| None, true).unwrap().is_some());
        std::fs::write(&path, &bytes).unwrap();
        assert!(clear(&path, |_| Some(false), false).unwrap().is_some());
        assert!(clear(&path, |_| None, false).unwrap().is_none());
    }
}
