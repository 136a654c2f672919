//! Object stores: S3, Google Cloud Storage, Azure.

mod client;
mod get;
#[cfg(test)]
mod tests;

use super::RemoteOptions;
use super::failure;
use super::pieces;
use super::profile::CloudOptions;
use super::runtime::{all, engine};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use crate::source::store::{
    Get, Listing, Part, Precondition, Store, Version, check_key, check_prefix, refused,
};
use crate::source::{ByteRange, ReadHints, Source, Traffic};
use bytes::Bytes;
use client::{Client, Provider};
use futures_util::TryStreamExt;
use get::{Found, Wanted, failed, get};
use object_store::path::Path;
use object_store::{
    Error as CloudError, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    UpdateVersion,
};
use std::fmt;
use std::pin::Pin;
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
    /// The objects below `prefix` in an S3 bucket.
    pub fn s3(
        bucket: &str,
        prefix: &str,
        cloud: &CloudOptions,
        limits: &Limits,
        options: &RemoteOptions,
    ) -> Result<Self> {
        CloudStore::new(Provider::S3, "s3", bucket, prefix, cloud, limits, options)
    }

    /// The objects below `prefix` in a bucket of Google Cloud Storage.
    pub fn gs(
        bucket: &str,
        prefix: &str,
        cloud: &CloudOptions,
        limits: &Limits,
        options: &RemoteOptions,
    ) -> Result<Self> {
        CloudStore::new(Provider::Google, "gs", bucket, prefix, cloud, limits, options)
    }

    /// The objects below `prefix` in a container of Azure Blob Storage, of the account that the environment names
    /// (`AZURE_STORAGE_ACCOUNT_NAME`).
    pub fn az(
        container: &str,
        prefix: &str,
        cloud: &CloudOptions,
        limits: &Limits,
        options: &RemoteOptions,
    ) -> Result<Self> {
        CloudStore::new(Provider::Azure, "az", container, prefix, cloud, limits, options)
    }

    fn new(
        provider: Provider,
        scheme: &'static str,
        bucket: &str,
        prefix: &str,
        cloud: &CloudOptions,
        limits: &Limits,
        options: &RemoteOptions,
    ) -> Result<Self> {
        if bucket.is_empty() {
            return Err(Error::invalid(format!("no bucket in {scheme}://{bucket}/{prefix}")));
        }
        let prefix = check_prefix(prefix.trim_start_matches('/'))?.to_owned();
        let client = Client::new(provider, scheme, bucket, cloud, options);
        // Fails early where a setting is wrong.
        client.store()?;
        Ok(CloudStore { client: Arc::new(client), prefix, limits: limits.clone() })
    }

    /// The same bucket at another prefix, or at an object.
    pub fn at(&self, prefix: &str) -> Result<Self> {
        Ok(CloudStore { prefix: check_prefix(prefix)?.to_owned(), ..self.clone() })
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

    /// What stands below a prefix, however deep.
    fn all(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let limit = self.limits.metadata;
        self.listed(prefix, move |store, from, name| {
            Box::pin(async move {
                let budget = Budget::new("names in a store in bytes", limit);
                let mut objects = store.list(from.as_ref());
                let mut found = Vec::new();
                while let Some(object) = objects.try_next().await.map_err(|e| failed(&name, e))? {
                    budget.charge((object.location.as_ref().len() + size_of::<ObjectMeta>()) as u64)?;
                    found.push(object);
                }
                Ok(found)
            })
        })
    }

    /// What stands next below a prefix.
    fn next(&self, prefix: &str) -> Result<ListResult> {
        self.listed(prefix, |store, from, name| {
            Box::pin(
                async move { store.list_with_delimiter(from.as_ref()).await.map_err(|e| failed(&name, e)) },
            )
        })
    }

    /// Lists below a prefix, anew if an answer breaks off, for which the client itself does not ask again.
    fn listed<T: Send + 'static>(
        &self,
        prefix: &str,
        list: impl Fn(Arc<dyn ObjectStore>, Option<Path>, String) -> Listed<T> + Send + 'static,
    ) -> Result<T> {
        let (store, from, name) = (self.client.store()?, self.below(prefix)?, self.name());
        let client = self.client.clone();
        engine()?.run(async move {
            let mut attempt = 0;
            loop {
                match list(store.clone(), from.clone(), name.clone()).await {
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

/// A listing that is under way.
type Listed<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

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
            let items: Vec<_> = gets.iter().map(|get| (self.full(&get.key), get.part)).collect();
            let (client, store) = (self.client.clone(), self.client.store()?);
            let (most, limit) = (client.options.concurrency, self.limits.chunk);
            let get = move |(key, part): (Result<String>, Part)| {
                let (store, client) = (store.clone(), client.clone());
                async move {
                    let wanted = Wanted { client, store, key: key?, state: None, limit };
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
        let provider = self.client.provider;
        Ok(self.head(key)?.map(|meta| version(provider, meta.e_tag, meta.version)))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        let full = self.full(key)?;
        let (store, path, name) = (self.client.store()?, path(&full)?, self.client.name(&full));
        let mode = match when {
            Precondition::None => PutMode::Overwrite,
            Precondition::Absent => PutMode::Create,
            Precondition::Matches(Version(tag)) => {
                PutMode::Update(UpdateVersion { e_tag: Some(tag.clone()), version: Some(tag.clone()) })
            }
        };
        let (when, shown, provider) = (when.clone(), key.to_owned(), self.client.provider);
        engine()?.run(async move {
            match store.put_opts(&path, bytes.into(), PutOptions { mode, ..PutOptions::default() }).await {
                Ok(done) => Ok(version(provider, done.e_tag, done.version)),
                Err(CloudError::AlreadyExists { .. } | CloudError::Precondition { .. })
                    if when != Precondition::None =>
                {
                    Err(refused(&shown, &when))
                }
                Err(CloudError::NotFound { .. }) if matches!(when, Precondition::Matches(_)) => {
                    Err(refused(&shown, &when))
                }
                Err(e) => Err(failed(&name, e)),
            }
        })
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
        let found = if deep { self.all(prefix)? } else { self.next(prefix)?.objects };
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
        let found = self.next(prefix)?;
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
