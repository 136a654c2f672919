//! The corpus of real files, where it is beside the repository. Its scores may not fall.

use crate::shared;
use std::process::Command;

#[test]
fn the_scores_do_not_fall() {
    let Some(corpus) = shared("corpus") else {
        eprintln!("corpus: not beside the repository, nothing to compare");
        return;
    };
    let output = Command::new(env!("CARGO_BIN_EXE_corpus"))
        .arg(corpus)
        .args(["--show", "40"])
        .output()
        .expect("it starts");
    let words = String::from_utf8_lossy(&output.stdout);
    words.lines().filter(|l| l.contains(" equal (")).for_each(|l| eprintln!("{l}"));
    assert!(output.status.success(), "{words}");
}
