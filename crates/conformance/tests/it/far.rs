//! What is far away reads as what is here: every feature file by ranges over HTTP and S3.

#[path = "../../../hyperslab/tests/support/server.rs"]
mod server;

use crate::report;
use crate::s3::Moto;
use conformance::{reference, tool};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
            use hyperslab::source::Store;
            store
                .put(&format!("{folder}/{name}"), std::fs::read(file).unwrap().into(), &Default::default())
                .unwrap();
        },
    );
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
