//! Zarr arrays whose chunks differ in their extents, made here byte by byte.

use hyperslab::model::ChunkGrid;
use hyperslab::source::store::Precondition;
use hyperslab::source::{MemoryStore, Store};
use hyperslab::{Array, ErrorKind, File, Limits, MissingChunks, OpenOptions, Result, Selection};
use std::sync::Arc;

const SHAPE: [usize; 2] = [8, 7];
/// The last chunk along the second axis reaches beyond the array.
const EDGES: [&[usize]; 2] = [&[2, 2, 1, 3], &[3, 2, 4]];
const GRID: &str =
    r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[2,2],1,3],[3,2,[4,1]]]}}"#;
const BYTES: &str = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
const TURNED: &str = r#"{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}}"#;

fn document(shape: &str, grid: &str, data_type: &str, codecs: &str) -> String {
    format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":{shape},"data_type":"{data_type}","chunk_grid":{grid},
        "chunk_key_encoding":{{"name":"default"}},"fill_value":-1,"codecs":[{codecs}]}}"#
    )
}

fn value(i: usize, j: usize) -> i16 {
    if i < SHAPE[0] && j < SHAPE[1] { (100 * i + j) as i16 } else { -7 }
}

/// The elements of a box, with what reaches beyond the array.
fn block(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, turned: bool) -> Vec<u8> {
    let values: Vec<i16> = if turned {
        columns.flat_map(|j| rows.clone().map(move |i| value(i, j))).collect()
    } else {
        rows.flat_map(|i| columns.clone().map(move |j| value(i, j))).collect()
    };
    values.into_iter().flat_map(i16::to_be_bytes).collect()
}

/// The array at `/a`, without the chunks that `leave` names.
fn store(codecs: &str, turned: bool, leave: &[(usize, usize)]) -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    let put = |key: &str, bytes: Vec<u8>| store.put(key, bytes.into(), &Precondition::None).unwrap();
    put("zarr.json", br#"{"zarr_format":3,"node_type":"group"}"#.to_vec());
    put("a/zarr.json", document("[8,7]", GRID, "int16", codecs).into_bytes());
    let mut top = 0;
    for (i, rows) in EDGES[0].iter().enumerate() {
        let mut left = 0;
        for (j, columns) in EDGES[1].iter().enumerate() {
            if !leave.contains(&(i, j)) {
                put(&format!("a/c/{i}/{j}"), block(top..top + rows, left..left + columns, turned));
            }
            left += columns;
        }
        top += rows;
    }
    Arc::new(store)
}

fn open(store: Arc<MemoryStore>, options: &OpenOptions) -> Result<Array> {
    let hierarchy = hyperslab::format::open_store(store, Limits::default())?;
    File::from_hierarchy(hierarchy, "test", options).array("/a")
}

fn read(array: &Array, selection: &str) -> Vec<i16> {
    array.read::<i16>(Selection::parse(selection).unwrap()).unwrap().data
}

fn wanted(rows: &[usize], columns: &[usize]) -> Vec<i16> {
    rows.iter().flat_map(|&i| columns.iter().map(move |&j| value(i, j))).collect()
}

#[test]
fn chunks_of_different_extents_are_one_array() {
    for (codecs, turned) in [(BYTES, false), (TURNED, true)] {
        let array = open(store(codecs, turned, &[]), &OpenOptions::default()).unwrap();
        assert_eq!(read(&array, ":, :"), wanted(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6]));
        assert_eq!(read(&array, "3:6, 2:6"), wanted(&[3, 4, 5], &[2, 3, 4, 5]));
        assert_eq!(read(&array, "::3, ::-2"), wanted(&[0, 3, 6], &[6, 4, 2, 0]));
        assert_eq!(read(&array, "[7, 0, 4, 4], 5"), wanted(&[7, 0, 4, 4], &[5]));
        // A part of a chunk is kept for the next read, and not taken for that of another tile.
        for (i, j) in [(0, 0), (2, 0), (4, 0), (5, 0), (0, 3), (5, 3), (7, 6), (1, 1)] {
            for _ in 0..2 {
                assert_eq!(read(&array, &format!("{i}, {j}")), [value(i, j)]);
            }
        }
    }
    let array = open(store(BYTES, false, &[]), &OpenOptions::default()).unwrap();
    let runs = vec![vec![(2, 2), (1, 1), (3, 1)], vec![(3, 1), (2, 1), (4, 1)]];
    assert_eq!(array.meta().grid, ChunkGrid::Rectilinear { runs, largest: vec![3, 4] });
    assert_eq!(array.meta().grid.to_string(), "([2 × 2, 1, 3], [3, 2, 4])");
    // Only what is wanted is read.
    let (_, stats) =
        array.read_with::<i16>(Selection::parse("0:2, 0:3").unwrap(), &Default::default()).unwrap();
    assert_eq!(stats.requests, 1);
}

#[test]
fn missing_chunks_are_fill_or_errors() {
    let leave = [(1, 0), (3, 2)];
    let array = open(store(BYTES, false, &leave), &OpenOptions::default()).unwrap();
    let is_there = |i: usize, j: usize| !((2..4).contains(&i) && j < 3 || i >= 5 && j >= 5);
    let all = (0..8).flat_map(|i| (0..7).map(move |j| if is_there(i, j) { value(i, j) } else { -1 }));
    assert_eq!(read(&array, ":, :"), all.collect::<Vec<_>>());
    let raise = OpenOptions::default().with_missing(MissingChunks::Raise);
    let array = open(store(BYTES, false, &leave), &raise).unwrap();
    assert_eq!(read(&array, "0:2, :"), wanted(&[0, 1], &[0, 1, 2, 3, 4, 5, 6]));
    let error = array.read::<i16>(Selection::parse("5:, 6").unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("[5, 5]"), "{error}");
}

/// The chunks that are stored, in order.
fn stored(array: &Array) -> Vec<(u64, u64)> {
    let mut coords = Vec::new();
    let visit = &mut |coord: hyperslab::shape::Coord, _| {
        coords.push((coord[0], coord[1]));
        Ok(())
    };
    array.chunks(visit, &mut |f| panic!("{:?}", f.error)).unwrap();
    coords.sort_unstable();
    coords
}

#[test]
fn all_chunks_are_checked() {
    let objects = store(BYTES, false, &[(1, 0)]);
    let array = open(objects.clone(), &OpenOptions::default()).unwrap();
    let coords = stored(&array);
    let grid = (0..4).flat_map(|i| (0..3).map(move |j| (i, j)));
    assert_eq!(coords, grid.filter(|&c| c != (1, 0)).collect::<Vec<_>>());
    let verified = array.verify(&mut |f| panic!("{:?}", f.error));
    assert_eq!((verified.chunks, verified.skipped), (11, 0));
    // Too short for its own tile, though long enough for others.
    objects.put("a/c/3/2", vec![0; 12].into(), &Precondition::None).unwrap();
    let mut faults = Vec::new();
    assert_eq!(array.verify(&mut |f| faults.push(f.error.to_string())).chunks, 11);
    assert!(matches!(faults.as_slice(), [one] if one.contains("a/c/3/2")), "{faults:?}");
    assert!(array.read::<i16>(Selection::parse("7, 6").unwrap()).is_err());
    assert_eq!(read(&array, "7, 4"), [value(7, 4)]);
}

#[test]
fn shards_may_differ_and_hold_equal_chunks() {
    let codecs = r#"{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],
        "codecs":[{"name":"bytes","configuration":{"endian":"big"}}],
        "index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"end"}}"#;
    let grid =
        r#"{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[3,1,[2,2]],[4,[2,2]]]}}"#;
    let objects = MemoryStore::new();
    let put = |key: &str, bytes: Vec<u8>| objects.put(key, bytes.into(), &Precondition::None).unwrap();
    put("a/zarr.json", document("[8,7]", grid, "int16", codecs).into_bytes());
    let mut top = 0;
    for (i, rows) in [3, 1, 2, 2].into_iter().enumerate() {
        let mut left = 0;
        for (j, columns) in [4, 2, 2].into_iter().enumerate() {
            let (mut shard, mut index) = (Vec::new(), Vec::new());
            for row in top..top + rows {
                for column in (left..left + columns).step_by(2) {
                    let chunk = block(row..row + 1, column..column + 2, false);
                    // One chunk of the last shard was never written.
                    let (offset, length) =
                        if (row, column) == (7, 6) { (u64::MAX, u64::MAX) } else { (shard.len() as u64, 4) };
                    if offset != u64::MAX {
                        shard.extend(chunk);
                    }
                    index.extend([offset, length].into_iter().flat_map(u64::to_le_bytes));
                }
            }
            shard.extend(index);
            put(&format!("a/c/{i}/{j}"), shard);
            left += columns;
        }
        top += rows;
    }
    let array = open(Arc::new(objects), &OpenOptions::default()).unwrap();
    assert_eq!(array.meta().grid, ChunkGrid::Regular(vec![1, 2]));
    let mut all = wanted(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6]);
    all[55] = -1;
    assert_eq!(read(&array, ":, :"), all);
    assert_eq!(read(&array, "2:5, 3:5"), wanted(&[2, 3, 4], &[3, 4]));
    let coords = stored(&array);
    let grid = (0..8).flat_map(|i| (0..4).map(move |j| (i, j)));
    assert_eq!(coords, grid.filter(|&c| c != (7, 3)).collect::<Vec<_>>());
    assert_eq!(array.verify(&mut |f| panic!("{:?}", f.error)).chunks, 31);
}

#[test]
fn grids_of_equal_chunks_are_regular_and_odd_ones_are_refused() {
    let array = |shape: &str, chunk_shapes: &str, kind: &str, data_type: &str, codecs: &str| {
        let grid = format!(
            r#"{{"name":"rectilinear","configuration":{{"kind":"{kind}","chunk_shapes":{chunk_shapes}}}}}"#
        );
        let store = MemoryStore::new();
        let text = document(shape, &grid, data_type, codecs);
        store.put("a/zarr.json", text.into_bytes().into(), &Precondition::None).unwrap();
        open(Arc::new(store), &OpenOptions::default())
    };
    let equal = array("[5,4]", "[2,[[3,2]]]", "inline", "int16", BYTES).unwrap();
    assert_eq!(equal.meta().grid, ChunkGrid::Regular(vec![2, 3]));
    // Without elements there are no chunks to differ; other axes may still have some.
    let empty = array("[0,3]", "[[1,2],[1,2]]", "inline", "int16", BYTES).unwrap();
    assert!(read(&empty, ":, :").is_empty());
    assert_eq!(read(&array("[]", "[]", "inline", "int16", BYTES).unwrap(), ""), [-1]);
    for (shape, shapes, kind, data_type, codecs, wanted) in [
        ("[3]", "[[1,1]]", "inline", "int16", BYTES, ErrorKind::Corrupt),
        ("[3]", "[[1,2],[1]]", "inline", "int16", BYTES, ErrorKind::Corrupt),
        ("[3]", "[[1,2]]", "other", "int16", BYTES, ErrorKind::Unsupported),
        ("[3]", "[[1,2]]", "inline", "string", r#"{"name":"vlen-utf8"}"#, ErrorKind::Unsupported),
    ] {
        assert_eq!(
            array(shape, shapes, kind, data_type, codecs).unwrap_err().kind(),
            wanted,
            "{shapes} {kind}"
        );
    }
}

#[test]
fn rows_of_a_rectilinear_grid_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a/zarr.json"), document("[8,7]", GRID, "int16", BYTES)).unwrap();
    let address = hyperslab::Address::parse(&format!("{}::/a", folder.path().display()));
    let error =
        hyperslab::follow::follow(address, &[], hyperslab::follow::FollowOptions::new()).err().unwrap();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("rectilinear"), "{error}");
}
