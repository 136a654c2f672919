//! Files that a file names: targets of external links, external raw data, sources of virtual datasets.

use super::Source;
use super::store::{Store, joined};
use super::write::{Recovery, open_recovered};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::shape::Name;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The folder of a file, and what the file may reach from there. Cheap to clone.
///
/// A file that is far away, in a bucket or on a web server, reaches its folder and what is below it, never more. For a file
/// on this machine: unless [`Limits::allow_outside`] is set, `..` and absolute paths and symbolic links that lead out of the folder are
/// [`ErrorKind::Permission`]: a file from a stranger must not read other files of its reader. An absolute path at which
/// there is nothing means the file of that name in the folder.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    home: Option<Home>,
    allow_outside: bool,
    depth: u32,
}

/// Where a file is.
#[derive(Clone, Debug)]
enum Home {
    /// In this folder.
    Folder(Arc<Path>),
    /// In a store, below this prefix.
    Store(Arc<dyn Store>, Arc<str>),
}

/// A file that another one names.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its bytes.
    pub source: Arc<dyn Source>,
    /// Where it is; equal paths are the same file.
    pub path: PathBuf,
    /// What it may reach itself.
    pub neighbours: Neighbours,
}

impl Neighbours {
    /// No files at all, for sources without a folder.
    pub fn none() -> Self {
        Neighbours::default()
    }

    /// The neighbours of the file at `path`.
    pub fn of(path: &Path, limits: &Limits) -> Self {
        let folder = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Neighbours::none(),
        };
        let home = Some(Home::Folder(folder.into()));
        Neighbours { home, allow_outside: limits.allow_outside, depth: 0 }
    }

    /// The objects of a store, for a file at its root.
    pub fn in_store(store: Arc<dyn Store>) -> Self {
        Neighbours { home: Some(Home::Store(store, "".into())), allow_outside: false, depth: 0 }
    }

    /// How many files were followed to get here.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Opens the file called `name`. `None`: there is no such file, or no folder to look in.
    pub fn open(&self, name: &Name) -> Result<Option<Arc<dyn Source>>> {
        Ok(self.find(name)?.map(|n| n.source))
    }

    /// Opens the file called `name` together with its own neighbours.
    pub fn find(&self, name: &Name) -> Result<Option<Neighbour>> {
        match &self.home {
            Some(Home::Folder(folder)) if !name.is_empty() => self.find_in_folder(folder, name),
            Some(Home::Store(store, prefix)) if !name.is_empty() => self.find_in_store(store, prefix, name),
            _ => Ok(None),
        }
    }

    fn find_in_store(&self, store: &Arc<dyn Store>, prefix: &str, name: &Name) -> Result<Option<Neighbour>> {
        let text =
            name.as_str().ok_or_else(|| Error::unsupported(format!("the key {name}, which is not text")))?;
        let far = || {
            let text = format!("the file names {name}, which lies outside its own folder, {}", store.name());
            Error::new(ErrorKind::Permission, text).hint("copy the files here to follow it")
        };
        if text.contains("://") {
            return Err(far());
        }
        // Files move together: like libhdf5, look beside the file that names it.
        let relative = if text.starts_with('/') { text.rsplit('/').next().unwrap_or_default() } else { text };
        let names: Vec<&str> = relative.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err(far());
        }
        let Some((_, folders)) = names.split_last() else { return Ok(None) };
        let key = joined(prefix, &names.join("/"));
        let Some(source) = store.open(&key)? else { return Ok(None) };
        let below = if folders.is_empty() { prefix.to_owned() } else { joined(prefix, &folders.join("/")) };
        let neighbours = Neighbours {
            home: Some(Home::Store(store.clone(), below.into())),
            allow_outside: self.allow_outside,
            depth: self.depth.saturating_add(1),
        };
        Ok(Some(Neighbour { source, path: PathBuf::from(format!("{}/{key}", store.name())), neighbours }))
    }

    fn find_in_folder(&self, folder: &Path, name: &Name) -> Result<Option<Neighbour>> {
        let mut wanted = path_of(name)?;
        if wanted.is_absolute() && existing(&wanted)?.is_none() {
            // Files move together: like libhdf5, look beside the file that names it.
            wanted = wanted.file_name().map(PathBuf::from).unwrap_or_default();
        }
        let climbs = wanted.components().any(|c| matches!(c, Component::ParentDir));
        if climbs && !self.allow_outside {
            return Err(outside(name));
        }
        let Some(path) = existing(&folder.join(&wanted))? else { return Ok(None) };
        if !self.allow_outside && existing(folder)?.is_none_or(|folder| !path.starts_with(folder)) {
            return Err(outside(name));
        }
        if path.is_dir() {
            return Ok(None);
        }
        // As it was before an edit that was interrupted; to bring it back is left to those who open it.
        let limits = Limits::default();
        let source = match open_recovered(&path, &limits, Recovery::LookThrough) {
            Ok(source) => source,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let neighbours = Neighbours {
            home: path.parent().map(|folder| Home::Folder(folder.into())),
            allow_outside: self.allow_outside,
            depth: self.depth.saturating_add(1),
        };
        Ok(Some(Neighbour { source, path, neighbours }))
    }
}

fn outside(name: &Name) -> Error {
    Error::new(ErrorKind::Permission, format!("the file names {name}, which lies outside its own folder"))
        .hint("allow it with --allow-outside, or Limits::with_allow_outside in the library, if you trust the file")
}

/// The real path, all symbolic links resolved; `None` if there is no such file.
fn existing(path: &Path) -> Result<Option<PathBuf>> {
    match path.canonicalize() {
        Ok(path) => Ok(Some(path)),
        Err(e) => match e.kind() {
            std::io::ErrorKind::NotFound
            | std::io::ErrorKind::NotADirectory
            | std::io::ErrorKind::InvalidInput => Ok(None),
            _ => Err(Error::io(format!("cannot look at {}", path.display()), e)),
        },
    }
}

#[cfg(unix)]
fn path_of(name: &Name) -> Result<PathBuf> {
    Ok(PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.as_bytes())))
}

#[cfg(not(unix))]
fn path_of(name: &Name) -> Result<PathBuf> {
    match name.as_str() {
        Some(text) => Ok(PathBuf::from(text)),
        None => Err(Error::unsupported(format!("the file name {name}, which is not text, on this system"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_its_store() {
        use crate::source::store::{MemoryStore, Precondition};
        let store = MemoryStore::new();
        for key in ["a", "below/b", "below/c"] {
            store.put(key, key.into(), &Precondition::None).unwrap();
        }
        let near = Neighbours::in_store(Arc::new(store));
        let found = |near: &Neighbours, name: &str| {
            let found = near.find(&Name::from(name)).unwrap()?;
            let length = found.source.len().unwrap();
            Some((
                found.source.read(&[super::super::ByteRange::new(0, length)]).unwrap()[0].clone(),
                found.neighbours,
            ))
        };
        for (name, key) in [("a", "a"), ("./a", "a"), ("/data/2020/a", "a"), ("below//b", "below/b")] {
            assert_eq!(found(&near, name).unwrap().0, key, "{name}");
        }
        for name in ["none", "below", "below/", "/", "a/b", ""] {
            assert!(found(&near, name).is_none(), "{name}");
        }
        for name in ["../a", "below/../a", "http://elsewhere/a", "s3://other/a"] {
            let e = near.find(&Name::from(name)).unwrap_err();
            assert!(e.kind() == ErrorKind::Permission && e.to_string().contains(name), "{e}");
        }
        // What it names is looked for beside it.
        let below = found(&near, "below/b").unwrap().1;
        assert_eq!((found(&below, "c").unwrap().0, below.depth()), ("below/c".into(), 1));
        assert!(found(&below, "a").is_none());
    }

    #[test]
    fn stays_in_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(dir.path().join("secret"), b"s").unwrap();
        std::fs::write(inside.join("a"), b"a").unwrap();
        let main = inside.join("main.h5");
        let closed = Neighbours::of(&main, &Limits::default());
        assert!(closed.open(&Name::from("a")).unwrap().is_some());
        assert!(closed.open(&Name::from("none")).unwrap().is_none());
        let kind = |name: &str| closed.open(&Name::from(name)).unwrap_err().kind();
        assert_eq!(kind("../secret"), ErrorKind::Permission);
        let e = closed.open(&Name::from("../secret")).unwrap_err();
        assert!(e.to_string().contains("--allow-outside, or Limits::with_allow_outside"), "{e}");
        assert_eq!(kind(dir.path().join("secret").to_str().unwrap()), ErrorKind::Permission);
        // An absolute path is fine if it leads into the folder, or to nothing but a name that is there.
        assert!(closed.open(&Name::from(inside.join("a").to_str().unwrap())).unwrap().is_some());
        assert!(closed.open(&Name::from("/nowhere/at/all/a")).unwrap().is_some());
        assert!(closed.open(&Name::from("/nowhere/at/all/b")).unwrap().is_none());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.path().join("secret"), inside.join("door")).unwrap();
            assert_eq!(kind("door"), ErrorKind::Permission);
        }
        let open = Neighbours::of(&main, &Limits::default().with_allow_outside(true));
        assert!(open.open(&Name::from("../secret")).unwrap().is_some());
        assert!(Neighbours::none().open(&Name::from("a")).unwrap().is_none());
        assert_eq!(closed.find(&Name::from("./a")).unwrap().unwrap().neighbours.depth(), 1);
    }
}
