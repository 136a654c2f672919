use super::header::{Header, Type, Version};
use super::{NetCdf3, layout::Layout};
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{ChunkGrid, ChunkRef, Dataspace, Hierarchy, NodeId, Storage};
use crate::shape::Name;
use crate::source::{ByteRange, MemorySource};
use bytes::Bytes;
use std::sync::Arc;

/// Writes headers and files by the book.
struct Writer {
    version: u8,
    out: Vec<u8>,
}

impl Writer {
    fn new(version: u8, records: u64) -> Writer {
        let mut w = Writer { version, out: vec![b'C', b'D', b'F', version] };
        w.count(records);
        w
    }

    fn count(&mut self, n: u64) {
        match self.version {
            5 => self.out.extend(n.to_be_bytes()),
            _ => self.out.extend((n as u32).to_be_bytes()),
        }
    }

    fn tag(&mut self, tag: u32, count: u64) {
        self.out.extend(if count == 0 { 0 } else { tag }.to_be_bytes());
        self.count(count);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }

    fn dimensions(&mut self, list: &[(&str, u64)]) {
        self.tag(0x0a, list.len() as u64);
        for (name, length) in list {
            self.name(name);
            self.count(*length);
        }
    }

    fn attributes(&mut self, list: &[(&str, u32, u64, &[u8])]) {
        self.tag(0x0c, list.len() as u64);
        for (name, kind, count, data) in list {
            self.name(name);
            self.out.extend(kind.to_be_bytes());
            self.count(*count);
            self.padded(data);
        }
    }

    fn variable(&mut self, name: &str, dimensions: &[u64], kind: u32, begin: u64) {
        self.name(name);
        self.count(dimensions.len() as u64);
        dimensions.iter().for_each(|&d| self.count(d));
        self.attributes(&[]);
        self.out.extend(kind.to_be_bytes());
        self.count(4);
        match self.version {
            1 => self.out.extend((begin as u32).to_be_bytes()),
            _ => self.out.extend(begin.to_be_bytes()),
        }
    }
}

/// `time` (records), `x` (3); `a(x)` short, `b(time)` byte, `c(time, x)` int, `d` double; data from 0x200, records from
/// 0x220: one byte of b and three of padding, three ints of c.
fn sample(version: u8, records: u64) -> Writer {
    let mut w = Writer::new(version, records);
    w.dimensions(&[("time", 0), ("x", 3)]);
    w.attributes(&[("title", 2, 5, b"hello"), ("n", 3, 2, &[0, 1, 0xff, 0xff]), ("empty", 2, 0, b"")]);
    w.tag(0x0b, 4);
    w.variable("a", &[1], 3, 0x200);
    w.variable("d", &[], 6, 0x208);
    w.variable("b", &[0], 1, 0x220);
    w.variable("c", &[0, 1], 4, 0x224);
    w.out.resize(0x220 + 16 * 5, 0);
    for r in 0..5 {
        w.out[0x220 + 16 * r] = r as u8 + 1;
        w.out[0x224 + 16 * r + 11] = 10 * r as u8;
    }
    w
}

fn open(bytes: Vec<u8>) -> Result<Arc<NetCdf3>> {
    NetCdf3::open(Arc::new(MemorySource::new(bytes, "test")), &Limits::default())
}

fn find(file: &NetCdf3, name: impl Into<Name>) -> NodeId {
    match file.link(&file.root(), &name.into()).unwrap().unwrap().target {
        crate::model::LinkTarget::Hard(node) => node,
        other => panic!("{other:?}"),
    }
}

/// Reads a variable by its index: all its chunks, one after the other.
fn read(file: &NetCdf3, name: impl Into<Name>) -> Result<Vec<u8>> {
    let (meta, storage) = file.array(&find(file, name))?;
    let Storage::Chunks(index) = storage else { panic!("no index") };
    let chunks = match &meta.grid {
        ChunkGrid::Rectilinear { .. } => unreachable!("records are equal"),
        ChunkGrid::Whole => vec![meta.space.dims().iter().map(|_| 0).collect()],
        ChunkGrid::Regular(chunk) => {
            assert_eq!(chunk[0], 1);
            assert_eq!(chunk[1..], meta.space.dims()[1..]);
            let first =
                |r| meta.space.dims().iter().enumerate().map(move |(i, _)| if i == 0 { r } else { 0 });
            (0..meta.space.dims()[0]).map(|r| first(r).collect()).collect()
        }
    };
    let mut out = Vec::new();
    for chunk in index.locate(&chunks)? {
        match chunk {
            ChunkRef::Absent => {}
            ChunkRef::Range { source, offset, length, mask: 0 } => {
                out.extend_from_slice(&source.read(&[ByteRange::new(offset, length)])?[0]);
            }
            other => panic!("{other:?}"),
        }
    }
    Ok(out)
}

#[test]
fn all_versions_read_alike() {
    for version in [1, 2, 5] {
        let file = open(sample(version, 5).out).unwrap();
        assert_eq!(file.info().version, u32::from(version));
        let links = file.links(&file.root()).unwrap();
        let names: Vec<_> = links.links.iter().map(|l| (l.name.to_string(), l.creation_order)).collect();
        let expected = [("a", 0), ("b", 2), ("c", 3), ("d", 1)];
        assert_eq!(names, expected.map(|(n, o)| (n.to_string(), Some(o))));
        let (meta, _) = file.array(&find(&file, "c")).unwrap();
        assert_eq!(meta.space, Dataspace::Simple { dims: vec![5, 3], max: vec![None, Some(3)] });
        assert_eq!(meta.dtype.to_string(), "i32be");
        assert_eq!(read(&file, "b").unwrap(), [1, 2, 3, 4, 5]);
        let c = read(&file, "c").unwrap();
        assert_eq!((c.len(), c[11], c[12 * 4 + 11]), (60, 0, 40));
        assert_eq!(read(&file, "d").unwrap(), [0; 8]);
        let names = file.dimension_names(&find(&file, "c")).unwrap().unwrap();
        assert_eq!(names, [Some("time".into()), Some("x".into())]);
        let dims = file.dimensions(&file.root()).unwrap();
        assert_eq!((dims[0].length, dims[0].unlimited, dims[1].length), (5, true, 3));
        let mut faults = Vec::new();
        file.check(&mut |f| faults.push(f));
        assert!(faults.is_empty(), "{faults:?}");
    }
}

#[test]
fn attributes_keep_type_and_order() {
    let file = open(sample(1, 5).out).unwrap();
    let attributes: Vec<_> = file.attributes(&file.root()).unwrap().into_iter().map(Result::unwrap).collect();
    let seen: Vec<_> =
        attributes.iter().map(|a| (a.name.to_string(), a.dtype.to_string(), a.order.unwrap())).collect();
    let row = |n: &str, d: &str, o| (n.to_string(), d.to_string(), o);
    let expected =
        [row("empty", "str1:utf8:nullpad", 2), row("n", "i16be", 1), row("title", "str5:utf8:nullpad", 0)];
    assert_eq!(seen, expected);
    assert!(attributes[0].space.is_null());
    assert_eq!(attributes[1].space.dims(), [2]);
    assert_eq!(&attributes[2].data[..], b"hello");
}

#[test]
fn a_single_record_variable_is_not_padded() {
    let mut w = Writer::new(1, 5);
    w.dimensions(&[("time", 0)]);
    w.attributes(&[]);
    w.tag(0x0b, 2);
    w.variable("fixed", &[], 1, 0x100);
    w.variable("b", &[0], 3, 0x104);
    w.out.resize(0x104, 0);
    w.out.extend([0, 1, 0, 2, 0, 3, 0, 4, 0, 5]);
    let file = open(w.out).unwrap();
    // All records side by side are one piece.
    assert_eq!(file.array(&find(&file, "b")).unwrap().0.grid, ChunkGrid::Whole);
    assert_eq!(read(&file, "b").unwrap(), [0, 1, 0, 2, 0, 3, 0, 4, 0, 5]);
}

#[test]
fn records_of_a_streamed_file_are_counted() {
    for version in [1, 5] {
        let mut w = sample(version, u64::MAX);
        let file = open(w.out.clone()).unwrap();
        assert_eq!(file.dimensions(&NodeId::Address(0)).unwrap()[0].length, 5);
        file.check(&mut |f| panic!("{}", f.error));
        // Not all of the last record is there.
        w.out.truncate(w.out.len() - 1);
        let file = open(w.out).unwrap();
        assert_eq!(file.dimensions(&NodeId::Address(0)).unwrap()[0].length, 4);
        assert_eq!(read(&file, "b").unwrap(), [1, 2, 3, 4]);
        let mut faults = Vec::new();
        file.check(&mut |f| faults.push((f.error.kind(), f.error.to_string())));
        let (kind, text) = faults.pop().unwrap();
        assert!(
            faults.is_empty() && kind == ErrorKind::Truncated && text.contains("within record 4"),
            "{text}"
        );
        assert!(file.info().notes.iter().any(|(name, _)| *name == "cut short"));
    }
}

#[test]
fn a_cut_file_reads_up_to_its_end() {
    let mut bytes = sample(2, 5).out;
    bytes.truncate(0x220 + 16 * 3 + 2);
    let file = open(bytes).unwrap();
    // The fourth record of b is there, the fifth not.
    let (_, Storage::Chunks(index)) = file.array(&find(&file, "b")).unwrap() else { panic!() };
    assert!(index.locate(&[[3].into_iter().collect()]).is_ok());
    let error = index.locate(&[[4].into_iter().collect()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(error.to_string().contains("record 4 lies beyond the end"), "{error}");
    // What the hint promises is there: of c the fourth record is cut.
    assert!(format!("{error:?}").contains("select [:4]"), "{error:?}");
    let (_, Storage::Chunks(index)) = file.array(&find(&file, "c")).unwrap() else { panic!() };
    let error = index.locate(&[[3].into_iter().collect(), [4].into_iter().collect()]).unwrap_err();
    assert!(format!("{error:?}").contains("select [:3]"), "{error:?}");
    assert_eq!(read(&file, "a").unwrap().len(), 6);
    let mut faults = Vec::new();
    file.check(&mut |f| faults.push(f.error.to_string()));
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(file.info().notes.iter().any(|(what, _)| *what == "cut short"));
}

#[test]
fn a_cut_list_of_variables_hides_only_what_needs_the_rest() {
    let whole = sample(1, 5).out;
    let d = whole.windows(4).position(|w| w == b"c\0\0\0").unwrap();
    let file = open(whole[..d].to_vec()).unwrap();
    let links = file.links(&file.root()).unwrap();
    assert_eq!((links.links.len(), links.faults.len()), (3, 1));
    assert_eq!(links.faults[0].error.kind(), ErrorKind::Truncated);
    assert!(file.array(&find(&file, "a")).is_ok());
    let error = file.array(&find(&file, "b")).unwrap_err();
    assert!(error.to_string().contains("the header is cut"), "{error}");
}

#[test]
fn a_wrong_variable_hides_no_other() {
    let mut w = Writer::new(1, 2);
    w.dimensions(&[("time", 0), ("x", 2)]);
    w.attributes(&[]);
    w.tag(0x0b, 5);
    w.variable("type", &[1], 99, 0x300);
    w.variable("dimension", &[7], 4, 0x300);
    w.variable("order", &[1, 0], 4, 0x300);
    w.variable("rank", &[1; 40], 4, 0x300);
    w.variable("good", &[1], 3, 0x300);
    w.out.resize(0x310, 7);
    let file = open(w.out).unwrap();
    for (name, text) in [
        ("type", "type 99 does not exist"),
        ("dimension", "dimension 7 of 2"),
        ("order", "the record dimension time stands at axis 1"),
        ("rank", "rank 40"),
    ] {
        let error = file.array(&find(&file, name)).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(read(&file, "good").unwrap(), [7; 4]);
}

#[test]
fn wrong_headers_are_named() {
    let mut w = Writer::new(1, 0);
    w.tag(0x0c, 1);
    w.out.resize(100, 0);
    let error = open(w.out).unwrap_err();
    assert!(error.to_string().contains("tag 0xa expected, 0xc found"), "{error}");
    // Counts that no file has room for end with the file.
    let mut w = Writer::new(5, 0);
    w.tag(0x0a, i64::MAX as u64);
    w.out.resize(1000, 0);
    assert_eq!(open(w.out).unwrap_err().kind(), ErrorKind::Truncated);
    let mut w = Writer::new(5, 0);
    w.tag(0x0a, u64::MAX);
    assert!(open(w.out).unwrap_err().to_string().contains("negative count"));
    assert_eq!(open(b"CDF\x01".to_vec()).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    let mut w = Writer::new(5, i64::MAX as u64);
    w.dimensions(&[("time", 0), ("x", i64::MAX as u64)]);
    w.attributes(&[]);
    w.tag(0x0b, 2);
    w.variable("a", &[1, 1], 6, 0x200);
    w.variable("b", &[0, 1], 6, 0x200);
    let file = open(w.out).unwrap();
    assert!(file.array(&find(&file, "a")).is_err());
    assert!(file.array(&find(&file, "b")).is_err());
}

#[test]
fn fill_values_are_those_of_the_type() {
    use Type::*;
    for (kind, text) in [
        (Byte, "[-127]"),
        (Short, "[-32767]"),
        (Int, "[-2147483647]"),
        (Float, "[9.96921e36]"),
        (Double, "[9.969209968386869e36]"),
        (UByte, "[255]"),
        (UShort, "[65535]"),
        (UInt, "[4294967295]"),
        (Int64, "[-9223372036854775806]"),
        (UInt64, "[18446744073709551614]"),
    ] {
        let file = open(sample(1, 0).out).unwrap();
        let stored = Bytes::from_static(kind.fill());
        let elements =
            crate::model::Elements::decode(&*file, &kind.dtype(), stored, 1, 100).unwrap().values().unwrap();
        assert_eq!(format!("[{}]", elements[0]), text, "{kind:?}");
    }
}

#[test]
fn mutated_headers_end_well() {
    let limits = Limits::default();
    for version in [1, 2, 5] {
        let good = sample(version, 5).out;
        let header = 0x200;
        for at in 0..header {
            for value in [0, 1, 0x0c, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                if let Ok(file) = open(bad.clone()) {
                    let _ = file.info();
                    for link in file.links(&file.root()).unwrap().links {
                        // Up to 2^63 records: an index answers, but nobody asks for all of them.
                        if file.dimensions(&file.root()).unwrap().iter().all(|d| d.length < 1000) {
                            let _ = read(&file, link.name);
                        }
                    }
                    file.check(&mut |_| {});
                }
                bad.truncate(at);
                let _ = open(bad);
            }
        }
        let header = Header::parse(&good.into(), true, &limits).unwrap();
        assert_eq!(header.version.number(), u32::from(version));
        assert_eq!(Layout::new(&header, 0x270).stride, Some(16));
    }
    assert_eq!(Version::find(b"CDF\x03"), None);
}
