//! Whole files through the hierarchy: what the reference library wrote, what was cut off, what was damaged.

use super::hierarchy::Hdf5;
use super::parse::lookup3;
use super::superblock::{SIGNATURE, Superblock};
use crate::dtype::{DType, ReferenceKind};
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;
use crate::model::{
    Attribute, ChunkGrid, Dataspace, FillValue, Hierarchy, Layout, Link, LinkTarget, NodeId, NodeKind,
    Reference, SpaceSelection, Storage,
};
use crate::shape::Name;
use crate::source::{MemorySource, Neighbours};
use std::collections::HashSet;
use std::sync::Arc;

const OLD: &[u8] = include_bytes!("../../../tests/data/objects_old.h5");
const NEW: &[u8] = include_bytes!("../../../tests/data/objects_new.h5");
const TINY_OLD: &[u8] = include_bytes!("../../../tests/data/tiny_old.h5");
const TINY_NEW: &[u8] = include_bytes!("../../../tests/data/tiny_new.h5");
const SOHM_LIST: &[u8] = include_bytes!("../../../tests/data/sohm_list.h5");
const SOHM_BTREE: &[u8] = include_bytes!("../../../tests/data/sohm_btree.h5");
const CACHE_IMAGE: &[u8] = include_bytes!("../../../tests/data/cache_image.h5");
const PAGED: &[u8] = include_bytes!("../../../tests/data/paged.h5");

fn open(bytes: &[u8]) -> Result<Arc<Hdf5>> {
    let source = Arc::new(MemorySource::new(bytes.to_vec(), "test"));
    Hdf5::open(source, Neighbours::none(), Limits::default())
}

fn link(file: &Hdf5, group: &NodeId, name: &str) -> Link {
    file.link(group, &Name::parse(name)).unwrap().unwrap_or_else(|| panic!("no link {name}"))
}

/// The object at a path of hard links.
fn at(file: &Hdf5, path: &str) -> NodeId {
    path.split('/').filter(|p| !p.is_empty()).fold(file.root(), |node, name| {
        match link(file, &node, name).target {
            LinkTarget::Hard(node) => node,
            other => panic!("{name} is {other:?}"),
        }
    })
}

fn attributes(file: &Hdf5, path: &str) -> Vec<Attribute> {
    file.attributes(&at(file, path)).unwrap().into_iter().map(|a| a.unwrap()).collect()
}

/// Looks at everything that can be looked at; gives the number of objects and of errors.
fn walk(file: &Hdf5) -> (usize, usize) {
    let mut seen = HashSet::new();
    let mut todo = vec![file.root()];
    let mut errors = 0;
    file.info();
    file.check(&mut |_| errors += 1);
    while let Some(node) = todo.pop() {
        if !seen.insert(node.clone()) {
            continue;
        }
        match file.attributes(&node) {
            Ok(all) => {
                for attribute in all {
                    match attribute {
                        Ok(a) => errors += usize::from(content(file, &a.dtype, &a.data).is_err()),
                        Err(_) => errors += 1,
                    }
                }
            }
            Err(_) => errors += 1,
        }
        match file.kind(&node) {
            Ok(NodeKind::Group) => match file.links(&node) {
                Ok(links) => {
                    errors += links.faults.len();
                    for link in links.links {
                        errors += usize::from(file.link(&node, &link.name).is_err());
                        if let LinkTarget::Hard(node) = link.target {
                            todo.push(node);
                        }
                    }
                }
                Err(_) => errors += 1,
            },
            Ok(NodeKind::Datatype) => errors += usize::from(file.datatype(&node).is_err()),
            Ok(NodeKind::Array) => match file.array(&node) {
                Ok((_, Storage::Chunks(index))) => {
                    let mut faults = 0;
                    let scanned = index.scan(&mut |_, _| Ok(()), &mut |_| faults += 1);
                    errors += faults + usize::from(scanned.is_err());
                }
                Ok(_) => {}
                Err(_) => errors += 1,
            },
            Err(_) => errors += 1,
        }
    }
    (seen.len(), errors)
}

/// Follows what the elements of an attribute point to.
fn content(file: &Hdf5, dtype: &DType, data: &[u8]) -> Result<()> {
    match dtype {
        DType::VarString { .. } | DType::VarLen { .. } => {
            for element in data.chunks_exact(dtype.size()) {
                if let Some((_, place)) = file.heap_ref(element)? {
                    file.heap_objects(&[place])?;
                }
            }
        }
        DType::Reference { kind, .. } => {
            for element in data.chunks_exact(dtype.size()) {
                file.reference(*kind, element)?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn types_have_the_notation_that_their_maker_gave_them() {
    for bytes in [OLD, NEW] {
        let file = open(bytes).unwrap();
        let types = file.links(&at(&file, "types")).unwrap();
        assert!(types.links.len() >= 24);
        for link in types.links {
            let LinkTarget::Hard(node) = &link.target else { panic!("{link:?}") };
            assert_eq!(file.kind(node).unwrap(), NodeKind::Datatype);
            let said = file.attributes(node).unwrap().remove(0).unwrap();
            let said = String::from_utf8(said.data.to_vec()).unwrap();
            assert_eq!(file.datatype(node).unwrap().to_string(), said, "{}", link.name);
        }
    }
}

#[test]
fn links_of_every_kind_list_and_are_found() {
    for bytes in [OLD, NEW] {
        let file = open(bytes).unwrap();
        let root = file.root();
        assert_eq!(link(&file, &root, "soft").target, LinkTarget::Soft(Name::from("/a/b/c")));
        assert_eq!(link(&file, &root, "dangling").target, LinkTarget::Soft(Name::from("nowhere")));
        assert_eq!(at(&file, "hard"), at(&file, "a/b"));
        let odd = link(&file, &root, "hex:6e6f7420ff2074657874");
        assert_eq!(odd.name.to_string(), "hex:6e6f7420ff2074657874");
        assert_eq!(odd.target, LinkTarget::Soft(Name::from(&b"bytes \xfe"[..])));
        assert_eq!(file.link(&root, &Name::from("zzz")).unwrap(), None);
        assert_eq!(file.link(&root, &Name::from("")).unwrap(), None);

        let many = at(&file, "many");
        let all = file.links(&many).unwrap();
        assert!(all.faults.is_empty());
        assert_eq!(all.links.len(), 30);
        for (i, link) in all.links.iter().enumerate() {
            assert_eq!(link.name, Name::from(format!("link {i:02}").as_str()));
            assert_eq!(link.target, LinkTarget::Soft(Name::from(format!("/target {i}").as_str())));
            assert_eq!(file.link(&many, &link.name).unwrap().as_ref(), Some(link));
        }
        assert_eq!(file.link(&many, &Name::from("link 5")).unwrap(), None);
        assert_eq!(file.link(&many, &Name::from("link 99")).unwrap(), None);
    }
    let file = open(NEW).unwrap();
    let external = LinkTarget::External { file: Name::from("other.h5"), path: Name::from("/inside") };
    assert_eq!(link(&file, &file.root(), "external").target, external);
}

#[test]
fn the_order_of_creation_is_told_where_it_is_tracked() {
    assert!(!open(OLD).unwrap().links(&open(OLD).unwrap().root()).unwrap().tracks_order);
    let file = open(TINY_NEW).unwrap();
    let links = file.links(&at(&file, "g")).unwrap();
    assert!(links.tracks_order);
    let order = |name: &str| links.links.iter().find(|l| l.name == Name::from(name)).unwrap().creation_order;
    assert_eq!((order("x"), order("n0"), order("n8")), (Some(0), Some(1), Some(9)));
}

#[test]
fn attributes_are_found_in_headers_and_heaps() {
    let file = open(NEW).unwrap();
    let all = attributes(&file, "a");
    assert_eq!(all.len(), 13);
    for (i, a) in all[..12].iter().enumerate() {
        assert_eq!(a.name, Name::from(format!("dense {i:02}").as_str()));
        assert_eq!((a.dtype.to_string().as_str(), &a.space), ("i64le", &Dataspace::Scalar));
        assert_eq!(a.data[..], (i as i64).to_le_bytes());
    }
    for bytes in [OLD, NEW] {
        let file = open(bytes).unwrap();
        let order = attributes(&file, "a").pop().unwrap();
        assert_eq!(order.space, Dataspace::Simple { dims: vec![4], max: vec![Some(4)] });
        assert_eq!(order.data[..], [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        let all = attributes(&file, "data/chunked");
        assert_eq!(all[0].name, Name::from("null"));
        assert_eq!((&all[0].space, all[0].data.len()), (&Dataspace::Null, 0));
        let (count, place) = file.heap_ref(&all[1].data).unwrap().unwrap();
        let text = file.heap_objects(&[place]).unwrap().remove(0);
        assert_eq!((count, &text[..3]), (3, &b"m/s"[..]));
    }
}

#[test]
fn datasets_say_how_they_are_stored() {
    for (bytes, index) in [(OLD, "version 1 B-tree"), (NEW, "extensible array")] {
        let file = open(bytes).unwrap();
        let array = |path: &str| file.array(&at(&file, path)).unwrap().0;
        let meta = array("data/chunked");
        assert_eq!(meta.dtype.to_string(), "f32le");
        assert_eq!(meta.space, Dataspace::Simple { dims: vec![7, 5], max: vec![None, Some(9)] });
        assert_eq!(meta.grid, ChunkGrid::Regular(vec![2, 3]));
        assert_eq!(meta.layout, Layout::Chunked { index });
        assert_eq!(meta.filters.len(), 3);
        assert_eq!(meta.fill, FillValue::Value(2.5f32.to_le_bytes().to_vec().into()));
        assert_eq!(meta.fill_element[..], 2.5f32.to_le_bytes());
        assert_eq!(array("data/scalar").space, Dataspace::Scalar);
        assert_eq!(array("data/null").space, Dataspace::Null);
        assert_eq!(array("data/compact").layout, Layout::Compact);
        // A value that is never written is never read.
        let never = array("data/never");
        assert_eq!(never.fill, FillValue::Value(vec![7, 0, 0, 0].into()));
        assert!(never.fill_element.is_empty());
    }
}

/// The stored elements of a contiguous dataset.
fn stored(file: &Hdf5, bytes: &[u8], path: &str) -> Vec<u8> {
    let (meta, storage) = file.array(&at(file, path)).unwrap();
    let Storage::Chunks(index) = storage else { panic!() };
    let zeros = meta.space.dims().iter().map(|_| 0).collect();
    match index.locate(&[zeros]).unwrap().remove(0) {
        crate::model::ChunkRef::Range { offset, length, .. } => {
            bytes[offset as usize..(offset + length) as usize].to_vec()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn references_of_every_encoding_are_resolved() {
    for bytes in [OLD, NEW] {
        let file = open(bytes).unwrap();
        let target = at(&file, "data/chunked");
        let object = stored(&file, bytes, "data/object");
        let object = file.reference(ReferenceKind::Object, &object).unwrap();
        assert_eq!(object, Reference::Object(target.clone()));
        let region = stored(&file, bytes, "data/region");
        let Reference::Region(node, region) = file.reference(ReferenceKind::Region, &region).unwrap() else {
            panic!()
        };
        assert_eq!((node, region.rank), (target, 2));
        match region.selection {
            SpaceSelection::Regular(slab) => {
                assert_eq!((&slab.start[..], &slab.stride[0]), (&[1, 0][..], &2));
                assert_eq!((slab.count[0], slab.block[0]), (Some(2), Some(1)));
            }
            SpaceSelection::Blocks(blocks) => assert_eq!(blocks.len(), 2),
            other => panic!("{other:?}"),
        }
        assert_eq!(file.reference(ReferenceKind::Object, &[0; 8]).unwrap(), Reference::Null);
        assert_eq!(file.reference(ReferenceKind::Region, &[0; 12]).unwrap(), Reference::Null);
    }
    let file = open(NEW).unwrap();
    let all = stored(&file, NEW, "data/standard");
    let one = |i: usize| {
        let size = all.len() / 4;
        file.reference(ReferenceKind::Standard, &all[i * size..(i + 1) * size]).unwrap()
    };
    let target = at(&file, "data/chunked");
    assert_eq!(one(0), Reference::Object(at(&file, "a/b")));
    let Reference::Region(node, region) = one(1) else { panic!("{:?}", one(1)) };
    assert_eq!((&node, region.rank), (&target, 2));
    let SpaceSelection::Regular(slab) = region.selection else { panic!() };
    assert_eq!((&slab.start[..], slab.count[0], slab.block[1]), (&[1, 0][..], Some(2), Some(2)));
    assert_eq!(one(2), Reference::Attribute(target, Name::from("units")));
    assert_eq!(one(3), Reference::Null);
}

#[test]
fn shared_messages_are_found_through_lists_and_trees() {
    for bytes in [SOHM_LIST, SOHM_BTREE] {
        let file = open(bytes).unwrap();
        assert_eq!(walk(&file), (5, 0));
        for path in ["d0", "d3"] {
            let meta = file.array(&at(&file, path)).unwrap().0;
            assert_eq!(meta.dtype.to_string(), "f64le");
            assert_eq!(meta.space.dims(), [6, 5]);
            assert_eq!(meta.fill_element[..], 4.5f64.to_le_bytes());
            assert_eq!(meta.filters.len(), 1);
            let same = attributes(&file, path).pop().unwrap();
            assert_eq!((same.name, same.data.len()), (Name::from("same"), 20));
        }
        assert_eq!(attributes(&file, "d0").len(), 11);
        assert!(file.info().notes.iter().any(|(what, _)| *what == "shared messages"));
    }
}

#[test]
fn a_cache_image_lies_over_the_file() {
    let file = open(CACHE_IMAGE).unwrap();
    assert_eq!(walk(&file), (3, 0));
    assert_eq!(attributes(&file, "g")[0].data[..], 1i64.to_le_bytes());
}

#[test]
fn free_space_managers_are_verified() {
    let file = open(PAGED).unwrap();
    assert_eq!(walk(&file), (2, 0));
    assert!(file.info().notes.iter().any(|(what, text)| *what == "file space" && text.contains("paged")));
    let found = PAGED.windows(4).position(|w| w == b"FSHD").unwrap();
    let mut bytes = PAGED.to_vec();
    bytes[found + 10] ^= 1;
    let mut faults = Vec::new();
    open(&bytes).unwrap().check(&mut |fault| faults.push(fault.error.kind()));
    assert_eq!(faults, [ErrorKind::Checksum]);
}

#[test]
fn a_member_of_a_family_of_files_is_refused_by_name() {
    let bytes = include_bytes!("../../../tests/data/family.h5");
    let e = open(bytes).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("family driver"), "{e}");
    // Cut before the driver is named: all that can be said is that it is short.
    let e = open(&bytes[..60]).unwrap_err();
    assert!(e.kind() == ErrorKind::Truncated && e.to_string().contains("the file is truncated"), "{e}");
}

#[test]
fn addresses_and_lengths_of_every_size_are_read() {
    for bytes in [
        &include_bytes!("../../../tests/data/sizes_22.h5")[..],
        include_bytes!("../../../tests/data/sizes_48.h5"),
        include_bytes!("../../../tests/data/sizes_84.h5"),
    ] {
        let file = open(bytes).unwrap();
        assert_eq!(walk(&file), (3, 0));
        assert_eq!(attributes(&file, "g")[0].data[..], 5i16.to_le_bytes());
        assert_eq!(file.array(&at(&file, "g/x")).unwrap().0.space.dims(), [2, 3]);
    }
}

#[test]
fn a_user_block_may_come_and_go() {
    assert_eq!(open(OLD).unwrap().info().user_block, 512);
    assert_eq!(walk(&open(&OLD[512..]).unwrap()), walk(&open(OLD).unwrap()));
    let mut longer = vec![b'#'; 1536];
    longer.extend_from_slice(OLD);
    let file = open(&longer).unwrap();
    assert_eq!(file.info().user_block, 2048);
    assert_eq!(walk(&file), walk(&open(OLD).unwrap()));
    assert!(file.info().notes.iter().any(|(what, _)| *what == "base address"));
}

#[test]
fn files_that_cannot_be_opened_say_why() {
    let kind = |bytes: &[u8]| open(bytes).unwrap_err().kind();
    assert_eq!(kind(&TINY_OLD[..TINY_OLD.len() - 1]), ErrorKind::Truncated);
    let text = open(&TINY_OLD[..2000]).unwrap_err().to_string();
    assert!(text.contains("2000 bytes of"), "{text}");
    // A checksummed superblock.
    let mut bytes = TINY_NEW.to_vec();
    bytes[20] ^= 1;
    assert_eq!(kind(&bytes), ErrorKind::Checksum);
    // Versions and sizes from the future.
    let mut bytes = TINY_NEW.to_vec();
    bytes[8] = 4;
    assert_eq!(kind(&bytes), ErrorKind::Unsupported);
    let mut bytes = TINY_OLD.to_vec();
    bytes[13] = 16;
    assert_eq!(kind(&bytes), ErrorKind::Unsupported);
    // A member of a family of files, by the driver information block, which may lie anywhere.
    let mut bytes = TINY_OLD.to_vec();
    let end = bytes.len() as u64;
    bytes[48..56].copy_from_slice(&end.to_le_bytes());
    bytes.extend_from_slice(b"\0\0\0\0\x08\0\0\0NCSAfami\0\0\0\0\0\0\0\0");
    let text = open(&bytes).unwrap_err().to_string();
    assert!(text.contains("family"), "{text}");
}

#[test]
fn a_file_that_a_writer_left_open_opens() {
    let mut bytes = TINY_NEW.to_vec();
    bytes[11] = 0x05;
    let sum = lookup3(&bytes[..44]);
    bytes[44..48].copy_from_slice(&sum.to_le_bytes());
    let superblock = Superblock::parse(&bytes, 0).unwrap();
    assert!(superblock.is_live() && superblock.is_open_for_writing());
    // While it is written for concurrent readers, the file ends where it ends now.
    bytes.extend_from_slice(&[0; 100]);
    assert_eq!(walk(&open(&bytes).unwrap()), walk(&open(TINY_NEW).unwrap()));
}

#[test]
fn signatures_are_looked_for_where_they_may_be() {
    let find = |at: usize| {
        let mut bytes = vec![0; at];
        bytes.extend_from_slice(SIGNATURE);
        Superblock::find(&MemorySource::new(bytes, "test")).unwrap()
    };
    for at in [0, 512, 1024, 2048, 65536] {
        assert_eq!(find(at), Some(at as u64));
    }
    assert_eq!(find(256), None);
    assert_eq!(find(1536), None);
}

#[test]
fn a_file_may_be_open_for_ever() {
    let limits = Limits::default().with_metadata(20_000);
    for bytes in [OLD, NEW, SOHM_BTREE] {
        let source = Arc::new(MemorySource::new(bytes.to_vec(), "test"));
        let file = Hdf5::open(source, Neighbours::none(), limits.clone()).unwrap();
        let first = walk(&file);
        assert_eq!(first.1, 0);
        for _ in 0..20 {
            assert_eq!(walk(&file), first);
        }
    }
}

#[test]
fn trees_that_go_in_circles_end() {
    // The only child of the group's B-tree becomes the B-tree itself, one level up.
    let mut bytes = TINY_OLD.to_vec();
    let trees: Vec<usize> = (0..bytes.len() - 4).filter(|&i| &bytes[i..i + 4] == b"TREE").collect();
    for at in trees {
        bytes[at + 5] = 1;
        bytes[at + 32..at + 40].copy_from_slice(&(at as u64).to_le_bytes());
    }
    let file = open(&bytes).unwrap();
    let links = file.links(&file.root()).unwrap();
    assert!(links.links.is_empty());
    assert_eq!(links.faults[0].error.kind(), ErrorKind::Corrupt);
    assert!(file.link(&file.root(), &Name::from("g")).is_err());
}

#[test]
fn every_prefix_is_an_error() {
    for bytes in [TINY_OLD, TINY_NEW, CACHE_IMAGE] {
        for n in (0..bytes.len()).step_by(7) {
            assert!(open(&bytes[..n]).is_err(), "{n} bytes");
        }
    }
}

/// Where checksummed structures are: start, and length up to the checksum.
fn sealed(bytes: &[u8]) -> Vec<(usize, usize)> {
    let signatures: [&[u8; 4]; 13] = [
        b"\x89HDF", b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF", b"BTIN", b"SMTB", b"SMLI",
        b"EAHD", b"MDCI",
    ];
    let ends = |start: usize| {
        (8..1200).find(|n| {
            let end = start + n;
            bytes.get(end..end + 4).is_some_and(|sum| sum == lookup3(&bytes[start..end]).to_le_bytes())
        })
    };
    (0..bytes.len().saturating_sub(4))
        .filter(|&i| signatures.iter().any(|s| &bytes[i..i + 4] == *s))
        .filter_map(|i| ends(i).map(|n| (i, n)))
        .collect()
}

/// Changes one byte in many ways, renewing the checksum around it, and looks at everything.
fn mutate(original: &[u8], step: usize) {
    let sealed = sealed(original);
    for at in (0..original.len()).step_by(step) {
        for change in [0xff, 0x01, 0x80] {
            let mut bytes = original.to_vec();
            bytes[at] ^= change;
            if change != 0x80
                && let Some(&(start, n)) = sealed.iter().find(|(start, n)| (*start..start + n).contains(&at))
            {
                let sum = lookup3(&bytes[start..start + n]);
                bytes[start + n..start + n + 4].copy_from_slice(&sum.to_le_bytes());
            }
            if let Ok(file) = open(&bytes) {
                walk(&file);
            }
        }
    }
}

#[test]
fn damaged_old_files_do_no_harm() {
    mutate(TINY_OLD, 5);
}

#[test]
fn damaged_new_files_do_no_harm() {
    mutate(TINY_NEW, 5);
    mutate(CACHE_IMAGE, 3);
}

#[test]
fn damaged_shared_messages_do_no_harm() {
    mutate(SOHM_LIST, 23);
    mutate(SOHM_BTREE, 23);
}

#[test]
fn damaged_types_and_references_do_no_harm() {
    mutate(OLD, 61);
    mutate(NEW, 61);
}
