//! Deleted versions, tables made anew, changed metadata: by us and by versioned-hdf5, with the same outcome.

use conformance::{reference, tool};
use hyperslab::OpenOptions;
use hyperslab::source::write::WriteOptions;
use hyperslab::version::{self, Order, Versions};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder() -> PathBuf {
    reference::generated("versions.py", &[])
}

fn text(value: &Json) -> &str {
    value.as_str().expect("a text")
}

/// What versioned-hdf5 makes of files, each after some steps; see `python/upkeep.py`.
pub(crate) fn told(jobs: &[Json]) -> Vec<Json> {
    let script = tool::root().join("crates/conformance/python/upkeep.py");
    let mut child = Command::new(reference::python())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(json!(jobs).to_string().as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    out.as_array().expect("a list").clone()
}

fn cases() -> Vec<Json> {
    let all = reference::json(&folder().join("cases.json"));
    // Those that are random take long, all together.
    let few = |case: &&Json| {
        !matches!(text(&case["file"]), "wander2.h5" | "wander3.h5" | "wander4.h5" | "wander5.h5")
    };
    all.as_array().expect("a list").iter().filter(few).cloned().collect()
}

/// A copy of a case for whoever changes it.
fn copy(to: &Path, case: &Json, label: &str) -> PathBuf {
    let name = text(&case["file"]);
    let path = to.join(format!("{label}-{name}"));
    std::fs::copy(folder().join(name), &path).expect("a copy");
    path
}

fn names(case: &Json) -> Vec<String> {
    let list = case["versions"].as_array().expect("a list").iter();
    list.map(|version| text(&version["name"]).to_owned()).collect()
}

fn delete(path: &Path, place: &str, names: &[String]) -> hyperslab::Result<version::UpkeepReport> {
    let pick = |_: &Versions| Ok(names.to_vec());
    let upkeep =
        version::delete_versions(path, Some(place), pick, &OpenOptions::default(), &WriteOptions::default())?;
    let report = upkeep.report().clone();
    upkeep.commit()?;
    Ok(report)
}

/// Without the times and the order of attributes, which nobody promises.
fn same(ours: &Json, theirs: &Json, label: &str) {
    for key in ["current", "stacks", "versions"] {
        assert_eq!(ours[key], theirs[key], "{label}: {key}");
    }
}

#[test]
fn deletion_leaves_what_versioned_hdf5_leaves() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut jobs, mut labels) = (Vec::new(), Vec::new());
    for case in cases() {
        let (place, all) = (text(&case["place"]), names(&case));
        let current = case["versions"].as_array().expect("a list").iter().find(|v| v["current"] == true);
        let current = text(&current.expect("a current version")["name"]).to_owned();
        let mut choices = vec![all.iter().step_by(2).cloned().collect::<Vec<_>>()];
        if all.len() < 20 {
            choices.push(all.iter().filter(|name| **name != current).cloned().collect());
            choices.push(vec![current]);
            choices.push(all.clone());
        }
        for (number, gone) in choices.iter().enumerate() {
            let label = format!("{} without {gone:?}", text(&case["file"]));
            let ours = copy(scratch.path(), &case, &format!("ours{number}"));
            let theirs = copy(scratch.path(), &case, &format!("theirs{number}"));
            let report = delete(&ours, place, gone).unwrap_or_else(|e| panic!("{label}: {e}"));
            assert_eq!(report.deleted, *gone);
            let left = Versions::open_at(&hyperslab::open(ours.as_path()).expect("it opens"), place);
            let left = left.expect("versions").list(Order::Name).expect("a list");
            assert_eq!(left.len() + gone.len(), all.len(), "{label}");
            jobs.push(json!([ours, place, []]));
            jobs.push(json!([theirs, place, [["delete", gone]]]));
            labels.push(label);
        }
    }
    let states = told(&jobs);
    for (pair, label) in states.chunks(2).zip(&labels) {
        same(&pair[0], &pair[1], label);
    }
    // And what is there afterwards goes on: a version more, some less, tables made anew.
    let mut jobs = Vec::new();
    for case in cases() {
        let path = scratch.path().join(format!("ours0-{}", text(&case["file"])));
        let left: Vec<String> = names(&case).into_iter().skip(1).step_by(2).take(1).collect();
        jobs.push(json!([path, case["place"], [["extend", "theirs"], ["delete", left], ["extend", "more"]]]));
    }
    told(&jobs);
    let mut jobs = Vec::new();
    for (case, number) in cases().iter().zip(0..) {
        let path = scratch.path().join(format!("ours0-{}", text(&case["file"])));
        let before = Versions::open(&hyperslab::open(path.as_path()).expect("it opens")).expect("versions");
        let count = before.list(Order::Name).expect("a list").len();
        let gone = vec![if number % 2 == 0 { "theirs".to_owned() } else { "more".to_owned() }];
        delete(&path, text(&case["place"]), &gone).expect("it is deleted");
        let again = scratch.path().join(format!("again-{}", text(&case["file"])));
        // Where not the root is versioned, versioned-hdf5 cannot do this.
        if case["place"] == "/" {
            std::fs::copy(&path, &again).expect("a copy");
            jobs.push(json!([path, case["place"], []]));
            jobs.push(json!([again, case["place"], [["rebuild"]]]));
        }
        let after = Versions::open(&hyperslab::open(path.as_path()).expect("it opens")).expect("versions");
        assert_eq!(after.list(Order::Name).expect("a list").len() + 1, count);
    }
    for pair in told(&jobs).chunks(2) {
        same(&pair[0], &pair[1], "hashes as versioned-hdf5 computes them");
    }
}

/// Contents alone: in which order chunks are stacked is nobody's business.
fn contents(state: &Json) -> Json {
    let mut out = json!({ "versions": state["versions"], "current": state["current"] });
    for (path, stack) in state["stacks"].as_object().expect("a map") {
        let mut stack = stack.clone();
        let mut hashes: Vec<Json> =
            stack["table"].as_array().expect("a list").iter().map(|r| r[0].clone()).collect();
        hashes.sort_by_key(|hash| text(hash).to_owned());
        stack["table"] = json!(hashes);
        stack["chunks"] = Json::Null;
        out[path] = stack;
    }
    out
}

#[test]
fn metadata_changes_as_by_versioned_hdf5() {
    use hyperslab::codec::FilterSpec;
    use hyperslab::dtype::{ByteOrder, DType, FloatType, IntegerType};
    use hyperslab::version::{Metadata, modify_metadata};
    let scratch = tempfile::tempdir().expect("a folder");
    let hdf5 = |id: u16, name: &str, parameters: Vec<u32>| FilterSpec::Hdf5 {
        id,
        flags: 1,
        name: name.into(),
        parameters,
    };
    let integer = |size| DType::Integer(IntegerType::new(size, ByteOrder::Little, true));
    let double = DType::Float(FloatType::ieee(8, ByteOrder::Little).expect("a float"));
    let changes = [
        (
            "edges.h5",
            "two",
            Metadata { chunk: Some(vec![5, 2]), ..Metadata::default() },
            json!({"chunks": [5, 2]}),
        ),
        ("edges.h5", "one", Metadata { dtype: Some(double), ..Metadata::default() }, json!({"dtype": "f8"})),
        (
            "edges.h5",
            "deep/three",
            Metadata { dtype: Some(integer(8)), ..Metadata::default() },
            json!({"dtype": "i8"}),
        ),
        (
            "kinds.h5",
            "filled",
            Metadata { fill: Some(7i16.to_le_bytes().to_vec()), ..Metadata::default() },
            json!({"fillvalue": 7}),
        ),
        (
            "kinds.h5",
            "gzip",
            Metadata { filters: Some(Vec::new()), ..Metadata::default() },
            json!({"compression": null}),
        ),
        (
            "same.h5",
            "deep/y",
            Metadata { filters: Some(vec![hdf5(1, "deflate", vec![7])]), ..Metadata::default() },
            json!({"compression": "gzip", "compression_opts": 7}),
        ),
        (
            "kinds_latest.h5",
            "text",
            Metadata { chunk: Some(vec![3]), ..Metadata::default() },
            json!({"chunks": [3]}),
        ),
        (
            "kinds.h5",
            "fixed",
            Metadata {
                dtype: Some(DType::VarString {
                    size: 16,
                    padding: hyperslab::dtype::StringPadding::NullTerminated,
                    charset: hyperslab::dtype::CharSet::Utf8,
                }),
                ..Metadata::default()
            },
            json!({"dtype": "O"}),
        ),
        ("many.h5", "x", Metadata { chunk: Some(vec![16]), ..Metadata::default() }, json!({"chunks": [16]})),
    ];
    let (mut jobs, mut labels) = (Vec::new(), Vec::new());
    for (number, (name, path, metadata, keywords)) in changes.iter().enumerate() {
        let case = cases().into_iter().find(|case| case["file"] == *name).expect("there is such a case");
        let place = text(&case["place"]);
        let ours = copy(scratch.path(), &case, &format!("ours{number}"));
        let theirs = copy(scratch.path(), &case, &format!("theirs{number}"));
        let (open, write) = (OpenOptions::default(), WriteOptions::default());
        modify_metadata(ours.as_path(), Some(place), path, metadata, &open, &write)
            .and_then(version::Upkeep::commit)
            .unwrap_or_else(|e| panic!("{name} {path}: {e}"));
        jobs.push(json!([ours, place, []]));
        jobs.push(json!([theirs, place, [["modify", path, keywords]]]));
        labels.push(format!("{name} {path} {keywords}"));
    }
    for (pair, label) in told(&jobs).chunks(2).zip(&labels) {
        assert_eq!(contents(&pair[0]), contents(&pair[1]), "{label}");
    }
}

#[test]
fn the_verb_removes_rebuilds_and_repacks() {
    let scratch = tempfile::tempdir().expect("a folder");
    let case = cases().into_iter().find(|case| case["file"] == "many.h5").expect("there is such a case");
    let path = copy(scratch.path(), &case, "verb");
    let path = path.to_str().expect("UTF-8");
    let said = |arguments: &[&str]| -> Json {
        serde_json::from_slice(&tool::ask(arguments).expect("it succeeds")).expect("JSON")
    };
    let before = std::fs::read(path).expect("it reads");
    let tried = said(&["versions", "rm", path, "--keep", "20", "--dry-run", "--json"]);
    assert_eq!(std::fs::read(path).expect("it reads"), before, "nothing was done");
    let done = said(&["versions", "rm", path, "--keep", "20", "--json"]);
    assert_eq!(tried["deleted"], done["deleted"]);
    assert_eq!(done["deleted"].as_array().map(Vec::len), Some(180));
    assert!(
        done["chunks_removed"].as_u64() > Some(100) && done["bytes_removed"].as_u64() > Some(1000),
        "{done}"
    );
    let states = told(&[json!([path, "/", []])]);
    let repacked = said(&["versions", "repack", path, "--json"]);
    assert!(repacked["bytes_after"].as_u64() < repacked["bytes_before"].as_u64(), "{repacked}");
    assert_eq!(repacked["bytes_after"].as_u64(), std::fs::metadata(path).ok().map(|m| m.len()));
    assert_eq!(said(&["versions", "rebuild", path, "--json"])["chunks_removed"], 0);
    let again = told(&[json!([path, "/", []])]);
    same(&again[0], &states[0], "written anew");
    // Names that are not there, and nothing that is old enough.
    for (arguments, code) in [
        (vec!["versions", "rm", path, "v199x"], 2),
        (vec!["versions", "rm", path], 2),
        (vec!["versions", "rm", path, "--before", "2000-01-01"], 1),
        (vec!["versions", "rm", path, "--before", "soon"], 2),
    ] {
        assert_eq!(tool::run(&arguments).status.code(), Some(code), "{arguments:?}");
    }
    // A copy of the file keeps all versions.
    let other = scratch.path().join("other.h5");
    let other = other.to_str().expect("UTF-8");
    tool::ask(&["copy", path, other]).expect("a copy");
    let whole = told(&[json!([other, "/", [["extend", "theirs"], ["delete", ["theirs"]]]])]);
    assert_eq!(whole[0]["versions"], states[0]["versions"]);
}

#[test]
fn what_died_in_a_commit_is_written_over() {
    let scratch = tempfile::tempdir().expect("a folder");
    let case = cases().into_iter().find(|case| case["file"] == "deleted.h5").expect("there is such a case");
    let path = copy(scratch.path(), &case, "died");
    // A stack longer than its table: the writer died before it said so.
    let grow = "import h5py,sys; f=h5py.File(sys.argv[1],'r+'); r=f['_version_data/x/raw_data']; \
                n=len(r); r.resize((n+48,)); r[n:]=-7";
    let status = Command::new(reference::python()).args(["-c", grow]).arg(&path).status().expect("it runs");
    assert!(status.success());
    let (open, write) = (OpenOptions::default(), WriteOptions::default());
    let mut next = version::stage(path.as_path(), "/", "ours", &version::Parent::Current, &open, &write)
        .expect("it begins");
    next.set("x", "3:40", 5i64).expect("it is set");
    next.set_attribute("/", "by", "us").expect("an attribute");
    next.commit().expect("it is committed");
    let states = told(&[json!([path, "/", [["extend", "theirs"]]])]);
    let version = |name: &str| {
        let list = states[0]["versions"].as_array().expect("a list");
        list.iter().find(|v| v["name"] == name).expect("it is there").clone()
    };
    let bytes = text(&version("ours")["arrays"]["x"]["bytes"]).to_owned();
    assert!(bytes[48..].starts_with("0500000000000000"), "{bytes}");
    assert!(text(&version("theirs")["arrays"]["x"]["bytes"])[16..].starts_with(&bytes[16..]));
}

#[test]
fn arrays_of_every_type_and_filter_are_extended_alike() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut jobs, mut labels) = (Vec::new(), Vec::new());
    for name in ["kinds.h5", "kinds_latest.h5", "edges.h5", "edges_v112.h5", "same.h5"] {
        let case = cases().into_iter().find(|case| case["file"] == name).expect("there is such a case");
        let place = text(&case["place"]);
        let (ours, theirs) = (copy(scratch.path(), &case, "ours"), copy(scratch.path(), &case, "theirs"));
        let (open, write) = (OpenOptions::default(), WriteOptions::default());
        let mut next =
            version::stage(ours.as_path(), place, "next", &version::Parent::Current, &open, &write)
                .expect("it begins");
        let paths: Vec<String> = next.arrays().collect();
        assert!(paths.len() > 2, "{name}");
        for path in &paths {
            let staged = next.array(path).expect("it is there");
            let mut shape = staged.shape().to_vec();
            // What NumPy leaves in the padding of an element that it sets is any bytes.
            if shape.contains(&0) || path == "/padded" {
                continue;
            }
            let last: Vec<String> = shape.iter().map(|n| (n - 1).to_string()).collect();
            let first = vec!["0"; shape.len()].join(", ");
            let value = staged.get(last.join(", ").as_str()).expect("it reads");
            staged.set(first.as_str(), &value).unwrap_or_else(|e| panic!("{name} {path}: {e}"));
            shape[0] += 1;
            staged.resize(&shape).expect("it grows");
        }
        next.commit().unwrap_or_else(|e| panic!("{name}: {e}"));
        jobs.push(json!([ours, place, []]));
        jobs.push(json!([theirs, place, [["touch", "next"]]]));
        labels.push(name);
    }
    for (pair, label) in told(&jobs).chunks(2).zip(&labels) {
        let (mut ours, mut theirs) = (contents(&pair[0]), contents(&pair[1]));
        for state in [&mut ours, &mut theirs] {
            for version in state["versions"].as_array_mut().expect("a list") {
                if version["name"] == "next" {
                    version["time"] = Json::Null;
                }
            }
        }
        assert_eq!(ours, theirs, "{label}");
    }
}

#[test]
fn old_layouts_become_the_new_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("old.h5");
    std::fs::copy(tool::root().join("crates/hyperslab/tests/data/versions.h5"), &path).expect("a copy");
    let (open, write) = (OpenOptions::default(), WriteOptions::default());
    let refused = |group: &str| {
        let pick = |_: &Versions| Ok(vec!["first".to_owned()]);
        version::delete_versions(path.as_path(), Some(group), pick, &open, &write)
            .map(|_| ())
            .map_err(|e| e.code())
    };
    assert_eq!(refused("/old"), Err("E_UNSUPPORTED"));
    let read = || -> Vec<Vec<i32>> {
        let file = hyperslab::open(path.as_path()).expect("it opens");
        let versions = Versions::open_at(&file, "/old").expect("versions");
        let list = versions.list(Order::Name).expect("a list");
        let read = |v| versions.file(v).array("/x").and_then(|x| x.read::<i32>(..)).expect("it reads").data;
        list.iter().map(read).collect()
    };
    let before = read();
    let upkeep =
        version::rebuild_hash_tables(path.as_path(), Some("/old"), &open, &write).expect("it is prepared");
    upkeep.commit().expect("it is committed");
    assert_eq!(read(), before);
    // Of what was never committed versioned-hdf5 makes an error.
    let file = hyperslab::open(path.as_path()).expect("it opens");
    let begun = Versions::open_at(&file, "/old").and_then(|v| v.uncommitted()).expect("a list");
    delete(&path, "/old", &begun).expect("it is deleted");
    assert_eq!(read(), before);
    let states = told(&[json!([path, "/old", [["extend", "theirs"], ["delete", ["first"]]]])]);
    assert_eq!((&states[0]["data_version"], &states[0]["current"]), (&json!(4), &json!("theirs")));
    // Where maps are no whole chunks, it is not known what is used: refused, and nothing has happened.
    let bytes = std::fs::read(&path).expect("it reads");
    let all = version::rebuild_hash_tables(path.as_path(), Some("/"), &open, &write);
    assert_eq!(all.map(|_| ()).map_err(|e| e.code()), Err("E_UNSUPPORTED"));
    assert_eq!(std::fs::read(&path).expect("it reads"), bytes);
}

fn rows(path: &Path, array: &str) -> u64 {
    let file = hyperslab::open(path).expect("it opens");
    file.array(&format!("/_version_data/{array}/raw_data")).expect("a stack").shape()[0]
}

#[test]
fn what_only_the_table_knows_is_not_stored_again() {
    use hyperslab::dtype::{ByteOrder, DType, FloatType};
    use hyperslab::model::write::ArraySpec;
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("a.h5");
    hyperslab::create(path.as_path(), hyperslab::Format::Hdf5, &hyperslab::write::CreateOptions::default())
        .and_then(|t| t.commit())
        .expect("a file");
    let (open, write) = (OpenOptions::default(), WriteOptions::default());
    let begin = |name: &str| {
        version::stage(path.as_path(), "/", name, &version::Parent::Current, &open, &write)
            .expect("it begins")
    };
    let double = DType::Float(FloatType::ieee(8, ByteOrder::Little).expect("a float"));
    let spec = ArraySpec::simple(double, &[4]).with_chunk(&[2]).with_fill(&f64::NAN.to_le_bytes());
    let mut v = begin("a");
    v.create_array("x", &spec).expect("it is made");
    v.set("x", "0:2", [0.0, 1.0].as_slice()).expect("it is set");
    v.commit().expect("it is committed");
    assert_eq!(rows(&path, "x"), 2, "chunks of the fill value are none");
    // Zero with a sign is another chunk; NaN with other bits than the fill value, too.
    let mut v = begin("b");
    v.set("x", "0", -0.0).expect("it is set");
    v.set("x", "2:4", [f64::from_bits(0xfff8_0000_0000_0001); 2].as_slice()).expect("it is set");
    v.commit().expect("it is committed");
    assert_eq!(rows(&path, "x"), 6);
    let mut v = begin("c");
    v.set("x", "2:4", f64::NAN).expect("it is set");
    v.set("x", "0:2", [5.0, 6.0].as_slice()).expect("it is set");
    v.commit().expect("it is committed");
    assert_eq!(rows(&path, "x"), 8);
    // Unlinked by hand, its chunk is still in the table.
    let mut edit = hyperslab::edit(path.as_path(), &open, &write).expect("an edit");
    let gone = hyperslab::model::write::ObjectPath::parse("/_version_data/versions/a").expect("a path");
    edit.apply(hyperslab::model::write::Change::Delete { path: gone }).expect("it is removed");
    edit.commit().expect("it is committed");
    let mut v = begin("d");
    v.set("x", "0:2", [0.0, 1.0].as_slice()).expect("it is set");
    v.append("x", [5.0, 6.0].as_slice()).expect("it is appended");
    v.create_group("g/h").expect("a group");
    v.commit().expect("it is committed");
    assert_eq!(rows(&path, "x"), 8, "everything was there");
    let log = Versions::open(&hyperslab::open(path.as_path()).expect("it opens")).and_then(|v| v.log());
    let log = log.expect("a log");
    let changed: Vec<&str> = log.last().expect("a version").changed.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(changed, ["/g", "/g/h", "/x"]);
    // A version of which nothing came is no hindrance.
    let report = delete(&path, "/", &["b".to_owned()]).expect("it is deleted");
    assert_eq!((report.chunks_kept, report.chunks_removed), (2, 2));
    assert_eq!(rows(&path, "x"), 4);
    let states = told(&[json!([path, "/", [["extend", "theirs"]]])]);
    assert_eq!(states[0]["versions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn other_files_are_taken_as_what_differs() {
    let scratch = tempfile::tempdir().expect("a folder");
    let at = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let cdl = "netcdf e { dimensions: t = UNLIMITED ; x = 5 ; variables: float v(t, x) ; v:units = \"m\" ; \
               int t(t) ; char name(x) ; :title = \"hello\" ; data: v = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ; t = 1, 2 ; \
               name = \"abcde\" ; }";
    std::fs::write(at("e.cdl"), cdl).expect("it is written");
    std::fs::write(at("none.cdl"), "netcdf none { }").expect("it is written");
    let ask = |arguments: &[&str]| {
        let out = tool::ask(arguments).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
        String::from_utf8(out).expect("UTF-8")
    };
    let kept = at("kept.h5");
    ask(&["create", &at("none.cdl"), "-o", &kept, "--kind", "hdf5"]);
    // The same in every format: one version has chunks, the others have the same ones.
    for (number, kind) in ["netcdf3", "netcdf4", "zarr2", "zarr3", "nczarr", "cdf5"].iter().enumerate() {
        let other = at(&format!("other{number}.{}", if kind.contains("zarr") { "zarr" } else { "nc" }));
        ask(&["create", &at("e.cdl"), "-o", &other, "--kind", kind]);
        ask(&["commit", &kept, kind, "--from", &other]);
    }
    let log: Vec<Json> =
        ask(&["log", "--json", &kept]).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(log.len(), 6);
    for line in log.iter().take(5) {
        assert_eq!((&line["chunks_new"], &line["arrays"]), (&json!(0), &json!(3)), "{line}");
    }
    let versions = Versions::open(&hyperslab::open(kept.as_str()).expect("it opens")).expect("versions");
    let last = versions.file(&versions.get("cdf5").expect("it is there"));
    let labels = last.array("/v").and_then(|v| v.attribute("DIMENSION_LABELS")).expect("labels");
    assert!(format!("{labels:?}").contains("\"t\""), "{labels:?}");
    let states = told(&[json!([kept, "/", [["extend", "theirs"]]])]);
    assert_eq!(states[0]["versions"].as_array().map(Vec::len), Some(7));
}
