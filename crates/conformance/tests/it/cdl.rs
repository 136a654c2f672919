//! `dump` against the `ncdump` of this machine, byte for byte, if there is one (Debian: netcdf-bin) of version 4.9.

use crate::{report, shared};
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

/// ncdump within bounds, which damaged files need.
const BOUNDED: &str = "ulimit -v 1000000 -t 20; exec ncdump \"$@\"";

/// How the corpus is printed.
const CORPUS_MODES: [&[&str]; 3] = [&["-h"], &[], &["-s", "-h"]];

/// Where we print something else than ncdump 4.9.0, and why: the end of a path, options (empty: any), the reason. What ncdump
/// gets wrong has its right values in the tests of `dump` in `crates/hyperslab-cli`.
const WRONG: [(&str, &str, &str); 25] = [
    ("/classic.nc", "-t", "times too far away are whatever was in memory"),
    (
        "/text_NETCDF3_64BIT_DATA.nc",
        "-s -h",
        "CDF-5 is taken for netCDF-4, in which variables have a storage",
    ),
    ("/one_record_variable_NETCDF3_64BIT_DATA.nc", "-s -h", "CDF-5 is taken for netCDF-4"),
    // Files that end before their data, for which ncdump shows zeros.
    (
        "/src__utils__ncvalidator/bad_padding_name_var.nc2",
        "",
        "the file has 72 bytes, the variable begins at 512",
    ),
    (
        "/src__utils__ncvalidator/bad_padding_name_vattr.nc5",
        "",
        "the file has 136 bytes, the variable begins at 512",
    ),
    (
        "/src__utils__ncvalidator/bad_padding_value_vattr.nc5",
        "",
        "the file has 132 bytes, the variable begins at 512",
    ),
    // Types that netCDF does not have, of which ncdump says `string`.
    ("/t_unsupported.h5", "-h", "long double is called string"),
    ("/t_unsupported.h5", "-s -h", "long double is called string"),
    ("/tables__tests/float.h5", "-h", "long double and quadruple precision are called string"),
    ("/tables__tests/float.h5", "-s -h", "long double and quadruple precision are called string"),
    ("/h5diff_basic1.h5", "-h", "long double is called string"),
    ("/h5diff_basic1.h5", "-s -h", "long double is called string"),
    ("/t128bit_float.h5", "-h", "quadruple precision is called string"),
    ("/t128bit_float.h5", "-s -h", "quadruple precision is called string"),
    ("/tldouble.h5", "-h", "long double is called string"),
    ("/tldouble.h5", "-s -h", "long double is called string"),
    ("/test-h5link.h5", "", "external links are not followed"),
    ("rsciio__tests__data__arina/test_00_master.h5", "", "external links are not followed"),
    ("/tables__tests/attr-u16.h5", "", "an attribute of 128 bits is shown as one of 64"),
    // Strings of fixed length without a NUL, behind which ncdump shows whatever was in memory.
    ("/calib_slc_pass1_20mhz.h5", "", "strings of fixed length are run together"),
    ("/REE_L0B_ECHO_DATA.h5", "", "strings of fixed length are run together"),
    // Files that are damaged.
    ("/tmisc38a.h5", "", "a type of 65525 bytes is called string"),
    ("/tmisc38b.h5", "", "an integer of 8000 bits is shown as one of 32"),
    ("/tCVE-2021-37501_attr_decode.h5", "", "an attribute of 2^62 values is shown as an empty one"),
    (
        "/tools__test__h5dump__testfiles/tcompound.h5",
        "",
        "a variable is left out whose type stands behind it",
    ),
];

/// The entry of [`WRONG`] for a file.
fn known(file: &Path, mode: &[&str]) -> bool {
    let (path, mode) = (file.to_string_lossy(), mode.join(" "));
    WRONG.iter().any(|(end, m, _)| path.ends_with(end) && (m.is_empty() || *m == mode))
}

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

/// Files below some folders that `wanted` takes.
fn files(folders: Vec<PathBuf>, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut todo) = (Vec::new(), folders);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => todo.push(path),
                false if wanted(&path) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e.to_lowercase().as_str()))
}

/// Whether a file is netCDF-3, or HDF5 that says it is netCDF by name or mark; or any HDF5 file if `all`.
fn is_netcdf(path: &Path, all: bool) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    let holds = |mark: &[u8]| bytes.windows(mark.len()).any(|w| w == mark);
    let classic = bytes.starts_with(b"CDF") && bytes.get(3).is_some_and(|v| [1, 2, 5].contains(v));
    let marked = || ends_in(path, &["nc", "nc4"]) || holds(b"_NCProperties") || holds(b"_nc3_strict");
    classic || bytes.starts_with(b"\x89HDF") && (all || marked())
}

fn is_there() -> bool {
    let there = ncdump().is_some_and(|version| version.starts_with("4.9"));
    if !there {
        eprintln!("ncdump 4.9 is not on this machine, nothing to compare");
    }
    there
}

#[test]
fn every_option_prints_what_ncdump_prints() {
    if !is_there() {
        return;
    }
    let folders = vec![
        reference::generated("netcdf_view.py", &[]),
        reference::generated("cdl_files.py", &[]),
        tool::root().join("crates/hyperslab/tests/data"),
    ];
    let made = files(folders, |path| {
        ends_in(path, &["nc"]) || path.parent().is_some_and(|p| p.to_string_lossy().contains("cdl_files"))
    });
    compare(&made, &MODES, 800);
}

/// All netCDF files; with `HYPERSLAB_CDL_ALL` all HDF5 files too, for minutes.
#[test]
fn the_corpus_prints_as_ncdump_prints_it() {
    let Some(corpus) = shared("corpus/files").filter(|_| is_there()) else { return };
    let all = std::env::var_os("HYPERSLAB_CDL_ALL").is_some();
    compare(&files(vec![corpus], |path| is_netcdf(path, all)), &CORPUS_MODES, 250);
}

/// Prints files in some modes, of which ncdump has to print at least `least`.
fn compare(files: &[PathBuf], modes: &[&'static [&'static str]], least: usize) {
    let runs: Vec<_> = files.iter().flat_map(|file| modes.iter().map(move |mode| (file, *mode))).collect();
    let (next, total, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((file, mode)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let theirs = run(Path::new("sh"), &["-c", BOUNDED, "ncdump"], mode, file);
                    if !theirs.status.success() {
                        continue;
                    }
                    total.fetch_add(1, Ordering::Relaxed);
                    let ours = run(&tool::path(), &["dump"], mode, file);
                    let (ours, theirs) = (kept(&ours.stdout), mended(&theirs.stdout, mode));
                    let known = known(file, mode);
                    // A fault of ncdump that is no more must not stay in the list; entries for any mode may be equal.
                    let any = |(end, m, _): &&(&str, &str, &str)| {
                        file.to_string_lossy().ends_with(end) && m.is_empty()
                    };
                    if (ours == theirs) == known && !(known && WRONG.iter().any(|w| any(&w))) {
                        let text = format!("{} {mode:?}: {}", file.display(), difference(&ours, &theirs));
                        wrong.lock().expect("no thread panics").push(text);
                    }
                }
            });
        }
    });
    let total = total.into_inner();
    assert!(total >= least, "{total} dumps of ncdump, {least} expected at least");
    report("dumps", total, &wrong.into_inner().expect("no thread panics"));
}

/// The first line that differs.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (lines(ours), lines(theirs));
    let at = ours.iter().zip(&theirs).position(|(a, b)| a != b).unwrap_or(ours.len().min(theirs.len()));
    format!("line {}: {:?}, ncdump {:?}", at + 1, ours.get(at), theirs.get(at))
}
