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
        bring_back(&path)?;
        if fs::symlink_metadata(&path).is_ok() && !options.overwrite {
            return Err(exists(&path));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished =
            format!(".{}.hyperslab-unfinished-{}-{number}", name.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(unfinished);
        fs::create_dir(&temporary)
            .map_err(|e| Error::io(format!("cannot make {}", temporary.display()), e))?;
        let store = Arc::new(DirectoryStore::open(&temporary, limits)?.with_disk(options.disk.clone()));
        Ok(NewDirectory { path, temporary, store, options: options.clone(), published: false })
    }

    /// The folder, to be written.
    pub fn store(&self) -> &Arc<DirectoryStore> {
        &self.store
    }

    /// Gives it its name. What was there before, if it may be overwritten, goes.
    pub fn publish(mut self) -> Result<()> {
        let failed = |e| Error::io(format!("cannot give {} its name", self.path.display()), e);
        let disk = self.options.disk.clone();
        let old = replaced(&self.path);
        let replaces = match fs::symlink_metadata(&self.path) {
            Ok(_) if !self.options.overwrite => return Err(exists(&self.path)),
            Ok(_) => {
                // What was replaced before, and could not be removed.
                remove(&old);
                disk.rename(&self.path, &old).map_err(failed)?;
                true
            }
            Err(_) => false,
        };
        if let Err(e) = disk.rename(&self.temporary, &self.path) {
            if replaces {
                let _ = disk.rename(&old, &self.path);
            }
            return Err(failed(e));
        }
        self.published = true;
        if self.options.sync == SyncPolicy::Full
            && let Some(folder) = self.path.parent()
        {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            disk.sync_folder(folder).map_err(failed)?;
        }
        if replaces {
            remove(&old);
        }
        Ok(())
    }
}

/// Where what stood at `path` is while it is replaced.
fn replaced(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.hyperslab-replaced"))
}

/// A rest that cannot be removed is no reason to say that nothing was written.
fn remove(old: &Path) {
    let _ = if old.is_dir() { fs::remove_dir_all(old) } else { fs::remove_file(old) };
}

/// Folders cannot change places in one step: where a crash came between the two, what stood at `path` gets its name back.
pub(crate) fn bring_back(path: &Path) -> Result<()> {
    let absent =
        |path: &Path| fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    let old = replaced(path);
    if !absent(path) || absent(&old) {
        return Ok(());
    }
    match fs::rename(&old, path) {
        // Its writer was faster.
        Err(_) if !absent(path) => Ok(()),
        done => done.map_err(|e| Error::io(format!("cannot give {} its name back", path.display()), e)),
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
