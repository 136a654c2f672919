//! Compares what `describe --json` says of a file with what the reference library said, item by item.
//!
//! An object without its attributes and data is one item, and so is each attribute and the data of each dataset. A
//! place where the reference failed is no item.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Keys that are informative only.
const SKIPPED: &[&str] = &["reader", "error", "head", "mode", "links_error", "attrs_error"];

/// The items of an `hdf5` section, by where they stand.
pub fn items(section: &Value) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    let Some(section) = section.as_object().filter(|s| !failed(s)) else { return out };
    let facts: Map<_, _> = section.iter().filter(|(k, _)| k.as_str() != "objects").map(clone).collect();
    out.insert("file".into(), clean(&Value::Object(facts)));
    let objects = section.get("objects").and_then(Value::as_object);
    for (path, object) in objects.into_iter().flatten() {
        let Some(object) = object.as_object().filter(|o| !failed(o)) else { continue };
        let own = object.iter().filter(|(k, _)| !matches!(k.as_str(), "attrs" | "data"));
        out.insert(path.clone(), clean(&Value::Object(own.map(clone).collect())));
        let attributes = object.get("attrs").and_then(Value::as_object);
        for (name, attribute) in attributes.into_iter().flatten() {
            if attribute.as_object().is_none_or(|a| !failed(a)) {
                out.insert(format!("{path}@{name}"), clean(attribute));
            }
        }
        if let Some(data) = object.get("data")
            && data.as_object().is_none_or(|d| !failed(d))
        {
            out.insert(format!("{path} data"), clean(data));
        }
    }
    out
}

fn clone((k, v): (&String, &Value)) -> (String, Value) {
    (k.clone(), v.clone())
}

fn failed(place: &Map<String, Value>) -> bool {
    place.contains_key("error") || place.contains_key("crash")
}

/// Without what is informative only, at any depth; keys sorted.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().filter(|(k, _)| !SKIPPED.contains(&k.as_str())).collect();
            Value::Object(sorted.into_iter().map(|(k, v)| (k.clone(), clean(v))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(clean).collect()),
        other => other.clone(),
    }
}

/// An item that differs.
#[derive(Debug)]
pub struct Difference {
    /// Where it stands.
    pub item: String,
    /// What the reference says.
    pub expected: Value,
    /// What we say, if anything.
    pub found: Option<Value>,
}

/// The number of items that the reference gives, and those that differ.
pub fn compare(expected: &Value, found: &Value) -> (usize, Vec<Difference>) {
    let (expected, mut found) = (items(expected), items(found));
    let total = expected.len();
    let differs = expected.into_iter().filter_map(|(item, expected)| {
        let found = found.remove(&item);
        (found.as_ref() != Some(&expected)).then_some(Difference { item, expected, found })
    });
    (total, differs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_where_the_reference_failed_are_no_items() {
        let expected = json!({"userblock": 0, "objects": {
            "/": {"kind": "group", "attrs": {"a": {"error": "x"}, "b": {"raw": "00"}}},
            "/d": {"kind": "dataset", "attrs": {}, "data": {"error": "no plugin"}},
            "/e": {"kind": "dataset", "data": {"sha256": "1", "head": "00"}},
        }});
        assert_eq!(items(&expected).len(), 6);
        let mut found = expected.clone();
        found["objects"]["/e"]["data"] = json!({"sha256": "1", "head": "other"});
        assert!(compare(&expected, &found).1.is_empty());
        found["objects"]["/"]["attrs"]["b"] = json!({"raw": "01"});
        found["objects"].as_object_mut().unwrap().remove("/d");
        let (total, differs) = compare(&expected, &found);
        assert_eq!((total, differs.len()), (6, 2));
    }
}
