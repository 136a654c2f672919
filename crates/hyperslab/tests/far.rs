//! Files that are far away: how many requests, round trips and bytes it takes to get at what is in them.

#[path = "support/server.rs"]
mod server;

use hyperslab::source::{ByteRange, HttpSource, RemoteOptions, Source};
use hyperslab::{File, Object, Selection};
use server::{Fault, Server};
use std::time::{Duration, Instant};

const LATENCY: Duration = Duration::from_millis(20);

/// A fixture, which is stored compressed.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}.zst", env!("CARGO_MANIFEST_DIR"));
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

fn serve(name: &str, latency: Duration, rate: usize) -> Server {
    let server = Server::throttled(latency, rate);
    server.put(&format!("/{name}"), fixture(name));
    server
}

fn sel(text: &str) -> Selection {
    Selection::parse(text).unwrap()
}

/// Looks at everything but the elements of arrays; how many objects there are.
fn look(file: &File) -> usize {
    let mut objects = 0;
    for entry in file.walk() {
        let Ok(object) = entry.open(file) else { continue };
        match &object {
            Object::Array(array) => {
                for attribute in array.attributes().unwrap() {
                    array.attribute_value(&attribute.unwrap()).unwrap();
                }
            }
            Object::Group(group) => drop(group.attributes().unwrap()),
            _ => {}
        }
        objects += 1;
    }
    objects
}

#[test]
fn a_netcdf_file_is_opened_and_a_slice_of_it_read_in_few_requests() {
    let server = serve("far_netcdf.nc", LATENCY, 0);
    let file = hyperslab::open(server.url("/far_netcdf.nc")).unwrap();
    assert_eq!(look(&file), 22);
    let slice: Vec<f32> = file.array("/var07").unwrap().read(sel("[3, 10:20, ::7]")).unwrap().data;
    assert_eq!(slice.len(), 10 * 19);
    let (requests, bytes, waves) = server.count();
    assert!(
        requests <= 6 && waves <= 4 && bytes <= 1_000_000,
        "{requests} requests, {waves} waves, {bytes} bytes"
    );
    let traffic = file.traffic();
    assert_eq!((traffic.requests, traffic.bytes, traffic.retries), (requests as u64, bytes as u64, 0));
    assert!(traffic.hits > 0);
}

#[test]
fn two_thousand_objects_are_listed_in_few_requests() {
    let server = serve("far_objects.h5", LATENCY, 0);
    let file = hyperslab::open(server.url("/far_objects.h5")).unwrap();
    assert_eq!(look(&file), 2001);
    let (requests, bytes, waves) = server.count();
    assert!(requests <= 30, "{requests} requests, {waves} waves, {bytes} bytes");
}

#[test]
fn reading_much_takes_little_longer_than_the_transfer() {
    // A link with a latency and connections of a limited rate.
    let server = serve("far_chunks.h5", LATENCY, 20 << 20);
    let url = server.url("/far_chunks.h5");
    let ranges: Vec<_> = (0..100).map(|i| ByteRange::new(4016 + (i << 20), 1 << 20)).collect();
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let bare = HttpSource::open(&url, &RemoteOptions::default()).unwrap();
        let begun = Instant::now();
        bare.read(&ranges).unwrap();
        let transfer = begun.elapsed();
        let begun = Instant::now();
        let file = hyperslab::open(url.as_str()).unwrap();
        let data: Vec<i32> = file.array("/x").unwrap().read(sel("[...]")).unwrap().data;
        assert_eq!(data.len(), 100 << 18);
        ratios.push(begun.elapsed().as_secs_f64() / transfer.as_secs_f64());
    }
    let best = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    eprintln!("100 chunks of 1 MiB: {best:.2} times the bare transfer");
    // Other tests run beside this one, so that it is given some room; the aim is 1.3.
    assert!(best < 3.0, "{ratios:?}");
}

#[test]
fn failures_pass_or_name_the_array_and_the_url() {
    let server = serve("far_netcdf.nc", Duration::ZERO, 0);
    let url = server.url("/far_netcdf.nc");
    // Every other request fails.
    server.on(|r| match r.number % 4 {
        0 => Some(Fault::Status(503, "text/plain", "busy")),
        2 => Some(Fault::Cut(10)),
        _ => None,
    });
    let file = hyperslab::open(url.as_str()).unwrap();
    let array = file.array("/var07").unwrap();
    array.read::<f32>(sel("[3]")).unwrap();
    assert!(file.traffic().retries >= 2);
    server.on(|_| Some(Fault::Status(403, "text/plain", "no longer")));
    let error = array.read::<f32>(sel("[9]")).unwrap_err();
    assert_eq!(error.kind(), hyperslab::ErrorKind::Permission);
    let text = error.to_string();
    assert!(text.contains("/var07") && text.contains("HTTP 403") && text.contains(&url), "{text}");
    // Never a fill value, and never a file that is not there.
    assert_eq!(hyperslab::open(url.as_str()).unwrap_err().kind(), hyperslab::ErrorKind::Permission);
}

#[test]
fn files_that_are_far_away_are_told_by_content() {
    let server = Server::start(Duration::ZERO);
    let path = format!("{}/tests/data/netcdf4.nc", env!("CARGO_MANIFEST_DIR"));
    server.put("/data", std::fs::read(&path).unwrap());
    let names = |file: File| file.walk().map(|e| e.path).collect::<Vec<_>>();
    let local = names(hyperslab::open(path.as_str()).unwrap());
    for fragment in ["", "#bytes", "#mode=bytes", "#mode=netcdf-4,bytes"] {
        assert_eq!(names(hyperslab::open(server.url(&format!("/data?a=b{fragment}"))).unwrap()), local);
    }
    let missing = hyperslab::open(server.url("/none.nc")).unwrap_err();
    assert_eq!(missing.kind(), hyperslab::ErrorKind::NotFound);
    assert!(missing.to_string().contains("HTTP 404"), "{missing}");
}
