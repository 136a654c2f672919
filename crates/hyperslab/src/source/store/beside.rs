//! A new folder that takes its place when it is complete.

use super::DirectoryStore;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::write::{SyncPolicy, WriteOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store in a folder that is made beside its place, under another name, and renamed when it is complete. Dropped before
/// that, it is removed.
#[derive(Debug)]
pub struct NewDirectory {
    path: PathBuf,
    temporary: PathBuf,
    store: Arc<DirectoryStore>,
    options: WriteOptions,
    published: bool,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl NewDirectory {
    /// Begins the folder that will be at `path`. Fails with [`ErrorKind::AlreadyExists`] if there is something that may
    /// not be overwritten.
    pub fn create(path: impl AsRef<Path>, options: &WriteOptions, limits: &Limits) -> Result<NewDirectory> {
        let path = path.as_ref().to_path_buf();
        let name = path
            .file_name()
            .ok_or_else(|| Error::invalid(format!("{} is no name of a folder", path.display())))?;
        if fs::symlink_metadata(&path).is_ok() && !options.overwrite {
            return Err(exists(&path));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished =
            format!(".{}.hyperslab-unfinished-{}-{number}", name.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(unfinished);
        fs::create_dir(&temporary)
            .map_err(|e| Error::io(format!("cannot make {}", temporary.display()), e))?;
        let store = Arc::new(DirectoryStore::open(&temporary, limits)?);
        Ok(NewDirectory { path, temporary, store, options: options.clone(), published: false })
    }

    /// The folder, to be written.
    pub fn store(&self) -> &Arc<DirectoryStore> {
        &self.store
    }

    /// Gives it its name. What was there before, if it may be overwritten, goes.
    pub fn publish(mut self) -> Result<()> {
        let failed = |e| Error::io(format!("cannot give {} its name", self.path.display()), e);
        let old = self.temporary.with_extension("replaced");
        let replaces = match fs::symlink_metadata(&self.path) {
            Ok(_) if !self.options.overwrite => return Err(exists(&self.path)),
            Ok(_) => {
                fs::rename(&self.path, &old).map_err(failed)?;
                true
            }
            Err(_) => false,
        };
        if let Err(e) = fs::rename(&self.temporary, &self.path) {
            if replaces {
                let _ = fs::rename(&old, &self.path);
            }
            return Err(failed(e));
        }
        self.published = true;
        if self.options.sync == SyncPolicy::Full
            && let Some(folder) = self.path.parent()
        {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            self.options.disk.sync_folder(folder).map_err(failed)?;
        }
        if replaces {
            // A rest that cannot be removed is no reason to say that nothing was written.
            let _ = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
        }
        Ok(())
    }
}

fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("{} is there already", path.display()))
        .hint("choose another name, or allow it to be overwritten")
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}
