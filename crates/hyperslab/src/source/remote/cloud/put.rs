//! Writing an object: whole, under a precondition, and in parts where it is long.

use super::client::{Bucket, Client};
use super::get::{Wanted, failed, get};
use super::place::Provider;
use super::{path, version};
use crate::error::{Error, ErrorKind, Result};
use crate::source::remote::progress::Room;
use crate::source::remote::runtime::all;
use crate::source::store::{Part, Precondition, Version, refused};
use bytes::Bytes;
use object_store::{Error as CloudError, PutMode, PutOptions, PutResult, UpdateVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Objects longer than this are sent in parts, where nothing is asked of what was there before: a part that fails is sent
/// again alone, and parts travel side by side.
const WHOLE: usize = 64 << 20;

/// Bytes of one part. S3 takes ten thousand of them.
const PART: usize = 16 << 20;

/// The longest object that one request may send; parts cannot have a precondition.
const LONGEST: usize = 5 << 30;

/// How often one request was sent. It travels with the request, so that whoever sends it can count.
#[derive(Clone, Debug, Default)]
pub(super) struct Tries(Arc<AtomicU32>);

impl Tries {
    pub(super) fn again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An object to write.
pub(super) struct Written {
    pub(super) client: Arc<Client>,
    pub(super) store: Arc<dyn Bucket>,
    /// The key in the bucket.
    pub(super) key: String,
    /// What the caller calls it.
    pub(super) shown: String,
    pub(super) bytes: Bytes,
    pub(super) when: Precondition,
}

/// Writes an object and gives its new state.
pub(super) async fn put(object: Written) -> Result<Version> {
    let Written { client, store, key, shown, bytes, when } = &object;
    let (path, name, provider) = (path(key)?, client.name(key), client.provider());
    if bytes.len() > WHOLE && *when == Precondition::None {
        return in_parts(client, store, key, bytes).await.map(|done| state(provider, done));
    }
    if bytes.len() > LONGEST {
        let what = format!("writing {} bytes to {name} under a precondition", bytes.len());
        return Err(Error::unsupported(what).hint("choose smaller chunks or shards"));
    }
    let mode = match when {
        Precondition::None => PutMode::Overwrite,
        Precondition::Absent => PutMode::Create,
        Precondition::Matches(Version(tag)) => {
            PutMode::Update(UpdateVersion { e_tag: Some(tag.clone()), version: Some(tag.clone()) })
        }
    };
    let tries = Tries::default();
    let mut options = PutOptions { mode, ..PutOptions::default() };
    options.extensions.insert(tries.clone());
    let error = match store.put_opts(&path, bytes.clone().into(), options).await {
        Ok(done) => return Ok(state(provider, done)),
        Err(e) => e,
    };
    let fails = match &error {
        CloudError::AlreadyExists { .. } | CloudError::Precondition { .. } => *when != Precondition::None,
        CloudError::NotFound { .. } => matches!(when, Precondition::Matches(_)),
        _ => false,
    };
    let error = if fails { refused(shown, when) } else { failed(&name, error) };
    // An answer that was lost leaves open whether the object was written, and another try meets what the first one wrote.
    let unknown = if fails { tries.count() > 1 } else { error.kind() == ErrorKind::Io };
    if unknown
        && *when != Precondition::None
        && let Some(version) = is_there(&object).await
    {
        return Ok(version);
    }
    Err(error)
}

/// The state of the object, if its bytes are those that were to be written: then somebody wrote them under the same
/// precondition, and it does not matter who.
async fn is_there(object: &Written) -> Option<Version> {
    let wanted = Wanted {
        client: object.client.clone(),
        store: object.store.clone(),
        key: object.key.clone(),
        state: None,
        limit: object.bytes.len() as u64,
        room: Room::default(),
    };
    let (bytes, meta) = get(wanted, Part::Whole).await.ok()??;
    (bytes == object.bytes).then(|| version(object.client.provider(), meta.e_tag, meta.version))
}

async fn in_parts(
    client: &Arc<Client>,
    store: &Arc<dyn Bucket>,
    key: &str,
    bytes: &Bytes,
) -> Result<PutResult> {
    let (path, name) = (path(key)?, client.name(key));
    let said = |e| failed(&name, e);
    // Longer parts where there would be too many.
    let part = PART.max(bytes.len().div_ceil(9_000));
    let upload = store.create_multipart(&path).await.map_err(said)?;
    let parts: Vec<(usize, Bytes)> = (0..bytes.len().div_ceil(part))
        .map(|number| (number, bytes.slice(number * part..bytes.len().min((number + 1) * part))))
        .collect();
    let send = |(number, bytes): (usize, Bytes)| {
        let (store, path, upload, name) = (store.clone(), path.clone(), upload.clone(), name.clone());
        async move {
            let sent = store.put_part(&path, &upload, number, bytes.into()).await;
            sent.map_err(|e| failed(&name, e).context(format!("part {number}")))
        }
    };
    let done =
        match all(parts, client.options.concurrency, send).await.into_iter().collect::<Result<Vec<_>>>() {
            Ok(sent) => store.complete_multipart(&path, &upload, sent).await.map_err(said),
            Err(e) => Err(e),
        };
    if done.is_err() {
        // Parts that nobody completes stay, and cost, until somebody removes them.
        let _ = store.abort_multipart(&path, &upload).await;
    }
    done
}

fn state(provider: Provider, done: PutResult) -> Version {
    version(provider, done.e_tag, done.version)
}
