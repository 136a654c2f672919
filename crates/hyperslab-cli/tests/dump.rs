//! `dump` against what ncdump printed of the same files (`make_netcdf.py`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab/tests/data")
}

fn dump(options: &[&str], file: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
    command.arg("dump").args(options).arg(file).current_dir(data()).output().unwrap()
}

#[test]
fn cdl_is_that_of_ncdump() {
    let mut seen = 0;
    for entry in std::fs::read_dir(data()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "cdl") {
            continue;
        }
        // The name says how it was made: the file, then the options.
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (file, options) = stem.split_once(' ').unwrap_or((&stem, ""));
        let options: Vec<&str> = options.split_whitespace().collect();
        let output = dump(&options, &format!("{file}.nc"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{stem}");
        let wanted = std::fs::read(&path).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&output.stdout), text(&wanted), "{stem}");
        assert_eq!(output.status.code(), Some(0), "{stem}");
        seen += 1;
    }
    assert_eq!(seen, 14);
}

#[test]
fn every_layout_of_nczarr_prints_the_same() {
    for (layout, content) in [
        ("first", "plain"),
        ("upper", "plain"),
        ("lower", "plain"),
        ("attributes", "plain"),
        ("draft", "plain"),
        ("lower_rich", "rich"),
        ("attributes_rich", "rich"),
        ("draft_rich", "rich"),
    ] {
        let output = dump(&["-n", "nczarr"], &format!("nczarr/{layout}.zip"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{layout}");
        let wanted = std::fs::read_to_string(data().join(format!("nczarr/{content}.cdl"))).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{layout}");
        assert_eq!(output.status.code(), Some(0), "{layout}");
    }
}

#[test]
fn storage_of_zarr_is_told_in_the_words_of_netcdf() {
    let text = String::from_utf8(dump(&["-s", "-h"], "nczarr/lower.zip").stdout).unwrap();
    // As ncdump prints it of the store that is in the file.
    let file = "\t\t:_SuperblockVersion = 2 ;\n\t\t:_IsNetcdf4 = 1 ;\n\t\t:_Format = \"netCDF-4\" ;\n";
    let array =
        "zebra:_Storage = \"chunked\" ;\n\t\tzebra:_ChunkSizes = 4 ;\n\t\tzebra:_Endianness = \"little\" ;\n";
    assert!(text.contains(file) && text.contains(array), "{text}");
    // Codecs are shown as they stand in the documents.
    let folder = tempfile::tempdir().unwrap();
    let array = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "fill_value": null, "order": "C",
        "filters": [{"id": "shuffle", "elementsize": 2}], "compressor": {"id": "zlib", "level": 5}}"#;
    std::fs::write(folder.path().join(".zarray"), array).unwrap();
    let text = String::from_utf8(dump(&["-s", "-h"], folder.path().to_str().unwrap()).stdout).unwrap();
    for line in [
        "array:_Shuffle = \"true\" ;",
        "array:_DeflateLevel = 5 ;",
        r#"array:_Codecs = "[{\"id\":\"shuffle\",\"elementsize\":2},{\"id\":\"zlib\",\"level\":5}]" ;"#,
        "array:_NoFill = \"true\" ;",
        ":_IsNetcdf4 = 0 ;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("_SuperblockVersion"), "{text}");
}

#[test]
fn what_netcdf_has_no_word_for_is_told() {
    let output = dump(&["-h"], "phony.h5");
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "// not shown: /bool: an array of type enum",
        "// not shown: /dangling: a soft link to /nothing\n",
        "// not shown: /:table: an attribute of 2 dimensions\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("\tfloat half(phony_dim_1) ;\n"), "{text}");
    assert!(text.contains("\tshort a(phony_dim_1, phony_dim_2, phony_dim_3) ;\n"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wrong_wishes_are_told() {
    for (options, words) in [
        (&["-v", "nothing"][..], "nothing: there is no such variable"),
        (&["-g", "nothing"], "nothing: there is no such group"),
        (&["-p", "99"], "1 to 20 significant digits"),
    ] {
        let output = dump(options, "classic.nc");
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(words), "{text}");
    }
}

/// CDF-1: `t = UNLIMITED` of five records, and a variable of one int in each, which lie at 0x50.
fn records(name: &[u8; 4]) -> Vec<u8> {
    let mut bytes = b"CDF\x01\0\0\0\x05".to_vec();
    bytes.extend(b"\0\0\0\x0a\0\0\0\x01\0\0\0\x01t\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(b"\0\0\0\x0b\0\0\0\x01\0\0\0\x04");
    bytes.extend(name);
    bytes.extend(b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x04\0\0\0\x50");
    assert_eq!(bytes.len(), 0x50);
    (1..=5u32).for_each(|n| bytes.extend(n.to_be_bytes()));
    bytes
}

#[test]
fn what_a_cut_file_still_has_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.nc");
    let bytes = records(b"data");
    std::fs::write(&file, &bytes[..bytes.len() - 6]).unwrap();
    let output = dump(&[], file.to_str().unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" data = 1, 2, 3, \n// not shown from here on: E_TRUNCATED"), "{text}");
    assert!(text.contains("select [:3]"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn names_that_cdl_cannot_write_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slash.nc");
    std::fs::write(&file, records(b"a/bc")).unwrap();
    let output = dump(&["-h"], file.to_str().unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\tint a/bc(t) ;\n// not shown: the name of the variable \"a/bc\""), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_environment_asks_for_consolidated_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let array = r#"{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<i2", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null}"#;
    for name in ["a", "b"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join(".zarray"), array).unwrap();
    }
    let group = r#"{"zarr_format": 2}"#;
    let all = format!(
        r#"{{"zarr_consolidated_format": 1, "metadata": {{".zgroup": {group}, "a/.zarray": {array}}}}}"#
    );
    std::fs::write(folder.path().join(".zgroup"), group).unwrap();
    std::fs::write(folder.path().join(".zmetadata"), all).unwrap();
    let shown = |word: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
        command.args(["dump", "-h"]).arg(folder.path()).env("NCZARR_CONSOLIDATED", word);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        (text.contains("short a("), text.contains("short b("))
    };
    for word in ["1", "true", "YES"] {
        assert_eq!(shown(word), (true, false), "{word}");
    }
    for word in ["0", "", "no"] {
        assert_eq!(shown(word), (true, true), "{word}");
    }
    // Where there is none, others say the same.
    std::fs::remove_file(folder.path().join(".zmetadata")).unwrap();
    assert_eq!(shown("1"), (true, true));
}
