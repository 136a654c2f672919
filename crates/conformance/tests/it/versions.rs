//! Files of versioned-hdf5: every version as libhdf5 reads it, by the one read path.

use crate::judges;
use crate::report;
use conformance::{reference, tool};
use hyperslab::codec::FilterSpec;
use hyperslab::dtype::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};
use hyperslab::model::write::ArraySpec;
use hyperslab::model::{Elements, Layout, Value};
use hyperslab::source::write::WriteOptions;
use hyperslab::staged::Values;
use hyperslab::version::{Order, Parent, Stage, Timestamp, Version, Versions, stage};
use hyperslab::write::CreateOptions;
use hyperslab::{Array, Format, Object, OpenOptions, RawData};
use serde_json::{Map, Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// A folder that is removed with its files.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn begin(path: &Path, group: &str, name: &str) -> Stage {
    let (open, write) = (OpenOptions::default(), WriteOptions::default());
    stage(path, group, name, &Parent::Current, &open, &write).expect("it begins")
}

/// What versioned-hdf5 makes of a file, which it changes.
fn checked(path: &Path, group: &str) -> Json {
    let script = tool::root().join("crates/conformance/python/versions_check.py");
    let output =
        Command::new(reference::python()).arg(script).arg(path).arg(group).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The steps of `same` in versions.py.
fn write_the_same(path: &Path) -> hyperslab::Result<()> {
    let integer = |size| DType::Integer(IntegerType::new(size, ByteOrder::Little, true));
    let y: Vec<f64> = (0..30).map(|i| f64::from(i / 5 + i % 5)).collect();
    let mut v1 = begin(path, "/", "v1");
    let deflate = FilterSpec::Hdf5 { id: 1, flags: 1, name: "deflate".into(), parameters: vec![4] };
    let mut spec = ArraySpec::simple(integer(4), &[23]).with_chunk(&[5]).with_fill(&(-1i32).to_le_bytes());
    spec.filters.push(deflate);
    v1.create_array("x", &spec)?;
    v1.set("x", .., &(0..23).map(|i| i % 5).collect::<Vec<i32>>())?;
    let double = DType::Float(FloatType::ieee(8, ByteOrder::Little).expect("a float"));
    v1.create_array("deep/y", &ArraySpec::simple(double, &[6, 5]).with_chunk(&[4, 2]))?;
    v1.set("deep/y", .., Values::new(&[6, 5], &y)?)?;
    let text = DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 };
    v1.create_array("t", &ArraySpec::simple(text, &[7]).with_chunk(&[2]))?;
    v1.set("t", .., Values::texts(&[7], &["a", "bc", "", "é", "a", "bc", "z"])?)?;
    let sparse = ArraySpec::simple(integer(2), &[100, 7]).with_chunk(&[10, 3]).with_fill(&4i16.to_le_bytes());
    v1.create_array("sparse", &sparse)?;
    v1.set_attribute("x", "units", "m")?;
    // What fails changes nothing.
    assert!(v1.set("x", "0:2", &[1i32, 2, 3]).is_err());
    assert!(v1.create_array("x/below", &sparse).is_err() && v1.create_array("versions", &sparse).is_err());
    v1.commit()?;
    let mut v2 = begin(path, "/", "v2");
    v2.array("x")?.resize(&[30])?;
    v2.set("x", "3:9", 5i32)?;
    v2.set("deep/y", "1", 7.5)?;
    v2.set("t", "1", "new")?;
    v2.set("sparse", "15:25, 2:5", 3i16)?;
    v2.commit()?;
    // One that is dropped leaves nothing behind.
    begin(path, "/", "dropped").set("x", .., 0i32)?;
    let mut v3 = begin(path, "/", "v3");
    v3.array("x")?.resize(&[23])?;
    v3.set("x", "3:9", &[3i32, 4, 0, 1, 2, 3])?;
    v3.set("deep/y", .., Values::new(&[6, 5], &y)?)?;
    v3.delete("t")?;
    v3.set("sparse", .., 4i16)?;
    v3.set_attribute("x", "units", "km")?;
    v3.commit()?;
    Ok(())
}

fn contents(versions: &Json) -> Vec<Json> {
    let list = versions.as_array().expect("a list").iter();
    list.map(|v| json!([v["name"], v["parent"], v["current"], v["arrays"], v["groups"]])).collect()
}

#[test]
fn versions_that_are_written_are_those_of_versioned_hdf5() {
    let folder = scratch();
    let path = folder.path().join("ours.h5");
    hyperslab::create(path.as_path(), Format::Hdf5, &CreateOptions::default())
        .and_then(|t| t.commit())
        .expect("a file");
    write_the_same(&path).expect("it is written");
    let ours = Versions::open(&hyperslab::open(path.as_path()).expect("it opens")).expect("versions");
    assert_eq!(ours.list(Order::Name).expect("a list").len(), 3);
    let taken =
        stage(path.as_path(), "/", "v2", &Parent::Nothing, &OpenOptions::default(), &WriteOptions::default());
    assert_eq!(taken.map(|_| ()).map_err(|e| e.code()), Err("E_EXISTS"));
    // Chunks stored are as many, and every version reads here and there as it was written.
    let theirs = case("same.h5");
    for wanted in theirs["versions"].as_array().expect("a list") {
        let version = ours.get(text(&wanted["name"])).expect("it is there");
        assert_eq!(faults(&ours, &version, wanted), Vec::<String>::new(), "{}", wanted["name"]);
    }
    assert_eq!(judges::structure(&path), Ok(()));
    let told = checked(&path, "/");
    assert_eq!(contents(&told["versions"]), contents(&theirs["versions"]));
    assert!(told["checked"].as_u64() > Some(50), "{}", told["checked"]);
    let copy = folder.path().join("theirs.h5");
    std::fs::copy(self::folder().join("same.h5"), &copy).expect("a copy");
    assert_eq!(told["rows"], checked(&copy, "/")["rows"]);
}

#[test]
fn files_of_versioned_hdf5_are_extended() {
    let folder = scratch();
    for (name, group, array) in [
        ("edges.h5", "/", "two"),
        ("edges_latest.h5", "/", "deep/three"),
        ("graph.h5", "/lab", "x"),
        ("deleted.h5", "/", "x"),
    ] {
        let path = folder.path().join(name);
        std::fs::copy(self::folder().join(name), &path).expect("a copy");
        let mut next = begin(&path, group, "ours");
        let staged = next.array(array).expect("it is there");
        let grown: Vec<u64> = staged.shape().iter().map(|n| n + 3).collect();
        staged.resize(&grown).expect("it grows");
        next.set(array, "-1", 42i64).expect("it is set");
        next.commit().expect("it is committed");
        let told = checked(&path, group);
        let list = told["versions"].as_array().expect("a list");
        let ours = list.iter().find(|v| v["name"] == "ours").expect("our version");
        assert_eq!(ours["arrays"][array]["shape"], json!(grown), "{name}");
        assert_eq!(list.len(), case(name)["versions"].as_array().map_or(0, Vec::len) + 1);
        let mut before = contents(&told["versions"]);
        before.retain(|version| version[0] != "ours");
        let strip = |mut list: Vec<Json>| {
            list.iter_mut().for_each(|version| version[2] = Json::Null);
            list
        };
        assert_eq!(strip(before), strip(contents(&case(name)["versions"])), "{name}");
    }
}

#[test]
fn commit_takes_what_another_file_holds() {
    let folder = scratch();
    let path = folder.path().join("kept.h5");
    let path = path.to_str().expect("UTF-8");
    hyperslab::create(path, Format::Hdf5, &CreateOptions::default())
        .and_then(|t| t.commit())
        .expect("a file");
    let other = folder.path().join("other.zarr");
    let source = self::folder().join("kinds.h5");
    let (source, other) = (source.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    tool::ask(&["copy", "--at", "b", "--only", "/gzip", "--only", "/be", source, other]).expect("a copy");
    tool::ask(&["commit", path, "one", "--from", other, "--time", "2026-01-01"]).expect("a version");
    tool::ask(&["commit", path, "two", "--from", other, "--set", "be[1:3]=[8, 9]"]).expect("a version");
    let get = |at: &str| {
        tool::ask(&["get", "--at", at, "--format", "json", &format!("{path}::/be")]).expect("elements")
    };
    assert_eq!(get("2026-01-01"), b"[0,1,2,3,4,5,6,7,8,9]\n");
    assert_eq!(get("two"), b"[0,8,9,3,4,5,6,7,8,9]\n");
    let log = String::from_utf8(tool::ask(&["log", path]).expect("a log")).expect("UTF-8");
    assert!(
        log.contains("chunks: 1 new") && log.contains("data /be") && !log.contains("data /gzip"),
        "{log}"
    );
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
    let all = lines[2]["changed"].as_array().expect("a list");
    let of = |kind: &str| all.iter().filter(|c| c["kind"] == kind && c["change"] == "added").count();
    assert_eq!((of("array"), of("group"), all.len()), (16, 3, 19));
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
    // Some of the types have no word in CDL, so that its exit code is 1.
    let dumped = String::from_utf8(tool::run(&["dump", "-h", "--at", "a", path]).stdout).expect("UTF-8");
    assert!(dumped.contains("gzip:units = \"K\""), "{dumped}");
    let described: Json =
        serde_json::from_str(&said(&["describe", "--json", "--at", "a", path])).expect("JSON");
    assert!(described["hdf5"]["objects"].get("/sub/below").is_some(), "{described}");
    let refused = tool::ask(&["follow", "--at", "a", &late]);
    assert!(refused.is_err_and(|e| e.contains("following the version a")));
    let differ = |a: &str, b: &str| tool::run(&["diff", path, "--at", a, "--at", b]);
    assert_eq!(differ("-1", "b").status.code(), Some(0));
    let differences = String::from_utf8(differ("b", "c").stdout).expect("UTF-8");
    assert!(differences.contains("/late") && differences.contains("/offset"), "{differences}");
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
