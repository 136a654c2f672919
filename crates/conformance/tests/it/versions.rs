//! Files of versioned-hdf5: every version as libhdf5 reads it, by the one read path.

use crate::report;
use conformance::{reference, tool};
use hyperslab::model::{Elements, Layout, Value};
use hyperslab::version::{Order, Timestamp, Version, Versions};
use hyperslab::{Array, Object, RawData};
use serde_json::{Map, Value as Json, json};
use std::path::PathBuf;

fn folder() -> PathBuf {
    reference::generated("versions.py", &[])
}

fn cases() -> Vec<Json> {
    reference::json(&folder().join("cases.json")).as_array().expect("a list").clone()
}

fn opened(case: &Json) -> Versions {
    let path = folder().join(text(&case["file"]));
    let file = hyperslab::open(path.as_path()).expect("it opens");
    let versions = Versions::open(&file).expect("it holds versions");
    assert_eq!(versions.place(), text(&case["place"]));
    versions
}

fn text(value: &Json) -> &str {
    value.as_str().expect("a text")
}

fn entries<'a>(value: &'a Json, key: &str) -> &'a Map<String, Json> {
    value[key].as_object().expect("a map")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Integer(n) => json!(*n as i64),
        other => json!(other.as_f64()),
    }
}

fn attributes(object: &Object) -> Result<Json, String> {
    let mut found = Map::new();
    for entry in object.attributes().map_err(|e| e.to_string())? {
        let attribute = entry.map_err(|(_, e)| e.to_string())?;
        let value = object.attribute_value(&attribute).map_err(|e| e.to_string())?;
        found.insert(attribute.name.to_string(), plain(&value));
    }
    Ok(Json::Object(found))
}

fn texts(array: &Array, raw: RawData) -> hyperslab::Result<Json> {
    let count = raw.shape.iter().product::<u64>() as usize;
    let elements = Elements::decode(&**array.hierarchy(), &raw.dtype, raw.bytes.into(), count, 1 << 20)?;
    Ok(elements.values()?.iter().map(plain).collect())
}

/// What is wrong with an array, if anything.
fn compare(array: &Array, wanted: &Json) -> Result<(), String> {
    let fail = |e: hyperslab::Error| e.to_string();
    let shape = json!(array.shape());
    if shape != wanted["shape"] {
        return Err(format!("shape {shape}, not {}", wanted["shape"]));
    }
    if !matches!(array.meta().layout, Layout::Chunked { index: "chunk map of a version" }) {
        return Err(format!("read as {:?}", array.meta().layout));
    }
    let found = attributes(&Object::Array(array.clone()))?;
    if found != wanted["attributes"] {
        return Err(format!("attributes {found}, not {}", wanted["attributes"]));
    }
    let raw = array.read_raw(..).map_err(fail)?;
    let same = match wanted.get("bytes") {
        Some(bytes) => hex(&raw.bytes) == text(bytes),
        None => texts(array, raw).map_err(fail)? == wanted["texts"],
    };
    if same { Ok(()) } else { Err("other elements".to_owned()) }
}

/// Compares a version; gives what is wrong.
fn faults(versions: &Versions, version: &Version, wanted: &Json) -> Vec<String> {
    let file = versions.file(version);
    let mut wrong = Vec::new();
    let mut found = Vec::new();
    for entry in file.walk() {
        let path = entry.path.trim_start_matches('/').to_owned();
        match entry.open(&file) {
            Ok(Object::Array(array)) => match entries(wanted, "arrays").get(&path) {
                Some(wanted) => wrong.extend(compare(&array, wanted).err().map(|e| format!("{path}: {e}"))),
                None => wrong.push(format!("{path} is not there")),
            },
            Ok(object) if !path.is_empty() => {
                let found = attributes(&object);
                if found.as_ref().ok() != entries(wanted, "groups").get(&path) {
                    wrong.push(format!("{path}: attributes {found:?}"));
                }
            }
            Ok(root) if attributes(&root) == Ok(json!({})) => continue,
            other => wrong.push(format!("{path}: {other:?}")),
        }
        found.push(path);
    }
    let missing = entries(wanted, "arrays").keys().chain(entries(wanted, "groups").keys());
    wrong.extend(missing.filter(|path| !found.contains(path)).map(|path| format!("{path} is missing")));
    wrong
}

#[test]
fn every_version_holds_what_was_committed() {
    let (mut total, mut wrong) = (0, Vec::new());
    for case in cases() {
        let versions = opened(&case);
        let told = case["versions"].as_array().expect("a list");
        let current = versions.current().expect("a current version").expect("there is one").name;
        assert_eq!(versions.list(Order::Name).expect("a list").len(), told.len(), "{}", case["file"]);
        for wanted in told {
            total += 1;
            let name = text(&wanted["name"]);
            let label = format!("{} {name}", text(&case["file"]));
            let version = versions.get(name).expect("it is there");
            assert_eq!(json!(version.parent), wanted["parent"], "{label}");
            assert_eq!(version.time.as_str(), text(&wanted["time"]), "{label}");
            assert_eq!(name == current, wanted["current"] == true, "{label}");
            wrong.extend(faults(&versions, &version, wanted).into_iter().map(|e| format!("{label}: {e}")));
        }
    }
    report("versions", total, &wrong);
}

fn case(file: &str) -> Json {
    cases().into_iter().find(|case| case["file"] == file).expect("there is such a case")
}

#[test]
fn versions_are_found_by_name_time_and_distance() {
    let versions = opened(&case("graph.h5"));
    let pick = |text: &str| versions.pick(text).map(|v| v.name).map_err(|e| e.code());
    for (text, name) in [
        ("0", "tip"),
        ("-1", "mid"),
        ("-3", "zeta"),
        ("-4", "base"),
        ("branch", "branch"),
        // Three of the same time: the one that was made last.
        ("2024-01-02", "mid"),
        ("2024-01-02T00:00:00.000000Z", "mid"),
        ("2024-01-01 23:59:59.9", "tip"),
        ("9999-12-31 23:59:59+00:00", "mid"),
    ] {
        assert_eq!(pick(text), Ok(name.to_owned()), "{text}");
    }
    for absent in ["-5", "2023-12-31", "failed", "__first_version__", "", "2024-13-01", "base/x"] {
        assert_eq!(pick(absent), Err("E_NOT_FOUND"), "{absent}");
    }
    assert_eq!(pick("2024-01-02T00:00+01:00"), Err("E_ARGUMENT"));
    let names = |order| -> Vec<String> {
        versions.list(order).expect("a list").into_iter().map(|v| v.name).collect()
    };
    assert_eq!(names(Order::Graph), ["tip", "mid", "alpha", "zeta", "base"]);
    assert_eq!(names(Order::Time), ["base", "branch", "rootless", "tip", "zeta", "alpha", "mid"]);
    assert_eq!(names(Order::Name), ["alpha", "base", "branch", "mid", "rootless", "tip", "zeta"]);
    let time = Timestamp::parse("2024-02-29 12:34:56.789").expect("a time").expect("UTC");
    assert_eq!(time.as_str(), "2024-02-29 12:34:56.789000+0000");
    assert_eq!(Timestamp::from_micros(1_709_210_096_789_000).expect("a time"), time);
}

#[test]
fn many_threads_read_many_versions() {
    let case = case("many.h5");
    let versions = opened(&case);
    let told = case["versions"].as_array().expect("a list");
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let look = |part: usize| {
            let versions = versions.clone();
            scope.spawn(move || {
                let mine = told.iter().skip(part).step_by(4);
                mine.flat_map(|wanted| {
                    let version = versions.get(text(&wanted["name"])).expect("it is there");
                    faults(&versions, &version, wanted)
                })
                .collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..4).map(look).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    report("versions from threads", told.len(), &wrong);
}

#[test]
fn the_log_says_what_each_version_changed() {
    let path = folder().join("kinds.h5");
    let said = tool::ask(&["log", "--json", path.to_str().expect("UTF-8")]).expect("a log");
    let lines: Vec<Json> = String::from_utf8(said)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let names: Vec<&str> = lines.iter().map(|line| text(&line["name"])).collect();
    assert_eq!(names, ["c", "b", "a"]);
    let changed = |line: &Json| -> Vec<String> {
        let list = line["changed"].as_array().expect("a list");
        list.iter().map(|c| format!("{} {}", text(&c["change"]), text(&c["path"]))).collect()
    };
    // All that is fill is no chunk, and the chunks of -0.0 have other bytes than those of 0.0.
    assert_eq!(changed(&lines[0]), ["data /filled", "added /late", "data /nan", "removed /offset"]);
    assert_eq!(
        changed(&lines[1]),
        [
            "data /filled",
            "attributes /gzip",
            "attributes /lzf",
            "data /many",
            "data /nanfill",
            "data /pair",
            "data /text"
        ]
    );
    assert_eq!(lines[2]["changed"].as_array().map(Vec::len), Some(16));
    assert_eq!(lines[0]["parent"], "b");
    assert_eq!(lines[2]["parent"], Json::Null);
    // Two chunks of zeros.
    assert_eq!(lines[2]["chunks_reused"], 1);
    assert!(lines[1]["chunks_new"].as_u64() > Some(0) && lines[1]["bytes_added"].as_u64() > Some(0));
}

#[test]
fn the_verbs_read_at_a_version() {
    let path = folder().join("kinds.h5");
    let path = path.to_str().expect("UTF-8");
    let late = format!("{path}::/late");
    let said = |arguments: &[&str]| {
        tool::ask(arguments).map(|out| String::from_utf8(out).expect("UTF-8")).expect("it succeeds")
    };
    assert_eq!(said(&["get", "--at", "c", "--format", "json", &late]).trim(), "[0.0,1.0,2.0]");
    assert_eq!(said(&["get", "--at", "0", "--format", "json", &late]).trim(), "[0.0,1.0,2.0]");
    for missing in ["-1", "2024-01-01T02:00"] {
        assert!(tool::ask(&["get", "--at", missing, &late]).is_err_and(|e| e.contains("E_NOT_FOUND")));
    }
    let listed = said(&["ls", "--at", "-1", path]);
    assert!(
        listed.contains("offset") && !listed.contains("  late ") && !listed.contains("raw_data"),
        "{listed}"
    );
    assert!(said(&["plan", "--at", "b", &format!("{path}::/gzip")]).contains("gzip"));
    assert!(said(&["info", "--at", "b", &format!("{path}::/gzip")]).contains("degC"));
    assert!(said(&["dump", "-h", "--at", "a", path]).contains("gzip:units = \"K\""));
    let described: Json =
        serde_json::from_str(&said(&["describe", "--json", "--at", "a", path])).expect("JSON");
    assert!(described["hdf5"]["objects"].get("/sub/below").is_some(), "{described}");
    let refused = tool::ask(&["follow", "--at", "a", &late]);
    assert!(refused.is_err_and(|e| e.contains("following the version a")));
    let differ = |a: &str, b: &str| tool::run(&["diff", path, "--at", a, "--at", b]);
    assert_eq!(differ("-1", "b").status.code(), Some(0));
    let differences = String::from_utf8(differ("b", "c").stdout).expect("UTF-8");
    assert!(differences.contains("/late") && differences.contains("/nan"), "{differences}");
    let copied = std::env::temp_dir().join(format!("hyperslab-version-{}.zarr", std::process::id()));
    let target = copied.to_str().expect("UTF-8");
    let done = tool::ask(&["copy", "--at", "b", path, target]);
    let values = tool::ask(&["get", "--format", "json", &format!("{target}::/gzip")]);
    let _ = std::fs::remove_dir_all(&copied);
    done.expect("it is copied");
    assert_eq!(
        values.expect("it is there"),
        tool::ask(&["get", "--at", "b", "--format", "json", &format!("{path}::/gzip")]).expect("it is there")
    );
    // Another group than the root, found by itself, and named.
    let other = folder().join("graph.h5");
    let x = format!("{}::/x[93:]", other.to_str().expect("UTF-8"));
    let values = said(&["get", "--at", "-1", "--format", "json", &x]);
    assert_eq!(said(&["get", "--at", "mid", "--of", "/lab", "--format", "json", &x]), values);
    assert!(
        tool::ask(&["get", "--at", "mid", "--of", "/", &x]).is_err_and(|e| e.contains("holds no versions"))
    );
}
