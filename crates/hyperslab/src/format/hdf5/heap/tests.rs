use super::geometry::{DoublingTable, Slot};
use super::*;
use crate::ErrorKind;
use crate::format::hdf5::btree::v2::Tree;
use crate::format::hdf5::test_space::{find, space};
use crate::model::HeapRef;

const HEAPS: &[u8] = include_bytes!("../../../../tests/data/heaps.h5");

/// Heap identifiers in the records of the tree at `address` (links by name: 4 bytes of hash first).
fn ids(bytes: &[u8], tree: u64, record_type: u8, skip: usize, length: usize) -> Vec<Vec<u8>> {
    let tree = Tree::open(&space(bytes), tree, record_type).unwrap();
    let mut ids = Vec::new();
    tree.for_each(&mut |r| {
        ids.push(r[skip..skip + length].to_vec());
        Ok(())
    })
    .unwrap();
    assert_eq!(ids.len() as u64, tree.len());
    ids
}

/// The trees of `record_type` in the file, by address.
fn trees(bytes: &[u8], record_type: u8) -> Vec<u64> {
    find(bytes, b"BTHD").into_iter().filter(|&a| bytes[a as usize + 5] == record_type).collect()
}

#[test]
fn doubling_table_puts_offsets_into_rows() {
    let table = DoublingTable::new(4, 512, 2048, 32).unwrap();
    assert_eq!(table.direct_rows(), 4);
    assert_eq!(table.max_rows(), 22);
    let slot = |offset| table.slot(offset).unwrap();
    assert_eq!(slot(0), Slot { entry: 0, start: 0, size: 512, indirect: false });
    assert_eq!(slot(2047), Slot { entry: 3, start: 1536, size: 512, indirect: false });
    assert_eq!(slot(2048), Slot { entry: 4, start: 2048, size: 512, indirect: false });
    assert_eq!(slot(4096), Slot { entry: 8, start: 4096, size: 1024, indirect: false });
    assert_eq!(slot(16383), Slot { entry: 15, start: 14336, size: 2048, indirect: false });
    assert_eq!(slot(16384), Slot { entry: 16, start: 16384, size: 4096, indirect: true });
    assert_eq!(table.rows_of(4096), Some(2));
    assert_eq!(table.rows_of(1024), None);
    assert_eq!(table.entries(6), (16, 8));
}

#[test]
fn doubling_table_refuses_impossible_numbers() {
    for (width, start, max, bits) in [
        (0, 512, 2048, 32),
        (3, 512, 2048, 32),
        (4, 0, 0, 32),
        (4, 512, 256, 32),
        (4, 512, 2048, 65),
        (4, 512, 2048, 8),
    ] {
        let e = DoublingTable::new(width, start, max, bits).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt);
    }
    // The largest table: the last offset has a slot, and nothing overflows.
    let table = DoublingTable::new(1, 1, 1 << 63, 64).unwrap();
    assert_eq!(table.slot(u64::MAX).unwrap().entry, 64);
}

#[test]
fn managed_tiny_and_huge_objects() {
    let heaps = find(HEAPS, b"FRHP");
    let mut lengths = Vec::new();
    let mut kinds = Vec::new();
    for (record_type, skip, length) in [(5, 4, 7), (8, 0, 8)] {
        for tree in trees(HEAPS, record_type) {
            for id in ids(HEAPS, tree, record_type, skip, length) {
                // The heap of a tree is the one whose block holds the object; the others refuse it or give bytes
                // that are not a message.
                let found = heaps.iter().find_map(|&h| {
                    let heap = FractalHeap::open(&space(HEAPS), h).unwrap();
                    let bytes = heap.object(&id).ok()?;
                    Some((heap.kind(&id).unwrap(), bytes.len()))
                });
                let (kind, length) = found.unwrap();
                kinds.push(kind);
                lengths.push(length);
            }
        }
    }
    assert!(kinds.contains(&ObjectKind::Managed));
    assert!(kinds.contains(&ObjectKind::Huge));
    assert!(lengths.iter().any(|&l| l > 70_000));
}

#[test]
fn links_in_nested_blocks() {
    // 1500 links with long names: several rows of direct blocks below a root indirect block.
    let tree =
        *trees(HEAPS, 5).iter().max_by_key(|&&t| Tree::open(&space(HEAPS), t, 5).unwrap().len()).unwrap();
    let mut names: Vec<String> = Vec::new();
    let all = ids(HEAPS, tree, 5, 4, 7);
    let heap = find(HEAPS, b"FRHP")
        .into_iter()
        .map(|h| FractalHeap::open(&space(HEAPS), h).unwrap())
        .find(|h| all.iter().all(|id| h.object(id).is_ok_and(|b| b[0] == 1)))
        .unwrap();
    for id in &all {
        let message = heap.object(id).unwrap();
        let text = message.windows(4).position(|w| w == b"link").unwrap();
        names.push(String::from_utf8(message[text..text + 30].to_vec()).unwrap());
    }
    names.sort();
    let wanted: Vec<String> = (0..1500).map(|i| format!("link{i:06}{}", "x".repeat(20))).collect();
    assert_eq!(names, wanted);
}

#[test]
fn fractal_heap_faults_are_named() {
    let at = find(HEAPS, b"FRHP")[0];
    let mut bytes = HEAPS.to_vec();
    bytes[at as usize + 12] ^= 1;
    let e = FractalHeap::open(&space(&bytes), at).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Checksum);
    assert_eq!(e.place(), Some(("fractal heap header", at)));

    let heap = FractalHeap::open(&space(HEAPS), at).unwrap();
    for id in [&[][..], &[0], &[0xff; 8], &[0x40; 8], &[0x30; 8], &[0x00; 8], &[0x10, 1, 1, 1, 1, 1, 1, 1]] {
        let e = heap.object(id).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    }
    // A tiny object lies in its identifier.
    assert_eq!(&heap.object(&[0x21, 7, 8, 0, 0, 0, 0, 0]).unwrap()[..], [7, 8]);
}

/// A collection with the objects given; trailing bytes as they are.
fn collection(objects: &[(u16, &[u8])], trailing: &[u8]) -> Vec<u8> {
    let mut out = b"GCOL\x01\0\0\0".to_vec();
    out.extend([0; 8]);
    for (index, data) in objects {
        out.extend(index.to_le_bytes());
        out.extend([1, 0, 0, 0, 0, 0]);
        out.extend((data.len() as u64).to_le_bytes());
        out.extend(*data);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out.extend(trailing);
    let size = out.len() as u64;
    out[8..16].copy_from_slice(&size.to_le_bytes());
    out
}

#[test]
fn global_heap_collections() {
    let mut file = collection(&[(1, b"one"), (3, b""), (2, b"twelve bytes")], &[0; 8]);
    let second = file.len() as u64;
    let mut free = vec![0u8; 8];
    free.extend(40u64.to_le_bytes());
    free.extend([9; 24]);
    file.extend(collection(&[(7, &[1; 5000])], &free));
    let heap = GlobalHeap::new(space(&file));
    let at = |address, index| HeapRef { address, index };
    let got = heap.objects(&[at(second, 7), at(0, 2), at(0, 3), at(0, 1), at(second, 7)]).unwrap();
    assert_eq!(&got[0][..], [1; 5000]);
    assert_eq!(&got[1][..], b"twelve bytes");
    assert_eq!(&got[2][..], b"");
    assert_eq!(&got[3][..], b"one");
    assert_eq!(got[4], got[0]);
    for missing in [0, 4, 65536] {
        assert_eq!(heap.object(at(0, missing)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let mut seen = Vec::new();
    heap.for_each(0, &mut |index, count, bytes| {
        seen.push((index, count, bytes.len()));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [(1, 1, 3), (2, 1, 12), (3, 1, 0)]);
}

#[test]
fn global_heap_headers_are_aligned_whatever_the_size_of_lengths() {
    use crate::format::hdf5::{file::Space, parse::Sizes};
    use std::sync::Arc;
    let file = collection(&[(1, b"one"), (2, b"two")], &[]);
    for length in [2, 4, 8] {
        let source = Arc::new(crate::source::MemorySource::new(file.clone(), "test"));
        let end = file.len() as u64;
        let sizes = Sizes { offset: 8, length };
        let space = Space::new(source.clone(), source, 0, end, sizes, Arc::new(crate::Limits::default()));
        assert_eq!(&GlobalHeap::new(space).object(HeapRef { address: 0, index: 2 }).unwrap()[..], b"two");
    }
}

#[test]
fn global_heap_gives_its_budget_back() {
    let file = collection(&[(1, &[5; 6000])], &[]);
    let limits = crate::Limits::default().with_metadata(40_000);
    let heap = GlobalHeap::live(crate::format::hdf5::test_space::limited(&file, limits));
    for _ in 0..100 {
        heap.object(HeapRef { address: 0, index: 1 }).unwrap();
    }
}

#[test]
fn global_heap_faults_are_named() {
    let good = collection(&[(1, b"text")], &[]);
    let at = |i: usize, v: u8| {
        let mut bytes = good.clone();
        bytes[i] = v;
        let e = GlobalHeap::new(space(&bytes)).object(HeapRef { address: 0, index: 1 }).unwrap_err();
        assert_eq!(e.place().unwrap().0, "global heap collection", "{e}");
        e.kind()
    };
    assert_eq!(at(0, b'x'), ErrorKind::Corrupt);
    assert_eq!(at(4, 2), ErrorKind::Corrupt);
    assert_eq!(at(8, 1), ErrorKind::Corrupt);
    assert_eq!(at(15, 1), ErrorKind::Truncated);
    assert_eq!(at(24, 200), ErrorKind::Corrupt);
    assert_eq!(at(31, 0x7f), ErrorKind::Corrupt);
}

#[test]
fn local_heap_texts() {
    let mut file = b"HEAP\0\0\0\0".to_vec();
    for n in [16u64, u64::MAX, 32] {
        file.extend(n.to_le_bytes());
    }
    file.extend(b"\0\0\0\0\0\0\0\0alpha\0be");
    let heap = LocalHeap::open(&space(&file), 0).unwrap();
    assert_eq!(heap.text(0).unwrap(), b"");
    assert_eq!(heap.text(8).unwrap(), b"alpha");
    for wrong in [14, 16, 17, u64::MAX] {
        assert_eq!(heap.text(wrong).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    file[8] = 17;
    assert_eq!(LocalHeap::open(&space(&file), 0).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn filtered_blocks_and_huge_objects() {
    use std::io::Write;
    let deflate = |bytes: &[u8]| {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    // A block of 512 bytes that starts with its head of 17 bytes, and a huge object behind it.
    let mut block = b"FHDB\0".to_vec();
    block.extend(0u64.to_le_bytes());
    block.extend([0; 4]);
    block.extend(b"managed object");
    block.resize(512, 0);
    let block = deflate(&block);
    let huge = deflate(&[7; 10_000]);

    let mut file = b"FRHP\0".to_vec();
    let filters = [2u8, 1, 1, 0, 0, 0, 1, 0, 6, 0, 0, 0];
    file.extend(40u16.to_le_bytes()); // identifiers long enough for direct huge ones
    file.extend((filters.len() as u16).to_le_bytes());
    file.push(0);
    file.extend(4096u32.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend([0xff; 8]); // tree of huge objects
    file.extend([0; 8]);
    file.extend([0xff; 8]);
    file.extend([0; 64]);
    file.extend(4u16.to_le_bytes());
    file.extend(512u64.to_le_bytes());
    file.extend(65536u64.to_le_bytes());
    file.extend(32u16.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    let root = file.len() + 8 + 2 + 12 + filters.len() + 4;
    file.extend((root as u64).to_le_bytes());
    file.extend(0u16.to_le_bytes());
    file.extend((block.len() as u64).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.extend(filters);
    let length = file.len();
    file.extend([0; 4]);
    crate::format::hdf5::test_space::reseal(&mut file, 0, length);
    assert_eq!(file.len(), root);
    file.extend(&block);
    let huge_at = file.len() as u64;
    file.extend(&huge);

    let heap = FractalHeap::open(&space(&file), 0).unwrap();
    let mut id = vec![0u8, 17, 0, 0, 0, 14, 0];
    id.resize(40, 0);
    assert_eq!(&heap.object(&id).unwrap()[..], b"managed object");
    let mut id = vec![0x10u8];
    id.extend(huge_at.to_le_bytes());
    id.extend((huge.len() as u64).to_le_bytes());
    id.extend(0u32.to_le_bytes());
    id.extend(10_000u64.to_le_bytes());
    id.resize(40, 0);
    assert_eq!(heap.kind(&id).unwrap(), ObjectKind::Huge);
    assert_eq!(&heap.object(&id).unwrap()[..], [7; 10_000]);
    // A length that the bytes cannot decode to.
    id[26] = 0xff;
    assert!(heap.object(&id).is_err());
}
