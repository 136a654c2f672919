//! What grows, or is replaced, on a web server and in a bucket.

#[path = "../support/bucket.rs"]
mod bucket;
#[path = "../support/server.rs"]
mod server;

use super::{Folder, chunk, copy, document, integers, netcdf3_of, options, rows, write};
use bucket::{Bucket, Dialect};
use hyperslab::follow::{Event, Follow, FollowOptions, Stop, follow};
use hyperslab::source::{CloudOptions, CloudPlace, CloudStore, Keys, RemoteOptions, Store};
use hyperslab::{Address, Limits};
use server::Server;
use std::time::Duration;

fn wanted() -> FollowOptions {
    options().with_idle(Duration::from_secs(2))
}

fn begin(url: &str, inner: &str) -> Follow {
    follow(Address::parse(&format!("{url}::{inner}")), &[], wanted()).unwrap()
}

fn next(follow: &mut Follow, first: u64) -> Vec<i128> {
    let (at, values) = rows(follow);
    assert_eq!(at, first);
    integers(&values[0])
}

/// The next event, which must be that another file is there; how many rows of the old one did not come.
fn replaced(follow: &mut Follow) -> u64 {
    match follow.next().unwrap().unwrap() {
        Event::Replaced { left } => left,
        other => panic!("{other:?}"),
    }
}

/// Follows what `put` puts at `url`, while it grows and is replaced.
fn netcdf3_grows(url: &str, put: &dyn Fn(Vec<u8>)) {
    put(netcdf3_of(2, 2, 1));
    let mut follow = begin(url, "/v");
    assert_eq!(next(&mut follow, 0), (1..5).collect::<Vec<_>>());
    put(netcdf3_of(2, 5, 1));
    assert_eq!(next(&mut follow, 2), (5..11).collect::<Vec<_>>());
    // Longer, as long, and shorter.
    for (records, first) in [(6, 101), (6, 201), (1, 301)] {
        put(netcdf3_of(2, records, first));
        assert_eq!(replaced(&mut follow), 0);
        let (first, count) = (i128::from(first), i128::from(2 * records));
        assert_eq!(next(&mut follow, 0), (first..first + count).collect::<Vec<_>>());
    }
    put(netcdf3_of(2, 2, 301));
    assert_eq!(next(&mut follow, 1), [303, 304]);
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().stop, Some(Stop::Idle));
}

/// The fixture of a moment as its writer would have closed it then.
fn closed(moment: &str) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy(moment));
    hyperslab::array::clear_writer_flags(&path, true).unwrap();
    std::fs::read(path).unwrap()
}

/// The same for HDF5 files without SWMR, and with it.
fn hdf5_grows(url: &str, put: &dyn Fn(Vec<u8>)) {
    put(closed("early"));
    let mut plain = begin(url, "/one");
    assert_eq!(next(&mut plain, 0).len(), 10);
    put(closed("later"));
    assert_eq!(next(&mut plain, 10)[0], 10_001);
    // Other values at the same places.
    let mut other = closed("later");
    let old: Vec<u8> = (0..4).flat_map(|i| (1000 * i + 1i32).to_le_bytes()).collect();
    let at = other.windows(16).position(|w| w == old).unwrap();
    other[at] = 77;
    put(other);
    assert_eq!(replaced(&mut plain), 0);
    let values = next(&mut plain, 0);
    assert_eq!((values.len(), values[0], values[1]), (37, 77, 1001));
    // What is live is read so, and ends.
    put(copy("early"));
    assert_eq!(replaced(&mut plain), 0);
    assert_eq!(next(&mut plain, 0).len(), 10);
    put(copy("later"));
    assert_eq!(next(&mut plain, 10).len(), 27);
    put(copy("closed"));
    assert!(plain.next().is_none());
    assert_eq!(plain.stats().stop, Some(Stop::Closed));
}

#[test]
fn files_that_grow_on_a_web_server_are_followed() {
    let server = Server::start(Duration::ZERO);
    netcdf3_grows(&server.url("/a.nc"), &|bytes| server.put("/a.nc", bytes));
    hdf5_grows(&server.url("/a.h5"), &|bytes| server.put("/a.h5", bytes));
}

fn bucket_of(bucket: &Bucket, prefix: &str) -> CloudStore {
    let cloud = CloudOptions::default().with_endpoint(Some(bucket.endpoint()));
    let cloud = cloud.with_keys(Some(Keys::new("key", "secret")));
    let place = CloudPlace::s3("bucket", prefix).unwrap();
    CloudStore::open(&place, &cloud, &Limits::default(), &RemoteOptions::default()).unwrap()
}

#[test]
fn objects_that_grow_in_a_bucket_are_followed() {
    let bucket = Bucket::start(Dialect::S3);
    let store = bucket_of(&bucket, "");
    let put = |key: &str, bytes: Vec<u8>| drop(store.put(key, bytes.into(), &Default::default()).unwrap());
    let url = |key: &str| format!("s3://bucket/{key}#aws.endpoint={}", bucket.endpoint());
    netcdf3_grows(&url("run/a.nc"), &|bytes| put("run/a.nc", bytes));
    hdf5_grows(&url("run/a.h5"), &|bytes| put("run/a.h5", bytes));
    zarr_grows(&url("run/a.zarr"), &|key, bytes| put(&format!("run/a.zarr/{key}"), bytes));
}

/// The same for a Zarr store.
fn zarr_grows(url: &str, put: &dyn Fn(&str, Vec<u8>)) {
    let rows_of = |rows: u64, first: i32| {
        for number in 0..rows.div_ceil(4) {
            let at = first + 4 * number as i32;
            put(&number.to_string(), chunk([at, at + 1, at + 2, at + 3]));
        }
        put(".zarray", document(rows).into_bytes());
    };
    rows_of(3, 1);
    let mut follow = begin(url, "/");
    assert_eq!(next(&mut follow, 0), [1, 2, 3]);
    rows_of(8, 1);
    assert_eq!(next(&mut follow, 3), [4, 5, 6, 7, 8]);
    // Announced, and not there.
    put(".zarray", document(10).into_bytes());
    assert!(follow.next().is_none());
    assert_eq!((follow.stats().waiting, follow.stats().stop), (2, Some(Stop::Idle)));
    let mut follow = begin(url, "/");
    assert_eq!(next(&mut follow, 0).len(), 8);
    rows_of(12, 51);
    assert_eq!(replaced(&mut follow), 2);
    assert_eq!(next(&mut follow, 0), (51..63).collect::<Vec<_>>());
}

#[test]
fn a_store_that_grows_on_a_web_server_is_followed() {
    let server = Server::start(Duration::ZERO);
    zarr_grows(&server.url("/s.zarr#mode=zarr"), &|key, bytes| server.put(&format!("/s.zarr/{key}"), bytes));
}

#[test]
fn a_server_that_fails_for_a_while_is_asked_again() {
    let server = Server::start(Duration::ZERO);
    server.put("/a.nc", netcdf3_of(2, 2, 1));
    let address = Address::parse(&server.url("/a.nc::/v"));
    let mut follow = follow(address, &[], wanted().with_idle(Duration::from_secs(20))).unwrap();
    assert_eq!(next(&mut follow, 0).len(), 4);
    server.put("/a.nc", netcdf3_of(2, 4, 1));
    // Nothing there, half of it, another server: never fill, and never another file.
    server.on(|r| match r.number % 30 {
        0 => Some(server::Fault::Status(404, "text/plain", "")),
        7 | 14 => Some(server::Fault::Cut(60)),
        21 => Some(server::Fault::Status(503, "text/plain", "busy")),
        _ => None,
    });
    assert_eq!(next(&mut follow, 2), (5..9).collect::<Vec<_>>());
}
