use super::*;
use crate::codec::FilterSpec;
use crate::dtype::{ByteOrder, CharSet, FloatType, IntegerType, StringPadding};
use crate::json::Json;
use crate::model::write::{FillSpec, LayoutSpec, ShardSpec};
use crate::select::Selection;
use crate::source::store::{MemoryStore, Store};

fn int32() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn text() -> DType {
    DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 }
}

fn codec(name: &str, json: &str) -> FilterSpec {
    FilterSpec::Zarr { name: name.into(), configuration: Json::parse(json.as_bytes()).unwrap() }
}

fn counted(shape: &[u64]) -> ArrayDataOf {
    let count: u64 = shape.iter().product();
    ArrayDataOf { shape: shape.to_vec(), data: (0..count as i32).collect() }
}

type ArrayDataOf = crate::array::ArrayData<i32>;

fn block(data: &ArrayDataOf) -> crate::staged::Block {
    crate::staged::Block::from_values(&Values::try_from(data).unwrap()).unwrap()
}

fn open(store: &Arc<MemoryStore>) -> File {
    let hierarchy = crate::format::open_store(store.clone(), Default::default()).unwrap();
    File::from_hierarchy(hierarchy, "memory", &OpenOptions::default())
}

/// An array of 7 × 10 with counted elements in each way of storing it.
fn made(format: Format, change: impl Fn(&mut ArraySpec)) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let mut transaction = File::create_in(store.clone(), format, &CreateOptions::default()).unwrap();
    transaction.create_group("g").unwrap();
    let mut spec = ArraySpec::simple(int32(), &[7, 10]).with_chunk(&[2, 3]);
    change(&mut spec);
    transaction.create_array("g/a", spec).unwrap();
    transaction.set_attribute("g/a", "units", "m").unwrap();
    transaction.set_attribute("/", "list", [1i64, 2].as_slice()).unwrap();
    let staged = StagedArray::from_base(block(&counted(&[7, 10])), &[4, 4], None).unwrap();
    staged.commit_to(&mut transaction, "g/a").unwrap();
    assert!(store.list("").unwrap().iter().all(|key| !key.ends_with("zarr.json") && !key.contains(".z")));
    transaction.commit().unwrap();
    store
}

fn shards(spec: &mut ArraySpec) {
    let shard = ShardSpec { extents: vec![4, 6], index_at_start: false };
    spec.layout = LayoutSpec::Chunked { chunk: vec![2, 3], shard: Some(shard) };
}

#[test]
fn what_is_written_is_read() {
    type Change = Box<dyn Fn(&mut ArraySpec)>;
    let ways: Vec<(Format, Change)> = vec![
        (Format::Zarr2, Box::new(|_| {})),
        (Format::Zarr3, Box::new(|_| {})),
        (Format::NcZarr, Box::new(|_| {})),
        (Format::Zarr3, Box::new(shards)),
        (Format::Zarr2, Box::new(|s| s.filters = vec![codec("shuffle", "{}"), codec("zlib", "{}")])),
        (Format::Zarr3, Box::new(|s| s.filters = vec![codec("shuffle", "{}"), codec("zlib", "{}")])),
        (
            Format::Zarr3,
            Box::new(|s| {
                shards(s);
                s.filters =
                    vec![codec("transpose", "{\"order\":[1,0]}"), codec("gzip", "{}"), codec("crc32c", "{}")];
            }),
        ),
        (Format::Zarr2, Box::new(|s| s.filters = vec![codec("transpose", "{\"order\":[1,0]}")])),
        (Format::Zarr3, Box::new(|s| s.dtype = DType::Integer(IntegerType::new(8, ByteOrder::Big, true)))),
        (Format::Zarr2, Box::new(|s| s.layout = LayoutSpec::Auto)),
    ];
    for (i, (format, change)) in ways.iter().enumerate() {
        let store = made(*format, change);
        let file = open(&store);
        let array = file.array("g/a").unwrap();
        assert_eq!(array.read::<i32>(..).unwrap(), counted(&[7, 10]), "{format} {i}");
        assert_eq!(array.attribute("units").unwrap(), crate::model::Value::Text("m".into()));
        let mut faults = Vec::new();
        file.check(&mut |fault| faults.push(fault.error.to_string()));
        assert_eq!(faults, Vec::<String>::new(), "{format} {i}");
    }
}

#[test]
fn parts_of_chunks_and_shards_keep_the_rest() {
    for (format, sharded) in [(Format::Zarr2, false), (Format::Zarr3, false), (Format::Zarr3, true)] {
        let store = made(format, |spec| {
            if sharded {
                shards(spec)
            }
        });
        let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
        let selection = Selection::parse("[1:4, 2:5]").unwrap();
        transaction.set("g/a", &selection, -1).unwrap();
        // Not visible before the commit.
        assert_eq!(open(&store).array("g/a").unwrap().read::<i32>(..).unwrap(), counted(&[7, 10]));
        let again = transaction.stage("g/a").unwrap_err();
        assert_eq!(again.kind(), ErrorKind::InvalidArgument);
        transaction.commit().unwrap();
        let mut wanted = counted(&[7, 10]);
        for y in 1..4 {
            wanted.data[y * 10 + 2..y * 10 + 5].fill(-1);
        }
        assert_eq!(open(&store).array("g/a").unwrap().read::<i32>(..).unwrap(), wanted);
        assert!(store.list(".hyperslab").unwrap().is_empty());
    }
}

#[test]
fn what_is_cut_off_does_not_come_back() {
    for sharded in [false, true] {
        let store = made(Format::Zarr3, |spec| {
            if sharded {
                shards(spec)
            }
        });
        for shape in [[3, 4], [7, 10]] {
            let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
            let array = ObjectPath::parse("g/a").unwrap();
            transaction.apply(Change::Resize { array, shape: shape.to_vec() }).unwrap();
            transaction.commit().unwrap();
        }
        let read = open(&store).array("g/a").unwrap().read::<i32>(..).unwrap();
        for (i, value) in read.data.iter().enumerate() {
            let wanted = if i / 10 < 3 && i % 10 < 4 { i as i32 } else { 0 };
            assert_eq!(*value, wanted, "{i}");
        }
        // Staged the same way.
        let store = made(Format::Zarr3, |spec| {
            if sharded {
                shards(spec)
            }
        });
        let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
        let mut staged = transaction.stage("g/a").unwrap();
        staged.resize(&[3, 4]).unwrap();
        staged.resize(&[8, 10]).unwrap();
        staged.commit_to(&mut transaction, "g/a").unwrap();
        transaction.commit().unwrap();
        let read = open(&store).array("g/a").unwrap().read::<i32>(..).unwrap();
        assert_eq!(read.shape, [8, 10]);
        for (i, value) in read.data.iter().enumerate() {
            let wanted = if i / 10 < 3 && i % 10 < 4 { i as i32 } else { 0 };
            assert_eq!(*value, wanted, "{i}");
        }
    }
}

#[test]
fn dropped_and_interrupted_transactions() {
    let store = made(Format::Zarr3, |_| {});
    let before: Vec<String> = store.list("").unwrap();
    {
        let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
        transaction.set("g/a", .., 5).unwrap();
        transaction.apply(Change::Delete { path: ObjectPath::parse("g").unwrap() }).unwrap();
    }
    assert_eq!(store.list("").unwrap(), before);
    assert_eq!(open(&store).array("g/a").unwrap().read::<i32>(..).unwrap(), counted(&[7, 10]));
    // Nothing at all of a new one.
    let empty = Arc::new(MemoryStore::new());
    drop(File::create_in(empty.clone(), Format::Zarr3, &CreateOptions::default()).unwrap());
    assert!(empty.list("").unwrap().is_empty());
}

#[test]
fn what_another_writer_changed_is_not_overwritten() {
    let store = made(Format::Zarr2, |_| {});
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    transaction.set("g/a", "[0, 0]", 9).unwrap();
    // Somebody who knows nothing of locks.
    let chunk = store.get("g/a/0.0").unwrap().unwrap();
    store.put("g/a/0.0", chunk, &Default::default()).unwrap();
    let error = transaction.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    assert_eq!(open(&store).array("g/a").unwrap().read::<i32>(..).unwrap(), counted(&[7, 10]));
    // An array that was staged from another look is refused.
    let mut old = StagedArray::over(&open(&store).array("g/a").unwrap()).unwrap();
    old.set("[0, 0]", 9).unwrap();
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    assert_eq!(old.commit_to(&mut transaction, "g/a").unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
fn objects_move_are_copied_and_go() {
    let store = made(Format::Zarr3, shards);
    let path = |text: &str| ObjectPath::parse(text).unwrap();
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    transaction.apply(Change::CopyObject { from: path("g"), to: path("h") }).unwrap();
    transaction.apply(Change::Rename { from: path("g/a"), to: path("h/b") }).unwrap();
    transaction.set_attribute("h/b", "moved", 1i64).unwrap();
    transaction.apply(Change::DeleteAttribute { object: path("h/a"), name: "units".into() }).unwrap();
    assert!(transaction.apply(Change::Delete { path: path("g/a") }).is_err());
    assert!(transaction.apply(Change::CreateGroup { path: path("h") }).is_err());
    assert!(transaction.apply(Change::CreateGroup { path: path("none/h") }).is_err());
    transaction.commit().unwrap();
    let file = open(&store);
    for name in ["h/a", "h/b"] {
        assert_eq!(file.array(name).unwrap().read::<i32>(..).unwrap(), counted(&[7, 10]), "{name}");
    }
    assert!(file.array("g/a").is_err() && file.group("g").is_ok());
    assert!(file.array("h/a").unwrap().attribute("units").is_err());
    let mut faults = Vec::new();
    file.check(&mut |fault| faults.push(fault.error.to_string()));
    assert_eq!(faults, Vec::<String>::new());
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    transaction.apply(Change::Delete { path: path("h") }).unwrap();
    transaction.commit().unwrap();
    assert!(store.list("h").unwrap().is_empty());
}

#[test]
fn texts_fills_and_types() {
    for format in [Format::Zarr2, Format::Zarr3] {
        let store = Arc::new(MemoryStore::new());
        let mut transaction = File::create_in(store.clone(), format, &CreateOptions::default()).unwrap();
        let mut spec = ArraySpec::simple(text(), &[5]).with_chunk(&[2]);
        spec.filters = vec![codec("zlib", "{}")];
        spec.fill = FillSpec::Value(Content::text(b"none"));
        transaction.create_array("t", spec).unwrap();
        let words = ["a", "", "été", "longer text", "z"];
        let staged = crate::staged::Block::from_values(&Values::texts(&[5], &words).unwrap()).unwrap();
        let staged = StagedArray::from_base(staged, &[5], None).unwrap();
        staged.commit_to(&mut transaction, "t").unwrap();
        let double = DType::Float(FloatType::ieee(8, ByteOrder::Little).unwrap());
        for (name, fill) in [("nan", f64::NAN), ("inf", f64::NEG_INFINITY), ("pi", std::f64::consts::PI)] {
            let spec =
                ArraySpec::simple(double.clone(), &[3]).with_chunk(&[2]).with_fill(&fill.to_le_bytes());
            transaction.create_array(name, spec).unwrap();
            transaction.set_attribute(name, "value", fill).unwrap();
        }
        let mut spec = ArraySpec::simple(int32(), &[]);
        spec.layout = LayoutSpec::Auto;
        transaction.create_array("scalar", spec).unwrap();
        let one = StagedArray::full(&[], &[], &int32(), Some(7.into())).unwrap();
        transaction.write("scalar", &one).unwrap();
        transaction.commit().unwrap();
        for key in store.list("").unwrap() {
            let bytes = store.get(&key).unwrap().unwrap();
            let is_document = key.contains(".z") || key.ends_with(".json");
            assert!(
                !is_document || !String::from_utf8_lossy(&bytes).replace("\"NaN\"", "").contains("NaN"),
                "{key}"
            );
        }
        let file = open(&store);
        assert_eq!(file.array("t").unwrap().read_strings(..).unwrap(), words);
        let read = |name: &str| file.array(name).unwrap().read::<f64>(..).unwrap().data[2];
        assert!(
            read("nan").is_nan() && read("inf") == f64::NEG_INFINITY && read("pi") == std::f64::consts::PI
        );
        assert_eq!(file.array("scalar").unwrap().read::<i32>(..).unwrap().data, [7], "{format}");
        // A text that is cut off.
        let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
        for n in [3, 5] {
            let array = ObjectPath::parse("t").unwrap();
            transaction.apply(Change::Resize { array, shape: vec![n] }).unwrap();
        }
        transaction.commit().unwrap();
        let texts = open(&store).array("t").unwrap().read_strings(..).unwrap();
        assert_eq!(texts, ["a", "", "été", "none", "none"]);
    }
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    let store = Arc::new(MemoryStore::new());
    let mut transaction = File::create_in(store, Format::Zarr2, &CreateOptions::default()).unwrap();
    let mut refused = |change: &dyn Fn(&mut ArraySpec)| {
        let mut spec = ArraySpec::simple(int32(), &[4]).with_chunk(&[2]);
        change(&mut spec);
        let change =
            Change::CreateArray { path: ObjectPath::parse("a").unwrap(), spec: Box::new(spec.clone()) };
        assert!(matches!(transaction.support(&change).unwrap(), Support::Dropped(_)));
        transaction.create_array("a", spec).unwrap_err().kind()
    };
    let unsupported = ErrorKind::Unsupported;
    let sequence = DType::VarLen { size: 16, base: Box::new(int32()) };
    assert_eq!(refused(&|spec| spec.dtype = sequence.clone()), unsupported);
    assert_eq!(refused(&|spec| spec.space = Dataspace::Null), unsupported);
    assert_eq!(refused(&|spec| spec.layout = LayoutSpec::Virtual(Vec::new())), unsupported);
    assert_eq!(
        refused(&|spec| spec.filters = vec![codec("hdf5blosc2", "{\"parameters\":[1,0,4,8,5,1,1]}")]),
        unsupported
    );
    let shard = ShardSpec { extents: vec![4], index_at_start: true };
    let layout = LayoutSpec::Chunked { chunk: vec![2], shard: Some(shard) };
    assert_eq!(refused(&|spec| spec.layout = layout.clone()), unsupported);
    let link = crate::model::write::LinkSpec::Soft("x".into());
    let change = Change::CreateLink { path: ObjectPath::parse("l").unwrap(), link };
    assert_eq!(transaction.apply(change).unwrap_err().kind(), unsupported);
    assert_eq!(transaction.create_group(".zarray").unwrap_err().kind(), unsupported);
}

#[test]
fn folders_are_made_beside_and_edits_are_finished_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zarr");
    let make = |overwrite: bool| {
        let options = CreateOptions::default().with_overwrite(overwrite);
        let mut transaction = create(path.as_path(), Format::Zarr3, &options)?;
        transaction.create_array("a", ArraySpec::simple(int32(), &[4]).with_chunk(&[2]))?;
        Ok::<_, Error>(transaction)
    };
    drop(make(false).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    make(false).unwrap().commit().unwrap();
    assert_eq!(make(false).unwrap_err().kind(), ErrorKind::AlreadyExists);
    make(true).unwrap().commit().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let read = || crate::open(path.as_path()).unwrap().array("a").unwrap().read::<i32>(..).unwrap().data;
    let mut transaction = edit(path.as_path(), &OpenOptions::default(), &WriteOptions::default()).unwrap();
    transaction.set("a", .., 3).unwrap();
    assert_eq!(read(), [0; 4]);
    transaction.commit().unwrap();
    assert_eq!(read(), [3; 4]);
    assert!(!path.join(".hyperslab").exists());
    // As a commit leaves it that dies behind its intent.
    std::fs::create_dir_all(path.join(".hyperslab/1")).unwrap();
    std::fs::copy(path.join("a/c/0"), path.join(".hyperslab/1/0")).unwrap();
    std::fs::remove_file(path.join("a/c/0")).unwrap();
    let intent = r#"{"hyperslab_intent":1,"put":[["a/c/0",".hyperslab/1/0"],["a/c/7",".hyperslab/1/1"]],"remove":["a/c/1"]}"#;
    std::fs::write(path.join(".hyperslab/intent.json"), intent).unwrap();
    assert_eq!(read(), [3, 3, 0, 0]);
    assert!(!path.join(".hyperslab").exists());
}

/// In a folder, what was a chunk becomes the place of an array.
#[test]
fn a_group_comes_where_a_chunk_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zarr");
    let mut transaction = create(path.as_path(), Format::Zarr2, &CreateOptions::default()).unwrap();
    transaction.create_array("a", ArraySpec::simple(int32(), &[4]).with_chunk(&[2])).unwrap();
    transaction.commit().unwrap();
    let begin = || edit(path.as_path(), &OpenOptions::default(), &WriteOptions::default()).unwrap();
    let mut transaction = begin();
    transaction.set("a", .., 3).unwrap();
    transaction.commit().unwrap();
    assert!(path.join("a/0").is_file());
    let mut transaction = begin();
    transaction.apply(Change::Delete { path: ObjectPath::parse("a").unwrap() }).unwrap();
    transaction.create_group("a").unwrap();
    transaction.create_array("a/0", ArraySpec::simple(int32(), &[1])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(crate::open(path.as_path()).unwrap().array("a/0").unwrap().read::<i32>(..).unwrap().data, [0]);
}

#[test]
fn netcdf_dimensions_grow_together() {
    let store = Arc::new(MemoryStore::new());
    let mut transaction = File::create_in(store.clone(), Format::NcZarr, &CreateOptions::default()).unwrap();
    let dimension =
        |name: &str, length, unlimited| crate::model::Dimension { name: name.into(), length, unlimited };
    for (name, length, unlimited) in [("t", 2, true), ("x", 3, false)] {
        let dimension = dimension(name, length, unlimited);
        transaction.apply(Change::CreateDimension { group: ObjectPath::root(), dimension }).unwrap();
    }
    transaction.create_group("g").unwrap();
    for name in ["a", "g/b"] {
        let mut spec = ArraySpec::simple(int32(), &[2, 3]).with_chunk(&[2, 3]);
        let at = |name: &str| Some(ObjectPath::root().join(name));
        spec.dimensions = vec![at("t"), at("x")];
        transaction.create_array(name, spec).unwrap();
    }
    transaction.commit().unwrap();
    let mut transaction = File::edit_in(store.clone(), &OpenOptions::default()).unwrap();
    let resize =
        |shape: &[u64]| Change::Resize { array: ObjectPath::root().join("a"), shape: shape.to_vec() };
    assert!(transaction.apply(resize(&[2, 4])).is_err());
    transaction.apply(resize(&[5, 3])).unwrap();
    transaction.commit().unwrap();
    let file = open(&store);
    assert_eq!(file.array("g/b").unwrap().shape(), [5, 3]);
    let view = file.netcdf().unwrap();
    let named: Vec<_> =
        view.dimensions().iter().map(|d| (d.name.to_string(), d.length, d.unlimited)).collect();
    assert_eq!(named, [("t".to_owned(), 5, true), ("x".to_owned(), 3, false)]);
}
