//! Zarr written by many at the same time, into zip files and buckets, and edited in histories.

use crate::report;
use crate::s3::Moto;
use conformance::reference;
use conformance::rng::Rng;
use hyperslab::dtype::DType;
use hyperslab::model::write::{ArraySpec, Change, LayoutSpec, ObjectPath, ShardSpec};
use hyperslab::source::Store;
use hyperslab::source::write::WriteOptions;
use hyperslab::staged::{StagedArray, Values};
use hyperslab::write::CreateOptions;
use hyperslab::{Format, OpenOptions, Selection, Transaction, change, create, edit};
use std::path::Path;
use std::process::{Command, Output};

fn numpy(code: &str) -> DType {
    DType::from_numpy(code).expect("a type")
}

fn run(arguments: &[&str], environment: &[(&str, String)]) -> Output {
    let mut program = Command::new(conformance::tool::path());
    program.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value.as_str())));
    program.output().expect("the program starts")
}

/// Runs the program, which has to succeed, and gives what it prints.
fn ask(arguments: &[&str], environment: &[(&str, String)]) -> String {
    let output = run(arguments, environment);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the script that reads stores says of those in a folder: `COMMAND FOLDER`.
fn judge(command: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/zarr_writers.py");
    let output = Command::new(reference::python()).arg(script).arg(command).arg(folder).output();
    let output = output.expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines = printed.lines();
    let total = lines.next().and_then(|n| n.parse().ok()).expect("a number");
    let wrong: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    report(command, total, &wrong);
}

fn sharded(code: &str, shape: &[u64], chunk: &[u64], shard: &[u64]) -> ArraySpec {
    let mut spec = ArraySpec::simple(numpy(code), shape);
    let shard = ShardSpec { extents: shard.to_vec(), index_at_start: false };
    spec.layout = LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: Some(shard) };
    spec
}

/// Blocks of cells that cut through chunks and shards, each as a selection.
fn blocks(length: u64, step: u64) -> Vec<String> {
    let starts = || (0..length).step_by(step as usize);
    let span = |start: u64| format!("{start}:{}", (start + step).min(length));
    starts().flat_map(|r| starts().map(move |c| format!("[{}, {}]", span(r), span(c)))).collect()
}

/// R7: cells written by programs and threads at the same time, of which no two have a cell in common, and many a shard.
#[test]
fn programs_and_threads_lose_no_cells_of_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.zarr");
    for format in [Format::Zarr3, Format::Zarr2] {
        let options = CreateOptions::default().with_overwrite(true);
        let mut transaction = create(path.as_path(), format, &options).expect("a new store");
        let spec = match format {
            Format::Zarr3 => sharded("<i4", &[50, 50], &[8, 8], &[24, 24]),
            _ => ArraySpec::simple(numpy("<i4"), &[50, 50]).with_chunk(&[24, 24]),
        };
        transaction.create_array("a", spec).expect("an array");
        transaction.commit().expect("a commit");
        let blocks = blocks(50, 10);
        std::thread::scope(|scope| {
            for worker in 0..5 {
                let (blocks, path) = (&blocks, &path);
                scope.spawn(move || {
                    for block in blocks.iter().skip(worker).step_by(5) {
                        if worker < 3 {
                            ask(&["set", &format!("{}::/a{block}=1", path.display())], &[]);
                            continue;
                        }
                        let selection = Selection::parse(block).expect("a selection");
                        let (open, write) = (OpenOptions::default(), WriteOptions::default());
                        change(path.as_path(), &open, &write, |t| t.set("a", &selection, 1).map(drop))
                            .expect("a change");
                    }
                });
            }
        });
        let file = hyperslab::open(path.as_path()).expect("a store");
        let data = file.array("a").expect("an array").read::<i32>(..).expect("elements").data;
        assert_eq!(data.iter().filter(|&&v| v == 1).count(), 2500, "{format}");
        assert!(!path.join(".hyperslab").exists());
    }
}

fn environment(moto: &Moto) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", moto.endpoint()),
        ("AWS_ACCESS_KEY_ID", "key".into()),
        ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ("AWS_REGION", "us-east-1".into()),
    ]
}

/// Writes the objects of a store into a folder.
fn fetch(store: &dyn Store, folder: &Path) {
    for key in store.list("").expect("keys") {
        let path = folder.join(&key);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, store.get(&key).expect("bytes").expect("an object")).expect("a file");
    }
}

/// R7 again, where no writer can keep another one out: by puts under preconditions alone.
#[test]
fn programs_lose_no_cells_of_a_bucket() {
    let moto = Moto::start();
    let environment = environment(&moto);
    let address = "s3://bucket/cells.zarr";
    let folder = tempfile::tempdir().expect("a folder");
    let cdl = folder.path().join("a.cdl");
    std::fs::write(&cdl, "netcdf a { dimensions: y = 30; x = 30; variables: int a(y, x);\n  a:_ChunkSizes = 8, 8; a:_Storage = \"chunked\"; }\n")
        .expect("a text");
    ask(&["create", cdl.to_str().expect("UTF-8"), "-o", address, "--kind", "zarr3"], &environment);
    let blocks = blocks(30, 10);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (blocks, environment) = (&blocks, &environment);
            scope.spawn(move || {
                for block in blocks.iter().skip(worker).step_by(3) {
                    ask(&["set", &format!("{address}::/a{block}=1")], environment);
                }
            });
        }
    });
    let all = ask(&["get", &format!("{address}::/a"), "--format", "json"], &environment);
    assert_eq!(all.matches('1').count(), 900, "{all}");
    let left = moto.store("cells.zarr").list(".hyperslab").expect("keys");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_bucket_is_copied_to_and_edited() {
    let moto = Moto::start();
    let environment = environment(&moto);
    let root = conformance::tool::root();
    let source = root.join("crates/hyperslab/tests/data/netcdf4.nc").display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let store = |name: &str| format!("s3://bucket/{name}");
    for kind in ["zarr3", "zarr2", "nczarr"] {
        let address = store(&format!("{kind}.zarr"));
        let output = run(&["copy", &source, &address, "--to", kind], &environment);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let get = |file: &str| ask(&["get", &format!("{file}::/long"), "--format", "json"], &environment);
        assert_eq!(get(&address), get(&source), "{kind}");
        // Not over what is there, and wholly if that is said.
        let again = run(&["copy", &source, &address, "--to", kind], &environment);
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(!again.status.success() && said.contains("E_EXISTS"), "{said}");
    }
    let address = store("zarr3.zarr");
    let keys = moto.store("zarr3.zarr").list("").expect("keys").len();
    ask(&["copy", &source, &address, "--to", "zarr2", "--overwrite"], &environment);
    let now = moto.store("zarr3.zarr").list("").expect("keys");
    assert!(
        now.iter().all(|key| !key.ends_with("zarr.json") && !key.starts_with(".hyperslab")),
        "{keys} {now:?}"
    );
    // Made of a text, and changed by every verb.
    let cdl = folder.path().join("b.cdl");
    std::fs::write(
        &cdl,
        "netcdf b { dimensions: t = UNLIMITED; variables: short v(t); v:units = \"m\"; data: v = 1, 2, 3; }",
    )
    .expect("a text");
    let address = store("b.zarr");
    ask(&["create", cdl.to_str().expect("UTF-8"), "-o", &address, "--kind", "zarr3"], &environment);
    let v = format!("{address}::/v");
    ask(&["set", &format!("{v}[1]=7")], &environment);
    ask(&["attr", &v, "units", "km"], &environment);
    ask(&["resize", &v, "5"], &environment);
    ask(&["set", &format!("{v}[4]=9")], &environment);
    ask(&["mv", &v, "/w"], &environment);
    let w = format!("{address}::/w");
    assert_eq!(ask(&["get", &w, "--format", "json"], &environment).replace(['\n', ' '], "")[..7], *"[1,7,3,");
    fetch(&moto.store("b.zarr"), &folder.path().join("bucket/b.zarr"));
    judge("bucket", &folder.path().join("bucket"));
    ask(&["rm", &w], &environment);
    let left = moto.store("b.zarr").list("").expect("keys");
    assert_eq!(left, ["zarr.json"], "nothing but the root");
}

fn counted(transaction: &mut Transaction, name: &str, spec: ArraySpec) {
    let (dtype, shape) = (spec.dtype.clone(), spec.space.dims().to_vec());
    let numbers: Vec<i64> = (0..shape.iter().product::<u64>() as i64).map(|i| i * 7 % 101).collect();
    transaction.create_array(name, spec).expect("an array");
    let chunk: Vec<u64> = shape.iter().map(|n| (*n).max(1)).collect();
    let mut staged = StagedArray::full(&shape, &chunk, &dtype, None).expect("an array");
    staged.set(.., Values::new(&shape, &numbers).expect("numbers")).expect("set");
    staged.commit_to(transaction, name).expect("written");
}

/// Zip files, new and written anew, short and with more entries than their directory could count once.
#[test]
fn zip_files_are_read_by_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let options = CreateOptions::default();
    for (name, format) in
        [("v2.zarr.zip", Format::Zarr2), ("v3.zarr.zip", Format::Zarr3), ("nc.zarr.zip", Format::NcZarr)]
    {
        let mut transaction = create(at(name).as_path(), format, &options).expect("a new zip file");
        transaction.create_group("g").expect("a group");
        counted(&mut transaction, "g/a", ArraySpec::simple(numpy("<i4"), &[7, 10]).with_chunk(&[2, 3]));
        counted(&mut transaction, "b", ArraySpec::simple(numpy("<f8"), &[300, 300]).with_chunk(&[300, 300]));
        transaction.commit().expect("a commit");
        let before = std::fs::read(at(name)).expect("a file");
        let begin =
            || edit(at(name).as_path(), &OpenOptions::default(), &WriteOptions::default()).expect("an edit");
        // Given up, or failed: the old file.
        let mut transaction = begin();
        transaction.set("g/a", .., 5).expect("set");
        drop(transaction);
        assert_eq!(std::fs::read(at(name)).expect("a file"), before);
        let mut transaction = begin();
        transaction.set("g/a", .., 5).expect("set");
        std::fs::rename(at(name), at("elsewhere")).expect("a rename");
        std::fs::write(at(name), "somebody else's").expect("a file");
        transaction.commit().expect_err("it is another file");
        assert_eq!(std::fs::read(at(name)).expect("a file"), b"somebody else's");
        std::fs::rename(at("elsewhere"), at(name)).expect("a rename");
        // One array of it, and its attribute.
        let mut transaction = begin();
        transaction.set("g/a", Selection::parse("[3]").expect("a selection"), 100).expect("set");
        transaction.set_attribute("g/a", "edited", 1).expect("an attribute");
        transaction.commit().expect("a commit");
    }
    let mut transaction = create(at("many.zarr.zip").as_path(), Format::Zarr2, &options).expect("a zip file");
    counted(&mut transaction, "many", ArraySpec::simple(numpy("|u1"), &[67_000]).with_chunk(&[1]));
    transaction.commit().expect("a commit");
    let many = at("many.zarr.zip");
    let (open, write) = (OpenOptions::default(), WriteOptions::default());
    change(many.as_path(), &open, &write, |t| t.set("many", 66_999u64.., 77).map(drop)).expect("a change");
    judge("zip", folder.path());
}

/// Random histories of structural changes: consolidated metadata says what the documents say, and all of it is JSON.
#[test]
fn consolidated_metadata_is_fresh_after_every_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Rng::new(7, 0);
    let mut stores = 0;
    for format in [Format::Zarr2, Format::Zarr3, Format::NcZarr] {
        let path = folder.path().join(format!("{format}.zarr"));
        let mut transaction = create(path.as_path(), format, &CreateOptions::default()).expect("a store");
        transaction.create_group("g").expect("a group");
        transaction.create_group("g/h").expect("a group");
        transaction.commit().expect("a commit");
        let mut groups = vec![String::new(), "g".to_owned(), "g/h".to_owned()];
        let mut arrays: Vec<(String, u64)> = Vec::new();
        for step in 0..40 {
            let (open, write) = (OpenOptions::default(), WriteOptions::default());
            let mut t = edit(path.as_path(), &open, &write).expect("an edit");
            let pick = |random: &mut Rng, n: usize| random.below(n);
            let group = groups[pick(&mut random, groups.len())].clone();
            let inside = |name: String| if group.is_empty() { name } else { format!("{group}/{name}") };
            let parse = |path: &str| ObjectPath::parse(path).expect("a path");
            match random.below(8) {
                0 => {
                    groups.push(inside(format!("g{step}")));
                    t.create_group(groups.last().expect("a group")).expect("a group");
                }
                1 | 2 => {
                    let length = 5 + random.below(6) as u64;
                    let name = inside(format!("a{step}"));
                    let mut spec = match format {
                        Format::Zarr3 if step % 2 == 0 => sharded("<f4", &[length], &[2], &[4]),
                        _ => ArraySpec::simple(numpy("<f4"), &[length]).with_chunk(&[3]),
                    };
                    let fill = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5][pick(&mut random, 4)];
                    spec = spec.with_fill(&fill.to_le_bytes());
                    counted(&mut t, &name, spec);
                    arrays.push((name, length));
                }
                3 | 4 => {
                    let object = match arrays.get(pick(&mut random, arrays.len().max(1))) {
                        Some((name, _)) if step % 2 == 0 => name.clone(),
                        _ => group.clone(),
                    };
                    let value = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5][pick(&mut random, 4)];
                    let name = format!("x{}", random.below(3));
                    if step % 3 == 0 {
                        t.set_attribute(&object, &name, [value, 2.0].as_slice()).expect("an attribute");
                    } else {
                        t.set_attribute(&object, &name, value).expect("an attribute");
                    }
                }
                5 if !arrays.is_empty() && format != Format::NcZarr => {
                    let at = pick(&mut random, arrays.len());
                    let length = random.below(12) as u64;
                    let array = parse(&arrays[at].0);
                    t.apply(Change::Resize { array, shape: vec![length] }).expect("a resize");
                    arrays[at].1 = length;
                }
                6 if !arrays.is_empty() => {
                    let (name, _) = arrays.swap_remove(pick(&mut random, arrays.len()));
                    t.apply(Change::Delete { path: parse(&name) }).expect("a removal");
                }
                7 if !arrays.is_empty() => {
                    let at = pick(&mut random, arrays.len());
                    let to = inside(format!("m{step}"));
                    t.apply(Change::Rename { from: parse(&arrays[at].0), to: parse(&to) }).expect("a move");
                    arrays[at].0 = to;
                }
                _ => {
                    let to = inside(format!("c{step}"));
                    t.create_group(&to).expect("a group");
                    groups.push(to);
                }
            }
            t.commit().expect("a commit");
            let copy = folder.path().join(format!("{stores:03}-{format}.zarr"));
            stores += 1;
            copy_folder(&path, &copy);
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }
    judge("consolidated", folder.path());
}

/// Documents of a store, without chunks.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a name");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else if entry.file_name().to_string_lossy().contains('z') {
            std::fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// What xarray makes of files copied from netCDF, and appends: by it to ours, by us to its.
#[test]
fn xarray_opens_and_extends_what_is_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/zarr_writers.py");
    let python = |command: &str| {
        let output = Command::new(reference::python()).arg(&script).arg(command).arg(folder.path()).output();
        let output = output.expect("Python starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    };
    python("xarray-make");
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (kind, version) in [("zarr2", 2), ("zarr3", 3)] {
        ask(&["copy", &at("a.nc"), &at(&format!("ours{version}.zarr")), "--to", kind], &[]);
    }
    for name in ["theirs2.zarr", "theirs3.zarr"] {
        // Five rows behind the ten that are there, of every array along time.
        let (open, write) = (OpenOptions::default(), WriteOptions::default());
        change(folder.path().join(name).as_path(), &open, &write, |t| -> hyperslab::Result<()> {
            for array in ["field", "time"] {
                let mut staged = t.stage(array)?;
                let mut shape = staged.shape().to_vec();
                shape[0] = 15;
                staged.resize(&shape)?;
                staged.set(10u64..15, 42)?;
                t.write(array, &staged)?;
            }
            Ok(())
        })
        .expect("an append");
    }
    judge("xarray", folder.path());
}

/// Shards in shards, turned and compressed as a whole, and lists of texts in JSON, as others make them.
#[test]
fn what_others_nest_is_edited() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/zarr_writers.py");
    let output =
        Command::new(reference::python()).arg(&script).arg("nested-make").arg(folder.path()).output();
    let output = output.expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.path().join("shards.zarr");
    let mut transaction =
        edit(path.as_path(), &OpenOptions::default(), &WriteOptions::default()).expect("an edit");
    let part = Selection::parse("[1:7, 3:6]").expect("a selection");
    for name in ["nested", "compressed", "turned", "all"] {
        transaction.set(name, &part, 200).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    transaction.commit().expect("a commit");
    // And cut, and grown again: what was cut off is the fill value.
    for shape in [[5, 16], [16, 16]] {
        let mut transaction =
            edit(path.as_path(), &OpenOptions::default(), &WriteOptions::default()).expect("an edit");
        let array = ObjectPath::parse("cut").expect("a path");
        transaction.apply(Change::Resize { array, shape: shape.to_vec() }).expect("a resize");
        transaction.commit().expect("a commit");
    }
    let path = folder.path().join("objects.zarr");
    let begin = || edit(path.as_path(), &OpenOptions::default(), &WriteOptions::default()).expect("an edit");
    let mut transaction = begin();
    let texts = Values::texts(&[2], &["new \"é\"", ""]).expect("texts");
    transaction.set("texts", Selection::parse("[1, 1:3]").expect("a selection"), texts).expect("set");
    transaction.commit().expect("a commit");
    let mut transaction = begin();
    let refused = transaction
        .set("mixed", .., Values::texts(&[], &["a"]).expect("texts"))
        .and_then(|_| transaction.commit());
    let refused = refused.expect_err("numbers would become texts");
    assert!(refused.to_string().contains("json2 with values that are not texts"), "{refused}");
    judge("nested", folder.path());
}
