//! A web server for tests: on this machine only, with a latency, a log, and faults to order.
#![allow(dead_code, unreachable_pub)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query, undecoded.
    pub target: String,
    pub headers: HashMap<String, String>,
    /// How many came before it.
    pub number: usize,
    pub begun: Instant,
    pub ended: Instant,
    /// Bytes of the body that was sent.
    pub sent: usize,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What the server does instead of what it should.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A status with a body of a type.
    Status(u16, &'static str, &'static str),
    /// A status that asks to come back after so many seconds.
    Later(u16, u64),
    /// The right headers and only so many bytes.
    Cut(usize),
    /// So many bytes fewer than asked for, with headers that fit.
    Short(usize),
    /// Bytes from so many further on.
    Elsewhere(usize),
    /// No answer at all.
    Close,
    /// Nothing for so long.
    Stall(Duration),
    /// Go there.
    Redirect(String),
    /// The answer has this entity tag.
    Tag(&'static str),
    /// The whole file, whatever was asked for.
    Whole,
    /// A byte now and then, with so much time between.
    Drip(Duration),
    /// Spaces without end, as many as anybody takes.
    Endless,
    /// Half of the bytes, then nothing for so long.
    Pause(Duration),
    /// The bytes in an encoding, with this status: all of them, or those that were asked for.
    Encoded(u16, &'static str, Vec<u8>),
}

/// Bytes and entity tag.
type File = Arc<(Vec<u8>, String)>;
type Order = Box<dyn Fn(&Request) -> Option<Fault> + Send + Sync>;

struct Shared {
    files: Mutex<HashMap<String, File>>,
    order: Mutex<Order>,
    log: Mutex<Vec<Request>>,
    count: AtomicUsize,
    latency: Duration,
    /// Bytes a second of one connection; 0 is as fast as can be.
    rate: usize,
    stop: AtomicBool,
}

/// A running server; it ends with this value.
pub struct Server {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

impl Server {
    pub fn start(latency: Duration) -> Server {
        Server::throttled(latency, 0)
    }

    pub fn throttled(latency: Duration, rate: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            files: Mutex::default(),
            order: Mutex::new(Box::new(|_| None)),
            log: Mutex::default(),
            count: AtomicUsize::new(0),
            latency,
            rate,
            stop: AtomicBool::new(false),
        });
        let served = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.stop.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let served = served.clone();
                std::thread::spawn(move || {
                    let _ = serve(stream, &served);
                });
            }
        });
        Server { shared, address }
    }

    /// Puts a file at `path`, which begins with `/` and is compared undecoded.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        let tag = format!("\"{:016x}\"", hash(&bytes));
        self.shared.files.lock().unwrap().insert(path.into(), Arc::new((bytes, tag)));
    }

    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// Orders faults.
    pub fn on(&self, order: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        *self.shared.order.lock().unwrap() = Box::new(order);
    }

    /// Every request so far, in the order in which they came.
    pub fn log(&self) -> Vec<Request> {
        let mut log = self.shared.log.lock().unwrap().clone();
        log.sort_by_key(|r| r.number);
        log
    }

    pub fn forget(&self) {
        self.shared.log.lock().unwrap().clear();
    }

    /// Requests, bytes, and waves of requests one after the other.
    pub fn count(&self) -> (usize, usize, usize) {
        let log = self.log();
        let mut waves = 0;
        let mut wave_ends: Option<Instant> = None;
        for request in &log {
            if wave_ends.is_none_or(|end| request.begun >= end) {
                waves += 1;
                wave_ends = Some(request.ended);
            }
        }
        (log.len(), log.iter().map(|r| r.sent).sum(), waves)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let begun = Instant::now();
        let mut words = line.split_whitespace();
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (method, target) = (method.to_owned(), target.to_owned());
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
        reader.read_exact(&mut vec![0; length])?;
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        let mut request = Request { method, target, headers, number, begun, ended: begun, sent: 0 };
        std::thread::sleep(shared.latency);
        // Before the answer, so that whoever has the answer finds it.
        request.ended = Instant::now();
        shared.log.lock().unwrap().push(request.clone());
        let goes_on = answer(&mut out, &mut request, shared);
        if let Some(logged) = shared.log.lock().unwrap().iter_mut().find(|r| r.number == number) {
            (logged.ended, logged.sent) = (Instant::now(), request.sent);
        }
        if !goes_on? {
            return Ok(());
        }
    }
}

/// Answers one request; whether the connection goes on.
fn answer(out: &mut TcpStream, request: &mut Request, shared: &Shared) -> std::io::Result<bool> {
    let fault = (shared.order.lock().unwrap())(request);
    let file = shared.files.lock().unwrap().get(request.path()).cloned();
    let plain = |out: &mut TcpStream, status: u16, kind: &str, more: &str, body: &str| {
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\r\n",
            body.len()
        );
        out.write_all(head.as_bytes())?;
        if request.method != "HEAD" {
            out.write_all(body.as_bytes())?;
        }
        Ok(true)
    };
    match &fault {
        Some(Fault::Status(status, kind, body)) => return plain(out, *status, kind, "", body),
        Some(Fault::Later(status, seconds)) => {
            return plain(out, *status, "text/plain", &format!("Retry-After: {seconds}\r\n"), "");
        }
        Some(Fault::Redirect(to)) => {
            return plain(out, 302, "text/plain", &format!("Location: {to}\r\n"), "");
        }
        Some(Fault::Close) => return Ok(false),
        Some(Fault::Stall(time)) => std::thread::sleep(*time),
        _ => {}
    }
    if let Some(Fault::Endless) = fault {
        out.write_all(b"HTTP/1.1 200 x\r\nETag: \"e\"\r\nConnection: close\r\n\r\n")?;
        while !shared.stop.load(Ordering::Relaxed) && out.write_all(&[b' '; 16 << 10]).is_ok() {
            request.sent += 16 << 10;
        }
        return Ok(false);
    }
    let Some(file) = file else { return plain(out, 404, "text/plain", "", "no such file") };
    let tag = match fault {
        Some(Fault::Tag(tag)) => format!("\"{tag}\""),
        _ => file.1.clone(),
    };
    let file = &file.0;
    if request.header("if-match").is_some_and(|wanted| wanted != tag) {
        return plain(out, 412, "text/plain", "", "");
    }
    let total = file.len();
    let ranged =
        request.header("range").and_then(|r| r.strip_prefix("bytes=")).and_then(|r| r.split_once('-'));
    let ranged = ranged.filter(|_| !matches!(fault, Some(Fault::Whole)));
    let (mut first, last) = match ranged {
        Some(("", n)) => (total.saturating_sub(n.parse().unwrap()), total),
        Some((first, "")) => (first.parse().unwrap(), total),
        Some((first, last)) => (first.parse().unwrap(), (last.parse::<usize>().unwrap() + 1).min(total)),
        None => (0, total),
    };
    if ranged.is_some() && first >= total {
        return plain(out, 416, "text/plain", &format!("Content-Range: bytes */{total}\r\n"), "");
    }
    if let Some(Fault::Encoded(status, encoding, body)) = fault {
        let head = format!(
            "HTTP/1.1 {status} x\r\nETag: {tag}\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\
             Content-Range: bytes {first}-{}/{total}\r\n\r\n",
            body.len(),
            last - 1
        );
        out.write_all(head.as_bytes())?;
        if request.method != "HEAD" {
            out.write_all(&body)?;
        }
        return Ok(true);
    }
    let mut last = last;
    match fault {
        Some(Fault::Short(n)) => last -= n,
        Some(Fault::Elsewhere(n)) => first += n,
        _ => {}
    }
    let body = &file[first..last];
    let mut head = match ranged {
        Some(_) => format!("HTTP/1.1 206 x\r\nContent-Range: bytes {first}-{}/{total}\r\n", last - 1),
        None => "HTTP/1.1 200 x\r\n".to_owned(),
    };
    head.push_str(&format!("ETag: {tag}\r\nContent-Length: {}\r\n\r\n", body.len()));
    out.write_all(head.as_bytes())?;
    if request.method == "HEAD" {
        return Ok(true);
    }
    if let Some(Fault::Cut(n)) = fault {
        out.write_all(&body[..n.min(body.len())])?;
        return Ok(false);
    }
    if let Some(Fault::Drip(time)) = fault {
        for byte in body {
            out.write_all(&[*byte])?;
            request.sent += 1;
            std::thread::sleep(time);
        }
        return Ok(true);
    }
    if let Some(Fault::Pause(time)) = fault {
        let (one, two) = body.split_at(body.len() / 2);
        out.write_all(one)?;
        std::thread::sleep(time);
        out.write_all(two)?;
        return Ok(true);
    }
    request.sent = body.len();
    // Before it goes, so that whoever has it finds it in the log.
    if let Some(logged) = shared.log.lock().unwrap().iter_mut().find(|r| r.number == request.number) {
        logged.sent = request.sent;
    }
    if shared.rate == 0 {
        out.write_all(body)?;
    } else {
        for piece in body.chunks(64 << 10) {
            let begun = Instant::now();
            out.write_all(piece)?;
            let wanted = Duration::from_secs_f64(piece.len() as f64 / shared.rate as f64);
            std::thread::sleep(wanted.saturating_sub(begun.elapsed()));
        }
    }
    Ok(true)
}
