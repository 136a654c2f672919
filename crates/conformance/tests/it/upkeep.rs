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
