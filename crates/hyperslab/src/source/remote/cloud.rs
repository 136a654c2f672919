//! Object stores: S3, Google Cloud Storage, Azure.

mod client;
mod get;
mod list;
mod place;
mod put;
#[cfg(test)]
mod tests;
mod watch;

use super::RemoteOptions;
use super::failure;
use super::pieces;
use super::profile::CloudOptions;
use super::progress::Room;
use super::runtime::{all, engine};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::store::{Get, Listing, Part, Precondition, Store, Version, check_key, check_prefix};
use crate::source::{ByteRange, ReadHints, Source, Traffic};
use bytes::Bytes;
use client::Client;
use get::{Found, Wanted, failed, get};
use list::list;
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, ObjectStoreExt};
pub use place::CloudPlace;
use place::Provider;
use put::{Written, put};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The objects below a prefix of a bucket or container.
#[derive(Clone, Debug)]
pub struct CloudStore {
    client: Arc<Client>,
    /// Without leading and trailing `/`; empty for all.
    prefix: String,
    limits: Limits,
}

impl CloudStore {
    /// The objects at a place.
    pub fn open(
        place: &CloudPlace,
        cloud: &CloudOptions,
        limits: &Limits,
        options: &RemoteOptions,
    ) -> Result<Self> {
        let client = Client::new(place, cloud, options);
        // Fails early where a setting is wrong.
        client.store()?;
        Ok(CloudStore { client: Arc::new(client), prefix: place.prefix.clone(), limits: limits.clone() })
    }

    /// The same bucket at another prefix, or at an object.
    pub fn at(&self, prefix: &str) -> Result<Self> {
        Ok(CloudStore { prefix: self.client.place.at(prefix)?.prefix, ..self.clone() })
    }

    /// The objects beside the one whose key is the prefix.
    pub fn beside(&self) -> Result<Self> {
        self.at(self.prefix.rsplit_once('/').map_or("", |(folder, _)| folder))
    }

    /// The object whose key is the prefix itself, as a source; `None` if there is none.
    pub fn object(&self) -> Result<Option<CloudSource>> {
        if self.prefix.is_empty() {
            return Ok(None);
        }
        CloudSource::open(&self.client, &self.prefix)
    }

    /// The key in the bucket.
    fn full(&self, key: &str) -> Result<String> {
        check_key(key)?;
        Ok(if self.prefix.is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) })
    }

    fn below(&self, prefix: &str) -> Result<Option<Path>> {
        let prefix = check_prefix(prefix)?;
        let full = match (self.prefix.as_str(), prefix) {
            ("", prefix) => prefix.to_owned(),
            (root, "") => root.to_owned(),
            (root, prefix) => format!("{root}/{prefix}"),
        };
        if full.is_empty() { Ok(None) } else { path(&full).map(Some) }
    }

    fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        self.client.head(&self.full(key)?)
    }

    /// What stands below a prefix: next below it, or however deep.
    fn listed(&self, prefix: &str, deep: bool) -> Result<ListResult> {
        let (store, limit, name) = (self.client.store()?, self.limits.metadata, self.name());
        let from = self.below(prefix)?.map(|path| format!("{path}/")).unwrap_or_default();
        let client = self.client.clone();
        engine()?.run(async move {
            let mut attempt = 0;
            loop {
                match list(store.clone(), from.clone(), deep, limit, name.clone()).await {
                    // The client itself does not ask again where an answer breaks off.
                    Err(e) if attempt < client.options.retries && e.message().contains("response body") => {
                        attempt += 1;
                        client.meter.retries.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(client.options.pause(attempt, None)).await;
                    }
                    done => return done,
                }
            }
        })
    }
}

fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|e| Error::invalid(format!("{key:?} cannot be a key of an object store: {e}")))
}

/// The state of an object in the word that its provider compares: a generation for Google's, an entity tag for others.
fn version(provider: Provider, e_tag: Option<String>, version: Option<String>) -> Version {
    let word = if matches!(provider, Provider::Google) { version } else { e_tag };
    Version(word.unwrap_or_default())
}

impl Store for CloudStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.head(key)?.map(|meta| meta.size))
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        let answer = || {
            let limit = self.limits.chunk;
            let items: Vec<_> =
                gets.iter().map(|get| (self.full(&get.key), get.part, get.most.min(limit))).collect();
            let (client, store) = (self.client.clone(), self.client.store()?);
            let (most, room) = (client.options.concurrency, Room::new(gets.len(), self.limits.in_flight));
            let get = move |(key, part, limit): (Result<String>, Part, u64)| {
                let (store, client, room) = (store.clone(), client.clone(), room.clone());
                async move {
                    let wanted = Wanted { client, store, key: key?, state: None, limit, room };
                    Ok(get(wanted, part).await?.map(|(bytes, _)| bytes))
                }
            };
            engine()?.run(async move { Ok(all(items, most, get).await) })
        };
        answer().unwrap_or_else(|e| {
            let text = e.to_string();
            gets.iter().map(|_| Err(Error::new(e.kind(), text.clone()))).collect()
        })
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        let provider = self.client.provider();
        Ok(self.head(key)?.map(|meta| version(provider, meta.e_tag, meta.version)))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        let (client, store, key_in_bucket) = (self.client.clone(), self.client.store()?, self.full(key)?);
        let (shown, when) = (key.to_owned(), when.clone());
        engine()?.run(put(Written { client, store, key: key_in_bucket, shown, bytes, when }))
    }

    fn delete(&self, key: &str) -> Result<bool> {
        let full = self.full(key)?;
        // Deleting what is not there succeeds.
        if self.client.head(&full)?.is_none() {
            return Ok(false);
        }
        let (store, path, name) = (self.client.store()?, path(&full)?, self.client.name(&full));
        engine()?.run(async move { store.delete(&path).await.map(|()| true).map_err(|e| failed(&name, e)) })
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(self.lengths(prefix, true)?.into_iter().map(|(key, _)| key).collect())
    }

    fn lengths(&self, prefix: &str, deep: bool) -> Result<Vec<(String, u64)>> {
        let found = self.listed(prefix, deep)?.objects;
        let mut keys: Vec<(String, u64)> = found
            .iter()
            .filter_map(|object| Some((relative(&self.prefix, object.location.as_ref())?, object.size)))
            .filter(|(key, _)| check_key(key).is_ok())
            .map(|(key, length)| (key.to_owned(), length))
            .collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        let found = self.listed(prefix, false)?;
        let from = self.below(prefix)?.map(|path| path.to_string()).unwrap_or_default();
        let last = |path: &Path| {
            relative(&from, path.as_ref())
                .filter(|name| !name.is_empty() && !name.contains('/'))
                .map(str::to_owned)
        };
        let mut listing = Listing {
            objects: found.objects.iter().filter_map(|object| last(&object.location)).collect(),
            prefixes: found.common_prefixes.iter().filter_map(last).collect(),
        };
        listing.objects.sort_unstable();
        listing.prefixes.sort_unstable();
        listing.prefixes.dedup();
        Ok(listing)
    }

    fn hints(&self) -> ReadHints {
        self.client.meter.hints(self.client.options.concurrency)
    }

    fn name(&self) -> String {
        self.client.name(&self.prefix)
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        let found = CloudSource::open(&self.client, &self.full(key)?)?;
        Ok(found.map(|source| Arc::new(source) as Arc<dyn Source>))
    }

    fn traffic(&self) -> Traffic {
        self.client.meter.traffic()
    }
}

/// What stands behind a prefix and `/`.
fn relative<'a>(prefix: &str, key: &'a str) -> Option<&'a str> {
    if prefix.is_empty() { Some(key) } else { key.strip_prefix(prefix)?.strip_prefix('/') }
}

/// One object, read by ranges; see [`HttpSource`](super::HttpSource) for what they have in common.
pub struct CloudSource {
    client: Arc<Client>,
    key: String,
    length: u64,
    tag: Option<String>,
    front: Bytes,
}

impl fmt::Debug for CloudSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloudSource({}, {} bytes)", self.name(), self.length)
    }
}

impl CloudSource {
    fn open(client: &Arc<Client>, key: &str) -> Result<Option<CloudSource>> {
        let first = ByteRange::new(0, client.options.first.max(1));
        let wanted = Wanted {
            client: client.clone(),
            store: client.store()?,
            key: key.to_owned(),
            state: None,
            limit: first.length,
            room: Room::default(),
        };
        let source = |(front, meta): Found| CloudSource {
            client: client.clone(),
            key: key.to_owned(),
            length: meta.size,
            tag: meta.e_tag,
            front,
        };
        Ok(engine()?.run(get::some(wanted, Part::Range(first)))?.map(source))
    }

    fn fetch(&self, pieces: Vec<ByteRange>) -> Result<Vec<Result<Bytes>>> {
        let (tag, length, name) = (self.tag.clone(), self.length, self.name());
        let wanted = Wanted {
            client: self.client.clone(),
            store: self.client.store()?,
            key: self.key.clone(),
            // A store compares none of the weak ones.
            state: self.tag.clone().filter(|tag| !tag.starts_with("W/")),
            limit: 0,
            room: Room::default(),
        };
        let most = self.client.options.concurrency;
        let get = move |piece: ByteRange| {
            let wanted = Wanted { limit: piece.length, ..wanted.clone() };
            let (tag, name) = (tag.clone(), name.clone());
            async move {
                match get(wanted, Part::Range(piece)).await? {
                    Some((bytes, meta)) if meta.e_tag == tag && meta.size == length => Ok(bytes),
                    Some(_) => Err(failure::changed(&name)),
                    None => Err(Error::new(
                        ErrorKind::Changed,
                        format!("{name} was removed while it was being read"),
                    )),
                }
            }
        };
        engine()?.run(async move { Ok(all(pieces, most, get).await) })
    }
}

impl Source for CloudSource {
    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        pieces::read(&self.front, self.length, ranges, |pieces| self.fetch(pieces))
            .context(|| format!("object {}", self.key))
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        pieces::fill(buffer, self.read(&[ByteRange::new(offset, buffer.len() as u64)])?)
    }

    fn hints(&self) -> ReadHints {
        self.client.meter.hints(self.client.options.concurrency)
    }

    fn id(&self) -> Result<String> {
        Ok(format!("{}:{}:{}", self.name(), self.length, self.tag.as_deref().unwrap_or_default()))
    }

    fn name(&self) -> String {
        self.client.name(&self.key)
    }

    fn traffic(&self) -> Traffic {
        self.client.meter.traffic()
    }
}
