//! A new folder that takes its place when it is complete.

use super::{DirectoryStore, claim};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::write::{SyncPolicy, WriteOptions, exclusive, folder_beside};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store in a folder that is made beside its place, under another name, and renamed when it is complete. Dropped before
/// that, it is removed.
#[derive(Debug)]
pub struct NewDirectory {
    path: PathBuf,
    temporary: PathBuf,
    store: Arc<DirectoryStore>,
    options: WriteOptions,
    published: bool,
    /// Shows that somebody is making it.
    _lock: Option<File>,
}

impl NewDirectory {
    /// Begins the folder that will be at `path`. Fails with [`ErrorKind::AlreadyExists`] if there is something that may
    /// not be overwritten.
    pub fn create(path: impl AsRef<Path>, options: &WriteOptions, limits: &Limits) -> Result<NewDirectory> {
        let path = path.as_ref().to_path_buf();
        if path.file_name().is_none() {
            return Err(Error::invalid(format!("{} is no name of a folder", path.display())));
        }
        bring_back(&path)?;
        if fs::symlink_metadata(&path).is_ok() && !options.overwrite {
            return Err(exists(&path));
        }
        let (lock, temporary) = folder_beside(&path, &*options.disk)?;
        let store = Arc::new(DirectoryStore::open(&temporary, limits)?.with_disk(options.disk.clone()));
        Ok(NewDirectory { path, temporary, store, options: options.clone(), published: false, _lock: lock })
    }

    /// The folder, to be written.
    pub fn store(&self) -> &Arc<DirectoryStore> {
        &self.store
    }

    /// Gives it its name. What was there before, if it may be overwritten, goes.
    pub fn publish(mut self) -> Result<()> {
        let failed = |e| Error::io(format!("cannot give {} its name", self.path.display()), e);
        let disk = self.options.disk.clone();
        let there = fs::symlink_metadata(&self.path).ok();
        if there.is_some() && !self.options.overwrite {
            return Err(exists(&self.path));
        }
        // Nobody may be writing what goes.
        let claim = there.as_ref().map(|_| self.claim()).transpose()?;
        let old = match there {
            None => {
                disk.rename(&self.temporary, &self.path).map_err(failed)?;
                None
            }
            Some(_) => match disk.exchange(&self.temporary, &self.path) {
                // The old one has the name of one that nobody will finish.
                Ok(()) => Some(self.temporary.clone()),
                Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Some(self.replace()?),
                Err(e) => return Err(failed(e)),
            },
        };
        self.published = true;
        if self.options.sync == SyncPolicy::Full
            && let Some(folder) = self.path.parent()
        {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            disk.sync_folder(folder).map_err(failed)?;
        }
        if let Some(old) = old {
            remove(&old);
        }
        drop(claim);
        Ok(())
    }

    /// Takes the place of what is there in two steps, and says where that is then.
    fn replace(&self) -> Result<PathBuf> {
        let failed = |e| Error::io(format!("cannot give {} its name", self.path.display()), e);
        let (disk, old) = (&self.options.disk, replaced(&self.path));
        // What was replaced before, and could not be removed.
        remove(&old);
        disk.rename(&self.path, &old).map_err(failed)?;
        if let Err(e) = disk.rename(&self.temporary, &self.path) {
            let _ = disk.rename(&old, &self.path);
            return Err(failed(e));
        }
        Ok(old)
    }

    /// Keeps writers away from what stands at the path.
    fn claim(&self) -> Result<Option<Box<dyn fmt::Debug + Send + Sync>>> {
        let meta = fs::metadata(&self.path);
        if meta.as_ref().is_ok_and(|meta| meta.is_dir()) {
            return claim::of_folder(&self.path, self.options.locking);
        }
        let file = match meta.is_ok_and(|meta| meta.is_file()) {
            true => File::open(&self.path).ok(),
            false => None,
        };
        let Some(file) = file else { return Ok(None) };
        exclusive(&file, &self.path, self.options.locking)?;
        Ok(Some(Box::new(file)))
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

/// Where folders cannot change places in one step, and a crash came between the two, what stood at `path` gets its name back.
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
