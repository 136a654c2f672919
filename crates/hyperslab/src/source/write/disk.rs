//! What writing asks of a file system. A seam, so that every call can be recorded, and made to fail.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// A file system that is written to.
///
/// Contract: what a call did is there after a crash only once the file ([`DiskFile::sync`]) or the folder
/// ([`Disk::sync_folder`]) was synced; until then any part of it may be, in any order.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens a file that exists, to write it too if `write`.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a file that does not exist, to read and write it.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Lets two names change places in one step; fails with [`io::ErrorKind::Unsupported`] where that is not possible.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Gives a file a further name; fails with [`io::ErrorKind::AlreadyExists`] if there is a file of that name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file that is written to.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Reads up to `buffer.len()` bytes; 0 at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes`. After an error any part of them may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file, or makes it longer by zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes all that was written durable.
    fn sync(&self) -> io::Result<()>;
    /// The file of the system, to look at and to lock.
    fn file(&self) -> &File;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(LocalFile(File::options().read(true).write(write).open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(LocalFile(File::options().read(true).write(true).create_new(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        hyperslab_kernels::exchange(one, other).map_err(|e| match e.kind() {
            // What file systems say that do not know it.
            io::ErrorKind::InvalidInput => io::ErrorKind::Unsupported.into(),
            _ => e,
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // Some file systems have no such call for folders.
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            other => other,
        }
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct LocalFile(File);

impl DiskFile for LocalFile {
    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(n..).unwrap_or_default();
            offset += n as u64;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        // Writes the length too, where it has changed.
        self.0.sync_data()
    }

    fn file(&self) -> &File {
        &self.0
    }
}

/// Reads as many bytes as there are, up to `buffer.len()`.
pub(super) fn read_up_to(file: &dyn DiskFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset.saturating_add(done as u64), rest) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
