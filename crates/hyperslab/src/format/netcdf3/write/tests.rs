use super::*;
use crate::dtype::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};
use crate::model::Hierarchy;
use crate::model::write::{LayoutSpec, LinkSpec};
use crate::source::{FileSource, SyncPolicy};
use crate::{Error, model};
use std::path::PathBuf;

fn options() -> WriteOptions {
    WriteOptions::new().with_sync(SyncPolicy::None)
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

fn int(size: usize) -> DType {
    let order = if size == 1 { ByteOrder::Little } else { ByteOrder::Big };
    DType::Integer(IntegerType::new(size, order, true))
}

fn simple(dims: &[u64]) -> Dataspace {
    Dataspace::Simple { dims: dims.to_vec(), max: dims.iter().map(|&d| Some(d)).collect() }
}

fn dimension(writer: &mut Writer, name: &str, length: u64, unlimited: bool) -> Result<()> {
    let dimension = model::Dimension { name: name.into(), length, unlimited };
    writer.apply(Change::CreateDimension { group: ObjectPath::root(), dimension })
}

fn array(writer: &mut Writer, name: &str, dtype: DType, dims: &[&str], extents: &[u64]) -> Result<()> {
    let space = if extents.is_empty() { Dataspace::Scalar } else { simple(extents) };
    let mut spec = ArraySpec::new(dtype, space);
    spec.dimensions = dims.iter().map(|d| (!d.is_empty()).then(|| path(d))).collect();
    writer.apply(Change::CreateArray { path: path(name), spec: Box::new(spec) })
}

/// Bytes of an array: those of its elements counted from `seed`, most significant first.
fn bytes(count: u64, size: usize, seed: u64) -> Vec<u8> {
    (0..count).flat_map(|i| (i * 3 + seed).to_be_bytes()[8 - size..].to_vec()).collect()
}

/// Writes whole rows of the first axis, piece by piece.
fn put(writer: &mut Writer, name: &str, all: &[u8]) -> Result<()> {
    let layout = writer.layout(&path(name))?;
    let (grid, size) = (layout.grid(), layout.dtype.size());
    let mut chunks = Vec::new();
    for n in 0..layout.count()? {
        let mut rest = n;
        let mut coord: crate::shape::Coord = grid.iter().map(|_| 0).collect();
        for (axis, &count) in grid.iter().enumerate().rev() {
            coord[axis] = rest % count;
            rest /= count;
        }
        let (start, extent) = (layout.start_of(&coord), layout.valid_of(&coord));
        let first = start.iter().zip(&layout.shape).fold(0, |n, (&at, &d)| n * d + at) as usize * size;
        let length = extent.iter().product::<u64>() as usize * size;
        let bytes = Some(Bytes::copy_from_slice(&all[first..first + length]));
        chunks.push(EncodedChunk { coord, bytes, mask: 0 });
    }
    writer.write_chunks(&path(name), chunks)
}

fn note(writer: &mut Writer, object: &str, name: &str, text: &str) -> Result<()> {
    let (padding, charset) = (StringPadding::NullPadded, CharSet::Utf8);
    let dtype = DType::String { size: text.len(), padding, charset };
    let content = Content::Fixed(Bytes::copy_from_slice(text.as_bytes()));
    let attribute =
        AttributeSpec { name: name.into(), dtype, committed: None, space: Dataspace::Scalar, content };
    writer.apply(Change::SetAttribute { object: path(object), attribute })
}

fn finish(writer: Writer) -> Result<Committed> {
    Box::new(writer).commit()
}

/// Everything in a file: header, extents, bytes of arrays.
fn contents(file: &Path) -> Vec<String> {
    let source = Arc::new(FileSource::open(file).unwrap());
    let hierarchy = NetCdf3::open(source, &Limits::default()).unwrap();
    let h = hierarchy.header();
    let note = |a: &Attribute| format!("{}:{:?}[{}]={:02x?}", a.name, a.kind, a.count, a.data.to_vec());
    let mut out = vec![format!("CDF-{} {:?}", h.version.number(), h.dimensions)];
    out.extend(h.attributes.iter().map(note));
    hierarchy.check(&mut |fault| panic!("{}", fault.error));
    let file = crate::open(file.to_str().unwrap()).unwrap();
    for variable in &h.variables {
        let array = file.array(&variable.name.to_string()).unwrap();
        let data = array.read_raw(crate::Selection::all()).unwrap().bytes;
        let sum = data.iter().fold(0u64, |n, &b| n.wrapping_mul(31).wrapping_add(b.into()));
        let attributes: Vec<String> = variable.attributes.iter().map(note).collect();
        let head = data.get(..16.min(data.len())).unwrap();
        out.push(format!("{} {:?} {sum:x} {head:?} {attributes:?}", variable.name, array.shape()));
    }
    out
}

/// A file of one of each: fixed, with records, texts, numbers of every width.
fn example(file: &Path, version: Version) -> Result<()> {
    let mut w = create(file, version, &options())?;
    dimension(&mut w, "t", 3, true)?;
    dimension(&mut w, "x", 5, false)?;
    dimension(&mut w, "y", 300, false)?;
    note(&mut w, "/", "title", "an example")?;
    array(&mut w, "a", int(4), &["x", "y"], &[5, 300])?;
    array(&mut w, "b", int(1), &["t", "x"], &[3, 5])?;
    array(&mut w, "c", int(2), &["t"], &[3])?;
    array(&mut w, "d", DType::Float(FloatType::ieee(8, ByteOrder::Big).unwrap()), &[], &[])?;
    let text = DType::String { size: 4, padding: StringPadding::NullPadded, charset: CharSet::Ascii };
    array(&mut w, "names", text, &[""], &[2])?;
    note(&mut w, "a", "units", "m")?;
    put(&mut w, "a", &bytes(1500, 4, 1))?;
    put(&mut w, "b", &bytes(15, 1, 2))?;
    put(&mut w, "d", &1.5f64.to_be_bytes())?;
    put(&mut w, "names", b"abc\0defg")?;
    finish(w)?;
    Ok(())
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for version in [Version::Classic, Version::Offset64, Version::Data64] {
        let file = folder.path().join("a.nc");
        example(&file, version).unwrap();
        let first = contents(&file);
        assert!(first[0].starts_with(&format!("CDF-{}", version.number())), "{first:#?}");
        let read = |name: &str| {
            let array = crate::open(file.to_str().unwrap()).unwrap().array(name).unwrap();
            array.read::<f64>(crate::Selection::all()).unwrap().data
        };
        assert_eq!(read("a"), (0..1500).map(|i| f64::from(i * 3 + 1)).collect::<Vec<_>>());
        assert_eq!(read("b"), (0..15).map(|i| f64::from(i * 3 + 2)).collect::<Vec<_>>());
        // Nobody wrote these.
        assert_eq!(read("c"), [-32767.0; 3]);
        assert_eq!(read("d"), [1.5]);
        let bytes = std::fs::read(&file).unwrap();
        example(&folder.path().join("b.nc"), version).unwrap();
        assert_eq!(bytes, std::fs::read(folder.path().join("b.nc")).unwrap());
        std::fs::remove_file(file).unwrap();
        std::fs::remove_file(folder.path().join("b.nc")).unwrap();
    }
}

/// A variable that is alone in its records is not padded; beside a second one it is.
#[test]
fn records_are_padded_where_they_are_not_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nc");
    let mut w = create(&file, Version::Classic, &options()).unwrap();
    dimension(&mut w, "t", 0, true).unwrap();
    array(&mut w, "b", int(1), &["t"], &[0]).unwrap();
    w.apply(Change::Resize { array: path("b"), shape: vec![5] }).unwrap();
    put(&mut w, "b", &[1, 2, 3, 4, 5]).unwrap();
    finish(w).unwrap();
    let length = std::fs::metadata(&file).unwrap().len();
    let alone = contents(&file);
    assert_eq!(length % 4, 1, "{length}");
    // Another record: five bytes of the file change at most, and none moves.
    let before = std::fs::read(&file).unwrap();
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    w.apply(Change::Resize { array: path("b"), shape: vec![7] }).unwrap();
    put(&mut w, "b", &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    finish(w).unwrap();
    let after = std::fs::read(&file).unwrap();
    assert_eq!((after.len(), &after[before.len()..]), (before.len() + 2, &[6, 7][..]));
    assert_eq!(before.iter().zip(&after).filter(|(a, b)| a != b).count(), 1);
    // A second variable with records, and the first is padded.
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    array(&mut w, "c", int(2), &["t"], &[7]).unwrap();
    finish(w).unwrap();
    let read = |name: &str| {
        let array = crate::open(file.to_str().unwrap()).unwrap().array(name).unwrap();
        array.read::<i64>(crate::Selection::all()).unwrap().data
    };
    assert_eq!((read("b"), read("c")), (vec![1, 2, 3, 4, 5, 6, 7], vec![-32767; 7]));
    // Fewer records are fewer of all arrays; and not more again in one edit, of which what was staged does not know.
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    w.apply(Change::Resize { array: path("b"), shape: vec![6] }).unwrap();
    finish(w).unwrap();
    assert_eq!((read("b"), read("c")), (vec![1, 2, 3, 4, 5, 6], vec![-32767; 6]));
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    w.apply(Change::Resize { array: path("c"), shape: vec![2] }).unwrap();
    w.apply(Change::Resize { array: path("b"), shape: vec![6] }).unwrap();
    let error = finish(w).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(read("b"), [1, 2, 3, 4, 5, 6]);
    // And back again.
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    w.apply(Change::Delete { path: path("c") }).unwrap();
    w.apply(Change::Resize { array: path("b"), shape: vec![5] }).unwrap();
    finish(w).unwrap();
    // What another version has is refused with the way to it.
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    let error = array(&mut w, "d", int(8), &["t"], &[5]).unwrap_err();
    assert!(error.to_string().contains("--to cdf5"), "{error}");
    drop(w);
    let (now, was) = (contents(&file), alone);
    assert_eq!(now, was);
    // Growing again shows the fill value, not what was there.
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    w.apply(Change::Resize { array: path("b"), shape: vec![3] }).unwrap();
    w.apply(Change::Resize { array: path("b"), shape: vec![6] }).unwrap();
    finish(w).unwrap();
    assert_eq!(read("b"), [1, 2, 3, -127, -127, -127]);
}

#[test]
fn attributes_change_in_place_where_there_is_room_and_by_a_new_file_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nc");
    example(&file, Version::Offset64).unwrap();
    let number = |file: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(file).unwrap());
    let edit = || edit(&file, &options(), &Limits::default()).unwrap().1;
    let (before, first) = (contents(&file), number(&file));
    let mut w = edit();
    note(&mut w, "/", "title", "an exam").unwrap();
    finish(w).unwrap();
    assert_eq!(number(&file), first);
    let shorter = contents(&file);
    assert_eq!(shorter[1], "title:Char[7]=[61, 6e, 20, 65, 78, 61, 6d]");
    assert_eq!(shorter[2..], before[2..]);
    // Nothing of a longer header is left behind a shorter one.
    let mut w = edit();
    w.apply(Change::DeleteAttribute { object: path("/"), name: "title".into() }).unwrap();
    finish(w).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let header = Header::parse(&bytes.clone().into(), true, &Limits::default()).unwrap();
    let data = header.variables.iter().map(|v| v.begin).min().unwrap();
    assert!(data > header.length && bytes[header.length as usize..data as usize].iter().all(|&b| b == 0));
    let mut w = edit();
    note(&mut w, "b", "long", &"long ".repeat(500)).unwrap();
    finish(w).unwrap();
    assert_ne!(number(&file), first);
    assert_eq!(contents(&file)[1], before[2]);
    // Now there is room for more.
    let second = number(&file);
    let mut w = edit();
    note(&mut w, "/", "title", "an example").unwrap();
    w.apply(Change::Rename { from: path("c"), to: path("renamed") }).unwrap();
    w.apply(Change::DeleteAttribute { object: path("b"), name: "long".into() }).unwrap();
    put(&mut w, "renamed", &bytes_of_three()).unwrap();
    finish(w).unwrap();
    assert_eq!(number(&file), second);
    let after = contents(&file);
    assert_eq!(after[..4], before[..4]);
    assert!(after[4].starts_with("renamed [3]") && after[5..] == before[5..], "{after:#?}");
    // A copy, with its values.
    let mut w = edit();
    w.apply(Change::CopyObject { from: path("a"), to: path("a2") }).unwrap();
    finish(w).unwrap();
    let all = contents(&file);
    assert_eq!(all.last().unwrap().replacen("a2", "a", 1), all[2]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn bytes_of_three() -> Vec<u8> {
    bytes(3, 2, 9)
}

#[test]
fn a_transaction_that_is_dropped_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nc");
    example(&file, Version::Classic).unwrap();
    let before = std::fs::read(&file).unwrap();
    let mut w = edit(&file, &options(), &Limits::default()).unwrap().1;
    put(&mut w, "a", &bytes(1500, 4, 77)).unwrap();
    w.apply(Change::Resize { array: path("c"), shape: vec![100] }).unwrap();
    put(&mut w, "c", &bytes(100, 2, 77)).unwrap();
    array(&mut w, "new", int(4), &["x"], &[5]).unwrap();
    put(&mut w, "new", &bytes(5, 4, 77)).unwrap();
    drop(w);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Whatever has no place in the format is refused when it is said, and the rest goes on.
#[test]
fn what_the_format_lacks_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nc");
    let mut w = create(&file, Version::Classic, &options()).unwrap();
    dimension(&mut w, "t", 2, true).unwrap();
    dimension(&mut w, "x", 1 << 30, false).unwrap();
    let unsupported = |result: Result<()>, words: &str| {
        let error: Error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    unsupported(dimension(&mut w, "u", 0, true), "dimension u");
    unsupported(dimension(&mut w, "empty", 0, false), "length 0");
    unsupported(dimension(&mut w, "long", 1 << 31, false), "CDF-5");
    unsupported(w.apply(Change::CreateGroup { path: path("g") }), "groups");
    let link = LinkSpec::Soft("a".into());
    unsupported(w.apply(Change::CreateLink { path: path("l"), link }), "links");
    unsupported(array(&mut w, "a", int(8), &["x"], &[1 << 30]), "int64 in CDF-1");
    unsupported(array(&mut w, "g/a", int(4), &["x"], &[1 << 30]), "groups");
    unsupported(array(&mut w, "a", int(1), &["x", "t"], &[1 << 30, 2]), "as axis 1");
    unsupported(array(&mut w, "/-a", int(1), &[], &[]), "begins with");
    let opaque = DType::Opaque { size: 3, tag: "".into() };
    unsupported(array(&mut w, "a", opaque, &["x"], &[1 << 30]), "opaque");
    let mut spec = ArraySpec::new(int(4), simple(&[4]));
    spec.layout = LayoutSpec::Virtual(Vec::new());
    unsupported(w.apply(Change::CreateArray { path: path("a"), spec: Box::new(spec) }), "virtual");
    let space = Dataspace::Simple { dims: vec![2, 2], max: vec![None, None] };
    let spec = ArraySpec::new(int(4), space);
    unsupported(w.apply(Change::CreateArray { path: path("a"), spec: Box::new(spec) }), "not the first");
    // 4 GiB: the last one may be as large, and begins before 2 GiB; none may follow it.
    array(&mut w, "last", int(4), &["x"], &[1 << 30]).unwrap();
    unsupported(array(&mut w, "next", int(4), &["x"], &[1 << 30]), "variable last");
    unsupported(array(&mut w, "next", int(4), &["t"], &[2]), "variable last");
    let attribute = |dtype: DType, value: &[u8]| AttributeSpec {
        name: "n".into(),
        space: simple(&[1]),
        committed: None,
        content: Content::Fixed(Bytes::copy_from_slice(value)),
        dtype,
    };
    let set = |attribute| Change::SetAttribute { object: ObjectPath::root(), attribute };
    unsupported(w.apply(set(attribute(int(8), &(1u64 << 40).to_be_bytes()))), "no type of CDF-1");
    w.apply(set(attribute(int(8), &(-5i64).to_be_bytes()))).unwrap();
    assert_eq!(w.header.attributes[0].data, (-5i32).to_be_bytes()[..]);
    assert_eq!(w.header.dimensions.len(), 2);
    assert_eq!(w.header.variables.len(), 1);
    drop(w);
    // CDF-5 has room for all of it.
    let mut w = create(&file, Version::Data64, &options()).unwrap();
    dimension(&mut w, "x", 1 << 33, false).unwrap();
    array(&mut w, "a", int(8), &["x"], &[1 << 33]).unwrap();
    array(&mut w, "b", int(8), &["x"], &[1 << 33]).unwrap();
    drop(w);
    assert!(!file.exists());
    // A file that is cut short is not edited.
    example(&file, Version::Classic).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 30]).unwrap();
    let error = edit(&file, &options(), &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
}

/// Random edits, compared with a file that is written anew.
#[test]
fn random_edits_give_what_a_new_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 5u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for round in 0..40 {
        let file: PathBuf = folder.path().join(format!("{round}.nc"));
        let version = [Version::Classic, Version::Offset64, Version::Data64][round % 3];
        let mut w = create(&file, version, &options()).unwrap();
        dimension(&mut w, "t", 0, true).unwrap();
        dimension(&mut w, "x", 7, false).unwrap();
        // Name, size, whether with records, rows; of rows that nobody wrote the fill value.
        let mut model: Vec<(String, usize, bool, Vec<u8>)> = Vec::new();
        let mut records = 0u64;
        for step in 0..40 {
            let size = [1, 2, 4][random(3) as usize];
            match random(8) {
                0 | 1 => {
                    let is_record = random(3) > 0;
                    let name = format!("v{step}");
                    let count = if is_record { records * 7 } else { 7 };
                    let (dims, extents) =
                        if is_record { (vec!["t", "x"], vec![records, 7]) } else { (vec!["x"], vec![7]) };
                    array(&mut w, &name, int(size), &dims, &extents).unwrap();
                    let fill = [&[0x81][..], &[0x80, 1], &[], &[0x80, 0, 0, 1]][size - 1];
                    model.push((name, size, is_record, fill.repeat(count as usize)));
                }
                2 if model.iter().any(|v| v.2) => {
                    records += random(4);
                    let name = &model.iter().find(|v| v.2).unwrap().0;
                    w.apply(Change::Resize { array: path(name), shape: vec![records, 7] }).unwrap();
                    for (_, size, _, data) in model.iter_mut().filter(|v| v.2) {
                        let fill = [&[0x81][..], &[0x80, 1], &[], &[0x80, 0, 0, 1]][*size - 1];
                        data.extend(fill.repeat((records * 7) as usize - data.len() / *size));
                    }
                }
                3 | 4 if !model.is_empty() => {
                    let at = random(model.len() as u64) as usize;
                    let (name, size, _, data) = &mut model[at];
                    *data = bytes((data.len() / *size) as u64, *size, random(1000));
                    put(&mut w, name, data).unwrap();
                }
                5 => note(&mut w, "/", &format!("n{}", random(3)), &"text".repeat(random(60) as usize + 1))
                    .unwrap(),
                6 if model.len() > 3 => {
                    let (name, ..) = model.remove(random(model.len() as u64) as usize);
                    w.apply(Change::Delete { path: path(&name) }).unwrap();
                }
                _ => {
                    finish(w).unwrap();
                    w = edit(&file, &options(), &Limits::default()).unwrap().1;
                }
            }
        }
        finish(w).unwrap();
        contents(&file);
        let open = crate::open(file.to_str().unwrap()).unwrap();
        assert_eq!(open.root().links().unwrap().links.len(), model.len());
        for (name, size, _, data) in &model {
            let found = open.array(name).unwrap().read::<i64>(crate::Selection::all()).unwrap().data;
            let wanted: Vec<i64> = data
                .chunks_exact(*size)
                .map(|b| {
                    b.iter().fold(if b[0] & 0x80 != 0 { -1 } else { 0 }, |n, &b| (n << 8) | i64::from(b))
                })
                .collect();
            assert_eq!(found, wanted, "round {round}, {name}");
        }
    }
}
