//! What is far away reads as what is here: every feature file by ranges over HTTP and S3.

#[path = "../../../hyperslab/tests/support/server.rs"]
mod server;

use crate::report;
use crate::s3::Moto;
use conformance::{reference, tool};
use hyperslab::Limits;
use hyperslab::source::{DirectoryStore, FileSource, Store, ZipStore};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Files that stand for everything that a file can be, some of which name others beside them.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let data = tool::root().join("crates/hyperslab/tests/data");
    for folder in [reference::generated("matrix.py", &[]), data.join("virtual"), data] {
        let entries = std::fs::read_dir(folder).unwrap();
        let wanted = |path: &PathBuf| {
            // Errors that name a file differ with its address.
            let named = path.ends_with("family.h5") || path.ends_with("virtual/bad.h5");
            path.is_file()
                && path.extension().is_some_and(|e| e != "py" && e != "cdl" && e != "json")
                && !named
        };
        found.extend(entries.map(|entry| entry.unwrap().path()).filter(wanted));
    }
    found.sort();
    assert!(found.len() > 50, "{found:?}");
    found
}

/// What the program says of a file or URL.
fn described(address: &str) -> String {
    let mut program = Command::new(tool::path());
    let keys =
        [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "us-east-1")];
    let output = program.args(["describe", "--json", address]).envs(keys).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Compares descriptions of files here and at the addresses that `address` makes of a folder's number and a name: every
/// `step`th file, or all of them where HYPERSLAB_ALL is set.
fn compare(
    what: &str,
    step: usize,
    address: &(dyn Fn(usize, &str) -> String + Sync),
    put: &dyn Fn(usize, &str, &Path),
) {
    let files = files();
    let mut folders: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    folders.dedup();
    let place = |file: &Path| {
        let folder = folders.iter().position(|f| Some(*f) == file.parent()).unwrap();
        (folder, file.file_name().unwrap().to_str().unwrap().to_owned())
    };
    for file in &files {
        let (folder, name) = place(file);
        put(folder, &name, file);
    }
    let step = if std::env::var_os("HYPERSLAB_ALL").is_some() { 1 } else { step };
    let (next, wrong, known) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(step, Ordering::Relaxed)) {
                    let (folder, name) = place(file);
                    let here = described(file.to_str().unwrap());
                    // What is no file of ours is an error at once where it is far away.
                    if here.contains("\"format\":\"unknown\"") {
                        continue;
                    }
                    known.fetch_add(1, Ordering::Relaxed);
                    let far = described(&address(folder, &name));
                    if far != here {
                        let at = far
                            .bytes()
                            .zip(here.bytes())
                            .position(|(a, b)| a != b)
                            .unwrap_or(0)
                            .saturating_sub(60);
                        let part = |text: &str| {
                            text.get(at..).unwrap_or_default().chars().take(200).collect::<String>()
                        };
                        wrong.lock().unwrap().push(format!(
                            "{name}: {} here, {} there",
                            part(&here),
                            part(&far)
                        ));
                    }
                }
            });
        }
    });
    report(what, known.into_inner(), &wrong.into_inner().unwrap());
}

#[test]
fn files_read_over_http_as_from_disk() {
    let server = Server::start(Duration::ZERO);
    let path = |folder: usize, name: &str| format!("/{folder}/{}", name.replace(' ', "%20"));
    compare("over HTTP", 9, &|folder, name| server.url(&path(folder, name)), &|folder, name, file| {
        server.put(&path(folder, name), std::fs::read(file).unwrap());
    });
}

#[test]
fn files_read_over_s3_as_from_disk() {
    let moto = Moto::start();
    let store = moto.store("");
    compare(
        "over S3",
        29,
        &|folder, name| format!("s3://bucket/{folder}/{name}#aws.endpoint={}", moto.endpoint()),
        &|folder, name, file| {
            store
                .put(&format!("{folder}/{name}"), std::fs::read(file).unwrap().into(), &Default::default())
                .unwrap();
        },
    );
}

/// Puts all objects of a store below a prefix of the bucket.
fn upload(store: &dyn Store, moto: &Moto, prefix: &str) {
    let to = moto.store(prefix);
    for key in store.list("").unwrap() {
        to.put(&key, store.get(&key).unwrap().unwrap(), &Default::default()).unwrap();
    }
}

/// What the program writes to stdout, with credentials for the bucket.
fn said(arguments: &[&str]) -> String {
    let mut program = Command::new(tool::path());
    let keys =
        [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "us-east-1")];
    let output = program.args(arguments).envs(keys).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn stores_of_zarr_python_read_over_s3_as_from_disk() {
    let moto = Moto::start();
    let folder = reference::generated("zarr_matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let step = if std::env::var_os("HYPERSLAB_ALL").is_some() { 1 } else { 17 };
    let (mut total, mut wrong) = (0, Vec::new());
    for name in expected.as_object().unwrap().keys().step_by(step) {
        let zip = folder.join(format!("{name}.zip"));
        let source = Arc::new(FileSource::open(&zip).unwrap());
        upload(&ZipStore::open(source, &Limits::default()).unwrap(), &moto, &format!("stores/{name}"));
        let far = format!("s3://bucket/stores/{name}#mode=zarr&aws.endpoint={}", moto.endpoint());
        let zip = zip.to_str().unwrap();
        for verb in [&["describe", "--json"][..], &["ls", "-l"], &["zmap", "ls", "-r"]] {
            total += 1;
            let of = |address: &str| {
                let said = said(&[verb, &[address]].concat());
                // What is said of the whole differs: a zip file has a prefix, and a URL says what it is.
                match serde_json::from_str::<serde_json::Value>(&said) {
                    Ok(whole) if verb[0] == "describe" => whole["zarr"]["nodes"].to_string(),
                    _ => said,
                }
            };
            let (here, there) = (of(zip), of(&far));
            if here != there {
                wrong.push(format!("{name} {verb:?}:\n{here:.600}\n{there:.600}"));
            }
        }
    }
    report("stores of zarr-python over S3", total, &wrong);
}

#[test]
fn a_store_of_xarray_reads_over_s3_as_from_disk() {
    let moto = Moto::start();
    let folder = tempfile::tempdir().unwrap();
    let write = "import sys, numpy as np, xarray as xr
ds = xr.Dataset({'t': (('time', 'x'), np.arange(60.0).reshape(12, 5), {'units': 'K'})},
                {'time': np.arange('2024-01', '2025-01', dtype='M8[M]').astype('M8[ns]'), 'x': np.arange(5)})
for version in (2, 3):
    ds.to_zarr(f'{sys.argv[1]}/v{version}', zarr_format=version, encoding={'t': {'chunks': (4, 5)}})
";
    let mut python = Command::new(reference::python());
    let made = python.args(["-W", "ignore", "-c", write]).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for version in ["v2", "v3"] {
        let path = folder.path().join(version);
        upload(&DirectoryStore::open(&path, &Limits::default()).unwrap(), &moto, version);
        let here = path.to_str().unwrap();
        let far = |mode: &str, object: &str| {
            format!("s3://bucket/{version}#mode={mode}&aws.endpoint={}{object}", moto.endpoint())
        };
        for (mode, as_file) in [("zarr", "zarr,file"), ("xarray,s3", "xarray,file")] {
            let there = far(mode, "");
            let near = format!("file://{here}#mode={as_file}");
            assert_eq!(
                said(&["describe", "--json", &there]),
                said(&["describe", "--json", &near]),
                "{there}"
            );
            assert_eq!(said(&["dump", "-n", "x", &there]), said(&["dump", "-n", "x", here]), "{there}");
            let (near, there) = (format!("{here}::/t[3:6, ::2]"), far(mode, "::/t[3:6, ::2]"));
            assert_eq!(said(&["get", &there]), said(&["get", &near]), "{there}");
        }
        let raw = far("zarr", "");
        assert_eq!(said(&["zmap", "ls", "-r", &raw]), said(&["zmap", "ls", "-r", here]));
        assert_eq!(said(&["zmap", "ls", &raw, "t"]), said(&["zmap", "ls", here, "t"]));
        let key = if version == "v2" { "t/.zarray" } else { "t/zarr.json" };
        assert_eq!(said(&["zmap", "get", &raw, key]).as_bytes(), std::fs::read(path.join(key)).unwrap());
    }
}

/// A process that ends with this value.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn certificates_are_checked_by_the_authorities_of_the_environment() {
    use std::io::BufRead;
    let folder = tempfile::tempdir().unwrap();
    let file = tool::root().join("examples/data/ocean.h5");
    let mut server = Running(
        Command::new(reference::python())
            .arg(tool::root().join("crates/conformance/python/https.py"))
            .args([folder.path(), &file])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut port = String::new();
    std::io::BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("https://localhost:{}/ocean.h5", port.trim());
    let ls = |authority: Option<&Path>| {
        let mut program = Command::new(tool::path());
        program.args(["ls", &url]).env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        program.envs(authority.map(|path| ("SSL_CERT_FILE", path)));
        let output = program.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (out, said) = ls(None);
    assert!(out.is_empty() && said.contains("certificate") && said.contains(&url), "{said}");
    let (out, said) = ls(Some(&folder.path().join("ca.pem")));
    assert_eq!(out.as_bytes(), tool::ask(&["ls", file.to_str().unwrap()]).unwrap(), "{said}");
}

#[test]
fn a_forked_child_makes_connections_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let fork = |url: Option<String>| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_fork"));
        program.arg(folder.path()).args(url).env("HYPERSLAB_NUM_THREADS", "4").status().unwrap()
    };
    assert!(fork(None).success());
    let server = Server::start(Duration::ZERO);
    server.put("/numbers.nc", std::fs::read(folder.path().join("numbers.nc")).unwrap());
    assert!(fork(Some(server.url("/numbers.nc"))).success());
    // Parent and child opened it, and anew: each has its front.
    let opened =
        server.log().iter().filter(|r| r.header("range").is_some_and(|r| r.starts_with("bytes=0-"))).count();
    assert_eq!(opened, 3);
}
