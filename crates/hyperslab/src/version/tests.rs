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
