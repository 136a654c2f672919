//! The feature files of the shared oracle, where it is beside the repository.

use crate::{report, sha256, shared};
use conformance::reference;
use hyperslab::Selection;
use std::process::Command;

#[test]
fn the_oracle_reads_whole() {
    let Some(script) = shared("oracle/h5_matrix.py") else {
        eprintln!("oracle: not beside the repository, nothing to compare");
        return;
    };
    let folder = conformance::tool::root().join("target/reference/oracle");
    if !folder.join("expected.json").exists() {
        let made =
            Command::new(reference::python()).arg(script).arg(&folder).output().expect("Python starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let expected = reference::json(&folder.join("expected.json"));
    let cases = expected.as_object().expect("cases by name");
    let mut wrong = Vec::new();
    for (name, case) in cases {
        let path = folder.join(format!("{name}.h5"));
        let array = hyperslab::open(path.to_str().expect("a path that is text"))
            .and_then(|f| f.array(&format!("/{}", case[0].as_str().unwrap_or("d"))));
        let done = array.and_then(|a| match case[2].as_str() {
            Some(sum) => a.read_raw(Selection::all()).map(|data| sha256(&data.bytes) == sum),
            // No flat bytes: strings, sequences, references have to decode.
            None => a.read_values(Selection::all()).map(|values| !values.is_empty()),
        });
        match done {
            Ok(true) => {}
            Ok(false) => wrong.push(format!("{name}: other bytes")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    report("oracle", cases.len(), &wrong);
}
