//! `dump` against the `ncdump` of this machine, byte for byte, if there is one (Debian: netcdf-bin) of version 4.9.

use crate::report;
use conformance::{reference, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every option, and pairs that go together.
const MODES: [&[&str]; 16] = [
    &[],
    &["-h"],
    &["-s", "-h"],
    &["-c"],
    &["-t"],
    &["-i", "-h"],
    &["-k"],
    &["-b", "c"],
    &["-b", "f"],
    &["-f", "c"],
    &["-f", "f"],
    &["-p", "4,9"],
    &["-l", "50"],
    &["-n", "a name"],
    // Files without such a variable or group are passed over.
    &["-v", "x"],
    &["-g", "zebra"],
];

/// What ncdump 4.9.0 gets wrong: files, options, and what. The right values stand in the tests of `dump` in
/// `crates/hyperslab-cli`.
const WRONG: [(&str, &str, &str); 3] = [
    ("classic.nc", "-t", "times too far away are whatever was in memory"),
    ("text_NETCDF3_64BIT_DATA.nc", "-s -h", "CDF-5 is taken for netCDF-4, in which variables have a storage"),
    ("one_record_variable_NETCDF3_64BIT_DATA.nc", "-s -h", "CDF-5 is taken for netCDF-4"),
];

/// ncdump says 33 or 34 where the index of a scalar is 1.
fn mended(text: &[u8], mode: &[&str]) -> Vec<u8> {
    match mode {
        ["-f", "f"] => {
            let text = String::from_utf8_lossy(text);
            text.replace("(33)\n", "(1)\n").replace("(34)\n", "(1)\n").into_bytes()
        }
        _ => text.to_vec(),
    }
}

fn ncdump() -> Option<String> {
    let output = Command::new("ncdump").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(text.split("version").nth(1).unwrap_or("").trim().to_owned())
}

fn run(program: &Path, first: &[&str], options: &[&str], file: &Path) -> Output {
    Command::new(program).args(first).args(options).arg(file).output().expect("it starts")
}

/// What we say that netCDF has no word for.
fn kept(output: &[u8]) -> Vec<u8> {
    let lines = output.split_inclusive(|&b| b == b'\n');
    lines.filter(|l| !l.windows(12).any(|w| w == b"// not shown")).flatten().copied().collect()
}

/// Files that this crate makes, and those of the corpus if it is there.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo =
        vec![reference::generated("netcdf_view.py", &[]), tool::root().join("crates/hyperslab/tests/data")];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "nc") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_option_prints_what_ncdump_prints() {
    if ncdump().is_none_or(|version| !version.starts_with("4.9")) {
        eprintln!("ncdump 4.9 is not on this machine, nothing to compare");
        return;
    }
    let files = files();
    let runs: Vec<_> = files.iter().flat_map(|file| MODES.iter().map(move |mode| (file, *mode))).collect();
    let (next, total, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((file, mode)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let theirs = run(Path::new("ncdump"), &[], mode, file);
                    if !theirs.status.success() {
                        continue;
                    }
                    total.fetch_add(1, Ordering::Relaxed);
                    let ours = run(&tool::path(), &["dump"], mode, file);
                    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or("");
                    let known = WRONG.iter().any(|(f, m, _)| name == *f && *m == mode.join(" "));
                    let (ours, theirs) = (kept(&ours.stdout), mended(&theirs.stdout, mode));
                    // A fault of ncdump that is no more must not stay in the list.
                    if (ours == theirs) == known {
                        let text = difference(&ours, &theirs);
                        wrong.lock().expect("no thread panics").push(format!("{name} {mode:?}: {text}"));
                    }
                }
            });
        }
    });
    report("dumps", total.into_inner(), &wrong.into_inner().expect("no thread panics"));
}

/// The first line that differs.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (lines(ours), lines(theirs));
    let at = ours.iter().zip(&theirs).position(|(a, b)| a != b).unwrap_or(ours.len().min(theirs.len()));
    format!("line {}: {:?}, ncdump {:?}", at + 1, ours.get(at), theirs.get(at))
}
