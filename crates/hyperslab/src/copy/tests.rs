use super::*;
use crate::array::{ArrayData, OpenOptions};
use crate::diff::{DiffOptions, diff};
use crate::dtype::{ByteOrder, CharSet, DType, IntegerType, StringPadding};
use crate::exec::ChunkCache;
use crate::model::write::{ArraySpec, ObjectPath};
use crate::source::store::{Get, Listing, MemoryStore, Precondition, Store, Version};
use crate::source::{ReadHints, Source};
use crate::staged::{Block, StagedArray, Values};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

fn open(store: &Arc<MemoryStore>) -> File {
    let hierarchy = crate::format::open_store(store.clone(), Default::default()).unwrap();
    File::from_hierarchy(hierarchy, "memory", &OpenOptions::default())
}

fn int32() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

/// A store with one array of counted elements, texts, and a group with attributes.
fn made(shape: &[u64], chunk: &[u64]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let mut transaction = File::create_in(store.clone(), Format::Zarr3, &CreateOptions::default()).unwrap();
    transaction.create_group("g").unwrap();
    transaction.set_attribute("g", "list", [1.5, 2.5].as_slice()).unwrap();
    let mut spec = ArraySpec::simple(int32(), shape).with_chunk(chunk);
    spec.filters = parse_codecs("zlib=1").unwrap();
    spec.dimensions =
        (0..shape.len()).map(|i| Some(ObjectPath::root().join(format!("d{i}").as_str()))).collect();
    transaction.create_array("g/a", spec).unwrap();
    transaction.set_attribute("g/a", "units", "m").unwrap();
    let count: u64 = shape.iter().product();
    let data = ArrayData { shape: shape.to_vec(), data: (0..count as i32).collect() };
    let block = Block::from_values(&Values::try_from(&data).unwrap()).unwrap();
    StagedArray::from_base(block, chunk, None).unwrap().commit_to(&mut transaction, "g/a").unwrap();
    let text = DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 };
    transaction.create_array("t", ArraySpec::simple(text, &[3]).with_chunk(&[2])).unwrap();
    let words = Block::from_values(&Values::texts(&[3], &["a", "", "été"]).unwrap()).unwrap();
    StagedArray::from_base(words, &[3], None).unwrap().commit_to(&mut transaction, "t").unwrap();
    transaction.commit().unwrap();
    store
}

/// Copies to another store; both must say the same.
fn copied(source: &Arc<MemoryStore>, format: Format, change: impl Fn(&mut CopyOptions)) -> (File, Report) {
    let target = Arc::new(MemoryStore::new());
    let mut options = CopyOptions::default();
    change(&mut options);
    let transaction = File::create_in(target.clone(), format, &options.create).unwrap();
    let report = copy_to(&open(source), transaction, format, &options).unwrap();
    let file = open(&target);
    let mut found = Vec::new();
    let same =
        diff(&open(source), &file, &DiffOptions::default(), &mut |d| found.push(d.to_string())).unwrap();
    assert!(same && found.is_empty(), "{format}: {found:?}");
    (file, report)
}

fn chunk(file: &File) -> Vec<u64> {
    file.array("g/a").unwrap().meta().chunk_shape().to_vec()
}

#[test]
fn chunks_that_fit_are_taken_over_and_others_made_anew() {
    let source = made(&[30, 40], &[7, 9]);
    let (file, report) = copied(&source, Format::Zarr3, |_| {});
    assert_eq!((report.stats.chunks_copied, chunk(&file)), (25, vec![7, 9]));
    assert_eq!(report.dropped(), 0);
    assert_eq!(
        file.hierarchy().dimension_names(file.array("g/a").unwrap().node()).unwrap().unwrap().len(),
        2
    );
    let (_, report) = copied(&source, Format::Zarr2, |_| {});
    assert_eq!(report.stats.chunks_copied, 25);
    let (file, report) =
        copied(&source, Format::Zarr3, |o| o.chunks = Some(Extents::parse("d0=10,1=16").unwrap()));
    assert_eq!((report.stats.chunks_copied, chunk(&file)), (0, vec![10, 16]));
    let (file, report) =
        copied(&source, Format::Zarr3, |o| o.shards = Some(Extents::parse("d0=14,d1=18").unwrap()));
    assert_eq!((report.stats.chunks_copied, chunk(&file)), (25, vec![7, 9]));
    let (_, report) = copied(&source, Format::Zarr3, |o| o.codecs = Some(parse_codecs("gzip=1").unwrap()));
    assert_eq!(report.stats.chunks_copied, 0);
    let (file, _) = copied(&source, Format::Zarr2, |o| o.chunks = Some(Extents::Auto));
    assert_eq!(chunk(&file), [30, 40]);
}

#[test]
fn what_does_not_fit_into_memory_goes_through_a_file() {
    let shape = [150, 64, 41];
    let source = made(&shape, &[1, 64, 41]);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(data::tile(&shape, &[1, 64, 41], &[150, 2, 2], 4, 1 << 20), None);
    let (file, report) = copied(&source, Format::Zarr3, |o| {
        o.chunks = Some(Extents::parse("0=150,1=2,2=2").unwrap());
        o.memory = 1;
        o.scratch = Some(folder.path().into());
    });
    assert_eq!(chunk(&file), [150, 2, 2]);
    assert_eq!(report.stats.chunks_encoded, 32 * 21 + 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_lost_is_said_and_strict_copies_lose_nothing() {
    let source = made(&[4, 4], &[2, 2]);
    let mut options = CopyOptions { strict: true, ..CopyOptions::default() };
    let attempt = |format: Format, options: &CopyOptions| {
        let target = Arc::new(MemoryStore::new());
        let transaction = File::create_in(target.clone(), format, &options.create).unwrap();
        (copy_to(&open(&source), transaction, format, options), target)
    };
    attempt(Format::Zarr2, &options).0.unwrap();
    // Truth in an attribute, which NCZarr has a type for, and complex numbers in an array, which it has none for.
    let complex = DType::Complex { base: Box::new(DType::from_numpy("<f4").unwrap()) };
    let mut transaction = File::edit_in(source.clone(), &OpenOptions::default()).unwrap();
    transaction.create_array("z", ArraySpec::simple(complex, &[2])).unwrap();
    transaction.commit().unwrap();
    let (failed, target) = attempt(Format::NcZarr, &options);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(target.list("").unwrap().is_empty());
    options.strict = false;
    let report = attempt(Format::NcZarr, &options).0.unwrap();
    let lost: Vec<&str> =
        report.entries.iter().filter(|e| e.outcome.word() == "dropped").map(|e| e.name.as_str()).collect();
    assert_eq!(lost, ["/z"]);
    options.dry_run = true;
    let (report, target) = attempt(Format::NcZarr, &options);
    assert_eq!(report.unwrap().dropped(), 1);
    assert!(target.list("").unwrap().is_empty());
    options.dry_run = false;
    options.only = vec!["/g".into()];
    let (report, target) = attempt(Format::Zarr3, &options);
    assert!(report.unwrap().entries.iter().all(|e| !e.name.starts_with("/t") && !e.name.starts_with("/z")));
    assert!(open(&target).array("g/a").is_ok() && open(&target).array("t").is_err());
}

#[test]
fn differences_are_found() {
    let (one, two) = (made(&[4, 4], &[2, 2]), made(&[4, 4], &[4, 3]));
    let found = |two: &Arc<MemoryStore>, options: &DiffOptions| {
        let mut found = Vec::new();
        let same = diff(&open(&one), &open(two), options, &mut |d| found.push(d.to_string())).unwrap();
        assert_eq!(same, found.is_empty());
        found
    };
    assert_eq!(found(&two, &DiffOptions::default()), Vec::<String>::new());
    let mut transaction = File::edit_in(two.clone(), &OpenOptions::default()).unwrap();
    transaction.set("g/a", "[1, 2]", 7).unwrap();
    transaction.set_attribute("g/a", "units", "km").unwrap();
    transaction.create_group("h").unwrap();
    transaction.commit().unwrap();
    let what = found(&two, &DiffOptions::default());
    assert_eq!(
        what,
        [
            "/g/a: 1 of 16 elements differ, first at [1, 2]: 6 and 7",
            "/g/a:units: \"m\" and \"km\"",
            "/h: only in memory",
        ]
    );
    let options = DiffOptions { atol: 1.0, ..DiffOptions::default() };
    assert_eq!(found(&two, &options).len(), 2);
}

/// A store that counts how often each object is fetched.
#[derive(Debug)]
struct Counting {
    inner: Arc<MemoryStore>,
    fetched: Mutex<HashMap<String, u32>>,
}

impl Store for Counting {
    fn len(&self, key: &str) -> Result<Option<u64>> {
        self.inner.len(key)
    }
    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        let mut fetched = self.fetched.lock().unwrap();
        gets.iter().for_each(|get| *fetched.entry(get.key.clone()).or_default() += 1);
        self.inner.get_many(gets)
    }
    fn version(&self, key: &str) -> Result<Option<Version>> {
        self.inner.version(key)
    }
    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.inner.put(key, bytes, when)
    }
    fn delete(&self, key: &str) -> Result<bool> {
        self.inner.delete(key)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }
    fn search(&self, prefix: &str) -> Result<Listing> {
        self.inner.search(prefix)
    }
    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }
    fn name(&self) -> String {
        self.inner.name()
    }
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        self.inner.open(key)
    }
}

/// A store with one array of texts, as long as their number says.
fn texts(shape: &[u64], chunk: &[u64]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let mut transaction = File::create_in(store.clone(), Format::Zarr3, &CreateOptions::default()).unwrap();
    let text = DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 };
    transaction.create_array("t", ArraySpec::simple(text, shape).with_chunk(chunk)).unwrap();
    let words: Vec<String> =
        (0..shape.iter().product::<u64>()).map(|n| "ab".repeat(n as usize % 7)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let block = Block::from_values(&Values::texts(shape, &words).unwrap()).unwrap();
    StagedArray::from_base(block, chunk, None).unwrap().commit_to(&mut transaction, "t").unwrap();
    transaction.commit().unwrap();
    store
}

/// How often chunks are fetched at most while a file is copied with as little memory as there can be.
fn fetched_at_most(source: Arc<MemoryStore>, chunks: &str, format: Format) -> u32 {
    let counting = Arc::new(Counting { inner: source.clone(), fetched: Mutex::default() });
    let open_options = OpenOptions::new().with_cache(ChunkCache::new(0));
    let hierarchy = crate::format::open_store(counting.clone(), Default::default()).unwrap();
    let file = File::from_hierarchy(hierarchy, "memory", &open_options);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy");
    let options = CopyOptions {
        chunks: Some(Extents::parse(chunks).unwrap()),
        memory: 1,
        scratch: Some(folder.path().into()),
        ..CopyOptions::default()
    };
    copy(&file, target.to_str().unwrap(), format, &options).unwrap();
    let copied = crate::open(target.to_str().unwrap()).unwrap();
    let mut found = Vec::new();
    diff(&open(&source), &copied, &DiffOptions::default(), &mut |d| found.push(d.to_string())).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let fetched = counting.fetched.lock().unwrap();
    fetched.iter().filter(|(key, _)| key.contains("/c/")).map(|(_, n)| *n).max().unwrap()
}

#[test]
fn no_chunk_is_decoded_more_than_twice() {
    // What is fetched is decoded: nothing is kept here from read to read.
    for format in [Format::Zarr3, Format::Hdf5, Format::NetCdf4] {
        for (shape, chunk, wanted) in [
            ([150, 64, 41], [1, 64, 41], "0=150,1=2,2=2"),
            ([60, 60, 60], [7, 60, 9], "0=60,1=4,2=60"),
            ([40, 40, 40], [40, 3, 3], "0=3,1=40,2=3"),
        ] {
            assert!(fetched_at_most(made(&shape, &chunk), wanted, format) <= 2, "{format} {shape:?}");
        }
        // Texts, which have no places of their own in a file.
        let most = fetched_at_most(texts(&[90, 30, 20], &[1, 30, 20]), "0=90,1=3,2=3", format);
        assert!(most <= 2, "{format}: {most}");
    }
}

#[test]
fn compressed_chunks_are_taken_over_from_format_to_format() {
    let (shape, chunk) = ([20, 30], [7, 8]);
    // netCDF-4 is HDF5 with names for dimensions.
    let loose = DiffOptions { loose: true, ..DiffOptions::default() };
    for codec in ["shuffle+zlib=3", "zlib=1", "zstd=2", "blosc-lz4=5", "zlib=1+fletcher32"] {
        for from in [Format::Zarr2, Format::Zarr3, Format::Hdf5] {
            for to in [Format::Hdf5, Format::NetCdf4, Format::Zarr2, Format::Zarr3] {
                let folder = tempfile::tempdir().unwrap();
                let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
                let options = CopyOptions {
                    codecs: Some(parse_codecs(codec).unwrap()),
                    only: vec!["g".into()],
                    ..CopyOptions::default()
                };
                copy(&open(&made(&shape, &chunk)), at("one").as_str(), from, &options).unwrap();
                let one = crate::open(at("one").as_str()).unwrap();
                let report = copy(&one, at("two").as_str(), to, &CopyOptions::default()).unwrap();
                let name = format!("{codec} from {from} to {to}");
                assert_eq!((report.stats.chunks_copied, report.stats.chunks_encoded), (12, 0), "{name}");
                let two = crate::open(at("two").as_str()).unwrap();
                let mut found = Vec::new();
                diff(&one, &two, &loose, &mut |d| found.push(d.to_string())).unwrap();
                assert!(found.is_empty(), "{name}: {found:?}");
            }
        }
    }
}
