//! The program on files and stores that are far away: it prints what it prints of the same files here.

#[path = "../../hyperslab/tests/support/server.rs"]
mod server;

use server::{Fault, Server};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn run(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_hyperslab")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab/tests/data").join(name)
}

/// A store with two levels, as a folder.
fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join(".zgroup"), "{\"zarr_format\":2}").unwrap();
    std::fs::write(folder.path().join("a/.zarray"), ARRAY).unwrap();
    std::fs::write(folder.path().join("a/1"), [3, 4]).unwrap();
    folder
}

const ARRAY: &str = "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"compressor\":null,\
                     \"fill_value\":7,\"order\":\"C\",\"filters\":null}";

fn consolidated() -> String {
    format!(
        "{{\"zarr_consolidated_format\":1,\"metadata\":{{\".zgroup\":{{\"zarr_format\":2}},\"a/.zarray\":{ARRAY}}}}}"
    )
}

/// The same store on a server.
fn served() -> Server {
    let server = Server::start(Duration::ZERO);
    let folder = store();
    for key in [".zgroup", "a/.zarray", "a/1"] {
        server.put(&format!("/s.zarr/{key}"), std::fs::read(folder.path().join(key)).unwrap());
    }
    server.put("/s.zarr/.zmetadata", consolidated());
    server
}

#[test]
fn every_verb_reads_urls() {
    let server = Server::start(Duration::ZERO);
    for name in ["netcdf4.nc", "classic.nc"] {
        let local = data(name).display().to_string();
        server.put(&format!("/{name}"), std::fs::read(&local).unwrap());
        let url = server.url(&format!("/{name}"));
        let array = if name == "classic.nc" { "::/t" } else { "::/x" };
        for (verb, behind) in [
            (&["ls", "-l"][..], ""),
            (&["info"], array),
            (&["get"], array),
            (&["plan", "--json"], array),
            (&["dump"], ""),
            (&["dump", "-s", "-h"], ""),
            (&["describe", "--json"], ""),
            (&["check"], ""),
        ] {
            let of = |file: &str| {
                let address = format!("{file}{behind}");
                run(&[verb, &[address.as_str()]].concat())
            };
            let (near, far) = (of(&local), of(&url));
            // Far away fewer and longer requests are planned.
            if verb[0] != "plan" {
                assert_eq!(far.0.replace(&url, &local), near.0, "{verb:?} {url}: {}", far.1);
            }
            assert_eq!((far.1, far.2), (near.1, near.2), "{verb:?} {url}");
            let said = run(&[verb, &["--stats", format!("{url}{behind}").as_str()]].concat()).1;
            assert!(
                said.contains("\"remote_requests\":") && said.contains("\"cache_hits\":"),
                "{verb:?}: {said}"
            );
        }
    }
}

#[test]
fn a_server_without_ranges_is_talked_about() {
    let server = Server::start(Duration::ZERO);
    let mut long = std::fs::read(data("netcdf4.nc")).unwrap();
    long.resize(200_000, 0);
    server.put("/x.nc", long);
    server.on(|_| Some(Fault::Whole));
    let (out, said, code) = run(&["ls", "--stats", &server.url("/x.nc")]);
    assert!(code == 0 && out.starts_with('/'), "{said}");
    assert!(said.contains("has no ranges; all 200000 bytes were downloaded"), "{said}");
    assert!(said.contains("\"whole_downloads\":1"), "{said}");
}

#[test]
fn errors_say_what_the_server_said() {
    let server = Server::start(Duration::ZERO);
    let url = server.url("/none.nc");
    for (status, kind, body, wanted) in [
        (403, "text/plain", "go away", "E_PERMISSION: HTTP 403 Forbidden for URL: go away"),
        (404, "text/plain", "nothing", "E_NOT_FOUND: HTTP 404 Not Found for URL: nothing"),
        (
            200,
            "text/html",
            "<html><title>Log in</title>",
            "web page (\"Log in\"), not the file, with HTTP 200 for URL",
        ),
    ] {
        server.on(move |_| Some(Fault::Status(status, kind, body)));
        for verb in [&["ls"][..], &["info"], &["get"], &["dump"], &["describe", "--json"], &["check"]] {
            let (_, said, code) = run(&[verb, &[url.as_str()]].concat());
            assert_eq!(code, 2, "{verb:?}: {said}");
            assert!(said.contains(&wanted.replace("URL", &url)), "{verb:?}: {said}");
        }
    }
}

#[test]
fn a_store_far_away_is_read_through_its_metadata() {
    let server = served();
    let url = server.url("/s.zarr");
    let (out, said, code) = run(&["ls", &url]);
    assert_eq!(
        (out.as_str(), said.as_str(), code),
        ("/    group, 1 member\n  a  u8 (4,)  chunks (2,)\n", "", 0)
    );
    // The first chunk does not exist, as the server says: fill.
    let get = || run(&["get", &format!("{url}::/a")]);
    assert_eq!(get().0.trim(), "[7 7 3 4]");
    // That it may not be seen does not say that it does not exist, nor does a server that is out of order.
    for (status, text) in [(403, "HTTP 403"), (400, "HTTP 400")] {
        server.on(move |r| r.path().ends_with("/a/0").then_some(Fault::Status(status, "text/plain", "")));
        let (out, said, code) = get();
        assert!(out.is_empty() && code == 2, "{out}");
        assert!(
            said.contains(text) && said.contains("array /a: chunk [0]") && said.contains("/s.zarr/a/0"),
            "{said}"
        );
    }
    server.on(|_| None);
    let dump = run(&["dump", &url]);
    assert!(dump.0.contains("a = 7, 7, 3, 4 ;") || dump.0.contains("a = _, _, 3, 4 ;"), "{dump:?}");
    let described = run(&["describe", "--json", &url]);
    assert!(described.0.contains("\"format\":\"zarr\"") && described.2 == 0, "{described:?}");
}

/// What cannot be shown is no success.
#[test]
fn a_store_that_cannot_be_listed_is_not_all_shown() {
    let server = Server::start(Duration::ZERO);
    let folder = store();
    for key in [".zgroup", "a/.zarray", "a/1"] {
        server.put(&format!("/s.zarr/{key}"), std::fs::read(folder.path().join(key)).unwrap());
    }
    server.put("/s.zarr/g/.zgroup", "{\"zarr_format\":2}");
    let url = server.url("/s.zarr");
    let said = "not supported: listing what is below http://";
    let group = format!("{url}::/g");
    for arguments in [
        &["ls", &url][..],
        &["ls", "-r", "-l", &url],
        &["ls", "--json", &url],
        &["ls", &group],
        &["check", &url],
        &["check", "--json", &url],
    ] {
        let (out, complaint, code) = run(arguments);
        assert!(code == 1 && out.contains(said), "{arguments:?}: {code} {out} {complaint}");
    }
    assert!(run(&["check", &url]).0.contains("not all could be listed"));
    assert!(run(&["check", "--json", &url]).0.contains("\"sound\":null"));
    // The array is known by its name.
    assert_eq!(run(&["ls", &format!("{url}::/a")]).2, 0);
    // A description says what it lacks, as of all else.
    let (out, _, code) = run(&["describe", "--json", &url]);
    assert!(code == 0 && out.contains("\"error\":\"E_UNSUPPORTED"), "{out}");
}

/// A zip file with stored entries.
fn zip(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let mut crc = !0u32;
        for &byte in data {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            }
        }
        let at = out.len() as u32;
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for n in [!crc, data.len() as u32, data.len() as u32] {
            common.extend(n.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), data].concat());
        directory.extend(
            [&b"PK\x01\x02\x14\x00"[..], &common, &[0; 10], &at.to_le_bytes(), name.as_bytes()].concat(),
        );
    }
    let (start, count) = (out.len() as u32, (entries.len() as u16).to_le_bytes());
    out.extend(&directory);
    out.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count].concat());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

#[test]
fn zmap_shows_a_store_as_it_is() {
    let folder = store();
    let here = folder.path().display().to_string();
    let level = "           -  a/\n          17  .zgroup\n";
    let lines = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let size = ARRAY.len();
    let deep = format!("          17  .zgroup\n           -  a/\n{size:>12}  a/.zarray\n           2  a/1\n");
    let entries: Vec<_> = [".zgroup", "a/.zarray", "a/1"]
        .map(|key| (key, std::fs::read(folder.path().join(key)).unwrap()))
        .into_iter()
        .collect();
    let zipped = folder.path().join("../hyperslab-zmap.zip").display().to_string();
    let zipped = format!("{zipped}.{}", std::process::id());
    std::fs::write(&zipped, zip(&entries)).unwrap();
    let server = served();
    server.put("/s.zip", zip(&entries));
    for store in [here.as_str(), &zipped, &server.url("/s.zip")] {
        let (out, said, code) = run(&["zmap", "ls", store]);
        assert_eq!((lines(&out), said.as_str(), code), (lines(level), "", 0), "{store}");
        assert_eq!(run(&["zmap", "ls", "-r", store]).0, deep, "{store}");
        assert_eq!(run(&["zmap", "ls", store, "/a/1"]).0, "           2  a/1\n");
        assert_eq!(
            run(&["zmap", "ls", "--json", store, "a"]).0,
            format!(
                "{{\"content\":true,\"key\":\"a/.zarray\",\"length\":{size}}}\n{{\"content\":true,\"key\":\"a/1\",\"length\":2}}\n"
            )
        );
        assert_eq!(run(&["zmap", "get", store, "a/1"]).0, "\u{3}\u{4}");
        let (_, said, code) = run(&["zmap", "get", store, "a"]);
        assert!(code == 2 && said.contains("E_NOT_FOUND: a has no bytes of its own"), "{said}");
        let (_, said, code) = run(&["zmap", "get", store, "b"]);
        assert!(code == 2 && said.contains("b is no key in"), "{said}");
        assert_eq!(run(&["zmap", "ls", store, "b"]).2, 2);
        assert_eq!(run(&["zmap", "get", store, "../x"]).2, 2);
    }
    // As a store it reads by ranges: the directory and the chunk.
    server.forget();
    assert_eq!(run(&["get", &format!("{}::/a", server.url("/s.zip"))]).0.trim(), "[7 7 3 4]");
    assert!(server.log().iter().all(|r| r.header("range").is_some()) && server.log().len() <= 4);
    std::fs::remove_file(&zipped).unwrap();
    // A web server knows its keys, and lists none.
    let url = server.url("/s.zarr");
    assert_eq!(run(&["zmap", "ls", &url, "a/1"]).0, "           2  a/1\n");
    assert_eq!(run(&["zmap", "get", &url, "a/.zarray"]).0, ARRAY);
    let (_, said, code) = run(&["zmap", "ls", "-r", &url]);
    assert!(
        code == 2 && said.contains("E_UNSUPPORTED: not supported: listing what is below http://"),
        "{said}"
    );
    let out = folder.path().join("out");
    let (_, said, code) = run(&["zmap", "get", "--stats", &url, "a/1", "-o", out.to_str().unwrap()]);
    assert!(code == 0 && said.contains("\"remote_requests\":"), "{said}");
    assert_eq!(std::fs::read(&out).unwrap(), [3, 4]);
    // One file is no store.
    let (_, said, code) = run(&["zmap", "ls", &data("netcdf4.nc").display().to_string()]);
    assert!(code == 2 && said.contains("is one file, not a store of objects"), "{said}");
}
