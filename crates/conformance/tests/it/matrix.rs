//! One file for each feature of HDF5: objects, attributes and elements as h5py reads them.

use crate::{report, sha256};
use conformance::{reference, tool};
use hyperslab::Selection;
use serde_json::Value;

/// Compares what `describe --json` says with what the reference said about the same object.
fn differences(file: &str, expected: &Value, found: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let objects = expected.as_object().expect("objects by path");
    if objects.len() != found.as_object().map_or(0, serde_json::Map::len) {
        let names = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>().join(" "));
        wrong.push(format!(
            "{file}: objects {:.200?} expected, {:.200?} found",
            names(expected),
            names(found)
        ));
    }
    for (path, object) in objects {
        let ours = &found[path];
        for key in ["kind", "target", "shape"] {
            if let Some(value) = object.get(key)
                && ours[key] != *value
            {
                wrong.push(format!("{file}{path}: {key} {value} expected, {} found", short(&ours[key])));
            }
        }
        if let Some(sum) = object.get("sha256")
            && (ours["data"]["sha256"] != *sum || ours["data"]["raw"] != object["raw"])
        {
            wrong.push(format!(
                "{file}{path}: other elements: {} {}",
                short(&ours["data"]),
                short(&ours["error"])
            ));
        }
        for (name, attribute) in object.get("attrs").and_then(Value::as_object).into_iter().flatten() {
            let ours = &ours["attrs"][name];
            // Small values stand as they are, larger ones by their hash.
            let same = attribute.get("sha256").is_none_or(|sum| {
                ours["raw"] == attribute["bytes"] && !ours["raw"].is_null()
                    || ours["json"] == attribute["text"] && !ours["json"].is_null()
                    || ours["sha256"] == *sum
            });
            if ours["shape"] != attribute["shape"] || !same {
                wrong.push(format!(
                    "{file}{path}@{name}: {} expected, {} found",
                    short(attribute),
                    short(ours)
                ));
            }
        }
    }
    wrong
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

#[test]
fn every_feature_reads_as_h5py_reads_it() {
    let folder = reference::generated("matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let files = expected.as_object().expect("files by name");
    let mut wrong = Vec::new();
    for (file, objects) in files {
        let path = folder.join(file);
        match tool::ask(&["describe", "--json", path.to_str().expect("a path that is text")]) {
            Ok(text) => {
                let found: Value = serde_json::from_slice(&text).unwrap_or_default();
                wrong.extend(differences(file, objects, &found["hdf5"]["objects"]));
            }
            Err(error) => wrong.push(error),
        }
    }
    report("features", files.len(), &wrong);
}

#[test]
fn elements_as_stored_are_those_of_the_file() {
    let folder = reference::generated("matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let (mut total, mut wrong) = (0, Vec::new());
    for (file, objects) in expected.as_object().expect("files by name") {
        let path = folder.join(file);
        for (name, object) in objects.as_object().expect("objects by path") {
            let Some(stored) = object["stored"].as_str() else { continue };
            total += 1;
            let read = hyperslab::open(path.to_str().expect("a path that is text"))
                .and_then(|f| f.array(name))
                .and_then(|a| a.read_raw(Selection::all()));
            match read {
                Ok(data) if sha256(&data.bytes) == stored => {}
                Ok(data) => wrong.push(format!("{file}{name}: {} bytes, but others", data.bytes.len())),
                Err(error) => wrong.push(format!("{file}{name}: {error}")),
            }
        }
    }
    report("arrays as stored", total, &wrong);
}

#[test]
fn get_writes_packed_elements() {
    let folder = reference::generated("matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let (mut total, mut wrong) = (0, Vec::new());
    for (file, objects) in expected.as_object().expect("files by name") {
        // One dataset of each file is enough: describing has seen the others.
        let objects = objects.as_object().expect("objects by path");
        let Some((name, object)) = objects.iter().find(|(_, o)| o["raw"] == true) else { continue };
        total += 1;
        let address = format!("{}::{name}", folder.join(file).display());
        match tool::ask(&["get", &address, "--format", "raw"]) {
            Ok(bytes) if object["sha256"] == sha256(&bytes).as_str() => {}
            Ok(bytes) => wrong.push(format!("{address}: {} bytes, but others", bytes.len())),
            Err(error) => wrong.push(error),
        }
    }
    report("arrays packed", total, &wrong);
}

#[test]
fn a_chunk_that_ends_early_reads_in_parts() {
    let path = reference::generated("matrix.py", &[]).join("last_chunk_cut.h5");
    let array = hyperslab::open(&path).and_then(|f| f.array("/d")).expect("it opens");
    for part in ["8", "9", "8", "-2:", "6:9", "..."] {
        let read = array.read::<i32>(Selection::parse(part).expect("a selection")).expect("it reads").data;
        let wanted: Vec<i32> = match part {
            "8" => vec![8],
            "9" => vec![9],
            "-2:" => vec![8, 9],
            "6:9" => vec![6, 7, 8],
            _ => (0..10).collect(),
        };
        assert_eq!(read, wanted, "{part}");
    }
}
