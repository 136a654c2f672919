//! One question to an object store, and what it answered.

use super::client::{Bucket, Client};
use super::path;
use super::place::Provider;
use crate::error::{Error, ErrorKind, Result};
use crate::source::ByteRange;
use crate::source::memory::past_end;
use crate::source::remote::failure;
use crate::source::remote::progress::{Room, Taken};
use crate::source::store::Part;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{Error as CloudError, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt};
use std::sync::Arc;
use std::time::Instant;

/// An object and the state that it must be in, if any.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) client: Arc<Client>,
    pub(super) store: Arc<dyn Bucket>,
    pub(super) key: String,
    pub(super) state: Option<String>,
    /// Bytes that an answer may have.
    pub(super) limit: u64,
    /// Bytes that all answers of its batch may have together.
    pub(super) room: Room,
}

/// What came, and what the store says of the object.
pub(super) type Found = (Bytes, ObjectMeta);

/// Exactly the part that was asked for; `None` if there is no such object.
pub(super) async fn get(wanted: Wanted, part: Part) -> Result<Option<Found>> {
    let found = some(wanted, part).await?;
    match (part, &found) {
        (Part::Range(r), Some((bytes, meta)))
            if r.length != bytes.len() as u64 || r.end().is_none_or(|end| end > meta.size) =>
        {
            Err(past_end(r, meta.size))
        }
        _ => Ok(found),
    }
}

/// As much of the part as there is.
pub(super) async fn some(wanted: Wanted, part: Part) -> Result<Option<Found>> {
    let Wanted { client, store, key, state, limit, room } = wanted;
    let (path, name) = (path(&key)?, client.name(&key));
    let range = match part {
        Part::Whole => Ok(None),
        Part::Suffix(n) if client.provider() == Provider::Azure => Err(n),
        Part::Suffix(n) => Ok(Some(GetRange::Suffix(n))),
        Part::Range(r) => {
            Ok(Some(GetRange::Bounded(r.offset..r.end().ok_or_else(|| past_end(r, u64::MAX))?)))
        }
    };
    let empty = matches!(part, Part::Range(ByteRange { length: 0, .. }) | Part::Suffix(0));
    let options = GetOptions { if_match: state, ..GetOptions::default() };
    let (range, options) = match range {
        // No store gives an empty range; what it says of the object is wanted all the same.
        _ if empty => (None, GetOptions { head: true, ..options }),
        Ok(range) => (range, options),
        // Azure knows no last bytes: where they begin has to be asked for.
        Err(n) => match store.get_opts(&path, GetOptions { head: true, ..options.clone() }).await {
            Ok(found) if found.meta.size == 0 => return Ok(Some((Bytes::new(), found.meta))),
            Ok(found) => {
                let (size, tag) = (found.meta.size, found.meta.e_tag);
                let range = GetRange::Bounded(size.saturating_sub(n)..size);
                (Some(range), GetOptions { if_match: options.if_match.or(tag), ..options })
            }
            Err(CloudError::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(failed(&name, e)),
        },
    };
    let found = match store.get_opts(&path, GetOptions { range, ..options }).await {
        Ok(found) if empty => return Ok(Some((Bytes::new(), found.meta))),
        Ok(found) => found,
        Err(CloudError::NotFound { .. }) => return Ok(None),
        Err(e) => {
            // Perhaps nothing of the range is there, which servers say in more than one way: how long is the object?
            let text = e.to_string();
            let range = part != Part::Whole
                && ours(&e).is_none()
                && answer_in(&text).is_none_or(|(_, status, _, _)| status == 416);
            return match if range { store.head(&path).await.ok() } else { None } {
                Some(meta) if begins_beyond(part, meta.size) => Ok(Some((Bytes::new(), meta))),
                _ => Err(failed(&name, e)),
            };
        }
    };
    let length = found.range.end.saturating_sub(found.range.start);
    if length > limit {
        return Err(Error::limit(format!("{name} in bytes"), length.into(), limit.into()));
    }
    let (meta, begun) = (found.meta.clone(), Instant::now());
    let mut taken = room.taken();
    let bytes = collect(found, length, limit, &mut taken, &name).await?;
    taken.keep();
    client.meter.arrived(bytes.len() as u64, begun.elapsed());
    Ok(Some((bytes, meta)))
}

/// The bytes that come, `length` of them as was announced, and never more than `limit`.
async fn collect(found: GetResult, length: u64, limit: u64, taken: &mut Taken, name: &str) -> Result<Bytes> {
    let mut pieces = found.into_stream();
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(piece) = pieces.try_next().await.map_err(|e| failed(name, e))? {
        taken.take(piece.len())?;
        let came = (first.len() + all.len() + piece.len()) as u64;
        if came > limit.min(length) {
            return Err(Error::limit(format!("{name} in bytes"), came.into(), limit.min(length).into()));
        }
        // A short answer is one piece, which need not be copied.
        match (first.is_empty(), all.is_empty()) {
            (true, true) => first = piece,
            (false, _) => {
                all.reserve(usize::try_from(length.min(64 << 20)).unwrap_or(0));
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&piece);
            }
            (true, false) => all.extend_from_slice(&piece),
        }
    }
    let bytes = if all.is_empty() { first } else { all.into() };
    if (bytes.len() as u64) < length {
        let text = format!("{} of {length} bytes came, of {name}", bytes.len());
        return Err(Error::new(ErrorKind::Io, text));
    }
    Ok(bytes)
}

/// Whether an object of so many bytes has none of a part.
fn begins_beyond(part: Part, size: u64) -> bool {
    match part {
        Part::Whole => false,
        Part::Suffix(_) => size == 0,
        Part::Range(range) => range.offset >= size,
    }
}

/// What an error of the client means; `name` is the object.
pub(super) fn failed(name: &str, error: CloudError) -> Error {
    if let Some(ours) = ours(&error) {
        return ours.context(name);
    }
    let kind = match &error {
        CloudError::NotFound { .. } => ErrorKind::NotFound,
        CloudError::PermissionDenied { .. } | CloudError::Unauthenticated { .. } => ErrorKind::Permission,
        CloudError::Precondition { .. } | CloudError::NotModified { .. } => ErrorKind::Changed,
        CloudError::AlreadyExists { .. } => ErrorKind::AlreadyExists,
        CloudError::InvalidPath { .. } => ErrorKind::InvalidArgument,
        CloudError::NotSupported { .. } | CloudError::NotImplemented { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    };
    let text: String = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let e = match answer_in(&text) {
        // The client does not sort all answers to all questions.
        Some((url, status, reason, body)) => {
            let told = failure::of_status(name, status, reason, body.as_bytes(), false).error;
            let kind = if kind == ErrorKind::Io { told.kind() } else { kind };
            Error::new(kind, told.message().to_owned()).context(format!("asking {}", failure::shown(url)))
        }
        None => {
            let text: String = text.chars().take(600).collect();
            Error::new(kind, format!("{name}: {text}"))
        }
    };
    match e.kind() {
        ErrorKind::Permission => e.hint("wrong credentials, none, or no right to this object"),
        ErrorKind::Changed => e.hint("open it again"),
        _ if text.contains("without LOCATION") => e.hint("the bucket is in another region: set aws.region"),
        _ => e,
    }
}

/// The error that was made here, of an answer that no store gives, in that of the client.
fn ours(error: &CloudError) -> Option<Error> {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        if let Some(ours) = inner.downcast_ref::<Error>() {
            let again = Error::new(ours.kind(), ours.message().to_owned());
            return Some(match ours.next_step() {
                Some(step) => again.hint(step.to_owned()),
                None => again,
            });
        }
        cause = inner.source();
    }
    None
}

/// URL, status, its words and the body, from the client's account of an answer:
/// `… performing GET URL in 3ms[, after 2 retries, …] - Server returned non-2xx status code: 403 Forbidden: BODY`.
fn answer_in(text: &str) -> Option<(&str, u16, &str, &str)> {
    let (before, answer) = text.split_once("status code: ")?;
    let (_, asked) = before.rsplit_once(" performing ")?;
    let url = asked.split(' ').nth(1)?;
    let (status, rest) = answer.split_at_checked(3)?;
    let (reason, body) = rest.split_once(':').unwrap_or((rest, ""));
    Some((url, status.parse().ok()?, reason.trim(), body.trim()))
}
