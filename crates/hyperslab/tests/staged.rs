//! Staged arrays over arrays of files, of every format and layout: the same elements as read from the file, before and
//! after changes, against a dense copy.

use hyperslab::model::NodeKind;
use hyperslab::source::store::Precondition;
use hyperslab::source::{MemoryStore, Store};
use hyperslab::staged::{BaseSlab, Block, StagedArray};
use hyperslab::{Array, ErrorKind, File, Limits, MissingChunks, Object, OpenOptions, Selection};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Elements as text, whatever they are.
fn texts(block: &Block) -> Vec<String> {
    (0..block.len()).map(|i| block.value(i).unwrap().to_string()).collect()
}

/// A dense array of texts.
struct Dense {
    shape: Vec<u64>,
    data: Vec<String>,
    fill: String,
}

impl Dense {
    fn at(&self, index: &[u64]) -> usize {
        index.iter().zip(&self.shape).fold(0, |at, (&i, &n)| at * n + i) as usize
    }

    fn resize(&mut self, shape: &[u64]) {
        let all: Vec<String> = indices(shape)
            .iter()
            .map(|index| match index.iter().zip(&self.shape).all(|(i, n)| i < n) {
                true => self.data[self.at(index)].clone(),
                false => self.fill.clone(),
            })
            .collect();
        (self.shape, self.data) = (shape.to_vec(), all);
    }
}

fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    for &n in shape {
        all = all.iter().flat_map(|index| (0..n).map(|i| [&index[..], &[i]].concat())).collect();
    }
    all
}

fn boxed(from: &[u64], to: &[u64]) -> Selection {
    from.iter().zip(to).map(|(&a, &b)| hyperslab::select::IntoItem::into_item(a..b).unwrap()).collect()
}

/// Reads, assigns, resizes and commits an array; false if its elements cannot be staged.
fn exercise(array: &Array, chunk: Option<&[u64]>) -> bool {
    let what = array.path();
    let made = match chunk {
        Some(chunk) => StagedArray::over_chunked(array, chunk),
        None => StagedArray::over(array),
    };
    let staged = made.and_then(|staged| staged.get(Selection::all()).map(|read| (staged, read)));
    let (mut staged, all) = match staged {
        Ok(both) => both,
        Err(e) if e.kind() == ErrorKind::Unsupported => return false,
        Err(e) => panic!("{what}: {e}"),
    };
    assert_eq!(all.shape(), array.shape(), "{what}");
    if let Some(bytes) = all.bytes() {
        assert!(bytes == array.read_raw(Selection::all()).unwrap().bytes, "{what}");
    } else {
        let wanted = array.read_values(Selection::all()).unwrap();
        let same = |i: usize| match &wanted[i] {
            // A text that was never written is an empty one.
            hyperslab::model::Value::Null => texts(&all)[i] == "\"\"",
            value => texts(&all)[i] == value.to_string(),
        };
        assert!((0..wanted.len()).all(same), "{what}: {wanted:?} {:?}", texts(&all));
    }
    let shape = array.shape().to_vec();
    let mut dense =
        Dense { shape: shape.clone(), data: texts(&all), fill: texts(&staged.fill().unwrap())[0].clone() };
    let check = |staged: &StagedArray, dense: &Dense, when: &str| {
        let now = staged.get(Selection::all()).unwrap_or_else(|e| panic!("{what} {when}: {e}"));
        assert_eq!(now.shape(), dense.shape, "{what} {when}");
        assert!(texts(&now) == dense.data, "{what} {when}");
    };
    if !dense.data.is_empty() {
        // The first element everywhere in the middle of the array.
        let from: Vec<u64> = shape.iter().map(|n| n / 3).collect();
        let to: Vec<u64> = shape.iter().map(|n| n - n / 4).collect();
        let first = staged.get(boxed(&vec![0; shape.len()], &vec![1; shape.len()])).unwrap();
        let one = dense.data[0].clone();
        staged.set(boxed(&from, &to), &first).unwrap();
        for index in indices(&shape)
            .into_iter()
            .filter(|index| (0..shape.len()).all(|a| (from[a]..to[a]).contains(&index[a])))
        {
            let at = dense.at(&index);
            dense.data[at] = one.clone();
        }
        check(&staged, &dense, "after an assignment");
        // Every second element, from changed and unchanged chunks together.
        let steps: Vec<_> = shape
            .iter()
            .map(|_| {
                hyperslab::select::Item::Slice(hyperslab::select::Slice { start: None, stop: None, step: 2 })
            })
            .collect();
        let wanted: Vec<&String> = indices(&shape)
            .iter()
            .filter(|index| index.iter().all(|i| i % 2 == 0))
            .map(|index| &dense.data[dense.at(index)])
            .collect();
        let got = texts(&staged.get(Selection::vectorised(steps)).unwrap());
        assert!(got.iter().eq(wanted), "{what}: every second element");
    }
    let kept = staged.copy();
    let before = Dense { shape: dense.shape.clone(), data: dense.data.clone(), fill: dense.fill.clone() };
    for change in [[3i64, -1, 2], [-2, 5, -1], [1, 1, 1]] {
        let new: Vec<u64> = dense
            .shape
            .iter()
            .enumerate()
            .map(|(axis, &n)| n.saturating_add_signed(change[axis % 3]))
            .collect();
        staged.resize(&new).unwrap_or_else(|e| panic!("{what}: {e}"));
        dense.resize(&new);
        check(&staged, &dense, "after a change of extents");
    }
    staged.commit().unwrap();
    check(&staged, &dense, "after a commit");
    staged.load().unwrap();
    check(&staged, &dense, "in memory");
    check(&kept, &before, "that was kept aside");
    true
}

fn arrays(file: &File) -> Vec<Array> {
    file.walk()
        .filter(|entry| matches!(entry.item, hyperslab::array::Item::Object(_, NodeKind::Array)))
        .filter_map(|entry| match entry.open(file) {
            Ok(Object::Array(array)) => Some(array),
            _ => None,
        })
        .collect()
}

#[test]
fn arrays_of_files() {
    let mut files = vec![root().join("../../examples/data/ocean.h5")];
    for name in [
        "classic.nc",
        "netcdf4.nc",
        "objects_new.h5",
        "objects_old.h5",
        "paged.h5",
        "heaps.h5",
        "virtual/v1.h5",
    ] {
        files.push(root().join("tests/data").join(name));
    }
    let (mut staged, mut layouts) = (0, std::collections::BTreeSet::new());
    for path in files {
        let file = hyperslab::open(path.as_path()).unwrap();
        for array in arrays(&file) {
            let small = array.shape().iter().product::<u64>() <= 20_000;
            // What cannot be read has no elements to be staged.
            if !small || array.meta().space.is_null() || array.read_raw(Selection::all()).is_err() {
                continue;
            }
            if exercise(&array, None) {
                staged += 1;
                layouts.insert(
                    format!("{:?}", array.meta().layout).split([' ', '(']).next().unwrap().to_string(),
                );
                let other: Vec<u64> = array.shape().iter().map(|&n| n / 3 + 2).collect();
                assert!(exercise(&array, Some(&other)));
            }
        }
    }
    assert!(staged > 40, "{staged}");
    assert!(layouts.len() >= 4, "{layouts:?}");
}

fn zarr(shape: &str, chunks: &str, objects: &[(&str, &[u8])], options: &OpenOptions) -> File {
    let store = MemoryStore::new();
    let document = format!(
        r#"{{"zarr_format":2,"shape":{shape},"chunks":{chunks},"dtype":">i2","fill_value":-1,"compressor":{{"id":"zlib","level":1}},"filters":null,"order":"F"}}"#
    );
    store.put("a/.zarray", document.into_bytes().into(), &Precondition::None).unwrap();
    for (key, bytes) in objects {
        store.put(key, bytes.to_vec().into(), &Precondition::None).unwrap();
    }
    let hierarchy = hyperslab::format::open_store(Arc::new(store), Limits::default()).unwrap();
    File::from_hierarchy(hierarchy, "test", options)
}

#[test]
fn arrays_of_stores() {
    let pipeline_input: Vec<u8> = (0..6i16).flat_map(i16::to_be_bytes).collect();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &pipeline_input).unwrap();
    let chunk = encoder.finish().unwrap();
    let objects: [(&str, &[u8]); 2] = [("a/0.0", &chunk), ("a/2.1", &chunk)];
    let file = zarr("[7,5]", "[3,2]", &objects, &OpenOptions::default());
    let array = file.array("/a").unwrap();
    assert!(exercise(&array, None));
    assert!(exercise(&array, Some(&[2, 2])));
    // Chunks that were never written are what the file was opened for; those of the staged array are its own.
    let file = zarr("[7,5]", "[3,2]", &objects, &OpenOptions::default().with_missing(MissingChunks::Raise));
    let mut staged = StagedArray::over(&file.array("/a").unwrap()).unwrap();
    assert_eq!(staged.read::<i16>((0, ..)).unwrap_err().kind(), ErrorKind::NotFound);
    let before = staged.ledger().clone();
    assert_eq!(staged.set((0, 2), 5i16).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(staged.load().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(staged.resize(&[9, 6]).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(staged.ledger(), &before);
    staged.set((0..3, 2..4), 5i16).unwrap();
    assert_eq!(staged.read::<i16>((0, 0..4)).unwrap().data, [0, 3, 5, 5]);
    staged.resize(&[7, 2]).unwrap();
    staged.resize(&[3, 8]).unwrap();
    assert_eq!(staged.read::<i16>((1, ..)).unwrap().data, [1, 4, -1, -1, -1, -1, -1, -1]);
}

#[test]
fn a_base_may_present_another_type() {
    let file = zarr("[4]", "[2]", &[], &OpenOptions::default());
    let array = file.array("/a").unwrap();
    let mut staged = StagedArray::over(&array).unwrap();
    staged.set(0, 300i16).unwrap();
    let byte = hyperslab::dtype::Native::U8.dtype();
    let base = BaseSlab::converted(&array, &[2], &byte).unwrap();
    let mut bytes = staged.astype_over(&byte, vec![base]).unwrap();
    // Through the type that it presents: -1 is 0 as a byte.
    assert_eq!(bytes.read::<i64>(..).unwrap().data, [255, 0, 0, 0]);
    assert_eq!(bytes.get(2..).unwrap().bytes(), Some(&[0u8, 0][..]));
    bytes.set(3, 9u8).unwrap();
    assert_eq!(bytes.read::<i64>(..).unwrap().data, [255, 0, 0, 9]);
    assert_eq!(staged.read::<i64>(..).unwrap().data, [300, -1, -1, -1]);
}
