//! Tests of stores.

use super::contract_tests::{check_all, check_reading, fill};
use super::*;
use crate::limits::Limits;
use crate::source::{FileSource, MemorySource, WriteOptions};

#[test]
fn memory() {
    check_all(&MemoryStore::new());
}

#[test]
fn directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirectoryStore::create(dir.path().join("new/store"), &Limits::default()).unwrap();
    check_all(&store);
    // Nothing is left over: no unfinished files, no empty folders.
    assert_eq!(std::fs::read_dir(dir.path().join("new/store")).unwrap().count(), 0);
    let missing = DirectoryStore::open(dir.path().join("none"), &Limits::default());
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
}

/// What is there and is no object is no absence, for whoever asks and in lists.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let store = DirectoryStore::open(dir.path(), &Limits::default()).unwrap();
    for key in ["folder", "loop", "loop/0/0", "socket"] {
        let errors = [store.len(key).unwrap_err(), store.get(key).unwrap_err(), store.open(key).unwrap_err()];
        for e in errors {
            assert!(
                e.kind() == ErrorKind::Io && e.to_string().contains(key.trim_end_matches("/0")),
                "{key}: {e}"
            );
        }
    }
    assert_eq!(store.search("").unwrap().objects, ["loop", "socket"]);
    assert!(!store.delete("folder").unwrap());
}

#[cfg(unix)]
#[test]
fn a_directory_is_not_left() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::create_dir_all(inside.join("real")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "s").unwrap();
    std::fs::write(inside.join("real/x"), "x").unwrap();
    symlink(&outside, inside.join("door")).unwrap();
    symlink(outside.join("secret"), inside.join("file")).unwrap();
    symlink("real", inside.join("same")).unwrap();
    symlink("..", inside.join("real/circle")).unwrap();
    symlink("nowhere", inside.join("broken")).unwrap();
    let store = DirectoryStore::open(&inside, &Limits::default()).unwrap();
    for _ in 0..2 {
        for key in ["door/secret", "door/none", "file"] {
            assert_eq!(store.get(key).unwrap_err().kind(), ErrorKind::Permission, "{key}");
            assert_eq!(store.len(key).unwrap_err().kind(), ErrorKind::Permission, "{key}");
        }
        let put = store.put("door/new/x", Bytes::new(), &Precondition::None);
        assert_eq!(put.unwrap_err().kind(), ErrorKind::Permission);
        assert_eq!(store.search("door").unwrap_err().kind(), ErrorKind::Permission);
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(store.get("same/x").unwrap().unwrap(), "x");
    // Absent is only what nobody put there: a link to nothing once led to something.
    for key in ["broken", "broken/x"] {
        let told = store.get(key).unwrap_err();
        assert!(
            told.kind() == ErrorKind::Io && told.to_string().contains("link to nothing"),
            "{key}: {told}"
        );
    }
    assert!(store.search("").unwrap().objects.contains(&"broken".to_owned()));
    // A circle of links ends.
    assert_eq!(store.list("real").unwrap_err().kind(), ErrorKind::Permission);
    std::fs::remove_file(inside.join("door")).unwrap();
    assert!(store.list("real").unwrap().contains(&"real/x".to_owned()));
    let open = DirectoryStore::open(&inside, &Limits::default().with_allow_outside(true)).unwrap();
    assert_eq!(open.get("file").unwrap().unwrap(), "s");
}

#[test]
fn a_directory_survives_writers_that_race() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(dir.path(), &Limits::default()).unwrap();
    let won = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for i in 0..8u8 {
            let (store, won) = (&store, &won);
            scope.spawn(move || {
                for round in 0..50 {
                    let once = store.put(&format!("g/{round}"), vec![i].into(), &Precondition::Absent);
                    won.fetch_add(once.is_ok().into(), std::sync::atomic::Ordering::Relaxed);
                    store.put(&format!("t{i}/a/b"), vec![i; 100].into(), &Precondition::None).unwrap();
                    assert_eq!(store.get(&format!("t{i}/a/b")).unwrap().unwrap(), vec![i; 100]);
                    assert!(store.delete(&format!("t{i}/a/b")).unwrap());
                    // All of these come and go in one folder.
                    store.put(&format!("s/{i}"), Bytes::new(), &Precondition::None).unwrap();
                    assert!(store.delete(&format!("s/{i}")).unwrap());
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 50);
    assert_eq!(store.list("").unwrap().len(), 50);
}

/// Writes a zip file for tests.
#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    central: Vec<u8>,
    entries: u64,
    zip64: bool,
    /// Bytes of an extra field that only local headers have.
    local_extra: usize,
}

impl Zip {
    fn add(&mut self, name: &str, data: &[u8], deflate: bool) {
        use std::io::Write;
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let stored = if deflate {
            let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(data).unwrap();
            out.finish().unwrap()
        } else {
            data.to_vec()
        };
        let method = if deflate { 8 } else { 0 };
        self.raw(name, &stored, data.len() as u64, crc.sum(), method, 0);
    }

    fn raw(&mut self, name: &str, stored: &[u8], length: u64, crc: u32, method: u16, flags: u16) {
        let header = self.bytes.len() as u64;
        let ones = u64::from(u32::MAX);
        let (short_length, short_stored, short_header) =
            if self.zip64 { (ones, ones, ones) } else { (length, stored.len() as u64, header) };
        let mut extra = Vec::new();
        if self.zip64 {
            extra.extend([9, 0, 2, 0, 7, 7]);
            extra.extend([1, 0, 24, 0]);
            for n in [length, stored.len() as u64, header] {
                extra.extend(n.to_le_bytes());
            }
        }
        let common = |out: &mut Vec<u8>, extra: usize| {
            out.extend([45, 0]);
            out.extend(flags.to_le_bytes());
            out.extend(method.to_le_bytes());
            out.extend([0; 4]);
            out.extend(crc.to_le_bytes());
            out.extend((short_stored as u32).to_le_bytes());
            out.extend((short_length as u32).to_le_bytes());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend((extra as u16).to_le_bytes());
        };
        self.bytes.extend(b"PK\x03\x04");
        common(&mut self.bytes, self.local_extra);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(vec![0; self.local_extra]);
        self.bytes.extend(stored);
        self.central.extend(b"PK\x01\x02\x2d\x00");
        common(&mut self.central, extra.len());
        self.central.extend([0; 10]);
        self.central.extend((short_header as u32).to_le_bytes());
        self.central.extend(name.as_bytes());
        self.central.extend(extra);
        self.entries += 1;
    }

    fn finish(mut self, comment: &[u8]) -> Vec<u8> {
        let start = self.bytes.len() as u64;
        self.bytes.extend(&self.central);
        let length = self.central.len() as u64;
        let (mut short, mut entries) = ([length as u32, start as u32], self.entries as u16);
        if self.zip64 {
            let at = self.bytes.len() as u64;
            self.bytes.extend(b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0\0\0\0\0\0\0\0\0");
            for n in [self.entries, self.entries, length, start] {
                self.bytes.extend(n.to_le_bytes());
            }
            self.bytes.extend(b"PK\x06\x07\0\0\0\0");
            self.bytes.extend(at.to_le_bytes());
            self.bytes.extend([1, 0, 0, 0]);
            (short, entries) = ([u32::MAX; 2], u16::MAX);
        }
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(entries.to_le_bytes());
        self.bytes.extend(entries.to_le_bytes());
        self.bytes.extend(short.iter().flat_map(|n| n.to_le_bytes()));
        self.bytes.extend((comment.len() as u16).to_le_bytes());
        self.bytes.extend(comment);
        self.bytes
    }
}

fn open_zip(bytes: impl Into<Bytes>) -> Result<ZipStore> {
    ZipStore::open(Arc::new(MemorySource::new(bytes, "test.zip")), &Limits::default())
}

/// The objects of the contract in a zip file, below `prefix`.
fn zipped(mut zip: Zip, prefix: &str, deflate: bool) -> Zip {
    let memory = MemoryStore::new();
    fill(&memory);
    zip.add(&format!("{prefix}empty"), b"an older version", deflate);
    for key in memory.list("").unwrap() {
        zip.add(&format!("{prefix}{key}"), &memory.get(&key).unwrap().unwrap(), deflate);
    }
    zip
}

#[test]
fn zip_files_of_every_kind() {
    for deflate in [false, true] {
        for zip64 in [false, true] {
            for local_extra in [0, 20, 500] {
                for prefix in ["", "sst.zarr/"] {
                    let zip = zipped(Zip { zip64, local_extra, ..Zip::default() }, prefix, deflate);
                    let store =
                        open_zip(zip.finish(b"a comment with PK\x05\x06 in it, and more behind")).unwrap();
                    check_reading(&store);
                }
            }
        }
    }
}

#[test]
fn zip_files_have_folders_and_things_before_them() {
    let mut zip = Zip::default();
    zip.add("s/", b"", false);
    zip.add("s/a/", b"", false);
    zip.add("s/a/b", b"12345", true);
    zip.add("../evil", b"no key", false);
    let mut bytes = b"#!/bin/sh\n".to_vec();
    bytes.extend(zip.finish(b""));
    let store = open_zip(bytes.clone()).unwrap();
    assert_eq!(store.list("").unwrap(), ["a/b"]);
    assert_eq!(store.get("a/b").unwrap().unwrap(), "12345");
    let source = Arc::new(MemorySource::new(bytes, "test.zip"));
    let root = ZipStore::open_at(source.clone(), "", &Limits::default()).unwrap();
    assert_eq!(root.list("").unwrap(), ["s/a/b"]);
    let other = ZipStore::open_at(source, "s/a", &Limits::default()).unwrap();
    assert_eq!(other.list("").unwrap(), ["b"]);
    assert_eq!(other.put("x", Bytes::new(), &Precondition::None).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(open_zip(Zip::default().finish(b"")).unwrap().list("").unwrap().is_empty());
}

#[test]
fn zip_files_refuse_what_they_cannot_read_one_by_one() {
    let mut zip = Zip::default();
    zip.add("good", b"12345", false);
    zip.raw("zstd", b"12345", 5, 0, 93, 0);
    zip.raw("secret", b"12345", 5, 0, 0, 1);
    zip.raw("sum", b"12345", 5, 1, 0, 0);
    zip.raw("short", b"12345", 9, 0, 0, 0);
    zip.raw("noise", b"\xff\xff\xff", 9, 0, 8, 0);
    zip.raw("bomb", b"12345", 1 << 31, 0, 8, 0);
    let limits = Limits::default().with_chunk(1 << 30);
    let source = Arc::new(MemorySource::new(zip.finish(b""), "test.zip"));
    let store = ZipStore::open(source, &limits).unwrap();
    let gets: Vec<_> = ["zstd", "good", "secret", "sum", "short", "noise", "bomb"].map(Get::whole).to_vec();
    let codes: Vec<_> = store
        .get_many(&gets)
        .into_iter()
        .map(|a| a.map_or_else(|e| e.code(), |found| if found.is_some() { "ok" } else { "absent" }))
        .collect();
    let unsupported = "E_UNSUPPORTED";
    assert_eq!(codes, [unsupported, "ok", unsupported, "E_CHECKSUM", "E_CORRUPT", "E_CORRUPT", "E_LIMIT"]);
    let text = store.get("zstd").unwrap_err().to_string();
    assert!(
        text.contains("method 93 of zip files (Zstandard)") && text.contains("zstd in test.zip"),
        "{text}"
    );
}

#[test]
fn a_zip_file_with_any_byte_changed_or_cut_off_does_no_harm() {
    let good = zipped(Zip { zip64: true, ..Zip::default() }, "", true).finish(b"end");
    let try_all = |bytes: Vec<u8>| {
        if let Ok(store) = open_zip(bytes) {
            for key in store.list("").unwrap() {
                let _ = store.get(&key);
                let _ = store.open(&key);
            }
        }
    };
    for at in 0..good.len() {
        for value in [0, 0x7f, 0xff, good[at] ^ 1] {
            let mut bad = good.clone();
            bad[at] = value;
            try_all(bad);
        }
        try_all(good[..at].to_vec());
    }
    assert_eq!(open_zip(vec![0; 100]).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(open_zip(Vec::new()).unwrap_err().kind(), ErrorKind::Corrupt);
}

fn zip_writer(path: &std::path::Path) -> ZipWriter {
    ZipWriter::create(path, &Limits::default(), &WriteOptions::new()).unwrap()
}

fn open_at(path: &std::path::Path) -> ZipStore {
    ZipStore::open(Arc::new(FileSource::open(path).unwrap()), &Limits::default()).unwrap()
}

#[test]
fn a_zip_file_is_written_and_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.zip");
    let writer = zip_writer(&path);
    contract_tests::check_all(&writer);
    fill(&writer);
    // Nobody sees anything yet, not even a file beside.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    writer.commit().unwrap();
    check_reading(&open_at(&path));
    check_reading(&writer);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    // The same whatever order and threads: the bytes as well.
    let first = std::fs::read(&path).unwrap();
    let other = folder.path().join("other.zip");
    let again = zip_writer(&other);
    let memory = MemoryStore::new();
    fill(&memory);
    again.put("ab", "an older version".into(), &Precondition::None).unwrap();
    for key in memory.list("").unwrap().iter().rev() {
        again.put(key, memory.get(key).unwrap().unwrap(), &Precondition::None).unwrap();
    }
    again.commit().unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), first);
    // What is there is changed, and stays as it was without a commit.
    let edit = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap();
    edit.put("ab", "new".into(), &Precondition::Matches(edit.version("ab").unwrap().unwrap())).unwrap();
    assert!(edit.delete("empty").unwrap());
    drop(edit);
    assert_eq!(std::fs::read(&path).unwrap(), first);
    let edit = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap();
    check_reading(&edit);
    edit.put("ab", "new".into(), &Precondition::None).unwrap();
    assert!(edit.delete("empty").unwrap());
    edit.commit().unwrap();
    let read = open_at(&path);
    assert_eq!((read.get("ab").unwrap().unwrap(), read.get("empty").unwrap()), ("new".into(), None));
    assert_eq!(read.get("a/0.0").unwrap().unwrap(), "0123456789");
    // And once more with the same writer.
    edit.put("ab", "not below a".into(), &Precondition::None).unwrap();
    edit.put("empty", Bytes::new(), &Precondition::Absent).unwrap();
    edit.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn a_zip_file_of_others_is_taken_over_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.zip");
    for deflate in [false, true] {
        for prefix in ["", "s.zarr/"] {
            let zip = zipped(Zip { zip64: true, local_extra: 20, ..Zip::default() }, prefix, deflate);
            std::fs::write(&path, zip.finish(b"")).unwrap();
            let edit = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap();
            check_reading(&edit);
            edit.put("a/new", "more".into(), &Precondition::Absent).unwrap();
            edit.commit().unwrap();
            assert_eq!(open_at(&path).list("").unwrap().len(), 9);
            assert!(edit.delete("a/new").unwrap());
            edit.commit().unwrap();
            check_reading(&open_at(&path));
            let all = ZipStore::open_at(Arc::new(FileSource::open(&path).unwrap()), "", &Limits::default());
            assert!(all.unwrap().list("").unwrap().iter().all(|key| key.starts_with(prefix)));
        }
    }
    // What would be lost is refused.
    let mut zip = Zip::default();
    zip.add("good", b"12345", false);
    zip.add("../evil", b"no key", false);
    std::fs::write(&path, zip.finish(b"")).unwrap();
    let refused = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap_err();
    assert!(refused.kind() == ErrorKind::Unsupported && refused.to_string().contains("../evil"), "{refused}");
    let mut zip = Zip::default();
    zip.raw("secret", b"12345", 5, 0, 0, 1);
    std::fs::write(&path, zip.finish(b"")).unwrap();
    let refused = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
}

#[test]
fn a_zip_file_is_not_written_over_what_others_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.zip");
    let (one, two) = (zip_writer(&path), zip_writer(&path));
    one.put("a", "one".into(), &Precondition::None).unwrap();
    two.put("a", "two".into(), &Precondition::None).unwrap();
    one.commit().unwrap();
    assert_eq!(two.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
    let edit = |text: &'static str| {
        let edit = ZipWriter::edit(&path, &Limits::default(), &WriteOptions::new()).unwrap();
        edit.put("a", text.into(), &Precondition::None).unwrap();
        edit
    };
    let (three, four) = (edit("three"), edit("four"));
    four.commit().unwrap();
    let lost = three.commit().unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Changed, "{lost}");
    assert_eq!(open_at(&path).get("a").unwrap().unwrap(), "four");
    let folder_in = zip_writer(&folder.path().join("nc.zip")).with_prefix("nc.zip").unwrap();
    folder_in.put(".zgroup", "{}".into(), &Precondition::None).unwrap();
    folder_in.commit().unwrap();
    let source = Arc::new(FileSource::open(folder.path().join("nc.zip")).unwrap());
    let root = ZipStore::open_at(source, "", &Limits::default()).unwrap();
    assert_eq!(root.list("").unwrap(), ["nc.zip/.zgroup"]);
}

/// A folder that is replaced has always its name, is not taken from a writer, and what is left of killed ones goes.
#[test]
fn a_folder_takes_the_place_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    let options = WriteOptions::new().with_overwrite(true);
    let put = |new: &NewDirectory, text: &'static str| {
        new.store().put("a", text.into(), &Precondition::None).unwrap();
    };
    for (n, text) in ["one", "two"].into_iter().enumerate() {
        // One that was killed, and one that is being made.
        std::fs::create_dir_all(dir.path().join(".s.zarr.hyperslab-unfinished-1-0/c")).unwrap();
        let other = NewDirectory::create(&path, &options, &Limits::default()).unwrap();
        let new = NewDirectory::create(&path, &options, &Limits::default()).unwrap();
        put(&new, text);
        let old = std::fs::File::open(&path).ok();
        new.publish().unwrap();
        assert_eq!(old.is_some(), n > 0);
        assert_eq!(std::fs::read_to_string(path.join("a")).unwrap(), text);
        // Itself, and the one that is being made.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        drop(other);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
    let store = DirectoryStore::open(&path, &Limits::default()).unwrap();
    let claim = store.claim().unwrap();
    let new = NewDirectory::create(&path, &options, &Limits::default()).unwrap();
    put(&new, "three");
    let refused = new.publish().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Permission, "{refused}");
    drop(claim);
    assert_eq!(std::fs::read_to_string(path.join("a")).unwrap(), "two");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_killed_writers_left_in_a_store_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(dir.path(), &Limits::default()).unwrap();
    std::fs::create_dir_all(dir.path().join("w/x/y")).unwrap();
    for name in [
        "w/.hyperslab-unfinished-1-2",
        "w/x/.hyperslab-unfinished-1-3",
        "w/kept",
        ".hyperslab-unfinished-1-4",
    ] {
        std::fs::write(dir.path().join(name), b"half").unwrap();
    }
    store.sweep("w").unwrap();
    store.sweep("none").unwrap();
    assert_eq!(store.list("").unwrap(), ["w/kept"]);
    assert!(!dir.path().join("w/x").exists());
    assert!(dir.path().join(".hyperslab-unfinished-1-4").exists());
}
