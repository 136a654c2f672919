//! One store for each feature of Zarr, as zarr-python writes and reads it.

use crate::{report, sha256};
use conformance::reference;
use hyperslab::Selection;
use serde_json::Value;

/// What is wrong with what is read of one array.
fn difference(address: &str, path: &str, expected: &Value) -> Result<(), String> {
    let fault = |e: hyperslab::Error| e.to_string();
    let array = hyperslab::open(address).and_then(|file| file.array(path)).map_err(fault)?;
    if let Some(texts) = expected["texts"].as_array() {
        let (_, elements) = array.read_elements(Selection::all()).map_err(fault)?;
        let found: Vec<Value> = (0..elements.count())
            .map(|i| elements.value(i).map(|v| v.as_str().map_or(Value::Null, Value::from)))
            .collect::<Result<_, _>>()
            .map_err(fault)?;
        return if found == *texts {
            Ok(())
        } else {
            Err(format!("{texts:.200?} expected, {found:.200?} found"))
        };
    }
    let bytes = array.read_packed(Selection::all()).map_err(fault)?.bytes;
    if expected["bytes"] != bytes.len() || expected["sha256"] != sha256(&bytes).as_str() {
        return Err(format!("{} bytes expected, {} found, or others", expected["bytes"], bytes.len()));
    }
    Ok(())
}

#[test]
fn every_feature_reads_as_zarr_python_reads_it() {
    let folder = reference::generated("zarr_matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let (mut total, mut wrong) = (0, Vec::new());
    for (name, arrays) in expected.as_object().expect("stores by name") {
        let store = folder.join(format!("{name}.zip"));
        for (path, expected) in arrays.as_object().expect("arrays by path") {
            total += 1;
            if let Err(why) = difference(store.to_str().expect("a path that is text"), path, expected) {
                wrong.push(format!("{name}{path}: {why}"));
            }
        }
    }
    assert!(total > 200, "only {total} arrays: what could the script not write?");
    report("arrays of Zarr", total, &wrong);
}
