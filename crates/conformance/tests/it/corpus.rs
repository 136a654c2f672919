//! The corpus of real files, where it is beside the repository. Its score may not fall.

use crate::shared;
use conformance::tool;
use std::process::Command;

#[test]
fn the_score_does_not_fall() {
    let Some(corpus) = shared("corpus") else {
        eprintln!("corpus: not beside the repository, nothing to compare");
        return;
    };
    let text = std::fs::read_to_string(tool::root().join("crates/conformance/score.txt")).expect("the floor");
    let floor = text.lines().find_map(|l| l.strip_prefix("corpus ")).expect("a floor for the corpus");
    let output = Command::new(env!("CARGO_BIN_EXE_corpus"))
        .arg(corpus)
        .args(["--floor", floor.trim(), "--show", "40"])
        .output()
        .expect("it starts");
    let words = String::from_utf8_lossy(&output.stdout);
    eprintln!("{}", words.lines().last().unwrap_or(""));
    assert!(output.status.success(), "{words}");
}
