use super::*;
use crate::dtype::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};
use crate::format;
use crate::model::write::{ArraySpec, AttributeSpec, EncodedChunk, LayoutSpec, LinkSpec};
use crate::model::{ChunkRef, Dataspace, Hierarchy, NodeId, Storage};
use crate::source::{MemorySource, Neighbours};

fn i32le() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

fn simple(dims: &[u64], max: &[Option<u64>]) -> Dataspace {
    Dataspace::Simple { dims: dims.to_vec(), max: max.to_vec() }
}

fn fixed(dims: &[u64]) -> Dataspace {
    simple(dims, &dims.iter().map(|&d| Some(d)).collect::<Vec<_>>())
}

/// Writes a file and opens it with the reader.
fn written(options: Hdf5Options, write: impl FnOnce(&mut Hdf5Writer)) -> (Vec<u8>, Arc<dyn Hierarchy>) {
    let target = Arc::new(MemoryTarget::default());
    let mut writer = Hdf5Writer::create(target.clone(), options, Limits::default()).unwrap();
    write(&mut writer);
    Box::new(writer).commit().unwrap();
    let bytes = target.bytes();
    let source = Arc::new(MemorySource::new(bytes.clone(), "test"));
    (bytes, format::open(source, Neighbours::default(), Limits::default()).unwrap())
}

fn at(file: &dyn Hierarchy, text: &str) -> NodeId {
    path(text).names().iter().fold(file.root(), |node, name| {
        match file.link(&node, name).unwrap().unwrap_or_else(|| panic!("no {name}")).target {
            crate::model::LinkTarget::Hard(node) => node,
            other => panic!("{other:?}"),
        }
    })
}

/// Every group and array can be read, and every structure that only `check` looks at.
fn check(file: &dyn Hierarchy) {
    let mut faults = Vec::new();
    file.check(&mut |f| faults.push(f.error.to_string()));
    let mut todo = vec![file.root()];
    while let Some(node) = todo.pop() {
        file.check_node(&node, &mut |f| faults.push(f.error.to_string()));
        for a in file.attributes(&node).unwrap() {
            a.map_err(|(_, e)| e).unwrap();
        }
        match file.kind(&node).unwrap() {
            crate::model::NodeKind::Group => {
                let links = file.links(&node).unwrap();
                assert!(links.faults.is_empty(), "{:?}", links.faults);
                todo.extend(links.links.into_iter().filter_map(|l| match l.target {
                    crate::model::LinkTarget::Hard(node) => Some(node),
                    _ => None,
                }));
            }
            crate::model::NodeKind::Array => {
                file.array(&node).unwrap();
            }
            crate::model::NodeKind::Datatype => {
                file.datatype(&node).unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}

const ALL: [Libver; 4] = [Libver::Earliest, Libver::V18, Libver::V110, Libver::Latest];

#[test]
fn an_empty_file_is_a_root_group() {
    for libver in ALL {
        let (bytes, file) = written(Hdf5Options::new().with_libver(libver), |_| {});
        assert!(file.links(&file.root()).unwrap().links.is_empty());
        assert!(bytes.len() < 1100, "{}", bytes.len());
        check(file.as_ref());
    }
}

#[test]
fn links_are_found_in_small_and_large_groups() {
    for libver in ALL {
        for track in [false, true] {
            for count in [1usize, 8, 9, 700, 6000] {
                let options = Hdf5Options::new().with_libver(libver).with_track_order(track);
                let (_, file) = written(options, |w| {
                    w.apply(Change::CreateGroup { path: path("g") }).unwrap();
                    for i in (0..count).rev() {
                        let link = LinkSpec::Soft(Name::from(format!("/elsewhere/{i}").as_str()));
                        w.apply(Change::CreateLink { path: path(&format!("g/name{i}")), link }).unwrap();
                    }
                });
                check(file.as_ref());
                let links = file.links(&at(file.as_ref(), "g")).unwrap();
                assert_eq!(links.links.len(), count);
                assert_eq!(links.tracks_order, track);
                for i in [0, count / 2, count - 1] {
                    let name = Name::from(format!("name{i}").as_str());
                    let link = file.link(&at(file.as_ref(), "g"), &name).unwrap().unwrap();
                    let wanted = Name::from(format!("/elsewhere/{i}").as_str());
                    assert_eq!(link.target, crate::model::LinkTarget::Soft(wanted));
                    assert_eq!(link.creation_order, track.then_some((count - 1 - i) as i64));
                }
            }
        }
    }
}

#[test]
fn attributes_of_any_number_and_length() {
    for libver in ALL {
        for track in [false, true] {
            for (count, length) in [(1, 4), (8, 4), (9, 4), (300, 10), (3, 70_000), (40, 5000)] {
                let options = Hdf5Options::new().with_libver(libver).with_track_order(track);
                let (_, file) = written(options, |w| {
                    for i in 0..count {
                        let dtype = DType::String {
                            size: length,
                            padding: StringPadding::NullPadded,
                            charset: CharSet::Ascii,
                        };
                        let attribute = AttributeSpec {
                            name: Name::from(format!("a{i}").as_str()),
                            dtype,
                            committed: None,
                            space: Dataspace::Scalar,
                            content: Content::Fixed(vec![b'a' + (i % 20) as u8; length].into()),
                        };
                        w.apply(Change::SetAttribute { object: ObjectPath::root(), attribute }).unwrap();
                    }
                });
                check(file.as_ref());
                let found = file.attributes(&file.root()).unwrap();
                assert_eq!(found.len(), count);
                let mut found: Vec<_> = found.into_iter().map(|a| a.map_err(|(_, e)| e).unwrap()).collect();
                found.sort_by_key(|a| a.order);
                for (n, a) in found.iter().enumerate() {
                    let i: usize = a.name.as_str().unwrap()[1..].parse().unwrap();
                    assert_eq!(a.data.as_ref(), vec![b'a' + (i % 20) as u8; length]);
                    assert!(!track || i == n, "{i} in place {n}");
                }
            }
        }
    }
}

/// A name, extents, maximum extents, chunk, and whether chunks are allocated from the start.
type Case<'a> = (&'a str, &'a [u64], &'a [Option<u64>], &'a [u64], bool);

#[test]
fn chunks_are_found_through_every_kind_of_index() {
    let none = None;
    let cases: &[Case] = &[
        ("single", &[6], &[Some(6)], &[6], false),
        ("implicit", &[20, 6], &[Some(20), Some(6)], &[4, 4], true),
        ("implicit, chunks of four bytes", &[40], &[Some(40)], &[1], true),
        ("fixed array", &[20, 6], &[Some(20), Some(6)], &[4, 4], false),
        ("fixed array, paged", &[9000], &[Some(20_000)], &[3], false),
        ("extensible array", &[20, 6], &[none, Some(6)], &[4, 4], false),
        ("extensible array along axis 1", &[5, 700], &[Some(8), none], &[4, 4], false),
        ("extensible array, long", &[30_000], &[none], &[1], false),
        ("extensible array, paged", &[90_000], &[none], &[1], false),
        ("b-tree", &[20, 60], &[none, none], &[4, 4], false),
        ("b-tree, deep", &[80, 80], &[none, none], &[1, 1], false),
    ];
    for libver in ALL {
        for &(name, dims, max, chunk, early) in cases {
            for filtered in [false, true] {
                let layout = LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: None };
                let mut wanted = Vec::new();
                let (_, file) = written(Hdf5Options::new().with_libver(libver), |w| {
                    let mut spec = ArraySpec::new(i32le(), simple(dims, max));
                    spec.layout = layout.clone();
                    if early {
                        spec.allocation_time = Some(crate::model::write::AllocationTime::Early);
                    }
                    if filtered {
                        let (id, flags) = (2, 0);
                        let filter = crate::codec::FilterSpec::Hdf5 {
                            id,
                            flags,
                            name: Name::default(),
                            parameters: vec![4],
                        };
                        spec.filters.push(filter);
                    }
                    w.apply(Change::CreateArray { path: path("a"), spec: Box::new(spec) }).unwrap();
                    let layout = w.layout(&path("a")).unwrap();
                    let grid = layout.grid();
                    let count = layout.count().unwrap();
                    let size = chunk.iter().product::<u64>() as usize * 4;
                    let mut chunks = Vec::new();
                    for n in 0..count {
                        // Some are never written.
                        if n % 7 == 3 && count > 1 {
                            continue;
                        }
                        let mut coord: crate::shape::Coord = grid.as_slice().into();
                        let mut rest = n;
                        for c in coord.iter_mut().rev() {
                            let extent = *c;
                            *c = rest % extent;
                            rest /= extent;
                        }
                        let bytes: Vec<u8> = (0..size).map(|i| (n as usize * 31 + i) as u8).collect();
                        wanted.push((coord.clone(), bytes.clone()));
                        chunks.push(EncodedChunk { coord, bytes: Some(bytes.into()), mask: 0 });
                    }
                    // In another order than theirs, so that each lies beside some that are there.
                    let odd = chunks.iter().skip(1).step_by(2).cloned().collect();
                    w.write_chunks(&path("a"), odd).unwrap();
                    w.write_chunks(&path("a"), chunks.into_iter().step_by(2).collect()).unwrap();
                });
                check(file.as_ref());
                let (meta, storage) = file.array(&at(file.as_ref(), "a")).unwrap();
                assert_eq!(meta.space.dims(), dims);
                let Storage::Chunks(index) = storage else { panic!() };
                let mut seen = 0;
                index
                    .scan(
                        &mut |_, _| {
                            seen += 1;
                            Ok(())
                        },
                        &mut |f| panic!("{libver:?} {name}: {:?}", f.error),
                    )
                    .unwrap();
                let implicit = early && !filtered && libver > Libver::V18;
                if !implicit {
                    assert_eq!(seen, wanted.len(), "{libver:?} {name}");
                }
                let few: Vec<_> = wanted.iter().step_by(wanted.len().div_ceil(12)).collect();
                for (coord, bytes) in few {
                    let found = index.locate(std::slice::from_ref(coord)).unwrap().pop().unwrap();
                    let ChunkRef::Range { source, offset, length, mask } = found else {
                        panic!("{libver:?} {name}: {coord:?} {found:?}")
                    };
                    let mut stored = vec![0; length as usize];
                    source.read_into(offset, &mut stored).unwrap();
                    assert_eq!((&stored, mask), (bytes, 0), "{libver:?} {name} {coord:?}");
                }
            }
        }
    }
}

#[test]
fn the_same_changes_give_the_same_bytes() {
    let make = || {
        written(Hdf5Options::netcdf4(), |w| {
            for i in 0..30 {
                w.apply(Change::CreateGroup { path: path(&format!("g{i}")) }).unwrap();
                let float = DType::Float(FloatType::ieee(8, ByteOrder::Big).unwrap());
                let spec = ArraySpec::new(float, fixed(&[3, i]));
                w.apply(Change::CreateArray { path: path(&format!("g{i}/a")), spec: Box::new(spec) })
                    .unwrap();
            }
        })
        .0
    };
    assert_eq!(make(), make());
}

fn text_type() -> DType {
    DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 }
}

fn set(w: &mut Hdf5Writer, object: &str, name: &str, text: &str) {
    let attribute = AttributeSpec {
        name: Name::from(name),
        dtype: text_type(),
        committed: None,
        space: Dataspace::Scalar,
        content: Content::text(text.as_bytes()),
    };
    w.apply(Change::SetAttribute { object: path(object), attribute }).unwrap();
}

fn text_of(file: &dyn Hierarchy, node: &NodeId, name: &str) -> String {
    let all = file.attributes(node).unwrap().into_iter().map(|a| a.map_err(|(_, e)| e).unwrap());
    let attribute = all.into_iter().find(|a| a.name == Name::from(name)).unwrap();
    let elements =
        crate::model::Elements::decode(file, &attribute.dtype, attribute.data, 1, 1 << 20).unwrap();
    elements.value(0).unwrap().as_str().unwrap().to_owned()
}

fn edited(bytes: Vec<u8>, edit: impl FnOnce(&mut Hdf5Writer)) -> (Vec<u8>, Arc<dyn Hierarchy>) {
    let target = Arc::new(MemoryTarget::new(bytes));
    let mut writer = Hdf5Writer::edit(target.clone(), Limits::default()).unwrap();
    edit(&mut writer);
    Box::new(writer).commit().unwrap();
    let bytes = target.bytes();
    let source = Arc::new(MemorySource::new(bytes.clone(), "test"));
    (bytes, format::open(source, Neighbours::default(), Limits::default()).unwrap())
}

/// Users that the header of an object counts.
fn references(bytes: &[u8], node: &NodeId) -> u32 {
    let NodeId::Address(address) = node else { panic!() };
    let space = crate::format::hdf5::test_space::space(bytes);
    let header = crate::format::hdf5::object::Header::open(&space, *address).unwrap();
    match header.find(crate::format::hdf5::message::kind::REFERENCE_COUNT) {
        Some(message) => u32::from_le_bytes(message.bytes[1..5].try_into().unwrap()),
        None => header.references,
    }
}

#[test]
fn committed_types_count_their_users() {
    for libver in ALL {
        let (bytes, file) = written(Hdf5Options::new().with_libver(libver), |w| {
            w.apply(Change::CommitType { path: path("type"), dtype: i32le() }).unwrap();
            for name in ["a", "b"] {
                let mut spec = ArraySpec::new(i32le(), fixed(&[2]));
                spec.committed = Some(path("type"));
                w.apply(Change::CreateArray { path: path(name), spec: Box::new(spec) }).unwrap();
            }
            let attribute = AttributeSpec {
                name: Name::from("typed"),
                dtype: i32le(),
                committed: Some(path("type")),
                space: Dataspace::Scalar,
                content: Content::Fixed(vec![1, 0, 0, 0].into()),
            };
            w.apply(Change::SetAttribute { object: path("a"), attribute }).unwrap();
        });
        check(file.as_ref());
        let node = at(file.as_ref(), "type");
        assert_eq!(references(&bytes, &node), 4);
        let (meta, _) = file.array(&at(file.as_ref(), "a")).unwrap();
        assert_eq!(meta.committed.as_ref(), Some(&node));
        let attributes = file.attributes(&at(file.as_ref(), "a")).unwrap();
        assert_eq!(attributes.iter().flatten().next().unwrap().committed.as_ref(), Some(&node));
        // Its header, as short as can be, goes on elsewhere.
        let (bytes, file) = edited(bytes, |w| set(w, "type", "note", "added"));
        check(file.as_ref());
        assert_eq!(text_of(file.as_ref(), &node, "note"), "added");
        // The type outlives its name while it is used.
        let (bytes, file) = edited(bytes, |w| {
            w.apply(Change::Delete { path: path("type") }).unwrap();
            w.apply(Change::Delete { path: path("a") }).unwrap();
        });
        check(file.as_ref());
        assert_eq!(references(&bytes, &node), 1);
        let (meta, _) = file.array(&at(file.as_ref(), "b")).unwrap();
        assert_eq!(meta.dtype, i32le());
    }
}

#[test]
fn hard_links_keep_an_object_until_the_last_is_gone() {
    for libver in ALL {
        let (bytes, file) = written(Hdf5Options::new().with_libver(libver), |w| {
            w.apply(Change::CreateGroup { path: path("a") }).unwrap();
            set(w, "a", "text", "kept");
            w.apply(Change::CreateLink { path: path("b"), link: LinkSpec::Hard(path("a")) }).unwrap();
        });
        let node = at(file.as_ref(), "a");
        assert_eq!((references(&bytes, &node), at(file.as_ref(), "b")), (2, node.clone()));
        let (bytes, file) = edited(bytes, |w| w.apply(Change::Delete { path: path("a") }).unwrap());
        assert_eq!((references(&bytes, &node), at(file.as_ref(), "b")), (1, node.clone()));
        assert_eq!(text_of(file.as_ref(), &node, "text"), "kept");
        let (_, file) = edited(bytes, |w| w.apply(Change::Delete { path: path("b") }).unwrap());
        assert!(file.links(&file.root()).unwrap().links.is_empty());
    }
}

#[test]
fn copies_have_texts_of_their_own() {
    for libver in ALL {
        let (bytes, _) = written(Hdf5Options::new().with_libver(libver), |w| {
            w.apply(Change::CreateGroup { path: path("a") }).unwrap();
            set(w, "a", "text", "the first");
            let spec = ArraySpec::new(text_type(), fixed(&[3]));
            w.apply(Change::CreateArray { path: path("a/d"), spec: Box::new(spec) }).unwrap();
            let texts = Content::texts([&b"x"[..], b"", b"long"]);
            let bytes = Some(w.flatten(&path("a/d"), &texts).unwrap());
            let coord = [0].as_slice().into();
            w.write_chunks(&path("a/d"), vec![EncodedChunk { coord, bytes, mask: 0 }]).unwrap();
        });
        let copy = |w: &mut Hdf5Writer| {
            w.apply(Change::CopyObject { from: path("a"), to: path("b") }).unwrap();
            set(w, "a", "text", "another");
        };
        let (_, file) = edited(bytes, copy);
        check(file.as_ref());
        let (a, b) = (at(file.as_ref(), "a"), at(file.as_ref(), "b"));
        assert_eq!(text_of(file.as_ref(), &a, "text"), "another");
        assert_eq!(text_of(file.as_ref(), &b, "text"), "the first");
        let mut heaps = Vec::new();
        for group in ["a/d", "b/d"] {
            let (meta, storage) = file.array(&at(file.as_ref(), group)).unwrap();
            let Storage::Chunks(index) = storage else { panic!() };
            let ChunkRef::Range { source, offset, length, .. } =
                index.locate(&[[0].as_slice().into()]).unwrap().pop().unwrap()
            else {
                panic!()
            };
            let mut stored = vec![0; length as usize];
            source.read_into(offset, &mut stored).unwrap();
            heaps.push(stored.clone());
            let elements =
                crate::model::Elements::decode(file.as_ref(), &meta.dtype, stored.into(), 3, 1 << 20)
                    .unwrap();
            let texts: Vec<_> =
                elements.values().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
            assert_eq!(texts, ["x", "", "long"]);
        }
        assert_ne!(heaps[0], heaps[1]);
    }
}

#[test]
fn a_user_block_is_left_to_the_user() {
    for libver in ALL {
        let options = Hdf5Options::new().with_libver(libver).with_user_block(1024);
        let (mut bytes, file) = written(options, |w| {
            w.apply(Change::CreateGroup { path: path("a") }).unwrap();
        });
        assert_eq!(file.info().user_block, 1024);
        bytes[..4].copy_from_slice(b"user");
        let (bytes, file) = edited(bytes, |w| set(w, "a", "text", "added"));
        check(file.as_ref());
        assert_eq!(&bytes[..4], b"user");
        assert_eq!(text_of(file.as_ref(), &at(file.as_ref(), "a"), "text"), "added");
    }
    let target = Arc::new(MemoryTarget::default());
    let options = Hdf5Options::new().with_user_block(600);
    assert!(Hdf5Writer::create(target, options, Limits::default()).is_err());
}

#[test]
fn what_cannot_be_written_is_refused_when_it_is_said() {
    let target = Arc::new(MemoryTarget::default());
    let mut w = Hdf5Writer::create(target, Hdf5Options::new(), Limits::default()).unwrap();
    let kind = |e: Error| e.kind();
    let mut array = |name: &str, spec: ArraySpec| {
        w.apply(Change::CreateArray { path: path(name), spec: Box::new(spec) }).map_err(kind)
    };
    use crate::ErrorKind::{AlreadyExists, InvalidArgument, NotFound, Unsupported};
    let utf32 = DType::Utf32 { length: 3, order: ByteOrder::Little };
    assert_eq!(array("a", ArraySpec::new(utf32, fixed(&[2]))), Err(Unsupported));
    let mut compact = ArraySpec::new(i32le(), fixed(&[20_000]));
    compact.layout = LayoutSpec::Compact;
    assert_eq!(array("a", compact), Err(crate::ErrorKind::LimitExceeded));
    let mut grows = ArraySpec::new(i32le(), simple(&[2], &[None]));
    grows.layout = LayoutSpec::Contiguous;
    assert_eq!(array("a", grows), Err(Unsupported));
    let mut large = ArraySpec::new(i32le(), fixed(&[2]));
    large.layout = LayoutSpec::Chunked { chunk: vec![3], shard: None };
    assert_eq!(array("a", large), Err(Unsupported));
    let mut dimensions = ArraySpec::new(i32le(), fixed(&[2]));
    dimensions.dimensions = vec![Some(path("x"))];
    assert_eq!(array("a", dimensions), Err(NotFound));
    array("a", ArraySpec::new(i32le(), fixed(&[2]))).unwrap();
    assert_eq!(array("a", ArraySpec::new(i32le(), fixed(&[2]))), Err(AlreadyExists));
    assert_eq!(array("a/b", ArraySpec::new(i32le(), fixed(&[2]))), Err(InvalidArgument));
    let mut link = |name: &str, link| w.apply(Change::CreateLink { path: path(name), link }).map_err(kind);
    assert_eq!(link("l", LinkSpec::Hard(path("nothing"))), Err(NotFound));
    link("loop", LinkSpec::Soft(Name::from("/loop"))).unwrap();
    assert_eq!(link("loop/x", LinkSpec::Hard(path("a"))), Err(crate::ErrorKind::LimitExceeded));
    let chunk = |coord: u64, length: usize| {
        let bytes = Some(vec![0; length].into());
        vec![EncodedChunk { coord: [coord].as_slice().into(), bytes, mask: 0 }]
    };
    assert!(w.write_chunks(&path("a"), chunk(0, 7)).is_err());
    assert!(w.write_chunks(&path("a"), chunk(1, 8)).is_err());
    w.write_chunks(&path("a"), chunk(0, 8)).unwrap();
    let delete = w.apply(Change::Delete { path: ObjectPath::root() });
    assert_eq!(delete.map_err(kind), Err(InvalidArgument));
    Box::new(w).commit().unwrap();
}

#[test]
fn stacked_chunks_are_mapped_one_by_one() {
    use crate::model::{SpaceSelection, VirtualMapping};
    let sizes = Sizes { offset: 8, length: 8 };
    let block = |low: &[u64], high: &[u64]| SpaceSelection::Blocks(vec![(low.into(), high.into())]);
    let mapping = |from: SpaceSelection, to| VirtualMapping {
        file: ".".into(),
        dataset: "/x/raw_data".into(),
        source_selection: from,
        selection: to,
    };
    // 5x7 in chunks of 2x3: the second, the last but one, and the last chunk.
    let wanted = [
        mapping(block(&[8, 0], &[9, 2]), block(&[0, 3], &[1, 5])),
        mapping(block(&[0, 0], &[0, 2]), block(&[4, 3], &[4, 5])),
        mapping(block(&[2, 0], &[2, 0]), block(&[4, 6], &[4, 6])),
    ];
    let source = Name::from("/x/raw_data");
    let slots = [(1, 4), (7, 0), (8, 1)];
    let found = selection::stacked(&[5, 7], &[2, 3], &source, &slots, sizes).unwrap();
    assert_eq!(found, selection::mappings(&wanted, sizes).unwrap());
    for wrong in [vec![(9, 0)], vec![(1, 0), (1, 1)], vec![(2, 0), (1, 0)], vec![(0, u64::MAX / 2)]] {
        assert!(selection::stacked(&[5, 7], &[2, 3], &source, &wrong, sizes).is_err(), "{wrong:?}");
    }
    // Rows beyond 32 bits: what is written is what is read.
    let length = 1u64 << 33;
    let slots = vec![(0, 5), ((length >> 20) - 1, length >> 20)];
    let layout = LayoutSpec::Stacked { source: "/raw".into(), chunk: vec![1 << 20], slots: slots.clone() };
    let (_, file) = written(Hdf5Options::default(), |w| {
        let spec = ArraySpec { layout: layout.clone(), ..ArraySpec::new(i32le(), fixed(&[length])) };
        w.apply(Change::CreateArray { path: path("a"), spec: Box::new(spec) }).unwrap();
    });
    let found = file.stacked(&at(&*file, "a"), &mut |_| Ok(Some(vec![1 << 20]))).unwrap().unwrap();
    assert_eq!((found.source, found.slots), (Some(Name::from("/raw")), slots));
}
