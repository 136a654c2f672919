//! Zarr hierarchies in memory, made here byte by byte.

use bytes::Bytes;
use hyperslab::codec::{BindContext, FilterSpec, Registry, Scratch};
use hyperslab::dtype::DType;
use hyperslab::json::Json;
use hyperslab::model::Workers;
use hyperslab::source::store::{Get, Listing, Precondition, Version};
use hyperslab::source::write::WriteOptions;
use hyperslab::source::{MemoryStore, ReadHints, Source, Store, ZipWriter};
use hyperslab::{Error, ErrorKind, File, Limits, MissingChunks, OpenOptions, Selection};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn store(objects: &[(&str, &[u8])]) -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    for (key, bytes) in objects {
        store.put(key, bytes.to_vec().into(), &Precondition::None).unwrap();
    }
    Arc::new(store)
}

fn open_with(store: Arc<MemoryStore>, options: &OpenOptions) -> File {
    let hierarchy = hyperslab::format::open_store(store, Limits::default()).unwrap();
    File::from_hierarchy(hierarchy, "test", options)
}

fn open(objects: &[(&str, &[u8])]) -> File {
    open_with(store(objects), &OpenOptions::default())
}

fn all<T: hyperslab::dtype::Element>(file: &File, path: &str) -> Result<Vec<T>, Error> {
    Ok(file.array(path)?.read::<T>(Selection::all())?.data)
}

const GROUP: (&str, &[u8]) = (".zgroup", br#"{"zarr_format":2}"#);

fn v2(dtype: &str, fill: &str, more: &str) -> String {
    format!(
        r#"{{"zarr_format":2,"shape":[3,4],"chunks":[2,3],"dtype":{dtype},"fill_value":{fill},"compressor":null,"filters":null,"order":"C"{more}}}"#
    )
}

#[test]
fn chunks_of_version_2_are_objects_and_missing_ones_the_fill_value() {
    let document = v2("\">i2\"", "-1", "");
    let chunk: Vec<u8> = (0..6i16).flat_map(i16::to_be_bytes).collect();
    let objects = [GROUP, ("a/.zarray", document.as_bytes()), ("a/0.0", &chunk)];
    let file = open(&objects);
    let wanted = [0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1];
    assert_eq!(all::<i16>(&file, "/a").unwrap(), wanted);
    let raise = open_with(store(&objects), &OpenOptions::default().with_missing(MissingChunks::Raise));
    assert_eq!(all::<i16>(&raise, "/a").unwrap_err().kind(), ErrorKind::NotFound);
    // A chunk of another length is damage, not data.
    let short = open(&[GROUP, ("a/.zarray", document.as_bytes()), ("a/0.0", &chunk[1..])]);
    assert_eq!(all::<i16>(&short, "/a").unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Planes of bytes, as `shuffle` stores elements of two bytes.
fn shuffled(values: impl Iterator<Item = i16> + Clone) -> Vec<u8> {
    let low = values.clone().map(|v| v.to_le_bytes()[0]);
    low.chain(values.map(|v| v.to_le_bytes()[1])).collect()
}

#[test]
fn a_chunk_that_was_read_in_part_is_kept_until_its_object_changes() {
    let document =
        v2("\"<i2\"", "0", "").replace("\"filters\":null", r#""filters":[{"id":"shuffle","elementsize":2}]"#);
    let first = shuffled(0..6i16);
    let objects = store(&[GROUP, ("a/.zarray", document.as_bytes()), ("a/0.0", &first)]);
    let read = |file: &hyperslab::Array, text: &str| {
        let (got, stats) =
            file.read_with::<i16>(Selection::parse(text).unwrap(), &Default::default()).unwrap();
        (got.data, stats.chunks_decoded, stats.chunks_kept, stats.requests)
    };
    let array = open_with(objects.clone(), &OpenOptions::default()).array("/a").unwrap();
    // Nothing is kept of what is read whole.
    assert_eq!(read(&array, "0:2, 0:3"), ((0..6).collect(), 1, 0, 1));
    assert_eq!(read(&array, "0, 0"), (vec![0], 1, 0, 1));
    assert_eq!(read(&array, "1, 2"), (vec![5], 0, 1, 0));
    objects.put("a/0.0", shuffled(10..16i16).into(), &Precondition::None).unwrap();
    assert_eq!(read(&array, "1, 2"), (vec![15], 1, 0, 1));
    let forgetful = OpenOptions::default().with_cache(hyperslab::ChunkCache::new(0));
    let array = open_with(objects.clone(), &forgetful).array("/a").unwrap();
    assert_eq!(read(&array, "0, 0"), (vec![10], 1, 0, 1));
    assert_eq!(read(&array, "1, 2"), (vec![15], 1, 0, 1));
    // A chunk too large for half of the room is not kept either.
    let small = OpenOptions::default().with_cache(hyperslab::ChunkCache::new(23));
    let array = open_with(objects, &small).array("/a").unwrap();
    assert_eq!(read(&array, "0, 0"), (vec![10], 1, 0, 1));
    assert_eq!(read(&array, "1, 2"), (vec![15], 1, 0, 1));
}

#[test]
fn missing_chunks_of_floats_may_be_nan() {
    let document = v2("\"<f4\"", "0.0", "");
    let objects = store(&[("a/.zarray", document.as_bytes())]);
    let file = open_with(objects, &OpenOptions::default().with_missing(MissingChunks::Nan));
    assert!(all::<f32>(&file, "/a").unwrap().iter().all(|v| v.is_nan()));
}

#[test]
fn missing_chunks_of_texts_raise_as_others_do() {
    let document = v2("\"|O\"", "\"-\"", "").replace("\"filters\":null", r#""filters":[{"id":"vlen-utf8"}]"#);
    let objects = [("a/.zarray", document.as_bytes())];
    let read = |raise| {
        let registry = Registry::default();
        let hierarchy =
            hyperslab::format::open_store_with(store(&objects), Limits::default(), registry, raise).unwrap();
        let file = File::from_hierarchy(hierarchy, "test", &OpenOptions::default());
        file.array("/a").unwrap().read_elements(Selection::all())
    };
    assert!(read(false).is_ok());
    let error = read(true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("chunk [0, 0]"), "{error}");
}

#[test]
fn an_object_longer_than_a_chunk_may_be_is_not_read() {
    let document = v2("\"|u1\"", "0", r#","more":0"#)
        .replace("\"compressor\":null", r#""compressor":{"id":"zlib","level":1}"#);
    let long = vec![0; 4096];
    let objects = store(&[("a/.zarray", document.as_bytes()), ("a/0.0", &long)]);
    let mut limits = Limits::default();
    limits.chunk = 1024;
    let file = open_with(objects, &OpenOptions::default().with_limits(limits));
    assert_eq!(all::<u8>(&file, "/a").unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn order_f_and_nested_keys() {
    let document = v2("\"|u1\"", "null", r#","dimension_separator":"/""#).replace("\"C\"", "\"F\"");
    let file = open(&[("a/.zarray", document.as_bytes()), ("a/0/0", &[0, 3, 1, 4, 2, 5])]);
    assert_eq!(all::<u8>(&file, "/a").unwrap(), [0, 1, 2, 0, 3, 4, 5, 0, 0, 0, 0, 0]);
}

#[test]
fn objects_are_lists_behind_their_lengths() {
    let document = v2("\"|O\"", "\"-\"", "").replace("\"filters\":null", r#""filters":[{"id":"vlen-utf8"}]"#);
    let mut chunk = 6u32.to_le_bytes().to_vec();
    for text in ["a", "", "é", "d\0e", "f", "g"] {
        chunk.extend_from_slice(&(text.len() as u32).to_le_bytes());
        chunk.extend_from_slice(text.as_bytes());
    }
    let file = open(&[("a/.zarray", document.as_bytes()), ("a/0.0", &chunk)]);
    let texts = file.array("/a").unwrap().read_strings(Selection::all()).unwrap();
    assert_eq!(texts, ["a", "", "é", "-", "d\0e", "f", "g", "-", "-", "-", "-", "-"]);
    for length in 0..chunk.len() {
        let cut = open(&[("a/.zarray", document.as_bytes()), ("a/0.0", &chunk[..length])]);
        let error = cut.array("/a").unwrap().read_strings(Selection::all()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}");
    }
}

/// Counts what it is given to do, and does it in threads of its own.
#[derive(Debug, Default)]
struct Counted(AtomicUsize);

impl Workers for Counted {
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        self.0.fetch_add(count, Ordering::Relaxed);
        std::thread::scope(|scope| (0..count).for_each(|i| drop(scope.spawn(move || work(i)))));
    }
}

#[test]
fn chunks_of_texts_are_decoded_by_the_workers_of_their_file() {
    let document = v2("\"|O\"", "\"-\"", "").replace("\"filters\":null", r#""filters":[{"id":"vlen-utf8"}]"#);
    let chunk = |from: usize| {
        let texts = (from..from + 6).map(|i| i.to_string());
        let stored = texts.flat_map(|t| [&(t.len() as u32).to_le_bytes()[..], t.as_bytes()].concat());
        [&6u32.to_le_bytes()[..], &stored.collect::<Vec<u8>>()].concat()
    };
    let chunks = [0, 10, 20].map(chunk);
    let hierarchy = hyperslab::format::open_store(
        store(&[
            ("a/.zarray", document.as_bytes()),
            ("a/0.0", &chunks[0]),
            ("a/0.1", &chunks[1]),
            ("a/1.1", &chunks[2]),
        ]),
        Limits::default(),
    );
    let hierarchy = hierarchy.unwrap();
    let workers = Arc::new(Counted::default());
    hierarchy.employ(workers.clone());
    let file = File::from_hierarchy(hierarchy, "test", &OpenOptions::default());
    let texts = file.array("/a").unwrap().read_strings(Selection::all()).unwrap();
    assert_eq!(texts, ["0", "1", "2", "10", "3", "4", "5", "13", "-", "-", "-", "20"]);
    // All four are asked for; one of them is not there.
    assert_eq!(workers.0.load(Ordering::Relaxed), 4);
}

fn v3(codecs: &str) -> String {
    format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":[4,4],"data_type":"uint8","fill_value":9,
        "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[4,2]}}}},
        "chunk_key_encoding":{{"name":"default"}},"dimension_names":["y",null],
        "attributes":{{"units":"m"}},"codecs":[{codecs}]}}"#
    )
}

/// A shard of four chunks of 2 × 1, of which the first and last are there.
fn shard(at_start: bool) -> Vec<u8> {
    shard_from(at_start, if at_start { 68 } else { 0 })
}

/// The same with an index that says that the chunks begin at `base`.
fn shard_from(at_start: bool, base: u64) -> Vec<u8> {
    let none = [u64::MAX, u64::MAX];
    let entries = [[base, 2], none, none, [base + 2, 2]];
    let mut index: Vec<u8> = entries.as_flattened().iter().flat_map(|n| n.to_le_bytes()).collect();
    index.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
    let data = vec![1, 2, 3, 4];
    if at_start { [index, data].concat() } else { [data, index].concat() }
}

fn sharded(place: &str) -> String {
    v3(&format!(
        r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":[2,1],"codecs":[{{"name":"bytes"}}],
        "index_codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}},{{"name":"crc32c"}}],
        "index_location":"{place}"}}}}"#
    ))
}

#[test]
fn shards_give_their_chunks() {
    for (place, at_start) in [("end", false), ("start", true)] {
        let document = sharded(place);
        let shard = shard(at_start);
        let file = open(&[("zarr.json", document.as_bytes()), ("c/0/1", &shard)]);
        let wanted = [9, 9, 1, 9, 9, 9, 2, 9, 9, 9, 9, 3, 9, 9, 9, 4];
        assert_eq!(all::<u8>(&file, "/").unwrap(), wanted, "{place}");
        for length in 0..shard.len() {
            let cut = open(&[("zarr.json", document.as_bytes()), ("c/0/1", &shard[..length])]);
            assert!(all::<u8>(&cut, "/").is_err(), "{place} {length}");
        }
        let at = if at_start { 5 } else { shard.len() - 5 };
        let mut damaged = shard.clone();
        damaged[at] ^= 1;
        let damaged = open(&[("zarr.json", document.as_bytes()), ("c/0/1", &damaged)]);
        assert_eq!(all::<u8>(&damaged, "/").unwrap_err().kind(), ErrorKind::Checksum);
    }
}

/// Others write indexes and texts of UTF-32 without a byte order, and mean the little one.
#[test]
fn indexes_and_texts_need_no_byte_order() {
    let document = sharded("end").replace(r#","configuration":{"endian":"little"}"#, "");
    let file = open(&[("zarr.json", document.as_bytes()), ("c/0/1", &shard(false))]);
    assert_eq!(all::<u8>(&file, "/").unwrap()[..3], [9, 9, 1]);
    let texts = r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":4}}"#;
    let document = v3(r#"{"name":"bytes"}"#).replace("\"uint8\"", texts).replace(":9,", ":\"\",");
    let file = open(&[("zarr.json", document.as_bytes()), ("c/0/0", &[b'a', 0, 0, 0].repeat(8))]);
    let values = file.array("/").unwrap().read_values(Selection::parse("0, 0").unwrap()).unwrap();
    assert_eq!(values[0].as_str(), Some("a"));
}

/// The bytes of an index are not data.
#[test]
fn chunks_inside_the_index_of_their_shard_are_corrupt() {
    for (place, at_start, base) in [("start", true, 8), ("end", false, 1), ("end", false, 40)] {
        let shard = shard_from(at_start, base);
        let file = open(&[("zarr.json", sharded(place).as_bytes()), ("c/0/1", &shard)]);
        assert_eq!(all::<u8>(&file, "/").unwrap_err().kind(), ErrorKind::Corrupt, "{place} {base}");
        let mut faults = Vec::new();
        file.array("/").unwrap().verify(&mut |f| faults.push(f.error.to_string()));
        assert!(faults.iter().any(|f| f.contains("chunk [")), "{place} {base}: {faults:?}");
    }
}

#[test]
fn only_the_index_and_the_wanted_chunks_of_a_shard_are_read() {
    let document = sharded("end");
    let file = open(&[("zarr.json", document.as_bytes()), ("c/0/1", &shard(false))]);
    let plan = file.array("/").unwrap().plan(Selection::parse("[2:4, 3]").unwrap()).unwrap();
    assert_eq!(plan.summary().unwrap().bytes_read, 2);
}

/// A wrong separator makes all chunks seem to be missing.
#[test]
fn chunks_under_other_keys_are_told() {
    let chunk = [0; 12];
    for (more, key, faults) in [
        ("", "a/0/0", 1),
        ("", "a/c/0/1", 1),
        (r#","dimension_separator":"/""#, "a/0.1", 1),
        (r#","dimension_separator":"/""#, "a/0/1", 0),
        // No chunks of this array.
        ("", "a/7/7", 0),
        ("", "a/notes", 0),
    ] {
        let document = v2("\"<i2\"", "0", more);
        let file = open(&[GROUP, ("a/.zarray", document.as_bytes()), (key, &chunk)]);
        let mut found = Vec::new();
        file.array("/a").unwrap().verify(&mut |f| found.push(f.error.to_string()));
        assert_eq!(found.len(), faults, "{key}: {found:?}");
        assert!(found.iter().all(|f| f.contains(key.trim_start_matches("a/"))), "{found:?}");
    }
}

/// A file that stays open while another program writes its shards anew.
#[test]
fn the_index_and_the_chunks_of_a_shard_are_of_one_state() {
    let document = sharded("end");
    let store = store(&[("zarr.json", document.as_bytes()), ("c/0/1", &shard(false))]);
    let file = open_with(store.clone(), &OpenOptions::default());
    let read = || file.array("/").unwrap().read::<u8>(Selection::parse("[0, 2]").unwrap()).map(|a| a.data);
    assert_eq!(read().unwrap(), [1]);
    let mut longer = shard(false);
    longer.splice(..4, [0, 0, 5, 6, 7, 8]);
    let index = longer.len() - 68;
    longer[index..index + 8].copy_from_slice(&2u64.to_le_bytes());
    let check = crc32c::crc32c(&longer[index..index + 64]).to_le_bytes();
    longer[index + 64..].copy_from_slice(&check);
    store.put("c/0/1", longer.into(), &Precondition::None).unwrap();
    assert_eq!(read().unwrap(), [5]);
}

/// No group of a zip file hides others beside it.
#[test]
fn the_root_of_a_zip_file_is_around_all_of_its_documents() {
    let folder = tempfile::tempdir().unwrap();
    for (n, (keys, paths)) in [
        (vec!["s/.zgroup", "s/a/.zgroup"], vec!["/", "/a"]),
        (vec!["x/.zgroup", "x/a/.zgroup", "y/.zgroup"], vec!["/", "/x", "/x/a", "/y"]),
        (vec!["s/one/.zgroup", "s/onetwo/.zgroup", "t"], vec!["/", "/one", "/onetwo"]),
        (vec![".zgroup", "a/.zgroup"], vec!["/", "/a"]),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{n}.zip"));
        let zip = ZipWriter::create(&path, &Limits::default(), &WriteOptions::default()).unwrap();
        for key in &keys {
            zip.put(key, GROUP.1.to_vec().into(), &Precondition::None).unwrap();
        }
        zip.commit().unwrap();
        let found: Vec<String> = hyperslab::open(&path).unwrap().walk().map(|e| e.path).collect();
        assert_eq!(found, paths, "{keys:?}");
    }
}

/// Programs of Windows wrote `\\` between the names of folders.
#[test]
fn names_in_a_zip_file_may_be_joined_by_backslashes() {
    let folder = tempfile::tempdir().unwrap();
    let array = v2("\"|u1\"", "7", "");
    for (name, keys, is_read) in [
        ("plain", [".zgroup", "a\\.zarray", "a\\0.0"], true),
        ("in a folder", ["s\\.zgroup", "s\\a\\.zarray", "s\\a\\0.0"], true),
        // Beside names with / it is a character of its own.
        ("mixed", [".zgroup", "a/.zarray", "a\\0.0"], false),
    ] {
        let path = folder.path().join(name).with_extension("zip");
        let zip = ZipWriter::create(&path, &Limits::default(), &WriteOptions::default()).unwrap();
        for (key, bytes) in keys.iter().zip([GROUP.1, array.as_bytes(), &[1; 6]]) {
            zip.put(key, bytes.to_vec().into(), &Precondition::None).unwrap();
        }
        zip.commit().unwrap();
        let file = hyperslab::open(&path).unwrap();
        let first = all::<u8>(&file, "/a").unwrap()[0];
        assert_eq!(first, if is_read { 1 } else { 7 }, "{name}");
    }
}

#[test]
fn one_array_with_an_unknown_codec_hides_no_other() {
    let (good, bad) = (v3(r#"{"name":"bytes"}"#), v3(r#"{"name":"bytes"},{"name":"magic"}"#));
    let odd = v3(r#"{"name":"bytes"}"#).replace("uint8", "sevenbit");
    let file = open(&[
        ("good/zarr.json", good.as_bytes()),
        ("bad/zarr.json", bad.as_bytes()),
        ("bad/c/0/0", &[0; 8]),
        ("odd/zarr.json", odd.as_bytes()),
        ("broken/zarr.json", b"{"),
    ]);
    assert_eq!(all::<u8>(&file, "/good").unwrap(), [9; 16]);
    let error = all::<u8>(&file, "/bad").unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("magic"), "{error}");
    assert_eq!(all::<u8>(&file, "/odd").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(all::<u8>(&file, "/broken").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(file.walk().count(), 5);
    let array = file.array("/good").unwrap();
    assert_eq!(array.attribute("units").unwrap().as_str(), Some("m"));
    let names = file.hierarchy().dimension_names(array.node()).unwrap().unwrap();
    assert_eq!(names, [Some("y".into()), None]);
}

/// A store whose answers about one key are errors.
#[derive(Debug)]
struct Failing {
    inner: Arc<MemoryStore>,
    key: &'static str,
    kind: ErrorKind,
}

impl Failing {
    fn check(&self, key: &str) -> Result<(), Error> {
        if key == self.key { Err(Error::new(self.kind, format!("{key} failed"))) } else { Ok(()) }
    }
}

impl Store for Failing {
    fn len(&self, key: &str) -> hyperslab::Result<Option<u64>> {
        self.check(key).and_then(|()| self.inner.len(key))
    }

    fn get_many(&self, gets: &[Get]) -> Vec<hyperslab::Result<Option<Bytes>>> {
        let one = |get: &Get| {
            self.check(&get.key).and_then(|()| self.inner.get_many(std::slice::from_ref(get)).remove(0))
        };
        gets.iter().map(one).collect()
    }

    fn version(&self, key: &str) -> hyperslab::Result<Option<Version>> {
        self.check(key).and_then(|()| self.inner.version(key))
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> hyperslab::Result<Version> {
        self.inner.put(key, bytes, when)
    }

    fn delete(&self, key: &str) -> hyperslab::Result<bool> {
        self.inner.delete(key)
    }

    fn list(&self, prefix: &str) -> hyperslab::Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn search(&self, prefix: &str) -> hyperslab::Result<Listing> {
        self.inner.search(prefix)
    }

    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }

    fn name(&self) -> String {
        "failing".into()
    }

    fn open(&self, key: &str) -> hyperslab::Result<Option<Arc<dyn Source>>> {
        self.check(key).and_then(|()| self.inner.open(key))
    }
}

#[test]
fn only_what_the_store_says_is_absent_is_fill() {
    let plain = v3(r#"{"name":"bytes"}"#);
    let packed = v3(r#"{"name":"bytes"},{"name":"crc32c"}"#);
    let texts = plain
        .replace("uint8", "string")
        .replace("bytes", "vlen-utf8")
        .replace("\"fill_value\":9", "\"fill_value\":\"\"");
    let shards = sharded("end");
    for document in [&plain, &packed, &shards, &texts] {
        for kind in [ErrorKind::Permission, ErrorKind::Io, ErrorKind::Changed, ErrorKind::InvalidArgument] {
            let inner = store(&[("zarr.json", document.as_bytes())]);
            let failing = Arc::new(Failing { inner, key: "c/0/1", kind });
            let hierarchy = hyperslab::format::open_store(failing, Limits::default()).unwrap();
            let file = File::from_hierarchy(hierarchy, "test", &OpenOptions::default());
            let array = file.array("/").unwrap();
            // What does not touch it is fill.
            assert!(array.read_elements(Selection::parse("[:, :2]").unwrap()).is_ok(), "{document}");
            let error = array.read_elements(Selection::all()).unwrap_err();
            assert!(
                error.kind() == kind && error.to_string().contains("c/0/1"),
                "{kind:?} {document}: {error}"
            );
            let mut faults = Vec::new();
            array.verify(&mut |f| faults.push(f.error.to_string()));
            assert!(faults.iter().any(|f| f.contains("c/0/1")), "{kind:?} {document}: {faults:?}");
        }
    }
}

/// What is no object in the place of a chunk, or of the folders that it is in, is a fault.
#[cfg(unix)]
#[test]
fn a_folder_in_the_place_of_a_chunk_is_no_fill() {
    let document = v3(r#"{"name":"bytes"}"#);
    type Make = fn(&std::path::Path) -> std::io::Result<()>;
    let folder: Make = |path| std::fs::create_dir_all(path);
    let full: Make = |path| {
        std::fs::create_dir_all(path)?;
        std::fs::write(path.join("x"), "x")
    };
    let link: Make = |path| std::os::unix::fs::symlink(path.file_name().unwrap_or_default(), path);
    let file: Make = |path| std::fs::write(path, "x");
    let socket: Make = |path| std::os::unix::net::UnixListener::bind(path).map(|_| ());
    for (key, make, named) in [
        ("c/0/1", folder, "c/0/1"),
        ("c/0/1", full, "c/0/1"),
        ("c/0/1", link, "c/0/1"),
        ("c/0/1", socket, "c/0/1"),
        ("c/0", link, "c/0"),
        ("c", link, "c"),
        ("c/0", file, "c/0 is a file"),
        ("c", file, "c is a file"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("zarr.json"), &document).unwrap();
        std::fs::create_dir_all(dir.path().join(key).parent().unwrap()).unwrap();
        make(&dir.path().join(key)).unwrap();
        let array = hyperslab::open(dir.path()).unwrap().array("/").unwrap();
        let error = array.read::<u8>(Selection::all()).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains(named), "{key}: {error}");
        let mut faults = Vec::new();
        array.verify(&mut |f| faults.push(f.error.to_string()));
        let named = named.split(' ').next().unwrap();
        assert!(faults.iter().any(|f| f.contains(named)), "{key}: {faults:?}");
    }
}

#[test]
fn keys_of_chunks_may_have_suffixes_and_fan_out() {
    for (encoding, key) in [
        (
            r#"{"name":"suffix","configuration":{"suffix":".bin","base_encoding":{"name":"default"}}}"#,
            "c/0/1.bin",
        ),
        (r#"{"name":"fanout","configuration":{"max_children":5}}"#, "d0/0/d1/1/c"),
        (r#"{"name":"v2","configuration":{"separator":"/"}}"#, "0/1"),
    ] {
        let document = v3(r#"{"name":"bytes"}"#).replace(r#"{"name":"default"}"#, encoding);
        let file = open(&[("zarr.json", document.as_bytes()), (key, &[1, 2, 3, 4, 5, 6, 7, 8])]);
        let wanted = [9, 9, 1, 2, 9, 9, 3, 4, 9, 9, 5, 6, 9, 9, 7, 8];
        assert_eq!(all::<u8>(&file, "/").unwrap(), wanted, "{encoding}");
        assert_eq!(file.array("/").unwrap().verify(&mut |f| panic!("{:?}", f.error)).chunks, 1, "{encoding}");
    }
}

#[test]
fn text_of_old_netcdf_without_nczarr_is_of_single_bytes() {
    let document = r#"{"zarr_format": 2, "shape": [3,2], "dtype": "<U1", "chunks": [3,2], "fill_value": "",
        "order": "C", "compressor": null, "filters": null}"#;
    let mark = br#"{"_NCProperties": "version=2,netcdf=4.9.0,nczarr=2.0.0"}"#;
    let file = open(&[GROUP, (".zattrs", mark), ("c/.zarray", document.as_bytes()), ("c/0.0", b"abcdef")]);
    assert_eq!(file.array("/c").unwrap().read_packed(Selection::all()).unwrap().bytes, b"abcdef");
}

#[test]
fn small_floats_are_numbers() {
    for (data_type, fill, chunk, wanted) in [
        // 1, -2.5, infinity, the smallest.
        (
            "bfloat16",
            "3.0",
            &[0x80, 0x3f, 0x20, 0xc0, 0x80, 0x7f, 1, 0][..],
            [1.0, -2.5, f32::INFINITY, f32::from_bits(1 << 16)],
        ),
        ("float8_e4m3", "3.0", &[0x38, 0xc2, 0x78, 1], [1.0, -2.5, f32::INFINITY, 2f32.powi(-9)]),
        ("float8_e5m2", "3.0", &[0x3c, 0xc1, 0x7c, 1], [1.0, -2.5, f32::INFINITY, 2f32.powi(-16)]),
        ("float8_e3m4", "\"0x48\"", &[0x30, 0xc4, 0x70, 1], [1.0, -2.5, f32::INFINITY, 2f32.powi(-6)]),
    ] {
        let document = format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[6],"data_type":"{data_type}","fill_value":{fill},
            "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[4]}}}},
            "codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}]}}"#
        );
        let file = open(&[("zarr.json", document.as_bytes()), ("c/0", chunk)]);
        let wanted = [&wanted[..], &[3.0, 3.0]].concat();
        assert_eq!(all::<f32>(&file, "/").unwrap(), wanted, "{data_type}");
    }
}

/// What cannot be read is refused by its name, and hides nothing else.
#[test]
fn what_is_not_read_is_named() {
    let v2_codec = |codec: &str| {
        v2("\"<f8\"", "0", "").replace("\"compressor\":null", &format!("\"compressor\":{codec}"))
    };
    let objects =
        |codec: &str| v2("\"|O\"", "null", "").replace("\"filters\":null", &format!("\"filters\":[{codec}]"));
    let v3_type = |name: &str| v3(r#"{"name":"bytes"}"#).replace("uint8", name);
    let mut documents = vec![
        (".zarray", v2_codec(r#"{"id":"zfpy","mode":4}"#), "zfpy"),
        (".zarray", v2_codec(r#"{"id":"lzma","format":3,"filters":[{"id":4},{"id":33}]}"#), "{\"id\":4}"),
        (".zarray", v2_codec(r#"{"id":"jenkins_lookup3","prefix":"x"}"#), "prefix"),
        (".zarray", objects(r#"{"id":"pickle","protocol":5}"#), "pickle"),
        (".zarray", objects(r#"{"id":"vlen-array","dtype":"<i4"}"#), "vlen-array"),
        (
            ".zarray",
            objects(r#"{"id":"categorize","labels":["a"],"dtype":"|O","astype":"|u1"}"#),
            "categorize",
        ),
        (".zarray", objects(r#"{"id":"msgpack2"}"#), "msgpack2"),
        ("zarr.json", v3(r#"{"name":"bytes"},{"name":"zfpy"}"#), "zfpy"),
    ];
    let types = [
        "int4",
        "uint2",
        "float8_e4m3fn",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "complex_float6_e2m3fn",
    ];
    documents.extend(types.map(|name| ("zarr.json", v3_type(name), name)));
    let encoding = v3(r#"{"name":"bytes"}"#).replace(r#"{"name":"default"}"#, r#"{"name":"template"}"#);
    documents.push(("zarr.json", encoding, "template"));
    for (name, document, word) in documents {
        let document_key = format!("a/{name}");
        let file =
            open(&[GROUP, (&document_key, document.as_bytes()), ("a/0.0", &[0; 48]), ("a/c/0/0", &[0; 8])]);
        let error = file.array("/a").and_then(|a| a.read_elements(Selection::all())).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unsupported && error.to_string().contains(word),
            "{word}: {error}"
        );
        assert_eq!(file.walk().count(), 2, "{word}");
    }
}

#[test]
fn stale_consolidated_metadata_is_a_fault() {
    let consolidated =
        br#"{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},"a/.zattrs":{"b":1}}}"#;
    let count = |attributes: &[u8]| {
        let file = open(&[GROUP, (".zmetadata", consolidated), ("a/.zattrs", attributes)]);
        let mut faults = 0;
        file.check(&mut |_| faults += 1);
        faults
    };
    assert_eq!(count(br#"{"b": 1}"#), 0);
    assert_eq!(count(br#"{"b": 2}"#), 1);
}

#[test]
fn what_codecs_encode_they_decode() {
    let registry = Registry::default();
    let values: Vec<u8> = (0..24u32).flat_map(|i| (1000 + i * i).to_le_bytes()).collect();
    let dtype = DType::from_numpy("<u4").unwrap();
    let context = BindContext { dtype: &dtype, chunk: &[2, 3, 4], chunk_bytes: 96 };
    for (name, configuration) in [
        ("zlib", r#"{"level":5}"#),
        ("numcodecs.zlib", "{}"),
        ("gzip", r#"{"level":1}"#),
        ("zstd", r#"{"level":3,"checksum":true}"#),
        ("blosc", r#"{"cname":"lz4","clevel":5,"shuffle":"bitshuffle","typesize":4,"blocksize":0}"#),
        ("lz4", "{}"),
        ("bz2", "{}"),
        ("shuffle", r#"{"elementsize":0}"#),
        ("bitshuffle", "{}"),
        ("delta", r#"{"dtype":"<u4"}"#),
        ("fixedscaleoffset", r#"{"offset":1000,"scale":1,"dtype":"<u4","astype":"<u2"}"#),
        ("astype", r#"{"encode_dtype":">i8","decode_dtype":"<u4"}"#),
        ("crc32", "{}"),
        ("crc32c", r#"{"location":"start"}"#),
        ("adler32", r#"{"location":"end"}"#),
        ("jenkins_lookup3", r#"{"initval":7}"#),
        ("base64", "{}"),
        ("fletcher32", "{}"),
        ("transpose", r#"{"order":[2,0,1]}"#),
        ("bytes", r#"{"endian":"big"}"#),
    ] {
        let configuration = Json::parse(configuration.as_bytes()).unwrap();
        let spec = FilterSpec::Zarr { name: name.into(), configuration };
        let pipeline = registry.pipeline(&[spec], &context).unwrap();
        let (mut encoded, mut decoded, mut scratch) = (Vec::new(), Vec::new(), Scratch::default());
        pipeline.encode(&values, &mut encoded, &mut scratch).unwrap();
        if let Some(length) = pipeline.encoded_len() {
            assert_eq!(length, encoded.len() as u64, "{name}");
        }
        assert_ne!(encoded, values, "{name}");
        pipeline.decode(&encoded, 0, &mut decoded, &mut scratch).unwrap();
        assert_eq!(decoded, values, "{name}");
        for length in 0..encoded.len() {
            let _ = pipeline.decode(&encoded[..length], 0, &mut decoded, &mut scratch);
        }
    }
}

#[test]
fn what_lies_behind_many_folders_is_not_hidden() {
    let document = v2("\"|i1\"", "1", "");
    let empty: Vec<String> = (0..1100).map(|i| format!("f{i:04}/notes.txt")).collect();
    let mut objects: Vec<(&str, &[u8])> = empty.iter().map(|key| (key.as_str(), &b"x"[..])).collect();
    objects.extend([GROUP, ("zz/deep/.zarray", document.as_bytes())]);
    let file = open(&objects);
    assert!(file.walk().any(|entry| entry.path == "/zz/deep"));
}

/// What the specification forbids is refused, not guessed at.
#[test]
fn wrong_documents_of_version_3_are_refused() {
    let sound = r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},"fill_value":1,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#;
    let group: (&str, &[u8]) = ("zarr.json", br#"{"zarr_format":3,"node_type":"group"}"#);
    let chunk = [0; 8];
    let read = |document: &str| {
        all::<i32>(&open(&[group, ("a/zarr.json", document.as_bytes()), ("a/c/0", &chunk)]), "/a")
    };
    assert_eq!(read(sound).unwrap(), [0, 0, 1, 1]);
    for (part, wrong, kind) in [
        ("\"little\"", "\"middle\"", ErrorKind::Corrupt),
        (r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#, "[]", ErrorKind::Corrupt),
        ("}}]}", r#"}},{"name":"transpose","configuration":{"order":[0]}}]}"#, ErrorKind::Corrupt),
        ("\"fill_value\":1", "\"fill_value\":1.5", ErrorKind::Corrupt),
        ("\"fill_value\":1,", "", ErrorKind::Corrupt),
        ("\"shape\"", "\"dimension_names\":[\"x\",\"y\"],\"shape\"", ErrorKind::Corrupt),
        ("\"shape\"", "\"odd\":{\"must_understand\":true},\"shape\"", ErrorKind::Unsupported),
        ("\"shape\"", "\"odd\":1,\"shape\"", ErrorKind::Unsupported),
        (r#","configuration":{"endian":"little"}"#, "", ErrorKind::Corrupt),
        (
            r#"{"name":"bytes","configuration":{"endian":"little"}}"#,
            r#"{"name":"numcodecs.delta","configuration":{"dtype":"<i4"}},"bytes""#,
            ErrorKind::Corrupt,
        ),
        (
            "\"int32\"",
            r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":10}}"#,
            ErrorKind::Corrupt,
        ),
        (
            "\"default\"",
            r#""suffix","configuration":{"base_encoding":"template","suffix":"x"}"#,
            ErrorKind::Unsupported,
        ),
    ] {
        let document = sound.replacen(part, wrong, 1);
        assert_ne!(document, sound);
        assert_eq!(read(&document).unwrap_err().kind(), kind, "{document}");
    }
    let lenient = sound.replacen("\"shape\"", "\"odd\":{\"must_understand\":false},\"shape\"", 1);
    assert_eq!(read(&lenient).unwrap(), [0, 0, 1, 1]);
    // A codec is never skipped, whatever it says of itself.
    let codec = r#"}},{"name":"magic","must_understand":false}]}"#;
    let error = read(&sound.replacen("}}]}", codec, 1)).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("magic"), "{error}");
}
