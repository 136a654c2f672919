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
fn told(jobs: &[Json]) -> Vec<Json> {
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
    let few = |case: &&Json| !matches!(text(&case["file"]), "wander2.h5" | "wander3.h5" | "wander4.h5" | "wander5.h5");
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
