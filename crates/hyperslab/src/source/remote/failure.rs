//! What went wrong with a request, in words that help: status, URL, and what the server sent instead.

use crate::error::{Error, ErrorKind};
use std::time::Duration;

/// A request that failed.
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether another try may do.
    pub(super) passing: bool,
    /// How long the server wants to be left alone.
    pub(super) wait: Option<Duration>,
}

impl Failure {
    pub(super) fn lasting(error: Error) -> Failure {
        Failure { error, passing: false, wait: None }
    }

    pub(super) fn passing(error: Error) -> Failure {
        Failure { error, passing: true, wait: None }
    }
}

/// Query parameters whose values let others in.
const SECRETS: &[&str] = &["signature", "sig", "token", "credential", "key", "password", "secret", "auth"];

/// A URL for messages: without password, and without the values of query parameters that are secrets.
pub(super) fn shown(url: &str) -> String {
    let (rest, query) = match url.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (url, None),
    };
    let mut text = match rest.split_once("://").and_then(|(scheme, rest)| {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (_, host) = authority.rsplit_once('@')?;
        Some(format!("{scheme}://{host}/{path}"))
    }) {
        Some(text) => text,
        None => rest.to_owned(),
    };
    for (i, pair) in query.iter().flat_map(|query| query.split('&')).enumerate() {
        text.push(if i == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_secret(name) => {
                text.push_str(name);
                text.push_str("=...");
            }
            _ => text.push_str(pair),
        }
    }
    text
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|secret| {
        name == *secret || name.ends_with(&format!("-{secret}")) || name.ends_with(&format!("_{secret}"))
    })
}

/// What a status means, with what the body says of it.
pub(super) fn of_status(url: &str, status: u16, reason: &str, body: &[u8], signed: bool) -> Failure {
    let said = meaning(body).map(|said| format!(": {said}")).unwrap_or_default();
    let text = format!("HTTP {status} {reason} for {}{said}", shown(url));
    let error = |kind| Error::new(kind, text);
    match status {
        404 | 410 => Failure::lasting(error(ErrorKind::NotFound)),
        401 => Failure::lasting(error(ErrorKind::Permission).hint("the server wants to know who you are")),
        403 if signed => Failure::lasting(
            error(ErrorKind::Permission).hint("the signed URL may have expired; get a new one"),
        ),
        403 | 407 | 451 => Failure::lasting(error(ErrorKind::Permission)),
        412 => Failure::lasting(changed(url)),
        408 | 425 | 429 | 500 | 502 | 503 | 504 => Failure::passing(error(ErrorKind::Io)),
        _ => Failure::lasting(error(ErrorKind::Io)),
    }
}

pub(super) fn changed(url: &str) -> Error {
    Error::new(ErrorKind::Changed, format!("{} was changed while it was being read", shown(url)))
        .hint("open it again")
}

/// A web page in place of the file.
pub(super) fn web_page(url: &str, status: u16, body: &[u8]) -> Error {
    let title = between(body, "<title>", "</title>").map(|t| format!(" (\"{t}\")")).unwrap_or_default();
    let text =
        format!("the server sent a web page{title}, not the file, with HTTP {status} for {}", shown(url));
    Error::new(ErrorKind::Io, text)
        .hint("open the URL in a browser: a login or an error page may be in the way")
}

/// Whether a body is a web page.
pub(super) fn is_web_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let starts = |tag: &str| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag.as_bytes()));
    starts("<!doctype html") || starts("<html") || starts("<head")
}

/// What the body of a failed request means, in one line: the title of a page, the code and message of an object store.
fn meaning(body: &[u8]) -> Option<String> {
    if is_web_page(body) {
        return between(body, "<title>", "</title>");
    }
    let code = between(body, "<Code>", "</Code>");
    let message = between(body, "<Message>", "</Message>");
    if code.is_some() || message.is_some() {
        return Some([code, message].into_iter().flatten().collect::<Vec<_>>().join(": "));
    }
    let text = String::from_utf8_lossy(body);
    tidy(text.lines().find(|line| !line.trim().is_empty())?)
}

fn between(body: &[u8], open: &str, close: &str) -> Option<String> {
    let text = String::from_utf8_lossy(body.get(..body.len().min(64 << 10))?);
    let lower = text.to_ascii_lowercase();
    let start = lower.find(&open.to_ascii_lowercase())? + open.len();
    let end = start + lower.get(start..)?.find(&close.to_ascii_lowercase())?;
    tidy(text.get(start..end)?)
}

/// One short line without control characters.
fn tidy(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).take(200).collect();
    (!line.is_empty()).then_some(line)
}

/// Words of failures to connect that do not get better in a second: nobody listens, no such name, a wrong certificate.
const HOPELESS: &[&str] = &["refused", "dns", "lookup", "certificate", "unreachable", "InvalidContentType"];

/// A request that never got an answer, or whose answer broke off.
pub(super) fn of_transport(url: &str, what: &str, error: &reqwest::Error) -> Failure {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut hopeless = false;
    // The innermost cause says most; reqwest's own text repeats the URL, secrets included.
    while let Some(inner) = cause {
        text = inner.to_string();
        hopeless |= HOPELESS.iter().any(|word| text.contains(word));
        cause = inner.source();
    }
    let error_of = |kind| Error::new(kind, format!("{what} {}: {text}", shown(url)));
    if error.is_builder() {
        return Failure::lasting(error_of(ErrorKind::InvalidArgument));
    }
    if error.is_redirect() {
        return Failure::lasting(error_of(ErrorKind::Io));
    }
    if error.is_connect() && hopeless {
        return Failure::lasting(
            error_of(ErrorKind::Io).hint("is the server's name right, and is it reachable?"),
        );
    }
    Failure::passing(error_of(ErrorKind::Io))
}
