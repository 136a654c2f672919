//! One GET after the other to one URL or to those below it, with further tries.

use super::failure::{self, Failure};
use super::progress::{Progress, Room, Taken, patience};
use super::runtime::engine;
use super::{Meter, RemoteOptions};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, IF_MATCH,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of an error's body that are looked at.
const BODY_LOOKED_AT: usize = 16 << 10;

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The value of `Range`; `None` asks for all.
    pub(super) range: Option<String>,
    /// Bytes that the answer must have, if known.
    pub(super) length: Option<u64>,
    /// The state that the object must be in.
    pub(super) tag: Option<Tag>,
    /// Bytes that the answer may have at most.
    pub(super) most: u64,
    /// Bytes that all answers of its batch may have together.
    pub(super) room: Room,
    /// Whether only the headers are wanted.
    pub(super) head_only: bool,
}

/// How the state of an object is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// A strong entity tag.
    Strong(String),
    /// A weak entity tag, which a server does not compare for us.
    Weak(String),
    /// The time of its last change.
    Modified(String),
}

impl Tag {
    fn of(headers: &HeaderMap) -> Option<Tag> {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        match text(ETAG) {
            Some(tag) if tag.starts_with("W/") => Some(Tag::Weak(tag)),
            Some(tag) => Some(Tag::Strong(tag)),
            None => text(LAST_MODIFIED).map(Tag::Modified),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Tag::Strong(text) | Tag::Weak(text) | Tag::Modified(text) => text,
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    pub(super) tag: Option<Tag>,
    /// From `Content-Range`: first and last byte, and length of the object.
    pub(super) range: Option<(u64, u64)>,
    pub(super) total: Option<u64>,
    pub(super) content_length: Option<u64>,
    /// Where redirections led to.
    pub(super) url: String,
}

/// Asks until there is an answer, or no hope for one. `url` is where to ask, `home` where to ask if the server that it
/// was redirected to will have no more of it.
pub(super) async fn ask(
    mut url: String,
    home: String,
    ask: Ask,
    options: RemoteOptions,
    meter: std::sync::Arc<Meter>,
) -> Result<Answer> {
    let mut attempt = 0;
    loop {
        let failure = match once(&url, &ask, &options, &meter).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        let moved =
            url != home && matches!(failure.error.kind(), ErrorKind::Permission | ErrorKind::NotFound);
        if moved {
            // What it was redirected to may have been good for a while only.
            url.clone_from(&home);
            meter.retries.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if !failure.passing {
            return Err(failure.error);
        }
        attempt += 1;
        if attempt > options.retries {
            let tries = options.retries.saturating_add(1);
            return Err(failure.error.context(format!("{tries} tries")));
        }
        meter.retries.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(options.pause(attempt, failure.wait)).await;
    }
}

async fn once(url: &str, ask: &Ask, options: &RemoteOptions, meter: &Meter) -> Result<Answer, Failure> {
    let client = engine().map_err(Failure::lasting)?.client.clone();
    let mut request = if ask.head_only { client.head(url) } else { client.get(url) };
    request = request.header(ACCEPT_ENCODING, "identity");
    if let Some(range) = &ask.range {
        request = request.header(RANGE, range);
    }
    request = match &ask.tag {
        Some(Tag::Strong(tag)) => request.header(IF_MATCH, tag),
        Some(Tag::Modified(time)) => request.header(IF_UNMODIFIED_SINCE, time),
        Some(Tag::Weak(_)) | None => request,
    };
    meter.requests.fetch_add(1, Ordering::Relaxed);
    let begun = Instant::now();
    let sent = tokio::time::timeout(patience(options, 0), request.send()).await;
    let mut response = match sent {
        Ok(Ok(response)) => response,
        Ok(Err(e)) => return Err(failure::of_transport(url, "cannot get", &e)),
        Err(_) => return Err(Failure::passing(Progress::new(options).failed(url))),
    };
    let latency = begun.elapsed();
    let status = response.status();
    if !status.is_success() && status.as_u16() != 416 {
        let body = match read(
            &mut response,
            url,
            BODY_LOOKED_AT as u64,
            &mut Room::default().taken(),
            options,
        )
        .await
        {
            Ok((body, _)) => body,
            Err(_) => Bytes::new(),
        };
        let reason = status.canonical_reason().unwrap_or_default();
        let signed = url.contains("ignature=") || url.contains("sig=");
        let mut failure = failure::of_status(url, status.as_u16(), reason, &body, signed);
        failure.wait = retry_after(response.headers());
        return Err(failure);
    }
    let mut answer = Answer {
        status: status.as_u16(),
        body: Bytes::new(),
        tag: Tag::of(response.headers()),
        range: None,
        total: None,
        content_length: header(response.headers(), "content-length").and_then(|v| v.parse().ok()),
        url: response.url().to_string(),
    };
    if let Some((range, total)) = header(response.headers(), CONTENT_RANGE.as_str()).and_then(content_range) {
        (answer.range, answer.total) = (range, total);
    }
    if let (Some(wanted), Some(found)) = (&ask.tag, &answer.tag)
        && wanted != found
    {
        return Err(Failure::lasting(failure::changed(url)));
    }
    let encoding = header(response.headers(), CONTENT_ENCODING.as_str()).unwrap_or("identity").to_owned();
    let encoding = Some(encoding).filter(|e| !e.is_empty() && !e.eq_ignore_ascii_case("identity"));
    if encoding.is_some() {
        // That of what travels, not of the object.
        answer.content_length = None;
    }
    if ask.head_only {
        return Ok(answer);
    }
    if let Some(encoding) = &encoding
        && answer.status == 206
    {
        let url = failure::shown(url);
        let text = format!("the server sent a part of {url} as {encoding}, of which a part has no meaning");
        return Err(Failure::lasting(Error::new(ErrorKind::Io, text)));
    }
    // What no server may answer to this question with success is not read to its end.
    let wrong =
        answer.status == 206 && answer.content_length.is_some_and(|n| ask.length.is_some_and(|l| n != l));
    if wrong {
        let text = format!(
            "the server sent {} bytes where {} were asked for, of {}",
            answer.content_length.unwrap_or(0),
            ask.length.unwrap_or(0),
            failure::shown(url)
        );
        return Err(Failure::passing(Error::new(ErrorKind::Io, text)));
    }
    if answer.status == 200 && ask.length.is_some() {
        let text = format!("the server sent all of {}, not the part that was asked for", failure::shown(url));
        return Err(Failure::lasting(Error::new(ErrorKind::Io, text)));
    }
    let begun = Instant::now();
    let mut taken = ask.room.taken();
    let (body, whole) = read(&mut response, url, ask.most, &mut taken, options).await?;
    let html = header(response.headers(), CONTENT_TYPE.as_str()).is_some_and(|t| t.starts_with("text/html"));
    let page = |body: &[u8]| failure::is_web_page(body) && (html || answer.status == 200);
    if !whole && page(&body) {
        return Err(Failure::lasting(failure::web_page(url, answer.status, &body)));
    }
    if !whole {
        let text = format!("{} in bytes", failure::shown(url));
        let length = answer.content_length.unwrap_or(ask.most.saturating_add(1));
        return Err(Failure::lasting(Error::limit(text, length.into(), ask.most.into())));
    }
    meter.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    meter.measured(latency, body.len() as u64, begun.elapsed());
    if answer.status == 206 && ask.length.is_some_and(|n| n != body.len() as u64) {
        let text = format!("{} bytes came, {} were asked for", body.len(), ask.length.unwrap_or(0));
        return Err(Failure::passing(Error::new(
            ErrorKind::Io,
            format!("{text}, of {}", failure::shown(url)),
        )));
    }
    let body = match encoding {
        Some(encoding) => {
            let plain = decoded(&body, &encoding, ask.most, url).map_err(Failure::lasting)?;
            taken.take(plain.len()).map_err(Failure::lasting)?;
            plain
        }
        None => body,
    };
    if answer.status != 416 && page(&body) {
        return Err(Failure::lasting(failure::web_page(url, answer.status, &body)));
    }
    answer.body = body;
    taken.keep();
    Ok(answer)
}

/// Reads a body of at most `most` bytes; whether that was all.
async fn read(
    response: &mut Response,
    url: &str,
    most: u64,
    taken: &mut Taken,
    options: &RemoteOptions,
) -> Result<(Bytes, bool), Failure> {
    let mut progress = Progress::new(options);
    let mut first = None;
    let mut body = Vec::new();
    loop {
        let next = match tokio::time::timeout_at(progress.ends().into(), response.chunk()).await {
            Ok(Ok(next)) => next,
            Ok(Err(e)) => return Err(failure::of_transport(url, "the answer broke off for", &e)),
            Err(_) => return Err(Failure::passing(progress.failed(url))),
        };
        let Some(next) = next else { break };
        progress.came(next.len());
        taken.take(next.len()).map_err(Failure::lasting)?;
        let held = first.as_ref().map_or(body.len(), Bytes::len);
        if (held as u64).saturating_add(next.len() as u64) > most {
            // Enough of it to tell what it is.
            let mut front = first.map_or(body, Vec::from);
            front.extend_from_slice(next.get(..BODY_LOOKED_AT).unwrap_or(&next));
            return Ok((front.into(), false));
        }
        // A short answer is one piece, which need not be copied.
        match first.take() {
            None if body.is_empty() => first = Some(next),
            None => body.extend_from_slice(&next),
            Some(piece) => {
                body.reserve(reserve(response, piece.len() + next.len(), most));
                body.extend_from_slice(&piece);
                body.extend_from_slice(&next);
            }
        }
    }
    Ok((first.unwrap_or_else(|| body.into()), true))
}

/// A whole body that came in an encoding which nobody asked for.
fn decoded(body: &[u8], encoding: &str, most: u64, url: &str) -> Result<Bytes> {
    let url = failure::shown(url);
    if !matches!(encoding.to_ascii_lowercase().as_str(), "gzip" | "x-gzip") {
        return Err(Error::unsupported(format!("the content encoding {encoding} of {url}")));
    }
    let mut out = Vec::new();
    let mut plain = flate2::read::MultiGzDecoder::new(body).take(most.saturating_add(1));
    plain.read_to_end(&mut out).map_err(|e| Error::io(format!("the gzip encoding of {url}"), e))?;
    if out.len() as u64 > most {
        return Err(Error::limit(format!("{url} in bytes"), out.len() as u128, most.into()));
    }
    Ok(out.into())
}

/// Bytes to make room for: as many as were announced, but no more than a few times what came.
fn reserve(response: &Response, came: usize, most: u64) -> usize {
    let announced = header(response.headers(), "content-length").and_then(|v| v.parse::<u64>().ok());
    let room = announced.unwrap_or(0).min(most).min(64 << 20);
    usize::try_from(room).unwrap_or(came).max(came)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// `bytes 0-99/1234`, `bytes 0-99/*` or `bytes */1234`.
#[allow(clippy::type_complexity)]
fn content_range(text: &str) -> Option<(Option<(u64, u64)>, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let range = match range.trim() {
        "*" => None,
        range => {
            let (first, last) = range.split_once('-')?;
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        }
    };
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    Some((range, total))
}

/// Seconds that the server wants to be left alone; dates are not looked at.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    header(headers, RETRY_AFTER.as_str())?.trim().parse().ok().map(Duration::from_secs)
}
