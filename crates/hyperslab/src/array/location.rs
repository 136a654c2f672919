//! From an address to bytes: a source or a store, whatever stands there.

use super::fragment::Fragment;
#[cfg(feature = "remote")]
use super::fragment::Mode;
use super::{Address, OpenOptions};
#[cfg(feature = "remote")]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::source::{
    ByteRange, CachedSource, DirectoryStore, FileSource, Latency, Neighbours, Source, Store, ZipStore,
};
#[cfg(feature = "remote")]
use crate::source::{HttpSource, HttpStore};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a remote zip file that are kept in memory.
const ZIP_KEPT: u64 = 16 << 20;

/// What stands at an address.
#[derive(Clone, Debug)]
pub enum Location {
    /// One file, which may name others.
    File(Arc<dyn Source>, Neighbours),
    /// A store of objects.
    Store(Arc<dyn Store>),
}

impl Location {
    /// Opens what stands at an address: by its scheme and fragment, and where these leave it open by its content.
    pub fn open(address: &Address, options: &OpenOptions) -> Result<Location> {
        let fragment = Fragment::parse(address.fragment.as_deref().unwrap_or_default())
            .map_err(|e| e.context(address.to_string()))?;
        match address.scheme() {
            None => Location::local(Path::new(&address.file), options),
            Some("file") => Location::local(&file_path(&address.file), options),
            #[cfg(feature = "remote")]
            Some("http" | "https") => Location::web(address, &fragment, options),
            Some(scheme) => {
                let _ = fragment;
                Err(Error::unsupported(format!("the scheme {scheme}:// of {address}"))
                    .hint("copy the file here and open the copy"))
            }
        }
    }

    fn local(path: &Path, options: &OpenOptions) -> Result<Location> {
        if path.is_dir() {
            return Ok(Location::Store(Arc::new(DirectoryStore::open(path, &options.limits)?)));
        }
        let source = Arc::new(FileSource::open(path)?);
        Location::of(source, Neighbours::of(path, &options.limits), options)
    }

    /// A file, which may be a store itself.
    fn of(source: Arc<dyn Source>, neighbours: Neighbours, options: &OpenOptions) -> Result<Location> {
        if !is_zip(source.as_ref())? {
            return Ok(Location::File(source, neighbours));
        }
        let source = match source.hints().latency {
            Latency::Remote => Arc::new(CachedSource::new(source, ZIP_KEPT)?),
            _ => source,
        };
        Ok(Location::Store(Arc::new(ZipStore::open(source, &options.limits)?)))
    }

    #[cfg(feature = "remote")]
    fn web(address: &Address, fragment: &Fragment, options: &OpenOptions) -> Result<Location> {
        let url = &address.file;
        let store = || HttpStore::open(url, &options.limits, &options.remote).map(Arc::new);
        if fragment.is_zarr() && !fragment.has(Mode::Zip) {
            return Ok(Location::Store(store()?));
        }
        match HttpSource::open(url, &options.remote) {
            Ok(source) => Location::of(Arc::new(source), Neighbours::none(), options),
            // What is no file (a server may show a page, or forbid the look at a folder) may have files below it.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Permission | ErrorKind::Io) => {
                let store = store()?;
                if is_zarr(store.as_ref()) { Ok(Location::Store(store)) } else { Err(e) }
            }
            Err(e) => Err(e),
        }
    }
}

/// Whether a store has the metadata of a Zarr hierarchy at its root. A failure is no answer to what it is.
#[cfg(feature = "remote")]
fn is_zarr(store: &dyn Store) -> bool {
    let keys = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"].map(crate::source::store::Get::whole);
    store.get_many(&keys).iter().any(|answer| matches!(answer, Ok(Some(_))))
}

/// Whether a source begins as a zip file does, with or without files in it.
fn is_zip(source: &dyn Source) -> Result<bool> {
    if source.len()? < 22 {
        return Ok(false);
    }
    let head = source.read(&[ByteRange::new(0, 4)])?;
    Ok(head.first().is_some_and(|h| matches!(h.as_ref(), b"PK\x03\x04" | b"PK\x05\x06")))
}

/// The path of a `file:` URL. Characters may be written as `%41`, unless a file is called just so.
fn file_path(url: &str) -> Cow<'_, Path> {
    let path = url.get("file://".len()..).unwrap_or_default();
    let path = path.strip_prefix("localhost").filter(|p| p.starts_with('/')).unwrap_or(path);
    if !path.contains('%') || Path::new(path).exists() {
        return Cow::Borrowed(Path::new(path));
    }
    let digit = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16));
    let (bytes, mut out, mut i) = (path.as_bytes(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(i) {
        match (byte, digit(bytes.get(i + 1)), digit(bytes.get(i + 2))) {
            // Two hexadecimal digits fit into a byte.
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                i += 3;
            }
            _ => {
                out.push(byte);
                i += 1;
            }
        }
    }
    match String::from_utf8(out) {
        Ok(decoded) => Cow::Owned(decoded.into()),
        Err(_) => Cow::Borrowed(Path::new(path)),
    }
}
