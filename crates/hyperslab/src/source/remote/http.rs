//! Files and stores on a web server.

use super::failure;
use super::link::{self, Answer, Ask, Tag};
use super::pieces;
use super::progress::Room;
use super::runtime::{all, engine};
use super::{Meter, RemoteOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::memory::past_end;
use crate::source::store::{Get, Listing, Part, Precondition, Store, Version, check_key, cut, read_only};
use crate::source::{ByteRange, ReadHints, Source, Traffic};
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

/// A file on a web server, read by ranges.
///
/// The first request asks for the front of the file, which tells its length, and stays in memory. Where the server has an
/// entity tag or a time of change, every further answer must have the same: a file that was changed in between is
/// [`ErrorKind::Changed`]. A server without ranges sends the file whole, which is kept if it is not too long.
pub struct HttpSource {
    url: String,
    /// Where redirections led to.
    found: RwLock<String>,
    length: u64,
    tag: Option<Tag>,
    /// The first bytes: all of them if the server has no ranges.
    front: Bytes,
    options: RemoteOptions,
    meter: Arc<Meter>,
}

// A URL may have secrets, and the front is long.
impl fmt::Debug for HttpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpSource({}, {} bytes)", self.name(), self.length)
    }
}

impl HttpSource {
    /// Opens the file at `url`, which is sent as it is.
    pub fn open(url: &str, options: &RemoteOptions) -> Result<Self> {
        HttpSource::counted(url, options, Arc::new(Meter::default()))
    }

    fn counted(url: &str, options: &RemoteOptions, meter: Arc<Meter>) -> Result<Self> {
        let first = options.first.max(1);
        let wish = Ask {
            range: Some(format!("bytes=0-{}", first - 1)),
            length: None,
            tag: None,
            most: options.whole.max(first),
            head_only: false,
            room: Room::default(),
        };
        let work = link::ask(url.to_owned(), url.to_owned(), wish, options.clone(), meter.clone());
        let answer = engine()?.run(work).map_err(|e| match e.kind() {
            ErrorKind::LimitExceeded => {
                e.hint("the server has no ranges, so that the file would have to come whole")
            }
            _ => e,
        })?;
        let length = match answer.status {
            206 => whole_length(url, &answer)?,
            416 => match answer.total {
                Some(0) | None => 0,
                Some(total) => return Err(odd(url, &format!("none of the first bytes of {total}"))),
            },
            _ => answer.body.len() as u64,
        };
        let front = if answer.status == 416 { Bytes::new() } else { answer.body };
        if answer.status == 200 && length > first {
            meter.whole.fetch_add(1, Ordering::Relaxed);
        }
        Ok(HttpSource {
            url: url.to_owned(),
            found: RwLock::new(answer.url),
            length,
            tag: answer.tag,
            front,
            options: options.clone(),
            meter,
        })
    }

    /// The files beside and below it, counted together with it. A query goes with requests for them too.
    pub fn folder(&self, limits: &Limits) -> Result<HttpStore> {
        let (path, query) = match self.url.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (self.url.as_str(), None),
        };
        let store =
            HttpStore::open(path.rsplit_once('/').map_or(path, |(folder, _)| folder), limits, &self.options)?;
        Ok(HttpStore { query, meter: self.meter.clone(), ..store })
    }

    /// The URL as given.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The length of the file, from an answer with its front.
fn whole_length(url: &str, answer: &Answer) -> Result<u64> {
    let total =
        answer.total.ok_or_else(|| odd(url, "a part of the file without saying of how many bytes"))?;
    let came = answer.body.len() as u64;
    match answer.range {
        Some((0, last)) if last.checked_add(1) == Some(came) && came <= total => Ok(total),
        _ => Err(odd(url, &format!("{came} bytes that are not the front of the file, as it says"))),
    }
}

fn odd(url: &str, what: &str) -> Error {
    Error::new(ErrorKind::Io, format!("the server sent {what}, for {}", failure::shown(url)))
}

impl Source for HttpSource {
    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        pieces::read(&self.front, self.length, ranges, |pieces| self.fetch(pieces))
    }

    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        pieces::fill(buffer, self.read(&[ByteRange::new(offset, buffer.len() as u64)])?)
    }

    fn hints(&self) -> ReadHints {
        self.meter.hints(self.options.concurrency)
    }

    fn id(&self) -> Result<String> {
        Ok(format!("{}:{}:{}", self.url, self.length, self.tag.as_ref().map_or("", Tag::text)))
    }

    fn name(&self) -> String {
        failure::shown(&self.url)
    }

    fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }
}

impl HttpSource {
    /// Gets non-empty pieces, each of which one request can have.
    fn fetch(&self, pieces: Vec<ByteRange>) -> Result<Vec<Result<Bytes>>> {
        let url = self.found.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (home, tag, total) = (self.url.clone(), self.tag.clone(), self.length);
        let (options, meter) = (self.options.clone(), self.meter.clone());
        let most = options.concurrency;
        let work = async move {
            let get = |piece: ByteRange| {
                let last = piece.offset + piece.length - 1;
                let wish = Ask {
                    range: Some(format!("bytes={}-{last}", piece.offset)),
                    length: Some(piece.length),
                    tag: tag.clone(),
                    most: piece.length,
                    head_only: false,
                    room: Room::default(),
                };
                let (url, home) = (url.clone(), home.clone());
                let work = link::ask(url.clone(), home, wish, options.clone(), meter.clone());
                async move {
                    let answer = work.await?;
                    if answer.total.is_some_and(|now| now != total) {
                        return Err(failure::changed(&url));
                    }
                    match (answer.status, answer.range) {
                        (206, Some(range)) if range == (piece.offset, last) => Ok(answer.body),
                        (206, _) => Err(odd(&url, &format!("other bytes than {}-{last}", piece.offset))),
                        (416, _) => Err(failure::changed(&url)),
                        _ => Err(odd(&url, "the whole file where a part of it was asked for")),
                    }
                }
            };
            Ok(all(pieces, most, get).await)
        };
        engine()?.run(work)
    }
}

/// The files below a URL. Cannot be listed or written: its metadata must say what there is.
pub struct HttpStore {
    /// Without query and trailing `/`.
    base: String,
    query: Option<String>,
    limits: Limits,
    options: RemoteOptions,
    meter: Arc<Meter>,
}

impl fmt::Debug for HttpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpStore({})", self.name())
    }
}

impl HttpStore {
    /// The files below `url`. A query (a signature, perhaps) goes with every request.
    pub fn open(url: &str, limits: &Limits, options: &RemoteOptions) -> Result<Self> {
        let (base, query) = match url.split_once('?') {
            Some((base, query)) => (base, Some(query.to_owned())),
            None => (url, None),
        };
        Ok(HttpStore {
            base: base.trim_end_matches('/').to_owned(),
            query,
            limits: limits.clone(),
            options: options.clone(),
            meter: Arc::new(Meter::default()),
        })
    }

    fn url(&self, key: &str) -> Result<String> {
        check_key(key)?;
        let mut url = format!("{}/", self.base);
        for byte in key.bytes() {
            // What RFC 3986 lets stand in a path, without those that servers read in more than one way.
            if byte.is_ascii_alphanumeric() || b"/-._~!$'()*,;=:@".contains(&byte) {
                url.push(byte.into());
            } else {
                url.push_str(&format!("%{byte:02X}"));
            }
        }
        if let Some(query) = &self.query {
            url.push('?');
            url.push_str(query);
        }
        Ok(url)
    }

    fn head(&self, key: &str) -> Result<Option<Answer>> {
        let url = self.url(key)?;
        let wish =
            Ask { range: None, length: None, tag: None, most: 0, head_only: true, room: Room::default() };
        let work = link::ask(url.clone(), url, wish, self.options.clone(), self.meter.clone());
        absent(engine()?.run(work))
    }

    fn unlisted(&self) -> Error {
        Error::unsupported(format!("listing what is below {}, on a web server", failure::shown(&self.base)))
            .hint("a store with consolidated metadata needs no listing")
    }
}

/// What the server says does not exist is absent.
fn absent<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The part that was asked for, from what came.
fn taken(url: &str, part: Part, answer: Answer) -> Result<Bytes> {
    match (answer.status, part) {
        // A server without ranges.
        (200, _) => cut(&answer.body, part),
        (206, Part::Range(range)) => match answer.range {
            Some((first, last)) if (first, last) == (range.offset, range.offset + range.length - 1) => {
                Ok(answer.body)
            }
            Some((first, _)) if first == range.offset => Err(past_end(range, answer.total.unwrap_or(0))),
            _ => Err(odd(url, "other bytes than those asked for")),
        },
        (206, Part::Suffix(_)) => match (answer.range, answer.total) {
            (Some((_, last)), Some(total)) if last.checked_add(1) == Some(total) => Ok(answer.body),
            _ => Err(odd(url, "other bytes than the last ones")),
        },
        (416, Part::Range(range)) => Err(past_end(range, answer.total.unwrap_or(0))),
        // The last bytes of nothing.
        (416, Part::Suffix(_)) => Ok(Bytes::new()),
        (status, _) => Err(odd(url, &format!("HTTP {status}"))),
    }
}

impl Store for HttpStore {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        let Some(answer) = self.head(key)? else { return Ok(None) };
        match answer.content_length {
            Some(length) => Ok(Some(length)),
            None => Ok(self.get(key)?.map(|bytes| bytes.len() as u64)),
        }
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        let (options, meter, limit) = (self.options.clone(), self.meter.clone(), self.limits.chunk);
        let most = options.concurrency;
        let room = Room::new(gets.len(), self.limits.in_flight);
        let items: Vec<(Result<String>, Part, u64)> =
            gets.iter().map(|get| (self.url(&get.key), get.part, get.most.min(limit))).collect();
        let work = async move {
            let get = |(url, part, most): (Result<String>, Part, u64)| {
                let (options, meter, room) = (options.clone(), meter.clone(), room.clone());
                async move {
                    let url = url?;
                    let range = match part {
                        Part::Whole => None,
                        // Nothing cannot be asked for as a range; that there is such an object can.
                        Part::Range(r) if r.length == 0 => {
                            Some(r.offset.checked_sub(1).map_or((0, 0), |at| (at, at)))
                        }
                        Part::Range(r) => Some((r.offset, r.end().ok_or_else(|| past_end(r, u64::MAX))? - 1)),
                        Part::Suffix(_) => None,
                    };
                    let range = match (part, range) {
                        (_, Some((first, last))) => Some(format!("bytes={first}-{last}")),
                        (Part::Suffix(0), _) => Some("bytes=-1".to_owned()),
                        (Part::Suffix(n), _) => Some(format!("bytes=-{n}")),
                        _ => None,
                    };
                    let wish = Ask { range, length: None, tag: None, most, head_only: false, room };
                    let Some(answer) =
                        absent(link::ask(url.clone(), url.clone(), wish, options, meter).await)?
                    else {
                        return Ok(None);
                    };
                    match part {
                        Part::Range(r) if r.length == 0 && (answer.status == 206 || r.offset == 0) => {
                            Ok(Some(Bytes::new()))
                        }
                        Part::Suffix(0) => Ok(Some(Bytes::new())),
                        _ => taken(&url, part, answer).map(Some),
                    }
                }
            };
            Ok(all(items, most, get).await)
        };
        match engine().and_then(|engine| engine.run(work)) {
            Ok(answers) => answers,
            Err(e) => {
                let text = e.to_string();
                gets.iter().map(|_| Err(Error::new(ErrorKind::Io, text.clone()))).collect()
            }
        }
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        let Some(answer) = self.head(key)? else { return Ok(None) };
        let length = answer.content_length.map_or(String::new(), |n| n.to_string());
        Ok(Some(Version(answer.tag.map_or(length, |tag| tag.text().to_owned()))))
    }

    fn put(&self, _: &str, _: Bytes, _: &Precondition) -> Result<Version> {
        Err(read_only(&format!("the web server at {}", self.name())))
    }

    fn delete(&self, _: &str) -> Result<bool> {
        Err(read_only(&format!("the web server at {}", self.name())))
    }

    fn list(&self, _: &str) -> Result<Vec<String>> {
        Err(self.unlisted())
    }

    fn search(&self, _: &str) -> Result<Listing> {
        Err(self.unlisted())
    }

    fn hints(&self) -> ReadHints {
        self.meter.hints(self.options.concurrency)
    }

    fn name(&self) -> String {
        failure::shown(&self.base)
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        let source = absent(HttpSource::counted(&self.url(key)?, &self.options, self.meter.clone()))?;
        Ok(source.map(|source| Arc::new(source) as Arc<dyn Source>))
    }

    fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }
}
