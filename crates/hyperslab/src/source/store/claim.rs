//! How a writer keeps others out of a store.

use crate::error::{Error, ErrorKind, Result};
use crate::source::write::{Locking, exclusive, is_at};
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The folder in a store in which writers keep what is not part of it.
pub(crate) const FOLDER: &str = ".hyperslab";

/// How long a writer waits for another one.
const WAIT: Duration = Duration::from_secs(10);

/// A claim.
type Claim = Box<dyn fmt::Debug + Send + Sync>;

/// Tries until it works, fails, or another writer (the inner error) has taken too long.
fn wait<T>(attempt: impl Fn() -> Result<Result<T>>) -> Result<T> {
    let begin = Instant::now();
    loop {
        match attempt()? {
            Err(_) if begin.elapsed() < WAIT => std::thread::sleep(Duration::from_millis(10)),
            done => return done,
        }
    }
}

/// A lock that one writer of this program holds at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims(Arc<AtomicBool>);

#[derive(Debug)]
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Claims {
    pub(super) fn take(&self, name: &str) -> Result<Option<Claim>> {
        let held =
            wait(|| match self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => Ok(Ok(Held(self.0.clone()))),
                Err(_) => {
                    let text = format!("another transaction of this program is writing {name}");
                    Ok(Err(Error::new(ErrorKind::Permission, text).hint("commit or drop it first")))
                }
            })?;
        Ok(Some(Box::new(held)))
    }
}

/// A locked file in a folder, which goes when it is no longer needed.
#[derive(Debug)]
struct Locked {
    path: PathBuf,
    /// Held open, as that is what is locked.
    file: File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The folder may have been replaced.
        if !is_at(&self.file, &self.path) {
            return;
        }
        // While it is locked, so that nobody locks a file that has no name any more without noticing.
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = self.path.parent() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Locks a folder by a file in it.
pub(super) fn of_folder(root: &Path, locking: Locking) -> Result<Option<Claim>> {
    let folder = root.join(FOLDER);
    let path = folder.join("lock");
    let failed = |e| Error::io(format!("cannot write {}", path.display()), e);
    wait(|| {
        loop {
            match fs::create_dir(&folder) {
                Err(e) if e.kind() != IoKind::AlreadyExists => return Err(failed(e)),
                _ => {}
            }
            let file = match File::options().write(true).create(true).truncate(false).open(&path) {
                Ok(file) => file,
                // Another writer has just removed the folder.
                Err(e) if e.kind() == IoKind::NotFound => continue,
                Err(e) => return Err(failed(e)),
            };
            match exclusive(&file, &path, locking) {
                Ok(true) => {}
                Ok(false) => {
                    let _ = fs::remove_file(&path);
                    return Ok(Ok(None));
                }
                Err(e) if e.kind() == ErrorKind::Permission => return Ok(Err(e)),
                Err(e) => return Err(e),
            }
            if is_at(&file, &path) {
                let claim: Claim = Box::new(Locked { path: path.clone(), file });
                return Ok(Ok(Some(claim)));
            }
            // It was removed before it was locked: the next one is another file.
        }
    })
}
