use super::*;
use crate::{ArrayData, ErrorKind};

/// Versions `a`, `b` (uncommitted), `c`; made by `tests/data/make_versions.py`.
fn file(name: &str) -> File {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    crate::open(path.as_path()).unwrap()
}

fn elements(versions: &Versions, version: &str, path: &str) -> Vec<i32> {
    let file = versions.file(&versions.get(version).unwrap());
    let ArrayData { data, .. } = file.array(path).unwrap().read::<i32>(..).unwrap();
    data
}

#[test]
fn what_was_not_committed_is_not_there() {
    let versions = Versions::open(&file("versions.h5")).unwrap();
    assert_eq!(versions.data_version(), 4);
    assert_eq!(versions.current().unwrap().unwrap().name, "second");
    assert_eq!(versions.uncommitted().unwrap(), ["dead"]);
    assert_eq!(versions.get("dead").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(versions.list(Order::Time).unwrap().len(), 2);
}

#[test]
fn layouts_without_words_of_their_own_are_read() {
    // Data version 1 of the first releases: no data_version, no raw_data or chunks at arrays, tables that lie.
    let versions = Versions::open_at(&file("versions.h5"), "/old").unwrap();
    assert_eq!(versions.data_version(), 1);
    assert_eq!(elements(&versions, "second", "/x"), [1, 2, 9, 4, 5]);
    assert_eq!(elements(&versions, "first", "/x"), [1, 2, 3, 4, 5]);
}

#[test]
fn maps_of_another_kind_are_read_as_what_they_are() {
    let versions = Versions::open_at(&file("versions.h5"), "/").unwrap();
    let second = versions.file(&versions.get("second").unwrap());
    for (path, wanted) in [
        // Two neighbouring chunks in one mapping.
        ("/merged", vec![1, 2, 3, 4, 5]),
        // A mapping of half a chunk.
        ("/half", vec![0, 2, 3, 4, 5]),
        // Two for the same chunk: the later one wins.
        ("/twice", vec![3, 4, 0, 0, 0]),
    ] {
        let array = second.array(path).unwrap();
        assert!(matches!(array.storage(), crate::model::Storage::Virtual(_)), "{path}");
        assert_eq!(array.read::<i32>(..).unwrap().data, wanted, "{path}");
    }
    assert!(matches!(second.array("/x").unwrap().storage(), crate::model::Storage::Chunks(_)));
    let error = second.array("/lost").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("/_version_data/lost/raw_data"), "{error}");
    // Unsorted mappings are a map all the same.
    assert!(matches!(second.array("/unsorted").unwrap().storage(), crate::model::Storage::Chunks(_)));
    assert_eq!(second.array("/unsorted").unwrap().read::<i32>(..).unwrap().data, [1, 2, 3, 4, 5]);
}

#[test]
fn links_from_the_root_still_begin_there() {
    let versions = Versions::open_at(&file("versions.h5"), "/").unwrap();
    let second = versions.file(&versions.get("second").unwrap());
    assert_eq!(second.array("/outside").unwrap().read::<i32>(..).unwrap().data, [42]);
}

#[test]
fn several_groups_have_to_be_named() {
    let file = file("versions.h5");
    assert_eq!(Versions::places(&file).unwrap(), ["/", "/newer", "/old"]);
    let error = Versions::open_at(&file, "/newer").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("data version 5"), "{error}");
    assert_eq!(Versions::open_at(&file, "/old/_version_data").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_time_has_one_text() {
    for (micros, text) in [
        (0, "1970-01-01 00:00:00.000000+0000"),
        (-1, "1969-12-31 23:59:59.999999+0000"),
        (951_782_400_000_000, "2000-02-29 00:00:00.000000+0000"),
        (253_402_300_799_999_999, "9999-12-31 23:59:59.999999+0000"),
    ] {
        assert_eq!(Timestamp::from_micros(micros).unwrap().as_str(), text);
        assert_eq!(Timestamp::parse(text).unwrap().unwrap().as_str(), text);
    }
    assert!(Timestamp::from_micros(i64::MAX).is_err() && Timestamp::from_micros(i64::MIN).is_err());
    for none in [
        "",
        "2024",
        "2024-02-30",
        "2023-02-29",
        "2024-01-01 24:00",
        "2024-01-01 1:00",
        "2024-01-01.",
        "é2024-01-01",
    ] {
        assert_eq!(Timestamp::parse(none).unwrap(), None, "{none}");
    }
}

#[test]
fn what_a_new_version_leaves_alone_is_copied_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("versions.h5");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/versions.h5"), &path).unwrap();
    let (open, write) = (crate::OpenOptions::default(), crate::source::write::WriteOptions::default());
    let mut edit = crate::write::edit(path.as_path(), &open, &write).unwrap();
    for gone in ["outside", "lost"] {
        let path = crate::model::write::ObjectPath::parse(&format!("_version_data/versions/second/{gone}"));
        edit.apply(crate::model::write::Change::Delete { path: path.unwrap() }).unwrap();
    }
    edit.commit().unwrap();
    let mut next = stage(path.as_path(), "/", "third", &Parent::Current, &open, &write).unwrap();
    // What is no map of chunks can be left alone, and not be changed.
    assert_eq!(next.array("merged").map(|_| ()).unwrap_err().kind(), ErrorKind::Unsupported);
    next.set_attribute("x", "units", "m").unwrap();
    next.commit().unwrap();
    let versions = Versions::open_at(&crate::open(path.as_path()).unwrap(), "/").unwrap();
    for (path, wanted) in [
        ("/merged", [1, 2, 3, 4, 5]),
        ("/half", [0, 2, 3, 4, 5]),
        ("/twice", [3, 4, 0, 0, 0]),
        ("/unsorted", [1, 2, 3, 4, 5]),
        ("/x", [1, 2, 9, 4, 5]),
    ] {
        assert_eq!(elements(&versions, "third", path), wanted, "{path}");
    }
    let third = versions.file(&versions.get("third").unwrap());
    let units = third.array("x").unwrap().attributes().unwrap().into_iter().map(|a| a.unwrap().name);
    assert_eq!(units.map(|name| name.to_string()).collect::<Vec<_>>(), ["units"]);
}

#[test]
fn every_data_version_is_read() {
    for data_version in 1..=3 {
        let versions = Versions::open(&file(&format!("versions_{data_version}.h5"))).unwrap();
        assert_eq!(versions.data_version(), data_version);
        assert_eq!(versions.list(Order::Graph).unwrap().len(), 3);
        let first: Vec<i32> = (0..23).map(|i| i % 5).collect();
        let mut second = first.clone();
        second[3..9].fill(7);
        let third = second[..12].to_vec();
        second.resize(30, -1);
        for (name, wanted) in [("r1", first), ("r2", second), ("r3", third)] {
            let version = versions.file(&versions.get(name).unwrap());
            let x = version.array("x").unwrap();
            assert!(matches!(x.storage(), crate::model::Storage::Chunks(_)));
            assert_eq!(x.read::<i32>(..).unwrap().data, wanted, "{data_version} {name}");
            let y = version.array("deep/y").unwrap().read::<f64>(..).unwrap().data;
            let changed = |i: usize| name != "r1" && i / 5 == 1;
            let plain = |i: usize| if changed(i) { 7.5 } else { (i / 5 + i % 5) as f64 };
            assert_eq!(y, (0..30).map(plain).collect::<Vec<_>>(), "{data_version} {name}");
            let texts = version.array("t").map(|t| t.read_strings(..).unwrap());
            match name {
                "r1" => assert_eq!(texts.unwrap(), ["a", "bc", "", "é", "bc"]),
                "r2" => assert_eq!(texts.unwrap(), ["a", "new", "", "é", "bc"]),
                _ => assert_eq!(texts.unwrap_err().kind(), ErrorKind::NotFound),
            }
        }
    }
}

#[test]
fn versions_that_come_from_each_other_are_no_endless_walk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("versions.h5");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/versions.h5"), &path).unwrap();
    let (open, write) = (crate::OpenOptions::default(), crate::source::write::WriteOptions::default());
    let turn = |name: &str, parent: &str| {
        let mut edit = crate::write::edit(path.as_path(), &open, &write).unwrap();
        edit.set_attribute(&format!("/_version_data/versions/{name}"), "prev_version", parent).unwrap();
        edit.commit().unwrap();
        Versions::open_at(&crate::open(path.as_path()).unwrap(), "/").unwrap()
    };
    let versions = turn("first", "second");
    assert_eq!(versions.list(Order::Graph).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(versions.back(u64::MAX).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(versions.list(Order::Time).unwrap().len(), 2);
    assert_eq!(elements(&versions, "second", "/x"), [1, 2, 9, 4, 5]);
    // The one that was not committed, and is current.
    let versions = turn("dead", "dead");
    assert_eq!(versions.current().unwrap_err().kind(), ErrorKind::Corrupt);
}
