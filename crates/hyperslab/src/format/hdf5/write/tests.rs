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
                for a in found {
                    let a = a.map_err(|(_, e)| e).unwrap();
                    let i: usize = a.name.as_str().unwrap()[1..].parse().unwrap();
                    assert_eq!(a.data.as_ref(), vec![b'a' + (i % 20) as u8; length]);
                    assert!(!track || a.order == Some(i as u64), "{:?}", a.order);
                }
            }
        }
    }
}

#[test]
fn chunks_are_found_through_every_kind_of_index() {
    let none = None;
    let cases: &[(&str, &[u64], &[Option<u64>], &[u64], bool)] = &[
        ("single", &[6], &[Some(6)], &[6], false),
        ("implicit", &[20, 6], &[Some(20), Some(6)], &[4, 4], true),
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
                    w.write_chunks(&path("a"), chunks).unwrap();
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
