//! Files that h5py, zarr and netCDF4 write while they are read here. At length: `scripts/swmr`.

use bytes::Bytes;
use conformance::reference;
use conformance::swmr::{Script, value, watch, wrong_in};
use conformance::tool;
use hyperslab::follow::{Event, FollowOptions, FollowStats, Stop, follow};
use hyperslab::model::Value;
use hyperslab::source::{ByteRange, FileSource, ReadHints, Source};
use hyperslab::{Address, File, OpenOptions, Selection};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// What h5py reads of each dataset.
fn sums(file: &str, swmr: bool) -> serde_json::Map<String, serde_json::Value> {
    let line = Script::start(&["sums", file, if swmr { "1" } else { "0" }]).finish();
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn a_copy_taken_mid_write_reads_as_h5py_reads_it() {
    let folder = folder();
    let script = tool::root().join("crates/hyperslab/tests/data/make_swmr.py");
    let made =
        Command::new(reference::python()).arg(script).arg(folder.path()).stdout(Stdio::null()).status();
    assert!(made.expect("Python starts").success());
    let mut same = 0;
    for (moment, flags) in [("early", true), ("later", true), ("early", false), ("later", false)] {
        let mut bytes = std::fs::read(folder.path().join(format!("{moment}.h5"))).expect("the copy");
        if !flags {
            bytes[11] = 0;
            let sum = hyperslab::format::hdf5::parse::lookup3(&bytes[..44]);
            bytes[44..48].copy_from_slice(&sum.to_le_bytes());
        }
        let copy = folder.path().join(format!("copy-{moment}-{flags}.h5"));
        let name = copy.to_string_lossy();
        std::fs::write(&copy, bytes).expect("a copy of it");
        // With the flags h5py opens it as a SWMR reader only, and without them as its plain reader.
        for (path, wanted) in sums(&name, flags) {
            let open = if flags { hyperslab::open_swmr(&*name) } else { hyperslab::open(&*name) };
            let file = open.expect("it opens");
            assert_eq!(file.is_swmr_read(), flags);
            let Ok(array) = file.array(&format!("/{path}")) else { continue };
            if path == "text" {
                continue;
            }
            match (array.read_raw(Selection::all()), wanted.as_str()) {
                (Ok(raw), Some(sum)) if sum == crate::sha256(&raw.bytes) => same += 1,
                (Err(_), Some("error")) => same += 1,
                // libhdf5's SWMR readers refuse a contiguous dataset behind the stored end, and we have no reason to.
                (Ok(_), Some("error")) if flags && path == "whole" => {}
                (ours, theirs) => panic!("{name} {path}: {:?}, h5py: {theirs:?}", ours.map(|_| "read")),
            }
        }
    }
    assert!(same > 25, "{same}");
}

#[test]
fn a_live_file_reads_right_at_any_time() {
    let folder = folder();
    let file = folder.path().join("a.h5");
    let name = file.to_string_lossy().into_owned();
    let writer = Script::writer(&["write", &name, "400"]);
    let peer = Script::start(&["read", &name]);
    let seen = watch(&file, Duration::from_secs(20));
    writer.finish();
    let peer = peer.finish();
    assert!(seen.wrong == 0 && seen.rows == 400, "{seen:?}");
    assert!(peer.starts_with("0 wrong"), "{peer}");
    assert_eq!(wrong_in(&hyperslab::open(name.as_str()).expect("it is closed")), (0, 400));
}

/// A live file that counts what is read of it.
#[derive(Debug)]
struct Counted {
    inner: FileSource,
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    fn count(&self, reads: u64, bytes: u64) {
        self.reads.fetch_add(reads, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

impl Source for Counted {
    fn len(&self) -> hyperslab::Result<u64> {
        self.inner.len()
    }
    fn read(&self, ranges: &[ByteRange]) -> hyperslab::Result<Vec<Bytes>> {
        self.count(ranges.len() as u64, ranges.iter().map(|range| range.length).sum());
        self.inner.read(ranges)
    }
    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> hyperslab::Result<()> {
        self.count(1, buffer.len() as u64);
        self.inner.read_into(offset, buffer)
    }
    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }
    fn id(&self) -> hyperslab::Result<String> {
        self.inner.id()
    }
    fn name(&self) -> String {
        self.inner.name()
    }
}

#[test]
fn a_refresh_reads_one_header_whatever_else_the_file_holds() {
    let folder = folder();
    let cost = |objects: &str| {
        let file = folder.path().join(format!("{objects}.h5"));
        let _writer = Script::writer(&["objects", &file.to_string_lossy(), objects]);
        let inner = FileSource::open(&file).expect("it opens");
        let counted = Arc::new(Counted { inner, reads: 0.into(), bytes: 0.into() });
        let opened = File::open_swmr_source(counted.clone(), &OpenOptions::default()).expect("it is HDF5");
        assert!(opened.is_swmr_read());
        let mut array = opened.array("/d0").expect("it is there");
        let before = (counted.reads.load(Relaxed), counted.bytes.load(Relaxed));
        for _ in 0..10 {
            array.refresh().expect("it refreshes");
        }
        (counted.reads.load(Relaxed) - before.0, counted.bytes.load(Relaxed) - before.1)
    };
    let few = cost("10");
    assert_eq!(few, cost("10000"));
    // The start of the header tells its length: two reads at most, of a few hundred bytes.
    assert!(few.0 <= 20 && few.1 <= 10 * 1024, "{few:?}");
}

#[test]
fn what_a_killed_writer_flushed_is_there() {
    let folder = folder();
    for pause in [30, 90, 170] {
        let file = folder.path().join(format!("{pause}.h5"));
        let name = file.to_string_lossy().into_owned();
        let mut writer = Script::writer(&["write", &name, "1000000"]);
        let alive = hyperslab::array::is_being_written(&file);
        assert!(alive != Some(false));
        if alive == Some(true) {
            let refused = tool::run(&["check", "--clear-flag", &name]);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(refused.status.code() == Some(2) && said.contains("a writer has"), "{said}");
            let text = String::from_utf8(tool::ask(&["check", &name]).expect("no faults")).expect("text");
            assert!(text.contains("being written by SWMR"), "{text}");
        }
        std::thread::sleep(Duration::from_millis(pause));
        let before = hyperslab::open_swmr(name.as_str()).and_then(|f| f.array("/both")).expect("it opens");
        writer.kill();
        let left = hyperslab::open_swmr(name.as_str()).expect("it opens still");
        assert!(left.swmr_writer_active().expect("it says"));
        let (wrong, rows) = wrong_in(&left);
        assert!(wrong == 0 && rows >= before.shape()[0], "{wrong} wrong of {rows} rows");
        let text =
            tool::ask(&["follow", &format!("{name}::/one"), "--idle-timeout", "0.3"]).expect("it stops");
        let lines = text.iter().filter(|&&b| b == b'\n').count() as u64;
        assert!(lines >= rows, "{lines} of {rows}");
        let checked = String::from_utf8(tool::ask(&["check", &name]).expect("no faults")).expect("text");
        if alive == Some(true) {
            assert!(checked.contains("left open by a writer that is gone"), "{checked}");
        }
        // Then everybody can open it.
        if alive.is_none() {
            let refused = tool::run(&["check", "--clear-flag", &name]);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(refused.status.code() == Some(2) && said.contains("--writer-is-gone"), "{said}");
        }
        tool::ask(&["check", "--clear-flag", "--writer-is-gone", &name]).expect("it is cleared");
        assert!(Path::new(&format!("{name}.superblock")).exists());
        assert!(sums(&name, false).values().all(|sum| sum != "error"));
        let ours = hyperslab::open(name.as_str()).expect("it opens");
        assert!(!ours.swmr_writer_active().expect("it says"));
        assert_eq!(wrong_in(&ours), (0, rows));
    }
}

#[test]
fn opening_while_the_writer_opens_and_closes_never_fails() {
    let folder = folder();
    let name = folder.path().join("a.h5").to_string_lossy().into_owned();
    let writer = Script::writer(&["cycles", &name, "60"]);
    let (mut opened, mut live, mut last) = (0, 0, 0);
    while last < 60 {
        let file = hyperslab::open_swmr(name.as_str()).expect("it opens");
        live += u64::from(file.is_swmr_read());
        opened += 1;
        // A file that is opened between two appends is not read live, and may be changed under the reader.
        let Ok(array) = file.array("/one") else { continue };
        let Ok(read) = array.read::<i64>(Selection::all()) else { continue };
        if file.is_swmr_read() {
            assert!(read.data.len() as u64 >= last, "{} rows after {last}", read.data.len());
            assert!(read.data.iter().zip(0..).all(|(v, i)| *v == value(i, 0)), "{:?}", read.data);
        }
        last = last.max(read.data.len() as u64);
    }
    writer.finish();
    eprintln!("opened {opened} times, {live} of them live");
}

/// Follows to the end: integers of all rows in order, and what was done. Fails where a row comes twice or not at all.
fn followed(address: &str, paths: &[&str], idle: u64) -> (Vec<Vec<Value>>, FollowStats) {
    let options =
        FollowOptions::new().with_interval(Duration::from_millis(40)).with_idle(Duration::from_millis(idle));
    let mut follow = follow(Address::parse(address), paths, options).expect("it begins");
    let mut next = 0;
    let mut values = vec![Vec::new(); paths.len().max(1)];
    for event in follow.by_ref() {
        match event.expect("no errors") {
            Event::Rows(rows) => {
                assert_eq!(rows.first, next, "a row twice, or none");
                next += rows.count;
                for (values, part) in values.iter_mut().zip(&rows.parts) {
                    values.extend(part.elements.values().expect("values"));
                }
            }
            other => panic!("{other:?}"),
        }
    }
    (values, follow.stats())
}

fn integers(values: &[Value]) -> Vec<i64> {
    values.iter().map(|v| v.as_integer().expect("an integer") as i64).collect()
}

fn grid(rows: u64, columns: u64) -> Vec<i64> {
    (0..rows).flat_map(|i| (0..columns).map(move |j| value(i, j))).collect()
}

#[test]
fn virtual_rows_come_when_all_sources_have_them() {
    let folder = folder();
    let name = folder.path().join("v.h5").to_string_lossy().into_owned();
    let writer = Script::writer(&["virtual", &name, "60"]);
    let (values, stats) = followed(&format!("{name}::/v"), &[], 5000);
    writer.finish();
    assert_eq!(integers(&values[0]), grid(60, 4));
    assert_eq!(stats.stop, Some(Stop::Closed));
}

#[test]
fn a_source_of_virtual_rows_says_nothing_of_another() {
    for command in ["behind", "in_turn"] {
        let folder = folder();
        let name = folder.path().join("v.h5").to_string_lossy().into_owned();
        let writer = Script::writer(&[command, &name, "40"]);
        let (values, stats) = followed(&format!("{name}::/v"), &[], 5000);
        writer.finish();
        assert_eq!(integers(&values[0]), few(40, 4), "{command}");
        assert_eq!(stats.stop, Some(Stop::Closed), "{command}");
    }
}

#[test]
fn a_single_frame_is_never_fill() {
    let folder = folder();
    let name = folder.path().join("f.h5").to_string_lossy().into_owned();
    let writer = Script::writer(&["frame", &name]);
    let (values, stats) = followed(&format!("{name}::/image"), &[], 5000);
    writer.finish();
    assert_eq!(integers(&values[0]), vec![5; 24]);
    assert_eq!(stats.stop, Some(Stop::Closed));
}

#[test]
fn dark_frames_come_when_the_next_one_is_begun() {
    let folder = folder();
    let file = folder.path().join("d.h5").to_string_lossy().into_owned();
    let _writer = Script::writer(&["dark", &file, "4"]);
    // Of the last whole frame one half is not known to be whole; that behind it is not written.
    let (rows, stats) = followed(&file, &["/v"], 500);
    assert_eq!(integers(&rows[0]), [0; 12]);
    assert_eq!((stats.rows, stats.waiting), (3, 2));
}

#[test]
fn texts_come_when_they_can_be_read() {
    let folder = folder();
    let name = folder.path().join("t.h5").to_string_lossy().into_owned();
    let writer = Script::writer(&["text", &name, "70"]);
    let (values, stats) = followed(&format!("{name}::/text"), &[], 5000);
    writer.finish();
    let wanted = |i: usize| format!("row {i} {}", "x".repeat(i * 37 % 300));
    assert_eq!(values[0].len(), 70);
    for (i, text) in values[0].iter().enumerate() {
        assert_eq!(text.as_str(), Some(wanted(i).as_str()));
    }
    assert_eq!(stats.stop, Some(Stop::Closed));
}

/// Whether the Python of the tests has a module. Not every one has the writers of other formats: what they write is
/// followed in the tests of the library too, written there byte by byte.
fn importable(module: &str) -> bool {
    let import = format!("import {module}");
    let status = Command::new(reference::python()).args(["-c", &import]).stderr(Stdio::null()).status();
    let there = status.is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: no Python module {module}");
    }
    there
}

#[test]
fn files_without_swmr_are_followed() {
    for (command, inner, columns) in [("plain", "/one", 1), ("flushed", "/one", 1), ("netcdf", "/v", 3)] {
        if command == "netcdf" && !importable("netCDF4") {
            continue;
        }
        let folder = folder();
        let name = folder.path().join("a").to_string_lossy().into_owned();
        let writer = Script::writer(&[command, &name, "25"]);
        let (values, stats) = followed(&format!("{name}::{inner}"), &[], 1500);
        writer.finish();
        assert_eq!(integers(&values[0]), grid(25, columns), "{command}");
        assert_eq!(stats.stop, Some(Stop::Idle), "{command}");
    }
}

#[test]
fn zarr_arrays_are_followed() {
    if !importable("zarr") {
        return;
    }
    let folder = folder();
    let name = folder.path().join("a.zarr").to_string_lossy().into_owned();
    let writer = Script::writer(&["zarr", &name, "40"]);
    let (values, _) = followed(&format!("{name}::/"), &[], 1500);
    writer.finish();
    assert_eq!(integers(&values[0]), grid(40, 3));
}

/// What the writers write that write fill too.
fn few(rows: u64, columns: u64) -> Vec<i64> {
    (0..rows).flat_map(|i| (0..columns).map(move |j| ((7 * i + j) % 5) as i64)).collect()
}

#[test]
fn what_is_not_written_is_never_fill_whatever_the_writer_does_first() {
    for (command, rows, columns, last) in [
        (&["parts", "25", "1"][..], 25, 8, Stop::Closed),
        // Nobody says that this one is closed, and its last row holds fill.
        (&["parts", "8", "0"], 7, 8, Stop::Idle),
        (&["announced", "60"], 60, 8, Stop::Closed),
        (&["torn", "13"], 13, 1 << 19, Stop::Closed),
    ] {
        let folder = folder();
        let name = folder.path().join("a.h5").to_string_lossy().into_owned();
        let arguments = [&[command[0], &name], &command[1..]].concat();
        let writer = Script::writer(&arguments);
        let options = FollowOptions::new().with_interval(Duration::from_millis(40));
        let options = options.with_idle(Duration::from_secs(3)).with_batch(24 << 20);
        let mut follow = follow(Address::parse(&format!("{name}::/d")), &[], options).expect("it begins");
        let (mut next, mut values) = (0, Vec::new());
        for event in follow.by_ref() {
            let Event::Rows(came) = event.expect("no errors") else { panic!("{command:?}: another file") };
            assert_eq!(came.first, next, "{command:?}: a row twice, or none");
            next += came.count;
            let part = &came.parts[0];
            let size = part.array.dtype().size();
            values.extend(part.bytes.chunks(size).map(|b| i64::from(b[0])));
        }
        writer.finish();
        assert!(values == few(rows, columns), "{command:?}: {} values, some wrong", values.len());
        assert_eq!(follow.stats().stop, Some(last), "{command:?}");
    }
}

#[test]
fn a_file_that_another_writer_begins_anew_is_noticed() {
    let folder = folder();
    let name = folder.path().join("a.h5").to_string_lossy().into_owned();
    let mut writer = Script::writer(&["anew", &name, "50", "0"]);
    let options = FollowOptions::new().with_interval(Duration::from_millis(20));
    let options = options.with_idle(Duration::from_secs(3)).with_rows(150);
    let mut follow = follow(Address::parse(&format!("{name}::/one")), &[], options).expect("it begins");
    let (mut next, mut values, mut replaced) = (0, Vec::new(), 0);
    for event in follow.by_ref() {
        match event.expect("no errors") {
            Event::Rows(came) => {
                assert_eq!(came.first, next);
                next += came.count;
                values.extend(integers(&came.parts[0].elements.values().expect("values")));
            }
            Event::Replaced { left } => {
                assert_eq!(left, 0);
                (next, replaced) = (0, replaced + 1);
            }
            other => panic!("{other:?}"),
        }
        // The first writer dies when it has written all its rows; the second one has more.
        if values.len() == 50 && replaced == 0 {
            writer.kill();
            writer = Script::start(&["anew", &name, "100", "1000"]);
        }
    }
    drop(writer);
    assert_eq!(replaced, 1);
    assert_eq!(values, [grid(50, 1), grid(100, 1).iter().map(|v| v + 1000).collect()].concat());
}

#[test]
fn the_program_prints_each_row_in_time() {
    let folder = folder();
    let name = folder.path().join("t.h5").to_string_lossy().into_owned();
    let writer = Script::writer(&["times", &name, "300", "100"]);
    let late = conformance::swmr::delays(&name, 200, "csv");
    writer.finish();
    assert_eq!(late.rows, 300);
    // On a machine that does nothing else it is half of this.
    assert!(late.p99 < Duration::from_millis(1500), "{late:?}");
    assert!(late.said.contains("300 rows") && late.said.contains("the writer closed the file"), "{late:?}");
}
