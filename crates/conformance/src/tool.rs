//! The program, as the tests run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The program `hyperslab` that was built beside this one.
pub fn path() -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    let folder = this
        .ancestors()
        .find(|p| p.file_name().is_some_and(|n| ["debug", "release", "checked"].iter().any(|f| n == *f)));
    let tool = folder.expect("a target folder").join("hyperslab");
    assert!(tool.exists(), "{} is not there: build it first, or use scripts/test", tool.display());
    tool
}

/// Runs it in the root of the repository.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(path()).args(arguments).current_dir(root()).output().expect("the program starts")
}

/// Runs it, and gives what it says where it succeeds.
pub fn ask(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = run(arguments);
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let words = String::from_utf8_lossy(&output.stderr);
        Err(format!("hyperslab {arguments:?}: {}: {}", output.status, words.trim()))
    }
}
