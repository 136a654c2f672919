//! Tests of web servers as sources and stores, most of them of servers that do something wrong.

#[path = "../../../tests/support/server.rs"]
mod server;

use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::source::store::{Get, MemoryStore, Store, contract_tests};
use crate::source::{ByteRange, Source};
use server::{Fault, Request, Server};
use std::sync::Arc;

const FAST: Duration = Duration::from_millis(1);

fn options() -> RemoteOptions {
    RemoteOptions {
        first: 1000,
        retries: 2,
        delay: FAST,
        timeout: Duration::from_millis(300),
        ..RemoteOptions::default()
    }
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn server() -> Server {
    let server = Server::start(Duration::ZERO);
    server.put("/f", bytes(10_000));
    server
}

fn open(server: &Server) -> Result<HttpSource> {
    HttpSource::open(&server.url("/f"), &options())
}

fn read(source: &dyn Source, offset: u64, length: u64) -> Result<Vec<u8>> {
    Ok(source.read(&[ByteRange::new(offset, length)])?.remove(0).to_vec())
}

/// The error of reading with this fault, however often it is tried.
fn fails_reading(fault: Fault) -> Error {
    let server = server();
    let source = open(&server).unwrap();
    server.on(move |_| Some(fault.clone()));
    read(&source, 5000, 100).unwrap_err()
}

/// The errors of reading and of opening with this fault.
fn fails(fault: Fault) -> (Error, Error) {
    let server = server();
    let ordered = fault.clone();
    server.on(move |_| Some(ordered.clone()));
    (fails_reading(fault), open(&server).unwrap_err())
}

/// Reads with a fault that comes once, at opening and at reading, and counts the tries.
fn heals(fault: Fault) {
    let server = server();
    let ordered = fault.clone();
    server.on(move |r| (r.number == 0).then(|| ordered.clone()));
    let source = open(&server).unwrap();
    assert_eq!(source.traffic().retries, 1, "{fault:?}");
    let next = server.log().len();
    server.on(move |r| (r.number == next).then(|| fault.clone()));
    assert_eq!(read(&source, 5000, 100).unwrap(), &bytes(10_000)[5000..5100]);
    assert_eq!(source.traffic().retries, 2);
    assert_eq!(source.traffic().requests, server.log().len() as u64);
}

#[test]
fn a_file_is_read_by_ranges() {
    let server = server();
    let source = open(&server).unwrap();
    let all = bytes(10_000);
    assert_eq!(source.len().unwrap(), 10_000);
    // What the first request brought is not asked for again.
    assert_eq!(read(&source, 10, 900).unwrap(), &all[10..910]);
    assert_eq!(server.log().len(), 1);
    let ranges = [(0, 5), (9_990, 10), (2000, 3000), (10_000, 0), (990, 20)];
    let ranges: Vec<_> = ranges.iter().map(|&(o, n)| ByteRange::new(o, n)).collect();
    for (range, got) in ranges.iter().zip(source.read(&ranges).unwrap()) {
        assert_eq!(&got[..], &all[range.offset as usize..][..range.length as usize]);
    }
    assert_eq!(server.log().len(), 4);
    let mut buffer = [0; 100];
    source.read_into(7000, &mut buffer).unwrap();
    assert_eq!(&buffer[..], &all[7000..7100]);
    let beyond = |o, n| read(&source, o, n).unwrap_err().kind();
    assert_eq!(beyond(9_999, 2), ErrorKind::Truncated);
    assert_eq!(beyond(u64::MAX, 2), ErrorKind::Truncated);
    let traffic = source.traffic();
    assert_eq!((traffic.requests, traffic.bytes, traffic.retries), (5, 1000 + 10 + 3000 + 20 + 100, 0));
    assert!(server.log()[1..].iter().all(|r| r.header("if-match").is_some()));
    assert_eq!(source.id().unwrap(), open(&server).unwrap().id().unwrap());
}

#[test]
fn short_and_empty_files_need_one_request() {
    let server = server();
    server.put("/f", b"abc".to_vec());
    let source = open(&server).unwrap();
    assert_eq!((source.len().unwrap(), read(&source, 0, 3).unwrap()), (3, b"abc".to_vec()));
    server.put("/f", Vec::new());
    assert_eq!(open(&server).unwrap().len().unwrap(), 0);
    assert_eq!(server.log().len(), 2);
}

#[test]
fn many_requests_run_at_a_time() {
    let server = Server::start(Duration::from_millis(50));
    server.put("/f", bytes(10_000));
    let source = open(&server).unwrap();
    let ranges: Vec<_> = (0..48).map(|i| ByteRange::new(2000 + i * 100, 50)).collect();
    let begun = std::time::Instant::now();
    source.read(&ranges).unwrap();
    // One after the other they would take 2.4 s.
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
    let log = server.log();
    let together = |r: &Request| log.iter().filter(|o| o.begun <= r.ended && o.ended >= r.ended).count();
    assert!(log.iter().map(together).max().unwrap() >= 16);
    let hints = source.hints();
    assert!(hints.concurrency >= 16 && hints.latency == Latency::Remote);
}

#[test]
fn what_passes_is_tried_again() {
    for status in [500, 502, 503, 504, 429, 408] {
        heals(Fault::Status(status, "text/plain", "busy"));
    }
    heals(Fault::Later(503, 0));
    heals(Fault::Cut(50));
    heals(Fault::Close);
    heals(Fault::Stall(Duration::from_millis(600)));
    heals(Fault::Pause(Duration::from_millis(600)));
}

#[test]
fn every_kind_of_request_that_fails_once_is_tried_again() {
    type Work = fn(&HttpStore) -> Result<String>;
    let works: [(&str, Work); 6] = [
        ("whole", |s| Ok(format!("{:?}", s.get("f")?.map(|b| b.len())))),
        ("range", |s| Ok(format!("{:?}", s.get_range("f", ByteRange::new(5000, 10))?))),
        ("suffix", |s| Ok(format!("{:?}", s.get_many(&[Get::suffix("f", 10)]).remove(0)?))),
        ("length", |s| Ok(format!("{:?}", s.len("f")?))),
        ("version", |s| Ok(format!("{:?}", s.version("f")?))),
        ("open", |s| Ok(format!("{:?}", s.open("f")?.map(|o| o.len())))),
    ];
    let server = server();
    let files = HttpStore::open(&server.url(""), &Limits::default(), &options()).unwrap();
    for (name, work) in works {
        let right = work(&files).unwrap();
        for fault in
            [Fault::Status(503, "text/plain", ""), Fault::Status(500, "text/plain", ""), Fault::Close]
        {
            let (next, before) = (server.log().len(), files.traffic().retries);
            let ordered = fault.clone();
            server.on(move |r| (r.number == next).then(|| ordered.clone()));
            assert_eq!(work(&files).unwrap(), right, "{name} {fault:?}");
            assert_eq!(files.traffic().retries, before + 1, "{name} {fault:?}");
        }
        server.on(|_| Some(Fault::Status(403, "text/plain", "")));
        assert_eq!(work(&files).unwrap_err().kind(), ErrorKind::Permission, "{name}");
        server.on(|_| None);
    }
}

#[test]
fn a_server_is_left_alone_as_long_as_it_asks() {
    let server = server();
    server.on(|r| (r.number == 0).then_some(Fault::Later(429, 1)));
    let begun = std::time::Instant::now();
    open(&server).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn what_does_not_pass_is_an_error_with_status_and_url() {
    for status in [500, 503] {
        let (reading, opening) = fails(Fault::Status(status, "text/plain", "out of\norder"));
        for e in [reading, opening] {
            let text = e.to_string();
            assert_eq!(e.kind(), ErrorKind::Io, "{text}");
            assert!(text.contains(&format!("HTTP {status}")) && text.contains("/f: out of"), "{text}");
            assert!(text.contains("3 tries") && text.contains("http://127.0.0.1"), "{text}");
        }
    }
    let reading = fails_reading(Fault::Cut(50));
    assert_eq!(reading.kind(), ErrorKind::Io);
    assert!(reading.to_string().contains("broke off"), "{reading}");
}

#[test]
fn not_allowed_is_never_not_found() {
    let xml =
        "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    let (reading, opening) = fails(Fault::Status(403, "application/xml", xml));
    for e in [reading, opening] {
        assert_eq!(e.kind(), ErrorKind::Permission);
        assert!(e.to_string().contains("HTTP 403 Forbidden for http://127.0.0.1"), "{e}");
        assert!(e.to_string().contains("AccessDenied: Access Denied"), "{e}");
    }
    let server = server();
    let missing = HttpSource::open(&server.url("/none"), &options()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("HTTP 404"), "{missing}");
    assert_eq!(server.log().len(), 1);
}

#[test]
fn a_web_page_is_called_one() {
    let page = "\n<!DOCTYPE html><html><head><title>Log\n in</title></head></html>";
    let (_, opening) = fails(Fault::Status(200, "text/html; charset=utf-8", page));
    assert_eq!(opening.kind(), ErrorKind::Io);
    assert!(opening.to_string().contains("web page (\"Log in\"), not the file"), "{opening}");
    // One with an error status is summed up.
    let (_, opening) = fails(Fault::Status(400, "text/html", page));
    assert!(opening.to_string().ends_with("/f: Log in"), "{opening}");
}

#[test]
fn wrong_lengths_and_ranges_are_errors() {
    let reading = fails_reading(Fault::Short(10));
    assert!(reading.to_string().contains("90 bytes where 100 were asked for"), "{reading}");
    assert_eq!(reading.kind(), ErrorKind::Io);
    let reading = fails_reading(Fault::Elsewhere(10));
    assert_eq!(reading.kind(), ErrorKind::Io);
    let server = server();
    let source = open(&server).unwrap();
    server.on(|_| Some(Fault::Whole));
    let reading = read(&source, 5000, 100).unwrap_err();
    assert_eq!(reading.kind(), ErrorKind::Io, "{reading}");
    // Once is no more than a mishap.
    server.on(|r| (r.number == 2).then_some(Fault::Short(10)));
    assert_eq!(read(&source, 5000, 100).unwrap(), &bytes(10_000)[5000..5100]);
    assert_eq!(source.traffic().retries, 1);
}

#[test]
fn a_file_that_changed_is_an_error() {
    let server = server();
    let source = open(&server).unwrap();
    server.put("/f", bytes(9_000));
    let changed = read(&source, 5000, 100).unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Changed, "{changed}");
    assert_eq!(server.log().len(), 2);
    // A server that pays no heed to If-Match still says what it sends.
    server.on(|r| Some(Fault::Tag(if r.number == 2 { "one" } else { "two" })));
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 5000, 100).unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
fn redirections_are_followed_and_remembered() {
    let server = server();
    let to = server.url("/f?X-Amz-Signature=a%2Bb%2Fc%3D&x=1+2%20");
    server.put("/g", Vec::new());
    server.on(move |r| (r.path() == "/g").then(|| Fault::Redirect(to.clone())));
    let source = HttpSource::open(&server.url("/g"), &options()).unwrap();
    assert_eq!(read(&source, 5000, 10).unwrap(), &bytes(10_000)[5000..5010]);
    let targets: Vec<_> = server.log().iter().map(|r| r.target.clone()).collect();
    let signed = "/f?X-Amz-Signature=a%2Bb%2Fc%3D&x=1+2%20";
    assert_eq!(targets, ["/g", signed, signed]);
    // What it was redirected to has expired: it asks again where it was told to ask.
    let to = server.url("/f?new");
    server.on(move |r| match r.target.as_str() {
        "/g" => Some(Fault::Redirect(to.clone())),
        "/f?new" => None,
        _ => Some(Fault::Status(403, "text/plain", "expired")),
    });
    assert_eq!(read(&source, 5000, 10).unwrap(), &bytes(10_000)[5000..5010]);
    // A circle ends.
    let to = server.url("/g");
    server.on(move |_| Some(Fault::Redirect(to.clone())));
    assert_eq!(HttpSource::open(&server.url("/g"), &options()).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn signed_urls_are_sent_as_they_are_and_not_shown() {
    let server = server();
    server.put("/a%20b/%2B+c,%3D:@!$&'()*;~.h5", bytes(5_000));
    let target =
        "/a%20b/%2B+c,%3D:@!$&'()*;~.h5?X-Amz-Signature=s%2Fec+ret%3D&X-Amz-Date=2026%3A&Key-Pair-Id=&=&a";
    let source = HttpSource::open(&server.url(target), &options()).unwrap();
    read(&source, 3000, 10).unwrap();
    assert!(server.log().iter().all(|r| r.target == target), "{:?}", server.log());
    let name = source.name();
    assert!(name.contains("X-Amz-Signature=...") && name.contains("X-Amz-Date=2026%3A"), "{name}");
    server.on(|_| Some(Fault::Status(403, "text/plain", "Request has expired")));
    let text = HttpSource::open(&server.url(target), &options()).unwrap_err().to_string();
    assert!(!text.contains("ec+ret") && text.contains("may have expired"), "{text}");
    assert_eq!(failure::shown("https://me:pw@h.org/f?a=1"), "https://h.org/f?a=1");
}

#[test]
fn a_server_without_ranges_sends_the_file_whole() {
    let server = server();
    server.on(|_| Some(Fault::Whole));
    let source = open(&server).unwrap();
    assert_eq!(read(&source, 9_000, 1000).unwrap(), &bytes(10_000)[9_000..]);
    assert_eq!((server.log().len(), source.traffic().whole), (1, 1));
    let small = RemoteOptions { whole: 9_999, ..options() };
    let refused = HttpSource::open(&server.url("/f"), &small).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    assert!(refused.to_string().contains("10000 wanted, 9999 allowed"), "{refused}");
}

#[test]
fn a_server_that_hangs_is_given_up() {
    for fault in [Fault::Stall(Duration::from_millis(900)), Fault::Pause(Duration::from_millis(900))] {
        let server = server();
        server.on(move |_| Some(fault.clone()));
        let begun = std::time::Instant::now();
        let options = RemoteOptions { timeout: Duration::from_millis(100), ..options() };
        let e = HttpSource::open(&server.url("/f"), &options).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Io);
        assert!(e.to_string().contains("no byte came in 100ms from http://127.0.0.1"), "{e}");
        assert!(e.to_string().contains("3 tries") && begun.elapsed() < Duration::from_millis(850), "{e}");
    }
}

#[test]
fn a_server_that_drips_is_given_up() {
    let server = server();
    let source = open(&server).unwrap();
    server.on(|_| Some(Fault::Drip(Duration::from_millis(40))));
    let files = HttpStore::open(&server.url(""), &Limits::default(), &options()).unwrap();
    let works: [&dyn Fn() -> Result<()>; 3] =
        [&|| read(&source, 5000, 100).map(drop), &|| open(&server).map(drop), &|| files.get("f").map(drop)];
    for work in works {
        let begun = std::time::Instant::now();
        let e = work().unwrap_err();
        let text = e.to_string();
        assert_eq!(e.kind(), ErrorKind::Io);
        assert!(
            text.contains("only ") && text.contains("bytes came in 300ms from http://127.0.0.1"),
            "{text}"
        );
        assert!(text.contains("too slow") && begun.elapsed() < Duration::from_secs(3), "{text}");
    }
    // One that is slow but fast enough is waited for.
    let patient = RemoteOptions { slowest: 10, ..options() };
    server.on(|r| (r.number % 2 == 1).then_some(Fault::Drip(Duration::from_millis(4))));
    let source = HttpSource::open(&server.url("/f"), &patient).unwrap();
    assert_eq!(read(&source, 5000, 200).unwrap(), &bytes(10_000)[5000..5200]);
}

#[test]
fn answers_are_bounded_alone_and_together() {
    let server = server();
    let files = HttpStore::open(&server.url(""), &Limits::default(), &options()).unwrap();
    // What has no end is read up to the bound.
    server.on(|_| Some(Fault::Endless));
    let e = files.get_within("f", 100_000).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
    server.on(|_| None);
    assert_eq!(files.get_within("f", 9_999).unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(files.get_within("f", 10_000).unwrap().unwrap().len(), 10_000);
    let limits = Limits { in_flight: 25_000, ..Limits::default() };
    let files = HttpStore::open(&server.url(""), &limits, &options()).unwrap();
    let answers = files.get_many(&["f", "f", "f"].map(Get::whole));
    let failed: Vec<_> = answers.iter().filter_map(|a| a.as_ref().err()).collect();
    assert!(failed.len() == 1 && failed[0].kind() == ErrorKind::LimitExceeded, "{failed:?}");
    // What was not kept leaves its room to others: three tries of one that is cut, and two that are not.
    server.on(|r| (r.number % 2 == 0).then_some(Fault::Cut(9_000)));
    let answers = files.get_many(&["f", "f"].map(Get::whole));
    assert!(answers.iter().all(|a| a.is_ok()), "{answers:?}");
}

#[test]
fn encodings_that_nobody_asked_for() {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(&bytes(10_000)).unwrap();
    let zipped = out.finish().unwrap();
    let server = server();
    let order = |status, encoding, body: &[u8]| {
        let body = body.to_vec();
        server.on(move |_| Some(Fault::Encoded(status, encoding, body.clone())));
    };
    // A whole file is unpacked, within the limit.
    order(200, "gzip", &zipped);
    let source = open(&server).unwrap();
    assert_eq!(
        (source.len().unwrap(), read(&source, 5000, 5000).unwrap()),
        (10_000, bytes(10_000)[5000..].to_vec())
    );
    let small = RemoteOptions { whole: 9_999, ..options() };
    let refused = HttpSource::open(&server.url("/f"), &small).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    let files = HttpStore::open(&server.url(""), &Limits::default(), &options()).unwrap();
    assert_eq!(files.get("f").unwrap().unwrap(), bytes(10_000));
    assert_eq!(files.len("f").unwrap(), Some(10_000));
    order(200, "gzip", &zipped[..100]);
    assert!(open(&server).unwrap_err().to_string().contains("gzip encoding of http://"));
    // A part of something packed is nothing; other encodings are named.
    order(206, "gzip", &zipped[..100]);
    let e = open(&server).unwrap_err();
    assert!(e.to_string().contains("a part of http://") && e.to_string().contains("as gzip"), "{e}");
    order(200, "br", &zipped);
    let e = open(&server).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("encoding br"), "{e}");
}

#[test]
fn nobody_there_is_said_at_once() {
    let url = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/f", listener.local_addr().unwrap())
    };
    let begun = std::time::Instant::now();
    let e = HttpSource::open(&url, &RemoteOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::Io && e.to_string().contains(&url), "{e}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(HttpSource::open("http://", &options()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_connection_that_breaks_while_it_is_made_is_made_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/f", listener.local_addr().unwrap());
    let tries = std::thread::spawn(move || {
        // Accepted, and closed before a certificate was shown.
        (0..3).filter(|_| listener.accept().is_ok()).count()
    });
    let e = HttpSource::open(&url, &options()).unwrap_err();
    assert!(e.kind() == ErrorKind::Io && e.to_string().contains("3 tries"), "{e}");
    assert_eq!(tries.join().unwrap(), 3);
}

#[test]
fn works_inside_another_runtime() {
    let server = server();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { assert_eq!(open(&server).unwrap().len().unwrap(), 10_000) });
}

fn store(server: &Server) -> HttpStore {
    let memory = MemoryStore::new();
    contract_tests::fill(&memory);
    for key in memory.list("").unwrap() {
        let path: String = key
            .bytes()
            .map(|b| match b {
                b if b.is_ascii_alphanumeric() || b"/-.".contains(&b) => (b as char).to_string(),
                b => format!("%{b:02X}"),
            })
            .collect();
        server.put(&format!("/s/{path}"), memory.get(&key).unwrap().unwrap().to_vec());
    }
    HttpStore::open(&server.url("/s/?sig=a%2B"), &Limits::default(), &options()).unwrap()
}

#[test]
fn a_store_is_read() {
    let server = server();
    let store = store(&server);
    contract_tests::check_objects(&store);
    assert!(server.log().iter().all(|r| r.target.ends_with("?sig=a%2B")));
    assert_eq!(store.list("").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(store.search("a").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(
        store.put("a", Vec::new().into(), &Default::default()).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    // Without ranges too.
    server.on(|_| Some(Fault::Whole));
    contract_tests::check_objects(&store);
    // Not allowed, out of order, a page: never absent.
    for (status, kind, expected) in [
        (403, "text/plain", ErrorKind::Permission),
        (500, "text/plain", ErrorKind::Io),
        (200, "text/html", ErrorKind::Io),
    ] {
        let body = if status == 200 { "<html>hello" } else { "no" };
        server.on(move |_| Some(Fault::Status(status, kind, body)));
        assert_eq!(store.get("none").unwrap_err().kind(), expected);
    }
}

#[test]
fn pauses_double_and_end() {
    let options = RemoteOptions::default();
    assert_eq!(options.pause(1, None), Duration::from_millis(100));
    assert_eq!(options.pause(4, None), Duration::from_millis(800));
    assert_eq!(options.pause(4000, None), LONGEST_DELAY);
    assert_eq!(options.pause(1, Some(Duration::from_secs(2))), Duration::from_secs(2));
    assert_eq!(options.pause(1, Some(Duration::from_secs(2000))), LONGEST_DELAY);
}

#[test]
fn hints_follow_what_is_measured() {
    let meter = Meter::default();
    let before = meter.hints(16);
    for _ in 0..50 {
        meter.measured(Duration::from_millis(20), 1 << 20, Duration::from_millis(20));
    }
    let far = meter.hints(16);
    for _ in 0..50 {
        meter.measured(Duration::from_millis(1), 1 << 20, Duration::from_millis(100));
    }
    let near = meter.hints(16);
    assert!(
        near.gap <= before.gap && near.gap < far.gap && before.max_merged < far.max_merged,
        "{near:?} {before:?} {far:?}"
    );
}

#[test]
fn arcs_of_sources_are_shared_between_threads() {
    let server = server();
    let source: Arc<dyn Source> = Arc::new(open(&server).unwrap());
    std::thread::scope(|scope| {
        for i in 0..8 {
            let source = &source;
            scope.spawn(move || {
                assert_eq!(
                    read(source.as_ref(), 2000 + i, 10).unwrap(),
                    &bytes(10_000)[2000 + i as usize..][..10]
                );
            });
        }
    });
}
