//! A local file, read with positional reads and never mapped: a file that its writer truncates is an error, not a
//! signal.

use super::memory::past_end;
use super::{ByteRange, Latency, ReadHints, Source};
use crate::error::{Error, Result};
use crate::shape::to_usize;
use bytes::Bytes;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A local file.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
}

impl FileSource {
    /// Opens `path` for reading; takes no lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let failed = |e| Error::io(format!("cannot open {}", path.display()), e);
        let kind = std::fs::metadata(&path).map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(Error::invalid(format!("{} is a folder, not a file", path.display())));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt;
            // Opening a pipe waits for its writer, and nothing in it can be read by position.
            if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
                return Err(Error::invalid(format!("{} cannot be read by position", path.display()))
                    .hint("save it as a file first"));
            }
        }
        let file = File::open(&path).map_err(failed)?;
        Ok(FileSource { file, path })
    }

    /// Its path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)
    }
}

impl Source for FileSource {
    fn len(&self) -> Result<u64> {
        let meta = self.file.metadata();
        Ok(meta.map_err(|e| Error::io(format!("cannot look at {}", self.path.display()), e))?.len())
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        let mut out = Vec::with_capacity(ranges.len());
        for range in ranges {
            // Never allocate by what a file claims: a range beyond the end fails first.
            if range.length > 1 << 16 {
                let length = self.len()?;
                if range.end().is_none_or(|end| end > length) {
                    return Err(past_end(*range, length));
                }
            }
            let mut buffer = vec![0; to_usize(range.length)?];
            self.read_into(range.offset, &mut buffer)?;
            out.push(Bytes::from(buffer));
        }
        Ok(out)
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = ByteRange::new(offset, buffer.len() as u64);
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.checked_add(done as u64).ok_or_else(|| past_end(range, u64::MAX))?;
            match self.read_at(&mut buffer[done..], at) {
                Ok(0) => return Err(past_end(range, self.len()?)),
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                // Offsets beyond the system's own limit are past any end.
                Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
                    return Err(past_end(range, self.len()?));
                }
                Err(e) => {
                    return Err(Error::io(format!("cannot read {} at {at:#x}", self.path.display()), e));
                }
            }
        }
        Ok(())
    }

    fn hints(&self) -> ReadHints {
        ReadHints { gap: 4 << 10, max_merged: 1 << 20, concurrency: 4, latency: Latency::Local }
    }

    fn id(&self) -> Result<String> {
        let meta = self
            .file
            .metadata()
            .map_err(|e| Error::io(format!("cannot look at {}", self.path.display()), e))?;
        let modified = meta
            .modified()
            .ok()
            .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok())
            .map_or(0, |d| d.as_nanos());
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let number = 0;
        Ok(format!("file:{}:{number}:{}:{modified}", self.path.display(), meta.len()))
    }

    #[cfg(unix)]
    fn is_current(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let failed = |e| Error::io(format!("cannot look at {}", self.path.display()), e);
        let own = self.file.metadata().map_err(failed)?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok((own.dev(), own.ino()) == (named.dev(), named.ino())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}
