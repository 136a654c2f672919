//! `check` calls sound files sound, and finds what was broken on purpose.

use crate::report;
use conformance::extent::{self, Extent, SIGNATURES};
use conformance::rng::Rng;
use conformance::{reference, tool};
use hyperslab::model::ChunkRef;

/// Exit code and output of `check`.
fn check(path: &std::path::Path) -> (i32, String) {
    let output = tool::run(&["check", path.to_str().expect("a path that is text")]);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text)
}

/// The offsets that a text names.
fn offsets(text: &str) -> impl Iterator<Item = usize> {
    let digits = |t: &str| t.chars().take_while(char::is_ascii_hexdigit).collect::<String>();
    text.split("0x").skip(1).filter_map(move |t| usize::from_str_radix(&digits(t), 16).ok())
}

fn files() -> Vec<std::path::PathBuf> {
    let folder = reference::generated("matrix.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    expected.as_object().expect("files by name").keys().map(|name| folder.join(name)).collect()
}

#[test]
fn sound_files_are_called_sound() {
    let files = files();
    let wrong: Vec<String> = files
        .iter()
        .filter_map(|path| match check(path) {
            (0, _) => None,
            (code, text) => Some(format!("{}: exit {code}: {text:.300}", path.display())),
        })
        .collect();
    report("sound files", files.len(), &wrong);
}

#[test]
fn a_wrong_byte_in_any_checksummed_structure_is_found() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut total, mut wrong) = (0, Vec::new());
    for (number, path) in files().iter().enumerate() {
        let bytes = std::fs::read(path).expect("the file is there");
        let mut rng = Rng::new(5, number as u64);
        let extents = extent::extents(&bytes);
        if extents.is_empty() {
            continue;
        }
        let Extent { start, end, .. } = extents[rng.below(extents.len())];
        // Not the signature: without it, a structure may never be looked at as one.
        let at = start + 4 + rng.below(end - start - 4);
        let mut broken = bytes.clone();
        broken[at] ^= 1 << rng.below(8);
        let copy = scratch.path().join("broken.h5");
        std::fs::write(&copy, broken).expect("the copy is written");
        total += 1;
        let kind =
            SIGNATURES.iter().map(|(s, _)| s).find(|s| bytes[start..].starts_with(s)).expect("a signature");
        let kind = kind.escape_ascii();
        match check(&copy) {
            (1, text) if offsets(&text).any(|o| (start..end + 4).contains(&o)) => {}
            (2, _) if start < 2048 => {} // The superblock or the root group: there is nothing to look at.
            (code, text) => {
                wrong.push(format!(
                    "{}: {kind} at {start:#x}, byte {at:#x}: exit {code}: {text:.300}",
                    path.display()
                ));
            }
        }
    }
    report("broken structures", total, &wrong);
}

#[test]
fn a_chunk_that_does_not_decode_is_found_and_named() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut total, mut wrong) = (0, Vec::new());
    for path in files() {
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        // A checksum over the data finds any wrong byte.
        if !name.contains("shuf_gz_fl") {
            continue;
        }
        let array =
            hyperslab::open(path.to_str().expect("text")).and_then(|f| f.array("/d")).expect("it opens");
        let mut places = Vec::new();
        array
            .chunks(
                &mut |_, chunk| {
                    if let ChunkRef::Range { offset, length, .. } = chunk {
                        places.push((offset, length));
                    }
                    Ok(())
                },
                &mut |fault| panic!("{name}: {}", fault.error),
            )
            .expect("chunks list");
        let mut rng = Rng::new(6, total as u64);
        let (offset, length) = places[rng.below(places.len())];
        let mut broken = std::fs::read(&path).expect("the file is there");
        broken[offset as usize + rng.below(length as usize)] ^= 1 << rng.below(8);
        let copy = scratch.path().join("broken.h5");
        std::fs::write(&copy, broken).expect("the copy is written");
        total += 1;
        match check(&copy) {
            (1, text) if text.contains("/d") && text.contains("chunk") => {}
            (code, text) => wrong.push(format!("{name}: chunk at {offset:#x}: exit {code}: {text:.300}")),
        }
    }
    report("broken chunks", total, &wrong);
}

#[test]
fn a_cut_file_is_found() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut total, mut wrong) = (0, Vec::new());
    for (number, path) in files().iter().enumerate().filter(|(n, _)| n % 7 == 0) {
        let bytes = std::fs::read(path).expect("the file is there");
        let mut rng = Rng::new(7, number as u64);
        let copy = scratch.path().join("cut.h5");
        std::fs::write(&copy, &bytes[..rng.below(bytes.len())]).expect("the copy is written");
        total += 1;
        match check(&copy) {
            (1 | 2, _) => {}
            (code, text) => wrong.push(format!("{}: exit {code}: {text:.300}", path.display())),
        }
    }
    report("cut files", total, &wrong);
}

#[test]
fn sound_netcdf_is_called_sound() {
    let folder = reference::generated("netcdf_view.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let names: Vec<&String> = expected.as_object().expect("files by name").keys().collect();
    let wrong: Vec<String> = names
        .iter()
        .filter_map(|name| match check(&folder.join(name)) {
            (0, _) => None,
            (code, text) => Some(format!("{name}: exit {code}: {text:.300}")),
        })
        .collect();
    report("sound netCDF", names.len(), &wrong);
}

#[test]
fn netcdf_that_contradicts_itself_is_found_and_named() {
    let folder = reference::generated("broken_netcdf.py", &[]);
    let expected = reference::json(&folder.join("expected.json"));
    let expected = expected.as_object().expect("words by file");
    let mut wrong = Vec::new();
    for (name, words) in expected {
        let (code, text) = check(&folder.join(name));
        let said = |word: &serde_json::Value| text.contains(word.as_str().expect("a word"));
        if code != 1 || !words.as_array().expect("words").iter().all(said) {
            wrong.push(format!("{name}: exit {code}, {words} expected: {text:.400}"));
        }
    }
    report("contradictions", expected.len(), &wrong);
}
