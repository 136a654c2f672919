//! HDF5 files through the one way to write.

use super::*;
use crate::dtype::{ByteOrder, IntegerType};
use crate::format::hdf5::write::Libver;
use crate::model::VirtualMapping;
use crate::model::write::{EncodedChunk, ExternalRun, FillSpec, LayoutSpec, LinkSpec};
use crate::select::Selection;
use crate::shape::Name;

fn i32le() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("hyperslab-hdf5-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn files_are_made_and_changed() {
    let folder = folder("made");
    for (name, chunk, deflate) in
        [("whole", None, false), ("chunked", Some([2, 3]), false), ("deflated", Some([2, 3]), true)]
    {
        let path = folder.join(format!("{name}.h5"));
        let text = path.to_str().unwrap();
        let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
        w.create_group("g").unwrap();
        let mut spec = ArraySpec::simple(i32le(), &[5, 7]).with_fill(&(-1i32).to_le_bytes());
        if let Some(chunk) = chunk {
            spec = spec.with_chunk(&chunk);
        }
        if deflate {
            let parameters = vec![4];
            let filter =
                crate::codec::FilterSpec::Hdf5 { id: 1, flags: 1, name: Default::default(), parameters };
            spec.filters = vec![filter];
        }
        w.create_array("g/a", spec).unwrap();
        let mut staged = StagedArray::full(&[5, 7], &[2, 3], &i32le(), Some(Values::from(-1i64))).unwrap();
        staged.set("1:3, 2:6", Values::from(5i64)).unwrap();
        w.write("g/a", &staged).unwrap();
        w.set_attribute("g/a", "units", "K").unwrap();
        // Nothing is there before the commit.
        assert!(!path.exists());
        w.commit().unwrap();
        let expected = |row: usize, column: usize, changed: bool| {
            if changed && row == 4 {
                9
            } else if (1..3).contains(&row) && (2..6).contains(&column) {
                5
            } else {
                -1
            }
        };
        let check = |changed: bool| {
            let file = crate::open(text).unwrap();
            let data = file.array("g/a").unwrap().read::<i32>(crate::Selection::all()).unwrap();
            let wanted: Vec<i32> = (0..35).map(|i| expected(i / 7, i % 7, changed)).collect();
            assert_eq!(data.data, wanted, "{name}");
            assert_eq!(file.array("g/a").unwrap().attribute("units").unwrap().as_str(), Some("K"));
        };
        check(false);
        assert_eq!(
            create(text, Format::Hdf5, &CreateOptions::new()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("g/a", "4", Values::from(9i64)).unwrap();
        // A transaction that is dropped leaves no trace.
        drop(w);
        check(false);
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("g/a", "4", Values::from(9i64)).unwrap();
        w.commit().unwrap();
        check(true);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_part_of_a_large_run_leaves_the_rest() {
    let folder = folder("run");
    let path = folder.join("run.h5");
    let text = path.to_str().unwrap();
    // Pieces of a row each.
    let row = 1_100_000;
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    w.create_array("a", ArraySpec::simple(i32le(), &[4, row]).with_fill(&(-1i32).to_le_bytes())).unwrap();
    w.commit().unwrap();
    let length = || std::fs::metadata(&path).unwrap().len();
    // Nothing but fill values takes no room.
    assert!(length() < 4096);
    for (step, wanted) in [(0, [7, -1, -1, -1]), (2, [7, -1, 7, -1])] {
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("a", format!("{step}").as_str(), Values::from(7i64)).unwrap();
        w.commit().unwrap();
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        let (from, to) =
            (ObjectPath::parse("a").unwrap(), ObjectPath::parse(&format!("copy{step}")).unwrap());
        w.apply(Change::CopyObject { from, to }).unwrap();
        w.commit().unwrap();
        let file = crate::open(text).unwrap();
        for name in ["a".to_owned(), format!("copy{step}")] {
            let array = file.array(&name).unwrap();
            for (i, wanted) in wanted.iter().enumerate() {
                let data = array.read::<i32>(format!("{i}").as_str()).unwrap().data;
                assert!(data.len() as u64 == row && data.iter().all(|v| v == wanted), "{name} {step} {i}");
            }
        }
    }
    assert!(length() < 3 * 4 * 4 * row + 50_000, "{}", length());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_nobody_wrote_is_the_fill_value() {
    let folder = folder("fill");
    let path = folder.join("fill.nc");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::NetCdf4, &CreateOptions::new()).unwrap();
    for (name, early) in [("late", false), ("early", true)] {
        let mut spec = ArraySpec::simple(i32le(), &[4, 6]).with_fill(&7i32.to_le_bytes());
        spec.allocation_time = early.then_some(crate::model::write::AllocationTime::Early);
        w.create_array(name, spec.clone()).unwrap();
        w.create_array(&format!("{name} in chunks"), spec.with_chunk(&[3, 4])).unwrap();
    }
    let mut spec = ArraySpec::simple(i32le(), &[3]);
    spec.fill = FillSpec::Undefined;
    w.create_array("undefined", spec).unwrap();
    w.commit().unwrap();
    let file = crate::open(text).unwrap();
    for name in ["late", "early", "late in chunks", "early in chunks"] {
        let data = file.array(name).unwrap().read::<i32>(crate::Selection::all()).unwrap();
        assert_eq!(data.data, [7; 24], "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn many_small_arrays_cost_what_they_are() {
    let folder = folder("many");
    let path = folder.join("many.h5");
    let text = path.to_str().unwrap();
    let begun = std::time::Instant::now();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    let count = 2000u32;
    for i in 0..count {
        let at = ObjectPath::root().join(format!("d{i}").as_str());
        let spec = Box::new(ArraySpec::simple(i32le(), &[10]));
        w.apply(Change::CreateArray { path: at.clone(), spec }).unwrap();
        let bytes: Vec<u8> = (0..10).flat_map(|n| (n * i).to_le_bytes()).collect();
        let data = crate::exec::encode::ChunkData::Elements(Content::Fixed(bytes.into()));
        let chunk = NewChunk { coord: [0].as_slice().into(), data };
        w.write_chunks(&at, &mut std::iter::once(Ok(chunk))).unwrap();
    }
    w.commit().unwrap();
    eprintln!("{count} arrays in {:?}", begun.elapsed());
    // Elements, a header and a link of each, and little else.
    assert!(std::fs::metadata(&path).unwrap().len() < u64::from(count) * 350);
    let file = crate::open(text).unwrap();
    for i in [0, 1, count / 2, count - 1] {
        let data = file.array(&format!("d{i}")).unwrap().read::<i32>(crate::Selection::all()).unwrap();
        assert_eq!(data.data, (0..10).map(|n| n * i as i32).collect::<Vec<_>>());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn at(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

/// Arrays in every way in which HDF5 stores elements, in the group `g` of a new file; their names.
fn every_storage(text: &str, libver: Libver) -> Vec<String> {
    let mut options = CreateOptions::new();
    options.hdf5 = options.hdf5.with_libver(libver);
    let mut w = create(text, Format::Hdf5, &options).unwrap();
    let mut names = Vec::new();
    w.create_group("g").unwrap();
    let space = |max: [Option<u64>; 2]| Dataspace::Simple { dims: vec![4, 6], max: max.to_vec() };
    let fixed = [Some(4), Some(6)];
    let chunked = |chunk: &[u64]| LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: None };
    let ways = [
        ("compact", LayoutSpec::Compact, fixed),
        ("contiguous", LayoutSpec::Contiguous, fixed),
        ("single", chunked(&[4, 6]), fixed),
        ("fixed", chunked(&[3, 4]), fixed),
        ("extensible", chunked(&[3, 4]), [None, Some(6)]),
        ("tree", chunked(&[3, 4]), [None, None]),
    ];
    for (name, layout, max) in ways {
        for filtered in [false, true] {
            if filtered && !matches!(layout, LayoutSpec::Chunked { .. }) {
                continue;
            }
            let path = format!("g/{name}{}", if filtered { " filtered" } else { "" });
            let mut spec = ArraySpec::new(i32le(), space(max));
            spec.layout = layout.clone();
            spec.fill = FillSpec::Value(Content::Fixed((-1i32).to_le_bytes().to_vec().into()));
            if filtered {
                let (name, parameters) = (Name::default(), vec![4]);
                spec.filters = vec![crate::codec::FilterSpec::Hdf5 { id: 1, flags: 1, name, parameters }];
            }
            w.create_array(&path, spec).unwrap();
            let mut staged =
                StagedArray::full(&[4, 6], &[3, 4], &i32le(), Some(Values::from(-1i64))).unwrap();
            staged.set("1:, 2:5", Values::from(100 + names.len() as i64)).unwrap();
            w.write(&path, &staged).unwrap();
            names.push(path);
        }
    }
    let text_type = DType::VarString {
        size: 16,
        padding: crate::dtype::StringPadding::NullTerminated,
        charset: crate::dtype::CharSet::Utf8,
    };
    let three = |max| Dataspace::Simple { dims: vec![3], max: vec![max] };
    for (name, layout, max) in [
        ("texts compact", LayoutSpec::Compact, Some(3)),
        ("texts contiguous", LayoutSpec::Contiguous, Some(3)),
        ("texts chunked", chunked(&[3]), None),
    ] {
        let path = at(&format!("g/{name}"));
        let mut spec = ArraySpec::new(text_type.clone(), three(max));
        spec.layout = layout;
        w.create_array(&path.to_string(), spec).unwrap();
        let bytes = w.writer.flatten(&path, &Content::texts([&b"one"[..], b"", name.as_bytes()])).unwrap();
        let chunk = EncodedChunk { coord: [0].as_slice().into(), bytes: Some(bytes), mask: 0 };
        w.writer.write_chunks(&path, vec![chunk]).unwrap();
        names.push(format!("g/{name}"));
    }
    w.create_array("g/unwritten", ArraySpec::simple(i32le(), &[3])).unwrap();
    names.push("g/unwritten".into());
    let mut spec = ArraySpec::simple(i32le(), &[6]);
    let run = |file: &str, offset, length| ExternalRun { file: file.into(), offset, length };
    spec.layout = LayoutSpec::External(vec![run("first.raw", 4, Some(8)), run("other.raw", 0, None)]);
    w.create_array("g/external", spec).unwrap();
    names.push("g/external".into());
    if libver != Libver::V18 {
        w.create_array("source", ArraySpec::simple(i32le(), &[4])).unwrap();
        let staged = StagedArray::full(&[4], &[4], &i32le(), Some(Values::from(7i64))).unwrap();
        w.write("source", &staged).unwrap();
        let slab = |start: u64, count: u64| {
            crate::model::SpaceSelection::Regular(crate::model::Hyperslab {
                start: [start].as_slice().into(),
                stride: [1].as_slice().into(),
                count: vec![Some(1)],
                block: vec![Some(count)],
            })
        };
        let mapping = |start, count| VirtualMapping {
            file: ".".into(),
            dataset: "/source".into(),
            source_selection: slab(0, count),
            selection: slab(start, count),
        };
        for (name, mappings) in
            [("virtual", vec![mapping(1, 2), mapping(5, 4)]), ("virtual of nothing", vec![])]
        {
            let path = format!("g/{name}");
            let mut spec = ArraySpec::simple(i32le(), &[10]).with_fill(&(-3i32).to_le_bytes());
            spec.layout = LayoutSpec::Virtual(mappings);
            w.create_array(&path, spec).unwrap();
            names.push(path);
        }
    }
    w.commit().unwrap();
    names
}

/// How an array is stored, and what is in it.
fn content(file: &File, path: &str) -> String {
    let array = file.array(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let values = array.read_values(Selection::all()).unwrap_or_else(|e| panic!("{path}: {e}"));
    let meta = array.meta();
    format!("{:?} {:?} {:?} {:?} {values:?}", meta.layout, meta.space, meta.dtype, meta.filters)
}

#[test]
fn copies_hold_what_their_sources_hold() {
    for libver in [Libver::Earliest, Libver::V18, Libver::V110, Libver::Latest] {
        let folder = folder(&format!("copies-{libver:?}"));
        let numbers = |from: i32| (from..from + 6).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
        std::fs::write(folder.join("first.raw"), numbers(10)).unwrap();
        std::fs::write(folder.join("other.raw"), numbers(50)).unwrap();
        let path = folder.join("file.h5");
        let text = path.to_str().unwrap();
        let names = every_storage(text, libver);
        let file = crate::open(text).unwrap();
        let wanted: Vec<String> = names.iter().map(|name| content(&file, name)).collect();
        let of = |name: &str| wanted[names.iter().position(|n| n == name).unwrap()].as_str();
        assert!(of("g/external").contains("Integer(11), Integer(12), Integer(50)"), "{}", of("g/external"));
        if libver != Libver::V18 {
            assert!(of("g/virtual").contains("Integer(-3), Integer(7), Integer(7), Integer(-3)"));
        }
        let verify = |groups: &[&str]| {
            let file = crate::open(text).unwrap();
            for group in groups {
                for (name, wanted) in names.iter().zip(&wanted) {
                    let there = name.replacen("g/", &format!("{group}/"), 1);
                    assert_eq!(&content(&file, &there), wanted, "{there} {libver:?}");
                }
            }
            let mut faults = Vec::new();
            file.check(&mut |fault| faults.push(fault.error.to_string()));
            assert_eq!(faults, Vec::<String>::new(), "{libver:?}");
        };
        let session = |change: &dyn Fn(&mut Transaction, &str, &str)| {
            let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
            for name in &names {
                change(&mut w, name, name.strip_prefix("g/").unwrap());
            }
            w.commit().unwrap();
        };
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.apply(Change::CopyObject { from: at("g"), to: at("whole") }).unwrap();
        ["copies", "again", "links", "moved"].iter().for_each(|group| w.create_group(group).unwrap());
        w.commit().unwrap();
        verify(&["g", "whole"]);
        session(&|w, name, short| {
            w.apply(Change::CopyObject { from: at(name), to: at(&format!("copies/{short}")) }).unwrap();
            // A copy of what this transaction made.
            let (from, to) = (at(&format!("copies/{short}")), at(&format!("again/{short}")));
            w.apply(Change::CopyObject { from, to }).unwrap();
            let link = LinkSpec::Hard(at(name));
            w.apply(Change::CreateLink { path: at(&format!("links/{short}")), link }).unwrap();
            w.set_attribute(name, "note", "text ".repeat(100).as_str()).unwrap();
        });
        verify(&["g", "whole", "copies", "again", "links"]);
        session(&|w, name, short| {
            let to = at(&format!("moved/{short}"));
            w.apply(Change::Rename { from: at(&format!("whole/{short}")), to }).unwrap();
            w.apply(Change::Delete { path: at(name) }).unwrap();
            w.apply(Change::Delete { path: at(&format!("again/{short}")) }).unwrap();
        });
        verify(&["copies", "links", "moved"]);
        session(&|w, _, short| w.apply(Change::Delete { path: at(&format!("links/{short}")) }).unwrap());
        verify(&["copies", "moved"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn what_cannot_be_copied_is_refused_before_anything_changes() {
    let folder = folder("refused");
    let path = folder.join("file.h5");
    let text = path.to_str().unwrap();
    let make = |w: &mut Transaction, group: &str| {
        w.create_group(group).unwrap();
        w.create_array(&format!("{group}/a"), ArraySpec::simple(i32le(), &[600])).unwrap();
        let mut spec = ArraySpec::simple(i32le(), &[6]).with_chunk(&[2]);
        spec.allocation_time = Some(crate::model::write::AllocationTime::Early);
        w.create_array(&format!("{group}/implicit"), spec).unwrap();
        for (name, length) in [("a", 600), ("implicit", 6)] {
            let staged = StagedArray::full(&[length], &[2], &i32le(), Some(Values::from(3i64))).unwrap();
            w.write(&format!("{group}/{name}"), &staged).unwrap();
        }
    };
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    make(&mut w, "g");
    // Chunks that have their places, and are filled when the transaction ends.
    let refused = w.apply(Change::CopyObject { from: at("g"), to: at("h") }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("implicit"), "{refused}");
    w.commit().unwrap();
    let file = crate::open(text).unwrap();
    assert!(file.array("h/a").is_err());
    assert_eq!(file.array("g/a").unwrap().read::<i32>(..).unwrap().data, [3; 600]);
    // When they are of the file they are copied, and found through another index.
    let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
    w.apply(Change::CopyObject { from: at("g"), to: at("h") }).unwrap();
    w.commit().unwrap();
    let copy = crate::open(text).unwrap().array("h/implicit").unwrap();
    assert!(matches!(&copy.meta().layout, crate::model::Layout::Chunked { index: "fixed array" }));
    assert_eq!(copy.read::<i32>(..).unwrap().data, [3; 6]);
    std::fs::remove_dir_all(folder).unwrap();
}

fn deflate() -> crate::codec::FilterSpec {
    crate::codec::FilterSpec::Hdf5 { id: 1, flags: 1, name: Default::default(), parameters: vec![4] }
}

#[test]
fn arrays_say_where_they_come_from_until_they_are_changed() {
    let folder = folder("provenance");
    let path = folder.join("provenance.h5");
    let text = path.to_str().unwrap();
    let provenance = crate::format::hdf5::write::Provenance::new().with_creator("me").with_source("a test");
    let mut options = CreateOptions::new();
    options.hdf5 = options.hdf5.with_provenance(provenance);
    let mut w = create(text, Format::Hdf5, &options).unwrap();
    let fill = (-3i32).to_le_bytes();
    type Case<'a> = (&'a str, &'a [u64], Option<&'a [u64]>, bool);
    let arrays: [Case<'_>; 7] = [
        ("whole", &[5, 7], None, false),
        ("compact", &[5, 7], None, false),
        ("empty", &[5, 7], None, false),
        ("chunked", &[5, 7], Some(&[2, 3]), true),
        ("rows", &[5, 7], Some(&[1, 3]), false),
        ("deep", &[3, 4, 5], Some(&[1, 2, 2]), true),
        ("line", &[7], Some(&[1]), true),
    ];
    for (name, dims, chunk, filtered) in arrays {
        let mut spec = ArraySpec::simple(i32le(), dims).with_fill(&fill);
        match chunk {
            Some(chunk) => spec = spec.with_chunk(chunk),
            None if name == "compact" => spec.layout = LayoutSpec::Compact,
            None => {}
        }
        spec.filters = if filtered { vec![deflate()] } else { Vec::new() };
        w.create_array(name, spec).unwrap();
        if name == "empty" {
            continue;
        }
        // A part of it only.
        let whole: Vec<u64> = dims.to_vec();
        let mut staged = StagedArray::full(&whole, &whole, &i32le(), Some(Values::from(-3i64))).unwrap();
        staged.set("1:3", Values::from(5i64)).unwrap();
        staged.set("-1", Values::from(6i64)).unwrap();
        w.write(name, &staged).unwrap();
    }
    w.commit().unwrap();
    let verdict = |name: &str| {
        let file = crate::open(text).unwrap();
        file.array(name).unwrap().verify_provenance().unwrap()
    };
    for (name, ..) in arrays {
        let found = verdict(name);
        assert_eq!(found.verdict, crate::array::Verdict::Ok, "{name}");
        assert_eq!(found.creator.as_deref(), Some("me"));
        assert_eq!((found.source.as_deref(), found.timestamp), (Some("a test"), None));
    }
    let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
    w.set("chunked", "0", Values::from(9i64)).unwrap();
    w.set_attribute("rows", "units", "K").unwrap();
    w.commit().unwrap();
    assert_eq!(verdict("chunked").verdict, crate::array::Verdict::NoHash);
    assert_eq!(verdict("chunked").creator.as_deref(), Some("me"));
    assert_eq!(verdict("rows").verdict, crate::array::Verdict::Ok);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn chunks_that_lie_in_one_run_take_other_extents() {
    let folder = folder("implicit");
    let path = folder.join("implicit.h5");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    let mut spec = ArraySpec::simple(i32le(), &[5, 4]).with_chunk(&[2, 3]).with_fill(&7i32.to_le_bytes());
    spec.space = Dataspace::Simple { dims: vec![5, 4], max: vec![Some(9), Some(7)] };
    spec.allocation_time = Some(crate::model::write::AllocationTime::Early);
    w.create_array("a", spec).unwrap();
    w.commit().unwrap();
    let mut model = vec![vec![7; 4]; 5];
    let set = |shape: [u64; 2], model: &mut Vec<Vec<i32>>| {
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        let array = ObjectPath::parse("a").unwrap();
        w.apply(Change::Resize { array, shape: shape.to_vec() }).unwrap();
        w.commit().unwrap();
        model.iter_mut().for_each(|row| row.resize(shape[1] as usize, 7));
        model.resize(shape[0] as usize, vec![7; shape[1] as usize]);
        let file = crate::open(text).unwrap();
        let array = file.array("a").unwrap();
        assert!(matches!(&array.meta().layout, crate::model::Layout::Chunked { index: "implicit" }));
        let data = array.read::<i32>(crate::Selection::all()).unwrap();
        assert_eq!(data.data, model.concat(), "{shape:?}");
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("a", "...", Values::from(1i64)).unwrap();
        w.commit().unwrap();
        model.iter_mut().flatten().for_each(|v| *v = 1);
    };
    for shape in [[9, 7], [3, 2], [4, 7], [1, 1], [9, 5], [9, 7]] {
        set(shape, &mut model);
    }
    // Also where an axis has no chunk left in between.
    set([0, 7], &mut model);
    set([6, 6], &mut model);
    std::fs::remove_dir_all(folder).unwrap();
}

fn text_type() -> DType {
    DType::VarString {
        size: 16,
        padding: crate::dtype::StringPadding::NullTerminated,
        charset: crate::dtype::CharSet::Utf8,
    }
}

fn texts_of(file: &str, array: &str) -> Vec<Option<String>> {
    let file = crate::open(file).unwrap();
    let (_, elements) = file.array(array).unwrap().read_elements("...").unwrap();
    elements.values().unwrap().iter().map(|v| v.as_str().map(str::to_owned)).collect()
}

#[test]
fn fill_values_on_the_heap_are_of_each_element() {
    let folder = folder("heap-fill");
    let path = folder.join("texts.h5");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    for (name, chunk) in [("whole", None), ("chunked", Some([4]))] {
        let mut spec = ArraySpec::simple(text_type(), &[6]);
        spec.fill = FillSpec::Value(Content::text(b"fill"));
        spec.allocation_time = Some(crate::model::write::AllocationTime::Early);
        if let Some(chunk) = chunk {
            spec = spec.with_chunk(&chunk);
            spec.space = Dataspace::Simple { dims: vec![6], max: vec![Some(12)] };
        }
        w.create_array(name, spec).unwrap();
    }
    w.commit().unwrap();
    let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
    for name in ["whole", "chunked"] {
        w.set(name, "1", Values::from("set")).unwrap();
        let (from, to) = (ObjectPath::parse(name).unwrap(), ObjectPath::parse(&format!("{name}2")).unwrap());
        w.apply(Change::CopyObject { from, to }).unwrap();
    }
    w.commit().unwrap();
    let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
    for name in ["chunked", "chunked2"] {
        let array = ObjectPath::parse(name).unwrap();
        w.apply(Change::Resize { array, shape: vec![9] }).unwrap();
    }
    w.commit().unwrap();
    for (name, count) in [("whole", 6), ("whole2", 6), ("chunked", 9), ("chunked2", 9)] {
        let wanted: Vec<Option<String>> =
            (0..count).map(|i| Some(if i == 1 { "set" } else { "fill" }.to_owned())).collect();
        assert_eq!(texts_of(text, name), wanted, "{name}");
        // No two elements have the same object: who writes over one of them frees it.
        let stored = crate::open(text).unwrap().array(name).unwrap().read_raw("...").unwrap().bytes;
        let places: std::collections::HashSet<&[u8]> = stored.chunks(16).map(|e| &e[4..]).collect();
        assert_eq!(places.len(), count, "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn attributes_of_old_headers_are_as_long_as_a_message() {
    let folder = folder("old-attribute");
    let path = folder.join("old.h5");
    let text = path.to_str().unwrap();
    let mut options = CreateOptions::new();
    options.hdf5 = options.hdf5.with_libver(Libver::Earliest);
    let mut w = create(text, Format::Hdf5, &options).unwrap();
    w.create_group("g").unwrap();
    w.commit().unwrap();
    let values = |n: usize| vec![1.0f64; n];
    let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
    // 8 bytes, 8 of the name, 24 of the type, 24 of the extents; 65528 in all.
    let most = (65_528 - 64) / 8;
    w.set_attribute("g", "a", values(most).as_slice()).unwrap();
    let refused = w.set_attribute("g", "a", values(most + 1).as_slice()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    w.commit().unwrap();
    let file = crate::open(text).unwrap();
    assert_eq!(file.group("g").unwrap().attributes().unwrap()[0].as_ref().unwrap().data.len(), 8 * most);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rows_appended_one_by_one_take_the_room_of_their_data() {
    let folder = folder("append");
    let path = folder.join("append.h5");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    let mut spec = ArraySpec::simple(i32le(), &[0]).with_chunk(&[1000]);
    spec.space = Dataspace::Simple { dims: vec![0], max: vec![None] };
    spec.filters = vec![deflate()];
    w.create_array("a", spec).unwrap();
    w.commit().unwrap();
    let quick = WriteOptions::new().with_sync(crate::source::SyncPolicy::None);
    // Each in a transaction of its own, so that its chunk is read, encoded and written again.
    let rows = 600i32;
    for row in 0..rows {
        let mut w = edit(text, &OpenOptions::default(), &quick).unwrap();
        let mut staged = w.stage("a").unwrap();
        staged.resize(&[row as u64 + 1]).unwrap();
        staged.set(row.to_string().as_str(), Values::from(i64::from(row.wrapping_mul(48271)))).unwrap();
        w.write("a", &staged).unwrap();
        w.commit().unwrap();
    }
    let file = crate::open(text).unwrap();
    let wanted: Vec<i32> = (0..rows).map(|r| r.wrapping_mul(48271)).collect();
    assert_eq!(file.array("a").unwrap().read::<i32>(crate::Selection::all()).unwrap().data, wanted);
    // The chunk is written six hundred times, of 1 kB on average; it is there once.
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 8000, "{length}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn texts_appended_one_by_one_take_the_room_of_their_own() {
    let folder = folder("append-texts");
    let path = folder.join("append.h5");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    for (name, filters) in [("plain", Vec::new()), ("filtered", vec![deflate()])] {
        let mut spec = ArraySpec::simple(text_type(), &[0]).with_chunk(&[64]);
        spec.space = Dataspace::Simple { dims: vec![0], max: vec![None] };
        spec.filters = filters;
        w.create_array(name, spec).unwrap();
    }
    w.create_array("whole", ArraySpec::simple(text_type(), &[8])).unwrap();
    w.commit().unwrap();
    let quick = WriteOptions::new().with_sync(crate::source::SyncPolicy::None);
    let value = |i: u64| format!("the text of row {}", i * i);
    let rows = 150u64;
    for row in 0..rows {
        let mut w = edit(text, &OpenOptions::default(), &quick).unwrap();
        for name in ["plain", "filtered"] {
            let mut staged = w.stage(name).unwrap();
            staged.resize(&[row + 1]).unwrap();
            staged.set(row.to_string().as_str(), Values::from(value(row).as_str())).unwrap();
            // One before it, which changes each time.
            let before = (row / 2).to_string();
            staged.set(before.as_str(), Values::from(format!("again {row}").as_str())).unwrap();
            w.write(name, &staged).unwrap();
        }
        w.set("whole", (row % 8).to_string().as_str(), Values::from(value(row).as_str())).unwrap();
        w.commit().unwrap();
    }
    let wanted: Vec<Option<String>> = (0..rows)
        .map(|i| match (0..rows).rev().find(|row| row / 2 == i && *row >= i) {
            Some(row) => Some(format!("again {row}")),
            None => Some(value(i)),
        })
        .collect();
    for name in ["plain", "filtered"] {
        assert_eq!(texts_of(text, name), wanted, "{name}");
        let stored = crate::open(text).unwrap().array(name).unwrap().read_raw("...").unwrap().bytes;
        let places: std::collections::HashSet<&[u8]> = stored.chunks(16).map(|e| &e[4..]).collect();
        assert_eq!(places.len() as u64, rows, "{name}");
    }
    let last = |i: u64| Some(value((0..rows).rev().find(|row| row % 8 == i).unwrap()));
    assert_eq!(texts_of(text, "whole"), (0..8).map(last).collect::<Vec<_>>());
    // 750 texts of 40 bytes on the heap, where those that were written over stay. With collections of their own, the least that
    // there is, these transactions alone would take 1.8 MB.
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 150_000, "{length}");
    let mut faults = Vec::new();
    crate::open(text).unwrap().check(&mut |f| faults.push(f.error.to_string()));
    assert_eq!(faults, Vec::<String>::new());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn values_are_set_on_arrays_that_are_new() {
    let folder = folder("fresh");
    let values: Vec<i32> = (0..35).collect();
    for format in [Format::Hdf5, Format::Zarr2, Format::Zarr3, Format::NcZarr, Format::NetCdf3] {
        let path = folder.join(format!("fresh-{}", format.name()));
        let mut w = create(path.to_str().unwrap(), format, &CreateOptions::new()).unwrap();
        let spec = || {
            let spec = ArraySpec::simple(i32le(), &[5, 7]).with_fill(&(-1i32).to_le_bytes());
            if format == Format::NetCdf3 { spec } else { spec.with_chunk(&[2, 3]) }
        };
        w.create_array("whole", spec()).unwrap();
        let stats = w.set("whole", .., Values::new(&[5, 7], &values).unwrap()).unwrap();
        assert_eq!(stats.bytes_in, 35 * 4);
        // What was written is not written again in this transaction.
        assert!(w.set("whole", .., 1).is_err());
        w.create_array("part", spec()).unwrap();
        w.set("part", "1:3, ::2", Values::from(9i64)).unwrap();
        w.create_array("one", spec()).unwrap();
        w.set("one", .., 3u8).unwrap();
        w.create_array("other", spec()).unwrap();
        // Of another type, of fewer axes, and of another shape.
        let wide: Vec<f64> = values.iter().map(|&v| f64::from(v) + 0.25).collect();
        w.set("other", .., Values::new(&[5, 7], &wide).unwrap()).unwrap();
        w.create_array("row", spec()).unwrap();
        w.set("row", .., &values[..7]).unwrap();
        w.create_array("wrong", spec()).unwrap();
        assert!(w.set("wrong", .., &values[..6]).is_err());
        w.create_array("scalar", ArraySpec::simple(i32le(), &[])).unwrap();
        w.set("scalar", .., 5).unwrap();
        w.commit().unwrap();
        let file = crate::open(path.to_str().unwrap()).unwrap();
        let read = |name: &str| file.array(name).unwrap().read::<i32>("...").unwrap().data;
        assert_eq!(read("whole"), values, "{format}");
        assert_eq!(read("other"), values, "{format}");
        assert_eq!(read("one"), [3; 35], "{format}");
        assert_eq!(read("row"), values[..7].repeat(5), "{format}");
        assert_eq!(read("wrong"), [-1; 35], "{format}");
        assert_eq!(read("scalar"), [5], "{format}");
        let part = |i: usize| if (1..3).contains(&(i / 7)) && (i % 7).is_multiple_of(2) { 9 } else { -1 };
        assert_eq!(read("part"), (0..35).map(part).collect::<Vec<_>>(), "{format}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
