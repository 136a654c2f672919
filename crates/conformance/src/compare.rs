//! Compares what `describe --json` says of a file with what the reference libraries said, item by item.
//!
//! An object without its attributes and data is one item, and so is each attribute and the data of each array. A place
//! where the reference failed is no item.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The sections of a description, each of which has a score.
pub const SECTIONS: [&str; 3] = ["hdf5", "netcdf", "zarr"];

/// Keys that are informative only. `scipy` is what another reader makes of the file.
const SKIPPED: &[&str] = &["reader", "error", "head", "mode", "links_error", "attrs_error", "scipy"];

/// The items of a section, by where they stand.
pub fn items(name: &str, section: &Value) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    match name {
        "netcdf" => group("/", section, &mut out),
        _ => {
            let inner = if name == "zarr" { "nodes" } else { "objects" };
            let Some(section) = section.as_object().filter(|s| !failed(s)) else { return out };
            out.insert("file".into(), facts(section, &[inner]));
            for (path, node) in members(section, inner) {
                object(path, node, &mut out);
            }
        }
    }
    out
}

/// A group of netCDF, and all in it.
fn group(path: &str, group: &Value, out: &mut BTreeMap<String, Value>) {
    let Some(own) = group.as_object().filter(|g| !failed(g)) else { return };
    let join = |name: &str| if path == "/" { format!("/{name}") } else { format!("{path}/{name}") };
    out.insert(path.into(), facts(own, &["attrs", "vars", "groups"]));
    attributes(path, own, out);
    members(own, "vars").for_each(|(name, variable)| object(&join(name), variable, out));
    members(own, "groups").for_each(|(name, inner)| self::group(&join(name), inner, out));
}

/// An object that may have attributes and data.
fn object(path: &str, object: &Value, out: &mut BTreeMap<String, Value>) {
    let Some(own) = object.as_object().filter(|o| !failed(o)) else { return };
    out.insert(path.into(), facts(own, &["attrs", "data"]));
    attributes(path, own, out);
    if let Some(data) = own.get("data")
        && data.as_object().is_none_or(|d| !failed(d))
    {
        out.insert(format!("{path} data"), clean(data));
    }
}

fn attributes(path: &str, own: &Map<String, Value>, out: &mut BTreeMap<String, Value>) {
    for (name, attribute) in members(own, "attrs") {
        if attribute.as_object().is_none_or(|a| !failed(a)) {
            out.insert(format!("{path}@{name}"), clean(attribute));
        }
    }
}

fn members<'a>(map: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    map.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// All members but these.
fn facts(map: &Map<String, Value>, but: &[&str]) -> Value {
    clean(&Value::Object(map.iter().filter(|(k, _)| !but.contains(&k.as_str())).map(clone).collect()))
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

/// The number of items that the reference gives of a section, and those that differ.
pub fn compare(section: &str, expected: &Value, found: &Value) -> (usize, Vec<Difference>) {
    let (expected, mut found) = (items(section, expected), items(section, found));
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
        assert_eq!(items("hdf5", &expected).len(), 6);
        let mut found = expected.clone();
        found["objects"]["/e"]["data"] = json!({"sha256": "1", "head": "other"});
        assert!(compare("hdf5", &expected, &found).1.is_empty());
        found["objects"]["/"]["attrs"]["b"] = json!({"raw": "01"});
        found["objects"].as_object_mut().unwrap().remove("/d");
        let (total, differs) = compare("hdf5", &expected, &found);
        assert_eq!((total, differs.len()), (6, 2));
    }

    #[test]
    fn netcdf_and_zarr_have_items_of_their_own() {
        let netcdf = json!({"kind": "NETCDF4", "scipy": true, "dims": {"x": {"size": 2}}, "types": {}, "attrs": {"a": 1},
            "vars": {"v": {"type": "int", "attrs": {"u": 1}, "data": {"sha256": "1"}}, "w": {"error": "x"}},
            "groups": {"g": {"dims": {}, "vars": {"v": {"type": "int", "data": {"error": "x"}}}}}});
        let found: Vec<_> = items("netcdf", &netcdf).into_keys().collect();
        assert_eq!(found, ["/", "/@a", "/g", "/g/v", "/v", "/v data", "/v@u"]);
        assert_eq!(
            items("netcdf", &netcdf)["/"],
            json!({"dims": {"x": {"size": 2}}, "kind": "NETCDF4", "types": {}})
        );
        let zarr =
            json!({"prefix": "", "nodes": {"": {"kind": "group", "attrs": {"a": 1}}, "b": {"error": "x"}}});
        assert_eq!(items("zarr", &zarr).into_keys().collect::<Vec<_>>(), ["", "@a", "file"]);
    }
}
