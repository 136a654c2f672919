//! Virtual datasets, compared with what h5py reads (`data/make_virtual.py`).

use hyperslab::{Error, ErrorKind, OpenOptions};

fn open(name: &str) -> hyperslab::File {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/virtual/");
    hyperslab::open(format!("{folder}{name}").as_str()).unwrap()
}

#[test]
fn every_selection_reads_as_in_h5py() {
    for file in ["v0.h5", "v1.h5"] {
        let opened = open(file);
        let mut count = 0;
        for line in include_str!("data/virtual/expected.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [dataset, selection, dims, hex] = words[..] else { panic!("{line}") };
            let what = format!("{file} {dataset} {selection}");
            let got =
                opened.array(dataset).unwrap().read_raw(selection).unwrap_or_else(|e| panic!("{what}: {e}"));
            let dims: Vec<u64> = dims.split(',').map(|d| d.parse().unwrap()).collect();
            assert_eq!(got.shape, dims, "{what}");
            let bytes: String = got.bytes.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(bytes, hex, "{what}");
            count += 1;
        }
        assert!(count > 100);
    }
}

#[test]
fn elements_convert_from_the_source() {
    let columns = open("v1.h5").array("columns").unwrap();
    let read = columns.read::<i32>("[3]").unwrap();
    assert_eq!(read.data, [3, 103, 203]);
}

#[test]
fn extents_follow_the_sources() {
    let file = open("v1.h5");
    assert_eq!(file.array("growing").unwrap().shape(), [7, 3]);
    assert_eq!(file.array("numbered2").unwrap().shape(), [9, 4]);
    let max = file.array("growing").unwrap().meta().space.clone();
    assert!(matches!(max, hyperslab::model::Dataspace::Simple { max, .. } if max[0].is_none()));
    // So they do through the netCDF model.
    let view = file.netcdf().unwrap();
    let growing = view.groups()[0].variables.iter().find(|v| v.name.as_bytes() == b"growing").unwrap();
    assert_eq!(growing.meta.space.dims(), [7, 3]);
    assert!(view.dimensions()[growing.dimensions[0]].length >= 7);
}

fn fails(dataset: &str) -> Error {
    let started = std::time::Instant::now();
    let error = open("bad.h5").array(dataset).and_then(|a| a.read_raw("[...]")).unwrap_err();
    assert!(started.elapsed().as_secs() < 20, "{dataset} took {:?}", started.elapsed());
    assert!(error.to_string().contains(dataset), "{error}");
    error
}

#[test]
fn circles_end() {
    assert_eq!(fails("itself").kind(), ErrorKind::Corrupt);
    assert!(matches!(fails("ping").kind(), ErrorKind::LimitExceeded | ErrorKind::Corrupt));
    assert_eq!(fails("growing").kind(), ErrorKind::LimitExceeded);
}

#[test]
fn sources_that_double_at_each_level_end() {
    assert_eq!(fails("tree0").kind(), ErrorKind::LimitExceeded);
    // A few levels are fine.
    let read = open("bad.h5").array("tree22").unwrap().read::<i64>("[...]").unwrap();
    assert_eq!(read.data, [0, 1, 2, 3]);
}

#[test]
fn what_is_wrong_is_named() {
    let outside = fails("outside");
    assert_eq!(outside.kind(), ErrorKind::Permission);
    assert!(outside.to_string().contains("../heaps.h5"), "{outside}");
    assert_eq!(fails("far").kind(), ErrorKind::OutOfBounds);
    assert_eq!(fails("words").kind(), ErrorKind::Unsupported);
}

#[test]
fn small_limits_hold() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/virtual/v1.h5");
    let mut limits = hyperslab::Limits::default();
    limits.plan = 600;
    let options = OpenOptions::new().with_limits(limits);
    let array = hyperslab::open_with(path, &options).unwrap().array("union").unwrap();
    assert_eq!(array.read_raw("[...]").unwrap_err().kind(), ErrorKind::LimitExceeded);
}
