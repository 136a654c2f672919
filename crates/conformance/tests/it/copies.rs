//! What becomes of each kind of thing in a copy: by its report, and by the reference libraries.

use conformance::reference::{generated, python};
use conformance::tool;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn checked(path: &Path, kind: &str) -> Value {
    let script = tool::root().join("crates/conformance/python/copies_check.py");
    let output = Command::new(python()).arg(script).arg(path).arg(kind).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Copies the file with one of everything, and gives what became of each, but of what was kept.
fn copied(format: &str, target: &Path) -> Vec<(String, String)> {
    let source = generated("copies.py", &[]).join("rich.h5");
    let (from, to) = (source.to_string_lossy(), target.to_string_lossy());
    let said = tool::ask(&["copy", "--json", "--to", format, &from, &to]).expect("a copy");
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&said).lines() {
        let entry: Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        if text("outcome") != "kept" {
            assert!(!text("why").is_empty(), "{line}");
            found.push((text("name"), text("outcome")));
        }
    }
    found.sort();
    found
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn from_hdf5_to_hdf5_everything_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("copy.h5");
    assert_eq!(copied("hdf5", &target), pairs(&[]));
    let source = generated("copies.py", &[]).join("rich.h5");
    let said = checked(&target, "hdf5");
    assert_eq!(said, checked(&source, "hdf5"));
    assert_eq!(said["objects"], json!(["/g/a", "/color", null]));
    assert_eq!(said["region"], json!(["/g/a", [10, 11, 12, 18, 19, 20], false]));
    assert_eq!(said["committed"], json!([true, true, false, true]));
    assert_eq!(said["filters"], json!(["gzip", 4, true, true, [4, 3], -7]));
    tool::ask(&["diff", &source.to_string_lossy(), &target.to_string_lossy()]).expect("no difference");
}

#[test]
fn to_netcdf4_user_types_have_names_and_links_become_copies() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("copy.nc");
    let found = copied("netcdf4", &target);
    let wanted = [
        ("/:main", "dropped"),
        ("/bits", "dropped"),
        ("/g/a:DIMENSION_LIST", "mapped"),
        ("/g/a:matrix", "dropped"),
        ("/g/phony_dim_1", "mapped"),
        ("/g/phony_dim_2", "mapped"),
        ("/hard", "mapped"),
        ("/hard:matrix", "dropped"),
        ("/nested", "mapped"),
        ("/nested_at_t", "mapped"),
        ("/nested_t", "mapped"),
        ("/objects", "dropped"),
        ("/opaque", "mapped"),
        ("/opaque_t", "mapped"),
        ("/outside", "dropped"),
        ("/phony_dim_3", "mapped"),
        ("/phony_dim_4", "mapped"),
        ("/phony_dim_5", "mapped"),
        ("/ragged", "mapped"),
        ("/ragged_t", "mapped"),
        ("/regions", "dropped"),
        ("/soft", "mapped"),
        ("/soft:matrix", "dropped"),
        ("/x", "mapped"),
        ("/x:CLASS", "mapped"),
        ("/x:NAME", "mapped"),
        ("/x:REFERENCE_LIST", "mapped"),
    ];
    assert_eq!(found, pairs(&wanted));
    let said = checked(&target, "netcdf4");
    assert_eq!(said["shades"], json!([0, 7, 1]));
    assert_eq!(said["points"], "[(1.0, -1), (2.0, -2), (3.0, -3)]");
    assert_eq!(said["ragged"], json!([[1, 2, 3], [], [9]]));
    assert_eq!(said["texts"], json!(["été", "", "b"]));
    // netCDF4 has no enumerations in compounds, and no opaque types: ncdump has.
    assert_eq!([&said["enums"], &said["compounds"]], [&json!(["color"]), &json!(["nested_at_t", "point"])]);
    let dump = Command::new("ncdump").arg(&target).output();
    if let Ok(dump) = dump {
        let text = String::from_utf8_lossy(&dump.stdout);
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        assert!(
            text.contains("nested = {{\"abc\"}, BLUE, {0, 0.5}}, {{\"zyxwvu\"}, GREEN, {0, 1.5}} ;"),
            "{text}"
        );
        assert!(text.contains("opaque = 0X616263, 0X000102 ;"), "{text}");
    }
}

#[test]
fn to_zarr_what_it_has_no_words_for_is_dropped_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = copied("zarr3", &folder.path().join("copy.zarr"));
    let wanted = [
        ("/:main", "dropped"),
        ("/bits", "mapped"),
        ("/color", "dropped"),
        ("/g/a:DIMENSION_LIST", "mapped"),
        ("/g/a:matrix", "mapped"),
        ("/g/a:nothing", "mapped"),
        ("/g/a:shade", "mapped"),
        ("/hard", "dropped"),
        ("/nested", "mapped"),
        ("/objects", "dropped"),
        ("/outside", "dropped"),
        ("/point", "dropped"),
        ("/ragged", "dropped"),
        ("/regions", "dropped"),
        ("/shades", "mapped"),
        ("/soft", "dropped"),
        ("/x:CLASS", "mapped"),
        ("/x:NAME", "mapped"),
        ("/x:REFERENCE_LIST", "mapped"),
    ];
    assert_eq!(found, pairs(&wanted));
}

/// A sample of what `copies` does with a whole corpus.
#[test]
fn there_and_back_what_is_not_the_same_was_said() {
    let Some(corpus) = crate::shared("corpus") else {
        eprintln!("copies: no corpus beside the repository, nothing to copy");
        return;
    };
    let output = Command::new(env!("CARGO_BIN_EXE_copies"))
        .arg(corpus)
        .args(["--every", "29"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
