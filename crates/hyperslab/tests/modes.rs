//! Addresses with fragments, in the words of netCDF: what they say has to be so.

use hyperslab::{Address, ErrorKind, File, open};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn at(path: &Path, fragment: &str) -> hyperslab::Result<File> {
    open(Address::locate(&format!("{}#{fragment}", path.display())))
}

fn names(file: &File) -> Vec<String> {
    file.root().links().unwrap().links.iter().map(|link| link.name.to_string()).collect()
}

const ARRAY: &str = r#"{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<i2", "fill_value": 0, "order": "C",
    "filters": null, "compressor": null}"#;

/// A store with the arrays `a` and `b`, of which only `a` is in its consolidated metadata.
fn stale(folder: &Path) {
    for name in ["a", "b"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        std::fs::write(folder.join(name).join(".zarray"), ARRAY).unwrap();
    }
    let group = r#"{"zarr_format": 2}"#;
    std::fs::write(folder.join(".zgroup"), group).unwrap();
    let all = format!(r#"{{".zgroup": {group}, "a/.zarray": {ARRAY}}}"#);
    let all = format!(r#"{{"zarr_consolidated_format": 1, "metadata": {all}}}"#);
    std::fs::write(folder.join(".zmetadata"), all).unwrap();
}

#[test]
fn consolidated_metadata_is_used_and_needed_where_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    stale(folder.path());
    assert_eq!(names(&at(folder.path(), "mode=zarr").unwrap()), ["a", "b"]);
    let file = at(folder.path(), "mode=zarr,consolidated").unwrap();
    assert_eq!(names(&file), ["a"]);
    assert!(file.info().notes.contains(&("metadata", "consolidated".into())));
    std::fs::remove_file(folder.path().join(".zmetadata")).unwrap();
    let error = at(folder.path(), "mode=zarr,consolidated").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("there is no consolidated metadata"), "{error}");
}

#[test]
fn zip_files_are_told_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(data("nczarr/attributes.zip")).unwrap();
    let plain = folder.path().join("store.bin");
    std::fs::write(&plain, &bytes).unwrap();
    let found = names(&at(&plain, "mode=nczarr,zip").unwrap());
    assert!(!found.is_empty());
    // With a program in front that unpacks it.
    let program = folder.path().join("program");
    std::fs::write(&program, [&b"MZ and more of a program"[..], &bytes].concat()).unwrap();
    assert_eq!(names(&open(program.as_path()).unwrap()), found);
    for (wrong, words) in
        [(folder.path(), "a zip file, but it is a folder"), (&data("netcdf4.nc"), "it is HDF5")]
    {
        let error = at(wrong, "mode=zip").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn pure_zarr_is_looked_at_without_what_nczarr_adds() {
    let view = |mode: &str| at(&data("nczarr/attributes.zip"), mode).unwrap().netcdf().unwrap();
    assert!(view("mode=nczarr").is_nczarr() && view("mode=nczarr,zip").is_nczarr());
    for mode in ["mode=zarr", "mode=xarray,zip"] {
        assert!(!view(mode).is_nczarr(), "{mode}");
        // NCZarr says that there are unlimited dimensions, and in which groups they are.
        assert!(view("mode=nczarr").dimensions().len() != view(mode).dimensions().len(), "{mode}");
    }
}

#[test]
fn modes_that_are_not_so_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    stale(folder.path());
    let (four, three, store) = (data("netcdf4.nc"), data("classic.nc"), folder.path().to_owned());
    for (path, mode, words) in [
        (&four, "mode=zarr", "it is Zarr, but it is HDF5"),
        (&four, "mode=nczarr,file", "it is a folder, but it is a file"),
        (&four, "mode=netcdf3", "it is netCDF-3, but it is HDF5"),
        (&four, "mode=s3", "on a server that speaks S3"),
        (&three, "mode=hdf5", "it is HDF5, but it is netCDF-3"),
        (&store, "mode=hdf5", "it is one file, but it is a folder"),
        (&store, "mode=bytes", "it is one file, but it is a folder"),
    ] {
        let error = at(path, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{mode}: {error}");
        assert!(error.to_string().contains(words), "{mode}: {error}");
    }
    for (path, mode) in [
        (&four, "mode=bytes"),
        (&four, "mode=hdf5,file"),
        (&three, "mode=netcdf3"),
        (&store, "mode=zarr,file"),
    ] {
        at(path, mode).unwrap();
    }
}

#[test]
fn older_spellings_of_urls_are_taken() {
    let path = data("nczarr/attributes.zip");
    let path = path.display();
    assert!(!open(format!("[mode=zarr]file://{path}")).unwrap().netcdf().unwrap().is_nczarr());
    assert!(!open(format!("[mode=zip][mode=zarr]FILE://{path}")).unwrap().netcdf().unwrap().is_nczarr());
    assert!(open(format!("FILE://{path}")).unwrap().netcdf().unwrap().is_nczarr());
    let address = Address::parse("[mode=zarr]HTTP://h/S#mode=s3::/x");
    assert_eq!((address.file.as_str(), address.path.as_str()), ("http://h/S", "/x"));
    assert_eq!(address.fragment.as_deref(), Some("mode=zarr&mode=s3"));
}
