//! Files that are read while a SWMR writer appends to them, from copies of one taken at three moments.

use hyperslab::format::hdf5::parse::lookup3;
use hyperslab::source::{ByteRange, Failing, MemorySource, ReadHints, Source};
use hyperslab::{Array, Error, ErrorKind, File, MissingChunks, OpenOptions, Selection};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn bytes(moment: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/swmr_{moment}.h5.zst", env!("CARGO_MANIFEST_DIR"));
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

/// What the writer wrote at a place.
fn value(i: usize, j: usize) -> i32 {
    (1000 * i + j + 1) as i32
}

fn grid(rows: usize, columns: usize) -> Vec<i32> {
    (0..rows).flat_map(|i| (0..columns).map(move |j| value(i, j))).collect()
}

/// The same file with the flags of its writer cleared.
fn cleared(mut file: Vec<u8>) -> Vec<u8> {
    file[11] = 0;
    let sum = lookup3(&file[..44]);
    file[44..48].copy_from_slice(&sum.to_le_bytes());
    file
}

/// Bytes that somebody else writes.
#[derive(Debug)]
struct Written(Mutex<MemorySource>);

impl Written {
    fn new(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Written(Mutex::new(MemorySource::new(bytes, "written"))))
    }

    fn write(&self, bytes: Vec<u8>) {
        *self.0.lock().unwrap() = MemorySource::new(bytes, "written");
    }

    fn now(&self) -> MemorySource {
        self.0.lock().unwrap().clone()
    }
}

impl Source for Written {
    fn len(&self) -> Result<u64, Error> {
        self.now().len()
    }
    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<bytes::Bytes>, Error> {
        self.now().read(ranges)
    }
    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.now().read_into(offset, buffer)
    }
    fn hints(&self) -> ReadHints {
        self.now().hints()
    }
    fn id(&self) -> Result<String, Error> {
        self.now().id()
    }
    fn name(&self) -> String {
        "written".into()
    }
}

/// Gives the bytes of one read with all bits the wrong way round.
#[derive(Debug)]
struct Garbling {
    inner: MemorySource,
    at: AtomicU64,
    calls: AtomicU64,
}

impl Source for Garbling {
    fn len(&self) -> Result<u64, Error> {
        self.inner.len()
    }
    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<bytes::Bytes>, Error> {
        let read = self.inner.read(ranges)?;
        if self.calls.fetch_add(1, Ordering::Relaxed) != self.at.load(Ordering::Relaxed) {
            return Ok(read);
        }
        Ok(read.iter().map(|b| b.iter().map(|byte| !byte).collect()).collect())
    }
    fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let read = self.read(&[ByteRange::new(offset, buffer.len() as u64)])?;
        buffer.copy_from_slice(&read[0]);
        Ok(())
    }
    fn hints(&self) -> ReadHints {
        self.inner.hints()
    }
    fn id(&self) -> Result<String, Error> {
        self.inner.id()
    }
    fn name(&self) -> String {
        "garbled".into()
    }
}

fn live(source: Arc<dyn Source>) -> File {
    File::open_swmr_source(source, &OpenOptions::default()).unwrap()
}

fn plain(bytes: Vec<u8>) -> Result<File, Error> {
    let source = Arc::new(MemorySource::new(bytes, "plain"));
    let neighbours = hyperslab::source::Neighbours::none();
    let options = OpenOptions::default();
    let hierarchy = hyperslab::format::open(source, neighbours, options.limits.clone())?;
    Ok(File::from_hierarchy(hierarchy, "plain", &options))
}

fn numbers(array: &Array) -> Result<Vec<i32>, Error> {
    Ok(array.read::<i32>(Selection::all())?.data)
}

/// Everything that the writer had written when `rows` rows were there.
fn check(file: &File, rows: usize) {
    let read = |name: &str| numbers(&file.array(name).unwrap()).unwrap();
    assert_eq!(read("/one"), grid(rows, 1));
    assert_eq!(read("/rows"), grid(rows, 6));
    assert_eq!(read("/both"), grid(rows, rows / 2));
    for name in ["/fixed", "/single", "/whole"] {
        assert_eq!(read(name), grid(4, 6), "{name}");
    }
    let filled = [-1, -1, -1, -1, value(4, 0), value(5, 0), -1, -1];
    assert_eq!(read("/sparse"), filled);
    let texts = file.array("/text").unwrap().read_strings(Selection::all()).unwrap();
    assert_eq!(texts, (0..rows).map(|i| format!("text {i}")).collect::<Vec<_>>());
}

#[test]
fn a_copy_taken_while_the_file_was_written_reads_whole() {
    for (moment, rows) in [("early", 10), ("later", 37)] {
        let copy = bytes(moment);
        let end = u64::from_le_bytes(copy[28..36].try_into().unwrap());
        assert!(end < copy.len() as u64, "the writer kept the end of the file up to date");
        // Opened like any file, and live.
        check(&plain(copy.clone()).unwrap(), rows);
        let file = live(Arc::new(MemorySource::new(copy, moment)));
        assert!(file.is_swmr_read() && file.swmr_writer_active().unwrap());
        check(&file, rows);
        assert_eq!(file.swmr_retries(), 0);
    }
    let file = live(Arc::new(MemorySource::new(bytes("closed"), "closed")));
    assert!(!file.is_swmr_read() && !file.swmr_writer_active().unwrap());
    check(&file, 37);
}

#[test]
fn without_the_flags_the_end_of_the_file_is_the_one_that_is_stored() {
    let file = cleared(bytes("early"));
    let end = u64::from_le_bytes(file[28..36].try_into().unwrap());
    let by_hand = plain(file.clone()).unwrap();
    let opened = live(Arc::new(MemorySource::new(file, "cleared")));
    assert!(!opened.is_swmr_read());
    for name in ["/one", "/rows", "/both", "/whole", "/group/inner"] {
        let read = |file: &File| numbers(&file.array(name).unwrap()).map_err(|e| e.to_string());
        assert_eq!(read(&by_hand), read(&opened), "{name}");
    }
    // What lies behind it is not of the file, as libhdf5 has it.
    let error = numbers(&opened.array("/one").unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
    assert!(error.to_string().contains(&format!("the file at {end:#x}")), "{error}");
    assert_eq!(opened.swmr_retries(), 0);
}

#[test]
fn only_handles_that_are_refreshed_grow() {
    let source = Written::new(bytes("early"));
    let file = live(source.clone());
    let names = ["/one", "/rows", "/both"];
    let mut arrays: Vec<Array> = names.iter().map(|name| file.array(name).unwrap()).collect();
    let old = arrays.clone();
    source.write(bytes("later"));
    for (array, old) in arrays.iter_mut().zip(&old) {
        assert_eq!(array.shape()[0], 10);
        assert_eq!(numbers(array).unwrap().len() as u64, array.shape().iter().product::<u64>());
        array.refresh().unwrap();
        assert_eq!((array.shape()[0], old.shape()[0]), (37, 10));
        let columns = old.shape().get(1).map_or(1, |&n| n as usize);
        assert_eq!(numbers(old).unwrap(), grid(10, columns));
    }
    check(&file, 37);
    assert!(file.swmr_writer_active().unwrap());
    source.write(bytes("closed"));
    assert!(file.is_swmr_read() && !file.swmr_writer_active().unwrap());
    check(&file, 37);
}

#[test]
fn a_refresh_reads_one_object_header_and_nothing_else() {
    let counted = Arc::new(Failing::new(Arc::new(MemorySource::new(bytes("later"), "later")), u64::MAX));
    let file = live(counted.clone());
    for name in ["/one", "/group/inner"] {
        let mut array = file.array(name).unwrap();
        let before = counted.calls();
        array.refresh().unwrap();
        let calls = counted.calls() - before;
        // Its prefix and its messages: no group, no index, no superblock.
        assert!((1..=3).contains(&calls), "{name}: {calls} reads");
    }
}

#[test]
fn data_that_appears_later_is_seen_by_older_handles() {
    // The address of data in one piece stands in the object header.
    let (early, later) = (bytes("early"), bytes("later"));
    let source = Written::new(early[..8690].to_vec());
    let file = live(source.clone());
    file.set_swmr_read_attempts(2);
    let whole = file.array("/whole").unwrap();
    assert_eq!(numbers(&whole).unwrap_err().kind(), ErrorKind::Truncated);
    source.write(later);
    assert_eq!(numbers(&whole).unwrap(), grid(4, 6));
}

fn chunks_of(array: &Array) -> u64 {
    array.plan(Selection::all()).unwrap().parts()[0].chunks()
}

/// Uses every way to read a file, and gives what came of each.
fn everything(file: &File) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let root = file.root();
    out.insert("links".into(), format!("{:?}", root.links().unwrap().links));
    let children = root.children().unwrap();
    out.insert("children".into(), format!("{:?}", children.iter().map(|c| c.1.is_ok()).collect::<Vec<_>>()));
    let mut paths: Vec<_> =
        file.walk().map(|entry| (entry.path.clone(), entry.open(file).map(|o| o.kind()).ok())).collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    out.insert("walk".into(), format!("{paths:?}"));
    let one = file.array("/soft").unwrap();
    for attribute in one.attributes().unwrap() {
        let attribute = attribute.unwrap();
        out.insert(attribute.name.to_string(), format!("{:?}", one.attribute_value(&attribute)));
    }
    out.insert("attribute".into(), format!("{:?}", one.attribute("units").unwrap()));
    for name in ["/one", "/rows", "/both", "/fixed", "/single", "/whole", "/sparse", "/group/inner"] {
        let mut array = file.array(name).unwrap();
        out.insert(format!("{name} raw"), format!("{:?}", array.read_raw(Selection::all()).unwrap().bytes));
        array.refresh().unwrap();
        out.insert(format!("{name} numbers"), format!("{:?}", array.read::<i64>(Selection::all()).unwrap()));
        let mut into = vec![0i16; array.shape().iter().product::<u64>() as usize];
        array.read_into(Selection::all(), &mut into).unwrap();
        out.insert(format!("{name} into"), format!("{into:?}"));
        out.insert(format!("{name} packed"), format!("{:?}", array.read_packed(Selection::all()).unwrap()));
        out.insert(format!("{name} values"), format!("{:?}", array.read_values(Selection::all()).unwrap()));
        out.insert(format!("{name} plan"), chunks_of(&array).to_string());
        let mut chunks = 0;
        let count = &mut |_, _| {
            chunks += 1;
            Ok(())
        };
        array.chunks(count, &mut |_| {}).unwrap();
        out.insert(format!("{name} chunks"), chunks.to_string());
    }
    let text = file.array("/text").unwrap();
    out.insert("text".into(), format!("{:?}", text.read_strings(Selection::all()).unwrap()));
    out.insert("hash".into(), format!("{:?}", text.verify_provenance().unwrap()));
    out.insert("active".into(), format!("{:?}", file.swmr_writer_active()));
    out
}

#[test]
fn every_read_may_fail_once() {
    let source = || Arc::new(MemorySource::new(bytes("early"), "early"));
    let counted = Arc::new(Failing::new(source(), u64::MAX));
    let wanted = everything(&live(counted.clone()));
    let calls = counted.calls();
    assert!(calls > 300, "{calls}");
    for (kind, step) in [(ErrorKind::Truncated, 1), (ErrorKind::Checksum, 7)] {
        let mut retried = 0;
        for at in (0..calls).step_by(step) {
            let failing = Failing::new(source(), at).with_kind(kind);
            let file = live(Arc::new(failing));
            let got = everything(&file);
            let other: Vec<_> = got.iter().filter(|(key, value)| wanted.get(*key) != Some(value)).collect();
            assert!(other.is_empty(), "call {at}: {other:.500?}");
            retried += file.swmr_retries();
        }
        // All but those before the superblock is known, and those of several chunks, which are read again one by one.
        assert!(retried > calls.div_ceil(step as u64) * 3 / 4, "{retried}");
    }
}

#[test]
fn structures_may_be_caught_half_written_once() {
    let run = |at: u64| {
        let inner = MemorySource::new(bytes("later"), "later");
        let garbling = Arc::new(Garbling { inner, at: u64::MAX.into(), calls: 0.into() });
        let file = live(garbling.clone());
        garbling.calls.store(0, Ordering::Relaxed);
        garbling.at.store(at, Ordering::Relaxed);
        // Structures have checksums, and deflated chunks too.
        let mut rows = file.array("/rows").unwrap();
        rows.refresh().unwrap();
        assert_eq!(numbers(&rows).unwrap(), grid(37, 6), "read {at}");
        for name in ["/one", "/both", "/fixed"] {
            let array = file.array(name).unwrap();
            assert!(chunks_of(&array) >= 4, "read {at}");
        }
        let one = file.array("/one").unwrap();
        assert_eq!(one.attribute("units").unwrap().as_str(), Some("counts"));
        assert!(file.root().links().unwrap().faults.is_empty());
        (garbling.calls.load(Ordering::Relaxed), file.swmr_retries())
    };
    let (calls, none) = run(u64::MAX);
    assert!(calls > 30 && none == 0);
    for at in 0..calls {
        assert!(run(at).1 >= 1, "read {at}");
    }
}

#[test]
fn what_no_writer_can_cause_is_an_error_at_once() {
    let begin = Instant::now();
    let file = live(Arc::new(MemorySource::new(bytes("later"), "later")));
    assert_eq!(file.array("/nothing").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(file.array("/one").unwrap().read::<i32>(40).unwrap_err().kind(), ErrorKind::OutOfBounds);
    assert_eq!(file.swmr_retries(), 0);
    // A structure that is wrong behind a checksum that is right.
    let mut wrong = bytes("later");
    let at = wrong.windows(4).position(|w| w == b"EAHD").unwrap();
    wrong[at + 4] = 9;
    let sum = lookup3(&wrong[at..at + 72 - 4]);
    wrong[at + 68..at + 72].copy_from_slice(&sum.to_le_bytes());
    let file = live(Arc::new(MemorySource::new(wrong, "wrong")));
    let arrays =
        ["/one", "/rows", "/text", "/sparse"].map(|name| file.array(name).unwrap().plan(Selection::all()));
    let errors: Vec<&Error> = arrays.iter().filter_map(|a| a.as_ref().err()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].kind(), errors[0].is_torn()), (ErrorKind::Corrupt, false), "{}", errors[0]);
    assert_eq!(file.swmr_retries(), 0);
    // Other files, and superblocks of another time.
    let mut newer = bytes("later");
    newer[8] = 9;
    for bytes in [b"no such format".to_vec(), newer] {
        let source = Arc::new(MemorySource::new(bytes, "other"));
        let error = File::open_swmr_source(source, &OpenOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
}

#[test]
fn attempts_are_bounded_and_can_be_set() {
    let mut torn = bytes("later");
    let at = torn.windows(4).position(|w| w == b"EAHD").unwrap();
    torn[at + 20] ^= 1;
    let file = live(Arc::new(MemorySource::new(torn, "torn")));
    assert_eq!(file.swmr_read_attempts(), 100);
    file.set_swmr_read_attempts(5);
    let wrong = |name: &str| file.array(name).unwrap().read_raw(Selection::all()).err();
    let error = ["/one", "/rows", "/text", "/sparse"].into_iter().find_map(wrong).unwrap();
    assert_eq!(error.kind(), ErrorKind::Checksum);
    assert!(error.to_string().contains("a writer has the file open"), "{error}");
    assert_eq!(file.swmr_retries(), 4);
}

#[test]
fn chunks_that_are_missing_can_be_not_yet_there() {
    let options = OpenOptions::default().with_missing(MissingChunks::NotYet);
    let source = Arc::new(MemorySource::new(bytes("later"), "later"));
    let file = File::open_swmr_source(source, &options).unwrap();
    let sparse = file.array("/sparse").unwrap();
    assert_eq!(sparse.read::<i32>(4..6).unwrap().data, [value(4, 0), value(5, 0)]);
    assert_eq!(sparse.read::<i32>(3..6).unwrap_err().kind(), ErrorKind::NotYet);
}

#[test]
fn bytes_are_lent_only_where_they_stay_as_they_are() {
    let file = plain(bytes("closed")).unwrap();
    let lent = file.array("/whole").unwrap().raw_bytes().unwrap().unwrap();
    assert_eq!(lent, file.array("/whole").unwrap().read_raw(Selection::all()).unwrap().bytes);
    for name in ["/one", "/single"] {
        assert!(file.array(name).unwrap().raw_bytes().unwrap().is_none(), "{name}");
    }
    let counted = Arc::new(Failing::new(Arc::new(MemorySource::new(bytes("later"), "later")), u64::MAX));
    let whole = live(counted.clone()).array("/whole").unwrap();
    let before = counted.calls();
    assert!(whole.raw_bytes().unwrap().is_none());
    assert_eq!(counted.calls(), before);
}
