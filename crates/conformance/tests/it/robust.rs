//! Damaged files: a short run of fresh ones, and every one that ever made something fail.

use crate::shared;
use conformance::codecs::{self, CODECS};
use conformance::rng::Rng;
use conformance::{reference, tool};
use std::process::Command;

fn mutate(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_mutate")).args(arguments).output().expect("it starts");
    let words = String::from_utf8_lossy(&output.stdout);
    eprintln!("{}", words.lines().last().unwrap_or(""));
    assert!(output.status.success(), "{words}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn damaged_files_get_an_answer() {
    let folder = reference::generated("matrix.py", &[]);
    let mut arguments =
        vec!["--count", "2000", "--seed", "20261130", folder.to_str().expect("a path that is text")];
    let corpus = shared("corpus/files");
    arguments.extend(corpus.iter().filter_map(|c| c.to_str()));
    mutate(&arguments);
}

#[test]
fn damaged_netcdf3_headers_get_an_answer() {
    let folder = tool::root().join("crates/hyperslab/tests/data");
    let mut arguments = vec!["--format", "netcdf3", "--count", "1000", "--seed", "20261130"];
    arguments.push(folder.to_str().expect("a path that is text"));
    let corpus = shared("corpus/files");
    arguments.extend(corpus.iter().filter_map(|c| c.to_str()));
    mutate(&arguments);
}

#[test]
fn damaged_zarr_stores_get_an_answer() {
    let folder = reference::generated("zarr_matrix.py", &[]);
    let folder = folder.to_str().expect("a path that is text");
    mutate(&["--format", "zarr", "--count", "2000", "--seed", "20261130", folder]);
}

#[test]
fn what_failed_once_fails_no_more() {
    let folder = tool::root().join("crates/conformance/regressions");
    let folder = folder.to_str().expect("a path that is text");
    mutate(&["--replay", folder]);
    mutate(&["--tool", "--replay", folder]);
}

#[test]
fn codecs_take_any_bytes() {
    for &(_, id) in CODECS {
        for number in 0..4000 {
            let mut rng = Rng::new(u64::from(id), number);
            let length = rng.below(300);
            // Few different values make more sense as counts and lengths than many.
            let data: Vec<u8> = (0..length)
                .map(|_| rng.pick(&[0, 0, 1, 2, 4, 8, 64, 0xff, rng.clone().next() as u8]))
                .collect();
            codecs::decode(id, &data);
            codecs::round_trip(id, &data, |encoded| {
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(encoded.len());
                    if let Some(byte) = encoded.get_mut(at) {
                        *byte = rng.pick(&[0, 1, 0x7f, 0x80, 0xff, *byte ^ 1, *byte ^ 0x10]);
                    }
                }
                if rng.chance(20) {
                    encoded.truncate(rng.below(encoded.len()));
                }
            });
        }
    }
}
