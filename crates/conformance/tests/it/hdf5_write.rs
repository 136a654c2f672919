//! What is written here, the HDF5 library reads, and adds to.

use crate::judges::{self, Judged};
use crate::report;
use conformance::{reference, rewrite};
use hyperslab::codec::{FilterSpec, Scratch};
use hyperslab::dtype::{ByteOrder, CharSet, DType, IntegerType, StringPadding};
use hyperslab::format::hdf5::write::{Hdf5Options, Hdf5Writer, Libver};
use hyperslab::model::write::{
    ArraySpec, AttributeSpec, Change, Content, EncodedChunk, HierarchyWriter, LayoutSpec, LinkSpec,
    ObjectPath,
};
use hyperslab::model::{
    ChunkGrid, Dataspace, Dimension, Hyperslab, NodeKind, SpaceSelection, VirtualMapping,
};
use hyperslab::shape::Coord;
use hyperslab::source::{SyncPolicy, WriteFile, WriteOptions};
use hyperslab::{Limits, OpenOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Runs a script over a list; gives the list that it prints.
fn script(name: &str, folder: &Path, list: &[Value]) -> Vec<String> {
    let pairs = folder.join("pairs.json");
    std::fs::write(&pairs, serde_json::to_vec(list).expect("JSON")).expect("a list");
    let script = conformance::tool::root().join("crates/conformance/python").join(name);
    let output = Command::new(reference::python()).arg(script).arg(&pairs).output().expect("Python starts");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let wrong: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
    wrong.iter().map(|w| w.as_str().unwrap_or_default().to_owned()).collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = conformance::tool::root().join("target/written").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn write_anew(from: &Path, to: &Path, options: Hdf5Options) -> hyperslab::Result<Vec<String>> {
    let file = hyperslab::open(from.to_str().expect("text"))?;
    let target = Arc::new(WriteFile::create(to, &WriteOptions::new().with_overwrite(true))?);
    let mut writer: Box<dyn hyperslab::model::write::HierarchyWriter> =
        Box::new(Hdf5Writer::create(target, options, Limits::default())?);
    let left_out = rewrite::rewrite(&file, writer.as_mut())?;
    writer.commit()?;
    Ok(left_out)
}

/// Whether everything is tried, and not a part of it that differs from file to file.
fn thorough() -> bool {
    std::env::var_os("HYPERSLAB_THOROUGH").is_some()
}

/// The files of the matrix, each beside what it names in a folder of its own kind.
fn matrix_in(folder: &Path) -> Vec<PathBuf> {
    let matrix = reference::generated("matrix.py", &[]);
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&matrix).expect("the matrix").map(|e| e.expect("an entry").path()).collect();
    names.sort();
    for path in names.iter().filter(|p| p.is_file()) {
        std::fs::copy(path, folder.join(path.file_name().expect("a name"))).expect("a copy");
    }
    names.retain(|p| p.extension().is_some_and(|e| e == "h5"));
    names
}

#[test]
fn every_feature_is_written_as_the_library_reads_it() {
    let libvers = [
        ("earliest", Libver::Earliest),
        ("v18", Libver::V18),
        ("v110", Libver::V110),
        ("latest", Libver::Latest),
    ];
    let (mut wrong, mut total, mut judged) = (Vec::new(), 0, Judged::default());
    for (turn, (label, libver)) in libvers.into_iter().enumerate() {
        let folder = folder(label);
        let mut pairs = Vec::new();
        for (i, from) in matrix_in(&folder).iter().enumerate() {
            if i % libvers.len() != turn && !thorough() {
                continue;
            }
            let name = from.file_stem().expect("a name").to_string_lossy().into_owned();
            let to = folder.join(from.file_name().expect("a name"));
            total += 1;
            let options = Hdf5Options::new().with_libver(libver).with_track_order(i % 8 > 3);
            match write_anew(from, &to, options) {
                Ok(left_out) => {
                    left_out.iter().for_each(|l| eprintln!("{label}/{name}: left out {l}"));
                    let paths: Vec<String> =
                        left_out.iter().map(|l| l.split(':').next().unwrap_or(l).to_owned()).collect();
                    // What was never written, others show as whatever was in memory. A type in a group below is not there yet
                    // when the array of it is made.
                    let defined =
                        left_out.is_empty() && !name.starts_with("fill_never") && name != "committed";
                    // The judges are of HDF5 1.10. A half of the files is enough for every day.
                    if defined
                        && libver != Libver::Latest
                        && ((i / libvers.len()).is_multiple_of(2) || thorough())
                    {
                        judged.add_same(format!("{label}/{name}"), &to, from);
                    }
                    pairs.push(serde_json::json!([format!("{label}/{name}"), from, to, paths]));
                }
                Err(e) => wrong.push(format!("{label}/{name}: {e}")),
            }
        }
        if libver != Libver::Latest {
            wrong.extend(std::mem::take(&mut judged).verdict(&folder, 4, &judges::NETCDF4));
        }
        wrong.extend(script("hdf5_write.py", &folder, &pairs));
    }
    report("written HDF5", total, &wrong);
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).expect("a path")
}

fn number(value: i32) -> (DType, Content) {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    (dtype, Content::Fixed(value.to_le_bytes().to_vec().into()))
}

/// Sets 12 attributes on an object, so that they move to a heap where one is in use.
fn attributes(writer: &mut dyn HierarchyWriter, object: &ObjectPath) -> hyperslab::Result<()> {
    for i in 0..12 {
        let (dtype, content) = number(i);
        let name = format!("edited {i}").as_str().into();
        let attribute = AttributeSpec { name, dtype, committed: None, space: Dataspace::Scalar, content };
        writer.apply(Change::SetAttribute { object: object.clone(), attribute })?;
    }
    Ok(())
}

/// Changes a file in every way. Gives the arrays that grew and by how many rows.
fn edit(to: &Path) -> hyperslab::Result<Vec<(String, u64)>> {
    let file = hyperslab::open(to.to_str().expect("text"))?;
    let mut paths: Vec<(String, bool)> = file
        .paths()
        .into_iter()
        .map(|(node, path)| (path, file.hierarchy().kind(&node).is_ok_and(|k| k == NodeKind::Array)))
        .collect();
    paths.sort();
    let target = Arc::new(WriteFile::edit(to, &WriteOptions::new())?);
    let mut writer: Box<dyn HierarchyWriter> = Box::new(Hdf5Writer::edit(target, Limits::default())?);
    let mut grown = Vec::new();
    let w = writer.as_mut();
    w.apply(Change::CreateGroup { path: path("~edited") })?;
    for i in 0..20 {
        let (dtype, content) = number(i);
        let at = path(&format!("~edited/d{i}"));
        let mut spec = ArraySpec::new(dtype, Dataspace::Scalar);
        if i % 2 == 0 {
            spec.layout = LayoutSpec::Compact;
        }
        w.apply(Change::CreateArray { path: at.clone(), spec: Box::new(spec) })?;
        let Content::Fixed(bytes) = content else { continue };
        w.write_chunks(&at, vec![EncodedChunk { coord: Coord::new(), bytes: Some(bytes), mask: 0 }])?;
    }
    w.apply(Change::Delete { path: path("~edited/d3") })?;
    w.apply(Change::Rename { from: path("~edited/d4"), to: path("~edited/moved") })?;
    w.apply(Change::CopyObject { from: path("~edited/d5"), to: path("~edited/copied") })?;
    let first = paths.iter().find(|(p, is_array)| *is_array && !p.contains("hex:"));
    if let Some((first, _)) = first {
        w.apply(Change::CreateLink { path: path("~edited/hard"), link: LinkSpec::Hard(path(first)) })?;
        w.apply(Change::CreateLink {
            path: path("~edited/soft"),
            link: LinkSpec::Soft(first.as_str().into()),
        })?;
    }
    for (at, is_array) in paths {
        let here = path(&at);
        attributes(w, &here)?;
        w.apply(Change::DeleteAttribute { object: here.clone(), name: "edited 3".into() })?;
        if !is_array {
            continue;
        }
        let array = file.array(&at)?;
        let (ChunkGrid::Regular(_), Dataspace::Simple { dims, max }) =
            (&array.meta().grid, &array.meta().space)
        else {
            continue;
        };
        if max.first() != Some(&None) || !matches!(array.dtype(), DType::Integer(t) if t.is_whole()) {
            continue;
        }
        let mut shape = dims.clone();
        let rows = 2 * array.meta().chunk_shape()[0] + 1;
        shape[0] += rows;
        if w.apply(Change::Resize { array: here.clone(), shape }).is_err() {
            continue;
        }
        // New rows of ones, in chunks that hold nothing else.
        let layout = w.layout(&here)?;
        let from = dims[0].div_ceil(layout.chunk[0]);
        let size: u64 = layout.chunk.iter().product();
        let mut element = vec![0; layout.dtype.size()];
        let big = matches!(&layout.dtype, DType::Integer(t) if t.order == ByteOrder::Big);
        let at_one = if big { element.len() - 1 } else { 0 };
        element[at_one] = 1;
        let plain: Vec<u8> = element.repeat(size as usize);
        let mut bytes = Vec::new();
        let Ok(mask) = layout.pipeline.encode(&plain, &mut bytes, &mut Scratch::default()) else { continue };
        let grid = layout.grid();
        let mut chunks = Vec::new();
        for n in 0..layout.count()? {
            let mut coord: Coord = grid.as_slice().into();
            let mut rest = n;
            for c in coord.iter_mut().rev() {
                let extent = *c;
                *c = rest % extent;
                rest /= extent;
            }
            if coord[0] >= from {
                chunks.push(EncodedChunk { coord, bytes: Some(bytes.clone().into()), mask });
            }
        }
        w.write_chunks(&here, chunks)?;
        grown.push((at, from * layout.chunk[0]));
    }
    writer.commit()?;
    let file = hyperslab::open(to.to_str().expect("text"))?;
    let mut faults = Vec::new();
    file.check(&mut |f| faults.push(f.error));
    match faults.pop() {
        Some(e) => Err(e),
        None => Ok(grown),
    }
}

#[test]
fn files_of_the_library_are_changed_in_place() {
    let folder = folder("edited");
    let (mut pairs, mut wrong, mut total, mut judged) = (Vec::new(), Vec::new(), 0, Judged::default());
    for (i, from) in matrix_in(&folder).iter().enumerate() {
        if i % 3 != 0 && !thorough() {
            continue;
        }
        let name = from.file_stem().expect("a name").to_string_lossy().into_owned();
        let to = folder.join(from.file_name().expect("a name"));
        total += 1;
        match edit(&to) {
            Ok(grown) => {
                judged.add_changed(&name, &to, from);
                pairs.push(serde_json::json!([name, from, to, grown]));
            }
            Err(e) if e.kind() == hyperslab::ErrorKind::Unsupported => {
                eprintln!("{name}: refused: {e}");
                let same = std::fs::read(from).expect("the file") == std::fs::read(&to).expect("the copy");
                if !same {
                    wrong.push(format!("{name}: refused, but changed"));
                }
            }
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
    }
    wrong.extend(judged.verdict(&folder, usize::MAX, &judges::HDF5));
    wrong.extend(script("hdf5_edit.py", &folder, &pairs));
    report("edited HDF5", total, &wrong);
}

fn dimension(writer: &mut dyn HierarchyWriter, group: &str, name: &str, length: u64, unlimited: bool) {
    let dimension = Dimension { name: name.into(), length, unlimited };
    writer.apply(Change::CreateDimension { group: path(group), dimension }).expect("a dimension");
}

/// An array of integers over dimensions of the file, filled with what `value` says.
fn variable(
    writer: &mut dyn HierarchyWriter,
    at: &str,
    axes: &[(&str, u64, bool)],
    value: impl Fn(u64) -> i32,
) {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let dims: Vec<u64> = axes.iter().map(|a| a.1).collect();
    let max = axes.iter().map(|a| (!a.2).then_some(a.1)).collect();
    let mut spec = ArraySpec::new(dtype, Dataspace::Simple { dims: dims.clone(), max });
    if axes.iter().any(|a| a.2) {
        let chunk = axes.iter().map(|a| if a.2 { 1 } else { a.1 }).collect();
        spec.layout = LayoutSpec::Chunked { chunk, shard: None };
    }
    spec.dimensions = axes.iter().map(|a| Some(path(a.0))).collect();
    let at = path(at);
    writer.apply(Change::CreateArray { path: at.clone(), spec: Box::new(spec) }).expect("an array");
    write_all(writer, &at, value);
}

/// Writes every chunk of an array whose chunks are whole rows.
fn write_all(writer: &mut dyn HierarchyWriter, at: &ObjectPath, value: impl Fn(u64) -> i32) {
    let layout = writer.layout(at).expect("a layout");
    let grid = layout.grid();
    let mut chunks = Vec::new();
    let size: u64 = layout.chunk.iter().product();
    for n in 0..layout.count().expect("chunks") {
        let mut coord: Coord = grid.as_slice().into();
        let mut rest = n;
        for c in coord.iter_mut().rev() {
            let extent = *c;
            *c = rest % extent;
            rest /= extent;
        }
        let bytes: Vec<u8> = (n * size..(n + 1) * size).flat_map(|i| value(i).to_le_bytes()).collect();
        chunks.push(EncodedChunk { coord, bytes: Some(bytes.into()), mask: 0 });
    }
    writer.write_chunks(at, chunks).expect("chunks are written");
}

#[test]
fn netcdf_reads_and_grows_what_is_written() {
    let folder = folder("netcdf");
    let file = folder.join("new.nc");
    let target = Arc::new(WriteFile::create(&file, &WriteOptions::new()).expect("a file"));
    let options = Hdf5Options::netcdf4().with_properties("version=2,hyperslab=0.1");
    let writer = Hdf5Writer::create(target, options, Limits::default()).expect("a writer");
    let mut writer: Box<dyn HierarchyWriter> = Box::new(writer);
    let w = writer.as_mut();
    dimension(w, "/", "t", 2, true);
    dimension(w, "/", "x", 4, false);
    dimension(w, "/", "lonely", 3, false);
    variable(w, "x", &[("x", 4, false)], |i| 10 * i as i32);
    variable(w, "temp", &[("t", 2, true), ("x", 4, false)], |i| i as i32);
    variable(w, "deep", &[("t", 2, true), ("x", 4, false), ("t", 2, true)], |_| 0);
    // Called as a dimension, and not of it.
    variable(w, "lonely", &[("x", 4, false)], |_| 1);
    w.apply(Change::CreateGroup { path: path("g") }).expect("a group");
    dimension(w, "g", "z", 5, false);
    variable(w, "g/v", &[("x", 4, false), ("g/z", 5, false)], |_| 3);
    let attribute = AttributeSpec {
        name: "units".into(),
        dtype: DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 },
        committed: None,
        space: Dataspace::Scalar,
        content: Content::text(b"K"),
    };
    w.apply(Change::SetAttribute { object: path("temp"), attribute }).expect("an attribute");
    writer.commit().expect("a commit");
    let mut judged = Judged::default();
    judged.add("new", &file);
    let mut wrong = judged.verdict(&folder, 1, &judges::NETCDF4);
    wrong.extend(script("hdf5_netcdf.py", &folder, &[serde_json::json!(["new", file])]));
    if wrong.is_empty() {
        let target = Arc::new(WriteFile::edit(&file, &WriteOptions::new()).expect("a file"));
        let writer = Hdf5Writer::edit(target, Limits::default()).expect("a writer");
        let mut writer: Box<dyn HierarchyWriter> = Box::new(writer);
        let w = writer.as_mut();
        w.apply(Change::Resize { array: path("temp"), shape: vec![6, 4] }).expect("more rows");
        let layout = w.layout(&path("temp")).expect("a layout");
        let row: Vec<u8> = [9i32; 4].iter().flat_map(|v| v.to_le_bytes()).collect();
        let coord: Coord = [5 / layout.chunk[0], 0].as_slice().into();
        w.write_chunks(&path("temp"), vec![EncodedChunk { coord, bytes: Some(row.into()), mask: 0 }])
            .expect("a row");
        w.apply(Change::Resize { array: path("t"), shape: vec![6] }).expect("a longer dimension");
        dimension(w, "/", "n", 2, false);
        variable(w, "late", &[("t", 6, true), ("added", 6, false), ("n", 2, false)], |_| 5);
        writer.commit().expect("a commit");
        wrong = judged.verdict(&folder, 1, &judges::NETCDF4);
        wrong.extend(script("hdf5_netcdf.py", &folder, &[serde_json::json!(["grown", file])]));
    }
    report("written netCDF-4", 2, &wrong);
}

#[test]
fn arrays_that_grow_in_many_sessions_stay_whole() {
    let folder = folder("rows");
    let (mut list, mut wrong, mut judged) = (Vec::new(), Vec::new(), Judged::default());
    let durable = WriteOptions::new().with_sync(SyncPolicy::None);
    for (label, libver) in [("earliest", Libver::Earliest), ("v110", Libver::V110)] {
        let file = folder.join(format!("{label}.h5"));
        let target = Arc::new(WriteFile::create(&file, &durable).expect("a file"));
        let options = Hdf5Options::new().with_libver(libver);
        let mut writer: Box<dyn HierarchyWriter> =
            Box::new(Hdf5Writer::create(target, options, Limits::default()).expect("a writer"));
        // A version 1 B-tree in the earliest file, else an extensible array and a version 2 B-tree.
        let arrays = [("line", vec![None]), ("plane", vec![None, None]), ("filtered", vec![None, Some(2)])];
        for (name, max) in &arrays {
            let (dtype, _) = number(0);
            let dims: Vec<u64> = max.iter().enumerate().map(|(axis, _)| u64::from(axis > 0) * 2).collect();
            let mut spec = ArraySpec::new(dtype, Dataspace::Simple { dims, max: max.clone() });
            let chunk = max.iter().map(|_| 1).collect();
            spec.layout = LayoutSpec::Chunked { chunk, shard: None };
            if *name == "filtered" {
                let parameters = vec![4];
                spec.filters =
                    vec![FilterSpec::Hdf5 { id: 2, flags: 0, name: Default::default(), parameters }];
            }
            writer.apply(Change::CreateArray { path: path(name), spec: Box::new(spec) }).expect("an array");
        }
        writer.commit().expect("a commit");
        let (mut rows, mut lengths) = (0, Vec::new());
        for session in 0..50u64 {
            let target = Arc::new(WriteFile::edit(&file, &durable).expect("a file"));
            let mut writer: Box<dyn HierarchyWriter> =
                Box::new(Hdf5Writer::edit(target, Limits::default()).expect("a writer"));
            let more = 1 + session * 7 % 90;
            for (name, max) in &arrays {
                let at = path(name);
                let mut shape = vec![rows + more];
                shape.extend(max.iter().skip(1).map(|_| 2));
                writer.apply(Change::Resize { array: at.clone(), shape }).expect("more rows");
                let chunk = |row: u64, column: u64| EncodedChunk {
                    coord: [row, column].iter().take(max.len()).copied().collect(),
                    bytes: Some((row as i32).to_le_bytes().to_vec().into()),
                    mask: 0,
                };
                let columns = if max.len() == 1 { 1 } else { 2 };
                let chunks = (rows..rows + more).flat_map(|r| (0..columns).map(move |c| (r, c)));
                // From behind, as any order will do.
                let chunks = chunks.rev().map(|(r, c)| chunk(r, c)).collect();
                writer.write_chunks(&at, chunks).expect("chunks are written");
            }
            writer.commit().expect("a commit");
            rows += more;
            lengths.push(std::fs::metadata(&file).expect("the file").len());
        }
        // Written anew each time, the indexes alone would take many times as much.
        let length = lengths.last().copied().unwrap_or(0);
        if length > 800_000 {
            wrong.push(format!("{label}: {length} bytes for {rows} rows"));
        }
        judged.add(label, &file);
        list.push(serde_json::json!(["rows", file]));
    }
    wrong.extend(judged.verdict(&folder, usize::MAX, &judges::HDF5));
    wrong.extend(script("hdf5_netcdf.py", &folder, &list));
    report("arrays that grow", list.len(), &wrong);
}

#[test]
fn what_is_rare_is_changed_and_copied_too() {
    let folder = folder("rare");
    let file = folder.join("rare.h5");
    let text = file.to_str().expect("text");
    let mut wrong = script("hdf5_rare.py", &folder, &[serde_json::json!(["make", file])]);
    let begin = || hyperslab::edit(text, &OpenOptions::default(), &WriteOptions::new()).expect("an edit");
    let unset =
        || hyperslab::open(text).expect("the file").array("unset").expect("it").read_raw("...").expect("it");
    let before = unset().bytes;
    let mut w = begin();
    for name in ["edges", "both", "fixed"] {
        let copy = Change::CopyObject { from: path(name), to: path(&format!("{name} cut")) };
        w.apply(copy).expect("a copy");
    }
    w.apply(Change::CopyObject { from: path("g"), to: path("copied") }).expect("a copy");
    let resize = |w: &mut hyperslab::Transaction, name: &str, shape: &[u64]| {
        let resize = Change::Resize { array: path(name), shape: shape.to_vec() };
        w.apply(resize).expect("other extents");
    };
    for name in ["edges", "both", "fixed"] {
        resize(&mut w, name, &[12, 9]);
        resize(&mut w, name, &[13, 9]);
    }
    resize(&mut w, "texts", &[9]);
    let mut spec = ArraySpec::new(
        DType::Integer(IntegerType::new(8, ByteOrder::Little, true)),
        Dataspace::Simple { dims: vec![5], max: vec![Some(5)] },
    );
    let all = SpaceSelection::Regular(Hyperslab {
        start: [0].as_slice().into(),
        stride: [5].as_slice().into(),
        count: vec![Some(1)],
        block: vec![Some(5)],
    });
    spec.layout = LayoutSpec::Virtual(vec![VirtualMapping {
        file: ".".into(),
        dataset: "g/d".into(),
        source_selection: all.clone(),
        selection: all,
    }]);
    w.apply(Change::CreateArray { path: path("virtual"), spec: Box::new(spec) }).expect("a virtual dataset");
    w.commit().expect("a commit");
    let mut w = begin();
    for name in ["edges", "both", "fixed"] {
        w.set(name, "..., 2", 5i64).expect("a column");
        let mut cut = w.stage(&format!("{name} cut")).expect("the copy");
        cut.set("..., 2", 5i64).expect("a column");
        cut.resize(&[6, 5]).expect("other extents");
        w.write(&format!("{name} cut"), &cut).expect("the copy");
    }
    w.set("texts", "2", "set").expect("a text");
    w.set("unset", "0", "zero").expect("a text");
    w.commit().expect("a commit");
    if unset().bytes[16..32] != before[16..32] {
        wrong.push("a text that nobody wrote is written when its neighbour is".to_owned());
    }
    wrong.extend(script("hdf5_rare.py", &folder, &[serde_json::json!(["edited", file])]));
    report("rare HDF5", 1, &wrong);
}
