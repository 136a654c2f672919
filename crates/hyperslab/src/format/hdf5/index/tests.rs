use super::extensible_array::{Geometry, Place};
use super::grid::Grid;
use super::*;
use crate::format::hdf5::parse::{Sizes, lookup3};
use crate::limits::Limits;
use crate::source::{ByteRange, MemorySource, Neighbours, Source};
use bytes::Bytes;
use std::sync::Arc;

const FILES: &[u8] = include_bytes!("../../../../tests/data/indexes.bin");
const FACTS: &str = include_str!("../../../../tests/data/indexes.txt");

/// One file of `indexes.bin` and what libhdf5 finds in it.
struct Case {
    kind: &'static str,
    start: usize,
    length: usize,
    dims: Vec<u64>,
    max: Vec<Option<u64>>,
    chunk: Vec<u64>,
    element: u64,
    filtered: bool,
    /// Chunk, address, length, mask.
    stored: Vec<(Coord, u64, u64, u32)>,
}

fn cases() -> Vec<Case> {
    let numbers = |text: &str| text.split(',').map(|n| n.parse().ok()).collect::<Vec<Option<u64>>>();
    let all = |text: &str| numbers(text).into_iter().map(Option::unwrap).collect::<Vec<u64>>();
    let case = |paragraph: &'static str| {
        let mut lines = paragraph.lines();
        let head: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let rank = all(head[3]).len();
        let stored = lines.map(|line| {
            let words: Vec<u64> = line.split(' ').map(|w| w.parse().unwrap()).collect();
            (Coord::from(&words[..rank]), words[rank], words[rank + 1], words[rank + 2] as u32)
        });
        Case {
            kind: head[0],
            start: head[1].parse().unwrap(),
            length: head[2].parse().unwrap(),
            dims: all(head[3]),
            max: numbers(head[4]),
            chunk: all(head[5]),
            element: head[6].parse().unwrap(),
            filtered: head[7] == "1",
            stored: stored.collect(),
        }
    };
    FACTS.split("\n\n").filter(|p| !p.is_empty()).map(case).collect()
}

impl Case {
    fn bytes(&self) -> &'static [u8] {
        &FILES[self.start..self.start + self.length]
    }

    /// The address of the index: of its header, of the root of a version 1 tree, of the first chunk.
    fn address(&self) -> u64 {
        let bytes = self.bytes();
        let find = |signature: &[u8; 4]| {
            let places = (0..bytes.len() - 4).filter(|&i| &bytes[i..i + 4] == signature);
            places
                .filter(|&i| signature != b"TREE" || bytes[i + 4] == 1)
                .max_by_key(|&i| bytes[i + 5])
                .unwrap()
        };
        match self.kind {
            "btree1" => find(b"TREE") as u64,
            "fixed" => find(b"FAHD") as u64,
            "extensible" => find(b"EAHD") as u64,
            "btree2" => find(b"BTHD") as u64,
            _ => self.stored[0].1,
        }
    }

    fn layout(&self) -> Chunked {
        let index = match self.kind {
            "btree1" => IndexKind::BtreeV1,
            "fixed" => IndexKind::FixedArray { page_bits: 10 },
            "extensible" => IndexKind::ExtensibleArray {
                max_bits: 32,
                index_elements: 4,
                min_pointers: 4,
                min_elements: 16,
                page_bits: 10,
            },
            "btree2" => IndexKind::BtreeV2 { node_size: 2048, split: 100, merge: 40 },
            "implicit" => IndexKind::Implicit,
            _ => {
                let filtered = self.filtered.then(|| (self.stored[0].2, self.stored[0].3));
                IndexKind::Single { filtered }
            }
        };
        let chunk = self.chunk.as_slice().into();
        Chunked { chunk, element_size: self.element, index, address: self.address(), edge_unfiltered: false }
    }

    fn shape(&self) -> ArrayShape<'_> {
        ArrayShape { dims: &self.dims, max: &self.max, element: self.element, filtered: self.filtered }
    }

    fn open_in(&self, bytes: &[u8]) -> Result<ChunkTable> {
        let source = Arc::new(MemorySource::new(bytes.to_vec(), "test"));
        let sizes = Sizes { offset: 8, length: 8 };
        let end = bytes.len() as u64;
        let space = Space::new(source.clone(), source, 0, end, sizes, Arc::new(Limits::default()));
        ChunkTable::new(&space, &self.layout(), self.shape())
    }

    fn open(&self) -> ChunkTable {
        self.open_in(self.bytes()).unwrap()
    }

    /// All chunks of the grid.
    fn grid(&self) -> Vec<Coord> {
        let grid = Grid::new(&self.dims, &self.max, &self.chunk, self.element).unwrap();
        (0..grid.count().unwrap()).map(|n| grid.chunk_of(n)).collect()
    }

    fn wanted(&self, chunk: &Coord) -> Option<(u64, u64, u32)> {
        self.stored.iter().find(|s| s.0 == *chunk).map(|s| (s.1, s.2, s.3))
    }
}

fn place(chunk: &ChunkRef) -> Option<(u64, u64, u32)> {
    match chunk {
        ChunkRef::Range { offset, length, mask, .. } => Some((*offset, *length, *mask)),
        _ => None,
    }
}

#[test]
fn every_chunk_is_where_libhdf5_finds_it() {
    for case in cases() {
        let what = format!("{} {:?}", case.kind, case.dims);
        let mut grid = case.grid();
        if grid.len() > 5000 {
            grid.retain(|c| c[0] % 61 == 0 || case.wanted(c).is_some());
        }
        // All at once, through the table where there is one.
        let index = case.open();
        let found = index.locate(&grid).unwrap();
        for (chunk, found) in grid.iter().zip(&found) {
            assert_eq!(place(found), case.wanted(chunk), "{what} {chunk:?}");
        }
        assert!(found.iter().filter(|f| place(f).is_some()).count() == case.stored.len());
        // One by one, without.
        for chunk in grid.iter().filter(|c| case.wanted(c).is_some()).take(200).chain(grid.iter().take(5)) {
            let found = case.open().locate(std::slice::from_ref(chunk)).unwrap();
            assert_eq!(place(&found[0]), case.wanted(chunk), "{what} {chunk:?} alone");
        }
        // In a file that may change: the same, with nothing kept.
        let live = case.open().live(true);
        for part in [&grid[..], &grid[..grid.len().min(3)]] {
            let found = live.locate(part).unwrap();
            assert!(part.iter().zip(&found).all(|(c, f)| place(f) == case.wanted(c)), "{what} live");
        }
        // By walking.
        let mut seen = Vec::new();
        let visit = &mut |chunk: Coord, found: ChunkRef| {
            seen.push((chunk, place(&found)));
            Ok(())
        };
        index.scan(visit, &mut |f| panic!("{what}: {}", f.error)).unwrap();
        seen.sort();
        let mut wanted: Vec<_> = case.stored.iter().map(|s| (s.0.clone(), Some((s.1, s.2, s.3)))).collect();
        wanted.sort();
        assert_eq!(seen, wanted, "{what}");
    }
}

#[test]
fn chunks_outside_the_grid_are_refused_by_name() {
    let case = &cases()[1];
    let e = case.open().locate(&[Coord::from_slice(&[3, 0])]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OutOfBounds);
    assert!(e.to_string().contains("chunk [3, 0]"), "{e}");
}

#[test]
fn an_index_that_was_never_made_is_all_fill() {
    let case = &cases()[1];
    let source = Arc::new(MemorySource::new(vec![0; 64], "test"));
    let sizes = Sizes { offset: 8, length: 8 };
    let space = Space::new(source.clone(), source, 0, 64, sizes, Arc::new(Limits::default()));
    let layout = Chunked { address: UNDEFINED, ..case.layout() };
    let index = ChunkTable::new(&space, &layout, case.shape()).unwrap();
    assert!(matches!(index.locate(&[Coord::from_slice(&[1, 1])]).unwrap()[0], ChunkRef::Absent));
}

#[test]
fn edge_chunks_stored_unfiltered_skip_all_filters() {
    // A dataset of 5 × 7 in chunks of 2 × 3, said to be filtered but at its edges.
    let case = cases().into_iter().find(|c| c.kind == "fixed" && c.dims == [5, 7]).unwrap();
    let source = Arc::new(MemorySource::new(case.bytes().to_vec(), "test"));
    let sizes = Sizes { offset: 8, length: 8 };
    let space = Space::new(source.clone(), source, 0, case.length as u64, sizes, Arc::new(Limits::default()));
    let layout = Chunked { edge_unfiltered: true, ..case.layout() };
    let shape = ArrayShape { filtered: true, ..case.shape() };
    let index = ChunkTable::new(&space, &layout, shape).unwrap();
    let at = |a, b| place(&index.locate(&[Coord::from_slice(&[a, b])]).unwrap()[0]).unwrap().2;
    assert_eq!([at(0, 0), at(1, 1), at(2, 0), at(0, 2), at(2, 2)], [0, 0, u32::MAX, u32::MAX, u32::MAX]);
}

#[test]
fn damage_is_reported_and_the_rest_still_found() {
    for case in cases() {
        let signature: &[u8; 4] = match case.kind {
            "btree1" if case.dims.len() == 3 => b"TREE",
            "extensible" if case.dims == [4, 25, 3] => b"EADB",
            "fixed" if case.dims == [3000] => b"FADB",
            _ => continue,
        };
        // The last leaf of the tree, one of the data blocks, the first page.
        let mut bytes = case.bytes().to_vec();
        let places = (0..bytes.len() - 4).filter(|&i| &bytes[i..i + 4] == signature);
        let places = places.filter(|&i| signature != b"TREE" || (bytes[i + 4], bytes[i + 5]) == (1, 0));
        let at = places.max().unwrap() + if signature == b"FADB" { 40 } else { 0 };
        bytes[at] ^= 0x55;
        let index = case.open_in(&bytes).unwrap();
        let (mut seen, mut faults) = (0, Vec::new());
        index
            .scan(
                &mut |_, _| {
                    seen += 1;
                    Ok(())
                },
                &mut |f| faults.push(f.error.to_string()),
            )
            .unwrap();
        assert_eq!(faults.len(), 1, "{} {faults:?}", case.kind);
        assert!(seen > 0 && seen < case.stored.len(), "{}: {seen}", case.kind);
        // Whole batches fail, with the chunk named, but chunks elsewhere are found.
        let alone = case.grid().into_iter().filter(|c| case.wanted(c).is_some());
        let found = alone.filter(|c| index.locate(std::slice::from_ref(c)).is_ok()).count();
        assert_eq!(found, seen, "{}", case.kind);
    }
}

#[test]
fn chunks_beyond_the_file_are_errors_with_their_name() {
    let case = cases().into_iter().find(|c| c.kind == "btree1" && c.filtered).unwrap();
    let mut bytes = case.bytes().to_vec();
    let at = case.address() as usize;
    bytes[at + 24] = 0xff; // length of the first chunk
    bytes[at + 26] = 0xff;
    let index = case.open_in(&bytes).unwrap();
    let e = index.locate(&[Coord::from_slice(&[0, 0])]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Truncated);
    assert!(e.to_string().contains("chunk [0, 0]"), "{e}");
    assert!(index.locate(&[Coord::from_slice(&[0, 1])]).is_ok());
}

/// Changes each byte of each index structure in turn, with its checksum renewed: whatever happens is an error or an
/// answer, and in time.
#[test]
fn mutated_indexes_do_no_harm() {
    for case in cases() {
        let bytes = case.bytes();
        let step = if case.length > 8000 { 23 } else { 2 };
        let from = case.address() as usize;
        let to = (from + 600).min(case.length);
        let grid: Vec<Coord> = case.grid().into_iter().take(300).collect();
        for at in (from..to).step_by(step) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.to_vec();
                changed[at] = value;
                for (signature, length) in [(b"FAHD", 24), (b"EAHD", 68), (b"BTHD", 34)] {
                    if &bytes[from..from + 4] == signature {
                        let sum = lookup3(&changed[from..from + length]);
                        changed[from + length..from + length + 4].copy_from_slice(&sum.to_le_bytes());
                    }
                }
                let Ok(index) = case.open_in(&changed) else { continue };
                let _ = index.locate(&grid);
                let _ = index.locate(&grid[..1]);
                let mut count = 0;
                let _ = index.scan(
                    &mut |_, _| {
                        count += 1;
                        Ok(())
                    },
                    &mut |_| {},
                );
                assert!(count <= 300_000);
            }
        }
    }
}

#[test]
fn a_tree_in_a_circle_ends() {
    let case = cases().remove(0);
    let mut bytes = case.bytes().to_vec();
    let root = case.address() as usize;
    let child = root + 24 + 8 + 8 * 4;
    bytes[child..child + 8].copy_from_slice(&(root as u64).to_le_bytes());
    let index = case.open_in(&bytes).unwrap();
    let mut faults = 0;
    index.scan(&mut |_, _| Ok(()), &mut |_| faults += 1).unwrap();
    assert_eq!(faults, 1);
    assert!(index.locate(&case.grid()[..1]).is_err());
}

#[test]
fn extensible_array_geometry() {
    let g = Geometry { direct: 4, smallest: 16, near_groups: 4, groups: 29, page: 1024 };
    assert_eq!((g.blocks(0), g.blocks(1), g.blocks(2), g.blocks(3), g.blocks(4)), (1, 1, 2, 2, 4));
    assert_eq!((g.entries(0), g.entries(1), g.entries(2), g.entries(3)), (16, 32, 32, 64));
    let block = |group, block, entry| Some(Place::Block { group, block, entry });
    assert_eq!(g.place(3), Some(Place::Direct(3)));
    assert_eq!(g.place(4), block(0, 0, 0));
    assert_eq!(g.place(19), block(0, 0, 15));
    assert_eq!(g.place(20), block(1, 0, 0));
    assert_eq!(g.place(52), block(2, 0, 0));
    assert_eq!(g.place(84), block(2, 1, 0));
    assert_eq!(g.place(116), block(3, 0, 0));
    assert_eq!(g.pages(11), 0);
    assert_eq!(g.pages(13), 2);
    assert_eq!(g.place(131_060), block(13, 0, 0));
    assert_eq!(g.place(u64::MAX), None);
    // Every slot has a place of its own, in order.
    let mut last = None;
    for slot in 4..20_000 {
        let Some(Place::Block { group, block, entry }) = g.place(slot) else { panic!() };
        assert!(block < g.blocks(group) && entry < g.entries(group));
        assert!(Some((group, block, entry)) > last);
        last = Some((group, block, entry));
    }
}

#[test]
fn slots_put_the_unlimited_axis_in_front() {
    let grid = Grid::new(&[4, 25, 3], &[Some(4), None, Some(5)], &[1, 2, 2], 1).unwrap();
    let slots = grid.unlimited().unwrap();
    assert_eq!(slots.slot(&[0, 0, 0]), Some(0));
    assert_eq!(slots.slot(&[0, 0, 2]), Some(2));
    assert_eq!(slots.slot(&[1, 0, 0]), Some(3));
    assert_eq!(slots.slot(&[0, 1, 0]), Some(12));
    assert_eq!(slots.slot(&[4, 0, 0]), None);
    for slot in 0..200 {
        assert_eq!(slots.slot(&slots.chunk(slot)), Some(slot));
    }
    assert!(grid.fixed().is_err());
    // Extents up to 2^63 are numbered without overflow, or refused.
    let grid = Grid::new(&[1 << 62; 3], &[None, Some(1 << 62), Some(1 << 62)], &[1; 3], 1).unwrap();
    assert_eq!(grid.unlimited().unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(grid.count(), None);
}

#[test]
fn grid_refuses_what_does_not_fit() {
    let limit =
        |chunk: &[u64], element| Grid::new(&[1, 1], &[None, None], chunk, element).unwrap_err().kind();
    assert_eq!(limit(&[1], 1), ErrorKind::Corrupt);
    assert_eq!(limit(&[0, 1], 1), ErrorKind::Corrupt);
    assert_eq!(limit(&[1 << 40, 1 << 40], 1), ErrorKind::LimitExceeded);
    assert_eq!(limit(&[1 << 40, 1], 1 << 30), ErrorKind::LimitExceeded);
}

#[test]
fn whole_storage() {
    let bytes = Bytes::from_static(b"0123456789");
    let one = |index: &Whole| index.locate(&[Coord::from_slice(&[0])]).map(|mut c| c.pop().unwrap());
    match one(&Whole::compact(bytes.clone(), 4, 1)).unwrap() {
        ChunkRef::Memory { bytes, mask: 0 } => assert_eq!(&bytes[..], b"0123"),
        other => panic!("{other:?}"),
    }
    assert_eq!(one(&Whole::compact(bytes, 11, 1)).unwrap_err().kind(), ErrorKind::Corrupt);

    let space = crate::format::hdf5::test_space::space(&[0; 100]);
    assert!(matches!(one(&Whole::contiguous(&space, UNDEFINED, Some(0), 8, 1)).unwrap(), ChunkRef::Absent));
    assert_eq!(place(&one(&Whole::contiguous(&space, 90, Some(20), 10, 1)).unwrap()), Some((90, 10, 0)));
    assert_eq!(one(&Whole::contiguous(&space, 90, None, 11, 1)).unwrap_err().kind(), ErrorKind::Truncated);
    assert_eq!(one(&Whole::contiguous(&space, 0, Some(9), 10, 1)).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn external_segments_read_as_one_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), b"..abcdef").unwrap();
    std::fs::write(folder.path().join("b"), b"xyz").unwrap();
    let owner = Arc::new(MemorySource::new(Vec::new(), "owner"));
    let near = Neighbours::of(&folder.path().join("main.h5"), &Limits::default());
    let segment = |name: &str, offset, length| ExternalSegment { name: name.into(), offset, length };
    let open = |segments| ExternalSource::new(segments, near.clone(), owner.clone());

    let row = open(vec![segment("a", 2, Some(4)), segment("b", 1, Some(4)), segment("a", 0, None)]).unwrap();
    // The second file has 2 bytes of 4, the third segment 8 bytes and then nothing.
    assert_eq!(&row.read(&[ByteRange::new(0, 12)]).unwrap()[0][..], b"abcdyz\0\0..ab");
    assert_eq!(&row.read(&[ByteRange::new(3, 2)]).unwrap()[0][..], b"dy");
    assert_eq!(&row.read(&[ByteRange::new(14, 6)]).unwrap()[0][..], b"ef\0\0\0\0"[..6].as_ref());

    let short = open(vec![segment("a", 0, Some(4))]).unwrap();
    assert_eq!(short.read(&[ByteRange::new(2, 3)]).unwrap_err().kind(), ErrorKind::Truncated);
    let absent = open(vec![segment("a", 0, Some(4)), segment("nowhere", 0, Some(4))]).unwrap();
    assert!(absent.read(&[ByteRange::new(0, 4)]).is_ok());
    let e = absent.read(&[ByteRange::new(3, 2)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("nowhere"), "{e}");
    let outside = open(vec![segment("/etc/hostname", 0, Some(4))]).unwrap();
    assert_eq!(outside.read(&[ByteRange::new(0, 1)]).unwrap_err().kind(), ErrorKind::Permission);
    assert!(open(vec![segment("a", 0, None), segment("b", 0, Some(1))]).is_err());
    assert_eq!(row.parts(), [0, 4, 8]);
}

#[test]
fn mappings_in_both_encodings() {
    use crate::format::hdf5::parse::lookup3 as sum;
    let sizes = Sizes { offset: 8, length: 8 };
    let all = || {
        let mut s = 3u32.to_le_bytes().to_vec();
        s.extend(1u32.to_le_bytes());
        s.extend([0; 8]);
        s
    };
    let sealed = |mut block: Vec<u8>| {
        let sum = sum(&block);
        block.extend(sum.to_le_bytes());
        block
    };
    let names = |block: &[u8]| -> Vec<(String, String)> {
        let mappings = mapping::parse(block, 0, sizes).unwrap();
        mappings.iter().map(|m| (m.file.to_string(), m.dataset.to_string())).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());

    let mut block = vec![0, 1, 0, 0, 0, 0, 0, 0, 0];
    block.extend(b"a.h5\0/x\0");
    block.extend([all(), all()].concat());
    assert_eq!(names(&sealed(block)), [pair("a.h5", "/x")]);

    let mut block = vec![1, 3, 0, 0, 0, 0, 0, 0, 0];
    block.extend(b"\0another_file.h5\0/x\0");
    block.extend([all(), all()].concat());
    block.extend(b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    block.extend([all(), all()].concat());
    block.extend(b"\x04/y\0");
    block.extend([all(), all()].concat());
    let shared = [pair("another_file.h5", "/x"), pair("another_file.h5", "/x"), pair(".", "/y")];
    assert_eq!(names(&sealed(block.clone())), shared);

    // A name of a mapping that comes later, a flag that nobody knows, a version that nobody knows.
    let at = block.iter().position(|&b| b == 3 && block.len() > 60).unwrap();
    for (i, value) in [(9, 1), (9, 8), (0, 2), (1, 200), (at, 0x0b)] {
        let mut wrong = block.clone();
        wrong[i] = value;
        assert_eq!(mapping::parse(&sealed(wrong), 0, sizes).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let mut wrong = sealed(block);
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(mapping::parse(&wrong, 0, sizes).unwrap_err().kind(), ErrorKind::Checksum);
}
