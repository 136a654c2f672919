//! Damaged files: a short run of fresh ones, and every one that ever made something fail.

use crate::shared;
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
fn what_failed_once_fails_no_more() {
    let folder = tool::root().join("crates/conformance/regressions");
    mutate(&["--replay", folder.to_str().expect("a path that is text")]);
}
