//! From an address to bytes: a source or a store, whatever stands there.

use super::fragment::Fragment;
#[cfg(feature = "remote")]
use super::fragment::Mode;
use super::{Address, OpenOptions};
#[cfg(feature = "remote")]
use crate::error::ErrorKind;
use crate::error::{Context, Error, Result};
#[cfg(feature = "remote")]
use crate::limits::Limits;
use crate::source::{
    ByteRange, CachedSource, DirectoryStore, Latency, Neighbours, Source, Store, ZipStore,
    write::{Recovery, open_recovered},
};
#[cfg(feature = "remote")]
use crate::source::{CloudOptions, CloudPlace, CloudStore, GrowingSource, HttpSource, HttpStore};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
        match Location::find(address, options, false)? {
            Location::File(source, neighbours) => Location::of(source, neighbours, options),
            store => Ok(store),
        }
    }

    /// What stands at an address, a zip file taken for a file. `store`: it is known to be a store, of whatever.
    fn find(address: &Address, options: &OpenOptions, store: bool) -> Result<Location> {
        let fragment = Fragment::parse(address.fragment.as_deref().unwrap_or_default())
            .map_err(|e| e.context(address.to_string()))?;
        match address.scheme() {
            None => Location::local(address.local(), &fragment, options),
            Some("file") => Location::local(&file_path(&address.file), &fragment, options),
            #[cfg(feature = "remote")]
            Some("http" | "https") if fragment.has(Mode::S3) => {
                let (endpoint, bucket, key) = s3_url(&address.file)?;
                let cloud = cloud_options(&fragment).with_endpoint(endpoint);
                let cloud = match s3_region(&address.file) {
                    Some(region) => cloud.with_region(Some(region)),
                    None => cloud,
                };
                let store = CloudStore::open(
                    &CloudPlace::s3(&bucket, &key)?,
                    &cloud,
                    &options.limits,
                    &options.remote,
                )?;
                Location::cloud(store, &fragment)
            }
            #[cfg(feature = "remote")]
            Some("http" | "https") => Location::web(address, &fragment, options, store),
            #[cfg(feature = "remote")]
            Some(scheme @ ("s3" | "gs" | "gs3" | "az")) => {
                let rest = address.file.split_once("://").map_or("", |(_, rest)| rest);
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                let place = match scheme {
                    "s3" => CloudPlace::s3(bucket, key),
                    "az" => CloudPlace::az(bucket, key),
                    _ => CloudPlace::gs(bucket, key),
                };
                let cloud = cloud_options(&fragment);
                let store = CloudStore::open(&place?, &cloud, &options.limits, &options.remote)?;
                Location::cloud(store, &fragment)
            }
            Some(scheme) => {
                let _ = (fragment, store);
                Err(Error::unsupported(format!("the scheme {scheme}:// of {address}"))
                    .hint("copy the file here and open the copy"))
            }
        }
    }

    /// The store at an address, as it is: whatever its objects are, and of a zip file all of it.
    ///
    /// Fails with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where one file stands that is no store.
    pub fn store(address: &Address, options: &OpenOptions) -> Result<Arc<dyn Store>> {
        match Location::find(address, options, true)? {
            Location::Store(store) => Ok(store),
            Location::File(source, _) if is_zip(source.as_ref())? => {
                Ok(Arc::new(ZipStore::open_at(cached(source)?, "", &options.limits)?))
            }
            Location::File(source, _) => {
                Err(Error::invalid(format!("{} is one file, not a store of objects", source.name()))
                    .hint("its folder is a store"))
            }
        }
    }

    /// Where a new store of objects is to be, far away: nothing has to be there.
    pub(crate) fn new_store(address: &Address, options: &OpenOptions) -> Result<Arc<dyn Store>> {
        let mut address = address.clone();
        let fragment = Fragment::parse(address.fragment.as_deref().unwrap_or_default())?;
        if !fragment.is_zarr() {
            // Said to be one, so that nobody looks for it.
            let said = address.fragment.take().map_or_else(String::new, |said| format!("{said}&"));
            address.fragment = Some(format!("{said}mode=zarr"));
        }
        Location::store(&address, options)
    }

    /// The path of a local file or folder, whether it is there or not; `None` far away.
    pub(crate) fn local_path(address: &Address) -> Option<PathBuf> {
        match address.scheme() {
            None => Some(address.local().to_path_buf()),
            Some("file") => Some(file_path(&address.file).into_owned()),
            Some(_) => None,
        }
    }

    /// The folder in a zip file that is the root of a Zarr hierarchy, empty for all of it; `None` where there is none.
    pub fn folder_in_zip(address: &Address, options: &OpenOptions) -> Result<Option<String>> {
        match Location::find(address, options, false)? {
            Location::File(source, _) if is_zip(source.as_ref())? => {
                crate::format::zarr::root_in_zip(cached(source)?, &options.limits)
            }
            _ => Ok(None),
        }
    }

    /// The file at an address that is far away, as it is at each moment; `None` for a local one, and where a store stands.
    pub(super) fn growing(address: &Address, options: &OpenOptions) -> Result<Option<Arc<dyn Source>>> {
        #[cfg(feature = "remote")]
        if let Some(scheme) = address.scheme().filter(|scheme| *scheme != "file") {
            let fragment = Fragment::parse(address.fragment.as_deref().unwrap_or_default())?;
            let (url, query) = match address.file.split_once('?') {
                Some((url, query)) => (url, format!("?{query}")),
                None => (address.file.as_str(), String::new()),
            };
            let is_web = matches!(scheme, "http" | "https") && !fragment.has(Mode::S3);
            let start = url.find("://").map_or(0, |at| at + 3);
            let Some((folder, name)) = url.rsplit_once('/').filter(|(f, n)| f.len() > start && !n.is_empty())
            else {
                return Ok(None);
            };
            if fragment.is_zarr() {
                return Ok(None);
            }
            let mut at = address.clone();
            at.file = format!("{folder}{query}");
            let store: Arc<dyn Store> = match is_web {
                true => Arc::new(HttpStore::open(&at.file, &options.limits, &options.remote)?),
                false => Location::store(&at, options)?,
            };
            // A store writes names into URLs as they must be.
            let key = if is_web { decoded(name) } else { name.to_owned() };
            if store.len(&key)?.is_none() {
                return Ok(None);
            }
            return Ok(Some(Arc::new(GrowingSource::new(store, key))));
        }
        let _ = (address, options);
        Ok(None)
    }

    /// What changes when a local file changes: its length, its time, itself. `None` where nothing does.
    pub(crate) fn stamp(address: &Address) -> Result<Option<String>> {
        let path = match address.scheme() {
            None => Cow::Borrowed(address.local()),
            Some("file") => file_path(&address.file),
            Some(_) => return Ok(None),
        };
        let meta = std::fs::metadata(&path)
            .map_err(|e| Error::io(format!("cannot look at {}", path.display()), e))?;
        #[cfg(unix)]
        let itself = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let itself = 0;
        Ok(meta.is_file().then(|| format!("{itself} {} {:?}", meta.len(), meta.modified().ok())))
    }

    /// How long ago a local file was changed, by the clocks of this machine and of the file system; zero where nothing says.
    pub(crate) fn age(address: &Address) -> Duration {
        let changed = match address.scheme() {
            None => std::fs::metadata(address.local()),
            Some("file") => std::fs::metadata(file_path(&address.file)),
            Some(_) => return Duration::ZERO,
        };
        changed.and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
    }

    fn local(path: &Path, fragment: &Fragment, options: &OpenOptions) -> Result<Location> {
        if options.recovery == Recovery::RollBack {
            crate::source::store::bring_back(path)?;
        }
        let is_folder = path.is_dir();
        fragment.check_local(is_folder).context(|| path.display())?;
        if is_folder {
            let store = DirectoryStore::open(path, &options.limits)?;
            if options.recovery == Recovery::RollBack {
                crate::format::zarr::write::recover(&store)?;
            }
            return Ok(Location::Store(Arc::new(store)));
        }
        let source = open_recovered(path, &options.limits, options.recovery)?;
        Ok(Location::File(source, Neighbours::of(path, &options.limits)))
    }

    /// A file, which may be a store itself.
    fn of(source: Arc<dyn Source>, neighbours: Neighbours, options: &OpenOptions) -> Result<Location> {
        if !is_zip(source.as_ref())? {
            return Ok(Location::File(source, neighbours));
        }
        let source = cached(source)?;
        let store = match crate::format::zarr::root_in_zip(source.clone(), &options.limits)? {
            Some(folder) => ZipStore::open_at(source, &folder, &options.limits)?,
            None => ZipStore::open(source, &options.limits)?,
        };
        Ok(Location::Store(Arc::new(store)))
    }

    #[cfg(feature = "remote")]
    fn web(
        address: &Address,
        fragment: &Fragment,
        options: &OpenOptions,
        is_store: bool,
    ) -> Result<Location> {
        let url = &address.file;
        let store = || HttpStore::open(url, &options.limits, &options.remote).map(Arc::new);
        if fragment.is_zarr() && !fragment.has(Mode::Zip) {
            return Ok(Location::Store(store()?));
        }
        match HttpSource::open(url, &options.remote) {
            Ok(source) => {
                let folder = source.folder(&options.limits)?;
                Ok(Location::File(Arc::new(source), Neighbours::in_store(Arc::new(folder))))
            }
            // What is no file (a server may show a page, or forbid the look at a folder) may have files below it.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Permission | ErrorKind::Io) => {
                let store = store()?;
                if is_store {
                    return Ok(Location::Store(store));
                }
                match is_zarr(store.as_ref(), &options.limits) {
                    Ok(true) => Ok(Location::Store(store)),
                    // What is not shown, or fails, is not what does not exist.
                    Err(hidden) if e.kind() == ErrorKind::NotFound => Err(hidden),
                    _ => Err(e),
                }
            }
            Err(e) => Err(e),
        }
    }
}

#[cfg(feature = "remote")]
impl Location {
    /// What stands at a prefix of a bucket: an object, or more objects below it.
    fn cloud(store: CloudStore, fragment: &Fragment) -> Result<Location> {
        if fragment.is_zarr() && !fragment.has(Mode::Zip) {
            return Ok(Location::Store(Arc::new(store)));
        }
        let no_object = match store.object() {
            Ok(Some(source)) => {
                let near = Neighbours::in_store(Arc::new(store.beside()?));
                return Ok(Location::File(Arc::new(source), near));
            }
            Ok(None) => Error::new(ErrorKind::NotFound, format!("there is no object {}", store.name())),
            Err(e) => return Err(e),
        };
        let below = store.search("").map_err(|e| e.context(format!("what is below {}", store.name())))?;
        let empty = below.objects.is_empty() && below.prefixes.is_empty();
        if empty { Err(no_object) } else { Ok(Location::Store(Arc::new(store))) }
    }
}

#[cfg(feature = "remote")]
fn cloud_options(fragment: &Fragment) -> CloudOptions {
    CloudOptions::default()
        .with_profile(fragment.profile.clone())
        .with_region(fragment.region.clone())
        .with_endpoint(fragment.endpoint.clone())
        .with_virtual_style(fragment.virtual_style)
}

/// Server, bucket and key of the URL of a server that speaks S3: `https://host/bucket/key`, or one of Amazon's own forms,
/// some of which have the bucket in the name of the server.
#[cfg(feature = "remote")]
fn s3_url(url: &str) -> Result<(Option<String>, String, String)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if let Some((bucket, _)) = host.split_once(".s3").filter(|_| host.ends_with(".amazonaws.com")) {
        return Ok((None, bucket.to_owned(), path.to_owned()));
    }
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        return Err(Error::invalid(format!("no bucket in {url}")));
    }
    let endpoint = (!host.ends_with(".amazonaws.com")).then(|| format!("{scheme}://{host}"));
    Ok((endpoint, bucket.to_owned(), key.to_owned()))
}

/// The region in the name of one of Amazon's servers.
#[cfg(feature = "remote")]
fn s3_region(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split('/').next()?.strip_suffix(".amazonaws.com")?;
    let region = host.rsplit_once('.').map(|(_, region)| region).filter(|region| *region != "s3")?;
    Some(region.strip_prefix("s3-").unwrap_or(region).to_owned())
}

/// Whether a store has the metadata of a Zarr hierarchy at its root. Fails if that can be told of none of its documents
/// because of a failure.
#[cfg(feature = "remote")]
fn is_zarr(store: &dyn Store, limits: &Limits) -> Result<bool> {
    let keys = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"]
        .map(|key| crate::source::store::Get::whole(key).within(limits.document));
    let answers = store.get_many(&keys);
    if answers.iter().any(|answer| matches!(answer, Ok(Some(_)))) {
        return Ok(true);
    }
    answers.into_iter().collect::<Result<Vec<_>>>().map(|_| false)
}

/// A zip file, with blocks of it in memory if it is far away.
fn cached(source: Arc<dyn Source>) -> Result<Arc<dyn Source>> {
    Ok(match source.hints().latency {
        Latency::Remote => Arc::new(CachedSource::new(source, ZIP_KEPT)?),
        _ => source,
    })
}

/// Whether a source begins as a zip file does, with or without files in it; or is nothing else that is known and ends as
/// a zip file does, with a program in front that unpacks it. The end of what is far away is not looked at.
fn is_zip(source: &dyn Source) -> Result<bool> {
    /// Bytes of the record at the end without its comment, and of the longest comment.
    const END: u64 = 22;
    const COMMENT: u64 = 0xffff;
    let length = source.len()?;
    if length < END {
        return Ok(false);
    }
    let head = source.read(&[ByteRange::new(0, 4)])?.pop().unwrap_or_default();
    match head.as_ref() {
        b"PK\x03\x04" | b"PK\x05\x06" => return Ok(true),
        b"\x89HDF" | [b'C', b'D', b'F', _] => return Ok(false),
        _ if source.hints().latency == Latency::Remote => return Ok(false),
        _ => {}
    }
    let tail = length.min(END + COMMENT);
    let tail = source.read(&[ByteRange::new(length - tail, tail)])?.pop().unwrap_or_default();
    let ends = |record: &[u8], rest: usize| {
        let comment = record.get(20..22).map_or(0, |n| usize::from(n[0]) | usize::from(n[1]) << 8);
        record.starts_with(b"PK\x05\x06") && comment == rest
    };
    let at = tail.windows(END as usize).enumerate();
    Ok(at.into_iter().any(|(at, record)| ends(record, tail.len() - at - END as usize)))
}

/// The path of a `file:` URL. Characters may be written as `%41`, unless a file is called just so.
fn file_path(url: &str) -> Cow<'_, Path> {
    let path = url.get("file://".len()..).unwrap_or_default();
    let path = path.strip_prefix("localhost").filter(|p| p.starts_with('/')).unwrap_or(path);
    if !path.contains('%') || Path::new(path).exists() {
        return Cow::Borrowed(Path::new(path));
    }
    Cow::Owned(decoded(path).into())
}

/// Text of which characters may be written as `%41`.
fn decoded(text: &str) -> String {
    let digit = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16));
    let (bytes, mut out, mut i) = (text.as_bytes(), Vec::new(), 0);
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
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
#[cfg(feature = "remote")]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers_that_speak_s3_are_taken_apart() {
        let parts = |url: &str| {
            let (endpoint, bucket, key) = s3_url(url).unwrap();
            (endpoint.unwrap_or_default(), bucket, key, s3_region(url).unwrap_or_default())
        };
        let four =
            |a: &str, b: &str, c: &str, d: &str| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned());
        assert_eq!(parts("http://[::1]:9000/b/k/x"), four("http://[::1]:9000", "b", "k/x", ""));
        assert_eq!(parts("https://b.s3.eu-1.amazonaws.com/k/x"), four("", "b", "k/x", "eu-1"));
        assert_eq!(parts("https://b.s3.amazonaws.com/k"), four("", "b", "k", ""));
        assert_eq!(parts("https://s3.eu-1.amazonaws.com/b/k"), four("", "b", "k", "eu-1"));
        assert_eq!(parts("https://s3.amazonaws.com/b/k"), four("", "b", "k", ""));
        assert_eq!(s3_url("https://host/").unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
