//! A small object store for tests, on this machine only: it keeps its objects in memory and speaks as much of a provider's
//! protocol as a store needs, in pages of a few names.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Whose protocol it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    S3,
    Google,
    Azure,
}

/// Names in one page of a listing.
const PAGE: usize = 3;

/// In place of a status: no answer, none for long, half of one.
pub const CLOSE: u16 = 1;
pub const STALL: u16 = 2;
pub const CUT: u16 = 3;
/// A web page with status 200; the whole object, whatever was asked for; a byte now and then; an answer without end.
pub const PAGE_IN_PLACE: u16 = 4;
pub const WHOLE: u16 = 5;
pub const DRIP: u16 = 6;
pub const ENDLESS: u16 = 7;
/// Listings that say that there is more, and lead back to where they began; that lead on for ever, to pages without names
/// or with the same names.
pub const CIRCLE: u16 = 8;
pub const NOTHING_MORE: u16 = 9;
pub const THE_SAME: u16 = 10;
/// What was asked for is done, and the answer lost: the connection breaks, or the server says 503. Somebody else writes the
/// object first, and the answer is 503.
pub const LOST: u16 = 11;
pub const DONE_503: u16 = 12;
pub const OVERTAKEN_503: u16 = 13;
/// The answer after a while, so that others can be asked for at the same time.
pub const LATE: u16 = 14;

const DATE: &str = "Mon, 02 Jan 2006 15:04:05 GMT";

#[derive(Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, (Vec<u8>, u64)>>,
    changes: Mutex<u64>,
    /// Statuses of the next answers, the last one first, and how often the last of all is repeated.
    faults: Mutex<Vec<(u16, usize)>>,
    log: Mutex<Vec<Request>>,
    /// Parts of objects by the name of the upload and their numbers.
    uploads: Mutex<HashMap<String, BTreeMap<usize, Vec<u8>>>>,
    /// Bytes of answers without end that were taken.
    endless: Mutex<usize>,
    /// Late answers that are waited for, and the most that ever were.
    late: Mutex<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: HashMap<String, String>,
}

/// A running server with one bucket, called `bucket`.
pub struct Bucket {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Bucket {
    pub fn start(dialect: Dialect) -> Bucket {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let served = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                std::thread::spawn(move || {
                    let _ = serve(stream, dialect, &served);
                });
            }
        });
        Bucket { shared, address }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers the next `times` requests with a status, or breaks off: [`CLOSE`], [`STALL`], [`CUT`].
    pub fn fail(&self, status: u16, times: usize) {
        *self.shared.faults.lock().unwrap() = vec![(status, times)];
    }

    /// The same, of requests behind the next `first` ones.
    pub fn fail_behind(&self, first: usize, status: u16, times: usize) {
        *self.shared.faults.lock().unwrap() = vec![(status, times), (0, first)];
    }

    /// Uploads that were neither completed nor given up.
    pub fn uploads(&self) -> usize {
        self.shared.uploads.lock().unwrap().len()
    }

    /// Bytes of answers without end that anybody took.
    pub fn endless(&self) -> usize {
        *self.shared.endless.lock().unwrap()
    }

    /// The most late answers that were waited for at the same time.
    pub fn most_at_once(&self) -> usize {
        self.shared.late.lock().unwrap().1
    }

    pub fn log(&self) -> Vec<Request> {
        self.shared.log.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, dialect: Dialect, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
                None => break,
            };
        }
        let length = headers.get("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut request = Request { method, target, headers };
        shared.log.lock().unwrap().push(request.clone());
        let mut faults = shared.faults.lock().unwrap();
        while faults.len() > 1 && faults.last().is_some_and(|(_, times)| *times == 0) {
            faults.pop();
        }
        let fault = match faults.last_mut() {
            Some((status, times)) if *times > 0 => {
                *times -= 1;
                Some(*status).filter(|&status| status != 0)
            }
            _ => None,
        };
        drop(faults);
        let answer = match fault {
            Some(CLOSE) => return Ok(()),
            Some(STALL) => {
                std::thread::sleep(std::time::Duration::from_millis(1200));
                return Ok(());
            }
            Some(CUT) => {
                let answer = answer(&request, body, dialect, shared);
                let mut head =
                    format!("HTTP/1.1 {} x\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
                for (name, value) in answer.headers.iter().filter(|(name, _)| *name != "Content-Length") {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                out.write_all(head.as_bytes())?;
                out.write_all(b"\r\n")?;
                return out.write_all(&answer.body[..answer.body.len() / 2]);
            }
            Some(PAGE_IN_PLACE) => Answer {
                status: 200,
                headers: vec![
                    ("Content-Type", "text/html; charset=utf-8".into()),
                    ("Last-Modified", DATE.into()),
                ],
                body: b"<!DOCTYPE html><html><title>Log in</title></html>".to_vec(),
            },
            Some(LOST) => {
                answer(&request, body, dialect, shared);
                return Ok(());
            }
            Some(DONE_503) => {
                answer(&request, body, dialect, shared);
                said(503, "SlowDown", "it was done all the same")
            }
            Some(OVERTAKEN_503) => {
                let headers: HashMap<_, _> = request
                    .headers
                    .clone()
                    .into_iter()
                    .filter(|(name, _)| !name.starts_with("if-"))
                    .collect();
                let headers =
                    headers.into_iter().filter(|(name, _)| name != "x-goog-if-generation-match").collect();
                let other = Request { headers, ..request.clone() };
                answer(&other, b"somebody else's".to_vec(), dialect, shared);
                said(503, "SlowDown", "somebody else was faster")
            }
            Some(WHOLE) => {
                request.headers.retain(|name, _| name != "range" && name != "x-ms-range");
                answer(&request, body, dialect, shared)
            }
            Some(fault @ (DRIP | ENDLESS)) => {
                let mut head = String::from("HTTP/1.1 206 x\r\nContent-Range: bytes 1-999999/1000000\r\n");
                let headers = [
                    ("ETag", "\"1\""),
                    ("Last-Modified", DATE),
                    ("x-goog-generation", "1"),
                    ("Connection", "close"),
                ];
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                out.write_all(head.replace("206", if fault == ENDLESS { "200" } else { "206" }).as_bytes())?;
                if fault == DRIP {
                    out.write_all(b"Content-Length: 999999\r\n\r\n")?;
                    loop {
                        out.write_all(b"x")?;
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                }
                out.write_all(b"\r\n")?;
                loop {
                    out.write_all(&[b' '; 16 << 10])?;
                    *shared.endless.lock().unwrap() += 16 << 10;
                }
            }
            Some(fault @ (CIRCLE | NOTHING_MORE | THE_SAME)) => {
                let mut answer = answer(&request, body, dialect, shared);
                let text = String::from_utf8(answer.body).unwrap();
                let number = shared.log.lock().unwrap().len();
                let token = if fault == CIRCLE { "a".to_owned() } else { format!("!{number}") };
                let (head, tail) = match dialect {
                    Dialect::Azure => ("<Blobs>", "</Blobs>"),
                    _ => ("<ListBucketResult>", "<IsTruncated>"),
                };
                let names = match fault {
                    THE_SAME => text.split_once(head).unwrap().1.split_once(tail).unwrap().0,
                    _ => "",
                };
                let xml = match dialect {
                    Dialect::Azure => format!(
                        "<EnumerationResults><Blobs>{names}</Blobs><NextMarker>{token}</NextMarker></EnumerationResults>"
                    ),
                    _ => format!(
                        "<ListBucketResult>{names}<IsTruncated>true</IsTruncated>\
                         <NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
                    ),
                };
                answer.body = xml.into_bytes();
                answer
            }
            Some(LATE) => {
                let waiting = |more: bool| {
                    let mut late = shared.late.lock().unwrap();
                    late.0 = if more { late.0 + 1 } else { late.0 - 1 };
                    late.1 = late.1.max(late.0);
                };
                waiting(true);
                std::thread::sleep(std::time::Duration::from_millis(200));
                waiting(false);
                answer(&request, body, dialect, shared)
            }
            Some(status) => said(status, "Ordered", "as the test wants it"),
            None => answer(&request, body, dialect, shared),
        };
        let mut head = format!("HTTP/1.1 {} x\r\n", answer.status);
        let known = answer.headers.iter().any(|(name, _)| *name == "Content-Length");
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !known {
            head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
        }
        head.push_str("\r\n");
        out.write_all(head.as_bytes())?;
        if request.method != "HEAD" {
            out.write_all(&answer.body)?;
        }
    }
}

fn said(status: u16, code: &str, message: &str) -> Answer {
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>");
    Answer { status, headers: vec![("Content-Type", "application/xml".into())], body: body.into_bytes() }
}

fn decode(text: &str) -> String {
    let (bytes, mut out, mut i) = (text.as_bytes(), Vec::new(), 0);
    while i < bytes.len() {
        if bytes[i] == b'%' {
            out.push(u8::from_str_radix(&text[i + 1..i + 3], 16).unwrap());
            i += 3;
        } else {
            out.push(if bytes[i] == b'+' { b' ' } else { bytes[i] });
            i += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

fn answer(request: &Request, body: Vec<u8>, dialect: Dialect, shared: &Shared) -> Answer {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let query: HashMap<String, String> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decode(value)))
        .collect();
    let path = decode(&path.replace('+', "%2B"));
    let path = path.trim_start_matches('/');
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket != "bucket" {
        return said(404, "NoSuchBucket", "there is no such bucket");
    }
    let upload = query.get("uploadId").cloned();
    if dialect == Dialect::S3 && request.method == "POST" && request.target.contains("?uploads") {
        let mut changes = shared.changes.lock().unwrap();
        *changes += 1;
        let body = format!(
            "<InitiateMultipartUploadResult><UploadId>{}</UploadId></InitiateMultipartUploadResult>",
            *changes
        );
        shared.uploads.lock().unwrap().insert(changes.to_string(), BTreeMap::new());
        return Answer { status: 200, headers: Vec::new(), body: body.into_bytes() };
    }
    if let Some(upload) = upload.filter(|_| dialect == Dialect::S3) {
        let mut uploads = shared.uploads.lock().unwrap();
        if request.method == "DELETE" {
            uploads.remove(&upload);
            return Answer { status: 204, headers: Vec::new(), body: Vec::new() };
        }
        let Some(parts) = uploads.get_mut(&upload) else { return said(404, "NoSuchUpload", "there is none") };
        if request.method == "PUT" {
            parts.insert(query["partNumber"].parse().unwrap(), body);
            let tag = format!("\"part{}\"", query["partNumber"]);
            return Answer { status: 200, headers: vec![("ETag", tag)], body: Vec::new() };
        }
        let text = String::from_utf8(body).unwrap();
        assert_eq!(text.matches("<PartNumber>").count(), parts.len(), "{text}");
        let whole = std::mem::take(parts).into_values().collect::<Vec<_>>().concat();
        uploads.remove(&upload);
        let mut changes = shared.changes.lock().unwrap();
        *changes += 1;
        shared.objects.lock().unwrap().insert(key.to_owned(), (whole, *changes));
        let body = format!(
            "<CompleteMultipartUploadResult><ETag>&quot;{}&quot;</ETag></CompleteMultipartUploadResult>",
            *changes
        );
        return Answer { status: 200, headers: Vec::new(), body: body.into_bytes() };
    }
    if request.method == "POST" {
        // Many at a time are deleted, which one is too.
        let text = String::from_utf8(body).unwrap();
        if dialect == Dialect::Azure {
            let target = text.split_once("DELETE /bucket/").unwrap().1.split(' ').next().unwrap();
            shared.objects.lock().unwrap().remove(&decode(&target.replace('+', "%2B")));
            let part = "Content-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n";
            let body = format!("--end\r\n{part}\r\n--end--\r\n").into_bytes();
            return Answer {
                status: 202,
                headers: vec![("Content-Type", "multipart/mixed; boundary=end".into())],
                body,
            };
        }
        let key = text.split_once("<Key>").and_then(|(_, rest)| rest.split_once("</Key>")).unwrap().0;
        let name = key.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        shared.objects.lock().unwrap().remove(&name);
        let body = format!("<DeleteResult><Deleted><Key>{key}</Key></Deleted></DeleteResult>");
        return Answer { status: 200, headers: Vec::new(), body: body.into_bytes() };
    }
    if key.is_empty() {
        return list(&query, dialect, shared);
    }
    let mut objects = shared.objects.lock().unwrap();
    let found = objects.get(key).cloned();
    let tag = |change: u64| format!("\"{change}\"");
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    let wanted = match dialect {
        Dialect::Google => header("x-goog-if-generation-match").map(str::to_owned),
        _ => header("if-match").map(str::to_owned),
    };
    let state = found.as_ref().map(|(_, change)| match dialect {
        Dialect::Google => change.to_string(),
        _ => tag(*change),
    });
    let marks = |change: u64| {
        vec![
            ("ETag", tag(change)),
            ("Last-Modified", DATE.to_owned()),
            ("x-goog-generation", change.to_string()),
            ("Content-Type", "application/octet-stream".to_owned()),
        ]
    };
    match request.method.as_str() {
        "PUT" => {
            let azure = dialect != Dialect::Azure || header("x-ms-blob-type") == Some("BlockBlob");
            assert!(azure, "{request:?}");
            if header("if-none-match") == Some("*") && found.is_some() {
                let status = if dialect == Dialect::Azure { 409 } else { 412 };
                return said(status, "BlobAlreadyExists", "there is one");
            }
            let absent = dialect == Dialect::Google && wanted.as_deref() == Some("0") && found.is_none();
            if wanted.is_some() && wanted != state && !absent {
                return said(412, "ConditionNotMet", "it is in another state");
            }
            let mut changes = shared.changes.lock().unwrap();
            *changes += 1;
            objects.insert(key.to_owned(), (body, *changes));
            let status = if dialect == Dialect::Azure { 201 } else { 200 };
            Answer { status, headers: marks(*changes), body: Vec::new() }
        }
        "DELETE" => match objects.remove(key) {
            Some(_) => {
                let status = if dialect == Dialect::Azure { 202 } else { 204 };
                Answer { status, headers: Vec::new(), body: Vec::new() }
            }
            None => said(404, "NoSuchKey", "there is no such object"),
        },
        _ => {
            let Some((bytes, change)) = found else {
                return said(404, "NoSuchKey", "there is no such object");
            };
            if header("if-match").is_some_and(|wanted| wanted != tag(change)) {
                return said(412, "PreconditionFailed", "it is in another state");
            }
            let mut headers = marks(change);
            if request.method == "HEAD" {
                headers.push(("Content-Length", bytes.len().to_string()));
                return Answer { status: 200, headers, body: Vec::new() };
            }
            let range = header("range").or(header("x-ms-range")).and_then(|r| r.strip_prefix("bytes="));
            let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
                return Answer { status: 200, headers, body: bytes };
            };
            let total = bytes.len();
            let (first, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) => (first, (last + 1).min(total)),
                (Ok(first), Err(_)) => (first, total),
                (Err(_), Ok(n)) => (total.saturating_sub(n), total),
                _ => (0, total),
            };
            if first >= total {
                return said(416, "InvalidRange", "there are not as many bytes");
            }
            headers.push(("Content-Range", format!("bytes {first}-{}/{total}", end - 1)));
            Answer { status: 206, headers, body: bytes[first..end].to_vec() }
        }
    }
}

/// One page of names.
fn list(query: &HashMap<String, String>, dialect: Dialect, shared: &Shared) -> Answer {
    let get = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let (prefix, delimited) = (get("prefix"), get("delimiter") == "/");
    let after = if dialect == Dialect::Azure { get("marker") } else { get("continuation-token") };
    let objects = shared.objects.lock().unwrap();
    // A name of an object, or a prefix that ends in `/`.
    let names: BTreeSet<String> = objects
        .keys()
        .filter_map(|key| {
            let rest = key.strip_prefix(prefix)?;
            Some(match rest.find('/').filter(|_| delimited) {
                Some(at) => format!("{prefix}{}", &rest[..=at]),
                None => key.clone(),
            })
        })
        .filter(|name| name.as_str() > after)
        .collect();
    let page: Vec<&String> = names.iter().take(PAGE).collect();
    let next = page.last().filter(|_| names.len() > PAGE).map(|last| escaped(last)).unwrap_or_default();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>");
    let azure = dialect == Dialect::Azure;
    xml.push_str(if azure { "<EnumerationResults><Blobs>" } else { "<ListBucketResult>" });
    for name in page {
        let shown = escaped(name);
        xml.push_str(&match (objects.get(name), azure) {
            (Some((bytes, change)), true) => format!(
                "<Blob><Name>{shown}</Name><Properties><Last-Modified>{DATE}</Last-Modified><Content-Length>{}</Content-Length>\
                 <Content-Type>x</Content-Type><Etag>{change}</Etag></Properties></Blob>",
                bytes.len()
            ),
            (Some((bytes, change)), false) => format!(
                "<Contents><Key>{shown}</Key><Size>{}</Size><LastModified>2006-01-02T15:04:05Z</LastModified>\
                 <ETag>&quot;{change}&quot;</ETag></Contents>",
                bytes.len()
            ),
            (None, true) => format!("<BlobPrefix><Name>{shown}</Name></BlobPrefix>"),
            (None, false) => format!("<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>"),
        });
    }
    xml.push_str(&if azure {
        format!("</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>")
    } else if next.is_empty() {
        "<IsTruncated>false</IsTruncated></ListBucketResult>".to_owned()
    } else {
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>")
    });
    Answer { status: 200, headers: vec![("Content-Type", "application/xml".into())], body: xml.into_bytes() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
