//! Rows of files that are written between two looks.

#[path = "follow/fill.rs"]
mod fill;
#[cfg(feature = "remote")]
#[path = "follow/remote.rs"]
mod remote;
#[path = "follow/replaced.rs"]
mod replaced;

use hyperslab::follow::{Event, Follow, FollowOptions, From, Stop, follow};
use hyperslab::model::Value;
use hyperslab::{Address, ErrorKind};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn copy(moment: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/swmr_{moment}.h5.zst", env!("CARGO_MANIFEST_DIR"));
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

fn value(i: u64, j: u64) -> i128 {
    i128::from(1000 * i + j + 1)
}

/// Writes over a file, as a writer that has it open does.
fn write(path: &Path, bytes: &[u8]) {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap().write_all(bytes).unwrap();
}

fn address(path: &Path, inner: &str) -> Address {
    Address::parse(&format!("{}::{inner}", path.display()))
}

fn options() -> FollowOptions {
    FollowOptions::new().with_interval(Duration::from_millis(10)).with_idle(Duration::from_millis(300))
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The rows of the next event: the first one, and all values of each array.
fn rows(follow: &mut Follow) -> (u64, Vec<Vec<Value>>) {
    match follow.next().expect("there are rows").unwrap() {
        Event::Rows(rows) => {
            (rows.first, rows.parts.iter().map(|part| part.elements.values().unwrap()).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn integers(values: &[Value]) -> Vec<i128> {
    values.iter().map(|v| v.as_integer().unwrap()).collect()
}

#[test]
fn a_swmr_file_is_followed_until_it_is_closed() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("early"));
    let mut follow = follow(address(&path, "/"), &["/one", "/both", "/text"], options()).unwrap();
    let (first, values) = rows(&mut follow);
    assert_eq!((first, values[0].len()), (0, 10));
    write(&path, &copy("later"));
    let (first, values) = rows(&mut follow);
    assert_eq!(first, 10);
    assert_eq!(integers(&values[0]), (10..37).map(|i| value(i, 0)).collect::<Vec<_>>());
    let both: Vec<i128> = (10..37).flat_map(|i| (0..18).map(move |j| value(i, j))).collect();
    assert_eq!(integers(&values[1]), both);
    assert_eq!(values[2].last().and_then(Value::as_str), Some("text 36"));
    write(&path, &copy("closed"));
    assert!(follow.next().is_none());
    let stats = follow.stats();
    assert_eq!((stats.rows, stats.waiting, stats.stop), (37, 0, Some(Stop::Closed)));
    assert!(stats.delay_p99 > Duration::ZERO && stats.delay_p99 >= stats.delay_p50);
}

#[test]
fn rows_that_are_announced_and_not_written_are_waited_for() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("later"));
    let mut sparse = follow(address(&path, "/sparse"), &[], options()).unwrap();
    assert!(sparse.next().is_none());
    let stats = sparse.stats();
    assert_eq!((stats.rows, stats.waiting, stats.stop), (0, 8, Some(Stop::Idle)));
    // The rows that are there follow one another.
    let mut from = follow(address(&path, "/sparse"), &[], options().with_from(From::Row(4))).unwrap();
    let (first, values) = rows(&mut from);
    assert_eq!((first, integers(&values[0])), (4, vec![value(4, 0), value(5, 0)]));
    assert!(from.next().is_none());
    // When the writer has closed the file, what was never written is what it is.
    write(&path, &copy("closed"));
    let mut closed = follow(address(&path, "/sparse"), &[], options().with_rows(5)).unwrap();
    assert_eq!(integers(&rows(&mut closed).1[0]), [-1, -1, -1, -1, value(4, 0)]);
    assert!(closed.next().is_none());
    assert_eq!(closed.stats().stop, Some(Stop::Rows));
}

#[test]
fn a_file_that_is_replaced_or_shrinks_says_so() {
    let folder = Folder::new();
    let (path, other) = (folder.path("a.h5"), folder.path("b.h5"));
    write(&path, &copy("closed"));
    let mut follow = follow(address(&path, "/one"), &[], options().with_from(From::End)).unwrap();
    write(&other, &copy("early"));
    std::fs::rename(&other, &path).unwrap();
    // All rows of the old one were given; the new one begins with its first.
    assert!(matches!(follow.next().unwrap().unwrap(), Event::Replaced { left: 0 }));
    let (first, values) = rows(&mut follow);
    assert_eq!((first, values[0].len()), (0, 10));
    write(&path, &copy("later"));
    let (first, values) = rows(&mut follow);
    assert_eq!((first, values[0].len()), (10, 27));
    // Gone for a moment, and back.
    write(&other, &copy("later"));
    std::fs::remove_file(&path).unwrap();
    let back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        std::fs::rename(&other, &path).unwrap();
    });
    assert!(matches!(follow.next().unwrap().unwrap(), Event::Replaced { .. }));
    back.join().unwrap();
    assert_eq!(rows(&mut follow).0, 0);
    assert!(follow.next().is_none());
}

#[test]
fn questions_that_make_no_sense_fail_at_once() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("later"));
    let kind = |inner: &str| follow(address(&path, inner), &[], options()).unwrap_err().kind();
    assert_eq!(kind("/nothing"), ErrorKind::NotFound);
    assert_eq!(kind("/group"), ErrorKind::InvalidArgument);
    let none = follow(address(&folder.path("none.h5"), "/one"), &[], options());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
    let wanted = options();
    let cancel = wanted.cancel.clone();
    let mut waits = follow(address(&path, "/one"), &[], wanted.with_from(From::End)).unwrap();
    cancel.cancel();
    assert!(waits.next().is_none());
    assert_eq!(waits.stats().stop, Some(Stop::Cancelled));
}

fn document(rows: u64) -> String {
    format!(
        r#"{{"zarr_format":2,"shape":[{rows}],"chunks":[4],"dtype":"<i4","fill_value":0,"compressor":null,"filters":null,"order":"C"}}"#
    )
}

fn chunk(values: [i32; 4]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn zarr_arrays_announce_rows_before_they_write_them() {
    let folder = Folder::new();
    let (path, put) = (folder.path("a"), |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path("a").join(name), bytes).unwrap();
    });
    std::fs::create_dir(&path).unwrap();
    put(".zarray", document(3).as_bytes());
    put("0", &chunk([1, 2, 3, 0]));
    let mut follow = follow(address(&path, "/"), &[], options()).unwrap();
    assert_eq!(integers(&rows(&mut follow).1[0]), [1, 2, 3]);
    // Three more are announced; of the first one the chunk is there, but not the row.
    put(".zarray", document(6).as_bytes());
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().waiting, 3);
    let from = options().with_from(From::Row(3));
    let mut again = hyperslab::follow(address(&path, "/"), &[], from.clone()).unwrap();
    put("0", &chunk([1, 2, 3, 4]));
    assert_eq!(integers(&rows(&mut again).1[0]), [4]);
    put("1", &chunk([5, 0, 0, 0]));
    assert_eq!(integers(&rows(&mut again).1[0]), [5]);
    // A row that is written with the fill value is known when its writer has gone on, not when more are announced.
    put(".zarray", document(7).as_bytes());
    let before = std::time::Instant::now();
    let late = folder.path("a").join("1");
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        std::fs::write(late, chunk([5, 0, 7, 0])).unwrap();
    });
    let (first, values) = rows(&mut again);
    assert_eq!((first, integers(&values[0])), (5, vec![0, 7]));
    assert!(before.elapsed() >= Duration::from_millis(150));
    writer.join().unwrap();
}

/// A netCDF-3 file with one variable `v` of two numbers a record, which count from 1.
fn netcdf3(records: u32) -> Vec<u8> {
    netcdf3_of(2, records, 1)
}

/// The same with `width` numbers a record, which count from `first`.
fn netcdf3_of(width: u32, records: u32, first: u32) -> Vec<u8> {
    let mut out = b"CDF\x01".to_vec();
    let word = |out: &mut Vec<u8>, n: u32| out.extend(n.to_be_bytes());
    let name = |out: &mut Vec<u8>, text: &[u8; 1]| {
        word(out, 1);
        out.extend([text[0], 0, 0, 0]);
    };
    word(&mut out, records);
    word(&mut out, 10);
    word(&mut out, 2);
    name(&mut out, b"t");
    word(&mut out, 0);
    name(&mut out, b"x");
    word(&mut out, width);
    [0, 0, 11, 1].iter().for_each(|&n| word(&mut out, n));
    name(&mut out, b"v");
    [2, 0, 1, 0, 0, 4, 4 * width].iter().for_each(|&n| word(&mut out, n));
    let begin = out.len() as u32 + 4;
    word(&mut out, begin);
    (0..width * records).for_each(|n| word(&mut out, n + first));
    out
}

#[test]
fn a_netcdf3_file_that_grows_is_read_when_it_keeps_still() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    write(&path, &netcdf3(2));
    let mut follow = follow(address(&path, "/v"), &[], options()).unwrap();
    assert_eq!(integers(&rows(&mut follow).1[0]), [1, 2, 3, 4]);
    // The header first: the records are announced before they are there.
    write(&path, &netcdf3(4)[..100]);
    let late = path.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(80));
        write(&late, &netcdf3(4));
    });
    let (first, values) = rows(&mut follow);
    writer.join().unwrap();
    assert_eq!((first, integers(&values[0])), (2, vec![5, 6, 7, 8]));
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().stop, Some(Stop::Idle));
}

#[test]
fn rows_that_are_there_come_before_time_runs_out() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("early"));
    // A row at a time, to a caller who needs longer for each than it would wait for one.
    let wanted = options().with_batch(1).with_idle(Duration::from_millis(20));
    let mut follow = follow(address(&path, "/one"), &[], wanted).unwrap();
    for wanted in 0..10 {
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(rows(&mut follow).0, wanted);
    }
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().stop, Some(Stop::Idle));
}

#[test]
fn faults_that_stay_are_errors() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    let whole = copy("closed");
    write(&path, &whole[..2000]);
    let mut waits = follow(address(&path, "/one"), &[], options()).unwrap();
    let error = waits.next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Corrupt), "{error}");
    assert!(waits.next().is_none());
    assert_eq!(waits.stats().stop, Some(Stop::Failed));
    // Without an end by time, after many looks.
    let wanted = FollowOptions::new()
        .with_interval(Duration::from_millis(2))
        .with_patience(Duration::from_millis(300));
    let mut waits = follow(address(&path, "/one"), &[], wanted).unwrap();
    assert_eq!(waits.next().unwrap().unwrap_err().kind(), error.kind());
    assert!(waits.stats().looks >= 100);
    // What is mended meanwhile is none.
    let mut waits = follow(address(&path, "/one"), &[], options()).unwrap();
    assert!(waits.fault().is_some());
    write(&path, &whole);
    assert_eq!(rows(&mut waits).1[0].len(), 37);
    assert!(waits.fault().is_none());
}

#[test]
fn a_row_that_is_asked_for_is_waited_for_whatever_shrinks() {
    let folder = Folder::new();
    let (path, other) = (folder.path("a.h5"), folder.path("b.h5"));
    write(&path, &copy("closed"));
    let mut follow = follow(address(&path, "/one"), &[], options().with_from(From::Row(37))).unwrap();
    write(&other, &copy("early"));
    std::fs::rename(&other, &path).unwrap();
    assert!(matches!(follow.next().unwrap().unwrap(), Event::Replaced { .. }));
    write(&path, &copy("later"));
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().rows, 0);
}

#[test]
fn rows_that_nobody_asked_for_are_not_waited_for() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("closed"));
    let mut follow = follow(address(&path, "/one"), &[], options().with_rows(4)).unwrap();
    assert_eq!(rows(&mut follow).1[0].len(), 4);
    assert!(follow.next().is_none());
    let stats = follow.stats();
    assert_eq!((stats.rows, stats.waiting, stats.unwanted, stats.stop), (4, 0, 33, Some(Stop::Rows)));
}
