//! Random selections of random arrays, as NumPy answers them.

use crate::{report, sha256};
use conformance::reference;
use hyperslab::Selection;
use hyperslab::select::Mode;

#[test]
fn selections_are_those_of_numpy() {
    let folder = reference::generated("selections.py", &["1", "4000"]);
    let file =
        hyperslab::open(folder.join("arrays.h5").to_str().expect("a path that is text")).expect("it opens");
    let cases = reference::json(&folder.join("cases.json"));
    let cases = cases.as_array().expect("a list of cases");
    let mut wrong = Vec::new();
    for case in cases {
        let words = |i: usize| case[i].as_str().expect("text");
        let read = Selection::parse(words(2)).and_then(|selection| {
            let mode = if words(1) == "outer" { Mode::Outer } else { Mode::Vectorised };
            file.array(words(0))?.read_packed(selection.with_mode(mode))
        });
        let title = format!("{}{} ({}, {})", words(0), words(2), words(1), case[3]);
        match read {
            Ok(data) if serde_json::json!(data.shape) != case[3] => {
                wrong.push(format!("{title}: shape {:?}", data.shape));
            }
            Ok(data) if sha256(&data.bytes) != words(4) => wrong.push(format!("{title}: other elements")),
            Ok(_) => {}
            Err(error) => wrong.push(format!("{title}: {error}")),
        }
    }
    report("selections", cases.len(), &wrong);
}
