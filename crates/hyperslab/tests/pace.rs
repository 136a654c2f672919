//! How fast much is read from far away. A binary of its own, so that no other test takes the processor meanwhile.

#[path = "support/server.rs"]
mod server;

use hyperslab::source::{ByteRange, HttpSource, RemoteOptions, Source};
use hyperslab::{Limits, OpenOptions, Selection};
use server::{Request, Server};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const LATENCY: Duration = Duration::from_millis(20);

/// One after the other: they measure.
static ALONE: Mutex<()> = Mutex::new(());

/// 100 chunks of 1 MiB on a server with so many bytes a second for each connection.
fn serve(rate: usize) -> (Server, String) {
    let path = format!("{}/tests/data/far_chunks.h5.zst", env!("CARGO_MANIFEST_DIR"));
    let server = Server::throttled(LATENCY, rate);
    server.put("/far_chunks.h5", zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap());
    let url = server.url("/far_chunks.h5");
    (server, url)
}

fn read_all(url: &str, options: &OpenOptions) {
    let file = hyperslab::open_with(url, options).unwrap();
    let data = file.array("/x").unwrap().read::<i32>(Selection::parse("[...]").unwrap()).unwrap().data;
    assert_eq!(data.len(), 100 << 18);
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

/// The most requests at one time.
fn together(log: &[Request]) -> usize {
    let at = |r: &Request| log.iter().filter(|o| o.begun <= r.begun && o.ended > r.begun).count();
    log.iter().map(at).max().unwrap_or(0)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn reading_much_takes_little_longer_than_the_transfer() {
    let _alone = ALONE.lock();
    // A link so slow that what this machine does beside counts little.
    let (server, url) = serve(2 << 20);
    let ranges: Vec<_> = (0..100).map(|i| ByteRange::new(4016 + (i << 20), 1 << 20)).collect();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let source = HttpSource::open(&url, &RemoteOptions::default()).unwrap();
        bare.push(timed(|| drop(source.read(&ranges).unwrap())));
        ours.push(timed(|| read_all(&url, &OpenOptions::new())));
    }
    let ratio = median(ours.clone()) / median(bare.clone());
    eprintln!("100 chunks of 1 MiB: {ratio:.2} times the bare transfer ({ours:.2?} s, {bare:.2?} s)");
    assert!(ratio <= 1.3, "{ratio:.2}: {ours:.2?} s, {bare:.2?} s");
    // What it takes does not come from luck: as many requests are under way as there are connections.
    server.forget();
    read_all(&url, &OpenOptions::new());
    assert!(together(&server.log()) >= 16, "{}", together(&server.log()));
}

#[test]
fn bytes_in_flight_are_bounded() {
    let _alone = ALONE.lock();
    let (server, url) = serve(64 << 20);
    let mut limits = Limits::default();
    limits.in_flight = 12 << 20;
    read_all(&url, &OpenOptions::new().with_limits(limits));
    // A third for what travels, one for what waits, one for what is decoded: 4 MiB travel. The server may note the end of an
    // answer long after we have it, hence twice that; without the bound it is all that the connections carry, 16 MiB or more.
    let log = server.log();
    let most = together(&log) * log.iter().map(|r| r.sent).max().unwrap();
    assert!(most <= 8 << 20, "{most} bytes at a time");
}
